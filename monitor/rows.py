"""Rows of the joined fleet: receivers, transmitters, instances and the reconciliation. Plain values.

Rates are per second, latencies ns, shares and ratios 0 to 1. None means "unknown here", never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from heliograph.monitor.behaviour import Behaviour
from heliograph.monitor.blame import Verdict
from heliograph.monitor.clocks import UNKNOWN, Clocks, OneWay, Trust, one_way
from heliograph.monitor.model import Health

__all__ = ["Balance", "InstanceRow", "LagBasis", "ReceiverRow", "TransmitterRow"]


class LagBasis(StrEnum):
    """The source of a lag in seconds."""

    MEASURED = "measured"
    """From the age of the oldest message in the receive queue, without its transit time; or there is no lag."""
    WATCHED = "watched"
    """From the observed time of sending: accurate to the time between two observations."""
    AT_LEAST = "at least"
    """The message was sent before the sender was first observed."""
    ESTIMATED = "estimated"
    """The lag at the sender's present rate."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Balance:
    """The reconciliation of one receiver since it joined, in messages.

    sent = before join + delivered + trimmed + lost + in flight.
    """

    instance: str
    topic: str
    stream: str
    transmitter: str | None
    """Name of the sending instance; None: out of reach."""
    sent: int | None
    before_join: int
    delivered: int
    """Taken by the application, or waiting for it."""
    recovered: int
    """Recovered messages among those delivered or trimmed."""
    trimmed: int
    """Messages that arrived and that the receive queue dropped before the application took them."""
    lost: int
    in_flight: int | None
    """Sent, not yet passed by the receiver."""
    residual: int


@dataclass(frozen=True, slots=True)
class ReceiverRow(Balance):
    """One receiver over an interval. Rates are per second, latencies ns (None: no message, or not measured)."""

    endpoint: str
    health: Health
    behaviour: Behaviour
    badness: float
    """0 is best; rows are sorted by it, worst first."""
    reason: str
    looks: int
    """Number of observations behind the class; 1: only one observation."""
    since_ns: int
    """When the class was first seen, wall clock in ns; 0: unknown, only one observation."""
    seconds: float
    """Length of the interval."""
    sent_per_s: float | None
    delivered_per_s: float
    bytes_per_s: float
    recovered_per_s: float
    lost_per_s: float
    missing_ratio: float
    """Packets detected as missing, per packet of the stream; 0 to 1."""
    naks_per_s: float
    """Sequence numbers requested per second by this instance on this stream."""
    nak_ratio: float
    """Sequence numbers requested per packet of the stream."""
    nak_share: float | None
    """Share of all requests of the stream that came from here, 0 to 1; None: no requests, or unknown."""
    loss_place: str | None
    """Loss location of most missing packets (`localise.PLACES`); None: no losses."""
    forecast_ns: int | None
    """Time until the packets it needs leave the sender's history, at current rates; 0: they will not; None: unknown."""
    blame_ns: int | None
    """Time that data waited for this receiver alone, ns; None: unknown here."""
    outstanding_naks: int
    lag_messages: int
    """Messages sent and not yet with the application: in flight and in the queue."""
    lag_bytes: int | None
    """Payload of these messages; None: the messages in flight are unknown."""
    lag_seconds: float | None
    """Age of the oldest of these messages; None: unknown."""
    lag_basis: LagBasis
    """Where `lag_seconds` comes from."""
    queue_messages: int
    queue_bytes: int
    queue_fill: float
    p50_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    max_ns: int | None
    clocks: Clocks = UNKNOWN
    """The clocks of the two ends; `latency` combines them with the latencies above."""
    late: Verdict | None = None
    """Cause of the latest messages; None: too few messages, or no hiccup data of the host."""
    round_trip_ns: int | None = None
    """Round trip between the two ends; None when the sender is out of reach or does not know it."""

    @property
    def trust(self) -> Trust | None:
        """Whether the median, and so the longer latencies, can be used as measured; None: nothing was measured."""
        first = self.latency[0]
        return first.trust if first is not None else None

    @property
    def latency(self) -> tuple[OneWay | None, ...]:
        """p50, p99, p99.9 and the maximum, with the error of the clocks."""
        return one_way((self.p50_ns, self.p99_ns, self.p999_ns, self.max_ns), self.clocks, self.round_trip_ns)

    @property
    def identity(self) -> tuple[str, ...]:
        """Identity of the row."""
        return self.instance, self.topic, self.stream


@dataclass(frozen=True, slots=True)
class TransmitterRow:
    """One sent topic over an interval; repairs and requests are those of its whole stream."""

    instance: str
    topic: str
    stream: str
    endpoint: str
    health: Health
    messages_sent: int
    next_message: int
    sent_per_s: float
    bytes_per_s: float
    packets_per_s: float
    queue_bytes: int
    receivers: int
    """Receivers of the topic in reach."""
    naks_per_s: float
    repairs_per_s: float
    repair_ratio: float
    """Repair packets per original packet."""
    history_packets: int
    tracked_receivers: int
    """Receivers of the stream that the source tracks."""
    batch_p50_ns: int | None
    batch_p99_ns: int | None


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """One instance over an interval."""

    name: str
    health: Health
    reason: str
    pid: int
    host: str
    version: str
    uptime_s: float
    sent_per_s: float
    received_per_s: float
    bytes_sent_per_s: float
    bytes_received_per_s: float
    packets_sent_per_s: float
    packets_received_per_s: float
    naks_sent_per_s: float
    naks_received_per_s: float
    invalid_packets: int
    socket_drops: int
    memory_bytes: int
