"""Atomic access to 64-bit words in shared memory (engine/binding/atomic_module.c).

Offsets are in bytes and address aligned words within the buffer (ValueError). Words are 0 to 2**64 - 1 (OverflowError).
"""

from __future__ import annotations

from typing_extensions import Buffer

def load(buffer: Buffer, offset: int, /) -> int:
    """Load the word; all data stored before it is visible."""

def compare_exchange(buffer: Buffer, offset: int, expected: int, desired: int, /) -> bool:
    """Store `desired` if the word is `expected`; returns whether it was."""

def add(buffer: Buffer, offset: int, by: int, /) -> int:
    """Add to the word; returns its previous value."""

class Mapping:
    """A shared, writable part of an open file. Each access raises OSError after the file was truncated."""

    def __new__(cls, file: int, offset: int, size: int, /) -> Mapping: ...
    def load(self, offset: int, /) -> int:
        """Load the word; all data stored before it is visible."""

    def compare_exchange(self, offset: int, expected: int, desired: int, /) -> bool:
        """Store `desired` if the word is `expected`; returns whether it was."""

    def add(self, offset: int, by: int, /) -> int:
        """Add to the word; returns its previous value."""

    def read(self, offset: int, size: int, /) -> bytes:
        """Return these bytes."""

    def write(self, offset: int, data: Buffer, /) -> None:
        """Write these bytes."""

    def close(self) -> None:
        """Unmap the file. Harmless when closed."""
