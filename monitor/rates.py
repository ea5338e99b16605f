"""The counters of records, from the catalogue, in the form that `model.rates` needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from heliograph.engine import catalogue
from heliograph.monitor.model import Rate, Snapshot, rates

__all__ = ["counters", "rates_between"]


@cache
def counters() -> Mapping[str, frozenset[str]]:
    """Return the counter cells by scope."""
    return {
        scope.name: frozenset(cell.name for cell in scope.cells if cell.statistic.kind == "counter")
        for scope in catalogue.scopes().values()
    }


def rates_between(older: Snapshot, newer: Snapshot) -> list[Rate]:
    """Return the rates of every counter of the catalogue."""
    return rates(older, newer, counters())
