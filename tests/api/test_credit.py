"""Credit: a transmitter that awaits it never sends further than its receivers have granted."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from heliograph.engine import Instance, Message, OptionError, Receiver, TimeoutExpired, Transmitter, WouldBlock
from heliograph.monitor.segment import Segment
from tests.ports import free_port

from .conftest import until

TOPIC = "ORDERS"
CREDIT = 8
COUNT = 100
IMPATIENT: dict[str, Any] = {"linger": 0, "connection_timeout": 0.1, "connect_wait": 0}


@pytest.fixture(params=["multicast", "unicast", "rum", "shm"])
def way(request: pytest.FixtureRequest) -> str:
    """Each kind of endpoint in turn."""
    if request.param == "rum":
        return f"rum://127.0.0.1:{free_port()}"
    if request.param == "shm":
        return f"shm://credit-{os.getpid()}-{free_port()}"
    text: str = request.getfixturevalue(request.param)
    return text


@pytest.fixture(params=["thread", "poll"])
def other(request: pytest.FixtureRequest) -> Iterator[Instance]:
    """A second instance, in each mode in turn."""
    with Instance(mode=request.param) as instance:
        yield instance


def value(instance: Instance, scope: str, name: str) -> int:
    """Sum of a statistic over the objects of a scope."""
    assert instance.segment is not None
    with Segment(instance.segment) as segment:
        return sum(int(o.values[name]) for o in segment.objects(histograms=False) if o.scope == scope)


def work(*instances: Instance) -> None:
    """Gives engines a little time."""
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        for instance in instances:
            if instance.polled:
                instance.poll()
        time.sleep(0.001)


def offer(transmitter: Transmitter, number: int, last: int) -> int:
    """Sends messages as long as they are taken at once; the number of the next."""
    while number < last:
        try:
            transmitter.send(str(number).encode(), timeout=0)
        except (TimeoutExpired, WouldBlock):
            break
        number += 1
    return number


def exchange(instance: Instance, other: Instance, sender: Transmitter, receiver: Receiver) -> list[Message]:
    """All messages; whenever the receiver looks, no more than its credit are on their way to it."""
    messages: list[Message] = []
    number, end = 0, time.monotonic() + 20
    while len(messages) < COUNT and time.monotonic() < end:
        number = offer(sender, number, COUNT)
        work(instance, other)
        assert value(instance, "transmitter", "messages_sent") <= len(messages) + CREDIT
        messages += receiver.receive(timeout=0, limit=3)
        messages += receiver.receive(timeout=0, limit=3)
    return messages


def test_no_more_is_outstanding_than_was_granted(instance: Instance, other: Instance, way: str) -> None:
    receiver = other.receiver(way, TOPIC, credit=CREDIT)
    sender = instance.transmitter(way, TOPIC, await_credit=True)
    messages = exchange(instance, other, sender, receiver)
    assert [m.data for m in messages] == [str(i).encode() for i in range(COUNT)]
    assert value(instance, "transmitter", "credit_waits") > 0
    assert value(instance, "transmitter", "credit_wait_time") > 0
    assert value(other, "receiver", "messages_lost") == 0
    limit, received = value(instance, "transmitter", "credit_limit"), value(instance, "tx_stream", "grants_received")
    assert limit >= COUNT
    assert received > 0
    assert until(lambda: value(other, "receiver", "credit_granted") >= limit, other)
    assert until(lambda: value(other, "rx_stream", "grants_sent") >= received, other)


def test_what_comes_late_is_told_where_the_topic_stands(instance: Instance, threaded: Instance, endpoint: str) -> None:
    first = threaded.receiver(endpoint, TOPIC, credit=CREDIT)
    sender = instance.transmitter(endpoint, TOPIC, await_credit=True, **IMPATIENT)
    assert until(lambda: offer(sender, 0, 1), instance)
    assert until(lambda: first.receive(timeout=0), instance)
    first.close()
    with Instance() as late:
        second = late.receiver(endpoint, TOPIC, credit=CREDIT, join="live")
        number = 1

        def arrives() -> list[Message]:
            nonlocal number
            number = offer(sender, number, number + 1)
            return second.receive(timeout=0)

        assert until(arrives, instance)


def test_a_listener_grants_as_it_returns(instance: Instance, other: Instance, way: str) -> None:
    got: list[bytes] = []
    other.receiver(way, TOPIC, on_messages=lambda messages: got.extend(m.data for m in messages), credit=1)
    sender = instance.transmitter(way, TOPIC, await_credit=True)
    number, end = 0, time.monotonic() + 20
    while len(got) < COUNT and time.monotonic() < end:
        number = offer(sender, number, COUNT)
        for each in (instance, other):
            if each.polled:
                each.poll()
    assert got == [str(i).encode() for i in range(COUNT)]


def test_nothing_leaves_before_a_grant_and_all_does_without_await_credit(instance: Instance, unicast: str) -> None:
    with Instance() as other:
        receiver = other.receiver(unicast, TOPIC)
        waits = instance.transmitter(unicast, TOPIC, await_credit=True, **IMPATIENT)
        offer(waits, 0, COUNT)
        work(instance)
        assert value(instance, "transmitter", "messages_sent") == 0
        free = instance.transmitter(unicast, TOPIC)
        free.send(b"free", timeout=1)
        assert until(lambda: [m.data for m in receiver.receive(timeout=0)] == [b"free"], instance)


def test_a_full_queue_blocks_a_sender_without_credit(threaded: Instance, unicast: str) -> None:
    transmitter = threaded.transmitter(unicast, TOPIC, await_credit=True, queue_messages=4, **IMPATIENT)
    for _ in range(4):
        transmitter.send(b"x", timeout=1)
    with pytest.raises(TimeoutExpired):
        transmitter.send(b"x", timeout=0.05)


@pytest.mark.parametrize("queue", [{}, {"queue_messages": 16}])
def test_what_was_never_granted_is_dropped_unnumbered_when_its_transmitter_closes(
    threaded: Instance, unicast: str, queue: dict[str, Any]
) -> None:
    keep = threaded.transmitter(unicast, TOPIC, await_credit=True, **IMPATIENT)
    transmitter = threaded.transmitter(unicast, TOPIC, await_credit=True, **IMPATIENT, **queue)
    for _ in range(5):
        transmitter.send(b"x", timeout=1)
    transmitter.close()
    assert keep.stream
    assert threaded.segment is not None
    with Segment(threaded.segment) as segment:
        events = [event for event in segment.events().events if event.name == "messages_dropped"]
    assert [tuple(event.arguments.values())[:2] for event in events] == [(5, 5)]
    assert "credit 5" in events[0].text
    assert value(threaded, "transmitter", "next_message") == 0
    if not queue:
        assert value(threaded, "transmitter", "messages_dropped_credit") == 5


def test_credit_and_bare_payloads_contradict_each_other(instance: Instance, unicast: str) -> None:
    with pytest.raises(OptionError, match="await_credit contradicts payload=raw"):
        instance.transmitter(unicast, TOPIC, await_credit=True, payload="raw")
    with pytest.raises(OptionError, match="credit=5 contradicts payload=raw"):
        instance.receiver(unicast, TOPIC, credit=5, payload="raw")
    with pytest.raises(OptionError, match="credit"):
        instance.receiver(unicast, TOPIC, credit=2**31 + 1)
