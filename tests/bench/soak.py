"""A long run at 70 % of what the machine can do, in which nothing may grow: memory of both processes, objects.

    python -m tests.bench.soak --programs build/release/bench --seconds 600

The first fifth of the run fills windows and queues; what counts is the last fifth beside the second. Exit code: 0 when
nothing grew and nothing was lost for good, 1 otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import report
from tests.bench.pairing import Failure
from tests.bench.running import Runner

LOAD = 0.7
GROWTH_BYTES_MAX = 1 << 20
"""Less is the allocator's and the page table's own breathing."""
LONG_SECONDS = 600.0
"""Shorter runs are not written down."""
_SAMPLES = 100
_TRIAL_SECONDS = 2.0

TOP = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Sample:
    """What the two processes held at one moment."""

    at: float
    """Seconds since the start."""
    resident: tuple[int, ...]
    """Bytes, of each process."""
    objects: int
    """Statistics objects in use, of both."""


def growth(samples: Sequence[Sample], seconds: float) -> tuple[list[int], int]:
    """How much each process and the number of objects grew from the second fifth of the run to its last.

    Raises:
        ValueError: there are no samples in one of the two.
    """
    early = [s for s in samples if 0.2 <= s.at / seconds < 0.4]
    late = [s for s in samples if s.at / seconds >= 0.8]
    if not early or not late:
        raise ValueError("too few samples")
    processes = min(len(s.resident) for s in (*early, *late))
    grown = [
        round(statistics.median(s.resident[i] for s in late) - statistics.median(s.resident[i] for s in early))
        for i in range(processes)
    ]
    return grown, round(statistics.median(s.objects for s in late) - statistics.median(s.objects for s in early))


def resident(pid: int) -> int:
    """Bytes of a process that are in memory, shared ones included; 0 when it is gone."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def children(pid: int) -> list[int]:
    """Processes a process has started."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]
    except OSError:
        return []


def watch(process: subprocess.Popen[str], segments: Path, seconds: float) -> list[Sample]:
    """Sample the processes until they end or the time is over."""
    from heliograph.monitor.sampler import Sampler

    samples: list[Sample] = []
    begin = time.monotonic()
    with Sampler(segments) as sampler:
        while process.poll() is None:
            at = time.monotonic() - begin
            if at > seconds:
                break
            pids = [process.pid, *children(process.pid)]
            objects = sum(item.live for i in sampler.sample(histograms=False).instances for item in i.objects)
            if len(pids) == 2:
                samples.append(Sample(at, tuple(resident(pid) for pid in pids), objects))
            time.sleep(seconds / _SAMPLES)
    return samples


def soak(runner: Runner, command: tuple[str, ...], size: int, seconds: float) -> tuple[list[Sample], dict[str, float]]:
    """Run the program for so long and watch it.

    Raises:
        Failure: it could not be run to its end.
    """
    segments = Path(tempfile.mkdtemp(prefix="heliograph-soak-"))
    line = runner.line(command, size, seconds)
    environment = {**os.environ, "HELIOGRAPH_SEGMENT_DIR": str(segments)}
    process = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env=environment
    )
    try:
        samples = watch(process, segments, seconds)
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        raise Failure("it did not end in time") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(segments, ignore_errors=True)
    if process.returncode != 0:
        raise Failure(err.strip() or f"it ended with status {process.returncode}")
    figures: dict[str, float] = json.loads(out)
    return samples, figures


def main() -> int:
    """Find the rate, run, judge; a run of full length refreshes RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, required=True, help="folder of the built programs")
    parser.add_argument("--seconds", type=float, default=600.0, help="length of the run (default 600)")
    parser.add_argument("--transport", default="rmm")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--results", type=Path, default=report.RESULTS, help="the file refreshed")
    args = parser.parse_args()
    if args.seconds < 5:
        parser.error("--seconds takes 5 or more")
    command = ("heliograph", "throughput", "--transport", args.transport)
    try:
        with Runner(args.programs, _TRIAL_SECONDS) as runner:
            most = runner.measure(command, args.size)["messages_per_second"]
            rate = LOAD * most
            print(f"{most:,.0f} messages/s go; {rate:,.0f} for {args.seconds:g} s", flush=True)
            samples, figures = soak(runner, (*command, "--rate", f"{rate:.0f}"), args.size, args.seconds)
        grown, objects = growth(samples, args.seconds)
    except (Failure, ValueError) as failure:
        print(f"soak: {failure}", file=sys.stderr)
        return 1
    held = [max(s.resident[i] for s in samples) for i in range(len(grown))]
    is_flat = all(g <= GROWTH_BYTES_MAX for g in grown) and objects <= 0 and figures["lost"] == 0
    text = (
        f"{args.transport}, {args.size} B at {figures['messages_per_second']:,.0f} messages/s ({LOAD:.0%} load) for "
        f"{args.seconds:g} s: transmitter {held[0] / 2**20:.1f} MiB at most, grown {grown[0] / 1024:+.0f} KiB; "
        f"receiver {held[1] / 2**20:.1f} MiB at most, grown {grown[1] / 1024:+.0f} KiB; {samples[-1].objects} "
        f"statistics objects, {objects:+d}; lost {figures['lost']:.0f}."
    )
    print(f"{text} {'Nothing grew.' if is_flat else 'GREW OR LOST.'}")
    if args.seconds >= LONG_SECONDS:
        report.put_section("soak", f"## Long run\n\n{report.machine()['date']}. {text}", args.results)
        print(f"refreshed {args.results}")
    return 0 if is_flat else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
