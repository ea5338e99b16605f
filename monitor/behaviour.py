"""Classifies receivers by their behaviour and states the reason in a sentence.

The classification uses changes, not absolute sizes: a receiver 10 000 messages behind that gains is healthy, one that
is 50 messages behind and loses ground is not. `judge_receiver` uses one interval; `window` uses the last ten
observations and the same words. Both give a class, a score that sorts a fleet worst first, and the evidence as a
sentence. Each class has its own band of scores; within a band, more trouble has a higher score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from heliograph.monitor.model import Health
from heliograph.monitor.text import duration_text

__all__ = [
    "BY_STATE",
    "JUDGED",
    "Behaviour",
    "Evidence",
    "Judgement",
    "describe",
    "is_stopped",
    "judge_receiver",
    "seen",
]

MISSING_RATIO = 0.005
"""A receiver is lossy from this share of packets that were missing at first."""
QUEUE_FILL = 0.8
LAG_SECONDS = 0.25
LAG_MESSAGES = 2
"""A lag of one message is normal: that message is in flight."""


class Behaviour(StrEnum):
    """Class of a receiver."""

    OK = "ok"
    RECOVERING = "recovering"  # its lag falls
    LOSSY = "lossy"  # the network loses packets to it, or messages are lost
    FALLING_BEHIND = "falling_behind"  # it delivers, but its application is too slow
    STALLED = "stalled"  # messages wait and it delivers none
    STOPPED = "stopped"  # closed, dead, or its heartbeat stopped
    UNKNOWN = "unknown"  # not known yet, or a class of a later version

    @property
    def words(self) -> str:
        """The class as text for tables and sentences; "-" if unknown."""
        return "-" if self is Behaviour.UNKNOWN else self.replace("_", " ")


JUDGED = tuple(behaviour for behaviour in Behaviour if behaviour is not Behaviour.UNKNOWN)
"""The classes a judgement can have."""
BY_STATE = (
    Behaviour.UNKNOWN,
    Behaviour.OK,
    Behaviour.FALLING_BEHIND,
    Behaviour.STALLED,
    Behaviour.STOPPED,
    Behaviour.RECOVERING,
)
"""The class a source reports, indexed by the value of the statistic `state`."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Measurements of a receiver over an interval."""

    health: Health
    health_reason: str
    live: bool
    """True while the receiver is open."""
    delivered: int
    """Messages delivered in the interval."""
    lost: int
    """Messages lost in the interval."""
    lag_messages: int
    lag_seconds: float | None
    """None if nothing was sent in the interval."""
    lag_before: int | None
    """Lag in messages at the start of the interval; None if there is no earlier snapshot."""
    queue_fill: float
    """0 to 1."""
    queue_full: int
    """Number of times in the interval that delivery waited for the application."""
    missing_ratio: float
    """Packets that were missing at first, per packet of the stream, 0 to 1."""
    nak_share: float | None
    """This receiver's share of all requests on the stream, 0 to 1; None if there were no requests."""
    forecast_ns: int | None = None
    """Time until the packets it needs leave its source's history, by the source's forecast, ns. 0: they stay; None:
    unknown."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A class, a score (0 is best) and the evidence as a sentence."""

    behaviour: Behaviour
    badness: float
    reason: str
    looks: int = 1
    """Number of observations used; 1 for a judgement of one interval."""
    since_ns: int = 0
    """Time the class was first seen, wall clock, ns; 0 for a judgement of one interval."""


def _percent(ratio: float) -> str:
    return f"{ratio * 100:.1f} %" if ratio < 0.995 else f"{ratio * 100:.0f} %"


def _messages(count: int) -> str:
    return f"{count} message" if count == 1 else f"{count} messages"


def _behind(evidence: Evidence) -> str:
    seconds = f" ({evidence.lag_seconds:.1f} s)" if evidence.lag_seconds else ""
    return f"{_messages(evidence.lag_messages)}{seconds} behind"


def _queue(evidence: Evidence) -> str:
    if evidence.queue_fill >= QUEUE_FILL:
        return f"queue {evidence.queue_fill * 100:.0f} % full"
    return f"queue was full {evidence.queue_full} times" if evidence.queue_full else ""


