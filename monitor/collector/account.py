"""What a collector took, and what it names as missing. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from heliograph.monitor.collector.origin import OriginStats

__all__ = ["Account", "CollectorStats", "HostState"]


@dataclass(frozen=True, slots=True)
class HostState:
    """An origin, for people and exporters."""

    origin: int
    host: str
    place: str
    silent: bool
    reason: str
    """Why it is silent, or has no snapshot yet; empty when all is well."""
    age: float
    """Seconds since it was last heard."""
    interval: float
    hops: int
    """Relays its reports come through."""
    instances: int
    stats: OriginStats
    missed_by_instance: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CollectorStats:
    """What a collector took and refused, of all hosts."""

    messages: int = 0
    bytes: int = 0
    refused: int = 0
    """Messages that were no reports, or damaged."""
    lost: int = 0
    """Messages the transport says it could not get any more."""
    looped: int = 0
    """Reports that had come through this very relay before, or through too many."""
    unheard: int = 0
    """Reports of hosts beyond the most that are followed."""
    refused_by: Mapping[str, int] = field(default_factory=dict)
    """Reports refused, by cause (`guard.Cause`)."""
    forgotten: int = 0
    """Origins that gave way to others before their time."""
    memory_bytes: int = 0
    """What all origins take, by estimate."""
    memory_limit: int = 0
    objects: int = 0


@dataclass(frozen=True, slots=True)
class Account:
    """All of it, of one moment."""

    stats: CollectorStats = CollectorStats()
    hosts: tuple[HostState, ...] = ()
    """By name."""
