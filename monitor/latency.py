"""Latency from HDR counts: bucket layout, percentiles, spectrum, jitter.

The product has one percentile rule. The value at p is the value of rank ``ceil(p * n)``, at least 1, among the n
ordered values, shown as the highest value of its bucket. Percentiles are computed last, from counts that were added or
subtracted cell by cell; they are never averaged.

The layout is that of HdrHistogram for any number of significant digits. A bucket holds values ``lower_bounds`` to
``upper_bounds``. Both depend only on (digits, lowest, highest) and are computed once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from heliograph.monitor.model import Counts, Histogram

__all__ = [
    "ENGINE_CELLS",
    "Layout",
    "Spectrum",
    "cell_of",
    "dense",
    "filled_bounds",
    "grew",
    "highest_of",
    "jitter",
    "layout_of",
    "lower_bounds",
    "maximum",
    "mean",
    "minimum",
    "never_lost",
    "percentile",
    "percentiles",
    "ranks_of",
    "spectrum",
    "upper_bounds",
]

_RANK_SLACK = 1e-9
_RANK_SLACK_RELATIVE = 2.3e-16
"""0.99 * 100 is 99.00000000000001 in binary; this slack keeps the rank from being rounded up, as in the C kernel."""

ENGINE_CELLS = 27_648
"""Cells of the engine's histograms: 3 digits from 1 ns to 60 s."""

Bounds = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Layout:
    """Shape of the array of counts for one set of parameters."""

    unit_magnitude: int
    sub_bucket_half_magnitude: int
    cells: int


@lru_cache(maxsize=64)
def layout_of(digits: int, lowest: int, highest: int) -> Layout:
    """Return the layout of HdrHistogram for these parameters.

    Raises:
        ValueError: digits is not 1 to 5, lowest is below 1, or highest is below twice lowest or above 2^63 - 1.
    """
    if not 1 <= digits <= 5 or lowest < 1 or not 2 * lowest <= highest < 2**63:
        raise ValueError(f"impossible histogram: {digits} digits from {lowest} to {highest}")
    single_unit = 2 * 10**digits
    sub_bucket_magnitude = math.ceil(math.log2(single_unit))
    unit_magnitude = lowest.bit_length() - 1
    if unit_magnitude + sub_bucket_magnitude > 62:
        raise ValueError(f"impossible histogram: {digits} digits from {lowest} to {highest}")
    half = sub_bucket_magnitude - 1
    smallest_untrackable = (1 << sub_bucket_magnitude) << unit_magnitude
    buckets = 1
    while smallest_untrackable <= highest:
        smallest_untrackable <<= 1
        buckets += 1
    return Layout(unit_magnitude, half, (buckets + 1) << half)


def cell_of(value: int, digits: int = 3, lowest: int = 1, highest: int = 60_000_000_000) -> int:
    """Return the cell that counts `value` (0 to `highest`)."""
    layout = layout_of(digits, lowest, highest)
    sub_bucket_count = 2 << layout.sub_bucket_half_magnitude
    scaled = value >> layout.unit_magnitude
    bucket = max(0, (scaled | (sub_bucket_count - 1)).bit_length() - 1 - layout.sub_bucket_half_magnitude)
    return (bucket << layout.sub_bucket_half_magnitude) + (scaled >> bucket)


def _ends(layout: Layout, cells: npt.NDArray[Any]) -> tuple[Bounds, Bounds]:
    """Return the lowest and highest value of the given cells."""
    half = np.uint64(layout.sub_bucket_half_magnitude)
    index = cells.astype(np.uint64)
    bucket = np.maximum(index >> half, np.uint64(1)) - np.uint64(1)
    shift = bucket + np.uint64(layout.unit_magnitude)
    lower = (index - (bucket << half)) << shift
    return lower, lower + (np.uint64(1) << shift) - np.uint64(1)


