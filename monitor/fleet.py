"""Joins both ends of streams: sender, receiver, repair requests, and the reconciliation.

Pure functions from a snapshot (and the previous one) to rows. The sender of a receiver is found by the stream label,
which both ends carry. A receiver that requests repairs is found by the source address of its requests, the info
`feedback_address` of the receiving instance. A sender on another host is unknown: values that depend on it are None.

An interval is the time between the two snapshots. If the earlier snapshot does not have an object (it is new, its
instance restarted, or there is no earlier snapshot), the interval is the whole life of the object.

The two ends are read one after the other, so a receiver may already have messages that its sender's record does not
show. A receiver that expects message n proves that n messages were sent: `sent` is at least n, and `in_flight` is never
negative. `residual` is the number of unexplained messages; it is 0 for a correct engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from heliograph.monitor.behaviour import Evidence, judge_receiver
from heliograph.monitor.blame import LEAST_MESSAGES, Verdict, blame
from heliograph.monitor.bulk import Summary, summaries_since
from heliograph.monitor.clocks import Clocks, clocks_of
from heliograph.monitor.joining import Interval, value_of
from heliograph.monitor.latency import maximum, percentiles
from heliograph.monitor.localise import judge
from heliograph.monitor.model import Health, InstanceState, ObjectState, Snapshot
from heliograph.monitor.records import columns
from heliograph.monitor.rows import Balance, InstanceRow, LagBasis, ReceiverRow, TransmitterRow
from heliograph.monitor.window import Look, Place, Watcher
from heliograph.monitor.worst import worst

__all__ = [
    "Balance",
    "InstanceRow",
    "ReceiverRow",
    "TransmitterRow",
    "balance",
    "instances",
    "receiver_names",
    "receivers",
    "transmitters",
    "worst_instances",
]


_LOCATED = "losses_located_"
_FRACTIONS = (0.5, 0.99, 0.999)


class _Cells(NamedTuple):
    """The used cells of a receiver; 0 where one is missing."""

    next_message: int = 0
    messages_before_join: int = 0
    messages_delivered: int = 0
    messages_recovered: int = 0
    messages_lost: int = 0
    messages_trimmed_count: int = 0
    messages_trimmed_bytes: int = 0
    messages_trimmed_age: int = 0
    messages_trimmed_conflated: int = 0
    messages_trimmed_priority: int = 0
    fragments_joined: int = 0
    bytes_delivered: int = 0
    queue_messages: int = 0
    queue_bytes: int = 0
    queue_limit_bytes: int = 0
    queue_full: int = 0
    queue_age: int = 0

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


def _rise(now: int, before: int) -> int:
    """Return the increase of a counter; 0 where it fell."""
    return now - before if now > before else 0


def _cells(found: Sequence[ObjectState | None]) -> list[_Cells]:
    values = columns([item.values if item is not None else None for item in found], _Cells._fields)
    return list(map(_Cells, *values))


@dataclass(frozen=True, slots=True)
class _Receiver:
    """A receiver over an interval."""

    owner: InstanceState
    item: ObjectState
    place: Place
    earlier: ObjectState | None
    cells: _Cells
    before: _Cells
    """Its cells at the start of the interval; 0 without an earlier state."""
    latency: Summary | None


@dataclass(frozen=True, slots=True)
class _Sender:
    """The sender of a topic over an interval: the same for all its receivers."""

    owner: InstanceState
    item: ObjectState
    next_message: int
    per_s: float
    mean_bytes: float
    """Bytes of a message."""


@dataclass(frozen=True, slots=True)
class _Reception:
    """Reception of a stream by an instance over an interval: the same for all topics of the stream."""

    missing_ratio: float
    naks_per_s: float
    nak_ratio: float
    nak_share: float | None
    loss_place: str | None
    clocks: Clocks
    round_trip_ns: int | None
    gaps: int
    packets: int
    outstanding_naks: int
    forecast_ns: int | None
    """As the source of the stream knows it, like the next."""
    blame_ns: int | None


class _Joined(Interval):
    """An interval, and the data that the topics of a stream share in it."""

    def __init__(self, previous: Snapshot | None, current: Snapshot) -> None:
        super().__init__(previous, current)
        self._receptions: dict[tuple[int, str], _Reception] = {}
        self._senders: dict[tuple[str, str], _Sender | None] = {}
        self._ahead: dict[tuple[str, str], int | None] = {}

    def receivers(self) -> list[_Receiver]:
        """Return the relevant receivers; their cells and latencies are read together."""
        found = list(_of(self.now.snapshot, "receiver"))
        places = [(owner.incarnation, item.key) for owner, item in found]
        known = self.before.objects if self.before is not None and self.between > 0 else {}
        earlier = [known.get(place) for place in places]
        latencies = self._latencies(found, earlier)
        cells, before = _cells([item for _, item in found]), _cells(earlier)
        return [
            _Receiver(*found[n], places[n], old, cells[n], before[n], latencies[n]) for n, old in enumerate(earlier)
        ]

    def _latencies(
        self, found: Sequence[tuple[InstanceState, ObjectState]], earlier: Sequence[ObjectState | None]
    ) -> list[Summary | None]:
        summaries: list[Summary | None] = [None] * len(found)
        measured = [
            (n, item.histograms["total_latency"])
            for n, (_, item) in enumerate(found)
            if "total_latency" in item.histograms
        ]
        older = [old.histograms.get("total_latency") if (old := earlier[n]) else None for n, _ in measured]
        left = dict(enumerate(n for n, _ in measured))
        for index, summary in summaries_since([one for _, one in measured], older, _FRACTIONS):
            summaries[left.pop(index)] = summary
        for n in left.values():
            values = self.histogram(*found[n], "total_latency")
            if values is not None:
                summaries[n] = Summary(values.count, percentiles(values, _FRACTIONS), maximum(values))
        return summaries

    def sending(self, stream: str, topic: str) -> _Sender | None:
        """Return the sender of a topic; computed once for all receivers."""
        place = (stream, topic)
        if place not in self._senders:
            found = self.sender(stream, topic)
            self._senders[place] = self._sending(*found) if found else None
        return self._senders[place]

    def _sending(self, owner: InstanceState, item: ObjectState) -> _Sender:
        mean = value_of(item, "bytes_sent") / max(1, value_of(item, "messages_sent"))
        return _Sender(owner, item, value_of(item, "next_message"), self.rate(owner, item, "next_message"), mean)

    def sent_before(self, stream: str, topic: str) -> int | None:
        """Return the next message of a topic's sender at the start of the interval; None: it had no sender."""
        place = (stream, topic)
        if place not in self._ahead:
            found = self.at_its_start.sender(stream, topic)
            self._ahead[place] = value_of(found[1], "next_message") if found else None
        return self._ahead[place]

    def reception(self, owner: InstanceState, stream: str) -> _Reception:
        """Return the reception of a stream by an instance; computed once for all topics."""
        place = (owner.incarnation, stream)
        if place not in self._receptions:
            self._receptions[place] = _reception(self, owner, stream)
        return self._receptions[place]


