"""Whose fault a late message was: the host's, the network's, or the transport's and the application's own.

Three records meet here. The latency histogram of a receiver says how late its latest messages were; the hiccup
histogram of a host says for which share of the time nothing could run there, however short or long (`host_hiccup`,
filled in as Gil Tene's jHiccup does, so a share of its values is a share of time); the count of recovered messages
says how many waited for a repair. Messages are sent all the time, so a host that stood still for a thousandth of the
time longer than x delays about a thousandth of the messages by more than x. That makes the records comparable without
any threshold of time:

- ``tail`` is p99.9 - p50 of the latency: how much later than usual one message in a thousand came.
- The *host* explains the tail when hiccups of at least half its length took at least half of that thousandth of the
  time. (Half its length, as a hiccup is measured short by up to the sleep it began in, and seldom comes alone.)
- The *network* explains it when at least half as many messages waited for repairs, and the host does not.
- Else it was the *transport* or the application: queues, batches, the rate, a slow callback.
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
"""Share of the messages whose lateness is explained."""
EXPLAINS = 0.5
"""Part of the tail that a cause must account for."""
LEAST_MESSAGES = 1000
"""With fewer there is no message in a thousand to speak of."""


class Blame(StrEnum):
    """Who made the latest messages late."""

    NOBODY = "nobody"  # too few messages to say
    HOST = "host"
    NETWORK = "network"
    TRANSPORT = "transport"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who, and why."""

    blame: Blame
    tail_ns: int
    """p99.9 - p50 of the latency."""
    host_share: float
    """Share of the time, 0 to 1, that hiccups longer than half the tail took on the worst host concerned."""
    recovered_share: float
    """Share of the messages, 0 to 1, that had to be sent again."""
    reason: str


def share_above(histogram: Histogram, value_ns: int) -> float:
    """Share of the values, 0 to 1, in cells that lie wholly above a value; 0.0 when there are none at all."""
    total = histogram.count + histogram.above
    if total == 0:
        return 0.0
    lower, _, counts = filled_bounds(histogram)
    first = int(np.searchsorted(lower, np.uint64(max(0, value_ns)), side="right"))
    return (int(counts[first:].sum()) + histogram.above) / total


def blame(latency: Histogram | None, hiccups: Iterable[Histogram | None], recovered: int) -> Verdict:
    """Judge one receiver over an interval.

    Args:
        latency: Its total latency in the interval (`Histogram.minus`); None when nothing was counted.
        hiccups: Host hiccups in the same interval, of the receiver's host and of the sender's as far as they are known.
        recovered: Messages delivered in the interval whose packet had been missing.
    """
    count = latency.count if latency is not None else 0
    if latency is None or count < LEAST_MESSAGES:
        return Verdict(Blame.NOBODY, 0, 0.0, 0.0, f"{count} messages are too few to speak of one in a thousand")
    late, usual = percentiles(latency, [1 - TAIL, 0.5])
    tail = late - usual
    host = max((share_above(found, int(tail * EXPLAINS)) for found in hiccups if found is not None), default=0.0)
    lost = recovered / count
    amount = f"one message in a thousand was {tail / 1e6:.3f} ms later than usual"
    if host >= TAIL * EXPLAINS:
        reason = f"{amount}, and for {host:.2%} of the time the host kept everything waiting for half as long or longer"
        return Verdict(Blame.HOST, tail, host, lost, reason)
    if lost >= TAIL * EXPLAINS:
        reason = f"{amount}, and {lost:.2%} of the messages were sent again; the host kept nobody waiting half as long"
        return Verdict(Blame.NETWORK, tail, host, lost, reason)
    reason = f"{amount}; neither the host nor losses explain it: look at queues, rate, batches and callbacks"
    return Verdict(Blame.TRANSPORT, tail, host, lost, reason)
