"""One snapshot of many hosts: what a `Sampler` does for one, a `Collector` does for all whose publishers it hears.

`sample` takes what has come and merges it. What it promises:

- Every instance of every host heard is in it, told apart by host and incarnation and never mixed. Both ends of a stream
  meet through its label, which every host carries, so whatever joins them on one host joins them across hosts.
- A host that falls silent stays, its instances stale and with the reason, until it is forgotten.
- Every event that came is in one snapshot; those that did not are counted.
- Rates: when a host's next snapshot is due any moment, `sample` waits for it a little, so one that is called as often
  as the hosts publish finds one more of each, and not none and then two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Self

from heliograph.monitor.collector.account import Account, CollectorStats, HostState
from heliograph.monitor.collector.link import Inlet
from heliograph.monitor.collector.names import Names, Place, renamed_event
from heliograph.monitor.collector.origin import News, Origin
from heliograph.monitor.collector.report import unpack_message
from heliograph.monitor.model import Event, Health, InstanceState, Snapshot
from heliograph.monitor.packing import Limits, PackingError

__all__ = ["Collector"]

FORGET_SECONDS = 300.0
PATIENCE_SECONDS = 0.25
NOBODY_SECONDS = 3.0
"""How long the first `sample` waits for somebody to be heard at all."""
_MOST_ORIGINS = 4096
_MOST_ROUNDS = 64
_ROUND_SECONDS = 0.05
"""How long to wait for messages at a time."""


class Collector:
    """Merges what publishers send. A context manager; `close` ends the link. For one thread at a time."""

    def __init__(
        self,
        inlet: Inlet,
        *,
        settle: float = 0.0,
        patience: float = PATIENCE_SECONDS,
        forget: float = FORGET_SECONDS,
        identity: int | None = None,
        limits: Limits | None = None,
        clock: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin to listen.

        Args:
            inlet: Where reports come from; closed with the collector.
            settle: Seconds the first `sample` waits, at most, until every host heard has been read.
            patience: Seconds each waits, at most, for a snapshot that is due.
            forget: Seconds after which a silent host is forgotten.
            identity: This collector's among relays; reports that have come through it are not taken again.
            limits: The most a frame may hold.
            clock: Wall clock, ns since 1970.
            monotonic: Clock for ages, seconds.
        """
        self._inlet = inlet
        self._settle = settle
        self._patience = patience
        self._forget = forget
        self._identity = identity
        self._limits = limits
        self._clock = clock
        self._monotonic = monotonic
        self._began_ns = clock()
        self._origins: dict[int, Origin] = {}
        self._names = Names()
        self._stats = CollectorStats()
        self._last_ns = 0
        self._arrived_ns = 0
        self._closed = False
        self._account = Account()
        self.news: list[News] = []
        """What the last `sample` found new, host by host, as it came; for relays."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hear no more. Harmless when closed."""
        if not self._closed:
            self._closed = True
            self._inlet.close()

    # What is said of it

    @property
    def place(self) -> str:
        """Where it listens, for people."""
        return ", ".join(self._inlet.urls)

    @property
    def absence(self) -> str:
        """Why the last snapshot shows no instance, for people."""
        if not self._origins:
            since = datetime.fromtimestamp(self._began_ns // 1_000_000_000)
            seconds = (self._clock() - self._began_ns) / 1e9
            refused = f"; {self._stats.refused} messages were no reports" if self._stats.refused else ""
            return f"no publisher has been heard on {self.place} since {since:%H:%M:%S} ({seconds:.0f} s){refused}"
        unread = [state for state in self.hosts() if state.reason]
        if unread:
            return "; ".join(f"{state.host}: {state.reason}" for state in unread[:3])
        count = len(self._origins)
        return f"no instance is running on the {count} hosts heard" if count > 1 else "no instance is running there"

    @property
    def account(self) -> Account:
        """What was taken and what is missing, as of the last `sample`. May be read by any thread."""
        return self._account

    def hosts(self) -> list[HostState]:
        """Every host that is not forgotten, by name."""
        now = self._monotonic()
        called = self._hosts()
        return sorted(
            (
                HostState(
                    origin=origin.id,
                    host=called[origin.id],
                    place=origin.report.place,
                    silent=origin.silent(now),
                    reason=self._reason(origin, now),
                    age=now - origin.heard,
                    interval=origin.interval,
                    hops=len(origin.report.path),
                    instances=len(origin.snapshot.instances) if origin.snapshot else 0,
                    stats=origin.stats,
                    missed_by_instance=dict(origin.missed_by_instance),
                )
                for origin in self._origins.values()
            ),
            key=lambda state: state.host,
        )

    def _hosts(self) -> Mapping[int, str]:
        return self._names.hosts({origin.id: origin.report.host for origin in self._origins.values()})

    @staticmethod
    def _reason(origin: Origin, now: float) -> str:
        age = now - origin.heard
        if origin.report.ends:
            return f"its publisher ended {age:.0f} s ago"
        if origin.silent(now):
            through = f" through {len(origin.report.path)} relays" if origin.report.path else ""
            return f"silent for {age:.1f} s; it publishes every {origin.interval:g} s{through}"
        return origin.waiting if origin.snapshot is None else ""

    # Taking

    def sample(self, histograms: bool | Collection[str] = True) -> Snapshot:
        """Take what has come, and merge it with what is known.

        Args:
            histograms: As of a `Sampler`. They cost nothing until they are looked at, so all are always there.
        """
        self._take(0.0)
        if self._settle > 0:
            self._wait_until_settled()
        end = self._monotonic() + self._patience
        while (now := self._monotonic()) < end and self._due(now):
            self._take(min(_ROUND_SECONDS, end - now))
        return self._merged()

    def _wait_until_settled(self) -> None:
        began = self._monotonic()
        settle, self._settle = self._settle, 0.0
        while not self._settled(now := self._monotonic()):
            left = began + (settle if self._origins else min(settle, NOBODY_SECONDS)) - now
            if left <= 0:
                break
            self._take(min(_ROUND_SECONDS, left))

    def _settled(self, now: float) -> bool:
        """Whether every host heard has been read, and others had the time to be heard."""
        origins = self._origins.values()
        if not origins or any(origin.snapshot is None for origin in origins):
            return False
        return now - min(origin.first_heard for origin in origins) > 1.1 * max(origin.interval for origin in origins)

    def _due(self, now: float) -> bool:
        return any(not origin.fresh and origin.due(now) for origin in self._origins.values())

    def _take(self, timeout: float) -> None:
        """Take all that waits, or wait for something."""
        for _ in range(_MOST_ROUNDS):  # somebody who never stops does not keep it from answering
            messages = self._inlet.receive(timeout)
            if not messages:
                break
            timeout = 0.0
            for message in messages:
                self._take_message(message)
        if lost := self._inlet.lost():
            self._stats = replace(self._stats, lost=self._stats.lost + lost)

    def _take_message(self, message: bytes) -> None:
        stats = self._stats
        self._stats = replace(stats, messages=stats.messages + 1, bytes=stats.bytes + len(message))
        try:
            reports = unpack_message(message)
        except PackingError:
            self._stats = replace(self._stats, refused=stats.refused + 1)
            return
        now = self._monotonic()
        for report in reports:
            if self._identity is not None and self._identity in report.path:
                self._stats = replace(self._stats, looped=self._stats.looped + 1)
                continue
            origin = self._origins.get(report.origin)
            if origin is None:
                if len(self._origins) >= _MOST_ORIGINS:
                    self._stats = replace(self._stats, unheard=self._stats.unheard + 1)
                    continue
                origin = self._origins[report.origin] = Origin(report, now, self._limits)
            origin.feed(report, now)
            if origin.fresh:
                self._arrived_ns = self._clock()

    # Merging

    def _merged(self) -> Snapshot:
        now = self._monotonic()
        for key in [key for key, origin in self._origins.items() if now - origin.heard > self._forget]:
            del self._origins[key]
        fresh = {key for key, origin in self._origins.items() if origin.fresh}
        taken = {key: news for key, origin in self._origins.items() if (news := origin.take()) is not None}
        self.news = [news for key, news in taken.items() if key in fresh]
        hosts = self._hosts()
        called = self._names.called({key: news.snapshot.instances for key, news in taken.items()}, hosts)
        instances: list[InstanceState] = []
        events: list[Event] = []
        for key, news in taken.items():
            reason = self._reason(self._origins[key], now) if self._origins[key].silent(now) else ""
            for instance in news.snapshot.instances:
                shown = self._names.renamed(instance, called[key, instance.incarnation, instance.name])
                instances.append(_stale(shown, hosts[key], reason) if reason else shown)
            events += self._events(key, news, called)
        self._names.forget(
            [item for news in taken.values() for owner in news.snapshot.instances for item in owner.objects]
        )
        instances.sort(key=lambda item: (item.name, item.started_ns, item.pid))
        events.sort(key=lambda item: (item.time_ns, item.instance, item.number))
        missed = sum(news.snapshot.events_missed for news in taken.values())
        self._account = Account(self._stats, tuple(self.hosts()))
        return Snapshot(self._moment(bool(fresh)), tuple(instances), tuple(events), missed)

    @staticmethod
    def _events(key: int, news: News, called: Mapping[Place, str]) -> Iterator[Event]:
        for event in news.snapshot.events:
            name = called.get((key, event.incarnation, event.instance))
            yield renamed_event(event, name) if name else event

    def _moment(self, fresh: bool) -> int:
        """When the newest of it arrived: between two of these is what the counters changed in. Always later than the
        one before."""
        moment = self._arrived_ns if fresh else self._clock()
        self._last_ns = max(moment, self._last_ns + 1)
        return self._last_ns


def _stale(instance: InstanceState, host: str, reason: str) -> InstanceState:
    """An instance that ran when its host was last heard."""
    if instance.health not in (Health.LIVE, Health.STALE):
        return instance
    return replace(instance, health=Health.STALE, reason=f"host {host}: {reason}")
