"""The receivers that transmitters know, as ``heliograph ctl receivers`` lists them: read, never asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heliograph.monitor.model import Snapshot
from heliograph.monitor.text import count_text, duration_text, percent_text, table

__all__ = ["ReceiverOfStream", "receiver_lines", "receivers_of"]

_TREATMENTS = {0: "", 2: "repaired less", 3: "not repaired", 4: "suspended", 6: "expelled"}


@dataclass(frozen=True, slots=True)
class ReceiverOfStream:
    """One receiver as one stream's source knows it."""

    instance: str
    stream: str
    name: str
    """As it reports; empty for one that sends no reports."""
    receiver: str
    """Its id, or what stands for it."""
    address: str
    treatment: str
    """What is done to it: repaired less, not repaired, suspended, expelled; empty: nothing."""
    loss: float | None
    """Share of the packets it missed at first, by its last reports, 0 to 1; None: it reports nothing."""
    lag: int | None
    """Packets sent that it had not passed on when it last reported."""
    buffer_fill: float | None
    """How full its buffers are, 0 to 1."""
    round_trip_ns: int
    """0: not known."""
    naks: int
    silent_ns: int
    """Since it was last heard."""


def receivers_of(snapshot: Snapshot) -> list[ReceiverOfStream]:
    """Every receiver the streams of a snapshot know, by instance, stream and name."""
    found = []
    for owner, item in snapshot.of("peer"):
        if not item.live:
            continue
        values = item.values
        reports = values.get("reports_received", 0) > 0
        treatment = values.get("treatment", 0)
        found.append(
            ReceiverOfStream(
                instance=owner.name,
                stream=item.labels["stream"],
                name=item.info.get("name", ""),
                receiver=item.info.get("receiver", ""),
                address=item.labels["peer"],
                treatment=_TREATMENTS.get(treatment, f"treatment {treatment}"),
                loss=values.get("loss", 0) / 1e6 if reports else None,
                lag=values.get("lag", 0) if reports else None,
                buffer_fill=values.get("buffer_fill", 0) / 1e6 if reports else None,
                round_trip_ns=values.get("round_trip", 0),
                naks=values.get("naks_received", 0),
                silent_ns=max(0, snapshot.time_ns - values.get("last_heard", 0)),
            )
        )
    return sorted(found, key=lambda item: (item.instance, item.stream, item.name, item.address))


def receiver_lines(found: Sequence[ReceiverOfStream]) -> list[str]:
    """The receivers as a table for people."""
    if not found:
        return ["no stream knows a receiver: none has asked for a repair, acknowledged or reported"]
    head = (
        "INSTANCE",
        "STREAM",
        "RECEIVER",
        "ID",
        "ADDRESS",
        "TREATMENT",
        "LOSS",
        "LAG",
        "BUFFER",
        "RTT",
        "NAKS",
        "HEARD",
    )
    rows = [
        (
            item.instance,
            item.stream,
            item.name or "-",
            item.receiver or "-",
            item.address,
            item.treatment or "-",
            percent_text(item.loss),
            count_text(item.lag),
            percent_text(item.buffer_fill),
            duration_text(item.round_trip_ns or None),
            count_text(item.naks),
            f"{duration_text(item.silent_ns)} ago",
        )
        for item in found
    ]
    return table(head, rows, left=6)
