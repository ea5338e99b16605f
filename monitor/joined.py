"""Receivers joined with their senders, in columns: a row is an object only when somebody looks at it.

A fleet has up to a hundred thousand receivers, and few of them are looked at: the worst, those that changed, those of
one page. `Receivers` therefore keeps what it knows of all of them in arrays. The judge works on these arrays. A
`ReceiverRow` is built from them at its first use, and so are the percentiles of its latency.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from heliograph.monitor import _judge, judging
from heliograph.monitor.behaviour import CLASSES, Behaviour, Evidence, reason_of
from heliograph.monitor.blame import LEAST_MESSAGES, Verdict, blame
from heliograph.monitor.bulk import Summary, summaries_since
from heliograph.monitor.clocks import Clocks, ClockSource, OneWay, Trust
from heliograph.monitor.joining import Interval, histogram_since, value_of
from heliograph.monitor.latency import maximum, percentiles
from heliograph.monitor.model import InstanceState, ObjectState, Snapshot
from heliograph.monitor.reception import Reception, reception_of
from heliograph.monitor.records import receiver_cells
from heliograph.monitor.roster import Indexes, Roster, Seats, numbered
from heliograph.monitor.rows import LagBasis, ReceiverRow
from heliograph.monitor.timeline import Timeline
from heliograph.monitor.window import Watcher

__all__ = ["VECTORS", "Cells", "Receivers", "column_of", "sender_key", "watch_senders", "word"]

_FRACTIONS = (0.5, 0.99, 0.999)
_BASES = tuple(map(LagBasis, _judge.BASES))
_MOST = (1 << 64) - 1


class Cells(NamedTuple):
    """The used cells of a receiver; 0 where one is missing."""

    next_message: int
    messages_before_join: int
    messages_delivered: int
    messages_recovered: int
    messages_lost: int
    messages_trimmed_count: int
    messages_trimmed_bytes: int
    messages_trimmed_age: int
    messages_trimmed_conflated: int
    messages_trimmed_priority: int
    fragments_joined: int
    bytes_delivered: int
    queue_messages: int
    queue_bytes: int
    queue_limit_bytes: int
    queue_full: int
    queue_age: int

    @property
    def trimmed(self) -> int:
        """Messages that the receive queue dropped."""
        return (
            self.messages_trimmed_count
            + self.messages_trimmed_bytes
            + self.messages_trimmed_age
            + self.messages_trimmed_conflated
            + self.messages_trimmed_priority
        )

    @property
    def residual(self) -> int:
        """Messages that the reconciliation does not explain."""
        accounted = self.messages_before_join + self.messages_delivered + self.fragments_joined + self.messages_lost
        return self.next_message - accounted


assert Cells._fields == judging.CELLS


def word(value: int) -> int:
    """Return a count of an object that may be of a stranger: never below 0, nor above what a cell holds."""
    return min(max(value, 0), _MOST)


@dataclass(frozen=True, slots=True)
class _Sender:
    """The sender of a topic over an interval: the same for all its receivers."""

    owner: InstanceState
    item: ObjectState
    next_message: int
    per_s: float
    mean_bytes: float
    """Bytes of a message."""


def sender_key(owner: InstanceState, item: ObjectState) -> tuple[int, str, str]:
    """Return the key of a sender's timeline."""
    return owner.incarnation, item.labels["stream"], item.labels["topic"]


def watch_senders(
    watcher: Watcher, time_ns: int, senders: Iterable[tuple[InstanceState, ObjectState]]
) -> dict[tuple[int, str, str], None]:
    """Add the positions of the live senders to their timelines; returns the keys of all."""
    keys: dict[tuple[int, str, str], None] = {}
    for owner, item in senders:
        key = sender_key(owner, item)
        keys[key] = None
        if item.live:
            sent, size = word(value_of(item, "next_message")), word(value_of(item, "bytes_sent"))
            watcher.timeline(key).add(time_ns, sent, size)
    return keys


