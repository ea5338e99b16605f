"""Classifies receivers by their behaviour and states the reason in a sentence.

The classification uses changes, not absolute sizes: a receiver 10 000 messages behind that gains is healthy, one that
is 50 messages behind and loses ground is not. `judge_receiver` uses one interval; `window` uses the last ten
observations and the same words. Both give a class, a score that sorts a fleet worst first, and the evidence as a
sentence. Each class has its own band of scores; within a band, more trouble has a higher score. The rules are in C
(`engine/binding/judge.c`), for whole fleets are judged each second; the words are here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from heliograph.monitor import _judge, judging
from heliograph.monitor.model import Health
from heliograph.monitor.text import duration_text

__all__ = [
    "BY_STATE",
    "CLASSES",
    "JUDGED",
    "Behaviour",
    "Evidence",
    "Judgement",
    "end_of",
    "judge_receiver",
    "judged",
    "put",
    "reason_of",
]


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


CLASSES = tuple(map(Behaviour, _judge.CLASSES))
"""The classes by their numbers in the judge."""
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
    if evidence.queue_fill >= _judge.QUEUE_FILL:
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
    found = judging.rows(1)
    put(found[0], evidence)
    _judge.Windows().judge(found, 0)
    return judged(found[0], evidence)


def put(row: np.void, evidence: Evidence) -> None:
    """Write the evidence of one receiver into its row."""
    before = evidence.lag_before
    row["end"] = end_of(evidence.health, evidence.live)
    for name in ("delivered", "lost", "queue_full", "queue_fill", "missing_ratio"):
        row[name] = getattr(evidence, name)
    row["in_flight"], row["waiting"] = judging.parts(evidence.lag_messages)
    row["in_flight_before"], row["waiting_before"] = judging.parts(before or 0)
    row["has_before"] = before is not None
    row["lag_seconds"] = math.nan if evidence.lag_seconds is None else evidence.lag_seconds


def end_of(health: Health, live: bool) -> int:
    """Whether a receiver runs, is closed, or its instance is in trouble."""
    if health is Health.LIVE:
        return _judge.RUNS if live else _judge.CLOSED
    return _judge.CLOSED if health is Health.CLOSED else _judge.ENDED


def judged(row: np.void, evidence: Evidence) -> Judgement:
    """Return the judgement in a row.

    Args:
        row: The row after it was judged.
        evidence: The evidence that was put into it.
    """
    behaviour = CLASSES[row["behaviour"]]
    whole = replace(
        evidence,
        delivered=int(row["delivered"]),
        lost=int(row["lost"]),
        lag_before=int(row["in_flight_before"]) + int(row["waiting_before"]) if row["has_before"] else None,
        queue_full=int(row["queue_full"]),
        missing_ratio=float(row["missing_ratio"]),
    )
    reason = reason_of(behaviour, whole)
    return Judgement(behaviour, float(row["badness"]), reason, int(row["looks"]), int(row["since_ns"]))


def reason_of(behaviour: Behaviour, evidence: Evidence) -> str:
    """Return the evidence for a class as a sentence."""
    return _REASONS[behaviour](evidence)


def _of_ok(evidence: Evidence) -> str:
    return _sentence("keeps up", _repairs(evidence), _forecast(evidence))


def _of_stopped(evidence: Evidence) -> str:
    is_closed = evidence.health is Health.CLOSED or evidence.health is Health.LIVE
    return _sentence("closed" if is_closed else evidence.health_reason, _losses(evidence))


def _of_stalled(evidence: Evidence) -> str:
    return _sentence(f"delivers nothing, {_behind(evidence)}", _queue(evidence), _losses(evidence), _forecast(evidence))


def _of_falling_behind(evidence: Evidence) -> str:
    return _sentence(
        _queue(evidence), _behind(evidence) if evidence.lag_messages else "", _losses(evidence), _forecast(evidence)
    )


def _of_lossy(evidence: Evidence) -> str:
    missing = f"loses {_percent(evidence.missing_ratio)} of packets" if evidence.missing_ratio >= 0.0005 else ""
    return _sentence(_losses(evidence), missing, _repairs(evidence), _forecast(evidence))


def _of_recovering(evidence: Evidence) -> str:
    before = f", {evidence.lag_before} before" if evidence.lag_before is not None else ""
    return _sentence(f"catching up: {_behind(evidence)}{before}", _queue(evidence))


_REASONS: Mapping[Behaviour, Callable[[Evidence], str]] = {
    Behaviour.OK: _of_ok,
    Behaviour.RECOVERING: _of_recovering,
    Behaviour.LOSSY: _of_lossy,
    Behaviour.FALLING_BEHIND: _of_falling_behind,
    Behaviour.STALLED: _of_stalled,
    Behaviour.STOPPED: _of_stopped,
}
