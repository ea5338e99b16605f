"""Snapshots with indexes for joining both ends, and the changes between two snapshots.

Every index is built once, at its first use, so that the cost of a join is per object and not per pair: a hundred
thousand receivers look up their stream, their sender and their entry at the source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from heliograph.monitor.model import Health, Histogram, InstanceState, ObjectState, Snapshot

__all__ = ["Interval", "View", "histogram_since", "is_remains", "relevant", "running_names", "value_of"]


class View:
    """A snapshot with indexes for joining."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._known: dict[str, dict[tuple[int, tuple[str, ...]], ObjectState]] = {}

    @cached_property
    def _by_scope(self) -> Mapping[str, Sequence[tuple[InstanceState, ObjectState]]]:
        """The objects of each scope but receivers, which are most of a fleet (`roster.Roster`)."""
        found: dict[str, list[tuple[InstanceState, ObjectState]]] = {}
        for owner in self.snapshot.instances:
            for item in owner.objects:
                if item.scope != "receiver":
                    found.setdefault(item.scope, []).append((owner, item))
        return found

    def of(self, scope: str) -> Sequence[tuple[InstanceState, ObjectState]]:
        """Return the objects of a scope, with their instances."""
        return list(self.snapshot.of(scope)) if scope == "receiver" else self._by_scope.get(scope, ())

    def known(self, owner: InstanceState, item: ObjectState) -> ObjectState | None:
        """Return the same object of the same incarnation in this snapshot."""
        found = self._known.get(item.scope)
        if found is None:
            found = self._known[item.scope] = {
                (one.incarnation, other.key): other for one, other in self.of(item.scope)
            }
        return found.get((owner.incarnation, item.key))

    @cached_property
    def objects(self) -> Mapping[tuple[int, tuple[str, ...]], ObjectState]:
        return {(owner.incarnation, item.key): item for owner in self.snapshot.instances for item in owner.objects}

    @cached_property
    def senders(self) -> Mapping[tuple[str, str], tuple[InstanceState, ObjectState]]:
        """Senders by stream and topic; a live one replaces an ended one, a newer one an older one."""
        rows = sorted(self.of("transmitter"), key=lambda row: (row[1].live, row[1].created_ns))
        return {(item.labels["stream"], item.labels["topic"]): (owner, item) for owner, item in rows}

    @cached_property
    def rx_streams(self) -> Mapping[tuple[int, str], ObjectState]:
        """Received streams by incarnation and stream."""
        rows = sorted(self.of("rx_stream"), key=lambda row: (row[1].live, row[1].created_ns))
        return {(owner.incarnation, item.labels["stream"]): item for owner, item in rows}

    @cached_property
    def tx_streams(self) -> Mapping[tuple[int, str], ObjectState]:
        rows = sorted(self.of("tx_stream"), key=lambda row: (row[1].live, row[1].created_ns))
        return {(owner.incarnation, item.labels["stream"]): item for owner, item in rows}

    @cached_property
    def stream_senders(self) -> Mapping[str, tuple[InstanceState, ObjectState]]:
        """Senders by stream; a live one replaces an ended one, a newer one an older one."""
        rows = sorted(self.of("tx_stream"), key=lambda row: (row[1].live, row[1].created_ns))
        return {item.labels["stream"]: (owner, item) for owner, item in rows}

    @cached_property
    def tx_receivers(self) -> Mapping[str, Sequence[tuple[InstanceState, ObjectState]]]:
        """Receivers of sources, by stream."""
        found: dict[str, list[tuple[InstanceState, ObjectState]]] = {}
        for owner, item in self.of("tx_receiver"):
            found.setdefault(item.labels["stream"], []).append((owner, item))
        return found

    @cached_property
    def live_tx_receivers(self) -> Mapping[tuple[str, str], Sequence[ObjectState]]:
        """Live receivers of sources by stream and address; receivers behind one address (`ADDRESS#NUMBER`) together."""
        found: dict[tuple[str, str], list[ObjectState]] = {}
        for stream, tx_receivers in self.tx_receivers.items():
            for _, item in tx_receivers:
                if item.live:
                    found.setdefault((stream, item.labels["receiver"].partition("#")[0]), []).append(item)
        return found

    @cached_property
    def round_trips(self) -> Mapping[tuple[str, str], int]:
        """Known round trips between source and receiver in ns, by stream and address of the receiver."""
        return {
            (item.labels["stream"], item.labels["receiver"]): item.values["round_trip"]
            for _, item in self.of("tx_receiver")
            if item.values.get("round_trip")
        }


