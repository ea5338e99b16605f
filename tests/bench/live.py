"""What the live page takes: CPU time and memory of the server, size of an update, and script time of a browser.

    python -m tests.bench.live                    # 24, 1,000 and 5,000 receiver-topics
    python -m tests.bench.live --seconds 30 --dry

`heliograph live` runs as its own process over written segments in which every record and histogram of level 2 moves
each second. Its CPU time comes from /proc, so the browser and the process that moves the segments are not counted. The
ten readers request updates as browsers do; the browser is Chromium and shows the Fleet page.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    script_ms: float | None
    """Script time of the browser per update; None without a browser."""
    task_ms: float | None
    """The same with layout and drawing."""
    heap_mb: float | None
    """JavaScript heap of the browser."""


class Reader:
    """One reader of the Fleet page, as its browser requests updates."""

    def __init__(self, port: int) -> None:
        """Connect; the first update has all parts."""
        self._link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._stamp: Any = None
        dependencies = json.loads(self._answer("GET", "/_dash-dependencies"))
        (self._output,) = [item["output"] for item in dependencies if item["output"].startswith("..stamp.data.")]
        self._origin = {"Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/json"}

    def _answer(self, method: str, path: str, body: str | None = None, **headers: str) -> bytes:
        self._link.request(method, path, body, headers)
        answer = self._link.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise SystemExit(f"bench-live: {path} answers {answer.status}: {text[:200]!r}")
        return text

    def update(self) -> int:
        """Get one update; return its bytes."""
        places = [place.rpartition(".") for place in self._output.strip(".").split("...")]
        given = {"ask": ("data", 1), "groups": ("value", "all"), "kind": ("value", "receiver")}
        body = {
            "output": self._output,
            "outputs": [{"id": place, "property": name} for place, _, name in places],
            "inputs": [{"id": place, "property": name, "value": value} for place, (name, value) in given.items()],
            "state": [{"id": "stamp", "property": "data", "value": self._stamp}],
            "changedPropIds": ["ask.data"],
        }
        text = self._answer("POST", "/_dash-update-component", json.dumps(body), **self._origin)
        self._stamp = json.loads(text)["response"]["stamp"]["data"]
        return len(text)

    def close(self) -> None:
        """Disconnect."""
        self._link.close()


@contextlib.contextmanager
def _server(folder: Path, port: int) -> Iterator[int]:
    """Run the live page; yields its process id."""
    command = [sys.executable, "-m", "heliograph.monitor.cli", "live", "--segments", str(folder)]
    command += ["--listen", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise SystemExit("bench-live: heliograph live did not start")
            yield process.pid
        finally:
            process.terminate()


@contextlib.contextmanager
def _moving(engines: Engines) -> Iterator[None]:
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


def _share(pid: int, seconds: float, readers: Sequence[Reader] = ()) -> tuple[float, list[int]]:
    """Return CPU seconds per second of a process while readers request one update a second, and the bytes of those."""
    sizes: list[int] = []
    began, began_cpu = time.monotonic(), cpu_seconds(pid)
    for second in range(1, round(seconds) + 1):
        sizes += [reader.update() for reader in readers]
        time.sleep(max(0.0, began + second - time.monotonic()))
    return (cpu_seconds(pid) - began_cpu) / (time.monotonic() - began), sizes


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
        with _moving(engines), _server(folder, port) as pid:
            _share(pid, WARM_SECONDS)
            alone, _ = _share(pid, seconds)
            readers = [Reader(port) for _ in range(READERS)]
            try:
                _share(pid, WARM_SECONDS, readers)
                read, sizes = _share(pid, seconds, readers)
            finally:
                for reader in readers:
                    reader.close()
            rss = size_mb(pid)
            script, task, heap = _browser(f"http://127.0.0.1:{port}/", seconds) or (None, None, None)
    # A reader that comes before the next sample gets the stamp only.
    sent = [size for size in sizes if size > 2_000] or sizes
    return Figures(fleet, alone, read, rss, statistics.median(sent) / 1e3, script, task, heap)


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
        "| receiver-topics | CPU, no reader | CPU, 10 readers | RSS MB | kB of an update | script ms | with layout ms "
        "| heap MB |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {one.fleet.size:,} ({one.fleet.topics} x {one.fleet.receivers}) | {one.alone:.1%} | {one.read:.1%} "
        f"| {one.rss_mb:.0f} | {one.update_kb:.1f} | {shown(one.script_ms)} | {shown(one.task_ms)} "
        f"| {shown(one.heap_mb)} |"
        for one in found
    ]
    lines += [
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