def _losses(evidence: Evidence) -> str:
    return f"lost {_messages(evidence.lost)}" if evidence.lost else ""


def _repairs(evidence: Evidence) -> str:
    if evidence.nak_share is None or not evidence.missing_ratio:
        return ""
    return f"sends {_percent(evidence.nak_share)} of all requests"


def _forecast(evidence: Evidence) -> str:
    if not evidence.forecast_ns:
        return ""
    return f"packets it needs leave the history in {duration_text(evidence.forecast_ns)}"


def _sentence(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def judge_receiver(evidence: Evidence) -> Judgement:
    """Class, score and reason of a receiver from one interval."""
    return describe(seen(evidence), evidence)


def seen(evidence: Evidence) -> Behaviour:
    """The class of a receiver from one interval."""
    if is_stopped(evidence):
        return Behaviour.STOPPED
    for behaviour, shows in _SHOWS:
        if shows(evidence):
            return behaviour
    return Behaviour.OK


def is_stopped(evidence: Evidence) -> bool:
    """Whether the receiver is closed or its instance does not run."""
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


def describe(behaviour: Behaviour, evidence: Evidence) -> Judgement:
    """Score and reason of a receiver of a class, from the evidence."""
    return _DESCRIBE[behaviour](evidence)


def _describe_ok(evidence: Evidence) -> Judgement:
    lag = min(1.0, (evidence.lag_seconds or 0.0) / LAG_SECONDS)
    strain = min(1.0, max(evidence.queue_fill, evidence.missing_ratio / MISSING_RATIO, lag))
    return Judgement(Behaviour.OK, 99.0 * strain, _sentence("keeps up", _repairs(evidence), _forecast(evidence)))


def _describe_stopped(evidence: Evidence) -> Judgement:
    if evidence.health is Health.CLOSED or evidence.health is Health.LIVE:
        return Judgement(Behaviour.STOPPED, 0.0, _sentence("closed", _losses(evidence)))
    return Judgement(Behaviour.STOPPED, 900.0, _sentence(evidence.health_reason, _losses(evidence)))


def _describe_stalled(evidence: Evidence) -> Judgement:
    reason = _sentence(
        f"delivers nothing, {_behind(evidence)}", _queue(evidence), _losses(evidence), _forecast(evidence)
    )
    return Judgement(Behaviour.STALLED, 850.0, reason)


def _describe_falling_behind(evidence: Evidence) -> Judgement:
    lag = evidence.lag_seconds or 0.0
    badness = 600.0 + 50.0 * evidence.queue_fill + min(49.0, 10.0 * lag) + (100.0 if evidence.lost else 0.0)
    reason = _sentence(
        _queue(evidence), _behind(evidence) if evidence.lag_messages else "", _losses(evidence), _forecast(evidence)
    )
    return Judgement(Behaviour.FALLING_BEHIND, badness, reason)


def _describe_lossy(evidence: Evidence) -> Judgement:
    badness = (700.0 if evidence.lost else 400.0) + min(99.0, 1000.0 * evidence.missing_ratio)
    missing = f"loses {_percent(evidence.missing_ratio)} of packets" if evidence.missing_ratio >= 0.0005 else ""
    reason = _sentence(_losses(evidence), missing, _repairs(evidence), _forecast(evidence))
    return Judgement(Behaviour.LOSSY, badness, reason)


def _describe_recovering(evidence: Evidence) -> Judgement:
    before = f", {evidence.lag_before} before" if evidence.lag_before is not None else ""
    reason = _sentence(f"catching up: {_behind(evidence)}{before}", _queue(evidence))
    return Judgement(Behaviour.RECOVERING, 200.0 + min(99.0, 10.0 * (evidence.lag_seconds or 0.0)), reason)


_DESCRIBE: Mapping[Behaviour, Callable[[Evidence], Judgement]] = {
    Behaviour.OK: _describe_ok,
    Behaviour.RECOVERING: _describe_recovering,
    Behaviour.LOSSY: _describe_lossy,
    Behaviour.FALLING_BEHIND: _describe_falling_behind,
    Behaviour.STALLED: _describe_stalled,
    Behaviour.STOPPED: _describe_stopped,
}
