"""The roll-up: spool -> history, one row per hour and series.

    new intervals of the spool -> partly merged hours -> with the committed hour: data files -> one commit per hour

It is incremental. `Ledger` skips the files that are merged already, and the manifests of the hours skip the intervals
that are merged already. So a second run changes nothing, late intervals enter whenever they come, and several spools
(of several hosts, or of one host after its spool was pruned) fill one history. An hour without new intervals is not
written. A run that is killed has committed some hours; the next run does the others.

The job has two halves, which a `Runner` spreads over threads (`Threads`) or over Spark
(`monitor.history.rollup_spark`): `read_units` (`monitor.history.fresh`) merges new intervals, `write_hour` adds them to
an hour. Between the halves this process learns which hours change; after them it commits. It alone writes manifests. If
another writer was first in an hour, as is possible in an object store, the run reads that hour again and adds to it.

An adopted hour (made by a version that did not note what it merged) may hold the same intervals as the spool. Of each
series that both have, the larger number of intervals wins: the spool's rows if it has at least as many, else the old
row. Intervals that are left out in this way are reported.

Intervals of a closed day (`monitor.history.retention`) are left out and reported by spool file, unless they are merged
already.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import (
    Broken,
    Scan,
    Unit,
    first_line,
    no_spool,
    scan,
    write_table,
)
from heliograph.monitor.history.fresh import Found, Job, Skip, read_units
from heliograph.monitor.history.hours import (
    Contested,
    DataFile,
    Manifest,
    adopt,
    closed_days,
    commit,
    committed_hours,
    discard,
    folder_of,
    load,
    name_of,
    read_hour,
    sweep,
)
from heliograph.monitor.history.ledger import Ledger
from heliograph.monitor.history.merge import DAY_US, merge, shares
from heliograph.monitor.history.ranges import Ranges, overlap, union
from heliograph.monitor.history.remote import Place, absolute, below, located, size_of
from heliograph.monitor.history.runs import Run
from heliograph.monitor.history.schema import HISTORY, LABELS, SERIES, arrow_schema

__all__ = [
    "Base",
    "Plan",
    "RolledUp",
    "Runner",
    "Threads",
    "Written",
    "rollup",
    "write_hour",
]

Progress = Callable[[str], None]
"""Called with a line of text about the work."""


@dataclass(frozen=True, slots=True)
class RolledUp:
    """The result of a roll-up."""

    intervals: int
    """New intervals in the history."""
    values: int
    """New values in the history."""
    hours: int
    """Number of changed hours."""
    kept: tuple[str, ...]
    """Adopted hours that kept an old row, because the spool has fewer intervals of a series than the row."""
    problems: tuple[tuple[Broken, int], ...]
    """Unusable input, with the number of rows (0: the whole file)."""

    def followed_by(self, later: RolledUp) -> RolledUp:
        """Return the result of both passes; the later one has read the unusable input again."""
        return RolledUp(
            self.intervals + later.intervals,
            self.values + later.values,
            self.hours + later.hours,
            self.kept + later.kept,
            later.problems,
        )


@dataclass(frozen=True, slots=True)
class Base:
    """The committed rows of an hour that changes."""

    files: tuple[DataFile, ...]
    adopted: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """Input of the second half; travels to the workers."""

    history: str
    """Absolute path, or address in an object store."""
    run: str
    """Prefix of the names of new files."""
    bases: Mapping[int, Base]
    """By start of the hour, for each hour that changes."""


@dataclass(frozen=True, slots=True)
class Written:
    """A data file of the second half, or the reason why there is none."""

    begin_us: int
    name: str = ""
    rows: int = 0
    bytes: int = 0
    intervals: int = 0
    values: int = 0
    new_intervals: int = 0
    new_values: int = 0
    left_out: int = 0
    """Intervals of series whose old row an adopted hour kept."""
    reason: str = ""
    """The committed rows that cannot be read, so that the hour must stay as it is."""


class Runner(Protocol):
    """Spreads the two halves over workers."""

    def read(self, jobs: Sequence[Job]) -> Found:
        """Run `read_units` on the jobs, and keep the partly merged rows."""

    def write(self, plan: Plan) -> Iterable[Written]:
        """Run `write_hour` on the rows of `read`, for each hour of the plan."""


# -- second half ------------------------------------------------------------------------------------------------------


def write_hour(
    plan: Plan, begin_us: int, rows: pa.Table, is_mine: Callable[[dict[str, str]], bool] | None = None
) -> Written:
    """Add partly merged rows to an hour: write a data file with all its rows, not committed yet.

    Args:
        plan: The plan.
        begin_us: Start of the hour, microseconds since 1970.
        rows: Its new rows, partly merged.
        is_mine: Called with the labels of a committed row, if several calls write the hour: whether it belongs to this
            one. None: all rows do.

    Raises:
        OSError: The history cannot be written.
    """
    history, base = located(plan.history), plan.bases[begin_us]
    folder = folder_of(history, begin_us)
    try:
        old = read_hour(folder, base.files)
    except (OSError, pa.ArrowException, ValueError) as error:
        return Written(begin_us, reason=f"its committed rows cannot be read: {first_line(error)}")
    if is_mine is not None:
        old = old.filter(pa.array([is_mine(row) for row in old.select(list(LABELS)).to_pylist()], pa.bool_()))
    new, left_out = merge(rows, final=False)[0], 0
    if base.adopted:
        old, new, left_out = _settled(old, new)
    whole, refused = merge(pa.concat_tables([old, new]))
    if refused:
        return Written(begin_us, reason=f"{sum(refused.values())} of its committed rows: {min(refused)}")
    name = f"{plan.run}-{secrets.token_hex(4)}.parquet"
    write_table(folder / name, whole)
    return Written(
        begin_us=begin_us,
        name=name,
        rows=whole.num_rows,
        bytes=size_of(folder / name),
        intervals=_sum(whole, "intervals"),
        values=_sum(whole, "n"),
        new_intervals=_sum(new, "intervals"),
        new_values=_sum(new, "n"),
        left_out=left_out,
    )


def _settled(old: pa.Table, new: pa.Table) -> tuple[pa.Table, pa.Table, int]:
    """Drop, of each series in both, the row with fewer intervals (of equal ones the old); count those left out."""
    intervals = {_series(row): row["intervals"] for row in old.select([*SERIES, "intervals"]).to_pylist()}
    takes_new = {}
    left_out = 0
    for row in new.select([*SERIES, "intervals"]).to_pylist():
        series = _series(row)
        takes_new[series] = row["intervals"] >= intervals.get(series, 0)
        left_out += 0 if takes_new[series] else row["intervals"]
    stays = [not takes_new.get(_series(row), False) for row in old.select(list(SERIES)).to_pylist()]
    comes = [takes_new[_series(row)] for row in new.select(list(SERIES)).to_pylist()]
    return old.filter(pa.array(stays, pa.bool_())), new.filter(pa.array(comes, pa.bool_())), left_out


def _series(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in SERIES)


def _sum(table: pa.Table, name: str) -> int:
    return int(pc.sum(table[name]).as_py() or 0)


# -- job --------------------------------------------------------------------------------------------------------------


class Threads:
    """Runs the halves on threads of this process; the partly merged rows stay in memory."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or os.cpu_count() or 1
        self._parts: list[pa.Table] = []

    def read(self, jobs: Sequence[Job]) -> Found:
        """See `Runner`."""
        by_unit = {job.unit.paths: job for job in jobs}
        runs = shares([job.unit for job in jobs], max(self._threads, sum(job.unit.rows for job in jobs) // 25_000))
        found = Found()
        self._parts = [arrow_schema(HISTORY).empty_table()]
        with ThreadPoolExecutor(self._threads) as pool:
            for part, notes in pool.map(lambda run: read_units(by_unit[unit.paths] for unit in run), runs):
                self._parts.append(part)
                found.add(notes)
        return found

    def write(self, plan: Plan) -> Iterable[Written]:
        """See `Runner`."""
        whole = pa.concat_tables(self._parts)
        begins = whole["ts"].cast(pa.int64())

        def one(begin: int) -> Written:
            return write_hour(plan, begin, whole.filter(pc.equal(begins, begin)))

        with ThreadPoolExecutor(self._threads) as pool:
            yield from pool.map(one, sorted(plan.bases))


def rollup(
    runner: Runner,
    spool: Place,
    history: Place,
    *,
    replace: bool = False,
    only: Container[str] | None = None,
    batch: str = "",
    progress: Progress = lambda text: None,
) -> RolledUp:
    """Roll a spool up into a history.

    Args:
        runner: Where the work is done. Spark's workers must see both directories under the same name.
        spool: Directory to read.
        history: Directory to write; created when missing.
        replace: Rebuild each hour of the spool from the spool alone; intervals that only the history has are lost.
        only: Paths of the files to read, below the spool; None: all files.
        batch: Name of the batch of a stream, kept in the manifests.
        progress: Called from time to time.

    Raises:
        Busy: Another process writes the history.
        UserError: The spool does not exist, the history cannot be written, other writers are always first, or a worker
            wrote where this machine does not see it.
    """
    if not spool.is_dir():
        raise no_spool(spool)

    def is_left_out(ledger: Ledger, name: str) -> bool:
        return (only is not None and name not in only) or (not replace and ledger.has(name))

    with Run(history, f"another roll-up is writing the history {history}; run this one after it") as run:
        return _in_passes(
            history,
            lambda: _rolled_up(
                runner, run, spool, absolute(history), is_left_out, replace=replace, batch=batch, progress=progress
            ),
            progress,
        )


def _in_passes(history: Place, one_pass: Callable[[], tuple[RolledUp, bool]], progress: Progress) -> RolledUp:
    """Repeat a pass until no other writer was first in any hour.

    Raises:
        UserError: The history cannot be written, or other writers are always first.
    """
    done = RolledUp(0, 0, 0, (), ())
    for _ in range(_TRIES):
        try:
            more, is_contested = one_pass()
        except OSError as error:
            raise UserError(f"the history {history} cannot be written: {error.strerror or error}") from error
        done = done.followed_by(more)
        if not is_contested:
            return done
        progress("another writer has committed the same hours; adding to them")
        time.sleep(random.uniform(0, _PAUSE_S))
    raise UserError(f"the history {history}: other writers commit the same hours again and again; run this again")


_TRIES = 10
_PAUSE_S = 1.0


def _rolled_up(
    runner: Runner,
    run: Run,
    spool: Place,
    history: Place,
    is_left_out: Callable[[Ledger, str], bool],
    *,
    replace: bool,
    batch: str,
    progress: Progress,
) -> tuple[RolledUp, bool]:
    """Do one pass; returns its result, and whether other writers were first in some hours."""
    if adopted := adopt(history):
        progress(f"took over {adopted:,} hours of an earlier version")
    ledger = Ledger(history)
    progress("looking for new files in the spool")
    found = scan(spool, partial(is_left_out, ledger))
    first, last = _hours_of(found)
    skip = {} if replace else _merged_before(history, first, last)
    closed = _closed_before(history, first, last)
    paths = _absolute_paths(found)
    jobs = [_job(unit, paths, skip, closed) for unit in found.units]
    progress(f"merging {found.rows:,} intervals of {sum(len(unit.paths) for unit in found.units):,} files")
    notes = runner.read(jobs) if jobs else Found()
    notes.problems += [(broken, 0) for broken in found.broken]
    run.begin()
    progress(f"writing {len(notes.merged):,} hours")
    done, is_contested = _committed(runner, history, run, notes, replace=replace, batch=batch)
    if not is_contested:
        _note_files(
            ledger,
            history,
            notes,
            {there: str(below(located(path), spool)) for path, there in paths.items()},
        )
    return done, is_contested


def _hours_of(found: Scan) -> tuple[str, str]:
    """Return the first and the last hour that the files may touch."""
    if not found.units:
        return "~", ""
    first = name_of(max(0, min(unit.first_us for unit in found.units)))
    return first, name_of(min(_LATEST_US, max(unit.last_us for unit in found.units)))


def _day_us(day: str) -> int:
    return round(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) * 1_000_000


def _absolute_paths(found: Scan) -> dict[str, str]:
    """Return the absolute paths of the files by their paths. Each directory, which has many files, is resolved once."""
    folders: dict[str, str] = {}
    result = {}
    for path in (path for unit in found.units for path in unit.paths):
        folder, _, name = path.rpartition("/")
        if folder not in folders:
            folders[folder] = str(absolute(located(path).parent))
        result[path] = f"{folders[folder]}/{name}"
    return result


def _job(unit: Unit, paths: Mapping[str, str], skip: Skip, closed: Mapping[int, str]) -> Job:
    return Job(
        Unit(tuple(paths[path] for path in unit.paths), unit.rows, unit.sources, unit.first_us, unit.last_us),
        {source: skip[source] for source in unit.sources if source in skip},
        {day: reason for day, reason in closed.items() if unit.first_us - DAY_US < day <= unit.last_us},
    )


def _note_files(ledger: Ledger, history: Place, notes: Found, names: Mapping[str, str]) -> None:
    """Note files as merged, except unreadable ones, and none while an hour cannot take its intervals.

    Args:
        ledger: The ledger, which is saved.
        history: Directory of the history.
        notes: Of both halves.
        names: Paths below the spool by absolute paths.

    Raises:
        OSError: The history cannot be written.
    """
    unread = {broken.path for broken, rows in notes.problems if rows == 0}
    if not unread & {str(folder_of(history, begin)) for begin in notes.merged}:
        ledger.add(name for path, name in names.items() if path not in unread)
        ledger.save()


def _closed_before(history: Place, first: str, last: str) -> dict[int, str]:
    """Return why days from hour `first` to `last` take no more intervals, by start of the day in microseconds."""
    return {_day_us(day): reason for day, reason in closed_days(history, first, last).items()}


def _merged_before(history: Place, first: str, last: str) -> dict[str, Ranges]:
    """Return what the hours from `first` to `last` have merged."""
    ranges: dict[str, list[Ranges]] = {}
    for folder in committed_hours(history):
        hour = f"{folder.parent.name.removeprefix('date=')}T{folder.name.removeprefix('hour=')}"
        if first <= hour <= last:
            with suppress(UserError):  # its manifest cannot be read: `_committed` reports it
                for source, merged in load(folder).merged.items():
                    ranges.setdefault(source, []).append(merged)
    return {source: union(sets) for source, sets in ranges.items()}


_LATEST_US = 253_402_300_799_000_000
"""End of the year 9999."""


def _committed(
    runner: Runner, history: Place, run: Run, notes: Found, *, replace: bool, batch: str
) -> tuple[RolledUp, bool]:
    """Write and commit the hours of the notes.

    Args:
        runner: Has the rows of the first half.
        history: Directory of the history.
        run: Has begun.
        notes: Of the first half; problems of this one are added.
        replace: The new rows replace those of the hours.
        batch: See `rollup`.

    Returns:
        The result, and whether other writers were first in some hours: these are as if nothing had been read.

    Raises:
        UserError: A worker wrote where this machine does not see it, or the run is too old.
        OSError: The history cannot be written.
    """
    before: dict[int, Manifest] = {}
    is_contested = False
    for begin, sources in notes.merged.items():
        try:
            before[begin] = load(folder_of(history, begin))
            if before[begin].sealed:
                del before[begin]
                raise UserError("another process has pruned its day meanwhile; run this again")
            # Another writer may have merged the same intervals since this one looked which are new.
            if not replace and any(overlap(new, before[begin].merged.get(name, [])) for name, new in sources.items()):
                del before[begin]
                is_contested = True
        except UserError as error:
            notes.problems.append((Broken(str(folder_of(history, begin)), str(error)), 0))
    none = Base((), adopted=False)
    bases = {begin: none if replace else Base(old.files, old.adopted) for begin, old in before.items()}
    by_hour: dict[int, list[Written]] = {begin: [] for begin in before}
    for written in runner.write(Plan(str(history), run.name, bases)) if bases else ():
        by_hour[written.begin_us].append(written)
    intervals = values = hours = 0
    kept = []
    for begin, parts in sorted(by_hour.items()):
        folder, old = folder_of(history, begin), before[begin]
        if reason := next((part.reason for part in parts if part.reason), ""):
            if load(folder).number == old.number:
                notes.problems.append((Broken(str(folder), reason), 0))
            else:  # its files were replaced meanwhile
                is_contested = True
            discard(folder, [part.name for part in parts if part.name])
            continue
        for part in parts:
            _check_is_here(folder / part.name, part.bytes)
        merged = notes.merged[begin]
        if not replace:
            merged = {
                source: union([old.merged.get(source, []), merged.get(source, [])]) for source in {*old.merged, *merged}
            }
        run.check()
        try:
            commit(
                folder,
                Manifest(
                    number=old.number + 1,
                    files=tuple(DataFile(part.name, part.rows, part.bytes) for part in parts),
                    merged=merged,
                    intervals=sum(part.intervals for part in parts),
                    values=sum(part.values for part in parts),
                    batch=batch,
                ),
            )
        except Contested:
            is_contested = True
            discard(folder, [part.name for part in parts])
            continue
        sweep(folder)
        intervals += sum(part.new_intervals for part in parts)
        values += sum(part.new_values for part in parts)
        hours += 1
        if left_out := sum(part.left_out for part in parts):
            kept.append(f"{name_of(begin)}: {left_out:,} intervals left out")
    problems = sorted(notes.problems, key=lambda problem: (problem[0].path, problem[0].reason))
    return RolledUp(intervals, values, hours, tuple(kept), tuple(problems)), is_contested


def _check_is_here(path: Place, size: int) -> None:
    """Check that a file that a worker reports is here, as it reports it."""
    try:
        found = size_of(path)
    except FileNotFoundError:
        found = -1
    if found != size:
        raise UserError(
            f"a worker wrote {path}, but this machine does not see it: spool and history must be on storage that this "
            "machine and all workers share"
        )
