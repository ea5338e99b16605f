"""Missing packets by receiver: requests for repair, recovery and loss."""

from __future__ import annotations

from collections.abc import Sequence

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.figures.lines import add_line, note_rest, receiver_colours, times
from heliograph.dashboards.live.series import Point
from heliograph.engine.catalogue.outside import Output, outside

__all__ = ["losses", "naks"]


def naks(points: Sequence[Point]) -> Figure:
    """Sequence numbers requested per second (NAKs), by receiver."""
    x = times(points)
    figure = theme.figure("sequences/s", x=x)
    for receiver, colour in receiver_colours(points).items():
        add_line(figure, x, [point.naks.get(receiver) for point in points], receiver, colour, unit=",.1f NAKs/s")
    note_rest(figure, points, "receiver")
    return figure


def losses(points: Sequence[Point]) -> Figure:
    """Lines: packets missed per second, by receiver. Triangles: packets lost."""
    x = times(points)
    figure = theme.figure("packets/s", x=x)
    for receiver, colour in receiver_colours(points).items():
        missed = [point.missed.get(receiver) for point in points]
        add_line(figure, x, missed, receiver, colour, unit=",.1f packets/s missed")
        gone = [point.lost.get(receiver) or None for point in points]
        if any(gone):
            figure.add_scatter(
                x=x,
                y=gone,
                name=outside(f"{receiver}: lost", Output.PLOTLY),
                mode="markers",
                marker={
                    "symbol": "triangle-down",
                    "size": 8,
                    "color": theme.BAD,
                    "line": {"color": colour, "width": 1.5},
                },
                hovertemplate="%{y:,.1f} packets/s lost",
            )
    note_rest(figure, points, "receiver")
    return figure
