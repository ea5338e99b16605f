"""The charts of one receiver: position in the history, lag, queue, latency by stage, loss locations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.figures.lines import add_history, add_left, add_line, times
from heliograph.dashboards.live.receiving import REST, STAGES, Position, Receiving
from heliograph.dashboards.live.series import Point
from heliograph.monitor.localise import PLACES

__all__ = ["lag", "located", "position", "queue", "stages"]

_STAGE_COLOURS = {**dict(zip(STAGES, theme.SERIES, strict=False)), REST: theme.FAINT}
_PLACE_COLOURS = dict(zip(PLACES, theme.SERIES, strict=False))


def _each(points: Sequence[Point], name: str) -> list[Receiving]:
    return [point.receiving.get(name, Receiving()) for point in points]


def position(points: Sequence[Point], name: str, stream: str) -> Figure:
    """Packets behind the sender, which is at 0. The band is the history; packets below it cannot be repaired.

    Dotted: as the receiver last reported it to its source. Crosses: packets that it needs have left the history.
    """
    x = times(points)
    found = [item.positions.get(stream) for item in _each(points, name)]
    figure = theme.figure("packets behind", x=x, y={"autorange": "reversed"})
    if not any(found):
        return figure

    def line(value: Callable[[Position], int | None]) -> list[float | None]:
        return [value(item) if item is not None else None for item in found]

    depth = line(lambda item: item.depth)
    add_history(figure, x, depth)
    unit = ",.0f packets behind"
    add_line(figure, x, line(lambda item: item.behind), "receiver", theme.SERIES[1], unit=unit, width=2)
    reported = line(lambda item: item.reported)
    if any(value is not None for value in reported):
        add_line(figure, x, reported, "as reported", theme.SERIES[3], unit=unit, dash="dot")
    outside = line(lambda item: item.behind if (item.margin or 0) < 0 else None)
    add_left(figure, x, outside)
    return figure


def lag(points: Sequence[Point], name: str) -> Figure:
    """Age of the oldest message that the application does not have: the largest of all topics."""
    x = times(points)
    figure = theme.figure("seconds", x=x)
    values = [item.lag_seconds for item in _each(points, name)]
    if any(value is not None for value in values):
        add_line(figure, x, values, "lag", theme.SERIES[1], unit=",.3f s behind", width=2)
    return figure


def queue(points: Sequence[Point], name: str) -> Figure:
    """Fill of the fullest receive queue."""
    x = times(points)
    figure = theme.figure("% full", x=x, y={"range": [0, 100]})
    values = [100 * point.receiving[name].queue_fill if name in point.receiving else None for point in points]
    if any(value is not None for value in values):
        add_line(figure, x, values, "queue", theme.SERIES[0], unit=",.0f % full", width=2)
    return figure


def stages(points: Sequence[Point], name: str) -> Figure:
    """Mean latency of each interval, divided into its stages; an interval without messages is a gap."""
    values = [{stage: value / 1e3 for stage, value in item.stages.items()} for item in _each(points, name)]
    return _stacked("µs", points, values, _STAGE_COLOURS, "%{y:,.1f} µs")


def located(points: Sequence[Point], name: str) -> Figure:
    """Packets of each interval that were missing at first, by loss location."""
    return _stacked(
        "packets", points, [item.located for item in _each(points, name)], _PLACE_COLOURS, "%{y:,.0f} packets"
    )


def _stacked(
    unit: str, points: Sequence[Point], values: Sequence[Mapping[str, float]], colours: Mapping[str, str], hover: str
) -> Figure:
    x = times(points)
    figure = theme.figure(unit, x=x)
    figure.update_layout(barmode="stack", bargap=0)
    for part, colour in colours.items():
        line = [found.get(part) for found in values]
        if any(line):
            figure.add_bar(x=x, y=line, name=part, marker={"color": colour, "line": {"width": 0}}, hovertemplate=hover)
    return figure
