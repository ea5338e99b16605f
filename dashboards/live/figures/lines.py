"""What every chart over time shares: its time axis and its lines, with gaps where nothing was measured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import plotly.graph_objects as go

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.series import Point

__all__ = ["add_line", "receiver_colours", "times", "topic_colours"]


def times(points: Sequence[Point]) -> list[str]:
    """The points' times on this machine's wall clock, as Plotly reads them."""
    return [datetime.fromtimestamp(point.time_ns / 1e9).isoformat(sep=" ", timespec="milliseconds") for point in points]


def topic_colours(points: Sequence[Point]) -> dict[str, str]:
    """The colour of each topic, the same in every chart of these points."""
    return theme.colours({name for point in points for name in (*point.delivered, *point.sent)})


def receiver_colours(points: Sequence[Point]) -> dict[str, str]:
    """The colour of each receiving instance, the same in every chart of these points."""
    return theme.colours({name for point in points for name in (*point.naks, *point.missed)})


def add_line(
    figure: go.Figure,
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
        unit: how a value reads under the pointer, in d3's format with its unit: ``,.0f msg/s``.
    """
    form, _, rest = unit.partition(" ")
    figure.add_scatter(
        x=x,
        y=y,
        name=name,
        mode="lines",
        line={"color": colour, "width": width, "dash": dash},
        hovertemplate=f"%{{y:{form}}} {rest}",
        connectgaps=False,
        showlegend=legend,
    )
