"""Speed of a message store: messages kept and served, and what a source and its receivers notice of it.

    python -m tests.bench.store                     # refreshes RESULTS.md
    python -m tests.bench.store --section stores    # several stores, and a restart
    python -m tests.bench.store --messages 200000 --dry

The store is a process of its own (`heliograph store serve`), in a directory of the disk that holds the temporary files.
A source sends messages of 64 bytes by multicast on the loopback and waits until the store has acknowledged them. The
reference writes the same bytes in blocks of a batch, and syncs after each block when the store does. A pair is ours,
reference, reference, ours; the ratio is the median of neighbours.

The late joiner is a process too. It reads what the store has kept from the store's service, while the source goes on at
a steady rate to a receiver whose latencies are taken. The rows of several stores and of a restart are those of
store_quorum.py.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from heliograph.engine import Instance, Message
from heliograph.engine import _store as _store_files
from heliograph.engine.store.follower import StoreFollower
from heliograph.engine.store.reader import MAX, StoredMessage, runs
from tests.bench import store_quorum
from tests.bench.report import machine, put_section
from tests.ports import free_port

SIZE = 64
HEAD = 40
"""Bytes of a record before its payload (engine/docs/store.md 3)."""
BATCH = 1 << 16
LIST = 4096
GSI = bytes(6)
STEADY_RATE = 50_000.0
STEADY_LIST = 50
STEADY_SECONDS = 6.0
LIMITED = 10
"""Live rates that late joiners take from a store with `--rate`."""
WARM_LISTS = 1000
STABLE_MESSAGES = 500
RESTART_BYTES = 2_000_000_000
SMALL_BYTES = 3_000_000
TOPIC = "BENCH"
HELIOGRAPH = (sys.executable, "-m", "heliograph.monitor.cli")


@dataclass(frozen=True)
class Row:
    """One line of the table: medians of both sides, per second, and the ratio of neighbours."""

    name: str
    unit: str
    ours: float
    reference: float
    ratio: float
    gate: str


@contextmanager
def _process(*arguments: str) -> Iterator[str]:
    """A process that says on standard error when it is ready, with its address as the last word."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        line = process.stderr.readline()
        if not line.startswith(("keeping", "serving")):
            raise RuntimeError(f"{' '.join(arguments)}: {line}{process.stderr.read()}")
        yield line.split()[-1]
    finally:
        process.terminate()
        process.communicate(timeout=60)


@contextmanager
def _store(folder: Path, endpoint: str, fsync: str, *more: str) -> Iterator[str]:
    with (
        tempfile.TemporaryDirectory(dir=folder) as name,
        _process(*HELIOGRAPH, "store", "serve", f"{name}/store", endpoint, TOPIC, "--fsync", fsync, *more) as address,
    ):
        yield address


def _endpoint() -> str:
    return f"rmm://239.192.99.{os.getpid() % 250 + 1}:{free_port()}?interface=127.0.0.1"


