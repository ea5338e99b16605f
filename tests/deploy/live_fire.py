"""A real fleet with real faults, a real Prometheus and Alertmanager, and a webhook that notes what arrives."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from heliograph.exporters.alerts.render import alertmanager, prometheus
from heliograph.exporters.alerts.settings import PREFIX, load
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / "deploy/alerts.toml"
KEEP = "10s"
"""In place of the settings' `keep`, which is minutes: the time to resolve is measured from the end of the fault."""


@dataclass
class Notes:
    """Notifications as they arrive: alert and labels, with the first time of firing and the last of resolving."""

    fired: dict[tuple[str, str], float] = field(default_factory=dict)
    resolved: dict[tuple[str, str], float] = field(default_factory=dict)
    texts: list[Mapping[str, Any]] = field(default_factory=list)
    change: threading.Condition = field(default_factory=threading.Condition)

    def take(self, body: Mapping[str, Any]) -> None:
        with self.change:
            for alert in body["alerts"]:
                labels = alert["labels"]
                # The stream or host stands in for the node of an alert that has none.
                key = (labels["alertname"].removeprefix(PREFIX), labels.get("node", ""))
                if alert["status"] == "firing":
                    self.fired.setdefault(key, time.monotonic())
                    self.texts.append(alert)
                else:
                    self.resolved[key] = time.monotonic()
            self.change.notify_all()

    def wait(self, table: Mapping[tuple[str, str], float], key: tuple[str, str], timeout: float) -> float:
        """Wait until a table has a key; return its time.

        Raises:
            AssertionError: It does not within the time.
        """
        with self.change:
            if not self.change.wait_for(lambda: key in table, timeout):
                which = "fired" if table is self.fired else "resolved"
                raise AssertionError(f"{key} has not {which} within {timeout:g} s; fired: {sorted(self.fired)}")
            return table[key]


@contextmanager
def webhook(notes: Notes) -> Iterator[int]:
    """Serve a webhook; yields its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            notes.take(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Fleet:
    """Processes of one live-fire run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.segments = folder / "segments"
        self.endpoint = f"rmm://239.192.77.{os.getpid() % 250 + 1}:{free_port()}?interface=127.0.0.1"
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.exporter = free_port()

    def spawn(self, name: str, command: list[str]) -> subprocess.Popen[str]:
        """Start a process with its output in a log."""
        with (self.folder / f"{name}.log").open("a") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, "HELIOGRAPH_SEGMENT_DIR": str(self.segments), "PYTHONPATH": str(ROOT)},
            )
        self.running[name] = process
        return process

    def actor(self, name: str, role: str, **more: Any) -> None:
        """Start a source or a receiver."""
        wanted = {"name": name, "role": role, "endpoint": self.endpoint, "topics": ["A", "B"], **more}
        self.spawn(name, [sys.executable, str(ROOT / "tests/deploy/live_actor.py"), json.dumps(wanted)])

    def command(self, *words: str) -> None:
        """Run a `heliograph` command to its end."""
        subprocess.run(
            [sys.executable, "-m", "heliograph.monitor.cli", *words],
            check=True,
            capture_output=True,
            timeout=60,
            env={**os.environ, "HELIOGRAPH_SEGMENT_DIR": str(self.segments)},
        )

    def export(self) -> None:
        """Start the exporter."""
        words = ["-m", "heliograph.monitor.cli", "export", "prometheus", f"--listen=127.0.0.1:{self.exporter}"]
        self.spawn("export", [sys.executable, *words, f"--segments={self.segments}"])

    def kill(self, name: str, number: int) -> None:
        self.running[name].send_signal(number)

    def end(self, name: str) -> None:
        """End a process; actors end when their standard input does."""
        process = self.running.pop(name)
        process.send_signal(signal.SIGCONT)
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def end_all(self) -> None:
        for name in list(self.running):
            self.end(name)


