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
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from heliograph.monitor.behaviour import (
    LAG_MESSAGES,
    LAG_SECONDS,
    MISSING_RATIO,
    QUEUE_FILL,
    Behaviour,
    Evidence,
    Judgement,
    describe,
    is_stopped,
    seen,
)
from heliograph.monitor.timeline import Timeline

__all__ = ["LOOKS", "Look", "Place", "Watcher", "Window"]

LOOKS = 10
"""Steps of a window."""
STEPS_LEAST = 3
"""With fewer steps only the last one counts."""
STALLED_STEPS = 3
TREND = 0.8
"""Share of the steps in one direction that makes a trend."""
GROWTH = 0.01
"""Share of the sent messages; smaller growth is ignored."""
AGREE, AGREE_ON_OK = 2, 3
GAP_STEPS = 10
LATE_LOOKS = 3
"""After this number of late observations in a row, the clock was set back."""

Place = tuple[int, tuple[str, ...]]
"""Incarnation and key of the object of a receiver."""


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

    @property
    def counters(self) -> tuple[int, ...]:
        """The values that never fall in the life of a receiver."""
        return self.expected, self.delivered, self.lost, self.queue_full, self.gaps


def _fell(newer: Look, older: Look) -> bool:
    return any(now < before for now, before in zip(newer.counters, older.counters, strict=True))


