"""The figures of a report, from the files of a history: nothing is drawn here.

The history is read in steps of some hours and merged into at most 24 batches of hours, from which the figures of the
whole time and their uncertainty follow. So the memory does not grow with the length of the history. Only the few worst
series have a calendar, which needs their hours. Which these are shows at the end, so the hours of those that are worst
at the beginning are kept; if others prove to be worst, the history is read a second time. All figures come from merged
counts; percentiles are never averaged. A day that is stored without its hours (`monitor.history.retention`) counts as
one long hour.

Series are told apart by labels that people know: instance, topic, host, link and build. Streams, runs and levels of
detail are added: they end with their process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from heliograph.monitor import _hdr
from heliograph.monitor.history.files import Broken
from heliograph.monitor.history.hours import is_of_day, read_parts
from heliograph.monitor.history.merge import DAY_US, HOUR_US, Merger, merge
from heliograph.monitor.history.remote import Place, globbed
from heliograph.monitor.history.report.timeline import Event, Runs
from heliograph.monitor.history.report.uncertainty import (
    BATCHES,
    Limits,
    is_thin,
    least,
    percentile_limits,
    ratio_reach,
)
from heliograph.monitor.history.schema import IMPORTED, PERCENTILES, metric_titles
from heliograph.monitor.history.studies.calendar import Calendar, calendars
from heliograph.monitor.history.studies.objectives import Judged, Objective, Shares, judged_of, shares_of
from heliograph.monitor.history.studies.stages import METRICS, RECEIVED, SENDER_METRICS, TOTAL, Stages, stages_of
from heliograph.monitor.latency import Spectrum, cell_of, spectrum
from heliograph.monitor.model import Histogram

__all__ = ["RECOVERED", "SHOWN", "Figures", "Hour", "MetricFigures", "SeriesFigures", "Stacked", "figures_of"]

SHOWN = ("instance", "topic", "metric", "tag", "host", "link", "build")
"""Labels that tell the series of a report apart."""
RECOVERED = "receiver_total_latency_recovered"
STACKED = 16
"""Receivers whose stages are shown."""
CALENDARS = 3
"""Series with a calendar, those with the worst 99.9 % first: a calendar needs all hours of a series at once."""
_IDENTITY = (*SHOWN, "digits", "lowest")
_AT = {name: at for at, name in enumerate(PERCENTILES)}
_NUMBERS = ("len_ms", "n", "dropped", "sum", "max", "covered_ms", *PERCENTILES)
"""Columns of numbers that make an `Hour`."""
_WORST = list(PERCENTILES).index("p99_9")
_KEPT = CALENDARS + 1
"""Series whose hours are kept while the history is read."""
_FIRST_HOURS, _FIRST_BYTES = 24, 64 << 20
"""Hours, and the size of their histograms, after which these series are chosen."""
_STEP_BYTES = 16 << 20
"""Histograms of the hours that are taken at once. A call of pyarrow has a fixed cost, and an hour may have few rows."""

Key = tuple[object, ...]
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Hour:
    """Figures of a series over an hour, a day or the whole time, ns."""

    start: datetime
    length: timedelta
    """An hour or a day; of the whole time: from its first to its last interval."""
    n: int
    dropped: int
    total: int
    """Sum of the values."""
    percentiles: tuple[int, ...]
    """In the order of `PERCENTILES`, also those of too few values."""
    max: int
    covered_ms: int
    """Sum of the lengths of the intervals; 0: unknown."""

    @property
    def is_day(self) -> bool:
        """Whether it is a day that is stored without its hours."""
        return self.length > timedelta(hours=1)

    @property
    def mean(self) -> float:
        """Mean of the values; 0 when there are none."""
        return self.total / self.n if self.n else 0.0

    @property
    def per_second(self) -> float:
        """Values per second of the covered time, at most of the length."""
        seconds = self.length.total_seconds()
        return self.n / max(0.001, min(self.covered_ms / 1000, seconds) if self.covered_ms else seconds)

    def at(self, name: str) -> int | None:
        """Return a percentile by its column; None when fewer than ten values lie beyond it."""
        return None if self.n < least(PERCENTILES[name]) else self.percentiles[_AT[name]]

    @property
    def jitter(self) -> int | None:
        """p99.9 - p50; None when there are too few values."""
        high, middle = self.at("p99_9"), self.at("p50")
        return None if high is None or middle is None else high - middle


@dataclass(frozen=True, slots=True)
class SeriesFigures:
    """Figures of one series: over the whole time, and for every hour or day."""

    labels: Mapping[str, str]
    name: str
    detail: str
    """Further labels that distinguish the series, for small print."""
    whole: Hour
    mean_reach: float | None
    """Half the 95 % interval of the mean, ns; None: too few hours."""
    limits: tuple[Limits | None, ...]
    """95 % intervals of the percentiles of the whole time."""
    clock_error_ns: int
    spectrum: Spectrum
    hours: tuple[Hour, ...]


@dataclass(frozen=True, slots=True)
class MetricFigures:
    """All series of one metric, the worst p99.9 first."""

    metric: str
    title: str
    series: tuple[SeriesFigures, ...]


@dataclass(frozen=True, slots=True)
class Stacked:
    """The stages of the messages of one receiver."""

    name: str
    stages: Stages
    reaches: tuple[float | None, ...]
    """Half the 95 % interval of each stage's mean, ns."""


