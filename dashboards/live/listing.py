"""The choice of rows for a table of any size: filter, order, window. All of it works on columns.

A fleet of 1,000 receivers with 100 topics has 100,000 rows, and a page shows 25. No row is built that is not shown: a
pattern is compared with each different name once, states and numbers are arrays, and the order is that of an array.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate

import numpy as np
import numpy.typing as npt

__all__ = ["PAGE_ROWS", "Lines", "Names", "Window", "Wish", "number_of_page", "window"]

PAGE_ROWS = 25
"""Rows of a page. An update of a page whose rows all change has 12 kB; it may have 20."""
_MOST_DIGITS = 9

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int64]
Names = tuple[Sequence[str], Indexes]
"""Different names, and the index of that of each row."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Rows as columns, the worst first."""

    size: int
    names: Mapping[str, Names]
    """Columns with names, which a pattern is compared with."""
    states: Callable[[], Floats]
    """Returns the number of the state of each row."""
    numbers: Callable[[str], Floats]
    """Returns a column; NaN where a value is unknown."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The rows that a reader wants to see, and their order."""

    pattern: str = ""
    """Part of a name, in any case; with * and ? a pattern for a whole name. Empty: all."""
    states: frozenset[int] | None = None
    """Numbers of states; None: all."""
    column: str = ""
    """Name of the column to sort by; empty: the worst first."""
    is_descending: bool = False
    page: int = 1
    """Number of the page, from 1; after the last one: the last."""


@dataclass(frozen=True, slots=True)
class Window:
    """The rows of one page."""

    places: Sequence[int]
    """Places of the rows among all lines, in order."""
    first: int
    """Number of the first one, from 1; 0: there is none."""
    found: int
    """Rows that match."""
    page: int
    pages: int


def number_of_page(text: str) -> int | None:
    """Return the number of a page, from 1; None: it is none."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if is_number and int(text) > 0 else None


def window(lines: Lines, wish: Wish, most: int = PAGE_ROWS) -> Window:
    """Return the rows to show.

    Args:
        lines: All rows.
        wish: What the reader wants to see.
        most: Rows of a page.
    """
    places = np.arange(lines.size)
    if wish.pattern:
        places = places[_matching(lines, wish.pattern)]
    if wish.states is not None:
        places = places[np.isin(lines.states()[places], list(wish.states))]
    if wish.column:
        values = _values(lines, wish.column)[places]
        places = places[np.argsort(-values if wish.is_descending else values, kind="stable")]  # NaN is last
    pages = max(1, -(-len(places) // most))
    page = min(max(1, wish.page), pages)
    begin = (page - 1) * most
    shown: list[int] = places[begin : begin + most].tolist()
    return Window(shown, begin + 1 if shown else 0, len(places), page, pages)


def _matching(lines: Lines, pattern: str) -> npt.NDArray[np.bool_]:
    wanted = pattern.casefold()
    if not {"*", "?"} & set(wanted):
        wanted = f"*{wanted}*"
    # The expression is in linear time for any pattern, and "[" is a character of names.
    is_match = re.compile(translate(wanted.replace("[", "[[]"))).match
    found = np.zeros(lines.size, np.bool_)
    for texts, index in lines.names.values():
        found |= np.array([is_match(text.casefold()) is not None for text in texts], np.bool_)[index]
    return found


def _values(lines: Lines, column: str) -> Floats:
    if column not in lines.names:
        return lines.numbers(column)
    texts, index = lines.names[column]
    ranks = np.zeros(len(texts))
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks[index]
