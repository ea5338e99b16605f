"""The worst rows: one order for all rows with a badness.

Rows are sorted by badness, the greatest first, and then by identity. Equal rows therefore always have the same order,
and a cut between them is stable. The badness of a receiver as its source sees it comes from the engine (statistic
`badness` of a tx_receiver); that of a receiver on this host comes from `behaviour`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Protocol, TypeVar

__all__ = ["MOST", "Ranked", "worst"]

MOST = 10_000
"""Largest number of rows in one request."""


class Ranked(Protocol):
    """A row with a position in the order."""

    @property
    def badness(self) -> float:
        """0 is best."""

    @property
    def identity(self) -> tuple[str, ...]:
        """Identity of the row."""


Row = TypeVar("Row", bound=Ranked)


def _order(row: Ranked) -> tuple[float, tuple[str, ...]]:
    return -row.badness, row.identity


def worst(rows: Iterable[Row], most: int | None = None) -> list[Row]:
    """Return rows, the worst first.

    Args:
        rows: Rows in any order.
        most: Number of rows, 1 to 10 000; None: all.

    Raises:
        ValueError: `most` is out of its range.
    """
    if most is None:
        return sorted(rows, key=_order)
    if not 1 <= most <= MOST:
        raise ValueError(f"the number of worst rows must be from 1 to {MOST}, not {most}")
    return heapq.nsmallest(most, rows, key=_order)
