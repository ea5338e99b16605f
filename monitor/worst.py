"""The worst of many: one order for all rows that say how bad they are.

Badness orders rows, the greater first; equals come by their identity, so the same rows always come in the same order
and a cut through equals is the same at every look. What badness is made of is said where it is counted: for a receiver
as its source sees it in the engine (statistic `badness` of a peer), for one on this host in `behaviour`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Protocol, TypeVar

__all__ = ["MOST", "Ranked", "worst"]

MOST = 10_000
"""Most rows that are asked for at once."""


class Ranked(Protocol):
    """A row that has a place in the order."""

    @property
    def badness(self) -> float:
        """0 is best."""

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells it from every other row."""


Row = TypeVar("Row", bound=Ranked)


def _order(row: Ranked) -> tuple[float, tuple[str, ...]]:
    return -row.badness, row.identity


def worst(rows: Iterable[Row], most: int | None = None) -> list[Row]:
    """Rows, the worst first.

    Args:
        rows: In any order.
        most: So many of them, 1 to 10 000; None: all.

    Raises:
        ValueError: `most` is out of its range.
    """
    if most is None:
        return sorted(rows, key=_order)
    if not 1 <= most <= MOST:
        raise ValueError(f"the worst {most} cannot be had: 1 to {MOST}")
    return heapq.nsmallest(most, rows, key=_order)
