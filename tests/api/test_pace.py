"""A rate: what leaves in a time never is more, on every transport; what contradicts itself is refused."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from heliograph.engine import ClosedError, Instance, OptionError, Transmitter, WouldBlock
from heliograph.monitor.segment import Segment
from tests.ports import free_port

from .conftest import collect, until

TOPIC = "PRICES.FX"
SECONDS = 0.6
RATE = 2_000_000
MESSAGE = 900
OVERHEAD = 32 + 24 + 66 + 4  # of a packet with one message: batch, PGM, what is below; and the message's own


@pytest.fixture(params=["multicast", "unicast", "rum", "shm"])
def way(request: pytest.FixtureRequest) -> str:
    """An endpoint of each transport, all with packets of the same length."""
    if request.param == "rum":
        return f"rum://127.0.0.1:{free_port()}?mtu=1500"
    if request.param == "shm":
        return f"shm://pace-{os.getpid()}-{free_port()}?mtu=1500"
    text: str = request.getfixturevalue(request.param)
    return text


def send_all(transmitter: Transmitter, count: int, bytes_each: int = MESSAGE, timeout: float = 10) -> float:
    """Seconds from the first message until all have been given to the network."""
    begin = time.monotonic()
    for _ in range(count):
        transmitter.send(b"x" * bytes_each, timeout=timeout)
    transmitter.flush(10)
    return time.monotonic() - begin


def least_seconds(payload_bytes: int, rate: int = RATE, mtu: int = 1500) -> float:
    """Less than that cannot be: the payload alone, without headers, beyond a burst and a packet."""
    burst = max(2 * (mtu + 38), rate // 1000)
    return (payload_bytes - burst - mtu - 38) / rate


def test_a_static_rate_is_kept(instance: Instance, way: str) -> None:
    receiver = Instance(mode="thread")
    with receiver, receiver.receiver(way, TOPIC) as at:
        transmitter = instance.transmitter(way, TOPIC, rate_policy="static", rate=RATE)
        transmitter.send(b"first", timeout=10)
        assert until(lambda: at.receive(timeout=0.05), instance)
        count = int(RATE * SECONDS / (MESSAGE + OVERHEAD))
        took = send_all(transmitter, count)
        assert took >= least_seconds(count * MESSAGE)
        assert (
            took < 5 * SECONDS
        )  # a busy machine; the rate itself is shown with a clock of its own in the engine's tests
        assert len(collect(at, count)) == count
        assert not at.losses()


def test_a_rate_alone_is_static(threaded: Instance, unicast: str) -> None:
    transmitter = threaded.transmitter(unicast, TOPIC, rate=RATE, linger=0.0)
    count = int(RATE * 0.2 / MESSAGE)
    assert send_all(transmitter, count) >= least_seconds(count * MESSAGE)


def test_a_long_message_takes_its_time(instance: Instance, unicast: str) -> None:
    transmitter = instance.transmitter(unicast, TOPIC, rate=RATE, linger=0.0)
    bytes_all = int(RATE * 0.3)
    assert send_all(transmitter, 1, bytes_all) >= least_seconds(bytes_all)


def test_while_a_long_message_waits_other_streams_go_on(threaded: Instance, unicast: str) -> None:
    slow = threaded.transmitter(unicast, TOPIC, rate=100_000, linger=0.0)
    other = f"rmm+unicast://127.0.0.1:{free_port()}"
    with threaded.receiver(other, TOPIC) as receiver, threaded.transmitter(other, TOPIC) as quick:
        slow.send(b"x" * 300_000)  # three seconds
        time.sleep(0.02)
        begin = time.monotonic()
        for _ in range(10):
            quick.send(b"y")
            assert len(collect(receiver, 1)) == 1
        assert time.monotonic() - begin < 2.5


def test_a_burst_given_is_the_burst(threaded: Instance, unicast: str) -> None:
    transmitter = threaded.transmitter(unicast, TOPIC, rate=100_000, rate_burst=200_000, linger=0.0)
    assert send_all(transmitter, 150) < 1.0  # of more than the rate would take


def test_an_instances_rate_is_that_of_all_its_streams(unicast: str) -> None:
    other = f"rmm+unicast://127.0.0.1:{free_port()}"
    with Instance(rate=RATE) as instance:
        first = instance.transmitter(unicast, TOPIC, linger=0.0)
        second = instance.transmitter(other, TOPIC, linger=0.0)
        count = int(RATE * 0.2 / MESSAGE)
        begin = time.monotonic()
        for _ in range(count):
            first.send(b"x" * MESSAGE, timeout=10)
            second.send(b"x" * MESSAGE, timeout=10)
        first.flush(10)
        second.flush(10)
        assert time.monotonic() - begin >= least_seconds(2 * count * MESSAGE)


def test_topics_of_a_stream_take_turns(threaded: Instance, unicast: str) -> None:
    topics = ["A", "B", "C"]
    receivers = [threaded.receiver(unicast, topic) for topic in topics]
    transmitters = [threaded.transmitter(unicast, topic, rate=200_000, linger=0.0) for topic in topics]
    for transmitter in transmitters:
        transmitter.send_many([b"x" * 1000] * 400)  # together six seconds
    seen = [0, 0, 0]

    def has_received(count: int) -> bool:
        for i, receiver in enumerate(receivers):
            seen[i] += len(receiver.receive(timeout=0, limit=1000))
        return sum(seen) >= count

    assert until(lambda: has_received(0) and min(seen) >= 5)
    seen = [0, 0, 0]  # the first topic sends alone until the last one has something to send
    assert until(lambda: has_received(90))
    assert min(seen) > 0.5 * max(seen)


def test_polled_a_send_beyond_the_rate_would_block_and_says_for_how_long(polled: Instance, unicast: str) -> None:
    transmitter = polled.transmitter(unicast, TOPIC, rate=20_000, linger=0.0)
    for _ in range(2):
        transmitter.send(b"x" * 1000, timeout=5)
    with pytest.raises(WouldBlock, match=r"rate limited; try again in \d+ us"):
        send_all(transmitter, 20, 1000, timeout=0)
    begin = time.monotonic()
    transmitter.send(b"x" * 1000, timeout=5)  # and waiting helps
    assert time.monotonic() - begin < 4


def test_by_default_nothing_is_limited(instance: Instance, unicast: str) -> None:
    transmitter = instance.transmitter(unicast, TOPIC, linger=0.0)
    for _ in range(2000):
        transmitter.send(b"x" * 1000)
    transmitter.flush(10)
    assert transmitter.rate == 0
    assert instance.segment is not None
    with Segment(instance.segment) as segment:
        (stream,) = [found.values for found in segment.objects(histograms=False) if found.scope == "tx_stream"]
    assert stream["packets_sent"] >= 2000 * 1000 // 1500
    assert stream["rate_limited_time"] == 0
    assert sum(value for name, value in stream.items() if name.startswith("rate_limited")) == 0


CONTRADICTIONS: list[tuple[dict[str, Any], str]] = [
    ({"rate_policy": "static"}, r"rate_policy=static needs a rate, but rate is 0"),
    ({"rate_policy": "none", "rate": 50000}, r"rate=50000 contradicts rate_policy=none"),
    ({"rate": 50000, "rate_min": 60000}, r"rate_min=60000 is above rate=50000"),
    ({"loss_high": 0.01, "loss_low": 0.005}, r"loss_high=0.01 must be at least 4 times loss_low=0.005"),
    ({"rate": 9999}, r"rate is 0 or at least 10000 bytes per second.*9999"),
    ({"rate": 50000, "rate_burst": 2999}, r"rate_burst is 0 or at least twice mtu=1500; 2999"),
    ({"rate_policy": "pgmcc", "report_interval": 0}, r"rate_policy=pgmcc needs reports.*report_interval is 0"),
    ({"rate": 50000, "repair_share": 0.0}, r"repair_share"),
]


@pytest.mark.parametrize(("options", "text"), CONTRADICTIONS, ids=[str(row[0]) for row in CONTRADICTIONS])
def test_what_contradicts_itself_is_refused(polled: Instance, unicast: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        polled.transmitter(unicast, TOPIC, **options)


def test_an_instances_rate_is_checked_too() -> None:
    with pytest.raises(OptionError, match=r"rate is 0 or at least 10000"):
        Instance(rate=1)


def events(instance: Instance, name: str) -> list[str]:
    """Texts of the events of a name."""
    assert instance.segment is not None
    with Segment(instance.segment) as segment:
        return [event.text for event in segment.events().events if event.name == name]


def test_an_overload_is_told_once_when_it_begins_and_once_when_it_is_over(threaded: Instance, unicast: str) -> None:
    transmitter = threaded.transmitter(unicast, TOPIC, rate=1_000_000, congestion_time=0.05, linger=0.0)
    assert transmitter.rate == 1_000_000
    assert not transmitter.congested
    transmitter.send_many([b"x" * 1000] * 300)  # a third of a second
    assert until(lambda: transmitter.congested)
    (text,) = events(threaded, "congestion_on")
    assert "waited for the rate" in text
    assert "bytes are queued, the rate is 1000000 bytes/s" in text
    assert not events(threaded, "congestion_off")
    transmitter.flush(10)
    assert until(lambda: not transmitter.congested)
    assert len(events(threaded, "congestion_on")) == 1
    assert len(events(threaded, "congestion_off")) == 1
    assert threaded.segment is not None
    with Segment(threaded.segment) as segment:
        (stream,) = (item for item in segment.objects(histograms=False) if item.scope == "tx_stream")
    assert stream.values["congestions"] == 1


def test_a_short_overload_is_not_told(threaded: Instance, unicast: str) -> None:
    transmitter = threaded.transmitter(unicast, TOPIC, rate=1_000_000, congestion_time=5.0, linger=0.0)
    transmitter.send_many([b"x" * 1000] * 100)
    transmitter.flush(10)
    assert not transmitter.congested
    assert not events(threaded, "congestion_on")


def test_polled_what_the_application_is_refused_for_long_is_congestion_too(polled: Instance, unicast: str) -> None:
    transmitter = polled.transmitter(unicast, TOPIC, rate=50_000, congestion_time=0.02, linger=0.0)
    for _ in range(100):
        transmitter.send(b"x" * 1000, timeout=5)
        if transmitter.congested:
            break
    assert "the rate" in events(polled, "congestion_on")[0]
    assert until(lambda: not transmitter.congested, polled)


def test_acknowledgements_that_do_not_come_are_congestion(threaded: Instance, unicast: str) -> None:
    transmitter = threaded.transmitter(unicast, TOPIC, acks=1, send_window=16, congestion_time=0.05, linger=0.0)
    assert transmitter.rate == 0
    transmitter.send_many([b"x" * 1000] * 100)
    assert until(lambda: transmitter.congested)
    assert "acknowledgements" in events(threaded, "congestion_on")[0]


def test_a_closed_transmitter_has_no_rate(polled: Instance, unicast: str) -> None:
    transmitter = polled.transmitter(unicast, TOPIC, linger=0.0)
    transmitter.close()
    with pytest.raises(ClosedError):
        _ = transmitter.rate
    with pytest.raises(ClosedError):
        _ = transmitter.congested
