"""Changes to bytes that decoders meet least: what the targets' own mutations are made of."""

from __future__ import annotations

import random
import struct

__all__ = ["WORDS", "mangled", "varint"]

_POWERS = (20, 31, 32, 53, 63, 64)
WORDS = (0, 1, 2, 63, 64, 127, 128, 255, 4096, 65535, *(1 << n & (1 << 64) - 1 for n in _POWERS), (1 << 31) - 1,
         (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1)  # fmt: skip
BYTES_MAX = 1 << 16


def varint(value: int) -> bytes:
    """A number in sevens of bits, low ones first."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _once(chance: random.Random, data: bytearray, other: bytes) -> None:
    at = chance.randrange(len(data) + 1)
    size = chance.choice((1, 2, 4, 8, 16, chance.randrange(1, 200)))
    match chance.randrange(8):
        case 0 if data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
        case 1 if data:
            data[at % len(data)] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
        case 2:
            del data[at : at + size]
        case 3:
            data[at:at] = chance.randbytes(size)
        case 4:  # a piece of another
            start = chance.randrange(len(other) + 1)
            data[at : at + chance.choice((0, size))] = other[start : start + size]
        case 5:
            data[at : at + 8] = struct.pack("<Q", chance.choice(WORDS))[: chance.choice((1, 2, 4, 8))]
        case 6:
            data[at : at + chance.choice((0, 1, 2))] = varint(
                chance.choice(WORDS) + chance.choice((-1, 0, 1)) & (1 << 64) - 1
            )
        case _:  # once more
            data[at:at] = data[at : at + size] * chance.choice((1, 2, 30))


def mangled(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """The bytes with a few changes, of which some come from another input."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        _once(chance, changed, other)
    return bytes(changed[:BYTES_MAX])
