"""The way of one message through the engine's files: which it visits, and how often it goes from one to another.

    python -m tests.bench.path --programs build/path/bench

callgrind counts the calls from one file to another; each is a stay in the other file and one more in the caller's.
A header counts as its .c file. `base` and `stats`, which every file uses, and the C library are left out, and so is
what the engine does in a cycle without messages. Each file must have been compiled alone (no link-time optimisation):

    cmake -S engine -B build/path -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O2 -g" -DHELIO_BENCH=ON
    ninja -C build/path bench_path
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
from collections import Counter
from pathlib import Path

WAYS = {"queue": "idle", "direct": ""}  # and what is taken off
USUAL = 0.5  # of the messages; less is not on the common path
LEFT_OUT = ("base/", "stats/", "generated/")
_CORE = re.compile(r"engine/core/(.+)\.[ch]$")


def calls_of(text: str) -> Counter[tuple[str, str]]:
    """How often functions of one file called functions of another, of a callgrind file."""
    names: dict[str, str] = {}
    found: Counter[tuple[str, str]] = Counter()
    current = called = ""

    def name(value: str) -> str:
        number, _, given = value.partition(" ")
        if given:
            names[number] = given
        return names.get(number, "")

    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key == "fl":
            current = called = name(value)
        elif key == "fn":
            called = current
        elif key in ("fi", "fe"):
            name(value)
        elif key in ("cfi", "cfl"):
            called = name(value)
        elif key == "calls":
            found[unit(current), unit(called)] += int(value.split()[0])
            called = current
    return found


def unit(path: str) -> str:
    """The file without its ending, below engine/core; "" for anything else."""
    match = _CORE.search(path)
    return "" if match is None or match[1].startswith(LEFT_OUT) else match[1]


def trace(program: Path, way: str) -> dict[tuple[str, str], float]:
    """Calls from file to file for each message."""
    with tempfile.TemporaryDirectory(prefix="heliograph-bench-") as folder:
        out = Path(folder) / "callgrind"
        collect = [f"--toggle-collect={half}" for half in ("submitted", "sent")]
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", *collect, f"--callgrind-out-file={out}", str(program), way],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "HELIOGRAPH_SEGMENT_DIR": folder},
        )
        messages = int(json.loads(done.stdout)["messages"])
        return {pair: count / messages for pair, count in calls_of(out.read_text(encoding="utf-8")).items()}


def main() -> int:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, required=True, help="folder of the built programs")
    parser.add_argument("--calls", action="store_true", help="each call, too")
    args = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("path: there is no valgrind here; see deploy/debian-packages.txt", file=sys.stderr)
        return 1
    for way, idle in WAYS.items():
        calls = trace(args.programs / "path", way)
        for pair, each in trace(args.programs / "path", idle).items() if idle else ():
            calls[pair] = calls.get(pair, 0.0) - each
        usual = {pair: each for pair, each in calls.items() if each >= USUAL and all(pair)}
        across = {pair: each for pair, each in usual.items() if pair[0] != pair[1]}
        files = {file for pair in usual for file in pair}
        stays = 1 + 2 * sum(across.values())
        print(f"{way:<7} {stays:5.1f} stays in {len(files)} files, {stays - len(files):5.1f} returns")
        for (caller, callee), each in sorted(across.items()) if args.calls else ():
            print(f"    {each:5.2f}  {caller} -> {callee}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
