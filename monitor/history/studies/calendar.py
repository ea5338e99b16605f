"""The calendar of a latency: each day, and each hour of the week, from merged counts.

Hours of the history are put into the days and hours of a time zone by their start; with a zone that is half an hour off
UTC, an hour belongs to the local hour it begins in. Where clocks are set back, two hours share an hour of the week; the
skipped hour in spring has no values.

A quantile of fewer than ten values beyond it is refused: it would be one of the largest values of chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.merge import HOUR_US, merge
from heliograph.monitor.history.schema import PERCENTILES
from heliograph.monitor.history.studies.samples import PAIR

__all__ = ["BEYOND", "Calendar", "Cell", "Day", "calendars", "zone_of"]

BEYOND = 10
"""Values beyond a quantile, at least."""
_DAY_US = 24 * HOUR_US
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
    hours: int
    """Hours of the day with rows, 0 to 25."""
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


def calendars(table: pa.Table, zone: tzinfo = UTC, by: Sequence[str] = PAIR) -> list[Calendar]:
    """Return the calendar of each series of a history.

    Args:
        table: Rows of `HISTORY`.
        zone: Time zone of the days and hours.
        by: Labels that tell series apart.

    Returns:
        Calendars in the order of their labels. A series with two layouts of histograms has two.
    """
    starts = [_EPOCH + timedelta(microseconds=at) for at in table["ts"].cast(pa.int64()).to_pylist()]
    local = [start.astimezone(zone) for start in starts]
    keys = [*by, "digits", "lowest"]
    days = _moved(table, [(here.date() - _EPOCH.date()).days * _DAY_US for here in local])
    week = _moved(table, [(here.weekday() * 24 + here.hour) * HOUR_US for here in local])
    hours: dict[tuple[Any, ...], set[datetime]] = {}
    for row, start, here in zip(table.select(keys).to_pylist(), starts, local, strict=True):
        hours.setdefault((*row.values(), here.date()), set()).add(start)
    found: dict[tuple[Any, ...], tuple[list[Day], dict[tuple[int, int], Cell]]] = {}
    for row in _merged(days, _DAY_US, by):
        key, day = tuple(row[name] for name in keys), row["ts"].date()
        found.setdefault(key, ([], {}))[0].append(Day(day, len(hours[*key, day]), _cell(row)))
    for row in _merged(week, HOUR_US, by):
        at = int((row["ts"] - _EPOCH).total_seconds()) // 3600
        found[tuple(row[name] for name in keys)][1][at // 24, at % 24] = _cell(row)
    return [
        Calendar(dict(zip(by, map(str, key), strict=False)), tuple(days_of), week_of)
        for key, (days_of, week_of) in sorted(found.items())
    ]


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
