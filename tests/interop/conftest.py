"""A cable, the other programs, and instances of ours at the near end."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, Protocol

import pytest

from heliograph.engine import Instance, Message, Receiver, Transmitter
from heliograph.monitor.model import Event, ObjectState, Snapshot
from heliograph.monitor.reconciliation import accounts, sentence
from heliograph.monitor.sampler import Sampler
from tests.interop.cable import ADDRESSES, Cable, lay
from tests.interop.peers import GROUP, PORT, Peer, compile_peer

ENDPOINT = f"rmm://{GROUP}:{PORT}?interface={ADDRESSES['near']}&payload=raw&upstream=true&linger=0.1&gso=off"
"""Without gso, so that packets are lost one by one: this cable would carry many as one."""
PORTION = 20
"""Messages sent in one go: a socket of the other program has a small buffer."""


class Start(Protocol):
    """Starts one of the other programs at the far end."""

    def __call__(self, name: str, role: Literal["send", "recv"]) -> Peer: ...


@pytest.fixture
def cable() -> Iterator[Cable]:
    with lay() as laid:
        yield laid


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compiles each program once."""
    folder = tmp_path_factory.mktemp("peers")
    made: dict[str, Path] = {}

    def program(name: str) -> Path:
        if name not in made:
            made[name] = compile_peer(name, folder)
        return made[name]

    return program


@pytest.fixture
def start(cable: Cable, programs: Callable[[str], Path]) -> Iterator[Start]:
    """Starts other programs; what still runs at the end is killed."""
    running: list[Peer] = []

    def begin(name: str, role: Literal["send", "recv"]) -> Peer:
        peer = Peer(cable, programs(name), role)
        running.append(peer)
        return peer

    yield begin
    for peer in running:
        peer.__exit__()


@pytest.fixture
def near(cable: Cable) -> Iterator[Instance]:
    """An instance of ours at the near end."""
    with cable.enter("near"), Instance(name="near") as instance:
        yield instance


LOSSES = pytest.mark.parametrize("loss", [0.0, 0.01, 0.1], ids=["no loss", "1 % loss", "10 % loss"])


def lose_everywhere(cable: Cable, loss: float) -> None:
    """Lose a share of what arrives, at both ends."""
    cable.lose("near", loss)
    cable.lose("far", loss)


def assert_nothing_odd() -> None:
    """No error was logged, nothing was refused or lost for good, and the receivers' books balance."""
    snapshot = look()
    assert [event for event in events(snapshot) if event.severity == "error"] == []
    for instance in objects(snapshot, "instance"):
        values = instance.values
        assert {name: values[name] for name in values if name.startswith("invalid_packets") and values[name]} == {}
        assert values["foreign_packets"] == values["send_errors"] == 0
    assert [sentence(row) for row in accounts(snapshot) if row.residual] == []
    for receiver in objects(snapshot, "receiver"):
        assert receiver.values["messages_lost"] == 0


def make(count: int, seed: int, longest: int = 1400) -> list[bytes]:
    """Messages of random bytes and lengths from 1 on, the same for a seed."""
    chance = random.Random(seed)
    return [chance.randbytes(chance.randint(1, longest)) for _ in range(count)]


def send_paced(send: Callable[[list[bytes]], object], messages: list[bytes]) -> None:
    """Send in portions, a few milliseconds apart."""
    for begin in range(0, len(messages), PORTION):
        send(messages[begin : begin + PORTION])
        time.sleep(0.005)


def transmit(transmitter: Transmitter, messages: list[bytes]) -> None:
    send_paced(transmitter.send_many, messages)


def collect(receiver: Receiver, count: int, seconds: float) -> list[Message]:
    """The next `count` messages; fewer when they do not come in time."""
    messages: list[Message] = []
    end = time.monotonic() + seconds
    while len(messages) < count and time.monotonic() < end:
        messages += receiver.receive(timeout=0.1, limit=count - len(messages))
    return messages


def look() -> Snapshot:
    """What a monitor sees now."""
    with Sampler() as sampler:
        return sampler.sample()


def objects(snapshot: Snapshot, scope: str) -> list[ObjectState]:
    """All objects of a scope, gone ones too."""
    return [item for _, item in snapshot.of(scope)]


def only(items: list[ObjectState]) -> ObjectState:
    """The one item there is."""
    (item,) = items
    return item


def total(items: list[ObjectState], cell: str) -> int:
    return sum(item.values[cell] for item in items)


def events(snapshot: Snapshot, name: str | None = None) -> list[Event]:
    """All events so far, or those of one name."""
    return [event for event in snapshot.events if name in (None, event.name)]


def settled(condition: Callable[[Snapshot], bool], seconds: float = 5.0) -> Snapshot:
    """The first snapshot of which the condition is true, or the last one taken."""
    end = time.monotonic() + seconds
    while not condition(snapshot := look()) and time.monotonic() < end:
        time.sleep(0.02)
    return snapshot
