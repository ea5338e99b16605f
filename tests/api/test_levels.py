"""The level of detail while an instance runs: of all of it, of topics, streams and receivers by pattern, for a time."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from heliograph.engine import Instance, OptionError, UsageError
from tests.segment.decoder import decode_live

from .conftest import collect, until


def timed(instance: Instance) -> set[str]:
    """Topics whose receivers have measured a message's latency."""
    found = decode_live(instance.segment).of("receiver")
    return {
        item.labels["topic"]
        for item in found
        if "total_latency" in item.histograms and item.histograms["total_latency"].total > 0
    }


def level_events(instance: Instance) -> list[tuple[str, str]]:
    found = decode_live(instance.segment).events
    return [(event.name, event.text) for event in found if event.name.startswith("level_")]


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_a_topic_is_raised_for_a_time_and_no_other(mode: Literal["thread", "poll"]) -> None:
    topics = ("PRICES.FX", "PRICES.BONDS", "ORDERS")
    endpoint = f"inproc://levels-{mode}"
    with Instance(mode=mode, level=1) as instance:
        receivers = [instance.receiver(endpoint, topic) for topic in topics]
        transmitters = [instance.transmitter(endpoint, topic) for topic in topics]

        def talk() -> set[str]:
            for transmitter, receiver in zip(transmitters, receivers, strict=True):
                transmitter.send(b"x")
                assert len(collect(receiver, 1)) == 1
            return timed(instance)

        assert talk() == set()
        assert instance.set_level(2, 30, topic="PRICES.*") == 4
        assert until(lambda: talk() == {"PRICES.FX", "PRICES.BONDS"}, instance)
        later = instance.receiver(endpoint, "PRICES.LATE")
        source = instance.transmitter(endpoint, "PRICES.LATE")
        source.send(b"x")
        assert len(collect(later, 1)) == 1
        assert until(lambda: "PRICES.LATE" in timed(instance), instance)
        assert instance.set_level(2, 0.05, topic="PRICES.*") == 6
        assert until(lambda: len(level_events(instance)) == 3, instance)
        assert level_events(instance) == [
            ("level_changed", "topic=PRICES.*: the level of detail is 2, it was 1"),
            ("level_changed", "topic=PRICES.*: the level of detail is 2, it was 2"),
            ("level_reverted", "topic=PRICES.*: the level of detail is 1 again, it was 2"),
        ]


def test_a_rule_that_ends_early_says_what_it_fitted(threaded: Instance) -> None:
    transmitter = threaded.transmitter("inproc://levels", "T")
    assert threaded.set_level(3, 60, stream=transmitter.stream) == 2  # the stream, and its topic
    assert threaded.set_level(0, 60, receiver="nobody-*") == 0
    with pytest.raises(OptionError, match=r"there are: stream=.*; receiver=nobody-\*"):
        threaded.reset_level(topic="T")
    assert threaded.reset_level(stream=transmitter.stream) == 2
    assert threaded.set_level(0, 60) == 2
    assert threaded.reset_level() == 2
    assert threaded.reset_level(receiver="nobody-*") == 0
    with pytest.raises(OptionError, match="no rule is in force"):
        threaded.reset_level(receiver="nobody-*")


def test_the_wait_in_the_socket_is_recorded_from_the_moment_the_level_rises(unicast: str) -> None:
    with Instance(level=2) as instance:
        receiver = instance.receiver(unicast, "T", gro="off")
        transmitter = instance.transmitter(unicast, "T", linger=0.0)

        def waits() -> int:
            transmitter.send(b"x")
            assert len(collect(receiver, 1)) == 1
            (stream,) = decode_live(instance.segment).of("rx_stream")
            return stream.histograms["socket_latency"].total if "socket_latency" in stream.histograms else 0

        assert waits() == 0
        instance.set_level(3, 60)
        assert until(lambda: waits() > 5)
        instance.reset_level()
        before = waits()
        assert [waits() for _ in range(5)] == [before] * 5
        instance.set_level(3, 60, receiver="*")
        assert until(lambda: waits() > before)


@pytest.mark.parametrize(
    ("arguments", "patterns", "words"),
    [
        ((4, 60), {}, "0 to 3, not"),
        ((-1, 60), {}, "0 to 3, not"),
        ((3, 0), {}, "no level is permanent"),
        ((3, -1), {}, "no level is permanent"),
        ((3, float("inf")), {}, "at most 2592000 s"),
        ((3, float("nan")), {}, "at most 2592000 s"),
        ((3, 2592001), {}, "at most 2592000 s"),
        ((3, 60), {"topic": "a\n"}, "pattern of topic must be UTF-8 text without control"),
        ((3, 60), {"receiver": "x" * 128}, "at most 127 bytes, that of receiver"),
    ],
)
def test_what_cannot_be_set_is_refused_with_the_reason(
    threaded: Instance, arguments: tuple[Any, Any], patterns: dict[str, str], words: str
) -> None:
    with pytest.raises(OptionError, match=words):
        threaded.set_level(*arguments, **patterns)
    assert level_events(threaded) == []


def test_a_callback_cannot_set_a_level(threaded: Instance) -> None:
    raised: list[BaseException] = []

    def on_messages(messages: object) -> None:
        try:
            threaded.set_level(3, 60)
        except UsageError as error:
            raised.append(error)

    receiver = threaded.receiver("inproc://levels", "T", on_messages=on_messages)
    threaded.transmitter("inproc://levels", "T").send(b"x")
    assert until(lambda: raised)
    receiver.close()
