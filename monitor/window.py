"""The class of a receiver from its last ten observations; all outputs use this one judge.

One interval shows only a moment. Each receiver therefore has a window of observations at any interval. It is judged by
the whole window, without absolute sizes where possible (after Burrow, which judges by ten offsets):

    stopped         at once: it is closed, or its instance does not run
    stalled         in each of the last three steps messages waited and none was delivered
    falling behind  behind in every observation, and the distance grew in four steps of five, by a hundredth of the sent
                    messages; or delivery waited for its application in every second step; or it stays a quarter of a
                    second or more behind
    lossy           it lost messages, or half a percent of the packets are missing at first; until the share is half of
                    that
    recovering      it was behind, and the distance shrank in four steps of five
    ok              otherwise

A class changes when two observations in a row agree; back to ok when three do. Only the end of a receiver and an
unrecoverable loss take effect at once. With fewer than three steps only the last step counts (`seen`).

Irregular observations are handled: a repeated or late snapshot is ignored. Counters that fall (a restarted receiver)
restart the window. After a gap many times as long as the previous steps, only its two ends count. A clock that was set
back is detected when observations stay late, or come with greater counters.

The rules are in C (`engine/binding/judge.c`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heliograph.monitor import _judge, judging
from heliograph.monitor.behaviour import Evidence, Judgement, judged, put
from heliograph.monitor.roster import Indexes, Place, Seats
from heliograph.monitor.timeline import Timeline

__all__ = ["LOOKS", "Look", "Place", "Watcher", "Window"]

LOOKS = _judge.STEPS
"""Steps of a window."""


@dataclass(frozen=True, slots=True)
class Look:
    """One observation of a receiver; counters since it joined."""

    time_ns: int
    expected: int
    """Number of the next message it expects."""
    delivered: int
    lost: int
    queue_full: int
    gaps: int
    """Packets detected as missing."""
    packets: int
    """Packets of the stream, delivered or known to exist."""
    lag: int
    """Messages sent and not with the application."""
    queue_fill: float


class Window:
    """The last observations of one receiver, and its class."""

    def __init__(self) -> None:
        """Create an empty window."""
        self._windows = _judge.Windows()
        self._windows.resize(1)

    @property
    def looks(self) -> int:
        """Number of observations in the window."""
        return self._windows.looks(0)

    def judge(self, look: Look, evidence: Evidence) -> Judgement:
        """Add an observation and judge.

        Args:
            look: The present observation.
            evidence: Health, lag in seconds, shares, and the values of the last interval.
        """
        return _judged(self._windows, 0, look, evidence)


def _judged(windows: _judge.Windows, place: int, look: Look, evidence: Evidence) -> Judgement:
    rows = judging.rows(1)
    row = rows[0]
    put(row, evidence)
    row["window"] = place
    row["expected"], row["all_delivered"], row["all_lost"] = look.expected, look.delivered, look.lost
    row["all_queue_full"], row["gaps"], row["packets"] = look.queue_full, look.gaps, look.packets
    row["in_flight"], row["waiting"] = judging.parts(look.lag)
    row["queue_fill"] = look.queue_fill
    windows.judge(rows, look.time_ns)
    return judged(row, evidence)


class Watcher:
    """The windows of all receivers and the timelines of all senders; an output keeps one beside its sampler.

    Pass it to `fleet.receivers` with every snapshot. It drops objects that are missing in a snapshot. For one thread at
    a time.
    """

    def __init__(self) -> None:
        """Create an empty watcher."""
        self.windows = _judge.Windows()
        self.seats: Seats | None = None
        """Those of the last snapshot."""
        self._numbers: Indexes | None = None
        self._places: dict[Place, int] = {}
        self._free: list[int] = []
        self._size = 0
        self._timelines: dict[tuple[int, str, str], Timeline] = {}

    def judge(self, place: Place, look: Look, evidence: Evidence) -> Judgement:
        """Add an observation of one receiver and judge it."""
        (number,) = self.numbers([place])
        return _judged(self.windows, number, look, evidence)

    def numbers(self, places: Sequence[Place]) -> list[int]:
        """Return the numbers of the windows of receivers in `windows`; a new receiver gets an empty one."""
        new = [place for place in places if place not in self._places]
        missing = len(new) - len(self._free)
        if missing > 0:
            size = max(self._size + missing, self._size + self._size // 4)
            self.windows.resize(size)
            self._free += range(self._size, size)
            self._size = size
        for place in new:
            if place not in self._places:
                self._places[place] = self._free.pop()
        return [self._places[place] for place in places]

    def follow(self, seats: Seats) -> Indexes:
        """Return the numbers of the windows of the receivers of a snapshot, and drop all other receivers."""
        if self._numbers is None or self.seats is not seats:
            self.keep_receivers(dict.fromkeys(seats.places))
            self._numbers = np.array(self.numbers(seats.places), np.int64)
            self.seats = seats
        return self._numbers

    def timeline(self, sender: tuple[int, str, str]) -> Timeline:
        """Return the timeline of the sender with this incarnation, stream and topic."""
        return self._timelines.setdefault(sender, Timeline())

    def forget_but(self, places: Mapping[Place, object], senders: Mapping[tuple[int, str, str], object]) -> None:
        """Drop all other receivers and senders."""
        self.keep_receivers(places)
        self.keep_senders(senders)

    def keep_receivers(self, places: Mapping[Place, object]) -> None:
        """Drop all other receivers."""
        self._numbers = None
        for place in [known for known in self._places if known not in places]:
            number = self._places.pop(place)
            self.windows.clear(number)
            self._free.append(number)

    def keep_senders(self, senders: Mapping[tuple[int, str, str], object]) -> None:
        """Drop all other senders."""
        self._timelines = {sender: line for sender, line in self._timelines.items() if sender in senders}
