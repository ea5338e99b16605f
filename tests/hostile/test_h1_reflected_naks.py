"""Finding H1: what somebody who forges a stream can make a receiver send to an address that asked for nothing.

The attacker's packets name a victim as path NLA, or come from the victim's own address: there the attacker's socket
plays the victim, as only its bytes matter. It never answers.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.engine import Instance
from heliograph.monitor.sampler import Sampler
from tests.hostile import forging
from tests.ports import free_port

TOPIC, VICTIM = "PRICES.FX", "127.0.0.7"
GIVE_UP = {"nak_deadline": 0.4}
SECONDS = 0.7  # by then everything was asked for that ever is

Endpoint = tuple[str, int]


@pytest.fixture
def endpoint() -> Endpoint:
    """An endpoint of this test alone, and its port."""
    port = free_port()
    return f"rmm+unicast://{forging.HOST}:{port}", port


@pytest.fixture
def attacker() -> Iterator[socket.socket]:
    """The socket forged packets come from."""
    with forging.attacker() as found:
        yield found


def session_from(sender: socket.socket, endpoint_port: int) -> forging.Session:
    """A stream that claims to be the sender's own, so that its port is the stream's."""
    return forging.Session(secrets.token_bytes(6), sender.getsockname()[1], endpoint_port)


def forge(session: forging.Session, path: str, numbers: list[int]) -> list[bytes]:
    """One SPM and a data packet of each number."""
    return [
        forging.odata(session, numbers[0], numbers[0], forging.batch(TOPIC, 0, [b"x"])),
        forging.spm(session, 1, numbers[0], numbers[-1], path),
        *(forging.odata(session, number, numbers[0], forging.batch(TOPIC, 1, [b"x"])) for number in numbers[1:]),
    ]


def throw(sender: socket.socket, port: int, packets: list[bytes]) -> int:
    """Send them all; the bytes sent."""
    return sum(sender.sendto(packet, (forging.HOST, port)) for packet in packets)


SHAPES = [
    pytest.param([0, 200], id="200-holes"),
    pytest.param([0, 5000], id="one-leap"),
    pytest.param([0, 5000, 5001], id="a-confirmed-leap"),
    pytest.param([0, 5000, 5001, 11_000, 11_001], id="leap-upon-leap"),
    pytest.param(list(range(0, 2000, 100)), id="many-gaps"),
]


@pytest.mark.parametrize("numbers", SHAPES)
def test_h1_a_third_address_named_as_path_gets_nothing(
    numbers: list[int], endpoint: Endpoint, attacker: socket.socket
) -> None:
    with (
        forging.attacker(VICTIM, attacker.getsockname()[1]) as own,
        forging.attacker(VICTIM, endpoint[1]) as other,
        Instance() as instance,
        instance.receiver(endpoint[0], TOPIC, **GIVE_UP),  # type: ignore[arg-type]
    ):
        throw(attacker, endpoint[1], forge(session_from(attacker, endpoint[1]), VICTIM, numbers))
        assert forging.drain(own, SECONDS) == (0, 0)
        assert forging.drain(other, 0.05) == (0, 0)


@pytest.mark.parametrize("numbers", SHAPES)
@pytest.mark.parametrize("join", ["live", "history"])
def test_h1_an_address_that_never_answers_gets_at_most_twice_what_came(
    numbers: list[int], join: str, endpoint: Endpoint, attacker: socket.socket
) -> None:
    with Instance() as instance, instance.receiver(endpoint[0], TOPIC, join=join, **GIVE_UP):  # type: ignore[arg-type]
        packets = forge(session_from(attacker, endpoint[1]), forging.ATTACKER, numbers)
        thrown = throw(attacker, endpoint[1], packets)
        _, came = forging.drain(attacker, SECONDS)
    assert 0 < came <= 2 * thrown


def test_h1_with_network_elements_the_path_is_used_and_the_bound_holds(
    endpoint: Endpoint, attacker: socket.socket
) -> None:
    with (
        forging.attacker(VICTIM, attacker.getsockname()[1]) as victim,
        Instance() as instance,
        instance.receiver(endpoint[0], TOPIC, network_elements=True, **GIVE_UP),  # type: ignore[arg-type]
    ):
        packets = forge(session_from(attacker, endpoint[1]), VICTIM, [0, 5000, 5001])
        thrown = throw(attacker, endpoint[1], packets)
        _, came = forging.drain(victim, SECONDS)
    assert 0 < came <= 2 * thrown


def test_h1_a_poll_is_answered_where_it_came_from(endpoint: Endpoint, attacker: socket.socket) -> None:
    session = session_from(attacker, endpoint[1])
    body = (1).to_bytes(4, "big") + bytes(4) + forging.nla(VICTIM) + bytes(12)  # everybody, at once
    with (
        forging.attacker(VICTIM, attacker.getsockname()[1]) as victim,
        Instance() as instance,
        instance.receiver(endpoint[0], TOPIC),
    ):
        throw(attacker, endpoint[1], [*forge(session, forging.ATTACKER, [0, 1]), forging.packet(session, 0x01, body)])
        assert forging.drain(victim, 0.5) == (0, 0)
        count, _ = forging.drain(attacker, 0.1)
        assert count > 0


def test_h1_what_is_held_back_is_counted_and_told_once(
    segments: Path, endpoint: Endpoint, attacker: socket.socket
) -> None:
    with Instance() as instance, instance.receiver(endpoint[0], TOPIC), Sampler(segments) as sampler:
        for _ in range(5):
            throw(attacker, endpoint[1], forge(session_from(attacker, endpoint[1]), forging.ATTACKER, [0, 200]))
        forging.drain(attacker, 0.5)
        snapshot = sampler.sample()
    ((_, engine),) = snapshot.of("instance")
    told = [event for event in snapshot.events if event.name == "state_refused"]
    assert 5 * 100 <= engine.values["state_refused_naks_unanswered"] <= 5 * 200
    assert len(told) == 1
