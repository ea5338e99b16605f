"""Fault runs: everything is killed, stopped and started again at random points, and must come back by itself.

    python -m tests.faults.run --faults 200 --rollups 20 --seed 11

After each fault: what was acknowledged is there, the books have no residual, outputs are fresh again, and nobody is
left behind. Houses run side by side, each case in one of its own. Exit code: 0 when all that holds, 1 otherwise.
Ctrl-C leaves nothing behind.
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Protocol

from tests.bench import report
from tests.faults import places, rollup
from tests.faults.cases import CASES, Case, logs
from tests.faults.house import DEADLINE_SECONDS, House
from tests.faults.row import Row, Skipped

FAULTS = ("kill", "stop", "restart")
STOP_SECONDS = (0.02, 0.4)
SIDE_BY_SIDE = 4
WAIT_SECONDS = 0.2
ROWS_AT_LEAST = 200
"""Runs below this are not written down."""


class _Part(Protocol):
    def __call__(self, *, seconds: float) -> list[Row]:
        """Its rows; it begins nothing after so many seconds."""


def strike(case: Case, fault: str, chance: random.Random) -> str:
    """Do it to the victim; what was wrong with that, or nothing."""
    victim = case.house.child(case.victim)
    if fault == "stop":
        victim.send_signal(signal.SIGSTOP)
        try:
            case.house.sleep(chance.uniform(*STOP_SECONDS))
            case.mark()
        finally:
            victim.send_signal(signal.SIGCONT)
        return ""
    case.kills += fault == "kill"
    code = case.house.end(case.victim, signal.SIGKILL if fault == "kill" else signal.SIGTERM)
    case.mark()
    case.start()
    return "" if fault == "kill" or code == 0 else f"it ended with status {code} at SIGTERM"


def run_case(
    component: str, folder: Path, faults: int, seed: int, stop: threading.Event, seconds: float = math.inf
) -> list[Row]:
    """All faults of one component, in a random order; fewer when the time does not suffice.

    Raises:
        Stopped: The event was set.
        RuntimeError: It does not even start.
    """
    end = time.monotonic() + seconds
    chance = random.Random(f"{seed} {component}")
    rows = {fault: Row(component, fault) for fault in FAULTS}
    with House(folder, stop) as house:
        case = CASES[component](house)
        try:
            for number in range(faults):
                if time.monotonic() >= end:
                    break
                for fault in chance.sample(FAULTS, len(FAULTS)):
                    one_fault(case, rows[fault], chance)
                if (number + 1) % 10 == 0:
                    print(f"  {component}: {number + 1} of {faults}", flush=True)
            rows[FAULTS[0]].notes += case.at_rest()
            rows[FAULTS[0]].notes += aftermath(case)
            if case.accounts_for:
                rows[FAULTS[0]].lost = max(rows[FAULTS[0]].lost or 0, case.lost())
            print(f"  {component}: done", flush=True)
        finally:
            case.close()
    return list(rows.values())


def one_fault(case: Case, row: Row, chance: random.Random) -> None:
    """One fault, and all that must hold after it."""
    case.house.sleep(chance.uniform(0.0, 0.2))
    row.runs += 1
    notes = [strike(case, row.fault, chance)]
    took = case.house.until(case.is_well)
    if took is None:
        notes.append(f"not well after {DEADLINE_SECONDS:.0f} s: {case.why()}\n{logs(case.house.folder)}")
    else:
        row.recovered += 1
        row.longest = max(row.longest, took)
        notes.append(case.complaint())
    if case.accounts_for:
        row.lost = max(row.lost or 0, case.lost())
    row.residual = max(row.residual or 0, case.residual())
    row.notes += [note for note in notes if note]


def aftermath(case: Case) -> list[str]:
    """Everything ends in order, and nothing is left."""
    found = []
    for name in case.house.names():
        if name != "visitor" and case.house.child(name).poll() is None:
            code = case.house.end(name)
            if code != 0:
                found.append(f"{name} ended with status {code}")
    if case.house.until(lambda: not case.house.survivors(), 10.0) is None:
        found.append(f"processes left: {case.house.survivors()}")
    return found


def table(rows: Sequence[Row]) -> list[str]:
    """The rows, for Markdown and for people."""
    lines = [
        "| component | fault | runs | recovered | longest, s | lost acknowledged | books residual |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        lost, residual = ("-" if value is None else str(value) for value in (row.lost, row.residual))
        times = f"{row.longest:.2f}" if row.runs else "-"
        lines.append(
            f"| {row.component} | {row.fault} | {row.runs} | {row.recovered} | {times} | {lost} | {residual} |"
        )
    return lines


def main() -> int:
    """Run, print the table; a run of full length refreshes RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=200, help="of each kind at each component (default 200)")
    parser.add_argument("--rollups", type=int, default=20, help="roll-ups with Spark that are killed (default 20)")
    parser.add_argument("--seed", type=int, default=None, help="default: another every time")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no fault later (default: no limit)")
    parser.add_argument("--only", default="", help="components whose name has this in it")
    parser.add_argument("--results", type=Path, default=report.RESULTS, help="the file refreshed")
    args = parser.parse_args()
    seed = random.SystemRandom().getrandbits(32) if args.seed is None else args.seed
    print(f"faults: seed {seed}, {args.faults} of each kind", flush=True)
    began = time.monotonic()
    rows, skipped = run_all(args.faults, args.rollups, seed, args.only, args.minutes)
    minutes = (time.monotonic() - began) / 60
    lines = table(rows)
    print("\n".join(lines))
    for row in rows:
        for note in row.notes[:3]:
            print(f"{row.component}, {row.fault}: {note}")
    for note in skipped:
        print(f"skipped: {note}")
    good = all(row.is_good for row in rows)
    print(f"{minutes:.1f} minutes. {'Nothing was lost.' if good else 'LOST, OR NOT RECOVERED.'} (seed {seed})")
    if args.faults >= ROWS_AT_LEAST and not args.only:
        accounts = {name: case.accounts_for for name, case in CASES.items() if case.accounts_for}
        asked = f"{args.faults} of each kind asked for"
        asked += "" if math.isinf(args.minutes) else f", as many as fit into {args.minutes:g} minutes"
        text = [f"## Fault runs\n\n{report.machine()['date']}, {minutes:.0f} minutes, seed {seed}; {asked}.\n"]
        text += [*lines, "", *(f"- {row.component}, {row.fault}: {note}" for row in rows for note in row.notes[:3])]
        text += [f"- acknowledged, {name}: {what}" for name, what in accounts.items()]
        text += [f"- {note}" for note in [*places.REMARKS, *rollup.REMARKS, *(f"skipped: {note}" for note in skipped)]]
        report.put_section("faults", "\n".join(text), args.results)
        print(f"refreshed {args.results}")
    return 0 if good else 1


