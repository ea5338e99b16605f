"""Stability: only stores count for a quorum of stores, waits, limits of what is not stable, and what refuses."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.engine import AckersError, Instance, OptionError, TimeoutExpired, Transmitter, UsageError, WouldBlock
from heliograph.engine.store.server import StoreServer

TOPIC = "ORDERS"


class Stores:
    """Message stores of a topic, each with a thread that steps it, in directories of their own."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder, self.endpoint = folder, endpoint
        self.stops: list[threading.Event] = []
        self.threads: list[threading.Thread] = []

    def start(self) -> None:
        name = f"store{len(self.threads)}"
        stop, is_ready = threading.Event(), threading.Event()

        def run() -> None:
            with StoreServer(self.folder / name, name=name, batch_time=0.002) as server:
                server.keep(self.endpoint, TOPIC)
                is_ready.set()
                while not stop.is_set():
                    server.step(0.02)

        thread = threading.Thread(target=run)
        thread.start()
        self.stops.append(stop)
        self.threads.append(thread)
        assert is_ready.wait(60)

    def stop(self, index: int) -> None:
        self.stops[index].set()
        self.threads[index].join(60)


def send_slowly(sender: Transmitter) -> None:
    """Send until it fails, at most for a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        sender.send(b"x" * 500, timeout=1)
        time.sleep(0.01)


@pytest.fixture
def stores(tmp_path: Path, multicast: str) -> Iterator[Stores]:
    stores = Stores(tmp_path, multicast)
    yield stores
    for index in range(len(stores.threads)):
        stores.stop(index)


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_a_message_is_stable_when_two_of_three_stores_have_it(stores: Stores, multicast: str, mode: str) -> None:
    with Instance(mode=mode) as source, Instance() as reader:
        receiver = reader.receiver(multicast, TOPIC, ack="auto")
        sender = source.transmitter(multicast, TOPIC, acks=2, acks_from="stores", linger=0.0)
        stores.start()
        sender.send_many([b"x"] * 10)
        sender.wait_acked(2, timeout=60)  # the reader and a store
        with pytest.raises(TimeoutExpired, match="not stable before the timeout"):
            sender.wait_stable(timeout=0.2)
        stores.start()
        stores.start()
        sender.wait_stable(timeout=60)
        assert not receiver.closed
        stores.stop(2)  # any one of them
        sender.send(b"one more")
        sender.wait_stable(10, timeout=60)
        sender.wait_stable(0, timeout=60)
        with pytest.raises(TimeoutExpired):
            sender.wait_stable(11, timeout=0.1)  # not sent yet


def test_a_message_that_is_sent_later_can_be_waited_for(stores: Stores, multicast: str) -> None:
    with Instance() as source:
        sender = source.transmitter(multicast, TOPIC, acks=1, acks_from="stores", linger=0.0)
        stores.start()
        timer = threading.Timer(0.2, sender.send, [b"x"])
        timer.start()
        sender.wait_stable(0, timeout=60)
        timer.join()


def test_send_waits_at_the_limit_and_names_it(multicast: str) -> None:
    with Instance(mode="poll") as source:
        sender = source.transmitter(multicast, TOPIC, acks=1, unstable_messages=5, linger=0.0)
        for _ in range(5):
            sender.send(b"x")
        with pytest.raises(WouldBlock, match="unstable_messages allows are not stable"):
            sender.send(b"x", timeout=0)
        with pytest.raises(TimeoutExpired, match="unstable_messages"):
            sender.send(b"x", timeout=0.05)


def test_send_is_refused_at_the_limit_with_refuse(multicast: str) -> None:
    with Instance() as source:
        sender = source.transmitter(
            multicast, TOPIC, acks=1, unstable_bytes=2_000, unstable_action="refuse", linger=0.0
        )
        with pytest.raises(AckersError, match="unstable_bytes allows are not stable"):
            send_slowly(sender)
        with Instance() as store:
            receiver = store.receiver(multicast, TOPIC, ack="auto")
            sender.wait_stable(timeout=60)
            sender.send(b"x", timeout=60)
            assert not receiver.closed


def test_mistakes_are_named(multicast: str) -> None:
    with Instance() as source:
        sender = source.transmitter(multicast, TOPIC)
        with pytest.raises(UsageError, match="without the option acks"):
            sender.wait_stable()
        with pytest.raises(OptionError, match="need the option acks"):
            source.transmitter(multicast, "OTHER", unstable_messages=1, ttl=2)
        with pytest.raises(OverflowError):
            sender.wait_stable(-1)
        receiver = source.receiver(multicast, TOPIC, ack="none")
        with pytest.raises(UsageError, match="ack=app or ack=store"):
            receiver.acknowledge_number(0)
