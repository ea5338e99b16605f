"""What the live page takes: CPU time and memory of the server, size of an update, and script time of a browser.

    python -m tests.bench.live                    # 24, 1,000 and 5,000 receiver-topics
    python -m tests.bench.live --seconds 30 --dry

`heliograph live` runs as its own process over written segments in which every record and histogram of level 2 moves
each second. Its CPU time comes from /proc, so the browser and the process that moves the segments are not counted. The
ten readers have streams of updates as browsers do; the browser is Chromium and shows the Fleet page.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.bench_scrape import Engines, Fleet, cpu_seconds, segments, size_mb
from tests.bench.report import machine, put_section
from tests.dashboards.browsing import chromium, until
from tests.ports import free_port

FLEETS = (Fleet(4, 6), Fleet(50, 20), Fleet(50, 100))
READERS = 10
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
    update_kb: float
    """Median size of an update."""
    delay_ms: float
    """Median time from a change in the segments to its message at a reader, with four samples a second."""
    longest_ms: float
    """The longest of them."""
    script_ms: float | None
    """Script time of the browser per update; None without a browser."""
    task_ms: float | None
    """The same with layout and drawing."""
    heap_mb: float | None
    """JavaScript heap of the browser."""


class Reader:
    """One reader of the Fleet page with a stream of updates, as its browser has."""

    def __init__(self, port: int, name: str) -> None:
        """Open the stream; its first message has all parts.

        Args:
            port: Port of the server.
            name: Name of the browser.
        """
        self._link = socket.create_connection(("127.0.0.1", port), 30)
        self._link.sendall(f"GET /live/stream?path=/&browser={name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self.messages: list[tuple[float, int, bool]] = []
        """Arrival by the monotonic clock, bytes, and whether parts changed."""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._link.makefile("rb") as lines, contextlib.suppress(OSError):  # the end
            if (status := lines.readline()) != b"HTTP/1.1 200 OK\r\n":
                raise SystemExit(f"bench-live: /live/stream answers {status!r}")
            for line in lines:
                if line.startswith(b"data: "):
                    self.messages.append((time.monotonic(), len(line), not line.rstrip().endswith(b'"parts":{}}')))

    def close(self) -> None:
        """Disconnect."""
        with contextlib.suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._link.close()


@contextlib.contextmanager
def readers(port: int) -> Iterator[list[Reader]]:
    """Ten readers."""
    found: list[Reader] = []
    try:
        found += [Reader(port, f"bench-{number}") for number in range(READERS)]
        yield found
    finally:
        for reader in found:
            reader.close()


@contextlib.contextmanager
def server(folder: Path, port: int, interval: float = 1.0) -> Iterator[int]:
    """Run the live page with samples at an interval in seconds; yields its process id."""
    command = [sys.executable, "-m", "heliograph.monitor.cli", "live", "--segments", str(folder)]
    command += ["--listen", f"127.0.0.1:{port}", "--interval", str(interval)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
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


def _delays(folder: Path, engines: Engines, seconds: float) -> list[float]:
    """Return the milliseconds from a change in the segments to its message at a reader, with four samples a second."""
    found: list[float] = []
    port = free_port()
    with server(folder, port, 0.25), readers(port) as looking:
        time.sleep(WARM_SECONDS)
        for _ in range(round(seconds)):
            engines.move()
            moved = time.monotonic()
            time.sleep(0.9 + random.random() / 5)  # not in step with the samples
            for reader in looking:
                found += [1e3 * (at - moved) for at, _, is_new in reader.messages if at > moved and is_new][:1]
    return found


def _browser(url: str, seconds: float) -> tuple[float, float, float] | None:
    """Return script and task time of Chromium per update, ms, and its heap, MB; None where it is not installed."""
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

        until(lambda: "sample of" in taken(), "the page in the browser")
        time.sleep(WARM_SECONDS)
        before, began = metrics(), time.monotonic()
        time.sleep(seconds)
        after, updates = metrics(), time.monotonic() - began  # one a second
        script, task = (1e3 * (after[name] - before[name]) / updates for name in ("ScriptDuration", "TaskDuration"))
        return script, task, after["JSHeapUsedSize"] / 1e6


def measure(fleet: Fleet, seconds: float) -> Figures:
    """Measure the server and a browser with one fleet."""
    with segments("heliograph-live-") as folder:
        engines = Engines(folder, fleet)
        port = free_port()
        with moving(engines), server(folder, port) as pid:
            time.sleep(WARM_SECONDS)
            alone = _share(pid, seconds)
            with readers(port) as looking:
                time.sleep(WARM_SECONDS)
                began = time.monotonic()
                read = _share(pid, seconds)
                found = [message for reader in looking for message in reader.messages if message[0] > began]
            rss = size_mb(pid)
            script, task, heap = _browser(f"http://127.0.0.1:{port}/", seconds) or (None, None, None)
        delays = _delays(folder, engines, seconds)
    update_kb = statistics.median(size for _, size, is_new in found if is_new) / 1e3
    seen = (statistics.median(delays), max(delays))
    return Figures(fleet, alone, read, rss, update_kb, *seen, script, task, heap)


def section(found: Sequence[Figures]) -> str:
    """Return the section of RESULTS.md."""
    facts = machine()

    def shown(value: float | None) -> str:
        return "-" if value is None else f"{value:.0f}"

    lines = [
        "## The live page",
        "",
        f"`make bench-live`, {facts['date']}, {facts['processor']}. One sample a second,",
        f"in which every record and histogram of level 2 moves; the Fleet page; {READERS} readers, then a Chromium.",
        "",
        "| receiver-topics | CPU, no reader | CPU, 10 readers | RSS MB | kB of an update | seen after ms, 4 Hz "
        "| script ms | with layout ms | heap MB |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {one.fleet.size:,} ({one.fleet.topics} x {one.fleet.receivers}) | {one.alone:.1%} | {one.read:.1%} "
        f"| {one.rss_mb:.0f} | {one.update_kb:.1f} | {one.delay_ms:.0f} (at most {one.longest_ms:.0f}) "
        f"| {shown(one.script_ms)} | {shown(one.task_ms)} | {shown(one.heap_mb)} |"
        for one in found
    ]
    lines += [
        "",
        "Seen after: from a change in the segments to its message at a reader, without the drawing in its browser.",
        "",
        "Gates: 5 % of a core with 10 browsers on a small fleet, 25 % at 100,000 receiver-topics; an update of 20 kB",
        "and 50 ms of script at any size.",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the section of RESULTS.md."""
    parser = argparse.ArgumentParser(description="CPU time and memory of the live page and of a browser.")
    parser.add_argument("--seconds", type=int, default=20, help="length of each measurement; default 20")
    parser.add_argument("--dry", action="store_true", help="do not write RESULTS.md")
    options = parser.parse_args(arguments)
    found = []
    for fleet in FLEETS:
        print(f"bench-live: {fleet.size:,} receiver-topics", file=sys.stderr, flush=True)
        found.append(measure(fleet, options.seconds))
    body = section(found)
    print(body)
    if not options.dry:
        put_section("live", body)
    return 0


if __name__ == "__main__":
    sys.exit(main())