def _of(snapshot: Snapshot, scope: str) -> Iterator[tuple[InstanceState, ObjectState]]:
    """Yield the relevant objects of a scope.

    A closed object of a running instance is left out; one of an ended instance has its final values. The remains of a
    dead instance whose name runs again are shown, but do not count as trouble.
    """
    running = {item.name for item in snapshot.instances if item.health in (Health.LIVE, Health.STALE)}
    for owner, item in snapshot.of(scope):
        remains = owner.health is Health.DEAD and owner.name in running
        if not remains and (item.live or owner.health is not Health.LIVE):
            yield owner, item


def _balance(interval: _Joined, owner: InstanceState, item: ObjectState, cells: _Cells) -> Balance:
    stream, topic = item.labels["stream"], item.labels["topic"]
    sender = interval.sending(stream, topic)
    expected = cells.next_message
    trimmed = cells.trimmed
    sent = max(sender.next_message, expected) if sender else None
    return Balance(
        instance=owner.name,
        topic=topic,
        stream=stream,
        transmitter=sender.owner.name if sender else None,
        sent=sent,
        before_join=cells.messages_before_join,
        delivered=cells.messages_delivered - trimmed,
        recovered=cells.messages_recovered,
        trimmed=trimmed,
        lost=cells.messages_lost,
        in_flight=sent - expected if sent is not None else None,
        residual=expected
        - cells.messages_before_join
        - cells.messages_delivered
        - cells.fragments_joined
        - cells.messages_lost,
    )


