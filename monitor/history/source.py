"""Spark's data source `heliograph`: the rows of a spool, at once and as a stream.

    spark.dataSource.register(SpoolSource)
    spark.read.format("heliograph").load("/data/spool")
    spark.readStream.format("heliograph").option("history", "s3://latency/history").load("s3://latency/spool")

Rows have the columns of `latency_interval`, and `path` and `problem`: a file that cannot be read gives one row, whose
`problem` says why and whose other columns are empty. Copies of a file in one batch give each row once. With option
`content` = `files` a row is the path of a file below the spool, and no file is opened.

A place in the stream is the set of the files up to there (`monitor.history.ledger`), and by their names those that the
exporter did not name. Files of the spool never change, so two places always mean the same rows. Option `history`: a new
stream begins behind the files that this history has merged. Option `maxFilesPerTrigger`: files of a batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import Broken, no_spool, parquet_files, read_unit, scan
from heliograph.monitor.history.ledger import FileSet, Ledger
from heliograph.monitor.history.merge import shares
from heliograph.monitor.history.remote import below, located
from heliograph.monitor.history.schema import SPOOL, Column, arrow_schema, spark_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["FILES", "ROWS", "SpoolSource"]

ROWS = (
    *SPOOL,
    Column("path", "text", "File of the row."),
    Column("problem", "text", "Why the file cannot be read; empty: the row is data."),
)
"""Columns of the source."""

FILES = (Column("file", "text", "Path of a file below the spool."),)
"""Its columns with option `content` = `files`."""

_CONTENTS = {"rows": ROWS, "files": FILES}

_FILES = 2000
"""Files of a batch unless an option says otherwise; more than a day of a host that writes one a minute."""

_TASK_ROWS = 25_000
_BATCH_ROWS = 1000
_MAX_TASKS = 64


class SpoolSource(DataSource):
    """The data source; see the head of this file."""

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return "heliograph"

    def schema(self) -> StructType:
        """Columns of the rows."""
        return spark_schema(_CONTENTS[_content(self.options)])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reader of the whole spool."""
        return _Whole(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Reader of the files that come."""
        return _Stream(self.options)


def _content(options: Mapping[str, str]) -> str:
    content = options.get("content", "rows")
    if content not in _CONTENTS:
        raise UserError(f"content: {content!r} is none of {', '.join(_CONTENTS)}")
    return content


class _Listed(InputPartition):
    """Files by name.

    Args:
        names: Their paths below the spool.
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(tuple(names))


class _Part(InputPartition):
    """Files of one task.

    Args:
        units: Files to read together, see `monitor.history.files.Unit`.
        broken: Files whose footers cannot be read.
    """

    def __init__(self, units: Sequence[Sequence[str]] = (), broken: Sequence[Broken] = ()) -> None:
        super().__init__((tuple(units), tuple(broken)))


class _Files:
    """The files of the spool as partitions.

    Args:
        options: Options of the source.

    Raises:
        UserError: There is no path, or an option is wrong.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        if not options.get("path"):
            raise UserError('the source "heliograph" needs the directory of a spool: .load("DIR")')
        self._spool = located(options["path"])
        most = options.get("maxFilesPerTrigger", str(_FILES))
        if not re.fullmatch("[1-9][0-9]{0,8}", most):
            raise UserError(f"maxFilesPerTrigger: {most!r} is not a number from 1 to 999999999")
        self._content = _content(options)
        self.most = int(most)
        """Files of a batch."""

    def names(self) -> list[str]:
        """Return the paths of the files below the spool, the oldest day first."""
        if not self._spool.is_dir():
            raise no_spool(self._spool)
        return [str(below(path, self._spool)) for path in parquet_files(self._spool)]

    def split(self, names: set[str]) -> list[InputPartition]:
        """Return partitions with these files; what may be a copy of a file is in its partition."""
        if self._content == "files":
            return [_Listed(sorted(names))]
        found = scan(self._spool, lambda name: name not in names)
        tasks = max(1, min(_MAX_TASKS, len(found.units), -(-found.rows // _TASK_ROWS) or 1))
        parts = [_Part(tuple(unit.paths for unit in run)) for run in shares(found.units, tasks)]
        return [*parts, _Part(broken=found.broken)]


class _Place:
    """A place in the stream: the files before it.

    Args:
        files: Those with names of the exporter.
        others: The names of the others.
    """

    def __init__(self, files: FileSet, others: set[str]) -> None:
        self._files = files
        self._others = others

    @staticmethod
    def of(content: dict[str, Any]) -> _Place:
        return _Place(FileSet(content), {str(name) for name in content["others"]})

    def has(self, name: str) -> bool:
        return name in self._others or self._files.has(name)

    def add(self, names: Sequence[str]) -> None:
        self._files.add(names)
        self._others |= {name for name in names if not self._files.has(name)}

    def content(self) -> dict[str, Any]:
        return self._files.content() | {"others": sorted(self._others)}


class _Whole(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._files = _Files(options)

    def partitions(self) -> Sequence[InputPartition]:
        return self._files.split(set(self._files.names()))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _rows(partition)


class _Stream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._files = _Files(options)
        self._history = options.get("history")
        self._last: list[str] | None = None

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = self._files.names()

    def initialOffset(self) -> dict[str, Any]:
        files = Ledger(located(self._history)) if self._history else FileSet()
        return _Place(files, set()).content()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxFiles(self._files.most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        place = _Place.of(start)
        names = self._files.names() if self._last is None else self._last
        new = [name for name in names if not place.has(name)]
        place.add(new[: limit.max_files] if isinstance(limit, ReadMaxFiles) else new)
        return place.content()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        before, after = _Place.of(start), _Place.of(end)
        return self._files.split({name for name in self._files.names() if after.has(name) and not before.has(name)})

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _rows(partition)


def _arrow_rows() -> pa.Schema:
    """Return the columns as Spark checks them: it knows no columns without nulls."""
    return pa.schema([field.with_nullable(True) for field in arrow_schema(ROWS)])


def _rows(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if isinstance(partition, _Listed):
        yield from pa.table({"file": pa.array(partition.value, pa.string())}).to_batches(max_chunksize=_BATCH_ROWS)
        return
    units, broken = partition.value
    for one in broken:
        yield from _problem(one)
    for paths in units:
        for path, table in read_unit(paths):
            if isinstance(table, Broken):
                yield from _problem(table)
                continue
            table = table.append_column("path", pa.repeat(path, table.num_rows))
            table = table.append_column("problem", pa.repeat("", table.num_rows))
            yield from table.cast(_arrow_rows()).combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)


def _problem(broken: Broken) -> list[pa.RecordBatch]:
    empty = {"text": "", "binary": b""}
    row = {column.name: empty.get(column.kind, 0) for column in ROWS}
    table = pa.Table.from_pylist([row | {"path": broken.path, "problem": broken.reason}], schema=_arrow_rows())
    batches: list[pa.RecordBatch] = table.to_batches()
    return batches
