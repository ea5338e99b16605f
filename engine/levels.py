"""Content and cost of each level of detail of the statistics on this machine, for `heliograph info`.

The content comes from the catalogue. The cost is measured: one instance in one thread sends to itself over memory,
and its level changes between slots of a few milliseconds, in the order 0 1 2 3 3 2 1 0. Each such round gives one value
per level, and what drifts - temperature, clock, neighbours - falls on all levels alike; a level's cost is the median of
its differences to level 0 of the same round. The interval around a median is the one that holds the true median in 95 %
of measurements, from the ranks of the values alone. A difference whose interval reaches over 0 is told as what it is:
none that could be seen.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from heliograph.engine import catalogue

__all__ = ["CASES", "LEVELS", "Added", "Case", "Cost", "Interval", "costs_of", "ladder", "measure", "median_interval"]

LEVELS = (0, 1, 2, 3)
ORDER = bytes((*LEVELS, *reversed(LEVELS)))
"""One round: every level twice, so that a steady drift cancels out."""

_SLOT_SECONDS = 0.004
_WARMUP_SECONDS = 0.15
"""Of each call: until all histograms are there and the caches are warm."""
_ROUNDS_PER_CALL = 8
_CALLS_MIN = 2


# ---- what a level adds ----


@dataclass(frozen=True, slots=True)
class Added:
    """The statistics that one level adds to those below it."""

    level: int
    histograms: tuple[str, ...]
    """Histograms, as ``scope.statistic``."""
    cells: int
    """Counters, gauges and peaks, one for each value of a split."""
    scopes: int
    """Kinds of objects these are of."""

    @property
    def text(self) -> str:
        """For people."""
        parts = []
        if self.cells:
            parts.append(f"{self.cells} counters, gauges and peaks of {self.scopes} kinds of objects")
        by_scope: dict[str, list[str]] = {}
        for name in self.histograms:
            scope, _, statistic = name.partition(".")
            by_scope.setdefault(scope, []).append(statistic)
        parts += [f"{', '.join(names)} ({scope})" for scope, names in by_scope.items()]
        return "; ".join(parts) or "nothing"


def ladder() -> list[Added]:
    """Return the statistics that each level adds, from the catalogue."""
    statistics = [statistic for scope in catalogue.scopes().values() for statistic in scope.statistics]
    out = []
    for level in LEVELS:
        here = [statistic for statistic in statistics if statistic.level == level]
        plain = [statistic for statistic in here if statistic.kind != "histogram"]
        out.append(
            Added(
                level,
                tuple(f"{s.scope}.{s.name}" for s in here if s.kind == "histogram"),
                sum(len(s.cells) for s in plain),
                len({s.scope for s in plain}),
            )
        )
    return out


# ---- what it costs ----


@dataclass(frozen=True, slots=True)
class Case:
    """One way to send."""

    name: str
    batch: int
    """Messages of one list, which share packets."""


CASES = (Case("in lists of 64", 64), Case("one by one", 1))
"""With one message a packet, what is counted per packet is a cost of each message: the dearest case."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A median, and between what it lies in 95 % of measurements."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a message at one level, both ends together, in ns of processor time."""

    level: int
    ns: Interval
    added_ns: Interval
    """More than at level 0 of the same round."""
    throughput: float
    """Of that at level 0, as a share: the median over the rounds."""
    rounds: int

    @property
    def is_seen(self) -> bool:
        """Whether the difference to level 0 is larger than the noise."""
        return self.added_ns.low > 0 or self.added_ns.high < 0


def median_interval(values: Sequence[float]) -> Interval:
    """The median of independent values and its interval of 95 %, by ranks; with fewer than 6 values all there is."""
    ranked = sorted(values)
    reach = 1.96 * math.sqrt(len(ranked)) / 2
    low = max(0, math.floor(len(ranked) / 2 - reach))
    high = min(len(ranked) - 1, math.ceil(len(ranked) / 2 + reach))
    return Interval(median(ranked), ranked[low], ranked[high])


def costs_of(slots: Sequence[float]) -> list[Cost]:
    """The cost of each level from the ns per message of each slot, in rounds of `ORDER`.

    Raises:
        ValueError: there is no whole round.
    """
    if not slots or len(slots) % len(ORDER):
        raise ValueError(f"{len(slots)} slots are no rounds of {len(ORDER)}")
    rounds = []
    for start in range(0, len(slots), len(ORDER)):
        one = slots[start : start + len(ORDER)]
        rounds.append({level: (one[level] + one[-1 - level]) / 2 for level in LEVELS})
    return [
        Cost(
            level,
            median_interval([one[level] for one in rounds]),
            median_interval([one[level] - one[0] for one in rounds]),
            median(one[0] / one[level] for one in rounds),
            len(rounds),
        )
        for level in LEVELS
    ]


def measure(
    case: Case, seconds: float, tell: Callable[[float], None] = lambda share: None, slot: float = _SLOT_SECONDS
) -> list[Cost]:
    """Measure what a message costs at each level.

    Args:
        case: how messages are sent.
        seconds: about how long to measure; where others use the processor it takes longer, at most twice as long.
        tell: called now and then with the share that is done, 0 to 1.
        slot: seconds of one slot.

    Raises:
        Error: the transport could not be opened.
    """
    from heliograph.engine import _bench

    # A slot begins with an eighth of itself that is not measured.
    call_seconds = _WARMUP_SECONDS + _ROUNDS_PER_CALL * len(ORDER) * slot * 9 / 8
    calls = max(_CALLS_MIN, round(seconds / call_seconds))
    end = time.monotonic() + 2 * seconds
    slots: list[float] = []
    for done in range(calls):
        if done >= _CALLS_MIN and time.monotonic() > end:
            break
        tell(done / calls)
        slots += _bench.levels(ORDER * _ROUNDS_PER_CALL, case.batch, slot, _WARMUP_SECONDS)
    tell(1.0)
    return costs_of(slots)
