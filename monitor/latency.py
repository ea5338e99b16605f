"""Latency read from HDR counts: the bucket layout, percentiles, the spectrum, jitter.

The one percentile rule of the whole product: the value at p is the value of rank ``ceil(p * n)``, at least 1, among the
n values in order, shown as the highest value its bucket holds. Percentiles are read last, from counts that were added
or subtracted cell by cell; they are never averaged.

The layout is HdrHistogram's for any number of significant digits. A bucket holds values ``lower_bounds`` to
``upper_bounds``; both ends depend only on (digits, lowest, highest) and are computed once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from heliograph.monitor.model import Histogram

__all__ = [
    "Layout",
    "Spectrum",
    "cell_of",
    "jitter",
    "layout_of",
    "lower_bounds",
    "maximum",
    "mean",
    "merged",
    "minimum",
    "never_lost",
    "percentile",
    "percentiles",
    "spectrum",
    "upper_bounds",
]

_RANK_SLACK = 1e-9
_RANK_SLACK_RELATIVE = 2.3e-16
"""0.99 * 100 is 99.00000000000001 in binary; a rank is not raised by such dust.  As in the C kernel of the history."""

Bounds = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Layout:
    """Shape of the counts array for one set of parameters."""

    unit_magnitude: int
    sub_bucket_half_magnitude: int
    cells: int


@lru_cache(maxsize=64)
def layout_of(digits: int, lowest: int, highest: int) -> Layout:
    """Layout of HdrHistogram for these parameters.

    Raises:
        ValueError: digits is not 1 to 5, lowest is below 1, or highest is below twice lowest or above 2^63 - 1.
    """
    if not 1 <= digits <= 5 or lowest < 1 or not 2 * lowest <= highest < 2**63:
        raise ValueError(f"no histogram has {digits} digits from {lowest} to {highest}")
    single_unit = 2 * 10**digits
    sub_bucket_magnitude = math.ceil(math.log2(single_unit))
    unit_magnitude = lowest.bit_length() - 1
    if unit_magnitude + sub_bucket_magnitude > 62:
        raise ValueError(f"no histogram has {digits} digits from {lowest} to {highest}")
    half = sub_bucket_magnitude - 1
    smallest_untrackable = (1 << sub_bucket_magnitude) << unit_magnitude
    buckets = 1
    while smallest_untrackable <= highest:
        smallest_untrackable <<= 1
        buckets += 1
    return Layout(unit_magnitude, half, (buckets + 1) << half)


def cell_of(value: int, digits: int = 3, lowest: int = 1, highest: int = 60_000_000_000) -> int:
    """Cell that counts `value` (0 to `highest`)."""
    layout = layout_of(digits, lowest, highest)
    sub_bucket_count = 2 << layout.sub_bucket_half_magnitude
    scaled = value >> layout.unit_magnitude
    bucket = max(0, (scaled | (sub_bucket_count - 1)).bit_length() - 1 - layout.sub_bucket_half_magnitude)
    return (bucket << layout.sub_bucket_half_magnitude) + (scaled >> bucket)


@lru_cache(maxsize=16)
def _bounds(digits: int, lowest: int, highest: int) -> tuple[Bounds, Bounds]:
    layout = layout_of(digits, lowest, highest)
    half = 1 << layout.sub_bucket_half_magnitude
    index = np.arange(layout.cells, dtype=np.uint64)
    bucket = np.maximum(index // np.uint64(half), np.uint64(1)) - np.uint64(1)
    sub = index - bucket * np.uint64(half)
    shift = bucket + np.uint64(layout.unit_magnitude)
    lower = sub << shift
    upper = lower + (np.uint64(1) << shift) - np.uint64(1)
    lower.flags.writeable = upper.flags.writeable = False
    return lower, upper


def lower_bounds(histogram: Histogram) -> Bounds:
    """Smallest value of each cell, ns."""
    return _bounds(histogram.digits, histogram.lowest, histogram.highest)[0]


def upper_bounds(histogram: Histogram) -> Bounds:
    """Highest value of each cell ("highest equivalent value"), ns."""
    return _bounds(histogram.digits, histogram.lowest, histogram.highest)[1]


def percentiles(histogram: Histogram, fractions: Sequence[float]) -> list[int]:
    """Values at `fractions` (0 to 1), ns; all 0 when the histogram is empty."""
    filled = np.flatnonzero(histogram.counts)
    if not filled.size:
        return [0] * len(fractions)
    running = np.cumsum(histogram.counts[filled])
    total = int(running[-1])
    ranks = [_rank(fraction, total) for fraction in fractions]
    places = np.searchsorted(running, np.array(ranks, dtype=np.uint64), side="left")
    bounds = upper_bounds(histogram)
    return [int(bounds[filled[place]]) for place in places]


def _rank(fraction: float, total: int) -> int:
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(f"a percentile is asked for as a fraction from 0 to 1, not {fraction}")
    product = fraction * total
    return min(total, max(1, math.ceil(product - _RANK_SLACK - product * _RANK_SLACK_RELATIVE)))


def percentile(histogram: Histogram, fraction: float) -> int:
    """Value at `fraction` (0 to 1), ns; 0 when the histogram is empty."""
    return percentiles(histogram, [fraction])[0]


def maximum(histogram: Histogram) -> int:
    """Highest value (of the highest filled cell), ns; 0 when empty. Values above `highest` are not in the cells."""
    filled = np.flatnonzero(histogram.counts)
    return int(upper_bounds(histogram)[filled[-1]]) if filled.size else 0


def minimum(histogram: Histogram) -> int:
    """Lowest value (of the lowest filled cell), ns; 0 when empty."""
    filled = np.flatnonzero(histogram.counts)
    return int(lower_bounds(histogram)[filled[0]]) if filled.size else 0


def mean(histogram: Histogram) -> float:
    """Mean, ns, from the middles of the cells as HdrHistogram computes it; 0.0 when empty."""
    filled = np.flatnonzero(histogram.counts)
    if not filled.size:
        return 0.0
    counts = histogram.counts[filled].astype(np.float64)
    lower = lower_bounds(histogram)[filled].astype(np.float64)
    width = upper_bounds(histogram)[filled].astype(np.float64) - lower + 1.0
    middle = lower + np.floor(width / 2)
    return float((counts * middle).sum() / counts.sum())


def jitter(histogram: Histogram) -> int:
    """p99.9 - p50, ns."""
    high, middle = percentiles(histogram, [0.999, 0.5])
    return high - middle


def merged(histograms: Iterable[Histogram]) -> Histogram | None:
    """All values of histograms of one layout as one histogram; None when there is none.

    Raises:
        ValueError: The layouts differ.
    """
    found = list(histograms)
    if not found:
        return None
    first = found[0]
    if any((h.digits, h.lowest, h.highest) != (first.digits, first.lowest, first.highest) for h in found):
        raise ValueError("histograms of different layouts cannot be added")
    return Histogram(
        counts=np.sum([h.counts for h in found], axis=0, dtype=np.uint64),
        lowest=first.lowest,
        highest=first.highest,
        digits=first.digits,
        above=sum(h.above for h in found),
        negative=sum(h.negative for h in found),
        total_ns=sum(h.total_ns for h in found),
    )


def never_lost(whole: Histogram, recovered: Histogram, count: int) -> Histogram | None:
    """Values of messages whose packets were never lost: `whole` without `recovered`, exactly.

    Args:
        whole: ``total_latency`` or ``order_latency`` of a receiver, over some time.
        recovered: Its ``..._recovered``, over the same time.
        count: By how much ``latency_recovered`` grew in that time.

    Returns:
        None when `recovered` was not on for all of the time, so that what it lacks is in the difference too.

    Raises:
        ValueError: The layouts differ, or `recovered` has values that `whole` has not: they are not of one receiver.
    """
    if (whole.digits, whole.lowest, whole.highest) != (recovered.digits, recovered.lowest, recovered.highest):
        raise ValueError("histograms of different layouts cannot be subtracted")
    if int(recovered.counts.sum()) + recovered.above + recovered.negative != count:
        return None
    if (recovered.counts > whole.counts).any() or recovered.above > whole.above:
        raise ValueError("what was recovered is not among the values")
    return whole.minus(replace(recovered, negative=min(recovered.negative, whole.negative)))


@dataclass(frozen=True, slots=True)
class Spectrum:
    """A percentile plot: one point per filled cell, thinned to what can be seen."""

    fractions: npt.NDArray[np.float64]
    """Share of the values at or below the point, ascending, the last is 1."""
    values: Bounds
    """Value there, ns."""
    counts: npt.NDArray[np.uint64]
    """Number of values at or below the point."""

    @property
    def nines(self) -> npt.NDArray[np.float64]:
        """The usual x axis, log10(1 / (1 - fraction)): 1 is p90, 2 is p99. The last point (fraction 1) is placed where
        the last value but one ends, so that it can be drawn."""
        total = float(self.counts[-1]) if self.counts.size else 1.0
        rest = np.maximum(1.0 - self.fractions, 0.5 / total)
        return -np.log10(rest)


def spectrum(histogram: Histogram, points: int = 400) -> Spectrum:
    """Points for a percentile plot, evenly spread over the nines; at most about `points` of them, empty when empty."""
    filled = np.flatnonzero(histogram.counts)
    running = np.cumsum(histogram.counts[filled])
    total = running[-1] if filled.size else np.uint64(1)
    whole = Spectrum(running / total, upper_bounds(histogram)[filled], running)
    if filled.size <= points:
        return whole
    nines = whole.nines
    wanted = np.linspace(nines[0], nines[-1], points)
    keep = np.unique(np.concatenate([np.searchsorted(nines, wanted), [filled.size - 1]]))
    return Spectrum(whole.fractions[keep], whole.values[keep], whole.counts[keep])
