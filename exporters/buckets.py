"""Classic Prometheus histograms and window percentiles from HDR counts.

A value counts under `le` when the value that HdrHistogram reports for it (the highest of its cell) is at most `le`.
This is the rule for percentiles too. Every bucket is the sum of whole cells, so it is exact, and it never understates a
latency. The bounds follow the decimal steps of usual objectives. Three significant digits resolve each to 0.1 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from heliograph.monitor.bulk import digests
from heliograph.monitor.model import Histogram
from heliograph.monitor.sparse import grown

__all__ = [
    "BOUNDS_NS",
    "PERCENTILES",
    "columns",
    "cumulative",
    "le",
    "same_layout",
    "since",
    "window_values",
]

BOUNDS_NS: tuple[int, ...] = (
    5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 25_000_000, 100_000_000, 500_000_000, 1_000_000_000, 10_000_000_000,
)  # fmt: skip
"""Upper bounds of the buckets in ns: 5 us to 10 s."""

PERCENTILES: tuple[tuple[str, float], ...] = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))
"""Percentiles of a window: label value and fraction from 0 to 1."""
_FRACTIONS = tuple(fraction for _, fraction in PERCENTILES)


@lru_cache(maxsize=64)
def le(bound_ns: int) -> str:
    """Format a bound in seconds as Prometheus 3 normalises it: ``1.0``, ``0.0005``, ``5e-06``."""
    return repr(bound_ns / 1e9)


def same_layout(one: Histogram, other: Histogram) -> bool:
    """Whether the cells of both histograms have the same bounds, so that they can be added and subtracted."""
    return (one.digits, one.lowest, one.highest, one.size) == (other.digits, other.lowest, other.highest, other.size)


def since(newer: Histogram, older: Histogram | None) -> Histogram:
    """Return the values counted since `older`; all values when the histogram restarted in between."""
    found = grown(newer, older)
    return newer if found is None else found


def cumulative(histogram: Histogram, bounds_ns: Sequence[int] = BOUNDS_NS) -> list[tuple[str, int]]:
    """Return buckets as (`le`, number of values at or below it). The last is ``+Inf`` and holds every value.

    Args:
        histogram: The counts.
        bounds_ns: Ascending upper bounds, ns.
    """
    counts, _ = columns([histogram], [None], bounds_ns)
    return list(zip([*map(le, bounds_ns), "+Inf"], [count for (count,) in counts], strict=True))


def window_values(histogram: Histogram) -> list[tuple[str, int]]:
    """Return the percentiles of the window as (name, ns); an empty list when no value was counted.

    A value above the range of the histogram counts as the upper end of the range.
    """
    _, values = columns([histogram], [None], ())
    return [(name, value) for (name, _), (value,) in zip(PERCENTILES, values, strict=True) if value is not None]


def columns(
    newer: Sequence[Histogram], older: Sequence[Histogram | None], bounds_ns: Sequence[int] = BOUNDS_NS
) -> tuple[list[list[int]], list[list[int | None]]]:
    """Return the number of values of each bucket, ``+Inf`` last, and the percentiles of the window in ns.

    Each has a value for each histogram; a percentile is None where no value was counted.

    Args:
        newer: The histograms now.
        older: Those at the start of the window; None, and a histogram that was restarted since: all values count.
        bounds_ns: Ascending upper bounds, ns.
    """
    counts = np.zeros((len(bounds_ns) + 1, len(newer)), np.uint64)
    values = np.full((len(PERCENTILES), len(newer)), -1)
    for found in digests(newer, older, _FRACTIONS, bounds_ns):
        counts[:, found.indexes], values[:, found.indexes] = found.below, found.percentiles
    window: list[list[int | None]] = values.tolist()
    for at in np.flatnonzero(values[0] < 0).tolist():
        for row in window:
            row[at] = None
    return counts.tolist(), window
