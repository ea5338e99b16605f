"""The service of a store: what it serves, to whom it says no, and how it ends."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from heliograph.engine import Error, Instance, OptionError, SystemCallError, _store
from heliograph.engine.store.protocol import Answer, Ask, Reading, answer, request, take_answer
from heliograph.engine.store.reader import MAX, By, StoredMessage, read, runs, streams
from heliograph.engine.store.service import ServiceCounts, StoreService, address_of, listen
from heliograph.monitor.cli import main
from heliograph.monitor.segment import Segment
from tests.stores import Kept

from .conftest import until

STREAM = "010203040506:9"
OTHER = "010203040506:10"
GSI = bytes(range(1, 7))
TOPICS = ("ORDERS", "FILLS")


def kept(where: str, stream: str, **wanted: Any) -> Iterator[StoredMessage]:
    """The messages of `runs`, one by one."""
    for run in runs(where, stream, **{"by": "position", "first": 0, "last": MAX, "topic": None, **wanted}):
        yield from run


Offer: TypeAlias = Callable[..., tuple[str, StoreService]]


def fill(folder: Path, count: int, size: int = 8, batch: int = 1000) -> Path:
    """A store with two streams; their messages alternate between two topics."""
    folder.mkdir()
    for port in (9, 10):
        messages = [
            Kept(TOPICS[n % 2], 500 + n, n // 2, 10 * n, 10 * n + 5, n % 7 == 0, b"%d" % n * (size // 8))
            for n in range(count)
        ]
        _store.append(folder, GSI, port, "", messages, batch, 20 * batch)
    return folder


@pytest.fixture
def offer() -> Iterator[Offer]:
    """Serves a directory; returns the address and the service."""
    with ExitStack() as parts:

        def start(folder: Path, **options: float) -> tuple[str, StoreService]:
            listener = listen("127.0.0.1", 0)
            service = StoreService(folder, listener, **options)  # type: ignore[arg-type]
            address = address_of(listener)
            thread = threading.Thread(target=service.run)
            thread.start()
            parts.callback(thread.join)
            parts.callback(service.close)
            return address, service

        yield start


def counted(service: StoreService, **wanted: int) -> bool:
    """The counts become the wanted ones; the last answer is counted after it is sent."""
    return until(lambda: all(getattr(service.counts(), name) == number for name, number in wanted.items()))


def test_the_service_gives_what_the_files_have(tmp_path: Path, offer: Offer) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    chance = random.Random(seed)
    folder = fill(tmp_path / "store", 3_000)
    address, service = offer(folder)
    assert streams(address) == streams(folder) == [STREAM, OTHER]
    assert list(read(address, STREAM)) == list(read(folder, STREAM))
    bounds: list[tuple[By, int]] = [("position", 3_001), ("sequence", 3_500), ("number", 1_500), ("time", 30_005)]
    for number in range(60):
        by, most = chance.choice(bounds)
        first, last = sorted(chance.choices(range(most), k=2))
        topic = chance.choice([None, *TOPICS, "NONE"])
        expected = [one for one in read(folder, OTHER, by=by, first=first, last=last) if topic in (None, one.topic)]
        assert list(read(address, OTHER, by=by, first=first, last=last, topic=topic)) == expected, (seed, number)
    assert counted(service, refused=0, aborted=0, readers=0)


def test_a_topic_of_many_costs_only_its_batches(tmp_path: Path, offer: Offer) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    messages = [Kept("RARE" if n == 700 else "COMMON", 0, n, 0, n + 1, 0, b"x" * 50) for n in range(1_000)]
    _store.append(folder, GSI, 9, "", messages, 1000, 20_000)
    address, service = offer(folder)
    assert [one.number for one in read(address, STREAM, topic="RARE")] == [700]
    assert until(lambda: 0 < service.counts().bytes_sent < 3_000)


def test_a_reader_waits_for_what_is_written(tmp_path: Path, offer: Offer) -> None:
    folder = fill(tmp_path / "store", 10)
    address, _ = offer(folder)
    later = [Kept("ORDERS", 0, n, 0, n + 1, 0, b"later") for n in range(100, 105)]
    timer = threading.Timer(0.3, _store.append, (folder, GSI, 9, "", later, 1000, 20_000))
    timer.start()
    found = list(kept(address, STREAM, by="number", first=100, wait=10.0))
    assert [one.data for one in found] == [b"later"] * 5
    timer.join()
    unknown = "ffffffffffff:1"
    assert list(kept(address, unknown, by="number", wait=0.05)) == []


def test_three_hundred_late_joiners_at_once_all_get_everything(tmp_path: Path, offer: Offer) -> None:
    folder = fill(tmp_path / "store", 500)
    address, service = offer(folder, readers=8)
    expected = list(read(folder, STREAM))
    wrong: list[object] = []

    def join() -> None:
        try:
            found = list(read(address, STREAM))
            if found != expected:
                wrong.append(len(found))
        except Error as error:
            wrong.append(error)

    threads = [threading.Thread(target=join) for _ in range(300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert counted(service, requests=600, refused=0, aborted=0, readers=0)


def test_all_readers_share_the_rate(tmp_path: Path, offer: Offer) -> None:
    folder = fill(tmp_path / "store", 4_000, size=64)
    size = sum(path.stat().st_size for path in folder.glob("*9-*.seg"))
    address, _ = offer(folder, rate=4.0 * size)
    begun = time.monotonic()
    threads = [threading.Thread(target=lambda: list(read(address, STREAM))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - begun > 0.8


def spoken(address: str, data: bytes, ends: bool = True) -> bytes:
    """What the service says to these bytes until it ends the connection."""
    host, port = address.removeprefix("store://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(data)
        if ends:
            connection.shutdown(socket.SHUT_WR)
        parts = []
        try:
            while part := connection.recv(65536):
                parts.append(part)
        except ConnectionResetError:
            pass
        return b"".join(parts)


def reading(**changes: object) -> bytes:
    values = {"gsi": GSI, "port": 9, "by": 0, "first": 0, "last": 9, **changes}
    return Reading(**values).encode()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"not the protocol"),
        (struct.pack(">4sBBHI", b"HSRQ", 2, 1, 0, 0), b"version 2"),
        (struct.pack(">4sBBHI", b"HSRQ", 1, 99, 0, 0), b"unknown kind 99"),
        (struct.pack(">4sBBHI", b"HSRQ", 1, 1, 7, 0), b"a body of 0 bytes"),
        (struct.pack(">4sBBHI", b"HSRQ", 1, 2, 0, 0xFFFFFFFF), b"a body of 4294967295 bytes"),
        (request(Ask.READ, b""), b"a request to read has 0 bytes"),
        (request(Ask.READ, reading(by=5)), b"out of range"),
        (request(Ask.READ, reading(first=2, last=1)), b"out of range"),
        (request(Ask.READ, reading()[:-1] + b"9abc"), b"the topic has 3 bytes"),
        (request(Ask.READ, reading(topic="a")[:-1] + b"\xff"), b"not UTF-8"),
        (request(Ask.SUBSCRIBE, b"{"), b"property name"),
        (request(Ask.SUBSCRIBE, b"[" * 100_000), b"recursion"),
        (request(Ask.SUBSCRIBE, b"[]"), b"name of a subscription"),
        (request(Ask.SUBSCRIBE, b'{"name": "../../etc/passwd"}'), b"name of a subscription"),
        (request(Ask.FORGET, b'{"name": ".lock"}'), b"name of a subscription"),
        (request(Ask.SAVE, b'{"name": "a", "topic": "T", "positions": {"x": 1}}'), b"not a subscription"),
    ],
)
def test_bytes_that_are_no_request_are_refused_by_name(tmp_path: Path, offer: Offer, data: bytes, words: bytes) -> None:
    address, service = offer(fill(tmp_path / "store", 10))
    said = spoken(address, data)
    (kind,) = struct.unpack_from(">B", said, 5)
    assert (said[:4], kind) == (b"HSAN", Answer.REFUSED)
    assert words in said
    assert len(list(read(address, STREAM))) == 10
    assert counted(service, refused=1, aborted=0, requests=2)
    assert not (tmp_path / "store" / "subscriptions" / "a.json").exists()


def test_silent_slow_and_ended_connections_cost_one_turn_for_a_limited_time(
    tmp_path: Path, offer: Offer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heliograph.engine.store.service._REQUEST_SECONDS", 0.5)
    monkeypatch.setattr("heliograph.engine.store.service._SEND_SECONDS", 0.5)
    address, service = offer(fill(tmp_path / "store", 40_000, size=800, batch=1 << 20), readers=2)
    host, port = address.removeprefix("store://").split(":")
    whole = request(Ask.READ, reading(last=MAX))
    with ExitStack() as parts:
        for data in (b"", b"HS", whole, whole):  # the last two never read their answer
            connection = parts.enter_context(socket.create_connection((host, int(port)), timeout=20))
            connection.sendall(data)
        assert len(list(read(address, STREAM, first=1, last=10))) == 10
        assert counted(service, aborted=4, readers=0)


def answering(said: bytes) -> str:
    """Address of a server that says these bytes once."""
    listener = listen("127.0.0.1", 0)

    def run() -> None:
        with listener, listener.accept()[0] as connection:
            connection.recv(4096)
            connection.sendall(said)

    threading.Thread(target=run).start()
    return address_of(listener)


def test_answers_that_are_none_are_errors_of_the_reader(tmp_path: Path, offer: Offer) -> None:
    address, _ = offer(fill(tmp_path / "store", 10))
    batch = spoken(address, request(Ask.READ, reading()))[12:-12]
    broken = bytearray(batch)
    broken[-1] ^= 1

    def read_from(said: bytes) -> list[StoredMessage]:
        return list(kept(answering(said), STREAM))

    end = answer(Answer.END)
    assert len(read_from(answer(Answer.DATA, batch) + end)) == 10
    for said, words in (
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not one of a store"),
        (answer(Answer.DATA, bytes(broken)) + end, "not a whole batch"),
        (answer(Answer.DATA, batch[:-1]) + end, "not a whole batch"),
        (answer(Answer.DATA, b"") + end, "not a whole batch"),
        (answer(Answer.DATA, batch), "ended early"),
        (b"", "ended early"),
        (struct.pack(">4sBBHI", b"HSAN", 1, 1, 0, 0xFFFFFFFF), "at most"),
        (answer(Answer.REFUSED, b"no\x1b[2J"), "refuses: .*x1b"),
    ):
        with pytest.raises(Error, match=words):
            read_from(said)


def test_a_damaged_segment_is_said_and_what_is_before_it_arrives(tmp_path: Path, offer: Offer) -> None:
    folder = fill(tmp_path / "store", 3_000)
    [*_, middle, _] = sorted(folder.glob("*-9-*.seg"))
    data = bytearray(middle.read_bytes())
    data[len(data) // 2] ^= 1
    middle.write_bytes(data)
    address, service = offer(folder)
    found: list[int] = []
    messages = read(address, STREAM)
    with pytest.raises(Error, match="is damaged at byte"):
        found.extend(iter(lambda: next(messages).position, None))
    assert found == list(range(1, len(found) + 1))
    assert len(found) > 100
    assert counted(service, refused=1)


def test_addresses_and_arguments_that_are_wrong_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for address in ("store://", "store://host", "store://host:x", "store://host:99999", "store://h:1/path"):
        with pytest.raises(OptionError, match="the address of a store"):
            streams(address)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        folder = fill(tmp_path / "store", 10)
        assert main(["store", "offer", str(folder), "--listen", f"127.0.0.1:{port}"]) == 2
        assert f"cannot listen on 127.0.0.1:{port}" in capfd.readouterr().err
    with pytest.raises(SystemCallError, match=r"cannot be read: .*refused"):
        streams(f"store://127.0.0.1:{port}")
    assert main(["store", "offer", str(tmp_path), "--listen", "127.0.0.1:0"]) == 2
    assert "is not a store" in capfd.readouterr().err
    for wrong in ("nowhere", "host:", ":80"):
        with pytest.raises(SystemExit):
            main(["store", "offer", str(folder), "--listen", wrong])
        assert "is not an address such as" in capfd.readouterr().err


@contextmanager
def running(*arguments: str, says: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A `heliograph store` that has said this; with the address that it serves."""
    process = subprocess.Popen(
        [sys.executable, "-m", "heliograph.monitor.cli", "store", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr
        line = process.stderr.readline()
        assert line.startswith(says), line + process.stderr.read()
        yield process, line.split()[-1]
    finally:
        process.kill()
        process.communicate()


def children(process: subprocess.Popen[str]) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    folder = fill(tmp_path / "store", 100)
    arguments = ("offer", str(folder), "--listen", "127.0.0.1:0", "--json")
    with running(*arguments, says=f"serving {folder} on store://127.0.0.1:") as (process, address):
        assert len(list(read(address, STREAM))) == 100
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")
    counts = ServiceCounts(**json.loads(out))
    assert (counts.requests, counts.readers, counts.refused, counts.aborted) == (2, 0, 0, 0)
    assert counts.bytes_sent > 100


def test_a_store_serves_what_it_keeps_and_starts_its_service_again(
    tmp_path: Path, multicast: str, segments: Path
) -> None:
    folder = tmp_path / "store"
    arguments = ("serve", str(folder), multicast, "ORDERS", "--listen", "127.0.0.1:0", "--batch-time", "0.005s")
    with (
        running(*arguments, says=f"keeping ORDERS in {folder}, served on store://") as (process, address),
        Instance(name="source") as source,
        source.transmitter(multicast, "ORDERS", acks=1, linger=0.0) as transmitter,
    ):
        transmitter.send_many([b"x"] * 1_000, timeout=30)
        transmitter.wait_acked(1, timeout=30)
        assert len(list(read(address, transmitter.stream))) == 1_000
        [service] = children(process)
        os.kill(service, signal.SIGKILL)
        assert len(list(read(address, transmitter.stream))) == 1_000
        assert process.stderr
        assert "ended with code -9; it is started again" in process.stderr.readline()
        assert len(list(read(address, transmitter.stream))) == 1_000
        [path] = segments.glob("store*.helio")

        def shown() -> dict[str, int]:
            with Segment(path) as segment:
                [found] = [one.values for one in segment.objects(histograms=False) if one.scope == "store"]
                return {name: int(number) for name, number in found.items() if name.startswith("service_")}

        # Of the second service; the last counts of the killed one may be missing.
        assert until(lambda: shown()["service_requests"] >= 4)
        assert shown()["service_restarts"] == 1
        assert shown()["service_bytes_sent"] > 2 * 1_000 * 40
        [service] = children(process)
        process.kill()
        process.wait()
        assert until(lambda: not Path(f"/proc/{service}").exists() or "Z" in state(service))


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_frames_come_whole_from_any_pieces() -> None:
    one, other = socket.socketpair()
    with one, other:
        data = answer(Answer.DATA, bytes(range(256)) * 40) + answer(Answer.END)

        def send() -> None:
            for at in range(0, len(data), 997):
                one.sendall(data[at : at + 997])

        thread = threading.Thread(target=send)
        thread.start()
        assert take_answer(other, 10) == (Answer.DATA, bytes(range(256)) * 40)
        assert take_answer(other, 10) == (Answer.END, b"")
        thread.join()
