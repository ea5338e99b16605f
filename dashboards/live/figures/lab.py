"""The charts of the latency lab: percentile spectra with the clocks' error, and jitter over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.curves import Curve, title
from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.figures.latency import add_spectrum, spectrum_frame, time_axis
from heliograph.dashboards.live.figures.lines import MOST_LINES, add_line, times
from heliograph.dashboards.live.series import Group, Point
from heliograph.monitor.latency import Spectrum, spectrum

__all__ = ["jitter_strip", "spectra"]

_US = 1e-3
_MOST_POINTS = 160
_LEAST_US = 1e-3
"""Lower end of a band that reaches 0, which a logarithmic axis cannot show."""
_DASHES = {"": "solid", "never lost": "solid", "recovered": "dot"}


def spectra(curves: Sequence[Curve]) -> Figure:
    """Value by percentile, one line per curve; the x axis is log 1/(1-q). Dotted: recovered messages.

    A band around a line holds the true latencies: the values as measured, minus the offset of the clocks, with its
    error bound. A curve of one clock has no band, and neither has a curve with unknown clocks.
    """
    shown = curves[:MOST_LINES]
    lines = [spectrum(curve.histogram, _MOST_POINTS) for curve in shown]
    figure = spectrum_frame(value * _US for line in lines for value in line.values.tolist())
    for number, (curve, line) in enumerate(zip(shown, lines, strict=True)):
        colour = theme.SERIES[number % len(theme.SERIES)]
        if curve.shift is not None and curve.shift != (0, 0):
            _add_band(figure, line, curve.shift, colour)
        add_spectrum(figure, line, curve.name, colour, _DASHES[curve.kind])
    return figure


def _add_band(figure: Figure, line: Spectrum, shift: tuple[int, int], colour: str) -> None:
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    hidden = {"mode": "lines", "line": {"width": 0}, "showlegend": False, "hoverinfo": "skip"}
    for end, fill in zip(shift, (None, "tonexty"), strict=True):
        values = np.maximum((line.values.astype(np.float64) + end) * _US, _LEAST_US)
        ground = f"rgba({red},{green},{blue},0.18)"
        figure.add_scatter(x=line.nines.tolist(), y=values.tolist(), fill=fill, fillcolor=ground, **hidden)


def jitter_strip(points: Sequence[Point], groups: Sequence[Group]) -> Figure:
    """p99.9 minus p50 of each interval, one line per group; an interval without messages is a gap."""
    x = times(points)
    lines = {group: [_jitter(point, group) for point in points] for group in groups[:MOST_LINES]}
    figure = theme.figure("", x=x, y=time_axis(value for line in lines.values() for value in line if value))
    for number, (group, line) in enumerate(lines.items()):
        if any(value is not None for value in line):
            add_line(figure, x, line, title(group), theme.SERIES[number % len(theme.SERIES)], unit=",.1f µs")
            # Without markers a value between two gaps would not be visible.
            figure.data[-1].update(mode="lines+markers", marker={"size": 4})
    return figure


def _jitter(point: Point, group: Group) -> float | None:
    found = point.latency.get(group)
    return (found["p99.9"] - found["p50"]) * _US if found else None
