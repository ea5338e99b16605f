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

class Mapping:
    """A piece of an open file, shared and writable. Each access raises OSError once the file was truncated."""

    def __new__(cls, file: int, offset: int, size: int, /) -> Mapping: ...
    def load(self, offset: int, /) -> int:
        """The word, and with it all that was stored before it."""

    def compare_exchange(self, offset: int, expected: int, desired: int, /) -> bool:
        """Store `desired` if the word is `expected`; whether it was."""

    def add(self, offset: int, by: int, /) -> int:
        """Add to the word; what it was before."""

    def read(self, offset: int, size: int, /) -> bytes:
        """These bytes."""

    def write(self, offset: int, data: Buffer, /) -> None:
        """Put these bytes there."""

    def close(self) -> None:
        """Undo the mapping. Harmless when closed."""
