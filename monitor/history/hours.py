"""Committed hours of a history: immutable data files, and one manifest per hour that says which of them count.

    history/1h/date=2026-11-21/hour=13/manifest-000002.json     the newest one counts
    history/1h/date=2026-11-21/hour=13/5f0c…-9a41….parquet      rows of `latency_hour`

A manifest lists the data files and, per recording (`source`), the sequence numbers of the intervals merged into them.
So an hour accepts further intervals at any time, from any spool, and takes each one once. A commit is the creation of
the next manifest, which fails if another writer has created it. A reader therefore sees the old or the new hour, never
a mixture. Data files and manifests that no longer count are removed after the commit.

In an object store no lock keeps other writers away (ADR 0068). So only files are removed there that no writer can still
commit: those that an older manifest lists and the newest does not. And a writer that was slow may create a number that
was used and removed before. So after each commit it looks whether its manifest is the newest.

A day (`monitor.history.days`) may stand for its hours (`monitor.history.retention`): its newest manifest says so, and
readers take the rows of the day instead of those of its hours. Such a day is closed. The manifests of its hours are
sealed, so that no writer can commit these hours again.

Versions before 0.2 wrote `history/date=…/hour=…/*.parquet` and did not note which intervals an hour has. `adopt` moves
such hours here and marks them. `monitor.history.rollup` says how an adopted hour takes further intervals.
"""

from __future__ import annotations

import json
import os
import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import Broken, first_line, parquet_files, read_table
from heliograph.monitor.history.ranges import Ranges
from heliograph.monitor.history.remote import Place, RemotePath, SomePlace, below, globbed
from heliograph.monitor.history.schema import HISTORY, arrow_schema
from heliograph.monitor.history.writes import create, remove

__all__ = [
    "DAYS",
    "RUNG",
    "Contested",
    "DataFile",
    "Manifest",
    "adopt",
    "clear",
    "closed_days",
    "commit",
    "committed_days",
    "committed_hours",
    "dates",
    "discard",
    "folder_of",
    "hours_of",
    "is_of_day",
    "load",
    "name_of",
    "read_history",
    "read_hour",
    "read_parts",
    "sweep",
]

RUNG = "1h"
DAYS = "1d"
FORMAT = 2
CLOSED_FORMAT = 3
"""Format of the manifests of closed days and of their hours: earlier versions must not read one without the other."""
_HOUR_MS = 3_600_000
_TRIES = 5


