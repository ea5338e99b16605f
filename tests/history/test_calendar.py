"""Objectives and calendars: exact shares, days and hours of a time zone, and no percentile of too few values."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import to_table, write_table
from heliograph.monitor.history.hours import read_history
from heliograph.monitor.history.merge import merge
from heliograph.monitor.history.schema import LatencyInterval
from heliograph.monitor.history.studies.calendar import calendars, zone_of
from heliograph.monitor.history.studies.objectives import Objective, judge, parse_duration
from tests.history.recordings import NOON, interval
from tests.history.test_commands import run
from tests.history.test_report import Page, study_text

MS = 1_000_000
HOUR = 3600.0
SUMMER = 1_761_436_800
"""2025-10-26 00:00 UTC; London sets its clocks back at 01:00 UTC."""


def history_of(folder: Path, rows: list[LatencyInterval]) -> Path:
    write_table(folder / "a.parquet", merge(to_table(rows))[0])
    return folder


def two_hours(folder: Path) -> Path:
    """Topic A: 999 of 1,000 within 1 ms, then 950 of 1,000; topic B: all."""
    return history_of(
        folder,
        [
            interval([MS // 2] * 999 + [5 * MS], seq=0),
            interval([MS // 2] * 950 + [5 * MS] * 50, seq=1, at_s=HOUR),
            interval([MS // 2] * 10, seq=2, topic="PRICES.B"),
        ],
    )


def test_shares_and_budgets_are_exact(tmp_path: Path) -> None:
    table, _ = read_history(two_hours(tmp_path))
    worst, best = judge(table, Objective(MS, 0.999))
    assert (worst.series["topic"], worst.messages, worst.within) == ("PRICES.A", 2000, 1949)
    assert (worst.hours, worst.hours_met, worst.is_met) == (2, 1, False)
    assert worst.budget_used == pytest.approx(51 / 2000 / 0.001)
    assert (worst.worst_hour.hour, worst.worst_share) == (13, 0.95)
    assert (best.series["topic"], best.share, best.budget_used, best.is_met) == ("PRICES.B", 1.0, 0.0, True)


def test_values_in_the_cell_of_the_limit_and_out_of_range_are_outside(tmp_path: Path) -> None:
    row = replace(interval([999_999, 1_000_200, 1_000_000 - 5000]), dropped=2)
    table, _ = read_history(history_of(tmp_path, [row]))
    (one,) = judge(table, Objective(MS, 0.5))
    assert (one.messages, one.within) == (5, 1)  # 999,999 shares its cell with values above 1 ms
    (one,) = judge(table, Objective(10**12, 0.5))
    assert (one.messages, one.within) == (5, 3)


def test_the_command_says_met_or_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = two_hours(tmp_path)
    assert run("objectives", "--history", history, "--within", "1ms", "--out", tmp_path / "page.html") == 1
    assert "Verdict 1 missed" in study_text(tmp_path / "page.html")
    out = capsys.readouterr().out
    assert "97.45 %" in out
    assert "MISSED" in out
    assert run("objectives", "--history", history, "--within", "1ms", "--select", "topic=PRICES.B", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["limit_ns"], found["target"], found["notes"]) == (MS, pytest.approx(0.999), [])
    (one,) = found["objectives"]
    assert (one["series"]["topic"], one["budget_used"], one["met"]) == ("PRICES.B", 0, True)
    assert one["worst_hour_ns"] == NOON
    with pytest.raises(UserError, match="no hour of receiver_total_latency is selected by 'topic=NONE'"):
        run("objectives", "--history", history, "--within", "1ms", "--select", "topic=NONE")


@pytest.mark.parametrize(("text", "ns"), [("250us", 250_000), ("1.5 ms", 1_500_000), ("2s", 2 * 10**9), ("7ns", 7)])
def test_durations_are_read(text: str, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize("text", ["", "1", "ms", "-1ms", "1 h", "0ns", "1e3ms"])
def test_what_is_no_duration_is_named(text: str) -> None:
    with pytest.raises(UserError, match="is not a duration"):
        parse_duration(text)


def test_days_are_those_of_the_zone_and_count_their_hours(tmp_path: Path) -> None:
    """The day on which London sets its clocks back has 25 hours, and 01:00 has the values of two."""
    offset = SUMMER - NOON / 1e9
    rows = [interval([1000 + hour] * 20, seq=hour, at_s=offset + HOUR * hour) for hour in range(-1, 24)]
    table, _ = read_history(history_of(tmp_path, rows))
    (one,) = calendars(table, ZoneInfo("Europe/London"))
    assert [(day.day, day.hours, day.cell.n) for day in one.days] == [(date(2025, 10, 26), 25, 500)]
    assert one.week[6, 1].n == 40
    assert one.week[6, 0].n == one.week[6, 23].n == 20
    (one,) = calendars(table, UTC)
    assert [(day.day, day.hours) for day in one.days] == [(date(2025, 10, 25), 1), (date(2025, 10, 26), 24)]


def test_a_percentile_needs_ten_values_beyond_it(tmp_path: Path) -> None:
    table, _ = read_history(history_of(tmp_path, [interval([1000] * 1000, seq=0)]))
    (one,) = calendars(table)
    percentiles = one.days[0].cell.percentiles
    assert percentiles["p99"] is not None
    assert percentiles["p99_9"] is None


def test_series_are_kept_apart_by_the_labels_asked_for(tmp_path: Path) -> None:
    rows = [
        interval([1000] * 50, seq=0, build="4.1"),
        interval([2000] * 50, seq=1, build="4.2"),
        interval([4000] * 50, seq=2, build="4.2", at_s=86_400 * 3),
    ]
    table, _ = read_history(history_of(tmp_path, rows))
    assert [one.days[0].cell.n for one in calendars(table)] == [100]
    apart = calendars(table, by=("topic", "build"))
    assert [(one.series["build"], len(one.days), len(one.week)) for one in apart] == [("4.1", 1, 1), ("4.2", 2, 2)]


def test_the_calendar_is_shown_as_text_json_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [interval([1000 * (1 + at % 5)] * 200, seq=at, at_s=HOUR * 5 * at, topic="<b>&") for at in range(40)]
    history = history_of(tmp_path / "history", rows)
    assert run("calendar", "--history", history, "--quantile", "p90") == 0
    out = capsys.readouterr().out
    assert "2025-11-21 Fri" in out
    assert "thin" in out
    assert "p90 by hour of the week" in out
    assert run("calendar", "--history", history, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["zone"], found["notes"]) == ("UTC", [])
    (one,) = found["calendars"]
    assert one["days"][0]["day"] == "2025-11-21"
    assert 1000 <= one["days"][0]["p50_ns"] <= one["days"][0]["max_ns"] <= 5005
    assert run("calendar", "--history", history, "--quantile", "p90", "--out", tmp_path / "page.html") == 0
    page = Page((tmp_path / "page.html").read_text())
    assert not page.open
    assert "script" not in page.tags
    assert "alpha <b>&" in page.text
    assert not [value for name, value in page.attributes if name in {"href", "src"}]


def test_an_unknown_zone_or_percentile_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no time zone 'Europe/Londn'"):
        zone_of("Europe/Londn")
    with pytest.raises(UserError, match="no time zone"):
        zone_of("../../etc/passwd")
    with pytest.raises(UserError, match="'p42' is not one of p50"):
        run("calendar", "--history", two_hours(tmp_path), "--quantile", "p42")
