"""Figures of the report as text: a percentile with its interval, or ``thin`` when there are too few values."""

from __future__ import annotations

import math

from heliograph.engine.catalogue.outside import html_text
from heliograph.monitor.history.report.charts import duration
from heliograph.monitor.history.report.figures import Hour, SeriesFigures
from heliograph.monitor.history.report.uncertainty import Limits, is_thin
from heliograph.monitor.history.schema import PERCENTILES
from heliograph.monitor.page import shell

__all__ = ["HEADS", "THIN", "full", "named", "of_hour", "of_whole", "or_thin", "percent", "with_reach"]

THIN = "thin"
HEADS = tuple(f"{fraction * 100:g} %" for fraction in PERCENTILES.values())


def full(series: SeriesFigures) -> str:
    """Name of a series with what tells it apart."""
    return f"{series.name} ({series.detail})" if series.detail else series.name


def named(series: SeriesFigures) -> str:
    """The same as markup, with small print."""
    return html_text(series.name) + shell.small(series.detail)


def or_thin(value: int | None) -> str:
    """A duration, or ``thin``."""
    return THIN if value is None else duration(value)


def percent(share: float) -> str:
    """A share that is never rounded up to 100 %, nor down to 0 %."""
    if 0 < share < 0.0001:
        return "< 0.01 %"
    return f"{min(share, 0.9999 if share < 1 else 1.0) * 100:.4g} %"


def with_reach(value: float, reach: float | None) -> str:
    """A mean with its 95 % interval, as markup."""
    if reach is None or math.isnan(reach):
        return duration(value)
    return duration(value) + shell.small(f"± {duration(reach)}")


def _between(value: int, limits: Limits | None) -> str:
    if limits is None:
        return duration(value)
    if limits.high is None:
        return duration(value) + shell.small(f"≥ {duration(limits.low)}")
    return duration(value) + shell.small(f"{duration(limits.low)} to {duration(limits.high)}")


def of_hour(hour: Hour) -> list[str]:
    """Values, mean, percentiles, maximum and jitter of an hour or a day."""
    if not hour.n:
        return ["0", *["–"] * (len(PERCENTILES) + 3)]
    return [
        f"{hour.n:,}",
        duration(hour.mean),
        *(or_thin(hour.at(name)) for name in PERCENTILES),
        duration(hour.max),
        or_thin(hour.jitter),
    ]


def of_whole(series: SeriesFigures) -> list[str]:
    """The same of the whole time, with 95 % intervals, as markup."""
    whole = series.whole
    if not whole.n:
        return of_hour(whole)
    shown = [
        THIN if is_thin(whole.n, fraction) else _between(value, limits)
        for fraction, value, limits in zip(PERCENTILES.values(), whole.percentiles, series.limits, strict=True)
    ]
    return [
        f"{whole.n:,}",
        with_reach(whole.mean, series.mean_reach),
        *shown,
        duration(whole.max),
        or_thin(whole.jitter),
    ]
