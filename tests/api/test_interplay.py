"""Where features meet: acknowledging with replays and endings, receivers that go while others are full, ends in a jam."""

from __future__ import annotations

import pytest

from heliograph.engine import Instance
from heliograph.monitor.segment import Segment

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
        assert until(lambda: events(source, "acker_left"))
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
        assert len(events(source, "acker_joined")) == 1
        assert events(source, "acker_left") == []


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
