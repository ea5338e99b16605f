"""The calendar of a latency: each day, and each hour of the week, from merged counts.

Hours of the history are put into the days and hours of a time zone by their start; with a zone that is half an hour off
UTC, an hour belongs to the local hour it begins in. Where clocks are set back, two hours share an hour of the week; the
skipped hour in spring has no values. A UTC day that is stored without its hours enters the days, if it is a day of the
zone too, and never the hours of the week.

A quantile of fewer than ten values beyond it is refused: it would be one of the largest values of chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.merge import DAY_US, HOUR_US, merge
from heliograph.monitor.history.schema import PERCENTILES
from heliograph.monitor.history.studies.samples import PAIR

__all__ = ["BEYOND", "Calendar", "Cell", "Day", "calendars", "days_of", "zone_of"]

BEYOND = 10
"""Values beyond a quantile, at least."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cell:
    """Merged values of some hours, ns."""

    n: int
    percentiles: Mapping[str, int | None]
    """By column of the history; None: there are too few values."""
    max: int


@dataclass(frozen=True, slots=True)
class Day:
    """A day of a calendar."""

    day: date
    hours: int | None
    """Hours of the day with rows, 0 to 25; None: the day is stored without its hours."""
    cell: Cell


@dataclass(frozen=True, slots=True)
class Calendar:
    """Days and hours of the week of one series."""

    series: Mapping[str, str]
    days: tuple[Day, ...]
    """Ascending; days without values are left out."""
    week: Mapping[tuple[int, int], Cell]
    """By weekday (0: Monday) and hour; only those with values."""


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name, such as ``Europe/London`` or ``UTC``.

    Raises:
        UserError: There is no such zone.
    """
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UserError(f"no time zone {name!r}; use a name such as Europe/London, America/New_York or UTC") from error


def days_of(zone: tzinfo, days: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the rows of whole UTC days that are days of a zone too, and the others."""
    ends = zip(*(_starts(days, zone, later)[1] for later in (timedelta(0), timedelta(days=1))), strict=True)
    mask = pa.array([all(end.time() == time() for end in both) for both in ends], pa.bool_())
    return days.filter(mask), days.filter(pc.invert(mask))


def calendars(
    table: pa.Table, zone: tzinfo = UTC, by: Sequence[str] = PAIR, days: pa.Table | None = None
) -> list[Calendar]:
    """Return the calendar of each series of a history.

    Args:
        table: Rows of `HISTORY`, of hours.
        zone: Time zone of the days and hours.
        by: Labels that tell series apart.
        days: Rows of whole UTC days, all of them days of the zone (`days_of`); None: there are none.

    Returns:
        Calendars in the order of their labels. A series with two layouts of histograms has two.
    """
    starts, local = _starts(table, zone)
    keys = [*by, "digits", "lowest"]
    whole = table.slice(0, 0) if days is None else days
    whole_days = {here.date() for here in _starts(whole, zone)[1]}
    together = pa.concat_tables([table, whole])
    by_day = _moved(together, [(here.date() - _EPOCH.date()).days * DAY_US for here in _starts(together, zone)[1]])
    week = _moved(table, [(here.weekday() * 24 + here.hour) * HOUR_US for here in local])
    hours: dict[tuple[Any, ...], set[datetime]] = {}
    for row, start, here in zip(table.select(keys).to_pylist(), starts, local, strict=True):
        hours.setdefault((*row.values(), here.date()), set()).add(start)
    found: dict[tuple[Any, ...], tuple[list[Day], dict[tuple[int, int], Cell]]] = {}
    for row in _merged(by_day, DAY_US, by):
        key, day = tuple(row[name] for name in keys), row["ts"].date()
        count = None if day in whole_days else len(hours[*key, day])
        found.setdefault(key, ([], {}))[0].append(Day(day, count, _cell(row)))
    for row in _merged(week, HOUR_US, by):
        at = int((row["ts"] - _EPOCH).total_seconds()) // 3600
        found[tuple(row[name] for name in keys)][1][at // 24, at % 24] = _cell(row)
    return [
        Calendar(dict(zip(by, map(str, key), strict=False)), tuple(days_of), week_of)
        for key, (days_of, week_of) in sorted(found.items())
    ]


def _starts(table: pa.Table, zone: tzinfo, later: timedelta = timedelta(0)) -> tuple[list[datetime], list[datetime]]:
    """Return moments some time after the starts of the rows, in UTC and in the zone."""
    starts = [_EPOCH + later + timedelta(microseconds=at) for at in table["ts"].cast(pa.int64()).to_pylist()]
    return starts, [start.astimezone(zone) for start in starts]


def _moved(table: pa.Table, starts_us: Sequence[int]) -> pa.Table:
    """Return the rows with other times of start, so that those to be merged share a period."""
    column = pa.array(np.asarray(starts_us, dtype=np.int64)).cast(table.schema.field("ts").type)
    return table.set_column(table.schema.get_field_index("ts"), table.schema.field("ts"), column)


def _merged(table: pa.Table, period: int, by: Sequence[str]) -> list[dict[str, Any]]:
    rows = merge(table, period, by=by)[0].drop_columns(["h"]).to_pylist()
    return [row for row in rows if row["n"]]


def _cell(row: Mapping[str, Any]) -> Cell:
    n = row["n"]
    percentiles = {
        name: row[name] if n * (1 - fraction) >= BEYOND - 1e-6 else None for name, fraction in PERCENTILES.items()
    }
    return Cell(n, percentiles, row["max"])