def balance(snapshot: Snapshot, previous: Snapshot | None = None) -> list[Balance]:
    """Return the reconciliation of every receiver, by instance and topic.

    Args:
        snapshot: The current snapshot.
        previous: Snapshot with senders that are no longer in `snapshot`.
    """
    interval = _Joined(previous, snapshot)
    found = list(_of(snapshot, "receiver"))
    cells = _cells([item for _, item in found])
    books = [_balance(interval, owner, item, values) for (owner, item), values in zip(found, cells, strict=True)]
    return sorted(books, key=lambda book: (book.instance, book.topic, book.stream))


def receivers(previous: Snapshot | None, current: Snapshot, watcher: Watcher | None = None) -> list[ReceiverRow]:
    """Return every receiver, worst first; objects that `previous` lacks cover their whole life.

    Args:
        previous: Start of the interval for rates.
        current: The current snapshot.
        watcher: Holds earlier observations; each receiver is then judged by its last ten. None: by one observation.
    """
    interval = _Joined(previous, current)
    if watcher is not None:
        _watch_senders(watcher, current)
    rows = [_receiver(interval, receiver, watcher) for receiver in interval.receivers()]
    if watcher is not None:
        watcher.forget_but(interval.now.objects, {_sender_key(*sender): None for sender in current.of("transmitter")})
    return worst(rows)


def _sender_key(owner: InstanceState, item: ObjectState) -> tuple[int, str, str]:
    return owner.incarnation, item.labels["stream"], item.labels["topic"]


def _watch_senders(watcher: Watcher, current: Snapshot) -> None:
    for owner, item in current.of("transmitter"):
        if item.live:
            timeline = watcher.timeline(_sender_key(owner, item))
            timeline.add(current.time_ns, value_of(item, "next_message"), value_of(item, "bytes_sent"))


