"""Leaves out histograms of a level of detail that was raised for a while.

An engine keeps a histogram when its level falls, because histograms only grow. Its series would be exported for good.
A histogram above the present level of its node is left out once it has not counted for `EXPIRE_SECONDS`. It is shown
again, with all its values, when it counts again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from heliograph.engine import catalogue
from heliograph.exporters.items import Item, Key
from heliograph.monitor.model import Histogram

__all__ = ["EXPIRE_SECONDS", "Levels"]

EXPIRE_SECONDS = 300.0


@lru_cache(maxsize=256)
def _above(scope: str, level: int) -> frozenset[str]:
    """Return the histograms of a scope that a level of detail does not have."""
    found = catalogue.scopes()[scope].statistics
    return frozenset(one.name for one in found if one.kind == "histogram" and one.level > level)


class Levels:
    """Knows when each histogram above the level of its node last counted."""

    def __init__(self) -> None:
        """Know nothing."""
        self.expired = 0
        """Histograms left out of the last items."""
        self._counted: dict[tuple[Key, str], tuple[tuple[int, int, int], int]] = {}
        self._expired_by_item: dict[Key, frozenset[str]] = {}

    def shown(self, found: Iterable[Item], now_ns: int, *, has_all: bool = True) -> list[Item]:
        """Return the items without their expired histograms.

        Args:
            found: All items.
            now_ns: The present time.
            has_all: Whether the items have all their histograms. If not, the others stay as they were.
        """
        members = list(found)
        present = {item.labels[0]: item.values.get("detail_level") for item in members if item.scope == "instance"}
        before, self._counted = self._counted, {}
        expired_before, self._expired_by_item = self._expired_by_item, {}
        shown = []
        for item in members:
            level = present.get(item.labels[0])
            above = item.histograms.keys() & _above(item.scope, level) if item.histograms and level is not None else ()
            if not above and not expired_before:  # the usual case
                shown.append(item)
                continue
            gone = {name for name in above if self._is_expired(before, item, name, now_ns)}
            hidden = gone if has_all else gone | (expired_before.get(item.key, gone) - item.histograms.keys())
            if hidden:
                self._expired_by_item[item.key] = frozenset(hidden)
            if gone:
                kept = {name: one for name, one in item.histograms.items() if name not in gone}
                item = replace(item, histograms=kept)
            shown.append(item)
        if not has_all:
            self._counted = {**before, **self._counted}  # an item that is gone is forgotten when all are here
        self.expired = sum(map(len, self._expired_by_item.values()))
        return shown

    def _is_expired(
        self, before: dict[tuple[Key, str], tuple[tuple[int, int, int], int]], item: Item, name: str, now_ns: int
    ) -> bool:
        key, state = (item.key, name), _state(item.histograms[name])
        known, since_ns = before.get(key, (None, now_ns))
        if known != state or since_ns > now_ns:
            since_ns = now_ns
        self._counted[key] = state, since_ns
        return now_ns - since_ns >= EXPIRE_SECONDS * 1e9


def _state(histogram: Histogram) -> tuple[int, int, int]:
    return histogram.count, histogram.above, histogram.total_ns
