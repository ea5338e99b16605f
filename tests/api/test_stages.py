"""Stages of a message's latency through the whole engine: every message in each of them, waits where they belong."""

from __future__ import annotations

import time

import pytest

from heliograph.engine import Instance, Message, OptionError
from tests.segment.decoder import Object

from .conftest import collect, until
from .test_sockets import segment_of

WAIT = 0.05
LONG = 0.25
"""A wait that no stage of an idle engine comes near on a busy machine."""
SENT = 30

AT_THE_SOURCE = ("batch_latency", "pace_latency")
AT_THE_RECEIVER = ("total_latency", "order_latency", "network_latency", "socket_latency")
AT_THE_APPLICATION = ("dispatch_latency", "end_latency")


def _of(instance: Instance, scope: str) -> Object:
    (found,) = segment_of(instance).of(scope)
    return found


def _count(item: Object, name: str) -> int:
    histogram = item.histograms[name]
    return histogram.total + histogram.negative + histogram.above


def _value(cell: int) -> int:
    """Highest value of a cell, ns."""
    bucket = max(cell >> 10, 1) - 1
    return ((cell - (bucket << 10) + 1) << bucket) - 1


def _longest(item: Object, name: str) -> int:
    """The longest value, ns; 0 when there is none."""
    return _value(max(item.histograms[name].counts, default=0))


def _assert_in_no_other_stage(instance: Instance, *stages: str) -> None:
    """No stage but these, at either end, has a value as long as LONG."""
    for item in (_of(instance, "transmitter"), _of(instance, "receiver"), _of(instance, "rx_stream")):
        longest = {name: _longest(item, name) for name in item.histograms if name not in stages}
        assert all(value < LONG * 1e9 for value in longest.values()), longest


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_every_message_is_in_each_stage(mode: str, unicast: str) -> None:
    with Instance(mode=mode, level=3) as instance:  # type: ignore[arg-type]
        receiver = instance.receiver(unicast, "T")
        transmitter = instance.transmitter(unicast, "T", linger=0.0)
        for _ in range(SENT):
            transmitter.send(b"x")
            assert len(collect(receiver, 1)) == 1
        assert until(lambda: _of(instance, "receiver").values["latency_samples"] == SENT, instance)
        sent, received = _of(instance, "transmitter"), _of(instance, "receiver")
        assert [_count(sent, name) for name in AT_THE_SOURCE] == [sent.values["latency_samples"]] * 2
        assert sent.values["latency_samples"] == sent.values["latency_packets"] == sent.values["packets_sent"]
        assert [_count(received, name) for name in AT_THE_RECEIVER] == [SENT] * 4
        assert [_count(received, name) for name in AT_THE_APPLICATION] == [SENT] * 2
        assert received.values["latency_messages"] == SENT
        assert received.values["latency_recovered"] == received.values["messages_recovered"] == 0
        assert "callback_time" not in received.histograms or _count(received, "callback_time") == 0


def test_what_the_application_leaves_in_the_queue_is_dispatch(unicast: str) -> None:
    with Instance(level=3) as instance:
        receiver = instance.receiver(unicast, "T")
        transmitter = instance.transmitter(unicast, "T", linger=0.0)
        transmitter.send(b"x")
        assert until(lambda: any(r.values["messages_delivered"] for r in segment_of(instance).of("receiver")))
        time.sleep(LONG)
        assert len(receiver.receive(timeout=5.0)) == 1
        item = _of(instance, "receiver")
        assert _longest(item, "dispatch_latency") >= LONG * 0.999e9
        assert _longest(item, "end_latency") >= _longest(item, "dispatch_latency") * 0.999
        assert item.histograms["total_latency"].total == 1
        _assert_in_no_other_stage(instance, "dispatch_latency", "end_latency")


def test_the_callback_is_a_stage_of_its_own(unicast: str) -> None:
    heard: list[Message] = []

    def slow(messages: list[Message]) -> None:
        time.sleep(LONG)
        heard.extend(messages)

    with Instance(level=3) as instance:
        instance.receiver(unicast, "T", on_messages=slow)
        transmitter = instance.transmitter(unicast, "T", linger=0.0)
        transmitter.send(b"x")
        assert until(lambda: len(heard) == 1)
        assert until(lambda: _count(_of(instance, "receiver"), "callback_time") == 1)
        item = _of(instance, "receiver")
        assert _longest(item, "callback_time") >= LONG * 0.999e9
        assert _count(item, "dispatch_latency") == 1
        _assert_in_no_other_stage(instance, "callback_time")


def test_a_wait_for_the_rate_is_pace(unicast: str) -> None:
    with Instance(level=3) as instance:
        transmitter = instance.transmitter(unicast, "T", linger=0.0, rate=100_000, rate_policy="static")
        transmitter.send_many([bytes(1000)] * 30)  # a third of a second's worth
        transmitter.flush(timeout=10.0)
        item = _of(instance, "transmitter")
        assert _count(item, "pace_latency") == _count(item, "batch_latency") == item.values["packets_sent"]
        assert _longest(item, "pace_latency") >= WAIT * 1e9
        paced = item.histograms["pace_latency"].sum
        assert paced > 5 * item.histograms["batch_latency"].sum, "what waits for the rate is not counted twice"


