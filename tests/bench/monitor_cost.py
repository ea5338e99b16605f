"""What a monitor takes of a core: CPU time of one sample, of joining the fleet, of rendering for Prometheus.

    python -m tests.bench.monitor_cost                    # all fleets
    python -m tests.bench.monitor_cost --fleets 33,1100 --samples 20

The fleets are segments written from engine/docs/segment.md; between two samples a share of the records moves, as
engines would have it. CPU time, not the clock on the wall, so a loaded machine matters less. Beside each figure: its
share of a core at one a second (a scrape comes every 15 s or so), and how many times it takes to copy and compare the
same bytes (tables and records, read with `pread`), which no reader of the files can do without.
"""

from __future__ import annotations

import argparse
import contextlib
import mmap
import os
import shutil
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.segments import SegmentObject, Written, write_segment

STREAM = "0a0b0c0d0e0f.30001"
BUDGET = 0.02
"""Share of a core that monitoring 1,000 receivers of 100 topics may take at one sample a second."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Segments to watch."""

    name: str
    topics: int
    peers: int
    """Receivers as the transmitting instance sees them."""
    receiving: int
    """Receiving instances in reach."""
    streams: int = 1
    """Streams each of those hears, each with all topics."""
    moving: float = 1.0
    """Share of the records that change from sample to sample."""


FLEETS = {
    "33": Fleet("33 objects", topics=8, peers=6, receiving=1),
    "1100": Fleet("100 topics to 1,000 receivers", topics=100, peers=1000, receiving=0),
    "3100": Fleet("the same, and 20 receiving instances", topics=100, peers=1000, receiving=20),
    "100000": Fleet("100,000 receivers in 10 segments, 5 % move", 100, 0, 10, streams=100, moving=0.05),
    "100000-all": Fleet("100,000 receivers in 10 segments, all move", 100, 0, 10, streams=100),
}


def _stream(number: int) -> str:
    return STREAM if number == 0 else f"0a0b0c0d0e0f.{30001 + number}"


def _transmitting(fleet: Fleet) -> list[SegmentObject]:
    own = {"instance": "feed"}
    there = {"endpoint": "rmm://239.1.1.1:7500"}
    topics = [f"PRICES.{number:03}" for number in range(fleet.topics)]
    return [
        SegmentObject("instance", own, {"version": "0.1.0", "host": "here"}, {"messages_sent": 1}),
        SegmentObject("tx_stream", {**own, "stream": STREAM}, there, {"packets_sent": 1}),
        *(
            SegmentObject("transmitter", {**own, "topic": topic, "stream": STREAM}, there, {"next_message": 9})
            for topic in topics
        ),
        *(
            SegmentObject(
                "tx_receiver", {**own, "stream": STREAM, "receiver": f"10.0.{n >> 8}.{n & 255}:40000"}, {}, {}
            )
            for n in range(fleet.peers)
        ),
    ]


def _receiving(fleet: Fleet, number: int) -> list[SegmentObject]:
    own = {"instance": f"reader-{number:03}"}
    address = f"10.0.{number >> 8}.{number & 255}:40000"
    found = [SegmentObject("instance", own, {"version": "0.1.0", "host": "here"}, {})]
    for n in range(fleet.streams):
        labels = {**own, "stream": _stream(n)}
        found.append(SegmentObject("rx_stream", labels, {"feedback_address": address}, {"packets_delivered": 9}))
        found += [
            SegmentObject(
                "receiver",
                {**own, "topic": f"PRICES.{topic:03}", "stream": _stream(n)},
                {"endpoint": "rmm://239.1.1.1:7500"},
                {"next_message": 9, "messages_delivered": 9},
            )
            for topic in range(fleet.topics)
        ]
    return found


