"""Native Prometheus histograms (sparse exponential buckets) from HDR counts.

Bucket `i` of schema `s` holds the values above 2^((i-1)/2^s) and at most 2^(i/2^s), in seconds: each power of two is
divided into 2^s buckets. The count of an HDR cell goes to the bucket of the cell's middle. A cell is at most 0.1 %
wide; a bucket is 2.2 % wide with schema 5 and 0.27 % with schema 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from heliograph.monitor.latency import ENGINE_CELLS, filled_bounds, lower_bounds, upper_bounds
from heliograph.monitor.model import Histogram

__all__ = ["SCHEMA", "SCHEMAS", "ZERO_THRESHOLD", "Native", "native"]

SCHEMA = 5
SCHEMAS = range(-4, 9)
ZERO_THRESHOLD = 2.0**-31
"""Seconds, below 1 ns: the zero bucket holds the values of 0 ns. A power of two is a bucket boundary in each schema."""
_JOINED = 3
"""Largest distance of filled buckets in one span: two empty buckets cost less than a new span."""


_ZERO = np.iinfo(np.int64).min
"""In place of an index: the zero bucket."""

Indexes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Native:
    """The buckets of a native histogram."""

    zero_count: int
    spans: tuple[tuple[int, int], ...]
    """Empty buckets before the span (for the first: the index of its first bucket) and number of its buckets."""
    deltas: Indexes
    """Difference of each bucket's count from the previous bucket's, over all spans; the first from 0."""


def native(histogram: Histogram, schema: int = SCHEMA) -> Native:
    """Return the buckets of a histogram.

    Args:
        histogram: HDR counts. Values above its range count as the upper end of the range.
        schema: Resolution, one of `SCHEMAS`.
    """
    cells, found = histogram.filled()
    indexes, counts = _indexes(histogram, cells, schema), found.astype(np.int64)
    if histogram.above:
        top = _bucket(np.array([histogram.highest], dtype=np.float64), schema)
        indexes, counts = np.append(indexes, top), np.append(counts, histogram.above)
    is_zero = indexes == _ZERO
    zero_count = int(counts[is_zero].sum())
    indexes, counts = indexes[~is_zero], counts[~is_zero]
    if not counts.size:
        return Native(zero_count, (), np.zeros(0, dtype=np.int64))
    first = np.flatnonzero(np.diff(indexes, prepend=indexes[0] - 1))
    indexes, counts = indexes[first], np.add.reduceat(counts, first)
    opens = np.flatnonzero(np.diff(indexes, prepend=indexes[0] - _JOINED - 1) > _JOINED)
    closes = np.append(opens[1:], indexes.size) - 1
    lengths = indexes[closes] - indexes[opens] + 1
    offsets = indexes[opens] - np.append(0, indexes[closes[:-1]] + 1)
    before = np.cumsum(lengths) - lengths
    dense = np.zeros(int(lengths.sum()), dtype=np.int64)
    dense[indexes + np.repeat(before - indexes[opens], closes - opens + 1)] = counts
    spans = tuple(zip(offsets.tolist(), lengths.tolist(), strict=True))
    return Native(zero_count, spans, np.diff(dense, prepend=0))


def _indexes(histogram: Histogram, cells: npt.NDArray[np.intp], schema: int) -> Indexes:
    """Return the bucket of each cell; ascending, as the cells are."""
    if histogram.size > ENGINE_CELLS:
        lower, upper, _ = filled_bounds(histogram)
        return _bucket(_middle(lower, upper), schema)
    return _all_indexes(histogram.digits, histogram.lowest, histogram.highest, schema)[cells]


@lru_cache(maxsize=8)
def _all_indexes(digits: int, lowest: int, highest: int, schema: int) -> Indexes:
    empty = Histogram(np.zeros(0, dtype=np.uint64), lowest, highest, digits)
    return _bucket(_middle(lower_bounds(empty), upper_bounds(empty)), schema)


def _middle(lower: npt.NDArray[np.uint64], upper: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    return (lower.astype(np.float64) + upper.astype(np.float64)) / 2


def _bucket(values_ns: npt.NDArray[np.float64], schema: int) -> Indexes:
    seconds = np.maximum(values_ns / 1e9, ZERO_THRESHOLD)
    indexes = np.ceil(np.log2(seconds) * 2.0**schema).astype(np.int64)
    return np.where(values_ns / 1e9 < ZERO_THRESHOLD, _ZERO, indexes)
