"""Samples one host and sends what it finds.

A publisher is a process of its own beside the applications: it reads their segments as any monitor does, and sends on
an instance of its own, at no more than its rate. When there is no room a snapshot is left out and counted; nothing
waits for the network. A frame tells what changed since the last keyframe, so a lost one costs itself alone; keyframes
come at intervals and as soon as somebody new listens.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from heliograph.monitor.collector.link import Outlet
from heliograph.monitor.collector.report import Report, pack_message
from heliograph.monitor.model import Event, Health, InstanceState, Snapshot
from heliograph.monitor.packing import Encoder

__all__ = ["Publisher", "PublisherStats", "origin_of"]

_KEPT_EVENTS = 10_000


class _Sampler(Protocol):
    def sample(self) -> Snapshot: ...


@dataclass(frozen=True, slots=True)
class PublisherStats:
    """What a publisher has done."""

    published: int = 0
    """Snapshots sent."""
    keyframes: int = 0
    skipped: int = 0
    """Snapshots for which there was no room, or no time."""
    bytes: int = 0
    """Of the messages sent."""
    events: int = 0
    events_dropped: int = 0
    """Events that waited for room until they were too many."""


def origin_of(folder: Path) -> int:
    """Identity of a segment folder: the same for every publisher of it, another in every host and container."""
    parts = [socket.gethostname(), os.path.realpath(folder)]
    for path in ("/proc/sys/kernel/random/boot_id", "/etc/machine-id"):
        try:
            parts.append(Path(path).read_text(encoding="ascii", errors="replace").strip())
        except OSError:
            continue
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/mnt"))
    return int.from_bytes(hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).digest()[:8], "little")


class Publisher:
    """Sends the snapshots of a sampler. For one thread."""

    def __init__(
        self,
        sampler: _Sampler,
        outlet: Outlet,
        *,
        origin: int,
        place: str,
        host: str | None = None,
        interval: float = 1.0,
        keyframe: float = 10.0,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Prepare to publish; nothing is sent yet.

        Args:
            sampler: Where snapshots come from.
            outlet: Where they go. It is not closed.
            origin: Whose they are, see `origin_of`.
            place: The segment folder, for people.
            host: What the host is called; default: its name.
            interval: Seconds between snapshots.
            keyframe: Seconds between keyframes.
            clock: Wall clock, ns since 1970.
        """
        self._sampler = sampler
        self._outlet = outlet
        self._wait = min(interval / 2, 1.0)
        self._encoder = Encoder(chain=False, keyframe_every=max(1, round(keyframe / interval)))
        self._due = True
        """The next frame must be a keyframe."""
        self._events: list[Event] = []
        self._missed = 0
        self._closed: tuple[InstanceState, ...] = ()
        """Instances whose last state, which a sampler gives once, has not been sent."""
        self._stats = PublisherStats()
        self._report = Report(
            origin=origin,
            host=socket.gethostname() if host is None else host,
            place=place,
            publisher=int.from_bytes(os.urandom(8), "little"),
            started_ns=clock(),
            interval_ns=round(interval * 1e9),
        )

    @property
    def stats(self) -> PublisherStats:
        """What has been done so far."""
        return self._stats

    def publish(self) -> bool:
        """Take a snapshot and send it; False when there was no room, and its events wait for the next.

        Raises:
            UserError: The segment folder cannot be listed.
            PackingError: A segment holds what cannot be packed.
        """
        snapshot = self._sampler.sample()
        self._events += snapshot.events
        self._missed += snapshot.events_missed
        stats = self._stats
        if len(self._events) > _KEPT_EVENTS:  # the collectors see the gap in their numbers
            stats = replace(stats, events_dropped=stats.events_dropped + len(self._events) - _KEPT_EVENTS)
            del self._events[:-_KEPT_EVENTS]
        keyframe = self._outlet.newcomers() or self._due
        present = {item.incarnation for item in snapshot.instances}
        instances = (*snapshot.instances, *(item for item in self._closed if item.incarnation not in present))
        whole = replace(snapshot, instances=instances, events=tuple(self._events), events_missed=self._missed)
        frame = self._encoder.frame(whole, keyframe)
        message = pack_message([replace(self._report, skipped=stats.skipped, frame=frame)])
        if not self._outlet.send(message, self._wait):
            self._encoder.withdraw()
            self._due = keyframe
            self._closed = tuple(item for item in instances if item.health is Health.CLOSED)
            self._stats = replace(stats, skipped=stats.skipped + 1)
            return False
        self._stats = replace(
            stats,
            published=stats.published + 1,
            keyframes=stats.keyframes + self._encoder.made_keyframe,
            bytes=stats.bytes + len(message),
            events=stats.events + len(whole.events),
        )
        self._due = False
        self._closed = ()
        self._events.clear()
        self._missed = 0
        return True

    def skip(self, count: int) -> None:
        """Count snapshots that were due and not taken, because the one before took too long."""
        self._stats = replace(self._stats, skipped=self._stats.skipped + count)

    def farewell(self) -> None:
        """Tell the collectors that no more will come."""
        report = replace(self._report, skipped=self._stats.skipped, ends=True)
        self._outlet.send(pack_message([report]), self._wait)