@contextmanager
def house(folder: Path, notes: Notes) -> Iterator[Fleet]:
    """A fleet, its exporter, Prometheus and Alertmanager with the project's own files."""
    fleet = Fleet(folder)
    fleet.segments.mkdir(mode=0o700, exist_ok=True)
    with ExitStack() as stack:
        port = stack.enter_context(webhook(notes))
        stack.callback(fleet.end_all)
        text = SETTINGS.read_text()
        text = re.sub(r'^keep = ".*"', f'keep = "{KEEP}"', text, flags=re.MULTILINE)
        text = text.replace('webhook = ""', f'webhook = "http://127.0.0.1:{port}/"')
        text = text.replace('wait = "10s"', 'wait = "1s"').replace('interval = "1m"', 'interval = "2s"')
        (folder / "alerts.toml").write_text(text)
        settings = load(folder / "alerts.toml")
        manager = free_port()
        (folder / "alertmanager.yml").write_text(alertmanager(settings))
        (folder / "rules").mkdir()
        (folder / "rules/heliograph.yml").write_text(prometheus(settings))
        config = (ROOT / "deploy/prometheus/prometheus.yml").read_text()
        config = config.replace("127.0.0.1:9464", f"127.0.0.1:{fleet.exporter}")
        config = config.replace("127.0.0.1:9093", f"127.0.0.1:{manager}")
        (folder / "prometheus.yml").write_text(config)
        fleet.actor("feed", "feed", rate=200, bursts=True)
        for name in ("alpha", "bravo", "charlie"):
            fleet.actor(name, "receiver")
        fleet.export()
        fleet.spawn(
            "alertmanager",
            [
                str(shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")),
                f"--config.file={folder / 'alertmanager.yml'}",
                f"--storage.path={folder / 'am'}",
                f"--web.listen-address=127.0.0.1:{manager}",
                "--cluster.listen-address=",
            ],
        )
        _wait_for_port(fleet.exporter)
        fleet.spawn(
            "prometheus",
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{free_port()}",
                "--log.level=warn",
            ],
        )
        yield fleet


def _wait_for_port(port: int, timeout: float = 60.0) -> None:
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"nothing listens on port {port}")


@dataclass(frozen=True)
class Fault:
    """A fault, the alert that it must raise, and its repair."""

    alert: str
    node: str
    about: str
    inject: Callable[[Fleet], None]
    heal: Callable[[Fleet], None]
    fires: float
    """Longest time until the notification, seconds."""
    resolves: float = 60.0
    """Longest time from the repair to the notification: at least the range of the rule and `KEEP`."""


def _garbage(fleet: Fleet) -> None:
    """Send packets that are not valid to the group, 50 a second, until healed."""
    group, _, port = fleet.endpoint.removeprefix("rmm://").partition("?")[0].partition(":")
    script = (
        "import socket,time\n"
        "s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
        "s.setsockopt(socket.IPPROTO_IP,socket.IP_MULTICAST_IF,socket.inet_aton('127.0.0.1'))\n"
        f"while True: s.sendto(b'garbage',('{group}',{port})); time.sleep(0.02)\n"
    )
    fleet.spawn("garbage", [sys.executable, "-c", script])


def _lossy(fleet: Fleet) -> None:
    """Start a steady feed above the least rate that has a ratio, and a receiver that loses packets of it."""
    fleet.actor("flood", "feed", rate=2000, topics=["STEADY"])
    fleet.actor("lossy", "receiver", topics=["STEADY"], options={"inject_loss": 0.05})


def _dies(fleet: Fleet) -> None:
    fleet.kill("alpha", signal.SIGKILL)
    fleet.running.pop("alpha").wait()