class _Join:
    """All receivers of an interval, in columns."""

    def __init__(
        self, previous: Snapshot | None, current: Snapshot, watcher: Watcher | None, seats: Seats | None = None
    ) -> None:
        self.interval = interval = Interval(previous, current)
        watched = watch_senders(watcher, current.time_ns, interval.now.of("transmitter")) if watcher is not None else {}
        self.roster = Roster(current, watcher.seats if watcher is not None else seats)
        self.seats = self.roster.seats
        self.shown = self.roster.shown
        self.items = self._of_shown(self.roster.items)
        self.earlier: list[ObjectState | None] = [None] * len(self.items)
        if previous is not None and interval.between > 0:
            self.earlier = self._of_shown(self.roster.earlier(Roster(previous, self.seats)))
        self.now = receiver_cells([item.values for item in self.items])
        self.before = receiver_cells([old.values if old is not None else None for old in self.earlier])
        self.topic_of, self.stream_of = self.seats.topics[1][self.shown], self.seats.streams[1][self.shown]
        self.owner_of = self.seats.owners[self.shown]
        self.senders = [self._sender(*topic) for topic in self.seats.topics[0]]
        self.receptions = self._received()
        self.table = self._table(watcher)
        self._judge(watcher)
        if watcher is not None:
            watcher.keep_senders(watched)
        self.summaries: dict[int, Summary | None] = {}
        self.measured: _Join | None = None
        """The join whose latencies the rows have; None: their own."""
        self.places: Sequence[int] = ()
        """Number of each receiver in it; -1: it was not there."""

    def with_latencies(self, other: _Join) -> _Join:
        """Return the same rows with the latencies of another interval."""
        found = copy.copy(self)
        found.measured, found.places = other, self._places_in(other)
        return found

    def _places_in(self, other: _Join) -> list[int]:
        """Return the number of each receiver in another join; -1: it is not there."""
        if other.seats is self.seats:
            places = np.full(len(self.roster.items), -1)
            places[other.shown] = np.arange(len(other.shown))
            found: list[int] = places[self.shown].tolist()
            return found
        theirs, ours = other.seats.places, self.seats.places
        known = {theirs[seat]: n for n, seat in enumerate(other.shown.tolist())}
        return [known.get(ours[seat], -1) for seat in self.shown.tolist()]

    @cached_property
    def seconds(self) -> npt.NDArray[np.float64]:
        """Length of the interval for each receiver (`Interval.length`)."""
        found = np.full(len(self.items), max(self.interval.between, 1e-3))
        for n in np.flatnonzero(~self.table["has_before"].astype(np.bool_)).tolist():
            owner = self.roster.instances[self.owner_of[n]]
            found[n] = self.interval.length(owner, self.items[n], None)
        return found

    def _of_shown(self, found: list[Any]) -> list[Any]:
        return found if len(self.shown) == len(found) else [found[n] for n in self.shown.tolist()]

    def _sender(self, stream: str, topic: str) -> _Sender | None:
        found = self.interval.sender(stream, topic)
        if found is None:
            return None
        owner, item = found
        mean = value_of(item, "bytes_sent") / max(1, value_of(item, "messages_sent"))
        per_s = self.interval.rate(owner, item, "next_message")
        return _Sender(owner, item, value_of(item, "next_message"), per_s, mean)

    def _received(self) -> list[Reception]:
        instances, interval = self.roster.instances, self.interval
        return [reception_of(interval, instances[owner], stream) for owner, stream in self.seats.streams[0]]

    def _table(self, watcher: Watcher | None) -> judging.Rows:
        """Return the rows for the judge."""
        table = judging.rows(len(self.items))
        senders, topic_of = self.senders, self.topic_of
        table["sender"] = topic_of
        table["end"] = self.roster.ends[self.shown]
        table["is_watched"] = watcher is not None
        table["has_before"] = np.array([old is not None for old in self.earlier], np.bool_)
        table["has_sender"] = np.array([one is not None for one in senders], np.bool_)[topic_of]
        table["sent"] = np.array([word(one.next_message) if one else 0 for one in senders], np.uint64)[topic_of]
        table["sent_per_s"] = np.array([one.per_s if one else 0.0 for one in senders], np.float64)[topic_of]
        if self.interval.before is not None:
            ahead = [self.interval.at_its_start.sender(*topic) for topic in self.seats.topics[0]]
            sent = [word(value_of(one[1], "next_message")) if one else 0 for one in ahead]
            table["had_sender"] = np.array([one is not None for one in ahead], np.bool_)[topic_of]
            table["sent_before"] = np.array(sent, np.uint64)[topic_of]
        received, stream_of = self.receptions, self.stream_of
        table["gaps"] = np.array([word(one.gaps) for one in received], np.uint64)[stream_of]
        table["packets"] = np.array([word(one.packets) for one in received], np.uint64)[stream_of]
        table["missing_ratio"] = np.array([one.missing_ratio for one in received], np.float64)[stream_of]
        if watcher is not None:
            table["window"] = watcher.follow(self.seats)[self.shown]
        return table

    def _judge(self, watcher: Watcher | None) -> None:
        idle = Timeline().positions
        lines = [idle] * len(self.senders)
        if watcher is not None:
            for n, sender in enumerate(self.senders):
                if sender is not None:
                    lines[n] = watcher.timeline(sender_key(sender.owner, sender.item)).positions
        _judge.lags(self.table, self.now, self.before, lines)
        windows = watcher.windows if watcher is not None else _judge.Windows()
        windows.judge(self.table, self.interval.now.snapshot.time_ns)

    # ---- latency ----

    def summarise(self, numbers: Iterable[int]) -> None:
        """Read the latencies of receivers, of all that have not been read yet together."""
        if self.measured is not None:
            self.measured.summarise(place for n in numbers if (place := self.places[n]) >= 0)
            return
        made: dict[int, Summary | None] = {}
        left = {}
        for n in numbers:
            if n not in self.summaries:
                made[n] = None
                if (found := self.items[n].histograms.get("total_latency")) is not None:
                    left[n] = found
        places = list(left)
        older = [old.histograms.get("total_latency") if (old := self.earlier[n]) else None for n in places]
        for index, summary in summaries_since(list(left.values()), older, _FRACTIONS):
            made[places[index]] = summary
            del left[places[index]]
        for n in left:
            values = histogram_since(self.items[n], self.earlier[n], "total_latency")
            if values is not None:
                made[n] = Summary(values.count, percentiles(values, _FRACTIONS), maximum(values))
        self.summaries |= made  # at the end: another thread takes what is there as read

    def latency(self, n: int) -> Summary | None:
        """Return the latencies of a receiver, which were read (`summarise`); None: there are none."""
        if self.measured is not None:
            return self.measured.latency(place) if (place := self.places[n]) >= 0 else None
        return self.summaries[n]

    def late(self, n: int) -> Verdict | None:
        """Return the cause of the latest messages of the interval, where the hosts' hiccups are known."""
        if self.measured is not None:
            return self.measured.late(place) if (place := self.places[n]) >= 0 else None
        latency = self.summaries[n]
        if latency is None or latency.count < LEAST_MESSAGES:
            return None
        now, before = Cells(*self.now[n].tolist()), Cells(*self.before[n].tolist())
        recovered = max(0, now.messages_recovered - before.messages_recovered)
        sender = self.senders[self.topic_of[n]]
        owner = self.roster.instances[self.owner_of[n]]
        ends = [owner] if sender is None else [owner, sender.owner]
        hiccups = [found for end in ends if (found := self.interval.hiccups(end)) is not None]
        if not hiccups:
            return None
        return blame(histogram_since(self.items[n], self.earlier[n], "total_latency"), hiccups, recovered)

    # ---- rows ----

    def row(self, n: int) -> ReceiverRow:
        """Build the row of one receiver."""
        one, cells, before = self.table[n], Cells(*self.now[n].tolist()), Cells(*self.before[n].tolist())
        owner, item = self.roster.instances[self.owner_of[n]], self.items[n]
        sender, reception = self.senders[self.topic_of[n]], self.receptions[self.stream_of[n]]
        seconds = self.interval.length(owner, item, self.earlier[n])
        in_flight, seconds_behind = int(one["in_flight"]), float(one["lag_seconds"])
        lag_seconds = None if math.isnan(seconds_behind) else seconds_behind
        recovered = max(0, cells.messages_recovered - before.messages_recovered)
        behaviour = CLASSES[one["behaviour"]]
        self.summarise((n,))
        latency = self.latency(n)
        p50, p99, p999 = latency.percentiles if latency else (None, None, None)
        evidence = Evidence(
            health=owner.health,
            health_reason=owner.reason,
            live=item.live,
            delivered=int(one["delivered"]),
            lost=int(one["lost"]),
            lag_messages=in_flight + cells.queue_messages,
            lag_seconds=lag_seconds,
            lag_before=int(one["in_flight_before"]) + int(one["waiting_before"]) if one["has_before"] else None,
            queue_fill=float(one["queue_fill"]),
            queue_full=int(one["queue_full"]),
            missing_ratio=float(one["missing_ratio"]),
            nak_share=reception.nak_share,
            forecast_ns=reception.forecast_ns,
        )
        return ReceiverRow(
            instance=owner.name,
            topic=item.labels["topic"],
            stream=item.labels["stream"],
            transmitter=sender.owner.name if sender else None,
            sent=cells.next_message + in_flight if sender else None,
            before_join=cells.messages_before_join,
            delivered=cells.messages_delivered - cells.trimmed,
            recovered=cells.messages_recovered,
            trimmed=cells.trimmed,
            lost=cells.messages_lost,
            in_flight=in_flight if sender else None,
            residual=cells.residual,
            endpoint=item.info.get("endpoint", ""),
            health=owner.health,
            behaviour=behaviour,
            badness=float(one["badness"]),
            reason=reason_of(behaviour, evidence),
            looks=int(one["looks"]),
            since_ns=int(one["since_ns"]),
            seconds=seconds,
            sent_per_s=sender.per_s if sender else None,
            delivered_per_s=max(0, cells.messages_delivered - before.messages_delivered) / seconds,
            bytes_per_s=max(0, cells.bytes_delivered - before.bytes_delivered) / seconds,
            recovered_per_s=recovered / seconds,
            lost_per_s=max(0, cells.messages_lost - before.messages_lost) / seconds,
            missing_ratio=reception.missing_ratio,
            naks_per_s=reception.naks_per_s,
            nak_ratio=reception.nak_ratio,
            nak_share=reception.nak_share,
            loss_place=reception.loss_place,
            forecast_ns=reception.forecast_ns,
            blame_ns=reception.blame_ns,
            outstanding_naks=reception.outstanding_naks,
            lag_messages=evidence.lag_messages,
            lag_bytes=self._lag_bytes(one, cells, sender),
            lag_seconds=lag_seconds,
            lag_basis=_BASES[one["basis"]],
            queue_messages=cells.queue_messages,
            queue_bytes=cells.queue_bytes,
            queue_fill=evidence.queue_fill,
            p50_ns=p50,
            p99_ns=p99,
            p999_ns=p999,
            max_ns=latency.maximum if latency else None,
            late=self.late(n),
            clocks=reception.clocks,
            round_trip_ns=reception.round_trip_ns,
        )

    @staticmethod
    def _lag_bytes(one: np.void, cells: Cells, sender: _Sender | None) -> int | None:
        """Return the bytes from the oldest message on that the application does not have; None: unknown."""
        in_flight = int(one["in_flight"])
        if in_flight:
            mean = sender.mean_bytes if sender else 0.0
            return cells.queue_bytes + (int(one["way_bytes"]) if one["has_way"] else round(mean * in_flight))
        if not cells.queue_messages:
            return 0
        return cells.queue_bytes if sender else None  # None: the messages in flight are unknown

    def trust(self, numbers: Sequence[int]) -> list[Trust | None]:
        """Return whether the median of receivers can be used as measured; None: nothing was measured."""
        streams = self.stream_of.tolist()
        fixed = [OneWay(0.0, one.clocks).trust if _is_fixed(one.clocks) else None for one in self.receptions]
        found = {n: fixed[streams[n]] for n in numbers if self._has_more(n)}
        left = [n for n in numbers if found.get(n) is None]
        self.summarise(left)
        for n in left:
            latency = self.latency(n)
            if latency is not None:
                found[n] = OneWay(latency.percentiles[0], self.receptions[streams[n]].clocks).trust
        return [found.get(n) for n in numbers]

    def _has_more(self, n: int) -> bool:
        """Whether more values were counted than before: a comparison that needs no percentile."""
        if self.measured is not None:
            return (place := self.places[n]) >= 0 and self.measured._has_more(place)
        newer, old = self.items[n].histograms.get("total_latency"), self.earlier[n]
        older = old.histograms.get("total_latency") if old is not None else None
        return newer is not None and newer is not older and newer.count > (older.count if older is not None else 0)


