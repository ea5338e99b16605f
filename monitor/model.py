"""The state of a fleet at one moment: plain values that flow from the sampler to every output.

Internally times are integers in nanoseconds (wall clock, since 1970) and sizes are bytes; the outputs convert them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

__all__ = [
    "Cells",
    "Counts",
    "Event",
    "Health",
    "Histogram",
    "InstanceState",
    "ObjectState",
    "Rate",
    "Snapshot",
    "rates",
]

Counts = npt.NDArray[np.uint64]
Cells = npt.NDArray[np.int64]
Labels = Mapping[str, str]


class Health(StrEnum):
    """The health of an instance: how far its data can be trusted."""

    LIVE = "live"
    STALE = "stale"  # its heartbeat is old
    CLOSED = "closed"  # it shut down cleanly
    DEAD = "dead"  # its process is gone
    DAMAGED = "damaged"  # its segment cannot be read


@dataclass(frozen=True, slots=True)
class Histogram:
    """HDR counts of one statistic since its object was created (or, from `minus`, over an interval)."""

    counts: Counts
    """One cell per bucket, in the order of HdrHistogram; read-only."""
    lowest: int
    highest: int
    digits: int
    above: int = 0
    """Values above `highest`."""
    negative: int = 0
    total_ns: int = 0
    """Sum of the recorded values, ns."""

    @property
    def count(self) -> int:
        """Number of values: the sum of the cells."""
        return int(self.counts.sum())

    @property
    def size(self) -> int:
        """Number of cells, filled or not."""
        return int(self.counts.size)

    def filled(self) -> tuple[Cells, Counts]:
        """Return ascending indexes and contents of the non-zero cells."""
        cells = np.flatnonzero(self.counts)
        return cells, self.counts[cells]

    def minus(self, older: Histogram | None) -> Histogram:
        """Return the values recorded since `older`, exactly; all values when `older` is None."""
        if older is None:
            return self
        return Histogram(
            counts=self.counts - older.counts,
            lowest=self.lowest,
            highest=self.highest,
            digits=self.digits,
            above=self.above - older.above,
            negative=self.negative - older.negative,
            total_ns=self.total_ns - older.total_ns,
        )


@dataclass(frozen=True, slots=True)
class ObjectState:
    """One object of one instance: its identity and its values, all of one instant."""

    scope: str
    labels: Labels
    """The labels of its scope, in the order of the catalogue."""
    info: Labels
    """Further descriptive values."""
    values: Mapping[str, int]
    """Value by cell name (a split statistic has one cell per value of its label). A cell that does not apply to the
    object is absent; this differs from 0."""
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    """Histograms by statistic name; absent when disabled."""
    live: bool = True
    torn: bool = False
    """The writer stopped during an update; the values may be inconsistent."""
    created_ns: int = 0
    generation: int = 0
    closed_ns: int = field(default=0, compare=False)
    """When it was destroyed, ns; 0 while it lives. Known only to readers of the segment, like the next."""
    slot: int = field(default=-1, compare=False)
    """Its index in the instance's table of objects, where `generation` counts the uses; -1: unknown."""

    @property
    def key(self) -> tuple[str, ...]:
        """Identity within its incarnation."""
        return (self.scope, *self.labels.values(), str(self.generation))


@dataclass(frozen=True, slots=True)
class Event:
    """An event: something that happened once."""

    instance: str
    incarnation: int
    number: int
    time_ns: int
    name: str
    severity: str
    labels: Labels
    """Labels of the object it is about."""
    arguments: Mapping[str, int]
    text: str


@dataclass(frozen=True, slots=True)
class InstanceState:
    """All data of one instance."""

    name: str
    health: Health
    reason: str
    """Reason of the health, as text."""
    pid: int
    incarnation: int
    started_ns: int
    heartbeat_ns: int
    path: str
    objects: tuple[ObjectState, ...] = ()
    settled_ns: int | None = field(default=None, compare=False)
    """Events after this moment are in the next snapshot, although objects may be newer; None: all are here."""

    def of(self, scope: str) -> Iterator[ObjectState]:
        """Yield its objects of one scope."""
        return (item for item in self.objects if item.scope == scope)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every instance in reach at one moment."""

    time_ns: int
    instances: tuple[InstanceState, ...]
    events: tuple[Event, ...] = ()
    """Events since the previous snapshot."""
    events_missed: int = 0
    """Events overwritten before they were read, since the previous snapshot."""

    def of(self, scope: str) -> Iterator[tuple[InstanceState, ObjectState]]:
        """Yield every object of one scope, with its instance."""
        for instance in self.instances:
            for item in instance.of(scope):
                yield instance, item


@dataclass(frozen=True, slots=True)
class Rate:
    """Change of one counter cell between two snapshots."""

    scope: str
    cell: str
    labels: Labels
    delta: int
    per_second: float


def rates(older: Snapshot, newer: Snapshot, counters: Mapping[str, frozenset[str]]) -> list[Rate]:
    """Compare two snapshots.

    `counters` names the counter cells of each scope. An object that is new, or whose instance restarted (another
    incarnation), yields no rates instead of wrong or negative ones.
    """
    seconds = (newer.time_ns - older.time_ns) / 1e9
    if seconds <= 0:
        return []
    before = {(instance.incarnation, item.key): item for instance in older.instances for item in instance.objects}
    found = []
    for instance in newer.instances:
        for item in instance.objects:
            old = before.get((instance.incarnation, item.key))
            if old is None:
                continue
            for cell in counters.get(item.scope, frozenset()) & item.values.keys() & old.values.keys():
                delta = item.values[cell] - old.values[cell]
                if delta >= 0:
                    found.append(Rate(item.scope, cell, item.labels, delta, delta / seconds))
    return found
