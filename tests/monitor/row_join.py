"""The join of receivers row by row: the reference for the join by columns of `fleet.receivers`."""

from __future__ import annotations

from dataclasses import fields

from heliograph.monitor.behaviour import Evidence
from heliograph.monitor.blame import LEAST_MESSAGES, Verdict, blame
from heliograph.monitor.clocks import clocks_of
from heliograph.monitor.joined import sender_key, watch_senders
from heliograph.monitor.joining import Interval, relevant, value_of
from heliograph.monitor.latency import maximum, percentiles
from heliograph.monitor.model import Histogram, InstanceState, ObjectState, Snapshot
from heliograph.monitor.reception import _known, _loss_place, _nak_share, _packets, _tx_receiver
from heliograph.monitor.rows import Balance, LagBasis, ReceiverRow
from heliograph.monitor.timeline import Behind
from heliograph.monitor.window import Look
from heliograph.monitor.worst import worst
from tests.monitor.row_judge import RowWatcher, behind_by_row, judge_by_row

__all__ = ["receivers_by_row"]

_BOOKS = tuple(field.name for field in fields(Balance))
_TRIMMED = tuple(f"messages_trimmed_{cause}" for cause in ("count", "bytes", "age", "conflated", "priority"))


def receivers_by_row(previous: Snapshot | None, current: Snapshot, watcher: RowWatcher | None) -> list[ReceiverRow]:
    """Return every receiver, worst first."""
    interval = Interval(previous, current)
    if watcher is not None:
        watch_senders(watcher, current.time_ns, current.of("transmitter"))
    rows = [_receiver(interval, owner, item, watcher) for owner, item in relevant(current, "receiver")]
    if watcher is not None:
        watcher.forget_but(interval.now.objects, {sender_key(*sender): None for sender in current.of("transmitter")})
    return worst(rows)


def _balance(interval: Interval, owner: InstanceState, item: ObjectState) -> Balance:
    stream, topic = item.labels["stream"], item.labels["topic"]
    sender = interval.sender(stream, topic)
    expected = value_of(item, "next_message")
    delivered, lost = value_of(item, "messages_delivered"), value_of(item, "messages_lost")
    trimmed = sum(value_of(item, cell) for cell in _TRIMMED)
    before_join = value_of(item, "messages_before_join")
    sent = max(value_of(sender[1], "next_message"), expected) if sender else None
    return Balance(
        instance=owner.name,
        topic=topic,
        stream=stream,
        transmitter=sender[0].name if sender else None,
        sent=sent,
        before_join=before_join,
        delivered=delivered - trimmed,
        recovered=value_of(item, "messages_recovered"),
        trimmed=trimmed,
        lost=lost,
        in_flight=sent - expected if sent is not None else None,
        residual=expected - before_join - delivered - value_of(item, "fragments_joined") - lost,
    )


def _receiver(interval: Interval, owner: InstanceState, item: ObjectState, watcher: RowWatcher | None) -> ReceiverRow:
    books = _balance(interval, owner, item)
    sender = interval.sender(books.stream, books.topic)
    rx = interval.now.rx_streams.get((owner.incarnation, books.stream))
    tx_receiver = _tx_receiver(interval, owner, books.stream, rx)
    packets = _packets(interval, owner, rx)
    missing_ratio = min(1.0, interval.change(owner, rx, "packets_missed") / packets)
    nak_share = _nak_share(interval, books.stream, rx)
    address = rx.info.get("feedback_address", "") if rx else ""
    seconds = interval.seconds(owner, item)
    sent_per_s = interval.rate(*sender, "next_message") if sender else None
    lag = _lag(books, item)
    seconds_behind, size, basis = _behind(interval, watcher, books, item, sent_per_s)
    limit = value_of(item, "queue_limit_bytes")
    queue_fill = min(1.0, value_of(item, "queue_bytes") / limit) if limit else 0.0
    evidence = Evidence(
        health=owner.health,
        health_reason=owner.reason,
        live=item.live,
        delivered=interval.change(owner, item, "messages_delivered"),
        lost=interval.change(owner, item, "messages_lost"),
        lag_messages=lag,
        lag_seconds=seconds_behind,
        lag_before=_lag_before(interval, owner, item),
        queue_fill=queue_fill,
        queue_full=interval.change(owner, item, "queue_full"),
        missing_ratio=missing_ratio,
        nak_share=nak_share,
        forecast_ns=_known(tx_receiver, "forecast"),
    )
    judgement = judge_by_row(evidence)
    if watcher is not None:
        look = Look(
            time_ns=interval.now.snapshot.time_ns,
            expected=value_of(item, "next_message"),
            delivered=value_of(item, "messages_delivered"),
            lost=value_of(item, "messages_lost"),
            queue_full=value_of(item, "queue_full"),
            gaps=value_of(rx, "packets_missed"),
            packets=max(value_of(rx, "packets_delivered"), value_of(rx, "window_lead")),
            lag=lag,
            queue_fill=queue_fill,
        )
        judgement = watcher.judge((owner.incarnation, item.key), look, evidence)
    latency = interval.histogram(owner, item, "total_latency")
    p50, p99, p999 = percentiles(latency, (0.5, 0.99, 0.999)) if latency else (None, None, None)
    return ReceiverRow(
        **{name: getattr(books, name) for name in _BOOKS},
        endpoint=item.info.get("endpoint", ""),
        health=owner.health,
        behaviour=judgement.behaviour,
        badness=judgement.badness,
        reason=judgement.reason,
        looks=judgement.looks,
        since_ns=judgement.since_ns,
        seconds=seconds,
        sent_per_s=sent_per_s,
        delivered_per_s=interval.rate(owner, item, "messages_delivered"),
        bytes_per_s=interval.rate(owner, item, "bytes_delivered"),
        recovered_per_s=interval.rate(owner, item, "messages_recovered"),
        lost_per_s=interval.rate(owner, item, "messages_lost"),
        missing_ratio=missing_ratio,
        naks_per_s=interval.rate(owner, rx, "naks_sent"),
        nak_ratio=interval.change(owner, rx, "naks_sent") / packets,
        nak_share=nak_share,
        loss_place=_loss_place(interval, owner, rx),
        forecast_ns=_known(tx_receiver, "forecast"),
        blame_ns=_known(tx_receiver, "blame_time"),
        outstanding_naks=value_of(rx, "outstanding_naks"),
        lag_messages=lag,
        lag_bytes=size,
        lag_seconds=seconds_behind,
        lag_basis=basis,
        queue_messages=value_of(item, "queue_messages"),
        queue_bytes=value_of(item, "queue_bytes"),
        queue_fill=queue_fill,
        p50_ns=p50,
        p99_ns=p99,
        p999_ns=p999,
        max_ns=maximum(latency) if latency else None,
        late=_late(interval, owner, item, sender, latency),
        clocks=clocks_of(rx, interval.now.snapshot.time_ns),
        round_trip_ns=interval.now.round_trips.get((books.stream, address)) if rx else None,
    )


