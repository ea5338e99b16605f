"""Scenarios on real sockets: the same files, with namespaces of the kernel for a network and `tc tbf` for a bottleneck.

    source 198.18.79.1  ===== cable, tbf on the source's end =====  198.18.79.2 receivers

Sources and receivers are processes of their own (``heliograph pub`` and ``heliograph sub``): what runs is what people
run. A TCP flow is one of the kernel's. The curves come from the counters of the queue and of the stats segments, and
have the names of simulated ones, so that the same measures and pages serve. Time is real: a run takes its duration,
runs go one after the other, and no two are the same.

It needs root, `ip` and `tc`. All it makes, namespaces, processes and a folder, is gone when it ends, however it ends.
The addresses are of 198.18.0.0/15, set apart for tests of network equipment and never routed.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl

from heliograph.engine import catalogue
from heliograph.monitor.lab.curves import Curves, Receiver
from heliograph.monitor.lab.scenario import Plan, ScenarioError, Source

__all__ = ["check", "missing", "run"]

_NEAR, _FAR = "198.18.79.1", "198.18.79.2"
_GROUP = "239.192.79.1:7500"
_TOPIC = "LAB"
_HELIOGRAPH = (sys.executable, "-m", "heliograph.monitor.cli")
_SETTLE_SECONDS = 1.0
"""For receivers and the TCP sink to stand before the clock starts."""
_STOP_SECONDS = 5.0
_numbers = itertools.count()


def missing() -> str:
    """The tools or rights that this host lacks for a run on real sockets; empty when none."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    lacking = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    return f"there is no {' and no '.join(lacking)} here (package iproute2)" if lacking else ""


def check(file: str, plan: Plan) -> None:
    """Whether a plan asks for nothing that real sockets cannot give.

    Raises:
        ScenarioError: it does; the sentence says what.
    """
    simulated = ("loss", "jitter", "delay", "join")
    for group in plan.receivers:
        wrong = [name for name in simulated if getattr(group, name) > (0.001 if name == "delay" else 0)]
        wrong += ["drain"] * (group.drain >= 0) + ["access"] * (group.access_rate > 0)
        if wrong:
            raise ScenarioError(f"{file}: receivers {group.name}: {wrong[0]} is for network = simulated only")
    if len(plan.pipes) != 1 or plan.pipes[0].delay or plan.pipes[0].loss:
        raise ScenarioError(f"{file}: with network = namespaces there is one pipe, without loss and delay of its own")
    if any(turn.knob != "pipe" for turn in plan.turns):
        raise ScenarioError(f"{file}: with network = namespaces only the pipe's rate changes")
    if plan.duration > 60:
        raise ScenarioError(f"{file}: with network = namespaces a run takes 60 seconds at most")


# ---- the network ----


