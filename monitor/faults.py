"""Faults of senders, hosts and clocks in words, worst first. Receivers have a judge of their own (`behaviour`).

    storm   a NAK storm, as the source detects it, and who requests most
    queue   a submit queue is full: the application submits more than is sent
    wait    data of a stream waits most of the time: for its rate, or for receivers
    pause   an instance stood still: the host, or somebody who stopped its process, did not let it run
    clock   the wall clock of an instance was set

The first three are present. Queues and waits are judged by the observations of the last seconds, so that a burst is no
fault. The last two are over when they are seen, and kept for a time. The limits are those of the alerts
SubmitQueueFull, SenderBlocked and RateLimited. A pause is far longer than what HostHiccupHigh reports, which is a host
with many short ones.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from heliograph.engine.catalogue.times import time_of_day
from heliograph.monitor.hosts import HostRow, hosts
from heliograph.monitor.joining import Interval, value_of
from heliograph.monitor.model import Health, InstanceState, ObjectState, Snapshot
from heliograph.monitor.sources import ReceiverOfStream, StreamRow, receivers_of, streams
from heliograph.monitor.text import duration_text, percent_text, rate_text
from heliograph.monitor.waiting import WAITS, waits

__all__ = ["KEPT_NS", "MOST_PAST", "PAUSE_NS", "Fault", "Faults", "Kind", "fills_of"]

PAUSE_NS = 250_000_000
"""Shortest time without a processor that is a fault of its own."""
FULL = 0.8
"""Fill of a submit queue that counts as full."""
BY_RATE, BY_RECEIVERS = 0.5, 0.2
"""Share of the time from which a wait is a fault: for a rate, which somebody chose, and for receivers."""
WINDOW_NS = 5_000_000_000
"""Length of the observations by which queues and waits are judged."""
LEAST_NS, LEAST_LOOKS = 1_000_000_000, 3
"""With fewer observations neither is judged."""
TOGETHER_NS = 2_000_000_000
"""Pauses, and steps of clocks, of one host that are seen within this time have one cause."""
MOST_PAST = 8
"""Newest pauses, and steps of clocks, of one host that are kept."""
_ALIKE = 0.5
"""Pauses of one cause are at least this part of the longest."""
KEPT_NS = 300_000_000_000
_MOST_NAMED = 3
_FOR_RECEIVERS = frozenset({"window", "credit", "history", "room"})


class Kind(StrEnum):
    """Kinds of faults, the worst first."""

    STORM = "storm"
    QUEUE = "queue"
    WAIT = "wait"
    PAUSE = "pause"
    CLOCK = "clock"


_KINDS = tuple(Kind)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. The sentence is `subject` and `said`."""

    kind: Kind
    instances: tuple[str, ...]
    """The instances that it concerns, the worst first."""
    subject: str
    """The subject of the sentence, such as "NAK storm on the stream of feed"."""
    said: str
    """The rest of the sentence, with figures."""
    state: str
    """The rest of the sentence without figures: the same as long as the fault lasts."""
    since_ns: int
    """When it was first seen, wall clock in ns."""
    size: float
    """The greater, the worse; comparable within one kind."""
    stream: str = ""
    """The sent stream; empty for pauses and clocks."""
    topic: str = ""
    """The topic of a full queue."""

    @property
    def text(self) -> str:
        """The sentence."""
        return self.subject + self.said

    def concerns(self, streams: Collection[str], ends: Collection[str | None]) -> bool:
        """Return whether it is a fault of some streams, or of the hosts of some instances."""
        return self.stream in streams if self.stream else any(name in ends for name in self.instances)


@dataclass(frozen=True, slots=True)
class _Look:
    """One observation of a sent stream."""

    time_ns: int
    seconds: float
    waits: Mapping[str, float]
    fills: Mapping[str, float]
    """Fill of the submit queue, 0 to 1, by topic."""
    refused: int
    """Messages that the whole instance refused."""
    dropped: Mapping[str, int]
    """Messages dropped from the submit queue by topic."""


@dataclass(frozen=True, slots=True)
class _Past:
    """Pauses, or steps of clocks, of the instances of a host that were seen together."""

    seen_ns: int
    sizes: dict[str, int]
    """Length of the pause, or size of the step (above 0 forward, 0 unknown), ns, by instance."""


_History = dict[str, deque[_Past]]
"""By host, oldest first."""
_Key = tuple[int, str]


