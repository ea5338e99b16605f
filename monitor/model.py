"""What is known of a fleet at one moment: plain values that flow from the sampler to every door.

Inside, times are integers in nanoseconds (wall clock, since 1970) and sizes are bytes; the doors convert.
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
    """How far what an instance says of itself can be trusted."""

    LIVE = "live"
    STALE = "stale"  # its heartbeat is old
    CLOSED = "closed"  # it shut down cleanly
    DEAD = "dead"  # its process is gone
    DAMAGED = "damaged"  # its segment cannot be read


@dataclass(frozen=True, slots=True)
class Histogram:
    """HDR counts of one statistic since its object was created (or, from `minus`, over an interval)."""

    counts: Counts
    """One cell per bucket, in HdrHistogram's order; never written to."""
    lowest: int
    highest: int
    digits: int
    above: int = 0
    """Values above `highest`."""
    negative: int = 0
    total_ns: int = 0
    """Sum of the values recorded, ns."""

    @property
    def count(self) -> int:
        """Number of values, always the sum of the cells."""
        return int(self.counts.sum())

    @property
    def size(self) -> int:
        """Number of cells, filled or not."""
        return int(self.counts.size)

    def filled(self) -> tuple[Cells, Counts]:
        """Positions, rising, and contents of the cells that are not 0."""
        cells = np.flatnonzero(self.counts)
        return cells, self.counts[cells]

    def minus(self, older: Histogram | None) -> Histogram:
        """The values recorded since `older`, exactly; all of them when `older` is None."""
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
    """The scope's labels, in the catalogue's order."""
    info: Labels
    """What else describes it."""
    values: Mapping[str, int]
    """Value by cell name (a split statistic has one cell per value of its label); a cell that does not apply to the
    object is absent, which is another thing than 0."""
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    """By statistic name; absent when off."""
    live: bool = True
    torn: bool = False
    """The writer stopped within an update; the values may not belong together."""
    created_ns: int = 0
    generation: int = 0
    closed_ns: int = field(default=0, compare=False)
    """When it ended; 0 while it lives. Known to who reads the segment, as the next."""
    slot: int = field(default=-1, compare=False)
    """Its place in the instance's table of objects, where `generation` counts its users; -1: not known."""

    @property
    def key(self) -> tuple[str, ...]:
        """Identity within its incarnation."""
        return (self.scope, *self.labels.values(), str(self.generation))


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened once."""

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
    """All that one instance says of itself."""

    name: str
    health: Health
    reason: str
    """Why it has this health, for people."""
    pid: int
    incarnation: int
    started_ns: int
    heartbeat_ns: int
    path: str
    objects: tuple[ObjectState, ...] = ()
    settled_ns: int | None = field(default=None, compare=False)
    """Events from this moment on come with the next snapshot, though the objects may be younger; None: all are here."""

    def of(self, scope: str) -> Iterator[ObjectState]:
        """Its objects of one scope."""
        return (item for item in self.objects if item.scope == scope)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every instance in reach, at one moment."""

    time_ns: int
    instances: tuple[InstanceState, ...]
    events: tuple[Event, ...] = ()
    """Events since the snapshot before."""
    events_missed: int = 0
    """Events overwritten before they were read, since the snapshot before."""

    def of(self, scope: str) -> Iterator[tuple[InstanceState, ObjectState]]:
        """Every object of one scope, with its instance."""
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

    `counters` gives, for each scope, the cells that are counters. An object that is new, or whose instance restarted
    (another incarnation), yields nothing rather than a false or negative rate.
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
