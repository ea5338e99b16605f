"""What the live page takes: CPU time and memory of the server, size of an update, and script time of a browser.

    python -m tests.bench.live                    # 8, 1,000, 5,000 and 100,000 receiver-topics
    python -m tests.bench.live --seconds 30 --dry
    python -m tests.bench.live --only 100000 --dry

`heliograph live` runs as its own process over written segments in which every record and histogram of level 2 moves
each second. Its CPU time comes from /proc, so the browser and the process that moves the segments are not counted. The
ten readers have streams of updates as browsers do, half of the Fleet page and half of the Grid; the browser is Chromium
and shows the Fleet page. The largest fleet has no histograms, which would take 65 GB, and is sampled four times a
second, as far as the server does so: it limits the share of a core that samples take.

The time from a fault to its sentence is that of a NAK storm: from the moment when the record of the stream says so to
the message with the words at a reader of Fleet, with four samples a second as far as the server takes them.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from heliograph.engine import catalogue
from tests.bench.bench_scrape import Engines, Fleet, cpu_seconds, segments, size_mb
from tests.bench.report import machine, put_section
from tests.dashboards.browsing import chromium, until
from tests.ports import free_port

FLEETS = (Fleet(2, 4), Fleet(50, 20), Fleet(50, 100), Fleet(100, 1000))
LARGEST = 100_000
"""Receiver-topics from which a fleet has no histograms and is sampled four times a second."""
READERS = 10
PAGES = {"/": "", "/grid": "sort=-lag_seconds"}
"""Pages of the readers in turn, and their selections."""
FILES = 8192
"""Open files of the server: it keeps a quarter of them for segments."""
PATIENCE_SECONDS = 120.0
LEAST_ROUNDS = 3
LEARNED_SAMPLES = 4
"""Samples after which the server knows what they cost."""
NOBODY_SECONDS = 12
_INTERVAL = re.compile(rb'"interval": ([0-9.]+)')
_WHOLE_INTERVAL = re.compile(rb"latencies and charts every ([0-9.]+) s")
NO_SCRIPT = ("(root)", "(idle)", "(program)")
"""What a profile calls the time without script; "(program)" is layout, drawing and messages."""
WARM_SECONDS = 5
"""Of the readers and of the browser, before they are measured."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The measurements of one fleet."""

    fleet: Fleet
    alone: float
    """CPU seconds of the server per second without a reader."""
    read: float
    """The same with ten readers."""
    rss_mb: float
    interval: float
    """Seconds between two samples."""
    whole_interval: float
    """Seconds between two samples with the latencies of receivers."""
    update_kb: float
    """Median size of an update of the Fleet page."""
    grid_kb: float
    """The same of the Grid."""
    delay_ms: float
    """Median time from a fault in the segments to the message with its sentence, with four samples a second."""
    longest_ms: float
    """The longest of them."""
    script_ms: tuple[float, float] | None
    """Script time of the browser in a second, median and highest; None without a browser."""
    task_ms: float | None
    """Median time in a second of all that the thread of the page does: script, layout and drawing."""
    heap_mb: float | None
    """JavaScript heap of the browser."""


class Faulty(Engines):
    """A fleet whose stream can have a NAK storm."""

    SENTENCE = b"NAK storm on the stream of feed"
    """The words on Fleet."""

    def storm(self, is_on: bool) -> None:
        """Begin or end the storm, as the source of the stream says it."""
        cells = [cell.name for cell in catalogue.scopes()["tx_stream"].cells]
        words, record = self._maps[0], self._records[0][1]
        words[record] += 2
        words[record + 1 + cells.index("storm_active")] = is_on


