"""The receivers that transmitters know, as ``heliograph ctl receivers`` lists them: read, never asked for."""

from __future__ import annotations

from collections.abc import Sequence

from heliograph.monitor.sources import ReceiverOfStream
from heliograph.monitor.text import count_text, duration_text, percent_text, table

__all__ = ["receiver_lines"]


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
        "CLASS",
        "TREATMENT",
        "LOSS",
        "LAG",
        "BUFFER",
        "RTT",
        "NAKS",
        "DATA LEFT",
        "HEARD",
    )
    rows = [
        (
            item.instance,
            item.stream,
            item.name or "-",
            item.receiver or "-",
            item.address,
            item.manner,
            item.treatment or "-",
            percent_text(item.loss),
            count_text(item.lag),
            percent_text(item.buffer_fill),
            duration_text(item.round_trip_ns or None),
            count_text(item.naks),
            duration_text(item.forecast_ns or None),
            f"{duration_text(item.silent_ns)} ago",
        )
        for item in found
    ]
    return table(head, rows, left=7)
