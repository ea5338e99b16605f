"""The alerts of the present: the form in which an evaluator of rules gives them to whoever shows them.

The evaluator is an entry point of the group ``heliograph.alerts``, so that pages show alerts without knowledge of the
rules' language.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Snapshot

__all__ = ["GROUP", "Evaluator", "Held", "Judgement", "Reading", "Rule", "Span", "State", "load_evaluator"]

GROUP = "heliograph.alerts"


class State(StrEnum):
    """The state of an alert over all its objects, the worst first."""

    FIRING = "firing"
    PENDING = "pending"
    """The condition holds, but not yet long enough."""
    QUIET = "quiet"
    EMPTY = "empty"
    """No object has a value."""
    UNKNOWN = "unknown"
    """Live samples cannot show it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One alert."""

    name: str
    """As receivers of notifications see it."""
    group: str
    severity: str
    holds: float
    """Seconds that the condition holds before the alert fires."""
    keep: float
    """Seconds that the alert stays after the condition has ended."""
    condition: str
    comparison: str
    """Sign between the value and the limit where the condition holds. Empty: the condition always holds."""
    limit: float
    unit: str
    """Unit of value and limit; ``%``: a share of 1."""
    runbook: str = ""
    """The page for the on-call engineer, Markdown. Empty: there is none."""
    runbook_url: str = ""
    hindrance: str = ""
    """Why live samples cannot show whether the condition holds. Empty: they can."""

    def nearness(self, value: float) -> float:
        """Return an order of values: the greatest is the nearest to the condition, or the farthest inside it."""
        return -value if self.comparison in ("<", "==") else value


@dataclass(frozen=True, slots=True)
class Span:
    """A time without interruption, wall clock in ns."""

    begin_ns: int
    end_ns: int | None
    """None: it lasts at the newest sample."""
    is_whole: bool = True
    """False: it may have begun before the oldest kept sample."""


@dataclass(frozen=True, slots=True)
class Held:
    """One object of an alert whose condition held within the kept time."""

    rule: str
    labels: Mapping[str, str]
    """Labels of the object, without those of the place of evaluation."""
    condition: Sequence[Span]
    """When the condition held, oldest first."""
    fired: Sequence[Span] = ()
    """When the alert fired, oldest first."""

    @property
    def is_firing(self) -> bool:
        """Whether the alert fires at the newest sample."""
        return bool(self.fired) and self.fired[-1].end_ns is None

    @property
    def is_pending(self) -> bool:
        """Whether the condition holds at the newest sample, not yet long enough."""
        return not self.is_firing and self.condition[-1].end_ns is None


@dataclass(frozen=True, slots=True)
class Reading:
    """The value of an object at the newest sample."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """The alerts at one moment."""

    time_ns: int = 0
    """Time of the newest evaluated sample, wall clock in ns; 0: none yet."""
    oldest_ns: int = 0
    """Time of the oldest kept sample."""
    held: Sequence[Held] = ()
    readings: Mapping[str, Sequence[Reading]] = field(default_factory=dict)
    """By rule: values, the nearest to the condition first."""
    seen: Collection[str] = ()
    """Rules with data of objects that they are about."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """By rule: why it could not be evaluated."""

    def of(self, rule: Rule) -> list[Held]:
        """Return the objects of a rule whose condition held within the kept time."""
        return [one for one in self.held if one.rule == rule.name]

    def state(self, rule: Rule) -> State:
        """Return the state of a rule."""
        if rule.hindrance or rule.name in self.errors or not self.time_ns:
            return State.UNKNOWN
        held = self.of(rule)
        if any(one.is_firing for one in held):
            return State.FIRING
        if any(one.is_pending for one in held):
            return State.PENDING
        return State.QUIET if self.readings.get(rule.name) else State.EMPTY


class Evaluator(Protocol):
    """Judges the rules over the newest samples. One thread calls it."""

    rules: Sequence[Rule]
    step: float
    """Seconds between two samples that it needs."""
    kept: float
    """Seconds of samples that it keeps."""

    def record(self, snapshot: Snapshot) -> None:
        """Keep what the rules need of a snapshot."""

    def evaluate(self) -> Judgement:
        """Judge all rules at the newest recorded snapshot.

        Raises:
            UserError: The rules cannot be evaluated at all.
        """


def load_evaluator(settings: Path | None = None, interval: float = 0.0) -> Evaluator:
    """Return the evaluator of this installation.

    Args:
        settings: File with thresholds and severities; None: that of the package.
        interval: Seconds between the snapshots that it will get.

    Raises:
        UserError: None is installed, or the settings are wrong.
    """
    found = list(entry_points(group=GROUP))
    if not found:
        raise UserError("this installation has no evaluator of alerts: install heliograph again")
    evaluator: Evaluator = found[0].load()(settings, interval)
    return evaluator
