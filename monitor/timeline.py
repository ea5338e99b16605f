"""The send times of messages as observed from outside: the age of the oldest undelivered one, and the bytes from it on.

A timeline is fed with the position of a sender (its next message, its bytes) at each observation. A message was sent
between the last observation without it and the first with it; within that time its send time is interpolated. An age is
therefore accurate to the time between two observations, also after the sender stops. A lag divided by a rate is not.

The number of points is bounded: when there are too many, every second point of the older half is removed, so that the
past gets coarser and the recent part stays exact. The age of a message from before the first point is a lower bound. A
sender that restarts, or a clock that is set back, begins a new timeline.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["POINTS", "Behind", "Timeline"]

POINTS = 64


@dataclass(frozen=True, slots=True)
class _Point:
    time_ns: int
    sent: int
    """Number of the next message."""
    size: int
    """Bytes of all messages before it."""


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
        self._points: list[_Point] = []

    def __len__(self) -> int:
        return len(self._points)

    def add(self, time_ns: int, sent: int, size: int) -> None:
        """Add a position of the sender. An observation older than the last point is ignored."""
        last = self._points[-1] if self._points else None
        if last is not None:
            if sent < last.sent or size < last.size:
                if time_ns <= last.time_ns:
                    return  # a late observation
                self._points.clear()  # the sender has restarted
            elif time_ns <= last.time_ns:
                if (sent, size) == (last.sent, last.size):
                    return  # the same position again
                self._points.clear()  # the clock was set back
            elif len(self._points) > 1 and self._points[-2].sent == last.sent == sent:
                self._points[-1] = _Point(
                    time_ns, sent, size
                )  # the sender is idle: only the end of the idle time is kept
                return
        self._points.append(_Point(time_ns, sent, size))
        if len(self._points) > self._most:
            half = len(self._points) // 2
            self._points = [*self._points[:half:2], *self._points[half:]]

    def behind(self, message: int) -> Behind | None:
        """Return the age of the message with this number at the last point, and the bytes from it on.

        None: it has not been sent, or there is no point.
        """
        points: Sequence[_Point] = self._points
        if not points or message >= points[-1].sent:
            return None
        after = bisect_right(points, message, key=lambda point: point.sent)
        newer, last = points[after], points[-1]
        if after == 0:
            return Behind(last.time_ns - newer.time_ns, last.size - newer.size, is_bounded=False)
        older = points[after - 1]
        part = (message - older.sent) / (newer.sent - older.sent)
        sent_ns = older.time_ns + round(part * (newer.time_ns - older.time_ns))
        size = older.size + round(part * (newer.size - older.size))
        return Behind(last.time_ns - sent_ns, last.size - size, is_bounded=True)
