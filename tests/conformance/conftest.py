"""What every transport is held to: the endpoints of each, and both modes of running the engine."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from heliograph.engine import Instance, Message, Receiver, Transmitter
from tests.ports import free_port

_numbers = itertools.count(1)


def _group() -> str:
    number = os.getpid() * 64 + next(_numbers)
    return f"239.193.{number // 250 % 250}.{number % 250 + 1}"


@dataclass(frozen=True)
class Transport:
    """How one transport is used.

    make: two endpoints, what transmitters are given and, for each of `fan` receivers, what receivers are given.
    """

    name: str
    make: Callable[[int], tuple[str, list[str]]]
    can_lose: bool
    """The option inject_loss throws packets away."""
    is_meeting_place: bool
    """Any number of programs send and receive at one endpoint."""


def _one(make: Callable[[], str]) -> Callable[[int], tuple[str, list[str]]]:
    """All meet at one endpoint."""

    def both(fan: int) -> tuple[str, list[str]]:
        endpoint = make()
        return endpoint, [endpoint] * fan

    return both


def _hosts(scheme: str, host: str, port: Callable[[], int]) -> Callable[[int], tuple[str, list[str]]]:
    """Each receiver has an address, transmitters are told them all."""

    def both(fan: int) -> tuple[str, list[str]]:
        places = [f"{host}:{port()}" for _ in range(fan)]
        return f"{scheme}://{','.join(places)}", [f"{scheme}://{place}" for place in places]

    return both


# Groups of IPv6 need a route, which the loopback has not: api/test_ipv6.py makes a network for them.
TRANSPORTS = [
    Transport("rmm", _one(lambda: f"rmm://{_group()}:{free_port()}?interface=127.0.0.1&ttl=0"), True, True),
    Transport("rmm+unicast", _hosts("rmm+unicast", "127.0.0.1", free_port), True, False),
    Transport("rmm+unicast-ipv6", _hosts("rmm+unicast", "[::1]", free_port), True, False),
    Transport("rum", _hosts("rum", "127.0.0.1", free_port), False, False),
    Transport("shm", _one(lambda: f"shm://conformance-{os.getpid()}-{next(_numbers)}"), False, True),
    Transport("inproc", _one(lambda: f"inproc://conformance-{next(_numbers)}"), False, True),
]


@pytest.fixture(params=TRANSPORTS, ids=lambda transport: transport.name)
def transport(request: pytest.FixtureRequest) -> Transport:
    """Each transport in turn."""
    found: Transport = request.param
    if "ipv6" in found.name and not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("this host has no IPv6")
    return found


@pytest.fixture(params=["thread", "poll"])
def mode(request: pytest.FixtureRequest) -> str:
    """Who runs the engine."""
    found: str = request.param
    return found


@dataclass
class Pair:
    """Receivers and a transmitter, on instances of their own, that know each other."""

    instances: list[Instance]
    transmitter: Transmitter
    receivers: list[Receiver]

    def work(self) -> None:
        """Let polled engines do what is due."""
        for instance in self.instances:
            if instance.polled:
                instance.poll()

    def receive(self, count: int, receiver: int = 0, seconds: float = 20.0) -> list[Message]:
        """Take `count` messages; fewer when nothing more comes for a while."""
        taken: list[Message] = []
        silent = time.monotonic()
        while len(taken) < count and time.monotonic() - silent < seconds:
            self.work()
            some = self.receivers[receiver].receive(timeout=0.01, limit=min(1024, count - len(taken)))
            if some:
                silent = time.monotonic()
                taken += some
        return taken


Join = Callable[..., Pair]


@pytest.fixture
def join(transport: Transport, mode: str) -> Iterator[Join]:
    """Makes a `Pair`: ``join(fan=2, receiver={...}, transmitter={...})``; each receiver may have options of its own.

    `names` are those of the receivers' instances.
    """
    opened: list[Instance] = []

    def make(
        fan: int = 1,
        topic: str = "T",
        transmitter: dict[str, object] | None = None,
        receiver: dict[str, object] | list[dict[str, object]] | None = None,
        names: list[str] | None = None,
    ) -> Pair:
        to, at = transport.make(fan)
        called: list[dict[str, object]] = [{"name": name} for name in ["sender", *names]] if names else [{}] * (fan + 1)
        instances = [Instance(mode=mode, stats="memory", **own) for own in called]  # type: ignore[arg-type]
        opened.extend(instances)
        options = receiver if isinstance(receiver, list) else [receiver or {}] * fan
        receivers = [
            instance.receiver(endpoint, topic, **mine)  # type: ignore[arg-type]
            for instance, endpoint, mine in zip(instances[1:], at, options, strict=True)
        ]
        sender = instances[0].transmitter(to, topic, **{"linger": 0.02, **(transmitter or {})})  # type: ignore[arg-type]
        pair = Pair(instances, sender, receivers)
        settle(pair)
        return pair

    yield make
    for instance in opened:
        instance.close()


def settle(pair: Pair, seconds: float = 0.15) -> None:
    """Streams are met and connections made: what is sent afterwards reaches every receiver."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pair.work()
        time.sleep(0.001)
