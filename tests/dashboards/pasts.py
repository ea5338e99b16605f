"""What pages show of the past: six days of latency of two topics, and decisions of congestion control."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path

from heliograph.engine import Instance
from heliograph.monitor.history.files import to_table, write_table
from heliograph.monitor.history.merge import merge
from heliograph.monitor.lab.whatif import whatif
from tests.history.recordings import interval
from tests.ports import free_port

__all__ = ["DAYS", "FAST", "SLOW", "keep_decisions", "keep_history"]

DAYS = 6
SLOW = "alpha | PRICES.A | receiver_total_latency"
FAST = "alpha | PRICES.B | receiver_total_latency"
_VALUES = 150
_NOON_TO_MIDNIGHT = 12 * 3600.0


def keep_history(folder: Path) -> Path:
    """Write the history. The last day is slower for one topic; the values are the same every time."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(7)
    rows = []
    for topic in ("PRICES.A", "PRICES.B"):
        for hour in range(24 * DAYS):
            factor = 1.6 if topic == "PRICES.A" and hour >= 24 * (DAYS - 1) else 1.0
            busy = 1.3 if 8 <= hour % 24 < 17 else 1.0
            values = [int(20_000 * busy * factor * chance.lognormvariate(0.0, 0.3)) for _ in range(_VALUES)]
            at_s = _NOON_TO_MIDNIGHT + 3600.0 * hour
            rows.append(replace(interval(values, at_s=at_s, seq=len(rows), topic=topic), len_ms=3_600_000))
    write_table(folder / "a.parquet", merge(to_table(rows))[0])
    return folder


def keep_decisions(folder: Path) -> Path:
    """Record the decisions of a source with a dynamic rate, whose receiver loses a tenth; returns the log."""
    endpoint = f"rmm+unicast://127.0.0.1:{free_port()}"
    with (
        Instance(name="feed", decision_log=str(folder), decision_log_bytes=1 << 20) as feed,
        Instance(name="desk") as desk,
        desk.receiver(endpoint, "PRICES", inject_loss=0.1) as receiver,
        feed.transmitter(
            endpoint, "PRICES", rate_policy="dynamic", rate=20_000_000, report_interval=0.02, slow_mode="enforce"
        ) as transmitter,
    ):
        end = time.monotonic() + 30
        (path,) = folder.glob("*.decisions")
        while time.monotonic() < end:
            for _ in range(50):
                transmitter.send(b"x" * 1000, timeout=10)
            receiver.receive(limit=1000)
            if whatif(path, {}).recorded.lowered >= 2:
                break
    return path
