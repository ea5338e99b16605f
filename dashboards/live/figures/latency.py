"""Latency over time, and the percentile spectrum of the last minute."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.figures.lines import add_line, note_rest, receiver_colours, times, topic_colours
from heliograph.dashboards.live.series import QUANTILES, Group, Point, merged
from heliograph.engine.catalogue.outside import Output, outside
from heliograph.monitor.latency import Spectrum, spectrum

__all__ = ["add_spectrum", "over_time", "percentile_spectrum", "spectrum_frame", "time_axis"]

_NINES = {0: "0 %", 1: "90 %", 2: "99 %", 3: "99.9 %", 4: "99.99 %", 5: "99.999 %", 6: "99.9999 %"}
_US = 1e-3
_MOST_POINTS = 160
_NARROW = 2.0
"""Decades; a shorter axis has labels within the decades."""


def time_axis(values_us: Iterable[float]) -> dict[str, Any]:
    """Return a logarithmic time axis around some values in microseconds, labelled with the unit that fits."""
    positive = [value for value in values_us if value > 0]
    low = math.floor(math.log10(min(positive, default=1.0)) * 3) / 3
    high = max(math.ceil(math.log10(max(positive, default=1000.0)) * 3) / 3, low + 1)
    steps = (1, 2, 5) if high - low < _NARROW else (1,)
    ticks = [step * 10.0**decade for decade in range(math.floor(low), math.ceil(high) + 1) for step in steps]
    return {"type": "log", "range": [low, high], "tickvals": ticks, "ticktext": [_tick(tick) for tick in ticks]}


def _tick(value_us: float) -> str:
    for step, unit in ((1e6, "s"), (1e3, "ms"), (1.0, "µs")):
        if value_us >= step:
            return f"{value_us / step:g} {unit}"
    return f"{value_us * 1e3:g} ns"


def over_time(points: Sequence[Point], group: Group) -> Figure:
    """Percentiles of each interval of one group in microseconds; an interval without messages is a gap."""
    x = times(points)
    lines = {
        name: [found[name] * _US if (found := point.latency.get(group)) else None for point in points]
        for name in QUANTILES
    }
    figure = theme.figure("", x=x, y=time_axis(value for line in lines.values() for value in line if value))
    for name, line in lines.items():
        if any(value is not None for value in line):
            width = 1.2 if name == "max" else 1.8
            add_line(figure, x, line, name, theme.PERCENTILES[name], unit=",.1f µs", width=width)
    return figure


def percentile_spectrum(points: Sequence[Point], kind: str) -> Figure:
    """Value by percentile over all `points`, one line per topic or receiver. The x axis is log 1/(1-q).

    Args:
        kind: "topic" or "receiver".
    """
    colours = topic_colours(points) if kind == "topic" else receiver_colours(points)
    lines = {
        name: spectrum(histogram, _MOST_POINTS)
        for name in colours
        if (histogram := merged(points, f"{kind}:{name}")) is not None
    }
    figure = spectrum_frame(value * _US for line in lines.values() for value in line.values.tolist())
    for name, line in lines.items():
        add_spectrum(figure, line, name, colours[name])
    note_rest(figure, points, kind)
    return figure


def spectrum_frame(values_us: Iterable[float]) -> Figure:
    """An empty percentile spectrum around some values in microseconds."""
    figure = theme.figure("", y=time_axis(values_us))
    axis = {
        "type": "linear",
        "tickformat": "",
        "showgrid": True,
        "tickvals": list(_NINES),
        "ticktext": list(_NINES.values()),
        "rangemode": "tozero",
    }
    figure.update_layout(xaxis=axis, hovermode="closest")
    return figure


def add_spectrum(figure: Figure, line: Spectrum, name: str, colour: str, dash: str = "solid") -> None:
    """Add one line to a percentile spectrum."""
    figure.add_scatter(
        x=line.nines.tolist(),
        y=(line.values * _US).tolist(),
        name=outside(name, Output.PLOTLY),
        mode="lines",
        line={"color": colour, "width": 1.6, "dash": dash},
        customdata=(line.fractions * 100).tolist(),
        hovertemplate="%{fullData.name}: %{customdata:.5~f} % within %{y:,.1f} µs<extra></extra>",
    )
