"""Exact merging of histograms held in Arrow tables, by the C kernel; also the whole roll-up without Spark.

Merging adds counts cell by cell, so any order and any grouping give the same histogram, and partial results are rows
like any other. Percentiles are read once, from the final counts.

A row whose payload does not match its columns (damaged, another layout, another number of values) is left out, with its
reason. Other rows are not affected.

The work runs without the interpreter's lock, one group after another through one counts array: memory is the input,
the output, and 221 kB.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from heliograph.monitor import _hdr
from heliograph.monitor.history.files import Broken, Unit, UnreadableFile, read_in_steps, scan
from heliograph.monitor.history.remote import Place
from heliograph.monitor.history.schema import HISTORY, LABELS, ORIGIN, PERCENTILES, SERIES, arrow_schema

__all__ = ["ALL_LABELS", "Merger", "Period", "merge", "merge_spool", "merge_units", "shares"]

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US

ALL_LABELS = (*LABELS, *ORIGIN)

_COMPACT_BYTES = 128 << 20
_GATHER_ROWS = 25_000
_GATHER_BYTES = 16 << 20
"""More is merged in fewer steps, but the system takes longer to give the memory than the steps take."""
_UNSEEN = np.iinfo(np.int64).max
_SORTED_BY = [(name, "ascending") for name in ("ts", *SERIES)]

Integers = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]
"""Called with the rows done and the total."""

Period = int | None
"""Length of a period in microseconds: rows that start in the same one are merged; None: all rows are merged."""


@dataclass(frozen=True, slots=True)
class _Groups:
    """Rows by group: those of group g are ``order[starts[g]:starts[g + 1]]``."""

    order: Integers
    starts: Integers

    @property
    def first(self) -> Integers:
        """One row of each group."""
        return self.order[self.starts[:-1]]


def merge(
    table: pa.Table, period: Period = HOUR_US, *, final: bool = True, by: Sequence[str] = ALL_LABELS
) -> tuple[pa.Table, Counter[str]]:
    """Merge rows of the spool, of the history, or partly merged ones.

    Args:
        table: Columns of `SPOOL` or `HISTORY`.
        period: Length of the merged periods.
        final: Compute the percentiles; otherwise they are 0 and the result must be merged again.
        by: Labels that tell series apart. Another label is kept where all rows of a group agree, else empty.

    Returns:
        Rows of `HISTORY`, sorted by time and series, and how many rows were left out, by reason.
    """
    refused: Counter[str] = Counter()
    parts = [arrow_schema(HISTORY).empty_table()]
    for one_layout in _by_layout(table, refused):
        parts.append(_merge_layout(one_layout, period, refused, by, final=final))
    return pa.concat_tables(parts).sort_by(_SORTED_BY), refused


def _by_layout(table: pa.Table, refused: Counter[str]) -> Iterable[pa.Table]:
    """Rows of one (digits, lowest) at a time, without those of impossible layouts."""
    shapes = table.select(["digits", "lowest", "highest"]).group_by(["digits", "lowest", "highest"]).aggregate([])
    good: dict[tuple[int, int], list[int]] = {}
    for shape in shapes.to_pylist():
        try:
            _hdr.cells(shape["digits"], shape["lowest"], shape["highest"])
        except ValueError as error:
            mask = _is(table, shape["digits"], shape["lowest"], [shape["highest"]])
            refused[str(error)] += pc.sum(mask).as_py()
        else:
            good.setdefault((shape["digits"], shape["lowest"]), []).append(shape["highest"])
    if len(good) == 1 and not refused:
        yield table
        return
    for (digits, lowest), highest in sorted(good.items()):
        yield table.filter(_is(table, digits, lowest, highest))


def _is(table: pa.Table, digits: int, lowest: int, highest: list[int]) -> pa.ChunkedArray:
    same = pc.and_(pc.equal(table["digits"], digits), pc.equal(table["lowest"], lowest))
    return pc.and_(same, pc.is_in(table["highest"], pa.array(highest, pa.int64())))


def _merge_layout(
    table: pa.Table, period: Period, refused: Counter[str], by: Sequence[str], *, final: bool
) -> pa.Table:
    if table.num_rows == 0:
        return arrow_schema(HISTORY).empty_table()
    ts = _microseconds(table["ts"])
    begins = np.zeros_like(ts) if period is None else ts // period * period
    groups = _group(table, begins, by)
    quantiles = [*PERCENTILES.values(), 1.0] if final else [1.0]
    expected = _integers(table["n"])
    payloads = table["h"].cast(pa.large_binary()).combine_chunks()
    payloads = payloads.chunk(0) if isinstance(payloads, pa.ChunkedArray) else payloads
    _, offsets, data = payloads.buffers()
    ends, bodies, totals, highest, values, status = _hdr.merge(
        np.frombuffer(offsets, dtype=np.int64)[payloads.offset : payloads.offset + table.num_rows + 1],
        data if data is not None else b"",
        groups.order,
        groups.starts,
        _integers(table["highest"]),
        table["digits"][0].as_py(),
        table["lowest"][0].as_py(),
        quantiles,
        np.maximum(expected, 0),
    )
    accepted = np.frombuffer(status, dtype=np.uint8) == 0
    for code, rows in Counter(np.frombuffer(status, dtype=np.uint8)[~accepted].tolist()).items():
        refused[f"a payload {_hdr.refusal(code)}"] += rows

    n = np.frombuffer(totals, dtype=np.int64)
    at = np.frombuffer(values, dtype=np.int64).reshape(len(n), len(quantiles))
    is_counted = accepted & (expected > 0)
    smallest = _reduce(np.minimum, np.where(is_counted, _integers(table["min"]), _UNSEEN), groups)
    first_us, last_us, covered_ms = _time(table, ts, accepted, groups)
    columns: dict[str, pa.Array] = {
        "ts": pa.array(first_us if period is None else begins[groups.first]),
        "len_ms": pa.array((last_us - first_us) // 1000 if period is None else np.full(len(n), period // 1000)),
        **{name: table[name].take(pa.array(groups.first)).combine_chunks() for name in (*by, "digits", "lowest")},
        **{name: _common(table[name], groups) for name in ALL_LABELS if name not in by},
        "highest": pa.array(np.frombuffer(highest, dtype=np.int64)),
        "n": pa.array(n),
        "min": pa.array(np.where(n > 0, smallest, 0)),
        "max": pa.array(at[:, -1]),
        "sum": pa.array(_reduce(np.add, np.where(accepted, _integers(table["sum"]), 0), groups)),
        "dropped": pa.array(_reduce(np.add, np.where(accepted, _integers(table["dropped"]), 0), groups)),
        "clock_error_ns": pa.array(
            _reduce(np.maximum, np.where(accepted, _integers(table["clock_error_ns"]), 0), groups)
        ),
        "intervals": pa.array(_reduce(np.add, np.where(accepted, _intervals(table), 0), groups)),
        "first_ts": pa.array(first_us),
        "last_ts": pa.array(last_us),
        "covered_ms": pa.array(covered_ms),
        "h": pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(n), [None, pa.py_buffer(ends), pa.py_buffer(bodies)]
        ),
    }
    for index, name in enumerate(PERCENTILES):
        columns[name] = pa.array(at[:, index] if final else np.zeros(len(n), dtype=np.int64))
    schema = arrow_schema(HISTORY)
    merged = pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)
    return merged.filter(pc.greater(merged["intervals"], 0))


def _group(table: pa.Table, begins: Integers, by: Sequence[str]) -> _Groups:
    code = np.unique(begins, return_inverse=True)[1].astype(np.int64)
    for name in by:
        encoded = table[name].combine_chunks().dictionary_encode()
        encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        labels = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # Dense again after each step, so that the product cannot overflow.
        code = np.unique(code * max(1, len(encoded.dictionary)) + labels, return_inverse=True)[1].astype(np.int64)
    order = np.argsort(code, kind="stable").astype(np.int64)
    counts = np.bincount(code)
    return _Groups(order, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))


def _common(column: pa.ChunkedArray, groups: _Groups) -> pa.Array:
    """Return the label of each group; empty where its rows differ."""
    encoded = column.combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    is_one = _reduce(np.minimum, codes, groups) == _reduce(np.maximum, codes, groups)
    return pc.if_else(pa.array(is_one), column.take(pa.array(groups.first)).combine_chunks(), "")


def _reduce(function: np.ufunc, values: Integers, groups: _Groups) -> Integers:
    result: Integers = function.reduceat(values[groups.order], groups.starts[:-1])
    return result


def _integers(column: pa.ChunkedArray) -> Integers:
    result: Integers = np.ascontiguousarray(column.to_numpy(), dtype=np.int64)
    return result


def _time(
    table: pa.Table, ts: Integers, accepted: npt.NDArray[np.bool_], groups: _Groups
) -> tuple[Integers, Integers, Integers]:
    """Return start and end of the intervals of each group, in microseconds, and the sum of their lengths in ms."""
    first_us, last_us, covered_ms = ts, ts + _integers(table["len_ms"]) * 1000, _integers(table["len_ms"])
    if "covered_ms" in table.column_names:  # merged already
        starts, ends = _microseconds(table["first_ts"]), _microseconds(table["last_ts"])
        is_known = ends > starts
        first_us, last_us = np.where(is_known, starts, first_us), np.where(is_known, ends, last_us)
        covered_ms = _integers(table["covered_ms"])
    return (
        _reduce(np.minimum, np.where(accepted, first_us, _UNSEEN), groups),
        _reduce(np.maximum, np.where(accepted, last_us, 0), groups),
        _reduce(np.add, np.where(accepted, covered_ms, 0), groups),
    )


def _microseconds(column: pa.ChunkedArray) -> Integers:
    return _integers(column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()))


def _intervals(table: pa.Table) -> Integers:
    if "intervals" in table.column_names:
        return _integers(table["intervals"])
    return np.ones(table.num_rows, dtype=np.int64)


class Merger:
    """Merges a stream of tables, keeping what is merged so far as rows and bounding them by merging them again.

    Small tables are gathered first: a merge has a fixed cost, and files of a minute have a few rows each. A large table
    is merged batch by batch, so that few histograms are copied at once.

    Args:
        period: Length of the merged periods.
        by: Labels that tell series apart, see `merge`.
    """

    def __init__(self, period: Period = HOUR_US, by: Sequence[str] = ALL_LABELS) -> None:
        self._refused: Counter[Broken] = Counter()
        self._period = period
        self._by = by
        self._gathered: list[tuple[str, pa.Table]] = []
        self._rows = self._bytes = 0
        self._parts: list[pa.Table] = []
        self._limit = _COMPACT_BYTES

    @property
    def problems(self) -> list[tuple[Broken, int]]:
        """Rows left out: where they came from with the reason, and how many; complete after `partial` or `result`."""
        return list(self._refused.items())

    def add(self, table: pa.Table, path: str = "") -> None:
        """Merge one more table; `path` names it in `problems`."""
        for batch in table.to_batches():
            self._gathered.append((path, pa.Table.from_batches([batch])))
            self._rows += batch.num_rows
            self._bytes += batch.column("h").nbytes
            self._bound()

    def of_file(self, tables: Iterable[pa.Table], path: str) -> Merger:
        """Return a merger of the tables of a file, for `take`. If the iteration raises, none of them count."""
        result = Merger(self._period, self._by)
        for table in tables:
            result.add(table, path)
        return result

    def take(self, other: Merger) -> None:
        """Take over what another merger of the same period and labels has."""
        self._refused.update(other._refused)
        self._gathered += other._gathered
        self._rows += other._rows
        self._bytes += other._bytes
        self._bound()
        if other._parts:
            self._parts += other._parts
            self._compact()

    def _bound(self) -> None:
        """Merge what was gathered when it is enough."""
        if self._rows >= _GATHER_ROWS or self._bytes >= _GATHER_BYTES:
            self._merge_gathered()
            self._compact()

    def _compact(self) -> None:
        if len(self._parts) > 1 and sum(part.nbytes for part in self._parts) > self._limit:
            whole = self.partial()
            # What does not shrink is the size of the result; do not merge it over and over.
            self._limit = max(_COMPACT_BYTES, 2 * whole.nbytes)

    def partial(self) -> pa.Table:
        """All so far, to be merged again."""
        self._merge_gathered()
        if len(self._parts) != 1:
            whole, refused = self._merged(self._whole())
            self._note("", refused)
            self._parts = [whole]
        return self._parts[0]

    def result(self) -> pa.Table:
        """All, with percentiles."""
        self._merge_gathered()
        whole, refused = self._merged(self._whole(), final=True)
        self._note("", refused)
        return whole

    def _merge_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        self._rows = self._bytes = 0
        if not gathered:
            return
        # Tables of the spool and of the history have different columns.
        for names in sorted({tuple(table.column_names) for _, table in gathered}):
            of_kind = [(path, table) for path, table in gathered if tuple(table.column_names) == names]
            merged, refused = self._merged(pa.concat_tables([table for _, table in of_kind]))
            self._parts.append(merged)
            if refused:  # rare: find out from which tables
                for path, table in of_kind:
                    self._note(path, self._merged(table)[1])

    def _merged(self, table: pa.Table, *, final: bool = False) -> tuple[pa.Table, Counter[str]]:
        return merge(table, self._period, final=final, by=self._by)

    def _note(self, path: str, refused: Counter[str]) -> None:
        self._refused.update({Broken(path, reason): rows for reason, rows in refused.items()})

    def _whole(self) -> pa.Table:
        return pa.concat_tables(self._parts or [arrow_schema(HISTORY).empty_table()])


def merge_units(
    units: Iterable[Unit], period: Period = HOUR_US, progress: Callable[[Unit], None] | None = None
) -> tuple[pa.Table, list[tuple[Broken, int]]]:
    """Partly merge the files of some units; returns the unusable input with its number of rows (0: whole file)."""
    merger = Merger(period)
    problems: list[tuple[Broken, int]] = []
    for unit in units:
        for path, tables in read_in_steps(unit.paths):
            try:
                of_file = merger.of_file(tables, path)
            except UnreadableFile as error:
                problems.append((error.broken, 0))
            else:
                merger.take(of_file)
        if progress is not None:
            progress(unit)
    return merger.partial(), problems + merger.problems


def shares(units: Sequence[Unit], parts: int) -> list[list[Unit]]:
    """Split units into runs of about equal numbers of rows."""
    limit = max(1, -(-sum(unit.rows for unit in units) // max(1, parts)))
    result: list[list[Unit]] = []
    rows = limit
    for unit in units:
        if rows >= limit:
            result.append([])
            rows = 0
        result[-1].append(unit)
        rows += unit.rows
    return result


def merge_spool(
    folder: Place,
    period: Period = HOUR_US,
    *,
    by: Sequence[str] = ALL_LABELS,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[pa.Table, list[tuple[Broken, int]]]:
    """Merge a whole spool on this machine, without Spark.

    Args:
        folder: The spool.
        period: Length of the merged periods.
        by: Labels that tell series apart, see `merge`.
        threads: Number of threads; None: one per core.
        progress: Called with the rows done and their number.

    Returns:
        Rows of `HISTORY`, and the unusable input.

    Raises:
        UserError: The directory does not exist.
    """
    found = scan(folder)
    problems = [(broken, 0) for broken in found.broken]
    merger = Merger(period)
    done = 0
    lock = Lock()

    def count(unit: Unit) -> None:
        nonlocal done
        with lock:
            done += unit.rows
            if progress is not None:
                progress(done, found.rows)

    workers = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        # A share is merged in memory: many small ones let the threads end together and keep the memory flat.
        runs = shares(found.units, max(workers, found.rows // _GATHER_ROWS))
        for part, trouble in pool.map(lambda units: merge_units(units, period, count), runs):
            merger.add(part)
            problems += trouble
    return merge(merger.partial(), period, by=by)[0], problems + merger.problems
