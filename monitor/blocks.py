"""Histograms in a segment: every size and offset of a block is checked before it is used.

A histogram of 216 KiB is read only when it has counted, and only the parts of it that ever counted. Every count changes
one of the words above, negative, sum or, for a value of 0 ns, the first cell; these lie together at the start of a
block. The engine changes a count and the sum one after the other, so a block that has counted is read once more
although its first words rest.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from heliograph.monitor.directory import SegmentError
from heliograph.monitor.header import Header
from heliograph.monitor.latency import layout_of
from heliograph.monitor.model import Histogram
from heliograph.monitor.segment_file import SegmentFile
from heliograph.monitor.sparse import Form, SparseHistogram

if TYPE_CHECKING:
    from heliograph.monitor._cells import Reading, Request

__all__ = ["Blocks", "Budget"]

HISTOGRAM_HEAD_BYTES = 64
HISTOGRAM_MAGIC = 0x48445231
_SHAPE_BYTES = 32


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
    end: int
    """Place of the first byte after it."""
    request: Request
    """The next one for it."""


class Blocks:
    """Reads histograms; keeps the last reading of each block."""

    __slots__ = ("_file", "_head", "_known", "_order", "_swapped")

    def __init__(self, file: SegmentFile, order: str) -> None:
        """Read from a file in a byte order, "<" or ">"."""
        self._file = file
        self._order = order
        self._head = struct.Struct(f"{order}IIQQII")
        self._swapped = order != ("<" if sys.byteorder == "little" else ">")
        self._known: dict[int, _Known] = {}

    def read(self, header: Header, offsets: Sequence[int], budget: Budget) -> list[Histogram | SegmentError]:
        """Return the histogram at each offset, the same object while it has not counted; or why there is none.

        An error says that there is no histogram, or that histograms overlap.
        """
        errors: dict[int, SegmentError] = {}
        requests: list[Request] = []
        for place, offset in enumerate(offsets):
            known = self._known.get(offset)
            if known is not None and known.end <= header.size and budget.spend(8 * known.request[1]):
                requests.append(known.request)
                continue
            try:
                requests.append(self._checked(header, offset, budget))
            except SegmentError as error:
                errors[place] = error
        try:
            readings = iter(self._file.read_cells(self._swapped, requests, "a histogram"))
        except SegmentError as error:
            if len(requests) > 1:  # which one?
                return [self.read(header, [offset], Budget(header.size))[0] for offset in offsets]
            return [errors.get(place, error) for place in range(len(offsets))]
        return [
            errors[place] if place in errors else self._taken(header, offset, next(readings))
            for place, offset in enumerate(offsets)
        ]

    def _checked(self, header: Header, offset: int, budget: Budget) -> Request:
        """Return the request for a block of which nothing is known.

        Raises:
            SegmentError: There is no histogram, or histograms overlap.
        """
        if offset % 64:
            raise self._file.damaged(f"it has a histogram at {offset}, which is not a multiple of 64")
        self._file.check(header, offset, HISTOGRAM_HEAD_BYTES, "the head of a histogram")
        cells = self._form(offset, self._file.read(offset, HISTOGRAM_HEAD_BYTES, "the head of a histogram")).cells
        self._file.check(header, offset, HISTOGRAM_HEAD_BYTES + 8 * cells, "a histogram")
        if not budget.spend(8 * cells):
            raise self._file.damaged("its histograms overlap")
        return offset, cells, None, False, None

    def _taken(self, header: Header, offset: int, reading: Reading | None) -> Histogram | SegmentError:
        """Return the histogram of a reading, and keep it."""
        known = self._known.get(offset)
        if reading is None:
            assert known is not None
            return known.histogram
        first, positions, contents, count, above, negative, total = reading
        numbers = np.frombuffer(contents, np.uint64)
        if known is None:
            assert positions is not None
            try:
                form = self._form(offset, first)
            except SegmentError as error:  # it was overwritten after it was checked
                return error
            places = np.frombuffer(positions, np.int64)
            found = SparseHistogram(form, places, numbers, above, negative, total, count)
            end = offset + HISTOGRAM_HEAD_BYTES + 8 * form.cells
            self._known[offset] = _Known(first, found, end, (offset, form.cells, first, False, places))
            return found
        if known.first[:_SHAPE_BYTES] != first[:_SHAPE_BYTES]:
            del self._known[offset]  # the block is in use with other parameters
            return self.read(header, [offset], Budget(header.size))[0]
        places = np.frombuffer(positions, np.int64) if positions is not None else known.histogram.cells
        found = SparseHistogram(known.histogram, places, numbers, above, negative, total, count)
        known.request = (offset, known.request[1], first, known.first == first, places)
        known.first, known.histogram = first, found
        return found

    def _form(self, offset: int, head: bytes) -> Form:
        """Return the parameters in the head of a histogram.

        Raises:
            SegmentError: They are not those of a histogram.
        """
        magic, digits, lowest, highest, cells, cell_bytes = self._head.unpack_from(head)
        if magic != HISTOGRAM_MAGIC or cell_bytes != 8:
            raise self._file.damaged(f"there is no histogram at {offset}")
        try:
            expected = layout_of(digits, lowest, highest).cells
        except ValueError as error:
            raise self._file.damaged(f"at {offset}: {error}") from None
        if cells != expected:
            raise self._file.damaged(f"the histogram at {offset} has {cells} cells; its parameters need {expected}")
        return Form(digits, lowest, highest, cells)