def kept(folder: Path, fsync: str, messages: int) -> float:
    """Messages per second that a store keeps, until the last is acknowledged."""
    endpoint = _endpoint()
    packed = bytes(SIZE * LIST)
    with (
        _store(folder, endpoint, fsync),
        Instance(name="bench-source") as source,
        source.transmitter(endpoint, TOPIC, acks=1, send_window=16384, linger=0.0) as transmitter,
    ):
        transmitter.send(bytes(SIZE), timeout=30)
        transmitter.wait_acked(1, timeout=30)
        begun = time.perf_counter()
        for _ in range(messages // LIST):
            transmitter.send_packed(packed, size=SIZE, timeout=60)
        transmitter.wait_acked(1, timeout=120)
        return messages // LIST * LIST / (time.perf_counter() - begun)


def written(folder: Path, fsync: str, bytes_: int) -> float:
    """Bytes per second of writes of a batch, with a sync after each if the store syncs."""
    block = bytes(BATCH)
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        begun = time.perf_counter()
        for offset in range(0, bytes_, BATCH):
            os.pwrite(file.fileno(), block, offset)
            if fsync != "never":
                os.fsync(file.fileno())
        return bytes_ / (time.perf_counter() - begun)


def sent(folder: Path, with_store: bool, messages: int) -> float:
    """Messages per second that a source sends without acknowledgements, to a receiver and perhaps a store."""
    endpoint = _endpoint()
    packed = bytes(SIZE * LIST)

    def run() -> float:
        with Instance(name="bench-source") as source, Instance(name="bench-desk") as desk:
            receiver = desk.receiver(endpoint, TOPIC, on_messages=lambda messages: None)
            with source.transmitter(endpoint, TOPIC, linger=0.0) as transmitter:
                transmitter.send(bytes(SIZE), timeout=30)
                time.sleep(0.3)
                begun = time.perf_counter()
                for _ in range(messages // LIST):
                    transmitter.send_packed(packed, size=SIZE, timeout=60)
                transmitter.flush(timeout=60)
                seconds = time.perf_counter() - begun
            receiver.close()
            return messages // LIST * LIST / seconds

    if not with_store:
        return run()
    with _store(folder, endpoint, "batch"):
        return run()


@contextmanager
def offered(folder: Path, messages: int) -> Iterator[tuple[str, str]]:
    """A filled store: its directory, and the address of its service."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        kept = [(TOPIC, 0, number, 1, number + 1, 0, bytes(SIZE)) for number in range(messages)]
        _store_files.append(name, GSI, 1, "", kept, BATCH, 64 << 20)
        with _process(*HELIOGRAPH, "store", "offer", name, "--listen", "127.0.0.1:0") as address:
            yield name, address


def read_from(where: str) -> float:
    """Messages per second read from a store into Python objects."""
    begun = time.perf_counter()
    stream = f"{GSI.hex()}:1"
    count = sum(len(run) for run in runs(where, stream, by="number", first=0, last=MAX, topic=TOPIC))
    return count / (time.perf_counter() - begun)


@dataclass(frozen=True)
class Live:
    """A run at a steady rate: the latency of the live receiver, and the rate of a late joiner, per second."""

    p99: float
    caught_up: float


def live(folder: Path, joins: bool, messages: int, *options: str) -> Live:
    """Send at a steady rate beside a store with such options; late joiners come one after another, or none."""
    endpoint = _endpoint()
    latencies: list[int] = []
    behind: list[float] = []
    ends = threading.Event()

    def taken(batch: list[Message]) -> None:
        now = time.time_ns()
        latencies.append(now - batch[0].submit_ns)

    with (
        _store(folder, endpoint, "never", "--listen", "127.0.0.1:0", *options) as address,
        Instance(name="bench-source") as source,
        Instance(name="bench-desk") as desk,
        source.transmitter(endpoint, TOPIC, acks=1, send_window=16384, linger=0.0) as transmitter,
    ):
        transmitter.send_packed(bytes(SIZE * messages), size=SIZE, timeout=60)
        transmitter.wait_acked(1, timeout=60)
        receiver = desk.receiver(endpoint, TOPIC, on_messages=taken)

        def join() -> None:
            while not ends.is_set():
                command = (sys.executable, "-m", "tests.bench.store", "--join", endpoint, address)
                behind.append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))

        thread = threading.Thread(target=join)
        packed = bytes(SIZE * STEADY_LIST)
        begun = time.perf_counter()
        for number in range(int(STEADY_RATE * STEADY_SECONDS / STEADY_LIST)):
            time.sleep(max(0.0, begun + number * STEADY_LIST / STEADY_RATE - time.perf_counter()))
            if number == WARM_LISTS:
                latencies.clear()
                if joins:
                    thread.start()
            transmitter.send_packed(packed, size=SIZE, timeout=60)
        ends.set()
        if joins:
            thread.join()
        receiver.close()
    latencies.sort()
    return Live(latencies[len(latencies) * 99 // 100] / 1e9, statistics.median(behind) if behind else 0.0)


def join_late(endpoint: str, address: str) -> float:
    """Messages per second that a late joiner takes until it is live."""
    with Instance(name="bench-late") as desk, desk.receiver(endpoint, TOPIC) as receiver:
        follower = StoreFollower(address, receiver)
        begun = last = time.perf_counter()
        count = 0
        while (taken := follower.receive(timeout=1, limit=LIST)) and isinstance(taken[0], StoredMessage):
            count += len(taken)
            last = time.perf_counter()
        return count / (last - begun)


def _paired(
    name: str, unit: str, gate: str, ours: Callable[[], float], reference: Callable[[], float], pairs: int
) -> Row:
    first, second = [], []
    ratios = []
    for _ in range(pairs):
        a, b, c, d = ours(), reference(), reference(), ours()
        first += [a, d]
        second += [b, c]
        ratios += [a / b, d / c]
    return Row(name, unit, statistics.median(first), statistics.median(second), statistics.median(ratios), gate)


def measured(folder: Path, messages: int, pairs: int) -> list[Row]:
    """The rows of one store that runs."""
    rows = []
    for fsync, gate in (("batch", "0.5"), ("never", "")):
        rows.append(
            _paired(
                f"kept, fsync={fsync}, against writes of 64 KiB",
                "payload MB/s",
                gate,
                lambda fsync=fsync: kept(folder, fsync, messages) * SIZE / 1e6,  # type: ignore[misc]
                lambda fsync=fsync: written(folder, fsync, messages * SIZE) / 1e6,  # type: ignore[misc]
                pairs,
            )
        )
    rows.append(
        _paired(
            "source's rate with a store beside it, against without",
            "messages/s",
            "0.95",
            lambda: sent(folder, True, messages),
            lambda: sent(folder, False, messages),
            pairs,
        )
    )
    with offered(folder, messages // 2) as (files, address):
        rows.append(
            _paired(
                "read from a service, against read from the files",
                "messages/s",
                "",
                lambda: read_from(address),
                lambda: read_from(files),
                pairs,
            )
        )
    limit = f"--rate={LIMITED * STEADY_RATE * (SIZE + HEAD):.0f}"
    for options, at in (((), ""), ((limit,), f", {LIMITED} times the live rate")):
        rows += _late_rows(folder, messages // 2, pairs, options, at)
    return rows


def _late_rows(folder: Path, messages: int, pairs: int, options: tuple[str, ...], at: str) -> list[Row]:
    """A late joiner's rate, and what live receivers notice of it."""
    joined: list[float] = []

    def beside() -> float:
        found = live(folder, True, messages, *options)
        joined.append(found.caught_up)
        return found.p99 * 1e6

    late = _paired(
        f"live p99 while late joiners read{at}, against without",
        "us",
        "1.05",
        beside,
        lambda: live(folder, False, messages, *options).p99 * 1e6,
        pairs,
    )
    caught = statistics.median(joined)
    name = f"a late joiner{at}, against the live rate"
    return [Row(name, "messages/s", caught, STEADY_RATE, caught / STEADY_RATE, "5"), late]


def several(folder: Path, messages: int, pairs: int) -> list[Row]:
    """The rows of several stores, and of a restart."""
    stable = _paired(
        "stability p50, quorum 2 of 3, against two round trips and one fsync",
        "us",
        "1",
        lambda: store_quorum.stability(folder, STABLE_MESSAGES) * 1e6,
        lambda: store_quorum.unavoidable(folder, STABLE_MESSAGES) * 1e6,
        pairs,
    )
    sizes: list[int] = []

    def again(size: int, what: str) -> float:
        found = store_quorum.restarted(folder, size)
        sizes.append(found.kept_bytes)
        return float(getattr(found, what)) * 1e3

    restarts = [
        _paired(name, "ms", gate, partial(again, RESTART_BYTES, what), partial(again, other, what), pairs)
        for name, gate, what, other in (
            ("until it keeps, against an empty store", "1 s", "ready", 0),
            ("until what the source held is acknowledged, against a small store", "", "acknowledged", SMALL_BYTES),
        )
    ]
    kept = f"restart after kill -9 with {max(sizes) / 1e9:.1f} GB"
    restarts = [replace(row, name=f"{kept}, {row.name}") for row in restarts]
    balanced = _paired(
        "3 balanced stores, against one",
        "messages/s",
        "1.8",
        lambda: store_quorum.balanced(folder, 3, messages),
        lambda: store_quorum.balanced(folder, 1, messages),
        pairs,
    )
    return [stable, *restarts, balanced]


def _table(title: str, rows: list[Row], about: str) -> list[str]:
    facts = machine()
    return [
        f"## {title}",
        "",
        f"`make bench-store`, {facts['date']}, {facts['processor']}.",
        about,
        "",
        "| row | unit | ours | reference | ratio | gate |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {row.name} | {row.unit} | {row.ours:,.0f} | {row.reference:,.0f} | {row.ratio:.2f} | {row.gate} |"
            for row in rows
        ),
        "",
    ]


def section(rows: list[Row], messages: int, pairs: int) -> str:
    """The section of RESULTS.md for one store that runs."""
    lines = _table(
        "A message store",
        rows,
        f"{messages:,} messages of {SIZE} bytes, {pairs} pairs, medians. Store, source and receiver share the cores.",
    )
    kept_rows = [row for row in rows if row.name.startswith("kept")]
    text = "; ".join(f"{row.ours * 1e6 / SIZE:,.0f} ({row.name.split(',')[1].strip()})" for row in kept_rows)
    lines += [f"Messages kept per second: {text}; the gate is 1,000,000."]
    batch = next(row for row in kept_rows if "fsync=batch" in row.name)
    in_files = (SIZE + HEAD) / SIZE
    lines += [
        f"A message of {SIZE} bytes takes {SIZE + HEAD} bytes in the files, the rows count its payload. By bytes of",
        f"files, fsync=batch reaches {batch.ours * in_files:,.0f} MB/s, {batch.ratio * in_files:.2f} of the reference.",
    ]
    return "\n".join(lines)


def section_of_several(rows: list[Row], messages: int, pairs: int) -> str:
    """The section of RESULTS.md for several stores and a restart."""
    load = os.getloadavg()[1]
    lines = _table(
        "Several message stores, and a restart",
        rows,
        f"{messages:,} messages of {SIZE} bytes for the last row, {pairs} pairs, medians. Load average {load:.1f}.",
    )
    lines += [
        f"The stores of the first row have `--batch-time {store_quorum.STABLE_BATCH}` and sync on one disk. The small",
        f"store has {SMALL_BYTES / 1e6:.0f} MB; its row is the time in which a source finds its store again. Three",
        f"stores and three sources of the last row share {os.cpu_count()} cores and one disk.",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the section, and put it into RESULTS.md."""
    parser = argparse.ArgumentParser(description="Measure the message store; refresh its sections of RESULTS.md.")
    parser.add_argument("--messages", type=int, default=2_000_000, help="messages of a run (default: 2000000)")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of a row (default: 3)")
    parser.add_argument(
        "--dir", type=Path, default=Path(tempfile.gettempdir()), help="directory on the disk to measure"
    )
    parser.add_argument("--section", choices=("store", "stores", "all"), default="all", help="what to measure")
    parser.add_argument("--dry", action="store_true", help="leave RESULTS.md as it is")
    parser.add_argument("--join", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.join:
        print(join_late(*given.join))
        return 0
    for name, measure, shown in (("store", measured, section), ("stores", several, section_of_several)):
        if given.section in (name, "all"):
            text = shown(measure(given.dir, given.messages, given.pairs), given.messages, given.pairs)
            print(text, flush=True)
            if not given.dry:
                put_section(name, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
