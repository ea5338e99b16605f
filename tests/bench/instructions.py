"""Instructions per message at each level of detail of the statistics, and of one call, counted by callgrind.

    python -m tests.bench.instructions --programs build/release/bench

Counts do not depend on what else the machine does, so they show a change of one per cent where a clock cannot. They
are of user space. Per message: both ends together, 64-byte messages, sent in lists of 512 and received in one process;
without chores, which go by the clock, and under callgrind time passes some fifty times as fast. What else is due by the
clock is in it, so the least of three runs counts.
Per call: a send or a receive of one lone message, or a receive that finds nothing. What is in `HIGHEST` and costs more
than 2 % above its entry there is a failure, of `make instructions` and of the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench import report

LEVELS = (0, 1, 2, 3)
MESSAGES = 20480
RUNS = 3
CALLS = 51
PARTS = ("send", "receive", "idle")
CALL_PARTS = (*PARTS, "turn-around")
SCHEMES = ("udp", "tcp", "shm")
HIGHEST = {
    "udp turn-around": 990,
    "udp send": 413,
    "udp idle": 186,
    "udp message": 139,
    "tcp turn-around": 1062,
    "tcp idle": 263,
    "tcp message": 52,
    "shm turn-around": 1018,
    "shm idle": 168,
}
"""Instructions with the compiler of the CI image; lower an entry whenever its count falls. A message of a list over UDP
takes 137 on a machine that does nothing else, and some more beside other loads, because more is due by the clock."""
TOLERANCE = 1.02
_SECONDS = 300

TOP = Path(__file__).resolve().parents[2]


class Refused(Exception):
    """It cannot be counted here; the text says why."""


def _callgrind(program: Path, arguments: Sequence[str], options: Sequence[str] = ()) -> tuple[str, list[int]]:
    """Run a program; return its output and the instructions of each dump.

    Raises:
        Refused: there is no valgrind, the program was not built, or one of them failed.
    """
    if shutil.which("valgrind") is None:
        raise Refused("there is no valgrind here; see deploy/debian-packages.txt")
    if not program.exists():
        raise Refused(f"{program} was not built")
    with tempfile.TemporaryDirectory(prefix="heliograph-bench-") as folder:
        out = Path(folder) / "callgrind"
        command = ["valgrind", "--tool=callgrind", "--toggle-collect=measured", f"--callgrind-out-file={out}", *options]
        try:
            done = subprocess.run(
                [*command, str(program), *arguments],
                capture_output=True,
                text=True,
                check=False,
                timeout=_SECONDS,
                env={**os.environ, "HELIOGRAPH_SEGMENT_DIR": folder},
            )
        except subprocess.TimeoutExpired:
            raise Refused(f"{program.name} took longer than {_SECONDS} s") from None
        if done.returncode != 0:
            said = [line for line in done.stderr.splitlines() if line and not line.startswith("==")]
            raise Refused(f"{program.name} failed: {said[0] if said else done.stderr[-300:]}")
        texts = [path.read_text(encoding="utf-8") for path in Path(folder).glob("callgrind*")]
        totals = [re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE) for text in texts]
        counts = [int(total[1]) for total in totals if total is not None and int(total[1]) > 0]
        if not counts:
            raise Refused(f"callgrind counted nothing in {program.name}")
        return done.stdout, counts


def count(program: Path, level: int, messages: int = MESSAGES, scheme: str = "udp") -> float:
    """Instructions per message over `udp` or `tcp`, the least of `RUNS`.

    Raises:
        Refused: it cannot be counted here.
    """
    runs = (_callgrind(program, (str(level), str(messages), scheme)) for _ in range(RUNS))
    return min(total / float(json.loads(printed)["messages"]) for printed, (total,) in runs)


def count_call(program: Path, part: str, scheme: str, calls: int = CALLS) -> int:
    """Instructions of one call, the least of `calls`: time passes slowly under callgrind, so what is due varies.

    Raises:
        Refused: it cannot be counted here.
    """
    _, counts = _callgrind(program, (part, scheme, str(calls)), ["--dump-after=measured"])
    return min(counts)


def count_calls(program: Path) -> dict[str, int]:
    """Instructions of each part of each scheme, and of a turn-around: a send and the receive of its message."""
    counts = {f"{scheme} {part}": count_call(program, part, scheme) for scheme in SCHEMES for part in PARTS}
    return counts | {f"{s} turn-around": counts[f"{s} send"] + counts[f"{s} receive"] for s in SCHEMES}


def count_limited(programs: Path, udp_message: float) -> dict[str, int]:
    """All counts that `HIGHEST` has limits for, and the other calls; `programs`: folder of the built programs.

    `udp_message` is of level 0, as `count` gives it.

    Raises:
        Refused: it cannot be counted here.
    """
    tcp_message = count(programs / "instructions", 0, scheme="tcp")
    messages = {"udp message": round(udp_message), "tcp message": round(tcp_message)}
    return count_calls(programs / "call") | messages


def too_high(calls: Mapping[str, int]) -> list[str]:
    """The calls that cost more than `HIGHEST` allows."""
    return [
        f"{name} takes {calls[name]} instructions, allowed are {highest} and 2 %"
        for name, highest in HIGHEST.items()
        if calls[name] > highest * TOLERANCE
    ]


def section(counts: Mapping[str, float], calls: Mapping[str, int], facts: Mapping[str, str]) -> str:
    """The section of RESULTS.md."""
    base = counts["compiled out"]
    lines = [
        "## Instructions per message",
        "",
        "callgrind, user space, both ends together: 64-byte messages over UDP unicast on the loopback, lists of 512.",
        f"{facts['date']}, {facts['compiler']}.",
        "",
        "| statistics | instructions | over compiled out |",
        "| --- | ---: | ---: |",
    ]
    lines += [f"| {name} | {value:.1f} | {value / base:.3f} |" for name, value in counts.items()]
    lines += [
        "",
        f"Over TCP (larger packets, no checksum) the same at level 0: {calls['tcp message']}.",
        "",
        "One call at level 0, mode poll, with nothing else due; a turn-around is the send and the receive of one lone",
        "message.",
        "",
        "| transport | " + " | ".join(CALL_PARTS) + " |",
        "| --- |" + " ---: |" * len(CALL_PARTS),
    ]
    for scheme in SCHEMES:
        row = " | ".join(str(calls[f"{scheme} {part}"]) for part in CALL_PARTS)
        lines.append(f"| {scheme} | {row} |")
    return "\n".join(lines)


def main() -> int:
    """Count, print, refresh RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, required=True, help="folder of the built programs")
    parser.add_argument("--out", type=Path, default=TOP / "build/bench/instructions.json")
    parser.add_argument("--results", type=Path, default=report.RESULTS, help="the file refreshed")
    args = parser.parse_args()
    try:
        counts = {"compiled out": count(args.programs / "instructions_no_stats", 0)}
        counts |= {f"level {level}": count(args.programs / "instructions", level) for level in LEVELS}
        calls = count_limited(args.programs, counts["level 0"])
    except Refused as refused:
        print(f"instructions: {refused}", file=sys.stderr)
        return 1
    for name, value in counts.items():
        print(f"{name:<14} {value:8.1f} instructions per message, {value / counts['compiled out']:.3f} of compiled out")
    for name, value in calls.items():
        print(f"{name:<16} {value:6d} instructions")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({**counts, **calls}, indent=1) + "\n", encoding="utf-8")
    report.put_section("instructions", section(counts, calls, report.machine()), args.results)
    print(f"written to {args.out}; refreshed {args.results}")
    failures = too_high(calls)
    for failure in failures:
        print(f"instructions: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
