"""The view of sources: every receiver as the sending side tracks it, and the rate of each stream with its cause.

Pure functions from a snapshot (and the previous one) to rows. The receiving side need not be in reach: loss, lag and
buffers of a receiver come from its reports to the source, and actions come from the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heliograph.engine import catalogue
from heliograph.monitor.behaviour import BY_STATE, Behaviour
from heliograph.monitor.clocks import Clocks, clocks_of
from heliograph.monitor.model import InstanceState, ObjectState, Snapshot
from heliograph.monitor.text import duration_text, percent_text

__all__ = ["ACTIONS", "FORECASTS", "OTHER_ACTION", "ReceiverOfStream", "StreamRow", "receivers_of", "streams"]

_MILLION = 1e6
CRYING_SHARE = 0.5
"""Share of all recent requests above which the receiver is named."""


ACTIONS: Mapping[int, str] = {
    0: "",
    **{catalogue.actions()[name].number: name for name in ("shed", "suspend_naks", "suspend", "expel")},
}
"""The values of the statistic `action` of a tx_receiver: names of the catalogue's actions that last, "" for none."""
OTHER_ACTION = "other"
"""An action unknown to this version."""
FORECASTS = ("", "none", "ahead", "past")
"""Forecast of loss, indexed by the value of the statistic `forecast_state`."""
_RATE_STATES = ("", "lowered", "raised")


@dataclass(frozen=True, slots=True)
class ReceiverOfStream:
    """One receiver as the source of one stream tracks it."""

    instance: str
    """Name of the source."""
    stream: str
    name: str
    """Name from its reports; empty without reports."""
    receiver: str
    """Its id, or a substitute for it."""
    address: str
    behaviour: Behaviour
    """As its source judges it."""
    action: str
    """The action of its source, see `ACTIONS`."""
    loss: float | None
    """Share of packets missing at first, from its last reports, 0 to 1; None: no reports."""
    lag: int | None
    """Packets sent that it had not passed on at its last report."""
    lag_bytes: int | None
    """Bytes of these packets; a lower bound when the oldest have left the history."""
    lag_ns: int | None
    """Age of the oldest of these packets at the report, ns; a lower bound when it has left the history."""
    buffer_fill: float | None
    """Fill of its buffers, 0 to 1."""
    round_trip_ns: int
    """0: unknown."""
    clocks: Clocks
    """Offset of its clock to the source's, from its reports."""
    naks: int
    naks_per_s: float | None
    """Over the interval; None without an earlier snapshot of it."""
    nak_share: float | None
    """Share of all requests of the stream so far, 0 to 1; None: no requests. Together with the receivers that are no
    longer tracked, the shares add up to 1."""
    nak_share_lately: float | None
    """The same over the interval; None: no requests in it, or no earlier snapshot of it."""
    naks_shed: int
    """Requests that were not repaired, because the receiver is over its limit or under an action."""
    forecast: str
    """Forecast of loss, see `FORECASTS`; empty: unknown."""
    forecast_ns: int | None
    """Time until the packets it needs leave the history, at current rates, ns; None unless `forecast` is "ahead"."""
    lost_certain: int
    """Packets that left the history before it had them or room for them."""
    since_ns: int
    """Wall clock time since when it is in its class, ns; 0: unknown."""
    blame_ns: int
    """Time that data waited for this receiver alone, ns."""
    slow_ns: int
    """Time for which a symptom has been over its threshold, ns; 0: no symptom."""
    suspensions: int
    """Number of suspensions for being slow, or of those it would have had."""
    silent_ns: int
    """Time since the last packet from it, ns."""
    badness: float
    """Present trouble, as its source ranks it; 0 is best."""

    @property
    def identity(self) -> tuple[str, ...]:
        """Identity of the row."""
        return self.instance, self.stream, self.name, self.receiver, self.address

    @property
    def reason(self) -> str:
        """The noteworthy facts as a sentence; empty when there are none."""
        parts = []
        if self.action:
            parts.append(f"action {self.action}")
        if self.behaviour not in (Behaviour.OK, Behaviour.UNKNOWN):
            behind = f", {duration_text(self.lag_ns)} behind" if self.lag_ns else ""
            parts.append(f"{self.behaviour.words}{behind}")
        if self.forecast == "past":
            parts.append("packets it needs have left the history")
        if self.forecast_ns:
            parts.append(f"packets it needs leave the history in {duration_text(self.forecast_ns)}")
        if (self.nak_share_lately or 0.0) >= CRYING_SHARE:
            parts.append(f"requests {percent_text(self.nak_share_lately)} of all repairs")
        if self.blame_ns:
            parts.append(f"data waited {duration_text(self.blame_ns)} for it")
        return "; ".join(parts)

    @property
    def forecast_text(self) -> str:
        """The forecast as text: a time, "none" or "past"; a dash if unknown."""
        return duration_text(self.forecast_ns) if self.forecast_ns else self.forecast or "-"

    @property
    def called(self) -> str:
        """Its name, or its address."""
        return self.name or self.address


