"""The report: a latency history as one self-contained HTML file.

For each metric: the percentile spectrum of every series over the whole time, a table of percentiles and jitter, p99.9
by hour, and a row for every hour. A day that is stored without its hours (`monitor.history.retention`) is one step of
24 hours. The report reads the history's files directly, without Spark, one UTC day after the other. All figures come
from merged counts; percentiles are never averaged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from heliograph.monitor import _hdr
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import Broken
from heliograph.monitor.history.hours import is_of_day, read_parts
from heliograph.monitor.history.merge import DAY_US, HOUR_US, Merger, merge
from heliograph.monitor.history.remote import Place
from heliograph.monitor.history.report_page import page
from heliograph.monitor.history.schema import IMPORTED, LABELS, PERCENTILES, metric_titles
from heliograph.monitor.latency import Spectrum, spectrum
from heliograph.monitor.model import Histogram

__all__ = ["Hour", "MetricReport", "Reported", "SeriesReport", "report", "write_report"]


SHOWN = (*LABELS, "host", "build")
"""Labels that tell the series of a report apart; incarnations, links and levels of detail are added."""
_IDENTITY = (*SHOWN, "digits", "lowest")
_FIGURES = ("ts", "len_ms", "n", "dropped", "sum", "max", *PERCENTILES)


@dataclass(frozen=True, slots=True)
class Hour:
    """Figures of a series over an hour, a day or the whole time, ns."""

    start: datetime
    length: timedelta
    """An hour or a day; of the whole time: from its first to its last interval."""
    n: int
    dropped: int
    mean: float
    percentiles: tuple[int, ...]
    """In the order of `PERCENTILES`."""
    max: int

    @property
    def is_day(self) -> bool:
        """Whether it is a day that is stored without its hours."""
        return self.length > timedelta(hours=1)

    @property
    def jitter(self) -> int:
        """p99.9 - p50."""
        at = dict(zip(PERCENTILES, self.percentiles, strict=True))
        return at["p99_9"] - at["p50"]


@dataclass(frozen=True, slots=True)
class SeriesReport:
    """Figures of one series: over the whole time, and for every hour or day."""

    name: str
    detail: str
    """Further labels that distinguish the series, for small print."""
    whole: Hour
    spectrum: Spectrum
    hours: tuple[Hour, ...]


@dataclass(frozen=True, slots=True)
class MetricReport:
    """All series of one metric, the worst p99.9 first."""

    metric: str
    title: str
    series: tuple[SeriesReport, ...]


@dataclass(frozen=True, slots=True)
class Reported:
    """A report and the files that could not be read."""

    html: str
    series: int
    broken: tuple[Broken, ...]


def report(history: Place, title: str = "Latency history") -> Reported:
    """Make the report of a history.

    Raises:
        UserError: There is no history, or it has no readable hours.
    """
    broken: list[Broken] = []
    metrics = _metrics(_readable(history, broken))
    if not metrics:
        hint = f" ({len(broken)} files could not be read)" if broken else ""
        raise UserError(f"the history {history} has no hours{hint}; run `heliograph history rollup` first")
    return Reported(page(title, metrics, broken), sum(len(metric.series) for metric in metrics), tuple(broken))


def write_report(text: str, path: Path) -> None:
    """Write a report atomically.

    Raises:
        UserError: The file cannot be written.
    """
    temporary = path.with_name(f".tmp-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise UserError(f"the report {path} cannot be written: {error.strerror or error}") from error


def _readable(history: Place, broken: list[Broken]) -> Iterable[pa.Table]:
    """Yield the hours and days with rows; add the files that cannot be read to `broken`."""
    for found in read_parts(history):
        if isinstance(found, Broken):
            broken.append(found)
        elif found.num_rows:
            yield found


def _by_shown(table: pa.Table) -> pa.Table:
    """Return the rows of an hour or a day, one per shown series."""
    keys = ["ts", *_IDENTITY]
    is_one_each = table.select(keys).group_by(keys, use_threads=False).aggregate([]).num_rows == table.num_rows
    if is_one_each:
        return table
    return merge(table, DAY_US if is_of_day(table)[0].as_py() else HOUR_US, by=SHOWN)[0]


def _metrics(tables: Iterable[pa.Table]) -> list[MetricReport]:
    hours: dict[tuple[object, ...], list[Hour]] = {}
    merger = Merger(None)
    for table in map(_by_shown, tables):
        merger.add(table)
        for row in table.select([*_IDENTITY, *_FIGURES]).to_pylist():
            hours.setdefault(_identity(row), []).append(_hour(row))
    whole, _ = merge(merger.partial(), period=None, by=SHOWN)
    titles = metric_titles()
    found: dict[str, list[SeriesReport]] = {}
    rows = whole.to_pylist()
    names = _names(rows)
    for row, (name, detail) in zip(rows, names, strict=True):
        counts, digits, lowest, highest = _hdr.decode(row["h"])
        histogram = Histogram(np.frombuffer(counts, dtype=np.uint64), lowest, highest, digits)
        found.setdefault(row["metric"], []).append(
            SeriesReport(name, detail, _hour(row), spectrum(histogram), _in_order(hours[_identity(row)]))
        )
    worst_first = list(PERCENTILES).index("p99_9")
    return [
        MetricReport(
            metric,
            titles.get(metric, metric),
            tuple(sorted(series, key=lambda one: (-one.whole.percentiles[worst_first], one.name, one.detail))),
        )
        for metric, series in sorted(found.items(), key=lambda item: (item[0] != "receiver_total_latency", item[0]))
    ]


def _in_order(hours: Iterable[Hour]) -> tuple[Hour, ...]:
    return tuple(sorted(hours, key=lambda hour: hour.start))


def _identity(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in _IDENTITY)


def _hour(row: dict[str, object]) -> Hour:
    integers = {name: int(str(row[name])) for name in _FIGURES if name != "ts"}
    start = row["ts"]
    assert isinstance(start, datetime)
    return Hour(
        start=start,
        length=timedelta(milliseconds=integers["len_ms"]),
        n=integers["n"],
        dropped=integers["dropped"],
        mean=integers["sum"] / integers["n"] if integers["n"] else 0.0,
        percentiles=tuple(integers[name] for name in PERCENTILES),
        max=integers["max"],
    )


def _names(rows: Sequence[dict[str, object]]) -> list[tuple[str, str]]:
    """Name and detail of each series: a short name, and the labels that make it unique."""
    layouts = {(row["digits"], row["lowest"]) for row in rows}
    origins = [name for name in ("host", "build") if len({row[name] for row in rows}) > 1]
    found = []
    for row in rows:
        parts = [str(row["instance"]), str(row["topic"])]
        if row["metric"] == IMPORTED:
            parts.append(f"tag {row['tag']}" if row["tag"] else "")
        details = [f"stream {row['stream']}" if row["stream"] else ""]
        details += [f"{name} {row[name] or 'unknown'}" for name in origins]
        if row["tag"] and row["metric"] != IMPORTED:
            details.append(f"tag {row['tag']}")
        if len(layouts) > 1:
            details.append(f"{row['digits']} digits from {row['lowest']} ns")
        found.append((" · ".join(part for part in parts if part), ", ".join(part for part in details if part)))
    return found