class Reader:
    """One reader with a stream of updates, as its browser has."""

    def __init__(self, port: int, name: str, page: str = "/") -> None:
        """Open the stream; its first message has all parts.

        Args:
            port: Port of the server.
            name: Name of the browser.
            page: Address of the page.
        """
        self.page = page
        self.interval = 0.0
        """Seconds between two samples, as the server says."""
        self.whole_interval = 0.0
        """The same with the latencies of receivers."""
        self._port = port
        self._query = urlencode({"path": page, "search": PAGES[page], "browser": name})
        self._is_closed = False
        self._link = self._connected()
        self.messages: list[tuple[float, int, bool]] = []
        """Arrival by the monotonic clock, bytes, and whether parts changed."""
        self.sentences: list[float] = []
        """Arrivals of the sentence of a storm."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _connected(self) -> socket.socket:
        link = socket.create_connection(("127.0.0.1", self._port), PATIENCE_SECONDS)
        link.sendall(f"GET /live/stream?{self._query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return link

    def _run(self) -> None:
        """Read streams one after the other: the server ends each after some minutes."""
        while not self._is_closed:
            self._read()
            if not self._is_closed:
                self._link.close()
                self._link = self._connected()

    def _read(self) -> None:
        with self._link.makefile("rb") as lines, contextlib.suppress(OSError):  # the end
            if (status := lines.readline()) != b"HTTP/1.1 200 OK\r\n":
                raise SystemExit(f"bench-live: /live/stream answers {status!r}")
            for line in lines:
                if line.startswith(b"data: "):
                    now = time.monotonic()
                    said, whole = _INTERVAL.search(line), _WHOLE_INTERVAL.search(line)
                    if said:
                        self.interval = float(said[1])
                        self.whole_interval = float(whole[1]) if whole else self.interval
                    self.messages.append((now, len(line), not line.rstrip().endswith(b'"parts":{}}')))
                    if Faulty.SENTENCE in line:
                        self.sentences.append(now)

    def close(self) -> None:
        """Disconnect."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._link.close()


@contextlib.contextmanager
def readers(port: int) -> Iterator[list[Reader]]:
    """Ten readers."""
    found: list[Reader] = []
    try:
        pages = list(PAGES)
        found += [Reader(port, f"bench-{number}", pages[number % len(pages)]) for number in range(READERS)]
        yield found
    finally:
        for reader in found:
            reader.close()


