"""What sources know: every receiver as the transmitting side sees it, and how fast each stream may send and why.

Pure functions from a snapshot (and the one before) to rows. Nothing here needs the receiving side in reach: what a
receiver does, loses and holds is what it reported to the source, and what is done about it is the source's doing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from heliograph.engine import catalogue
from heliograph.monitor.behaviour import BY_STATE, Behaviour
from heliograph.monitor.clocks import Clocks, clocks_of
from heliograph.monitor.model import InstanceState, ObjectState, Snapshot
from heliograph.monitor.text import duration_text, percent_text

__all__ = ["ReceiverOfStream", "StreamRow", "Treatment", "receivers_of", "streams"]

_MILLION = 1e6
CRYING_SHARE = 0.5
"""Of all requests lately, from which on it is worth telling who asks for them."""


class Treatment(StrEnum):
    """What a source does to a receiver (statistic `treatment` of a peer)."""

    NONE = ""
    SHED = "repaired less"
    NAKS_SUSPENDED = "not repaired"
    SUSPENDED = "suspended"
    EXPELLED = "expelled"
    OTHER = "treated"
    """In a way this version does not know."""


_ACTIONS = catalogue.actions()
TREATMENTS: Mapping[int, Treatment] = {
    0: Treatment.NONE,
    _ACTIONS["shed"].number: Treatment.SHED,
    _ACTIONS["suspend_naks"].number: Treatment.NAKS_SUSPENDED,
    _ACTIONS["suspend"].number: Treatment.SUSPENDED,
    _ACTIONS["expel"].number: Treatment.EXPELLED,
}
_RATE_STATES = ("", "lowered", "raised")


@dataclass(frozen=True, slots=True)
class ReceiverOfStream:
    """One receiver as one stream's source knows it."""

    instance: str
    """Of the source."""
    stream: str
    name: str
    """As it reports; empty for one that sends no reports."""
    receiver: str
    """Its id, or what stands for it."""
    address: str
    behaviour: Behaviour
    """As its source judges it."""
    treatment: Treatment
    loss: float | None
    """Share of the packets it missed at first, by its last reports, 0 to 1; None: it reports nothing."""
    lag: int | None
    """Packets sent that it had not passed on when it last reported."""
    lag_bytes: int | None
    """Bytes of these; at least so many where the oldest have left the history."""
    lag_ns: int | None
    """How long ago the oldest of these was sent, when it reported; at least so long where it has left the history."""
    buffer_fill: float | None
    """How full its buffers are, 0 to 1."""
    round_trip_ns: int
    clocks: Clocks
    """How far its clock is ahead of the source's, as it told."""
    """0: not known."""
    naks: int
    naks_per_s: float | None
    """Over the interval; None without an earlier snapshot that has it."""
    nak_share: float | None
    """Of all sequences the stream was ever asked for, 0 to 1; None: nobody asked. Together with those of receivers
    that are not known (any more) the shares add up to 1."""
    nak_share_lately: float | None
    """The same over the interval; None: nobody asked in it, or there is no earlier snapshot that has it."""
    naks_shed: int
    """Sequences it asked for that were not repaired, as it is over its limit or treated so."""
    forecast_ns: int
    """Until what it needs leaves the history, as things go; 0: it will not."""
    blame_ns: int
    """Time that data waited for it alone."""
    slow_ns: int
    """For how long a symptom has been over its threshold; 0: none is."""
    suspensions: int
    """Times it was suspended for being slow, or would have been."""
    silent_ns: int
    """Since it was last heard."""
    badness: float
    """How much trouble it is of late, as its source ranks it; 0 is best."""

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells it from every other."""
        return self.instance, self.stream, self.name, self.receiver, self.address

    @property
    def told(self) -> str:
        """What is worth telling of it, as a sentence; empty when nothing is."""
        parts = []
        if self.treatment:
            parts.append(str(self.treatment))
        if self.behaviour not in (Behaviour.OK, Behaviour.UNKNOWN):
            behind = f", {duration_text(self.lag_ns)} behind" if self.lag_ns else ""
            parts.append(f"{self.behaviour.words}{behind}")
        if self.forecast_ns:
            parts.append(f"what it needs leaves the history in {duration_text(self.forecast_ns)}")
        if (self.nak_share_lately or 0.0) >= CRYING_SHARE:
            parts.append(f"asks for {percent_text(self.nak_share_lately)} of all repairs")
        if self.blame_ns:
            parts.append(f"data waited {duration_text(self.blame_ns)} for it")
        return "; ".join(parts)

    @property
    def called(self) -> str:
        """Its name, or its address."""
        return self.name or self.address


@dataclass(frozen=True, slots=True)
class StreamRow:
    """How fast one stream may send, and what it does about its receivers, over an interval."""

    instance: str
    stream: str
    endpoint: str
    bytes_per_s: float
    """Original data sent."""
    rate: int
    """Bytes per second in force; 0: no limit."""
    rate_decided: int
    """Bytes per second the rate policy wants, in force or not; 0: no limit."""
    rate_state: str
    """What the policy did in the last interval of its own: "lowered", "raised" or nothing."""
    loss: float
    """By which the policy decides, 0 to 1."""
    limited_share: float
    """Share of the time data waited for the rate, 0 to 1."""
    receivers: int
    """That the source knows."""
    troubled: int
    """Of these, with a symptom over its threshold."""
    isolated: int
    """Of these, suspended or expelled; in mode observe or advise those that would be."""
    naks_per_s: float
    repairs_waiting: int
    storm: bool
    """There is a NAK storm."""

    @property
    def is_controlled(self) -> bool:
        """A rate, or a policy that would set one, is there to be seen."""
        return bool(self.rate or self.rate_decided)


def _number(values: Mapping[str, int], table: tuple[str, ...], cell: str) -> str:
    found = values.get(cell, 0)
    return table[found] if found < len(table) else f"{cell} {found}"


def _share(part: float, whole: float) -> float | None:
    return min(1.0, part / whole) if whole > 0 else None  # the two were read one after the other


class _Before:
    """The snapshot before, by object."""

    def __init__(self, previous: Snapshot | None, current: Snapshot) -> None:
        self._seconds = (current.time_ns - previous.time_ns) / 1e9 if previous is not None else 0.0
        self._streams = {
            (owner.incarnation, item.labels["stream"]): (owner, item) for owner, item in current.of("tx_stream")
        }
        self._objects = {
            (owner.incarnation, item.key): item
            for owner in (previous.instances if previous is not None and self._seconds > 0 else ())
            for item in owner.objects
            if item.scope in ("peer", "tx_stream")
        }

    def rate(self, owner: InstanceState, item: ObjectState, cell: str) -> float | None:
        """Growth of a counter per second; None where it cannot be known."""
        old = self._objects.get((owner.incarnation, item.key))
        if old is None:
            return None
        return max(0, item.values.get(cell, 0) - old.values.get(cell, 0)) / self._seconds

    def shares(self, owner: InstanceState, item: ObjectState, cell: str) -> tuple[float | None, float | None]:
        """A peer's share of what its stream counted under the same name: ever, and over the interval."""
        stream = self._streams.get((owner.incarnation, item.labels["stream"]))
        if stream is None:
            return None, None
        ever = _share(item.values.get(cell, 0), stream[1].values.get(cell, 0))
        part, whole = self.rate(owner, item, cell), self.rate(*stream, cell)
        return ever, None if part is None or whole is None else _share(part, whole)


