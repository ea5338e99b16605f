"""The roll-up: spool -> history, one row per hour and series, on Spark.

    units of files -> partly merged hours (in each task, by the C kernel) -> whole hours -> date=…/hour=… directories

Tasks read the files of the spool: a damaged file is named, left out and counted; other files are not affected.
Only partly merged rows travel between tasks.

Running it again gives the same rows. Every hour of the spool is rebuilt from all its intervals beside the history, and
replaces the old hour by a rename; hours that the spool no longer has stay. An hour with fewer intervals than before
(part of the spool is removed or unreadable) does not replace the old one and is reported, unless `replace` is set.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import Broken, Scan, Unit, parquet_files, scan
from heliograph.monitor.history.lock import FolderLock
from heliograph.monitor.history.merge import Merger, merge_unit
from heliograph.monitor.history.schema import HISTORY, SERIES, Column, arrow_schema, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["RolledUp", "dated", "partly_merged", "rollup", "units", "whole_hours"]

_PROBLEM = (
    Column("path", "text", "File that could not be used, whole or in part."),
    Column("reason", "text", "Reason; empty: the row is valid."),
    Column("rows", "integer", "Rows left out; 0: the whole file."),
)
PARTLY = (*HISTORY, *_PROBLEM)
"""Columns between the steps."""

_BATCH_ROWS = 1000


@dataclass(frozen=True, slots=True)
class RolledUp:
    """The result of a roll-up."""

    intervals: int
    """Intervals in the rebuilt hours."""
    values: int
    """Values in the rebuilt hours."""
    hours: int
    """Number of rebuilt hours."""
    kept: tuple[str, ...]
    """Hours with more intervals than the spool has now; they are unchanged."""
    problems: tuple[tuple[Broken, int], ...]
    """Unusable input, with the number of rows (0: the whole file)."""


# -- steps ------------------------------------------------------------------------------------------------------------


def units(spark: SparkSession, found: Iterable[Unit]) -> DataFrame:
    """Files to read, one row per unit, spread over the tasks."""
    rows = [(list(unit.paths), unit.rows) for unit in found]
    frame = spark.createDataFrame(rows, "paths array<string>, rows long")
    tasks = max(1, min(len(rows), 4 * spark.sparkContext.defaultParallelism))
    return frame.repartition(tasks)


def partly_merged(frame: DataFrame) -> DataFrame:
    """Read the units and merge what each task reads; problems are rows of their own."""
    return frame.select("paths").mapInArrow(_read_and_merge, spark_schema(PARTLY))


def whole_hours(frame: DataFrame) -> DataFrame:
    """Merge the parts of each hour and finish them: percentiles are computed only here."""
    good = frame.where("reason = ''").drop(*(column.name for column in _PROBLEM))
    together = good.repartition("ts").sortWithinPartitions("ts", *SERIES)
    return together.mapInArrow(_merge_and_finish, spark_schema(HISTORY))


def dated(frame: DataFrame) -> DataFrame:
    """Add the columns that name the directories."""
    return frame.selectExpr("*", "date_format(ts, 'yyyy-MM-dd') AS date", "date_format(ts, 'HH') AS hour")


def _read_and_merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    merger = Merger()
    problems: list[tuple[Broken, int]] = []
    for batch in batches:
        for paths in batch.column("paths").to_pylist():
            part, trouble = merge_unit(paths)
            merger.add(part)
            problems += trouble
    yield from _batches(_with_problem(merger.partial()))
    if problems:
        yield from _batches(_problem_rows(problems))


def _merge_and_finish(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    merger = Merger()
    schema = arrow_schema(HISTORY)
    for batch in batches:
        merger.add(pa.Table.from_batches([batch]).cast(schema))
    yield from _batches(merger.result())


def _with_problem(table: pa.Table) -> pa.Table:
    for column in _PROBLEM:
        empty = pa.scalar("" if column.kind == "text" else 0, pa.string() if column.kind == "text" else pa.int64())
        table = table.append_column(column.name, pa.repeat(empty, table.num_rows))
    return table.cast(arrow_schema(PARTLY))


def _problem_rows(problems: list[tuple[Broken, int]]) -> pa.Table:
    columns: dict[str, pa.Array] = {
        field.name: pa.nulls(len(problems), field.type).fill_null(_zero(field.type)) for field in arrow_schema(PARTLY)
    }
    columns["path"] = pa.array([broken.path for broken, _ in problems])
    columns["reason"] = pa.array([broken.reason or "unknown" for broken, _ in problems])
    columns["rows"] = pa.array([rows for _, rows in problems], pa.int64())
    return pa.table(columns, schema=arrow_schema(PARTLY))


def _zero(kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_string(kind):
        return pa.scalar("", kind)
    if pa.types.is_binary(kind):
        return pa.scalar(b"", kind)
    return pa.scalar(0, pa.int64()).cast(kind)


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = table.combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)
    return batches


# -- job --------------------------------------------------------------------------------------------------------------


def rollup(spark: SparkSession, spool: Path, history: Path, *, replace: bool = False) -> RolledUp:
    """Roll a spool up into a history. Every worker must see both directories under the same name.

    Args:
        spark: The session.
        spool: Directory to read.
        history: Directory to write; created when missing.
        replace: Also replace hours by hours with fewer intervals.

    Raises:
        UserError: The spool does not exist, or the history cannot be written.
    """
    found = scan(spool)
    problems = [(broken, 0) for broken in found.broken]
    fresh = history / f".tmp-{os.getpid()}"
    with FolderLock(history, f"another roll-up is writing the history {history}; run this one after it"):
        try:
            _remove_leftovers(history)
            if found.units:
                problems += _write_hours(spark, found, fresh.resolve())
            return _put_in_place(fresh, history, sorted(problems, key=_order), replace=replace)
        except OSError as error:
            raise UserError(f"the history {history} cannot be written: {error.strerror or error}") from error
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def _write_hours(spark: SparkSession, found: Scan, folder: Path) -> list[tuple[Broken, int]]:
    """Write the hours below `folder`; returns the unusable input."""
    parts = units(spark, _absolute(found.units)).transform(partly_merged).persist()
    try:
        told = parts.where("reason <> ''").select("path", "reason", "rows").collect()
        hours = parts.transform(whole_hours).transform(dated)
        writer = hours.write.partitionBy("date", "hour").option("parquet.enable.dictionary#h", "false")
        writer.mode("overwrite").parquet(str(folder))
    finally:
        parts.unpersist()
    return [(Broken(row["path"], row["reason"]), row["rows"]) for row in told]


def _order(problem: tuple[Broken, int]) -> tuple[str, str]:
    return problem[0].path, problem[0].reason


def _absolute(found: Iterable[Unit]) -> Iterator[Unit]:
    return (Unit(tuple(str(Path(path).resolve()) for path in unit.paths), unit.rows) for unit in found)


def _remove_leftovers(history: Path) -> None:
    """Remove the files of killed runs. An hour that such a run had moved away and not replaced is restored."""
    for aside in sorted(history.glob(".old-*")):
        for hour in aside.glob("date=*/hour=*"):
            place = history / hour.relative_to(aside)
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                hour.rename(place)
        shutil.rmtree(aside, ignore_errors=True)
    for temporary in history.glob(".tmp-*"):
        shutil.rmtree(temporary, ignore_errors=True)


def _put_in_place(fresh: Path, history: Path, problems: list[tuple[Broken, int]], *, replace: bool) -> RolledUp:
    aside = history / f".old-{os.getpid()}"
    intervals = values = hours = 0
    kept = []
    for hour in sorted(fresh.glob("date=*/hour=*")):
        name = hour.relative_to(fresh)
        place = history / name
        new_intervals, new_values = _content(hour)
        if place.exists():
            if not replace and _content(place)[0] > new_intervals:
                kept.append(str(name))
                continue
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            place.rename(aside / name)
        place.parent.mkdir(parents=True, exist_ok=True)
        hour.rename(place)
        intervals, values, hours = intervals + new_intervals, values + new_values, hours + 1
    shutil.rmtree(aside, ignore_errors=True)
    return RolledUp(intervals, values, hours, tuple(kept), tuple(problems))


def _content(hour: Path) -> tuple[int, int]:
    """Return intervals and values in the directory of an hour; none when it cannot be read."""
    intervals = values = 0
    for path in parquet_files(hour):
        try:
            table = pq.ParquetFile(path).read(columns=["intervals", "n"])
        except (OSError, pa.ArrowException):
            continue
        intervals += sum(table["intervals"].to_pylist())
        values += sum(table["n"].to_pylist())
    return intervals, values