def _late(
    interval: Interval,
    owner: InstanceState,
    item: ObjectState,
    sender: tuple[InstanceState, ObjectState] | None,
    latency: Histogram | None,
) -> Verdict | None:
    """Return the cause of the latest messages of the interval, where the hosts' hiccups are known."""
    if latency is None or latency.count < LEAST_MESSAGES:
        return None
    ends = [owner] if sender is None else [owner, sender[0]]
    hiccups = [found for end in ends if (found := interval.hiccups(end)) is not None]
    return blame(latency, hiccups, interval.change(owner, item, "messages_recovered")) if hiccups else None


def _lag(books: Balance, item: ObjectState) -> int:
    return (books.in_flight or 0) + value_of(item, "queue_messages")


def _behind(
    interval: Interval, watcher: RowWatcher | None, books: Balance, item: ObjectState, sent_per_s: float | None
) -> tuple[float | None, int | None, LagBasis]:
    """Return the age of the oldest message that the application does not have, and the bytes from it on.

    Messages in the receive queue are older than messages in flight. The send time of a message in flight is known from
    observations of the sender. Otherwise the lag is divided by the rate, which gives an estimate marked as such.
    """
    waiting, queued = value_of(item, "queue_messages"), value_of(item, "queue_bytes")
    in_flight = books.in_flight or 0
    if not waiting + in_flight:
        return (0.0, 0, LagBasis.MEASURED) if books.in_flight is not None else (None, 0, LagBasis.UNKNOWN)
    sender = interval.sender(books.stream, books.topic)
    way = _way(watcher, sender, value_of(item, "next_message"))
    size: int | None = queued
    if in_flight:
        mean = value_of(sender[1], "bytes_sent") / max(1, value_of(sender[1], "messages_sent")) if sender else 0.0
        size = queued + (way.size if way else round(mean * in_flight))
    elif books.in_flight is None:
        size = None  # the messages in flight are unknown
    age_ns = _known(item, "queue_age") if waiting else None
    if age_ns:
        return (age_ns / 1e9, size, LagBasis.MEASURED)
    if way and not waiting:
        return (way.age_ns / 1e9, size, LagBasis.WATCHED if way.is_bounded else LagBasis.AT_LEAST)
    estimate = (waiting + in_flight) / sent_per_s if sent_per_s else None
    return (estimate, size, LagBasis.ESTIMATED if estimate is not None else LagBasis.UNKNOWN)


def _way(watcher: RowWatcher | None, sender: tuple[InstanceState, ObjectState] | None, message: int) -> Behind | None:
    return behind_by_row(watcher.timeline(sender_key(*sender)), message) if watcher and sender else None


def _lag_before(interval: Interval, owner: InstanceState, item: ObjectState) -> int | None:
    old = interval.earlier(owner, item)
    if old is None or interval.before is None:
        return None
    sender = interval.at_its_start.sender(old.labels["stream"], old.labels["topic"])
    ahead = value_of(sender[1], "next_message") - value_of(old, "next_message") if sender else 0
    return max(0, ahead) + value_of(old, "queue_messages")