@dataclass(frozen=True, slots=True)
class StreamRow:
    """The rate of one stream and the state of its receivers, over an interval."""

    instance: str
    stream: str
    endpoint: str
    bytes_per_s: float
    """Original data sent."""
    rate: int
    """Bytes per second in force; 0: no limit."""
    rate_decided: int
    """Bytes per second that the rate policy decided, in force or not; 0: no limit."""
    rate_state: str
    """Last decision of the policy: "lowered", "raised" or empty."""
    loss: float
    """Loss that determines the rate, 0 to 1."""
    limited_share: float
    """Share of the time that data waited for the rate, 0 to 1."""
    receivers: int
    """Receivers that the source tracks."""
    troubled: int
    """Receivers with a symptom over its threshold."""
    isolated: int
    """Receivers suspended or expelled; in mode observe or advise, those that would be."""
    naks_per_s: float
    repairs_waiting: int
    storm: bool
    """Whether there is a NAK storm."""

    @property
    def is_controlled(self) -> bool:
        """Whether there is a rate, or a policy that would set one."""
        return bool(self.rate or self.rate_decided)


def _number(values: Mapping[str, int], table: tuple[str, ...], cell: str) -> str:
    found = values.get(cell, 0)
    return table[found] if found < len(table) else f"{cell} {found}"


def _share(part: float, whole: float) -> float | None:
    return min(1.0, part / whole) if whole > 0 else None  # the two were read one after the other


class _Before:
    """The previous snapshot, by object."""

    def __init__(self, previous: Snapshot | None, current: Snapshot) -> None:
        self._seconds = (current.time_ns - previous.time_ns) / 1e9 if previous is not None else 0.0
        self._streams = {
            (owner.incarnation, item.labels["stream"]): (owner, item) for owner, item in current.of("tx_stream")
        }
        self._objects = {
            (owner.incarnation, item.key): item
            for owner in (previous.instances if previous is not None and self._seconds > 0 else ())
            for item in owner.objects
            if item.scope in ("tx_receiver", "tx_stream")
        }

    def rate(self, owner: InstanceState, item: ObjectState, cell: str) -> float | None:
        """Increase of a counter per second; None where it is unknown."""
        old = self._objects.get((owner.incarnation, item.key))
        if old is None:
            return None
        return max(0, item.values.get(cell, 0) - old.values.get(cell, 0)) / self._seconds

    def shares(self, owner: InstanceState, item: ObjectState, cell: str) -> tuple[float | None, float | None]:
        """A receiver's share of the counter of its stream with the same name: in total, and over the interval."""
        stream = self._streams.get((owner.incarnation, item.labels["stream"]))
        if stream is None:
            return None, None
        ever = _share(item.values.get(cell, 0), stream[1].values.get(cell, 0))
        part, whole = self.rate(owner, item, cell), self.rate(*stream, cell)
        return ever, None if part is None or whole is None else _share(part, whole)


def receivers_of(current: Snapshot, previous: Snapshot | None = None) -> list[ReceiverOfStream]:
    """Return every receiver of the streams of a snapshot, by instance, stream and name."""
    before = _Before(previous, current)
    found = [_receiver(before, current, owner, item) for owner, item in current.of("tx_receiver") if item.live]
    return sorted(found, key=lambda row: (row.instance, row.stream, row.name, row.address))


def _receiver(before: _Before, current: Snapshot, owner: InstanceState, item: ObjectState) -> ReceiverOfStream:
    values = item.values
    reports = values.get("reports_received", 0) > 0
    forecast = values.get("forecast_state", 0)
    state, since = values.get("state", 0), values.get("slow_since", 0)
    nak_share, nak_share_lately = before.shares(owner, item, "naks_received")
    return ReceiverOfStream(
        instance=owner.name,
        stream=item.labels["stream"],
        name=item.info.get("name", ""),
        receiver=item.info.get("receiver_id", ""),
        address=item.labels["receiver"],
        behaviour=BY_STATE[state] if state < len(BY_STATE) else Behaviour.UNKNOWN,
        action=ACTIONS.get(values.get("action", 0), OTHER_ACTION),
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
        forecast=FORECASTS[forecast] if forecast < len(FORECASTS) else "",
        forecast_ns=values.get("forecast", 0) or None,
        lost_certain=values.get("lost_certain", 0),
        since_ns=values.get("state_since", 0),
        blame_ns=values.get("blame_time", 0),
        slow_ns=max(0, current.time_ns - since) if since else 0,
        suspensions=values.get("suspensions", 0),
        silent_ns=max(0, current.time_ns - values.get("last_feedback", 0)),
        badness=values.get("badness", 0) / _MILLION,
    )


def streams(previous: Snapshot | None, current: Snapshot) -> list[StreamRow]:
    """Return every sent stream, by instance and stream."""
    before = _Before(previous, current)
    known: dict[tuple[int, str], int] = {}
    for owner, item in current.of("tx_receiver"):
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
        troubled=values.get("receivers_in_trouble", 0),
        isolated=values.get("receivers_isolated", 0),
        naks_per_s=before.rate(owner, item, "naks_received") or 0.0,
        repairs_waiting=values.get("repair_queue", 0),
        storm=bool(values.get("storm_active", 0)),
    )
