"""A histogram that keeps only the cells that are not 0.

A histogram of the engine has 27,648 cells (216 KiB) of which a few hundred are ever used. A decoder holds them for
every object of a fleet, and an enemy may claim thousands: so the array of all cells is made when it is asked for, and
belongs to whoever asked. Percentiles, differences and sums do not ask for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.monitor.latency import layout_of
from heliograph.monitor.model import Cells, Counts, Histogram

__all__ = ["Form", "SparseHistogram", "added", "changed", "sparse_cells"]


class Form(NamedTuple):
    """What decides a histogram's cells."""

    digits: int
    lowest: int
    highest: int
    cells: int


class SparseHistogram(Histogram):
    """As `Histogram`; `counts` is made anew at each reading."""

    __slots__ = ("cells", "numbers")

    cells: Cells
    """Positions of the cells that are not 0, rising."""
    numbers: Counts
    """What they hold."""

    def __init__(
        self,
        form: Form | SparseHistogram,
        cells: Cells,
        numbers: Counts,
        above: int = 0,
        negative: int = 0,
        total_ns: int = 0,
    ) -> None:
        """Keep the cells given; neither array may be written to any more. The form may be another histogram's."""
        put = object.__setattr__  # the class is frozen, and a decoder makes very many
        put(self, "cells", cells)
        put(self, "numbers", numbers)
        put(self, "above", above)
        put(self, "negative", negative)
        put(self, "total_ns", total_ns)
        put(self, "digits", form.digits)
        put(self, "lowest", form.lowest)
        put(self, "highest", form.highest)

    @property
    def counts(self) -> Counts:
        """All cells."""
        dense = np.zeros(layout_of(self.digits, self.lowest, self.highest).cells, np.uint64)
        dense[self.cells] = self.numbers
        return dense

    @property
    def count(self) -> int:
        """Number of values, always the sum of the cells."""
        return int(self.numbers.sum())

    @property
    def size(self) -> int:
        """Number of cells, filled or not."""
        return layout_of(self.digits, self.lowest, self.highest).cells

    def filled(self) -> tuple[Cells, Counts]:
        """Positions, rising, and contents of the cells that are not 0."""
        return self.cells, self.numbers

    def minus(self, older: Histogram | None) -> Histogram:
        """The values recorded since `older`, exactly; all of them when `older` is None.

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
        """Whether another histogram, of either kind, has the same form and counted the same."""
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
    """Positions, rising, and contents of the cells that are not 0."""
    return histogram.filled()


def changed(before: tuple[Cells, Counts], now: tuple[Cells, Counts]) -> tuple[Cells, Counts]:
    """Positions of the cells that differ, rising, and by how much, modulo 2^64."""
    if len(before[0]) == len(now[0]) and np.array_equal(before[0], now[0]):
        differences = now[1] - before[1]
        moved = np.flatnonzero(differences)
        return now[0][moved], differences[moved]
    return added(now, (before[0], np.uint64(0) - before[1]))


def added(before: tuple[Cells, Counts], change: tuple[Cells, Counts]) -> tuple[Cells, Counts]:
    """The cells after a change, those that are not 0. Nothing of `change` is kept."""
    cells, numbers = before
    if not len(cells):
        both, sums = change[0].copy(), change[1].copy()
    elif not len(change[0]):
        return before
    else:
        places = np.minimum(np.searchsorted(cells, change[0]), len(cells) - 1)
        if (cells[places] == change[0]).all():  # what most changes find
            both, sums = cells, numbers.copy()
            sums[places] += change[1]
        else:
            both, where = np.unique(np.concatenate((cells, change[0])), return_inverse=True)
            sums = np.zeros(len(both), np.uint64)
            sums[where[: len(cells)]] = numbers
            sums[where[len(cells) :]] += change[1]
    if sums.all():
        return both, sums
    kept = np.flatnonzero(sums)
    return both[kept], sums[kept]
