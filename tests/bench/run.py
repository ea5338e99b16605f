"""Compare the transport with the bare sockets under it, as ratios.

The machine under a virtual machine moves 2-4x between minutes, so absolute figures of different minutes cannot be
compared.  Each round runs A, B, B, A back to back (A Heliograph, B raw sockets) and gives two ratios of neighbours; the
table shows their median and range.

    python tests/bench/run.py --binary build/release/transport [--pairs 5] [--seconds 1]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Case:
    """One figure to compare, and which way is better."""

    name: str
    what: str
    figure: str
    size: int
    better: str


@dataclass(frozen=True, slots=True)
class Result:
    """A case's figures: medians of both sides and the paired ratios."""

    name: str
    size: int
    ours: float
    reference: float
    ratio: float
    low: float
    high: float
    better: str


CASES = [
    Case(f"multicast {label}", what, figure, size, better)
    for size in (64, 1024)
    for label, what, figure, better in (
        ("p50 latency / raw", "latency", "p50_ns", "lower"),
        ("p99 latency / raw", "latency", "p99_ns", "lower"),
        ("messages/s / raw packed sendmmsg", "throughput", "messages_per_second", "higher"),
    )
]


def measure(binary: Path, what: str, transport: str, size: int, seconds: float) -> dict[str, float]:
    """Run the program once; raises CalledProcessError when it fails."""
    command = [str(binary), what, transport, "--size", str(size), "--seconds", str(seconds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=seconds + 30)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def compare(binary: Path, what: str, size: int, pairs: int, seconds: float) -> list[tuple[dict[str, float], ...]]:
    """Pairs of (ours, ours, raw, raw) figures, each measured A, B, B, A."""
    rounds = []
    for number in range(pairs):
        print(f"\r{what} {size} B: pair {number + 1} of {pairs}   ", end="", file=sys.stderr, flush=True)
        a1, b1, b2, a2 = (
            measure(binary, what, transport, size, seconds) for transport in ("heliograph", "raw", "raw", "heliograph")
        )
        rounds.append((a1, a2, b1, b2))
    return rounds


def result(case: Case, rounds: Sequence[tuple[dict[str, float], ...]]) -> Result:
    """Median of the paired ratios of one figure."""
    ours = [a[case.figure] for a1, a2, _, _ in rounds for a in (a1, a2)]
    raw = [b[case.figure] for _, _, b1, b2 in rounds for b in (b1, b2)]
    ratios = [a / b for a, b in zip(ours, raw, strict=True)]
    return Result(
        case.name,
        case.size,
        statistics.median(ours),
        statistics.median(raw),
        round(statistics.median(ratios), 3),
        round(min(ratios), 3),
        round(max(ratios), 3),
        case.better,
    )


def main() -> int:
    """Measure every case, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True, help="the built tests/bench/transport program")
    parser.add_argument("--pairs", type=int, default=5, help="A,B,B,A rounds per case (default 5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of each run (default 1)")
    parser.add_argument("--out", type=Path, default=Path("build/bench/transport.json"))
    args = parser.parse_args()
    results = []
    for what, size in dict.fromkeys((case.what, case.size) for case in CASES):
        rounds = compare(args.binary, what, size, args.pairs, args.seconds)
        results += [result(case, rounds) for case in CASES if (case.what, case.size) == (what, size)]
    print(file=sys.stderr)
    print(f"{'what':<48} {'size':>5} {'ours':>14} {'raw':>14} {'ratio':>7}  range")
    for row in results:
        print(
            f"{row.name:<48} {row.size:>5} {row.ours:>14,.0f} {row.reference:>14,.0f} {row.ratio:>7}  "
            f"{row.low} to {row.high} ({row.better} is better)"
        )
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps([asdict(row) for row in results], indent=1) + "\n")
    print(f"written to {args.out}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
