"""When did a latency change? Change points of daily quantiles, annotated with what else changed on that day.

For each series and quantile, the hourly quantiles of a day become one number: the median of their logarithms. A day
has no time of day any more, so that daily patterns raise no alarm. Change points of the days are found by E-divisive
(Matteson and James 2014, "A nonparametric approach for multiple change point analysis of multivariate data"; used for
benchmarks by Daly et al. 2020, arXiv 2003.00584): the split with the largest energy distance between both sides is
tested against random orders of the days, and accepted splits are split again. The number of false alarms is bounded by
the significance of the test: a series without a change has an alarm in that share of the analyses.

A change needs about a week of days on each side to be found so. The last days are tested from their hours (`recent`): a
change there is told apart, as recent and not confirmed, until its day is found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.merge import HOUR_US, merge
from heliograph.monitor.history.schema import PERCENTILES
from heliograph.monitor.history.studies.days import apart, day_names
from heliograph.monitor.history.studies.recent import MIN_DAYS_RECENT, is_long_enough, recent_shift

__all__ = ["MIN_DAYS", "Change", "RecentChange", "Studied", "changes", "e_divisive"]

MIN_DAYS = 10
"""Fewest days with data of a series."""
MIN_SIDE = 3
"""Fewest days on each side of a change."""
PERMUTATIONS = 499
QUANTILES = ("p50", "p99", "p99_9")
SERIES = ("instance", "topic", "metric", "tag")
"""Labels that name a series here; a stream, like an incarnation, lives as long as its process."""
NOTED = ("build", "host", "link", "incarnation")
"""Labels whose changes are noted beside a change of the latency."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one quantile of one series."""

    series: Mapping[str, str]
    quantile: str
    day: str
    """First day after the change, ISO 8601, UTC."""
    before_ns: int
    """Typical value since the change before, or since the first day."""
    after_ns: int
    ratio: float
    """After over before."""
    p: float
    """Share of random orders of the days with a split as large."""
    notes: tuple[str, ...] = ()
    """Labels that changed on that day or the day before: ``build 4.1 -> 4.2``."""


@dataclass(frozen=True, slots=True)
class RecentChange:
    """A change of the last days, found from hours and not confirmed by days."""

    series: Mapping[str, str]
    quantile: str
    since: str
    """First hour after the change, ISO 8601, UTC; uncertain by some hours."""
    hours: int
    """Hours with data since."""
    before_ns: int
    """Typical value since the change before, or since the first day."""
    after_ns: int
    """`before_ns` times `ratio`."""
    ratio: float
    """After over before, without the season."""
    low: float
    """95 % interval of the ratio, for this first hour."""
    high: float
    score: float
    """Size in standard errors."""
    notes: tuple[str, ...] = ()
    """As of `Change`."""


@dataclass(frozen=True, slots=True)
class Studied:
    """The result for all series."""

    changes: tuple[Change, ...]
    series: int
    """Series with enough days."""
    thin: tuple[str, ...] = field(default=())
    """Series with too few days, as text."""
    unused: tuple[str, ...] = field(default=())
    """Days that are stored without their hours: their quantiles are not comparable. ISO 8601."""
    recent: tuple[RecentChange, ...] = field(default=())
    """Changes of the last days that are not confirmed."""
    thin_recent: tuple[str, ...] = field(default=())
    """Series with too few days for a recent change, as text."""


# -- E-divisive -------------------------------------------------------------------------------------------------------


def _best_split(distances: Floats) -> tuple[int, float]:
    """Return the split with the largest energy statistic; 0 and 0.0 when the values are too few.

    Args:
        distances: Absolute differences of all pairs of values, in the order of time.
    """
    n = distances.shape[0]
    splits = np.arange(MIN_SIDE, n - MIN_SIDE + 1)
    if splits.size == 0:
        return 0, 0.0
    whole = np.zeros((n + 1, n + 1))
    whole[1:, 1:] = distances.cumsum(axis=0).cumsum(axis=1)
    left, right = splits.astype(float), (n - splits).astype(float)
    within_left = whole[splits, splits]
    within_right = whole[n, n] - whole[splits, n] - whole[n, splits] + whole[splits, splits]
    between = whole[splits, n] - whole[splits, splits]
    energy = 2 * between / (left * right) - within_left / left**2 - within_right / right**2
    statistic = left * right / n * energy
    best = int(np.argmax(statistic))
    return int(splits[best]), float(statistic[best])


