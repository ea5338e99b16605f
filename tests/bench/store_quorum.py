"""Rows of `make bench-store` for several stores, and for a store that begins again after a kill.

- Stability: three stores, ``acks=2`` and ``acks_from=stores``; a message is sent, and the time until it is stable is
  taken, one after the other. The reference is what cannot be avoided: two round trips of a datagram between processes
  on the loopback, and one write of a batch with its fsync in the same directory.
- Restart: a store with much data is killed while it writes. Taken are the time from the start of its process until it
  keeps, against a store with an empty directory, which has all of the cost of starting Python; and the time from there
  until it has acknowledged what the source held meanwhile, against a store with little data.
- Balanced: each of three stores keeps a third of the messages, in directories of their own, against one store that
  keeps all. Each third is a topic with an endpoint of its own.
"""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from heliograph.engine import Instance, TimeoutExpired, Transmitter
from tests.ports import free_port

__all__ = ["Restarted", "balanced", "restarted", "stability", "unavoidable"]

SIZE = 64
LIST = 4096
TOPIC = "BENCH"
LARGE = 32768
"""Bytes of a message of the store that is killed."""
STABLE_BATCH = "0s"
HELIOGRAPH = (sys.executable, "-m", "heliograph.monitor.cli")


def endpoint() -> str:
    """A group and a port that nobody else uses."""
    return f"rmm://239.192.98.{os.getpid() % 250 + 1}:{free_port()}?interface=127.0.0.1"


def _start(folder: Path, where: str, *more: str) -> subprocess.Popen[str]:
    """A store that keeps; its directory may have files."""
    command = [*HELIOGRAPH, "store", "serve", str(folder), where, TOPIC, "-o", f"name={folder.name}", *more]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    line = process.stderr.readline()
    if not line.startswith("keeping"):
        raise RuntimeError(f"{' '.join(command)}: {line}{process.stderr.read()}")
    return process


@contextmanager
def _serving(folder: Path, where: str, *more: str) -> Iterator[None]:
    process = _start(folder, where, *more)
    try:
        yield
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _until_acked(transmitter: Transmitter, count: int, seconds: float = 60.0) -> None:
    """Wait until this number of receivers has acknowledged a message."""
    end = time.monotonic() + seconds
    names: set[str] = set()
    while len(names) < count:
        names |= {ack.name for ack in transmitter.acks()}
        if time.monotonic() > end:
            raise RuntimeError(f"{len(names)} stores acknowledge, not {count}")
        time.sleep(0.01)


def stability(folder: Path, messages: int) -> float:
    """Median seconds from sending a message until it is stable."""
    where = endpoint()
    with ExitStack() as parts:
        name = parts.enter_context(tempfile.TemporaryDirectory(dir=folder))
        source = parts.enter_context(Instance(name="bench-source"))
        sender = parts.enter_context(source.transmitter(where, TOPIC, acks=2, acks_from="stores", linger=0.0))
        for store in ("one", "two", "three"):
            parts.enter_context(_serving(Path(name) / store, where, "--batch-time", STABLE_BATCH))
        sender.send(bytes(SIZE), timeout=30)
        _until_acked(sender, 3)
        found = []
        for _ in range(messages):
            begun = time.perf_counter()
            sender.send(bytes(SIZE), timeout=30)
            sender.wait_stable(timeout=30)
            found.append(time.perf_counter() - begun)
            time.sleep(0.002)
    return statistics.median(found)


def round_trip(rounds: int) -> float:
    """Median seconds of a datagram to another process and back, on the loopback."""
    code = (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.bind(('127.0.0.1', 0))\n"
        "print(s.getsockname()[1], flush=True)\n"
        "while True:\n"
        "    data, sender = s.recvfrom(2048)\n"
        "    s.sendto(data, sender)\n"
    )
    with (
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own,
    ):
        try:
            assert other.stdout
            own.connect(("127.0.0.1", int(other.stdout.readline())))
            own.settimeout(5)
            found = []
            for _ in range(rounds):
                begun = time.perf_counter()
                own.send(bytes(SIZE))
                own.recv(2048)
                found.append(time.perf_counter() - begun)
                time.sleep(0.002)
        finally:
            other.kill()
    return statistics.median(found)


