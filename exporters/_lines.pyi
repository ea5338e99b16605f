"""Series as lines of the text format (engine/binding/lines_module.c)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

def lines(columns: Sequence[tuple[str, Sequence[str], Sequence[float | None], int, Mapping[int, str]]], /) -> bytes:
    """Return the lines of columns of one length, row by row, in UTF-8; numbers as `tables.number_text` writes them.

    Args:
        columns: Name, label text of each row, its value (None: no line), divisor of the values, and the ending of
            lines by row.

    Raises:
        ValueError: The columns differ in length, or a divisor is 0.
        UnicodeEncodeError: A label has no UTF-8 form.
    """
