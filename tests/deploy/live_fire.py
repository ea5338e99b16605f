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
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any

from heliograph.exporters.alerts.render import alertmanager, prometheus
from heliograph.exporters.alerts.settings import PREFIX, load
from heliograph.monitor.sampler import Sampler
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / "deploy/alerts.toml"
KEEP = "10s"
"""In place of the settings' `keep`, which is minutes: the time to resolve is measured from the end of the fault."""
SHOWN = ("node", "stream", "receiver", "host", "module", "reason", "decision")
QUIET = {"idle": "block", "flight_interval": 0.1}
"""Options of instances that share two cores with fifty others."""


@dataclass(frozen=True)
class Note:
    """The notification of an alert."""

    alert: str
    labels: Mapping[str, str]
    fires: bool
    """Otherwise it is resolved."""
    began: float
    """Time at which the alert began to fire, by the wall clock."""
    arrived: float
    """Time of its arrival, by the monotonic clock."""

    def is_of(self, alert: str, labels: Mapping[str, str]) -> bool:
        return self.alert == alert and all(self.labels.get(key, "") == value for key, value in labels.items())

    def __str__(self) -> str:
        return f"{self.alert} {' '.join(f'{k}={v}' for k, v in sorted(self.labels.items()) if k in SHOWN)}".strip()


