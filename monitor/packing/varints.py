"""Columns of integers as varints, encoded and decoded as arrays.

A varint is LEB128: seven bits a byte, the lowest first, the top bit set in all but the last; at most ten bytes, 64
bits. Signed differences use zigzag encoding (0, -1, 1, -2 become 0, 1, 2, 3) and rising positions become gaps, so small
changes need one byte. Only short columns use a Python loop, because numpy costs more for them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Numbers", "Positions", "decode", "encode", "gaps", "positions", "uint", "unzigzag", "zigzag"]

Numbers = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]

_MOST_BYTES = 10
_SHORT = 24
"""Highest number of values for which a Python loop is faster."""

_SEVEN = np.uint64(7)
_ONE = np.uint64(1)


def uint(value: int) -> bytes:
    """One varint. The value is 0 to 2^64 - 1."""
    if value < 128:
        return bytes((value,))
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode(values: Numbers) -> bytes:
    """The concatenated varints of a column."""
    if len(values) <= _SHORT:
        return b"".join(map(uint, values.tolist()))
    lengths = np.ones(len(values), np.int64)
    rest = values >> _SEVEN
    longest = 1
    while rest.any():
        lengths += rest != 0
        rest >>= _SEVEN
        longest += 1
    starts = np.cumsum(lengths) - lengths
    out = np.empty(int(lengths.sum()), np.uint8)
    for place in range(longest):
        has = lengths > place
        low = (values[has] >> np.uint64(7 * place)) & np.uint64(127)
        out[starts[has] + place] = low | np.where(lengths[has] > place + 1, np.uint64(128), np.uint64(0))
    return out.tobytes()


def decode(data: bytes | memoryview, count: int) -> Numbers:
    """Decode a column that fills `data`.

    Raises:
        ValueError: `data` does not have exactly `count` varints, or one has more than 64 bits.
    """
    if not count or not data:
        if count or data:
            raise ValueError(f"{len(data)} bytes cannot be {count} numbers")
        return np.zeros(0, np.uint64)
    cells = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(cells < 128)
    if len(ends) != count or ends[-1] != len(cells) - 1:
        raise ValueError(f"{len(data)} bytes hold {len(ends)} numbers, not {count}")
    if len(cells) == count:
        return cells.astype(np.uint64)
    starts = np.empty(count, np.int64)
    starts[0] = 0
    starts[1:] = ends[:-1] + 1
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest > _MOST_BYTES:
        raise ValueError(f"a number has {longest} bytes")
    values = np.zeros(count, np.uint64)
    for place in range(longest):
        has = np.flatnonzero(lengths > place)
        low = cells[starts[has] + place].astype(np.uint64) & np.uint64(127)
        if place == _MOST_BYTES - 1 and (low > _ONE).any():
            raise ValueError("a number has more than 64 bits")
        values[has] |= low << np.uint64(7 * place)
    return values


def zigzag(differences: Numbers) -> Numbers:
    """Encode signed differences (modulo 2^64) so that values near 0 become small."""
    signed = differences.view(np.int64)
    return ((signed << np.int64(1)) ^ (signed >> np.int64(63))).view(np.uint64)


def unzigzag(values: Numbers) -> Numbers:
    """The inverse of `zigzag`."""
    return (values >> _ONE) ^ (np.uint64(0) - (values & _ONE))


def gaps(rising: Positions) -> Numbers:
    """Encode strictly rising positions as the number of positions skipped before each."""
    out = rising.astype(np.uint64)
    out[1:] -= out[:-1].copy() + _ONE
    return out


def positions(values: Numbers, bound: int) -> Positions:
    """The inverse of `gaps`.

    Raises:
        ValueError: A position is not below `bound`.
    """
    if not len(values):
        return np.zeros(0, np.int64)
    if int(values.max()) >= bound or len(values) > bound:
        raise ValueError(f"a position is not below {bound}")
    found = np.cumsum(values.astype(np.int64) + 1) - 1
    if int(found[-1]) >= bound:
        raise ValueError(f"a position is not below {bound}")
    return found
