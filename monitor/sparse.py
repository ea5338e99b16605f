"""A histogram that stores only the cells that are not 0.

A histogram of the engine has 27,648 cells (216 KiB), of which a few hundred are used. Readers of segments keep several
snapshots of every object of a fleet; a forged frame to a decoder may claim thousands of objects. So the array of all
cells is built only on request, for the caller. Percentiles, differences and sums do not need it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from heliograph.monitor import _cells
from heliograph.monitor.latency import layout_of
from heliograph.monitor.model import Cells, Counts, Histogram

__all__ = ["Form", "SparseHistogram", "added", "changed", "grown", "merged", "sparse_cells"]


class Form(NamedTuple):
    """Parameters that determine a histogram's cells."""

    digits: int
    lowest: int
    highest: int
    cells: int


class SparseHistogram(Histogram):
    """A `Histogram` with sparse cells; `counts` is computed at each access."""

    __slots__ = ("_count", "cells", "numbers")

    cells: Cells
    """Positions of the cells that are not 0, in rising order."""
    numbers: Counts
    """Content of these cells."""
    _count: int | None

    def __init__(
        self,
        form: Form | SparseHistogram,
        cells: Cells,
        numbers: Counts,
        above: int = 0,
        negative: int = 0,
        total_ns: int = 0,
        count: int | None = None,
    ) -> None:
        """Store the cells; neither array may be modified afterwards. The form may be another histogram.

        `count` is the sum of the numbers; None: computed at its first use.
        """
        put = object.__setattr__  # the class is frozen, and a decoder creates very many
        put(self, "cells", cells)
        put(self, "numbers", numbers)
        put(self, "above", above)
        put(self, "negative", negative)
        put(self, "total_ns", total_ns)
        put(self, "digits", form.digits)
        put(self, "lowest", form.lowest)
        put(self, "highest", form.highest)
        put(self, "_count", count)

    @property
    def counts(self) -> Counts:
        """All cells; read-only."""
        dense = np.zeros(layout_of(self.digits, self.lowest, self.highest).cells, np.uint64)
        dense[self.cells] = self.numbers
        dense.flags.writeable = False
        return dense

    @property
    def count(self) -> int:
        """Number of values: the sum of the cells."""
        found = self._count
        if found is None:
            found = int(self.numbers.sum())
            object.__setattr__(self, "_count", found)
        return found

    @property
    def size(self) -> int:
        """Number of cells, filled or not."""
        return layout_of(self.digits, self.lowest, self.highest).cells

    def filled(self) -> tuple[Cells, Counts]:
        """Positions, in rising order, and contents of the cells that are not 0."""
        return self.cells, self.numbers

    def minus(self, older: Histogram | None) -> Histogram:
        """The values recorded since `older`; all values if `older` is None.

        Raises:
            ValueError: `older` has another number of cells.
        """
        if older is None:
            return self
        if older.size != self.size:
            raise ValueError("histograms of different layouts cannot be subtracted")
        cells, numbers = older.filled()
        return SparseHistogram(
            self,
            *added((self.cells, self.numbers), (cells, np.uint64(0) - numbers)),
            self.above - older.above,
            self.negative - older.negative,
            self.total_ns - older.total_ns,
        )

    def __eq__(self, other: object) -> bool:
        """Whether another histogram, of either class, has the same form and the same counts."""
        if not isinstance(other, Histogram):
            return NotImplemented
        cells, numbers = sparse_cells(other)
        same = np.array_equal(self.cells, cells) and np.array_equal(self.numbers, numbers)
        return same and _rest(self) == _rest(other)

    def __hash__(self) -> int:
        return hash(_rest(self))


def _rest(histogram: Histogram) -> tuple[int, ...]:
    return (
        *(histogram.digits, histogram.lowest, histogram.highest),
        *(histogram.above, histogram.negative, histogram.total_ns),
    )


def sparse_cells(histogram: Histogram) -> tuple[Cells, Counts]:
    """Positions, in rising order, and contents of the cells that are not 0."""
    return histogram.filled()


def changed(before: tuple[Cells, Counts], now: tuple[Cells, Counts]) -> tuple[Cells, Counts]:
    """Positions, in rising order, of the cells that differ, and the differences modulo 2^64."""
    if len(before[0]) == len(now[0]) and np.array_equal(before[0], now[0]):
        differences = now[1] - before[1]
        moved = np.flatnonzero(differences)
        return now[0][moved], differences[moved]
    return added(now, (before[0], np.uint64(0) - before[1]))


def added(before: tuple[Cells, Counts], change: tuple[Cells, Counts]) -> tuple[Cells, Counts]:
    """The cells that are not 0 after a change. The result does not share memory with `change`."""
    cells, numbers = before
    if not len(cells):
        both, sums = change[0].copy(), change[1].copy()
    elif not len(change[0]):
        return before
    else:
        positions = np.minimum(np.searchsorted(cells, change[0]), len(cells) - 1)
        if (cells[positions] == change[0]).all():  # the usual case
            both, sums = cells, numbers.copy()
            sums[positions] += change[1]
        else:
            both, where = np.unique(np.concatenate((cells, change[0])), return_inverse=True)
            sums = np.zeros(len(both), np.uint64)
            sums[where[: len(cells)]] = numbers
            sums[where[len(cells) :]] += change[1]
    if sums.all():
        return both, sums
    kept = np.flatnonzero(sums)
    return both[kept], sums[kept]


def grown(now: Histogram, older: Histogram | None) -> Histogram | None:
    """Return the values recorded since `older`, all if it is None; None when a count fell or the layouts differ."""
    if older is None:
        return now
    if _layout(now) != _layout(older):
        return None
    found = _cells.grown(*now.filled(), *older.filled())
    if found is None:
        return None
    above, negative, total_ns = now.above - older.above, now.negative - older.negative, now.total_ns - older.total_ns
    return SparseHistogram(_form(now), *_arrays(found), above, negative, total_ns)


def merged(histograms: Iterable[Histogram]) -> Histogram | None:
    """Merge all values of histograms of one layout into one histogram; None when there is no histogram.

    Raises:
        ValueError: The layouts differ.
    """
    found = list(histograms)
    if len(found) < 2:
        return found[0] if found else None
    first = found[0]
    if any(_layout(one) != _layout(first) for one in found):
        raise ValueError("histograms of different layouts cannot be added")
    return SparseHistogram(
        _form(first),
        *_arrays(_cells.total([one.filled() for one in found], first.size)),
        sum(one.above for one in found),
        sum(one.negative for one in found),
        sum(one.total_ns for one in found),
    )


def _layout(histogram: Histogram) -> tuple[int, int, int]:
    return histogram.digits, histogram.lowest, histogram.highest


def _form(histogram: Histogram) -> Form:
    return Form(*_layout(histogram), histogram.size)


def _arrays(found: tuple[bytes, bytes]) -> tuple[Cells, Counts]:
    """Positions and contents from the C module as read-only arrays."""
    return np.frombuffer(found[0], np.int64), np.frombuffer(found[1], np.uint64)