class _Engines:
    """The written segments, and the hand that moves their counters."""

    def __init__(self, folder: Path, fleet: Fleet) -> None:
        written = [self._write(folder / "feed.1.helio", "feed", _transmitting(fleet), 1)]
        for number in range(fleet.receiving):
            name = f"reader-{number:03}"
            written.append(self._write(folder / f"{name}.1.helio", name, _receiving(fleet, number), number + 2))
        self.objects = sum(len(one.records) for one in written)
        self._step = max(1, round(1 / fleet.moving))
        self._turn = 0
        self._files = [(one, self._open(one)) for one in written]

    @staticmethod
    def _write(path: Path, name: str, objects: Sequence[SegmentObject], incarnation: int) -> Written:
        return write_segment(path, name=name, objects=objects, object_capacity=len(objects), incarnation=incarnation)

    @staticmethod
    def _open(one: Written) -> mmap.mmap:
        with one.path.open("r+b") as file:
            return mmap.mmap(file.fileno(), 0)

    def move(self) -> None:
        """One second passes: a heartbeat everywhere, and counters of some objects rise."""
        self._turn += 1
        for one, memory in self._files:
            struct.pack_into("<Q", memory, 56, time.time_ns())
            for slot in range(self._turn % self._step, len(one.records), self._step):
                place = one.records[slot]
                guard, first = struct.unpack_from("<QQ", memory, place)
                struct.pack_into("<QQ", memory, place, guard + 2, first + 1)

    def floor(self) -> Callable[[], None]:
        """Copies tables and records of all files and compares them with the last copy: what reading takes at least."""
        files = []
        for one, _ in self._files:
            places = [(one.objects, 512 * len(one.records)), (one.records[0], one.size - one.records[0])]
            files.append((os.open(one.path, os.O_RDONLY), places))
        last: dict[tuple[int, int], bytes] = {}

        def read() -> None:
            for file, places in files:
                for place, size in places:
                    for begin in range(place, place + size, 1 << 20):
                        data = os.pread(file, min(1 << 20, place + size - begin), begin)
                        if last.get((file, begin)) != data:
                            last[file, begin] = data

        return read

    def close(self) -> None:
        for _, memory in self._files:
            memory.close()


@contextlib.contextmanager
def engines(fleet: Fleet) -> Iterator[tuple[Path, _Engines]]:
    """The segments of a fleet, in a folder of shared memory where there is one."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="heliograph-cost-", dir=base))
    try:
        made = _Engines(folder, fleet)
        try:
            yield folder, made
        finally:
            made.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _timed(work: Callable[[], object], into: list[float]) -> object:
    begin = time.process_time_ns()
    result = work()
    into.append((time.process_time_ns() - begin) / 1e6)
    return result


def measure(fleet: Fleet, samples: int, prometheus: bool = True) -> tuple[int, dict[str, float]]:
    """Objects of a fleet, and the median CPU time, ms, of each part of a sample."""
    from heliograph.exporters.collector import SnapshotCollector
    from heliograph.exporters.prometheus import exposition
    from heliograph.monitor.fleet import receivers, transmitters
    from heliograph.monitor.model import Snapshot
    from heliograph.monitor.sampler import Sampler
    from heliograph.monitor.window import Watcher

    taken: dict[str, list[float]] = {"reading": [], "sampling": [], "+ fleet": []}
    watcher = Watcher()
    collector = SnapshotCollector() if prometheus else None
    if collector is not None:
        taken |= {"+ Prometheus, each sample": [], "a scrape": []}
    with engines(fleet) as (folder, made), Sampler(folder) as sampler:
        read = made.floor()
        previous: Snapshot | None = None
        for number in range(samples + 2):
            if number == 2:  # the first ones open files and fill caches
                for figures in taken.values():
                    figures.clear()
            made.move()
            _timed(read, taken["reading"])
            now = _timed(sampler.sample, taken["sampling"])
            assert isinstance(now, Snapshot)

            def join(before: Snapshot | None = previous, now: Snapshot = now) -> None:
                receivers(before, now, watcher)
                transmitters(before, now)

            _timed(join, taken["+ fleet"])
            if collector is not None:

                def update(now: Snapshot = now, collector: SnapshotCollector = collector) -> None:
                    collector.update(now)

                _timed(update, taken["+ Prometheus, each sample"])
                _timed(partial(exposition, collector), taken["a scrape"])
            previous = now
        medians = {name: statistics.median(figures) for name, figures in taken.items()}
        for before, name in (("sampling", "+ fleet"), ("+ fleet", "+ Prometheus, each sample")):
            if name in medians:
                medians[name] += medians[before]
        return made.objects, medians


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="CPU time of monitoring, by size of the fleet.")
    parser.add_argument("--fleets", default=",".join(FLEETS), help=f"which, by comma: {', '.join(FLEETS)}")
    parser.add_argument("--samples", type=int, default=10, help="samples of each fleet; default 10")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.fleets.split(",") if name not in FLEETS]
    if unknown:
        parser.error(f"no fleet {unknown[0]!r}; there are {', '.join(FLEETS)}")
    print("| fleet | objects | part | CPU ms a sample | of a core at 1 Hz | times reading the bytes |")
    print("| --- | ---: | --- | ---: | ---: | ---: |")
    for name in options.fleets.split(","):
        objects, medians = measure(FLEETS[name], options.samples, prometheus=True)
        for part, took in medians.items():
            ratio = took / medians["reading"] if medians["reading"] else float("nan")
            print(
                f"| {FLEETS[name].name} | {objects:,} | {part} | {took:.2f} | {took / 10:.2f} % | {ratio:.1f} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
