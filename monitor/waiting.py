"""Why the data of a sent stream waits: the share of the time, by reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from heliograph.monitor.joining import Interval
from heliograph.monitor.model import InstanceState, ObjectState

__all__ = ["REST", "WAITS", "waits"]

REST = "not divided"
"""The part of a time that nothing measured contains."""
WAITS: Mapping[str, str] = {
    "rate": "for the rate of the stream",
    "instance_rate": "for the rate of the instance",
    "window": "for a window of receivers, or of PGMCC",
    "credit": "for credit of receivers",
    "repairs": "for repairs, which are sent first",
    "history": "for acknowledgements: the history is full",
    "room": "for room in the channel",
    REST: "for the rate, for repairs or for a window",
}
"""Reasons for which data waits to be sent, and their descriptions."""


def waits(
    interval: Interval, owner: InstanceState, item: ObjectState, topics: Iterable[ObjectState]
) -> dict[str, float]:
    """Return the share of the interval that data waited, 0 to 1, by reason; reasons without a wait are absent.

    Args:
        interval: The interval.
        owner: The sending instance.
        item: The stream, a tx_stream.
        topics: The transmitters of the stream.
    """
    found = {name: interval.rate(owner, item, f"wait_time_{name}") / 1e9 for name in WAITS}
    divided = sum(found[name] for name in ("rate", "repairs", "window"))
    found[REST] = interval.rate(owner, item, "rate_limited_time") / 1e9 if not divided else 0.0
    found["credit"] = max((interval.rate(owner, topic, "credit_wait_time") / 1e9 for topic in topics), default=0.0)
    return {name: min(1.0, share) for name in WAITS if (share := found[name]) > 0}