def run_all(faults: int, rollups: int, seed: int, only: str, minutes: float = math.inf) -> tuple[list[Row], list[str]]:
    """Every part, some side by side; what was skipped and why."""
    stop = threading.Event()
    folder = Path(tempfile.mkdtemp(prefix="heliograph-faults-"))
    parts: list[_Part] = [rollup.part(folder / "rollup", rollups, seed, stop)] if only in rollup.NAME else []
    parts += [
        partial(run_case, name, folder / f"house-{number}", faults, seed, stop)
        for number, name in enumerate(CASES)
        if only in name
    ]
    parts += [
        partial(part, folder / name.replace(" ", "-"), faults, seed, stop)
        for name, part in places.PARTS.items()
        if only in name
    ]
    share = _Share(len(parts), minutes)
    pool = ThreadPoolExecutor(SIDE_BY_SIDE)
    rows: list[Row] = []
    skipped: list[str] = []
    try:
        for one in [pool.submit(share.run, part) for part in parts]:
            try:
                rows += _result(one)
            except Skipped as error:
                skipped.append(str(error))
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
        shutil.rmtree(folder, ignore_errors=True)
    order = {name: place for place, name in enumerate(CASES)}
    return sorted(rows, key=lambda row: order.get(row.component, len(order))), skipped


def _result(one: Future[list[Row]]) -> list[Row]:
    """Its rows, waited for in short steps: a signal that arrives just before a wait without end does not end it."""
    while not one.done():
        wait([one], timeout=WAIT_SECONDS)
    return one.result()


class _Share:
    """Divides the time among the parts that have not begun."""

    def __init__(self, parts: int, minutes: float) -> None:
        self._left = parts
        self._end = time.monotonic() + 60 * minutes
        self._lock = threading.Lock()

    def run(self, part: _Part) -> list[Row]:
        with self._lock:
            seconds = max(0.0, self._end - time.monotonic()) * min(1.0, SIDE_BY_SIDE / self._left)
            self._left -= 1
        return part(seconds=seconds)


def _interrupted(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGINT, _interrupted)  # a shell that starts it in the background has it ignored
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
