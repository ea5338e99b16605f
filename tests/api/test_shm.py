"""Shared memory and in-process endpoints: many to many, the death of either side, and readers that are too slow."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

from heliograph.engine import Instance, Loss, Message, Receiver
from tests.api.conftest import Script, collect, until
from tests.segment.decoder import Decoded, decode_live

TOPIC = "T"

WRITER = """
import sys, time
from heliograph.engine import Instance
endpoint, who, count = sys.argv[1:4]
with Instance() as instance, instance.transmitter(endpoint, "T") as transmitter:
    print("up", flush=True)
    for number in range(int(count)):
        transmitter.send(f"{who} {number}".encode())
    transmitter.flush()
    print("sent", flush=True)
    time.sleep(60)
"""

READER = """
import sys, time
from heliograph.engine import Instance
endpoint, count = sys.argv[1:3]
with Instance() as instance, instance.receiver(endpoint, "T") as receiver:
    print("up", flush=True)
    left = int(count)
    while left:
        messages = receiver.receive(timeout=20.0, limit=left)
        if not messages:
            raise SystemExit("nothing came")
        for message in messages:
            print(bytes(message.data).decode())
        left -= len(messages)
    print("done", flush=True)
"""

HOLDER = """
import sys, time
from heliograph.engine import Instance
with Instance(mode="poll") as instance, instance.receiver(sys.argv[1], "T") as receiver:
    instance.poll()
    print("up", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def rings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of rings of the test's own."""
    folder = tmp_path / "rings"
    monkeypatch.setenv("HELIOGRAPH_RING_DIR", str(folder))
    return folder


@pytest.fixture(params=["shm", "inproc"])
def memory(request: pytest.FixtureRequest) -> str:
    """Each kind of endpoint in memory in turn."""
    return f"{request.param}://test.{os.getpid()}"


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def look(instance: Instance) -> Decoded:
    return decode_live(instance.segment)


def count(instance: Instance, cell: str) -> int:
    (found,) = look(instance).of("instance")
    return found.values[cell]


def tells(instance: Instance, event: str) -> bool:
    return any(told.name == event for told in look(instance).events)


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_messages_pass_in_order_in_both_modes(memory: str, mode: Literal["thread", "poll"]) -> None:
    with (
        Instance(mode=mode) as instance,
        instance.receiver(memory, TOPIC) as receiver,
        instance.transmitter(memory, TOPIC) as transmitter,
    ):
        for number in range(2000):
            transmitter.send(b"%d" % number)
        messages = collect(receiver, 2000)
        assert [bytes(message.data) for message in messages] == [b"%d" % number for number in range(2000)]


@pytest.mark.parametrize("idle", ["block", "backoff", "spin"])
def test_two_engines_wake_each_other(memory: str, idle: Literal["block", "backoff", "spin"]) -> None:
    with Instance(idle=idle) as here, Instance(idle=idle) as there:
        receiver = there.receiver(memory, TOPIC)
        transmitter = here.transmitter(memory, TOPIC)
        for number in range(20):
            time.sleep(0.002)
            transmitter.send(b"%d" % number)
            assert [message.number for message in collect(receiver, 1)] == [number]


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_a_message_of_64_mib_arrives_whole(memory: str, mode: Literal["thread", "poll"]) -> None:
    body = os.urandom(1 << 20) * 64
    with Instance() as here, Instance(mode=mode) as there:
        receiver = there.receiver(memory, TOPIC, receive_queue=1 << 28)
        transmitter = here.transmitter(memory, TOPIC, submit_queue=1 << 28, send_window=16384, ring_wait=True)
        transmitter.send(body)
        (message,) = collect(receiver, 1, seconds=30.0)
        assert bytes(message.data) == body


def test_three_writers_reach_three_readers_each_a_process(script: Script, rings: Path) -> None:
    endpoint = "shm://many"
    readers = [script(READER, endpoint, "3000") for _ in range(3)]
    assert [line(reader) for reader in readers] == ["up"] * 3
    writers = [script(WRITER, endpoint, str(who), "1000") for who in range(3)]
    assert [line(writer) for writer in writers] == ["up"] * 3
    for reader in readers:
        assert reader.stdout is not None
        seen: Counter[str] = Counter()
        for text in reader.stdout:
            if text == "done\n":
                break
            who, number = text.split()
            assert int(number) == seen[who]
            seen[who] += 1
        assert seen == {"0": 1000, "1": 1000, "2": 1000}
    assert len(list(rings.glob("many.*.ring"))) == 3


def sockets() -> set[str]:
    """The sockets this process has open."""
    targets = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one the folder is read through
            targets.add(os.readlink(descriptor))
    return {target for target in targets if target.startswith("socket:")}


def test_no_socket_is_opened(memory: str) -> None:
    before = sockets()
    with (
        Instance() as instance,
        instance.receiver(memory, TOPIC) as receiver,
        instance.transmitter(memory, TOPIC) as transmitter,
    ):
        transmitter.send_many([b"." * 100] * 1000)
        assert len(collect(receiver, 1000)) == 1000
        assert sockets() == before
        assert until(lambda: count(instance, "connections") == 2)


def test_a_writer_killed_is_told_of_and_its_ring_goes(script: Script, rings: Path) -> None:
    with Instance() as instance:
        receiver = instance.receiver("shm://crash", TOPIC)
        writer = script(WRITER, "shm://crash", "0", "500")
        assert [line(writer), line(writer)] == ["up", "sent"]
        assert len(collect(receiver, 500)) == 500
        writer.send_signal(signal.SIGKILL)
        assert until(lambda: tells(instance, "process_crashed"))
        assert until(lambda: not list(rings.glob("*.ring")))
        assert until(lambda: count(instance, "connections") == 0)
        second = script(WRITER, "shm://crash", "1", "10")
        assert line(second) == "up"
        assert bytes(collect(receiver, 1)[0].data) == b"1 0"


@pytest.mark.parametrize("ring_wait", [False, True])
def test_a_reader_killed_while_holding_the_ring_stops_nobody(script: Script, ring_wait: bool) -> None:
    with Instance() as instance, Instance() as other:
        receiver = other.receiver("shm://hold", TOPIC)
        transmitter = instance.transmitter("shm://hold", TOPIC, ring_wait=ring_wait, ring_packets=64)
        holder = script(HOLDER, "shm://hold")
        assert line(holder) == "up"
        assert until(lambda: count(instance, "connections") == 2)
        for _ in range(200):
            transmitter.send(b"." * 8000)
        if ring_wait:
            with pytest.raises(TimeoutError):
                transmitter.flush(timeout=0.2)
        holder.send_signal(signal.SIGKILL)
        assert until(lambda: tells(instance, "process_crashed"))
        assert len(collect(receiver, 200)) == 200


class Books:
    """What a receiver was given and what it was told is lost."""

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self.messages: list[Message] = []
        self.losses: list[Loss] = []

    def balance(self, total: int) -> bool:
        self.messages += self.receiver.receive(timeout=0.05)
        self.losses += self.receiver.losses()
        return len(self.messages) + sum(loss.count for loss in self.losses) == total


def test_a_slow_reader_does_not_stop_the_writer_and_its_books_balance(memory: str) -> None:
    total = 3000
    with Instance() as here, Instance(mode="poll") as slow:
        books = Books(slow.receiver(memory, TOPIC, nak_deadline=0.2))
        transmitter = here.transmitter(memory, TOPIC, ring_packets=64, send_window=256, linger=0.1)
        transmitter.send(b"first")
        assert until(lambda: books.balance(1), slow)
        for number in range(1, total):  # more than ring and history hold, while the slow one does nothing
            transmitter.send(b"%d" % number + b"." * 4000)
            if number % 100 == 0:
                transmitter.flush()
        transmitter.flush(timeout=5.0)
        assert until(lambda: books.balance(total), slow)
        lost = [number for loss in books.losses for number in range(loss.first, loss.last + 1)]
        assert lost
        assert sorted([message.number for message in books.messages] + lost) == list(range(total))
        assert until(lambda: slow.poll() >= 0 and count(slow, "ring_overruns") > 0)


def test_a_reader_that_was_overrun_gets_all_from_the_history(memory: str) -> None:
    total = 1000
    with Instance() as here, Instance(mode="poll") as slow:
        receiver = slow.receiver(memory, TOPIC)
        transmitter = here.transmitter(memory, TOPIC, ring_packets=64)
        transmitter.send(b"0")
        messages = collect(receiver, 1)
        for number in range(1, total):
            transmitter.send(b"%d" % number + b"." * 4000)
        transmitter.flush()
        messages += collect(receiver, total - 1)
        assert [message.number for message in messages] == list(range(total))
        assert any(message.recovered for message in messages)
        assert receiver.losses() == []


def test_a_writer_asked_to_wait_loses_nothing_to_a_slow_application(memory: str) -> None:
    total = 1000
    with Instance() as here, Instance() as there:
        receiver = there.receiver(memory, TOPIC, receive_queue=65536, receive_window=64)
        transmitter = here.transmitter(
            memory, TOPIC, ring_packets=64, ring_wait=True, send_window=64, submit_queue=8 << 20
        )
        transmitter.send(b"first")
        assert len(collect(receiver, 1)) == 1  # from here on there is somebody to wait for
        for number in range(total):
            transmitter.send(b"%d" % number + b"." * 4000)
        with pytest.raises(TimeoutError):  # queue, window and ring are full, and nobody takes anything
            transmitter.flush(timeout=0.3)
        messages = collect(receiver, total)
        assert [message.number for message in messages] == list(range(1, total + 1))
        assert receiver.losses() == []
        assert count(there, "ring_overruns") == 0
