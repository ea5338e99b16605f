"""The send times of messages as observed from outside: the age of the oldest undelivered one, and the bytes from it on.

A timeline is fed with the position of a sender (its next message, its bytes) at each observation. A message was sent
between the last observation without it and the first with it; within that time its send time is interpolated. An age is
therefore accurate to the time between two observations, also after the sender stops. A lag divided by a rate is not.

The number of points is bounded: when there are too many, every second point of the older half is removed, so that the
past gets coarser and the recent part stays exact. The age of a message from before the first point is a lower bound. A
sender that restarts, or a clock that is set back, begins a new timeline.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from heliograph.monitor import _judge

__all__ = ["POINTS", "Behind", "Positions", "Timeline"]

POINTS = 64

Positions = tuple["array[int]", "array[int]", "array[int]"]


@dataclass(frozen=True, slots=True)
class Behind:
    """The distance between a message and the sender."""

    age_ns: int
    size: int
    """Bytes."""
    is_bounded: bool
    """False: the message is from before the first observation, so its age is a lower bound."""


class Timeline:
    """The positions of one sender over time."""

    def __init__(self, points: int = POINTS) -> None:
        """Create an empty timeline.

        Args:
            points: Largest number of points, at least 4.
        """
        self._most = points
        self._times = array("q")
        self._sent = array("Q")
        self._bytes = array("Q")

    def __len__(self) -> int:
        return len(self._times)

    @property
    def positions(self) -> Positions:
        """Time, next message, and bytes of all messages before it, of each point; oldest first."""
        return self._times, self._sent, self._bytes

    def add(self, time_ns: int, sent: int, size: int) -> None:
        """Add a position of the sender. An observation older than the last point is ignored."""
        if self._times:
            last = self._times[-1], self._sent[-1], self._bytes[-1]
            if sent < last[1] or size < last[2]:
                if time_ns <= last[0]:
                    return  # a late observation
                self._keep(0)  # the sender has restarted
            elif time_ns <= last[0]:
                if (sent, size) == last[1:]:
                    return  # the same position again
                self._keep(0)  # the clock was set back
            elif len(self) > 1 and self._sent[-2] == last[1] == sent:
                self._keep(len(self) - 1)  # the sender is idle: only the end of the idle time is kept
        self._times.append(time_ns)
        self._sent.append(sent)
        self._bytes.append(size)
        if len(self) > self._most:
            half = len(self) // 2
            self._times, self._sent, self._bytes = (
                values[:half:2] + values[half:] for values in (self._times, self._sent, self._bytes)
            )

    def _keep(self, count: int) -> None:
        for values in (self._times, self._sent, self._bytes):
            del values[count:]

    def behind(self, message: int) -> Behind | None:
        """Return the age of the message with this number at the last point, and the bytes from it on.

        None: it has not been sent, or there is no point.
        """
        found = _judge.behind(*self.positions, message)
        return Behind(*found) if found is not None else None