def _do(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"`{' '.join(command)}`: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class _Cable:
    """Two namespaces by their names, and the bottleneck at the near end."""

    near: str
    far: str

    @staticmethod
    def at(namespace: str) -> tuple[str, ...]:
        """The first words of a command that runs there."""
        return ("ip", "netns", "exec", namespace)

    def narrow(self, verb: str, rate: int, queue: int) -> None:
        """Give the bottleneck a rate, bytes per second, and a queue, bytes."""
        words = f"rate {8 * rate}bit burst {max(3200, rate // 1000)} limit {queue}".split()
        _do(*self.at(self.near), "tc", "qdisc", verb, "dev", "near", "root", "tbf", *words)

    def look(self) -> tuple[float, float, float, float]:
        """Bytes and packets that went through, packets dropped, bytes that wait."""
        facts = json.loads(_do(*self.at(self.near), "tc", "-s", "-j", "qdisc", "show", "dev", "near", "root"))[0]
        return facts["bytes"], facts["packets"], facts["drops"], facts["backlog"]


@contextlib.contextmanager
def _lay(plan: Plan) -> Iterator[_Cable]:
    number = f"{os.getpid()}-{next(_numbers)}"
    cable = _Cable(f"helio-lab-near-{number}", f"helio-lab-far-{number}")
    ends = ((cable.near, "near", _NEAR), (cable.far, "far", _FAR))
    try:
        for namespace, _, _ in ends:
            _do("ip", "netns", "add", namespace)
        _do("ip", "link", "add", "near", "netns", cable.near, "type", "veth", "peer", "name", "far", "netns", cable.far)
        for namespace, device, address in ends:
            _do(*cable.at(namespace), "ip", "address", "add", f"{address}/30", "dev", device)
            _do(*cable.at(namespace), "ip", "link", "set", "lo", "up")
            _do(*cable.at(namespace), "ip", "link", "set", device, "up")
        cable.narrow("add", plan.pipes[0].rate, plan.pipes[0].queue)
        yield cable
    finally:
        for namespace, _, _ in ends:
            subprocess.run(("ip", "netns", "delete", namespace), capture_output=True, check=False)


# ---- the processes ----


@dataclass(slots=True)
class _Crew:
    """The processes of a run."""

    folder: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *command: str) -> None:
        """Start one; it hears Ctrl-C only through us."""
        environment = os.environ | {"HELIOGRAPH_SEGMENT_DIR": self.folder}
        self.processes.append(
            subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )

    def stop(self) -> None:
        """End all of them."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + _STOP_SECONDS
        for process in self.processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _options(text: str | None) -> list[str]:
    return [word for name, value in parse_qsl(text or "") for word in ("-o", f"{name}={value}")]


def _endpoint(address: str) -> str:
    return f"rmm://{_GROUP}?interface={address}"


def _start_receivers(crew: _Crew, cable: _Cable, plan: Plan) -> None:
    for number, group in enumerate(plan.receivers):
        for i in range(group.count):
            name = ("-o", f"name=group{number}-{i}")
            crew.start(
                *(*cable.at(cable.far), *_HELIOGRAPH, "sub", _endpoint(_FAR), _TOPIC, "--format", "quiet"),
                *(*name, *_options(group.options)),
            )


def _start_source(crew: _Crew, cable: _Cable, number: int, source: Source, seconds: float) -> None:
    rate = source.offered / source.message
    crew.start(
        *(*cable.at(cable.near), *_HELIOGRAPH, "pub", _endpoint(_NEAR), _TOPIC),
        *("--size", str(source.message), "--rate", f"{rate:.0f}", "--count", str(int(rate * seconds))),
        *("-o", f"name=source{number}", *_options(source.options)),
    )


_TCP_SINK = """
import os, socket, sys
door = socket.create_server(("", int(sys.argv[1])))
line, _ = door.accept()
count = 0
while data := line.recv(1 << 18):
    count += len(data)
    with open(sys.argv[2] + ".new", "w") as file:
        file.write(str(count))
    os.replace(sys.argv[2] + ".new", sys.argv[2])
"""
_TCP_FLOW = """
import socket, sys, time
time.sleep(float(sys.argv[2]))
line = socket.create_connection((sys.argv[1], int(sys.argv[3])))
while True:
    line.sendall(bytes(1 << 16))
"""


def _start_tcp(crew: _Crew, cable: _Cable, plan: Plan) -> None:
    for i, _ in enumerate(plan.tcps):
        crew.start(*cable.at(cable.far), sys.executable, "-c", _TCP_SINK, str(7600 + i), f"{crew.folder}/tcp{i}")


def _start_tcp_senders(crew: _Crew, cable: _Cable, plan: Plan) -> None:
    for i, tcp in enumerate(plan.tcps):
        crew.start(*cable.at(cable.near), sys.executable, "-c", _TCP_FLOW, _FAR, f"{tcp.start:g}", str(7600 + i))


# ---- the curves ----


@dataclass(slots=True)
class _Book:
    """Rows as they are read, with the columns of a simulated run."""

    plan: Plan
    tx_cells: tuple[str, ...]
    rx_cells: tuple[str, ...]
    names: list[str]
    values: array[float]

    @classmethod
    def of(cls, plan: Plan) -> _Book:
        """An empty one."""
        tx, rx = (tuple(cell.name for cell in catalogue.scopes()[scope].cells) for scope in ("tx_stream", "rx_stream"))
        names = ["time"]
        names += [f"pipe0.{what}" for what in ("rate", "queue_limit", "queue", "queue_peak", "bytes", "packets")]
        names += ["pipe0.dropped", "pipe0.lost"]
        for i in range(len(plan.sources)):
            names += [f"source{i}.{cell}" for cell in tx]
        for i in range(len(plan.receivers)):
            names += [f"group{i}.{what}" for what in ("delivered", "lost", "latency", "queue")]
            names += [f"group{i}.{cell}" for cell in rx]
        names += [f"tcp{i}.acked" for i in range(len(plan.tcps))]
        return cls(plan, tx, rx, names, array("d"))

    def read(self, at: float, cable: _Cable, rate: int, queue: int, folder: str) -> None:
        """One row."""
        through, packets, dropped, waiting = cable.look()
        self.values.extend([at, rate, queue, waiting, waiting, through, packets, dropped, 0.0])
        objects = _objects(folder)
        for i in range(len(self.plan.sources)):
            self.values.extend(_sum(objects, f"source{i}", "tx_stream", self.tx_cells))
        for i in range(len(self.plan.receivers)):
            delivered, lost = _sum(objects, f"group{i}-", "receiver", ("messages_delivered", "messages_lost"))
            self.values.extend([delivered, lost, 0.0, 0.0])
            self.values.extend(_sum(objects, f"group{i}-", "rx_stream", self.rx_cells))
        for i in range(len(self.plan.tcps)):
            self.values.append(_count(f"{folder}/tcp{i}"))


def _count(path: str) -> float:
    try:
        with open(path, encoding="ascii") as file:
            return float(file.read())
    except OSError:
        return 0.0


_Values = Mapping[str, float]
_HEADER = struct.Struct("=88xQIIQ")
"""Of a segment (docs/segment.md 1): where the objects are, how many fit, how long each is, how many there are."""
_OBJECT = struct.Struct("=IIQQQ")
"""Of an object (3): state, scope, generation, where its record is and how long."""
_LABELS = 48
"""Where an object's labels are."""
_LIVE = 1


