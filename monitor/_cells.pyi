"""The cells of a histogram that are not 0 (engine/binding/cells_module.c)."""

from __future__ import annotations

from typing_extensions import Buffer

from heliograph.monitor.model import Cells

def filled(words: Buffer, swapped: bool, known: Cells | None, /) -> tuple[bytes | None, bytes]:
    """Return positions (int64, rising) and contents (u64) of the words that are not 0, in the machine's byte order.

    Args:
        words: 64-bit words.
        swapped: Whether they have the other byte order.
        known: Rising positions (int64) that are perhaps the same; then the positions returned are None.
    """
