"""Prints one line per snapshot, to show that data is flowing.

The line has the number of live nodes, the rates of sent and delivered messages and of NAKs since the previous line, and
the number of lost messages.
"""

from __future__ import annotations

import sys
from typing import TextIO

from heliograph.engine.catalogue.times import time_of_day
from heliograph.monitor.model import Health, Snapshot
from heliograph.monitor.rates import rates_between
from heliograph.monitor.text import printable

__all__ = ["ConsoleExporter"]


class ConsoleExporter:
    """Writes lines to a stream."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Prepare the exporter.

        Args:
            stream: Where to write; default: standard output.
        """
        self._stream = stream or sys.stdout
        self._older: Snapshot | None = None

    def publish(self, snapshot: Snapshot) -> None:
        """Write the line of this snapshot; the first line has no rates."""
        print(self._line(snapshot), file=self._stream, flush=True)
        self._older = snapshot

    def close(self) -> None:
        """Do nothing: no data is held, and the stream belongs to the caller."""

    def _line(self, snapshot: Snapshot) -> str:
        live = sum(instance.health is Health.LIVE for instance in snapshot.instances)
        others = [
            f"{printable(item.name)} {item.health}" for item in snapshot.instances if item.health is not Health.LIVE
        ]
        parts = [f"{time_of_day(snapshot.time_ns)}  {live} live" + (f" ({', '.join(others)})" if others else "")]
        if self._older is not None:
            parts += self._rates(self._older, snapshot)
        return "  ".join(parts)

    @staticmethod
    def _rates(older: Snapshot, newer: Snapshot) -> list[str]:
        per_second: dict[tuple[str, str], float] = {}
        lost = 0
        for rate in rates_between(older, newer):
            key = (rate.scope, rate.cell)
            per_second[key] = per_second.get(key, 0.0) + rate.per_second
            if rate.scope == "receiver" and rate.cell == "messages_lost":
                lost += rate.delta
        shown = (("sent", "messages_sent"), ("delivered", "messages_received"), ("NAKs", "naks_sent"))
        parts = [f"{title} {per_second.get(('instance', cell), 0.0):,.0f}/s" for title, cell in shown]
        return [*parts, f"lost {lost:,}"]
