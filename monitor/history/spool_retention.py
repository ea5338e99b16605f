"""Retention of the spool: old files are removed when the history has every interval of them.

The spool is the finest rung of the history, with rows of 10 s (ADR 0069). A file is removed only if

1. the manifests list each (source, number) of it as merged into the hour it starts in, and
2. the data files of these hours, or of the days that stand for them, are there with their sizes.

Anything else stays and is named: intervals that were left out, hours that an earlier version made, damaged files.
Exporter and roll-up may run meanwhile: files are never changed, and numbers are never used again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.days import is_whole
from heliograph.monitor.history.files import Broken, first_line, no_spool, parquet_files, read_table
from heliograph.monitor.history.hours import DAYS, Manifest, folder_of, load, name_of
from heliograph.monitor.history.merge import HOUR_US
from heliograph.monitor.history.ranges import inside
from heliograph.monitor.history.remote import Place, size_of
from heliograph.monitor.history.schema import SPOOL
from heliograph.monitor.history.writes import remove

__all__ = ["PrunedSpool", "prune_spool"]

_KEYS = tuple(column for column in SPOOL if column.name in ("ts", "source", "seq"))


@dataclass(frozen=True, slots=True)
class PrunedSpool:
    """The result of a run."""

    files: int
    """Files removed, or that would be."""
    bytes: int
    """Their size."""
    intervals: int
    """Their rows."""
    young: int
    """Files with intervals that have not reached the age."""
    problems: tuple[Broken, ...]
    """Files that stay, with the reason."""


def prune_spool(
    spool: Place,
    history: Place,
    age: timedelta,
    *,
    now: datetime | None = None,
    dry_run: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> PrunedSpool:
    """Remove files of a spool whose intervals began at least `age` ago and are all in the history.

    Args:
        spool: Directory of the spool.
        history: Directory of the history.
        age: Age of the youngest interval of a file.
        now: The time; None: that of the system.
        dry_run: Check and count, and change nothing.
        progress: Called for each file.

    Raises:
        UserError: There is no spool or no history, or the spool cannot be written.
    """
    if not spool.is_dir():
        raise no_spool(spool)
    if not history.is_dir():
        raise UserError(f"no history in {history}: create one with `heliograph history rollup`")
    limit_us = round(((now or datetime.now(UTC)) - age).timestamp() * 1e6)
    merged = _Merged(history)
    doomed: list[Place] = []
    problems: list[Broken] = []
    size = intervals = young = 0
    for path in parquet_files(spool):
        progress(f"checking {path.name}")
        try:
            rows = read_table(path, _KEYS)
            begins = rows["ts"].cast(pa.int64()).to_numpy()
            if begins.size and begins.max() > limit_us:
                young += 1
                continue
            if reason := next(merged.missing(rows), ""):
                raise ValueError(reason)
            size += size_of(path)
        except (UserError, OSError, pa.ArrowException, ValueError) as error:
            problems.append(Broken(str(path), first_line(error)))
            continue
        intervals += rows.num_rows
        doomed.append(path)
    if not dry_run:
        try:
            remove(doomed)
        except OSError as error:
            raise UserError(f"the spool {spool} cannot be written: {error.strerror or error}") from error
    return PrunedSpool(len(doomed), size, intervals, young, tuple(problems))


class _Merged:
    """Manifests of a history; each hour is looked at once.

    Args:
        history: Directory of the history.
    """

    def __init__(self, history: Place) -> None:
        self._history = history
        self._hours: dict[int, Manifest] = {}

    def missing(self, rows: pa.Table) -> Iterator[str]:
        """Yield what the history lacks of the rows, by hour and source.

        Raises:
            UserError: A manifest cannot be read.
            OSError: The history cannot be read.
            ValueError: The data of an hour is not there.
        """
        begins = rows["ts"].cast(pa.int64()).to_numpy() // HOUR_US * HOUR_US
        sources = np.array(rows["source"].to_pylist(), dtype=object)
        seq = rows["seq"].to_numpy()
        for begin in np.unique(begins).tolist():
            manifest = self._hour(begin)
            for source in sorted(set(sources[begins == begin].tolist())):
                chosen = seq[(begins == begin) & (sources == source)]
                left = int((~inside(manifest.merged.get(source, []), chosen)).sum())
                if left:
                    yield (
                        f"{left} of its intervals are not in hour {name_of(begin)} of the history; run `heliograph "
                        "history rollup`, which names what it leaves out"
                    )

    def _hour(self, begin: int) -> Manifest:
        if begin not in self._hours:
            folder = folder_of(self._history, begin)
            manifest, day = load(folder), load(self._history / DAYS / folder.parent.name)
            # Of a removed day nothing has to be there: its counts were removed on purpose.
            place, listed = (
                (self._history / DAYS / folder.parent.name, day) if day.stands_for_hours else (folder, manifest)
            )
            if not is_whole(place, listed):
                raise ValueError(f"a data file of {place} is missing or has another size")
            self._hours[begin] = manifest
        return self._hours[begin]
