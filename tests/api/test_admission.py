"""A message that may not go: the error names the one cause, whichever way it was sent."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

import pytest

from heliograph.engine import AckersError, Instance, TimeoutExpired, Transmitter, WouldBlock
from tests.ports import free_port

TOPIC = "PRICES"
OPEN: dict[str, Any] = {"linger": 0.0, "connection_timeout": 0.1, "connect_wait": 0, "submit_queue": 65536}

# Options of the instance and of the transmitter, and words of the cause.
CAUSES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "rate": ({}, {"rate": 20_000}, "rate limited;|wait for the rate;"),
    "instance_rate": ({"rate": 20_000}, {}, "the instance's rate"),
    "history": ({}, {"acks": 1, "send_window": 32}, "acknowledgements: the history is full"),
    "window": ({}, {"flow_window": "min", "window_receivers": 1}, "the send limit"),
    "credit": ({}, {"await_credit": True}, "credit of receivers"),
}


def fill(transmitter: Transmitter, timeout: float) -> None:
    """Sends until a message is refused."""
    for _ in range(10_000):
        transmitter.send(b"x" * 1000, timeout=timeout)
    pytest.fail("it is never refused")


def block(transmitter: Transmitter) -> None:
    """Sends until a message is refused, and until an engine's thread has seen that they wait."""
    with pytest.raises(WouldBlock):
        fill(transmitter, 0)
    with contextlib.suppress(TimeoutExpired):
        transmitter.flush(0.3)


def refusals(transmitter: Transmitter) -> list[str]:
    """The texts of the errors, of each way to send."""
    block(transmitter)
    texts = []
    with pytest.raises(TimeoutExpired) as waited:
        fill(transmitter, 0.03)
    texts.append(str(waited.value))
    with pytest.raises(WouldBlock) as refused:
        fill(transmitter, 0)
    texts.append(str(refused.value))
    with pytest.raises(WouldBlock) as listed:
        transmitter.send_many([b"x" * 1000] * 200, timeout=0)
    return [*texts, str(listed.value)]


@pytest.mark.parametrize("mode", ["thread", "poll"])
@pytest.mark.parametrize("cause", CAUSES)
def test_the_error_names_the_one_cause(mode: str, cause: str, unicast: str) -> None:
    of_instance, of_transmitter, words = CAUSES[cause]
    with Instance(mode=mode, **of_instance) as instance:  # type: ignore[arg-type]
        transmitter = instance.transmitter(unicast, TOPIC, **OPEN, **of_transmitter)
        named = [[name for name, row in CAUSES.items() if re.search(row[2], text)] for text in refusals(transmitter)]
        assert named == [[cause]] * 3, words


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_a_channel_without_room_is_named(mode: str) -> None:
    endpoint = f"shm://room-{os.getpid()}-{free_port()}?ring_wait=true&ring_packets=64"
    with Instance() as sink, Instance(mode=mode) as source:  # type: ignore[arg-type]
        receiver = sink.receiver(endpoint, TOPIC, receive_queue=65536)
        transmitter = source.transmitter(endpoint, TOPIC, **OPEN)
        with pytest.raises(TimeoutExpired, match="room in the channel"):
            fill(transmitter, 0.5)
        with pytest.raises(WouldBlock, match="room in the channel"):
            fill(transmitter, 0)
        receiver.close()


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_too_few_that_acknowledge_are_named(mode: str, unicast: str) -> None:
    with Instance(mode=mode) as instance:  # type: ignore[arg-type]
        transmitter = instance.transmitter(unicast, TOPIC, acks=1, acks_missing="fail", **OPEN)
        with pytest.raises(AckersError, match="fewer receivers acknowledge"):
            transmitter.send(b"x")


def test_with_overflow_refuse_the_cause_is_named_too(unicast: str) -> None:
    with Instance() as instance:
        transmitter = instance.transmitter(unicast, TOPIC, await_credit=True, overflow="refuse", **OPEN)
        block(transmitter)
        with pytest.raises(WouldBlock, match=r"credit of receivers.*overflow=refuse"):
            fill(transmitter, 1.0)
