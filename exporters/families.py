"""Metric families from items and nodes: pure functions; names, units, labels and help texts come from the catalogue.

Values are exported in base units (seconds, bytes). The catalogue's `instance` becomes `node`, because Prometheus has
its own label `instance`. Descriptive values go to the info family of their scope only. Samples have no timestamps.
Families without samples are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from heliograph.engine import catalogue
from heliograph.engine.catalogue import Derived, Scope, Statistic, names
from heliograph.engine.catalogue.outside import Output, outside
from heliograph.exporters.buckets import cumulative, since, window_values
from heliograph.exporters.items import RUNNING, Item, Key, Node
from heliograph.monitor.behaviour import JUDGED
from heliograph.monitor.blame import Blame
from heliograph.monitor.collector.account import Account, HostState
from heliograph.monitor.fleet import ReceiverRow
from heliograph.monitor.model import Health
from heliograph.monitor.modules.lane import LaneStats

__all__ = [
    "account_families",
    "book_families",
    "derived_family",
    "describe",
    "fleet_families",
    "lane_families",
    "module_families",
    "node_families",
    "statistic_families",
]

Row = tuple[Sequence[str], float]
"""Label values and a value."""

WINDOW_LABEL = "percentile"


def describe() -> Iterator[Metric]:
    """Yield every possible family, without samples."""
    for scope in catalogue.scopes().values():
        if scope.info:
            yield _info_family(scope)
        for statistic in scope.statistics:
            yield from _statistic(scope, statistic)
    for derived in catalogue.derived().values():
        yield derived_family(derived.name, ())


def _label_names(labels: Iterable[str]) -> list[str]:
    return [names.metric_label(name) for name in labels]


def _divisor(of: Statistic | Derived) -> int:
    """The inverse of the catalogue's scale: division by 10^9 keeps decimals exact, multiplication by 10^-9 does not."""
    return round(1 / names.scale(of))


def _info_family(scope: Scope) -> GaugeMetricFamily:
    text = f"Descriptive labels, value 1: {scope.help}"
    return GaugeMetricFamily(names.info_metric(scope), text, labels=_label_names((*scope.labels, *scope.info)))


def _statistic(scope: Scope, statistic: Statistic) -> tuple[Metric, ...]:
    """Return the empty families of a statistic: one, or two for a histogram."""
    name = names.metric(statistic)
    labels = _label_names(scope.labels)
    if statistic.kind == "histogram":
        window = f"{statistic.help} Percentiles of the last heliograph_exporter_window_seconds."
        return (
            HistogramMetricFamily(name, statistic.help, labels=labels),
            GaugeMetricFamily(names.window_metric(statistic), window, labels=[*labels, WINDOW_LABEL]),
        )
    if statistic.split is not None:
        labels.append(names.metric_label(statistic.split.label))
    if statistic.kind == "counter":
        return (CounterMetricFamily(name, statistic.help, labels=labels),)
    return (GaugeMetricFamily(name, statistic.help, labels=labels),)


def derived_family(name: str, rows: Iterable[Row]) -> Metric:
    """Return a derived family with its samples. Values are in internal units (ns where the catalogue says so)."""
    derived: Derived = catalogue.derived()[name]
    kind = CounterMetricFamily if derived.kind == "counter" else GaugeMetricFamily
    family = kind(names.family(derived), derived.help, labels=_label_names(derived.labels))
    divisor = _divisor(derived)
    for labels, value in rows:
        family.add_metric(_shown(labels), value / divisor)
    return family


def _shown(labels: Iterable[str]) -> list[str]:
    """Make label values safe, so that every scraper can parse the answer."""
    return [_safe(label) for label in labels]


@lru_cache(maxsize=1 << 15)  # every series of an object repeats its labels
def _safe(label: str) -> str:
    return outside(label, Output.LABEL)


