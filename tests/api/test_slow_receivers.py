"""Who a source waits for, who asks for repairs, who is behind, and what was lost, as the application and the monitor
see it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from heliograph.engine import Instance, Receiver, ReceiverView, Transmitter
from heliograph.monitor.cli import main
from heliograph.monitor.losses import losses
from heliograph.monitor.sampler import Sampler
from heliograph.monitor.sources import receivers_of

from .conftest import until

TOPIC = "PRICES.FX"
MESSAGE = b"x" * 1200


@contextmanager
def taking(receiver: Receiver, pause: float, limit: int) -> Iterator[None]:
    """An application that takes so many messages and then does something else for so long."""
    ends = threading.Event()

    def take() -> None:
        while not ends.is_set():
            receiver.receive(timeout=0.01, limit=limit)
            ends.wait(pause)

    thread = threading.Thread(target=take)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def views_of(transmitter: Transmitter) -> Mapping[str, ReceiverView]:
    return {view.name: view for view in transmitter.receivers()}


@pytest.mark.parametrize(
    ("sending", "receiving"),
    [
        ({"flow_window": "min", "window_receivers": 2, "window_silence": 30.0}, {"receive_window": 64}),
        ({"acks": 2, "send_window": 64}, {"ack": "app", "receive_window": 64}),
        ({"await_credit": True}, {"credit": 40}),
    ],
    ids=["window", "acks", "credit"],
)
def test_the_time_waited_is_that_of_the_receiver_waited_for(
    multicast: str, sending: dict[str, Any], receiving: dict[str, Any]
) -> None:
    """One of two receivers takes little at a time: nearly all the time that passes is waited for it."""
    queue: dict[str, Any] = {"receive_queue": 65536}
    with (
        Instance(name="feed") as feed,
        Instance(name="quick") as one,
        Instance(name="slow") as other,
        one.receiver(multicast, TOPIC, **queue, **receiving) as quick,
        other.receiver(multicast, TOPIC, **queue, **receiving) as slow,
        feed.transmitter(multicast, TOPIC, report_interval=0.02, submit_queue=65536, **sending) as transmitter,
    ):
        acks = "acks" in sending

        def take(receiver: Receiver, limit: int, pause: float, ends: threading.Event) -> None:
            while not ends.is_set():
                for message in receiver.receive(timeout=0.01, limit=limit):
                    if acks:
                        receiver.acknowledge(message)
                ends.wait(pause)

        ends = threading.Event()
        threads = [
            threading.Thread(target=take, args=(quick, 1000, 0.0, ends)),
            threading.Thread(target=take, args=(slow, 20, 0.05, ends)),
        ]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        for _ in range(200 if "await_credit" in sending else 300):
            transmitter.send(MESSAGE, timeout=10)
        took = time.monotonic() - began
        views = views_of(transmitter)
        with Sampler() as sampler:
            rows = {row.name: row for row in receivers_of(sampler.sample(False)) if row.instance == "feed"}
        transmitter.close()  # what still waits goes out while somebody takes it
        ends.set()
        for thread in threads:
            thread.join()
        assert views["slow"].blame_time > 0.3 * took
        assert views["slow"].blame_time < 1.2 * took + 0.2
        assert views["quick"].blame_time < 0.5 * views["slow"].blame_time
        assert rows["slow"].blame_ns >= 0.9e9 * views["slow"].blame_time
        assert "data waited" in rows["slow"].reason


def test_the_shares_of_requests_add_up_and_the_one_that_asks_most_comes_first(multicast: str) -> None:
    with (
        Instance(name="feed") as feed,
        Instance(name="good") as one,
        Instance(name="bad") as other,
        one.receiver(multicast, TOPIC, inject_loss=0.002) as good,
        other.receiver(multicast, TOPIC, inject_loss=0.2) as bad,
        feed.transmitter(multicast, TOPIC, report_interval=0.02) as transmitter,
        taking(good, 0.0, 1000),
        taking(bad, 0.0, 1000),
    ):
        for _ in range(100):
            transmitter.send_many([MESSAGE] * 20)
            time.sleep(0.005)
        assert until(lambda: transmitter.receivers()[0].naks > 50, seconds=10.0)
        first, second = transmitter.receivers()
        assert (first.name, second.name) == ("bad", "good")
        assert first.badness > second.badness
        assert first.nak_share + second.nak_share == pytest.approx(1.0)
        assert first.nak_share > 0.8

        def exact() -> bool:
            with Sampler() as sampler:
                snapshot = sampler.sample(False)
            owner = next(item for item in snapshot.instances if item.name == "feed")
            stream = next(owner.of("tx_stream")).values
            peers = sum(item.values["naks_received"] for item in owner.of("tx_receiver") if item.live)
            return peers + stream["naks_untracked"] == stream["naks_received"] > 0

        assert until(exact, seconds=10.0)


def test_a_receiver_that_stands_still_is_behind_in_bytes_and_in_time(multicast: str) -> None:
    with (
        Instance(name="feed") as feed,
        Instance(name="desk") as other,
        other.receiver(multicast, TOPIC, receive_queue=65536, receive_window=1024) as receiver,
        feed.transmitter(multicast, TOPIC, report_interval=0.02) as transmitter,
    ):
        transmitter.send(MESSAGE)
        assert until(lambda: bool(transmitter.receivers()), seconds=10.0)
        for _ in range(30):
            transmitter.send_many([MESSAGE] * 20)
            time.sleep(0.01)

        def is_behind() -> bool:
            view = transmitter.receivers()[0]
            return bool(view.lag and view.lag_bytes and view.lag_time)

        assert until(is_behind, seconds=10.0)
        view = transmitter.receivers()[0]
        assert view.lag is not None
        assert view.lag_bytes is not None
        assert view.lag_time is not None
        assert view.lag_bytes >= view.lag * 600
        time.sleep(0.2)
        later = transmitter.receivers()[0]
        assert later.lag_time is not None
        assert later.lag_time >= view.lag_time + 0.15, "nothing is sent any more, and it gets older all the same"
        while receiver.receive(timeout=0.2, limit=1000):
            pass
        assert until(lambda: transmitter.receivers()[0].lag == 0, seconds=10.0)
        assert transmitter.receivers()[0].lag_time == 0.0


def test_what_was_lost_is_told_after_its_stream_has_gone(multicast: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Instance(name="desk") as desk:
        receiver = desk.receiver(multicast, TOPIC, inject_loss=0.3, nak_retries=0, nak_deadline=0.02)
        began_ns = time.time_ns()
        with Instance(name="feed") as feed, feed.transmitter(multicast, TOPIC, linger=0.5) as transmitter:
            stream = transmitter.stream
            for _ in range(100):
                transmitter.send_many([MESSAGE] * 4)
                receiver.receive(timeout=0.005)
        receiver.close()
        with Sampler() as sampler:
            rows = [row for row in losses(sampler.sample(False)) if row.instance == "desk"]
        assert rows
        assert {row.stream for row in rows} == {stream}
        assert not any(row.is_live for row in rows)
        for row in rows:
            assert row.packets >= row.observations > 0
            assert row.packets >= row.longest > 0
            assert began_ns < row.first_ns <= row.last_ns < time.time_ns()
            assert 0 < row.bytes_estimated <= 1500 * row.packets
        assert main(["losses", "--instance", "desk", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)["losses"]
        assert {row["cause"] for row in told} == {row.cause for row in rows}
        assert main(["losses", "--instance", "desk"]) == 0
        assert "gone" in capsys.readouterr().out
