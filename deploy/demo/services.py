"""Monitoring of the demo: packet capture, exporters, Prometheus, the live page; and the jobs that run afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from children import Child, Children

from heliograph.dashboards.live.capture import browser

__all__ = ["Places", "Watchers"]

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Places:
    """Files and directories of one demo."""

    top: Path
    """The repository."""
    out: Path
    """Output directory."""
    segments: Path
    """Stats segments of the demo's instances only."""

    @property
    def logs(self) -> Path:
        """Output of every process."""
        return self.out / "logs"

    @property
    def decisions(self) -> Path:
        """The feed's decision logs."""
        return self.out / "decisions"


def heliograph(*words: str | Path) -> list[str]:
    """Return a command line of the installed `heliograph`."""
    return [sys.executable, "-m", "heliograph.monitor.cli", *(str(word) for word in words)]


def wait_for_page(url: str, child: Child, timeout: float = 20.0) -> bool:
    """Whether the child serves the page within `timeout` seconds."""
    until = time.monotonic() + timeout
    while time.monotonic() < until and child.process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2.0):
                return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    return False


class Watchers:
    """Starts all monitoring; programs that are not installed are skipped with a message."""

    def __init__(self, children: Children, places: Places, say: Say) -> None:
        self._children = children
        self._places = places
        self._say = say

    def capture(self, device: str) -> Child | None:
        """Write every UDP packet of the feed's interface to capture.pcap; None where that is not possible."""
        if shutil.which("tcpdump") is None:
            self._say("tcpdump is not installed: no capture.pcap")
            return None
        if os.geteuid() != 0:
            self._say("packet capture needs root: no capture.pcap")
            return None
        file = self._places.out / "capture.pcap"
        command: list[str | Path] = [
            "tcpdump",
            "-i",
            device,
            "-n",
            "-U",
            "-B",
            "16384",
            "-Z",
            "root",
            "-w",
            file,
            "udp",
        ]
        child = self._children.start("tcpdump", command, end_signal=signal.SIGINT)
        until = time.monotonic() + 5.0
        while time.monotonic() < until and child.process.poll() is None:
            if b"listening on" in child.log.read_bytes():
                break
            time.sleep(0.02)
        return child

    def prometheus(self, port: int, exporter_port: int) -> Child | None:
        """Run Prometheus with the configuration of the project; None where it is not installed."""
        if shutil.which("prometheus") is None:
            self._say("Prometheus is not installed: nothing scrapes the exporter")
            return None
        source = self._places.top / "deploy/prometheus"
        folder = self._places.out / "prometheus"
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("tests", "*.md"))
        config = folder / "prometheus.yml"
        text = config.read_text(encoding="utf-8").replace("127.0.0.1:9464", f"127.0.0.1:{exporter_port}")
        config.write_text(text, encoding="utf-8")
        return self._children.start(
            "prometheus",
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=warn",
            ],
        )

    def exporters(self, port: int) -> Child:
        """Export to Prometheus, to a spool and to an interval log, in one process."""
        return self._children.start(
            "export",
            heliograph(
                "export",
                "prometheus",
                "spool",
                "hdrlog",
                f"--listen=127.0.0.1:{port}",
                f"--dir={self._places.out / 'spool'}",
                f"--file={self._places.out / 'latency.hlog'}",
            ),
        )

    def live(self, port: int) -> Child:
        """Serve the live page; waits until it answers."""
        child = self._children.start("live", heliograph("live", f"--listen=127.0.0.1:{port}"))
        if not wait_for_page(f"http://127.0.0.1:{port}/", child):
            self._say(f"the live page does not answer:\n{child.last_words()}")
        return child

    def picture(self, port: int) -> bool:
        """Write live.png, a picture of the live page; returns whether that worked (needs Chromium)."""
        if browser() is None:
            self._say("Chromium is not installed: no live.png")
            return True
        url, file = f"http://127.0.0.1:{port}/", self._places.out / "live.png"
        return self.job("picture", heliograph("live", f"--capture={file}", f"--url={url}"), timeout=90.0)

    def metrics(self) -> bool:
        """Write metrics.prom, one exposition of all metrics."""
        file = self._places.out / "metrics.prom"
        return self.job("metrics", heliograph("export", "prometheus", "--once", f"--out={file}"))

    def events(self) -> bool:
        """Write events.txt with the events of every instance, oldest first."""
        file = self._places.out / "events.txt"
        if not self.job("events", heliograph("events")):
            return False
        shutil.copy(self._places.logs / "events.log", file)
        return True

    def replay(self) -> bool:
        """Replay every decision of the feed from its decision log; returns whether all results are equal."""
        logs = sorted(self._places.decisions.iterdir())
        if not logs or not self.job("replay", heliograph("lab", "replay", *logs)):
            return False
        for line in (self._places.logs / "replay.log").read_text(encoding="utf-8").splitlines():
            self._say(f"replay: {line}")
        return True

    def study(self) -> bool:
        """Roll the spool up and write the report, both on Spark; returns whether that worked (needs Java)."""
        if shutil.which("java") is None:
            self._say("Java is not installed: no history/ and no report.html")
            return True
        out = self._places.out
        self._say("rolling up the recorded latency and writing the report (Spark, some seconds)")
        history, report = out / "history", out / "report.html"
        if not self.job("rollup", heliograph("history", "rollup", f"--spool={out / 'spool'}", f"--history={history}")):
            return False
        if not self.job("report", heliograph("history", "report", f"--history={history}", f"--out={report}")):
            return False
        self._say(f"report: {report}")
        return True

    def job(self, name: str, command: list[str], timeout: float = 600.0) -> bool:
        """Run a command to its end with its output in a log; prints the end of the log when it fails."""
        child = self._children.start(name, command)
        child.asked_to_end = True
        try:
            code = child.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._children.end(child)
            code = child.process.returncode
        if code != 0:
            self._say(f"{name} failed (exit code {code}):\n{child.last_words()}")
        return code == 0
