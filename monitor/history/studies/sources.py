"""Where a study of several metrics takes its intervals from: a spool, or the hours of a history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import Broken
from heliograph.monitor.history.hours import read_history
from heliograph.monitor.history.merge import HOUR_US, merge
from heliograph.monitor.history.remote import Place
from heliograph.monitor.history.studies.days import Note, choose_rows
from heliograph.monitor.history.studies.samples import PAIR, Metrics, Selection, load

__all__ = ["Source"]

SPOOL_SECONDS = 10.0
HOUR_SECONDS = 3600.0


@dataclass(slots=True)
class Source:
    """A spool, or a history when its directory is given."""

    spool: Place
    history: Place | None
    interval_s: float | None
    """Intervals that start in the same period of this many seconds are added; None: 10, or an hour of a history."""

    def read(
        self, selections: Sequence[Selection], metrics: Metrics, by: Sequence[str] = PAIR
    ) -> tuple[list[pa.Table], list[tuple[Broken, int]], tuple[Note, ...]]:
        """Return for each selection rows of `HISTORY`, one per period and series; the unusable input; and notes.

        Days without hours are left out, with a note.

        Args:
            selections: Which intervals.
            metrics: Which metrics.
            by: Labels that tell series apart.

        Raises:
            UserError: The directory does not exist, or a period of a history is shorter than an hour.
        """
        if self.history is None:
            tables, problems = load(self.spool, selections, metrics, self.interval_s or SPOOL_SECONDS, by)
            return tables, problems, ()
        period_s = self.interval_s or HOUR_SECONDS
        if period_s < HOUR_SECONDS:
            raise UserError(f"--interval {period_s:g}: a history has hours, and nothing shorter than 3600 seconds")
        whole, broken = read_history(self.history)
        tables, days = [], set()
        for selection in selections:
            rows = choose_rows(whole, selection, metrics)
            days |= {ts.date().isoformat() for ts in rows.days["ts"].to_pylist()}
            days |= {day for note in rows.notes for day in note.days}
            tables.append(merge(rows.hours, self.period_us, final=False, by=by)[0])
        notes = (Note("left out: this study needs intervals", tuple(sorted(days))),) if days else ()
        return tables, [(one, 0) for one in broken], notes

    @property
    def period_us(self) -> int:
        """Length of a period, microseconds."""
        if self.history is None:
            return round((self.interval_s or SPOOL_SECONDS) * 1_000_000)
        return round((self.interval_s or HOUR_SECONDS) * 1_000_000) // HOUR_US * HOUR_US

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.spool if self.history is None else self.history)
