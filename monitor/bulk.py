"""Buckets and percentiles of many histograms at once: a call of C in place of thousands of small array operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from heliograph.monitor import _cells
from heliograph.monitor.latency import cell_of, highest_of
from heliograph.monitor.model import Histogram

__all__ = ["Digest", "Summary", "digests", "summaries_since"]

_SAFE = 2**62
"""Numbers of values below it are exact."""
_RESTARTED, _INEXACT = 1, 2

_Shape = tuple[int, int, int, int]


def _shape(histogram: Histogram) -> _Shape:
    return histogram.digits, histogram.lowest, histogram.highest, histogram.size


@dataclass(frozen=True, slots=True)
class Digest:
    """Histograms of one layout now, and their values since older ones; arrays have a column for each histogram."""

    indexes: Sequence[int]
    """Their places among all."""
    below: npt.NDArray[np.uint64]
    """Number of values at most each bound now; the last row has all values, also those above the range."""
    percentiles: npt.NDArray[np.int64]
    """Values at the fractions, ns, a row each; -1: there are no values."""
    highest: npt.NDArray[np.int64]
    """Highest values, ns, without those above the range; -1: there are none."""
    totals: npt.NDArray[np.uint64]
    """Number of values within the range."""
    is_restarted: npt.NDArray[np.bool_]
    """Whether a count is below the older one, so that all values count."""
    is_exact: npt.NDArray[np.bool_]
    """Whether the number of values is exact."""


def digests(
    newer: Sequence[Histogram],
    older: Sequence[Histogram | None],
    fractions: Sequence[float],
    bounds_ns: Sequence[int] = (),
    *,
    has_above: bool = True,
) -> Iterator[Digest]:
    """Yield the digests of all histograms, one for each layout.

    Args:
        newer: The histograms now.
        older: Those at the start of the interval; None, and one of another layout: all values count.
        fractions: From 0 to 1: the percentiles.
        bounds_ns: Ascending upper bounds, ns. A value counts with the highest value of its cell.
        has_above: Whether values above the range count, as the upper end of the range.
    """
    found: dict[_Shape, list[int]] = {}
    for index, histogram in enumerate(newer):
        found.setdefault(_shape(histogram), []).append(index)
    for shape, indexes in found.items():
        alike = [one if (one := older[at]) is not None and _shape(one) == shape else None for at in indexes]
        yield _digest(shape, indexes, [newer[at] for at in indexes], alike, fractions, bounds_ns, has_above)


def _digest(
    shape: _Shape,
    indexes: Sequence[int],
    newer: Sequence[Histogram],
    older: Sequence[Histogram | None],
    fractions: Sequence[float],
    bounds_ns: Sequence[int],
    has_above: bool,
) -> Digest:
    digits, lowest, highest, _ = shape
    last = cell_of(highest, digits, lowest, highest)
    below, places, tops, totals, flags = _cells.digest(
        [(*one.filled(), one.above if has_above else 0) for one in newer],
        [(*one.filled(), one.above if has_above else 0) if one is not None else None for one in older],
        _cells_within(bounds_ns, digits, lowest, highest),
        fractions,
        last,
    )

    def values(of: bytes) -> npt.NDArray[np.int64]:
        cells = np.frombuffer(of, np.int64)
        ends = highest_of(np.maximum(cells, 0), digits, lowest, highest).astype(np.int64)
        return np.where(cells < 0, -1, ends)

    marks = np.frombuffer(flags, np.uint8)
    return Digest(
        indexes,
        np.frombuffer(below, np.uint64).reshape(-1, len(indexes)),
        values(places).reshape(-1, len(indexes)),
        values(tops),
        counts := np.frombuffer(totals, np.uint64),
        marks & _RESTARTED != 0,
        (marks & _INEXACT == 0) & (counts < _SAFE),
    )


def _cells_within(bounds_ns: Sequence[int], digits: int, lowest: int, highest: int) -> npt.NDArray[np.int64]:
    """Return the number of cells whose highest value is at most each bound."""
    cells = [cell_of(min(bound, highest), digits, lowest, highest) for bound in bounds_ns]
    tops = highest_of(np.array(cells, np.int64), digits, lowest, highest).tolist()
    found = zip(cells, tops, bounds_ns, strict=True)
    return np.array([cell + (top <= bound) for cell, top, bound in found], np.int64)


@dataclass(frozen=True, slots=True)
class Summary:
    """The values of one histogram in an interval."""

    count: int
    percentiles: Sequence[int]
    """Values at the fractions, ns; values above the range are left out."""
    maximum: int


def summaries_since(
    newer: Sequence[Histogram], older: Sequence[Histogram | None], fractions: Sequence[float]
) -> Iterator[tuple[int, Summary | None]]:
    """Yield the summary of the values since an older histogram, by index; None: there are no values.

    Indexes are left out where the sum of the counts is not exact, the older histogram has another layout, or a cell
    fell.
    """
    for found in digests(newer, older, fractions, has_above=False):
        known = found.is_exact & ~found.is_restarted
        rows = zip(
            found.indexes,
            known.tolist(),
            found.totals.tolist(),
            found.percentiles.T.tolist(),
            found.highest.tolist(),
            strict=True,
        )
        for index, is_known, count, values, most in rows:
            before = older[index]
            if is_known and (before is None or _shape(before) == _shape(newer[index])):
                yield index, Summary(count, values, most) if count else None
