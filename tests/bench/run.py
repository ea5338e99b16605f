"""Measure the transport against what is under it and beside it, as ratios of neighbouring runs.

    python -m tests.bench.run --programs build/release/bench            every row: `make bench-peers`
    python -m tests.bench.run --programs build/release/bench --quick    some: `make bench`

Every round visits every row once, so a change of the machine hits all alike, and Ctrl-C leaves the rounds that were
done. Exit code: 0 when every row was measured, 1 when one could not be, 130 after Ctrl-C. Gates decide nothing here:
the table marks what missed them.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.bench import cases, report
from tests.bench.pairing import Contest, Record, Result, results, take_pair
from tests.bench.running import Runner

TOP = Path(__file__).resolve().parents[2]


def engine_options() -> set[str]:
    """Options of transmitters and receivers that the engine knows."""
    from heliograph.engine import catalogue

    return {name for name, option in catalogue.options().items() if {"transmitter", "receiver"} & set(option.on)}


def chosen(contests: Sequence[Contest], rows: str) -> list[Contest]:
    """The contests with a row whose name has one of the words, separated by commas; all when there are none."""
    words = [word.strip().lower() for word in rows.split(",") if word.strip()]
    return [c for c in contests if not words or any(word in row.name.lower() for row in c.rows for word in words)]


def measure(records: Sequence[Record], runner: Runner, pairs: int) -> bool:
    """Round after round until every record has its pairs or is given up. False when interrupted."""
    started, number = time.monotonic(), 0
    try:
        while any(record.is_open(pairs) for record in records):
            number += 1
            for place, record in enumerate(records, 1):
                if record.is_open(pairs):
                    contest = record.contest
                    told = f"round {number}, {place} of {len(records)}: {contest.rows[0].name}, {contest.size} B"
                    _tell(f"{time.monotonic() - started:4.0f} s  {told}")
                    take_pair(record, functools.partial(runner.measure, size=contest.size), runner.probe)
    except KeyboardInterrupt:
        _tell("interrupted: what was measured so far\n")
        return False
    _tell(f"{time.monotonic() - started:.0f} s\n")
    return True


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:<100}", end="", file=sys.stderr, flush=True)
    elif text.endswith("\n"):
        print(text, end="", file=sys.stderr, flush=True)


def write(rows: Sequence[Result], path: Path) -> None:
    """The rows as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Measure, print the table, write JSON, refresh RESULTS.md after a whole run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, required=True, help="folder of the built programs")
    parser.add_argument("--quick", action="store_true", help="only the rows that tell most")
    parser.add_argument("--rows", default="", help="only rows with one of these words, separated by commas")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of each row (default 5)")
    parser.add_argument("--seconds", type=float, default=0.7, help="length of each run (default 0.7)")
    parser.add_argument("--out", type=Path, default=TOP / "build/bench/peers.json")
    parser.add_argument("--results", type=Path, default=report.RESULTS, help="the file refreshed after a whole run")
    args = parser.parse_args()
    if args.pairs < 1 or args.seconds < 0.1:
        parser.error("--pairs takes 1 or more, --seconds 0.1 or more")
    options = engine_options()
    contests = chosen(cases.quick(options) if args.quick else cases.contests(options), args.rows)
    if not contests:
        parser.error(f'no row has "{args.rows}" in its name')
    records = [Record(contest) for contest in contests]
    with Runner(args.programs, args.seconds) as runner:
        is_whole = measure(records, runner, args.pairs)
    rows = [row for record in records for row in results(record, args.pairs)]
    facts = report.machine()
    print(report.table(rows))
    print("\n".join(["", "beside published figures:", "", *report.field_lines(rows, facts)]))
    write(rows, args.out)
    print(f"written to {args.out}")
    if is_whole and not args.quick and not args.rows:
        settings = f"{args.pairs} pairs of each row, {args.seconds:g} s each run, statistics at level 0 in a segment."
        probes = [probe for record in records for probe in record.probes]
        settings += f" {sum(record.dropped for record in records)} pairs were dropped because the host moved the cores."
        body = report.peers_section(rows, facts, probes, settings, report.reasons())
        report.put_section("peers", body, args.results)
        print(f"refreshed {args.results}")
    else:
        print("not a whole run: RESULTS.md stays as it is")
    if not is_whole:
        return 130
    return 0 if all(row.ratio is not None for row in rows) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
