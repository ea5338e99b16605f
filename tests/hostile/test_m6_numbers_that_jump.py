"""M6: a message number far ahead of what lost packets explain is refused, and the topic lives on."""

from __future__ import annotations

import time

import pytest

from heliograph.engine import Instance
from tests.hostile.forging import HOST, batch, topics
from tests.hostile.test_h5_the_return_of_a_stream import TOPIC, Heard, source_to, totals
from tests.ports import free_port

FAR = [pytest.param(1 << 40, id="2^40"), pytest.param(1 << 63, id="2^63"), pytest.param((1 << 64) - 1, id="2^64-1")]


def refusals(instance: Instance) -> int:
    (count,) = totals(instance, "instance", "invalid_packets_payload")
    return count


@pytest.mark.parametrize("order", ["stream", "arrival"])
@pytest.mark.parametrize("number", FAR)
def test_m6_a_batch_that_jumps_without_a_lost_packet_is_refused_and_the_topic_goes_on(number: int, order: str) -> None:
    port = free_port()
    with Instance() as instance, source_to(port) as source:
        heard = Heard(instance.receiver(f"rmm+unicast://{HOST}:{port}", TOPIC, order=order))
        source.speak()
        source.send(10)
        heard.until(10)
        source.data(batch(TOPIC, number, [b"forged"]))
        source.data(topics((TOPIC, number)))
        source.send(10)
        heard.until(20)
        assert heard.numbers == list(range(20))
        assert heard.lost == []
        assert refusals(instance) == 2


def test_m6_a_lost_packet_explains_no_more_than_it_could_hold() -> None:
    port = free_port()
    with Instance() as instance, source_to(port) as source:
        heard = Heard(instance.receiver(f"rmm+unicast://{HOST}:{port}", TOPIC))
        source.speak()
        source.send(10)
        source.data(b"lost", heard=False)
        source.data(batch(TOPIC, 1 << 63, [b"forged"]))
        source.next_message = 500
        source.send(2)
        heard.until(502)
        assert heard.numbers == [*range(10), 500, 501]
        assert heard.lost == list(range(10, 500))
        assert refusals(instance) == 1


@pytest.mark.parametrize("number", FAR[1:])
def test_m6_a_topic_does_not_begin_at_a_number_nobody_reaches(number: int) -> None:
    port = free_port()
    with Instance() as instance, source_to(port) as source:
        heard = Heard(instance.receiver(f"rmm+unicast://{HOST}:{port}", TOPIC))
        source.data(batch(TOPIC, number - 1 if number > 1 << 63 else number, [b"forged"]))
        source.send(10)
        heard.until(10)
        assert heard.numbers == list(range(10))


def test_m6_a_number_that_jumps_when_a_stream_is_back_is_refused_too() -> None:
    port = free_port()
    with Instance() as instance, source_to(port) as source:
        heard = Heard(instance.receiver(f"rmm+unicast://{HOST}:{port}", TOPIC, stream_expiry=0.1))
        source.speak()
        source.send(10)
        heard.until(10)
        time.sleep(0.3)
        source.data(batch(TOPIC, 1 << 63, [b"forged"]))
        source.send(10)
        heard.until(20)
        assert heard.numbers == list(range(20))
        assert heard.lost == []
