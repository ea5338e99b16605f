"""Parquet files of the spool: written once, renamed into place, never changed, never named twice.

    spool/date=2026-11-21/0f3c9a7be21d4c55-000017.parquet      source, number within the source

A file is written under a hidden temporary name, flushed to disk (fsync of the file and of its directory) and renamed. A
reader sees it whole or not at all, and a renamed file survives a power cut. In an object store it is one PUT. Page
checksums are on, because the histograms have no zlib checksum.

`scan` finds the readable files. Copies are harmless: files with possibly equal rows form one unit, and `read_unit`
returns each (source, seq) once. An unreadable file is named and left out; all others are read.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.remote import Place, RemotePath, SomePlace, below, globbed, opened
from heliograph.monitor.history.schema import HISTORY, SPOOL, Column, LatencyInterval, arrow_schema
from heliograph.monitor.history.writes import put, sync_folder

__all__ = [
    "Broken",
    "Scan",
    "Unit",
    "UnreadableFile",
    "first_line",
    "no_spool",
    "normalized",
    "parquet_files",
    "read_in_steps",
    "read_table",
    "read_unit",
    "remove_leftovers",
    "scan",
    "to_table",
    "write_spool",
    "write_spool_table",
    "write_table",
]

ROW_GROUP_ROWS = 25_000
_BATCH_ROWS = 2000
"""Rows read at once. To allocate the histograms of 25,000 rows as one block costs more time than to decode them."""
_TEMPORARY = ".tmp-"

_WRITER: dict[str, Any] = {
    "compression": "zstd",
    "use_dictionary": [column.name for column in (*SPOOL, *HISTORY) if column.kind == "text"],
    "write_page_checksum": True,
    "coerce_timestamps": "us",
    "row_group_size": ROW_GROUP_ROWS,
}

_KEYS = tuple(column for column in SPOOL if column.name in ("source", "seq"))
_TOLD = tuple(column for column in SPOOL if column.name in ("source", "seq", "ts"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CALENDAR_US = tuple((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1) for year in (2, 9999))

_NEEDED = frozenset({"ts", "len_ms", "digits", "lowest", "highest", "n", "h", "source", "seq"})
"""Required columns of a spool file; the others have a natural empty value."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Input that could not be used."""

    path: str
    reason: str


class UnreadableFile(Exception):
    """A file is missing or damaged.

    Args:
        broken: The file and the reason.
    """

    def __init__(self, broken: Broken) -> None:
        super().__init__(f"{broken.path}: {broken.reason}")
        self.broken = broken


@dataclass(frozen=True, slots=True)
class Unit:
    """Files that must be read together because they may have equal rows; nearly always one."""

    paths: tuple[str, ...]
    rows: int
    sources: tuple[str, ...]
    first_us: int
    """Earliest start of an interval, microseconds since 1970."""
    last_us: int
    """Latest start."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The content of a spool."""

    units: tuple[Unit, ...]
    broken: tuple[Broken, ...]

    @property
    def rows(self) -> int:
        """Number of rows by the files' metadata, copies included."""
        return sum(unit.rows for unit in self.units)


Span = tuple[str, int, int]
"""A source and a range of its sequence numbers, both ends included."""
_CONTENT = b"heliograph.spool.content"


@dataclass(frozen=True, slots=True)
class _Content:
    """Sources, numbers and times of a file's rows. Files of the spool have it in their footer; a scan reads no rows."""

    spans: tuple[Span, ...]
    first_us: int
    last_us: int

    @classmethod
    def of_table(cls, table: pa.Table) -> _Content:
        by_source = table.group_by("source", use_threads=False).aggregate([("seq", "min"), ("seq", "max")])
        spans = sorted((row["source"], row["seq_min"], row["seq_max"]) for row in by_source.to_pylist())
        times = pc.min_max(table["ts"])
        return cls(tuple(spans), times["min"].value, times["max"].value)

    @classmethod
    def of_columns(cls, path: Place) -> _Content:
        """Read it from the columns: of files of other writers, and of releases that left nothing in the footer."""
        columns = _parquet(path).read([column.name for column in _TOLD], use_threads=False)
        return cls.of_table(normalized(columns, _TOLD))

    def encode(self, rows: int) -> bytes:
        """Return it as JSON, with the number of rows."""
        return json.dumps([rows, self.first_us, self.last_us, self.spans], separators=(",", ":")).encode()

    @classmethod
    def of_footer(cls, metadata: pq.FileMetaData) -> _Content | None:
        """Return the text of the writer, decoded; None: there is none, or it is not usable.

        It is not usable for another number of rows: tools that join files keep the metadata of the first.
        """
        try:
            rows, first_us, last_us, spans = json.loads((metadata.metadata or {})[_CONTENT])
            found = cls(tuple((source, low, high) for source, low, high in spans), first_us, last_us)
        except (KeyError, TypeError, ValueError, RecursionError):
            return None
        return found if found._is_sound() and rows == metadata.num_rows else None

    def _is_sound(self) -> bool:
        """Whether it may be true. Times beyond the calendar have no day, and would end a roll-up."""
        return (
            len(self.spans) > 0
            and all(isinstance(us, int) and _is_in_calendar(us) for us in (self.first_us, self.last_us))
            and all(isinstance(low, int) and isinstance(high, int) for _, low, high in self.spans)
            and all(isinstance(source, str) for source, _, _ in self.spans)
        )


