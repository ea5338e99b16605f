"""The cells of a histogram in a segment that are not 0 (engine/binding/cells_module.c)."""

from __future__ import annotations

from heliograph.monitor.model import Cells

def read(
    file: int, offset: int, cells: int, swapped: bool, known: Cells | None, /
) -> tuple[bytes, bytes | None, bytes, int]:
    """Return the head with the first cell, then positions (int64, rising), contents (u64) and sum of the filled cells.

    Positions, contents and sum have the machine's byte order; the sum is modulo 2^64. Parts of the histogram that have
    not counted, as its head says, are not read.

    Args:
        file: Descriptor of the segment.
        offset: Where the head begins.
        cells: Number of cells; at least 1.
        swapped: Whether the segment has the other byte order.
        known: Rising positions (int64) that are perhaps the same; then the positions returned are None.

    Raises:
        EOFError: The file ends before the last cell.
        OSError: It cannot be read.
    """
