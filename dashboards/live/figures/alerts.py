"""The alerts of the last minutes: a bar for each time that a condition held, and one for each time that it fired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.figure import Figure
from heliograph.engine.catalogue.outside import Output, outside
from heliograph.monitor.alerts import Held, Judgement, Span

__all__ = ["MOST_BARS", "Bar", "bars", "timeline"]

MOST_BARS = 16
_LETTERS = 36


@dataclass(frozen=True, slots=True)
class Bar:
    """One line of the chart: an object of an alert."""

    name: str
    condition: Sequence[Span]
    fired: Sequence[Span]


def bars(held: Sequence[tuple[str, Held]]) -> list[Bar]:
    """Return the lines of the chart, those that fire first.

    Args:
        held: Name and times of each object whose condition held.
    """

    def order(item: tuple[str, Held]) -> tuple[bool, bool, int, str]:
        name, one = item
        return not one.is_firing, not one.is_pending, -(one.fired or one.condition)[-1].begin_ns, name

    return [Bar(name, one.condition, one.fired) for name, one in sorted(held, key=order)]


def timeline(judgement: Judgement, found: Sequence[Bar]) -> Figure:
    """Draw the first lines over the kept time; thin: the condition held, thick: the alert fired."""
    ends = [_time(ns) for ns in (judgement.oldest_ns, judgement.time_ns)] if judgement.time_ns else []
    shown = found[:MOST_BARS]
    names = {index: outside(_short(bar.name), Output.PLOTLY) for index, bar in enumerate(shown)}
    axis = {
        "type": "linear",
        "tickmode": "array",
        "tickvals": list(names),
        "ticktext": list(names.values()),
        "range": [max(len(shown), 1) - 0.5, -0.5],
        "showgrid": False,
        "automargin": True,
    }
    drawing = theme.figure("", x=ends, y=axis)
    drawing.update_layout(hovermode="closest")
    for title, colour, width, spans in (
        ("condition held", theme.WATCH, 5, [(row, span) for row, bar in enumerate(shown) for span in bar.condition]),
        ("fired", theme.BAD, 12, [(row, span) for row, bar in enumerate(shown) for span in bar.fired]),
    ):
        x: list[str | None] = []
        y: list[int | None] = []
        for row, span in spans:
            end_ns = judgement.time_ns if span.end_ns is None else span.end_ns
            x += [_time(max(span.begin_ns, judgement.oldest_ns)), _time(end_ns), None]
            y += [row, row, None]
        if x:
            line = {"color": colour, "width": width}
            drawing.add_scatter(x=x, y=y, name=title, mode="lines", line=line, hovertemplate=f"{title} %{{x|%H:%M:%S}}")
    if len(found) > len(shown):
        place = {"xref": "paper", "yref": "paper", "x": 1, "y": 1.01, "xanchor": "right", "yanchor": "bottom"}
        drawing.add_annotation(text=f"{len(found) - len(shown)} more are in the table", showarrow=False, **place)
    return drawing


def _time(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9).isoformat(sep=" ", timespec="milliseconds")


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…"
