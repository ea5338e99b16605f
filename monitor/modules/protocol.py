"""What a module in Python must have, and what it is given besides snapshots and events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from heliograph.engine import catalogue
from heliograph.monitor.model import Event, Snapshot

__all__ = ["Direction", "Module", "Moment", "Topic", "TopicChange"]


class Direction(StrEnum):
    """Which end of a topic an instance has."""

    TRANSMIT = "transmit"
    RECEIVE = "receive"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of one stream at one instance: opened for sending, or heard of by a receiver that wants it."""

    time_ns: int
    """When it was created or destroyed, ns since 1970."""
    instance: str
    incarnation: int
    direction: Direction
    topic: str
    stream: str
    endpoint: str


@dataclass(frozen=True, slots=True)
class TopicChange:
    """A topic came, or went."""

    topic: Topic
    created: bool


Moment = Event | TopicChange
"""What happens between two snapshots."""


class Module(Protocol):
    """What a module must have. Its methods are called from one thread, never two at a time.

    Two more methods are called where a module has them: ``topic_created(topic)`` and ``topic_destroyed(topic)``, each
    with a `Topic`, in order with the events. An attribute ``lost`` counts what the module gave up, for a full disk or a
    slow peer: the host adds it to the statistics of the module.
    """

    def describe(self, scopes: Mapping[str, catalogue.Scope]) -> None:
        """Told once, first: every scope and statistic that snapshots may hold."""

    def snapshot(self, snapshot: Snapshot) -> None:
        """One snapshot; some may have been left out since the last."""

    def event(self, event: Event) -> None:
        """One event, after the snapshot it came with, in the order in which they happened."""

    def close(self) -> None:
        """Told once, last."""
