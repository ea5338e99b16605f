"""Whether a monitor slows an engine: throughput with one that samples ten times a second, or is stopped, or killed.

    python -m tests.bench.undisturbed --programs build/release/bench --pairs 3

Each pair is four runs: without a monitor, with one, with one, without; what counts is the median of the neighbours'
ratios. The monitor reads with its own process; *stopped* gets SIGSTOP amid its readings and stays so, *killed* gets
SIGKILL after a third of the run. The monitor has no lock to hold and nothing to write, so a ratio other than 1 is a
core it took from the engine: on a machine whose cores are all busy, expect its share of them.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from tests.bench.pairing import Failure
from tests.bench.running import Runner

CASES = ("sampling", "stopped", "killed")
WANT = 0.99

_MONITOR = """
import sys, time
from pathlib import Path
from heliograph.monitor.fleet import receivers
from heliograph.monitor.sampler import Sampler
with Sampler(Path(sys.argv[1])) as sampler:
    before = sampler.sample()
    print("ready", flush=True)
    while True:
        time.sleep(0.1)
        now = sampler.sample()
        receivers(before, now)
        before = now
"""


def with_monitor(runner: Runner, command: tuple[str, ...], case: str) -> float:
    """Messages a second of one run beside a monitor.

    Raises:
        Failure: the program could not be run.
    """
    monitor = subprocess.Popen(
        [sys.executable, "-c", _MONITOR, str(runner.segments)], stdout=subprocess.PIPE, env=dict(os.environ)
    )
    number = {"stopped": signal.SIGSTOP, "killed": signal.SIGKILL}.get(case)
    stroke = threading.Timer(runner.seconds / 3, lambda: monitor.send_signal(number)) if number else None
    try:
        assert monitor.stdout is not None
        if monitor.stdout.readline() != b"ready\n":
            raise Failure("the monitor did not start")
        if stroke is not None:
            stroke.start()
        return float(runner.measure(command, 64)["messages_per_second"])
    finally:
        if stroke is not None:
            stroke.cancel()
            stroke.join()
        monitor.kill()
        monitor.wait()
        if monitor.stdout is not None:
            monitor.stdout.close()


def ratios(runner: Runner, command: tuple[str, ...], case: str, pairs: int) -> list[float]:
    """With a monitor over without, of each two neighbouring runs.

    Raises:
        Failure: the program could not be run.
    """

    def alone() -> float:
        return float(runner.measure(command, 64)["messages_per_second"])

    found = []
    for _ in range(pairs):
        without, beside = alone(), with_monitor(runner, command, case)
        found.append(beside / without)
        beside, without = with_monitor(runner, command, case), alone()
        found.append(beside / without)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when a program could not be run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, required=True, help="folder of the built programs")
    parser.add_argument("--pairs", type=int, default=3, help="A, B, B, A so often; default 3")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a run; default 1")
    parser.add_argument("--transport", default="rmm")
    options = parser.parse_args(arguments)
    command = ("heliograph", "throughput", "--transport", options.transport)
    print("| a monitor, 10 samples a second | throughput with / without | range | want |")
    print("| --- | ---: | --- | ---: |")
    try:
        with Runner(options.programs, options.seconds) as runner:
            for case in CASES:
                found = ratios(runner, command, case, options.pairs)
                told = f"{min(found):.3f} to {max(found):.3f}"
                print(f"| {case} | {statistics.median(found):.3f} | {told} | >= {WANT} |", flush=True)
    except Failure as failure:
        print(f"undisturbed: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
