"""One snapshot of many hosts: what a `Sampler` does for one, a `Collector` does for all whose publishers it hears.

`sample` takes what has come and merges it. What it promises:

- Every instance of every host heard is in it, told apart by host and incarnation and never mixed. Both ends of a stream
  meet through its label, which every host carries, so whatever joins them on one host joins them across hosts.
- A host that falls silent stays, its instances stale and with the reason, until it is forgotten.
- Every event that came is in one snapshot; those that did not are counted.
- Nobody who sends can make it stop for the others, or grow beyond its bounds (`guard`). What it refuses is counted by
  cause and told as an event of its own, once per burst.
- Rates: when a host's next snapshot is due any moment, `sample` waits for it a little, so one that is called as often
  as the hosts publish finds one more of each, and not none and then two.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
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
"""How long the first `sample` waits for somebody to be heard at all."""
_MOST_ROUNDS = 64
_TAKE_SECONDS = 1.0
"""Processor time after which what has come is merged; the rest waits."""
_BURST_SECONDS = 10.0
"""Refusals of one cause with no more than this between them are one burst."""
SELF = "collector"
"""The instance that a collector's own events are of."""
_ROUND_SECONDS = 0.05
"""How long to wait for messages at a time."""


class _Held:
    """What an origin is counted with."""

    __slots__ = ("objects", "source", "weight")

    def __init__(self, source: str) -> None:
        self.source = source
        """The one that brought it first."""
        self.weight = 0
        self.objects = 0


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
        bounds: Bounds | None = None,
        clock: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = time.thread_time,
    ) -> None:
        """Begin to listen.

        Args:
            inlet: Where reports come from; closed with the collector.
            settle: Seconds the first `sample` waits, at most, until every host heard has been read.
            patience: Seconds each waits, at most, for a snapshot that is due.
            forget: Seconds after which a silent host is forgotten.
            identity: This collector's among relays; reports that have come through it are not taken again.
            limits: The most a frame may hold.
            bounds: The most that origins and sources may take; default: those of `Bounds`.
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
        """Bytes of memory that each source's origins take."""
        self._bursts: dict[str, float] = {}
        """When a cause was last met."""
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
        return (origin.refusal or origin.waiting) if origin.snapshot is None else ""

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
        end = self._spent() + _TAKE_SECONDS
        for _ in range(_MOST_ROUNDS):  # somebody who never stops does not keep it from answering
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
            self._refuse(cause, report, source, "reports before it cost too much or could not be read", now)
            return
        if origin is None:
            if not self._has_room(source):
                self._stats = replace(self._stats, unheard=self._stats.unheard + 1)
                self._refuse(Cause.ORIGINS, report, source, "too many hosts are followed", now)
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
            rest = f"; the next {banned:.0f} s of it are not looked at" if banned else ""
            if origin.snapshot is None:
                origin.refusal = f"its reports are refused: {reason}{rest}"
            self._refuse(cause, report, source, reason + rest, now)
        elif report.frame:
            source.absolve(report.origin)
        if origin.fresh:
            self._arrived_ns = self._clock()

    def _refuse(self, cause: Cause, report: Report, source: Source, reason: str, now: float) -> None:
        """Count a refusal, and tell it when it is the first of a burst."""
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
        """Whether one more origin may be followed; one that never sent a snapshot may have to give way."""
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
        """Keep within the bounds after an origin has grown; why it had to be given up, or nothing."""
        bounds, held = self._bounds, self._held[origin.id]
        reason = ""
        if held.weight > bounds.origin_bytes:
            reason = f"it takes more than {bounds.origin_bytes >> 20} MiB"
        elif self._by_source[held.source] > bounds.source_bytes:
            reason = f"what came on its stream takes more than {bounds.source_bytes >> 20} MiB"
        elif self._is_over():
            for other in self._who_gives_way(origin):
                self._forget_origin(other.id)
                if not self._is_over():
                    break
            else:
                reason = f"all hosts take {bounds.memory_bytes >> 20} MiB or {bounds.objects} objects already"
        if reason:
            origin.give_up(f"its reports are refused: {reason}")
            self._weigh(origin)
        return reason

    def _who_gives_way(self, to: Origin) -> list[Origin]:
        """Origins that may be forgotten for another: those that never sent a snapshot, then the silent ones."""
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
