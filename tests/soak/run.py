"""Long runs of message stores under kills and joins.

    python -m tests.soak.run --kills 1000 --victims 200 --quorum 200 --seams 1000 --seconds 600 --seed 11

Kills: a durable subscriber (`heliograph sub --store --subscription`) is killed at random points under continuous
publishing. Victims: of three stores and a quorum of two, one is killed under load and started again. Quorum: the same
with acks_from=stores: stability goes on, and the survivors have what was stable. Seams: late joiners on real sockets.
A part that runs in full refreshes its section of tests/bench/RESULTS.md. Exit code: 0 when all that must hold does, 1
otherwise; then the files are kept. Ctrl-C leaves nothing behind.
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import signal
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from types import FrameType

from heliograph.engine import Error
from tests.bench import report
from tests.soak.parts import Limits, kills, seams, victims
from tests.soak.processes import Failed
from tests.soak.quorum import quorum

PARTS = {"kills": kills, "victims": victims, "quorum": quorum, "seams": seams}
COUNTS = {"kills": 1000, "victims": 200, "quorum": 200, "seams": 1000}


def main() -> int:
    """Run the parts one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, count in COUNTS.items():
        parser.add_argument(f"--{name}", type=int, default=count, help=f"number of rounds; 0: none (default {count})")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="begin no round of a part later (default: no limit)"
    )
    parser.add_argument("--seed", type=int, default=None, help="default: another every time")
    parser.add_argument("--results", type=Path, default=report.RESULTS, help="file of the results")
    args = parser.parse_args()
    seed = random.SystemRandom().getrandbits(32) if args.seed is None else args.seed
    print(f"soak of stores: seed {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="heliograph-soak-"))
    is_kept = False
    try:
        for name, part in PARTS.items():
            count = getattr(args, name)
            if count == 0:
                continue
            began = time.monotonic()
            said = part(Limits(name, count, args.seconds, random.Random(f"{seed} {name}")), folder / name)
            said += f". It took {time.monotonic() - began:.0f} s; seed {seed}."
            print(said, flush=True)
            if count >= COUNTS[name] and args.seconds == math.inf:
                facts = report.machine()
                head = f"## Stores in the long run: {name}\n\n`make soak-store`, {facts['date']}, {facts['processor']}."
                report.put_section(f"soak-store-{name}", f"{head}\n{textwrap.fill(said, 120)}", args.results)
    except (Failed, Error) as error:
        is_kept = True
        print(f"FAILED: {error} (seed {seed}; files in {folder})", flush=True)
        return 1
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        if not is_kept:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


def _interrupted(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGINT, _interrupted)  # a shell that starts it in the background has it ignored
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