class Notes:
    """The notifications, in order of arrival."""

    def __init__(self) -> None:
        self.all: list[Note] = []
        self.texts: list[Mapping[str, Any]] = []
        self.change = threading.Condition()

    def take(self, body: Mapping[str, Any]) -> None:
        with self.change:
            for alert in body["alerts"]:
                labels = dict(alert["labels"])
                name, fires = labels.pop("alertname").removeprefix(PREFIX), alert["status"] == "firing"
                began = datetime.fromisoformat(alert["startsAt"]).timestamp()
                self.all.append(Note(name, labels, fires, began, time.monotonic()))
                if fires:
                    self.texts.append(alert)
            self.change.notify_all()

    def find(self, alert: str, labels: Mapping[str, str], fires: bool, since: float) -> Note | None:
        """The first notification since a time of the monotonic clock. An alert that fired before it does not count."""
        wall = time.time() - (time.monotonic() - since)
        for note in self.all:
            is_new = note.arrived >= since and (not fires or note.began >= wall - 1.0)
            if is_new and note.fires == fires and note.is_of(alert, labels):
                return note
        return None

    def wait(self, alert: str, labels: Mapping[str, str], fires: bool, since: float, limit: float) -> Note:
        """Wait for a notification until `limit` seconds after `since`.

        Raises:
            AssertionError: It does not arrive.
        """
        with self.change:
            while (found := self.find(alert, labels, fires, since)) is None:
                left = since + limit - time.monotonic()
                if left <= 0:
                    what = "fired" if fires else "resolved"
                    raise AssertionError(f"{alert} {dict(labels)} has not {what} within {limit:g} s")
                self.change.wait(left)
            return found

    def fired(self, since: float = 0.0) -> list[Note]:
        """The alerts that began to fire since then, each once."""
        with self.change:
            wall = time.time() - (time.monotonic() - since) if since else 0.0
            return list({str(note): note for note in reversed(self.all) if note.fires and note.began >= wall}.values())


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
        self.lock = threading.Lock()
        self.ports: defaultdict[str, int] = defaultdict(free_port)
        self.group = f"239.192.77.{os.getpid() % 250 + 1}"
        self.endpoint = self.place("house")
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.exporters: dict[str, int] = {"export": self.port("export")}
        """Ports of the exporters that Prometheus scrapes."""

    def port(self, name: str) -> int:
        """The port of a name."""
        with self.lock:
            return self.ports[name]

    def place(self, name: str) -> str:
        """The endpoint of a name: a port of its own."""
        return f"rmm://{self.group}:{self.port(name)}?interface=127.0.0.1"

    def segments_of(self, host: str = "") -> Path:
        """The folder of the segments of a host: of this one, or of one that is played."""
        folder = self.folder / f"segments-{host}" if host else self.segments
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def spawn(
        self,
        name: str,
        command: list[str],
        *,
        host: str = "",
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> subprocess.Popen[str]:
        """Start a process with its output in a log.

        Args:
            name: Name of the process in this fleet.
            command: Words of the command.
            host: Host that is played, see `segments_of`.
            prefix: Words before the command, such as those of `unshare`.
            environment: Further environment variables.
        """
        own = {"HELIOGRAPH_SEGMENT_DIR": str(self.segments_of(host)), "PYTHONPATH": str(ROOT)}
        with (self.folder / f"{name}.log").open("a") as log:
            process = subprocess.Popen(
                [*prefix, *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, **own, **environment},
            )
        self.running[name] = process
        return process

    def actor(self, name: str, role: str, **more: Any) -> None:
        """Start an actor, see live_actor.py; `host`, `prefix` and `environment` are those of `spawn`."""
        of_process = {key: more.pop(key) for key in ("host", "prefix", "environment") if key in more}
        wanted = {"name": name, "role": role, "endpoint": self.endpoint, "topics": ["A", "B"], **more}
        self.spawn(name, [sys.executable, str(ROOT / "tests/deploy/live_actor.py"), json.dumps(wanted)], **of_process)

    def heliograph(self, name: str, *words: str, **more: Any) -> subprocess.Popen[str]:
        """Start a `heliograph` command; `more` is that of `spawn`."""
        return self.spawn(name, [sys.executable, "-m", "heliograph.monitor.cli", *words], **more)

    def command(self, *words: str) -> None:
        """Run a `heliograph` command to its end."""
        subprocess.run(
            [sys.executable, "-m", "heliograph.monitor.cli", *words],
            check=True,
            capture_output=True,
            timeout=60,
            env={**os.environ, "HELIOGRAPH_SEGMENT_DIR": str(self.segments)},
        )

    def export(self, name: str = "export", *words: str) -> None:
        """Start an exporter on its port; without words, that of this host."""
        source = words or (f"--segments={self.segments}",)
        self.heliograph(name, "export", "prometheus", f"--listen=127.0.0.1:{self.exporters[name]}", *source)

    def stream_of(self, name: str, timeout: float = 30.0) -> str:
        """The label of the stream that an instance sends.

        Raises:
            AssertionError: It sends none.
        """
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            with Sampler(self.segments) as sampler:
                for instance, item in sampler.sample(histograms=False).of("tx_stream"):
                    if instance.name == name:
                        return item.labels["stream"]
            time.sleep(0.2)
        raise AssertionError(f"{name} sends no stream")

    def kill(self, name: str, number: int) -> None:
        self.running[name].send_signal(number)

    def say(self, name: str, line: str) -> None:
        """Write a line to the standard input of a process."""
        pipe = self.running[name].stdin
        assert pipe
        pipe.write(line + "\n")
        pipe.flush()

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
        for process in self.running.values():
            process.send_signal(signal.SIGCONT)
            if process.stdin is not None:
                process.stdin.close()
        for name in list(self.running):
            self.end(name)


@contextmanager
def house(folder: Path, notes: Notes, prepare: Callable[[Fleet], None] = lambda _: None) -> Iterator[Fleet]:
    """A fleet, its exporter, Prometheus and Alertmanager with the project's own files.

    `prepare` starts what runs beside them from the beginning, and may add exporters.
    """
    fleet = Fleet(folder)
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
        fleet.actor("feed", "feed", rate=200, bursts=True)
        for name in ("alpha", "bravo", "charlie"):
            fleet.actor(name, "receiver")
        fleet.export()
        prepare(fleet)
        targets = '", "'.join(f"127.0.0.1:{port}" for port in fleet.exporters.values())
        config, changed = re.subn(r'"127\.0\.0\.1:9464"\]\n\n', f'"{targets}"]\n\n', config)
        assert changed == 1
        config = config.replace("127.0.0.1:9093", f"127.0.0.1:{manager}")
        (folder / "prometheus.yml").write_text(config)
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
        for at in fleet.exporters.values():
            wait_for_port(at)
        fleet.spawn(
            "prometheus",
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{fleet.port('prometheus')}",
                "--log.level=warn",
            ],
        )
        yield fleet


def wait_for_port(port: int, timeout: float = 60.0) -> None:
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"nothing listens on port {port}")
