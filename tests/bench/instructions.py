"""Instructions per message at each level of detail of the statistics, counted by callgrind.

    python -m tests.bench.instructions --programs build/release/bench

Counts do not depend on what else the machine does, so they show a change of one per cent where a clock cannot. They
are of user space, of both ends together: 64-byte messages, sent in lists of 512 and received in one process.
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
from collections.abc import Mapping
from pathlib import Path

from tests.bench import report

LEVELS = (0, 1, 2, 3)
MESSAGES = 20480
_SECONDS = 300

TOP = Path(__file__).resolve().parents[2]


class Refused(Exception):
    """It cannot be counted here; the text says why."""


def count(program: Path, level: int, messages: int = MESSAGES) -> float:
    """Instructions per message.

    Raises:
        Refused: there is no valgrind, the program was not built, or one of them failed.
    """
    if shutil.which("valgrind") is None:
        raise Refused("there is no valgrind here; see deploy/debian-packages.txt")
    if not program.exists():
        raise Refused(f"{program} was not built")
    with tempfile.TemporaryDirectory(prefix="heliograph-bench-") as folder:
        out = Path(folder) / "callgrind"
        command = ["valgrind", "--tool=callgrind", "--toggle-collect=measured", f"--callgrind-out-file={out}"]
        try:
            done = subprocess.run(
                [*command, str(program), str(level), str(messages)],
                capture_output=True,
                text=True,
                check=False,
                timeout=_SECONDS,
                env={**os.environ, "HELIOGRAPH_SEGMENT_DIR": folder},
            )
        except subprocess.TimeoutExpired:
            raise Refused(f"{program.name} took longer than {_SECONDS} s") from None
        if done.returncode != 0 or not out.exists():
            said = [line for line in done.stderr.splitlines() if line and not line.startswith("==")]
            raise Refused(f"{program.name} failed: {said[0] if said else done.stderr[-300:]}")
        total = re.search(r"^(?:summary|totals): (\d+)", out.read_text(encoding="utf-8"), re.MULTILINE)
        if total is None or int(total[1]) == 0:
            raise Refused(f"callgrind counted nothing in {program.name}")
        return int(total[1]) / float(json.loads(done.stdout)["messages"])


def section(counts: Mapping[str, float], facts: Mapping[str, str]) -> str:
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
    except Refused as refused:
        print(f"instructions: {refused}", file=sys.stderr)
        return 1
    for name, value in counts.items():
        print(f"{name:<14} {value:8.1f} instructions per message, {value / counts['compiled out']:.3f} of compiled out")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    report.put_section("instructions", section(counts, report.machine()), args.results)
    print(f"written to {args.out}; refreshed {args.results}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
