"""How far a source goes ahead of its receivers: windows and PGMCC, on every transport."""

from __future__ import annotations

import os
import threading
import time

import pytest

from heliograph.engine import Instance, OptionError, Receiver
from tests.ports import free_port

from .conftest import until

TOPIC = "PRICES.FX"
COUNT = 3000
MESSAGE = b"x" * 1200


@pytest.fixture(params=["multicast", "unicast", "rum", "shm"])
def way(request: pytest.FixtureRequest) -> str:
    """An endpoint of each transport."""
    if request.param == "rum":
        return f"rum://127.0.0.1:{free_port()}?mtu=1500"
    if request.param == "shm":
        return f"shm://window-{os.getpid()}-{free_port()}?mtu=1500"
    text: str = request.getfixturevalue(request.param)
    return text


def take_slowly(receiver: Receiver, count: int, taken: list[int], pause: float) -> None:
    """An application that does too much with each batch."""
    deadline = time.monotonic() + 60
    while len(taken) < count and time.monotonic() < deadline:
        taken += [message.number for message in receiver.receive(timeout=0.5, limit=32)]
        time.sleep(pause)


def test_a_source_waits_for_its_slowest_receiver_and_nobody_loses(threaded: Instance, way: str) -> None:
    """The history holds a fraction of what is sent: without the window the slow one would lose most of it."""
    taken: list[int] = []
    with (
        Instance(mode="thread") as other,
        other.receiver(way, TOPIC, receive_window=64, receive_queue=65536) as receiver,
        threaded.transmitter(
            way, TOPIC, flow_window="min", window_receivers=1, window_silence=30.0, send_window=256
        ) as transmitter,
    ):
        application = threading.Thread(target=take_slowly, args=(receiver, COUNT, taken, 0.01))
        application.start()
        for _ in range(COUNT):
            transmitter.send(MESSAGE, timeout=60)
        application.join(90)
        assert taken == list(range(COUNT))
        assert receiver.losses() == []


def test_nothing_is_sent_before_so_many_receivers_are_there(threaded: Instance, unicast: str) -> None:
    with (
        threaded.transmitter(unicast, TOPIC, flow_window="max", window_receivers=1) as transmitter,
        Instance(mode="thread") as other,
    ):
        for _ in range(10):
            transmitter.send(b"early", timeout=10)
        time.sleep(0.2)
        with other.receiver(unicast, TOPIC) as receiver:  # it comes late, and misses nothing
            got: list[int] = []
            assert until(lambda: got.extend(m.number for m in receiver.receive(timeout=0.05)) or len(got) == 10, other)
            assert got == list(range(10))


def test_pgmcc_carries_all_there_is(threaded: Instance, way: str) -> None:
    taken: list[int] = []
    with (
        Instance(mode="thread") as other,
        other.receiver(way, TOPIC) as receiver,
        threaded.transmitter(way, TOPIC, rate_policy="pgmcc", report_interval=0.01) as transmitter,
    ):
        transmitter.send(b"first", timeout=10)
        application = threading.Thread(target=take_slowly, args=(receiver, COUNT + 1, taken, 0.0))
        application.start()
        for _ in range(COUNT):
            transmitter.send(MESSAGE, timeout=60)
        application.join(90)
        assert taken == list(range(COUNT + 1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"window_receivers": 2}, ("window_receivers=2", "flow_window=none")),
        ({"flow_window": "min", "report_interval": 0.0}, ("flow_window", "report_interval is 0")),
    ],
)
def test_what_contradicts_itself_is_refused(
    polled: Instance, unicast: str, options: dict[str, object], words: tuple[str, ...]
) -> None:
    with pytest.raises(OptionError) as refusal:
        polled.transmitter(unicast, TOPIC, **options)
    assert all(word in str(refusal.value) for word in words)
