"""The judge of receivers in Python, one receiver at a time: the reference for `heliograph.monitor._judge`."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from heliograph.monitor.behaviour import Behaviour, Evidence, Judgement, reason_of
from heliograph.monitor.model import Health
from heliograph.monitor.timeline import Behind, Timeline
from heliograph.monitor.window import LOOKS, Look, Place, Watcher

__all__ = ["RowWatcher", "RowWindow", "behind_by_row", "judge_by_row"]

MISSING_RATIO = 0.005
QUEUE_FILL = 0.8
LAG_SECONDS = 0.25
LAG_MESSAGES = 2
STEPS_LEAST = 3
STALLED_STEPS = 3
TREND = 0.8
GROWTH = 0.01
AGREE, AGREE_ON_OK = 2, 3
GAP_STEPS = 10
LATE_LOOKS = 3


def _counters(look: Look) -> tuple[int, ...]:
    return look.expected, look.delivered, look.lost, look.queue_full, look.gaps


def _fell(newer: Look, older: Look) -> bool:
    return any(now < before for now, before in zip(_counters(newer), _counters(older), strict=True))


class RowWindow:
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

    def judge(self, look: Look, evidence: Evidence) -> Judgement:
        """Add an observation and judge."""
        is_new = self._take(look)
        lasting = self._lasting()
        whole = self._evidence(evidence, lasting)
        if is_new or self._class is None or _is_stopped(evidence):
            self._decide(self._shown(evidence, whole, lasting), look.time_ns, has_lost=whole.lost > 0)
        assert self._class is not None
        return replace(_described(self._class, whole), looks=max(1, len(self._looks)), since_ns=self._since_ns)

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
        grew = _counters(look) != _counters(last) and not _fell(look, last)
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
        if _is_stopped(now):
            return Behaviour.STOPPED
        if len(self._looks) <= STEPS_LEAST:
            return _seen(now)
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


def _seen(evidence: Evidence) -> Behaviour:
    if _is_stopped(evidence):
        return Behaviour.STOPPED
    for behaviour, shows in _SHOWS:
        if shows(evidence):
            return behaviour
    return Behaviour.OK


def _is_stopped(evidence: Evidence) -> bool:
    return evidence.health is not Health.LIVE or not evidence.live


def _is_stalled(evidence: Evidence) -> bool:
    waits = evidence.lag_messages >= LAG_MESSAGES and not evidence.delivered
    waited = evidence.lag_before is not None and LAG_MESSAGES <= evidence.lag_before <= evidence.lag_messages
    return waits and (waited or (evidence.lag_seconds or 0.0) >= LAG_SECONDS)


def _is_falling_behind(evidence: Evidence) -> bool:
    gaining = evidence.lag_before is not None and evidence.lag_messages < evidence.lag_before
    lag = evidence.lag_seconds or 0.0
    losing_ground = lag >= LAG_SECONDS and evidence.lag_messages >= LAG_MESSAGES and not gaining
    waits_for_application = evidence.queue_full > 0 or evidence.queue_fill >= QUEUE_FILL
    return losing_ground or (waits_for_application and not (gaining and not evidence.lost))


def _is_lossy(evidence: Evidence) -> bool:
    return evidence.lost > 0 or evidence.missing_ratio >= MISSING_RATIO


def _is_recovering(evidence: Evidence) -> bool:
    before = evidence.lag_before
    behind = (evidence.lag_seconds or 0.0) >= LAG_SECONDS or evidence.queue_full > 0
    return before is not None and evidence.lag_messages < before and behind


_SHOWS: Sequence[tuple[Behaviour, Callable[[Evidence], bool]]] = (
    (Behaviour.STALLED, _is_stalled),
    (Behaviour.FALLING_BEHIND, _is_falling_behind),
    (Behaviour.LOSSY, _is_lossy),
    (Behaviour.RECOVERING, _is_recovering),
)


def _badness(behaviour: Behaviour, evidence: Evidence) -> float:
    late = evidence.lag_seconds or 0.0
    match behaviour:
        case Behaviour.STOPPED:
            return 0.0 if evidence.health in (Health.CLOSED, Health.LIVE) else 900.0
        case Behaviour.STALLED:
            return 850.0
        case Behaviour.FALLING_BEHIND:
            return 600.0 + 50.0 * evidence.queue_fill + min(49.0, 10.0 * late) + (100.0 if evidence.lost else 0.0)
        case Behaviour.LOSSY:
            return (700.0 if evidence.lost else 400.0) + min(99.0, 1000.0 * evidence.missing_ratio)
        case Behaviour.RECOVERING:
            return 200.0 + min(99.0, 10.0 * late)
    lag = min(1.0, late / LAG_SECONDS)
    return 99.0 * min(1.0, max(evidence.queue_fill, evidence.missing_ratio / MISSING_RATIO, lag))


def _described(behaviour: Behaviour, evidence: Evidence) -> Judgement:
    return Judgement(behaviour, _badness(behaviour, evidence), reason_of(behaviour, evidence))


def judge_by_row(evidence: Evidence) -> Judgement:
    """Judge a receiver by one interval."""
    return _described(_seen(evidence), evidence)


class RowWatcher(Watcher):
    """A watcher that judges one receiver after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[Place, RowWindow] = {}

    def judge(self, place: Place, look: Look, evidence: Evidence) -> Judgement:
        return self._found.setdefault(place, RowWindow()).judge(look, evidence)

    def forget_but(self, places: Mapping[Place, object], senders: Mapping[tuple[int, str, str], object]) -> None:
        super().forget_but(places, senders)
        self._found = {place: window for place, window in self._found.items() if place in places}


def behind_by_row(line: Timeline, message: int) -> Behind | None:
    """The way from a message to the last position of its sender."""
    times, sent, sizes = line.positions
    if not sent or message >= sent[-1]:
        return None
    after = bisect_right(sent, message)
    if after == 0:
        return Behind(times[-1] - times[0], sizes[-1] - sizes[0], is_bounded=False)
    part = (message - sent[after - 1]) / (sent[after] - sent[after - 1])
    sent_ns = times[after - 1] + round(part * (times[after] - times[after - 1]))
    size = sizes[after - 1] + round(part * (sizes[after] - sizes[after - 1]))
    return Behind(times[-1] - sent_ns, sizes[-1] - size, is_bounded=True)
