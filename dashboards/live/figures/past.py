"""The charts of the past: percentiles by day, and the spectra of two periods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.figures.latency import add_spectrum, spectrum_frame, time_axis
from heliograph.dashboards.live.figures.lines import add_line
from heliograph.monitor.latency import Spectrum

if TYPE_CHECKING:
    from heliograph.monitor.history.studies.calendar import Calendar

__all__ = ["by_day", "two_spectra"]

_US = 1e-3
_LINES: Mapping[str, str] = {"p50": "p50", "p99": "p99", "p99_9": "p99.9"}
"""Name by column of the history."""


def by_day(calendar: Calendar | None) -> Figure:
    """Percentiles of each day of a series in microseconds; a day with too few values is a gap."""
    days = calendar.days if calendar is not None else ()
    x = [day.day.isoformat() for day in days]
    lines = {
        name: [value * _US if (value := day.cell.percentiles[column]) is not None else None for day in days]
        for column, name in _LINES.items()
    }
    lines["max"] = [day.cell.max * _US for day in days]
    figure = theme.figure("", x=x, y=time_axis(value for line in lines.values() for value in line if value))
    figure.update_layout(xaxis={"tickformat": "%Y-%m-%d"})
    for name, line in lines.items():
        if any(value is not None for value in line):
            add_line(figure, x, line, name, theme.PERCENTILES[name], unit=",.1f µs")
            figure.data[-1] |= {"mode": "lines+markers", "marker": {"size": 5}}
    return figure


def two_spectra(lines: Sequence[tuple[str, Spectrum | None]]) -> Figure:
    """Value by percentile of some periods, one line each; the x axis is log 1/(1-q)."""
    known = [(name, line) for name, line in lines if line is not None]
    figure = spectrum_frame(value * _US for _, line in known for value in line.values.tolist())
    for number, (name, line) in enumerate(known):
        add_spectrum(figure, line, name, theme.SERIES[number], "dash" if number % 2 else "solid")
    return figure