class Window:
    """The last observations of one receiver, and its class."""

    def __init__(self) -> None:
        """Create an empty window."""
        self._looks: deque[Look] = deque(maxlen=LOOKS + 1)
        self._late = 0
        self._class: Behaviour | None = None
        self._since_ns = 0
        self._candidate: Behaviour | None = None
        self._agreed = 0
        self._candidate_ns = 0

    @property
    def looks(self) -> int:
        """Number of observations in the window."""
        return len(self._looks)

    def judge(self, look: Look, evidence: Evidence) -> Judgement:
        """Add an observation and judge.

        Args:
            look: The present observation.
            evidence: Health, lag in seconds, shares, and the values of the last interval.
        """
        is_new = self._take(look)
        lasting = self._lasting()
        whole = self._evidence(evidence, lasting)
        if is_new or self._class is None or is_stopped(evidence):
            self._decide(self._shown(evidence, whole, lasting), look.time_ns, has_lost=whole.lost > 0)
        assert self._class is not None
        found = describe(self._class, whole)
        return Judgement(found.behaviour, found.badness, found.reason, max(1, self.looks), self._since_ns)

    # ---- observations ----

    def _begin(self, look: Look) -> None:
        self._looks.clear()
        self._looks.append(look)
        self._late = 0

    def _take(self, look: Look) -> bool:
        """Whether the observation is the next one, or the first after a restart."""
        if not self._looks:
            self._begin(look)
            return True
        last = self._looks[-1]
        if look.time_ns <= last.time_ns:
            return self._take_late(look, last)
        self._late = 0
        if _fell(look, last):
            self._begin(look)
            return True
        if len(self._looks) > 2 and look.time_ns - last.time_ns > GAP_STEPS * self._pace_ns():
            self._begin(last)
        self._looks.append(look)
        return True

    def _take_late(self, look: Look, last: Look) -> bool:
        if look == last:
            return False
        self._late += 1
        grew = look.counters != last.counters and not _fell(look, last)
        if look.time_ns < last.time_ns and (grew or self._late >= LATE_LOOKS):
            self._begin(look)
            return True
        return False

    def _pace_ns(self) -> float:
        return median(newer.time_ns - older.time_ns for older, newer in pairwise(self._looks))

    # ---- evaluation ----

    def _evidence(self, now: Evidence, lasting: int) -> Evidence:
        """Return the evidence of the whole window, if it is long enough."""
        if len(self._looks) <= STEPS_LEAST:
            return now
        first, last = self._looks[0], self._looks[-1]
        since = self._looks[-1 - lasting] if lasting else first
        return replace(
            now,
            delivered=last.delivered - since.delivered,
            lost=last.lost - first.lost,
            lag_before=first.lag,
            queue_full=last.queue_full - first.queue_full,
            missing_ratio=min(1.0, (last.gaps - first.gaps) / max(1, last.packets - first.packets)),
        )

    def _lasting(self) -> int:
        """Number of last steps in which messages waited and none was delivered or dropped."""
        count = 0
        newer: Look | None = None
        for older in reversed(self._looks):
            if newer is not None:
                if newer.delivered != older.delivered or older.lag < LAG_MESSAGES or newer.lag < LAG_MESSAGES:
                    break
                count += 1
            newer = older
        return count

    def _shown(self, now: Evidence, whole: Evidence, lasting: int) -> Behaviour:
        if is_stopped(now):
            return Behaviour.STOPPED
        if len(self._looks) <= STEPS_LEAST:
            return seen(now)
        if lasting >= STALLED_STEPS:
            return Behaviour.STALLED
        trend = self._trend()
        if self._falls_behind(now, trend):
            return Behaviour.FALLING_BEHIND
        missing = MISSING_RATIO / 2 if self._class is Behaviour.LOSSY else MISSING_RATIO
        if whole.lost > 0 or whole.missing_ratio >= missing:
            return Behaviour.LOSSY
        if self._recovers(now, trend):
            return Behaviour.RECOVERING
        return Behaviour.OK

    def _trend(self) -> int:
        """1: the distance grows, -1: it shrinks, 0: neither."""
        change = self._looks[-1].lag - self._looks[0].lag
        if abs(change) < LAG_MESSAGES:  # as with nearly every receiver
            return 0
        looks = list(self._looks)
        steps = [newer.lag - older.lag for older, newer in pairwise(looks)]
        half = len(looks) // 2
        sent = looks[-1].expected + looks[-1].lag - looks[0].expected - looks[0].lag
        least = max(LAG_MESSAGES, GROWTH * max(0, sent))
        older, newest = [look.lag for look in looks[:half]], looks[-1].lag
        if sum(step > 0 for step in steps) >= TREND * len(steps) and newest > max(older) and change >= least:
            return 1
        if sum(step < 0 for step in steps) >= TREND * len(steps) and newest < min(older) and -change >= least:
            return -1
        return 0

    def _falls_behind(self, now: Evidence, trend: int) -> bool:
        looks = list(self._looks)
        if trend < 0:
            return False
        behind = all(look.lag >= LAG_MESSAGES for look in looks)
        stays = (now.lag_seconds or 0.0) >= LAG_SECONDS and looks[-1].lag >= looks[0].lag
        waits = sum(
            newer.queue_full > older.queue_full or newer.queue_fill >= QUEUE_FILL for older, newer in pairwise(looks)
        )
        return (behind and (trend > 0 or stays)) or waits >= (len(looks) - 1) / 2

    def _recovers(self, now: Evidence, trend: int) -> bool:
        was_behind = self._class in (Behaviour.FALLING_BEHIND, Behaviour.STALLED, Behaviour.RECOVERING)
        far = (now.lag_seconds or 0.0) >= LAG_SECONDS
        return trend < 0 and (was_behind or far) and self._looks[-1].lag >= LAG_MESSAGES

    # ---- hysteresis ----

    def _decide(self, shown: Behaviour, time_ns: int, has_lost: bool) -> None:
        if shown is self._class:
            self._candidate = None
            return
        if shown is not self._candidate:
            self._candidate, self._agreed, self._candidate_ns = shown, 0, time_ns
        self._agreed += 1
        at_once = (
            self._class in (None, Behaviour.STOPPED)
            or shown is Behaviour.STOPPED
            or (shown is Behaviour.LOSSY and has_lost)
        )
        if at_once or self._agreed >= (AGREE_ON_OK if shown is Behaviour.OK else AGREE):
            self._class, self._since_ns = shown, self._candidate_ns
            self._candidate = None


class Watcher:
    """The windows of all receivers and the timelines of all senders; an output keeps one beside its sampler.

    Pass it to `fleet.receivers` with every snapshot. It drops objects that are missing in a snapshot. For one thread at
    a time.
    """

    def __init__(self) -> None:
        """Create an empty watcher."""
        self._windows: dict[Place, Window] = {}
        self._timelines: dict[tuple[int, str, str], Timeline] = {}

    def judge(self, place: Place, look: Look, evidence: Evidence) -> Judgement:
        """Add an observation of one receiver and judge it."""
        return self._windows.setdefault(place, Window()).judge(look, evidence)

    def timeline(self, sender: tuple[int, str, str]) -> Timeline:
        """Return the timeline of the sender with this incarnation, stream and topic."""
        return self._timelines.setdefault(sender, Timeline())

    def forget_but(self, places: Mapping[Place, object], senders: Mapping[tuple[int, str, str], object]) -> None:
        """Drop all other receivers and senders."""
        self._windows = {place: window for place, window in self._windows.items() if place in places}
        self._timelines = {sender: line for sender, line in self._timelines.items() if sender in senders}
