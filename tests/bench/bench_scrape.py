"""CPU time and memory of a real exporter whose statistics all move: sampled each second, scraped every five seconds.

    python -m tests.bench.bench_scrape                    # 160, 800 and 1,000 receiver-topics
    python -m tests.bench.bench_scrape --large            # 10,000 too (7 GB of shared memory)

`heliograph export prometheus` runs as its own process over written segments with the histograms of level 2. Its CPU
time comes from /proc, so the process that moves the segments and sends the scrapes is not counted. The join of 20
instances with 100 topics each, without histograms, is measured in this process.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.bench.report import machine, put_section
from tests.ports import free_port
from tests.segments import HISTOGRAM_HEAD_BYTES, SegmentObject, Written, cell_index, write_segment

STREAM = "0a0b0c0d0e0f.30001"
ENDPOINT = "rmm://239.1.1.1:7500"
HISTOGRAMS = ("total_latency", "order_latency", "callback_time")
"""Histograms of a receiver at level 2."""
SCRAPE_SECONDS = 5
CAP = 1_000_000
"""Limit on series during the measurement, so that everything is rendered."""
_SUM = (48 - HISTOGRAM_HEAD_BYTES) // 8
"""Place of a histogram's sum, in words from its first cell."""
JOINED = (20, 100)
"""Receiving instances and topics of the fleet that is joined."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """One transmitting instance, and receivers of all its topics."""

    topics: int
    receivers: int

    @property
    def size(self) -> int:
        """Number of receiver-topics."""
        return self.topics * self.receivers


FLEETS = (Fleet(20, 8), Fleet(50, 16), Fleet(50, 20))
LARGE = Fleet(100, 100)


@dataclass(frozen=True, slots=True)
class Figures:
    """The measurements of one fleet."""

    fleet: Fleet
    cpu_share: float
    """CPU seconds per second, the scrapes included."""
    rss_mb: float
    scrape_ms: float
    """CPU time of a scrape: that of its interval above an interval without a scrape."""
    size: int
    series: int


class Engines:
    """Written segments, and the means to move every value in them."""

    def __init__(self, folder: Path, fleet: Fleet, *, histograms: bool = True) -> None:
        """Write the segments of a fleet."""
        random = np.random.default_rng(7)
        values = np.exp(random.normal(10.3, 0.8, 400)).astype(int).tolist()  # about 30 us
        cells, first = np.unique([cell_index(value) for value in values], return_index=True)
        self._hot = cells[:300:10]
        self._hot_ns = sum(values[at] for at in first[:300:10])
        counts = dict.fromkeys(values, 40) if histograms else {}
        self._maps: list[npt.NDArray[np.uint64]] = []
        self._records: list[npt.NDArray[np.int64]] = []
        self._blocks: list[list[int]] = []
        self._add(write_segment(folder / "feed.1.helio", name="feed", objects=_feed(fleet), object_capacity=4096))
        for number in range(fleet.receivers):
            name = f"reader-{number:03}"
            objects = _reader(fleet, name, number, counts)
            path = folder / f"{name}.1.helio"
            self._add(
                write_segment(path, name=name, objects=objects, object_capacity=len(objects), incarnation=number + 2)
            )

    def _add(self, written: Written) -> None:
        self._maps.append(np.memmap(written.path, np.uint64, "r+"))
        self._records.append(np.array(written.records) // 8)
        self._blocks.append([(block + HISTOGRAM_HEAD_BYTES) // 8 for block in written.histograms.values()])

    def move(self) -> None:
        """One second passes: heartbeats, a counter of every record, and 30 cells of every histogram."""
        for words, records, blocks in zip(self._maps, self._records, self._blocks, strict=True):
            words[7] = time.time_ns()
            words[records] += np.uint64(2)
            words[records + 1] += np.uint64(1)
            for block in blocks:
                words[block + self._hot] += np.uint64(3)
                words[block + _SUM] += np.uint64(3 * self._hot_ns)


def _feed(fleet: Fleet) -> list[SegmentObject]:
    own = {"instance": "feed"}
    there = {"endpoint": ENDPOINT}
    return [
        SegmentObject("instance", own, {"version": "0.1.0", "host": "here"}),
        SegmentObject("tx_stream", {**own, "stream": STREAM}, there),
        *(
            SegmentObject("transmitter", {**own, "topic": _topic(n), "stream": STREAM}, there, {"next_message": 9})
            for n in range(fleet.topics)
        ),
        *(
            SegmentObject("tx_receiver", {**own, "stream": STREAM, "receiver": _address(n)})
            for n in range(fleet.receivers)
        ),
    ]


def _reader(fleet: Fleet, name: str, number: int, counts: dict[int, int]) -> list[SegmentObject]:
    own = {"instance": name}
    return [
        SegmentObject("instance", own, {"version": "0.1.0", "host": "here"}, {"detail_level": 2}),
        SegmentObject("rx_stream", {**own, "stream": STREAM}, {"feedback_address": _address(number)}),
        *(
            SegmentObject(
                "receiver",
                {**own, "topic": _topic(n), "stream": STREAM},
                {"endpoint": ENDPOINT},
                {"next_message": 9, "messages_delivered": 9},
                dict.fromkeys(HISTOGRAMS, counts) if counts else {},
            )
            for n in range(fleet.topics)
        ),
    ]


def _topic(number: int) -> str:
    return f"PRICES.{number:03}"


def _address(number: int) -> str:
    return f"10.0.{number >> 8}.{number & 255}:40000"


@contextlib.contextmanager
def segments(prefix: str = "heliograph-scrape-") -> Iterator[Path]:
    """Make a folder in memory, where there is one."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _exporter(folder: Path, port: int) -> Iterator[int]:
    """Run the exporter; yields its process id."""
    command = [sys.executable, "-m", "heliograph.monitor.cli", "export", "prometheus", "--segments", str(folder)]
    command += ["--listen", f"127.0.0.1:{port}", "--max-series", str(CAP)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield process.pid
        finally:
            process.terminate()


def _scrape(port: int) -> bytes:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics")
    request.add_header("Accept", "application/openmetrics-text;version=1.0.0")
    request.add_header("Accept-Encoding", "gzip")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return gzip.decompress(answer.read())


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def size_mb(pid: int) -> float:
    """Return the resident size of a process."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(lines["VmRSS"].split()[0]) / 1024


def measure(fleet: Fleet, rounds: int) -> Figures:
    """Measure an exporter of one fleet over rounds of five seconds."""
    with segments() as folder:
        engines = Engines(folder, fleet)
        port = free_port()
        with _exporter(folder, port) as pid:
            body = _first(port, engines)
            costs: list[float] = []
            began, began_cpu = time.monotonic(), cpu_seconds(pid)
            for second in range(1, rounds * SCRAPE_SECONDS + 1):
                engines.move()
                time.sleep(max(0.0, began + second - time.monotonic()))
                if second % SCRAPE_SECONDS == 0:
                    before = cpu_seconds(pid)
                    body = _scrape(port)
                    costs.append(cpu_seconds(pid) - before)
            share = (cpu_seconds(pid) - began_cpu) / (time.monotonic() - began)
            rss = size_mb(pid)
    series = sum(not line.startswith(b"#") for line in body.splitlines())
    return Figures(fleet, share, rss, 1e3 * statistics.median(costs), len(body), series)


def _first(port: int, engines: Engines) -> bytes:
    """Return the first answer that shows the receivers."""
    for _ in range(60):
        engines.move()
        with contextlib.suppress(OSError):
            body = _scrape(port)
            if b"heliograph_receiver_messages_delivered_total{" in body:
                return body
        time.sleep(1)
    raise SystemExit("bench_scrape: the exporter shows no receivers")


def join_ms(instances: int, topics: int, rounds: int = 10) -> float:
    """Return the CPU time of joining a fleet without histograms, ms."""
    from heliograph.monitor.fleet import receivers
    from heliograph.monitor.sampler import Sampler
    from heliograph.monitor.window import Watcher

    watcher = Watcher()
    costs = []
    with segments() as folder:
        engines = Engines(folder, Fleet(topics, instances), histograms=False)
        with Sampler(folder) as sampler:
            previous = sampler.sample()
            for _ in range(rounds + 1):
                engines.move()
                current = sampler.sample()
                began = time.process_time_ns()
                rows = receivers(previous, current, watcher)
                costs.append((time.process_time_ns() - began) / 1e6)
                assert len(rows) == instances * topics
                previous = current
    return statistics.median(costs[1:])


def section(found: Sequence[Figures], joined_ms: float) -> str:
    """Return the section of RESULTS.md."""
    facts = machine()
    lines = [
        "## A scraped exporter",
        "",
        f"`make bench-scrape`, {facts['date']}, {facts['processor']}.",
        "Every record and histogram of level 2 moves each second. One sample a second,",
        f"one scrape every {SCRAPE_SECONDS} s, no cap.",
        "",
        "| receiver-topics | CPU | RSS MB | CPU ms of a scrape | series | MB |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {one.fleet.size:,} ({one.fleet.topics} x {one.fleet.receivers}) | {one.cpu_share:.1%} | {one.rss_mb:.0f} "
        f"| {one.scrape_ms:.0f} | {one.series:,} | {one.size / 1e6:.2f} |"
        for one in found
    ]
    lines += [
        "",
        "Gates: at 1,000 receiver-topics 5 % of a core (want 2 %) and 256 MB (want 128 MB); a scrape of 20,000 series",
        "100 ms (want 30 ms), of 100,000 series 400 ms.",
        "",
        f"Join of {JOINED[0]} instances with {JOINED[1]} topics each: {joined_ms:.0f} ms (gate 20 ms, want 8 ms).",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the section of RESULTS.md."""
    parser = argparse.ArgumentParser(description="CPU time and memory of a scraped exporter.")
    parser.add_argument("--large", action="store_true", help="measure 10,000 receiver-topics too")
    parser.add_argument("--rounds", type=int, default=4, help="scrapes of each fleet; default 4")
    parser.add_argument("--dry", action="store_true", help="do not write RESULTS.md")
    options = parser.parse_args(arguments)
    fleets = (*FLEETS, LARGE) if options.large else FLEETS
    body = section([measure(fleet, options.rounds) for fleet in fleets], join_ms(*JOINED))
    print(body)
    if not options.dry:
        put_section("scrape", body)
    return 0


if __name__ == "__main__":
    sys.exit(main())
