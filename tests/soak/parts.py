"""The parts of the soak: kills of a durable subscriber, victims of a quorum, seams of late joiners."""

from __future__ import annotations

import contextlib
import io
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heliograph.engine import Instance
from heliograph.engine.store import reader
from heliograph.engine.store.follower import StoreFollower
from heliograph.engine.store.subscriptions import subscriptions
from heliograph.monitor.cli import main
from tests.ports import free_port
from tests.stores import read

from .processes import Command, Commands, Failed, until
from .publishing import Publisher, body

__all__ = [
    "RATE",
    "TOPIC",
    "Limits",
    "endpoint_of",
    "held_by",
    "kills",
    "must",
    "seams",
    "verify",
    "victims",
]

TOPIC = "ORDERS"
LIST = 256
"""Messages that `heliograph sub` takes at once."""
RATE = 2000.0
"""Messages per second."""
KILL_RATE = 600.0
"""The same for the subscriber that is killed: it reaches the live messages in most of its lives."""
CATCH_UP_SECONDS = 300.0
"""Within which the last subscriber has read what is left."""
ROUND = 50
"""Late joiners of a store; the next ones have a new store, so that they need not read ever more."""


@dataclass
class Limits:
    """How long a part runs, and its chance."""

    name: str
    count: int
    seconds: float
    chance: random.Random

    def rounds(self) -> Iterator[int]:
        """Counts up; shows progress."""
        began = time.monotonic()
        for number in range(self.count):
            if time.monotonic() - began > self.seconds:
                return
            yield number
            if (number + 1) % max(1, self.count // 20) == 0:
                took = time.monotonic() - began
                print(f"  {self.name}: {number + 1} of {self.count}, {took:.0f} s", flush=True)


def endpoint_of(chance: random.Random) -> str:
    """A group and a port that nobody else uses."""
    return f"rmm://239.193.{chance.randrange(1, 250)}.{chance.randrange(1, 250)}:{free_port()}?interface=127.0.0.1"


def must(is_so: bool, text: str) -> None:
    """Raises:
    Failed: It is not so.
    """
    if not is_so:
        raise Failed(text)


def kills(limits: Limits, folder: Path) -> str:
    """A durable subscriber that is killed again and again: nothing is lost, at most one list comes twice.

    A third of the kills come at a random time after the start, the others at one after the first message.
    """
    endpoint, port = endpoint_of(limits.chance), free_port()
    store, address = folder / "store", f"store://127.0.0.1:{port}"
    due = number = repeats = most = idle = 0
    with Commands(folder) as commands, Instance(name="source") as source:
        commands.serve(store, endpoint, TOPIC, "--listen", f"127.0.0.1:{port}")
        transmitter = source.transmitter(endpoint, TOPIC, acks=1, linger=0.0)
        words = ("sub", endpoint, TOPIC, "--store", address, "--subscription", "desk")

        def taken(command: Command, what: str) -> int:
            """Messages that came again; -1: none came at all."""
            nonlocal due
            must(not command.errors(), f"{what}: {command}")
            data = command.output.read_bytes() if command.output.exists() else b""
            numbers = [int(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")]
            again = -1
            if numbers:
                first, last = numbers[0], numbers[-1]
                must(max(0, due - LIST) <= first <= due, f"{what}: begins with {first}, due is {due}")
                must(numbers == list(range(first, last + 1)), f"{what}: gap or duplicate from {first} to {last}")
                again = due - first
                due = last + 1
            for one in subscriptions(store):
                saved = one.positions.get(transmitter.stream, 0)
                must(max(0, due - LIST) <= saved <= due, f"{what}: {saved} is saved, {due} messages were printed")
            commands.forget(command)
            return again

        with Publisher(transmitter, KILL_RATE) as publisher:
            for number in limits.rounds():
                command = commands.start(*words)
                if limits.chance.random() < 1 / 3:
                    time.sleep(limits.chance.uniform(0.0, 0.5))
                else:
                    command.until(command.has_output, "a message")
                    time.sleep(limits.chance.uniform(0.0, 0.15))
                command.kill()
                again = taken(command, f"kill {number}")
                repeats, most, idle = repeats + (again > 0), max(most, again), idle + (again < 0)
                publisher.check()
            publisher.stop()
            transmitter.wait_acked(1, timeout=30)
            command = commands.start(*words, "--timeout", "2")
            command.wait(CATCH_UP_SECONDS)
            taken(command, "at the end")
            must(due == publisher.sent, f"{due} of {publisher.sent} messages were printed")
        must(read_numbers(store) == list(range(due)), "the store does not have each message once")
    return (
        f"{number + 1} kills, {due:,} messages; {repeats} times messages came again, at most {most}; "
        f"{idle} times the kill came before the first message"
    )


def read_numbers(folder: Path) -> list[int]:
    """The numbers of the messages of a store, read independently."""
    messages = read(folder)
    must(all(one.payload == body(one.number) for one in messages), f"{folder.name}: a payload is another's")
    return [one.number for one in messages]


def verify(folder: Path) -> None:
    """`heliograph store verify` must find nothing."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = main(["store", "verify", str(folder)])
    must(code == 0, f"verify of {folder.name} says: {out.getvalue()}")


def victims(limits: Limits, folder: Path) -> str:
    """Three stores and a quorum of two, one killed at a time: publishing goes on, two have what is acknowledged."""
    endpoint = endpoint_of(limits.chance)
    folders = [folder / name for name in ("one", "two", "three")]
    checked, number, longest = 0, 0, 0.0
    with Commands(folder) as commands, Instance(name="source") as source:
        transmitter = source.transmitter(endpoint, TOPIC, acks=2, send_window=256, submit_queue=65536, linger=0.0)
        stores = [commands.serve(one, endpoint, TOPIC) for one in folders]
        with Publisher(transmitter, RATE) as publisher:
            until(lambda: publisher.acked(3), "all stores acknowledge")
            for number in limits.rounds():
                time.sleep(limits.chance.uniform(0.0, 0.4))
                victim = limits.chance.randrange(3)
                stores[victim].kill()
                acked, sent = publisher.acked(2), publisher.sent
                verify(folders[victim])
                checked = held_by(2, folders, transmitter.stream, checked, acked, f"victim {number}")
                longest = max(longest, _goes_on(publisher, sent, f"victim {number}"))
                time.sleep(limits.chance.uniform(0.0, 0.2))
                commands.forget(stores[victim])
                stores[victim] = commands.serve(folders[victim], endpoint, TOPIC)
                for one in folders:  # they are being written
                    verify(one)
            publisher.stop()
            transmitter.wait_acked(2, timeout=60)
            sent = publisher.sent
        for command in stores:
            command.kill()
        held_by(2, folders, transmitter.stream, 0, sent, "at the end")
        for one in folders:
            verify(one)
            commands.serve(one, endpoint, TOPIC).end()  # cuts off an incomplete end
            verify(one)
        held = [read_numbers(one) for one in folders]
        for one, numbers in zip(folders, held, strict=True):
            must(numbers == sorted(set(numbers)), f"{one.name}: a message is there twice, or not in order")
        for taken in range(3):
            rest = set().union(*(numbers for i, numbers in enumerate(held) if i != taken))
            must(rest == set(range(sent)), f"without {folders[taken].name}: {sorted(set(range(sent)) - rest)[:10]}")
    missing = ", ".join(f"{sent - len(numbers):,}" for numbers in held)
    return (
        f"{number + 1} victims, {sent:,} messages; the longest wait for a message from after the kill to be "
        f"acknowledged was {longest:.2f} s; the stores lack {missing} messages"
    )


def _goes_on(publisher: Publisher, sent: int, what: str) -> float:
    """Seconds until a message from after the kill is acknowledged, which takes the two other stores."""
    return until(lambda: publisher.acked(2) > sent, f"{what}: publishing goes on")


def held_by(least: int, folders: Sequence[Path], stream: str, first: int, until_number: int, what: str) -> int:
    """Each message from `first` to before `until_number` must be in `least` of the stores, with its payload.

    Returns `until_number`.
    """
    if until_number <= first:
        return first
    counts = [0] * (until_number - first)
    for folder in folders:
        if stream in reader.streams(folder):
            for message in reader.read(folder, stream, by="number", first=first, last=until_number - 1, topic=TOPIC):
                must(message.data == body(message.number), f"{what}: {folder.name} has another {message.number}")
                counts[message.number - first] += 1
    few = [first + at for at, count in enumerate(counts) if count < least]
    must(not few, f"{what}: {len(few)} acknowledged messages are in less than {least} stores: {few[:10]}")
    return until_number


def seams(limits: Limits, folder: Path) -> str:
    """Late joiners under continuous publishing: from the store to live without gap and duplicate.

    Some receive all packets, some lose a fifth and have too little time for repairs; some are new, some continue.
    """
    joined = lossy = stored = lived = 0
    with Commands(folder) as commands, ExitStack() as parts:
        for number in limits.rounds():
            if number % ROUND == 0:
                parts.close()
                place = _Place(commands, folder / f"store-{number}", limits.chance, parts)
            is_lossy = limits.chance.random() < 0.4
            counts = place.join(limits.chance, is_lossy, f"seam {number}")
            stored, lived = stored + counts[0], lived + counts[1]
            joined, lossy = joined + 1, lossy + is_lossy
            place.publisher.check()
    return f"{joined} seams, {lossy} with losses; {stored:,} messages from stores, {lived:,} live"


class _Place:
    """A source that publishes, its store, and a desk where subscribers join."""

    def __init__(self, commands: Commands, store: Path, chance: random.Random, parts: ExitStack) -> None:
        self._endpoint, port = endpoint_of(chance), free_port()
        self._stores = (str(store), f"store://127.0.0.1:{port}")
        self._desk = parts.enter_context(Instance(name="desk"))
        source = parts.enter_context(Instance(name="source"))
        command = commands.serve(store, self._endpoint, TOPIC, "--listen", f"127.0.0.1:{port}")
        parts.callback(command.end)
        self.transmitter = source.transmitter(self._endpoint, TOPIC, acks=1, linger=0.0)
        self.publisher = parts.enter_context(Publisher(self.transmitter, RATE))
        until(lambda: self.publisher.acked(1), "the store acknowledges")

    def join(self, chance: random.Random, is_lossy: bool, what: str) -> tuple[int, int]:
        """A subscriber joins and leaves; messages that it had from the store and live."""
        stream = self.transmitter.stream
        begin = chance.choice([0, chance.randrange(self.publisher.sent)])
        wanted = chance.randrange(1, 300)
        store = chance.choice(self._stores)
        what += f", {'lossy, ' if is_lossy else ''}from {begin}, {store}"
        stored = lived = 0
        due = begin
        options: dict[str, Any] = {"inject_loss": 0.2, "nak_deadline": 0.01} if is_lossy else {}
        with self._desk.receiver(self._endpoint, TOPIC, **options) as receiver:
            follower = StoreFollower(store, receiver, positions={stream: begin} if begin else None)
            while lived < wanted:
                taken = follower.receive(timeout=10, limit=chance.choice([7, 256, 1000]))
                must(bool(taken), f"{what}: nothing comes after {due - 1}")
                for one in taken:
                    must(one.number == due, f"{what}: {one.number} comes instead of {due}")
                    must(one.data == body(due), f"{what}: the payload of {due} is {one.data[:40]!r}")
                    due += 1
                came = sum(hasattr(one, "position") for one in taken)
                stored, lived = stored + came, lived + len(taken) - came
            must(not follower.losses(), f"{what}: reports a loss")
            must(follower.positions() == {stream: due}, f"{what}: positions {follower.positions()}, due is {due}")
        return stored, lived
