"""A way between publishers and collectors that is only a list: nothing is sent, everything can be lost or seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heliograph.monitor.model import Event, Health, InstanceState, ObjectState, Snapshot

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


class Clock:
    """A wall clock and a monotonic one that the test moves."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def wall(self) -> int:
        return START + round(self.seconds * SECOND)

    def monotonic(self) -> float:
        return self.seconds


class Wire:
    """What one end sends the other end hears; a message for which `drop` says so is lost."""

    def __init__(self, url: str = "wire://test") -> None:
        self.urls: Sequence[str] = (url,)
        self.waiting: list[bytes] = []
        self.sent: list[bytes] = []
        self.full = False
        self.drop: Callable[[int], bool] = lambda number: False
        self.new = False
        self.losses = 0
        self.others: list[Wire] = []

    def also(self) -> Wire:
        """Another listener to the same."""
        other = Wire(self.urls[0])
        self.others.append(other)
        return other

    def send(self, message: bytes, timeout: float) -> bool:
        if self.full:
            return False
        self.sent.append(message)
        for wire in (self, *self.others):
            if not wire.drop(len(self.sent)):
                wire.waiting.append(message)
        return True

    def newcomers(self) -> bool:
        new, self.new = self.new, False
        return new

    def receive(self, timeout: float) -> list[bytes]:
        found, self.waiting = self.waiting, []
        return found

    def lost(self) -> int:
        lost, self.losses = self.losses, 0
        return lost

    def close(self) -> None:
        self.waiting.clear()


class Paper:
    """A sampler of instances on paper."""

    def __init__(self, clock: Clock, *instances: InstanceState) -> None:
        self._clock = clock
        self.instances = instances
        self.events: list[Event] = []
        self.missed = 0

    def sample(self) -> Snapshot:
        events, self.events = tuple(self.events), []
        return Snapshot(self._clock.wall(), self.instances, events, self.missed)


def instance(
    name: str, incarnation: int, sent: int = 0, health: Health = Health.LIVE, pid: int = 42, **labels: str
) -> InstanceState:
    """An instance that has sent so many messages."""
    item = ObjectState("instance", {"instance": name, **labels}, {}, {"messages_sent": sent})
    return InstanceState(name, health, "", pid, incarnation, START, START, f"/{name}", (item,))


def event(name: str, incarnation: int, number: int) -> Event:
    """The event of a number."""
    return Event(name, incarnation, number, START + number, "test", "info", {"instance": name}, {}, f"event {number}")