def _is_fixed(clocks: Clocks) -> bool:
    """Whether the trust in a latency does not depend on its length."""
    return clocks.source is not ClockSource.EXCHANGE


class Receivers(Sequence[ReceiverRow]):
    """Receivers of a fleet over an interval, worst first; a row is built at its first use."""

    def __init__(self, join: _Join, numbers: Indexes, rows: dict[int, ReceiverRow]) -> None:
        self._join = join
        self._numbers = numbers
        self._rows = rows

    @classmethod
    def of(cls, previous: Snapshot | None, current: Snapshot, watcher: Watcher | None) -> Receivers:
        """Join all relevant receivers of a snapshot (`fleet.receivers`)."""
        join = _Join(previous, current, watcher)
        return cls(join, np.lexsort((join.seats.ranks[join.shown], -join.table["badness"])), {})

    def since(self, older: Snapshot) -> Receivers:
        """Return the same receivers over the interval since an older snapshot, each judged by one observation."""
        join = _Join(older, self._join.interval.now.snapshot, None, self._join.seats)
        return Receivers(join, self._numbers, {})

    def with_latencies(self, other: Receivers) -> Receivers:
        """Return the same receivers with the latencies of another interval; one that was not there has none.

        Args:
            other: The receivers over that interval.
        """
        return Receivers(self._join.with_latencies(other._join), self._numbers, {})

    def part(self, places: Sequence[int]) -> Receivers:
        """Return the receivers at some places, in the order of the places."""
        return Receivers(self._join, self._numbers[np.array(places, np.int64)], self._rows)

    def changes(self) -> Iterator[tuple[InstanceState, ObjectState, ObjectState | None]]:
        """Yield the object of each receiver with its instance and its earlier state, in no particular order."""
        join, instances = self._join, self._join.roster.instances
        owners = [instances[n] for n in join.owner_of.tolist()]
        return zip(owners, join.items, join.earlier, strict=True)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> ReceiverRow: ...
    @overload
    def __getitem__(self, place: slice) -> list[ReceiverRow]: ...
    def __getitem__(self, place: int | slice) -> ReceiverRow | list[ReceiverRow]:
        if isinstance(place, slice):
            return list(self.part(range(len(self))[place]))
        return self._row(int(self._numbers[place]))

    def __iter__(self) -> Iterator[ReceiverRow]:
        numbers: list[int] = self._numbers.tolist()
        self._join.summarise(numbers)
        return map(self._row, numbers)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def _row(self, number: int) -> ReceiverRow:
        found = self._rows.get(number)
        if found is None:
            found = self._rows[number] = self._join.row(number)
        return found

    # ---- columns ----

    def column(self, name: str) -> Sequence[Any]:
        """Return an attribute of all rows; no row is built for those that consumers use of whole fleets."""
        made = _COLUMNS.get(name)
        return made(self) if made is not None else [getattr(row, name) for row in self]

    def vector(self, name: str) -> npt.NDArray[np.float64]:
        """Return a number of all rows (see VECTORS); NaN where it is unknown."""
        return VECTORS[name](self._join)[self._numbers]

    @cached_property
    def instances(self) -> tuple[list[tuple[str, ...]], Indexes]:
        """Names of the instances as tuples of one, each once, and the index of that of each row."""
        names, index = numbered((one.name,) for one in self._join.roster.instances)
        return _used(names, index[self._join.owner_of][self._numbers])

    @cached_property
    def topics(self) -> tuple[list[tuple[str, ...]], Indexes]:
        """Topics and their streams, each once, and the index of that of each row."""
        names = [(topic, stream) for stream, topic in self._join.seats.topics[0]]
        return _used(names, self._join.topic_of[self._numbers])

    @cached_property
    def groups(self) -> dict[str, object]:
        """The groups of the rows that were made (`groups.groups_of`)."""
        return {}

    @cached_property
    def identities(self) -> list[tuple[str, str, str]]:
        """Instance, topic and stream of each."""
        identities = self._join.seats.identities
        return [identities[n] for n in self._join.shown[self._numbers].tolist()]

    @cached_property
    def behaviours(self) -> list[Behaviour]:
        """The class of each."""
        return [CLASSES[n] for n in self._field("behaviour")]

    def _field(self, name: str) -> list[Any]:
        found: list[Any] = self._join.table[name][self._numbers].tolist()
        return found

    def _of_topics(self, values: Sequence[Any]) -> list[Any]:
        return [values[n] for n in self._join.topic_of[self._numbers].tolist()]

    def _of_streams(self, values: Sequence[Any]) -> list[Any]:
        return [values[n] for n in self._join.stream_of[self._numbers].tolist()]

    def _transmitters(self) -> list[str | None]:
        return self._of_topics([one.owner.name if one else None for one in self._join.senders])

    def _in_flight(self) -> list[int | None]:
        pairs = zip(self._field("in_flight"), self._field("has_sender"), strict=True)
        return [count if known else None for count, known in pairs]

    def _lag_messages(self) -> list[int]:
        return [sum(pair) for pair in zip(self._field("in_flight"), self._field("waiting"), strict=True)]

    def _lag_seconds(self) -> list[float | None]:
        return [None if math.isnan(value) else value for value in self._field("lag_seconds")]

    def _nak_shares(self) -> list[float | None]:
        return self._of_streams([one.nak_share for one in self._join.receptions])

    def _trusts(self) -> list[Trust | None]:
        return self._join.trust(self._numbers.tolist())


