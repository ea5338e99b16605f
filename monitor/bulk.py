"""Sums and percentiles of many histograms at once: a few array operations in place of thousands of small ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from heliograph.monitor.latency import cell_of, highest_of, ranks_of
from heliograph.monitor.model import Cells, Histogram

__all__ = ["Run", "Summary", "percentiles_since", "runs", "summaries_since"]

_SAFE = 2.0**62
"""Sums of counts below it are exact."""
_TOGETHER = 32
"""Largest number of histograms of a run: its arrays stay in the processor's cache."""

_Shape = tuple[int, int, int, int]


def _shape(histogram: Histogram) -> _Shape:
    return histogram.digits, histogram.lowest, histogram.highest, histogram.size


class Run:
    """The filled cells of histograms of one layout, one histogram after the other."""

    def __init__(self, histograms: Sequence[Histogram]) -> None:
        """Join the cells of the histograms."""
        self.digits, self.lowest, self.highest, self.size = _shape(histograms[0])
        self._filled = [one.filled() for one in histograms]
        self.cells = np.concatenate([cells for cells, _ in self._filled])
        self.counts = np.concatenate([counts for _, counts in self._filled])
        self.above = np.array([one.above for one in histograms], np.int64)
        self.offsets = np.arange(len(histograms)) * self.size
        self.ends = np.cumsum([len(cells) for cells, _ in self._filled])
        self.begins = np.append(0, self.ends[:-1])
        self._sums: npt.NDArray[np.uint64] | None = None

    @cached_property
    def keys(self) -> Cells:
        """Rising numbers of the cells, which no two histograms share."""
        keys: Cells = np.repeat(self.offsets, self.ends - self.begins) + self.cells
        return keys

    def subtract(self, older: Sequence[Histogram | None]) -> list[int]:
        """Leave the values recorded since older histograms; all values where there is none, or it was restarted.

        Returns:
            The indexes of the histograms that were restarted.
        """
        known = [n for n, one in enumerate(older) if one is not None and _shape(one) == _shape_of(self)]
        if not known:
            return []
        if not len(self.cells):
            return [n for n in known if (one := older[n]) is not None and one.filled()[0].size]
        owners = np.array(known)
        before = [one for one in (older[n] for n in known) if one is not None]
        if len(known) == len(self._filled) and self._has_cells_of(before):
            counts = np.concatenate([one.filled()[1] for one in before])
            if (self.counts >= counts).all():
                self.counts, self._sums = self.counts - counts, None
                self.above -= [one.above for one in before]
                return []
        keys, counts, at, local = self._searched(owners, before)
        fell = (self.keys[at] != keys) | (self.counts[at] < counts)
        grew = np.ones(len(known), bool)
        grew[local[fell]] = False
        kept = grew[local]
        self.counts = self.counts.copy()
        self.counts[at[kept]] -= counts[kept]
        self._sums = None
        self.above[owners] -= np.where(grew, [one.above for one in before], 0)
        restarted: list[int] = owners[~grew].tolist()
        return restarted

    def _has_cells_of(self, older: Sequence[Histogram]) -> bool:
        """Whether the same cells are filled: a reading shares their positions with the one before, if none is new."""
        pairs = zip(older, self._filled, strict=True)
        return all(one.filled()[0] is cells for one, (cells, _) in pairs)

    def _searched(
        self, owners: Cells, older: Sequence[Histogram]
    ) -> tuple[Cells, npt.NDArray[np.uint64], Cells, Cells]:
        """Return keys and counts of the cells of older histograms, their places in this run, and their histograms."""
        filled = [one.filled() for one in older]
        local = np.repeat(np.arange(len(older)), [len(cells) for cells, _ in filled])
        keys = owners[local] * self.size + np.concatenate([cells for cells, _ in filled])
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return keys, np.concatenate([counts for _, counts in filled]), at, local

    def below(self, cells: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Return the number of values of each histogram in the cells before each of `cells`, and in all cells."""
        running = self._running()
        begins = running[self.begins]
        return running[np.searchsorted(self.keys, self.offsets[:, None] + cells)] - begins[:, None], (
            running[self.ends] - begins
        )

    def percentiles(self, fractions: Sequence[float]) -> list[list[int] | None]:
        """Return the values of each histogram at the fractions, ns; None: it has no values.

        A value above the range counts as the upper end of the range.
        """
        running = self._running()
        begins = running[self.begins]
        inside = (running[self.ends] - begins).astype(np.int64)
        total = inside + self.above
        ranks = ranks_of(fractions, total)
        last = cell_of(self.highest, self.digits, self.lowest, self.highest)
        cells = np.full(ranks.shape, last)
        found = (ranks > 0) & (ranks <= inside[:, None])
        at = np.searchsorted(running[1:], begins[:, None] + ranks.astype(np.uint64))
        cells[found] = self.cells[at[found]]
        values = highest_of(cells, self.digits, self.lowest, self.highest)
        return [row if count else None for count, row in zip(total.tolist(), values.tolist(), strict=True)]

    def totals(self) -> list[int]:
        """Return the number of values in the cells of each histogram."""
        running = self._running()
        found: list[int] = (running[self.ends] - running[self.begins]).tolist()
        return found

    def maxima(self) -> list[int | None]:
        """Return the highest value of each histogram, ns, without those above the range; None: it has no values."""
        filled = np.flatnonzero(self.counts)
        if not filled.size:
            return [None] * len(self.offsets)
        last = np.searchsorted(filled, self.ends) - 1
        at = filled[np.maximum(last, 0)]
        values = highest_of(self.cells[at], self.digits, self.lowest, self.highest).tolist()
        found = (last >= 0) & (at >= self.begins)
        return [value if has else None for value, has in zip(values, found.tolist(), strict=True)]

    def _running(self) -> npt.NDArray[np.uint64]:
        """Return the number of values before each cell, and at last of all."""
        if self._sums is None:
            self._sums = np.zeros(len(self.counts) + 1, np.uint64)
            np.cumsum(self.counts, out=self._sums[1:])
        return self._sums


def _shape_of(run: Run) -> _Shape:
    return run.digits, run.lowest, run.highest, run.size


def runs(histograms: Sequence[Histogram]) -> Iterator[tuple[Sequence[int], Run]]:
    """Yield the histograms of each layout, some at a time: their indexes, and the run."""
    found: dict[_Shape, list[int]] = {}
    for index, histogram in enumerate(histograms):
        found.setdefault(_shape(histogram), []).append(index)
    for members in found.values():
        for begin in range(0, len(members), _TOGETHER):
            indexes = members[begin : begin + _TOGETHER]
            yield indexes, Run([histograms[index] for index in indexes])


def percentiles_since(
    newer: Sequence[Histogram], older: Sequence[Histogram | None], fractions: Sequence[float]
) -> list[list[int] | None]:
    """Return the percentiles, ns, of the values of each histogram since an older one; None: there are no values."""
    found: list[list[int] | None] = [None] * len(newer)
    for indexes, run in runs(newer):
        run.subtract([older[index] for index in indexes])
        for index, values in zip(indexes, run.percentiles(fractions), strict=True):
            found[index] = values
    return found


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
    for indexes, run in runs(newer):
        if float(run.counts.sum(dtype=np.float64)) >= _SAFE:
            continue
        before = [older[index] for index in indexes]
        left_out = {n for n, one in enumerate(before) if one is not None and _shape(one) != _shape_of(run)}
        left_out.update(run.subtract(before))
        run.above[:] = 0
        counts = run.totals()
        for n, values in enumerate(zip(counts, run.percentiles(fractions), run.maxima(), strict=True)):
            if n not in left_out:
                count, found, most = values
                yield indexes[n], Summary(count, found, most) if found is not None and most is not None else None
