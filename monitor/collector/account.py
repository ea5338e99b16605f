"""Counters of a collector: reports accepted, refused and missing. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from heliograph.monitor.collector.origin import OriginStats

__all__ = ["Account", "CollectorStats", "HostState"]


@dataclass(frozen=True, slots=True)
class HostState:
    """State of an origin, for pages and exporters."""

    origin: int
    host: str
    place: str
    silent: bool
    reason: str
    """Why it is silent or has no snapshot yet; empty if neither."""
    age: float
    """Seconds since its last report."""
    interval: float
    """Seconds between its reports."""
    hops: int
    """Number of relays that forward its reports."""
    instances: int
    stats: OriginStats
    missed_by_instance: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CollectorStats:
    """Counters of a collector, over all hosts."""

    messages: int = 0
    bytes: int = 0
    refused: int = 0
    """Messages that were damaged or not reports."""
    lost: int = 0
    """Messages the transport reported as lost."""
    looped: int = 0
    """Reports that had already passed this relay."""
    unheard: int = 0
    """Reports of origins that were not tracked because the limit was reached."""
    refused_by: Mapping[str, int] = field(default_factory=dict)
    """Number of refused reports, by cause (`guard.Cause`)."""
    forgotten: int = 0
    """Origins evicted to make room for others."""
    memory_bytes: int = 0
    """Estimated memory of all origins."""
    memory_limit: int = 0
    objects: int = 0


@dataclass(frozen=True, slots=True)
class Account:
    """Counters and hosts at one moment."""

    stats: CollectorStats = CollectorStats()
    hosts: tuple[HostState, ...] = ()
    """Sorted by name."""
