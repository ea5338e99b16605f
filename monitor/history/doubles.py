"""HdrHistogram payloads of floating-point values (Java's `DoubleHistogram`), as histograms of whole nanoseconds.

    cookie (4 bytes), digits (4), ratio of the highest to the lowest value (8), a histogram of integers

The header of the histogram within has a ratio, a power of two: value = integer * ratio. It also says by how many cells
the writer's array was shifted. Counts are encoded in the order of the values, so the shift has no meaning for a reader.

Each cell is counted at the largest whole nanosecond that it holds, the first one, which holds only 0.0, at 0. With
values in ns this is the cell of the same width and place, except that cells narrower than 1 ns become cells of 1 ns. So
a percentile is what Java says, up to the writer's ratio. Other units are no powers of two: then a value moves by up to
the width of one cell.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np

from heliograph.monitor import _hdr
from heliograph.monitor.history.legacy import inflated, modern
from heliograph.monitor.latency import cell_of, filled_bounds
from heliograph.monitor.model import Histogram

__all__ = ["is_double", "whole_ns"]

_BARE, _COMPRESSED = 0x0C72124E, 0x0C72124F
_HEAD_BYTES = 16
_INNER_COMPRESSED = {0x1C849309: 0x1C849308, 0x1C849302: 0x1C849301, 0x1C849304: 0x1C849303}
"""Cookies of compressed histograms of integers, without the word size, and those of what they hold."""
_INNER_WITH_RATIO = (0x1C849301, 0x1C849303)
_WORD_SIZE_BITS = 0xF0
_INNER_BYTES = 40
_HIGHEST_NS = 3_600_000_000_000
"""End of the array, as long as the values are not larger: so most histograms have one layout."""


def is_double(payload: bytes) -> bool:
    """Return whether a payload begins as a histogram of floating-point values."""
    return payload[:4] in (_BARE.to_bytes(4, "big"), _COMPRESSED.to_bytes(4, "big"))


def whole_ns(payload: bytes, unit_ns: int = 1) -> bytes:
    """Return the V2 payload of the same values as whole nanoseconds.

    Args:
        payload: A payload for which `is_double` is true.
        unit_ns: The unit of its values, ns.

    Raises:
        ValueError: The payload is not what it claims to be, or has values beyond 63 bits.
    """
    if len(payload) < _HEAD_BYTES:
        raise ValueError("the payload ends within its header")
    outer_digits = int.from_bytes(payload[4:8], "big")
    inner, ratio = _without_ratio(payload[_HEAD_BYTES:])
    counts, digits, lowest, highest = _hdr.decode(modern(inner))
    if outer_digits != digits:
        raise ValueError(f"the payload has {outer_digits} digits, the histogram within {digits}")
    source = Histogram(np.frombuffer(counts, dtype=np.uint64), lowest, highest, digits)
    return _scaled(source, Fraction(ratio) * unit_ns)


def _without_ratio(inner: bytes) -> tuple[bytes, float]:
    """Return a histogram of integers without ratio and shift, not compressed, and its ratio."""
    cookie = int.from_bytes(inner[:4], "big")
    kind = cookie & ~_WORD_SIZE_BITS
    if kind in _INNER_COMPRESSED:
        inner = inflated(inner)
        found = int.from_bytes(inner[:4], "big") & ~_WORD_SIZE_BITS
        if found != _INNER_COMPRESSED[kind]:
            raise ValueError("the payload has another version within its zlib part")
        kind = found
    if kind not in _INNER_WITH_RATIO:  # V0 has neither; anything else is refused by its decoder
        return inner, 1.0
    if len(inner) < _INNER_BYTES:
        raise ValueError("the payload ends within its header")
    (ratio,) = struct.unpack(">d", inner[32:40])
    if not (math.isfinite(ratio) and ratio > 0):
        raise ValueError(f"the payload has the ratio {ratio}")
    return inner[:8] + bytes(4) + inner[12:32] + struct.pack(">d", 1.0) + inner[40:], ratio


def _scaled(source: Histogram, scale: Fraction) -> bytes:
    lower, upper, counts = filled_bounds(source)
    values = [
        max(math.floor(low * scale), math.ceil((high + 1) * scale) - 1) if low else 0
        for low, high in zip(lower.tolist(), upper.tolist(), strict=True)
    ]
    highest = max([_HIGHEST_NS, *values])
    if highest >= 2**63:
        raise ValueError("the payload has values of more than 63 bits")
    result = np.zeros(_hdr.cells(source.digits, 1, highest), dtype=np.uint64)
    for value, count in zip(values, counts, strict=True):
        result[cell_of(value, source.digits, 1, highest)] += count
    return _hdr.encode(result, source.digits, 1, highest)
