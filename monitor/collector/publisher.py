"""Samples one host and sends the snapshots.

A publisher is a separate process: it reads the segments of applications as any monitor does, and sends with its own
instance, limited to its rate. If there is no room, it skips the snapshot and counts it; nothing waits for the network.
A frame has the changes since the last keyframe, so the loss of one frame affects no other. Keyframes are sent at
intervals and as soon as a new receiver appears.
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
    """Counters of a publisher."""

    published: int = 0
    """Snapshots sent."""
    keyframes: int = 0
    skipped: int = 0
    """Snapshots skipped for lack of room or time."""
    bytes: int = 0
    """Bytes of the messages sent."""
    events: int = 0
    events_dropped: int = 0
    """Events dropped because too many waited for room."""


def origin_of(folder: Path) -> int:
    """Identity of a segment folder: equal for all its publishers, different on every host and in every container."""
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
            sampler: Provides the snapshots.
            outlet: Sends them. It is not closed.
            origin: Identity of the segment folder, see `origin_of`.
            place: The segment folder, for display.
            host: Name of the host; default: its host name.
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
        """Closed instances whose last state was not sent yet; a sampler returns it only once."""
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
        """The counters."""
        return self._stats

    def publish(self) -> bool:
        """Take a snapshot and send it. Returns False if there was no room; its events are sent with the next one.

        Raises:
            UserError: The segment folder cannot be listed.
            PackingError: A segment has values that cannot be packed.
        """
        snapshot = self._sampler.sample()
        self._events += snapshot.events
        self._missed += snapshot.events_missed
        stats = self._stats
        if len(self._events) > _KEPT_EVENTS:  # collectors detect the gap in the numbers
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
        """Count snapshots that were due but not taken because the previous one took too long."""
        self._stats = replace(self._stats, skipped=self._stats.skipped + count)

    def farewell(self) -> None:
        """Notify the collectors that this publisher ends."""
        report = replace(self._report, skipped=self._stats.skipped, ends=True)
        self._outlet.send(pack_message([report]), self._wait)
