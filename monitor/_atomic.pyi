"""64-bit words in shared memory, changed as a whole (engine/binding/atomic_module.c).

Offsets are in bytes, of aligned words within the buffer; else ValueError. Words are 0 to 2**64 - 1; else OverflowError.
"""

from __future__ import annotations

from typing_extensions import Buffer

def load(buffer: Buffer, offset: int, /) -> int:
    """The word, and with it all that was stored before it."""

def compare_exchange(buffer: Buffer, offset: int, expected: int, desired: int, /) -> bool:
    """Store `desired` if the word is `expected`; whether it was."""

def add(buffer: Buffer, offset: int, by: int, /) -> int:
    """Add to the word; what it was before."""
