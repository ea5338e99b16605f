"""Measures: one number of the curves of a run, to be held against a bound.

A measure sees the runs of all variants of its scenario. It says whether its number should be at most or at least the
bound. A result that never happened is infinity (where more is better, minus infinity), so it never passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean, pstdev
from typing import Literal

from heliograph.engine import _lab
from heliograph.monitor.lab.curves import Curves, Event

__all__ = ["MEASURES", "Measure", "check", "measure", "passes"]

Runs = Mapping[str, Curves]
"""Curves by variant."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How to get the number. needs: keys a criterion must give; may: those it may, with their defaults."""

    name: str
    unit: str
    better: Literal["less", "more"]
    help: str
    needs: tuple[str, ...]
    may: Mapping[str, float | str]
    work: Callable[..., float]


_TEXTS = ("event",)
"""Values that are texts; all others are numbers."""
MEASURES: dict[str, Measure] = {}
"""Every measure by name."""


def _measure(
    unit: str, better: Literal["less", "more"], *needs: str, **may: float | str
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    def add(work: Callable[..., float]) -> Callable[..., float]:
        name = work.__name__.removeprefix("_")
        MEASURES[name] = Measure(name, unit, better, (work.__doc__ or "").strip(), needs, may, work)
        return work

    return add


def check(name: str, values: Mapping[str, float | str]) -> None:
    """Whether there is such a measure and it takes these values.

    Raises:
        ValueError: the sentence says what is allowed.
    """
    known = MEASURES.get(name)
    if known is None:
        raise ValueError(f'there is no measure "{name}"; there are: {", ".join(MEASURES)}')
    allowed = (*known.needs, *known.may)
    for key, value in values.items():
        if key not in allowed:
            raise ValueError(f'measure "{name}" has no value "{key}"; it has: {", ".join(allowed) or "none"}')
        if (key in _TEXTS) != isinstance(value, str):
            raise ValueError(f'{key} of measure "{name}" is a {"text" if isinstance(value, int | float) else "number"}')
    for key in known.needs:
        if key not in values:
            raise ValueError(f'measure "{name}" needs the value "{key}"')


def measure(name: str, runs: Runs, values: Mapping[str, float | str]) -> float:
    """The number of some runs."""
    known = MEASURES[name]
    return known.work(runs, **{**known.may, **values})


def passes(name: str, value: float, bound: float | None) -> bool:
    """Whether a number is on the right side of a bound; without a bound, whether there is one."""
    if math.isnan(value):
        return False
    if bound is None:
        return math.isfinite(value)
    return value <= bound if MEASURES[name].better == "less" else value >= bound


# ---- what several need ----


def _only(runs: Runs) -> Curves:
    return next(iter(runs.values()))


def _part(curves: Curves, values: Sequence[float], begin: float, end: float = 0.0) -> list[float]:
    """The rows after the moment `begin` up to `end` (0: to the last)."""
    return list(values[curves.index(begin) : curves.index(end) if end else None])


def _rate(curves: Curves, source: float) -> list[float]:
    """The rate in force, bytes per second."""
    return curves.column(f"source{int(source)}.rate_limit")


def _loss(curves: Curves, first: int, end: int) -> float:
    """Share of packets first seen missing in rows `first` to `end`, by the group of receivers that misses most."""
    sent = sum(_grown(curves, f"source{i}.packets_sent", first, end) for i in range(len(curves.plan.sources)))
    return max(
        _grown(curves, f"group{i}.packets_missed", first, end) / (group.count * sent) if sent else 0.0
        for i, group in enumerate(curves.plan.receivers)
    )


def _grown(curves: Curves, name: str, first: int, end: int) -> float:
    values = curves.column(name)
    return values[end - 1] - (values[first - 1] if first else 0.0)


def _stretches(values: Sequence[float], apart: int) -> int:
    """How many stretches of values above 0 there are; fewer than `apart` zeros do not part them."""
    count, quiet = 0, apart
    for value in values:
        if value > 0:
            count += quiet >= apart
            quiet = 0
        else:
            quiet += 1
    return count


def _told(curves: Curves, name: str, begin: float = 0.0) -> list[Event]:
    return [event for event in curves.events if event.name == name and event.at >= begin]


# ---- the rate after a step ----


@_measure("control intervals", "less", "at", source=0, pipe=0, within=0.1)
def _settle_intervals(runs: Runs, at: float, source: float, pipe: float, within: float) -> float:
    """Intervals from a step of the bottleneck until the rate is within a tenth of it."""
    curves = _only(runs)
    target = curves.column(f"pipe{int(pipe)}.rate")
    first = curves.index(at)
    for i, rate in enumerate(_rate(curves, source)[first:]):
        if abs(rate - target[first + i]) <= within * target[first + i]:
            return float(i)
    return math.inf


@_measure("episodes", "less", "at", pipe=0, intervals=20, apart=3)
def _overshoots(runs: Runs, at: float, pipe: float, intervals: float, apart: float) -> float:
    """Episodes of loss at the bottleneck in the first intervals after a step."""
    curves = _only(runs)
    dropped = curves.per_second(f"pipe{int(pipe)}.dropped")
    first = curves.index(at)
    return float(_stretches(dropped[first : first + int(intervals)], int(apart)))


@_measure("control intervals", "less", "at", below=0.01, span=20)
def _loss_gone_intervals(runs: Runs, at: float, below: float, span: float) -> float:
    """Intervals from a step until the loss, over the next `span` intervals, is below a threshold."""
    curves = _only(runs)
    begin = curves.index(at)
    for i in range(begin, len(curves.time) - int(span) + 1):
        if _loss(curves, i, i + int(span)) <= below:
            return float(i - begin)
    return math.inf


@_measure("share of the bottleneck", "more", "begin", "end", source=0, pipe=0)
def _recovered_share(runs: Runs, begin: float, end: float, source: float, pipe: float) -> float:
    """Highest rate, as a share of the bottleneck, that is reached after it has widened again."""
    curves = _only(runs)
    rates = _part(curves, _rate(curves, source), begin, end)
    return max(rates, default=0.0) / _part(curves, curves.column(f"pipe{int(pipe)}.rate"), begin)[0]


# ---- a rate that is settled ----


@_measure("", "less", "begin", end=0.0, source=0)
def _variation(runs: Runs, begin: float, end: float, source: float) -> float:
    """Coefficient of variation of the rate: its standard deviation over its mean."""
    curves = _only(runs)
    rates = _part(curves, _rate(curves, source), begin, end)
    return pstdev(rates) / fmean(rates) if fmean(rates) else math.inf


@_measure("share of the bottleneck", "more", "begin", end=0.0, pipe=0)
def _utilisation(runs: Runs, begin: float, end: float, pipe: float) -> float:
    """Share of the bottleneck that is used, on average."""
    curves = _only(runs)
    used = _part(curves, curves.per_second(f"pipe{int(pipe)}.bytes"), begin, end)
    return fmean(used) / fmean(_part(curves, curves.column(f"pipe{int(pipe)}.rate"), begin, end))


@_measure("share of packets", "less", "begin", end=0.0)
def _loss_share(runs: Runs, begin: float, end: float) -> float:
    """Share of packets missed at first, by the receivers that miss most."""
    curves = _only(runs)
    return _loss(curves, curves.index(begin), curves.index(end) if end else len(curves.time))


@_measure("share of the rate", "less", "begin", end=0.0, source=0)
def _rate_fall(runs: Runs, begin: float, end: float, source: float) -> float:
    """How far the rate falls below where it was."""
    curves = _only(runs)
    rates = _part(curves, _rate(curves, source), begin, end)
    return 1 - min(rates) / rates[0] if rates[0] else math.inf


@_measure("", "less", "begin", source=0)
def _oscillation_growth(runs: Runs, begin: float, source: float) -> float:
    """Standard deviation of the rate in the last third of the time over that in the first, each over its mean."""
    curves = _only(runs)
    rates = _part(curves, _rate(curves, source), begin)
    third = len(rates) // 3
    first, last = (pstdev(part) / (fmean(part) or 1.0) for part in (rates[:third], rates[-third:]))
    return last / first if first else (0.0 if last == 0 else math.inf)


# ---- several ----


@_measure("", "more", "begin", end=0.0)
def _jain(runs: Runs, begin: float, end: float) -> float:
    """Jain's index of what the sources sent: 1 when all sent the same."""
    curves = _only(runs)
    sent = [
        fmean(_part(curves, curves.per_second(f"source{i}.bytes_sent"), begin, end))
        for i in range(len(curves.plan.sources))
    ]
    squares = sum(rate * rate for rate in sent)
    return sum(sent) ** 2 / (len(sent) * squares) if squares else 0.0


@_measure("share of the bottleneck", "more", "begin", end=0.0, pipe=0)
def _tcp_share(runs: Runs, begin: float, end: float, pipe: float) -> float:
    """Share of the bottleneck that the TCP flows get."""
    curves = _only(runs)
    got = [fmean(_part(curves, curves.per_second(f"tcp{i}.acked"), begin, end)) for i in range(len(curves.plan.tcps))]
    return sum(got) / fmean(_part(curves, curves.column(f"pipe{int(pipe)}.rate"), begin, end))


@_measure("share of the mean", "less", "begin", end=0.0, source=0)
def _spread(runs: Runs, begin: float, end: float, source: float) -> float:
    """How far the settled rate of a variant is from the mean of all variants, at most."""
    settled = [fmean(_part(curves, _rate(curves, source), begin, end)) for curves in runs.values()]
    mean = fmean(settled)
    return max(abs(rate / mean - 1) for rate in settled) if mean else math.inf


# ---- receivers ----


@_measure("messages", "less")
def _lost_messages(runs: Runs) -> float:
    """Messages lost for good, all receivers and variants together."""
    return float(sum(receiver.lost for curves in runs.values() for receiver in curves.receivers))


@_measure("messages", "less", "group")
def _lost_messages_of(runs: Runs, group: float) -> float:
    """Messages lost for good by the receivers of a group."""
    return float(sum(one.lost for curves in runs.values() for one in curves.receivers if one.group == int(group)))


def _ranked_first(curves: Curves, group: int) -> Iterator[tuple[float, bool]]:
    """Each moment of which there are sights, and whether the receiver with most loss lately is of the group."""
    for at, sights in groupby(curves.sights, key=lambda sight: sight.at):
        worst = max(sights, key=lambda sight: sight.loss)
        yield at, worst.loss > 0 and curves.group_of(worst.receiver) == group


@_measure("report intervals", "less", "group", "at", report=0.1)
def _ranked_first_after(runs: Runs, group: float, at: float, report: float) -> float:
    """Report intervals until the source ranks a receiver of the group first by loss, for good."""
    first = math.inf
    for moment, is_first in _ranked_first(_only(runs), int(group)):
        if moment >= at:
            first = min(first, moment) if is_first else math.inf
    return round((first - at) / report, 6)  # moments are multiples of the interval, but for the last bits of a double


@_measure("share", "less", "group")
def _attribution_error(runs: Runs, group: float) -> float:
    """Share of all losses, requests and repairs that sources put down to receivers of other groups."""
    curves = _only(runs)
    last = {(sight.source, sight.receiver): sight for sight in curves.sights}
    blame = {True: 0.0, False: 0.0}
    for sight in last.values():
        blame[curves.group_of(sight.receiver) == int(group)] += sight.lost + sight.naks + sight.repairs
    return blame[False] / (blame[True] + blame[False]) if blame[True] else math.inf


# ---- what is told ----


@_measure("seconds", "less", "event", "at")
def _told_after(runs: Runs, event: str, at: float) -> float:
    """Seconds from a moment until an event is told."""
    return min((one.at - at for one in _told(_only(runs), event, at)), default=math.inf)


@_measure("seconds", "more", "event", "group")
def _lead(runs: Runs, event: str, group: float) -> float:
    """Seconds from the first telling of an event about receivers of a group until their first message is lost."""
    curves = _only(runs)
    lost = min((one.first_lost for one in curves.receivers if one.group == int(group)), default=math.inf)
    told = min(
        (one.at for one in _told(curves, event) if curves.group_of(one.arguments[0]) == int(group)), default=math.inf
    )
    return lost - told if lost < math.inf else -math.inf


@_measure("events", "less", "event", begin=0.0)
def _told_times(runs: Runs, event: str, begin: float) -> float:
    """How often an event is told, all variants together."""
    return float(sum(len(_told(curves, event, begin)) for curves in runs.values()))


@_measure("ns per receiver", "less", receivers=1000, intervals=300)
def _decision_cost(runs: Runs, receivers: float, intervals: float) -> float:
    """Cost of all decisions of a control interval for one receiver: the most expensive rate policy, and the rest."""
    costs = _lab.decision_costs(int(receivers), int(intervals))
    rest = sum(costs.pop(what) for what in ("slow receivers", "storms"))
    return max(costs.values()) + rest
