"""The receivers of a snapshot in their order, and where each belongs: to its instance, its stream, its topic.

A fleet hardly changes from one snapshot to the next. A roster therefore takes its seats from an earlier one when both
have the same receivers, which a comparison of their labels shows; a reader of segments keeps the labels of an object.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from itertools import chain, repeat
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from heliograph.monitor.behaviour import end_of
from heliograph.monitor.joining import is_remains, running_names
from heliograph.monitor.model import Health, ObjectState, Snapshot

__all__ = ["Indexes", "Place", "Roster", "Seats", "numbered"]

Place = tuple[int, tuple[str, ...]]
"""Incarnation and key of the object of a receiver."""
Indexes = npt.NDArray[np.int64]
Key = TypeVar("Key", bound=Hashable)
_Heads = list[tuple[int, str, int]]
"""Incarnation and name of each instance, and the number of its receivers."""


class Seats:
    """Where each receiver belongs; it does not change while the receivers are the same."""

    def __init__(self, heads: _Heads, labels: list[Mapping[str, str]], generations: list[int]) -> None:
        """Seat the receivers of instances: those of the first, then those of the second, and so on."""
        self._heads = heads
        self._labels = labels
        self._generations = generations

    def is_same(self, other: Seats) -> bool:
        """Whether other seats are of the same receivers in the same order."""
        return self._heads == other._heads and self._generations == other._generations and self._labels == other._labels

    @cached_property
    def owners(self) -> Indexes:
        """Index of the instance of each receiver."""
        return np.repeat(np.arange(len(self._heads)), [count for _, _, count in self._heads])

    @cached_property
    def places(self) -> list[Place]:
        """The place of each receiver."""
        incarnations = chain.from_iterable(repeat(incarnation, count) for incarnation, _, count in self._heads)
        keyed = zip(incarnations, self._labels, self._generations, strict=True)
        return [(owner, ("receiver", *labels.values(), str(number))) for owner, labels, number in keyed]

    @cached_property
    def identities(self) -> list[tuple[str, str, str]]:
        """Instance, topic and stream of each receiver."""
        names = chain.from_iterable(repeat(name, count) for _, name, count in self._heads)
        return [(name, one["topic"], one["stream"]) for name, one in zip(names, self._labels, strict=True)]

    @cached_property
    def ranks(self) -> Indexes:
        """Position of each receiver in the order of the identities."""
        identities = self.identities
        ranks = np.zeros(len(identities), np.int64)
        ranks[sorted(range(len(identities)), key=identities.__getitem__)] = np.arange(len(identities))
        return ranks

    @cached_property
    def topics(self) -> tuple[list[tuple[str, str]], Indexes]:
        """Stream and topic, each once; and the index of those of each receiver."""
        return numbered((one["stream"], one["topic"]) for one in self._labels)

    @cached_property
    def streams(self) -> tuple[list[tuple[int, str]], Indexes]:
        """Index of an instance and a stream that it receives, each once; and the index of those of each receiver."""
        return numbered(zip(self.owners.tolist(), (one["stream"] for one in self._labels), strict=True))


def numbered(keys: Iterable[Key]) -> tuple[list[Key], Indexes]:
    """Return keys, each once in the order of first use, and the index of each given key among them."""
    numbers: dict[Key, int] = {}
    found = [numbers.setdefault(key, len(numbers)) for key in keys]
    return list(numbers), np.array(found, np.int64)


class Roster:
    """The receivers of one snapshot, closed ones too."""

    def __init__(self, snapshot: Snapshot, known: Seats | None = None) -> None:
        """List the receivers.

        Args:
            snapshot: The snapshot.
            known: Seats of another snapshot, which are used if it has the same receivers.
        """
        self.instances = snapshot.instances
        groups = [[item for item in owner.objects if item.scope == "receiver"] for owner in self.instances]
        self.items: list[ObjectState] = list(chain.from_iterable(groups))
        seats = Seats(
            [(one.incarnation, one.name, len(own)) for one, own in zip(self.instances, groups, strict=True)],
            [item.labels for item in self.items],
            [item.generation for item in self.items],
        )
        self.seats = known if known is not None and known.is_same(seats) else seats
        running = running_names(snapshot)
        live = np.array([item.live for item in self.items], np.bool_)
        owners = self.seats.owners
        alive, remains = (
            np.array(flags, np.bool_)[owners]
            for flags in (
                [one.health is Health.LIVE for one in self.instances],
                [is_remains(one, running) for one in self.instances],
            )
        )
        self.shown: Indexes = np.flatnonzero(~remains & (live | ~alive))
        """The relevant receivers (`joining.relevant`)."""
        ends = [(end_of(one.health, False), end_of(one.health, True)) for one in self.instances]
        self.ends = np.array(ends, np.uint8).reshape(-1, 2)[owners, live.astype(np.int64)]
        """Whether each receiver runs, is closed, or its instance is in trouble."""

    def earlier(self, older: Roster) -> list[ObjectState | None]:
        """Return the state of each receiver in an older roster; None: it was not there."""
        if self.seats is older.seats:
            return list(older.items)
        known = dict(zip(older.seats.places, older.items, strict=True))
        return [known.get(place) for place in self.seats.places]
