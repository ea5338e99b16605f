"""Decisions under other options: those of a log, recorded and made again, as figures of both.

A replay takes the recorded inputs. Another rate would have changed the loss, the lag and the requests that followed, so
the result tells how the policies judge, not how the network would have been.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heliograph.engine import catalogue
from heliograph.monitor.lab import replay

__all__ = ["MOST_STEPS", "OPTIONS", "Side", "Step", "WhatIf", "fault", "ranges", "whatif"]

OPTIONS = (
    "rate_policy",
    "rate",
    "rate_min",
    "loss_high",
    "loss_low",
    "rate_receivers",
    "slow_action",
    "slow_loss",
    "slow_lag",
    "slow_dwell",
    "storm_time",
    "cutoff_time",
)
"""Options of a transmitter that decide about its rate, its slow receivers and its storms."""
MOST_STEPS = 600
"""Largest number of steps of a rate; of more, the lowest and the highest of each stretch are kept."""
_RESTRICTED = frozenset({"shed", "suspend_naks", "suspend", "expel"})
_ENDS = frozenset({"resume", "readmit"})
_FOR_EVER = 1 << 62

Numbers = tuple[int, ...] | None
_Row = tuple[int, int, int, Numbers, str, Numbers, str, bool]
"""A decision of `_lab.rerun`: monotonic and wall time in ns, kind, recorded numbers and why, made ones, agreement."""


@dataclass(frozen=True, slots=True)
class Step:
    """A rate from a moment on."""

    time_ns: int
    """Wall clock in ns since 1970."""
    rate: int
    """Bytes per second; 0: no limit."""


@dataclass(frozen=True, slots=True)
class Side:
    """The decisions of one side: those recorded, or those made again."""

    steps: tuple[Step, ...]
    """The rate decided, oldest first, at most `MOST_STEPS`."""
    mean_rate: float | None
    """Bytes per second over the time with a limit; None: there was none."""
    lowest_rate: int | None
    highest_rate: int | None
    unlimited_s: float
    """Time without a limit, since the first decision."""
    lowered: int
    raised: int
    restricted_s: float
    """Time for which receivers were restricted, as decided: the sum over them, in seconds."""
    actions: int
    """Decisions about receivers."""
    storms: int
    cut_off_s: float


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A log replayed."""

    instance: str
    stream: str
    policy: str
    intervals: int
    seconds: float
    """From the first decision to the last one."""
    recorded: Side
    made: Side
    differing: int
    """Decisions that are not the same, or that one side lacks."""
    first: replay.Decision | None
    """The first of them."""
    is_damaged: bool


def ranges(name: str) -> str:
    """Return the values that an option can have, as text."""
    option = catalogue.options()[name]
    if option.choices:
        return ", ".join(option.choices)
    unit = f" {option.unit}" if option.unit else ""
    return f"{option.low:,g} to {option.high:,g}{unit}"


def fault(name: str, text: str) -> str:
    """Return what is wrong with the value of an option, naming both; empty: nothing, or only in combination."""
    option = catalogue.options()[name]
    if option.choices:
        return "" if text in option.choices else f'{name} "{text[:40]}" is none of {ranges(name)}'
    try:
        value = float(text) if option.type == "float" else int(text)
        is_possible = option.low is not None and option.high is not None and option.low <= value <= option.high
    except ValueError:
        is_possible = False
    return "" if is_possible else f'{name} "{text[:40]}" is not a number from {ranges(name)}'


