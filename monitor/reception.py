"""Reception of a stream by an instance: what all topics of the stream share there."""

from __future__ import annotations

from dataclasses import dataclass

from heliograph.monitor.clocks import Clocks, clocks_of
from heliograph.monitor.joining import Interval, value_of
from heliograph.monitor.localise import judge
from heliograph.monitor.model import InstanceState, ObjectState

__all__ = ["Reception", "reception_of"]

_LOCATED = "losses_located_"


@dataclass(frozen=True, slots=True)
class Reception:
    """Reception of a stream by an instance over an interval: the same for all topics of the stream."""

    missing_ratio: float
    naks_per_s: float
    nak_ratio: float
    nak_share: float | None
    loss_place: str | None
    clocks: Clocks
    round_trip_ns: int | None
    gaps: int
    packets: int
    outstanding_naks: int
    forecast_ns: int | None
    """As the source of the stream knows it, like the next."""
    blame_ns: int | None


def reception_of(interval: Interval, owner: InstanceState, stream: str) -> Reception:
    rx = interval.now.rx_streams.get((owner.incarnation, stream))
    packets = _packets(interval, owner, rx)
    tx_receiver = _tx_receiver(interval, owner, stream, rx)
    return Reception(
        missing_ratio=min(1.0, interval.change(owner, rx, "packets_missed") / packets),
        naks_per_s=interval.rate(owner, rx, "naks_sent"),
        nak_ratio=interval.change(owner, rx, "naks_sent") / packets,
        nak_share=_nak_share(interval, stream, rx),
        loss_place=_loss_place(interval, owner, rx),
        clocks=clocks_of(rx, interval.now.snapshot.time_ns),
        round_trip_ns=interval.now.round_trips.get((stream, rx.info.get("feedback_address", ""))) if rx else None,
        gaps=value_of(rx, "packets_missed"),
        packets=max(value_of(rx, "packets_delivered"), value_of(rx, "window_lead")),
        outstanding_naks=value_of(rx, "outstanding_naks"),
        forecast_ns=_known(tx_receiver, "forecast"),
        blame_ns=_known(tx_receiver, "blame_time"),
    )


def _packets(interval: Interval, owner: InstanceState, rx: ObjectState | None) -> int:
    """Packets of the stream in the interval: delivered packets or, when some were held back, all known packets."""
    delivered = interval.change(owner, rx, "packets_delivered")
    old = interval.earlier(owner, rx)
    known = value_of(rx, "window_lead") - value_of(old, "window_lead") if old is not None else 0
    return max(delivered, known, 1)


def _known(item: ObjectState | None, cell: str) -> int | None:
    return item.values.get(cell) if item is not None else None


def _tx_receiver(interval: Interval, owner: InstanceState, stream: str, rx: ObjectState | None) -> ObjectState | None:
    """Return the receiver as its source tracks it."""
    address = rx.info.get("feedback_address", "") if rx else ""
    for tx_receiver in interval.now.live_tx_receivers.get((stream, address), ()):
        _, _, twin = tx_receiver.labels["receiver"].partition("#")
        if not twin or tx_receiver.info.get("name") == owner.name:
            return tx_receiver
    return None


def _nak_share(interval: Interval, stream: str, rx: ObjectState | None) -> float | None:
    address = rx.info.get("feedback_address", "") if rx else ""
    own, total = interval.asked.get(stream, ({}, 0))
    return own.get(address, 0) / total if address and total else None


def _loss_place(interval: Interval, owner: InstanceState, rx: ObjectState | None) -> str | None:
    if rx is None:
        return None
    cells = [name for name in rx.values if name.startswith(_LOCATED)]
    located = {name.removeprefix(_LOCATED): interval.change(owner, rx, name) for name in cells}
    sender = interval.now.stream_senders.get(rx.labels["stream"])
    if sender is None or "packets_unsent" not in sender[1].values:
        return judge(located, None).place
    return judge(located, interval.change(*sender, "packets_unsent"), value_of(sender[1], "destinations")).place
