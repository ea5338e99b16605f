"""Did a latency change in the last days? A level shift near the end of a series of hours.

Change points of days (`changes`) need about a week of days on each side. This test needs three days: it uses hours, and
it knows how hours depend on each other. The logarithm of an hourly quantile is a season, a first-order autoregression,
and perhaps a level shift. Each hour of the last week may be the first one after the shift:

* The season is estimated together with the shift: hour of the day and day of the week; or with a weekend of its own; or
  each hour of the week (the one with the smallest BIC, Schwarz 1978).
* The memory of the autoregression and the variance of its innovations come from the stable part, the weeks before the
  last one, by restricted maximum likelihood (Cheang and Reinsel 2000, "Bias reduction of autoregressive estimates in
  time series regression model through restricted maximum likelihood").
* The statistic is the largest likelihood ratio over all possible hours (Tsay 1988, "Outliers, level shifts, and
  variance changes in time series"; Apley and Shi 1999, "The GLRT for statistical process control of autocorrelated
  processes").
  Most of what it sees in a series with memory is the jump in the first hour: three days of hours with a memory of ten
  hours are worth only four independent values.
* A single unusual hour jumps too. So the hours after the jump alone must show the shift, at 5 % on one side.

The end-of-sample test of Andrews (2003, "End-of-sample instability tests", Econometrica 71) needs no model: it ranks
the last days among all stretches of as many days. But its smallest p-value is one over the number of stretches. A month
has too few for a user who looks each day and accepts one false alarm in two years.

Repeated looks: the limits are not for one look. They were chosen by simulation of years with a look each day, for about
half an alarm in a year of a series without a change, on one quantile. `make calibrate-history` measures the rate with
other seeds. An alarm that stands on several days counts once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

__all__ = ["MIN_DAYS_RECENT", "Shift", "is_long_enough", "recent_shift"]

WINDOW_DAYS = 7
"""The shift begins in the last days."""
MIN_STABLE_DAYS = 14
"""Fewest days from the first hour to the window: each hour of the week twice."""
MIN_DAYS_RECENT = MIN_STABLE_DAYS + WINDOW_DAYS
"""Fewest days from the first hour to the last."""
LONGEST_DAYS = 56
"""Days before the window that are used at most: latencies drift, and seasons change."""
MIN_AFTER = 12
"""Fewest hours with data after the shift."""
LIMIT = 4.1
"""Smallest standardized increase of the last `FRESH_HOURS` that is an alarm, when `LONGEST_DAYS` are known."""
FRESH_HOURS = 72
_LESS_URGENT = 0.5
"""Added to the limit for decreases and for older shifts. The alarms that this saves are spent on fresh increases."""
_SHORT = 14.0
"""Added to the limit per reciprocal day of the stable part: season and memory are less certain."""
PERSISTENT = 1.645
"""Smallest standardized shift of the hours after the first one."""

_DAY, _WEEK = 24, 168
_MONDAY = 3 * _DAY
"""Hours from the start of a week to the epoch, which was a Thursday."""
_LEAST_VARIANCE = 1e-6
"""A histogram of three digits has a resolution of 0.1 %."""
_MEMORIES = (0.0, 0.2, 0.4, 0.6, 0.75, 0.85, 0.92, 0.96, 0.99)
_REFINEMENTS = 2
_INTERVAL = 1.96

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Shift:
    """A level shift near the end of a series."""

    index: int
    """First value after the shift."""
    log_ratio: float
    """Its size, after less before."""
    error: float
    """Standard error of `log_ratio`."""
    memory: float
    """Factor by which the level forgets in an hour, 0 to 0.99."""

    @property
    def score(self) -> float:
        """Absolute size in standard errors."""
        return abs(self.log_ratio) / self.error

    @property
    def log_interval(self) -> tuple[float, float]:
        """The 95 % interval of `log_ratio`, for the hour that was found."""
        return self.log_ratio - _INTERVAL * self.error, self.log_ratio + _INTERVAL * self.error


def is_long_enough(hours: Integers) -> bool:
    """Whether a series has `MIN_DAYS_RECENT` from its first hour to its last; hours since 1970, ascending."""
    return hours.size > 0 and int(hours[-1]) + 1 - int(hours[0]) >= MIN_DAYS_RECENT * _DAY


def recent_shift(hours: Integers, logs: Floats, known: Sequence[int] = ()) -> Shift | None:
    """Return the level shift in the last week of a series; None if there is none, or the data is too thin to tell.

    Args:
        hours: Hours since 1970, UTC, ascending; hours without data are missing.
        logs: Logarithm of the quantile of each.
        known: Index of the first value after each shift that is known; nothing is looked for within three days of it.
    """
    if not is_long_enough(hours):
        return None
    end = int(hours[-1]) + 1
    first = int(np.searchsorted(hours, end - (WINDOW_DAYS + LONGEST_DAYS) * _DAY))
    hours, logs, known = hours[first:], logs[first:], [at - first for at in known if at > first]
    stable = int(np.searchsorted(hours, end - WINDOW_DAYS * _DAY))
    possible = np.arange(stable, hours.size - MIN_AFTER + 1)
    for at in known:
        possible = possible[np.abs(hours[possible] - hours[at]) >= 3 * _DAY]
    if stable < 2 or possible.size == 0:
        return None
    steps = (np.arange(hours.size)[:, None] >= np.array(known, dtype=np.int64)).astype(float)
    season = _independent(np.hstack([_season(hours, logs, stable), steps]))
    before = _independent(season[:stable])
    if stable <= 2 * before.shape[1]:
        return None
    memory, variance = _process(hours[:stable], logs[:stable], before)
    found = _largest(hours, logs, season, possible, memory, variance)
    return None if found is None else replace(found, index=found.index + first)


def _limits(ages: Integers, stable_days: float) -> tuple[Floats, Floats]:
    """Return the limits of increases and of decreases, by the age of the shift in hours."""
    limit = np.full(ages.size, LIMIT + _SHORT * max(0.0, 1 / stable_days - 1 / LONGEST_DAYS))
    limit[ages > FRESH_HOURS] += _LESS_URGENT
    return limit, limit + _LESS_URGENT


# -- season -----------------------------------------------------------------------------------------------------------


def _season(hours: Integers, logs: Floats, stable: int) -> Floats:
    """Return the columns of the season that explains the stable part best for its number of columns."""
    of_day, weekday = hours % _DAY, (hours + _MONDAY) // _DAY % 7
    additive = np.hstack([_indicators(of_day, _DAY), _indicators(weekday, 7)[:, 1:]])
    weekend = np.where(weekday >= 5, of_day + 1, 0)
    designs = [
        additive,
        np.hstack([additive, _indicators(weekend, _DAY + 1)[:, 2:]]),
        _indicators((hours + _MONDAY) % _WEEK, _WEEK),
    ]
    scores = []
    for design in designs:
        crossed = design[:stable].T @ design[:stable]
        along = design[:stable].T @ logs[:stable]
        # Columns may depend on each other; the small addition makes the equations solvable and changes no residual.
        fitted = design[:stable] @ np.linalg.solve(crossed + 1e-6 * np.eye(along.size), along)
        mean_square = max(_LEAST_VARIANCE, float(np.mean((logs[:stable] - fitted) ** 2)))
        rank = int(np.linalg.matrix_rank(crossed, hermitian=True))
        scores.append(stable * math.log(mean_square) + rank * math.log(stable))
    return designs[int(np.argmin(scores))]


def _indicators(codes: Integers, count: int) -> Floats:
    ones: Floats = (codes[:, None] == np.arange(count)).astype(np.float64)
    return ones


def _independent(columns: Floats) -> Floats:
    """Return the columns that are no combination of columns before them."""
    diagonal = np.abs(np.diag(np.linalg.qr(columns, mode="r")))
    kept: Floats = columns[:, diagonal > 1e-8 * diagonal.max()]
    return kept


# -- autoregression ---------------------------------------------------------------------------------------------------


def _whitened(columns: Floats, hours: Integers, memory: float) -> Floats:
    """Return rows of the same variance that do not depend on each other, across missing hours too."""
    kept = (memory ** np.diff(hours).astype(float))[:, None]
    return np.vstack([columns[:1], (columns[1:] - kept * columns[:-1]) / np.sqrt(1 - kept**2)])


def _process(hours: Integers, logs: Floats, season: Floats) -> tuple[float, float]:
    """Return the memory and the variance of the level, by restricted maximum likelihood."""
    columns = np.column_stack([season, logs])
    gaps, of_gap = np.unique(np.diff(hours), return_inverse=True)
    # Sums over neighbours with the same distance: each memory is then a small matrix.
    sums = []
    for number, gap in enumerate(gaps):
        later = columns[1:][of_gap == number]
        earlier = columns[:-1][of_gap == number]
        crossed = later.T @ earlier
        sums.append((float(gap), later.shape[0], later.T @ later, crossed + crossed.T, earlier.T @ earlier))
    start = np.outer(columns[0], columns[0])
    freedom = logs.size - season.shape[1]

    def likelihood(memory: float) -> tuple[float, float]:
        total, scale = start.copy(), 0.0
        for gap, count, later, crossed, earlier in sums:
            kept = memory**gap
            total += (later - kept * crossed + kept**2 * earlier) / (1 - kept**2)
            scale -= count / 2 * math.log(1 - kept**2)
        root = np.linalg.cholesky(total[:-1, :-1])
        explained = np.linalg.solve(root, total[:-1, -1])
        variance = max(_LEAST_VARIANCE, float(total[-1, -1] - explained @ explained) / freedom)
        return scale - freedom / 2 * math.log(variance) - float(np.log(np.diag(root)).sum()), variance

    tried = np.array(_MEMORIES)
    for _ in range(_REFINEMENTS + 1):
        best = int(np.argmax([likelihood(memory)[0] for memory in tried]))
        found = float(tried[best])
        tried = np.linspace(tried[max(0, best - 1)], tried[min(tried.size - 1, best + 1)], 7)
    return found, likelihood(found)[1]


def _largest(
    hours: Integers, logs: Floats, season: Floats, possible: Integers, memory: float, variance: float
) -> Shift | None:
    """Return the shift with the largest score for its limit, among those that persist; None if none reaches it.

    Args:
        hours: Hours since 1970.
        logs: Logarithms of the quantile.
        season: Columns of the season.
        possible: Possible first values after the shift.
        memory: Factor by which the level forgets in an hour.
        variance: Variance of the level.
    """
    steps = (np.arange(hours.size)[:, None] >= possible).astype(float)
    white = _whitened(np.column_stack([season, logs, steps]), hours, memory)
    basis = np.linalg.qr(white[:, : season.shape[1]])[0]
    rest = white[:, season.shape[1] :]
    rest = rest - basis @ (basis.T @ rest)
    level, step = rest[:, 0], rest[:, 1:]
    along, size = step.T @ level, (step**2).sum(axis=0)
    scores = along / np.sqrt(size * variance)
    # The same without the row of the jump: an own column for this row takes it out of the regression.
    jump = -basis @ basis[possible].T
    jump[possible, np.arange(possible.size)] += 1
    jump_size, jump_step = (jump**2).sum(axis=0), (jump * step).sum(axis=0)
    along_after = along - jump_step * (jump.T @ level) / jump_size
    size_after = np.maximum(size - jump_step**2 / jump_size, 1e-12 * size)
    persistent = np.sign(along) * along_after / np.sqrt(size_after * variance) >= PERSISTENT
    up, down = _limits(hours[-1] + 1 - hours[possible], float(hours[possible[0]] - hours[0]) / _DAY)
    excess = np.where(persistent, np.where(scores > 0, scores / up, -scores / down), 0.0)
    best = int(np.argmax(excess))
    if excess[best] < 1:
        return None
    error = math.sqrt(variance / size[best])
    return Shift(int(possible[best]), float(along[best] / size[best]), error, memory)
