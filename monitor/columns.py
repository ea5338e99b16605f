"""Tables on a terminal: columns by importance, in the cells that a text takes there."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from heliograph.monitor.text import printable

__all__ = ["Column", "cut", "fitted", "width_of"]

_GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    title: str
    rank: int = 0
    """0: always shown; of the others, the highest is left out first where the terminal is narrow."""
    left: bool = False
    """Left-aligned, like names; numbers are right-aligned."""


def width_of(text: str) -> int:
    """Return the cells that a printable text takes: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def cut(text: str, width: int | None) -> str:
    """Return a text in at most `width` cells; an ellipsis shows that something is missing."""
    if width is None or width_of(text) <= width:
        return text
    kept = []
    used = 1  # the ellipsis
    for char in text:
        used += width_of(char)
        if used > width:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…" if width > 0 else ""


def _padded(text: str, width: int, left: bool) -> str:
    space = " " * max(0, width - width_of(text))
    return text + space if left else space + text


def fitted(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None = None, sentence: int = 24
) -> list[str]:
    """Return the lines of a table, the first with the titles.

    Columns are left out by rank until the table fits. The last column is a sentence: it is cut where the line ends. A
    terminal too narrow for the columns of rank 0 gets two lines per row, with the sentence on the second.

    Args:
        columns: The columns.
        rows: Their cells; made printable here.
        width: Cells of a line; None: no limit.
        sentence: Cells of the last column that matter more than columns with a rank above 0.
    """
    cells = [[column.title for column in columns], *([printable(cell) for cell in row] for row in rows)]
    widths = [max(width_of(row[index]) for row in cells) for index in range(len(columns))]
    last = len(columns) - 1
    chosen = list(range(len(columns)))

    def needed() -> int:
        sizes = [min(widths[index], sentence) if index == last else widths[index] for index in chosen]
        return sum(sizes) + _GAP * (len(chosen) - 1)

    while width is not None and needed() > width:
        droppable = [index for index in chosen if columns[index].rank > 0]
        if not droppable:
            return [line for row in cells for line in _stacked(row, columns, chosen[:-1], widths, width)]
        chosen.remove(max(droppable, key=lambda index: (columns[index].rank, index)))
    return [cut(_line(row, columns, chosen, widths).rstrip(), width) for row in cells]


def _line(row: Sequence[str], columns: Sequence[Column], chosen: Sequence[int], widths: Sequence[int]) -> str:
    return (" " * _GAP).join(_padded(row[index], widths[index], columns[index].left) for index in chosen)


def _stacked(
    row: Sequence[str], columns: Sequence[Column], chosen: Sequence[int], widths: Sequence[int], width: int
) -> list[str]:
    return [cut(_line(row, columns, chosen, widths).rstrip(), width), cut(f"  {row[-1]}", width)]
