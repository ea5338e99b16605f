"""Where features meet: acknowledging with replays and endings, receivers that go while others are full, jams."""

from __future__ import annotations

import contextlib
import os
import resource
import threading
import time
from pathlib import Path

import pytest

from heliograph.engine import Instance, Transmitter, WouldBlock
from heliograph.monitor.segment import Segment
from tests.ports import free_port

from .conftest import collect, until

TOPIC = "ORDERS"


# ---- acknowledging ---------------------------------------------------------------------------------


def events(instance: Instance, name: str) -> list[str]:
    """Texts of the events of a name."""
    assert instance.segment is not None
    with Segment(instance.segment) as segment:
        return [event.text for event in segment.events().events if event.name == name]


def test_a_receiver_that_leaves_claims_nothing_its_application_did_not_acknowledge(endpoint: str) -> None:
    with Instance() as sink, Instance() as source:
        receiver = sink.receiver(endpoint, TOPIC, ack="app")
        transmitter = source.transmitter(endpoint, TOPIC)
        for _ in range(10):
            transmitter.send(b"x" * 1300)
            transmitter.flush()
        messages = collect(receiver, 10)
        transmitter.acks()
        receiver.acknowledge(messages[3])
        receiver.close()
        assert until(lambda: events(source, "acks_stopped"))
        assert [ack.number for ack in transmitter.acks()] == [3]


def test_a_replay_does_not_disturb_acknowledging(endpoint: str) -> None:
    with Instance() as sink, Instance() as source:
        receiver = sink.receiver(endpoint, TOPIC, ack="auto")
        transmitter = source.transmitter(endpoint, TOPIC)
        for _ in range(1000):
            transmitter.send(b"x" * 1300)
        collect(receiver, 1000)
        transmitter.wait_acked(timeout=5.0)
        assert len(receiver.replay(10, 900).messages) == 891
        transmitter.send(b"x")
        transmitter.wait_acked(timeout=5.0)
        assert len(events(source, "acks_started")) == 1
        assert events(source, "acks_stopped") == []


# ---- receivers that go -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_a_full_receiver_that_is_closed_holds_nobody_back(mode: str, unicast: str) -> None:
    with Instance(mode=mode) as sink, Instance() as source:  # type: ignore[arg-type]
        full = sink.receiver(unicast, TOPIC, receive_queue=65536)
        other = sink.receiver(unicast, TOPIC)
        transmitter = source.transmitter(unicast, TOPIC)
        for _ in range(400):
            transmitter.send(b"x" * 1000)
        transmitter.flush()
        taken = collect(other, 400, seconds=0.5)
        assert len(taken) < 400
        full.close()
        taken += collect(other, 400 - len(taken), seconds=5.0)
        assert [message.number for message in taken] == list(range(400))


# ---- jams ------------------------------------------------------------------------------------------


@pytest.fixture(params=["rum", "inproc", "shm"])
def jam(request: pytest.FixtureRequest) -> str:
    """An endpoint of each kind that makes the transmitter wait for a receiver that does not read."""
    if request.param == "rum":
        return f"rum://127.0.0.1:{free_port()}?send_backlog=65536"
    return f"{request.param}://jam-{os.getpid()}-{free_port()}?ring_wait=true&ring_packets=64"


def fill(transmitter: Transmitter) -> None:
    """Sends until everything on the way is full, and stays so."""
    end = time.monotonic() + 20.0
    quiet = time.monotonic() + 0.3
    while time.monotonic() < min(end, quiet):
        try:
            transmitter.send(b"x" * 4000, timeout=0)
            quiet = time.monotonic() + 0.3
        except WouldBlock:
            time.sleep(0.01)


def test_a_transmitter_in_a_jam_can_be_closed(jam: str) -> None:
    with Instance() as sink, Instance() as source:
        receiver = sink.receiver(jam, TOPIC, receive_queue=65536)
        transmitter = source.transmitter(jam, TOPIC, linger=0.1, submit_queue=65536, connection_timeout=0.5)
        fill(transmitter)
        closing = threading.Thread(target=transmitter.close, daemon=True)
        closing.start()
        closing.join(5.0)
        is_stuck = closing.is_alive()
        while closing.is_alive():
            receiver.receive(timeout=0.1)
        assert not is_stuck


def test_an_engine_in_a_jam_sleeps(jam: str) -> None:
    with Instance() as sink, Instance(idle="block") as source:
        receiver = sink.receiver(jam, TOPIC, receive_queue=65536)
        transmitter = source.transmitter(jam, TOPIC, linger=0.1, submit_queue=65536)
        fill(transmitter)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        time.sleep(0.5)
        fell_asleep = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before
        while len(receiver.receive(timeout=0.5)):
            pass
        assert fell_asleep > 20  # times; one that looks all the time never does


def test_all_of_many_connections_go_on_after_a_jam() -> None:
    rum = f"rum://127.0.0.1:{free_port()}"
    with Instance() as sink, contextlib.ExitStack() as sources:
        receiver = sink.receiver(rum, TOPIC, receive_queue=65536)
        for _ in range(6):
            source = sources.enter_context(Instance())
            transmitter = source.transmitter(rum, TOPIC)
            for _ in range(100):
                transmitter.send(b"x" * 4000)
            transmitter.flush()
        time.sleep(0.2)  # the receiver is full, and nothing is read
        for _ in range(100):
            transmitter.send(b"x" * 4000)
        received = collect(receiver, 700)
        assert len(received) == 700


@pytest.mark.parametrize("scheme", ["rum", "inproc"])
def test_a_full_receiver_can_have_something_replayed(scheme: str) -> None:
    endpoint = {"rum": f"rum://127.0.0.1:{free_port()}", "inproc": "inproc://again?ring_wait=true&ring_packets=256"}
    with Instance() as sink, Instance() as source:
        receiver = sink.receiver(endpoint[scheme], TOPIC, receive_queue=65536)
        transmitter = source.transmitter(endpoint[scheme], TOPIC, linger=0.1)
        for _ in range(100):
            transmitter.send(b"x" * 100)
        collect(receiver, 100)
        for _ in range(400):
            transmitter.send(b"x" * 1000)
        transmitter.flush()
        assert [message.number for message in receiver.replay(10, 50).messages] == list(range(10, 51))
        assert [message.number for message in collect(receiver, 400)] == list(range(100, 500))


# ---- what is left over -----------------------------------------------------------------------------


def held() -> tuple[int, int, list[str]]:
    """Descriptors, threads and ring files of this process."""
    rings = Path(os.environ.get("HELIOGRAPH_RING_DIR") or f"/dev/shm/heliograph-rings-{os.geteuid()}")
    own = f".{os.getpid():08x}."
    files = [file.name for file in rings.iterdir() if own in file.name] if rings.is_dir() else []
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), files


@pytest.mark.parametrize("scheme", ["rum", "shm", "inproc", "rmm+unicast"])
def test_coming_and_going_leaves_nothing_behind(scheme: str) -> None:
    is_ring = scheme in ("shm", "inproc")
    endpoint = f"{scheme}://left-over?ring_packets=64" if is_ring else f"{scheme}://127.0.0.1:{free_port()}"
    with Instance() as sink, Instance(mode="poll") as source:

        def come_and_go() -> None:
            with (
                sink.receiver(endpoint, TOPIC),
                source.transmitter(endpoint, TOPIC, linger=0.0, send_window=64) as transmitter,
            ):
                transmitter.send(b"x", timeout=2.0)

        come_and_go()
        before = held()
        for _ in range(40):
            come_and_go()
        assert until(lambda: held() == before)
