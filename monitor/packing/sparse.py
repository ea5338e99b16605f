"""A histogram that keeps only the cells that are not 0.

A histogram of the engine has 27,648 cells (216 KiB) of which a few hundred are ever used. A decoder holds them for
every object of a fleet, and an enemy may claim thousands: so the array of all cells is made when it is asked for, and
belongs to whoever asked.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heliograph.monitor.latency import layout_of
from heliograph.monitor.model import Counts, Histogram

__all__ = ["Form", "SparseHistogram", "added", "changed", "sparse_cells"]

Cells = npt.NDArray[np.int64]


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
        self, form: Form, cells: Cells, numbers: Counts, above: int = 0, negative: int = 0, total_ns: int = 0
    ) -> None:
        """Keep the cells given; neither array may be written to any more."""
        own = {"cells": cells, "numbers": numbers, "above": above, "negative": negative, "total_ns": total_ns}
        shape = {"digits": form.digits, "lowest": form.lowest, "highest": form.highest}
        for name, value in {**own, **shape}.items():
            object.__setattr__(self, name, value)

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
    if isinstance(histogram, SparseHistogram):
        return histogram.cells, histogram.numbers
    cells = np.flatnonzero(histogram.counts)
    return cells, histogram.counts[cells]


def changed(before: tuple[Cells, Counts], now: tuple[Cells, Counts]) -> tuple[Cells, Counts]:
    """Positions of the cells that differ, rising, and by how much, modulo 2^64."""
    if len(before[0]) == len(now[0]) and np.array_equal(before[0], now[0]):
        differences = now[1] - before[1]
        moved = np.flatnonzero(differences)
        return now[0][moved], differences[moved]
    return added(now, (before[0], np.uint64(0) - before[1]))


def added(before: tuple[Cells, Counts], change: tuple[Cells, Counts]) -> tuple[Cells, Counts]:
    """The cells after a change, those that are not 0."""
    if not len(before[0]):
        both, numbers = change
    else:
        both, places = np.unique(np.concatenate((before[0], change[0])), return_inverse=True)
        numbers = np.zeros(len(both), np.uint64)
        numbers[places[: len(before[0])]] = before[1]
        numbers[places[len(before[0]) :]] += change[1]
    kept = np.flatnonzero(numbers)
    return (both, numbers) if len(kept) == len(both) else (both[kept], numbers[kept])
