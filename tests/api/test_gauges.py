"""Gauges that say what is missing or waits: receivers nobody sends to, streams there is no room for, old messages."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from heliograph.engine import Instance
from heliograph.monitor.sampler import Sampler

from .conftest import until


def cells(sampler: Sampler, scope: str, instance: str) -> dict[str, int]:
    (found,) = (item for owner, item in sampler.sample().of(scope) if owner.name == instance and item.live)
    return dict(found.values)


def cell(sampler: Sampler, scope: str, instance: str, name: str) -> Callable[[], int]:
    return lambda: cells(sampler, scope, instance)[name]


def test_receivers_that_hear_no_stream_of_their_topic_are_counted() -> None:
    with Instance(name="receiving") as instance, Instance(name="sending") as sender, Sampler() as sampler:
        unmatched = cell(sampler, "instance", "receiving", "receivers_unmatched")
        endpoint = "shm://unmatched"
        first = instance.receiver(endpoint, "A")
        second = instance.receiver(endpoint, "B")
        assert until(lambda: unmatched() == 2)
        transmitter = sender.transmitter(endpoint, "A", linger=0)
        transmitter.send(b"x")
        assert first.receive(timeout=10)
        assert until(lambda: unmatched() == 1)
        second.close()
        assert until(lambda: unmatched() == 0)
        transmitter.close()
        assert until(lambda: unmatched() == 1)
        first.close()
        assert until(lambda: unmatched() == 0)


def test_packets_of_streams_there_is_no_room_for_are_counted() -> None:
    with Instance(name="receiving") as instance, Sampler() as sampler:
        endpoint = "shm://no-room"
        receiver = instance.receiver(endpoint, "A", max_streams=1)
        with Instance(name="one") as one, Instance(name="two") as two:
            kept = one.transmitter(endpoint, "A")
            kept.send(b"x")
            assert receiver.receive(timeout=10)
            refused = cell(sampler, "instance", "receiving", "packets_no_room")
            assert refused() == 0
            two.transmitter(endpoint, "A").send(b"y")
            assert until(lambda: refused() > 0)


def test_the_age_of_the_oldest_message_that_waits_to_be_sent_grows() -> None:
    with Instance(name="sending") as sender, Sampler() as sampler:
        transmitter = sender.transmitter(
            "rmm+unicast://127.0.0.1:9", "T", rate_policy="static", rate=20000, linger=0, send_window=64
        )
        for _ in range(200):
            transmitter.send(b"x" * 1000)
        age = cell(sampler, "transmitter", "sending", "queue_age")
        assert until(lambda: age() > 100_000_000)
        time.sleep(0.01)
        assert 0 < age() < 60_000_000_000


def test_a_packet_given_up_says_how_long_it_was_missing(segments: Path) -> None:
    with Instance(name="receiving") as instance, Instance(name="sending") as sender, Sampler() as sampler:
        endpoint = "rmm://239.192.77.3:7933?interface=127.0.0.1&ttl=0"
        receiver = instance.receiver(endpoint, "T", inject_loss=0.3, nak="off", nak_deadline=0.05)
        transmitter = sender.transmitter(endpoint, "T")
        for _ in range(200):
            transmitter.send(b"x")
            transmitter.flush()
            time.sleep(0.001)

        def given_up() -> int:
            receiver.receive(timeout=0, limit=100)
            return sum(
                item.histograms["give_up_time"].count
                for owner, item in sampler.sample().of("rx_stream")
                if owner.name == "receiving"
            )

        assert until(lambda: given_up() > 0)
        lost = cells(sampler, "rx_stream", "receiving")["packets_lost_not_requested"]
        assert given_up() >= lost > 0
