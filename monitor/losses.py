"""Unrecoverable losses by stream and cause. An instance keeps them while it runs, also after the stream has ended.

Pure functions from a snapshot to rows. A recovered packet is not a loss; the statistic `packets_missed` of the stream
counts missing packets.
"""

from __future__ import annotations

from dataclasses import dataclass

from heliograph.monitor.model import Snapshot

__all__ = ["LossRow", "losses"]


@dataclass(frozen=True, slots=True)
class LossRow:
    """The losses of one stream by one cause at one receiving instance."""

    instance: str
    stream: str
    cause: str
    """Cause of the losses: a value of `packets_lost` of an rx_stream."""
    transmitter: str | None
    """Name of the sending instance; None: out of reach."""
    source: str
    """Source address of the stream."""
    endpoint: str
    observations: int
    """Number of losses; each is a run of adjacent packets."""
    packets: int
    bytes_estimated: int
    """Estimate by the mean size of received packets; the size of a packet that never arrived is unknown."""
    longest: int
    """Length of the longest run of adjacent packets."""
    first_ns: int
    """Wall clock time of the first loss."""
    last_ns: int
    """Wall clock time of the last one."""
    first_sequence: int
    last_sequence: int
    is_live: bool
    """Whether the stream is still being received."""


def losses(snapshot: Snapshot) -> list[LossRow]:
    """Return all losses that the instances keep, latest first."""
    senders = {item.labels["stream"]: owner.name for owner, item in snapshot.of("tx_stream")}
    live = {(owner.incarnation, item.labels["stream"]) for owner, item in snapshot.of("rx_stream") if item.live}
    rows = [
        LossRow(
            instance=owner.name,
            stream=item.labels["stream"],
            cause=item.labels["cause"],
            transmitter=senders.get(item.labels["stream"]),
            source=item.info.get("source", ""),
            endpoint=item.info.get("endpoint", ""),
            observations=item.values.get("observations", 0),
            packets=item.values.get("packets", 0),
            bytes_estimated=item.values.get("bytes_estimated", 0),
            longest=item.values.get("longest", 0),
            first_ns=item.values.get("first_lost", 0),
            last_ns=item.values.get("last_lost", 0),
            first_sequence=item.values.get("first_sequence", 0),
            last_sequence=item.values.get("last_sequence", 0),
            is_live=(owner.incarnation, item.labels["stream"]) in live,
        )
        for owner, item in snapshot.of("loss")
        if item.values.get("packets", 0)
    ]
    return sorted(rows, key=lambda row: (-row.last_ns, row.instance, row.stream, row.cause))
