"""A subscriber with a store: what it missed, then live, each message once and in order."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from heliograph.engine import Instance, Loss, _store
from heliograph.engine.store.follower import StoreFollower
from heliograph.engine.store.server import StoreServer
from heliograph.monitor.cli import main
from tests.stores import Kept

TOPIC = "ORDERS"
STREAM = "010203040506:9"
ROUNDS = 150
LIST = 256
"""Messages that `heliograph sub` takes at once."""


@dataclass
class Live:
    """A live message on paper."""

    number: int
    stream: str = STREAM

    @property
    def data(self) -> bytes:
        return b"%d" % self.number


class Receiver:
    """Gives lists of numbers; before some of them the store writes more."""

    topic = TOPIC

    def __init__(self, folder: Path, script: list[tuple[int, list[int]]]) -> None:
        self.folder, self.script, self.stored = folder, script, 0

    def store(self, until: int) -> None:
        """The store has the messages before `until`, and those of another topic beside them."""
        numbers = range(self.stored, until)
        kept = [Kept(topic, 0, n, n + 1, n + 1, 0, b"%d" % n) for n in numbers for topic in (TOPIC, "OTHER")]
        if kept:
            _store.append(self.folder, bytes(range(1, 7)), 9, "", kept, 200, 900)
            self.stored = until

    def receive(self, timeout: float | None = None, limit: int = 256) -> list[Live]:
        if not self.script:
            return []
        until, numbers = self.script.pop(0)
        self.store(until)
        return [Live(number) for number in numbers]

    def losses(self) -> list[Loss]:
        return []


def follow(folder: Path, receiver: Any, **options: Any) -> tuple[list[int], StoreFollower]:
    follower = StoreFollower(folder, receiver, **options)
    numbers = []
    while taken := follower.receive(timeout=0.01, limit=7):
        assert all(one.data == b"%d" % one.number for one in taken)
        numbers += [one.number for one in taken]
    return numbers, follower


def test_random_seams_have_no_gap_and_no_duplicate(tmp_path: Path) -> None:
    """Live lists begin anywhere, overlap what is stored, and have holes that the store fills."""
    seed = random.SystemRandom().randrange(1 << 30)
    chance = random.Random(seed)
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        receiver = Receiver(folder, [])
        receiver.store(chance.randrange(1, 30))
        begin = chance.choice([0, chance.randrange(0, receiver.stored)])
        at = chance.randrange(max(0, receiver.stored - 5), receiver.stored + 10)
        for _ in range(chance.randrange(1, 6)):
            at += chance.choice([0, 0, chance.randrange(8)])
            end = at + chance.randrange(1, 10)
            receiver.script.append((max(end, receiver.stored), list(range(at, end))))
            at = end
        last = receiver.script[-1][1][-1]
        numbers, follower = follow(folder, receiver, positions={STREAM: begin})
        assert numbers == list(range(begin, max(last + 1, receiver.stored))[: len(numbers)]), (seed, number)
        assert numbers[-1] == last or last < numbers[-1] < receiver.stored, (seed, number)
        assert follower.losses() == []
        assert follower.positions() == {STREAM: numbers[-1] + 1}


def test_what_nobody_has_is_a_loss_and_what_was_before_the_store_is_none(tmp_path: Path) -> None:
    receiver = Receiver(tmp_path, [])
    receiver.stored = 10  # the store begins with number 10
    receiver.store(20)
    receiver.script = [(20, [25, 26]), (20, [30])]
    numbers, follower = follow(tmp_path, receiver, wait=0.05)
    assert numbers == [*range(10, 20), 25, 26, 30]
    assert follower.losses() == [Loss(20, 5, STREAM), Loss(27, 3, STREAM)]
    assert follower.losses() == []
    receiver.script = []
    numbers, follower = follow(tmp_path, receiver, positions={STREAM: 4})
    assert (numbers, follower.losses()) == ([*range(10, 20)], [Loss(4, 6, STREAM)])


@contextmanager
def kept(folder: Path, endpoint: str) -> Iterator[None]:
    """A store that runs in a thread."""
    ends = threading.Event()
    with StoreServer(folder, name="store", batch_time=0.002, fsync="never") as server:
        server.keep(endpoint, TOPIC)

        def run() -> None:
            while not ends.is_set():
                server.step(0.05)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join()


def test_a_durable_subscriber_gets_what_it_missed_and_then_live(
    multicast: str, tmp_path: Path, segments: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, positions = tmp_path / "store", tmp_path / "positions.json"

    def subscribe(count: int) -> list[str]:
        command = ["sub", multicast, TOPIC, "--store", str(folder), "--durable", str(positions)]
        assert main([*command, "--count", str(count), "--timeout", "10"]) == 0
        return capfd.readouterr().out.splitlines()

    with kept(folder, multicast), Instance(name="source") as source:
        transmitter = source.transmitter(multicast, TOPIC, acks=1, linger=0.0)

        def publish(first: int, last: int) -> None:
            transmitter.send_many([b"%d" % number for number in range(first, last)], timeout=30)
            transmitter.wait_acked(1, timeout=30)  # the store has them

        publish(0, 100)
        assert subscribe(60) == [str(number) for number in range(60)]
        publish(100, 20_000)  # nobody subscribes
        thread = threading.Timer(1.0, publish, (20_000, 20_500))
        thread.start()
        assert subscribe(20_440) == [str(number) for number in range(60, 20_500)]
        thread.join()
    saved = json.loads(positions.read_text())
    assert (saved["topic"], saved["positions"]) == (TOPIC, {transmitter.stream: 20_500})
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("positions")] == ["positions.json"]


def test_a_durable_subscriber_that_is_killed_repeats_at_most_one_list(
    multicast: str, tmp_path: Path, segments: Path
) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    chance = random.Random(seed)
    folder, positions = tmp_path / "store", tmp_path / "positions.json"
    command = [sys.executable, "-m", "heliograph.monitor.cli", "sub", multicast, TOPIC]
    command += ["--store", str(folder), "--durable", str(positions), "--timeout", "1"]
    total = 8_000
    with kept(folder, multicast), Instance(name="source") as source:
        transmitter = source.transmitter(multicast, TOPIC, acks=1, linger=0.0)

        def publish() -> None:
            for first in range(0, total, 20):
                transmitter.send_many([b"%d" % number for number in range(first, first + 20)], timeout=30)
                time.sleep(0.01)

        thread = threading.Thread(target=publish)
        thread.start()
        due = 0
        for run in range(6):
            with (tmp_path / "out").open("w+b") as out, subprocess.Popen(command, stdout=out) as process:
                if run < 5:
                    time.sleep(chance.uniform(0.2, 1.2))
                    process.kill()
                assert process.wait() in (0, -9)
                out.seek(0)
                numbers = [int(line) for line in out.read().splitlines(keepends=True) if line.endswith(b"\n")]
            if numbers:
                assert max(0, due - LIST) <= numbers[0] <= due, seed
                assert numbers == list(range(numbers[0], numbers[-1] + 1)), seed
                due = numbers[-1] + 1
        thread.join()
    assert due == total, seed


def test_mistakes_of_a_durable_subscriber_are_named(
    multicast: str, tmp_path: Path, segments: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def refused(*arguments: str) -> str:
        assert main(["sub", multicast, TOPIC, *arguments]) == 2
        return capfd.readouterr().err

    positions = tmp_path / "positions"
    assert "--durable needs --store" in refused("--durable", str(positions))
    assert "is not a store" in refused("--store", str(tmp_path))
    (tmp_path / "store.lock").write_text("heliograph store 1\n")
    for text, words in (
        ("{", "does not have the positions of a subscriber"),
        ("[]", "does not have the positions of a subscriber"),
        ('{"topic": "OTHER", "positions": {}}', "of topic OTHER, not of ORDERS"),
    ):
        positions.write_text(text)
        assert words in refused("--store", str(tmp_path), "--durable", str(positions))
