"""Content and cost of each level of detail of the statistics on this machine, for `heliograph info`.

The content comes from the catalogue. The cost is measured: one instance in one thread sends to itself over memory. Its
level changes between slots of a few milliseconds, in the order 0 1 2 3 3 2 1 0. Each round gives one value for each
level, so drift (temperature, clock, other programs) affects all levels equally. The cost of a level is the median of
its differences to level 0 of the same round, with the 95 % confidence interval of that median from ranks. If the
interval includes 0, no difference is reported.
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
"""One round: every level twice, so that linear drift cancels out."""

_SLOT_SECONDS = 0.004
_WARMUP_SECONDS = 0.15
"""Warm-up of each call, until all histograms exist and the caches are filled, seconds."""
_ROUNDS_PER_CALL = 8
_CALLS_MIN = 2


# ---- content of the levels ----


@dataclass(frozen=True, slots=True)
class Added:
    """The statistics that one level adds to the lower levels."""

    level: int
    histograms: tuple[str, ...]
    """Histograms, as ``scope.statistic``."""
    cells: int
    """Number of counters, gauges and peaks; each value of a split counts."""
    scopes: int
    """Number of kinds of objects that have them."""

    @property
    def text(self) -> str:
        """The content as text."""
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
    """The statistics that each level adds, from the catalogue."""
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


# ---- cost of the levels ----


@dataclass(frozen=True, slots=True)
class Case:
    """A way of sending that is measured."""

    name: str
    batch: int
    """Messages per list; the messages of a list share packets."""


CASES = (Case("in lists of 64", 64), Case("one by one", 1))
"""With one message per packet, each message bears the full cost of the packet's statistics: the worst case."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A median and its 95 % confidence interval."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a message at one level, both ends together, ns of processor time."""

    level: int
    ns: Interval
    added_ns: Interval
    """Difference to level 0 of the same round."""
    throughput: float
    """Throughput relative to level 0; the median over the rounds."""
    rounds: int

    @property
    def is_seen(self) -> bool:
        """Whether the difference to level 0 exceeds the noise."""
        return self.added_ns.low > 0 or self.added_ns.high < 0


def median_interval(values: Sequence[float]) -> Interval:
    """The median of independent values and its 95 % confidence interval by ranks; with fewer than 6 values, the
    range."""
    ranked = sorted(values)
    reach = 1.96 * math.sqrt(len(ranked)) / 2
    low = max(0, math.floor(len(ranked) / 2 - reach))
    high = min(len(ranked) - 1, math.ceil(len(ranked) / 2 + reach))
    return Interval(median(ranked), ranked[low], ranked[high])


def costs_of(slots: Sequence[float]) -> list[Cost]:
    """The cost of each level.

    Args:
        slots: Time per message in each slot, ns; complete rounds of `ORDER`.

    Raises:
        ValueError: The slots are not complete rounds.
    """
    if not slots or len(slots) % len(ORDER):
        raise ValueError(f"{len(slots)} slots are not complete rounds of {len(ORDER)}")
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
    """Measure the cost of a message at each level.

    Args:
        case: The way of sending.
        seconds: Approximate duration, seconds; at most twice as long if other programs use the processor.
        tell: Called with the progress, 0 to 1.
        slot: Duration of one slot, seconds.

    Raises:
        Error: The transport could not be opened.
    """
    from heliograph.engine import _bench

    # The first eighth of a slot is not measured.
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