def receivers_of(current: Snapshot, previous: Snapshot | None = None) -> list[ReceiverOfStream]:
    """Every receiver the streams of a snapshot know, by instance, stream and name."""
    before = _Before(previous, current)
    found = [_receiver(before, current, owner, item) for owner, item in current.of("peer") if item.live]
    return sorted(found, key=lambda row: (row.instance, row.stream, row.name, row.address))


def _receiver(before: _Before, current: Snapshot, owner: InstanceState, item: ObjectState) -> ReceiverOfStream:
    values = item.values
    reports = values.get("reports_received", 0) > 0
    state, since = values.get("state", 0), values.get("slow_since", 0)
    nak_share, nak_share_lately = before.shares(owner, item, "naks_received")
    return ReceiverOfStream(
        instance=owner.name,
        stream=item.labels["stream"],
        name=item.info.get("name", ""),
        receiver=item.info.get("receiver", ""),
        address=item.labels["peer"],
        behaviour=BY_STATE[state] if state < len(BY_STATE) else Behaviour.UNKNOWN,
        treatment=TREATMENTS.get(values.get("treatment", 0), Treatment.OTHER),
        loss=values.get("loss", 0) / _MILLION if reports else None,
        lag=values.get("lag", 0) if reports else None,
        lag_bytes=values.get("lag_bytes") if reports else None,
        lag_ns=values.get("lag_time") if reports else None,
        buffer_fill=values.get("buffer_fill", 0) / _MILLION if reports else None,
        round_trip_ns=values.get("round_trip", 0),
        clocks=clocks_of(item),
        naks=values.get("naks_received", 0),
        naks_per_s=before.rate(owner, item, "naks_received"),
        nak_share=nak_share,
        nak_share_lately=nak_share_lately,
        naks_shed=values.get("naks_shed", 0),
        forecast_ns=values.get("forecast", 0),
        blame_ns=values.get("blame_time", 0),
        slow_ns=max(0, current.time_ns - since) if since else 0,
        suspensions=values.get("suspensions", 0),
        silent_ns=max(0, current.time_ns - values.get("last_heard", 0)),
        badness=values.get("badness", 0) / _MILLION,
    )


def streams(previous: Snapshot | None, current: Snapshot) -> list[StreamRow]:
    """Every stream being sent, by instance and stream."""
    before = _Before(previous, current)
    known: dict[tuple[int, str], int] = {}
    for owner, item in current.of("peer"):
        if item.live:
            place = (owner.incarnation, item.labels["stream"])
            known[place] = known.get(place, 0) + 1
    rows = [
        _stream(before, known.get((owner.incarnation, item.labels["stream"]), 0), owner, item)
        for owner, item in current.of("tx_stream")
        if item.live
    ]
    return sorted(rows, key=lambda row: (row.instance, row.stream))


def _stream(before: _Before, known: int, owner: InstanceState, item: ObjectState) -> StreamRow:
    values = item.values
    limited = before.rate(owner, item, "rate_limited_time")
    return StreamRow(
        instance=owner.name,
        stream=item.labels["stream"],
        endpoint=item.info.get("endpoint", ""),
        bytes_per_s=before.rate(owner, item, "bytes_sent") or 0.0,
        rate=values.get("rate_limit", 0),
        rate_decided=values.get("rate_decided", 0),
        rate_state=_number(values, _RATE_STATES, "rate_state"),
        loss=values.get("rate_loss", 0) / _MILLION,
        limited_share=min(1.0, (limited or 0.0) / 1e9),
        receivers=known,
        troubled=values.get("consumers_in_trouble", 0),
        isolated=values.get("consumers_isolated", 0),
        naks_per_s=before.rate(owner, item, "naks_received") or 0.0,
        repairs_waiting=values.get("repair_queue", 0),
        storm=bool(values.get("storm_active", 0)),
    )
