"""Forwards the reports of a collector, so that a site is one stream for the next site.

At each interval a relay sends one message with all news: for each origin its newest snapshot and all events since. It
encodes its own frames, so its receivers depend on its keyframes and not on those of the publishers. Origin, host and
publisher are kept. The relay adds its identity to the path, and does not forward reports that already passed it or too
many relays.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from heliograph.monitor.collector.link import Outlet
from heliograph.monitor.collector.origin import News
from heliograph.monitor.collector.report import MAX_HOPS, Report, pack_message
from heliograph.monitor.model import Event
from heliograph.monitor.packing import Encoder, PackingError

__all__ = ["Relay", "RelayStats", "new_identity"]

_MESSAGE_BYTES = 4 << 20
"""A message is sent when it reaches this size."""
_KEPT_EVENTS = 10_000
_MOST_ENCODERS = 4096


def new_identity() -> int:
    """A random identity of a relay, used in paths."""
    return int.from_bytes(os.urandom(8), "little")


@dataclass(frozen=True, slots=True)
class RelayStats:
    """Counters of a relay."""

    reports: int = 0
    messages: int = 0
    bytes: int = 0
    skipped: int = 0
    """Reports skipped for lack of room."""
    stopped: int = 0
    """Reports that passed too many relays."""
    refused: int = 0
    """Reports that could not be packed."""


class _Way:
    """State of one origin."""

    __slots__ = ("due", "encoder", "events", "missed", "skipped")

    def __init__(self, every: int) -> None:
        self.encoder = Encoder(chain=False, keyframe_every=every)
        self.due = True
        self.events: list[Event] = []
        self.missed = 0
        self.skipped = 0


class Relay:
    """Forwards reports to one outlet. For one thread."""

    def __init__(self, outlet: Outlet, identity: int, *, interval: float = 1.0, keyframe: float = 10.0) -> None:
        """Prepare to forward.

        Args:
            outlet: Sends the messages. It is not closed.
            identity: Identity of the relay, see `new_identity`; its collector must have the same.
            interval: Seconds between messages.
            keyframe: Seconds between keyframes.
        """
        self._outlet = outlet
        self._identity = identity
        self._interval = interval
        self._every = max(1, round(keyframe / interval))
        self._ways: dict[int, _Way] = {}
        self._stats = RelayStats()

    @property
    def stats(self) -> RelayStats:
        """The counters."""
        return self._stats

    def forward(self, news: Iterable[News]) -> None:
        """Forward all news, in as few messages as possible."""
        if self._outlet.newcomers():
            for way in self._ways.values():
                way.due = True
        waiting: list[tuple[_Way, Report]] = []
        size = 0
        for item in news:
            made = self._report(item)
            if made is None:
                continue
            waiting.append(made)
            size += len(made[1].frame)
            if size >= _MESSAGE_BYTES:
                self._send(waiting)
                waiting, size = [], 0
        if waiting:
            self._send(waiting)

    def _report(self, news: News) -> tuple[_Way, Report] | None:
        report, stats = news.report, self._stats
        if len(report.path) >= MAX_HOPS:
            self._stats = replace(stats, stopped=stats.stopped + 1)
            return None
        way = self._ways.pop(report.origin, None) or _Way(self._every)
        self._ways[report.origin] = way  # sorted by time of the last report
        if len(self._ways) > _MOST_ENCODERS:
            del self._ways[next(iter(self._ways))]
        way.encoder.directory = news.directory
        way.events = [*way.events, *news.snapshot.events][-_KEPT_EVENTS:]
        way.missed += news.snapshot.events_missed
        whole = replace(news.snapshot, events=tuple(way.events), events_missed=way.missed)
        try:
            frame = way.encoder.frame(whole, way.due)
        except PackingError:
            self._stats = replace(stats, refused=stats.refused + 1)
            return None
        return way, replace(
            report,
            interval_ns=max(report.interval_ns, round(self._interval * 1e9)),
            skipped=report.skipped + way.skipped,
            path=(*report.path, self._identity),
            frame=frame,
        )

    def _send(self, waiting: list[tuple[_Way, Report]]) -> None:
        message = pack_message([report for _, report in waiting])
        stats = self._stats
        if not self._outlet.send(message, min(self._interval / 2, 1.0)):
            for way, _ in waiting:
                way.encoder.withdraw()
                way.skipped += 1
            self._stats = replace(stats, skipped=stats.skipped + len(waiting))
            return
        for way, _ in waiting:
            way.due = False
            way.events = []
            way.missed = 0
        self._stats = replace(
            stats,
            reports=stats.reports + len(waiting),
            messages=stats.messages + 1,
            bytes=stats.bytes + len(message),
        )