def _all_ends(digits: int, lowest: int, highest: int) -> tuple[Bounds, Bounds]:
    layout = layout_of(digits, lowest, highest)
    lower, upper = _ends(layout, np.arange(layout.cells))
    lower.flags.writeable = upper.flags.writeable = False
    return lower, upper


_kept_ends = lru_cache(maxsize=8)(_all_ends)


def _bounds(histogram: Histogram) -> tuple[Bounds, Bounds]:
    """Return the bounds of all cells; cached for layouts up to the size of the engine's (at most 4 MiB)."""
    layout = (histogram.digits, histogram.lowest, histogram.highest)
    return _kept_ends(*layout) if layout_of(*layout).cells <= ENGINE_CELLS else _all_ends(*layout)


def _filled_ends(histogram: Histogram, cells: npt.NDArray[Any]) -> tuple[Bounds, Bounds]:
    return _ends(layout_of(histogram.digits, histogram.lowest, histogram.highest), cells)


def lower_bounds(histogram: Histogram) -> Bounds:
    """Return the smallest value of each cell, ns."""
    return _bounds(histogram)[0]


def upper_bounds(histogram: Histogram) -> Bounds:
    """Return the highest value of each cell ("highest equivalent value"), ns."""
    return _bounds(histogram)[1]


def filled_bounds(histogram: Histogram) -> tuple[Bounds, Bounds, Counts]:
    """Return smallest value, highest value and count of each non-zero cell."""
    cells, counts = histogram.filled()
    return *_filled_ends(histogram, cells), counts


def percentiles(histogram: Histogram, fractions: Sequence[float]) -> list[int]:
    """Return the values at `fractions` (0 to 1), ns; all 0 when the histogram is empty."""
    cells, counts = histogram.filled()
    if not cells.size:
        return [0] * len(fractions)
    running = np.cumsum(counts)
    total = int(running[-1])
    ranks = [_rank(fraction, total) for fraction in fractions]
    places = np.searchsorted(running, np.array(ranks, dtype=np.uint64), side="left")
    upper = _filled_ends(histogram, cells[places])[1]
    return [int(value) for value in upper]


def highest_of(cells: npt.NDArray[Any], digits: int, lowest: int, highest: int) -> Bounds:
    """Return the highest value of each of the cells, ns."""
    return _ends(layout_of(digits, lowest, highest), cells)[1]