SHORT = (
    Fault("NodeDown", "alpha", "SIGKILL of a receiver", _dies, lambda f: f.actor("alpha", "receiver"), 50),
    Fault(
        "StatsStale",
        "bravo",
        "SIGSTOP of a receiver",
        lambda f: f.kill("bravo", signal.SIGSTOP),
        lambda f: f.kill("bravo", signal.SIGCONT),
        50,
    ),
    Fault(
        "FlightKept",
        "charlie",
        "`heliograph ctl freeze`",
        lambda f: f.command("ctl", "--instance", "charlie", "freeze"),
        lambda f: None,
        30,
        120,
    ),
)
"""These run side by side."""

GROUPS: Mapping[str, tuple[Fault, ...]] = {
    "processes": SHORT,
    "slow": (
        Fault(
            "ReceiverFallingBehind",
            "slow",
            "a receiver that takes 20 of 400 messages a second",
            lambda f: f.actor("slow", "receiver", pause=3.0),
            lambda f: f.end("slow"),
            150,
            90,
        ),
    ),
    "unmatched": (
        Fault(
            "ReceiverUnmatched",
            "deaf",
            "a receiver of a topic that nobody sends",
            lambda f: f.actor("deaf", "receiver", topics=["NOBODY"]),
            lambda f: f.end("deaf"),
            110,
        ),
    ),
    "lossy": (
        Fault(
            "NakRatioHigh",
            "flood",
            "a receiver that loses 5 % of its packets",
            _lossy,
            lambda f: f.end("lossy"),
            240,
            150,
        ),
    ),
    "invalid": (
        Fault(
            "ForeignOrInvalidPackets",
            "charlie",
            "50 invalid packets a second to the group",
            _garbage,
            lambda f: f.end("garbage"),
            130,
            120,
        ),
    ),
    "source": (
        Fault(
            "PublisherSilent",
            "",
            "SIGSTOP of the source",
            lambda f: f.kill("feed", signal.SIGSTOP),
            lambda f: f.kill("feed", signal.SIGCONT),
            60,
            90,
        ),
    ),
    "exporter": (
        Fault(
            "NodeDown",
            "",
            "the exporter ends",
            lambda f: f.end("export"),
            lambda f: f.export(),
            60,
            90,
        ),
    ),
}
"""Faults of a group run side by side; the groups run one after another, or alone by their names."""


def fire(
    fleet: Fleet, notes: Notes, faults: tuple[Fault, ...], note: Callable[[Fault, Mapping[str, Any]], None]
) -> list[str]:
    """Inject faults side by side, wait for their alerts, repair, wait for the resolutions.

    Calls `note` with each time as soon as it is known, and repairs every fault in any case.

    Returns:
        What did not happen in time.
    """
    missing = []

    def within(what: str, table: Mapping[tuple[str, str], float], fault: Fault, since: float, limit: float) -> None:
        try:
            left = max(0.0, since + limit - time.monotonic())
            note(fault, {what: round(notes.wait(table, (fault.alert, fault.node), left) - since, 1)})
        except AssertionError as failure:
            missing.append(str(failure))
            note(fault, {"failure": str(failure), f"{what}_limit": limit})

    began = {}
    for fault in faults:
        notes.fired.pop((fault.alert, fault.node), None)
        began[fault] = time.monotonic()
        fault.inject(fleet)
    for fault in faults:
        within("fired", notes.fired, fault, began[fault], fault.fires)
    healed = {}
    for fault in faults:
        notes.resolved.pop((fault.alert, fault.node), None)
        healed[fault] = time.monotonic()
        fault.heal(fleet)
    for fault in faults:
        if (fault.alert, fault.node) in notes.fired:
            within("resolved", notes.resolved, fault, healed[fault], fault.resolves)
    wanted = {(fault.alert, fault.node) for fault in faults}
    first = min(began.values())
    also = {
        f"{alert} {node}".strip(): round(at - first, 1)
        for (alert, node), at in sorted(notes.fired.items())
        if at >= first and (alert, node) not in wanted
    }
    for fault in faults:
        note(fault, {"also": also})
    return missing
