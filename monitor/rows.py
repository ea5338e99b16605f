"""What the joined fleet looks like: one row per receiver, transmitter and instance, and the books. Plain values.

Rates are per second, latencies ns, shares and ratios 0 to 1. None means "cannot be known from here", never 0.
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
    """Where a lag in seconds comes from."""

    MEASURED = "measured"
    """The receive queue knows the age of its oldest message, but for its time under way; or there is no lag."""
    WATCHED = "watched"
    """By when the sender was seen to have sent the message: right to within the time between two observations."""
    AT_LEAST = "at least"
    """The message was sent before the sender was first observed."""
    ESTIMATED = "estimated"
    """The lag at the sender's present rate."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Balance:
    """The books of one receiver since it joined, in messages.

    sent = before join + delivered + trimmed + lost + in flight.
    """

    instance: str
    topic: str
    stream: str
    transmitter: str | None
    """Name of the sending instance, None when it is not in reach."""
    sent: int | None
    before_join: int
    delivered: int
    """Taken by the application, or waiting for it."""
    recovered: int
    """Of those delivered or trimmed."""
    trimmed: int
    """They came, and the receive queue gave them up before the application took them."""
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
    """0 is best; rows are ordered by it, worst first."""
    reason: str
    looks: int
    """Observations the class rests on; 1: it is as of one look."""
    since_ns: int
    """When the class was first seen, wall clock; 0: not known, as of one look."""
    seconds: float
    """Length of the interval."""
    sent_per_s: float | None
    delivered_per_s: float
    bytes_per_s: float
    recovered_per_s: float
    lost_per_s: float
    missing_ratio: float
    """Packets of the stream first seen missing, per packet; 0 to 1."""
    naks_per_s: float
    """Sequences asked for by this instance on this stream."""
    nak_ratio: float
    """Sequences asked for per packet of the stream."""
    nak_share: float | None
    """Share of all the stream's requests that came from here, 0 to 1; None when nobody asked or it is not known."""
    loss_place: str | None
    """Where most of the packets it missed died (`localise.PLACES`); None when none did."""
    forecast_ns: int | None
    """Until what it needs leaves the sender's history, as things go; 0: it will not; None: that is not known here."""
    blame_ns: int | None
    """Time that data waited for it alone; None: that is not known here."""
    outstanding_naks: int
    lag_messages: int
    """Sent and not yet with the application: in flight and in the queue."""
    lag_bytes: int | None
    """Payload of these messages; None: what is under way is not known."""
    lag_seconds: float | None
    """Age of the oldest of these messages; None: it cannot be known."""
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
    """Those of the two ends; what the latencies above are worth is for `latency` to say."""
    late: Verdict | None = None
    """Who made the latest messages late; None: too few, or hiccups of the host were not read."""
    round_trip_ns: int | None = None
    """Between the two ends; None when the sender is out of reach, or does not know."""

    @property
    def trust(self) -> Trust | None:
        """Whether the median can be taken for what it says, and so the longer ones; None: nothing was measured."""
        first = self.latency[0]
        return first.trust if first is not None else None

    @property
    def latency(self) -> tuple[OneWay | None, ...]:
        """p50, p99, p99.9 and the longest, with what they are worth."""
        return one_way((self.p50_ns, self.p99_ns, self.p999_ns, self.max_ns), self.clocks, self.round_trip_ns)

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells it from every other."""
        return self.instance, self.topic, self.stream


@dataclass(frozen=True, slots=True)
class TransmitterRow:
    """One topic being sent, over an interval; repairs and requests are those of its whole stream."""

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
    """Receivers of it in reach."""
    naks_per_s: float
    repairs_per_s: float
    repair_ratio: float
    """Repair packets per original packet."""
    history_packets: int
    peers: int
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