# -- writing ----------------------------------------------------------------------------------------------------------


def to_table(rows: Sequence[LatencyInterval]) -> pa.Table:
    """Rows as Arrow columns."""
    columns = {
        column.name: [row.ts_ns // 1000 for row in rows]
        if column.name == "ts"
        else [getattr(row, column.name) for row in rows]
        for column in SPOOL
    }
    schema = arrow_schema(SPOOL)
    return pa.table([pa.array(columns[field.name], type=field.type) for field in schema], schema=schema)


def write_spool(folder: SomePlace, rows: Sequence[LatencyInterval], source: str, number: int) -> list[SomePlace]:
    """Write rows as one file per day. A file that already exists under its name stays unchanged.

    Raises:
        OSError: The disk is full, or there is no permission. Files already renamed stay; call again with the same
            arguments to write the rest.
    """
    days: dict[str, list[LatencyInterval]] = {}
    for row in rows:
        day = datetime.fromtimestamp(row.ts_ns // 1_000_000_000, UTC).date().isoformat()
        days.setdefault(day, []).append(row)
    written = []
    for day, of_day in sorted(days.items()):
        target = cast(SomePlace, folder / f"date={day}" / f"{source}-{number:06d}.parquet")
        if not target.is_file():
            write_spool_table(target, to_table(of_day))
        written.append(target)
    return written


def write_spool_table(target: Place, table: pa.Table) -> None:
    """Write rows of the spool as one file, with their content in its footer."""
    content = _Content.of_table(table).encode(table.num_rows)
    write_table(target, table.replace_schema_metadata({_CONTENT: content}))


def write_table(target: Place, table: pa.Table) -> None:
    """Write one Parquet file so that it appears whole or not at all, and durably."""
    if isinstance(target, RemotePath):
        buffer = BytesIO()
        pq.write_table(table, buffer, **_WRITER)
        put(target, buffer.getvalue())
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{_TEMPORARY}{os.getpid()}-{target.name}")
    try:
        with _locked(temporary) as file:
            pq.write_table(table, file, **_WRITER)
            file.flush()
            os.fsync(file.fileno())
            temporary.rename(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def _locked(path: Path) -> IO[bytes]:
    """Create a file and lock it. It is created again when `remove_leftovers` removed it before the lock."""
    while True:
        file = path.open("wb")
        try:
            fcntl.flock(file, fcntl.LOCK_SH)
            if os.fstat(file.fileno()).st_nlink > 0:
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of killed writers. A file that is being written is locked and stays."""
    for temporary in folder.glob(f"date=*/{_TEMPORARY}*"):
        try:
            with temporary.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(file.fileno()), temporary.stat()):
                    temporary.unlink()
        except OSError:  # locked, removed, or of another user
            continue


# -- reading ----------------------------------------------------------------------------------------------------------


def parquet_files(folder: SomePlace) -> list[SomePlace]:
    """Return the Parquet files below `folder`, sorted; hidden and temporary files are skipped."""
    return [
        path
        for path in globbed(folder, "*.parquet", deep=True)
        if path.is_file() and not any(part.startswith((".", "_")) for part in below(path, folder).parts)
    ]


def no_spool(folder: Place) -> UserError:
    """Return the error for a missing spool."""
    return UserError(f"no spool in {folder}: record one with `heliograph export spool --dir {folder}`")


def scan(folder: Place, skip: Callable[[str], bool] | None = None) -> Scan:
    """Read the footer of every file of a spool.

    Args:
        folder: Directory of the spool.
        skip: Called with a file's path below `folder`; files for which it returns True are not opened.

    Raises:
        UserError: The directory does not exist.
    """
    if not folder.is_dir():
        raise no_spool(folder)
    paths = [path for path in parquet_files(folder) if skip is None or not skip(str(below(path, folder)))]
    if isinstance(folder, RemotePath):
        with ThreadPoolExecutor(_REQUESTS) as pool:
            files = list(pool.map(_read_footer, paths))
    else:  # opening a local file takes less time than passing it to a thread and back
        files = list(map(_read_footer, paths))
    return Scan(
        tuple(_units([one for one in files if isinstance(one, _File)])),
        tuple(one for one in files if isinstance(one, Broken)),
    )


_REQUESTS = 16
"""Footers asked of a store at once. An answer takes some 10 ms, whatever its size."""


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    rows: int
    content: _Content


def _read_footer(path: Place) -> _File | Broken | None:
    """Return the file; None: it has no rows.

    The statistics of the columns would tell the content of any file, but to ask pyarrow for a column chunk of a damaged
    footer can end the process (its C++ exceptions are not caught there).
    """
    try:
        metadata = pq.read_metadata(opened(path))
        if reason := _unfit(metadata.schema):
            return Broken(str(path), reason)
        if metadata.num_rows > 0:
            content = _Content.of_footer(metadata) or _Content.of_columns(path)
            return _File(str(path), metadata.num_rows, content)
    except (OSError, pa.ArrowException, ValueError) as error:
        return Broken(str(path), first_line(error))
    return None


_PHYSICAL = {"source": "BYTE_ARRAY", "seq": "INT64"}
"""Types of the columns that name a row. Arrow would cast others, and give two rows one name."""


def _unfit(schema: pq.ParquetSchema) -> str | None:
    columns = [schema.column(index) for index in range(len(schema))]
    types = {column.path: column.physical_type for column in columns}
    if missing := sorted(_NEEDED - set(types)):
        return f"it lacks the columns {', '.join(missing)}"
    for name, physical in _PHYSICAL.items():
        if types[name] != physical:
            return f"its column {name} has type {types[name]}, not {physical}"
    return None


def _units(files: Sequence[_File]) -> Iterator[Unit]:
    """Group files with overlapping spans: a file with several sources joins the groups of all of them."""
    parent = list(range(len(files)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    reached: tuple[str, int, int] | None = None  # source, highest number so far, file that has it
    for (source, low, high), index in sorted(
        (span, index) for index, file in enumerate(files) for span in file.content.spans
    ):
        if reached is not None and reached[0] == source and low <= reached[1]:
            parent[root(index)] = root(reached[2])
            reached = source, max(reached[1], high), index
        else:
            reached = source, high, index
    groups: dict[int, list[_File]] = {}
    for index, file in enumerate(files):
        groups.setdefault(root(index), []).append(file)
    for group in groups.values():
        yield Unit(
            paths=tuple(sorted(file.path for file in group)),
            rows=sum(file.rows for file in group),
            sources=tuple(sorted({span[0] for file in group for span in file.content.spans})),
            first_us=min(file.content.first_us for file in group),
            last_us=max(file.content.last_us for file in group),
        )


def read_unit(paths: Sequence[str]) -> Iterator[tuple[str, pa.Table | Broken]]:
    """Yield the rows of each file of a unit, every (source, seq) once; `Broken` for an unreadable file."""
    for path, tables in read_in_steps(paths):
        try:
            steps = [arrow_schema(SPOOL).empty_table(), *tables]
        except UnreadableFile as error:
            yield path, error.broken
        else:
            yield path, pa.concat_tables(steps)


def read_in_steps(paths: Sequence[str]) -> Iterator[tuple[str, Iterator[pa.Table]]]:
    """Yield the rows of each file of a unit, every (source, seq) once, some thousand at a time.

    So a large file needs the memory of a few rows. The tables of a file raise `UnreadableFile` where it is damaged; the
    caller must then drop those that it took before. They must be used up before the next file is asked for.
    """
    seen: set[tuple[str, int]] = set()
    for path in paths:
        yield path, _readable_steps(path, seen, alone=len(paths) == 1)


def _readable_steps(path: str, seen: set[tuple[str, int]], *, alone: bool) -> Iterator[pa.Table]:
    try:
        yield from _steps(path, seen, alone=alone)
    except (OSError, pa.ArrowException, ValueError) as error:
        raise UnreadableFile(Broken(path, first_line(error))) from error


def _steps(path: str, seen: set[tuple[str, int]], *, alone: bool) -> Iterator[pa.Table]:
    """Yield the rows not seen before; keeps their keys unless no other file can repeat them."""
    file = _parquet(path)
    tables: Iterator[pa.Table]
    if file.metadata.num_rows <= _BATCH_ROWS:
        keys = _rows(file, SPOOL)
        tables = iter([keys])
    else:
        keys = normalized(file.read(["source", "seq"], use_threads=False), _KEYS)
        tables = (normalized(pa.Table.from_batches([batch], file.schema_arrow), SPOOL) for batch in _batches(file))
    if alone and _is_unique(keys):
        yield from tables
        return
    own: set[tuple[str, int]] = set()
    for table in tables:
        yield _unseen(table, seen, own)
    seen |= own  # only now: the rows of a damaged file are dropped


def _is_unique(keys: pa.Table) -> bool:
    seq = keys["seq"].to_numpy()
    if bool((seq[1:] > seq[:-1]).all()):  # as exporters number them
        return True
    groups = keys.select(["source", "seq"]).group_by(["source", "seq"], use_threads=False).aggregate([])
    return bool(groups.num_rows == keys.num_rows)


def _unseen(table: pa.Table, seen: set[tuple[str, int]], own: set[tuple[str, int]]) -> pa.Table:
    mask = []
    for key in zip(table["source"].to_pylist(), table["seq"].to_pylist(), strict=True):
        mask.append(key not in seen and key not in own)
        own.add(key)
    return table.filter(pa.array(mask, pa.bool_()))


def read_table(path: str | Place, columns: tuple[Column, ...]) -> pa.Table:
    """Read a Parquet file as `normalized` columns, and check its page checksums.

    Raises:
        OSError: The file is missing or cannot be read.
        ValueError: The file is damaged (`pyarrow.ArrowException` is one of its kinds), or its columns are unfit.
    """
    return _rows(_parquet(path), columns)


def _parquet(path: str | Place) -> pq.ParquetFile:
    return pq.ParquetFile(opened(path), page_checksum_verification=True)


def _batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    return file.iter_batches(_BATCH_ROWS, use_threads=False)  # type: ignore[no-any-return, unused-ignore]


def _rows(file: pq.ParquetFile, columns: tuple[Column, ...]) -> pa.Table:
    return normalized(pa.Table.from_batches(_batches(file), file.schema_arrow), columns)


def normalized(table: pa.Table, columns: tuple[Column, ...]) -> pa.Table:
    """Return the columns of a table in our order and types. Absent labels are empty and absent numbers 0.

    Raises:
        ValueError: A column has another type, lacks values, or has times beyond the calendar.
    """
    schema = arrow_schema(columns)
    if table.schema.equals(schema) and not any(column.null_count for column in table.itercolumns()):  # as we write it
        for column in columns:
            if column.kind == "time":
                _check_calendar(column.name, table[column.name])
        return table
    arrays = []
    for field in schema:
        if field.name not in table.column_names:
            empty = pa.scalar("" if pa.types.is_string(field.type) else 0, type=field.type)
            arrays.append(pa.chunked_array([pa.repeat(empty, table.num_rows)], type=field.type))
            continue
        column = table[field.name]
        if column.null_count:
            raise ValueError(f"column {field.name} lacks {column.null_count} values")
        try:
            arrays.append(pc.cast(column, field.type))
        except pa.ArrowException as error:
            raise ValueError(f"column {field.name} is {column.type}, not {field.type}") from error
        if pa.types.is_timestamp(field.type):
            _check_calendar(field.name, arrays[-1])
    return pa.Table.from_arrays(arrays, schema=schema)


def _is_in_calendar(us: int) -> bool:
    return _CALENDAR_US[0] <= us < _CALENDAR_US[1]


def _check_calendar(name: str, times: pa.ChunkedArray) -> None:
    """Check that each time has a date in the calendar of Python, with a year of room at both ends."""
    span = pc.min_max(times)
    for value in (span["min"].value, span["max"].value):
        if value is not None and not _is_in_calendar(value):
            raise ValueError(f"column {name} has a time outside the years 2 to 9998: {value} us since 1970")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its type when it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
