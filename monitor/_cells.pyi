"""The cells of a histogram that are not 0: read, subtracted, added (engine/binding/cells_module.c)."""

from __future__ import annotations

from collections.abc import Sequence

from heliograph.monitor.model import Cells, Counts

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

def grown(cells: Cells, counts: Counts, older_cells: Cells, older_counts: Counts, /) -> tuple[bytes, bytes] | None:
    """Return positions (int64, rising) and contents (u64) of what was added since; None: a count fell.

    Args:
        cells: Positions of the filled cells now (int64, rising).
        counts: Their contents (u64).
        older_cells: Positions of the filled cells before.
        older_counts: Their contents.

    Raises:
        ValueError: There are not as many positions as contents.
    """

def total(parts: Sequence[tuple[Cells, Counts]], cells: int, /) -> tuple[bytes, bytes]:
    """Return positions (int64, rising) and contents (u64) of the sum, modulo 2^64.

    Args:
        parts: Positions (int64) and contents (u64) of the filled cells of each histogram.
        cells: Number of cells of each histogram; at least 1.

    Raises:
        ValueError: A position is not a cell, or there are not as many positions as contents.
    """
