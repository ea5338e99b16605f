"""The charts of one topic: the race of sender and receivers, packets sent, repaired and requested, and its queue."""

from __future__ import annotations

from collections.abc import Sequence

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.figures.lines import MOST_LINES, add_history, add_left, add_line, times
from heliograph.dashboards.live.receiving import Position, Receiving
from heliograph.dashboards.live.sending import Sending
from heliograph.dashboards.live.series import Point

__all__ = ["queue", "race", "rates"]


def _position(point: Point, name: str, stream: str) -> Position | None:
    return point.receiving.get(name, Receiving()).positions.get(stream)


def _depth(point: Point, stream: str) -> int | None:
    sent = point.sending.get(stream)
    return sent.depth if sent is not None else None


def race(points: Sequence[Point], stream: str, names: Sequence[str]) -> Figure:
    """Packets behind the sender, which is at 0, by receiver. The band is the history.

    Dotted: as receivers last reported it to their source. Crosses: packets that a receiver needs have left the history.

    Args:
        points: The points.
        stream: The stream of the topic.
        names: The receivers, worst first.
    """
    x = times(points)
    figure = theme.figure("packets behind", x=x, y={"autorange": "reversed"})
    add_history(figure, x, [_depth(point, stream) for point in points])
    unit = ",.0f packets behind"
    shown = names[:MOST_LINES]
    is_first_cross = True
    for name, colour in theme.colours(shown).items():
        found = [_position(point, name, stream) for point in points]
        seen = [item.behind if item is not None else None for item in found]
        reported = [
            sent.reported.get(name) if (sent := point.sending.get(stream)) is not None else None for point in points
        ]
        is_seen = any(value is not None for value in seen)
        if is_seen:
            add_line(figure, x, seen, name, colour, unit=unit, width=2)
        if any(value is not None for value in reported):
            label = f"{name}, as reported"
            add_line(figure, x, reported, label, colour, unit=unit, dash="dot", legend=not is_seen)
        left = [item.behind if item is not None and (item.margin or 0) < 0 else None for item in found]
        if any(value is not None for value in left):
            add_left(figure, x, left, legend=is_first_cross)
            is_first_cross = False
    if len(names) > len(shown):
        place = {"xref": "paper", "yref": "paper", "x": 1, "y": 0, "xanchor": "right", "yanchor": "bottom"}
        text = f"{len(names) - len(shown)} receivers in a better state are not drawn"
        figure.add_annotation(text=text, showarrow=False, **place)
    return figure


def rates(points: Sequence[Point], stream: str, topic: str) -> Figure:
    """Packets of the topic, and repairs and requested sequence numbers of its stream, per second."""
    x = times(points)
    figure = theme.figure("packets/s", x=x)
    found = [point.sending.get(stream) for point in points]
    if not any(found):
        return figure

    def line(name: str, colour: str, unit: str, values: Sequence[float | None], dash: str = "solid") -> None:
        add_line(figure, x, values, name, colour, unit=unit, dash=dash, width=2)

    sent = [item.topics.get(topic) if item is not None else None for item in found]
    line("sent", theme.SERIES[0], ",.0f packets/s of the topic", sent)
    line("repaired", theme.SERIES[2], ",.1f packets/s of the stream", _each(found, "repairs"))
    line("NAKs", theme.SERIES[1], ",.1f sequences/s of the stream", _each(found, "naks"), "dash")
    return figure


def queue(points: Sequence[Point], stream: str, topic: str) -> Figure:
    """Fill of the submit queue of the topic."""
    x = times(points)
    figure = theme.figure("% full", x=x, y={"range": [0, 100]})
    found = [point.sending.get(stream) for point in points]
    fills = [item.fills.get(topic) if item is not None else None for item in found]
    if any(fill is not None for fill in fills):
        values = [100 * fill if fill is not None else None for fill in fills]
        add_line(figure, x, values, "submit queue", theme.SERIES[0], unit=",.0f % full", width=2)
    return figure


def _each(found: Sequence[Sending | None], name: str) -> list[float | None]:
    return [getattr(item, name) if item is not None else None for item in found]
