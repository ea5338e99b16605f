"""Classic Prometheus histograms and window percentiles from HDR counts.

A value counts under `le` when the value that HdrHistogram reports for it (the highest of its cell) is at most `le`.
This is the rule for percentiles too. Every bucket is the sum of whole cells, so it is exact, and it never understates a
latency. The bounds follow the decimal steps of usual objectives. Three significant digits resolve each to 0.1 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from heliograph.monitor.latency import cell_of, filled_bounds, grew, percentiles
from heliograph.monitor.model import Histogram

__all__ = ["BOUNDS_NS", "PERCENTILES", "cumulative", "le", "same_layout", "since", "window_values"]

BOUNDS_NS: tuple[int, ...] = (
    5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 25_000_000, 100_000_000, 500_000_000, 1_000_000_000, 10_000_000_000,
)  # fmt: skip
"""Upper bounds of the buckets in ns: 5 us to 10 s."""

PERCENTILES: tuple[tuple[str, float], ...] = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))
"""Percentiles of a window: label value and fraction from 0 to 1."""


@lru_cache(maxsize=64)
def le(bound_ns: int) -> str:
    """Format a bound in seconds as Prometheus 3 normalises it: ``1.0``, ``0.0005``, ``5e-06``."""
    return repr(bound_ns / 1e9)


def same_layout(one: Histogram, other: Histogram) -> bool:
    """Whether the cells of both histograms have the same bounds, so that they can be added and subtracted."""
    return (one.digits, one.lowest, one.highest, one.size) == (other.digits, other.lowest, other.highest, other.size)


def since(newer: Histogram, older: Histogram | None) -> Histogram:
    """Return the values counted since `older`; all values when the histogram restarted in between."""
    if older is None or not same_layout(newer, older) or not grew(newer, older):
        return newer
    return newer.minus(older)


def cumulative(histogram: Histogram, bounds_ns: Sequence[int] = BOUNDS_NS) -> list[tuple[str, int]]:
    """Return buckets as (`le`, number of values at or below it). The last is ``+Inf`` and holds every value.

    Args:
        histogram: The counts.
        bounds_ns: Ascending upper bounds, ns.
    """
    _, upper, counts = filled_bounds(histogram)
    running = np.concatenate(([np.uint64(0)], np.cumsum(counts)))
    below = running[np.searchsorted(upper, np.array(bounds_ns, dtype=np.uint64), side="right")]
    buckets = [(le(bound), int(count)) for bound, count in zip(bounds_ns, below, strict=True)]
    return [*buckets, ("+Inf", int(running[-1]) + histogram.above)]


def window_values(histogram: Histogram) -> list[tuple[str, int]]:
    """Return the percentiles of the window as (name, ns); an empty list when no value was counted.

    A value above the range of the histogram counts as the upper end of the range.
    """
    whole = histogram
    if histogram.above:
        counts = histogram.counts.copy()
        counts[cell_of(histogram.highest, histogram.digits, histogram.lowest, histogram.highest)] += np.uint64(
            histogram.above
        )
        whole = Histogram(counts, histogram.lowest, histogram.highest, histogram.digits)
    elif not histogram.count:
        return []
    values = percentiles(whole, [fraction for _, fraction in PERCENTILES])
    return [(name, value) for (name, _), value in zip(PERCENTILES, values, strict=True)]