@dataclass(frozen=True, slots=True)
class Figures:
    """All that a report shows."""

    metrics: tuple[MetricFigures, ...]
    stages: tuple[Stacked, ...]
    events: tuple[Event, ...]
    calendars: tuple[Calendar, ...]
    judged: tuple[Judged, ...]
    """The series of the first metric against the objective; empty without one."""
    broken: tuple[Broken, ...]

    @property
    def periods(self) -> set[tuple[datetime, timedelta]]:
        """Start and length of the hours and days of all series."""
        return {(hour.start, hour.length) for metric in self.metrics for one in metric.series for hour in one.hours}

    @property
    def span(self) -> tuple[datetime, datetime]:
        """First and last moment of all series; only with metrics."""
        periods = self.periods
        return min(start for start, _ in periods), max(start + length for start, length in periods)


def figures_of(history: Place, objective: Objective | None = None) -> Figures:
    """Read a history and compute all figures; without metrics when it has no readable hours.

    Raises:
        UserError: There is no history.
    """
    broken: list[Broken] = []
    period = _batch_us(history)
    runs, merger, numbers = Runs(), Merger(period, SHOWN), []
    shares, kept = _Shares(objective), _Kept()
    for step in _readable(history, broken):
        runs.add(step)
        shown = _by_shown(step)
        merger.add(shown)
        numbers.append(shown.drop_columns(["h"]))
        shares.add(shown)
        kept.add(shown)
    if not numbers:
        return Figures((), (), (), (), (), tuple(broken))
    batches = merger.partial()
    whole, _ = merge(batches, None, by=SHOWN)
    hours: dict[Key, list[Hour]] = {}
    hourly = pa.concat_tables(numbers).combine_chunks()
    for identity, hour in _hours(hourly):
        hours.setdefault(identity, []).append(hour)
    rows = sorted(whole.to_pylist(), key=_order)
    main = rows[0]["metric"]
    beyond = {_identity(row): _Beyond(_cells(row)) for row in rows}
    for few in batches.select([*_IDENTITY, "ts", "n", "sum", "h"]).to_batches(100):
        for row in few.to_pylist():
            beyond[_identity(row)].add(row)
    worst = _worst(rows, CALENDARS)
    of_worst = kept.rows(worst)
    if of_worst is None:
        of_worst = pa.concat_tables([_only(_by_shown(step), worst) for step in _readable(history, [])])
    found: dict[str, list[SeriesFigures]] = {}
    names = _names(rows)
    wholes = dict(_hours(whole))
    for row, (name, detail) in zip(rows, names, strict=True):
        key = _identity(row)
        of_series = tuple(sorted(hours[key], key=lambda one: one.start))
        found.setdefault(row["metric"], []).append(_series(row, name, detail, wholes[key], of_series, beyond[key]))
    titles = metric_titles()
    metrics = tuple(MetricFigures(metric, titles.get(metric, metric), tuple(of)) for metric, of in found.items())
    mask = is_of_day(of_worst)
    return Figures(
        metrics,
        _stacked(hourly, whole, rows, names),
        tuple(runs.events()),
        tuple(calendars(of_worst.filter(pc.invert(mask)), by=SHOWN, days=of_worst.filter(mask))),
        shares.judged(main),
        tuple(broken),
    )


