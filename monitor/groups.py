"""Receivers of a fleet by instance, or by topic of a stream: sums and maxima over columns.

A page of a large fleet shows some of its receivers and the totals of all. No row is built for the totals: they are made
from the columns of a join (`joined.Receivers`), a hundred thousand receivers in some milliseconds. Rows that were built
otherwise are taken too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from heliograph.monitor.behaviour import CLASSES
from heliograph.monitor.joined import Receivers, column_of
from heliograph.monitor.roster import Indexes, numbered
from heliograph.monitor.rows import ReceiverRow

__all__ = ["Group", "Groups", "Kind", "groups_of", "labels_of", "rows_of_instance", "rows_of_topic", "vector_of"]

Kind = Literal["instance", "topic"]
"""The labels that the receivers of a group share: their instance, or topic and stream."""
_LARGEST = frozenset({"queue_fill", "missing_ratio"})
Name = tuple[str, ...]
Floats = npt.NDArray[np.float64]


def labels_of(rows: Sequence[ReceiverRow], kind: Kind) -> tuple[list[Name], Indexes]:
    """Return the names of the groups, each once, and the index of the group of each row.

    The name of a group is (instance,) or (topic, stream).
    """
    if isinstance(rows, Receivers):
        return rows.instances if kind == "instance" else rows.topics
    if kind == "instance":
        return numbered((row.instance,) for row in rows)
    return numbered((row.topic, row.stream) for row in rows)


def vector_of(rows: Sequence[ReceiverRow], name: str) -> Floats:
    """Return a number of all rows (see `joined.VECTORS`); NaN where it is unknown."""
    if isinstance(rows, Receivers):
        return rows.vector(name)
    if name == "behaviour":
        return np.array([CLASSES.index(row.behaviour) for row in rows], np.float64)
    return np.array([np.nan if value is None else value for value in column_of(rows, name)], np.float64)


@dataclass(frozen=True, slots=True)
class Group:
    """The receivers of one instance, or of one topic of a stream."""

    name: Name
    worst: ReceiverRow
    count: int
    delivered_per_s: float
    naks_per_s: float
    """Each stream of an instance counts once."""
    lag_seconds: float | None
    """Largest known lag; None: none is known."""
    queue_fill: float
    missing_ratio: float
    lost: int


class Groups:
    """All groups of some receivers, the one with the worst receiver first; a group is built at its first use."""

    def __init__(self, rows: Sequence[ReceiverRow], kind: Kind) -> None:
        self._rows = rows
        names, self._index = labels_of(rows, kind)
        badness = vector_of(rows, "badness")
        order = np.argsort(-badness, kind="stable")
        first = np.zeros(len(names), np.int64)
        first[self._index[order[::-1]]] = order[::-1]  # of several, the last one stays: the worst
        ranks = np.argsort(-badness[first], kind="stable")
        if kind == "instance":  # equal ones by name, so that their order is stable
            ranks = np.array(sorted(range(len(names)), key=lambda n: (-badness[first[n]], names[n])), np.int64)
        self._ranks: list[int] = ranks.tolist()
        self._first = first
        self.names = [names[n] for n in self._ranks]
        """Names of the groups, the worst first."""

    def __len__(self) -> int:
        return len(self.names)

    def worst_rows(self) -> Iterator[ReceiverRow]:
        """Yield the worst row of each group, the worst first."""
        return (self._rows[int(self._first[n])] for n in self._ranks)

    def vector(self, name: str) -> Floats:
        """Return a number of all groups, by the name of its attribute; NaN where it is unknown.

        `behaviour` is that of the worst receiver, as the place in `behaviour.CLASSES`.
        """
        if name == "behaviour":
            return vector_of(self._rows, name)[self._first[self._ranks]]
        if name == "lag_seconds":
            return np.where(self._lags >= 0, self._lags, np.nan)[self._ranks]
        if name == "count":
            return self._counts.astype(np.float64)[self._ranks]
        if name == "naks_per_s":
            return self._naks[self._ranks]
        return (self._largest(name) if name in _LARGEST else self._sum(name))[self._ranks]

    @cached_property
    def lags(self) -> list[float | None]:
        """Largest known lag of each group in seconds; None: none is known."""
        return [value if value >= 0 else None for value in self._lags[self._ranks].tolist()]

    @cached_property
    def fills(self) -> list[float]:
        """Fill of the fullest queue of each group, 0 to 1."""
        found: list[float] = self.vector("queue_fill").tolist()
        return found

    def __getitem__(self, place: int) -> Group:
        n = self._ranks[place]
        return Group(
            name=self.names[place],
            worst=self._rows[int(self._first[n])],
            count=int(self._counts[n]),
            delivered_per_s=float(self._sum("delivered_per_s")[n]),
            naks_per_s=float(self._naks[n]),
            lag_seconds=self.lags[place],
            queue_fill=self.fills[place],
            missing_ratio=float(self._largest("missing_ratio")[n]),
            lost=int(self._sum("lost")[n]),
        )

    def __iter__(self) -> Iterator[Group]:
        return (self[place] for place in range(len(self)))

    def find(self, name: Name) -> Group | None:
        """Return the group of a name."""
        place = self._places.get(name)
        return None if place is None else self[place]

    def members(self, name: Name) -> Sequence[ReceiverRow]:
        """Return the rows of a group, the worst first."""
        if (place := self._places.get(name)) is None:
            return []
        places: list[int] = np.flatnonzero(self._index == self._ranks[place]).tolist()
        return self._rows.part(places) if isinstance(self._rows, Receivers) else [self._rows[n] for n in places]

    @cached_property
    def _places(self) -> dict[Name, int]:
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def _counts(self) -> Indexes:
        return np.bincount(self._index, minlength=len(self))

    @cached_property
    def _lags(self) -> Floats:
        return self._maxima(np.nan_to_num(vector_of(self._rows, "lag_seconds"), nan=-1.0), -1.0)

    @cached_property
    def _naks(self) -> Floats:
        """Requests are of an instance and a stream: they count once in a group, for whatever topics."""
        streams, stream_of = numbered(column_of(self._rows, "stream"))
        instances, instance_of = labels_of(self._rows, "instance")
        keys = (self._index * len(instances) + instance_of) * len(streams) + stream_of
        places = np.unique(keys, return_index=True)[1]
        weights = vector_of(self._rows, "naks_per_s")[places]
        return self._added(self._index[places], weights)

    def _sum(self, name: str) -> Floats:
        if name not in self._made:
            self._made[name] = self._added(self._index, vector_of(self._rows, name))
        return self._made[name]

    def _largest(self, name: str) -> Floats:
        if name not in self._made:
            self._made[name] = self._maxima(vector_of(self._rows, name), 0.0)
        return self._made[name]

    @cached_property
    def _made(self) -> dict[str, Floats]:
        return {}

    def _added(self, index: Indexes, values: Floats) -> Floats:
        return np.bincount(index, values, minlength=len(self)).astype(np.float64)

    def _maxima(self, values: Floats, least: float) -> Floats:
        found = np.full(len(self), least)
        np.maximum.at(found, self._index, values)
        return found


def groups_of(rows: Sequence[ReceiverRow], kind: Kind) -> Groups:
    """Return the groups of rows; those of a join are made once."""
    if not isinstance(rows, Receivers):
        return Groups(rows, kind)
    found = rows.groups.get(kind)
    if found is None:
        found = rows.groups[kind] = Groups(rows, kind)
    assert isinstance(found, Groups)
    return found


def rows_of_instance(rows: Sequence[ReceiverRow], instance: str) -> Sequence[ReceiverRow]:
    """Return the rows of a receiving instance, in their order."""
    return groups_of(rows, "instance").members((instance,))


def rows_of_topic(rows: Sequence[ReceiverRow], topic: str, stream: str) -> Sequence[ReceiverRow]:
    """Return the rows of a topic of a stream, in their order."""
    return groups_of(rows, "topic").members((topic, stream))
