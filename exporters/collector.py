"""The collector: turns the latest snapshot into metric families whenever prometheus-client asks.

`update` takes a snapshot and settles what depends on the order of snapshots: which items are shown, the counters of the
folded ones, the start of the percentile window. `collect` only reads the scene that `update` left, so it may run on any
number of threads, and a scraper gets a whole snapshot or another, never half of each.

The percentile gauges are taken over a window rather than over the interval of the snapshots, since a scraper that comes
every few seconds would miss most intervals. The window begins at the older of two marks that are set a window length
apart, so it covers at least one window length and less than two, plus an interval; how long it was is exported with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from heliograph.exporters.budget import Budget, Share
from heliograph.exporters.families import (
    account_families,
    book_families,
    derived_family,
    describe,
    fleet_families,
    lane_families,
    module_families,
    node_families,
    statistic_families,
)
from heliograph.exporters.items import RUNNING, Item, Key, Node, items, nodes
from heliograph.monitor.books import worst
from heliograph.monitor.collector.account import Account
from heliograph.monitor.fleet import ReceiverRow, peer_names, receivers
from heliograph.monitor.model import Snapshot
from heliograph.monitor.modules.lane import LaneStats
from heliograph.monitor.window import Watcher

__all__ = ["MAX_SERIES", "WINDOW", "SnapshotCollector"]

MAX_SERIES = 20_000
WINDOW = 15.0
"""Seconds; at least the scrape interval, so that no value goes unseen."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """A moment the window may begin at."""

    time_ns: int
    snapshot: Snapshot | None = None
    """None: before the first snapshot, so that the window is the whole life of everything."""
    items: Mapping[Key, Item] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Scene:
    """All that one answer is made of."""

    time_ns: int
    window: _Mark
    nodes: Sequence[Node]
    share: Share
    receivers: Sequence[ReceiverRow]
    """Over the window; only those whose own statistics are shown."""
    torn: Mapping[str, int]
    events_missed: int
    books: Mapping[tuple[str, str], int]
    """The largest residual of each node and sum."""


class SnapshotCollector(Collector):
    """Metric families of the latest snapshot, and of the exporting process itself."""

    def __init__(
        self,
        *,
        max_series: int = MAX_SERIES,
        window: float = WINDOW,
        lanes: Callable[[], Iterable[LaneStats]] = tuple,
        account: Callable[[], Account | None] = lambda: None,
        refused: Callable[[], Mapping[str, int]] = dict,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Prepare a collector that has nothing to show yet.

        Args:
            max_series: Most series of statistics; what is beyond is folded (see `budget`).
            window: Length of the percentile window, seconds.
            lanes: Tells how the exporters and modules of this process fare.
            account: Tells what a collector misses, where snapshots come from one.
            refused: Tells what the web server turned away, by cause.
            monotonic_ns: Clock for the collector's own duration.
        """
        self._budget = Budget(max_series)
        self._window_ns = int(window * 1e9)
        self._lanes = lanes
        self._account = account
        self._refused = refused
        self._monotonic_ns = monotonic_ns
        self._marks: tuple[_Mark, _Mark] | None = None
        self._torn: dict[str, int] = {}
        self._events_missed = 0
        self._watcher = Watcher()
        self._scene: _Scene | None = None

    def registry(self) -> CollectorRegistry:
        """A registry with this collector alone, for the client's encoders."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return registry

    def update(self, snapshot: Snapshot) -> None:
        """Show this snapshot from now on."""
        found_nodes = nodes(snapshot)
        found = items(found_nodes, peer_names(snapshot))
        older = self._moved_on(_Mark(snapshot.time_ns, snapshot, {item.key: item for item in found}))
        self._torn = {
            node.name: self._torn.get(node.name, 0) + sum(item.torn for item in node.state.objects)
            for node in found_nodes
        }
        self._events_missed += snapshot.events_missed
        everyone = receivers(older.snapshot, snapshot, self._watcher)
        judged = {("receiver", row.identity): row.badness for row in reversed(everyone)}  # of several the worst
        share = self._budget.share(found, older.items, judged)
        rows = _shown(everyone, share.kept)
        books = worst(replace(node.state, name=node.name) for node in found_nodes if node.state.health in RUNNING)
        self._scene = _Scene(snapshot.time_ns, older, found_nodes, share, rows, self._torn, self._events_missed, books)

    def _moved_on(self, now: _Mark) -> _Mark:
        """The mark the window begins at; `now` becomes a mark when the newer one is a window length old."""
        if self._marks is None:
            self._marks = (now, now)
            return _Mark(now.time_ns)
        older, newer = self._marks
        if now.time_ns < newer.time_ns:  # the clock was set back: begin anew
            self._marks = (now, now)
            return now
        if now.time_ns - newer.time_ns >= self._window_ns:
            self._marks = (newer, now)
        return older

    def collect(self) -> Iterator[Metric]:
        """Families with samples, the collector's own last."""
        began = self._monotonic_ns()
        scene = self._scene
        series = 0
        if scene is not None:
            shown = (*scene.share.kept, *scene.share.others)
            for family in chain(statistic_families(shown, scene.window.items), fleet_families(scene.receivers)):
                series += len(family.samples)
                if family.samples:
                    yield family
            for family in self._about(scene):
                if family.samples:
                    yield family
        lanes = list(self._lanes())
        exporters = lane_families([lane for lane in lanes if lane.kind == "exporter"])
        modules = module_families([lane for lane in lanes if lane.kind == "module"])
        account = self._account()
        for family in chain(exporters, modules, account_families(account) if account else ()):
            if family.samples:
                yield family
        refused = derived_family("exporter_requests_refused", [((key,), n) for key, n in self._refused().items()])
        if refused.samples:
            yield refused
        yield derived_family("exporter_series", [((), series)])
        yield derived_family("exporter_series_limit", [((), self._budget.limit)])
        yield derived_family("exporter_scrape_duration_seconds", [((), self._monotonic_ns() - began)])

    @staticmethod
    def _about(scene: _Scene) -> Iterator[Metric]:
        yield from node_families(scene.nodes)
        yield from book_families(scene.books)
        yield derived_family("stats_torn_reads", [((name,), count) for name, count in scene.torn.items()])
        yield derived_family("stats_events_missed", [((), scene.events_missed)])
        yield derived_family("exporter_snapshot", [((), scene.time_ns)])
        yield derived_family("exporter_window_seconds", [((), scene.time_ns - scene.window.time_ns)])
        folded = [((scope,), count) for scope, count in scene.share.folded.items()]
        yield derived_family("exporter_series_folded", folded)

    def describe(self) -> Iterator[Metric]:
        """Every family there can be, so that a scraper may ask for some by ``name[]``."""
        return describe()


def _shown(rows: Iterable[ReceiverRow], kept: Iterable[Item]) -> list[ReceiverRow]:
    """One row, the worst, for each receiver whose own statistics are shown."""
    wanted = {item.labels for item in kept if item.scope == "receiver"}
    first: dict[tuple[str, ...], ReceiverRow] = {}
    for row in rows:  # worst first
        labels = (row.instance, row.topic, row.stream)
        if labels in wanted:
            first.setdefault(labels, row)
    return list(first.values())
