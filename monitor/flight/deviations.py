"""Finds the stretch of a recording in which most curves deviate from their usual values, and states it in words.

The usual value of a curve is the median of its ticks. The spread is the median absolute deviation (MAD) scaled to a
standard deviation (F. R. Hampel, "The influence curve and its role in robust estimation", 1974; B. Iglewicz and D. C.
Hoaglin, "How to Detect and Handle Outliers", 1993). It is at least that of random arrivals, so that a single packet on
an idle curve is not unusual. A tick deviates if it is `NOTABLE` spreads from the usual value. Ticks that deviate at
most `JOIN_SECONDS` apart, or a tenth of a short recording, are one deviation. A curve that deviates for more than half
of the recording works that way, and is left out.

Deviations of all curves that are as close to each other are one stretch. The stretch with most curves is the
unusual one; between equals, the one with the greater scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from heliograph.monitor.flight.curves import Curve, Spec, cells_of
from heliograph.monitor.flight.detect import MAD_TO_DEVIATION, NOTABLE
from heliograph.monitor.flight.reader import Recording, Series, Track

__all__ = ["JOIN_SECONDS", "METHOD", "Deviation", "Findings", "findings"]

JOIN_SECONDS = 0.5
METHOD = (
    f"A curve deviates where it is {NOTABLE:g} spreads from its median; the spread is the median absolute deviation, "
    f"scaled to a standard deviation (Hampel 1974). Deviations less than {JOIN_SECONDS:g} s apart are one stretch; the "
    "stretch with most curves is shown."
)

_TICKS_LEAST = 10
_MOST_OF_IT = 0.5
_STEADY: Mapping[str, float] = {"mean": 0.1}
"""Least spread as a share of the median, by kind of curve; else 0.02. Means of latencies have long tails."""
_QUANTA: Mapping[str, float] = {"B": 1500.0, "ns": 10_000.0, "millionths": 1000.0}
"""Smallest change that counts, by unit: a packet, 10 µs, 0.1 %; else 1."""
_OWNERS: Mapping[str, tuple[str, str]] = {
    "messages_sent": ("transmitter", "messages_sent"),
    "messages_received": ("receiver", "messages_delivered"),
    "naks_received": ("tx_receiver", "naks_received"),
    "naks_sent": ("rx_stream", "naks_sent"),
    "repairs_sent": ("tx_receiver", "repairs_caused"),
}
"""Scope and cell that tell the objects behind a curve of the instance."""
_CALLED: Mapping[str, tuple[str, ...]] = {
    "tx_receiver": ("name", "receiver"),
    "receiver": ("topic",),
    "transmitter": ("topic",),
    "rx_stream": ("stream",),
    "tx_stream": ("stream",),
}
"""Labels, or information, that name an object, by scope."""
_NOUNS: Mapping[str, str] = {
    "tx_receiver": "receiver",
    "receiver": "topic",
    "transmitter": "topic",
    "rx_stream": "stream",
    "tx_stream": "stream",
}


@dataclass(frozen=True, slots=True)
class Deviation:
    """One curve away from its usual value."""

    curve: Curve
    first: int
    """Position of the first tick that deviates."""
    last: int
    peak: int
    """Position of the tick that deviates most."""
    value: float
    """At the peak."""
    usual: float
    score: float
    """Distance from the usual value at the peak, in spreads; negative below it."""
    owner: str = ""
    """The object with most of it: "receiver slow", "topic PRICES.A"; empty: unknown."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The unusual stretch."""

    first: int
    """Position of its first tick."""
    last: int
    deviations: tuple[Deviation, ...]
    """One for each curve that deviates in the stretch, in the order of their first ticks."""
    considered: int
    """Number of curves that are not flat."""


def _floor(spec: Spec, usual: float, seconds: float) -> float:
    """Return the least spread of a curve: of random arrivals for a rate, a small share of its value for a gauge."""
    quantum = _QUANTA.get(spec.unit.removesuffix("/s"), 1.0)
    if spec.how == "rate":
        arrivals = max(usual * seconds / quantum, 1.0)
        return quantum * math.sqrt(arrivals) / seconds
    return max(quantum, _STEADY.get(spec.how, 0.02) * abs(usual))


