"""What holds on every transport, in both modes: every message once, whole and in order, to every receiver."""

from __future__ import annotations

import time

import pytest

from heliograph.engine import Instance, WouldBlock
from tests.conformance.conftest import TRANSPORTS, Join, Pair, Transport, settle

SIZES = [0, 1, 63, 64, 1400, 1433, 1434, 1500, 8100, 8200, 65536, 1_000_000]


def test_every_message_arrives_once_and_in_order(join: Join) -> None:
    pair = join()
    for number in range(5000):
        pair.transmitter.send(b"%d" % number)
        if number % 256 == 0:
            pair.work()
    messages = pair.receive(5000)
    assert [message.data for message in messages] == [b"%d" % number for number in range(5000)]
    assert [message.number for message in messages] == list(range(5000))
    assert pair.receivers[0].losses() == []
    assert pair.receivers[0].receive(timeout=0.05) == []


@pytest.mark.parametrize("size", SIZES)
def test_messages_of_any_size_arrive_whole(join: Join, size: int) -> None:
    pair = join()
    bodies = [bytes([number % 251]) * size for number in range(3)]
    for body in bodies:
        pair.transmitter.send(body)
    assert [message.data for message in pair.receive(3)] == bodies


def test_every_receiver_gets_every_message(join: Join) -> None:
    pair = join(fan=3)
    for number in range(500):
        pair.transmitter.send(b"%d" % number)
    for receiver in range(3):
        assert [m.data for m in pair.receive(500, receiver)] == [b"%d" % number for number in range(500)]


def test_a_receiver_gets_its_topic_only(join: Join) -> None:
    pair = join()
    other = pair.instances[0].transmitter(pair.transmitter.endpoint, "OTHER", linger=0.2)
    for number in range(200):
        other.send(b"no")
        pair.transmitter.send(b"%d" % number)
    assert [m.data for m in pair.receive(200)] == [b"%d" % number for number in range(200)]


@pytest.mark.parametrize(
    "transport", [t for t in TRANSPORTS if t.is_meeting_place], ids=lambda transport: transport.name
)
def test_any_host_may_send_and_receive(transport: Transport, mode: str) -> None:
    """n:m: three peers, each both, all at one endpoint."""
    endpoint = transport.make(1)[0]
    peers = [Instance(mode=mode, stats="memory") for _ in range(3)]  # type: ignore[arg-type]
    try:
        receivers = [peer.receiver(endpoint, "T") for peer in peers]
        transmitters = [peer.transmitter(endpoint, "T", linger=0.2) for peer in peers]
        pair = Pair(peers, transmitters[0], receivers)
        settle(pair)
        for number in range(100):
            for transmitter in transmitters:
                transmitter.send(b"%d" % number)
        for place in range(3):
            messages = pair.receive(300, place)
            for transmitter in transmitters:
                mine = [m.data for m in messages if m.stream == transmitter.stream]
                assert mine == [b"%d" % number for number in range(100)]
    finally:
        for peer in peers:
            peer.close()


@pytest.mark.parametrize("share", [0.01, 0.2])
def test_what_gets_lost_is_repaired(join: Join, transport: Transport, share: float) -> None:
    pair = join(receiver={"inject_loss": share} if transport.can_lose else {})
    for number in range(3000):
        pair.transmitter.send(b"%d" % number)
        if number % 16 == 0:
            pair.work()
    assert [m.data for m in pair.receive(3000)] == [b"%d" % number for number in range(3000)]
    assert pair.receivers[0].losses() == []


class Ledger:
    """What a receiver got and was told of: each number once, in order."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.next = 0
        self.received = 0
        self.lost = 0

    def take(self, limit: int) -> bool:
        """Take some messages and reports; whether there were any."""
        self.pair.work()
        messages = self.pair.receivers[0].receive(timeout=0.001, limit=limit)
        losses = self.pair.receivers[0].losses()
        for message in messages:
            assert message.number >= self.next
            assert int.from_bytes(message.data[:4], "big") == message.number
            self.next = message.number + 1
        self.received += len(messages)
        self.lost += sum(loss.count for loss in losses)
        return bool(messages or losses)


def test_a_slow_receiver_loses_nothing_it_is_not_told_of(join: Join) -> None:
    """Its queue holds a few hundred messages; what does not fit waits or is told as lost, and nothing comes twice."""
    pair = join(receiver={"receive_queue": 65536}, transmitter={"submit_queue": 65536})
    ledger = Ledger(pair)
    for number in range(3000):
        body = number.to_bytes(4, "big") * 64
        while True:
            try:
                pair.transmitter.send(body, timeout=0)
                break
            except WouldBlock:
                ledger.take(50)
        if number % 100 == 99:
            ledger.take(50)
    silent = time.monotonic()
    while ledger.received + ledger.lost < 3000:
        silent = time.monotonic() if ledger.take(100) else silent
        assert time.monotonic() - silent < 10, "nothing more comes, and nobody says why"
    assert ledger.received + ledger.lost == 3000


def test_a_topic_can_end_and_come_back(join: Join) -> None:
    pair = join()
    pair.transmitter.send(b"one")
    assert [m.data for m in pair.receive(1)] == [b"one"]
    endpoint = pair.transmitter.endpoint
    keeper = pair.instances[0].transmitter(endpoint, "OTHER", linger=0.2)  # the stream goes on
    pair.transmitter.close()
    pair.transmitter = pair.instances[0].transmitter(endpoint, "T", linger=0.2)
    pair.transmitter.send(b"two")
    assert [m.data for m in pair.receive(1)] == [b"two"]
    keeper.close()


def test_a_new_source_is_a_new_stream(join: Join, mode: str) -> None:
    pair = join()
    pair.transmitter.send(b"old")
    (old,) = pair.receive(1)
    endpoint = pair.transmitter.endpoint
    pair.instances[0].close()
    pair.instances[0] = Instance(mode=mode, stats="memory")  # type: ignore[arg-type]
    try:
        pair.transmitter = pair.instances[0].transmitter(endpoint, "T", linger=0.2)
        settle(pair, 0.3)
        pair.transmitter.send(b"new")
        (new,) = pair.receive(1)
        assert new.data == b"new"
        assert new.number == 0
        assert new.stream != old.stream
    finally:
        pair.instances[0].close()
