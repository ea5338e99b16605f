"""Histograms in a segment: every size and offset of a block is checked before it is used.

A histogram of 216 KiB is read only when it has counted, and only the parts of it that ever counted. Every count changes
one of the words above, negative, sum or, for a value of 0 ns, the first cell; these lie together at the start of a
block. The engine changes a count and the sum one after the other, so a block that has counted is read once more
although its first words rest.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass

import numpy as np

from heliograph.monitor.header import Header
from heliograph.monitor.latency import layout_of
from heliograph.monitor.model import Histogram
from heliograph.monitor.segment_file import SegmentFile
from heliograph.monitor.sparse import Form, SparseHistogram

__all__ = ["Blocks", "Budget"]

HISTOGRAM_HEAD_BYTES = 64
HISTOGRAM_MAGIC = 0x48445231
_SHAPE_BYTES = 32
_FIRST_BYTES = HISTOGRAM_HEAD_BYTES + 8
"""The head and the first cell."""


class Budget:
    """Bytes of histograms that one reading may still take.

    Blocks do not overlap, so the histograms of a valid file are never larger than the file. Without this limit, a file
    with thousands of objects that point to one block would keep a monitor busy.
    """

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        """Create the budget for a file of `size` bytes."""
        self.left = size

    def spend(self, size: int) -> bool:
        """Take `size` bytes; returns False when fewer are left."""
        self.left -= size
        return self.left >= 0


@dataclass(slots=True)
class _Known:
    """A block as it was read last."""

    first: bytes
    """The head and the first cell."""
    histogram: SparseHistogram
    rests: bool = False
    """Whether the two last readings of all cells had the same first bytes."""


class Blocks:
    """Reads histograms; keeps the last reading of each block."""

    __slots__ = ("_file", "_head", "_known", "_order", "_swapped")

    def __init__(self, file: SegmentFile, order: str) -> None:
        """Read from a file in a byte order, "<" or ">"."""
        self._file = file
        self._order = order
        self._head = struct.Struct(f"{order}IQQIIQQQ")
        self._swapped = order != ("<" if sys.byteorder == "little" else ">")
        self._known: dict[int, _Known] = {}

    def read(self, header: Header, offset: int, budget: Budget) -> Histogram:
        """Return the histogram at an offset; the same object while it has not counted.

        Raises:
            SegmentError: There is no histogram, or histograms overlap.
        """
        if offset % 64:
            raise self._file.damaged(f"it has a histogram at {offset}, which is not a multiple of 64")
        known = self._known.get(offset)
        if known is None:
            self._file.check(header, offset, HISTOGRAM_HEAD_BYTES, "the head of a histogram")
            cells = self._cells(header, offset)
        else:
            cells = known.histogram.size
            self._file.check(header, offset, HISTOGRAM_HEAD_BYTES + 8 * cells, "a histogram")
        if not budget.spend(8 * cells):
            raise self._file.damaged("its histograms overlap")
        if known is not None and known.rests and self._file.read(offset, _FIRST_BYTES, "a histogram") == known.first:
            return known.histogram
        older = known.histogram if known is not None else None
        first, positions, contents, count = self._file.read_cells(
            offset, cells, self._swapped, older.cells if older is not None else None, "a histogram"
        )
        if known is not None and known.first[:_SHAPE_BYTES] != first[:_SHAPE_BYTES]:
            del self._known[offset]  # the block is in use with other parameters
            return self.read(header, offset, budget)
        digits, lowest, highest, size, _, above, negative, total = self._head.unpack_from(first, 4)
        form = Form(digits, lowest, highest, size)
        if positions is not None:
            places = np.frombuffer(positions, np.int64)
        else:
            assert older is not None
            places = older.cells
        found = SparseHistogram(form, places, np.frombuffer(contents, np.uint64), above, negative, total, count)
        self._known[offset] = _Known(first, found, known is not None and known.first == first)
        return found

    def _cells(self, header: Header, offset: int) -> int:
        """Check the head of a histogram and that the file contains all of it; returns the number of cells."""
        head = self._file.read(offset, HISTOGRAM_HEAD_BYTES, "the head of a histogram")
        magic, digits, lowest, highest, cells, cell_bytes = struct.unpack_from(f"{self._order}IIQQII", head)
        if magic != HISTOGRAM_MAGIC or cell_bytes != 8:
            raise self._file.damaged(f"there is no histogram at {offset}")
        try:
            expected = layout_of(digits, lowest, highest).cells
        except ValueError as error:
            raise self._file.damaged(f"at {offset}: {error}") from None
        if cells != expected:
            raise self._file.damaged(f"the histogram at {offset} has {cells} cells; its parameters need {expected}")
        self._file.check(header, offset, HISTOGRAM_HEAD_BYTES + 8 * cells, "a histogram")
        return int(cells)