def statistic_families(found: Iterable[Item], window_start: Mapping[Key, Item]) -> Iterator[Metric]:
    """Yield all statistics of the items.

    Args:
        found: The items to show.
        window_start: The items at the start of the percentile window. A missing item is shown from its beginning.
    """
    by_scope: defaultdict[str, list[Item]] = defaultdict(list)
    for item in found:
        by_scope[item.scope].append(item)
    for name, members in by_scope.items():
        scope = catalogue.scopes()[name]
        if scope.info:
            info = _info_family(scope)
            for item in members:
                if item.info:
                    info.add_metric(_shown([*item.labels, *(item.info.get(key, "") for key in scope.info)]), 1)
            yield info
        for statistic in scope.statistics:
            if statistic.kind == "histogram":
                yield from _filled_histogram(scope, statistic, members, window_start)
            else:
                yield _filled(scope, statistic, members)


def _filled(scope: Scope, statistic: Statistic, members: Iterable[Item]) -> Metric:
    (family,) = _statistic(scope, statistic)
    assert isinstance(family, CounterMetricFamily | GaugeMetricFamily)
    divisor = _divisor(statistic)
    for item in members:
        for cell in statistic.cells:
            if (value := item.values.get(cell.name)) is not None:
                labels = item.labels if cell.value is None else (*item.labels, cell.value)
                family.add_metric(_shown(labels), value / divisor)
    return family


def _filled_histogram(
    scope: Scope, statistic: Statistic, members: Iterable[Item], window_start: Mapping[Key, Item]
) -> Iterator[Metric]:
    family, window = _statistic(scope, statistic)
    assert isinstance(family, HistogramMetricFamily)
    assert isinstance(window, GaugeMetricFamily)
    divisor = _divisor(statistic)
    for item in members:
        if (whole := item.histograms.get(statistic.name)) is None:
            continue
        labels = _shown(item.labels)
        family.add_metric(labels, cumulative(whole), whole.total_ns / divisor)
        older = window_start.get(item.key)
        before = older.histograms.get(statistic.name) if older else None
        for percentile, value in window_values(since(whole, before)):
            window.add_metric((*labels, percentile), value / divisor)
    yield family
    yield window


def node_families(found: Sequence[Node]) -> Iterator[Metric]:
    """Yield the state of each node: whether it is up, its health, and its start."""
    known = [node for node in found if node.state.started_ns]
    up = [node for node in found if node.state.health is not Health.CLOSED]
    yield derived_family("node_up", [((n.name,), float(n.state.health in RUNNING)) for n in up])
    health = [((n.name, state.value), float(n.state.health is state)) for n in found for state in Health]
    yield derived_family("node_health", health)
    yield derived_family("node_start", [((n.name,), n.state.started_ns) for n in known])
    yield derived_family("node_heartbeat", [((n.name,), n.state.heartbeat_ns) for n in known])
    yield derived_family("node_remains", [((n.name,), n.remains) for n in found])


def fleet_families(rows: Sequence[ReceiverRow]) -> Iterator[Metric]:
    """Yield each receiver joined with its sender. Values that need an unreachable sender have no sample."""

    def labels(row: ReceiverRow) -> tuple[str, ...]:
        return row.instance, row.topic, row.stream, row.transmitter or ""

    def gauge(name: str, value: Callable[[ReceiverRow], float | None]) -> Metric:
        pairs = ((labels(row), value(row)) for row in rows)
        return derived_family(f"fleet_receiver_{name}", [(key, found) for key, found in pairs if found is not None])

    yield gauge("lag_messages", lambda row: row.lag_messages if row.transmitter else None)
    yield gauge("lag_seconds", _lag_ns)
    yield gauge("lag_bytes", lambda row: row.lag_bytes if row.transmitter else None)
    yield gauge("in_flight_messages", lambda row: row.in_flight)
    yield gauge("residual_messages", lambda row: row.residual)
    yield gauge("nak_share", lambda row: row.nak_share)
    yield gauge("latency_trusted", lambda row: None if row.trust is None else float(row.trust.is_fact))
    yield gauge("queue_ratio", lambda row: row.queue_fill)
    classes = [((*labels(row), item.value), float(row.behaviour is item)) for row in rows for item in JUDGED]
    yield derived_family("fleet_receiver_class", classes)
    judged = [(row, row.late.blame) for row in rows if row.late]
    lates = [((*labels(row), item.value), float(found is item)) for row, found in judged for item in Blame]
    yield derived_family("fleet_receiver_late", lates)


