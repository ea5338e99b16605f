"""The roll-up with Spark, killed at random points: the next run gives the same hours as one that nobody disturbed."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Any

from tests.faults.house import House, until

__all__ = ["REMARKS", "rows"]

REMARKS = [
    "the roll-up (Spark) is killed fewer times than the others: one run takes many seconds; what feeds it "
    "(spool writer, log) is killed as often as everything else",
]
_HOUR_NS = 3_600_000_000_000
_START_NS = 1_763_726_400_000_000_000


def make_spool(folder: Path) -> int:
    """Three hours of histograms; how many intervals."""
    import numpy as np

    from heliograph.monitor import _hdr
    from heliograph.monitor.history.files import write_spool
    from heliograph.monitor.history.schema import LatencyInterval

    counts = np.zeros(_hdr.cells(1, 1, 1_000_000), np.uint64)
    counts[5] = 100
    payload = _hdr.encode(counts, 1, 1, 1_000_000)
    made = [
        LatencyInterval(
            ts_ns=_START_NS + hour * _HOUR_NS + number * 10_000_000_000, len_ms=10_000, instance="a",
            topic="T", stream="s", metric="receiver_total_latency", tag="", digits=1, lowest=1, highest=1_000_000,
            n=100, min=5, max=5, sum=500,
            dropped=0, source="0123456789abcdef", seq=hour * 100 + number, incarnation="", h=payload,
        )
        for hour in range(3)
        for number in range(50)
    ]  # fmt: skip
    for number in range(0, len(made), 30):
        write_spool(folder, made[number : number + 30], "0123456789abcdef", number)
    return len(made)


def _content(history: Path) -> list[tuple[Any, ...]]:
    from heliograph.monitor.history.files import read_history

    if not history.is_dir():
        return []
    table, _ = read_history(history)
    return sorted(tuple(row.values()) for row in table.select(["ts", "topic", "intervals", "n"]).to_pylist())


def _run(house: House, spool: Path, history: Path) -> None:
    house.heliograph("rollup", "history", "rollup", "--spool", spool, "--history", history, "--master", "local[1]")


def rows(folder: Path, rollups: int, seed: int, only: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Kill so many, each followed by one that is left alone; the fields of the row, and what was skipped."""
    if only not in "roll-up (Spark)" or rollups <= 0:
        return [], ["the roll-up: not asked for"] if rollups <= 0 else []
    chance = random.Random(f"{seed} rollup")
    runs = recovered = lost = 0
    longest = 0.0
    notes: list[str] = []
    with House(folder / "rollup") as house:
        spool, history = house.folder / "spool", house.folder / "history"
        intervals = make_spool(spool)
        began = time.monotonic()
        _run(house, spool, history)
        if house.child("rollup").wait(300) != 0:
            return [], [f"the roll-up does not run here: {house.last_words('rollup')[-300:]}"]
        usual = time.monotonic() - began
        good = _content(history)
        assert sum(row[2] for row in good) == intervals
        while runs < rollups:
            runs += 1
            _run(house, spool, history)
            time.sleep(chance.uniform(0.0, usual))
            house.end("rollup", signal.SIGKILL)
            if until(lambda: not house.survivors(), 30.0) is None:
                notes.append(f"processes left 30 s after the kill: {house.survivors()}")
            began = time.monotonic()
            _run(house, spool, history)
            status = house.child("rollup").wait(300)
            longest = max(longest, time.monotonic() - began)
            now = _content(history)
            lost += sum(row[2] for row in good) - sum(row[2] for row in now)
            left = [path.name for path in history.iterdir() if path.name.startswith((".tmp-", ".old-"))]
            recovered += status == 0 and now == good and not left
            notes += [f"left in the history: {left}"] if left else []
            print(f"  roll-up (Spark): {runs} of {rollups}", flush=True)
    fields = {"runs": runs, "recovered": recovered, "longest": longest, "lost": lost, "notes": notes}
    return [{"component": "roll-up (Spark)", "fault": "kill", **fields}], []