def e_divisive(values: Sequence[float], significance: float = 0.01, seed: int = 0) -> list[tuple[int, float]]:
    """Return the change points of a series of values: index of the first value after each, and its p-value.

    Args:
        values: The values in the order of time.
        significance: Largest p-value of a change; at least 1 / (`PERMUTATIONS` + 1).
        seed: Of the permutations.
    """
    everything = np.asarray(values, dtype=np.float64)
    random = np.random.default_rng(seed)
    found: list[tuple[int, float]] = []
    waiting = [(0, everything.size)]
    while waiting:
        first, last = waiting.pop()
        part = everything[first:last]
        distances = np.abs(part[:, None] - part[None, :])
        split, statistic = _best_split(distances)
        if split == 0:
            continue
        as_large = 0
        allowed = math.floor(significance * (PERMUTATIONS + 1))
        for _ in range(PERMUTATIONS):
            order = random.permutation(part.size)
            as_large += _best_split(distances[np.ix_(order, order)])[1] >= statistic
            if as_large >= allowed:  # the p-value is too large whatever follows
                break
        else:
            found.append((first + split, (as_large + 1) / (PERMUTATIONS + 1)))
            waiting += [(first, first + split), (first + split, last)]
    return sorted(found)


# -- history ----------------------------------------------------------------------------------------------------------


def changes(table: pa.Table, *, significance: float = 0.01, quantiles: Sequence[str] = QUANTILES) -> Studied:
    """Find the changes in a history.

    Args:
        table: Hours, as `hours.read_history` returns them. Rows of whole days are left out: the quantile of a day is
            not the median of the quantiles of its hours.
        significance: Share of series without a change that get a false alarm; 0.002 to 0.5.
        quantiles: Columns of the history.

    Raises:
        UserError: The significance is outside its range, or a quantile is unknown.
    """
    if not 0.002 <= significance <= 0.5:
        raise UserError(f"the significance must be from 0.002 to 0.5, not {significance:g}")
    if unknown := [name for name in quantiles if name not in PERCENTILES]:
        raise UserError(f"there is no quantile {unknown[0]!r}; use {', '.join(PERCENTILES)}")
    table, whole_days = apart(table)
    rows = merge(table, HOUR_US, by=SERIES)[0].drop_columns(["h"]).to_pylist()
    hours: dict[tuple[str, ...], list[dict[str, object]]] = {}
    for row in rows:
        hours.setdefault(tuple(str(row[name]) for name in SERIES), []).append(row)
    origins = _origins(table)
    found: list[Change] = []
    recent: list[RecentChange] = []
    thin, thin_recent = [], []
    for series, of_series in sorted(hours.items()):
        days = sorted({_day(row) for row in of_series})
        if len(days) < MIN_DAYS:
            thin.append(f"{' '.join(filter(None, series))}: {len(days)} days of {MIN_DAYS}")
            continue
        of_series.sort(key=_hour)
        hour_numbers = np.array([_hour(row) for row in of_series], dtype=np.int64)
        if not is_long_enough(hour_numbers):
            span = (int(hour_numbers[-1]) - int(hour_numbers[0])) // 24 + 1
            thin_recent.append(f"{' '.join(filter(None, series))}: {span} days of {MIN_DAYS_RECENT}")
        labels = dict(zip(SERIES, series, strict=True))
        for quantile in quantiles:
            dated = _of_series(labels, of_series, days, quantile, significance, origins)
            found += dated
            recent += _recent(labels, of_series, hour_numbers, days, quantile, dated, origins)
    return Studied(
        tuple(found), len(hours) - len(thin), tuple(thin), day_names(whole_days), tuple(recent), tuple(thin_recent)
    )


