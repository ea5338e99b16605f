"""Objectives and calendars as text and as JSON objects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.history.report.charts import duration
from heliograph.monitor.history.schema import PERCENTILES
from heliograph.monitor.history.studies.calendar import Calendar, Cell
from heliograph.monitor.history.studies.days import Note
from heliograph.monitor.history.studies.objectives import Judged, Objective
from heliograph.monitor.text import printable, table

__all__ = [
    "WEEKDAYS",
    "calendar_lines",
    "calendars_json",
    "notes_json",
    "objective_lines",
    "objective_rows",
    "objectives_html",
    "objectives_json",
    "series_name",
    "shown",
]

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
THIN = "thin"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def series_name(series: Mapping[str, str]) -> str:
    """Return the labels of a series as people read them."""
    return printable(" ".join(value for value in series.values() if value) or "all")


def _percent(share: float) -> str:
    """A share with enough digits to tell 99.99 % from 100 %; it is never rounded up to 100 %."""
    text = f"{share * 100:.4f}".rstrip("0").rstrip(".")
    return f"{'99.9999' if text == '100' and share < 1 else text} %"


def notes_json(notes: Sequence[Note]) -> list[dict[str, Any]]:
    """Return notes as the list `notes` of a JSON object."""
    return [{"note": note.what, "whole_days": list(note.days)} for note in notes]


def objective_rows(judged: Sequence[Judged]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rows of a table of judged series."""
    heads = ["series", "messages", "within", "budget used", "hours met", "worst hour, UTC", "verdict"]
    return heads, [
        [
            series_name(one.series),
            f"{one.messages:,}",
            _percent(one.share),
            f"{one.budget_used:.2f}",
            f"{one.hours_met:,} of {one.hours:,}",
            _worst(one),
            "met" if one.is_met else "MISSED",
        ]
        for one in judged
    ]


def objective_lines(judged: Sequence[Judged]) -> Iterator[str]:
    """Return judged series as text."""
    yield from table(*objective_rows(judged))


def objectives_html(judged: Sequence[Judged], objective: Objective, notes: Sequence[Note]) -> str:
    """Return judged series as a page; the figure is the used part of the error budget."""
    from heliograph.monitor.history.studies.page import Part, Span, study_page

    heads, rows = objective_rows(judged)
    spans = [
        Span(row[0], one.budget_used, math.nan, math.nan, f"{one.budget_used:.2f} of the budget")
        for one, row in zip(judged, rows, strict=True)
    ]
    missed = sum(not one.is_met for one in judged)
    part = Part("Used part of the error budget", [], heads, rows, spans, 0.0, 1.0)
    about = [f"{objective.target * 100:g} % of the messages within {duration(objective.limit_ns)}"]
    return study_page("Latency objective", about, f"{missed} missed" if missed else "met", [part], notes)


def _worst(one: Judged) -> str:
    if one.worst_hour is None or one.worst_share is None:
        return "-"
    return f"{one.worst_hour:%Y-%m-%d %H:00} {_percent(one.worst_share)}"


def objectives_json(judged: Sequence[Judged], objective: Objective, notes: Sequence[Note]) -> str:
    """Return series judged against an objective as one JSON object; times in ns since 1970."""
    return json_text(
        {
            "limit_ns": objective.limit_ns,
            "target": objective.target,
            "objectives": [_judged_json(one) for one in judged],
            "notes": notes_json(notes),
        }
    )


def _judged_json(one: Judged) -> dict[str, Any]:
    return {
        "series": dict(one.series),
        "messages": one.messages,
        "within": one.within,
        "share": one.share,
        "budget_used": one.budget_used,
        "hours": one.hours,
        "hours_met": one.hours_met,
        "days_without_hours": one.days,
        "worst_hour_ns": None if one.worst_hour is None else _time_ns(one.worst_hour),
        "worst_hour_share": one.worst_share,
        "met": one.is_met,
    }


def _time_ns(time: datetime) -> int:
    """Return a time in ns since 1970, without the rounding of `datetime.timestamp`."""
    return (time - _EPOCH) // timedelta(microseconds=1) * 1_000


def shown(cell: Cell | None, quantile: str) -> str:
    """Return a quantile of a cell: ``-`` without values, ``thin`` with too few."""
    if cell is None:
        return "-"
    value = cell.percentiles[quantile]
    return THIN if value is None else duration(value)


def calendar_lines(found: Sequence[Calendar], quantile: str, zone: str) -> Iterator[str]:
    """Return calendars as text."""
    name = quantile.replace("_", ".")
    for index, one in enumerate(found):
        yield from [""] if index else []
        yield f"{series_name(one.series)}, days in {printable(zone)}"
        rows = [
            [
                f"{day.day} {WEEKDAYS[day.day.weekday()]}",
                "-" if day.hours is None else str(day.hours),
                f"{day.cell.n:,}",
                *(shown(day.cell, column) for column in PERCENTILES),
                duration(day.cell.max),
            ]
            for day in one.days
        ]
        yield from table(["day", "hours", "values", *(column.replace("_", ".") for column in PERCENTILES), "max"], rows)
        yield ""
        yield f"{series_name(one.series)}, {name} by hour of the week"
        yield from table(
            ["hour", *WEEKDAYS],
            [[f"{hour:02}:00", *(shown(one.week.get((day, hour)), quantile) for day in range(7))]
             for hour in range(24) if any((day, hour) in one.week for day in range(7))],
        )  # fmt: skip


def calendars_json(found: Sequence[Calendar], zone: str, notes: Sequence[Note]) -> str:
    """Return calendars as one JSON object; days and hours are those of the zone."""
    return json_text({"zone": zone, "calendars": [_calendar_json(one) for one in found], "notes": notes_json(notes)})


def _calendar_json(one: Calendar) -> dict[str, Any]:
    return {
        "series": dict(one.series),
        "days": [{"day": day.day.isoformat(), "hours": day.hours, **_cell_json(day.cell)} for day in one.days],
        "week": [
            {"weekday": weekday, "hour": hour, **_cell_json(cell)} for (weekday, hour), cell in sorted(one.week.items())
        ],
    }


def _cell_json(cell: Cell) -> dict[str, Any]:
    return {"values": cell.n, **{f"{name}_ns": value for name, value in cell.percentiles.items()}, "max_ns": cell.max}
