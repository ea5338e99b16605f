"""The roll-up with Spark, killed at random points: the next run gives the same hours as one that nobody disturbed."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.faults.house import House
from tests.faults.row import Row, Skipped

__all__ = ["NAME", "REMARKS", "part"]

NAME = "roll-up (Spark)"

REMARKS = [
    "the roll-up (Spark) is killed fewer times than the others (default 20): each is a run of many seconds, then one "
    "that is left alone and must give the hours of an undisturbed run; `longest` is that second run as a whole",
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
            topic="T", stream="s", metric="receiver_total_latency", tag="",
            host="", build="", link="", incarnation="", level="", digits=1, lowest=1, highest=1_000_000,
            n=100, min=5, max=5, sum=500,
            dropped=0, clock_error_ns=0, source="0123456789abcdef", seq=hour * 100 + number, h=payload,
        )
        for hour in range(3)
        for number in range(50)
    ]  # fmt: skip
    for number in range(0, len(made), 30):
        write_spool(folder, made[number : number + 30], "0123456789abcdef", number)
    return len(made)


def _content(history: Path) -> list[tuple[Any, ...]]:
    from heliograph.monitor.history.hours import read_history

    if not history.is_dir():
        return []
    table, _ = read_history(history)
    return sorted(tuple(row.values()) for row in table.select(["ts", "topic", "intervals", "n"]).to_pylist())


def _run(house: House, spool: Path, history: Path) -> None:
    house.heliograph("rollup", "history", "rollup", "--spool", spool, "--history", history, "--master", "local[1]")


def _finished(house: House) -> int | None:
    process = house.child("rollup")
    house.until(lambda: process.poll() is not None, 300.0)
    return process.poll()


def part(folder: Path, rollups: int, seed: int, stop: threading.Event) -> Callable[..., list[Row]]:
    """Kill so many, each followed by one that is left alone."""
    return partial(_rows, folder, rollups, seed, stop)


def _rows(folder: Path, rollups: int, seed: int, stop: threading.Event, *, seconds: float) -> list[Row]:
    if rollups <= 0:
        raise Skipped(f"{NAME}: not asked for")
    end = time.monotonic() + seconds
    chance = random.Random(f"{seed} rollup")
    row = Row(NAME, "kill", lost=0)
    with House(folder, stop) as house:
        spool, history, temporary = house.folder / "spool", house.folder / "history", house.folder / "tmp"
        temporary.mkdir()
        # A killed Spark leaves its folders: here they go with the house.
        java = f"-Djava.io.tmpdir={temporary} -XX:-UsePerfData"
        house.environment = {"TMPDIR": str(temporary), "JAVA_TOOL_OPTIONS": java}
        intervals = make_spool(spool)
        began = time.monotonic()
        _run(house, spool, history)
        if _finished(house) != 0:
            raise Skipped(f"{NAME}: it does not run here: {house.last_words('rollup')[-300:]}")
        usual = time.monotonic() - began
        good = _content(history)
        if sum(hour[2] for hour in good) != intervals:
            row.notes.append(f"{sum(hour[2] for hour in good)} of {intervals} intervals are in the history")
        while row.runs < rollups and time.monotonic() < end:
            row.runs += 1
            _run(house, spool, history)
            house.sleep(chance.uniform(0.0, usual))
            house.end("rollup", signal.SIGKILL)
            if house.until(lambda: not house.survivors(), 30.0) is None:
                row.notes.append(f"processes left 30 s after the kill: {house.survivors()}")
            began = time.monotonic()
            _run(house, spool, history)
            status = _finished(house)
            row.longest = max(row.longest, time.monotonic() - began)
            now = _content(history)
            row.lost = (row.lost or 0) + sum(hour[2] for hour in good) - sum(hour[2] for hour in now)
            left = [path.name for path in history.iterdir() if path.name.startswith((".run-", ".merged-"))]
            row.recovered += status == 0 and now == good
            row.notes += [f"left in the history: {left}"] if left else []
            print(f"  {NAME}: {row.runs} of {rollups}", flush=True)
    return [row]
