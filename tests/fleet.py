"""A small fleet on paper: one feed, two healthy receivers, a slow and a lossy one, at two moments.

One of the healthy ones keeps a store, and the other one has a durable subscription there.

`sample_fleet(folder, moment=0)` writes five segments; `moment=1` changes them to what they would hold one second later.
The numbers are consistent: every receiver's books balance at both moments (sent = before join + delivered + lost +
in flight), packets add up, and the feed's peers agree with what the receivers say they asked for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from tests.segments import SegmentEvent, SegmentObject, Written, write_segment

__all__ = ["RECEIVERS", "STREAM", "TOPICS", "sample_fleet"]

STREAM = "0a1b2c3d4e5f.30001"
ENDPOINT = "rmm://239.192.7.7:7500?interface=127.0.0.1"
TOPICS: Mapping[str, int] = {"PRICES.A": 4000, "PRICES.B": 3000, "PRICES.C": 2000, "PRICES.D": 1000}
"""Messages per second of each topic."""
RECEIVERS = ("alpha", "bravo", "slow", "lossy")

MESSAGE_BYTES = 200
PACKETS_PER_SECOND = 2000
PACKET_BYTES = 1200
SECONDS_BEFORE = 10
BEFORE_JOIN = 100
FOLLOWED = "PRICES.A"
SUBSCRIPTION_LAG = 250
"""Topic of the durable subscription, and its messages behind the source."""
QUEUE_BYTES = 262_144
INCARNATION = 0xFEED_0000

# Per second: packets first seen missing, and sequences asked for.
_GAPS = {"alpha": 0, "bravo": 1, "slow": 6, "lossy": 42}
_NAKS = {"alpha": 0, "bravo": 1, "slow": 6, "lossy": 47}
_SLOW_SHARE = 0.6
_SLOW_LOST = 20  # messages per topic, lost within the second between the moments
_TRIMMED = 30  # messages per topic, of those the slow one's engine delivered
_PORTS = {"alpha": 41001, "bravo": 41002, "slow": 41003, "lossy": 41004}

# As their source sees them: class, what is done to it, and shares in millionths.
_STATES = {"alpha": 1, "bravo": 1, "slow": 2, "lossy": 1}
_ACTIONS = {"alpha": 0, "bravo": 0, "slow": 5, "lossy": 0}
_LOSSES = {"alpha": 0, "bravo": 500, "slow": 3_000, "lossy": 21_000}
_LAGS = {"alpha": 3, "bravo": 3, "slow": 1_500, "lossy": 12}
_BADNESS = {"alpha": 1_000, "bravo": 2_000, "slow": 10_400_000, "lossy": 90_000}
_FILLS = {"alpha": 10_000, "bravo": 10_000, "slow": 1_000_000, "lossy": 20_000}
_ROUND_TRIP = 180_000
_FORECAST = 42_000_000_000
RATE, RATE_DECIDED = 4_000_000, 3_600_000
"""Bytes per second that the feed's stream is held to, and that its policy has decided on."""

_LATENCY = {"alpha": 18_000, "bravo": 19_000, "slow": 240_000, "lossy": 21_000}
"""Median latency, ns."""


def _latency(median: int, count: int, tail: float = 30.0) -> dict[int, int]:
    """A plain skewed shape: half below the median, 1 % above 4 medians, a few at `tail` medians; `count` values."""
    shares = ((0.7, 0.2), (0.95, 0.3), (1.1, 0.3), (1.6, 0.15), (2.5, 0.039), (5.0, 0.01))
    shape = {int(median * factor): int(count * share) for factor, share in shares}
    rest = count - sum(shape.values())
    return {**shape, int(median * tail): rest}