def _used(names: Sequence[tuple[str, ...]], index: Indexes) -> tuple[list[tuple[str, ...]], Indexes]:
    """Leave out the names without a row."""
    used, found = np.unique(index, return_inverse=True)
    return [names[n] for n in used.tolist()], found.astype(np.int64)


def _increase(cell: str) -> Callable[[_Join], npt.NDArray[np.float64]]:
    """Return the function for the increase of a counter per second."""
    place = judging.CELLS.index(cell)

    def made(join: _Join) -> npt.NDArray[np.float64]:
        now, before = join.now[:, place], join.before[:, place]
        change = np.where(now > before, now - before, 0)
        return np.asarray(change / join.seconds, np.float64)

    return made


def _received(name: str) -> Callable[[_Join], npt.NDArray[np.float64]]:
    """Return the function for a value of the streams."""
    return lambda join: np.array([getattr(one, name) for one in join.receptions], np.float64)[join.stream_of]


def _judged(name: str) -> Callable[[_Join], npt.NDArray[np.float64]]:
    """Return the function for a field of the judge."""
    return lambda join: join.table[name].astype(np.float64)


VECTORS: Mapping[str, Callable[[_Join], npt.NDArray[np.float64]]] = {
    "badness": _judged("badness"),
    "behaviour": _judged("behaviour"),
    "delivered_per_s": _increase("messages_delivered"),
    "is_live": lambda join: np.array([item.live for item in join.items], np.float64),
    "is_new": lambda join: 1.0 - join.table["has_before"],
    "lag_messages": lambda join: join.table["in_flight"].astype(np.float64) + join.table["waiting"],
    "lag_seconds": _judged("lag_seconds"),
    "lost": lambda join: join.now[:, judging.CELLS.index("messages_lost")].astype(np.float64),
    "missing_ratio": _received("missing_ratio"),
    "naks_per_s": _received("naks_per_s"),
    "queue_fill": _judged("queue_fill"),
    "recovered": lambda join: join.now[:, judging.CELLS.index("messages_recovered")].astype(np.float64),
    "sent_per_s": lambda join: np.where(join.table["has_sender"], join.table["sent_per_s"], np.nan),
}
"""Numbers of all receivers by the name of the attribute of a row; `behaviour` as the place in `behaviour.CLASSES`;
`is_live` is 0 where the receiver is closed; `is_new` is 1 where the earlier snapshot lacks it."""

_COLUMNS: Mapping[str, Callable[[Receivers], Sequence[Any]]] = {
    "badness": lambda found: found._field("badness"),
    "behaviour": lambda found: found.behaviours,
    "identity": lambda found: found.identities,
    "in_flight": Receivers._in_flight,
    "lag_messages": Receivers._lag_messages,
    "lag_seconds": Receivers._lag_seconds,
    "nak_share": Receivers._nak_shares,
    "stream": lambda found: found._of_topics([stream for stream, _ in found._join.seats.topics[0]]),
    "queue_fill": lambda found: found._field("queue_fill"),
    "transmitter": Receivers._transmitters,
    "trust": Receivers._trusts,
}


def column_of(rows: Sequence[ReceiverRow], name: str) -> Sequence[Any]:
    """Return an attribute of all rows, which may be of a join or built otherwise."""
    return rows.column(name) if isinstance(rows, Receivers) else [getattr(row, name) for row in rows]