def _open_files() -> None:
    """Let a process open enough files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES if hard == resource.RLIM_INFINITY else min(FILES, hard), hard))


@contextlib.contextmanager
def server(folder: Path, port: int, interval: float = 1.0) -> Iterator[int]:
    """Run the live page with samples at an interval in seconds; yields its process id."""
    command = [sys.executable, "-m", "heliograph.monitor.cli", "live", "--segments", str(folder)]
    command += ["--listen", f"127.0.0.1:{port}", "--interval", str(interval)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=_open_files
    ) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise SystemExit("bench-live: heliograph live did not start")
            yield process.pid
        finally:
            process.terminate()


@contextlib.contextmanager
def moving(engines: Engines) -> Iterator[None]:
    """Move the fleet once a second."""
    stop = threading.Event()

    def move() -> None:
        while not stop.wait(1.0):
            engines.move()

    thread = threading.Thread(target=move)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _share(pid: int, seconds: float) -> float:
    """Return CPU seconds per second of a process."""
    began, began_cpu = time.monotonic(), cpu_seconds(pid)
    time.sleep(seconds)
    return (cpu_seconds(pid) - began_cpu) / (time.monotonic() - began)


def _delays(folder: Path, engines: Faulty, seconds: float) -> list[float]:
    """Return the milliseconds from a storm to its sentence at the readers of Fleet, with four samples a second."""
    found: list[float] = []
    port = free_port()
    with moving(engines), server(folder, port, 0.25), readers(port) as everybody:
        looking = [reader for reader in everybody if reader.page == "/"]
        time.sleep(WARM_SECONDS)
        _samples_pass(looking, LEARNED_SAMPLES)
        end = time.monotonic() + seconds
        while time.monotonic() < end or len(found) < LEAST_ROUNDS * len(looking):
            time.sleep(random.random() * min(5.0, looking[0].interval))  # not in step with the samples
            engines.storm(True)
            began = time.monotonic()

            def since(began: float = began) -> list[float]:
                told = ([at for at in reader.sentences if at > began] for reader in looking)
                return [1e3 * (arrived[0] - began) for arrived in told if arrived]

            until(lambda since=since: len(since()) == len(looking), "the sentence at each reader", PATIENCE_SECONDS)
            found += since()
            engines.storm(False)
            _samples_pass(looking, 3)  # one may be on its way, and one being taken, when the storm ends
    return found


def _samples_pass(looking: Sequence[Reader], count: int) -> None:
    """Wait until each reader has a number of messages with changes."""
    before = [len(reader.messages) for reader in looking]

    def is_past() -> bool:
        news = [sum(is_new for _, _, is_new in one.messages[at:]) for one, at in zip(looking, before, strict=True)]
        return min(news) >= count

    until(is_past, f"{count} samples", count * PATIENCE_SECONDS)


def _browser(url: str, seconds: float) -> tuple[tuple[float, float], float, float] | None:
    """Return script time of Chromium in a second, median and highest, its median task time, ms, and its heap, MB.

    A second has at most one sample, and the messages without one. Script time is that of a profile with a sample each
    millisecond: the browser's own sum leaves out what runs in promises, most of a chart. Without Chromium it returns
    None.

    Args:
        url: Address of the page.
        seconds: Length of the measurement.
    """
    try:
        import selenium  # noqa: F401
    except ImportError:
        return None
    with tempfile.TemporaryDirectory(prefix="heliograph-live-") as folder, contextlib.ExitStack() as stack:
        try:
            driver = stack.enter_context(chromium(Path(folder) / "profile"))
        except Exception as error:  # whatever the driver raises without a browser
            print(f"bench-live: no browser: {str(error).splitlines()[0]}", file=sys.stderr)
            return None
        driver.get(url)
        driver.execute_cdp_cmd("Performance.enable", {})

        def taken() -> str:
            return str(driver.execute_script("return document.getElementById('taken')?.innerText ?? ''"))

        def metrics() -> dict[str, float]:
            found = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
            return {item["name"]: item["value"] for item in found}

        until(lambda: "sample of" in taken(), "the page in the browser", PATIENCE_SECONDS)
        time.sleep(WARM_SECONDS)
        found = [metrics()]
        for _ in range(round(seconds)):
            time.sleep(1.0)
            found.append(metrics())
        task = [1e3 * (after["TaskDuration"] - before["TaskDuration"]) for before, after in pairwise(found)]
        driver.execute_cdp_cmd("Profiler.enable", {})
        driver.execute_cdp_cmd("Profiler.setSamplingInterval", {"interval": 1000})
        driver.execute_cdp_cmd("Profiler.start", {})
        time.sleep(round(seconds))
        script = _script_ms(driver.execute_cdp_cmd("Profiler.stop", {})["profile"])
        return (statistics.median(script), max(script)), statistics.median(task), found[-1]["JSHeapUsedSize"] / 1e6


def _script_ms(profile: Mapping[str, Any]) -> list[float]:
    """Return the milliseconds of script, with the collection of garbage, in each whole second of a profile."""
    resting = {node["id"] for node in profile["nodes"] if node["callFrame"]["functionName"] in NO_SCRIPT}
    seconds = [0.0] * ((profile["endTime"] - profile["startTime"]) // 1_000_000)
    at = 0
    for node, passed in zip(profile["samples"], profile["timeDeltas"], strict=True):
        at += passed
        if node not in resting and at < 1_000_000 * len(seconds):
            seconds[at // 1_000_000] += passed / 1e3
    return seconds


def measure(fleet: Fleet, seconds: float) -> Figures:
    """Measure the server and a browser with one fleet."""
    is_largest = fleet.size >= LARGEST
    with segments("heliograph-live-") as folder:
        engines = Faulty(folder, fleet, histograms=not is_largest)
        port = free_port()
        with moving(engines), server(folder, port, 0.25 if is_largest else 1.0) as pid:
            with readers(port) as looking:
                until(lambda: all(reader.interval for reader in looking), "the first messages", PATIENCE_SECONDS)
                time.sleep(WARM_SECONDS)
                if is_largest:  # its interval is known after three samples
                    until(lambda: looking[0].interval > 1, "an interval for this fleet", PATIENCE_SECONDS)
                interval, whole = looking[0].interval, looking[0].whole_interval
                seconds = max(seconds, 3 * interval)
                began = time.monotonic()
                read = _share(pid, seconds)
                found = {page: _sizes(looking, page, began) for page in PAGES}
            rss = size_mb(pid)
            script, task, heap = _browser(f"http://127.0.0.1:{port}/", seconds) or (None, None, None)
            time.sleep(NOBODY_SECONDS)  # then it knows that nobody looks
            alone = _share(pid, seconds)
        delays = _delays(folder, engines, seconds)
    fleet_kb, grid_kb = (statistics.median(found[page]) / 1e3 for page in PAGES)
    seen = (statistics.median(delays), max(delays))
    return Figures(fleet, alone, read, rss, interval, whole, fleet_kb, grid_kb, *seen, script, task, heap)


def _sizes(looking: Sequence[Reader], page: str, began: float) -> list[int]:
    """Return the sizes of the updates of a page since a moment; of all messages, if its parts stayed the same."""
    messages = [message for reader in looking if reader.page == page for message in reader.messages]
    since = [(size, is_new) for at, size, is_new in messages if at > began]
    return [size for size, is_new in since if is_new] or [size for size, _ in since]


def _script(found: tuple[float, float] | None) -> str:
    return "-" if found is None else f"{found[0]:.0f} (at most {found[1]:.0f})"


def section(found: Sequence[Figures]) -> str:
    """Return the section of RESULTS.md."""
    facts = machine()

    def shown(value: float | None) -> str:
        return "-" if value is None else f"{value:.0f}"

    lines = [
        "## The live page",
        "",
        f"`make bench-live`, {facts['date']}, {facts['processor']}. One sample a second,",
        f"in which every record and histogram of level 2 moves; {READERS} readers with streams, half of the Fleet page",
        "and half of the Grid, then a Chromium. The largest fleet has no histograms and `--interval 0.25`; the server",
        "samples it as often as its share of a core permits.",
        "",
        "| receiver-topics | CPU, no reader | CPU, 10 readers | RSS MB | a sample every s, with latencies "
        "| kB of an update: Fleet, Grid | a fault seen after ms, 4 Hz | script ms a second | all work ms | heap MB |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {one.fleet.size:,} ({one.fleet.topics} x {one.fleet.receivers}) | {one.alone:.1%} | {one.read:.1%} "
        f"| {one.rss_mb:.0f} | {one.interval:g}, {one.whole_interval:g} "
        f"| {one.update_kb:.1f}, {one.grid_kb:.1f} | {one.delay_ms:.0f} (at most {one.longest_ms:.0f}) "
        f"| {_script(one.script_ms)} | {shown(one.task_ms)} | {shown(one.heap_mb)} |"
        for one in found
    ]
    lines += [
        "",
        "A fault seen after: from a NAK storm in the record of the stream to the message with its sentence at a reader",
        "of Fleet, without the drawing in its browser.",
        "Script: of a Chromium that draws without a graphics card, each second of the measurement for itself, by a",
        "profile with a sample each millisecond, promises and garbage included. All work: of the thread of the page,",
        "with layout and drawing.",
        "",
        "Gates: 5 % of a core with 10 browsers on a fleet of 24 objects (8 receiver-topics), 25 % at 100,000",
        "receiver-topics; an update of 20 kB and 50 ms of script at any size.",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the section of RESULTS.md."""
    parser = argparse.ArgumentParser(description="CPU time and memory of the live page and of a browser.")
    parser.add_argument("--seconds", type=int, default=20, help="length of each measurement; default 20")
    parser.add_argument("--only", type=int, help="measure the fleet with this number of receiver-topics only")
    parser.add_argument("--dry", action="store_true", help="do not write RESULTS.md")
    options = parser.parse_args(arguments)
    found = []
    for fleet in FLEETS:
        if options.only not in (None, fleet.size):
            continue
        print(f"bench-live: {fleet.size:,} receiver-topics", file=sys.stderr, flush=True)
        found.append(measure(fleet, options.seconds))
    body = section(found)
    print(body)
    if not options.dry:
        put_section("live", body)
    return 0


if __name__ == "__main__":
    sys.exit(main())