def _order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The order of series: the total latency first, and in each metric the worst p99.9."""
    metric = row["metric"]
    return metric != TOTAL, metric != IMPORTED, metric, -row["p99_9"], *map(str, _identity(row))


def _readable(history: Place, broken: list[Broken]) -> Iterator[pa.Table]:
    """Yield the rows in steps, each of hours or of whole days; add the files that cannot be read to `broken`."""
    step: list[pa.Table] = []
    size, is_of_days = 0, False
    for found in read_parts(history):
        if isinstance(found, Broken):
            broken.append(found)
            continue
        if not found.num_rows:
            continue
        more, is_another = found["h"].nbytes, _is_of_days(found) != is_of_days
        if step and (size + more > _STEP_BYTES or is_another):
            yield pa.concat_tables(step)
            step, size = [], 0
        is_of_days ^= is_another
        step.append(found)
        size += more
    if step:
        yield pa.concat_tables(step)


def _is_of_days(table: pa.Table) -> bool:
    return bool(is_of_day(table.slice(0, 1))[0].as_py())


def _by_shown(table: pa.Table) -> pa.Table:
    """Return the rows of a step, one per hour or day and shown series."""
    keys = ["ts", *_IDENTITY]
    rows = table.select(keys).group_by(keys, use_threads=False).aggregate([([], "count_all")])
    several = pc.is_in(table["ts"], pc.unique(rows["ts"].filter(pc.greater(rows["count_all"], 1))))
    if not pc.any(several).as_py():
        return table
    merged, _ = merge(table.filter(several), DAY_US if _is_of_days(table) else HOUR_US, by=SHOWN)
    return pa.concat_tables([table.filter(pc.invert(several)), merged])


_identity = itemgetter(*_IDENTITY)


def _hours(table: pa.Table) -> Iterator[tuple[Key, Hour]]:
    """Yield the figures of rows of `HISTORY`, with the series of each."""
    identities = zip(*(_repeated(table[name]) for name in _IDENTITY), strict=True)
    starts = _repeated(table["ts"])
    lengths = {length: timedelta(milliseconds=length) for length in pc.unique(table["len_ms"]).to_pylist()}
    numbers = zip(*(table[name].to_numpy().tolist() for name in _NUMBERS), strict=True)
    for identity, start, (length, n, dropped, total, greatest, covered_ms, *percentiles) in zip(
        identities, starts, numbers, strict=True
    ):
        yield identity, Hour(start, lengths[length], n, dropped, total, tuple(percentiles), greatest, covered_ms)


def _repeated(column: pa.ChunkedArray) -> list[Any]:
    """Return a column of few different values as Python objects, each of them made once."""
    encoded = column.combine_chunks().dictionary_encode()
    found = encoded.dictionary.to_pylist()
    return [found[at] for at in encoded.indices.to_numpy().tolist()]


def _batch_us(history: Place) -> int:
    """Return the length of a batch: whole hours, so that the days of the history make about `BATCHES` of them."""
    found = {path.name for pattern in ("1h/date=*", "1d/date=*", "date=*") for path in globbed(history, pattern)}
    days = sorted(name.removeprefix("date=") for name in found)
    try:
        span = (date.fromisoformat(days[-1]) - date.fromisoformat(days[0])).days + 1 if days else 1
    except ValueError:  # a directory of a stranger
        span = len(days)
    return -(-span * 24 // BATCHES) * HOUR_US


# -- hours of the series with a calendar ------------------------------------------------------------------------------


class _Kept:
    """Rows of the series that are worst at the beginning."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._hours = self._bytes = 0
        self._chosen: set[Key] | None = None
        """None: all, so far."""

    def add(self, shown: pa.Table) -> None:
        """Take the rows of a step."""
        if self._chosen is not None:
            self._tables.append(_only(shown, self._chosen))
            return
        self._tables.append(shown)
        self._hours += len(pc.unique(shown["ts"]))
        self._bytes += shown["h"].nbytes
        if self._hours >= _FIRST_HOURS or self._bytes > _FIRST_BYTES:
            whole, _ = merge(pa.concat_tables(self._tables), None, by=SHOWN)
            self._chosen = _worst(sorted(whole.drop_columns(["h"]).to_pylist(), key=_order), _KEPT)
            self._tables = [_only(table, self._chosen) for table in self._tables]

    def rows(self, series: set[Key]) -> pa.Table | None:
        """Return the rows of some series, and forget all rows; None if not all of these series were kept."""
        tables, self._tables = self._tables[::-1], []
        if self._chosen is not None and not series <= self._chosen:
            return None
        found = []
        while tables:  # one after the other, so that there are never two copies of all
            found.append(_only(tables.pop(), series))
        return pa.concat_tables(found)


