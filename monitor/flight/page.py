"""A recording as one self-contained HTML page with charts, events and figures; no script, nothing fetched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from heliograph.engine.catalogue.outside import html_text
from heliograph.monitor.flight.curves import Curve
from heliograph.monitor.flight.deviations import METHOD
from heliograph.monitor.flight.study import Study
from heliograph.monitor.flight.text import burst_line, findings_texts, head_lines, moment, shown
from heliograph.monitor.page.shell import document, legend, table, tiles
from heliograph.monitor.page.svg import Axis, Frame, Line, Mark, chart, nice_axis, outlined

__all__ = ["page"]

_POINTS = 900
"""Maximum number of points of a line, about one for each pixel; two for each stretch, its least and its greatest."""
_EVENTS = 500
_FRAME = Frame(width=920, height=210, left=72, right=20, top=12, bottom=34)
_CLOSE_SECONDS = 0.25
"""Seconds before and after the focus in the second column of charts."""


def page(study: Study) -> str:
    """The HTML page of a recording."""
    groups = [(name, list(curves)) for name, curves in groupby(study.curves, key=lambda curve: curve.spec.group)]
    marks = _marks(study)
    sections = [_section(study, marks, name, curves) for name, curves in groups]
    return document(
        f"Flight recording of {study.recording.header.name}",
        [line.strip() for line in head_lines(study)],
        [_words(study), _tiles(study), *sections, _events(study)],
        "Rates are per tick. If several ticks share a pixel, the least and the greatest are drawn. Orange: the "
        "trigger; grey: missing ticks; blue: the unusual stretch; lines: events.",
        style=_STYLE,
    )


def _words(study: Study) -> str:
    headline, *rest = findings_texts(study)
    items = "".join(f"<li>{html_text(text)}</li>" for text in rest)
    listed = f"<ol>{items}</ol>" if items else ""
    return (
        f"<section class='card'><h2>{html_text(headline)}</h2>{listed}<p class='sub'>{html_text(METHOD)}</p></section>"
    )


def _peak(curve: Curve) -> float:
    known = curve.values[~np.isnan(curve.values)]
    return float(known.max()) if len(known) else 0.0


def _tiles(study: Study) -> str:
    by_key = {curve.spec.key: curve for curve in study.curves}
    figures = []
    for key, head in (
        ("messages_sent", "Most sent"),
        ("messages_received", "Most received"),
        ("send_queue", "Longest submit queue"),
        ("receive_queue", "Longest receive queue"),
        ("naks_sent", "Most NAKs sent"),
        ("naks_received", "Most NAKs received"),
        ("repairs_sent", "Most repairs"),
    ):
        curve = by_key.get(key)
        if curve is not None and not curve.is_flat:
            unit = curve.spec.unit if curve.spec.unit.endswith("/s") and not curve.spec.unit.startswith("B") else ""
            figures.append((head, shown(_peak(curve), curve.spec.unit), unit))
    return tiles(figures)


def _marks(study: Study) -> list[Mark]:
    recording = study.recording
    times = recording.times
    marks = []
    for gap in recording.gaps:
        start = float(times[gap.position - 1]) if gap.position else 0.0
        marks.append(Mark(start, float(times[gap.position]), "gap", f"{gap.ticks} ticks missing: {gap.why}"))
    if study.findings is not None:
        found = study.findings
        start, end = float(times[max(found.first - 1, 0)]), float(times[found.last])
        marks.append(Mark(start, end, "burst", findings_texts(study)[0]))
    elif study.burst is not None and study.burst.is_notable:
        marks.append(Mark(study.burst.start, study.burst.end, "burst", burst_line(study).strip()))
    for position, event in recording.events[:_EVENTS]:
        if study.first <= position <= study.last:
            at = float(times[position])
            marks.append(Mark(at, at, "event", f"{moment(event.time_ns)} {event.name}: {event.text}", "dot"))
    for trigger in recording.triggers:
        at = float(times[trigger.position])
        marks.append(Mark(at, at, "trigger", f"{moment(trigger.time_ns)}: {trigger.why}"))
    return marks


def _time_axis(study: Study, low: float, high: float) -> Axis:
    """Seconds of the recording, with round steps."""
    steps = nice_axis(max(high - low, 1e-6)).ticks
    step = steps[1][0] if len(steps) > 1 else 1.0
    first = math.ceil(low / step - 1e-9)
    ticks = [(index * step, f"{index * step:g} s") for index in range(first, math.floor(high / step + 1e-9) + 1)]
    return Axis(low, max(high, low + 1e-6), ticks)


def _chart(study: Study, marks: Sequence[Mark], drawn: Sequence[Curve], first: int, last: int, label: str) -> str:
    times = study.recording.times
    low, high = float(times[first]), float(times[last])
    lines = []
    top = 0.0
    for curve in drawn:
        values = curve.values[first : last + 1]
        lines.append(Line(curve.spec.title, *outlined(times[first : last + 1], values, _POINTS)))
        top = max(top, float(np.nanmax(values)) if np.any(~np.isnan(values)) else 0.0)
    y = _scaled_axis(top, drawn[0].spec.unit)
    seen = [mark for mark in marks if mark.end >= low and mark.at <= high]
    return chart(lines, _time_axis(study, low, high), y, label, marks=seen, frame=_FRAME)


def _scaled_axis(top: float, unit: str) -> Axis:
    """The value axis, with its unit; times and shares are scaled to readable units."""
    axis = nice_axis(top)
    if unit in ("ns", "millionths"):
        return Axis(axis.low, axis.high, [(value, shown(value, unit)) for value, _ in axis.ticks])
    return axis


def _section(study: Study, marks: Sequence[Mark], name: str, curves: Sequence[Curve]) -> str:
    drawn = [curve for curve in curves if np.any(np.nan_to_num(curve.values[study.first : study.last + 1]))]
    if not drawn:
        return ""
    unit = drawn[0].spec.unit if drawn[0].spec.unit not in ("ns", "millionths") else ""
    times = study.recording.times
    centre = float(times[study.focus])
    near = [int(np.searchsorted(times, centre + edge)) for edge in (-_CLOSE_SECONDS, _CLOSE_SECONDS)]
    first, last = max(study.first, near[0]), min(study.last, near[1])
    parts = [
        f"<section class='card'><h2>{html_text(name)} <small>{html_text(unit)}</small></h2>",
        legend((curve.spec.title, f"most {shown(_peak(curve), curve.spec.unit)}", "") for curve in drawn),
        _chart(study, marks, drawn, study.first, study.last, f"{name} over the span"),
    ]
    if last - first >= 2 and (first, last) != (study.first, study.last):
        parts.append(f"<h3>Around {moment(study.recording.wall_ns[study.focus])}, {html_text(study.focus_is)}</h3>")
        parts.append(_chart(study, marks, drawn, first, last, f"{name} around {study.focus_is}"))
    parts += [f"<details><summary><h3>As a table</h3></summary>{_table(study, drawn)}</details>", "</section>"]
    return "".join(parts)


def _table(study: Study, drawn: Sequence[Curve]) -> str:
    """Least, median and greatest value of each curve, and the greatest in the unusual stretch."""
    found, wall = study.findings, study.recording.wall_ns
    heads = ["Curve", "Least", "Median", "Greatest", "at"] + (["Least unusual", "Greatest unusual"] if found else [])
    rows = []
    for curve in drawn:
        values = curve.values[study.first : study.last + 1]
        figures = (np.nanmin(values), np.nanmedian(values), np.nanmax(values))
        cells = [shown(float(value), curve.spec.unit) for value in figures]
        cells.append(moment(wall[study.first + int(np.nanargmax(values))]))
        if found is not None:
            inside = curve.values[found.first : found.last + 1]
            known = inside[~np.isnan(inside)]
            edges = (known.min(), known.max()) if len(known) else (math.nan, math.nan)
            cells += [shown(float(value), curve.spec.unit) for value in edges]
        rows.append([html_text(curve.spec.title), *cells])
    return table(heads, rows)


def _events(study: Study) -> str:
    inside = [event for at, event in study.recording.events if study.first <= at <= study.last]
    if not inside:
        return ""
    rows = [
        (moment(event.time_ns), *map(html_text, (event.severity, event.name, event.text))) for event in inside[:_EVENTS]
    ]
    more = f"<p class='sub'>{_EVENTS} of {len(inside):,} are listed.</p>" if len(inside) > _EVENTS else ""
    found = table(("Time", "Severity", "Event", "Text"), rows, (0, 1, 2, ~3))
    return f"<section class='card'><h2>Events</h2>{found}{more}</section>"


_STYLE = """
.mark.trigger { fill: var(--c0); }
.mark.event line { stroke: var(--soft); stroke-dasharray: 2 3; }
.mark.event { fill: var(--soft); }
.mark.gap { fill: var(--soft); opacity: 0.25; }
.mark.burst { fill: var(--c1); opacity: 0.16; }
"""
