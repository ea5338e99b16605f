"""Studies and the report of a pruned history: counts of whole days are used, their hours are not invented."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.days import compact
from heliograph.monitor.history.files import write_spool
from heliograph.monitor.history.hours import read_history
from heliograph.monitor.history.retention import prune
from heliograph.monitor.history.rollup import Threads, rollup
from heliograph.monitor.history.studies.calendar import days_of
from heliograph.monitor.history.studies.days import Note, choose_rows, notes_text
from heliograph.monitor.history.studies.samples import parse_selection
from tests.history.recordings import NOON, interval
from tests.history.test_commands import run
from tests.history.test_report import Page

MS = 1_000_000
METRIC = "receiver_total_latency"
ZERO = timedelta(0)


def made(tmp_path: Path, days: int = 3, hours: int = 4, pruned: int = 2) -> Path:
    """A history of some days from 2025-11-21 on; the first ones are pruned. One value in 100 of 13:00 is above 1 ms."""
    rows = [
        interval(
            [MS // 2 + day] * (99 if hour == 1 else 100) + [5 * MS] * (hour == 1),
            seq=day * hours + hour,
            at_s=86_400 * day + 3600 * hour,
        )
        for day in range(days)
        for hour in range(hours)
    ]
    write_spool(tmp_path / "spool", rows, "s0", 0)
    rollup(Threads(), tmp_path / "spool", tmp_path / "history")
    compact(tmp_path / "history", ZERO)
    moment = datetime(2025, 11, 21 + pruned, tzinfo=UTC)
    assert len(prune(tmp_path / "history", ZERO, now=moment).days) == pruned
    return tmp_path / "history"


def answer(capsys: pytest.CaptureFixture[str], name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The one entry of a named list, and the notes."""
    found = json.loads(capsys.readouterr().out)
    (one,) = found[name]
    return one, found["notes"]


def test_objectives_count_messages_of_whole_days_and_hours_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = made(tmp_path)
    assert run("objectives", "--history", history, "--within", "1ms", "--json") == 1
    one, (note,) = answer(capsys, "objectives")
    assert (one["messages"], one["within"]) == (1200, 1197)
    assert (one["hours"], one["hours_met"], one["days_without_hours"]) == (4, 3, 2)
    assert one["worst_hour_ns"] == NOON + (2 * 24 + 1) * 3600 * 10**9  # 2025-11-23 13:00 UTC
    assert note["whole_days"] == ["2025-11-21", "2025-11-22"]
    run("objectives", "--history", history, "--within", "1ms")
    assert (
        "note: 2025-11-21 to 2025-11-22: stored as whole days, without hours; their messages count, their hours do not"
        in capsys.readouterr().out
    )
    run("objectives", "--history", history, "--within", "1ms", "--select", "to=2025-11-23", "--json")
    one, _ = answer(capsys, "objectives")
    assert (one["hours"], one["worst_hour_ns"], one["worst_hour_share"], one["messages"]) == (0, None, None, 800)
    assert run("objectives", "--history", history, "--within", "1ms", "--select", "to=2025-11-23") == 1
    assert "0 of 0" in capsys.readouterr().out


def test_a_day_that_a_selection_cuts_is_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = made(tmp_path)
    cut = "from=2025-11-21T12,to=2025-11-23T13"
    run("objectives", "--history", history, "--within", "1ms", "--json", "--select", cut)
    one, notes = answer(capsys, "objectives")
    assert one["messages"] == 400 + 100
    assert [note["whole_days"] for note in notes] == [["2025-11-21"], ["2025-11-22"]]
    assert "the selection has only a part of them" in str(notes[0]["note"])
    with pytest.raises(UserError, match=r"no hour of .* \(2025-11-21: stored as whole days, .* only a part of them\)"):
        run("objectives", "--history", history, "--within", "1ms", "--select", "to=2025-11-21T13")


@pytest.mark.parametrize(
    ("bounds", "used", "cut"),
    [
        ("from=2025-11-21,to=2025-11-22", ["2025-11-21"], []),
        ("from=2025-11-21T00:00:01,to=2025-11-23", ["2025-11-22"], ["2025-11-21"]),
        ("from=2025-11-21,to=2025-11-22T23:59:59", ["2025-11-21"], ["2025-11-22"]),
        ("to=2025-11-21", [], []),
        ("from=2025-11-23", [], []),
        ("topic=NONE", [], []),
    ],
)
def test_days_within_a_selection_are_used(tmp_path: Path, bounds: str, used: list[str], cut: list[str]) -> None:
    rows = choose_rows(read_history(made(tmp_path))[0], parse_selection(bounds), METRIC)
    assert [f"{ts:%Y-%m-%d}" for ts in rows.days["ts"].to_pylist()] == used
    assert [list(note.days) for note in rows.notes] == ([cut] if cut else [])


