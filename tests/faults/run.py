"""Fault runs: everything is killed, stopped and started again at random points, and must come back by itself.

    python -m tests.faults.run --faults 200 --rollups 20 --seed 11

After each fault: what was acknowledged is there, the books have no residual, outputs are fresh again, and nobody is
left behind. Houses run side by side, each case in one of its own. Exit code: 0 when all that holds, 1 otherwise.
Ctrl-C leaves nothing behind.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import report
from tests.faults import places, rollup
from tests.faults.cases import CASES, Case, logs
from tests.faults.house import DEADLINE_SECONDS, House

FAULTS = ("kill", "stop", "restart")
STOP_SECONDS = (0.02, 0.4)
ROWS_AT_LEAST = 200
"""Runs below this are not written down."""


@dataclass(slots=True)
class Row:
    """What came of one fault at one component."""

    component: str
    fault: str
    runs: int = 0
    recovered: int = 0
    longest: float = 0.0
    """Seconds to recover."""
    lost: int | None = None
    """None: the component acknowledges nothing."""
    residual: int | None = None
    """None: no books are kept there."""
    notes: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Nothing lost, nothing left open."""
        return self.recovered == self.runs and not self.lost and not self.residual and not self.notes


class Stopped(Exception):
    """Somebody pressed Ctrl-C."""


def strike(case: Case, fault: str, chance: random.Random) -> str:
    """Do it to the victim; what was wrong with that, or nothing."""
    victim = case.house.child(case.victim)
    if fault == "stop":
        victim.send_signal(signal.SIGSTOP)
        time.sleep(chance.uniform(*STOP_SECONDS))
        case.mark()
        victim.send_signal(signal.SIGCONT)
        return ""
    code = case.house.end(case.victim, signal.SIGKILL if fault == "kill" else signal.SIGTERM)
    case.mark()
    case.start()
    return "" if fault == "kill" or code == 0 else f"it ended with status {code} at SIGTERM"


def run_case(component: str, folder: Path, faults: int, seed: int, stop: threading.Event) -> list[Row]:
    """All faults of one component, in a random order.

    Raises:
        Stopped: The event was set.
        RuntimeError: It does not even start.
    """
    chance = random.Random(f"{seed} {component}")
    rows = {fault: Row(component, fault) for fault in FAULTS}
    plan = [fault for fault in FAULTS for _ in range(faults)]
    chance.shuffle(plan)
    with House(folder) as house:
        case = CASES[component](house)
        try:
            for number, fault in enumerate(plan):
                one_fault(case, rows[fault], chance, stop)
                if (number + 1) % 25 == 0:
                    print(f"  {component}: {number + 1} of {len(plan)}", flush=True)
            rows[FAULTS[0]].notes += aftermath(case)
            print(f"  {component}: done", flush=True)
        finally:
            case.close()
    return list(rows.values())


def one_fault(case: Case, row: Row, chance: random.Random, stop: threading.Event) -> None:
    """One fault, and all that must hold after it."""
    if stop.wait(chance.uniform(0.0, 0.2)):
        raise Stopped
    row.runs += 1
    notes = [strike(case, row.fault, chance)]
    began = time.monotonic()
    while not case.is_well() and time.monotonic() - began < DEADLINE_SECONDS:
        if stop.wait(0.01):
            raise Stopped
    took = time.monotonic() - began
    if took < DEADLINE_SECONDS:
        row.recovered += 1
        notes.append(case.complaint())
    else:
        notes.append(f"not well after {took:.0f} s: {case.why()}\n{logs(case.house.folder)}")
    row.longest = max(row.longest, took)
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
    end = time.monotonic() + 10.0
    while (left := case.house.survivors()) and time.monotonic() < end:
        time.sleep(0.05)
    if left:
        found.append(f"processes left: {left}")
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
    parser.add_argument("--only", default="", help="components whose name has this in it")
    parser.add_argument("--results", type=Path, default=report.RESULTS, help="the file refreshed")
    args = parser.parse_args()
    seed = random.SystemRandom().getrandbits(32) if args.seed is None else args.seed
    print(f"faults: seed {seed}, {args.faults} of each kind", flush=True)
    began = time.monotonic()
    rows, skipped = run_all(args.faults, args.rollups, seed, args.only)
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
        text = [f"## Fault runs\n\n{report.machine()['date']}, {minutes:.0f} minutes, seed {seed}.\n", *lines, ""]
        text += [f"- acknowledged, {name}: {what}" for name, what in accounts.items()]
        text += [f"- {note}" for note in [*places.REMARKS, *rollup.REMARKS, *(f"skipped: {note}" for note in skipped)]]
        report.put_section("faults", "\n".join(text), args.results)
        print(f"refreshed {args.results}")
    return 0 if good else 1


def run_all(faults: int, rollups: int, seed: int, only: str) -> tuple[list[Row], list[str]]:
    """Every case, some side by side; what was skipped and why."""
    stop = threading.Event()
    folder = Path(tempfile.mkdtemp(prefix="heliograph-faults-"))
    rows: list[Row] = []
    skipped: list[str] = []
    names = [name for name in CASES if only in name]
    pool = ThreadPoolExecutor(3)
    try:
        found = [
            pool.submit(run_case, name, folder / f"house-{number}", faults, seed, stop)
            for number, name in enumerate(names)
        ]
        for one in found:
            rows += one.result()
        for made, why in (places.rows(folder, faults, seed, only), rollup.rows(folder, rollups, seed, only)):
            rows += [Row(**fields) for fields in made]
            skipped += why
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
        shutil.rmtree(folder, ignore_errors=True)
    return rows, skipped


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
