"""Metric families from items and nodes: pure functions; names, units, labels and help texts come from the catalogue.

Values are exported in base units (seconds, bytes). The catalogue's `instance` becomes `node`, because Prometheus has
its own label `instance`. Descriptive values go to the info family of their scope only. Samples have no timestamps.
Families without samples are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from heliograph.engine import catalogue
from heliograph.engine.catalogue import Cell, Derived, Scope, Statistic, names
from heliograph.exporters.buckets import PERCENTILES, columns, le
from heliograph.exporters.exemplars import Exemplars
from heliograph.exporters.items import RUNNING, Item, Key, Node
from heliograph.exporters.selection import EVERYTHING, Selection
from heliograph.exporters.tables import Column, Form, Labels, Table, Tables
from heliograph.monitor.behaviour import JUDGED
from heliograph.monitor.blame import Blame
from heliograph.monitor.collector.account import Account, HostState
from heliograph.monitor.joined import column_of
from heliograph.monitor.model import Health
from heliograph.monitor.modules.lane import LaneStats
from heliograph.monitor.records import gathered
from heliograph.monitor.rows import ReceiverRow

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


def describe() -> Iterator[Table]:
    """Yield every possible family, without samples."""
    for scope in catalogue.scopes().values():
        if scope.info:
            yield Table(_info_form(scope))
        for statistic in scope.statistics:
            yield Table(_form(statistic))
            if statistic.kind == "histogram":
                yield Table(_window_form(statistic))
    for derived in catalogue.derived().values():
        yield derived_family(derived.name, ())


def _label_names(labels: Iterable[str]) -> tuple[str, ...]:
    return tuple(names.metric_label(name) for name in labels)


def _divisor(of: Statistic | Derived) -> int:
    return round(1 / names.scale(of))


def _kind(kind: str) -> str:
    return kind if kind in ("counter", "histogram") else "gauge"


@cache
def _form(statistic: Statistic) -> Form:
    return Form(names.metric(statistic), _kind(statistic.kind), statistic.help, _divisor(statistic))


@cache
def _window_form(statistic: Statistic) -> Form:
    text = f"{statistic.help} Percentiles of the last heliograph_exporter_window_seconds."
    return Form(names.window_metric(statistic), "gauge", text, _divisor(statistic))


@cache
def _info_form(scope: Scope) -> Form:
    return Form(names.info_metric(scope), "gauge", f"Descriptive labels, value 1: {scope.help}")


@cache
def _derived_form(name: str) -> Form:
    derived: Derived = catalogue.derived()[name]
    return Form(names.family(derived), _kind(derived.kind), derived.help, _divisor(derived))


def derived_family(name: str, rows: Iterable[Row], tables: Tables | None = None) -> Table:
    """Return a derived family with its samples. Values are in internal units (ns where the catalogue says so)."""
    found = list(rows)
    label_names = _label_names(catalogue.derived()[name].labels)
    labels = (tables or Tables()).labels(name, label_names, [tuple(key) for key, _ in found])
    return Table(_derived_form(name), [Column(labels, [value for _, value in found])])


def statistic_families(
    found: Iterable[Item],
    window_start: Mapping[Key, Item],
    tables: Tables | None = None,
    selection: Selection = EVERYTHING,
    exemplars: Exemplars | None = None,
) -> Iterator[Table]:
    """Yield the statistics of the items.

    Args:
        found: The items to show.
        window_start: The items at the start of the percentile window. A missing item is shown from its beginning.
        tables: The labels of earlier snapshots.
        selection: The families to show.
        exemplars: The newest losses.
    """
    names_wanted = selection.names
    losses = exemplars or Exemplars()
    kept = tables or Tables()
    by_scope: defaultdict[str, list[Item]] = defaultdict(list)
    for item in found:
        by_scope[item.scope].append(item)
    for name, members in by_scope.items():
        scope = catalogue.scopes()[name]
        label_names = _label_names(scope.labels)
        if scope.info and selection.has_info(name) and _info_form(scope).is_named(names_wanted):
            described = [item for item in members if item.info]
            texts = [(*item.labels, *(item.info.get(key, "") for key in scope.info)) for item in described]
            infos = kept.labels((name, "info"), (*label_names, *_label_names(scope.info)), texts)
            yield Table(_info_form(scope), [Column(infos, [1] * len(described))])
        labels = kept.labels(name, label_names, [item.labels for item in members])
        wanted = [one for one in scope.statistics if selection.has(name, one.name)]
        plain = [one for one in wanted if one.kind != "histogram" and _form(one).is_named(names_wanted)]
        cells = _values(members, [cell for statistic in plain for cell in statistic.cells])
        created = [item.created_ns for item in members]
        yield from (_filled(statistic, labels, cells, created, losses) for statistic in plain)
        for statistic in wanted:
            if statistic.kind == "histogram":
                yield from _filled_histogram(scope, statistic, members, window_start, labels, kept, selection)


def _values(members: Sequence[Item], cells: Sequence[Cell]) -> Mapping[str, Sequence[int | None]]:
    """Return the value of each cell in each item."""
    table, has = gathered([item.values for item in members], [cell.name for cell in cells])
    found: dict[str, Sequence[int | None]] = {}
    for place, cell in enumerate(cells):
        column = table[:, place].view(np.int64) if cell.statistic.kind == "signed" else table[:, place]
        values: list[int | None] = column.tolist()
        for at in np.flatnonzero(~has[:, place]):
            values[at] = None
        found[cell.name] = values
    return found


def _filled(
    statistic: Statistic,
    labels: Labels,
    cells: Mapping[str, Sequence[int | None]],
    created_ns: Sequence[int],
    exemplars: Exemplars,
) -> Table:
    label = names.metric_label(statistic.split.label) if statistic.split else ""
    columns = [
        Column(
            labels,
            cells[cell.name],
            (label, cell.value) if cell.value is not None else None,
            exemplars=exemplars.of(statistic.scope, cell.name, labels.values),
        )
        for cell in statistic.cells
    ]
    return Table(_form(statistic), columns, created_ns=created_ns if statistic.kind == "counter" else ())


def _filled_histogram(
    scope: Scope,
    statistic: Statistic,
    members: Sequence[Item],
    window_start: Mapping[Key, Item],
    labels: Labels,
    tables: Tables,
    selection: Selection,
) -> Iterator[Table]:
    name = statistic.name
    form, window_form = _form(statistic), _window_form(statistic)
    has_buckets, has_window = (one.is_named(selection.names) for one in (form, window_form))
    owners = [item for item in members if name in item.histograms]
    if not owners or not (has_buckets or has_window):
        return
    whole = [item.histograms[name] for item in owners]
    if len(owners) < len(members):
        labels = tables.labels((scope.name, name), labels.names, [item.labels for item in owners])
    bounds = selection.bounds_ns(scope.name) if has_buckets else ()
    starts = [window_start.get(item.key) for item in owners] if has_window else [None] * len(owners)
    before = [start.histograms.get(name) if start else None for start in starts]
    counts, values = columns(whole, before, bounds)
    if has_buckets:
        found = [
            Column(labels, below, ("le", bound), "_bucket", is_count=True)
            for bound, below in zip([*map(le, bounds), "+Inf"], counts, strict=True)
        ]
        found.append(Column(labels, counts[-1], suffix="_count", is_count=True))
        found.append(Column(labels, [one.total_ns for one in whole], suffix="_sum"))
        yield Table(form, found, whole, [item.created_ns for item in owners])
    if has_window:
        percentiles = [
            Column(labels, column, (WINDOW_LABEL, percentile))
            for column, (percentile, _) in zip(values, PERCENTILES, strict=True)
        ]
        yield Table(window_form, percentiles)


def node_families(found: Sequence[Node]) -> Iterator[Table]:
    """Yield the state of each node: whether it is up, its health, and its start."""
    known = [node for node in found if node.state.started_ns]
    up = [node for node in found if node.state.health is not Health.CLOSED]
    yield derived_family("node_up", [((n.name,), float(n.state.health in RUNNING)) for n in up])
    health = [((n.name, state.value), float(n.state.health is state)) for n in found for state in Health]
    yield derived_family("node_health", health)
    yield derived_family("node_start", [((n.name,), n.state.started_ns) for n in known])
    yield derived_family("node_heartbeat", [((n.name,), n.state.heartbeat_ns) for n in known])
    yield derived_family("node_remains", [((n.name,), n.remains) for n in found])


def fleet_families(
    rows: Sequence[ReceiverRow], tables: Tables | None = None, selection: Selection = EVERYTHING
) -> Iterator[Table]:
    """Yield each receiver joined with its sender. Values that need an unreachable sender have no sample."""
    label_names = _label_names(catalogue.derived()["fleet_receiver_class"].labels[:-1])
    transmitters = [name or "" for name in column_of(rows, "transmitter")]
    keys = [(*identity, name) for identity, name in zip(column_of(rows, "identity"), transmitters, strict=True)]
    labels = (tables or Tables()).labels("fleet_receiver", label_names, keys)
    for name, value in _JOINED.items():
        form = _derived_form(f"fleet_receiver_{name}")
        if selection.has("fleet_receiver", name) and form.is_named(selection.names):
            yield Table(form, [Column(labels, value(rows))])
    form = _derived_form("fleet_receiver_class")
    if form.is_named(selection.names):
        columns = []
        behaviours = column_of(rows, "behaviour")
        for item in JUDGED:
            other = 0 if item in selection.classes else None
            holds = [1 if one is item else other for one in behaviours]
            columns.append(Column(labels, holds, ("class", item.value)))
        yield Table(form, columns)
    form = _derived_form("fleet_receiver_late")
    if selection.has("fleet_receiver", "late") and form.is_named(selection.names):
        verdicts = column_of(rows, "late")
        lates = [[int(one.blame is item) if one else None for one in verdicts] for item in Blame]
        columns = [Column(labels, found, ("blame", item.value)) for item, found in zip(Blame, lates, strict=True)]
        yield Table(form, columns)


def book_families(found: Mapping[tuple[str, str], int]) -> Iterator[Table]:
    """Yield the largest residual by node and identity."""
    yield derived_family("reconciliation_residual", list(found.items()))


def _of_sender(name: str) -> Callable[[Sequence[ReceiverRow]], list[float | None]]:
    """Return a function of the column of a name, without values where the sender is unknown."""

    def values(rows: Sequence[ReceiverRow]) -> list[float | None]:
        pairs = zip(column_of(rows, name), column_of(rows, "transmitter"), strict=True)
        return [value if sender else None for value, sender in pairs]

    return values


def _lag_ns(rows: Sequence[ReceiverRow]) -> list[float | None]:
    pairs = zip(column_of(rows, "lag_seconds"), column_of(rows, "transmitter"), strict=True)
    return [None if value is None or sender is None else value * 1e9 for value, sender in pairs]


def _trusted(rows: Sequence[ReceiverRow]) -> list[float | None]:
    return [None if one is None else float(one.is_fact) for one in column_of(rows, "trust")]


_JOINED: Mapping[str, Callable[[Sequence[ReceiverRow]], Sequence[float | None]]] = {
    "lag_messages": _of_sender("lag_messages"),
    "lag_seconds": _lag_ns,
    "lag_bytes": _of_sender("lag_bytes"),
    "in_flight_messages": lambda rows: column_of(rows, "in_flight"),
    "residual_messages": lambda rows: column_of(rows, "residual"),
    "nak_share": lambda rows: column_of(rows, "nak_share"),
    "latency_trusted": _trusted,
    "queue_ratio": lambda rows: column_of(rows, "queue_fill"),
}
"""Values of a receiver joined with its sender."""


def lane_families(states: Sequence[LaneStats]) -> Iterator[Table]:
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


def module_families(states: Sequence[LaneStats]) -> Iterator[Table]:
    """Yield the counters of the modules of this process."""
    for family, field in _MODULE_COUNTERS.items():
        yield derived_family(family, [((s.name,), getattr(s, field)) for s in states])


def account_families(account: Account) -> Iterator[Table]:
    """Yield the reports a collector received and missed, by host."""
    hosts = account.hosts

    def of_hosts(name: str, value: Callable[[HostState], float]) -> Table:
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
