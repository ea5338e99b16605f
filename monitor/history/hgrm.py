"""Percentile distribution text (`.hgrm`) as Java's `outputPercentileDistribution` writes it.

    #[instance=alpha, topic=PRICES.A, metric=receiver_total_latency]
           Value     Percentile TotalCount 1/(1-Percentile)

           2.137 0.000000000000          1           1.00
           5.067 0.100000000000         30           1.11
    ...
         944.127 1.000000000000        300
    #[Mean    =       34.875, StdDeviation   =       66.675]
    #[Max     =      944.127, Total count    =          300]
    #[Buckets =           26, SubBuckets     =         2048]

HdrHistogram's plotter and other tools read it. The `hdrhistogram` package is not used: it takes other steps than Java,
and does not scale the deviation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

import numpy as np

from heliograph.monitor.latency import filled_bounds, layout_of
from heliograph.monitor.model import Histogram

__all__ = ["UNITS", "distribution", "series_line"]

UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
"""Units of the values, in ns."""


@dataclass(frozen=True, slots=True)
class _Step:
    value: int
    level: float
    """Percentile of the step, 0 to 100."""
    count: int
    """Values up to this one."""


def series_line(labels: Mapping[str, str]) -> str:
    """Return a comment that names a series by its labels; those without text are left out."""
    named = ", ".join(f"{name}={text!r}" if "," in text or not text.isprintable() else f"{name}={text}"
                      for name, text in labels.items() if text)  # fmt: skip
    return f"#[{named}]"


def distribution(histogram: Histogram, *, unit: str = "us", ticks: int = 5, csv: bool = False) -> Iterator[str]:
    """Yield the lines of a distribution.

    Args:
        histogram: The histogram, ns.
        unit: Unit of the values, one of `UNITS`.
        ticks: Steps in each half of the distance to 100 %, at least 1.
        csv: Columns with commas, and no summary.
    """
    digits, scale = histogram.digits, UNITS[unit]
    if csv:
        yield '"Value","Percentile","TotalCount","1/(1-Percentile)"'
    else:
        yield f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}"
        yield ""
    for step in _steps(histogram, ticks):
        cells = [_fixed(step.value / scale, digits), _fixed(step.level / 100.0, 12), str(step.count)]
        if step.level < 100.0:
            cells.append(_fixed(1 / (1.0 - step.level / 100.0), 2))
        elif csv:
            cells.append("Infinity")
        widths = [0, 0, 0, 0] if csv else [12, 1, 10, 14]
        yield ("," if csv else " ").join(cell.rjust(width) for cell, width in zip(cells, widths, strict=False))
    if not csv:
        yield from _summary(histogram, scale)


def _steps(histogram: Histogram, ticks: int) -> Iterator[_Step]:
    """Yield the steps of Java's `PercentileIterator`: each cell at all levels that it is the first to reach."""
    _, upper, counts = filled_bounds(histogram)
    running = np.cumsum(counts)
    total = int(running[-1]) if running.size else 0
    level = 0.0
    for value, count in zip(upper.tolist(), running.tolist(), strict=True):
        while 100.0 * count / total >= level:
            yield _Step(value, level, count)
            level = _after(level, ticks)
            if count == total:  # Java goes on to 100 % from here
                yield _Step(value, 100.0, count)
                return


def _after(level: float, ticks: int) -> float:
    halvings = int(math.log(100.0 / (100.0 - level)) / math.log(2)) + 1
    return level + 100.0 / (ticks * (1 << halvings))


def _summary(histogram: Histogram, scale: int) -> Iterator[str]:
    lower, upper, counts = filled_bounds(histogram)
    middles = lower.astype(np.float64) + ((upper - lower + np.uint64(1)) >> np.uint64(1)).astype(np.float64)
    weights = counts.astype(np.float64)
    total = int(counts.sum())
    mean = float((middles * weights).sum()) / total if total else 0.0
    deviation = math.sqrt(float(((middles - mean) ** 2 * weights).sum()) / total) if total else 0.0
    layout = layout_of(histogram.digits, histogram.lowest, histogram.highest)
    half = 1 << layout.sub_bucket_half_magnitude

    def of_value(value: float) -> str:
        return _fixed(value / scale, histogram.digits).rjust(12)

    yield f"#[Mean    = {of_value(mean)}, StdDeviation   = {of_value(deviation)}]"
    yield f"#[Max     = {of_value(int(upper[-1]) if total else 0)}, Total count    = {total:12}]"
    yield f"#[Buckets = {layout.cells // half - 1:12}, SubBuckets     = {2 * half:12}]"


def _fixed(value: float, places: int) -> str:
    """Return a number as Java's Formatter does: half up, from the shortest decimal that is the same float."""
    return f"{Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):f}"
