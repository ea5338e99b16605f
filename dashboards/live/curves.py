"""The curves of the latency lab: the values of a receiver, a topic or all, over a window of time, or of a log.

Pure functions. A window is a range of seconds before the newest sample. Recovered messages can be apart: then each
group has two curves, of the messages whose packets were never lost and of the recovered ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from heliograph.dashboards.live.series import EVERYTHING, Group, Point, Shift, around, merged
from heliograph.engine.catalogue.outside import Output, outside
from heliograph.monitor import _hdr
from heliograph.monitor.history.hlog import head, line_of, tag_of
from heliograph.monitor.latency import maximum, never_lost, spectrum
from heliograph.monitor.model import Histogram

__all__ = ["Curve", "Window", "curves", "title", "to_csv", "to_hlog"]

Window = tuple[int, int]
"""Seconds before the newest sample: the newer and the older end."""

_SEPARATE = {"never lost": "total_latency_never_lost", "recovered": "total_latency_recovered"}
_CSV_POINTS = 2000


@dataclass(frozen=True, slots=True)
class Curve:
    """The values of one line of the spectrum."""

    name: str
    histogram: Histogram
    start_ns: int
    length_ns: int
    group: Group = ""
    """Empty: from a log."""
    kind: str = ""
    """"never lost" or "recovered" when recovered messages are apart; otherwise empty."""
    shift: Shift | None = None
    """Range of the clocks' error; None: not known."""
    labels: tuple[str, ...] = ()
    """Instance, topic, stream and statistic."""


def title(group: Group) -> str:
    """Return the name of a group for a reader."""
    return "all" if group == EVERYTHING else group.replace(":", " ", 1)


def _within(points: Sequence[Point], window: Window) -> list[Point]:
    if not points:
        return []
    end = points[-1].time_ns
    return [item for item in points if window[0] * 1e9 <= end - item.time_ns < window[1] * 1e9]


def _name(group: Group, window: Window) -> str:
    newer, older = window
    return f"{title(group)}, last {older} s" if newer == 0 else f"{title(group)}, {newer} to {older} s ago"


def _labels(group: Group, statistic: str) -> tuple[str, ...]:
    kind, _, name = group.partition(":")
    return (name if kind == "receiver" else "", name if kind == "topic" else "", "", statistic)


def _shift(points: Sequence[Point], group: Group) -> Shift | None:
    found = [item.shifts.get(group) for item in points if group in item.cells]
    whole = found[0] if found else None
    for shift in found:
        whole = around(whole, shift)
    return whole


def curves(
    points: Sequence[Point], groups: Iterable[Group], windows: Iterable[Window], *, apart: bool = False
) -> tuple[list[Curve], list[str]]:
    """Return a curve for each group and window with values, and a note for each that cannot be drawn as asked.

    Args:
        points: Points with histogram cells, oldest first.
        groups: The groups.
        windows: The windows.
        apart: Separate recovered messages.
    """
    found: list[Curve] = []
    notes: list[str] = []
    asked = list(windows)
    for group in groups:
        for window in asked:
            inside = _within(points, window)
            whole = merged(inside, group)
            if whole is None:
                notes.append(f"{_name(group, window)}: no values were measured")
                continue
            length = round(sum(item.seconds for item in inside) * 1e9)
            start = inside[-1].time_ns - length
            labels = _labels(group, "total_latency")
            shift = _shift(inside, group)
            one = Curve(_name(group, window), whole, start, length, group, "", shift, labels)
            parts = _apart(one, inside) if apart else [one]
            if apart and not parts[0].kind:
                notes.append(
                    f"{one.name}: recovered messages are not apart, because not all receivers record them (level 3)"
                )
            found += parts
    return found, notes


def _apart(curve: Curve, points: Sequence[Point]) -> list[Curve]:
    """Return the curves of never lost and of recovered messages; the curve alone when they cannot be separated."""
    count = sum(item.recovered_count.get(curve.group, 0) for item in points)
    recovered = merged(points, curve.group, recovered=True)
    if recovered is None:
        parts = {"never lost": curve.histogram} if count == 0 else {}
    else:
        try:
            rest = never_lost(curve.histogram, recovered, count)
        except ValueError:
            rest = None
        parts = {"never lost": rest, "recovered": recovered} if rest is not None else {}
    if not parts:
        return [curve]
    return [
        replace(
            curve,
            name=f"{curve.name}, {kind}",
            kind=kind,
            histogram=histogram,
            labels=_labels(curve.group, _SEPARATE[kind]),
        )
        for kind, histogram in parts.items()
        if histogram.filled()[0].size
    ]


def to_hlog(found: Sequence[Curve]) -> str:
    """Return the curves as an HDR log, one interval each, complete to the last count."""
    start = min((curve.start_ns for curve in found), default=0)
    lines = []
    for curve in sorted(found, key=lambda item: item.start_ns):
        values = curve.histogram
        payload = _hdr.encode(values.counts, values.digits, values.lowest, values.highest, compress=True)
        since = curve.start_ns - start
        lines.append(line_of(since, curve.length_ns, maximum(values), tag_of(*curve.labels), payload))
    return head(start) + "".join(lines)


def to_csv(found: Sequence[Curve]) -> str:
    """Return the spectra of the curves as CSV; times in nanoseconds, the clock columns empty when not known."""
    lines = ["curve,start,seconds,fraction,one_over_one_minus_fraction,value_ns,values_up_to_it,lowest_ns,highest_ns"]
    for curve in found:
        line = spectrum(curve.histogram, _CSV_POINTS)
        moment = datetime.fromtimestamp(curve.start_ns / 1e9, UTC).isoformat(timespec="milliseconds")
        first = f"{outside(curve.name, Output.CSV)},{moment},{curve.length_ns / 1e9:g}"
        for fraction, value, count in zip(
            line.fractions.tolist(), line.values.tolist(), line.counts.tolist(), strict=True
        ):
            steep = f"{1 / (1 - fraction):.9g}" if fraction < 1 else ""
            ends = "," if curve.shift is None else ",".join(str(max(0, value + end)) for end in curve.shift)
            lines.append(f"{first},{fraction:.9g},{steep},{value},{count},{ends}")
    return "\n".join(lines) + "\n"
