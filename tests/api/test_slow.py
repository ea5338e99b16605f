"""Slow consumers and NAK storms as options of a transmitter: what is taken, and what is refused, both values named."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from heliograph.engine import Action, Instance, OptionError
from heliograph.monitor.segment import Segment

from .conftest import until

POLICIES = {
    "exclude": {"slow_action": "expel", "expel_after": 1, "expel_time": 5.0},
    "suspend": {"slow_action": "suspend", "suspend_time": 1.0},
    "wait": {"slow_action": "pace", "slow_wait": True},
}
"""The policies there are, each for a topic; what they do to a receiver is shown in tests/engine/test_consumer.c."""


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mode", ["observe", "advise", "enforce"])
def test_a_policy_is_an_option_of_a_topic(threaded: Instance, multicast: str, policy: str, mode: str) -> None:
    transmitter = threaded.transmitter(multicast, "PRICES", slow_mode=mode, **POLICIES[policy])
    transmitter.send(b"one")
    transmitter.close()


def test_topics_of_one_instance_may_have_opposite_policies(threaded: Instance, multicast: str) -> None:
    """Topics with different options are two streams, each with an engine of its own; with the same they share one."""
    waits = threaded.transmitter(multicast, "ORDERS", slow_mode="enforce", **POLICIES["wait"])
    isolates = threaded.transmitter(multicast, "PRICES", slow_mode="enforce", **POLICIES["exclude"])
    too = threaded.transmitter(multicast, "TRADES", slow_mode="enforce", **POLICIES["exclude"])
    assert isinstance(threaded.segment, Path)
    with Segment(threaded.segment) as segment:
        streams = [o for o in segment.objects(histograms=False) if o.scope == "tx_stream"]
        assert len(streams) == 2
        assert all(o.values["slow_decisions_suspend"] == 0 and o.values["storms"] == 0 for o in streams)
    for transmitter in (waits, isolates, too):
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


def story(instance: Instance) -> list[str]:
    """Names of the events about slow consumers, oldest first."""
    assert isinstance(instance.segment, Path)
    with Segment(instance.segment) as segment:
        return [event.name for event in segment.events().events if event.name.startswith("consumer_")]


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

        assert until(lambda: told("consumer_suspended", drain=False), seconds=30.0)
        assert until(lambda: told("consumer_readmitted", drain=True), seconds=30.0)
        names = story(source)
        assert names.index("consumer_slow") < names.index("consumer_suspended") < names.index("consumer_readmitted")
        assert names.count("consumer_slow") == names.count("consumer_suspended") == 1
        assert Action.SUSPEND in [notice.action for notice in stuck.notices()]

        def all_received() -> bool:
            for i, receiver in enumerate(drained):
                received[i] += len(receiver.receive(timeout=0.01))
            return received == [sent, sent]

        assert until(all_received)
