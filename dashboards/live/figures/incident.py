"""The chart of a recording: its curves in panels over one time axis, with events, gaps, the unusual stretch, a cursor.

The chart is bounded: a line has at most `POINTS` points, the least and the greatest value of each stretch, so that a
peak of one tick is drawn at any zoom. Times are milliseconds of the wall clock as the page shows it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.figures.panels import Panel, Spacing, stack
from heliograph.engine.catalogue.outside import Output, outside
from heliograph.engine.catalogue.times import at, time_of_day
from heliograph.monitor.flight.curves import Curve
from heliograph.monitor.flight.study import Study
from heliograph.monitor.model import Event
from heliograph.monitor.page.svg import outlined

__all__ = ["MARKS", "POINTS", "SCALES", "Scale", "height_of", "incident", "scaled", "shown_curves", "x_of"]

POINTS = 900
_MOST_MARKS = 200
_MOST_NAMED = 12
"""Largest number of gaps that have a text."""
_SINGLE_TICKS = 120
"""Largest number of ticks that have a dot each."""
_PANEL, _STRIP, _GAP_HEIGHT, _FOOT = 74, 26, 22, 110
"""Heights in pixels."""
_STRETCH = "rgba(58,134,200,0.16)"
_MISSING = "rgba(128,134,143,0.30)"
MARKS: Mapping[str, tuple[str, str]] = {
    "error": ("x", theme.BAD),
    "warning": ("diamond", theme.WATCH),
    "info": ("circle-open", theme.FAINT),
}
"""Symbol and colour of an event by its severity."""


class Scale(NamedTuple):
    """How the values of a unit are drawn."""

    unit: str
    divisor: float


SCALES: Mapping[str, Scale] = {
    "B": Scale("KiB", 1024.0),
    "B/s": Scale("KiB/s", 1024.0),
    "ns": Scale("ms", 1e6),
    "millionths": Scale("%", 1e4),
}
"""Units of curves that are drawn in another unit."""


def scaled(unit: str) -> Scale:
    """Return how a unit is drawn."""
    return SCALES.get(unit, Scale(unit, 1.0))


def shown_curves(study: Study) -> list[Curve]:
    """Return the curves that are not flat, in the order of the panels."""
    return [curve for curve in study.curves if not curve.is_flat]


def _panels(curves: Sequence[Curve]) -> dict[tuple[str, str], str]:
    """Return the titles of the panels: curves of one group and unit share one."""
    found: dict[tuple[str, str], str] = {}
    for curve in curves:
        spec = curve.spec
        found.setdefault((spec.group, spec.unit), f"{spec.group}, {scaled(spec.unit).unit}")
    return found


def height_of(study: Study) -> int:
    """Return the height of the chart in pixels."""
    count = max(1, len(_panels(shown_curves(study))))
    return count * (_PANEL + _GAP_HEIGHT) + _STRIP + 2 * _GAP_HEIGHT + _FOOT


def x_of(wall_ns: int, study: Study) -> float:
    """Return the place of a time on the axis: milliseconds since 1970 as if local time were UTC."""
    offset = at(study.recording.wall_ns[0]).utcoffset()
    return wall_ns // 1000 / 1e3 + (offset.total_seconds() * 1e3 if offset is not None else 0.0)


def incident(study: Study, first: int, last: int, cursor: int) -> Figure:
    """The curves of a span.

    Args:
        study: The recording.
        first: Position of the first tick.
        last: Position of the last tick.
        cursor: Position of the tick with the cursor. Its line is the first shape of the chart.
    """
    figure = theme.figure("")
    recording = study.recording
    places = x_of(0, study) + np.array(recording.wall_ns[first : last + 1], np.int64) // 1000 / 1e3
    curves = shown_curves(study)
    panels = _panels(curves)
    height = height_of(study)
    inner = height - _FOOT
    spacing = Spacing(marks=_STRIP / inner, gap=_GAP_HEIGHT / inner)
    axes = stack(figure, [Panel(str(key), title) for key, title in panels.items()] or [Panel("", "No curve")], spacing)
    figure.update_layout(height=height, margin={"b": _FOOT - 30}, legend={"y": -30 / inner, "yanchor": "top"})
    x_low, x_high = float(places[0]), float(max(places[-1], places[0] + 1))
    form = "%H:%M:%S.%L" if x_high - x_low < 20_000 else "%H:%M:%S"
    figure.update_layout(xaxis={"range": [x_low, x_high], "tickformat": form})
    _add_line(figure, x_of(recording.wall_ns[cursor], study), theme.BAD, "solid", 1.0)
    _add_grounds(figure, study, x_low, x_high)
    figure.add_scatter(x=[x_low, x_high], y=[None, None], showlegend=False, hoverinfo="skip")  # an empty strip
    colours = dict.fromkeys(panels, 0)
    for curve in curves:
        spec = curve.spec
        key, scale = (spec.group, spec.unit), scaled(spec.unit)
        xs, ys = outlined(places, curve.values[first : last + 1] / scale.divisor, POINTS)
        figure.add_scatter(
            x=xs,
            y=[None if math.isnan(value) else float(f"{value:.6g}") for value in ys],
            yaxis=axes[str(key)],
            name=f"{spec.group}: {spec.title}",
            mode="lines+markers" if len(places) <= _SINGLE_TICKS else "lines",
            marker={"size": 4},
            line={"color": theme.SERIES[colours[key] % len(theme.SERIES)], "width": 1.6},
            hovertemplate=f"%{{y:,.4~r}} {scale.unit}",
            connectgaps=False,
        )
        colours[key] += 1
    _add_events(figure, study, first, last, spacing)
    return figure


def _add_line(figure: Figure, x: float, colour: str, dash: str, top: float) -> None:
    line = {"color": colour, "width": 1.5 if dash == "solid" else 1, "dash": dash}
    figure.add_shape(type="line", xref="x", yref="paper", x0=x, x1=x, y0=0, y1=top, line=line)


def _add_grounds(figure: Figure, study: Study, low: float, high: float) -> None:
    """Add a ground to the unusual stretch, and to missing ticks."""
    recording, found = study.recording, study.findings

    def ground(start_ns: int, end_ns: int, colour: str, text: str) -> None:
        start, end = max(low, x_of(start_ns, study)), min(high, x_of(end_ns, study))
        if start > end:
            return
        rest = {"xref": "x", "yref": "paper"}
        figure.add_shape(
            type="rect", x0=start, x1=end, y0=0, y1=1, fillcolor=colour, line={"width": 0}, layer="below", **rest
        )
        if text:
            figure.add_annotation(text=text, x=start, y=0, xanchor="left", yanchor="bottom", showarrow=False, **rest)

    if found is not None:
        ground(recording.wall_ns[max(0, found.first - 1)], recording.wall_ns[found.last], _STRETCH, "unusual")
    for gap in recording.gaps[:_MOST_MARKS]:
        if gap.position:
            wall = recording.wall_ns
            text = f"{gap.ticks:,} missing" if len(recording.gaps) <= _MOST_NAMED else ""
            ground(wall[gap.position - 1], wall[gap.position], _MISSING, text)


def _add_events(figure: Figure, study: Study, first: int, last: int, spacing: Spacing) -> None:
    """Add events and triggers as marks in the strip, and as lines through the panels."""
    recording = study.recording
    inside = [event for position, event in recording.events if first <= position <= last][:_MOST_MARKS]
    for severity, (symbol, colour) in MARKS.items():
        found = [event for event in inside if (event.severity if event.severity in MARKS else "info") == severity]
        if found:
            _add_marks(figure, study, [(event.time_ns, _text(event)) for event in found], severity, symbol, colour)
    for event in inside:
        _, colour = MARKS.get(event.severity, MARKS["info"])
        _add_line(figure, x_of(event.time_ns, study), colour, "dot", spacing.top_of_panels)
    triggers = [(item.time_ns, f"kept: {item.why}") for item in recording.triggers if first <= item.position <= last]
    if triggers:
        _add_marks(figure, study, triggers[:_MOST_MARKS], "trigger", "star", theme.BAD)


def _text(event: Event) -> str:
    return f"{event.name}: {event.text}" if event.text else event.name


def _add_marks(
    figure: Figure, study: Study, marks: Sequence[tuple[int, str]], name: str, symbol: str, colour: str
) -> None:
    figure.add_scatter(
        x=[x_of(time_ns, study) for time_ns, _ in marks],
        y=[0] * len(marks),
        name=name if name == "trigger" else f"event, {name}",
        mode="markers",
        marker={"symbol": symbol, "size": 10, "color": colour, "line": {"width": 1, "color": colour}},
        text=[outside(f"{time_of_day(time_ns, 'milliseconds')} {said}", Output.PLOTLY) for time_ns, said in marks],
        hovertemplate="%{text}",
    )
