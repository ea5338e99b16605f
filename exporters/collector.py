"""The collector turns the latest snapshot into metric families when prometheus-client asks for them.

`update` takes a snapshot and counts what must be counted of each. The rest is prepared when an answer needs it, and at
least every `PREPARE_SECONDS`: the choice of items, the counters of the folded items, the join of receivers with their
sources, the start of the percentile window. Histograms are most of the cost of a reading, so the snapshots of `update`
may lack them; one with histograms is then taken when it is prepared. It has only the histograms of ``/metrics``, unless
the answer shows all or the snapshot begins a window. `collect` may run on any number of threads. Each answer shows one
whole snapshot.

The percentile gauges cover a window, not the interval of the snapshots, because a scraper would miss most intervals.
The window begins at the older of two marks that are set one window length apart. It covers at least one window length,
and less than two plus an interval. The length is exported too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from heliograph.exporters.budget import Budget, Share
from heliograph.exporters.costs import Costs
from heliograph.exporters.exemplars import Exemplars
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
from heliograph.exporters.levels import Levels
from heliograph.exporters.selection import EVERYTHING, Selection, basic_histograms
from heliograph.exporters.tables import Table, Tables
from heliograph.monitor.collector.account import Account
from heliograph.monitor.errors import UserError
from heliograph.monitor.fleet import Receivers, receiver_names, receivers
from heliograph.monitor.model import Snapshot
from heliograph.monitor.modules.lane import LaneStats
from heliograph.monitor.reconciliation import worst
from heliograph.monitor.window import Watcher

__all__ = ["MAX_SERIES", "PREPARE_SECONDS", "WINDOW", "SnapshotCollector"]

MAX_SERIES = 20_000
WINDOW = 15.0
"""Seconds; at least the scrape interval, so that every value is seen by a scrape."""
PREPARE_SECONDS = 5.0
"""Largest time between two snapshots that are prepared, in seconds of the snapshots' clock."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """A possible start of the window."""

    time_ns: int
    snapshot: Snapshot | None = None
    """None: before the first snapshot; the window then covers the whole life of every object."""
    items: Mapping[Key, Item] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Scene:
    """The content of one answer."""

    time_ns: int
    window: _Mark
    nodes: Sequence[Node]
    items: Sequence[Item]
    receivers: Receivers
    """Receivers over the window, worst first."""
    torn: Mapping[str, int]
    events_missed: int
    books: Mapping[tuple[str, str], int]
    """The largest residual by node and identity."""
    has_detail: bool
    """Whether it has all histograms; otherwise those of ``/metrics``."""
    shares: dict[bool, Share] = field(default_factory=dict)
    """The shown items: in ``/metrics``, and in an answer with everything."""