class Interval:
    """The changes between two snapshots."""

    def __init__(self, previous: Snapshot | None, current: Snapshot) -> None:
        self.now = View(current)
        self.before = View(previous) if previous is not None else None
        self.between = (current.time_ns - previous.time_ns) / 1e9 if previous is not None else 0.0
        self._earlier: dict[int, ObjectState | None] = {}
        self._hiccups: dict[int, Histogram | None] = {}

    def earlier(self, owner: InstanceState, item: ObjectState | None) -> ObjectState | None:
        if self.before is None or item is None or self.between <= 0:
            return None
        place = id(item)  # `now` keeps the object alive; used many times per row
        if place not in self._earlier:
            self._earlier[place] = self.before.known(owner, item)
        return self._earlier[place]

    @cached_property
    def at_its_start(self) -> Interval:
        """The earlier snapshot alone, as an interval."""
        assert self.before is not None
        found = Interval(None, self.before.snapshot)
        found.now = self.before  # it may have its indexes
        return found

    @cached_property
    def asked(self) -> Mapping[str, tuple[Mapping[str, int], int]]:
        """Sequence numbers requested in the interval by stream: per address, and in total."""
        found = {}
        for stream, tx_receivers in self.now.tx_receivers.items():
            own: dict[str, int] = {}
            for owner, tx_receiver in tx_receivers:
                address = tx_receiver.labels["receiver"]
                own[address] = own.get(address, 0) + self.change(owner, tx_receiver, "naks_received")
            found[stream] = (own, sum(own.values()))
        return found

    def seconds(self, owner: InstanceState, item: ObjectState | None) -> float:
        """Length of the interval for an object: since the earlier snapshot, or its whole life."""
        return self.length(owner, item, self.earlier(owner, item))

    def length(self, owner: InstanceState, item: ObjectState | None, earlier: ObjectState | None) -> float:
        """Length of the interval for an object whose earlier state is known."""
        if earlier is not None:
            return self.between
        born_ns = (item.created_ns if item else 0) or owner.started_ns
        return max((self.now.snapshot.time_ns - born_ns) / 1e9, 1e-3)

    def change(self, owner: InstanceState, item: ObjectState | None, cell: str) -> int:
        """Increase of a counter; 0 when the object or the cell is missing."""
        if item is None:
            return 0
        old, now = self.earlier(owner, item), item.values.get(cell, 0)
        return max(0, now - old.values.get(cell, 0)) if old is not None else max(0, now)

    def rate(self, owner: InstanceState, item: ObjectState | None, cell: str) -> float:
        return self.change(owner, item, cell) / self.seconds(owner, item)

    def histogram(self, owner: InstanceState, item: ObjectState, name: str) -> Histogram | None:
        """Values of the interval; None when there are none."""
        return histogram_since(item, self.earlier(owner, item), name)

    def hiccups(self, owner: InstanceState) -> Histogram | None:
        """Hiccups of an instance's host in the interval; None when they were not read."""
        place = id(owner)  # a snapshot keeps it alive; incarnations of two hosts may be equal
        if place not in self._hiccups:
            found = next(owner.of("instance"), None)
            self._hiccups[place] = self.histogram(owner, found, "host_hiccup") if found else None
        return self._hiccups[place]

    def sender(self, stream: str, topic: str) -> tuple[InstanceState, ObjectState] | None:
        """Return the sending end, also when it has just ended."""
        found = self.now.senders.get((stream, topic))
        if found is None and self.before is not None:
            found = self.before.senders.get((stream, topic))
        return found


def histogram_since(item: ObjectState, old: ObjectState | None, name: str) -> Histogram | None:
    """Return the values of a histogram since an earlier state of its object; None when there are none."""
    newer = item.histograms.get(name)
    if newer is None:
        return None
    older = old.histograms.get(name) if old else None
    if older is not None and (older.digits, older.size) != (newer.digits, newer.size):
        older = None
    values = newer.minus(older)
    return values if values.filled()[0].size else None


def value_of(item: ObjectState | None, cell: str) -> int:
    return item.values.get(cell, 0) if item is not None else 0


def running_names(snapshot: Snapshot) -> set[str]:
    """Return the names of the running instances: the remains of a dead instance of such a name are not relevant."""
    return {item.name for item in snapshot.instances if item.health in (Health.LIVE, Health.STALE)}


def is_remains(owner: InstanceState, running: Collection[str]) -> bool:
    """Whether an instance is dead, and its name runs again."""
    return owner.health is Health.DEAD and owner.name in running


def relevant(snapshot: Snapshot, scope: str) -> Iterator[tuple[InstanceState, ObjectState]]:
    """Yield the relevant objects of a scope.

    A closed object of a running instance is left out; one of an ended instance has its final values. The remains of a
    dead instance whose name runs again are left out.
    """
    running = running_names(snapshot)
    for owner, item in snapshot.of(scope):
        if not is_remains(owner, running) and (item.live or owner.health is not Health.LIVE):
            yield owner, item
