"""A recording as text for a terminal: a summary, curves as sparklines, and a table of ticks."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from heliograph.engine.catalogue.times import date_time, time_of_day
from heliograph.monitor.flight.curves import Curve
from heliograph.monitor.flight.deviations import JOIN_SECONDS, Deviation
from heliograph.monitor.flight.format import State
from heliograph.monitor.flight.reader import Recording, Series
from heliograph.monitor.flight.study import Study
from heliograph.monitor.text import bytes_text, duration_text, printable, rate_text, table

__all__ = [
    "events_lines",
    "findings_lines",
    "findings_texts",
    "head_lines",
    "moment",
    "overview_lines",
    "shown",
    "sparkline",
    "table_lines",
]

_BARS = "▁▂▃▄▅▆▇█"
_COLUMNS = 9
"""Maximum number of curves in the table of ticks."""
_FIRST = (
    "messages_sent",
    "messages_received",
    "send_queue",
    "receive_queue",
    "naks_sent",
    "naks_received",
    "repairs_sent",
)
"""Curves preferred for the table of ticks."""
_EVENTS = 20
_KINDS = {
    State.WRITING: "an incomplete recording",
    State.RECORDING: "the ring, current state",
    State.CLOSED: "the ring, final state",
}


def moment(wall_ns: int) -> str:
    """A time of day: 21:05:03.120."""
    return time_of_day(wall_ns, "milliseconds")


def shown(value: float, unit: str) -> str:
    """A value with its unit, shortened; "-" for NaN."""
    if math.isnan(value):
        return "-"
    if unit == "ns":
        return duration_text(value)
    if unit.startswith("B"):
        return bytes_text(value) + unit[1:]
    if unit == "millionths":
        return f"{value / 1e4:.2f} %"
    return rate_text(value)


def sparkline(values: Series, width: int = 60) -> str:
    """The curve in `width` characters; each shows the greatest value of its ticks, a blank if unknown."""
    if not len(values):
        return ""
    edges = np.linspace(0, len(values), min(width, len(values)) + 1).astype(int)
    highest = [values[start:end] for start, end in pairwise(edges)]
    tops = [float(np.nanmax(part)) if len(part) and not np.all(np.isnan(part)) else math.nan for part in highest]
    top = max((value for value in tops if not math.isnan(value)), default=0.0)

    def bar(value: float) -> str:
        if math.isnan(value):
            return " "
        return _BARS[min(7, int(value / top * 7.999))] if top > 0 else _BARS[0]

    return "".join(bar(value) for value in tops)


def _kind(recording: Recording) -> str:
    header = recording.header
    if header.state is State.FROZEN:
        return f"recording {header.number}, reason: {printable(header.why)}"
    return _KINDS[header.state]


def head_lines(study: Study) -> list[str]:
    """Summary of the recording and its most unusual stretch."""
    recording, header = study.recording, study.recording.header
    late = sum(gap.ticks for gap in recording.gaps)
    steps = np.diff(recording.times)
    lines = [
        f"{printable(header.name)} (process {header.pid}): {_kind(recording)}",
        f"  {date_time(recording.wall_ns[0], 'milliseconds')} to {moment(recording.wall_ns[-1])}, "
        f"{recording.seconds:.3f} s: {len(recording.numbers)} ticks"
        + (f" of {duration_text(float(np.median(steps)) * 1e9)}" if len(steps) else "")
        + f", {late} missing; {len(recording.tracks)} objects, {len(recording.events)} events",
    ]
    if header.state is State.FROZEN and recording.trigger is not None:
        lines.append(f"  triggered at {moment(header.trigger_ns)}")
    if recording.events_missed:
        lines.append(f"  {recording.events_missed} events were overwritten before they were recorded")
    if recording.left_out:
        lines.append(f"  {recording.left_out} objects are not recorded: flight_bytes is too small")
    lines += [f"  damaged: {printable(text)}" for text in recording.damage]
    return [*lines, burst_line(study)]


def burst_line(study: Study) -> str:
    """The most unusual stretch, as a sentence."""
    burst, recording = study.burst, study.recording
    if burst is None:
        return "  no unusual load: no messages, or a recording that is too short"
    at = recording.wall_ns[0] + round(burst.start * 1e9)
    times = f", {burst.rate / burst.usual:.3g} times the usual {rate_text(burst.usual)}" if burst.usual else ""
    what = (
        f"{duration_text((burst.end - burst.start) * 1e9)} from {moment(at)} ({burst.start:+.3f} s): "
        f"{rate_text(burst.rate)} messages/s{times} (z = {burst.score:.0f})"
    )
    return f"  most unusual: {what}" if burst.is_notable else f"  no unusual load; highest deviation: {what}"


_PLURAL = ("messages", "bytes", "NAKs", "packets", "repairs", "send errors", "dropped")
"""Beginnings of the titles of curves that are plural."""
_MOST_EVENTS = 6


def findings_texts(study: Study) -> list[str]:
    """The unusual stretch in words: a headline, then what happened in the order of time; untrusted names as they are.

    Events of its time other than of severity info are among them, each name once.
    """
    found, recording = study.findings, study.recording
    if found is None:
        return ["Nothing unusual: each curve stays near its median, or the recording is too short"]
    times, count = recording.times, len(found.deviations)
    headline = (
        f"Unusual from {moment(recording.wall_ns[found.first])} to {moment(recording.wall_ns[found.last])} "
        f"({_spoken(float(times[found.last] - times[found.first]))}): "
        f"{count} of {found.considered} curves deviate{'s' if count == 1 else ''}"
    )
    told: list[tuple[int, str, str]] = [(item.first, item.curve.spec.title, "") for item in found.deviations]
    texts = [_deviates(item, recording) for item in found.deviations]
    names: set[str] = set()
    for at, event in recording.events:
        early = times[found.first] - times[at] > JOIN_SECONDS
        if early or at > found.last or event.severity == "info" or event.name in names or len(names) >= _MOST_EVENTS:
            continue
        names.add(event.name)
        told.append((at, event.name, moment(event.time_ns)))
        texts.append((f"event {event.name}", f": {event.text}" if event.text else ""))
    order = sorted(range(len(told)), key=lambda index: told[index][0])
    first_at, first_title, _ = told[order[0]]
    lines = [headline]
    for index in order:
        at, _, when = told[index]
        subject, rest = texts[index]
        after = f", {_spoken(float(times[at] - times[first_at]))} after {first_title}," if at > first_at else ""
        after = after.rstrip(",") if not rest or rest.startswith(":") else after
        lines.append(f"{subject} at {when or moment(recording.wall_ns[at])}{after}{rest}")
    return lines


def _spoken(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.0f} ms"


def _deviates(item: Deviation, recording: Recording) -> tuple[str, str]:
    """The two parts of a sentence about a curve; its time stands between them."""
    spec = item.curve.spec
    plural = spec.title.startswith(_PLURAL)
    verb = ("rise" if item.score > 0 else "fall") + ("" if plural else "s")
    unit = spec.unit if not spec.unit.startswith("B") and spec.unit not in ("ns", "millionths") else ""
    value, usual = (shown(number, spec.unit) for number in (item.value, item.usual))
    # The value of a tick is that of the time since the tick before.
    length = float(recording.times[item.last] - recording.times[max(item.first - 1, 0)])
    owner = f", most of {item.owner}" if item.owner else ""
    return f"{spec.title} {verb}", f" to {f'{value} {unit}'.strip()} (usual {usual}) for {_spoken(length)}{owner}"


def findings_lines(study: Study) -> list[str]:
    """The unusual stretch in words, for a terminal."""
    headline, *rest = findings_texts(study)
    return [f"{headline}:" if rest else headline, *(f"  {printable(text)}" for text in rest)]


def overview_lines(study: Study, width: int = 48) -> list[str]:
    """One line for each curve that is not flat: its range and its shape over the span."""
    rows = []
    for curve in study.curves:
        values = curve.values[study.first : study.last + 1]
        if not np.any(np.nan_to_num(values)):
            continue
        unit = curve.spec.unit
        figures = (np.nanmin(values), np.nanmedian(values), np.nanmax(values))
        texts = [shown(float(figure), unit) for figure in figures]
        rows.append(
            [curve.spec.title, unit if unit not in ("ns", "millionths") else "", *texts, sparkline(values, width)]
        )
    if not rows:
        return ["no activity: all curves are flat"]
    return table(("curve", "", "least", "median", "most", "over the span"), rows, left=2)


def _excitement(curve: Curve, first: int, last: int) -> float:
    """Range of a curve within a stretch, in standard deviations of the whole curve."""
    inside = np.nan_to_num(curve.values[first : last + 1])
    spread = float(np.std(np.nan_to_num(curve.values))) or 1.0
    return float(np.ptp(inside)) / spread if len(inside) else 0.0


def table_lines(study: Study, rows: int = 20) -> list[str]:
    """The ticks around the focus, with the curves that change most there; `>` marks the focus."""
    recording = study.recording
    first = max(study.first, study.focus - rows // 2)
    last = min(study.last, first + rows - 1)
    live = [curve for curve in study.curves if np.any(np.nan_to_num(curve.values[first : last + 1]))]
    ranked = sorted(live, key=lambda curve: (curve.spec.key not in _FIRST, -_excitement(curve, first, last)))[:_COLUMNS]
    chosen = [curve for curve in live if curve in ranked]
    times = recording.times
    head = ["", "time", "tick", *(curve.spec.key.replace("_", " ") for curve in chosen), ""]
    events: dict[int, list[str]] = {}
    for position, event in recording.events:
        events.setdefault(position, []).append(event.name)
    body = []
    for at in range(first, last + 1):
        step = (times[at] - times[at - 1]) * 1e9 if at else math.nan
        cells = [shown(float(curve.values[at]), curve.spec.unit) for curve in chosen]
        mark = ">" if at == study.focus else ""
        body.append([mark, moment(recording.wall_ns[at]), shown(step, "ns"), *cells, ", ".join(events.get(at, ()))])
    around = f"around {moment(recording.wall_ns[study.focus])}, {study.focus_is}:"
    sparks = ["", "", "", *(sparkline(curve.values[first : last + 1], 12) for curve in chosen), ""]
    return [around, *table(head, [*body, sparks], left=2)]


def events_lines(study: Study, most: int = _EVENTS) -> list[str]:
    """The events of the span; at most `most`, those nearest to the focus."""
    inside = [(at, event) for at, event in study.recording.events if study.first <= at <= study.last]
    if not inside:
        return []
    near: Callable[[int], int] = lambda index: abs(inside[index][0] - study.focus)  # noqa: E731
    kept = sorted(sorted(range(len(inside)), key=near)[:most])
    lines = [f"events ({len(kept)} of {len(inside)}):" if len(kept) < len(inside) else "events:"]
    for index in kept:
        event = inside[index][1]
        lines.append(
            f"  {moment(event.time_ns)}  {event.severity:<7}  {printable(event.name)}: {printable(event.text)}"
        )
    return lines
