"""What was lost for good, by stream and cause: kept by each instance after the stream is gone, as long as it runs.

Pure functions from a snapshot to rows. What came after all is no loss; how much first went missing is told by the
stream (statistic `gaps_detected`) while it is there.
"""

from __future__ import annotations

from dataclasses import dataclass

from heliograph.monitor.model import Snapshot

__all__ = ["LossRow", "losses"]


@dataclass(frozen=True, slots=True)
class LossRow:
    """The losses of one stream for one cause at one receiving instance."""

    instance: str
    stream: str
    cause: str
    """Why packets were given up: a value of `packets_lost` of an rx_stream."""
    transmitter: str | None
    """Name of the sending instance; None: it is not in reach."""
    source: str
    """Address the stream came from."""
    endpoint: str
    observations: int
    """Times neighbouring packets were given up."""
    packets: int
    bytes_estimated: int
    """By the mean of the packets that came; what never came has no known size."""
    longest: int
    """Most neighbouring packets given up at once."""
    first_ns: int
    """Wall clock time of the first loss."""
    last_ns: int
    """Wall clock time of the last one."""
    first_sequence: int
    last_sequence: int
    is_live: bool
    """The stream is still being received."""


def losses(snapshot: Snapshot) -> list[LossRow]:
    """All losses instances keep, the newest first."""
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
