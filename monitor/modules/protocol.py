"""The interface of a Python module, and the values it gets besides snapshots and events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from heliograph.engine import catalogue
from heliograph.monitor.model import Event, Snapshot

__all__ = ["Direction", "Module", "Moment", "Topic", "TopicChange"]


class Direction(StrEnum):
    """The end of a topic that an instance has."""

    TRANSMIT = "transmit"
    RECEIVE = "receive"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of one stream at one instance: opened for sending, or discovered by a receiver that wants it."""

    time_ns: int
    """Time of creation or destruction, ns since 1970."""
    instance: str
    incarnation: int
    direction: Direction
    topic: str
    stream: str
    endpoint: str


@dataclass(frozen=True, slots=True)
class TopicChange:
    """A topic was created or destroyed."""

    topic: Topic
    created: bool


Moment = Event | TopicChange
"""An event or a change between two snapshots."""


class Module(Protocol):
    """The methods of a module. They are called from one thread, one at a time.

    Two more methods are optional: ``topic_created(topic)`` and ``topic_destroyed(topic)``, each with a `Topic`, in
    order with the events. An optional attribute ``lost`` counts the items that the module dropped, because of a full
    disk or a slow reader: the host adds it to the statistics of the module.
    """

    def describe(self, scopes: Mapping[str, catalogue.Scope]) -> None:
        """Called once, first: every scope and statistic that snapshots may contain."""

    def snapshot(self, snapshot: Snapshot) -> None:
        """One snapshot; some may be missing since the last one."""

    def event(self, event: Event) -> None:
        """One event, after its snapshot, in order."""

    def close(self) -> None:
        """Called once, last."""