def _objects(folder: str) -> list[tuple[str, str, _Values]]:
    """Instance, scope and values of all that is counted now.

    The segments are those of this very version, so their records have the catalogue's order.
    """
    scopes = {scope.id: scope for scope in catalogue.scopes().values()}
    found: list[tuple[str, str, _Values]] = []
    for path in Path(folder).glob("*.helio"):
        with contextlib.suppress(OSError, ValueError), path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            begin, _, entry, used = _HEADER.unpack_from(data)
            for at in range(begin, begin + entry * used, entry):
                state, kind, _, record, _ = _OBJECT.unpack_from(data, at)
                if state != _LIVE or kind not in scopes:
                    continue
                cells = scopes[kind].cells
                values = struct.unpack_from(f"={len(cells)}Q", data, record + 8)
                labels = data[at + _LABELS : at + entry].partition(b"\n")[0]
                name = labels.decode().removeprefix("instance=")
                found.append((name, scopes[kind].name, dict(zip((cell.name for cell in cells), values, strict=True))))
            data.close()
    return found


def _sum(objects: Sequence[tuple[str, str, _Values]], begin: str, scope: str, names: Sequence[str]) -> list[float]:
    found = [values for name, kind, values in objects if kind == scope and name.startswith(begin)]
    return [float(sum(values.get(name, 0.0) for values in found)) for name in names]


def _record(plan: Plan, cable: _Cable, crew: _Crew) -> _Book:
    """Run the plan's time, one row an interval."""
    book = _Book.of(plan)
    rate, queue = plan.pipes[0].rate, plan.pipes[0].queue
    turns = list(plan.turns)
    begin = time.monotonic()
    for row in range(1, round(plan.duration / plan.interval) + 1):
        until = row * plan.interval
        while turns and turns[0].at <= until:
            turn = turns.pop(0)
            time.sleep(max(0.0, begin + turn.at - time.monotonic()))
            rate, queue = int(turn.value), int(turn.second)
            cable.narrow("change", rate, queue)
        time.sleep(max(0.0, begin + until - time.monotonic()))
        book.read(until, cable, rate, queue, crew.folder)
    return book


def run(plan: Plan) -> Curves:
    """Run a plan on real sockets; it takes the plan's duration.

    Raises:
        RuntimeError: the host does not let us; the sentence says why.
    """
    if lacking := missing():
        raise RuntimeError(lacking)
    with tempfile.TemporaryDirectory(prefix="heliograph-lab-") as folder, _lay(plan) as cable:
        crew = _Crew(folder)
        try:
            _start_receivers(crew, cable, plan)
            _start_tcp(crew, cable, plan)
            time.sleep(_SETTLE_SECONDS)
            for number, source in enumerate(plan.sources):
                _start_source(crew, cable, number, source, plan.duration)
            _start_tcp_senders(crew, cable, plan)
            book = _record(plan, cable, crew)
        finally:
            crew.stop()
    receivers = [
        Receiver(i, 0, 0, 0, float("inf")) for i, group in enumerate(plan.receivers) for _ in range(group.count)
    ]
    return Curves(plan, book.names, book.values.tobytes(), [], receivers, b"")
