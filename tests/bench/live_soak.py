"""Memory of the live page over time: RSS of the server with ten readers, and the heap of a browser.

    python -m tests.bench.live_soak --seconds 1800

The fleet moves once a second (see `live.py`). The browser is Chromium with the page of one receiver; its garbage is
collected before the heap is read. The points of the page are 300, so the first five minutes fill them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.bench.bench_scrape import Engines, Fleet, segments, size_mb
from tests.bench.live import moving, readers, server
from tests.bench.report import machine, put_section
from tests.dashboards.browsing import chromium, until
from tests.ports import free_port

FLEET = Fleet(4, 6)
_MARKS = 12


class Mark(NamedTuple):
    """Memory at one moment."""

    seconds: float
    """Since the start."""
    rss_mb: float
    heap_mb: float
    messages: int
    """Messages that the ten readers have got."""


def measure(seconds: float) -> list[Mark]:
    """Run the page for some seconds and return its memory over time."""
    marks: list[Mark] = []
    with segments("heliograph-soak-") as folder, tempfile.TemporaryDirectory() as profile:
        port = free_port()
        with (
            moving(Engines(folder, FLEET)),
            server(folder, port) as pid,
            readers(port) as looking,
            chromium(Path(profile) / "profile") as driver,
        ):
            driver.get(f"http://127.0.0.1:{port}/receiver")
            script = "return document.getElementById('rx-state')?.innerText ?? ''"
            until(lambda: "live" in str(driver.execute_script(script)), "a live page", 120)
            began = time.monotonic()
            for mark in range(_MARKS + 1):
                time.sleep(max(0.0, began + seconds * mark / _MARKS - time.monotonic()))
                driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
                heap = driver.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"] / 1e6
                got = sum(len(reader.messages) for reader in looking)
                marks.append(Mark(time.monotonic() - began, size_mb(pid), heap, got))
                print(f"soak-live: {marks[-1]}", file=sys.stderr, flush=True)
    return marks


def section(marks: Sequence[Mark]) -> str:
    """Return the section of RESULTS.md."""
    facts = machine()
    lines = [
        "## The live page over time",
        "",
        f"`make soak-live`, {facts['date']}, {facts['processor']}. {FLEET.size} receiver-topics, ten readers, and a",
        "Chromium with the page of one receiver. The points of the page fill during the first 300 s.",
        "",
        "| seconds | RSS of the server MB | heap of the browser MB | messages |",
        "| ---: | ---: | ---: | ---: |",
    ]
    lines += [f"| {one.seconds:.0f} | {one.rss_mb:.1f} | {one.heap_mb:.1f} | {one.messages:,} |" for one in marks]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the section of RESULTS.md."""
    parser = argparse.ArgumentParser(description="Memory of the live page over time.")
    parser.add_argument("--seconds", type=int, default=1800, help="length of the run; default 1800")
    parser.add_argument("--dry", action="store_true", help="do not write RESULTS.md")
    options = parser.parse_args(arguments)
    body = section(measure(options.seconds))
    print(body)
    if not options.dry:
        put_section("live-soak", body)
    return 0


if __name__ == "__main__":
    sys.exit(main())
