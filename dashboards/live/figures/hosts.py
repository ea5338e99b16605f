"""The chart of hosts: how long each instance stood still, and when its wall clock was set."""

from __future__ import annotations

from collections.abc import Sequence

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.figures.lines import MOST_LINES, add_line, times
from heliograph.dashboards.live.series import Point
from heliograph.engine.catalogue.outside import Output, outside
from heliograph.monitor.hosts import HostRow

__all__ = ["stood"]


def stood(points: Sequence[Point], names: Sequence[str]) -> Figure:
    """Longest time in each interval for which an instance had no processor. Diamonds: its wall clock was set.

    Args:
        points: The points.
        names: The instances, the most important first.
    """
    x = times(points)
    figure = theme.figure("ms", x=x)
    for name, colour in theme.colours(names[:MOST_LINES]).items():
        found = [point.hosts.get(name) for point in points]
        longest = [row.hiccup_ns / 1e6 if row is not None and row.hiccup_ns is not None else None for row in found]
        if any(value is not None for value in longest):
            add_line(figure, x, longest, name, colour, unit=",.1f ms without a processor", width=2)
        if steps := _steps(x, found):
            figure.add_scatter(
                x=[moment for moment, _ in steps],
                y=[0] * len(steps),
                name=outside(f"{name}: clock set", Output.PLOTLY),
                mode="markers",
                marker={"symbol": "diamond", "size": 11, "color": theme.BAD},
                cliponaxis=False,
                text=[f"clock set by {by / 1e9:+,.3f} s" if by else "clock set" for _, by in steps],
                hovertemplate="%{text}",
            )
    return figure


def _steps(x: Sequence[str], found: Sequence[HostRow | None]) -> list[tuple[str, int]]:
    """Return time and size of each step of a clock; the event with the size may come one interval after the count."""
    steps = []
    for moment, row, after in zip(x, found, [*found, None][1:], strict=True):
        if row is not None and row.steps:
            late = after.stepped_ns if after is not None and not after.steps else 0
            steps.append((moment, row.stepped_ns or late))
    return steps
