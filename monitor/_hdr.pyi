"""HdrHistogram V2 codec and merge kernel (engine/binding/hdr_module.c).

Counts are contiguous buffers of u64, one item per cell; layouts are (digits, lowest, highest). Payloads are V2 bodies,
with or without their zlib wrapper; both are accepted wherever bytes are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
from typing_extensions import Buffer

# The stubs of numpy say that arrays are buffers only from Python 3.12 on.
_Buffer = Buffer | npt.NDArray[Any]

class Refused(ValueError):
    """A payload that cannot be what it claims to be."""

def cells(digits: int, lowest: int, highest: int, /) -> int:
    """Number of cells of a layout; ValueError when no histogram can be like that."""

def encode(counts: _Buffer, digits: int, lowest: int, highest: int, *, compress: bool = False) -> bytes:
    """The payload; OverflowError when a count passes 63 bits."""

def decode(payload: _Buffer, /) -> tuple[bytes, int, int, int]:
    """Counts (u64), digits, lowest, highest; `Refused` tells what is wrong with the payload."""

def rewrite(payload: _Buffer, /) -> tuple[bytes, int, int, int, int, int, int, float]:
    """Body, digits, lowest, highest, number of values, smallest value of the first cell, largest of the last, sum by
    the middle of each cell. Costs what the payload's bytes do, whatever number of cells it claims; `Refused` as
    `decode`, and when it unpacks to more than 32 times its bytes."""

def quantiles(counts: _Buffer, digits: int, lowest: int, highest: int, quantiles: Sequence[float], /) -> list[int]:
    """Largest value of the cell that holds rank ceil(q * n), at least 1; all 0 when empty. Quantiles ascend, 0 to 1."""

def summary(counts: _Buffer, digits: int, lowest: int, highest: int, /) -> tuple[int, int, int, float]:
    """(n, smallest value of the first cell, largest value of the last, sum by the middle of each cell)."""

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
    """Add up the payloads of each group, without the interpreter's lock.

    Args:
        offsets: Of an Arrow binary column, int32 or int64, rows + 1 of them.
        data: Of the column.
        order: Row numbers (int64), those of a group together.
        starts: Where each group begins in `order` (int64), and the end; groups + 1 of them.
        highest: Highest of each row (int64), at least that of its payload.
        digits: Of every payload.
        lowest: Of every payload.
        quantiles: Ascending, 0 to 1.
        expected: Number of values of each row (int64); negative: not known.

    Returns:
        offsets (int64) and data of the merged bodies; per group the number of values (int64), the highest of its rows
        (int64) and the values at the quantiles (int64, group by group); and per row a status (u8): 0, or why it was
        left out (see `refusal`).
    """

def refusal(status: int, /) -> str:
    """What a status of `merge` means; continues "the payload ...\""""