def _receiver(interval: _Joined, receiver: _Receiver, watcher: Watcher | None) -> ReceiverRow:
    owner, item, cells, seconds = (
        receiver.owner,
        receiver.item,
        receiver.cells,
        interval.length(receiver.owner, receiver.item, receiver.earlier),
    )
    books = _balance(interval, owner, item, cells)
    sender = interval.sending(books.stream, books.topic)
    reception = interval.reception(owner, books.stream)
    before = receiver.before
    delivered = _rise(cells.messages_delivered, before.messages_delivered)
    lost = _rise(cells.messages_lost, before.messages_lost)
    recovered = _rise(cells.messages_recovered, before.messages_recovered)
    lag = (books.in_flight or 0) + cells.queue_messages
    behind = _behind(watcher, books, cells, sender)
    limit = cells.queue_limit_bytes
    queue_fill = min(1.0, cells.queue_bytes / limit) if limit else 0.0
    evidence = Evidence(
        health=owner.health,
        health_reason=owner.reason,
        live=item.live,
        delivered=delivered,
        lost=lost,
        lag_messages=lag,
        lag_seconds=behind.seconds,
        lag_before=_lag_before(interval, receiver),
        queue_fill=queue_fill,
        queue_full=_rise(cells.queue_full, before.queue_full),
        missing_ratio=reception.missing_ratio,
        nak_share=reception.nak_share,
        forecast_ns=reception.forecast_ns,
    )
    if watcher is None:
        judgement = judge_receiver(evidence)
    else:
        look = Look(
            time_ns=interval.now.snapshot.time_ns,
            expected=cells.next_message,
            delivered=cells.messages_delivered,
            lost=cells.messages_lost,
            queue_full=cells.queue_full,
            gaps=reception.gaps,
            packets=reception.packets,
            lag=lag,
            queue_fill=queue_fill,
        )
        judgement = watcher.judge(receiver.place, look, evidence)
    latency = receiver.latency
    p50, p99, p999 = latency.percentiles if latency else (None, None, None)
    return ReceiverRow(
        instance=books.instance,
        topic=books.topic,
        stream=books.stream,
        transmitter=books.transmitter,
        sent=books.sent,
        before_join=books.before_join,
        delivered=books.delivered,
        recovered=books.recovered,
        trimmed=books.trimmed,
        lost=books.lost,
        in_flight=books.in_flight,
        residual=books.residual,
        endpoint=item.info.get("endpoint", ""),
        health=owner.health,
        behaviour=judgement.behaviour,
        badness=judgement.badness,
        reason=judgement.reason,
        looks=judgement.looks,
        since_ns=judgement.since_ns,
        seconds=seconds,
        sent_per_s=sender.per_s if sender else None,
        delivered_per_s=delivered / seconds,
        bytes_per_s=_rise(cells.bytes_delivered, before.bytes_delivered) / seconds,
        recovered_per_s=recovered / seconds,
        lost_per_s=lost / seconds,
        missing_ratio=reception.missing_ratio,
        naks_per_s=reception.naks_per_s,
        nak_ratio=reception.nak_ratio,
        nak_share=reception.nak_share,
        loss_place=reception.loss_place,
        forecast_ns=reception.forecast_ns,
        blame_ns=reception.blame_ns,
        outstanding_naks=reception.outstanding_naks,
        lag_messages=lag,
        lag_bytes=behind.size,
        lag_seconds=behind.seconds,
        lag_basis=behind.basis,
        queue_messages=cells.queue_messages,
        queue_bytes=cells.queue_bytes,
        queue_fill=queue_fill,
        p50_ns=p50,
        p99_ns=p99,
        p999_ns=p999,
        max_ns=latency.maximum if latency else None,
        late=_late(interval, receiver, sender, recovered),
        clocks=reception.clocks,
        round_trip_ns=reception.round_trip_ns,
    )


def _late(interval: _Joined, receiver: _Receiver, sender: _Sender | None, recovered: int) -> Verdict | None:
    """Return the cause of the latest messages of the interval, where the hosts' hiccups are known."""
    if receiver.latency is None or receiver.latency.count < LEAST_MESSAGES:
        return None
    ends = [receiver.owner] if sender is None else [receiver.owner, sender.owner]
    hiccups = [found for end in ends if (found := interval.hiccups(end)) is not None]
    return (
        blame(interval.histogram(receiver.owner, receiver.item, "total_latency"), hiccups, recovered)
        if hiccups
        else None
    )


def _reception(interval: Interval, owner: InstanceState, stream: str) -> _Reception:
    rx = interval.now.rx_streams.get((owner.incarnation, stream))
    packets = _packets(interval, owner, rx)
    tx_receiver = _tx_receiver(interval, owner, stream, rx)
    return _Reception(
        missing_ratio=min(1.0, interval.change(owner, rx, "packets_missed") / packets),
        naks_per_s=interval.rate(owner, rx, "naks_sent"),
        nak_ratio=interval.change(owner, rx, "naks_sent") / packets,
        nak_share=_nak_share(interval, stream, rx),
        loss_place=_loss_place(interval, owner, rx),
        clocks=clocks_of(rx, interval.now.snapshot.time_ns),
        round_trip_ns=interval.now.round_trips.get((stream, rx.info.get("feedback_address", ""))) if rx else None,
        gaps=value_of(rx, "packets_missed"),
        packets=max(value_of(rx, "packets_delivered"), value_of(rx, "window_lead")),
        outstanding_naks=value_of(rx, "outstanding_naks"),
        forecast_ns=_known(tx_receiver, "forecast"),
        blame_ns=_known(tx_receiver, "blame_time"),
    )