def whatif(log: Path, options: Mapping[str, str]) -> WhatIf:
    """Replay a log with other options.

    Args:
        log: A file that the option ``decision_log`` wrote.
        options: Values by the names of options, over the recorded ones.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no decision log, or an option is unknown, out of range or contradicts another.
    """
    result = replay.rerun(log, [f"{name}={value}" for name, value in options.items()])
    rows: Sequence[_Row] = result["decisions"]
    differing = [row for row in rows if not row[7]]
    return WhatIf(
        instance=result["instance"],
        stream=result["stream"],
        policy=result["policy"],
        intervals=result["intervals"],
        seconds=(rows[-1][0] - rows[0][0]) / 1e9 if rows else 0.0,
        recorded=_side([(now, wall, kind, numbers) for now, wall, kind, numbers, _, _, _, _ in rows]),
        made=_side([(now, wall, kind, numbers) for now, wall, kind, _, _, numbers, _, _ in rows]),
        differing=len(differing),
        first=replay.decision(differing[0], rows[0][0]) if differing else None,
        is_damaged=result["damaged"],
    )


def _side(rows: Sequence[tuple[int, int, int, Numbers]]) -> Side:
    steps: list[tuple[int, Step]] = []
    lowered = raised = actions = storms = 0
    cut_off_ns = 0
    for now, wall, kind, numbers in rows:
        if numbers is None:
            continue
        if kind == replay.RATE:
            rate, _, state = numbers[:3]
            lowered += state == 1
            raised += state == 2
            if not steps or steps[-1][1].rate != rate:
                steps.append((now, Step(wall, rate)))
        elif kind == replay.CONSUMER:
            actions += 1
        elif kind == replay.STORM:
            storms += numbers[0] == 1
            cut_off_ns += numbers[1]
    end = rows[-1][0] if rows else 0
    ends = [*(now for now, _ in steps[1:]), end]
    spans = [(step.rate, (after - now) / 1e9) for (now, step), after in zip(steps, ends, strict=False)]
    limited = sum(seconds for rate, seconds in spans if rate)
    rates = [rate for rate, _ in spans if rate]
    weighted = sum(rate * seconds for rate, seconds in spans)
    return Side(
        steps=tuple(_fewer([step for _, step in steps])),
        mean_rate=weighted / limited if limited else float(rates[-1]) if rates else None,
        lowest_rate=min(rates, default=None),
        highest_rate=max(rates, default=None),
        unlimited_s=sum(seconds for rate, seconds in spans if not rate),
        lowered=lowered,
        raised=raised,
        restricted_s=_restricted(rows, end),
        actions=actions,
        storms=storms,
        cut_off_s=cut_off_ns / 1e9,
    )


def _restricted(rows: Sequence[tuple[int, int, int, Numbers]], end: int) -> float:
    """Return the seconds for which receivers were restricted, summed over the receivers."""
    names = ("none", *catalogue.actions())
    since: dict[int, tuple[int, int]] = {}
    total = 0

    def close(receiver: int, now: int) -> None:
        nonlocal total
        if receiver in since:
            begin, until = since.pop(receiver)
            total += max(0, min(now, until) - begin)

    for now, _, kind, numbers in rows:
        if kind != replay.CONSUMER or numbers is None or len(numbers) < 7:
            continue
        receiver, action, duration = numbers[0], numbers[1], numbers[6]
        name = names[action] if action < len(names) else ""
        if name in _RESTRICTED:
            if receiver in since and since[receiver][1] < now:
                close(receiver, now)
            begin = since[receiver][0] if receiver in since else now
            until = now + duration if 0 < duration < _FOR_EVER else now + _FOR_EVER
            since[receiver] = (begin, until)
        elif name in _ENDS:
            close(receiver, now)
    for receiver in list(since):
        close(receiver, end)
    return total / 1e9


def _fewer(steps: Sequence[Step]) -> Sequence[Step]:
    """Keep the lowest and the highest step of each stretch, in their order, where there are too many."""
    if len(steps) <= MOST_STEPS:
        return steps
    size = -(-2 * len(steps) // MOST_STEPS)
    found: list[Step] = []
    for at in range(0, len(steps), size):
        part = steps[at : at + size]
        ends = (min(part, key=lambda step: step.rate), max(part, key=lambda step: step.rate))
        found += sorted(set(ends), key=lambda step: step.time_ns)
    return found
