"""The cause of late messages: the host, the network, or the transport and the application.

Three records are compared. The latency histogram of a receiver shows how late its latest messages were. The hiccup
histogram of a host shows the share of time in which no process could run (`host_hiccup`; it is filled as in Gil Tene's
jHiccup, so that a share of its values is a share of time). The count of recovered messages shows how many waited for a
repair. Messages are sent all the time. A host that stops for longer than x in a thousandth of the time therefore delays
about a thousandth of the messages by more than x. This makes the records comparable without a time threshold:

- ``tail`` is p99.9 - p50 of the latency: the extra delay of one message in a thousand.
- The *host* explains the tail when hiccups of at least half its length took at least half of that thousandth of the
  time. (Half its length, because a hiccup is measured short by up to its sleep, and is rarely alone.)
- The *network* explains it when at least half as many messages waited for repairs, and the host does not explain it.
- Otherwise the *transport* or the application is the cause: queues, batches, the rate, a slow callback.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from heliograph.monitor.latency import filled_bounds, percentiles
from heliograph.monitor.model import Histogram

__all__ = ["LEAST_MESSAGES", "Blame", "Verdict", "blame", "share_above"]

TAIL = 0.001
"""Share of the messages whose delay is explained."""
EXPLAINS = 0.5
"""Part of the tail that a cause must explain."""
LEAST_MESSAGES = 1000
"""With fewer messages, one in a thousand has no meaning."""


class Blame(StrEnum):
    """The cause of the latest messages."""

    NOBODY = "nobody"  # too few messages
    HOST = "host"
    NETWORK = "network"
    TRANSPORT = "transport"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The cause and its evidence."""

    blame: Blame
    tail_ns: int
    """p99.9 - p50 of the latency."""
    host_share: float
    """Share of the time, 0 to 1, in hiccups longer than half the tail, on the worst of the two hosts."""
    recovered_share: float
    """Share of the messages, 0 to 1, that were repaired."""
    reason: str


def share_above(histogram: Histogram, value_ns: int) -> float:
    """Share of the values, 0 to 1, in cells entirely above a value; 0.0 when there are no values."""
    total = histogram.count + histogram.above
    if total == 0:
        return 0.0
    lower, _, counts = filled_bounds(histogram)
    first = int(np.searchsorted(lower, np.uint64(max(0, value_ns)), side="right"))
    return (int(counts[first:].sum()) + histogram.above) / total


def blame(latency: Histogram | None, hiccups: Iterable[Histogram | None], recovered: int) -> Verdict:
    """Judge one receiver over an interval.

    Args:
        latency: Its total latency in the interval (`Histogram.minus`); None when there are no values.
        hiccups: Host hiccups in the same interval, of the receiver's and the sender's host where known.
        recovered: Messages delivered in the interval whose packet had been missing.
    """
    count = latency.count if latency is not None else 0
    if latency is None or count < LEAST_MESSAGES:
        return Verdict(Blame.NOBODY, 0, 0.0, 0.0, f"{count} messages are too few for p99.9")
    late, usual = percentiles(latency, [1 - TAIL, 0.5])
    tail = late - usual
    host = max((share_above(found, int(tail * EXPLAINS)) for found in hiccups if found is not None), default=0.0)
    lost = recovered / count
    amount = f"one message in a thousand was {tail / 1e6:.3f} ms later than the median"
    if host >= TAIL * EXPLAINS:
        reason = f"{amount}; for {host:.2%} of the time the host stopped all processes for at least half as long"
        return Verdict(Blame.HOST, tail, host, lost, reason)
    if lost >= TAIL * EXPLAINS:
        reason = f"{amount}; {lost:.2%} of the messages were repaired; the host did not stop for half as long"
        return Verdict(Blame.NETWORK, tail, host, lost, reason)
    reason = f"{amount}; neither the host nor losses explain it: check queues, rate, batches and callbacks"
    return Verdict(Blame.TRANSPORT, tail, host, lost, reason)