def book_families(found: Mapping[tuple[str, str], int]) -> Iterator[Metric]:
    """Yield the largest residual by node and identity."""
    yield derived_family("reconciliation_residual", list(found.items()))


def _lag_ns(row: ReceiverRow) -> float | None:
    if row.transmitter is None:
        return None
    return None if row.lag_seconds is None else row.lag_seconds * 1e9


def lane_families(states: Sequence[LaneStats]) -> Iterator[Metric]:
    """Yield the state of the exporters of this process."""
    yield derived_family("exporter_publishes", [((s.name,), s.succeeded) for s in states])
    yield derived_family("exporter_publish_failures", [((s.name,), s.errors) for s in states])
    yield derived_family("exporter_snapshots_skipped", [((s.name,), s.dropped) for s in states])
    yield derived_family("exporter_publish_duration_seconds", [((s.name,), s.duration_ns) for s in states])
    succeeded = [((s.name,), s.success_ns) for s in states if s.success_ns]
    yield derived_family("exporter_success", succeeded)


_MODULE_COUNTERS = {
    "module_snapshots": "snapshots",
    "module_snapshots_dropped": "dropped",
    "module_events": "events",
    "module_events_dropped": "events_dropped",
    "module_topics": "topics",
    "module_topics_dropped": "topics_dropped",
    "module_errors": "errors",
    "module_crashes": "crashes",
    "module_restarts": "restarts",
    "module_lost": "lost",
    "module_busy_seconds": "busy_ns",
}


def module_families(states: Sequence[LaneStats]) -> Iterator[Metric]:
    """Yield the counters of the modules of this process."""
    for family, field in _MODULE_COUNTERS.items():
        yield derived_family(family, [((s.name,), getattr(s, field)) for s in states])


def account_families(account: Account) -> Iterator[Metric]:
    """Yield the reports a collector received and missed, by host."""
    hosts = account.hosts

    def of_hosts(name: str, value: Callable[[HostState], float]) -> Metric:
        return derived_family(f"collector_{name}", [((host.host,), value(host)) for host in hosts])

    yield derived_family("collector_hosts", [((), len(hosts))])
    yield of_hosts("host_up", lambda host: not host.silent and not host.reason)
    yield of_hosts("host_age_seconds", lambda host: host.age * 1e9)
    yield of_hosts("host_relays", lambda host: host.hops)
    yield of_hosts("snapshots", lambda host: host.stats.snapshots)
    yield of_hosts("snapshots_lost", lambda host: host.stats.lost)
    yield of_hosts("snapshots_awaiting_keyframe", lambda host: host.stats.awaiting)
    yield of_hosts("snapshots_skipped", lambda host: host.stats.skipped)
    yield of_hosts("snapshots_damaged", lambda host: host.stats.damaged)
    yield of_hosts("snapshots_duplicate", lambda host: host.stats.duplicates)
    yield of_hosts("publisher_changes", lambda host: host.stats.restarts)
    yield of_hosts("bytes", lambda host: host.stats.bytes)
    yield of_hosts("events", lambda host: host.stats.events)
    missed = [((host.host, name), count) for host in hosts for name, count in host.missed_by_instance.items()]
    yield derived_family("collector_events_missed", missed)
    yield derived_family("collector_messages", [((), account.stats.messages)])
    yield derived_family("collector_messages_lost", [((), account.stats.lost)])
    yield derived_family("collector_messages_refused", [((), account.stats.refused)])
    yield derived_family("collector_reports_looped", [((), account.stats.looped)])
    yield derived_family("collector_reports_untracked", [((), account.stats.unheard)])
    yield derived_family("collector_reports_refused", [((key,), n) for key, n in account.stats.refused_by.items()])
    yield of_hosts("reports_dropped", lambda host: host.stats.dropped)
    yield derived_family("collector_hosts_evicted", [((), account.stats.forgotten)])
    yield derived_family("collector_memory", [((), account.stats.memory_bytes)])
    yield derived_family("collector_memory_limit", [((), account.stats.memory_limit)])
    yield derived_family("collector_objects", [((), account.stats.objects)])
