"""HdrHistogram V2 codec and merge kernel (engine/binding/hdr_module.c).

Counts are contiguous buffers of u64, one item per cell; layouts are (digits, lowest, highest). Payloads are V2 bodies,
with or without their zlib wrapper; both are accepted wherever bytes are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
from typing_extensions import Buffer

# The stubs of numpy declare arrays as buffers only from Python 3.12 on.
_Buffer = Buffer | npt.NDArray[Any]

class Refused(ValueError):
    """A payload that does not match its own description."""

def cells(digits: int, lowest: int, highest: int, /) -> int:
    """Return the number of cells of a layout; ValueError when the layout is not possible."""

def encode(counts: _Buffer, digits: int, lowest: int, highest: int, *, compress: bool = False) -> bytes:
    """Return the payload; OverflowError when a count exceeds 63 bits."""

def decode(payload: _Buffer, /) -> tuple[bytes, int, int, int]:
    """Return counts (u64), digits, lowest, highest; `Refused` describes the fault of the payload."""

def rewrite(payload: _Buffer, /) -> tuple[bytes, int, int, int, int, int, int, float]:
    """Return body, digits, lowest, highest, number of values, smallest value of the first cell, largest of the last,
    sum by the middle of each cell. The cost depends on the payload's bytes, not on the number of cells it claims.
    `Refused` as for `decode`, and when it unpacks to more than 32 times its bytes."""

def quantiles(counts: _Buffer, digits: int, lowest: int, highest: int, quantiles: Sequence[float], /) -> list[int]:
    """Return the highest value of the cell with rank ceil(q * n), at least 1; 0 if empty. Quantiles ascend, 0 to 1."""

def summary(counts: _Buffer, digits: int, lowest: int, highest: int, /) -> tuple[int, int, int, float]:
    """Return (n, smallest value of the first cell, largest of the last, sum by the middle of each cell)."""

def merge(
    offsets: _Buffer,
    data: _Buffer,
    order: _Buffer,
    starts: _Buffer,
    highest: _Buffer,
    digits: int,
    lowest: int,
    quantiles: Sequence[float],
    expected: _Buffer | None = None,
) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes]:
    """Add the payloads of each group, without the interpreter lock.

    Args:
        offsets: Offsets of an Arrow binary column, int32 or int64, rows + 1 values.
        data: Data of the column.
        order: Row numbers (int64); the rows of a group are adjacent.
        starts: Start of each group in `order` (int64), and the end; groups + 1 values.
        highest: Highest of each row (int64), at least that of its payload.
        digits: Digits of every payload.
        lowest: Lowest of every payload.
        quantiles: Ascending, 0 to 1.
        expected: Number of values of each row (int64); negative: unknown.

    Returns:
        offsets (int64) and data of the merged bodies; per group the number of values (int64), the highest of its rows
        (int64) and the values at the quantiles (int64, group by group); per row a status (u8): 0, or why it was left
        out (see `refusal`).
    """

def refusal(status: int, /) -> str:
    """Return the meaning of a status of `merge`; continues "the payload ...\""""
