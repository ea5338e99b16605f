"""The receivers of a stream as its transmitter tracks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["ReceiverView"]


@dataclass(frozen=True, slots=True)
class ReceiverView:
    """One receiver of a stream as its source tracks it; returned by `Transmitter.receivers`.

    While its values change, a receiver sends a report at least every `report_interval` seconds. A receiver without
    reports (another PGM implementation) is identified by its address; the values of reports are None.
    """

    receiver: str
    """Identity: 16 hex digits, the same after a restart under the same name; without reports it is derived from the
    address."""
    name: str
    """Name of the receiver's instance; empty until it has reported it."""
    address: str
    """Source address of its feedback."""
    incarnation: int
    """Incarnation of the receiver, increasing; 0 without reports."""
    loss: float | None
    """Share of packets that were missing at first, by its last reports, 0 to 1."""
    packets_received: int | None
    """Data packets received in this incarnation, without duplicates."""
    packets_missed: int | None
    """Data packets that were missing at first, recovered or lost."""
    packets_lost: int | None
    """Data packets lost."""
    lag: int | None
    """Packets sent that it had not passed on at its last report."""
    buffer_fill: float | None
    """Fill of its receive window or receive queue, whichever is fuller, 0 to 1."""
    window: int | None
    """Packets it had room for beyond those passed on."""
    round_trip: float
    """Smoothed round trip to the receiver, seconds; 0: unknown."""
    naks: int
    """Packets it requested, each counted once."""
    naks_again: int
    """Repeated requests for the same packets."""
    repairs: int
    """Packets repaired on its request."""
    repair_bytes: int
    """Bytes of these repairs, headers included."""
    state: Literal["ok", "suspended", "expelled", "left"]
    """State of the receiver at this stream; left: it announced its end."""
    heard_ns: int
    """Time of the last packet from it, ns since 1970."""
    reports: bool
    """Whether it sends reports."""
    tagged: bool
    """Whether its option `tagged` is set, so that it controls the pace."""
    lag_bytes: int | None
    """Bytes of the packets in `lag`; a lower bound if the oldest have left the history."""
    lag_time: float | None
    """Age of the oldest packet in `lag` at the last report, seconds. At most `report_interval` too high; a lower bound
    if that packet has left the history."""
    forecast: float | None
    """Time until the packets it needs leave the history at current rates, seconds; None unless `outlook` is "ahead"."""
    blame_time: float
    """Time that data waited for this receiver alone, seconds: for its room, acknowledgement or credit, or because its
    feedback lowered the rate."""
    nak_share: float
    """Share of all requests of the stream so far, 0 to 1. The shares of all receivers add up to 1, except those of
    evicted receivers."""
    badness: float
    """Score of its current trouble; 0 is best. `Transmitter.receivers` sorts by it."""
    behaviour: Literal["unknown", "ok", "falling_behind", "stalled", "stopped", "recovering"]
    """Class of the receiver as its source judges it, the same as in every other output; unknown: not yet judged."""
    outlook: Literal["unknown", "none", "ahead", "past"]
    """Forecast of loss: none; ahead: after `forecast` seconds; past: packets it needs have left the history."""