def test_recovered_messages_are_apart(unicast: str) -> None:
    total = 2000
    with Instance(level=3) as instance:
        receiver = instance.receiver(unicast, "T", inject_loss=0.1, nak_deadline=20.0)
        transmitter = instance.transmitter(unicast, "T", linger=0.0)
        for _ in range(total // 50):
            transmitter.send_many([bytes(700)] * 50)
        assert len(collect(receiver, total, seconds=30.0)) == total
        assert until(lambda: _of(instance, "receiver").values["latency_samples"] == total)
        item = _of(instance, "receiver")
        recovered = item.values["latency_recovered"]
        assert 0 < recovered == item.values["messages_recovered"] < total
        assert _count(item, "total_latency_recovered") == _count(item, "order_latency_recovered") == recovered
        assert _count(item, "recovery_latency") == recovered
        assert _count(item, "network_latency") == _count(item, "socket_latency") == total - recovered
        whole, part = item.histograms["total_latency"].counts, item.histograms["total_latency_recovered"].counts
        assert all(whole.get(cell, 0) >= count for cell, count in part.items())


def test_a_sender_that_stalls_is_seen_against_the_intended_time(unicast: str) -> None:
    """Ten messages, one each 5 ms; the sender stands still for 0.2 s before the third."""
    stall, interval = 0.2, 0.005
    with Instance(level=3) as instance:
        receiver = instance.receiver(unicast, "T")
        transmitter = instance.transmitter(unicast, "T", linger=0.0)
        begin = time.time_ns()
        for number in range(10):
            intended = begin + int(number * interval * 1e9)
            if number == 2:
                time.sleep(stall)
            time.sleep(max(0.0, (intended - time.time_ns()) / 1e9))
            transmitter.send(b"x", intended_ns=intended)
            assert len(collect(receiver, 1)) == 1
        assert until(lambda: _of(instance, "receiver").values["latency_samples"] == 10)
        sent, received = _of(instance, "transmitter"), _of(instance, "receiver")
        bound = (stall - 2 * interval) * 0.999e9
        assert _count(received, "intended_latency") == _count(sent, "submit_delay") == 10
        assert _longest(received, "intended_latency") >= bound
        assert _longest(sent, "submit_delay") >= bound
        late = sum(n for cell, n in received.histograms["intended_latency"].counts.items() if _value(cell) >= bound / 2)
        assert late >= 8, "all that were to be sent meanwhile were late"
        assert received.histograms["intended_latency"].sum > received.histograms["total_latency"].sum + 8 * bound / 2


def test_without_an_intended_time_there_is_none(unicast: str) -> None:
    with Instance(level=3) as instance:
        receiver = instance.receiver(unicast, "T")
        transmitter = instance.transmitter(unicast, "T", linger=0.0)
        transmitter.send(b"x", intended_ns=None)
        transmitter.send(b"y", 1.0)
        assert len(collect(receiver, 2)) == 2
        assert until(lambda: _of(instance, "receiver").values["latency_samples"] == 2)
        assert _count(_of(instance, "receiver"), "intended_latency") == 0
        for wrong in (0, -1):
            with pytest.raises(ValueError, match="intended_ns"):
                transmitter.send(b"z", intended_ns=wrong)
        with pytest.raises(TypeError):
            transmitter.send(b"z", intended_ns=1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("overflow", ["block", "drop_oldest"])
def test_a_bounded_queue_keeps_the_intended_time(overflow: str, unicast: str) -> None:
    with Instance(level=3) as instance:
        receiver = instance.receiver(unicast, "T", queue_messages=100)
        transmitter = instance.transmitter(unicast, "T", linger=0.0, queue_messages=100, overflow=overflow)
        transmitter.send(b"x", intended_ns=time.time_ns() - 1_000_000_000)
        transmitter.send(bytes(100_000), intended_ns=time.time_ns() - 1_000_000_000)
        assert [len(message.data) for message in collect(receiver, 2)] == [1, 100_000]
        assert until(lambda: _of(instance, "receiver").values["latency_samples"] == 2)
        item = _of(instance, "receiver")
        assert _count(item, "intended_latency") == 2
        assert _value(min(item.histograms["intended_latency"].counts)) >= 0.999e9
        assert _count(item, "dispatch_latency") == 2


def test_one_packet_in_many_is_sampled(unicast: str) -> None:
    with Instance(level=3, sample=20) as instance:
        receiver = instance.receiver(unicast, "T")
        transmitter = instance.transmitter(unicast, "T", linger=0.0)
        for _ in range(40):
            transmitter.send_many([bytes(1000)] * 25)
            assert len(collect(receiver, 25)) == 25
        assert until(lambda: _of(instance, "receiver").values["latency_messages"] == 1000)
        item = _of(instance, "receiver")
        samples = item.values["latency_samples"]
        assert 10 <= samples <= 150
        assert _count(item, "total_latency") == _count(item, "order_latency") == samples
        assert _count(item, "dispatch_latency") == samples
        assert item.values["messages_delivered"] == 1000


@pytest.mark.parametrize("wrong", [0, 1_000_001])
def test_a_share_that_is_none_is_refused(wrong: int) -> None:
    with pytest.raises(OptionError, match=f'sample is a whole number from 1 to 1000000 packets, not "{wrong}"'):
        Instance(sample=wrong)
