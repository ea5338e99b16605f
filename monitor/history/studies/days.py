"""Rows of whole days in studies: a history that was pruned has old days without their hours.

Counts of a day are as good as those of its hours. Its hours are lost: a study by hours leaves the day out, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from heliograph.monitor.history.hours import is_of_day
from heliograph.monitor.history.merge import DAY_US
from heliograph.monitor.history.studies.samples import Metrics, Selection, choose

__all__ = ["Note", "Rows", "apart", "choose_rows", "day_names", "note_lines", "notes_text"]


@dataclass(frozen=True, slots=True)
class Note:
    """Days that a study cannot use, or not in full."""

    what: str
    """The treatment of the days, such as ``left out``."""
    days: tuple[str, ...]
    """ISO 8601, ascending."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Selected rows of a history."""

    hours: pa.Table
    days: pa.Table
    """Rows of days that are stored without their hours."""
    notes: tuple[Note, ...]
    """Days that the selection cuts, which are left out."""


def apart(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the rows of hours, and those of whole days."""
    mask = is_of_day(table)
    return table.filter(pc.invert(mask)), table.filter(mask)


def day_names(table: pa.Table) -> tuple[str, ...]:
    """Return the days of rows of whole days, ISO 8601, ascending."""
    return tuple(sorted({ts.date().isoformat() for ts in pc.unique(table["ts"]).to_pylist()}))


def choose_rows(table: pa.Table, selection: Selection, metric: Metrics) -> Rows:
    """Return the rows of metrics that a selection chooses. A day that is partly outside its times is left out."""
    hours, days = apart(table)
    touched = choose(days, replace(selection, from_us=selection.from_us - DAY_US + 1), metric)
    begins = touched["ts"].cast(pa.int64())
    is_inside = pc.and_(pc.greater_equal(begins, selection.from_us), pc.less_equal(begins, selection.to_us - DAY_US))
    cut = day_names(touched.filter(pc.invert(is_inside)))
    notes = (Note("left out: the selection has only a part of them", cut),) if cut else ()
    return Rows(choose(hours, selection, metric), touched.filter(is_inside), notes)


def notes_text(notes: Sequence[Note]) -> list[str]:
    """Return notes as sentences."""
    return [f"{_spans(note.days)}: stored as whole days, without hours; {note.what}" for note in notes]


def note_lines(notes: Sequence[Note]) -> Iterator[str]:
    """Return notes as lines of text."""
    yield from (f"note: {text}" for text in notes_text(notes))


def _spans(days: Sequence[str]) -> str:
    """Return days as text, neighbours as one span."""
    spans: list[list[date]] = []
    for day in map(date.fromisoformat, days):
        if spans and day - spans[-1][1] == timedelta(days=1):
            spans[-1][1] = day
        else:
            spans.append([day, day])
    return ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in spans)
