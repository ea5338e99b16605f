"""Each rule with its state and the reason in words: pure functions over a `Board`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heliograph.dashboards.live.alerting import Board
from heliograph.dashboards.live.pages import numbers
from heliograph.monitor.alerts import Held, Judgement, Reading, Rule, State

__all__ = ["SEVERITIES", "RuleRow", "figure", "limit", "named", "rule_rows"]

SEVERITIES = ("critical", "warning", "info", "none")
_ORDER = tuple(State)
_NAMED = ("node", "topic", "receiver", "host", "module", "stream")
"""Labels that name an object; the others tell its values apart."""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule at one moment."""

    rule: Rule
    state: State
    reason: str
    """Since when it fires, or why it does not fire."""
    held: Sequence[Held]
    """Its objects whose condition held lately; those that fire first, then the pending ones."""
    readings: Sequence[Reading]
    """The values of its objects, the nearest to the condition first."""

    @property
    def worst(self) -> Mapping[str, str] | None:
        """The labels of the object that comes first; None: there is none."""
        if self.held and self.state in (State.FIRING, State.PENDING):
            return self.held[0].labels
        return self.readings[0].labels if self.readings else None


def rule_rows(board: Board) -> list[RuleRow]:
    """Return all rules, the worst first."""
    rows = [_row(rule, board) for rule in board.rules]
    return sorted(rows, key=lambda row: (_ORDER.index(row.state), SEVERITIES.index(row.rule.severity), row.rule.name))


def _row(rule: Rule, board: Board) -> RuleRow:
    judgement = board.judgement
    state = judgement.state(rule)
    held = sorted(judgement.of(rule), key=lambda one: (not one.is_firing, not one.is_pending, named(one.labels)))
    readings = judgement.readings.get(rule.name, ())
    return RuleRow(rule, state, _reason(rule, state, held, readings, board), held, readings)


def _reason(rule: Rule, state: State, held: Sequence[Held], readings: Sequence[Reading], board: Board) -> str:
    judgement = board.judgement
    if state is State.UNKNOWN:
        return rule.hindrance or judgement.errors.get(rule.name) or "the rules have not been judged yet"
    if state is State.FIRING:
        return _fires(rule, held[0], sum(one.is_firing for one in held), judgement.time_ns)
    if state is State.PENDING:
        return _waits(rule, held[0], board)
    if state is State.EMPTY:
        if rule.name not in judgement.seen:
            return "no object of its kind is in reach"
        return "no object has a value: too few samples, too few messages, or below the least value of the condition"
    return _quiet(rule, held, readings[0], judgement)


def _fires(rule: Rule, one: Held, count: int, now_ns: int) -> str:
    span = one.fired[-1]
    since = numbers.seconds((now_ns - span.begin_ns) / 1e9)
    text = f"fires for {since} or longer" if not span.is_whole else f"fires for {since}"
    if count > 1:
        text += f"; {count} objects"
    ended = one.condition[-1].end_ns
    if ended is not None:
        ago = numbers.seconds((now_ns - ended) / 1e9)
        text += f"; its condition ended {ago} ago, and it stays for {numbers.seconds(rule.keep)}"
    return text


def _waits(rule: Rule, one: Held, board: Board) -> str:
    span = one.condition[-1]
    held = (board.judgement.time_ns - span.begin_ns) / 1e9
    text = f"its condition holds for {numbers.seconds(held)}{'' if span.is_whole else ' or longer'}"
    text += f", and it fires after {numbers.seconds(rule.holds)}"
    if rule.holds > board.kept:
        text += f"; this page keeps {numbers.seconds(board.kept)} and cannot see it fire"
    return text


def _quiet(rule: Rule, held: Sequence[Held], worst: Reading, judgement: Judgement) -> str:
    shown = figure(worst.value, rule.unit)
    if _holds(rule, worst.value):
        text = f"{shown} passes the threshold, but another part of the condition does not hold"
    elif worst.value == rule.limit:
        text = f"{shown}, not {'above' if '>' in rule.comparison else 'below'} the threshold"
    else:
        distance = abs(worst.value - rule.limit)
        apart = f"{distance * 100:.3g} points" if rule.unit == "%" else figure(distance)
        text = f"{shown}, {apart} {'below' if worst.value < rule.limit else 'above'} the threshold"
    ended = [(span.end_ns, span) for one in held for span in one.condition if span.end_ns is not None]
    if ended and rule.holds:
        end_ns, last = max(ended, key=lambda item: item[0])
        long = numbers.seconds((end_ns - last.begin_ns) / 1e9)
        ago = numbers.seconds((judgement.time_ns - end_ns) / 1e9)
        text += f"; its condition held for {long} until {ago} ago, and it needs {numbers.seconds(rule.holds)}"
    return text


def _holds(rule: Rule, value: float) -> bool:
    return {
        ">": value > rule.limit,
        ">=": value >= rule.limit,
        "<": value < rule.limit,
        "<=": value <= rule.limit,
        "==": value == rule.limit,
    }.get(rule.comparison, False)


def named(found: Mapping[str, str], *, short: bool = False) -> str:
    """Return the object of some labels as text.

    Args:
        found: The labels.
        short: Leave out the stream of a named object.
    """
    names = [found[name] for name in _NAMED if found.get(name)]
    if short and len(names) > 1 and found.get("stream"):
        names.remove(found["stream"])
    rest = [f"{name} {value}" for name, value in sorted(found.items()) if name not in _NAMED and value]
    return " · ".join([*names, *rest]) or "this host"


def figure(value: float, unit: str = "") -> str:
    """Return a value with its unit."""
    if not math.isfinite(value):
        return "not finite"
    if unit == "%":
        return f"{value * 100:.3g} %"
    number = f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"
    return f"{number} {unit}" if unit else number


def limit(rule: Rule) -> str:
    """Return the threshold with its sign, such as ``> 80 %``; nothing for a rule that always fires."""
    return f"{rule.comparison} {figure(rule.limit, '%' if rule.unit == '%' else '')}" if rule.comparison else ""