def _joined(positions: Sequence[int], times: Series, join: float) -> Iterator[tuple[int, int]]:
    """Runs of positions that are at most `join` seconds apart."""
    first = last = positions[0]
    for position in positions[1:]:
        if times[position] - times[last] > join:
            yield first, last
            first = position
        last = position
    yield first, last


def _deviations(curve: Curve, times: Series, tick_seconds: float, join: float) -> list[Deviation]:
    """All deviations of a curve."""
    values = curve.values
    known = ~np.isnan(values)
    if np.count_nonzero(known) < _TICKS_LEAST:
        return []
    usual = float(np.median(values[known]))
    deviation = MAD_TO_DEVIATION * float(np.median(np.abs(values[known] - usual)))
    spread = max(deviation, _floor(curve.spec, usual, tick_seconds))
    scores = np.where(known, (values - usual) / spread, 0.0)
    scores[0] = 0.0  # objects may be about to start; rates are unknown there
    positions = np.flatnonzero(np.abs(scores) >= NOTABLE)
    if not len(positions):
        return []
    found = []
    for first, last in _joined(positions.tolist(), times, join):
        peak = first + int(np.argmax(np.abs(scores[first : last + 1])))
        found.append(Deviation(curve, first, last, peak, float(values[peak]), usual, float(scores[peak])))
    if sum(item.last - item.first + 1 for item in found) > _MOST_OF_IT * len(values):
        return []
    return found


def _stretches(deviations: Sequence[Deviation], times: Series, join: float) -> Iterator[list[Deviation]]:
    """Deviations that overlap, or are at most `join` seconds apart, together."""
    together: list[Deviation] = []
    end = -math.inf
    for item in sorted(deviations, key=lambda one: one.first):
        if together and times[item.first] - end > join:
            yield together
            together = []
            end = -math.inf
        together.append(item)
        end = max(end, float(times[item.last]))
    if together:
        yield together


def _weight(together: Sequence[Deviation]) -> tuple[int, float]:
    best: dict[str, float] = {}
    for item in together:
        key = item.curve.spec.key
        best[key] = max(best.get(key, 0.0), abs(item.score))
    return len(best), sum(math.log2(score) for score in best.values())


def _amount(track: Track, cell: str, item: Deviation) -> float:
    """Growth of a counter, or value of a gauge, of one object in a deviation."""
    if not track.first <= item.peak <= track.last:
        return 0.0
    if item.curve.spec.how not in ("rate", "mean"):
        return track.value(cell, item.peak)
    start = max(track.first, item.first - 1)
    return track.value(cell, min(track.last, item.last)) - track.value(cell, start)


def _owner(recording: Recording, item: Deviation) -> str:
    """The object behind a deviation, if one object has at least half of it."""
    spec = item.curve.spec
    scope, pattern = _OWNERS.get(spec.key, (spec.scope, spec.cells[0]))
    if scope not in _CALLED:
        return ""
    best, most, total = None, 0.0, 0.0
    for track in recording.of(scope):
        for cell in cells_of(track, pattern):
            amount = _amount(track, cell, item)
            if amount > 0:
                total += amount
                if best is None or (amount < most if spec.how == "least" else amount > most):
                    best, most = track, amount
    if best is None or (spec.how in ("rate", "sum", "mean") and most < total / 2):
        return ""
    known = {**best.info, **best.labels}
    name = next((known[key] for key in _CALLED[scope] if known.get(key)), "")
    return f"{_NOUNS[scope]} {name}" if name else ""


def findings(recording: Recording, curves: Sequence[Curve]) -> Findings | None:
    """The unusual stretch of a recording; None if no curve deviates, or the recording is too short.

    Args:
        recording: The recording, with the cells of its objects.
        curves: Its curves.
    """
    times = recording.times
    if len(times) < _TICKS_LEAST:
        return None
    tick_seconds = max(float(np.median(np.diff(times))), 1e-6)
    join = min(JOIN_SECONDS, recording.seconds / 10)
    lively = [curve for curve in curves if not curve.is_flat]
    found = [item for curve in lively for item in _deviations(curve, times, tick_seconds, join)]
    if not found:
        return None
    together = max(_stretches(found, times, join), key=_weight)
    first_of: dict[str, Deviation] = {}
    for item in together:
        first_of.setdefault(item.curve.spec.key, item)
    shown = tuple(replace(item, owner=_owner(recording, item)) for item in first_of.values())
    return Findings(
        min(item.first for item in together), max(item.last for item in together), shown, considered=len(lively)
    )