def _packets(interval: Interval, owner: InstanceState, rx: ObjectState | None) -> int:
    """Packets of the stream in the interval: delivered packets or, when some were held back, all known packets."""
    delivered = interval.change(owner, rx, "packets_delivered")
    old = interval.earlier(owner, rx)
    known = value_of(rx, "window_lead") - value_of(old, "window_lead") if old is not None else 0
    return max(delivered, known, 1)


@dataclass(frozen=True, slots=True)
class _Behind:
    """A lag in time and bytes; None: unknown."""

    seconds: float | None
    size: int | None
    basis: LagBasis


def _behind(watcher: Watcher | None, books: Balance, cells: _Cells, sender: _Sender | None) -> _Behind:
    """Return the age of the oldest message that the application does not have, and the bytes from it on.

    Messages in the receive queue are older than messages in flight. The send time of a message in flight is known from
    observations of the sender. Otherwise the lag is divided by the rate, which gives an estimate marked as such.
    """
    waiting, queued = cells.queue_messages, cells.queue_bytes
    in_flight = books.in_flight or 0
    if not waiting + in_flight:
        return _Behind(0.0, 0, LagBasis.MEASURED) if books.in_flight is not None else _Behind(None, 0, LagBasis.UNKNOWN)
    timeline = watcher.timeline(_sender_key(sender.owner, sender.item)) if watcher and sender else None
    way = timeline.behind(cells.next_message) if timeline is not None else None
    size: int | None = queued
    if in_flight:
        size = queued + (way.size if way else round((sender.mean_bytes if sender else 0.0) * in_flight))
    elif books.in_flight is None:
        size = None  # the messages in flight are unknown
    if waiting and cells.queue_age:
        return _Behind(cells.queue_age / 1e9, size, LagBasis.MEASURED)
    if way and not waiting:
        return _Behind(way.age_ns / 1e9, size, LagBasis.WATCHED if way.is_bounded else LagBasis.AT_LEAST)
    estimate = (waiting + in_flight) / sender.per_s if sender and sender.per_s else None
    return _Behind(estimate, size, LagBasis.ESTIMATED if estimate is not None else LagBasis.UNKNOWN)


def _known(item: ObjectState | None, cell: str) -> int | None:
    return item.values.get(cell) if item is not None else None


def _tx_receiver(interval: Interval, owner: InstanceState, stream: str, rx: ObjectState | None) -> ObjectState | None:
    """Return the receiver as its source tracks it."""
    address = rx.info.get("feedback_address", "") if rx else ""
    for tx_receiver in interval.now.live_tx_receivers.get((stream, address), ()):
        _, _, twin = tx_receiver.labels["receiver"].partition("#")
        if not twin or tx_receiver.info.get("name") == owner.name:
            return tx_receiver
    return None


def _lag_before(interval: _Joined, receiver: _Receiver) -> int | None:
    old = receiver.earlier
    if old is None:
        return None
    sent = interval.sent_before(old.labels["stream"], old.labels["topic"])
    ahead = sent - receiver.before.next_message if sent is not None else 0
    return max(0, ahead) + receiver.before.queue_messages


def _nak_share(interval: Interval, stream: str, rx: ObjectState | None) -> float | None:
    address = rx.info.get("feedback_address", "") if rx else ""
    own, total = interval.asked.get(stream, ({}, 0))
    return own.get(address, 0) / total if address and total else None


def _loss_place(interval: Interval, owner: InstanceState, rx: ObjectState | None) -> str | None:
    if rx is None:
        return None
    cells = [name for name in rx.values if name.startswith(_LOCATED)]
    located = {name.removeprefix(_LOCATED): interval.change(owner, rx, name) for name in cells}
    sender = interval.now.stream_senders.get(rx.labels["stream"])
    if sender is None or "packets_unsent" not in sender[1].values:
        return judge(located, None).place
    return judge(located, interval.change(*sender, "packets_unsent"), value_of(sender[1], "destinations")).place