def _feed(seconds: int, now_ns: int) -> list[SegmentObject]:
    packets = PACKETS_PER_SECOND * seconds
    naks = {name: count * seconds for name, count in _NAKS.items()}
    asked = sum(naks.values())
    sent = sum(TOPICS.values()) * seconds
    info = {"endpoint": ENDPOINT, "address": "127.0.0.1:30001"}
    objects = [
        SegmentObject(
            "instance",
            {"instance": "feed"},
            {"version": "0.1.0", "host": "localhost", "pid": str(os.getpid()), "mode": "thread"},
            {
                "messages_sent": sent,
                "bytes_sent": sent * MESSAGE_BYTES,
                "packets_sent": packets + asked + 2 * seconds,
                "packets_received": asked,
                "naks_received": asked,
                "nak_packets_received": asked,
                "repair_packets": asked,
                "memory_used": 24_000_000,
                "memory_limit": 100_000_000,
                "tx_streams": 1,
                "transmitters": len(TOPICS),
                "events_emitted": 2,
            },
        ),
        SegmentObject(
            "tx_stream",
            {"instance": "feed", "stream": STREAM},
            info,
            {
                "packets_sent": packets,
                "bytes_sent": packets * PACKET_BYTES,
                "repair_packets": asked,
                "repair_bytes": asked * PACKET_BYTES,
                "nak_packets_received": asked,
                "naks_received": asked,
                "naks_answered_repaired": asked,
                "heartbeats_sent": 2 * seconds,
                "history_packets": 16384,
                "history_trimmed_packets": packets - 16384,
                "history_bytes": 16384 * PACKET_BYTES,
                "window_lead": packets - 1,
                "window_trail": packets - 16384,
                "receivers": 4,
                "rate_limit": RATE,
                "rate_decided": RATE_DECIDED,
                "rate_loss": 21_000,
                "rate_state": 1,
                "rate_limited_time": 300_000_000 * seconds,
                "receivers_in_trouble": 1,
                "receivers_isolated": 1,
                "quorum_required": 1,
                "quorum_present": 1,
                "unstable_messages": 400,
                "unstable_bytes": 80 * PACKET_BYTES,
                "unstable_limit_messages": 50_000,
                "unstable_limit_bytes": 16 << 20,
            },
            {"stability_latency": _latency(9_500_000, sent, 8.0)},
        ),
    ]
    for topic, rate in TOPICS.items():
        objects.append(
            SegmentObject(
                "transmitter",
                {"instance": "feed", "topic": topic, "stream": STREAM},
                {"endpoint": ENDPOINT},
                {
                    "messages_sent": rate * seconds,
                    "messages_accepted": rate * seconds,
                    "bytes_sent": rate * seconds * MESSAGE_BYTES,
                    "packets_sent": rate * seconds // 5,
                    "next_message": rate * seconds,
                    "queue_bytes": 0,
                    "queue_limit_bytes": 4 << 20,
                },
                {"batch_latency": _latency(3_000, rate * seconds // 5)},
            )
        )
    for name, count in naks.items():
        objects.append(
            SegmentObject(
                "tx_receiver",
                {"instance": "feed", "stream": STREAM, "receiver": f"127.0.0.1:{_PORTS[name]}"},
                {"name": name, "receiver_id": f"{_PORTS[name]:016x}"},
                {
                    "nak_packets_received": count,
                    "naks_received": count,
                    "repairs_caused": count,
                    "repair_bytes_caused": count * PACKET_BYTES,
                    "last_feedback": now_ns,
                    "reports_received": 10 * seconds,
                    "state": _STATES[name],
                    "action": _ACTIONS[name],
                    "loss": _LOSSES[name],
                    "lag": _LAGS[name],
                    "lag_bytes": _LAGS[name] * PACKET_BYTES,
                    "lag_time": _LAGS[name] * 1_000_000_000 // PACKETS_PER_SECOND,
                    "blame_time": 700_000_000 * seconds if name == "slow" else 0,
                    "badness": _BADNESS[name],
                    "buffer_fill": _FILLS[name],
                    "round_trip": _ROUND_TRIP,
                    "forecast": _FORECAST if name == "slow" else 0,
                    "forecast_state": 2 if name == "slow" else 1,
                    "state_since": now_ns - 3_500_000_000 if name == "slow" else 0,
                    "slow_since": now_ns - 2_500_000_000 if name == "slow" else 0,
                    "suspensions": 1 if name == "slow" else 0,
                },
            )
        )
    until = now_ns + 30_000_000_000
    rule = {"level": 3, "until": until, "objects": len(TOPICS)}
    objects.append(SegmentObject("detail", {"instance": "feed", "selector": "topic=PRICES.*"}, {}, rule))
    warned = {"occurrences": 1, "first": now_ns - 2_000_000_000, "last": now_ns - 2_000_000_000}
    labels = {"instance": "feed", "event": "receiver_slow"}
    objects.append(SegmentObject("incident", labels, {"severity": "warning"}, warned))
    return objects


def _receiving(name: str, seconds: int, now_ns: int) -> list[SegmentObject]:
    slow = name == "slow"
    later = seconds - SECONDS_BEFORE
    packets = PACKETS_PER_SECOND * seconds
    gaps, naks = _GAPS[name] * seconds, _NAKS[name] * seconds
    receivers = []
    delivered_in_all = 0
    for topic, rate in TOPICS.items():
        sent = rate * seconds
        lost = _SLOW_LOST * later if slow else 0
        behind = int(rate * (1 - _SLOW_SHARE) * (1 + later)) if slow else 3
        expected = sent - behind
        delivered = expected - BEFORE_JOIN - lost
        delivered_in_all += delivered
        queue = QUEUE_BYTES if slow else 4 * MESSAGE_BYTES
        receivers.append(
            SegmentObject(
                "receiver",
                {"instance": name, "topic": topic, "stream": STREAM},
                {"endpoint": ENDPOINT},
                {
                    "messages_delivered": delivered,
                    "messages_taken": delivered - queue // MESSAGE_BYTES - (_TRIMMED if slow else 0),
                    "bytes_delivered": delivered * MESSAGE_BYTES,
                    "messages_recovered": delivered * _GAPS[name] // PACKETS_PER_SECOND,
                    "messages_lost": lost,
                    "messages_trimmed_age": _TRIMMED if slow else 0,
                    "messages_before_join": BEFORE_JOIN,
                    "next_message": expected,
                    "queue_messages": queue // MESSAGE_BYTES,
                    "queue_bytes": queue,
                    "queue_peak_bytes": max(queue, 64 * MESSAGE_BYTES),
                    "queue_limit_bytes": QUEUE_BYTES,
                    "queue_full": 5 * seconds if slow else 0,
                },
                {
                    "total_latency": _latency(_LATENCY[name], delivered, 200.0 if name == "lossy" else 30.0),
                    "order_latency": _latency(900, packets // len(TOPICS)),
                },
            )
        )
    lost_packets = _SLOW_LOST * later // 5 * len(TOPICS) if slow else 0
    held = 3 if name == "lossy" else 0
    stream = SegmentObject(
        "rx_stream",
        {"instance": name, "stream": STREAM},
        {"endpoint": ENDPOINT, "source": "127.0.0.1:30001", "feedback_address": f"127.0.0.1:{_PORTS[name]}"},
        {
            "packets_received": packets - lost_packets + held,
            "bytes_received": packets * PACKET_BYTES,
            "packets_delivered": packets - lost_packets,
            "packets_recovered": gaps - lost_packets,
            "packets_lost_window_advanced": lost_packets,
            "packets_missed": gaps,
            "losses_located_outside": gaps,
            "nak_packets_sent": naks,
            "naks_sent": naks,
            "naks_retried": naks - gaps,
            "nak_confirmations_received": naks,
            "heartbeats_received": 2 * seconds,
            "outstanding_naks": 2 if name == "lossy" else 0,
            "held_packets": held,
            "window_trail": packets,
            "window_lead": packets - 1,
            "last_activity": now_ns,
            "clock_source": 1,
        },
        {"recovery_time": _latency(400_000, gaps - lost_packets)},
    )
    instance = SegmentObject(
        "instance",
        {"instance": name},
        {"version": "0.1.0", "host": "localhost", "pid": str(os.getpid()), "mode": "thread"},
        {
            "messages_received": delivered_in_all,
            "bytes_received": delivered_in_all * MESSAGE_BYTES,
            "packets_received": packets + 2 * seconds,
            "packets_sent": naks,
            "naks_sent": naks,
            "nak_packets_sent": naks,
            "memory_used": 42_000_000,
            "rx_streams": 1,
            "receivers": len(TOPICS),
            "events_emitted": 2,
        },
    )
    losses = []
    if slow:
        losses.append(
            SegmentObject(
                "loss",
                {"instance": name, "stream": STREAM, "cause": "window_advanced"},
                {"source": "127.0.0.1:30001", "endpoint": ENDPOINT},
                {
                    "observations": seconds,
                    "packets": 3 * seconds,
                    "bytes_estimated": 3 * seconds * PACKET_BYTES,
                    "longest": 7,
                    "first_lost": now_ns - 600_000_000_000,
                    "last_lost": now_ns - 2_000_000_000,
                    "first_sequence": 1_000,
                    "last_sequence": 9_000,
                },
            )
        )
    return [instance, stream, *receivers, *losses]


def _keeping(name: str, seconds: int, now_ns: int) -> list[SegmentObject]:
    """A store that keeps the stream, and a durable subscription."""
    kept = sum(TOPICS.values()) * seconds
    return [
        SegmentObject(
            "store",
            {"instance": name},
            {"directory": "/var/lib/heliograph/store", "fsync": "batch"},
            {
                "streams": 1,
                "segments": 1 + seconds // 10,
                "segment_bytes": kept * (MESSAGE_BYTES + 40),
                "disk_bytes": 1 << 34,
                "disk_free_bytes": (1 << 33) - kept * (MESSAGE_BYTES + 40),
                "writes": 100 * seconds,
                "bytes_written": kept * (MESSAGE_BYTES + 40),
                "syncs": 100 * seconds,
            },
            {"write_time": _latency(20_000, 100 * seconds), "sync_time": _latency(400_000, 100 * seconds)},
        ),
        SegmentObject(
            "store_stream",
            {"instance": name, "stream": STREAM},
            {},
            {
                "messages_received": kept + 7,
                "messages_kept": kept,
                "messages_repeated": 7,
                "bytes_kept": kept * MESSAGE_BYTES,
                "first_position": 1,
                "last_position": kept,
                "written_position": kept - 20,
                "durable_position": kept - 20,
            },
            {"durable_latency": _latency(9_000_000, kept)},
        ),
        SegmentObject(
            "store_subscription",
            {"instance": name, "topic": FOLLOWED, "stream": STREAM, "subscription": "desk-1"},
            {},
            {
                "next_message": TOPICS[FOLLOWED] * seconds - SUBSCRIPTION_LAG,
                "messages_waiting": SUBSCRIPTION_LAG - 20,
                "last_saved": now_ns - 100_000_000,
            },
        ),
    ]


def _following(name: str, seconds: int) -> SegmentObject:
    """The durable subscription of a receiver that has joined from the store and was live then."""
    due = TOPICS[FOLLOWED] * seconds - SUBSCRIPTION_LAG
    return SegmentObject(
        "follower",
        {"instance": name, "topic": FOLLOWED, "stream": STREAM, "subscription": "desk-1"},
        {},
        {
            "messages_covered": due,
            "messages_live": due - BEFORE_JOIN - 6,
            "messages_stored_join": BEFORE_JOIN,
            "messages_stored_loss": 6,
            "messages_repeated": 4,
            "next_message": due,
        },
    )


def sample_fleet(folder: Path, moment: int = 0, now_ns: int | None = None) -> dict[str, Written]:
    """Write the fleet as it is at a moment; by instance name.

    Args:
        folder: The segment folder.
        moment: 0, or 1 for one second later.
        now_ns: Wall clock of moment 0, for tests with a clock of their own; default: the real one. With an explicit
            clock, pass the same value at both moments: moment 1 adds the second itself.
    """
    base = time.time_ns() - moment * 1_000_000_000 if now_ns is None else now_ns
    now = base + moment * 1_000_000_000
    seconds = SECONDS_BEFORE + moment
    fleet = {"feed": _feed(seconds, now)} | {name: _receiving(name, seconds, now) for name in RECEIVERS}
    fleet["bravo"] += _keeping("bravo", seconds, now)
    fleet["alpha"].append(_following("alpha", seconds))
    written = {}
    for number, (name, objects) in enumerate(fleet.items()):
        events = [SegmentEvent("instance_started", f"{name} started", (os.getpid(),), time_ns=base - 10_000_000_000)]
        if name != "feed":
            events.append(SegmentEvent("stream_opened", f"met {STREAM}", (0,), slot=1, time_ns=base - 9_000_000_000))
        if name == "slow" and moment:
            text = "the receive queue of PRICES.A is full"
            events.append(SegmentEvent("receive_queue_full", text, (QUEUE_BYTES,), slot=2, time_ns=now))
        written[name] = write_segment(
            folder / f"{name}.{os.getpid()}.helio",
            name=name,
            objects=objects,
            events=events,
            incarnation=INCARNATION + number,
            started_ns=base - 10_000_000_000,
            heartbeat_ns=now,
        )
    return written
