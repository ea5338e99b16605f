"""A history in a notebook: rows as Arrow, percentiles as pandas, counts as `hdrh.histogram.HdrHistogram`.

    from heliograph.monitor import history

    opened = history.open("history")
    opened.query("topic=PRICES.*,from=2026-11-20", period="day")            # pyarrow.Table
    opened.percentiles([0.5, 0.99, 0.999], "topic=PRICES.*", by=["topic"])  # pandas.DataFrame, ns
    opened.histogram("topic=PRICES.A").get_value_at_percentile(99)          # HdrHistogram

Every answer comes from merged counts. `files` names the Parquet files that count, for other engines such as DuckDB.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from heliograph.monitor import _hdr
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import Broken
from heliograph.monitor.history.hours import DAYS, dates, hours_of, load, read_history
from heliograph.monitor.history.merge import ALL_LABELS, DAY_US, HOUR_US, merge
from heliograph.monitor.history.remote import Place
from heliograph.monitor.history.rows import needs_hdrhistogram, rows
from heliograph.monitor.history.studies.days import Note, choose_rows, day_names, notes_text
from heliograph.monitor.history.studies.samples import parse_selection

if TYPE_CHECKING:
    import pandas

__all__ = ["BY", "TOTAL", "History", "Period"]

Period = Literal["hour", "day"]
TOTAL = "receiver_total_latency"
BY = ("instance", "topic", "tag", "host", "build")
"""Labels that tell series apart unless others are named."""
_PERIODS = {None: None, "hour": HOUR_US, "day": DAY_US}


class History:
    """A history that was opened. Its rows are read at the first question and kept; open it again to see later hours.

    Args:
        place: The directory, of this machine or of an object store.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._read: tuple[pa.Table, tuple[Broken, ...]] | None = None

    @property
    def table(self) -> pa.Table:
        """All rows, as they are stored: columns of `schema.HISTORY`.

        Raises:
            UserError: The directory does not exist.
        """
        return self._rows()[0]

    @property
    def broken(self) -> tuple[Broken, ...]:
        """Files that could not be read, whose rows are missing."""
        return self._rows()[1]

    def query(
        self, select: str = "", metric: str = TOTAL, by: Sequence[str] = BY, period: Period | None = None
    ) -> pa.Table:
        """Return merged rows, one per series, or per period and series: columns of `schema.HISTORY`.

        Args:
            select: Labels and times, such as ``"topic=PRICES.*,from=2026-11-20"``; empty: everything.
            metric: Name of the metric.
            by: Labels that tell series apart.
            period: ``"hour"``, ``"day"`` (UTC), or None for the whole selected time.

        Raises:
            UserError: The selection or an argument cannot be used, or the directory does not exist.
        """
        if unknown := sorted(set(by) - set(ALL_LABELS)):
            raise UserError(f"by: there is no label {unknown[0]!r}; the labels are {', '.join(ALL_LABELS)}")
        if period not in _PERIODS:
            raise UserError(f"period: {period!r} is not 'hour', 'day' or None")
        found = choose_rows(self.table, parse_selection(select), metric)
        parts, notes = [found.hours], list(found.notes)
        if period == "hour" and found.days.num_rows:
            notes.append(Note("left out: their hours are wanted", day_names(found.days)))
        else:
            parts.append(found.days)
        for text in notes_text(notes):
            warnings.warn(text, stacklevel=2)
        return merge(pa.concat_tables(parts), _PERIODS[period], by=by)[0]

    def percentiles(
        self,
        fractions: Sequence[float],
        select: str = "",
        metric: str = TOTAL,
        by: Sequence[str] = BY,
        period: Period | None = None,
    ) -> pandas.DataFrame:
        """Return percentiles of merged counts, ns: one row per row of `query`, one column per fraction (``p99.9``).

        A percentile with fewer than ten values beyond it is missing (`pandas.NA`): it would be chance.

        Args:
            fractions: From 0 to below 1, such as ``[0.5, 0.99, 0.999]``; 1 is the maximum, which is never missing.
            select: As for `query`.
            metric: As for `query`.
            by: As for `query`.
            period: As for `query`.

        Raises:
            UserError: As `query`, or a fraction is outside 0 to 1.
        """
        import pandas

        from heliograph.monitor.history.report.uncertainty import is_thin

        if wrong := [fraction for fraction in fractions if not 0 <= fraction <= 1]:
            raise UserError(f"a fraction is from 0 to 1, not {wrong[0]}")
        merged = self.query(select, metric, by, period)
        found: list[dict[str, Any]] = []
        for row in merged.select(["ts", *by, "n", "h"]).to_pylist():
            counts, digits, lowest, highest = _hdr.decode(row["h"])
            values = _hdr.quantiles(counts, digits, lowest, highest, list(fractions))
            shown = {
                f"p{fraction * 100:.10g}": pandas.NA if fraction < 1 and is_thin(row["n"], fraction) else int(value)
                for fraction, value in zip(fractions, values, strict=True)
            }
            start = {"start": row["ts"]} if period else {}
            found.append({**start, **{name: row[name] for name in by}, "n": row["n"], **shown})
        names = [f"p{fraction * 100:.10g}" for fraction in fractions]
        columns = [*(["start"] if period else []), *by, "n", *names]
        return pandas.DataFrame(found, columns=columns).astype(dict.fromkeys(["n", *names], "Int64"))

    def histogram(self, select: str = "", metric: str = TOTAL) -> Any:
        """Return all selected values as one `hdrh.histogram.HdrHistogram`, ns.

        Raises:
            UserError: As `query`; nothing is selected; or the histograms have several layouts.
        """
        needs_hdrhistogram()
        found = list(rows(self.query(select, metric, by=("metric",))))
        if len(found) != 1:
            reason = "nothing is selected" if not found else "the selected histograms have several layouts"
            raise UserError(f"{self._place}: {reason} ({metric}, {select or 'all'})")
        return found[0].histogram()

    def files(self) -> list[str]:
        """Return the Parquet files that count now, for other engines. Files that no manifest names do not count.

        Raises:
            UserError: The directory does not exist, or a manifest cannot be read.
        """
        if not self._place.is_dir():
            raise UserError(f"no history in {self._place}")
        found: list[str] = []
        for date in dates(self._place):
            day = load(self._place / DAYS / date)
            folders: list[Place] = (
                [self._place / DAYS / date] if day.stands_for_hours else [*hours_of(self._place, date)]
            )
            found += [str(folder / one.name) for folder in folders for one in load(folder).files]
        return found

    def _rows(self) -> tuple[pa.Table, tuple[Broken, ...]]:
        if self._read is None:
            table, broken = read_history(self._place)
            self._read = table, tuple(broken)
            for one in broken:
                warnings.warn(f"{one.path}: left out: {one.reason}", stacklevel=3)
        return self._read
