"""Limits the number of series: the worst items keep their own series, the others are summed under the label ``_other``.

Every series costs Prometheus memory, so the size of one answer is limited. Above the limit, items are ranked within
their scope: first by badness where it is known (receivers by their class, remote receivers by the rank of their
source), then by losses, gaps and requests since the window began, then by the totals. The top of every scope is kept in
turn until the limit is reached. The sums count too, so that an answer has no more series than the limit. Only instances
are never folded.

The counters under ``_other`` must remain counters when membership changes. They are not the sum of the present members:
each round adds the increase of the folded items since the previous round. No increase is lost or counted twice, and no
rate jumps when an item is folded or unfolded. Gauges are sums over the present members.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from heliograph.engine import catalogue
from heliograph.exporters.buckets import PERCENTILES, same_layout, since
from heliograph.exporters.items import Item, Key, combined
from heliograph.exporters.selection import EVERYTHING, Selection
from heliograph.monitor.behaviour import JUDGED
from heliograph.monitor.blame import Blame
from heliograph.monitor.model import Histogram
from heliograph.monitor.rates import counters
from heliograph.monitor.records import gathered
from heliograph.monitor.sparse import merged

__all__ = ["OTHER", "Budget", "Share", "joined_series", "series_of"]

OTHER = "_other"

_BAD: Mapping[str, tuple[str, ...]] = {
    "tx_stream": ("naks_received",),
    "transmitter": ("messages_sent",),
    "tx_receiver": ("naks_received",),
    "rx_stream": ("packets_lost", "naks_sent"),
    "receiver": ("messages_lost", "messages_recovered", "queue_full"),
}
"""Counters that rank the items of a scope."""


@dataclass(frozen=True, slots=True)
class Share:
    """The items shown in one round."""

    kept: tuple[Item, ...]
    others: tuple[Item, ...] = ()
    """One item per node and scope in place of the folded ones."""
    folded: Mapping[str, int] = field(default_factory=dict)
    """Number of series left out, by scope."""


def series_of(item: Item, selection: Selection = EVERYTHING) -> int:
    """Return the largest number of series of an item and, for a receiver, of its join with its sender."""
    return _costs([item], selection)[item.key]


def _costs(found: Sequence[Item], selection: Selection) -> dict[Key, int]:
    """Return the number of series of each item."""
    by_scope: defaultdict[str, list[Item]] = defaultdict(list)
    for item in found:
        by_scope[item.scope].append(item)
    costs = {}
    for scope, members in by_scope.items():
        _, has = gathered([item.values for item in members], _ordered(scope, selection.detail))
        has_info = selection.has_info(scope)
        joined = joined_series(selection) if scope == "receiver" else 0
        of_histograms = {
            kept: _series(scope, (), kept, selection) for kept in {tuple(one.histograms) for one in members}
        }
        for item, count in zip(members, has.sum(axis=1).tolist(), strict=True):
            costs[item.key] = count + of_histograms[tuple(item.histograms)] + (has_info and bool(item.info)) + joined
    return costs


def _series(scope: str, values: Iterable[str], histograms: Iterable[str], selection: Selection) -> int:
    cells = _cells(scope, selection.detail)
    per_histogram = len(selection.bounds_ns(scope)) + 3 + len(PERCENTILES)  # buckets with +Inf, sum, count, window
    return len(cells.intersection(values)) + per_histogram * len(cells.intersection(histograms))


@cache
def _cells(scope: str, detail: bool) -> frozenset[str]:
    selection = Selection(detail)
    return frozenset(c.name for c in catalogue.scopes()[scope].cells if selection.has(scope, c.statistic.name))


@cache
def _ordered(scope: str, detail: bool) -> Sequence[str]:
    return sorted(_cells(scope, detail))


def joined_series(selection: Selection) -> int:
    """Return the largest number of series of a receiver joined with its sender."""
    return _joined_series(selection.detail)


@cache
def _joined_series(detail: bool) -> int:
    selection = Selection(detail)
    sizes = {"class": min(len(JUDGED), len(selection.classes) + 1), "late": len(Blame)}
    prefix = "fleet_receiver_"
    found = (name.removeprefix(prefix) for name in catalogue.derived() if name.startswith(prefix))
    return sum(sizes.get(name, 1) for name in found if selection.has("fleet_receiver", name))


class Budget:
    """Keeps a sequence of snapshots within a number of series."""

    def __init__(self, limit: int, selection: Selection = EVERYTHING) -> None:
        """Create a budget of `limit` series for the answers of a selection."""
        self.limit = limit
        self._selection = selection
        self._before: dict[Key, Item] = {}
        self._totals: dict[Key, Item] = {}

    def share(
        self, found: Sequence[Item], window_start: Mapping[Key, Item], judged: Mapping[Key, float] | None = None
    ) -> Share:
        """Choose the items to show.

        Args:
            found: All items of this round.
            window_start: The items at the start of the recent window.
            judged: Badness of items by key, where it is known.
        """
        nodes = {item.labels[0] for item in found}
        self._totals = {key: _at_rest(total) for key, total in self._totals.items() if key[1][0] in nodes}
        costs = _costs(found, self._selection)
        kept, folded = self._split(found, costs, window_start, judged or {})
        groups: defaultdict[Key, list[Item]] = defaultdict(list)
        for item in folded:
            groups[_group(item)].append(item)
        for key, group in groups.items():
            self._totals[key] = self._advanced(key, group)
        self._before = {item.key: item for item in found} if self._totals else {}
        left_out: defaultdict[str, int] = defaultdict(int)
        for item in folded:
            left_out[item.scope] += costs[item.key]
        room = self.limit - sum(costs[item.key] for item in kept)
        return Share(tuple(kept), self._fitting(room, left_out), left_out)

    def _split(
        self,
        found: Sequence[Item],
        costs: Mapping[Key, int],
        window_start: Mapping[Key, Item],
        judged: Mapping[Key, float],
    ) -> tuple[list[Item], list[Item]]:
        if sum(costs.values()) + sum(map(self._sum_of, self._totals.values())) <= self.limit:
            return list(found), []
        by_scope: defaultdict[str, list[Item]] = defaultdict(list)
        for item in found:
            by_scope[item.scope].append(item)
        fixed = by_scope.pop("instance", [])
        folded = Counter(_group(item) for members in by_scope.values() for item in members)
        sums = self._sums([*self._totals.values(), *(item for members in by_scope.values() for item in members)])
        room = self.limit - sum(costs[item.key] for item in fixed) - sum(sums.values())
        chosen = {item.key for item in fixed}
        for item in _in_turn([_worst_first(members, window_start, judged) for members in by_scope.values()]):
            group = _group(item)
            folded[group] -= 1
            is_last = not folded[group] and group not in self._totals
            room += (sums[group] if is_last else 0) - costs[item.key]
            if room < 0:
                break
            chosen.add(item.key)
        return [item for item in found if item.key in chosen], [item for item in found if item.key not in chosen]

    def _sums(self, found: Iterable[Item]) -> dict[Key, int]:
        """Return the largest number of series of each sum."""
        values: defaultdict[Key, set[str]] = defaultdict(set)
        histograms: defaultdict[Key, set[str]] = defaultdict(set)
        for item in found:
            values[_group(item)].update(item.values)
            histograms[_group(item)].update(item.histograms)
        return {key: _series(key[0], values[key], histograms[key], self._selection) for key in values}

    def _sum_of(self, total: Item) -> int:
        return _series(total.scope, total.values, total.histograms, self._selection)

    def _fitting(self, room: int, left_out: defaultdict[str, int]) -> tuple[Item, ...]:
        """Return the sums that fit, in the order of their keys; counts the series of the others."""
        found = []
        for _, total in sorted(self._totals.items()):
            room -= self._sum_of(total)
            if room >= 0:
                found.append(total)
            else:
                left_out[total.scope] += self._sum_of(total)
        return tuple(found)

    def _advanced(self, key: Key, group: Sequence[Item]) -> Item:
        """Sum a group of folded items: gauges as they are, counters increased by the new counts."""
        cells = _cells(key[0], self._selection.detail)
        group = [_part(item, cells) for item in group]
        now = combined(group, key[1])
        total = self._totals.get(key)
        if total is None:
            return now
        news = combined([_since(item, self._before.get(item.key)) for item in group], key[1])
        counted = counters()[now.scope]
        values = {
            name: total.values.get(name, 0) + news.values[name] if name in counted else value
            for name, value in now.values.items()
        }
        histograms = {name: _plus(total.histograms.get(name), histogram) for name, histogram in news.histograms.items()}
        return replace(now, values=values, histograms=histograms)


def _part(item: Item, cells: frozenset[str]) -> Item:
    """Return an item with only those of its histograms that are shown: a snapshot may lack the others."""
    if cells.issuperset(item.histograms):
        return item
    return replace(item, histograms={name: one for name, one in item.histograms.items() if name in cells})


def _group(item: Item) -> Key:
    """Return the key of the sum that an item is folded into."""
    return item.scope, (item.labels[0], *(OTHER,) * (len(item.labels) - 1))


def _in_turn(lists: Sequence[Sequence[Item]]) -> list[Item]:
    """Yield the first item of every list, then the second of every list, and so on."""
    longest = max(map(len, lists), default=0)
    return [members[place] for place in range(longest) for members in lists if place < len(members)]


def _worst_first(members: Sequence[Item], window_start: Mapping[Key, Item], judged: Mapping[Key, float]) -> list[Item]:
    def badness(item: Item) -> tuple[float, int, int, tuple[str, ...]]:
        older = window_start.get(item.key)
        total, before = _bad(item), _bad(older) if older else 0
        ranked = judged.get(item.key, float(item.values.get("badness", 0)))
        return -ranked, -(total - before if total >= before else total), -total, item.labels

    return sorted(members, key=badness)


def _bad(item: Item) -> int:
    wanted = _BAD.get(item.scope, ())
    cells = catalogue.scopes()[item.scope].cells
    return sum(item.values.get(cell.name, 0) for cell in cells if cell.statistic.name in wanted)


def _at_rest(total: Item) -> Item:
    """Return the counters of a total. Its gauges belong to the items folded at that time."""
    counted = counters()[total.scope]
    return replace(total, values={name: value for name, value in total.values.items() if name in counted})


def _since(item: Item, older: Item | None) -> Item:
    """Return the increase of an item since `older`; all counts when the item is new or restarted."""
    counted = counters()[item.scope]
    if older is None or any(item.values.get(name, 0) < older.values.get(name, 0) for name in counted):
        return item
    values = {
        name: value - older.values.get(name, 0) if name in counted else value for name, value in item.values.items()
    }
    histograms = {name: since(value, older.histograms.get(name)) for name, value in item.histograms.items()}
    return replace(item, values=values, histograms=histograms)


def _plus(total: Histogram | None, news: Histogram) -> Histogram:
    if total is None or not same_layout(total, news):
        return news
    return merged([total, news]) or news
