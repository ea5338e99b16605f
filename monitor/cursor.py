"""Numbers and texts out of untrusted bytes: the encoding that flight recordings and snapshot frames share.

A number is LEB128: seven bits a byte, the lowest first, the top bit set in all but the last, at most ten bytes and 64
bits. A text is a number, its bytes, and that many bytes of UTF-8. A difference is a zigzagged number: 0, -1, 1, -2 are
written 0, 1, 2, 3.
"""

from __future__ import annotations

from typing import ClassVar

from heliograph.monitor.errors import UserError

__all__ = ["Cursor"]


class Cursor:
    """Decodes bytes from front to back. Every claimed size is checked against the bytes before it is used."""

    __slots__ = ("at", "data")

    error: ClassVar[type[UserError]] = UserError
    """Raised for damage, by every method."""
    subject: ClassVar[str] = "it"
    """Subject of the error sentences."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    @property
    def left(self) -> int:
        """Bytes not taken yet."""
        return len(self.data) - self.at

    def damaged(self, why: str) -> UserError:
        """The error for damage."""
        return self.error(f"{self.subject} {why}")

    def uint(self, bound: int = 1 << 64) -> int:
        """A number below `bound`."""
        data, at = self.data, self.at
        value = shift = 0
        try:
            while (byte := data[at]) >= 0x80:
                value |= (byte & 0x7F) << shift
                shift += 7
                at += 1
                if shift > 63:
                    raise self.damaged("has a number of more than 64 bits") from None
        except IndexError:
            raise self.damaged("ends within a number") from None
        value |= byte << shift
        if value >= bound:
            if bound >> 64:
                raise self.damaged("has a number of more than 64 bits")
            raise self.damaged(f"has {value} at byte {self.at}, which is not below {bound}")
        self.at = at + 1
        return value

    def difference(self) -> int:
        """A signed difference."""
        value = self.uint()
        return -(value >> 1) - 1 if value & 1 else value >> 1

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        if size > self.left:
            raise self.damaged(f"ends {size - self.left} bytes early")
        self.at += size
        return self.data[self.at - size : self.at]

    def text(self, most: int | None = None) -> str:
        """A text of at most `most` bytes; what is no UTF-8 in it is replaced."""
        size = self.uint()
        if size > self.left or (most is not None and size > most):
            raise self.damaged("ends within a text")
        return self.take(size).decode("utf-8", "replace")