def _hour(row: Mapping[str, object]) -> int:
    """Return the number of the hour since 1970."""
    ts = row["ts"]
    assert isinstance(ts, datetime)
    return int(ts.timestamp()) // 3600


def _recent(
    series: dict[str, str],
    rows: Sequence[Mapping[str, object]],
    hours: npt.NDArray[np.int64],
    days: Sequence[date],
    quantile: str,
    dated: Sequence[Change],
    origins: Origins,
) -> list[RecentChange]:
    """Return the recent change of a quantile, if there is one."""
    logs = np.log([float(max(1, int(str(row[quantile])))) for row in rows])
    known = [next(at for at, row in enumerate(rows) if _day(row).isoformat() >= one.day) for one in dated]
    shift = recent_shift(hours, logs, known)
    if shift is None:
        return []
    since = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=int(hours[shift.index]))
    first = max([at for at in known if at < shift.index], default=0)
    before = math.exp(float(np.median(logs[first : shift.index])))
    low, high = shift.log_interval
    return [
        RecentChange(
            series=series,
            quantile=quantile,
            since=since.isoformat(timespec="minutes").replace("+00:00", "Z"),
            hours=int(hours.size) - shift.index,
            before_ns=round(before),
            after_ns=round(before * math.exp(shift.log_ratio)),
            ratio=math.exp(shift.log_ratio),
            low=math.exp(low),
            high=math.exp(high),
            score=shift.score,
            notes=_notes(origins.get(tuple(series.values()), {}), days, days.index(since.date())),
        )
    ]


def _day(row: Mapping[str, object]) -> date:
    ts = row["ts"]
    assert isinstance(ts, datetime)
    return ts.astimezone(UTC).date()


Origins = dict[tuple[str, ...], dict[date, dict[str, set[str]]]]


def _origins(table: pa.Table) -> Origins:
    """Return the values of the noted labels by series and day."""
    result: Origins = {}
    for row in table.select([*SERIES, *NOTED, "ts"]).to_pylist():
        of_day = result.setdefault(tuple(row[name] for name in SERIES), {}).setdefault(_day(row), {})
        for name in NOTED:
            of_day.setdefault(name, set()).add(row[name])
    return result


def _of_series(
    series: dict[str, str],
    rows: Sequence[Mapping[str, object]],
    days: Sequence[date],
    quantile: str,
    significance: float,
    origins: Origins,
) -> list[Change]:
    logs: dict[date, list[float]] = {day: [] for day in days}
    for row in rows:
        logs[_day(row)].append(math.log(max(1, int(str(row[quantile])))))
    daily = [float(np.median(logs[day])) for day in days]
    points = e_divisive(daily, significance)
    bounds = [0, *(index for index, _ in points), len(days)]
    found = []
    for number, (index, p) in enumerate(points):
        before = float(np.median(daily[bounds[number] : index]))
        after = float(np.median(daily[index : bounds[number + 2]]))
        found.append(
            Change(
                series=series,
                quantile=quantile,
                day=days[index].isoformat(),
                before_ns=round(math.exp(before)),
                after_ns=round(math.exp(after)),
                ratio=math.exp(after - before),
                p=p,
                notes=_notes(origins.get(tuple(series.values()), {}), days, index),
            )
        )
    return found


def _notes(origins: Mapping[date, Mapping[str, set[str]]], days: Sequence[date], index: int) -> tuple[str, ...]:
    """Name the labels that are others from the day of the change on than two days before it."""
    before: Mapping[str, set[str]] = origins.get(days[max(0, index - 2)], {})
    after: Mapping[str, set[str]] = origins.get(days[index], {})
    notes = []
    for name in NOTED:
        old, new = before.get(name, set()), after.get(name, set())
        if old != new:
            is_run = name == "incarnation"
            notes.append("restarted" if is_run else f"{name} {_text(old)} -> {_text(new)}")
    return tuple(notes)


def _text(values: set[str]) -> str:
    return " and ".join(sorted(value or "unknown" for value in values)) or "unknown"
