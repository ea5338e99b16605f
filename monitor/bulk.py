"""Sums and percentiles of many histograms at once: a few array operations in place of thousands of small ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from heliograph.monitor.latency import cell_of, highest_of, ranks_of
from heliograph.monitor.model import Cells, Histogram

__all__ = ["Run", "percentiles_since", "runs"]

_Shape = tuple[int, int, int, int]


def _shape(histogram: Histogram) -> _Shape:
    return histogram.digits, histogram.lowest, histogram.highest, histogram.size


class Run:
    """The filled cells of histograms of one layout, one histogram after the other."""

    def __init__(self, histograms: Sequence[Histogram]) -> None:
        """Join the cells of the histograms."""
        self.digits, self.lowest, self.highest, self.size = _shape(histograms[0])
        self.keys, self.cells, counts = self._joined(histograms)
        self.counts = counts
        self.above = np.array([one.above for one in histograms], np.int64)
        self.offsets = np.arange(len(histograms)) * self.size
        self.begins = np.searchsorted(self.keys, self.offsets)
        self.ends = np.append(self.begins[1:], len(self.keys))

    def _joined(self, histograms: Sequence[Histogram]) -> tuple[Cells, Cells, npt.NDArray[np.uint64]]:
        filled = [one.filled() for one in histograms]
        cells = np.concatenate([one[0] for one in filled])
        owners = np.repeat(np.arange(len(histograms)), [len(one[0]) for one in filled])
        return owners * self.size + cells, cells, np.concatenate([one[1] for one in filled])

    def subtract(self, older: Sequence[Histogram | None]) -> None:
        """Leave the values recorded since older histograms; all values where there is none, or it was restarted."""
        known = [n for n, one in enumerate(older) if one and _shape(one) == _shape_of(self)]
        if not known or not len(self.keys):
            return
        owners = np.array(known)
        before = [one for one in (older[n] for n in known) if one]
        keys, _, counts = self._joined(before)
        local = keys // self.size
        keys += (owners[local] - local) * self.size
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        fell = (self.keys[at] != keys) | (self.counts[at] < counts)
        grew = np.ones(len(known), bool)
        grew[local[fell]] = False
        kept = grew[local]
        self.counts = self.counts.copy()
        self.counts[at[kept]] -= counts[kept]
        self.above[owners] -= np.where(grew, [one.above for one in before], 0)

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

    def _running(self) -> npt.NDArray[np.uint64]:
        return np.concatenate((np.zeros(1, np.uint64), np.cumsum(self.counts)))


def _shape_of(run: Run) -> _Shape:
    return run.digits, run.lowest, run.highest, run.size


def runs(histograms: Sequence[Histogram]) -> Iterator[tuple[Sequence[int], Run]]:
    """Yield the histograms of each layout: their indexes, and the run."""
    found: dict[_Shape, list[int]] = {}
    for index, histogram in enumerate(histograms):
        found.setdefault(_shape(histogram), []).append(index)
    for indexes in found.values():
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
