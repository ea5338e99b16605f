"""One snapshot of many hosts: a `Collector` does for all publishers what a `Sampler` does for one host.

`sample` reads the reports received so far and merges them. Guarantees:

- The snapshot has every instance of every known host, identified by host and incarnation and never mixed. Both ends of
  a stream have the same stream label on every host, so code that joins them on one host also joins them across hosts.
- A silent host stays in the snapshot until it is forgotten; its instances are stale and state the reason.
- Every event received is in exactly one snapshot; missing events are counted.
- No sender can block the reports of others or exceed the bounds of `guard`. Refused reports are counted by cause, and
  the first of each burst becomes an event of the collector itself.
- Rates: if a host's next snapshot is due, `sample` waits for it briefly. So a caller with the interval of the
  publishers gets one new snapshot of each host every time, not none and then two.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Self

from heliograph.monitor.collector.account import Account, CollectorStats, HostState
from heliograph.monitor.collector.guard import Bounds, Cause, Source, Sources
from heliograph.monitor.collector.link import Inlet
from heliograph.monitor.collector.names import Names, Place, renamed_event
from heliograph.monitor.collector.origin import News, Origin
from heliograph.monitor.collector.report import Report, unpack_message
from heliograph.monitor.model import Event, Health, InstanceState, Snapshot
from heliograph.monitor.packing import Limits, PackingError

__all__ = ["Collector"]

FORGET_SECONDS = 300.0
PATIENCE_SECONDS = 0.25
NOBODY_SECONDS = 3.0
"""Seconds the first `sample` waits for a first report."""
_MOST_ROUNDS = 64
_TAKE_SECONDS = 1.0
"""Processor time of one call for reading reports; the rest waits for the next call."""
_BURST_SECONDS = 10.0
"""Refusals of one cause belong to one burst if at most this time is between them."""
SELF = "collector"
"""Instance name in the collector's own events."""
_ROUND_SECONDS = 0.05
"""Seconds to wait for messages at a time."""


class _Held:
    """Memory and objects counted for an origin."""

    __slots__ = ("objects", "source", "weight")

    def __init__(self, source: str) -> None:
        self.source = source
        """The source of its first report."""
        self.weight = 0
        self.objects = 0


