"""Calendars as one self-contained HTML page: each cell has its value as text, and a shade by its logarithm."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from heliograph.engine.catalogue.outside import html_text
from heliograph.monitor.history.report.charts import duration
from heliograph.monitor.history.schema import PERCENTILES
from heliograph.monitor.history.studies.calendar import BEYOND, Calendar, Cell
from heliograph.monitor.history.studies.lines import WEEKDAYS, series_name, shown
from heliograph.monitor.page import shell

__all__ = ["SHADES_STYLE", "calendar_card", "calendar_page"]

SHADES = 6
SHADES_STYLE = "".join(
    f".s{shade} {{ background: color-mix(in srgb, var(--accent) {6 * shade}%, transparent); }}"
    for shade in range(1, SHADES + 1)
)


def calendar_page(found: Sequence[Calendar], quantile: str, zone: str, metric: str, notes: Sequence[str] = ()) -> str:
    """Return the page of calendars.

    Args:
        found: The calendars.
        quantile: Column of the history that the hours of the week show.
        zone: Name of the time zone.
        metric: Title of the metric.
        notes: Sentences about days that are stored without their hours.
    """
    days = [day.day for one in found for day in one.days]
    return shell.document(
        "Latency calendar",
        [f"{metric} · {min(days)} to {max(days)} · days and hours in {zone}", *notes],
        [f"<section class='card'>{calendar_card(one, quantile)}</section>" for one in found],
        f"Percentiles of merged counts, never averages. thin: fewer than {BEYOND} values lie beyond the "
        "percentile. A darker cell is a higher latency of the same series, on a logarithmic scale.",
        style=SHADES_STYLE,
    )


def calendar_card(one: Calendar, quantile: str, of: str = "h2") -> str:
    """Return hours of the week and days of one series as markup; `of` is the element of its heading."""
    title = quantile.removeprefix("p").replace("_", ".")
    return (
        f"<{of}>{html_text(series_name(one.series))}</{of}>"
        f"<h3>{title} % by hour of the week</h3>{_week(one, quantile)}<h3>Days</h3>{_days(one)}"
    )


def _week(one: Calendar, quantile: str) -> str:
    shade = _shades(list(one.week.values()), quantile)
    rows = []
    for hour in range(24):
        cells = [one.week.get((day, hour)) for day in range(7)]
        if any(cells):
            rows.append((f"{hour:02}:00", *(_shaded(cell, quantile, shade(cell)) for cell in cells)))
    return shell.table(("Hour", *WEEKDAYS), rows, (0,))


def _days(one: Calendar) -> str:
    by_column = {name: _shades([day.cell for day in one.days], name) for name in PERCENTILES}
    rows = [
        (
            f"{day.day} {WEEKDAYS[day.day.weekday()]}",
            "-" if day.hours is None else str(day.hours),
            f"{day.cell.n:,}",
            *(_shaded(day.cell, name, by_column[name](day.cell)) for name in PERCENTILES),
            duration(day.cell.max),
        )
        for day in one.days
    ]
    heads = [f"{fraction * 100:g} %" for fraction in PERCENTILES.values()]
    return shell.table(("Day", "Hours", "Values", *heads, "Max"), rows, (0,))


def _shades(cells: Sequence[Cell], quantile: str) -> Callable[[Cell | None], int]:
    """Return the function that gives a cell its shade among these: 0 (none) to `SHADES`."""
    values = [math.log(max(1, value)) for cell in cells if (value := cell.percentiles[quantile]) is not None]
    low, high = min(values, default=0.0), max(values, default=0.0)

    def shade(cell: Cell | None) -> int:
        value = None if cell is None else cell.percentiles[quantile]
        if value is None or low == high:
            return 0
        return round((math.log(max(1, value)) - low) / (high - low) * SHADES)

    return shade


def _shaded(cell: Cell | None, quantile: str, shade: int) -> str:
    text = html_text(shown(cell, quantile))
    return f"<span class='s{shade}'>{text}</span>" if shade else text
