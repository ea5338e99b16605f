"""The receivers of a stream as its transmitter tracks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["ReceiverView"]


@dataclass(frozen=True, slots=True)
class ReceiverView:
    """One receiver as the transmitter sees it; taken from `Transmitter.receivers`.

    A receiver reports how it fares at least once in `report_interval` seconds while there is news. One that sends no
    reports (another PGM program) is known by its address: what only a report tells is None then.
    """

    receiver: str
    """Identity: 16 hex digits, the same after a restart under the same name; without reports it is made from its
    address."""
    name: str
    """Of the receiver's instance; empty until it has told it."""
    address: str
    """Where its feedback comes from."""
    incarnation: int
    """Which life of it: greater in a later one; 0 without reports."""
    loss: float | None
    """Share of the packets that it missed at first, by its last reports: 0 to 1."""
    packets_received: int | None
    """Data packets it has had in this life, each once."""
    packets_missed: int | None
    """Of these and the ones given up, those it first saw missing."""
    packets_lost: int | None
    """Of those missed, the ones given up for good."""
    lag: int | None
    """Packets sent by now that it had not passed on when it last told."""
    buffer_fill: float | None
    """How full its buffers are, the fuller of receive window and receive queue: 0 to 1."""
    window: int | None
    """Packets that it had room for beyond those it had passed on."""
    round_trip: float
    """Seconds from here to the receiver and back, smoothed; 0: not known."""
    naks: int
    """Packets it asked for, each once."""
    naks_again: int
    """Requests for packets that it had asked for before."""
    repairs: int
    """Packets repaired because it asked first."""
    repair_bytes: int
    """Bytes of these, headers included."""
    state: Literal["ok", "suspended", "expelled", "left"]
    """Its class at this stream; left: it announced its end."""
    heard_ns: int
    """When it was heard last: nanoseconds since 1970."""
    reports: bool
    """Whether it sends reports."""
    tagged: bool
    """Whether it says that it is one of those that set the pace (option `tagged`)."""
    lag_bytes: int | None
    """Bytes of these packets that it is behind; a lower bound when the oldest have left the history."""
    lag_time: float | None
    """Seconds since the oldest packet was sent that it had not passed on when it last told: never more than
    `report_interval` too long, and at least so long when that packet has left the history."""
    forecast: float | None
    """Seconds until the packets it needs leave the history, at current rates; None: they will not."""
    blame_time: float
    """Seconds that data waited for this receiver alone: for its room, acknowledgement or credit, or for a rate that was
    lowered on its account."""
    nak_share: float
    """Share of all the requests for repair that the stream ever had, 0 to 1: these add up to 1, but for receivers that
    are not known any more."""
    badness: float
    """Present trouble; 0 is none. Receivers are ordered by it."""