def _worst(rows: Sequence[Mapping[str, Any]], most: int) -> set[Key]:
    """Return the first series of the first metric that have values, of rows in the order of series."""
    return {_identity(row) for row in [row for row in rows if row["metric"] == rows[0]["metric"] and row["n"]][:most]}


def _only(shown: pa.Table, series: set[Key]) -> pa.Table:
    """Return the rows of some series."""
    identities = zip(*(_repeated(shown[name]) for name in _IDENTITY), strict=True)
    return shown.take(pa.array([at for at, one in enumerate(identities) if one in series], pa.int64()))


# -- uncertainty and objectives ---------------------------------------------------------------------------------------


class _Beyond:
    """Values of a series beyond the percentiles of the whole time, by batch.

    Args:
        cells: Those of the percentiles.
    """

    def __init__(self, cells: Sequence[int]) -> None:
        self._cells = cells
        self._found: list[tuple[datetime, list[int]]] = []

    def add(self, row: Mapping[str, Any]) -> None:
        """Take a batch."""
        counts = np.frombuffer(_hdr.decode(row["h"])[0], dtype=np.uint64)
        above = [int(counts[cell + 1 :].sum()) for cell in self._cells]
        self._found.append((row["ts"], [row["n"], row["sum"], *above]))

    def columns(self) -> Floats:
        """Return values, sum, and values beyond each percentile; one column per batch, in the order of time."""
        ordered = [numbers for _, numbers in sorted(self._found, key=lambda one: one[0])]
        return np.array(ordered, dtype=np.float64).T


def _cells(row: Mapping[str, Any]) -> list[int]:
    """Return the cells of the percentiles of a row."""
    layout = row["digits"], row["lowest"], row["highest"]
    return [cell_of(min(row[name], row["highest"]), *layout) for name in PERCENTILES]


class _Shares:
    """Messages within an objective, by series and period.

    Args:
        objective: None: nothing is counted.
    """

    def __init__(self, objective: Objective | None) -> None:
        self._objective = objective
        self._found: dict[tuple[str, ...], tuple[Shares, Shares]] = {}
        """Of hours and of whole days."""

    def add(self, shown: pa.Table) -> None:
        """Take the rows of a step."""
        if self._objective is None:
            return
        judged = _of_metrics(shown, (TOTAL, IMPORTED))
        for series, shares in shares_of(judged, None, self._objective, SHOWN).items():
            both = self._found.setdefault(series, ({}, {}))
            both[_is_of_days(judged)].update(shares)

    def judged(self, metric: str) -> tuple[Judged, ...]:
        """Return the series of a metric, those that used most of their budget first."""
        if self._objective is None:
            return ()
        found = [
            judged_of(labels, *both, self._objective)
            for series, both in self._found.items()
            if (labels := dict(zip(SHOWN, series, strict=True)))["metric"] == metric
        ]
        return tuple(sorted(found, key=lambda one: (-one.budget_used, tuple(one.series.values()))))