@dataclass(slots=True)
class Faults:
    """Follows the fleet from snapshot to snapshot; used by one thread."""

    kept_ns: int = KEPT_NS
    """Time that pauses and steps of clocks stay after they were seen."""
    _looks: dict[_Key, deque[_Look]] = field(default_factory=dict)
    _first: dict[tuple[object, ...], int] = field(default_factory=dict)
    _pauses: _History = field(default_factory=dict)
    _steps: _History = field(default_factory=dict)

    def update(
        self,
        previous: Snapshot | None,
        current: Snapshot,
        known: Sequence[ReceiverOfStream] | None = None,
        sent: Sequence[StreamRow] | None = None,
        rows: Sequence[HostRow] | None = None,
    ) -> tuple[Fault, ...]:
        """Return the faults, worst first.

        Args:
            previous: The snapshot before; None: this is the first one.
            current: The newest snapshot, with the histograms `host_hiccup`.
            known: Receivers as their sources see them, if they are at hand.
            sent: The sent streams, if they are at hand.
            rows: The hosts, if they are at hand.
        """
        now_ns = current.time_ns
        known = receivers_of(current, previous) if known is None else known
        sent = streams(previous, current) if sent is None else sent
        rows = hosts(previous, current) if rows is None else rows
        found = [_storm(row, known) for row in sent if row.storm]
        found += self._of_senders(Interval(previous, current))
        self._first = {key: self._first.get(key, now_ns) for key in map(_identity, found)}
        found = [replace(fault, since_ns=self._first[_identity(fault)]) for fault in found]
        self._remember(rows, now_ns)
        found += _paused(self._pauses, rows)
        found += _stepped(self._steps)
        return tuple(sorted(found, key=lambda fault: (_KINDS.index(fault.kind), -fault.size, fault.subject)))

    # ---- senders ----

    def _of_senders(self, interval: Interval) -> list[Fault]:
        topics: defaultdict[_Key, list[ObjectState]] = defaultdict(list)
        for owner, item in interval.now.of("transmitter"):
            if item.live:
                topics[owner.incarnation, item.labels["stream"]].append(item)
        looks: dict[_Key, deque[_Look]] = {}
        found: list[Fault] = []
        for owner, item in interval.now.of("tx_stream"):
            if not item.live or owner.health is not Health.LIVE or interval.earlier(owner, item) is None:
                continue
            key = (owner.incarnation, item.labels["stream"])
            looks[key] = own = self._looks.get(key, deque())
            look = _look(interval, owner, item, topics[key])
            if own and look.time_ns <= own[-1].time_ns:
                own.clear()  # the clock of this host was set back
            own.append(look)
            while own[0].time_ns <= look.time_ns - WINDOW_NS:
                own.popleft()
            if len(own) >= LEAST_LOOKS and sum(one.seconds for one in own) * 1e9 >= LEAST_NS:
                found += _of_sender(owner.name, item.labels["stream"], own)
        self._looks = looks
        return found

    # ---- hosts ----

    def _remember(self, rows: Iterable[HostRow], now_ns: int) -> None:
        for history in (self._pauses, self._steps):
            for host, found in list(history.items()):
                history[host] = found = deque(one for one in found if now_ns - self.kept_ns < one.seen_ns <= now_ns)
                if not found:
                    del history[host]
        for row in rows:
            if row.hiccup_ns is not None and row.hiccup_ns >= PAUSE_NS:
                sizes = _newest(self._pauses, row.host, now_ns).sizes
                sizes[row.instance] = max(sizes.get(row.instance, 0), row.hiccup_ns)
            if row.steps or row.stepped_ns:  # the event, which has the size, may come one snapshot after the count
                sizes = _newest(self._steps, row.host, now_ns).sizes
                sizes[row.instance] = sizes.get(row.instance, 0) + row.stepped_ns


def _newest(history: _History, host: str, now_ns: int) -> _Past:
    """Return what a host has had within `TOGETHER_NS`; a new entry if there is nothing."""
    found = history.setdefault(host, deque())
    if not found or now_ns - found[-1].seen_ns > TOGETHER_NS:
        found.append(_Past(now_ns, {}))
        if len(found) > MOST_PAST:
            found.popleft()
    return found[-1]


def _identity(fault: Fault) -> tuple[object, ...]:
    return fault.kind, fault.instances, fault.stream, fault.topic


def _storm(row: StreamRow, known: Iterable[ReceiverOfStream]) -> Fault:
    said = f": {rate_text(row.naks_per_s)} NAKs/s, {row.repairs_waiting} repairs wait"
    asking = [(one.nak_share_lately or 0.0, one.called) for one in known if one.stream == row.stream]
    asking = sorted((one for one in asking if one[0] > 0), key=lambda one: (-one[0], one[1]))[:_MOST_NAMED]
    if asking:
        names = _listed([name for _, name in asking])
        verb = "requests" if len(asking) == 1 else "request"
        said += f"; {names} {verb} {percent_text(min(1.0, sum(share for share, _ in asking)))} of all repairs"
    subject = f"NAK storm on the stream of {row.instance}"
    return Fault(Kind.STORM, (row.instance,), subject, said, "", 0, row.naks_per_s, row.stream)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def fills_of(topics: Iterable[ObjectState]) -> dict[str, float]:
    """Return the fill of the submit queue, 0 to 1, of each transmitter that has one, by topic."""
    return {
        topic.labels["topic"]: min(1.0, value_of(topic, "queue_bytes") / limit)
        for topic in topics
        if (limit := value_of(topic, "queue_limit_bytes"))
    }


