"""Shared by all charts over time: the time axis, and lines with gaps where no value was measured."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.series import Point
from heliograph.engine.catalogue.outside import Output, outside

__all__ = [
    "MOST_LINES",
    "add_history",
    "add_left",
    "add_line",
    "note_rest",
    "receiver_colours",
    "times",
    "topic_colours",
]

_HISTORY = "rgba(58,134,200,0.20)"
MOST_LINES = 12
"""Largest number of topics or receivers in a readable chart."""


def times(points: Sequence[Point]) -> list[str]:
    """Return the times of the points as local wall clock in the format of Plotly."""
    return [datetime.fromtimestamp(point.time_ns / 1e9).isoformat(sep=" ", timespec="milliseconds") for point in points]


def topic_colours(points: Sequence[Point]) -> dict[str, str]:
    """Return the busiest topics and their colours, the same in every chart of these points."""
    return theme.colours(_most(_topics(points)))


def receiver_colours(points: Sequence[Point]) -> dict[str, str]:
    """Return the receiving instances with most missing packets and their colours, the same in every chart."""
    return theme.colours(_most(_receivers(points)))


def note_rest(figure: Figure, points: Sequence[Point], kind: str) -> None:
    """Add a note to the chart with the number of topics or receivers that are not drawn.

    Args:
        kind: "topic" or "receiver".
    """
    rest = len(_topics(points) if kind == "topic" else _receivers(points)) - MOST_LINES
    if rest > 0:
        place = {"xref": "paper", "yref": "paper", "x": 1, "y": 1, "xanchor": "right", "yanchor": "top"}
        figure.add_annotation(text=f"{rest} quieter {kind}s are not drawn", showarrow=False, **place)


def _topics(points: Sequence[Point]) -> Mapping[str, float]:
    """Add the messages of each topic."""
    return _added(points, "sent", "delivered")


def _receivers(points: Sequence[Point]) -> Mapping[str, float]:
    """Add the missing packets of each receiver."""
    return _added(points, "naks", "missed")


_Sums = tuple[Sequence[Point], tuple[str, ...], Mapping[str, float]]
_made: deque[_Sums] = deque(maxlen=4)
"""The newest sums: all charts of a view have the same points, and a fleet has a thousand receivers in each."""


def _added(points: Sequence[Point], *series: str) -> Mapping[str, float]:
    for known, names, sums in tuple(_made):
        if known is points and names == series:
            return sums
    found: dict[str, float] = {}
    for point in points:
        for name in series:
            values: Mapping[str, float] = getattr(point, name)
            if not values.keys() <= found.keys():
                found = dict.fromkeys(values, 0.0) | found
            for key, value in values.items():
                if value:
                    found[key] += value
    _made.append((points, series, found))
    return found


def _most(found: Mapping[str, float]) -> list[str]:
    return sorted(found, key=lambda name: (-found[name], name))[:MOST_LINES]


def add_line(
    figure: Figure,
    x: Sequence[str],
    y: Sequence[float | None],
    name: str,
    colour: str,
    *,
    unit: str,
    dash: str = "solid",
    width: float = 1.6,
    legend: bool = True,
) -> None:
    """Add one line.

    Args:
        unit: Format of a value under the pointer, in d3's notation with its unit: ``,.0f msg/s``.
    """
    form, _, rest = unit.partition(" ")
    figure.add_scatter(
        x=x,
        y=y,
        name=outside(name, Output.PLOTLY),
        mode="lines",
        line={"color": colour, "width": width, "dash": dash},
        hovertemplate=f"%{{y:{form}}} {rest}",
        connectgaps=False,
        showlegend=legend,
    )


def add_history(figure: Figure, x: Sequence[str], depth: Sequence[float | None]) -> None:
    """Add the history as a band from the sender, at 0, to its oldest packet, if its depth is known."""
    if all(value is None for value in depth):
        return
    figure.add_scatter(
        x=x,
        y=depth,
        name="history",
        mode="lines",
        fill="tozeroy",
        fillcolor=_HISTORY,
        line={"color": theme.FAINT, "width": 1},
        hovertemplate="%{y:,.0f} packets",
    )


def add_left(figure: Figure, x: Sequence[str], behind: Sequence[float | None], *, legend: bool = True) -> None:
    """Add a cross at each position whose packets have left the history, if there is one."""
    if any(value is not None for value in behind):
        marker = {"symbol": "x", "size": 8, "color": theme.BAD}
        name = "has left the history"
        figure.add_scatter(x=x, y=behind, name=name, mode="markers", marker=marker, hoverinfo="skip", showlegend=legend)
