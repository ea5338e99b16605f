"""The halves of the roll-up on Spark: `DataFrame -> DataFrame` steps around `read_units` and `write_hour`.

    units of files -> partly merged hours (in each task, by the C kernel) -> whole hours, written by the tasks

Tasks read and write the files with pyarrow, not through the JVM: so a damaged file can be named and left out, and only
partly merged rows travel between tasks. The driver receives notes and the names of the written files, no histograms.
"""

from __future__ import annotations

import json
import socket
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from heliograph.monitor.history.files import Broken, Unit
from heliograph.monitor.history.fresh import Found, Job, read_units
from heliograph.monitor.history.merge import shares
from heliograph.monitor.history.rollup import Plan, Written, write_hour
from heliograph.monitor.history.schema import HISTORY, LABELS, Column, arrow_schema, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["OnSpark"]

_NOTE = (
    Column("part", "integer", "Number that spreads the series of an hour over tasks."),
    Column("note", "text", "Notes of the task, as JSON; empty: the row is data."),
)
PARTLY = (*HISTORY, *_NOTE)
"""Columns between the halves."""

_BATCH_ROWS = 1000
_TASK_ROWS = 25_000
"""Intervals of a task of the first half, about."""
_PART_ROWS = 20_000
"""Partly merged rows of an hour above which it is written by several tasks, as several files."""