def receiver_names(snapshot: Snapshot) -> Mapping[tuple[str, str], str]:
    """Return the name of the receiving instance by stream and address (the labels of a `tx_receiver` object)."""
    return {
        (item.labels["stream"], address): owner.name
        for owner, item in snapshot.of("rx_stream")
        if (address := item.info.get("feedback_address"))
    }


def worst_instances(rows: Iterable[ReceiverRow]) -> list[ReceiverRow]:
    """Return the worst row of each receiving instance, worst first."""
    worst: dict[str, ReceiverRow] = {}
    for row in rows:
        if row.instance not in worst or row.badness > worst[row.instance].badness:
            worst[row.instance] = row
    return sorted(worst.values(), key=lambda row: (-row.badness, row.instance))


def transmitters(previous: Snapshot | None, current: Snapshot) -> list[TransmitterRow]:
    """Return every sent topic, by instance and topic."""
    interval = Interval(previous, current)
    listening: dict[tuple[str, str], int] = {}
    for _, item in current.of("receiver"):
        if item.live:
            place = (item.labels["stream"], item.labels["topic"])
            listening[place] = listening.get(place, 0) + 1
    rows = []
    for owner, item in _of(current, "transmitter"):
        stream, topic = item.labels["stream"], item.labels["topic"]
        tx = interval.now.tx_streams.get((owner.incarnation, stream))
        batch = interval.histogram(owner, item, "batch_latency")
        p50, p99 = percentiles(batch, (0.5, 0.99)) if batch else (None, None)
        repairs = interval.change(owner, tx, "repair_packets")
        rows.append(
            TransmitterRow(
                instance=owner.name,
                topic=topic,
                stream=stream,
                endpoint=item.info.get("endpoint", ""),
                health=owner.health,
                messages_sent=value_of(item, "messages_sent"),
                next_message=value_of(item, "next_message"),
                sent_per_s=interval.rate(owner, item, "messages_sent"),
                bytes_per_s=interval.rate(owner, item, "bytes_sent"),
                packets_per_s=interval.rate(owner, item, "packets_sent"),
                queue_bytes=value_of(item, "queue_bytes"),
                receivers=listening.get((stream, topic), 0),
                naks_per_s=interval.rate(owner, tx, "naks_received"),
                repairs_per_s=interval.rate(owner, tx, "repair_packets"),
                repair_ratio=repairs / max(1, interval.change(owner, tx, "packets_sent")),
                history_packets=value_of(tx, "history_packets"),
                tracked_receivers=value_of(tx, "receivers"),
                batch_p50_ns=p50,
                batch_p99_ns=p99,
            )
        )
    return sorted(rows, key=lambda row: (row.instance, row.topic, row.stream))


def instances(previous: Snapshot | None, current: Snapshot) -> list[InstanceRow]:
    """Return every instance, by name."""
    interval = Interval(previous, current)
    rows = []
    for owner in current.instances:
        item = next(owner.of("instance"), None)
        info = item.info if item else {}
        invalid = sum(v for cell, v in item.values.items() if cell.startswith("invalid_packets_")) if item else 0

        def rate(cell: str, owner: InstanceState = owner, item: ObjectState | None = item) -> float:
            return interval.rate(owner, item, cell)

        rows.append(
            InstanceRow(
                name=owner.name,
                health=owner.health,
                reason=owner.reason,
                pid=owner.pid,
                host=info.get("host", ""),
                version=info.get("version", ""),
                uptime_s=max(0.0, (current.time_ns - owner.started_ns) / 1e9) if owner.started_ns else 0.0,
                sent_per_s=rate("messages_sent"),
                received_per_s=rate("messages_received"),
                bytes_sent_per_s=rate("bytes_sent"),
                bytes_received_per_s=rate("bytes_received"),
                packets_sent_per_s=rate("packets_sent"),
                packets_received_per_s=rate("packets_received"),
                naks_sent_per_s=rate("naks_sent"),
                naks_received_per_s=rate("naks_received"),
                invalid_packets=invalid,
                socket_drops=value_of(item, "socket_drops"),
                memory_bytes=value_of(item, "memory_used"),
            )
        )
    return sorted(rows, key=lambda row: (row.name, row.pid))