# -- series -----------------------------------------------------------------------------------------------------------


def _series(
    row: Mapping[str, Any], name: str, detail: str, whole: Hour, hours: tuple[Hour, ...], beyond: _Beyond
) -> SeriesFigures:
    counts, digits, lowest, highest = _hdr.decode(row["h"])
    histogram = Histogram(np.frombuffer(counts, dtype=np.uint64), lowest, highest, digits)
    sizes, sums, *above = beyond.columns()
    limits = [
        None if is_thin(row["n"], fraction) else percentile_limits(histogram, fraction, beyond_it, sizes)
        for fraction, beyond_it in zip(PERCENTILES.values(), above, strict=True)
    ]
    return SeriesFigures(
        labels={name: row[name] for name in SHOWN},
        name=name,
        detail=detail,
        whole=whole,
        mean_reach=ratio_reach(sums, sizes),
        limits=tuple(limits),
        clock_error_ns=row["clock_error_ns"],
        spectrum=spectrum(histogram),
        hours=hours,
    )


def _names(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Name and detail of each series: a short name, and the labels that make it unique."""
    layouts = {(row["digits"], row["lowest"]) for row in rows}
    origins = [name for name in ("host", "link", "build") if len({row[name] for row in rows}) > 1]
    found = []
    for row in rows:
        parts = [str(row["instance"]), str(row["topic"])]
        if row["metric"] == IMPORTED:
            parts.append(f"tag {row['tag']}" if row["tag"] else "")
        details = [f"{name} {row[name]}" for name in origins if row[name]]
        if row["tag"] and row["metric"] != IMPORTED:
            details.append(f"tag {row['tag']}")
        if len(layouts) > 1:
            details.append(f"{row['digits']} digits from {row['lowest']} ns")
        found.append((" · ".join(part for part in parts if part), ", ".join(details)))
    return found


# -- stages -----------------------------------------------------------------------------------------------------------


def _stacked(
    hourly: pa.Table, whole: pa.Table, rows: Sequence[Mapping[str, Any]], names: Sequence[tuple[str, str]]
) -> tuple[Stacked, ...]:
    """Return the stages of the receivers with the worst p99.9; those without all stages are left out."""
    by = [name for name in SHOWN if name != "metric"]
    received, of_hours = (_of_metrics(table, METRICS) for table in (whole, hourly))
    sent, sent_by_hour = (_of_metrics(table, SENDER_METRICS) for table in (whole, hourly))
    staged = {tuple(row[label] for label in by) for row in rows if row["metric"] == RECEIVED["order"]}
    found: dict[tuple[str, ...], Stacked] = {}
    for row, (name, detail) in zip(rows, names, strict=True):
        series = tuple(row[label] for label in by)
        if row["metric"] != TOTAL or series not in staged or series in found or len(found) == STACKED:
            continue
        mine, topic = {label: row[label] for label in by}, {"topic": row["topic"]}
        (stages,) = stages_of(_where(received, mine), _where(sent, topic), by).values()
        if stages.reason:
            continue
        (parts,) = stages_of(_where(of_hours, mine), _where(sent_by_hour, topic), by).values()
        reaches = {one: ratio_reach(parts.sums[:, at], parts.messages[:, at]) for at, one in enumerate(parts.names)}
        found[series] = Stacked(
            f"{name} ({detail})" if detail else name, stages, tuple(reaches.get(one) for one in stages.names)
        )
    return tuple(found.values())


def _where(table: pa.Table, labels: Mapping[str, str]) -> pa.Table:
    if not table.num_rows:
        return table
    mask = np.ones(table.num_rows, dtype=bool)
    for name, value in labels.items():
        mask &= pc.equal(table[name], value).to_numpy()
    return table.filter(pa.array(mask))


def _of_metrics(table: pa.Table, metrics: Iterable[str]) -> pa.Table:
    return table.filter(pc.is_in(table["metric"], pa.array(list(metrics), pa.string()))).combine_chunks()
