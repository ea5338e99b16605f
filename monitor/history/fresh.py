"""New intervals of a spool: what some files have that the history has not, partly merged. The first half of a roll-up.

An interval is known by its source and number. Those that the history has merged are skipped. Those of a closed day are
left out and reported by file. The notes say which numbers are new in each hour, so that a commit can say what it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from heliograph.monitor.history.files import Broken, Unit, UnreadableFile, read_in_steps
from heliograph.monitor.history.merge import DAY_US, HOUR_US, Merger
from heliograph.monitor.history.ranges import Ranges, inside, ranges_of, union
from heliograph.monitor.history.remote import located

__all__ = ["Found", "Job", "Skip", "read_units"]

Skip = Mapping[str, Ranges]
"""Sequence numbers that are merged already, by source."""


@dataclass(frozen=True, slots=True)
class Job:
    """Files to read together, and what to leave out of them."""

    unit: Unit
    skip: Skip
    closed: Mapping[int, str] = field(default_factory=dict)
    """Why the days take no more intervals, by start of the day (microseconds)."""


@dataclass(slots=True)
class Found:
    """Notes of the first half."""

    merged: dict[int, dict[str, Ranges]] = field(default_factory=dict)
    """New sequence numbers by start of the hour (microseconds) and source."""
    problems: list[tuple[Broken, int]] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Take over the notes of another part."""
        self.problems += other.problems
        for begin, sources in other.merged.items():
            mine = self.merged.setdefault(begin, {})
            for source, ranges in sources.items():
                mine[source] = union([mine.get(source, []), ranges])


def read_units(jobs: Iterable[Job], host: str = "") -> tuple[pa.Table, Found]:
    """Merge the new intervals of some files.

    Args:
        jobs: The files.
        host: Name of the worker, for messages; empty on the machine that runs the command.

    Returns:
        Partly merged rows of `HISTORY`, and the notes.
    """
    merger = Merger()
    found = Found()
    for job in jobs:
        for path, tables in read_in_steps(job.unit.paths):
            notes = _FileNotes()
            try:
                of_file = merger.of_file((notes.fresh(table, job) for table in tables), path)
            except UnreadableFile as error:
                found.problems.append((_seen_from(error.broken, host), 0))
            else:
                merger.take(of_file)
                found.add(notes.found(path))
    part = merger.partial()
    found.problems += merger.problems
    return part, found


class _FileNotes:
    """Notes of the first half about one file; they count only if the whole file can be read."""

    def __init__(self) -> None:
        self._new = Found()
        self._late: Counter[str] = Counter()

    def fresh(self, table: pa.Table, job: Job) -> pa.Table:
        """Return the rows of a table that are to be merged, and note their numbers."""
        rows, late = _without_closed(_fresh(table, job.skip), job.closed)
        for reason, number in late:
            self._late[reason] += number
        if rows.num_rows:
            self._new.add(Found(_new_numbers(rows)))
        return rows

    def found(self, path: str) -> Found:
        """Return the notes."""
        return Found(self._new.merged, [(Broken(path, reason), rows) for reason, rows in self._late.items()])


def _seen_from(broken: Broken, host: str) -> Broken:
    if host and not located(broken.path).is_file():
        return Broken(broken.path, f"the worker on {host} does not see it: spool and history must be on shared storage")
    return broken


def _fresh(table: pa.Table, skip: Skip) -> pa.Table:
    """Return the rows that are not merged already."""
    source = _dictionary(table["source"])
    seq = _integers(table["seq"])
    code = _integers(pa.chunked_array([source.indices]))
    is_old = np.zeros(table.num_rows, dtype=np.bool_)
    for index, name in enumerate(source.dictionary.to_pylist()):
        if ranges := skip.get(name):
            is_old |= (code == index) & inside(ranges, seq)
    return table.filter(pa.array(~is_old)) if is_old.any() else table


def _without_closed(table: pa.Table, closed: Mapping[int, str]) -> tuple[pa.Table, list[tuple[str, int]]]:
    """Return the rows outside closed days, and for each closed day the reason and the number of its rows."""
    if not closed or table.num_rows == 0:
        return table, []
    days = _integers(table["ts"].cast(pa.int64())) // DAY_US * DAY_US
    late = [(closed[day], int((days == day).sum())) for day in np.unique(days).tolist() if day in closed]
    return (table.filter(pa.array(~np.isin(days, list(closed)))), late) if late else (table, [])


def _new_numbers(table: pa.Table) -> dict[int, dict[str, Ranges]]:
    begins = _integers(table["ts"].cast(pa.int64())) // HOUR_US * HOUR_US
    source = _dictionary(table["source"])
    code = _integers(pa.chunked_array([source.indices]))
    seq = _integers(table["seq"])
    names = source.dictionary.to_pylist()
    if len(names) == 1 and begins.min() == begins.max():  # nearly all files
        return {int(begins[0]): {names[0]: ranges_of(seq)}}
    result: dict[int, dict[str, Ranges]] = {}
    for begin, index in np.unique(np.stack((begins, code)), axis=1).T.tolist():
        result.setdefault(begin, {})[names[index]] = ranges_of(seq[(begins == begin) & (code == index)])
    return result


def _dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    encoded = column.dictionary_encode().combine_chunks()
    return encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded


def _integers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(column.to_numpy(), dtype=np.int64)