def test_the_calendar_has_whole_days_without_hours_and_no_hours_of_the_week_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = made(tmp_path)
    assert run("calendar", "--history", history, "--json") == 0
    one, (note,) = answer(capsys, "calendars")
    assert [(day["day"], day["hours"], day["values"]) for day in one["days"]] == [
        ("2025-11-21", None, 400),
        ("2025-11-22", None, 400),
        ("2025-11-23", 4, 400),
    ]
    assert {cell["weekday"] for cell in one["week"]} == {6}
    assert sum(cell["values"] for cell in one["week"]) == 400
    assert (note["note"], note["whole_days"]) == ("not in the hours of the week", ["2025-11-21", "2025-11-22"])
    assert run("calendar", "--history", history, "--zone", "America/New_York", "--json") == 0
    one, (note,) = answer(capsys, "calendars")
    assert sum(day["values"] for day in one["days"]) == 400
    assert note["note"] == "left out: they are not days of America/New_York"
    assert run("calendar", "--history", history, "--out", tmp_path / "page.html") == 0
    assert "not in the hours of the week" in (tmp_path / "page.html").read_text()
    with pytest.raises(UserError, match="not days of America/New_York"):
        run("calendar", "--history", history, "--zone", "America/New_York", "--select", "to=2025-11-23")


def test_a_day_of_a_zone_is_a_utc_day_only_where_both_ends_agree(tmp_path: Path) -> None:
    """London has UTC's days in winter; the day on which clocks change has another length."""
    days = read_history(made(tmp_path))[0].slice(0, 0)
    assert [part.num_rows for part in days_of(ZoneInfo("Europe/London"), days)] == [0, 0]
    table = read_history(tmp_path / "history")[0]
    rows = choose_rows(table, parse_selection(""), METRIC).days
    assert [part.num_rows for part in days_of(ZoneInfo("Europe/London"), rows)] == [2, 0]
    assert [part.num_rows for part in days_of(ZoneInfo("Asia/Kolkata"), rows)] == [0, 2]


def test_changes_are_found_from_hours_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of the days are pruned: their quantiles differ from the medians of hours, and must raise no alarm."""
    history = made(tmp_path, days=9, hours=3, pruned=2)
    assert run("changes", "--history", history, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["changes"] == []
    assert found["notes"] == [
        {"note": "left out: changes are found from hours", "whole_days": ["2025-11-21", "2025-11-22"]}
    ]
    assert run("changes", "--history", history) == 0
    out = capsys.readouterr().out
    assert "too few days: alpha PRICES.A receiver_total_latency: 7 days of 10" in out
    assert "note: 2025-11-21 to 2025-11-22: stored as whole days" in out


def test_the_report_shows_a_whole_day_as_one_step(tmp_path: Path) -> None:
    history = made(tmp_path)
    assert run("report", "--history", history, "--out", tmp_path / "report.html") == 0
    page = Page((tmp_path / "report.html").read_text())
    assert not page.open
    assert "2025-11-21 00:00 to 2025-11-23 15:59 UTC · 4 hours and 2 whole days with data" in page.text
    assert "2025-11-21 whole day" in page.text
    assert "2025-11-23 12:00" in page.text
    assert "1,200" in page.text
    alone = made(tmp_path / "alone", days=1, pruned=1)
    assert run("report", "--history", alone, "--out", tmp_path / "report.html") == 0
    assert "2025-11-21 00:00 to 23:59 UTC · 1 whole day with data" in Page((tmp_path / "report.html").read_text()).text


def test_notes_join_neighbouring_days() -> None:
    days = tuple(f"{date(2025, 11, 29) + timedelta(days=at)}" for at in (0, 1, 2, 4, 6, 7))
    (text,) = notes_text([Note("left out", days)])
    assert text == (
        "2025-11-29 to 2025-12-01, 2025-12-03, 2025-12-05 to 2025-12-06: stored as whole days, without hours; left out"
    )