@dataclass(frozen=True, slots=True)
class DataFile:
    """One immutable file of an hour."""

    name: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of an hour, or of a day (`monitor.history.days`)."""

    number: int = 0
    """Number of commits of the hour; 0: none yet."""
    files: tuple[DataFile, ...] = ()
    merged: Mapping[str, Ranges] = field(default_factory=dict)
    """Sequence numbers of the merged intervals by source."""
    intervals: int = 0
    values: int = 0
    adopted: bool = False
    """The hour was made by a version that did not note what it merged; `merged` is empty."""
    hours: Mapping[str, int] = field(default_factory=dict)
    """Of a day: the number of commits of each hour that it contains (``"13": 2``); `merged` is empty."""
    sealed: bool = False
    """Of an hour: the day is being closed, or is closed. The commit changed nothing else, and is the last one."""
    stands_for_hours: bool = False
    """Of a day: readers take its rows, not those of its hours, whose data files may be removed."""
    removed: bool = False
    """Of a day: it was removed with its hours. `intervals` and `values` tell how many there were."""
    batch: str = ""
    """Of an hour that a stream has committed: the number of its batch. Runs begin the names of its files."""

    @property
    def content_number(self) -> int:
        """Number of the commit that last changed the content."""
        return self.number - self.sealed


class Contested(UserError):
    """Another writer has committed the same hour or day: nothing is lost, and this writer must read it again."""


def folder_of(history: SomePlace, begin_us: int) -> SomePlace:
    """Return the directory of the hour that begins at `begin_us`, in microseconds since 1970."""
    begin = datetime.fromtimestamp(begin_us // 1_000_000, UTC)
    return cast(SomePlace, history / RUNG / f"date={begin:%Y-%m-%d}" / f"hour={begin:%H}")


def name_of(begin_us: int) -> str:
    """Return an hour as people write it: ``2026-11-21T13``."""
    return f"{datetime.fromtimestamp(begin_us // 1_000_000, UTC):%Y-%m-%dT%H}"


def committed_hours(history: SomePlace) -> Iterator[SomePlace]:
    """Yield the directories of all hours, in the order of time."""
    yield from globbed(history, f"{RUNG}/date=*/hour=*")


def committed_days(history: SomePlace) -> Iterator[SomePlace]:
    """Yield the directories of all days, in the order of time."""
    yield from globbed(history, f"{DAYS}/date=*")


def hours_of(history: SomePlace, date: str) -> list[SomePlace]:
    """Return the directories of the hours of a day (``date=2026-11-21``), in the order of time."""
    return globbed(history, f"{RUNG}/{date}/hour=*")


def dates(history: Place) -> list[str]:
    """Return the days that have hours or a day (``date=2026-11-21``), in the order of time."""
    return sorted({path.name for rung in (RUNG, DAYS) for path in globbed(history, f"{rung}/date=*")})


# -- manifests --------------------------------------------------------------------------------------------------------


def load(folder: Place) -> Manifest:
    """Return the newest manifest of an hour; an empty one when the hour has none.

    Raises:
        UserError: The manifest cannot be read.
    """
    newest = _newest(folder)
    if newest is None:
        return Manifest()
    try:
        return _read(newest)
    except FileNotFoundError:  # a newer one has replaced it
        return load(folder)


def _read(path: Place) -> Manifest:
    try:
        return _decoded(json.loads(path.read_bytes()), path)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: the manifest cannot be read: {first_line(error)}") from error


def _newest(folder: Place) -> Place | None:
    newest: Place | None = None
    for _ in range(2):  # a listing may miss both names when a commit replaces one by the other meanwhile
        newest = newest or next(reversed(_manifests(folder)), None)
    return newest


def _manifests(folder: SomePlace) -> list[SomePlace]:
    return globbed(folder, "manifest-*.json")


_MARKS = ("sealed", "stands_for_hours", "removed")


def _decoded(content: Any, path: Place) -> Manifest:
    if content["format"] not in (FORMAT, CLOSED_FORMAT):
        raise ValueError(
            f"it has format {content['format']}, this version reads {FORMAT} and {CLOSED_FORMAT}; update heliograph"
        )
    files = tuple(DataFile(str(one["name"]), int(one["rows"]), int(one["bytes"])) for one in content["files"])
    if any("/" in one.name or one.name.startswith(".") for one in files):
        raise ValueError("it names a file outside its directory")
    return Manifest(
        number=int(path.stem.removeprefix("manifest-")),
        files=files,
        merged={
            str(source): [(int(first), int(last)) for first, last in ranges]
            for source, ranges in content["merged"].items()
        },
        intervals=int(content["intervals"]),
        values=int(content["values"]),
        adopted=bool(content["adopted"]),
        hours={str(hour): int(number) for hour, number in content.get("hours", {}).items()},
        batch=str(content.get("batch", "")),
        **{name: bool(content.get(name, False)) for name in _MARKS},
    )


def commit(folder: Place, manifest: Manifest) -> None:
    """Make a manifest the newest one of its hour.

    Raises:
        Contested: Another writer has committed this number or a later one.
        OSError: The directory cannot be written.
    """
    marks = [name for name in _MARKS if getattr(manifest, name)]
    content: dict[str, Any] = {
        "format": CLOSED_FORMAT if marks else FORMAT,
        "files": [{"name": one.name, "rows": one.rows, "bytes": one.bytes} for one in manifest.files],
        "merged": {source: manifest.merged[source] for source in sorted(manifest.merged)},
        "intervals": manifest.intervals,
        "values": manifest.values,
        "adopted": manifest.adopted,
        "commit": secrets.token_hex(8),  # `create` tells by the content whose manifest it is
    }
    if manifest.hours:
        content["hours"] = dict(manifest.hours)
    if manifest.batch:
        content["batch"] = manifest.batch
    content |= dict.fromkeys(marks, True)
    if isinstance(folder, Path):
        folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"manifest-{manifest.number:06d}.json"
    is_mine = create(target, json.dumps(content).encode("ascii"))
    if not is_mine or _newest(folder) != target:
        what = "day" if manifest.hours else "hour"
        raise Contested(f"{target}: another writer has committed this {what}; run this again")


def sweep(folder: Place) -> None:
    """Remove the files of an hour that its newest manifest does not count.

    In an object store a file that no manifest lists stays: its writer may be about to commit it.
    """
    if isinstance(folder, RemotePath):
        _retire(folder)
        return
    manifest = load(folder)
    _keep(folder, {one.name for one in manifest.files} | {f"manifest-{manifest.number:06d}.json"})


def _retire(folder: RemotePath) -> None:
    """Remove the older manifests, and before them the files that only they list. A killed run leaves the manifest."""
    manifests = _manifests(folder)
    if len(manifests) < 2:
        return
    counted = {one.name for one in _read(manifests[-1]).files}
    for manifest in manifests[:-1]:
        with suppress(FileNotFoundError):  # another writer removes it
            listed = {one.name for one in _read(manifest).files}
            remove(folder / name for name in sorted(listed - counted))
            remove([manifest])


def discard(folder: Place, names: Iterable[str]) -> None:
    """Remove data files that this writer wrote and could not commit."""
    counted = {one.name for one in load(folder).files}
    remove(folder / name for name in names if name not in counted)


def clear(folder: Place) -> None:
    """Remove all files of a sealed hour but its newest manifest. Any other hour stays as it is."""
    manifest = load(folder)
    if manifest.sealed:
        _keep(folder, {f"manifest-{manifest.number:06d}.json"})


def _keep(folder: Place, names: set[str]) -> None:
    found = folder.glob("*") if isinstance(folder, RemotePath) else folder.iterdir()
    remove([path for path in found if path.name not in names])


def closed_days(history: Place, first: str = "", last: str = "~") -> dict[str, str]:
    """Return the days that take no more intervals, with the reason.

    A day is closed as soon as one of its hours is sealed: then a prune has begun, and the next one continues. A
    manifest that cannot be read closes nothing; a roll-up names it when the hour changes.

    Args:
        history: Directory of the history.
        first: First hour of interest, as `name_of` writes it.
        last: Last hour of interest.

    Returns:
        Reasons by day (``2026-11-21``).
    """
    closed: dict[str, str] = {}
    for date in dates(history):
        day = date.removeprefix("date=")
        if not first[:10] <= day <= last[:10]:
            continue
        for folder in (history / DAYS / date, *hours_of(history, date)):
            with suppress(UserError):
                manifest = load(folder)
                if manifest.removed:
                    closed[day] = f"the day {day} was removed from the history (`heliograph history prune`)"
                elif manifest.stands_for_hours or manifest.sealed:
                    closed.setdefault(
                        day, f"the hours of {day} were pruned (`heliograph history prune`) and take no more intervals"
                    )
            if day in closed:
                break
    return closed


# -- rows -------------------------------------------------------------------------------------------------------------


def read_hour(folder: Place, files: Sequence[DataFile]) -> pa.Table:
    """Return the rows of the data files of an hour.

    Raises:
        OSError: A file is missing or cannot be read.
        ValueError: A file is damaged (`pyarrow.ArrowException` is one of its kinds), or has other rows than listed.
    """
    tables = []
    for one in files:
        table = read_table(folder / one.name, HISTORY)
        if table.num_rows != one.rows:
            raise ValueError(f"{one.name} has {table.num_rows} rows, its manifest {one.rows}")
        tables.append(table)
    return pa.concat_tables(tables) if tables else arrow_schema(HISTORY).empty_table()


def read_history(history: Place) -> tuple[pa.Table, list[Broken]]:
    """Return all rows of a history, sorted by series and time, and the files that could not be read.

    Rows are of hours, or of the days that stand for their hours: see `is_of_day`.

    Raises:
        UserError: The directory does not exist.
    """
    tables = [arrow_schema(HISTORY).empty_table()]
    broken = []
    for found in read_parts(history):
        if isinstance(found, Broken):
            broken.append(found)
        else:
            tables.append(found)
    whole = pa.concat_tables(tables)
    order = [(name, "ascending") for name in ("metric", "instance", "topic", "stream", "tag", "digits", "lowest", "ts")]
    return whole.sort_by(order), broken


def is_of_day(table: pa.Table) -> pa.ChunkedArray:
    """Return for each row whether it is of a whole day, which cannot be split into hours."""
    return pc.greater(table["len_ms"], _HOUR_MS)


def read_parts(history: Place) -> Iterator[pa.Table | Broken]:
    """Yield the rows of one hour, or of one day that stands for its hours, after the other; and unreadable files.

    A thread reads the next UTC day meanwhile: decompression runs without the interpreter's lock, and stores are slow.
    Hours of earlier versions come last. A directory of these is taken as an hour.

    Raises:
        UserError: The directory does not exist.
    """
    if not history.is_dir():
        raise UserError(f"no history in {history}: create one with `heliograph history rollup`")
    with ThreadPoolExecutor(1) as thread:
        coming: deque[Future[list[pa.Table | Broken]]] = deque()
        for date in dates(history):
            coming.append(thread.submit(_of_date, history, date))
            if len(coming) > 1:
                yield from _used_up(coming.popleft().result())
        for last in coming:
            yield from _used_up(last.result())
    for _, paths in groupby(_of_earlier_versions(history), lambda path: path.parent):
        tables = [arrow_schema(HISTORY).empty_table()]
        for path in paths:
            try:
                tables.append(read_table(path, HISTORY))
            except (OSError, pa.ArrowException, ValueError) as error:
                yield Broken(str(path), first_line(error))
        yield pa.concat_tables(tables)


def _used_up(parts: list[pa.Table | Broken]) -> Iterator[pa.Table | Broken]:
    """Yield parts and forget each of them, so that the next day takes the memory of this one."""
    parts.reverse()
    while parts:
        yield parts.pop()


def _of_date(history: Place, date: str) -> list[pa.Table | Broken]:
    """Return the rows of a UTC day, all of its hours or all of the day.

    A file that is missing means that a commit replaced it, or that the day now stands for its hours. Then everything is
    read again: rows of hours and of the day are never mixed.
    """
    for _ in range(_TRIES - 1):
        with suppress(FileNotFoundError):
            return list(_tried(history, date, is_last=False))
    return list(_tried(history, date, is_last=True))


def _tried(history: Place, date: str, *, is_last: bool) -> Iterator[pa.Table | Broken]:
    day = Manifest()
    try:
        day = load(history / DAYS / date)
    except UserError as error:  # an hour whose rows were removed is named below
        yield Broken(str(history / DAYS / date), first_line(error))
    folders: list[Place] = [history / DAYS / date] if day.stands_for_hours else [*hours_of(history, date)]
    for folder in folders:
        try:
            yield read_hour(folder, load(folder).files)
        except (UserError, OSError, pa.ArrowException, ValueError) as error:
            if isinstance(error, FileNotFoundError) and not is_last:
                raise
            yield Broken(str(folder), first_line(error))


# -- hours of earlier versions ----------------------------------------------------------------------------------------


def _of_earlier_versions(history: Place) -> Iterator[Place]:
    """Yield the Parquet files outside the committed hours, but not those of an hour that is adopted already."""
    for path in parquet_files(history):
        place = below(path, history)
        if place.parts[0] not in (RUNG, DAYS) and not _manifests(history / RUNG / place.parent):
            yield path


def adopt(history: Place) -> int:
    """Take over the hours that earlier versions wrote; returns their number.

    A run that is killed leaves each hour in its old or new place or both; the next run continues.

    Raises:
        UserError: There are such hours in an object store, where they cannot be linked.
        OSError: The directory cannot be written.
    """
    if isinstance(history, RemotePath):
        if globbed(history, "date=*"):
            raise UserError(f"{history} has hours of an earlier version; roll it up once on a file system, and copy it")
        return 0
    adopted = 0
    # An earlier version that was killed while it replaced an hour left the old one aside.
    for old in sorted((*history.glob("date=*/hour=*"), *history.glob(".old-*/date=*/hour=*"))):
        folder = history / RUNG / old.parent.name / old.name
        if load(folder).sealed:  # its day is closed; what was put here since stays where it is
            continue
        if load(folder).number == 0 and (files := _linked(old, folder)):
            intervals, values = _content(folder, files)
            commit(folder, Manifest(1, files, {}, intervals, values, adopted=True))
            adopted += 1
        _remove_tree(old)
    for folder in (*history.glob("date=*"), *history.glob(".old-*/date=*"), *history.glob(".old-*")):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    for leftover in history.glob(".tmp-*"):
        _remove_tree(leftover)
    return adopted


def _linked(old: Path, folder: Path) -> tuple[DataFile, ...]:
    files = []
    for path in parquet_files(old):
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / path.name
        if not new.exists():
            os.link(path, new)
        try:
            rows = pq.read_metadata(new).num_rows
        except (OSError, pa.ArrowException):
            rows = -1  # damaged: the hour keeps it, and every reader names it
        files.append(DataFile(path.name, rows, new.stat().st_size))
    return tuple(files)


def _content(folder: Path, files: Sequence[DataFile]) -> tuple[int, int]:
    """Return the intervals and values of the readable files."""
    intervals = values = 0
    for one in files:
        try:
            table = read_hour(folder, [one])
        except (OSError, pa.ArrowException, ValueError):
            continue
        intervals += sum(table["intervals"].to_pylist())
        values += sum(table["n"].to_pylist())
    return intervals, values


def _remove_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
