"""What is sent arrives: whole, once, in order, and with its origin."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.engine import Instance, Message, catalogue

from .conftest import collect, until

TOPIC = "PRICES.FX"


def test_messages_arrive_in_order(instance: Instance, endpoint: str) -> None:
    receiver = instance.receiver(endpoint, TOPIC)
    transmitter = instance.transmitter(endpoint, TOPIC, linger=0.0)
    sent = [f"message {number}".encode() for number in range(2000)]
    for data in sent:
        transmitter.send(data)
    received = collect(receiver, len(sent))
    assert [message.data for message in received] == sent
    assert [message.number for message in received] == list(range(len(sent)))


@pytest.mark.parametrize("idle", catalogue.options()["idle"].choices)
def test_messages_arrive_whatever_the_engine_does_when_idle(multicast: str, idle: str) -> None:
    with Instance(idle=idle) as instance:  # type: ignore[arg-type]
        receiver = instance.receiver(multicast, TOPIC)
        transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
        for number in range(20):  # one at a time, so that it is idle in between
            transmitter.send(b"%d" % number)
            assert [message.number for message in collect(receiver, 1)] == [number]


def test_a_list_is_sent_as_its_messages(instance: Instance, endpoint: str) -> None:
    receiver = instance.receiver(endpoint, TOPIC)
    transmitter = instance.transmitter(endpoint, TOPIC, linger=0.0)
    sent = [bytes([number % 256]) * (number % 300) for number in range(1000)]
    assert transmitter.send_many(sent) == len(sent)
    assert [message.data for message in collect(receiver, len(sent))] == sent


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"a\0b\0", bytes(range(256)), b"x" * 32767, b"x" * 32768, b"x" * 65536],
    ids=["empty", "a zero", "zeros within", "every byte", "longest plain", "shortest extended", "64 KiB"],
)
def test_any_bytes_arrive_as_they_are(instance: Instance, multicast: str, data: bytes) -> None:
    receiver = instance.receiver(multicast, TOPIC)
    instance.transmitter(multicast, TOPIC, linger=0.0).send(data)
    assert [message.data for message in collect(receiver, 1)] == [data]


def test_any_list_of_anything_arrives_as_it_is(multicast: str) -> None:
    """Empty ones, zeros, and lengths around those at which the form of a message or packet changes."""
    edges = st.sampled_from([0, 1, 7, 8, 1405, 1406, 1407, 1408, 1409, 32767, 32768]).map(lambda n: b"\0" * n)
    messages = st.lists(st.binary(max_size=3000) | edges, max_size=20)
    with Instance(mode="poll", stats="memory") as instance:
        receiver = instance.receiver(multicast, TOPIC)
        transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)

        @settings(max_examples=100, deadline=None, database=None, derandomize=True)
        @given(messages)
        def round_trip(sent: list[bytes]) -> None:
            transmitter.send_many(sent)
            assert [message.data for message in collect(receiver, len(sent))] == sent

        round_trip()


def test_a_large_message_is_put_together_again(instance: Instance, endpoint: str) -> None:
    receiver = instance.receiver(endpoint, TOPIC)
    transmitter = instance.transmitter(endpoint, TOPIC, linger=0.0)
    large = b"".join(number.to_bytes(4, "big") for number in range(1 << 18))
    for data in (b"before", large, b"after"):
        transmitter.send(data)
    assert [message.data for message in collect(receiver, 3)] == [b"before", large, b"after"]


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview], ids=lambda make: make.__name__)
def test_anything_like_bytes_can_be_sent(
    threaded: Instance, multicast: str, make: type[bytes] | type[bytearray] | type[memoryview]
) -> None:
    receiver = threaded.receiver(multicast, TOPIC)
    transmitter = threaded.transmitter(multicast, TOPIC, linger=0.0)
    transmitter.send(make(b"one"))
    transmitter.send_many([make(b"two"), make(b"three")])
    assert [message.data for message in collect(receiver, 3)] == [b"one", b"two", b"three"]


def test_text_is_not_bytes(threaded: Instance, multicast: str) -> None:
    transmitter = threaded.transmitter(multicast, TOPIC, linger=0.0)
    with pytest.raises(TypeError):
        transmitter.send("text")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        transmitter.send_many(["text"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="not one message"):
        transmitter.send_many(b"these would be numbers")  # type: ignore[arg-type]


def test_a_message_knows_its_origin(threaded: Instance, multicast: str) -> None:
    receiver = threaded.receiver(multicast, TOPIC)
    transmitter = threaded.transmitter(multicast, TOPIC, linger=0.0)
    before = time.time_ns()
    transmitter.send(b"hello")
    (message,) = collect(receiver, 1)
    after = time.time_ns()
    assert message.topic == TOPIC
    assert message.stream == transmitter.stream
    assert message.number == 0
    assert message.recovered is False
    assert before <= message.submit_ns <= message.receive_ns <= after


def test_a_message_is_like_bytes(threaded: Instance, multicast: str) -> None:
    receiver = threaded.receiver(multicast, TOPIC)
    threaded.transmitter(multicast, TOPIC, linger=0.0).send(b"hello")
    (message,) = collect(receiver, 1)
    view = memoryview(message)
    assert (len(message), bytes(message), view.tobytes(), view.readonly) == (5, b"hello", b"hello", True)
    assert bytes(message) is message.data
    assert repr(message) == "<Message 0 of PRICES.FX, 5 bytes>"
    with pytest.raises(TypeError):
        Message()


def test_messages_outlive_their_receiver(multicast: str) -> None:
    with Instance() as instance, instance.receiver(multicast, TOPIC) as receiver:
        instance.transmitter(multicast, TOPIC, linger=0.0).send_many([b"a" * 1000, b"b" * 1000])
        messages = collect(receiver, 2)
    view = memoryview(messages[0])
    del messages[0]
    assert (view.tobytes(), messages[0].data) == (b"a" * 1000, b"b" * 1000)


def test_topics_of_one_stream_are_told_apart(instance: Instance, endpoint: str) -> None:
    first = instance.receiver(endpoint, "FIRST")
    second = instance.receiver(endpoint, "SECOND")
    one = instance.transmitter(endpoint, "FIRST", linger=0.0)
    two = instance.transmitter(endpoint, "SECOND", linger=0.0)
    assert one.stream == two.stream
    for number in range(100):
        one.send(b"first %d" % number)
        two.send(b"second %d" % number)
    assert [message.data for message in collect(first, 100)] == [b"first %d" % number for number in range(100)]
    assert [message.data for message in collect(second, 100)] == [b"second %d" % number for number in range(100)]
    assert first.receive(timeout=0) == second.receive(timeout=0) == []


def test_the_second_of_two_polled_receivers_need_not_wait_for_the_first(endpoint: str) -> None:
    """The first receiver was alone when it received, so that the engine still keeps its messages where it reads."""
    with Instance(mode="poll") as sink, Instance() as source:
        first = sink.receiver(endpoint, "FIRST")
        one = source.transmitter(endpoint, "FIRST", linger=0.0)
        one.send(b"first")
        held = collect(first, 1)
        second = sink.receiver(endpoint, "SECOND")
        two = source.transmitter(endpoint, "SECOND", linger=0.0)
        sent = [b"second %d" % number for number in range(100)]
        one.send(b"meanwhile")
        two.send_many(sent)
        assert [message.data for message in collect(second, len(sent))] == sent
        assert [message.data for message in held + collect(first, 1)] == [b"first", b"meanwhile"]


def test_every_receiver_of_a_group_gets_everything(multicast: str) -> None:
    sent = [b"%d" % number for number in range(200)]
    with Instance() as here, Instance() as there, Instance() as source:
        receivers = [here.receiver(multicast, TOPIC), there.receiver(multicast, TOPIC)]
        source.transmitter(multicast, TOPIC, linger=0.0).send_many(sent)
        for receiver in receivers:
            assert [message.data for message in collect(receiver, len(sent))] == sent


def test_two_sources_of_a_topic_are_two_streams(multicast: str) -> None:
    with Instance() as sink, Instance() as one, Instance() as two:
        receiver = sink.receiver(multicast, TOPIC)
        transmitters = [each.transmitter(multicast, TOPIC, linger=0.0) for each in (one, two)]
        for transmitter in transmitters:
            transmitter.send_many([b"x"] * 50)
        messages = collect(receiver, 100)
        assert {transmitter.stream for transmitter in transmitters} == {message.stream for message in messages}
        for transmitter in transmitters:
            numbers = [message.number for message in messages if message.stream == transmitter.stream]
            assert numbers == list(range(50))


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_eight_peers_all_send_and_receive_one_topic(mode: str, multicast: str) -> None:
    peers, turns = 8, 50
    with ExitStack() as open_ones:
        instances = [
            open_ones.enter_context(Instance(mode=mode, stats="memory"))  # type: ignore[arg-type]
            for _ in range(peers)
        ]
        receivers = [instance.receiver(multicast, TOPIC, nak_deadline=10.0) for instance in instances]
        transmitters = [instance.transmitter(multicast, TOPIC, linger=0.0) for instance in instances]
        for turn in range(turns):
            for number, transmitter in enumerate(transmitters):
                transmitter.send(b"%d.%d" % (number, turn))
                instances[number].polled and instances[number].poll()
        inboxes: list[list[Message]] = [[] for _ in receivers]

        def all_came() -> bool:
            for inbox, receiver in zip(inboxes, receivers, strict=True):
                inbox += receiver.receive(timeout=0)
            return all(len(inbox) == peers * turns for inbox in inboxes)

        assert until(all_came, seconds=20.0)
        for inbox in inboxes:
            for number, transmitter in enumerate(transmitters):
                of_peer = [message.data for message in inbox if message.stream == transmitter.stream]
                assert of_peer == [b"%d.%d" % (number, turn) for turn in range(turns)]


def test_bytes_that_somebody_keeps_are_not_written_again(instance: Instance, endpoint: str) -> None:
    """A spent message keeps its bytes for the next of the same length, unless they are in use elsewhere."""
    receiver = instance.receiver(endpoint, TOPIC)
    transmitter = instance.transmitter(endpoint, TOPIC, linger=0.0)
    numbers = range(3000)
    sent = [b"%04d" % number + b"x" * (number % 3) for number in numbers]
    transmitter.send_many(sent)
    data: list[bytes] = []
    views: list[memoryview] = []
    hashes: set[int] = set()
    for number in numbers:
        message = receiver.receive_one(5.0)
        assert message is not None
        hashes.add(hash(message.data))
        assert {sent[number]: number}[message.data] == number  # found by the hash of what it is now
        if number % 2:
            data.append(message.data)
        elif number % 3:
            views.append(memoryview(message))
    assert data == sent[1::2]
    assert [bytes(view) for view in views] == [sent[number] for number in numbers if number % 2 == 0 and number % 3]
    assert len(hashes) == len(sent)
