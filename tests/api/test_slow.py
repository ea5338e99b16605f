"""Slow receivers and NAK storms as options of a transmitter: what is taken, and what is refused, both values named."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from heliograph.engine import Action, Instance, OptionError, Receiver, Transmitter, WouldBlock
from heliograph.monitor.segment import Segment

from .conftest import until

POLICIES = {
    "exclude": {"slow_action": "expel", "expel_after": 1, "expel_time": 5.0},
    "suspend": {"slow_action": "suspend", "suspend_time": 1.0},
    "wait": {"slow_action": "pace", "slow_wait": True},
}
"""The policies there are, each for a topic; what they do is shown below and in tests/engine/test_slow_receiver.c."""


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mode", ["observe", "advise", "enforce"])
def test_a_policy_is_an_option_of_a_topic(threaded: Instance, multicast: str, policy: str, mode: str) -> None:
    transmitter = threaded.transmitter(multicast, "PRICES", slow_mode=mode, **POLICIES[policy])
    transmitter.send(b"one")
    transmitter.close()


def test_all_thresholds_and_times_are_options(threaded: Instance, multicast: str) -> None:
    transmitter = threaded.transmitter(
        multicast,
        "PRICES",
        slow_mode="advise",
        slow_action="suspend-naks",
        slow_loss=0.01,
        slow_naks=1000.0,
        slow_lag=0.5,
        slow_buffer=0.9,
        slow_dwell=0.5,
        slow_lead=2.0,
        expel_share=0.25,
        storm_mode="enforce",
        storm_time=1.0,
        cutoff_time=0.1,
    )
    transmitter.close()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"slow_wait": True, "slow_action": "notify"}, ["slow_wait", "true", "slow_action", "notify"]),
        ({"slow_dwell": 0.2, "control_interval": 0.1}, ["slow_dwell", "0.2", "control_interval", "0.1"]),
        ({"slow_action": "pace"}, ["slow_action", "pace", "slow_wait", "false"]),
        (
            {"slow_action": "expel", "expel_time": 1.0, "suspend_time": 2.5},
            ["expel_time", "1 ", "suspend_time", "2.5"],
        ),
    ],
)
def test_contradictions_are_refused_with_both_values_named(
    threaded: Instance, multicast: str, options: dict[str, bool | float | str], named: list[str]
) -> None:
    with pytest.raises(OptionError) as caught:
        threaded.transmitter(multicast, "PRICES", **options)
    assert all(word in str(caught.value) for word in named)


STORY = {
    f"receiver_{end}"
    for end in ["slow", "paced", "suspended", "expelled", "readmitted", "forecast", "spared", "advice"]
}


def story(instance: Instance) -> list[str]:
    """Names of the events about slow receivers, oldest first."""
    assert isinstance(instance.segment, Path)
    with Segment(instance.segment) as segment:
        return [event.name for event in segment.events().events if event.name in STORY]


def test_one_that_does_not_drain_is_warned_suspended_and_readmitted_when_it_does(multicast: str) -> None:
    """On real sockets: the events tell it in this order, and those that drain lose nothing."""
    small = {"receive_queue": 65536, "receive_window": 64}
    with Instance() as source, Instance() as one, Instance() as two, Instance() as slow:
        drained = [one.receiver(multicast, "PRICES"), two.receiver(multicast, "PRICES")]
        stuck = slow.receiver(multicast, "PRICES", **small)
        transmitter = source.transmitter(
            multicast, "PRICES", slow_mode="enforce", suspend_time=60.0, expel_share=0.5, report_interval=0.05
        )
        received = [0, 0]
        sent = 0

        def flow(*, drain: bool) -> None:
            nonlocal sent
            transmitter.send_many([bytes(1000)] * 10)
            sent += 10
            for i, receiver in enumerate(drained):
                received[i] += len(receiver.receive(timeout=0))
            if drain:
                stuck.receive(timeout=0)
            time.sleep(0.002)  # the rate: some thousand packets per second

        def told(name: str, *, drain: bool) -> bool:
            flow(drain=drain)
            return name in story(source)

        assert until(lambda: told("receiver_suspended", drain=False), seconds=30.0)
        assert until(lambda: told("receiver_readmitted", drain=True), seconds=30.0)
        names = story(source)
        assert names.index("receiver_slow") < names.index("receiver_suspended") < names.index("receiver_readmitted")
        assert names.count("receiver_slow") == names.count("receiver_suspended") == 1
        assert Action.SUSPEND in [notice.action for notice in stuck.notices()]

        def all_received() -> bool:
            for i, receiver in enumerate(drained):
                received[i] += len(receiver.receive(timeout=0.01))
            return received == [sent, sent]

        assert until(all_received)


def decided(instance: Instance, stream: str) -> dict[str, int]:
    """What was done about slow receivers of a stream, by what it was."""
    assert isinstance(instance.segment, Path)
    with Segment(instance.segment) as segment:
        (values,) = [
            found.values
            for found in segment.objects(histograms=False)
            if found.scope == "tx_stream" and found.labels["stream"] == stream
        ]
    start = "slow_actions_"
    return {name.removeprefix(start): n for name, n in values.items() if name.startswith(start) and n}


SMALL: dict[str, Any] = {"receive_queue": 65536, "receive_window": 64}
"""A receiver that is full at once when nobody takes its messages."""
SOON: dict[str, Any] = {"slow_mode": "enforce", "report_interval": 0.05, "expel_share": 0.5, "linger": 0.0}


class Crowd:
    """One application that takes nothing, and two that take everything at once."""

    def __init__(self, source: Instance, slow: Instance, good: Sequence[Instance], endpoint: str) -> None:
        self.source, self.endpoint = source, endpoint
        self._slow, self._good = slow, good
        self._transmitters: list[Transmitter] = []
        self._draining: list[Receiver] = []
        self._stuck: dict[str, Receiver] = {}
        self._heard: dict[str, set[Action]] = {}

    def topic(self, topic: str, **options: Any) -> Transmitter:
        """A topic with a policy, which all receive."""
        self._stuck[topic] = self._slow.receiver(self.endpoint, topic, **SMALL)
        self._draining += [instance.receiver(self.endpoint, topic) for instance in self._good]
        self._transmitters.append(self.source.transmitter(self.endpoint, topic, **options, **SOON))
        return self._transmitters[-1]

    def flow(self) -> None:
        """Some messages of each topic."""
        for transmitter in self._transmitters:
            with contextlib.suppress(WouldBlock):
                transmitter.send_many([bytes(1000)] * 10, timeout=0)
        for receiver in self._draining:
            receiver.receive(timeout=0)
        time.sleep(0.002)

    def until(self, condition: Callable[[], bool]) -> bool:
        """Let messages flow until something is true."""

        def now() -> bool:
            self.flow()
            return condition()

        return until(now, seconds=60.0)

    def told(self, topic: str) -> set[Action]:
        """What the one that takes nothing was told of its source."""
        self._heard.setdefault(topic, set()).update(notice.action for notice in self._stuck[topic].notices())
        return self._heard[topic]


@pytest.fixture
def crowd(request: pytest.FixtureRequest) -> Iterator[Crowd]:
    """On multicast, or on what the parameter says."""
    kind = getattr(request, "param", "multicast")
    endpoint = str(request.getfixturevalue("multicast")) if kind == "multicast" else f"shm://crowd-{os.getpid()}"
    with Instance() as source, Instance(name="slow") as slow, Instance() as one, Instance() as two:
        yield Crowd(source, slow, [one, two], endpoint)


def test_topics_of_one_instance_obey_opposite_policies(crowd: Crowd) -> None:
    """An application drains neither topic: one stream goes at its pace, the other goes on without it."""
    orders = crowd.topic("ORDERS", slow_action="pace", slow_wait=True)
    prices = crowd.topic("PRICES", slow_action="suspend", suspend_time=60.0)
    assert orders.stream != prices.stream
    assert crowd.until(lambda: "pace" in decided(crowd.source, orders.stream))
    assert crowd.until(lambda: "suspend" in decided(crowd.source, prices.stream))
    for _ in range(200):  # and so it stays
        crowd.flow()
    assert {"suspend", "expel", "shed", "suspend_naks"}.isdisjoint(decided(crowd.source, orders.stream))
    assert {"pace", "expel"}.isdisjoint(decided(crowd.source, prices.stream))
    assert crowd.until(lambda: Action.SUSPEND in crowd.told("PRICES"))
    assert Action.SUSPEND not in crowd.told("ORDERS")


EXPEL: dict[str, Any] = {"slow_action": "expel", "expel_after": 1, "suspend_time": 1.0, "expel_time": 60.0}


@pytest.mark.parametrize("crowd", ["shm"], indirect=True)
def test_who_is_slow_again_is_expelled_where_nobody_else_can_speak_in_its_name(crowd: Crowd) -> None:
    transmitter = crowd.topic("PRICES", **EXPEL)
    assert crowd.until(lambda: "receiver_expelled" in story(crowd.source))
    assert decided(crowd.source, transmitter.stream)["suspend"] == 1
    assert decided(crowd.source, transmitter.stream)["expel"] == 1
    assert crowd.until(lambda: Action.EXPEL in crowd.told("PRICES"))


def test_on_udp_who_is_slow_again_is_suspended_again_and_a_person_is_asked_to_expel(crowd: Crowd) -> None:
    """Anybody could report in its name there."""
    transmitter = crowd.topic("PRICES", **EXPEL)
    assert crowd.until(lambda: story(crowd.source).count("receiver_suspended") == 2)
    assert "expel" not in decided(crowd.source, transmitter.stream)
    assert isinstance(crowd.source.segment, Path)
    with Segment(crowd.source.segment) as segment:
        (spared,) = [event.text for event in segment.events().events if event.name == "receiver_spared"]
    assert "it is to be expelled by hand: others could speak in its name" in spared
    assert Action.EXPEL not in crowd.told("PRICES")
