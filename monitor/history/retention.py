"""Retention: old days stand for their hours, whose data files are removed; older days are removed as a whole.

A prune closes a day in steps. A killed one leaves the counts of the history as they were, and the next run continues.

1. Check: the day (`monitor.history.days`) has exactly the merged rows of its hours, read again.
2. Seal the 24 hours: one more commit of each, also of hours without rows. It fails when another writer has committed
   the hour, and a roll-up does not commit a sealed hour. So nothing can enter the hours after the check.
3. Switch: one commit of the day says that it stands for its hours. From now on readers take the rows of the day.
4. Remove the data files of the hours. Their manifests stay and recognize repeated intervals.

Removal of a whole day is the same without the check: the commit of the day lists no data files and keeps the numbers of
intervals and values that were removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.days import merged_hours
from heliograph.monitor.history.files import Broken, first_line, parquet_files
from heliograph.monitor.history.hours import (
    DAYS,
    RUNG,
    Manifest,
    clear,
    commit,
    dates,
    hours_of,
    load,
    read_hour,
    sweep,
)
from heliograph.monitor.history.remote import Place, globbed, size_of
from heliograph.monitor.history.runs import Run

__all__ = ["Pruned", "PrunedDay", "prune"]

_HOURS = range(24)
"""Hours of a UTC day that are sealed; those without rows too."""


@dataclass(frozen=True, slots=True)
class PrunedDay:
    """A day that a prune changed, or would change."""

    day: str
    """ISO 8601, UTC."""
    is_removed: bool
    """The day was removed; otherwise it now stands for its hours."""
    intervals: int
    """Intervals of the day."""
    files: int
    """Data files removed."""
    bytes: int
    """Their size."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """The result of a run."""

    days: tuple[PrunedDay, ...]
    current: int
    """Days of the age that were pruned before."""
    young: int
    """Days that have not reached the age."""
    problems: tuple[Broken, ...]
    """Days that stay as they are, with the reason."""


def prune(
    history: Place,
    hours_age: timedelta | None,
    days_age: timedelta | None = None,
    *,
    now: datetime | None = None,
    dry_run: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> Pruned:
    """Let old days stand for their hours, and remove older days.

    Args:
        history: Directory of the history.
        hours_age: Days that ended at least this long ago stand for their hours from now on; None: no day.
        days_age: Days that ended at least this long ago are removed; None: no day.
        now: The time; None: that of the system.
        dry_run: Check and count, and change nothing.
        progress: Called for each day.

    Raises:
        UserError: There is no history, another process writes it, or it cannot be written.
    """
    if not history.is_dir():
        raise UserError(f"no history in {history}: create one with `heliograph history rollup`")
    moment = now or datetime.now(UTC)
    limits = [None if age is None else moment - age - timedelta(days=1) for age in (hours_age, days_age)]
    busy = f"another process is writing the history {history}; run this one after it"
    with nullcontext() if dry_run else Run(history, busy):
        try:
            return _pruned(history, limits[0], limits[1], progress, dry_run=dry_run)
        except OSError as error:
            raise UserError(f"the history {history} cannot be written: {error.strerror or error}") from error


def _pruned(
    history: Place,
    last_hours: datetime | None,
    last_days: datetime | None,
    progress: Callable[[str], None],
    *,
    dry_run: bool,
) -> Pruned:
    done: list[PrunedDay] = []
    problems: list[Broken] = []
    current = young = 0
    for name in dates(history):
        one = _Day(history, name)
        try:
            begin = datetime.combine(date.fromisoformat(one.day), datetime.min.time(), UTC)
        except ValueError as error:
            problems.append(Broken(str(history / RUNG / name), first_line(error)))
            continue
        is_removal = last_days is not None and begin <= last_days
        if not is_removal and (last_hours is None or begin > last_hours):
            young += 1
            continue
        progress(f"{'removing' if is_removal else 'checking'} {one.day}")
        try:
            hours = one.hours()
            if one.is_empty(hours):
                continue
            planned = one.removal(hours) if is_removal else one.switch(hours)
            found = tuple(one.doomed(with_day=is_removal))
        except (UserError, OSError, pa.ArrowException, ValueError) as error:
            problems.append(Broken(str(one.folder), first_line(error)))
            continue
        if not dry_run:
            try:
                one.close(hours, planned)
                one.clear()
            except UserError as error:  # another writer was first
                problems.append(Broken(str(one.folder), first_line(error)))
                continue
        if planned is None and not found:
            current += 1
            continue
        sizes = [size for _, size in found]
        done.append(PrunedDay(one.day, is_removal, (planned or load(one.folder)).intervals, len(sizes), sum(sizes)))
    return Pruned(tuple(done), current, young, tuple(problems))


class _Day:
    """One UTC day of a history.

    Args:
        history: Directory of the history.
        name: Name of its directory, such as ``date=2026-11-21``.
    """

    def __init__(self, history: Place, name: str) -> None:
        self._history = history
        self._name = name
        self.folder = history / DAYS / name
        self.day = name.removeprefix("date=")

    def hours(self) -> dict[Place, Manifest]:
        """Return the manifests of all 24 hours.

        Raises:
            UserError: A manifest cannot be read.
        """
        folders = {self._history / RUNG / self._name / f"hour={hour:02}" for hour in _HOURS}
        return {folder: load(folder) for folder in sorted({*folders, *hours_of(self._history, self._name)})}

    def is_empty(self, hours: Mapping[Place, Manifest]) -> bool:
        """Return whether nothing was ever committed: a roll-up that was killed has left its directory."""
        return not any(manifest.number for manifest in (*hours.values(), load(self.folder)))

    def switch(self, hours: Mapping[Place, Manifest]) -> Manifest | None:
        """Return the manifest by which the day stands for its hours; None: it does already.

        Raises:
            UserError: A manifest cannot be read.
            OSError: A data file is missing or cannot be read.
            ValueError: The day does not have exactly the counts of its hours, or a data file is damaged.
        """
        old = load(self.folder)
        if old.removed:
            return None
        if old.stands_for_hours:
            if any(self.doomed(with_day=False)):
                read_hour(self.folder, old.files)
            return None
        self._check_is_adopted()
        self._check_has_all(old, hours)
        rows = read_hour(self.folder, old.files)
        if not rows.equals(merged_hours(hours)):
            raise ValueError(
                "the day does not have the rows of its hours; remove its directory, and run `heliograph history "
                "compact` to build it again"
            )
        if _sums(rows) != (old.intervals, old.values):
            raise ValueError("the day has other counts than its manifest says")
        return replace(old, number=old.number + 1, stands_for_hours=True)

    def _check_has_all(self, old: Manifest, hours: Mapping[Place, Manifest]) -> None:
        if old.number == 0:
            raise ValueError("it is not merged into a day yet; run `heliograph history compact` first")
        for folder, manifest in hours.items():
            hour = folder.name.removeprefix("hour=")
            if old.hours.get(hour, 0) not in (manifest.number, manifest.content_number):
                raise ValueError(f"its hour {hour} has changed since; run `heliograph history compact` first")
        for counted, of_hours in (
            (old.intervals, sum(manifest.intervals for manifest in hours.values())),
            (old.values, sum(manifest.values for manifest in hours.values())),
        ):
            if counted != of_hours:
                raise ValueError(f"its manifest counts {counted:,}, those of its hours {of_hours:,}")

    def _check_is_adopted(self) -> None:
        """Check that no hours of an earlier version wait: a sealed hour would hide them."""
        if any(globbed(self._history, f"{place}{self._name}/hour=*") for place in ("", ".old-*/")):
            raise ValueError("it has hours of an earlier version; run `heliograph history compact` first")

    def removal(self, hours: Mapping[Place, Manifest]) -> Manifest | None:
        """Return the manifest by which the day is removed; None: it is removed already.

        Raises:
            UserError: The manifest of the day cannot be read.
            ValueError: There are hours of an earlier version.
        """
        old = load(self.folder)
        if old.removed:
            return None
        self._check_is_adopted()
        numbers = {folder.name.removeprefix("hour="): one.content_number for folder, one in hours.items()}
        counted = (old,) if old.stands_for_hours else hours.values()
        return Manifest(
            number=old.number + 1,
            intervals=sum(one.intervals for one in counted),
            values=sum(one.values for one in counted),
            hours=old.hours or {hour: number for hour, number in numbers.items() if number},
            stands_for_hours=True,
            removed=True,
        )

    def doomed(self, *, with_day: bool) -> Iterator[tuple[Place, int]]:
        """Yield the data files that a prune removes, with their sizes."""
        for folder in (self._history / RUNG / self._name, *((self.folder,) if with_day else ())):
            for path in parquet_files(folder):
                yield path, size_of(path)

    def close(self, hours: Mapping[Place, Manifest], planned: Manifest | None) -> None:
        """Seal the hours and commit the day.

        Raises:
            UserError: Another writer has committed an hour or the day.
            OSError: The history cannot be written.
        """
        for folder, manifest in hours.items():
            if not manifest.sealed:
                commit(folder, replace(manifest, number=manifest.number + 1, sealed=True))
        if planned is not None:
            commit(self.folder, planned)

    def clear(self) -> None:
        """Remove what the manifests no longer need.

        Raises:
            OSError: The history cannot be written.
        """
        for folder in hours_of(self._history, self._name):
            clear(folder)
        sweep(self.folder)


def _sums(rows: pa.Table) -> tuple[int, int]:
    return int(pc.sum(rows["intervals"]).as_py() or 0), int(pc.sum(rows["n"]).as_py() or 0)