class SnapshotCollector(Collector):
    """Metric families of the latest snapshot and of the exporting process."""

    def __init__(
        self,
        *,
        max_series: int = MAX_SERIES,
        window: float = WINDOW,
        lanes: Callable[[], Iterable[LaneStats]] = tuple,
        account: Callable[[], Account | None] = lambda: None,
        refused: Callable[[], Mapping[str, int]] = dict,
        costs: Costs | None = None,
        whole: Callable[[bool | Collection[str]], Snapshot] | None = None,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Create a collector without data.

        Args:
            max_series: Largest number of series of statistics; the rest is folded (see `budget`).
            window: Length of the percentile window in seconds.
            lanes: Returns the state of the exporters and modules of this process.
            account: Returns the account of missing data, when snapshots come from a collector.
            costs: Adds up the cost of this work; None: the cost is not exported.
            whole: Takes a snapshot with all or the named histograms, when those of `update` have none.
            refused: Returns the number of requests that the web server rejected, by cause.
            monotonic_ns: Clock in ns for the duration of a collection.
        """
        self._limit = max_series
        self._budgets = {detail: Budget(max_series, Selection(detail)) for detail in (False, True)}
        self._window_ns = int(window * 1e9)
        self._lanes = lanes
        self._account = account
        self._refused = refused
        self._costs = costs
        self._whole = whole
        self._monotonic_ns = monotonic_ns
        self._marks: tuple[_Mark, _Mark] | None = None
        self._torn: dict[str, int] = {}
        self._events_missed = 0
        self._exemplars = Exemplars()
        self._watcher = Watcher()
        self._guard = threading.Lock()
        self._version = 0
        self._latest: Snapshot | None = None
        """Not prepared yet."""
        self._scene: _Scene | None = None
        self._shown_of: _Scene | None = None
        self._shown: dict[bool, list[Table]] = {}
        """Families of that scene: in ``/metrics``, and all."""
        self._tables = Tables()
        self._levels = Levels()

    def registry(self) -> CollectorRegistry:
        """A registry with only this collector, for the encoders of prometheus-client."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return registry

    @property
    def version(self) -> int:
        """A number that changes with each snapshot."""
        return self._version

    def update(self, snapshot: Snapshot) -> None:
        """Show this snapshot from now on."""
        with self._guard:
            self._count(snapshot)
            self._latest = snapshot
            self._version += 1
            since_ns = snapshot.time_ns - self._scene.time_ns if self._scene else 0
            if self._scene is None or not 0 <= since_ns < PREPARE_SECONDS * 1e9:
                self._prepare(snapshot)

    def _count(self, snapshot: Snapshot) -> None:
        found = nodes(snapshot)
        for node in found:
            torn = sum(item.torn for item in node.state.objects)
            self._torn[node.name] = self._torn.get(node.name, 0) + torn
        self._events_missed += snapshot.events_missed
        self._exemplars.learn(snapshot.events, found)

    def prepare(self, detail: bool = False) -> None:
        """Join the latest snapshot, if that has not been done.

        Args:
            detail: Whether all histograms are needed.
        """
        self._current(detail)

    def _current(self, detail: bool) -> _Scene | None:
        with self._guard:
            if self._latest is not None:
                self._prepare(self._latest, detail)
            elif detail and self._scene is not None and not self._scene.has_detail:
                self._take(detail)
            return self._scene

    def _prepare(self, snapshot: Snapshot, detail: bool = False) -> None:
        self._latest = None
        if self._whole is None:
            self._join(snapshot, has_detail=True)
        else:
            self._take(detail or self._begins_window(snapshot.time_ns))

    def _take(self, detail: bool) -> None:
        """Take a snapshot with histograms, and join it."""
        assert self._whole is not None
        try:
            snapshot = self._whole(detail or basic_histograms())
        except UserError:
            return  # the source of the other snapshots reports it
        self._count(snapshot)
        self._join(snapshot, detail)

    def _join(self, snapshot: Snapshot, has_detail: bool) -> None:
        with self._costs.during("joining") if self._costs else nullcontext():
            self._scene = self._joined(snapshot, has_detail)
            self._share(self._scene, detail=False)

    def _joined(self, snapshot: Snapshot, has_detail: bool) -> _Scene:
        found_nodes = nodes(snapshot)
        every = items(found_nodes, receiver_names(snapshot))
        self._exemplars.keep({item.key for item in every})
        found = self._levels.shown(every, snapshot.time_ns, has_all=has_detail)
        older = self._moved_on(_Mark(snapshot.time_ns, snapshot, {item.key: item for item in found}), has_detail)
        names = {node.name for node in found_nodes}
        self._torn = {name: count for name, count in self._torn.items() if name in names}
        everyone = receivers(older.snapshot, snapshot, self._watcher)
        books = worst(replace(node.state, name=node.name) for node in found_nodes if node.state.health in RUNNING)
        torn = dict(self._torn)
        return _Scene(
            snapshot.time_ns, older, found_nodes, found, everyone, torn, self._events_missed, books, has_detail
        )

    def _begins_window(self, now_ns: int) -> bool:
        """Whether a snapshot of this time becomes a mark."""
        return self._marks is None or not 0 <= now_ns - self._marks[1].time_ns < self._window_ns

    def _moved_on(self, now: _Mark, has_detail: bool) -> _Mark:
        """Return the start of the window. `now` becomes a mark when the newer mark is a window length old.

        Only a snapshot with all histograms becomes a mark, for a later answer may show all.
        """
        if self._marks is None:
            self._marks = (now, now)
            return _Mark(now.time_ns)
        older, newer = self._marks
        if now.time_ns < newer.time_ns:  # the clock was set back: restart the window
            self._marks = (now, now)
            return now
        if has_detail and now.time_ns - newer.time_ns >= self._window_ns:
            self._marks = (newer, now)
        return older

    def collect(self) -> Iterator[Table]:
        """Yield all families with samples; those of the collector are last."""
        return self.families(EVERYTHING)

    def selected(self, selection: Selection) -> Collector:
        """Return a part of the families, for an encoder."""
        return _Selected(self, selection)

    def families(self, selection: Selection) -> Iterator[Table]:
        """Yield the selected families with samples; those of the collector are last."""
        began = self._monotonic_ns()
        scene = self._current(selection.detail)
        series = 0
        if scene is not None:
            for family in self._statistics(scene, selection):
                series += len(family)
                yield family
        if selection.is_of_objects:
            return
        for family in self._own(scene, selection.detail, series, began):
            if family.form.is_named(selection.names) and family:
                yield family

    def _own(self, scene: _Scene | None, detail: bool, series: int, began: int) -> Iterator[Table]:
        """Yield what is not of single objects."""
        if scene is not None:
            yield from self._about(scene)
            with self._guard:
                folded = self._share(scene, detail).folded
            yield derived_family("exporter_series_folded", [((scope,), count) for scope, count in folded.items()])
        lanes = list(self._lanes())
        yield from lane_families([lane for lane in lanes if lane.kind == "exporter"])
        yield from module_families([lane for lane in lanes if lane.kind == "module"])
        if (account := self._account()) is not None:
            yield from account_families(account)
        yield derived_family("exporter_requests_refused", [((key,), n) for key, n in self._refused().items()])
        yield derived_family("exporter_series", [((), series)])
        yield derived_family("exporter_histograms_expired", [((), self._levels.expired)])
        if self._costs is not None:
            yield derived_family("exporter_cpu", [((stage,), ns) for stage, ns in self._costs.by_stage().items()])
            yield derived_family("exporter_answer_bytes", [((), self._costs.bytes)])
        yield derived_family("exporter_series_limit", [((), self._limit)])
        yield derived_family("exporter_scrape_duration_seconds", [((), self._monotonic_ns() - began)])

    def _share(self, scene: _Scene, detail: bool) -> Share:
        """Return the items of a scene that an answer shows; chosen once. Call it with the guard held.

        The choice for ``/metrics`` is made for each scene, the other when it is asked for: either counts the increase
        of the folded items since the previous choice.
        """
        if (found := scene.shares.get(detail)) is None:
            rows = scene.receivers
            ranked = zip(rows.identities[::-1], rows.column("badness")[::-1], strict=True)
            # of several of one identity the worst counts
            judged: dict[Key, float] = {("receiver", identity): badness for identity, badness in ranked}
            found = scene.shares[detail] = self._budgets[detail].share(scene.items, scene.window.items, judged)
        return found

    def _statistics(self, scene: _Scene, selection: Selection) -> list[Table]:
        """Return the families of a scene that have series; those of ``/metrics`` and of all are made once."""
        with self._guard:
            share, tables = self._share(scene, selection.detail), self._tables
            shown, rows = (*share.kept, *share.others), _shown(scene.receivers, share.kept)
            if selection.is_of_objects:
                shown, rows, tables = tuple(selection.items(shown)), selection.rows(rows), Tables()
            if self._shown_of is not scene:
                self._shown_of, self._shown = scene, {}
            if (found := self._shown.get(selection.detail)) is None or selection != Selection(selection.detail):
                made = chain(
                    statistic_families(shown, scene.window.items, tables, selection, self._exemplars),
                    fleet_families(rows, tables, selection),
                )
                found = [part for family in made if (part := family.named(selection.names))]
            if selection == Selection(selection.detail):
                self._shown[selection.detail] = found
            return found

    @staticmethod
    def _about(scene: _Scene) -> Iterator[Table]:
        yield from node_families(scene.nodes)
        yield from book_families(scene.books)
        yield derived_family("stats_torn_reads", [((name,), count) for name, count in scene.torn.items()])
        yield derived_family("stats_events_missed", [((), scene.events_missed)])
        yield derived_family("exporter_snapshot", [((), scene.time_ns)])
        yield derived_family("exporter_window_seconds", [((), scene.time_ns - scene.window.time_ns)])

    def describe(self) -> Iterator[Table]:
        """Yield every possible family, so that a scraper may select some with ``name[]``."""
        return describe()


class _Selected(Collector):
    def __init__(self, collector: SnapshotCollector, selection: Selection) -> None:
        self._collector = collector
        self._selection = selection

    def collect(self) -> Iterator[Table]:
        return self._collector.families(self._selection)


def _shown(rows: Receivers, kept: Iterable[Item]) -> Receivers:
    """Keep the worst row of each receiver whose own statistics are shown."""
    wanted = {item.labels for item in kept if item.scope == "receiver"}
    first: dict[tuple[str, ...], int] = {}
    for place, labels in enumerate(rows.identities):  # worst first
        if labels in wanted:
            first.setdefault(labels, place)
    return rows.part(list(first.values()))
