"""Samples for a study: the intervals of one series, in the order of time, as rows of counts.

A sample is chosen by labels and time (`Selection`), from a spool. Rows of one interval, such as those of two streams of
a topic, are added. Both samples of a comparison have the same columns, one per HDR cell that is filled in either.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from heliograph.monitor import _hdr
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import Broken, read_unit, scan
from heliograph.monitor.history.merge import ALL_LABELS, Merger, merge
from heliograph.monitor.history.remote import Place
from heliograph.monitor.history.schema import HISTORY, arrow_schema
from heliograph.monitor.latency import highest_of

__all__ = ["PAIR", "Metrics", "Pair", "Sample", "Selection", "choose", "load", "pairs", "parse_selection"]

Metrics = str | Sequence[str]

PAIR = ("instance", "topic", "metric", "tag")
"""Labels by which the series of two samples belong together; a stream lives as long as its process."""

Counts = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d)?)?)?(Z|[+-]\d\d:\d\d)?")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which intervals belong to a sample."""

    labels: Mapping[str, str]
    """Pattern by label, with ``*`` and ``?``."""
    from_us: int
    """Earliest start of an interval, microseconds since 1970."""
    to_us: int
    """Intervals start before this moment."""
    text: str
    """As the user wrote it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Counts of a series by interval."""

    starts_us: Integers
    """Start of each interval, ascending."""
    counts: Counts
    """One row per interval, one column per cell; whole numbers."""
    values: Integers
    """Largest value of each cell, ns, ascending."""

    @property
    def n(self) -> int:
        """Number of values."""
        return int(self.counts.sum())

    def part(self, first: int, last: int) -> Sample:
        """Return the intervals from index `first` up to but not including `last`."""
        return Sample(self.starts_us[first:last], self.counts[first:last], self.values)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two samples of one series; one of them may be missing."""

    series: tuple[tuple[str, str], ...]
    """Labels that name it."""
    a: Sample | None
    b: Sample | None


def parse_selection(text: str) -> Selection:
    """Read a selection such as ``build=4.1*,host=ny4-*,from=2026-11-20T08:00,to=2026-11-21``.

    Times are UTC unless they have an offset. An empty text selects everything.

    Raises:
        UserError: A part is not KEY=VALUE, the key is unknown, or a time cannot be read.
    """
    labels = {}
    bounds = {"from": -(1 << 62), "to": 1 << 62}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise UserError(f"selection {text!r}: {part!r} is not KEY=VALUE")
        if key in bounds:
            bounds[key] = _microseconds(text, value)
        elif key in ALL_LABELS:
            labels[key] = value
        else:
            raise UserError(f"selection {text!r}: no label {key!r}; use from, to, {', '.join(ALL_LABELS)}")
    if bounds["from"] >= bounds["to"]:
        raise UserError(f"selection {text!r}: it ends before it begins")
    return Selection(labels, bounds["from"], bounds["to"], text or "all")


def _microseconds(text: str, value: str) -> int:
    if _TIME.fullmatch(value):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            pass
        else:
            moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            return round(moment.timestamp() * 1e6)
    raise UserError(f"selection {text!r}: {value!r} is not a time such as 2026-11-21 or 2026-11-21T08:30")


def load(
    spool: Place, selections: Iterable[Selection], metric: Metrics, interval_s: float, by: Sequence[str] = PAIR
) -> tuple[list[pa.Table], list[tuple[Broken, int]]]:
    """Read the selected intervals.

    Args:
        spool: Directory of the spool.
        selections: The selections.
        metric: Name of the metric, such as ``receiver_total_latency``, or several.
        interval_s: Intervals that start in the same period of this many seconds are added.
        by: Labels that tell series apart.

    Returns:
        For each selection rows of `HISTORY`, one per period and series, and the unusable input.

    Raises:
        UserError: The spool does not exist.
    """
    found = scan(spool)
    wanted = list(selections)
    mergers = [Merger(round(interval_s * 1e6)) for _ in wanted]
    problems = [(broken, 0) for broken in found.broken]
    for unit in found.units:
        if all(unit.last_us < one.from_us or unit.first_us >= one.to_us for one in wanted):
            continue
        for path, table in read_unit(unit.paths):
            if isinstance(table, Broken):
                problems.append((table, 0))
                continue
            for selection, merger in zip(wanted, mergers, strict=True):
                chosen = choose(table, selection, metric)
                if chosen.num_rows:
                    merger.add(chosen, path)
    tables = [merge(merger.partial(), round(interval_s * 1e6), final=False, by=by)[0] for merger in mergers]
    return tables, problems + [problem for merger in mergers for problem in merger.problems]


def choose(table: pa.Table, selection: Selection, metric: Metrics) -> pa.Table:
    """Return the rows of a metric, or of several, that a selection chooses."""
    ts = table["ts"].cast(pa.int64())
    mask = pc.and_(pc.greater_equal(ts, selection.from_us), pc.less(ts, selection.to_us))
    wanted = [metric] if isinstance(metric, str) else list(metric)
    mask = pc.and_(mask, pc.is_in(table["metric"], pa.array(wanted, pa.string())))
    for label, pattern in selection.labels.items():
        names = [name for name in pc.unique(table[label]).to_pylist() if fnmatch.fnmatchcase(name, pattern)]
        mask = pc.and_(mask, pc.is_in(table[label], pa.array(names, pa.string())))
    return table.filter(mask)


def pairs(a: pa.Table, b: pa.Table, apart: Iterable[str] = ()) -> list[Pair]:
    """Return the series of two tables as pairs, in the order of their labels.

    Args:
        a: Rows that `load` returned.
        b: The same of the other selection.
        apart: Labels in which the two selections differ on purpose; they do not identify a series.
    """
    by = [name for name in PAIR if name not in set(apart)]
    tables = [_by_series(table, by) for table in (a, b)]
    return [_pair(tuple(zip(by, key[:-2], strict=True)), *(table.get(key) for table in tables))
            for key in sorted(set(tables[0]) | set(tables[1]))]  # fmt: skip


def _by_series(table: pa.Table, by: list[str]) -> dict[tuple[str, ...], pa.Table]:
    keys = [*by, "digits", "lowest"]
    result = {}
    for row in table.select(keys).group_by(keys, use_threads=False).aggregate([]).to_pylist():
        mask = pc.equal(table["n"], table["n"])
        for name in keys:
            mask = pc.and_(mask, pc.equal(table[name], row[name]))
        result[tuple(str(row[name]) for name in keys)] = table.filter(mask)
    return result


def _pair(series: tuple[tuple[str, str], ...], a: pa.Table | None, b: pa.Table | None) -> Pair:
    empty = arrow_schema(HISTORY).empty_table()
    decoded = [_decoded(table if table is not None else empty) for table in (a, b)]
    filled = np.unique(np.concatenate([cells for rows in decoded for _, cells, _ in rows] or [np.zeros(0, np.int64)]))
    whole = pa.concat_tables([table for table in (a, b) if table is not None])
    layout = whole["digits"][0].as_py(), whole["lowest"][0].as_py(), pc.max(whole["highest"]).as_py()
    values = highest_of(filled, *layout)
    samples = [_sample(rows, filled, np.asarray(values, dtype=np.int64)) for rows in decoded]
    return Pair(series, *samples)


Decoded = list[tuple[int, Integers, npt.NDArray[np.uint64]]]


def _decoded(table: pa.Table) -> Decoded:
    rows = []
    for ts, body in zip(table["ts"].cast(pa.int64()).to_pylist(), table["h"].to_pylist(), strict=True):
        counts = np.frombuffer(_hdr.decode(body)[0], dtype=np.uint64)
        cells = np.flatnonzero(counts)
        rows.append((ts, cells, counts[cells]))
    return sorted(rows, key=lambda row: row[0])


def _sample(rows: Decoded, filled: Integers, values: Integers) -> Sample | None:
    if not rows:
        return None
    starts = np.unique(np.array([ts for ts, _, _ in rows], dtype=np.int64))
    counts = np.zeros((starts.size, filled.size))
    for ts, cells, of_row in rows:
        counts[np.searchsorted(starts, ts), np.searchsorted(filled, cells)] += of_row
    return Sample(starts, counts, values)
