"""The cells of a histogram that are not 0: read, subtracted, added, summed up (engine/binding/cells_*.c)."""

from __future__ import annotations

from collections.abc import Sequence

from heliograph.monitor.model import Cells, Counts

Request = tuple[int, int, bytes | None, bool, Cells | None]
Reading = tuple[bytes, bytes | None, bytes, int, int, int, int]

def read(file: int, swapped: bool, requests: Sequence[Request], /) -> list[Reading | None]:
    """Read the filled cells of histograms; parts of a histogram that have not counted, as its head says, are not read.

    A request is offset of the head, number of cells (at least 1), the first bytes (head and first cell) of the last
    reading or None, whether equal first bytes mean that the histogram rests, and rising positions (int64) that are
    perhaps the same, or None.

    A reading is the first bytes; positions (int64, rising), None if they are those of the request; contents (u64);
    their sum; the values above the range, the negative ones, and the sum of the values. All have the machine's byte
    order; the sum of the contents is modulo 2^64. None: the histogram rests.

    Args:
        file: Descriptor of the segment.
        swapped: Whether the segment has the other byte order.
        requests: The histograms.

    Raises:
        EOFError: The file ends before the last cell of one.
        OSError: It cannot be read.
        ValueError: A place is impossible.
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

Filled = tuple[Cells, Counts, int]

def digest(
    newer: Sequence[Filled],
    older: Sequence[Filled | None],
    bounds: Cells,
    fractions: Sequence[float],
    last: int,
    /,
) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    """Return buckets of histograms, and percentiles of the values since older readings, by column.

    A histogram is the positions of its filled cells (int64, rising), their contents (u64) and the number of values
    above its range. The result has a column for each histogram:

    - a row (u64) for each bound: the number of values in the cells before it; at the end a row with all values
    - a row (int64) for each fraction: the cell of the value of rank ceil(fraction * values); -1: there is no value
    - the highest cell (int64) with a value; -1: there is none
    - the number (u64) of values in cells
    - a byte: 1: a count fell, so that all values counted; 2: the number of values is not exact

    Args:
        newer: The histograms now.
        older: Those at the start of the interval; None: all values count.
        bounds: Numbers of cells, rising.
        fractions: From 0 to 1.
        last: The cell that stands for values above the range.

    Raises:
        ValueError: A fraction is not from 0 to 1, or the lengths differ.
    """
