"""Sending: a full queue, time limits, sizes, flush."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.engine import (
    Instance,
    Message,
    MessageSizeError,
    TimeoutExpired,
    Transmitter,
    WouldBlock,
)
from heliograph.monitor.segment import Segment

from .conftest import collect

TOPIC = "PRICES.FX"
QUEUE_BYTES = 65536


class Stuck:
    """A transmitter whose engine is held up within a callback, so that its queue can be filled."""

    def __init__(self, instance: Instance, endpoint: str) -> None:
        self._free = threading.Event()
        stopped = threading.Event()

        def stop(messages: list[Message]) -> None:
            stopped.set()
            self._free.wait(20)

        self.transmitter: Transmitter = instance.transmitter(endpoint, TOPIC, submit_queue=QUEUE_BYTES, linger=0.0)
        instance.receiver(endpoint, "STOP", on_messages=stop)
        self._stopper = instance.transmitter(endpoint, "STOP", linger=0.0)
        self._stopper.send(b"")
        assert stopped.wait(10)

    def fill(self) -> int:
        """Sends until nothing fits; returns how many messages fitted."""
        sent = 0
        while True:
            try:
                self.transmitter.send(b"x" * 1000, timeout=0)
            except WouldBlock:
                return sent
            sent += 1
            assert sent < 10 * QUEUE_BYTES / 1000

    def free(self) -> None:
        self._free.set()


@pytest.fixture
def stuck(threaded: Instance, multicast: str) -> Iterator[Stuck]:
    stuck = Stuck(threaded, multicast)
    yield stuck
    stuck.free()


def test_a_full_queue_would_block(stuck: Stuck) -> None:
    assert stuck.fill() > 10
    with pytest.raises(WouldBlock) as caught:
        stuck.transmitter.send(b"x" * 1000, timeout=0)
    assert caught.value.code == "WOULD_BLOCK"


def test_waiting_for_room_ends_when_its_time_is_over(stuck: Stuck) -> None:
    stuck.fill()
    started = time.monotonic()
    with pytest.raises(TimeoutExpired) as caught:
        stuck.transmitter.send(b"x" * 1000, timeout=0.12)
    assert 0.12 <= time.monotonic() - started < 2.0
    assert isinstance(caught.value, TimeoutError)


def test_waiting_for_room_ends_when_there_is_some(stuck: Stuck, multicast: str) -> None:
    with Instance() as sink:
        receiver = sink.receiver(multicast, TOPIC)
        filled = stuck.fill()
        threading.Timer(0.1, stuck.free).start()
        stuck.transmitter.send(b"the last")
        messages = collect(receiver, filled + 1)
        assert [message.data for message in messages] == [b"x" * 1000] * filled + [b"the last"]


def test_a_list_that_does_not_fit_tells_how_far_it_came(stuck: Stuck) -> None:
    with pytest.raises(WouldBlock) as caught:
        stuck.transmitter.send_many([b"x" * 1000] * 500, timeout=0)
    assert 10 < caught.value.accepted < 500
    assert stuck.fill() == 0


def test_a_list_waits_for_room_and_goes_on(threaded: Instance, multicast: str) -> None:
    receiver = threaded.receiver(multicast, TOPIC)
    transmitter = threaded.transmitter(multicast, TOPIC, submit_queue=QUEUE_BYTES, linger=0.0)
    sent = [b"%d" % number + b"." * 1000 for number in range(1000)]
    assert transmitter.send_many(sent) == 1000
    assert [message.data for message in collect(receiver, 1000)] == sent


def test_a_list_that_fails_within_tells_how_far_it_came(threaded: Instance, multicast: str) -> None:
    transmitter = threaded.transmitter(multicast, TOPIC, max_message_bytes=100, linger=0.0)
    with pytest.raises(MessageSizeError) as caught:
        transmitter.send_many([b"fits", b"fits too", b"x" * 101, b"fits again"])
    assert caught.value.accepted == 2


def test_a_message_larger_than_allowed_is_refused(instance: Instance, multicast: str) -> None:
    receiver = instance.receiver(multicast, TOPIC)
    transmitter = instance.transmitter(multicast, TOPIC, max_message_bytes=100, linger=0.0)
    with pytest.raises(MessageSizeError):
        transmitter.send(b"x" * 101)
    transmitter.send(b"x" * 100)
    assert [len(message) for message in collect(receiver, 1)] == [100]


def messages_sent(instance: Instance) -> int:
    """What the transmitters of the instance have given to the network."""
    assert isinstance(instance.segment, Path)
    with Segment(instance.segment) as segment:
        transmitters = [found for found in segment.objects(histograms=False) if found.scope == "transmitter"]
    return sum(int(found.values["messages_sent"]) for found in transmitters)


def test_flush_returns_when_all_is_sent(instance: Instance, multicast: str) -> None:
    transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
    transmitter.flush(timeout=1.0)
    for turn in range(1, 21):
        transmitter.send_many([b"x" * 100] * 1000)
        transmitter.flush(timeout=5.0)
        assert messages_sent(instance) == 1000 * turn


def test_flush_does_not_return_while_something_waits(stuck: Stuck, threaded: Instance) -> None:
    filled = stuck.fill()
    done = threading.Event()

    def flush() -> None:
        stuck.transmitter.flush(timeout=20.0)
        done.set()

    flushing = threading.Thread(target=flush)
    flushing.start()
    assert not done.wait(0.2)
    assert messages_sent(threaded) < filled
    stuck.free()
    flushing.join(20.0)
    assert done.is_set()
    assert messages_sent(threaded) == filled + 1  # and the message that stopped the engine


def test_flush_ends_when_its_time_is_over(stuck: Stuck) -> None:
    stuck.fill()
    with pytest.raises(TimeoutExpired):
        stuck.transmitter.flush(timeout=0.06)


def test_many_threads_may_send(threaded: Instance, multicast: str) -> None:
    receiver = threaded.receiver(multicast, TOPIC)
    transmitter = threaded.transmitter(multicast, TOPIC, linger=0.0)

    def send(name: bytes) -> None:
        for number in range(200):
            transmitter.send(b"%s %d" % (name, number))

    threads = [threading.Thread(target=send, args=[name]) for name in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    received = [message.data for message in collect(receiver, 600)]
    for thread in threads:
        thread.join()
    for name in (b"a", b"b", b"c"):
        assert [data for data in received if data.startswith(name)] == [b"%s %d" % (name, n) for n in range(200)]
