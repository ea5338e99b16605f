"""A long run at 70 % of what the machine can do, in which nothing may grow: memory of both processes, objects.

    python -m tests.bench.soak --programs build/release/bench --seconds 600

The first fifth of the run fills windows and queues; what counts is the last fifth beside the second: private memory and
address space. Resident memory is shown, and decides nothing: the flight recorder's ring has a fixed size, and its pages
become resident over minutes, as records first reach them. Exit code: 0 when nothing grew and nothing was lost for good,
1 otherwise.
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
from collections.abc import Callable, Sequence
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
class Memory:
    """Memory of a process, or its growth, in bytes."""

    resident: int = 0
    """In memory, files and shared memory included."""
    private: int = 0
    """In memory and of no file: heap, stacks."""
    mapped: int = 0
    """Address space: all that it could ever touch without another mapping."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What the two processes held at one moment."""

    at: float
    """Seconds since the start."""
    memory: tuple[Memory, ...]
    """Of each process."""
    objects: int
    """Statistics objects in use, of both."""


def growth(samples: Sequence[Sample], seconds: float) -> tuple[list[Memory], int]:
    """How much each process and the number of objects grew from the second fifth of the run to its last.

    Raises:
        ValueError: there are no samples in one of the two.
    """
    early = [s for s in samples if 0.2 <= s.at / seconds < 0.4]
    late = [s for s in samples if s.at / seconds >= 0.8]
    if not early or not late:
        raise ValueError("too few samples")

    def grown(value: Callable[[Sample], int]) -> int:
        return round(statistics.median(map(value, late)) - statistics.median(map(value, early)))

    def of_process(i: int) -> Memory:
        return Memory(
            resident=grown(lambda s: s.memory[i].resident),
            private=grown(lambda s: s.memory[i].private),
            mapped=grown(lambda s: s.memory[i].mapped),
        )

    processes = min(len(s.memory) for s in (*early, *late))
    return [of_process(i) for i in range(processes)], grown(lambda s: s.objects)


def memory(pid: int) -> Memory:
    """Memory of a process; zeros when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return Memory()
    kibibytes = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.endswith(" kB")}
    return Memory(*(kibibytes.get(name, 0) * 1024 for name in ("VmRSS", "RssAnon", "VmSize")))


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
                samples.append(Sample(at, tuple(memory(pid) for pid in pids), objects))
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


def told(name: str, samples: Sequence[Sample], grown: Sequence[Memory], i: int) -> str:
    """Memory of a process, for people."""
    most = max(s.memory[i].resident for s in samples)
    return (
        f"{name} {most / 2**20:.1f} MiB resident at most ({grown[i].resident / 1024:+.0f} KiB, fixed rings filling "
        f"included), private {grown[i].private / 1024:+.0f} KiB, address space {grown[i].mapped / 1024:+.0f} KiB"
    )


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
    is_flat = (
        all(g.private <= GROWTH_BYTES_MAX and g.mapped <= GROWTH_BYTES_MAX for g in grown)
        and objects <= 0
        and figures["lost"] == 0
    )
    text = (
        f"{args.transport}, {args.size} B at {figures['messages_per_second']:,.0f} messages/s ({LOAD:.0%} load) for "
        f"{args.seconds:g} s: {told('transmitter', samples, grown, 0)}; {told('receiver', samples, grown, 1)}; "
        f"{samples[-1].objects} statistics objects, {objects:+d}; lost {figures['lost']:.0f}. "
        f"{'Nothing grew.' if is_flat else '**It grew or lost.**'}"
    )
    print(text)
    if args.seconds >= LONG_SECONDS:
        report.put_section("soak", f"## Long run\n\n{report.machine()['date']}. {text}", args.results)
        print(f"refreshed {args.results}")
    return 0 if is_flat else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
