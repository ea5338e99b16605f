"""Messages per second of each topic: sent, and delivered per receiver on average."""

from __future__ import annotations

from collections.abc import Sequence

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.figures.lines import add_line, note_rest, times, topic_colours
from heliograph.dashboards.live.series import Point

__all__ = ["throughput"]


def throughput(points: Sequence[Point]) -> Figure:
    """Solid: sent. Dotted: delivered per receiver, on average. The lines coincide while all receivers keep up.

    A topic whose transmitter is out of reach has only the dotted line.
    """
    x = times(points)
    figure = theme.figure("messages/s", x=x)
    for topic, colour in topic_colours(points).items():
        sent = [point.sent.get(topic) for point in points]
        delivered = [_each(point, topic) for point in points]
        alone = all(value is None for value in sent)
        if not alone:
            add_line(figure, x, sent, topic, colour, unit=",.0f msg/s sent")
        name = topic if alone else f"{topic} delivered"
        add_line(
            figure, x, delivered, name, colour, unit=",.0f msg/s per receiver", dash="dot", width=1.8, legend=alone
        )
    note_rest(figure, points, "topic")
    return figure


def _each(point: Point, topic: str) -> float | None:
    receivers = point.listeners.get(topic)
    return point.delivered[topic] / receivers if receivers else None
