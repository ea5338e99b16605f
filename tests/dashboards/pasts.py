"""A small latency history: six days of two topics, whose last day is slower for one of them."""

from __future__ import annotations

import random
from pathlib import Path

from heliograph.monitor.history.files import to_table, write_table
from heliograph.monitor.history.merge import merge
from tests.history.recordings import interval

__all__ = ["DAYS", "FAST", "SLOW", "keep_history"]

DAYS = 6
SLOW = "alpha | PRICES.A | receiver_total_latency"
FAST = "alpha | PRICES.B | receiver_total_latency"
_VALUES = 150
_NOON_TO_MIDNIGHT = 12 * 3600.0


def keep_history(folder: Path) -> Path:
    """Write the history; the values are the same every time."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(7)
    rows = []
    for topic in ("PRICES.A", "PRICES.B"):
        for hour in range(24 * DAYS):
            factor = 1.6 if topic == "PRICES.A" and hour >= 24 * (DAYS - 1) else 1.0
            busy = 1.3 if 8 <= hour % 24 < 17 else 1.0
            values = [int(20_000 * busy * factor * chance.lognormvariate(0.0, 0.3)) for _ in range(_VALUES)]
            at_s = _NOON_TO_MIDNIGHT + 3600.0 * hour
            rows.append(interval(values, at_s=at_s, seq=len(rows), topic=topic))
    write_table(folder / "a.parquet", merge(to_table(rows))[0])
    return folder
