"""Histograms in a segment: every size and offset of a block is checked before it is used."""

from __future__ import annotations

import struct
import threading

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


_memory = threading.local()


def _scratch(size: int) -> memoryview:
    """Return memory of the thread; new memory for each block would cost a page fault for every 4 KiB."""
    view: memoryview | None = getattr(_memory, "view", None)
    if view is None or len(view) < size:
        view = _memory.view = memoryview(bytearray(size))
    return view[:size]


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


class Blocks:
    """Reads histograms; keeps the shape of each block."""

    __slots__ = ("_file", "_known", "_order")

    def __init__(self, file: SegmentFile, order: str) -> None:
        """Read from a file in a byte order, "<" or ">"."""
        self._file = file
        self._order = order
        self._known: dict[int, tuple[bytes, int]] = {}

    def read(self, header: Header, offset: int, budget: Budget) -> Histogram:
        """Return the histogram at an offset.

        Raises:
            SegmentError: There is no histogram, or histograms overlap.
        """
        if offset % 64:
            raise self._file.damaged(f"it has a histogram at {offset}, which is not a multiple of 64")
        self._file.check(header, offset, HISTOGRAM_HEAD_BYTES, "the head of a histogram")
        known = self._known.get(offset)
        cells = known[1] if known else self._cells(header, offset)
        if not budget.spend(8 * cells):
            raise self._file.damaged("its histograms overlap")
        data = _scratch(HISTOGRAM_HEAD_BYTES + 8 * cells)
        self._file.read_into(data, offset, "a histogram")
        shape = bytes(data[:_SHAPE_BYTES])
        if known and known[0] != shape:  # the block is in use with other parameters
            del self._known[offset]
            return self.read(header, offset, budget)
        self._known[offset] = (shape, cells)
        digits, lowest, highest = struct.unpack_from(f"{self._order}IQQ", data, 4)
        above, negative, total = struct.unpack_from(f"{self._order}QQQ", data, 32)
        counts = np.frombuffer(data, dtype=f"{self._order}u8", offset=HISTOGRAM_HEAD_BYTES)
        filled = np.flatnonzero(counts != 0)  # on booleans it is several times as fast
        form = Form(digits, lowest, highest, cells)
        return SparseHistogram(form, filled, counts[filled].astype(np.uint64), above, negative, total)

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
