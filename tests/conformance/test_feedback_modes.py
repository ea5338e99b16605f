"""Every feedback mode on every transport: what receivers say, and what holds because of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from heliograph.engine import Message, TimeoutExpired, WouldBlock
from tests.conformance.conftest import Join, Pair, Transport


@dataclass(frozen=True)
class Mode:
    """A feedback mode: the transmitter's options and each receiver's."""

    name: str
    receivers: list[dict[str, object]]
    transmitter: dict[str, object] = field(default_factory=dict)
    acknowledged_by: int = 0
    """Receivers whose acknowledgement `wait_acked` can wait for."""


MODES = [
    Mode("NAK", [{}]),
    Mode("ACK", [{"ack": "auto"}], {}, 1),
    Mode("App-ACK", [{"ack": "app"}], {}, 1),
    Mode("Wait-ACK", [{"ack": "auto"}], {"acks": 1}, 1),
    Mode("Wait-N-ACK", [{"ack": "auto"}, {"ack": "auto"}, {"ack": "auto"}], {"acks": 2}, 3),
    Mode("mixed", [{"ack": "auto"}, {"ack": "app"}, {}], {"acks": 2}, 2),
    Mode("never-NAK", [{"nak": "off"}]),
    Mode("arrival-order", [{"order": "arrival"}]),
]
COUNT = 1000


def body(number: int) -> bytes:
    return b"%d" % number + b"." * 200


def exchange(pair: Pair, mode: Mode) -> list[list[Message]]:
    """Send COUNT messages while every receiver takes what comes; what each took."""
    taken: list[list[Message]] = [[] for _ in pair.receivers]

    def take() -> bool:
        pair.work()
        before = sum(map(len, taken))
        for receiver, mine, options in zip(pair.receivers, taken, mode.receivers, strict=True):
            some = receiver.receive(timeout=0, limit=256)
            mine += some
            if some and options.get("ack") == "app":
                receiver.acknowledge(some[-1])
        return sum(map(len, taken)) > before

    for number in range(COUNT):
        while True:
            try:
                pair.transmitter.send(body(number), timeout=0)
                break
            except WouldBlock:
                take()
        if number % 20 == 0:
            take()
    until(lambda: (take() and False) or all(len(mine) == COUNT for mine in taken))
    return taken


def until(done: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Look until it is so, or for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if done():
            return True
        time.sleep(0.0005)
    return False


def acknowledged(pair: Pair, receivers: int, seconds: float = 20.0) -> bool:
    """Whether so many receivers have acknowledged all; polled engines are worked meanwhile."""

    def look() -> bool:
        pair.work()
        try:
            pair.transmitter.wait_acked(receivers, timeout=0.001)
        except TimeoutExpired:
            return False
        return True

    return until(look, seconds)


@pytest.mark.parametrize("feedback", MODES, ids=lambda mode: mode.name)
def test_all_arrives_and_is_acknowledged_as_the_mode_says(join: Join, feedback: Mode) -> None:
    pair = join(fan=len(feedback.receivers), receiver=feedback.receivers, transmitter=feedback.transmitter)
    for mine, receiver in zip(exchange(pair, feedback), pair.receivers, strict=True):
        assert sorted(message.number for message in mine) == list(range(COUNT))
        assert all(message.data == body(message.number) for message in mine)
        assert receiver.losses() == []
    if feedback.acknowledged_by:
        assert acknowledged(pair, feedback.acknowledged_by)
        assert {ack.number for ack in pair.transmitter.acks()} == {COUNT - 1}
    else:
        assert pair.transmitter.acks() == []


@pytest.mark.parametrize(
    "feedback", [m for m in MODES if m.name in ("ACK", "App-ACK", "Wait-ACK", "Wait-N-ACK")], ids=lambda mode: mode.name
)
def test_acknowledged_modes_lose_nothing_through_loss(join: Join, transport: Transport, feedback: Mode) -> None:
    lossy = [{**options, **({"inject_loss": 0.05} if transport.can_lose else {})} for options in feedback.receivers]
    pair = join(fan=len(lossy), receiver=lossy, transmitter=feedback.transmitter)
    for mine in exchange(pair, feedback):
        assert [message.number for message in mine] == list(range(COUNT))
    assert acknowledged(pair, feedback.acknowledged_by)


def test_nothing_is_acknowledged_before_the_application_says_so(join: Join) -> None:
    pair = join(receiver={"ack": "app"})
    for number in range(10):  # each in a packet of its own: acknowledgements are of packets
        pair.transmitter.send(body(number))
        pair.transmitter.flush()
    messages = pair.receive(10)
    assert not acknowledged(pair, 1, seconds=0.2)
    pair.receivers[0].acknowledge(messages[4])
    assert until(lambda: pair.work() is None and [ack.number for ack in pair.transmitter.acks()] == [4])
    pair.receivers[0].acknowledge(messages[-1])
    assert acknowledged(pair, 1)


def test_wait_ack_holds_the_sender_until_somebody_acknowledges(join: Join) -> None:
    pair = join(receiver={"ack": "app"}, transmitter={"acks": 1, "send_window": 16, "submit_queue": 65536, "mtu": 1500})
    sent = 0
    with pytest.raises(WouldBlock):  # noqa: PT012  # which one it will be is not known
        while sent < 2000:
            pair.transmitter.send(b"." * 1300, timeout=0)
            sent += 1
            pair.work()
    messages = pair.receive(sent, seconds=1.0)
    assert messages
    pair.receivers[0].acknowledge(messages[-1])

    def goes_on() -> bool:
        pair.work()
        try:
            pair.transmitter.send(b"." * 1300, timeout=0)
        except WouldBlock:
            return False
        return True

    assert until(goes_on)
