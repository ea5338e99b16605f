"""What of a record counts up: the catalogue's answer, in the form `model.rates` wants it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from heliograph.engine import catalogue
from heliograph.monitor.model import Rate, Snapshot, rates

__all__ = ["counters", "rates_between"]


@cache
def counters() -> Mapping[str, frozenset[str]]:
    """The cells that are counters, by scope."""
    return {
        scope.name: frozenset(cell.name for cell in scope.cells if cell.statistic.kind == "counter")
        for scope in catalogue.scopes().values()
    }


def rates_between(older: Snapshot, newer: Snapshot) -> list[Rate]:
    """Rates of every counter of the catalogue."""
    return rates(older, newer, counters())
