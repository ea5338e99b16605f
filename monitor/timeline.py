"""When messages were sent, as seen from outside: how old the oldest undelivered one is, and how many bytes follow it.

A timeline is fed with where a sender was (its next message, its bytes) at each observation. A message was sent between
the last observation that did not have it and the first that did; within that time it is placed by the messages between
them. So an age is right to within the time between two observations, also when nothing is being sent any more, which a
lag divided by a rate never is.

The number of points is bounded: when they are too many every second one of the older half goes, so the far past gets
coarser and the recent stays exact. A message from before the first point is at least so old. A sender that begins anew,
or a clock that is set back, begins a new timeline.
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
    """Bytes of all before it."""


@dataclass(frozen=True, slots=True)
class Behind:
    """What lies between a message and the sender."""

    age_ns: int
    size: int
    """Bytes."""
    is_bounded: bool
    """False: the message is from before the first observation, so it is at least so much."""


class Timeline:
    """Where one sender was, and when."""

    def __init__(self, points: int = POINTS) -> None:
        """Empty.

        Args:
            points: Most of them, at least 4.
        """
        self._most = points
        self._points: list[_Point] = []

    def __len__(self) -> int:
        return len(self._points)

    def add(self, time_ns: int, sent: int, size: int) -> None:
        """The sender is here now. What is older than the last point tells nothing new and is left out."""
        last = self._points[-1] if self._points else None
        if last is not None:
            if sent < last.sent or size < last.size:
                if time_ns <= last.time_ns:
                    return  # a late observation
                self._points.clear()  # the sender has begun anew
            elif time_ns <= last.time_ns:
                if (sent, size) == (last.sent, last.size):
                    return  # the same once more
                self._points.clear()  # the clock was set back
            elif len(self._points) > 1 and self._points[-2].sent == last.sent == sent:
                self._points[-1] = _Point(time_ns, sent, size)  # it rests: the end of the rest is enough
                return
        self._points.append(_Point(time_ns, sent, size))
        if len(self._points) > self._most:
            half = len(self._points) // 2
            self._points = [*self._points[:half:2], *self._points[half:]]

    def behind(self, message: int) -> Behind | None:
        """How long ago the message with this number was sent, as of the last point, and the bytes from it on.

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
