"""The data of each sent stream for one interval: packets, repairs, history, the rate and all that limits it.

Pure functions from two snapshots. Rates are per second, shares 0 to 1. A stream whose sender is out of reach is absent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from heliograph.monitor.faults import fills_of
from heliograph.monitor.joining import Interval, value_of
from heliograph.monitor.model import InstanceState, ObjectState, Snapshot
from heliograph.monitor.sources import ReceiverOfStream
from heliograph.monitor.waiting import WAITS, waits

__all__ = ["DECISIONS", "WAITS", "Sending", "sending"]

MOST_REPORTED = 40
"""Receivers of a stream, worst first, whose reported positions are kept."""
DECISIONS: Mapping[str, str] = {
    "rate_decreases": "rate lowered",
    "rate_increases": "rate raised",
    "pgmcc_cuts": "window of PGMCC halved",
    "congestions": "stream congested",
    "storms": "NAK storm detected",
    "cutoffs": "all requests cut off",
    "slow_decisions_pace": "paced to a slow receiver, decided",
    "slow_actions_pace": "paced to a slow receiver, executed or advised",
    "slow_decisions_shed": "repairs shed, decided",
    "slow_actions_shed": "repairs shed, executed or advised",
    "slow_decisions_suspend_naks": "NAKs suspended, decided",
    "slow_actions_suspend_naks": "NAKs suspended, executed or advised",
    "slow_decisions_suspend": "receiver suspended, decided",
    "slow_actions_suspend": "receiver suspended, executed or advised",
    "slow_decisions_expel": "receiver expelled, decided",
    "slow_actions_expel": "receiver expelled, executed or advised",
    "control_intervals": "control intervals, each a decision",
}
"""Statistics of a stream that count decisions, and their descriptions."""


@dataclass(frozen=True, slots=True)
class Sending:
    """One sent stream in one interval."""

    instance: str
    """Name of the sending instance."""
    newest: int = 0
    """Newest packet sent."""
    oldest: int = 0
    """Oldest packet in the history."""
    packets: float = 0.0
    """Original data packets per second."""
    data: float = 0.0
    """Bytes of these packets per second."""
    repairs: float = 0.0
    """Repair packets per second."""
    repair_data: float = 0.0
    """Bytes of the repair packets per second."""
    naks: float = 0.0
    """Sequence numbers requested per second."""
    topics: Mapping[str, float] = field(default_factory=dict)
    """Packets per second by topic."""
    fills: Mapping[str, float] = field(default_factory=dict)
    """Fill of the submit queue by topic, 0 to 1."""
    reported: Mapping[str, int] = field(default_factory=dict)
    """Packets behind by receiver, by its last report; the worst receivers."""
    rate: int = 0
    """Bytes per second in force; 0: no limit."""
    decided: int = 0
    """Bytes per second that the rate policy decided; 0: no limit."""
    paced: int = 0
    """Bytes per second of a slow receiver that the stream waits for; 0: none."""
    loss: float = 0.0
    """Loss by which the rate policy decides."""
    room: int | None = None
    """Packets that receivers' windows or PGMCC permit; None: neither limits."""
    window: int | None = None
    """Window of PGMCC in packets; None: it does not run."""
    unacked: int | None = None
    """Packets in the history that need acknowledgements; None: none are needed."""
    waiting: int = 0
    """Repairs that wait to be sent."""
    credit: int | None = None
    """Messages that may still be sent, of the topic with the fewest; None: no receiver has granted credit."""
    waits: Mapping[str, float] = field(default_factory=dict)
    """Share of the time for which data waited, by reason (see WAITS)."""
    storm: bool = False
    """Whether there is a NAK storm."""
    cut: float = 0.0
    """Share of the time for which all requests were cut off, as decided."""
    totals: Mapping[str, int] = field(default_factory=dict)
    """Number of decisions since the start of the stream (see DECISIONS); those that were never made are absent."""

    @property
    def depth(self) -> int:
        """Packets in the history."""
        return max(0, self.newest + 1 - self.oldest)


def sending(older: Snapshot, newer: Snapshot, known: Iterable[ReceiverOfStream]) -> dict[str, Sending]:
    """Return the data of each sent stream by its name.

    Args:
        older: Start of the interval.
        newer: End of the interval.
        known: Receivers as their sources see them at its end, worst first.
    """
    interval = Interval(older, newer)
    reported: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for row in known:
        own = reported[row.instance, row.stream]
        if row.lag is not None and len(own) < MOST_REPORTED:
            own.setdefault(row.called, row.lag)
    topics: defaultdict[tuple[int, str], list[ObjectState]] = defaultdict(list)
    for owner, item in newer.of("transmitter"):
        if item.live:
            topics[owner.incarnation, item.labels["stream"]].append(item)
    return {
        stream: _sending(interval, owner, item, topics[owner.incarnation, stream], reported[owner.name, stream])
        for stream, (owner, item) in interval.now.stream_senders.items()
        if item.live
    }


def _sending(
    interval: Interval,
    owner: InstanceState,
    item: ObjectState,
    topics: Iterable[ObjectState],
    reported: Mapping[str, int],
) -> Sending:
    own = list(topics)
    waited = waits(interval, owner, item, own)
    window = value_of(item, "pgmcc_window") or None
    room = value_of(item, "send_room")
    limits = [value_of(topic, "credit_limit") - value_of(topic, "next_message") for topic in own if _has_credit(topic)]
    return Sending(
        instance=owner.name,
        newest=value_of(item, "window_lead"),
        oldest=value_of(item, "window_trail"),
        packets=interval.rate(owner, item, "packets_sent"),
        data=interval.rate(owner, item, "bytes_sent"),
        repairs=interval.rate(owner, item, "repair_packets"),
        repair_data=interval.rate(owner, item, "repair_bytes"),
        naks=interval.rate(owner, item, "naks_received"),
        topics={topic.labels["topic"]: interval.rate(owner, topic, "packets_sent") for topic in own},
        fills=fills_of(own),
        reported=reported,
        rate=value_of(item, "rate_limit"),
        decided=value_of(item, "rate_decided"),
        paced=value_of(item, "slow_rate_limit"),
        loss=value_of(item, "rate_loss") / 1e6,
        room=room if room or window is not None or "window" in waited else None,
        window=window,
        unacked=value_of(item, "history_unacked") if value_of(item, "receivers_acknowledging") else None,
        waiting=value_of(item, "repair_queue"),
        credit=max(0, min(limits)) if limits else None,
        waits=waited,
        storm=bool(value_of(item, "storm_active")),
        cut=min(1.0, interval.rate(owner, item, "cutoff_time") / 1e9),
        totals={name: count for name in DECISIONS if (count := value_of(item, name))},
    )


def _has_credit(topic: ObjectState) -> bool:
    return value_of(topic, "credit_limit") > 0