def _look(interval: Interval, owner: InstanceState, item: ObjectState, topics: Sequence[ObjectState]) -> _Look:
    dropped = {
        topic.labels["topic"]: sum(
            interval.change(owner, topic, name) for name in topic.values if name.startswith("messages_dropped_")
        )
        for topic in topics
    }
    whole = next(owner.of("instance"), None)
    return _Look(
        time_ns=interval.now.snapshot.time_ns,
        seconds=interval.between,
        waits=waits(interval, owner, item, topics),
        fills=fills_of(topics),
        refused=interval.change(owner, whole, "send_would_block"),
        dropped=dropped,
    )


def _of_sender(name: str, stream: str, looks: Sequence[_Look]) -> list[Fault]:
    """Return the full queues of a stream, or else the wait of its data."""
    wait = _wait(looks)
    because = f"; its data waits {percent_text(wait[1])} of the time {WAITS[wait[0]]}" if wait else ""
    found = []
    for topic in looks[-1].fills:
        least = min(look.fills.get(topic, 0.0) for look in looks)
        if least < FULL:
            continue
        subject = f"The submit queue of {topic} at {name}"
        said = f" is {percent_text(looks[-1].fills[topic])} full"
        if refused := sum(look.refused for look in looks):
            said += f"; {name} refused {refused} sends within {_length(looks)}"
        if dropped := sum(look.dropped.get(topic, 0) for look in looks):
            said += f"; {dropped} messages were dropped within {_length(looks)}"
        found.append(Fault(Kind.QUEUE, (name,), subject, said + because, " is full", 0, least, stream, topic))
    if not found and wait:
        reason, share = wait
        said = f" waits {percent_text(share)} of the time {WAITS[reason]}"
        found = [Fault(Kind.WAIT, (name,), f"Data of {name}", said, f" waits {WAITS[reason]}", 0, share, stream)]
    return found


def _length(looks: Sequence[_Look]) -> str:
    return duration_text(sum(look.seconds for look in looks) * 1e9)


def _wait(looks: Sequence[_Look]) -> tuple[str, float] | None:
    """Return the longest wait that is a fault: its reason, and its share of the time."""
    seconds = sum(look.seconds for look in looks)
    shares = {name: sum(look.waits.get(name, 0.0) * look.seconds for look in looks) / seconds for name in WAITS}
    long = {
        name: share for name, share in shares.items() if share >= (BY_RECEIVERS if name in _FOR_RECEIVERS else BY_RATE)
    }
    if not long:
        return None
    reason = max(long, key=lambda name: long[name])
    return reason, min(1.0, long[reason])


# ---- pauses and clocks ----


def _alike(sizes: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """Yield the instances in groups with lengths of one cause, each with its longest first."""
    left = sorted(sizes, key=lambda name: (-sizes[name], name))
    while left:
        count = sum(sizes[name] >= _ALIKE * sizes[left[0]] for name in left)
        yield tuple(left[:count])
        left = left[count:]


def _paused(pauses: _History, rows: Iterable[HostRow]) -> list[Fault]:
    """Return the pauses: of a whole host when all its instances stood still, of processes otherwise."""
    here: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.hiccup_ns is not None:
            here[row.host].add(row.instance)
    return [
        _pause(host, past, names, len(here[host].difference(names)))
        for host, found in pauses.items()
        for past in found
        for names in _alike(past.sizes)
    ]


def _pause(host: str, past: _Past, names: tuple[str, ...], others: int) -> Fault:
    """Return the fault of instances that stood still together.

    Args:
        host: Their host.
        past: What was seen.
        names: The instances, the one that stood still longest first.
        others: Number of the other instances of the host.
    """
    longest = past.sizes[names[0]]
    said = f" stood still for {duration_text(longest)} until {time_of_day(past.seen_ns)}"
    if others or len(names) == 1:
        subject = _listed(names) if len(names) <= _MOST_NAMED else f"{names[0]} and {len(names) - 1} others"
        their, processes = ("its", "its process was") if len(names) == 1 else ("their", "their processes were")
        said += f": none of {their} threads could run"
        if others:
            ran = "the other instance" if others == 1 else f"the other {others} instances"
            said += f"; {ran} of the host ran, so {processes} stopped and not the host"
    else:
        subject = f"Host {host}" if host else f"The host of {names[0]}"
        said += f": none of its {len(names)} instances could run"
    return Fault(Kind.PAUSE, names, subject, said, " stood still", past.seen_ns, longest)


def _stepped(steps: _History) -> list[Fault]:
    return [_step(past) for found in steps.values() for past in found]


def _step(past: _Past) -> Fault:
    names = sorted(past.sizes, key=lambda name: (-abs(past.sizes[name]), name))
    by_ns = past.sizes[names[0]]
    place = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more on its host"
    size = f" {duration_text(abs(by_ns))} {'forward' if by_ns > 0 else 'back'}" if by_ns else ""
    said = f" was set{size} at {time_of_day(past.seen_ns)}: latencies across the step are off by as much"
    return Fault(Kind.CLOCK, tuple(names), f"The wall clock of {place}", said, " was set", past.seen_ns, abs(by_ns))
