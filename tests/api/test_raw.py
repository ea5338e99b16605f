"""Bare messages (``payload="raw"``): what other PGM programs send and expect, between two of ours."""

from __future__ import annotations

import pytest

from heliograph.engine import Error, Instance, MessageSizeError

from .conftest import collect

TOPIC = "here"


def test_messages_of_all_sizes_arrive_through_loss_numbered_like_packets(endpoint: str) -> None:
    messages = [b"%d" % number + b"." * (7 * number % 4000) for number in range(1000)]
    with Instance() as instance:
        receiver = instance.receiver(endpoint, TOPIC, payload="raw", inject_loss=0.05, nak_deadline=10.0)
        transmitter = instance.transmitter(endpoint, TOPIC, payload="raw", linger=0.0)
        for begin in range(0, len(messages), 20):
            transmitter.send_many(messages[begin : begin + 20])
        got = collect(receiver, len(messages), seconds=30.0)
        assert [message.data for message in got] == messages
        numbers = [message.number for message in got]
        assert numbers[0] == 0
        assert all(
            after - before == (len(message.data) > 1448) + (len(message.data) > 2856) + 1
            for message, before, after in zip(got, numbers, numbers[1:], strict=False)
        )
        assert {message.submit_ns for message in got} == {0}


def test_an_empty_message_is_refused_with_the_reason(instance: Instance, multicast: str) -> None:
    transmitter = instance.transmitter(multicast, TOPIC, payload="raw", linger=0.0)
    with pytest.raises(MessageSizeError, match="payload=raw a message must not be empty"):
        transmitter.send(b"")
    with pytest.raises(MessageSizeError, match="must not be empty"):
        transmitter.send_many([b"a", b"", b"b"])


def test_a_bare_endpoint_has_one_topic(instance: Instance, multicast: str) -> None:
    with instance.transmitter(multicast, TOPIC, payload="raw", linger=0.0) as first:
        with instance.transmitter(multicast, TOPIC, payload="raw", linger=0.0) as again:
            assert again.stream == first.stream
        with pytest.raises(Error, match="with payload=raw an endpoint has one topic, and it is here here; there needs"):
            instance.transmitter(multicast, "there", payload="raw", linger=0.0)


def test_payloads_share_neither_stream_nor_socket(threaded: Instance, multicast: str) -> None:
    bare = threaded.receiver(multicast, TOPIC, payload="raw")
    batched = threaded.receiver(multicast, TOPIC)
    with (
        threaded.transmitter(multicast, TOPIC, payload="raw", linger=0.0) as raw,
        threaded.transmitter(multicast, TOPIC, linger=0.0) as usual,
    ):
        assert raw.stream != usual.stream
        raw.send(b"bare")
        usual.send(b"in a batch")
        assert [message.data for message in collect(batched, 1)] == [b"in a batch"]
        got = collect(bare, 3)  # the other stream's announcement and batch, as they are
        assert b"bare" in [message.data for message in got]
        assert {message.stream for message in got} <= {raw.stream, usual.stream}


def test_what_bare_packets_carried_cannot_be_replayed(threaded: Instance, multicast: str) -> None:
    receiver = threaded.receiver(multicast, TOPIC, payload="raw")
    transmitter = threaded.transmitter(multicast, TOPIC, payload="raw", linger=0.0)
    transmitter.send(b"once")
    assert len(collect(receiver, 1)) == 1
    with pytest.raises(Error, match="payload=raw has no replay"):
        receiver.replay(0, 0)