class OnSpark:
    """Runs the halves as Spark jobs.

    Args:
        spark: The session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._local = str(spark.sparkContext.master).startswith("local")
        self._parts: DataFrame | None = None
        self._spread = 1

    def read(self, jobs: Sequence[Job]) -> Found:
        """See `Runner`. The rows stay with the workers until `write`."""
        tasks = [json.dumps([asdict(job) for job in run]) for run in self._runs(jobs)]
        # One number for each task: to place a row in each partition takes no shuffle.
        frame = self._spark.range(0, len(tasks), 1, len(tasks))
        self._parts = frame.mapInArrow(partial(_read, tasks=tasks, local=self._local), spark_schema(PARTLY)).persist()
        found = Found()
        rows_of_hours: Counter[str] = Counter()
        for row in self._parts.where("note <> ''").select("note").collect():
            more, rows_of_task = _decoded(row["note"])
            found.add(more)
            rows_of_hours.update(rows_of_task)
        self._spread = 1 + max(rows_of_hours.values(), default=0) // _PART_ROWS
        return found

    def _runs(self, jobs: Sequence[Job]) -> list[list[Job]]:
        """Return neighbours of the spool for each task: they have the same hours, so few merged rows remain."""
        by_unit = {job.unit.paths: job for job in jobs}
        rows = sum(job.unit.rows for job in jobs)
        tasks = max(2 * self._spark.sparkContext.defaultParallelism, rows // _TASK_ROWS)
        return [[by_unit[unit.paths] for unit in run] for run in shares([job.unit for job in jobs], tasks)]

    def write(self, plan: Plan) -> Iterable[Written]:
        """See `Runner`."""
        assert self._parts is not None, "write follows read"
        from pyspark.sql import functions as f

        spread = self._spread
        # One row without intervals per hour and part, so that a part with committed rows only is written as well.
        empty = self._spark.createDataFrame(
            [(begin, part) for begin in plan.bases for part in range(spread)], "begin long, part long"
        )
        data = self._parts.where("note = ''").withColumn("part", f.col("part") % spread)
        begins = empty.select(f.timestamp_micros("begin").alias("ts"), "part")
        together = data.unionByName(begins, allowMissingColumns=True)
        ordered = together.repartition("ts", "part").sortWithinPartitions("ts", "part")
        result = ordered.mapInArrow(partial(_write, plan=plan, spread=spread), _written_schema())
        try:
            return [Written(**row.asDict()) for row in result.collect()]
        finally:
            self._parts.unpersist()


def _read(batches: Iterator[pa.RecordBatch], *, tasks: Sequence[str], local: bool) -> Iterator[pa.RecordBatch]:
    numbers = [number for batch in batches for number in batch.column("id").to_pylist()]
    jobs = [_job(content) for number in numbers for content in json.loads(tasks[number])]
    table, found = read_units(jobs, "" if local else socket.gethostname())
    parts = pa.array([_part(row) for row in table.select(list(LABELS)).to_pylist()], pa.int64())
    table = table.append_column("part", parts).append_column("note", pa.repeat("", table.num_rows))
    yield from table.cast(arrow_schema(PARTLY)).combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)
    if found.merged or found.problems:
        columns = {field.name: pa.array([_zero(field.type)], field.type) for field in arrow_schema(PARTLY)}
        columns["note"] = pa.array([_encoded(found, Counter(table["ts"].cast(pa.int64()).to_pylist()))])
        yield from pa.table(columns, schema=arrow_schema(PARTLY)).to_batches()


def _part(row: dict[str, str]) -> int:
    return zlib.crc32("\0".join(row.values()).encode("utf-8", "surrogatepass"))


def _job(content: dict[str, Any]) -> Job:
    unit = content["unit"]
    skip = {source: [(first, last) for first, last in ranges] for source, ranges in content["skip"].items()}
    closed = {int(day): reason for day, reason in content["closed"].items()}
    return Job(Unit(**(unit | {"paths": tuple(unit["paths"]), "sources": tuple(unit["sources"])})), skip, closed)


def _encoded(found: Found, rows_of_hours: Mapping[int, int]) -> str:
    problems = [(broken.path, broken.reason, rows) for broken, rows in found.problems]
    return json.dumps({"merged": found.merged, "problems": problems, "rows": rows_of_hours})


def _decoded(text: str) -> tuple[Found, dict[str, int]]:
    """Return the notes of a task, and its number of rows of each hour."""
    content = json.loads(text)
    found = Found(
        {
            int(begin): {source: [(first, last) for first, last in ranges] for source, ranges in sources.items()}
            for begin, sources in content["merged"].items()
        },
        [(Broken(path, reason), rows) for path, reason, rows in content["problems"]],
    )
    return found, content["rows"]


def _zero(kind: pa.DataType) -> object:
    if pa.types.is_string(kind):
        return ""
    return b"" if pa.types.is_binary(kind) else 0


def _written_schema() -> str:
    kinds = {"str": "string", "int": "long"}
    return ", ".join(f"{field.name} {kinds[str(field.type)]}" for field in fields(Written))


def _write(batches: Iterator[pa.RecordBatch], *, plan: Plan, spread: int) -> Iterator[pa.RecordBatch]:
    """Write the hours of a partition; its rows come sorted by hour and part, so one of them is held at a time."""
    held: list[pa.Table] = []
    key: tuple[int, int] | None = None
    for batch in batches:
        table = pa.Table.from_batches([batch])
        begins, parts = table["ts"].cast(pa.int64()), table["part"]
        for one in dict.fromkeys(zip(begins.to_pylist(), parts.to_pylist(), strict=True)):
            if one[0] not in plan.bases:  # the hour must stay as it is
                continue
            if key is not None and one != key:
                yield _row(_write_part(plan, key, spread, held))
                held = []
            key = one
            held.append(table.filter(pc.and_(pc.equal(begins, one[0]), pc.equal(parts, one[1]))))
    if key is not None:
        yield _row(_write_part(plan, key, spread, held))


def _write_part(plan: Plan, key: tuple[int, int], spread: int, held: list[pa.Table]) -> Written:
    begin, part = key
    rows = pa.concat_tables(held)
    rows = rows.filter(pc.greater(pc.fill_null(rows["intervals"], 0), 0))
    rows = rows.select([column.name for column in HISTORY]).cast(arrow_schema(HISTORY))
    is_mine = None if spread == 1 else lambda row: _part(row) % spread == part
    return write_hour(plan, begin, rows, is_mine)


def _row(written: Written) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([asdict(written)])