def _synced(folder: Path, rounds: int) -> float:
    """Median seconds of a write and its fsync."""
    found = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        for number in range(rounds):
            block = bytes(200)
            begun = time.perf_counter()
            os.pwrite(file.fileno(), block, number * len(block))
            os.fsync(file.fileno())
            found.append(time.perf_counter() - begun)
            time.sleep(0.002)
    return statistics.median(found)


def unavoidable(folder: Path, rounds: int) -> float:
    """Seconds of two round trips and one fsync."""
    return 2 * round_trip(rounds) + _synced(folder, rounds)


@dataclass(frozen=True)
class Restarted:
    """What a restart took, seconds.

    Attributes:
        ready: From the start of the process until it says that it keeps.
        acknowledged: From there until it has acknowledged a message that it did not have.
        kept_bytes: Bytes of its files before the restart.
    """

    ready: float
    acknowledged: float
    kept_bytes: int


class _Filler(threading.Thread):
    """Sends messages as fast as the store acknowledges them."""

    def __init__(self, sender: Transmitter) -> None:
        super().__init__()
        self.sent = 0
        self._sender = sender
        self._ends = threading.Event()
        self.start()

    def run(self) -> None:
        """Send until it is stopped."""
        body = bytes(LARGE)
        while not self._ends.is_set():
            with contextlib.suppress(TimeoutExpired):
                self._sender.send(body, timeout=0.2)
                self.sent += 1

    def stop(self) -> None:
        """Send no more."""
        self._ends.set()
        self.join()


def restarted(folder: Path, size: int) -> Restarted:
    """Fill a store, kill it while it writes, and start it again.

    Args:
        folder: Directory on the disk that is measured.
        size: Bytes of payload that the store has at least when it is killed; 0: it is empty.
    """
    where = endpoint()
    with ExitStack() as parts:
        store = Path(parts.enter_context(tempfile.TemporaryDirectory(dir=folder))) / "store"
        source = parts.enter_context(Instance(name="bench-source"))
        sender = parts.enter_context(source.transmitter(where, TOPIC, acks=1, send_window=4096, linger=0.0))
        process = _start(store, where, "--fsync", "never")
        filler = _Filler(sender) if size else None
        if filler:
            parts.callback(filler.stop)
            last = size // LARGE
            while filler.sent <= last:
                time.sleep(0.01)
            sender.wait_stable(last, timeout=600)
        process.kill()
        process.communicate()
        if filler:
            time.sleep(0.1)  # what it sends now no store has
        kept_bytes = sum(file.stat().st_size for file in store.glob("*.seg"))
        begun = time.perf_counter()
        process = _start(store, where, "--fsync", "never")
        ready = time.perf_counter() - begun
        if filler:
            sender.wait_stable(filler.sent - 1, timeout=60)
        else:
            sender.send(bytes(LARGE), timeout=60)
            sender.wait_stable(timeout=60)
        acknowledged = time.perf_counter() - begun - ready
        process.terminate()
        process.communicate(timeout=60)
    return Restarted(ready, acknowledged, kept_bytes)


def balanced(folder: Path, stores: int, messages: int) -> float:
    """Messages per second that `stores` keep together, until the last is acknowledged; three sources send."""
    packed = bytes(SIZE * LIST)
    places = [endpoint() for _ in range(stores)]
    with ExitStack() as parts:
        name = Path(parts.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        for number, where in enumerate(places):
            parts.enter_context(_serving(name / f"store-{number}", where))
        senders = []
        for number in range(3):
            source = parts.enter_context(Instance(name=f"bench-source-{number}"))
            sender = source.transmitter(places[number % stores], TOPIC, acks=1, send_window=16384, linger=0.0)
            senders.append(parts.enter_context(sender))
        for sender in senders:
            sender.send(bytes(SIZE), timeout=30)
            sender.wait_acked(1, timeout=30)

        def send(sender: Transmitter) -> None:
            for _ in range(messages // LIST // 3):
                sender.send_packed(packed, size=SIZE, timeout=60)
            sender.wait_acked(1, timeout=120)

        threads = [threading.Thread(target=send, args=(sender,)) for sender in senders]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return messages // LIST // 3 * 3 * LIST / (time.perf_counter() - begun)
