"""Days of a history: the rows of all hours of a UTC day, merged, with one manifest per day.

    history/1d/date=2026-11-21/manifest-000001.json     lists the commit number of each hour that the day contains
    history/1d/date=2026-11-21/5f0c….parquet            rows of `latency_hour` with a length of a day

A day repeats the counts of its hours. An hour that was committed again makes the day stale, and the next run rebuilds
it, unless the day stands for its hours (`monitor.history.retention`). Commits and manifests are those of
`monitor.history.hours`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import Broken, first_line, write_table
from heliograph.monitor.history.hours import (
    DAYS,
    Contested,
    DataFile,
    Manifest,
    adopt,
    commit,
    committed_hours,
    discard,
    load,
    read_hour,
    sweep,
)
from heliograph.monitor.history.merge import DAY_US, Merger
from heliograph.monitor.history.remote import Place, SomePlace, size_of
from heliograph.monitor.history.runs import Run

__all__ = ["Compacted", "compact", "is_whole", "merged_hours"]


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of a run."""

    written: int
    """Days written, new or rebuilt."""
    current: int
    """Days that contain their hours already."""
    young: int
    """Days that have not reached the age."""
    problems: tuple[Broken, ...]
    """Days that stay as they are, with the reason."""


def compact(
    history: Place, age: timedelta, *, now: datetime | None = None, progress: Callable[[str], None] = lambda text: None
) -> Compacted:
    """Merge the hours of each UTC day that ended at least `age` ago into one day.

    Args:
        history: Directory of the history.
        age: Time since the end of a day; an hour that changes later causes the day to be rebuilt.
        now: The time; None: that of the system.
        progress: Called for each day.

    Raises:
        UserError: There is no history, another process writes it, or it cannot be written.
    """
    if not history.is_dir():
        raise UserError(f"no history in {history}: create one with `heliograph history rollup`")
    last = (now or datetime.now(UTC)) - age - timedelta(days=1)
    with Run(history, f"another process is writing the history {history}; run this one after it") as run:
        try:
            adopt(history)
            return _compacted(history, run, last, progress)
        except OSError as error:
            raise UserError(f"the history {history} cannot be written: {error.strerror or error}") from error


def _compacted(history: Place, run: Run, last: datetime, progress: Callable[[str], None]) -> Compacted:
    written = current = young = 0
    problems = []
    for of_day, folders in groupby(committed_hours(history), lambda folder: folder.parent.name):
        day = history / DAYS / of_day
        try:
            begin = datetime.combine(date.fromisoformat(of_day.removeprefix("date=")), datetime.min.time(), UTC)
            if begin > last:
                young += 1
                continue
            old = load(day)
            if old.stands_for_hours:
                if not is_whole(day, old):
                    raise ValueError("a data file is missing or has another size, and the day stands for its hours")
                current += 1
                sweep(day)
                continue
            hours = {folder: load(folder) for folder in folders}
            hours = {folder: manifest for folder, manifest in hours.items() if manifest.number > 0}
            numbers = {folder.name.removeprefix("hour="): manifest.number for folder, manifest in hours.items()}
            _check_has_all(old.hours, numbers)
            if old.hours == numbers and is_whole(day, old):
                if numbers:
                    current += 1
                    sweep(day)
                continue
            progress(f"merging the hours of {begin:%Y-%m-%d}")
            whole = merged_hours(hours)
            if (left := pc.sum(whole["intervals"]).as_py() or 0) < old.intervals:
                raise ValueError(
                    f"its hours have {left:,} intervals, the day {old.intervals:,}; the day stays. After a roll-up "
                    "with --replace, remove this directory to rebuild it"
                )
        except (UserError, OSError, pa.ArrowException, ValueError) as error:
            problems.append(Broken(str(day), first_line(error)))
            continue
        run.begin()
        try:
            _write(day, run, old.number + 1, numbers, whole)
        except Contested as error:
            problems.append(Broken(str(day), first_line(error)))
            continue
        written += 1
    return Compacted(written, current, young, tuple(problems))


def _check_has_all(old: Mapping[str, int], numbers: Mapping[str, int]) -> None:
    """Check that no hour of the day was removed or begun again: the day may be the only copy of its counts."""
    if lost := [hour for hour, number in sorted(old.items()) if numbers.get(hour, 0) < number]:
        raise ValueError(f"the history no longer has its hour {lost[0]} as the day was made from it; the day stays")


def is_whole(day: Place, manifest: Manifest) -> bool:
    """Return whether the files of a day are there with their sizes."""
    return all((day / one.name).is_file() and size_of(day / one.name) == one.bytes for one in manifest.files)


def merged_hours(hours: Mapping[SomePlace, Manifest]) -> pa.Table:
    """Return the rows of some hours of a day, merged.

    Raises:
        OSError: A file is missing or cannot be read.
        ValueError: A file is damaged, or has other values than its manifest says.
    """
    merger = Merger(DAY_US)
    for folder, manifest in hours.items():
        table = read_hour(folder, manifest.files)
        if (pc.sum(table["n"]).as_py() or 0) != manifest.values:
            raise ValueError(f"{folder} has other values than its manifest says")
        merger.add(table, str(folder))
    whole = merger.result()
    if merger.problems:
        broken, rows = merger.problems[0]
        raise ValueError(f"{broken.path}: {rows} of its rows: {broken.reason}")
    return whole


def _write(day: Place, run: Run, number: int, hours: Mapping[str, int], whole: pa.Table) -> None:
    name = f"{run.name}-{secrets.token_hex(4)}.parquet"
    write_table(day / name, whole)
    run.check()
    try:
        commit(
            day,
            Manifest(
                number=number,
                files=(DataFile(name, whole.num_rows, size_of(day / name)),),
                intervals=int(pc.sum(whole["intervals"]).as_py() or 0),
                values=int(pc.sum(whole["n"]).as_py() or 0),
                hours=hours,
            ),
        )
    except Contested:
        discard(day, [name])
        raise
    sweep(day)