def ranks_of(fractions: Sequence[float], totals: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the ranks of the values at fractions (0 to 1) among each number of values, at least 1."""
    product = np.array(fractions) * totals[:, None]
    ranks = np.ceil(product - _RANK_SLACK - product * _RANK_SLACK_RELATIVE).astype(np.int64)
    return np.minimum(totals[:, None], np.maximum(1, ranks))


def _rank(fraction: float, total: int) -> int:
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(f"a percentile must be a fraction from 0 to 1, not {fraction}")
    product = fraction * total
    return min(total, max(1, math.ceil(product - _RANK_SLACK - product * _RANK_SLACK_RELATIVE)))


def percentile(histogram: Histogram, fraction: float) -> int:
    """Return the value at `fraction` (0 to 1), ns; 0 when the histogram is empty."""
    return percentiles(histogram, [fraction])[0]


def maximum(histogram: Histogram) -> int:
    """Return the highest value (of the highest filled cell), ns; 0 when empty. Values above `highest` have no cell."""
    cells, _ = histogram.filled()
    return int(_filled_ends(histogram, cells[-1:])[1][0]) if cells.size else 0


def minimum(histogram: Histogram) -> int:
    """Return the lowest value (of the lowest filled cell), ns; 0 when empty."""
    cells, _ = histogram.filled()
    return int(_filled_ends(histogram, cells[:1])[0][0]) if cells.size else 0


def mean(histogram: Histogram) -> float:
    """Return the mean in ns from the middles of the cells, as HdrHistogram does; 0.0 when empty."""
    lowest, highest, filled = filled_bounds(histogram)
    if not filled.size:
        return 0.0
    counts = filled.astype(np.float64)
    lower = lowest.astype(np.float64)
    width = highest.astype(np.float64) - lower + 1.0
    middle = lower + np.floor(width / 2)
    return float((counts * middle).sum() / counts.sum())


def jitter(histogram: Histogram) -> int:
    """Return p99.9 - p50, ns."""
    high, middle = percentiles(histogram, [0.999, 0.5])
    return high - middle


def grew(newer: Histogram, older: Histogram) -> bool:
    """Whether no cell of `newer` is below that of `older`, which has the same layout."""
    if type(newer) is Histogram and type(older) is Histogram:
        return not (newer.counts < older.counts).any()
    cells, counts = newer.filled()
    wanted, before = older.filled()
    if not cells.size:
        return not wanted.size
    places = np.minimum(np.searchsorted(cells, wanted), cells.size - 1)
    return not (np.where(cells[places] == wanted, counts[places], np.uint64(0)) < before).any()


def never_lost(whole: Histogram, recovered: Histogram, count: int) -> Histogram | None:
    """Return the values of messages whose packets were never lost: `whole` minus `recovered`, exactly.

    Args:
        whole: ``total_latency`` or ``order_latency`` of a receiver over some time.
        recovered: Its ``..._recovered`` over the same time.
        count: Increase of ``latency_recovered`` in that time.

    Returns:
        None when `recovered` was not enabled all the time: the difference would then contain recovered messages.

    Raises:
        ValueError: The layouts differ, or `recovered` has values that `whole` lacks: they are of different receivers.
    """
    if (whole.digits, whole.lowest, whole.highest) != (recovered.digits, recovered.lowest, recovered.highest):
        raise ValueError("histograms of different layouts cannot be subtracted")
    if recovered.count + recovered.above + recovered.negative != count:
        return None
    if not grew(whole, recovered) or recovered.above > whole.above:
        raise ValueError("the recovered values are not part of all values")
    rest = whole.minus(recovered)
    return rest if rest.negative >= 0 else dense(rest, negative=0)


def dense(histogram: Histogram, negative: int | None = None) -> Histogram:
    """Return the histogram with all cells in one array owned by the caller; `negative` replaces its own where given."""
    return Histogram(
        counts=histogram.counts,
        lowest=histogram.lowest,
        highest=histogram.highest,
        digits=histogram.digits,
        above=histogram.above,
        negative=histogram.negative if negative is None else negative,
        total_ns=histogram.total_ns,
    )


@dataclass(frozen=True, slots=True)
class Spectrum:
    """A percentile plot: one point per filled cell, reduced to the visible ones."""

    fractions: npt.NDArray[np.float64]
    """Share of the values at or below the point, ascending; the last is 1."""
    values: Bounds
    """Value at the point, ns."""
    counts: npt.NDArray[np.uint64]
    """Number of values at or below the point."""

    @property
    def nines(self) -> npt.NDArray[np.float64]:
        """The usual x axis, log10(1 / (1 - fraction)): 1 is p90, 2 is p99. The last point (fraction 1) is at the end of
        the last value but one, so that it can be drawn."""
        total = float(self.counts[-1]) if self.counts.size else 1.0
        rest = np.maximum(1.0 - self.fractions, 0.5 / total)
        return -np.log10(rest)


def spectrum(histogram: Histogram, points: int = 400) -> Spectrum:
    """Return points for a percentile plot, evenly spread over the nines; at most about `points`; empty when empty."""
    _, upper, counts = filled_bounds(histogram)
    running = np.cumsum(counts)
    total = running[-1] if counts.size else np.uint64(1)
    whole = Spectrum(running / total, upper, running)
    if counts.size <= points:
        return whole
    nines = whole.nines
    wanted = np.linspace(nines[0], nines[-1], points)
    keep = np.unique(np.concatenate([np.searchsorted(nines, wanted), [counts.size - 1]]))
    return Spectrum(whole.fractions[keep], whole.values[keep], whole.counts[keep])
