"""Classic Prometheus histograms and window percentiles from HDR counts.

A value counts under `le` when the value that HdrHistogram reports for it (the highest of its cell) is at most `le`.
This is the rule for percentiles too. Every bucket is the sum of whole cells, so it is exact, and it never understates a
latency. The bounds follow the decimal steps of usual objectives. Three significant digits resolve each to 0.1 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from heliograph.monitor.bulk import Run, percentiles_since, runs
from heliograph.monitor.latency import cell_of, highest_of
from heliograph.monitor.model import Histogram
from heliograph.monitor.sparse import grown

__all__ = [
    "BOUNDS_NS",
    "PERCENTILES",
    "cumulative",
    "cumulative_all",
    "le",
    "same_layout",
    "shown_all",
    "since",
    "window_values",
    "window_values_all",
]

BOUNDS_NS: tuple[int, ...] = (
    5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 25_000_000, 100_000_000, 500_000_000, 1_000_000_000, 10_000_000_000,
)  # fmt: skip
"""Upper bounds of the buckets in ns: 5 us to 10 s."""

PERCENTILES: tuple[tuple[str, float], ...] = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))
"""Percentiles of a window: label value and fraction from 0 to 1."""
_FRACTIONS = tuple(fraction for _, fraction in PERCENTILES)

Row = TypeVar("Row")


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
    (counts,) = cumulative_all([histogram], bounds_ns)
    return list(zip([*map(le, bounds_ns), "+Inf"], counts, strict=True))


def window_values(histogram: Histogram) -> list[tuple[str, int]]:
    """Return the percentiles of the window as (name, ns); an empty list when no value was counted.

    A value above the range of the histogram counts as the upper end of the range.
    """
    (values,) = window_values_all([histogram], [None])
    return [(name, value) for (name, _), value in zip(PERCENTILES, values or (), strict=False)]


def cumulative_all(histograms: Sequence[Histogram], bounds_ns: Sequence[int] = BOUNDS_NS) -> list[list[int]]:
    """Return the counts of all buckets of each histogram, ``+Inf`` last."""
    found: list[list[int]] = [[]] * len(histograms)
    for indexes, run in runs(histograms):
        _put(found, indexes, _cumulative(run, bounds_ns))
    return found


def window_values_all(newer: Sequence[Histogram], older: Sequence[Histogram | None]) -> list[list[int] | None]:
    """Return the percentiles of the window of each histogram in ns; None where no value was counted.

    Args:
        newer: The histograms now.
        older: Those at the start of the window; None, and a histogram that was restarted since: all values count.
    """
    return percentiles_since(newer, older, _FRACTIONS)


def shown_all(
    newer: Sequence[Histogram], older: Sequence[Histogram | None], bounds_ns: Sequence[int] = BOUNDS_NS
) -> tuple[list[list[int]], list[list[int] | None]]:
    """Return what `cumulative_all` and `window_values_all` do; together they take half the time."""
    counts: list[list[int]] = [[]] * len(newer)
    values: list[list[int] | None] = [None] * len(newer)
    for indexes, run in runs(newer):
        _put(counts, indexes, _cumulative(run, bounds_ns))
        run.subtract([older[index] for index in indexes])
        _put(values, indexes, run.percentiles(_FRACTIONS))
    return counts, values


def _put(found: list[Row], indexes: Sequence[int], rows: Sequence[Row]) -> None:
    for index, row in zip(indexes, rows, strict=True):
        found[index] = row


def _cumulative(run: Run, bounds_ns: Sequence[int]) -> list[list[int]]:
    below, inside = run.below(_cells_within(tuple(bounds_ns), run.digits, run.lowest, run.highest))
    rows: list[list[int]] = np.column_stack((below, inside + run.above.astype(np.uint64))).tolist()
    return rows


@lru_cache(maxsize=64)
def _cells_within(bounds_ns: tuple[int, ...], digits: int, lowest: int, highest: int) -> npt.NDArray[np.int64]:
    """Return the number of cells whose highest value is at most each bound."""
    cells = [cell_of(min(bound, highest), digits, lowest, highest) for bound in bounds_ns]
    tops = highest_of(np.array(cells), digits, lowest, highest).tolist()
    found = zip(cells, tops, bounds_ns, strict=True)
    return np.array([cell + (top <= bound) for cell, top, bound in found])
