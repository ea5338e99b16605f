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

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from heliograph.monitor.groups import groups_of
from heliograph.monitor.joined import Cells, Receivers
from heliograph.monitor.joining import Interval, relevant, value_of
from heliograph.monitor.latency import percentiles
from heliograph.monitor.model import InstanceState, ObjectState, Snapshot
from heliograph.monitor.records import receiver_cells
from heliograph.monitor.rows import Balance, InstanceRow, ReceiverRow, TransmitterRow
from heliograph.monitor.window import Watcher

__all__ = [
    "Balance",
    "InstanceRow",
    "ReceiverRow",
    "Receivers",
    "TransmitterRow",
    "balance",
    "instances",
    "receiver_names",
    "receivers",
    "transmitters",
    "worst_instances",
]


def _balance(interval: Interval, owner: InstanceState, item: ObjectState, cells: Cells) -> Balance:
    stream, topic = item.labels["stream"], item.labels["topic"]
    sender = interval.sender(stream, topic)
    expected = cells.next_message
    sent = max(value_of(sender[1], "next_message"), expected) if sender else None
    return Balance(
        instance=owner.name,
        topic=topic,
        stream=stream,
        transmitter=sender[0].name if sender else None,
        sent=sent,
        before_join=cells.messages_before_join,
        delivered=cells.messages_delivered - cells.trimmed,
        recovered=cells.messages_recovered,
        trimmed=cells.trimmed,
        lost=cells.messages_lost,
        in_flight=sent - expected if sent is not None else None,
        residual=cells.residual,
    )


def balance(snapshot: Snapshot, previous: Snapshot | None = None) -> list[Balance]:
    """Return the reconciliation of every receiver, by instance and topic.

    Args:
        snapshot: The current snapshot.
        previous: Snapshot with senders that are no longer in `snapshot`.
    """
    interval = Interval(previous, snapshot)
    found = list(relevant(snapshot, "receiver"))
    cells = [Cells(*row) for row in receiver_cells([item.values for _, item in found]).tolist()]
    books = [_balance(interval, owner, item, values) for (owner, item), values in zip(found, cells, strict=True)]
    return sorted(books, key=lambda book: (book.instance, book.topic, book.stream))


def receivers(previous: Snapshot | None, current: Snapshot, watcher: Watcher | None = None) -> Receivers:
    """Return every receiver, worst first; objects that `previous` lacks cover their whole life.

    Args:
        previous: Start of the interval for rates.
        current: The current snapshot.
        watcher: Holds earlier observations; each receiver is then judged by its last ten. None: by one observation.
    """
    return Receivers.of(previous, current, watcher)


def receiver_names(snapshot: Snapshot) -> Mapping[tuple[str, str], str]:
    """Return the name of the receiving instance by stream and address (the labels of a `tx_receiver` object)."""
    return {
        (item.labels["stream"], address): owner.name
        for owner, item in snapshot.of("rx_stream")
        if (address := item.info.get("feedback_address"))
    }


def worst_instances(rows: Iterable[ReceiverRow]) -> list[ReceiverRow]:
    """Return the worst row of each receiving instance, worst first."""
    return list(groups_of(rows if isinstance(rows, Sequence) else list(rows), "instance").worst_rows())


def transmitters(previous: Snapshot | None, current: Snapshot, joined: Receivers | None = None) -> list[TransmitterRow]:
    """Return every sent topic, by instance and topic.

    Args:
        previous: Start of the interval for rates.
        current: The current snapshot.
        joined: The receivers of `current`, where they have been joined; None: they are counted here.
    """
    interval = Interval(previous, current)
    listening: Mapping[tuple[str, ...], int]
    if joined is not None:
        names, index = joined.topics
        counts = np.bincount(index, joined.vector("is_live"), minlength=len(names))
        listening = {(stream, topic): int(count) for (topic, stream), count in zip(names, counts, strict=True)}
    else:
        receiving = (item.labels for _, item in current.of("receiver") if item.live)
        listening = Counter((labels["stream"], labels["topic"]) for labels in receiving)
    rows = []
    for owner, item in relevant(current, "transmitter"):
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