class Collector:
    """Merges the reports of publishers. A context manager; `close` ends the link. For one thread at a time."""

    def __init__(
        self,
        inlet: Inlet,
        *,
        settle: float = 0.0,
        patience: float = PATIENCE_SECONDS,
        forget: float = FORGET_SECONDS,
        identity: int | None = None,
        limits: Limits | None = None,
        bounds: Bounds | None = None,
        clock: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = time.thread_time,
    ) -> None:
        """Begin to receive.

        Args:
            inlet: Source of the reports; closed with the collector.
            settle: Longest time the first `sample` waits until every known host has a snapshot, seconds.
            patience: Longest time each `sample` waits for a snapshot that is due, seconds.
            forget: Time after which a silent host is forgotten, seconds.
            identity: Identity of this collector's relay; reports that already passed it are dropped.
            limits: Limits of a frame.
            bounds: Limits of origins and sources; default: those of `Bounds`.
            clock: Wall clock, ns since 1970.
            monotonic: Clock for ages, seconds.
            spent: Processor time used, seconds.
        """
        self._inlet = inlet
        self._settle = settle
        self._patience = patience
        self._forget = forget
        self._identity = identity
        self._bounds = bounds or Bounds()
        self._limits = limits or Limits(memory_bytes=self._bounds.origin_bytes, objects=self._bounds.origin_objects)
        self._clock = clock
        self._monotonic = monotonic
        self._spent = spent
        self._sources = Sources()
        self._held: dict[int, _Held] = {}
        self._by_source: Counter[str] = Counter()
        """Memory of the origins of each source, bytes."""
        self._bursts: dict[str, float] = {}
        """Time of the last refusal by cause."""
        self._own_events: list[Event] = []
        self._own_number = 0
        self._began_ns = clock()
        self._origins: dict[int, Origin] = {}
        self._names = Names()
        self._stats = CollectorStats()
        self._last_ns = 0
        self._arrived_ns = 0
        self._closed = False
        self._account = Account()
        self.news: list[News] = []
        """News of the last `sample`, by host, for relays."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the inlet. Does nothing if already closed."""
        if not self._closed:
            self._closed = True
            self._inlet.close()

    # Description

    @property
    def place(self) -> str:
        """Its endpoints, for display."""
        return ", ".join(self._inlet.urls)

    @property
    def absence(self) -> str:
        """Why the last snapshot has no instance, for display."""
        if not self._origins:
            seconds = (self._clock() - self._began_ns) / 1e9
            refused = f"; {self._stats.refused} messages were not reports" if self._stats.refused else ""
            return f"no report received on {self.place} for {seconds:.0f} s{refused}"
        unread = [state for state in self.hosts() if state.reason]
        if unread:
            return "; ".join(f"{state.host}: {state.reason}" for state in unread[:3])
        count = len(self._origins)
        return f"no instance is running on {count} hosts" if count > 1 else "no instance is running on the host"

    @property
    def account(self) -> Account:
        """Counters and hosts as of the last `sample`. Any thread may read it."""
        return self._account

    def hosts(self) -> list[HostState]:
        """Every tracked host, sorted by name."""
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
        return (origin.refusal or origin.waiting) if origin.snapshot is None else ""

    # Receiving

    def sample(self, histograms: bool | Collection[str] = True) -> Snapshot:
        """Read the reports received and merge them with the known state.

        Args:
            histograms: As for a `Sampler`. Ignored: histograms cost nothing until they are read, so all are present.
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
        """Whether every known host has a snapshot, and unknown hosts had time to report."""
        origins = self._origins.values()
        if not origins or any(origin.snapshot is None for origin in origins):
            return False
        return now - min(origin.first_heard for origin in origins) > 1.1 * max(origin.interval for origin in origins)

    def _due(self, now: float) -> bool:
        return any(not origin.fresh and origin.due(now) for origin in self._origins.values())

    def _take(self, timeout: float) -> None:
        """Read all waiting messages, or wait for one."""
        end = self._spent() + _TAKE_SECONDS
        for _ in range(_MOST_ROUNDS):  # a sender that never pauses must not block the caller
            messages = self._inlet.receive(timeout)
            if not messages:
                break
            timeout = 0.0
            for message in messages:
                self._take_message(message)
            if self._spent() > end:
                break
        if lost := self._inlet.lost():
            self._stats = replace(self._stats, lost=self._stats.lost + lost)

    def _take_message(self, message: bytes) -> None:
        stats, now = self._stats, self._monotonic()
        self._stats = replace(stats, messages=stats.messages + 1, bytes=stats.bytes + len(message))
        source = self._sources.of(getattr(message, "source", ""), now)
        source.purse.earn(len(message), now)
        began = self._spent()
        try:
            reports = unpack_message(message)
        except PackingError:
            self._stats = replace(self._stats, refused=stats.refused + 1)
            source.purse.spend(self._spent() - began)
            return
        for report in reports:
            if self._identity is not None and self._identity in report.path:
                self._stats = replace(self._stats, looped=self._stats.looped + 1)
            else:
                self._take_report(report, source, now)
            now_spent = self._spent()
            source.purse.spend(now_spent - began)
            began = now_spent

    def _take_report(self, report: Report, source: Source, now: float) -> None:
        origin = self._origins.get(report.origin)
        if source.is_banned(report.origin, now) or not source.purse.is_open:
            if origin is not None:
                origin.drop()
            cause = Cause.COST if not source.purse.is_open else Cause.BANNED
            self._refuse(cause, report, source, "earlier reports cost too much time or were unreadable", now)
            return
        if origin is None:
            if not self._has_room(source):
                self._stats = replace(self._stats, unheard=self._stats.unheard + 1)
                self._refuse(Cause.ORIGINS, report, source, "the limit of hosts is reached", now)
                return
            origin = self._origins[report.origin] = Origin(report, now, self._limits)
            self._held[report.origin] = _Held(source.name)
        error = origin.feed(report, now, source.name)
        self._weigh(origin)
        reason, cause = str(error) if error is not None else "", Cause.DAMAGED
        if not reason and report.frame:
            reason, cause = self._make_room(origin), Cause.MEMORY
        if reason:
            banned = source.strike(report.origin, now)
            rest = f"; its reports are ignored for {banned:.0f} s" if banned else ""
            if origin.snapshot is None:
                origin.refusal = f"its reports are refused: {reason}{rest}"
            self._refuse(cause, report, source, reason + rest, now)
        elif report.frame:
            source.absolve(report.origin)
        if origin.fresh:
            self._arrived_ns = self._clock()

    def _refuse(self, cause: Cause, report: Report, source: Source, reason: str, now: float) -> None:
        """Count a refusal, and record an event if it is the first of a burst."""
        before = self._stats.refused_by
        self._stats = replace(self._stats, refused_by={**before, cause: before.get(cause, 0) + 1})
        last = self._bursts.get(cause)
        self._bursts[cause] = now
        if last is not None and now - last <= _BURST_SECONDS:
            return
        where = f" on stream {source.name}" if source.name else ""
        self._own_events.append(
            Event(
                instance=SELF,
                incarnation=0,
                number=self._own_number,
                time_ns=self._clock(),
                name="report_refused",
                severity="warning",
                labels={"instance": SELF, "host": report.host, "cause": cause},
                arguments={"refused": self._stats.refused_by[cause]},
                text=f"a report of host {report.host}{where} was refused ({cause}): {reason}",
            )
        )
        self._own_number += 1

    # Bounds

    def _has_room(self, source: Source) -> bool:
        """Whether one more origin may be tracked; this may evict an origin that never sent a snapshot."""
        bounds = self._bounds
        mine = [key for key, held in self._held.items() if held.source == source.name]
        unproven = [key for key in mine if self._origins[key].snapshot is None]
        if len(unproven) >= bounds.unproven:
            self._forget_origin(min(unproven, key=lambda key: self._origins[key].heard))
        elif len(mine) >= bounds.source_origins:
            return False
        if len(self._origins) >= bounds.origins:
            everyone = [key for key, origin in self._origins.items() if origin.snapshot is None]
            if not everyone:
                return False
            count = Counter(self._held[key].source for key in everyone)
            self._forget_origin(
                min(everyone, key=lambda key: (-count[self._held[key].source], self._origins[key].heard))
            )
        return True

    def _weigh(self, origin: Origin) -> None:
        held = self._held[origin.id]
        weight, objects = origin.weight, origin.objects
        self._stats = replace(
            self._stats,
            memory_bytes=self._stats.memory_bytes + weight - held.weight,
            objects=self._stats.objects + objects - held.objects,
        )
        self._by_source[held.source] += weight - held.weight
        held.weight, held.objects = weight, objects

    def _make_room(self, origin: Origin) -> str:
        """Restore the bounds after an origin has grown; return why its content was discarded, or an empty string."""
        bounds, held = self._bounds, self._held[origin.id]
        reason = ""
        if held.weight > bounds.origin_bytes:
            reason = f"the host needs more than {bounds.origin_bytes >> 20} MiB"
        elif self._by_source[held.source] > bounds.source_bytes:
            reason = f"the hosts of its stream need more than {bounds.source_bytes >> 20} MiB"
        elif self._is_over():
            for other in self._evictable(origin):
                self._forget_origin(other.id)
                if not self._is_over():
                    break
            else:
                reason = f"all hosts together reach {bounds.memory_bytes >> 20} MiB or {bounds.objects} objects"
        if reason:
            origin.give_up(f"its reports are refused: {reason}")
            self._weigh(origin)
        return reason

    def _evictable(self, to: Origin) -> list[Origin]:
        """Origins that may be evicted for another: first those that never sent a snapshot, then silent ones."""
        now = self._monotonic()
        found = (other for other in self._origins.values() if other.snapshot is None or other.silent(now))
        return sorted(
            (other for other in found if other is not to), key=lambda other: (other.snapshot is not None, other.heard)
        )

    def _is_over(self) -> bool:
        return self._stats.memory_bytes > self._bounds.memory_bytes or self._stats.objects > self._bounds.objects

    def _forget_origin(self, key: int) -> None:
        self._drop_origin(key)
        self._stats = replace(self._stats, forgotten=self._stats.forgotten + 1)

    def _drop_origin(self, key: int) -> None:
        held = self._held.pop(key)
        del self._origins[key]
        self._by_source[held.source] -= held.weight
        if not self._by_source[held.source]:
            del self._by_source[held.source]
        self._stats = replace(
            self._stats,
            memory_bytes=self._stats.memory_bytes - held.weight,
            objects=self._stats.objects - held.objects,
        )

    # Merging

    def _merged(self) -> Snapshot:
        now = self._monotonic()
        for key in [key for key, origin in self._origins.items() if now - origin.heard > self._forget]:
            self._drop_origin(key)
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
        own, self._own_events = self._own_events, []
        events += own
        instances.sort(key=lambda item: (item.name, item.started_ns, item.pid))
        events.sort(key=lambda item: (item.time_ns, item.instance, item.number))
        missed = sum(news.snapshot.events_missed for news in taken.values())
        for origin in self._origins.values():
            if origin.id in taken:
                self._weigh(origin)
        stats = replace(self._stats, memory_limit=self._bounds.memory_bytes)
        self._account = Account(stats, tuple(self.hosts()))
        return Snapshot(self._moment(bool(fresh)), tuple(instances), tuple(events), missed)

    @staticmethod
    def _events(key: int, news: News, called: Mapping[Place, str]) -> Iterator[Event]:
        for event in news.snapshot.events:
            name = called.get((key, event.incarnation, event.instance))
            yield renamed_event(event, name) if name else event

    def _moment(self, fresh: bool) -> int:
        """Arrival time of the newest report. The differences of these times are the intervals of rates, so each is
        later than the one before."""
        moment = self._arrived_ns if fresh else self._clock()
        self._last_ns = max(moment, self._last_ns + 1)
        return self._last_ns


def _stale(instance: InstanceState, host: str, reason: str) -> InstanceState:
    """Mark an instance as stale if it ran at the last report of its host."""
    if instance.health not in (Health.LIVE, Health.STALE):
        return instance
    return replace(instance, health=Health.STALE, reason=f"host {host}: {reason}")
