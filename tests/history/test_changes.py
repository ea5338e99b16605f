"""Change points: steps are found on their day, with what else changed; days without a change raise few alarms."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import to_table, write_table
from heliograph.monitor.history.merge import merge
from heliograph.monitor.history.schema import LatencyInterval
from heliograph.monitor.history.studies.changes import changes, e_divisive
from heliograph.monitor.history.studies.recent import recent_shift
from tests.history.recordings import interval
from tests.history.test_commands import run
from tests.history.test_report import study_text

Hours = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
MONDAY = 24 * 20_458
"""Hours from 1970 to 2026-01-05."""


def days(seed: int, count: int, step_at: int | None = None, step: float = 1.10) -> list[float]:
    """Logarithms of a daily p99 that varies by 3 %, with a step."""
    values = 0.03 * np.random.default_rng(seed).normal(size=count)
    if step_at is not None:
        values[step_at:] += math.log(step)
    return [float(value) for value in values]


def test_a_step_of_ten_percent_is_found_within_three_days() -> None:
    found = [e_divisive(days(seed, 30, 15), seed=seed) for seed in range(40)]
    near = sum(any(abs(at - 15) <= 3 for at, _ in points) for points in found)
    assert near >= 36


def test_days_without_a_change_raise_few_alarms() -> None:
    alarms = sum(bool(e_divisive(days(1000 + seed, 30), seed=seed)) for seed in range(200))
    assert alarms <= 8  # 2 are expected at a significance of 1 %


def test_two_steps_are_told_apart() -> None:
    values = days(1, 60, 20, 1.2)
    values[40:] = [value + math.log(1.2) for value in values[40:]]
    assert [at for at, _ in e_divisive(values)] == [20, 40]


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 5, [2.0] * 40])
def test_few_or_constant_values_have_no_change(values: list[float]) -> None:
    assert e_divisive(values) == []


def history_of(folder: Path, value_of: Callable[[int], float], count: int = 24, hours: int = 4) -> Path:
    """A history of some days with some hours each; the build changes on day 14."""
    rows: list[LatencyInterval] = []
    for day in range(count):
        random = np.random.default_rng(day)
        for hour in range(hours):
            values = np.exp(math.log(value_of(day)) + 0.3 * random.normal(size=200))
            row = interval([int(value) for value in values], at_s=86_400 * day + 3600 * hour, seq=len(rows))
            build = "4.1" if day < 14 else "4.2"
            rows.append(replace(row, build=build, stream=f"stream-{build}", incarnation=build.zfill(16)))
    write_table(folder / "a.parquet", merge(to_table(rows))[0])
    return folder


def test_a_change_is_noted_with_the_new_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = history_of(tmp_path, lambda day: 20_000 if day < 14 else 24_000)
    page = tmp_path / "page.html"
    assert run("changes", "--history", history, "--quantiles", "p50", "--out", page) == 0
    assert "Verdict 1 in 1 series" in study_text(page)
    out = capsys.readouterr().out
    assert "2025-12-05" in out
    assert "x1.19" in out
    assert "build 4.1 -> 4.2, restarted" in out
    assert run("changes", "--history", history, "--quantiles", "p50", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["series_studied"], found["too_few_days"], found["notes"]) == (1, [], [])
    (one,) = found["changes"]
    assert (one["day"], one["quantile"], one["series"]["topic"]) == ("2025-12-05", "p50", "PRICES.A")
    assert one["ratio"] == pytest.approx(1.2, rel=0.05)


def test_no_change_and_too_few_days_are_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("changes", "--history", history_of(tmp_path / "a", lambda day: 20_000)) == 0
    assert capsys.readouterr().out == "no change in 1 series\n"
    assert run("changes", "--history", history_of(tmp_path / "b", lambda day: 20_000, 5)) == 0
    assert capsys.readouterr().out.splitlines() == [
        "no change in 0 series",
        "too few days: alpha PRICES.A receiver_total_latency: 5 days of 10",
    ]
    assert run("changes", "--history", tmp_path / "b", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "changes": [],
        "recent": [],
        "series_studied": 0,
        "too_few_days": ["alpha PRICES.A receiver_total_latency: 5 days of 10"],
        "too_few_days_recent": [],
        "notes": [],
    }


def hours_of(seed: int, count: int, memory: float, step_at: int | None = None, step: float = 1.10) -> Hours:
    """Hours with a day, a weekend and a noise of 5 %, perhaps with a step at the start of a day."""
    random = np.random.default_rng(seed)
    hours = MONDAY + np.arange(24 * count)
    noise = random.normal(size=hours.size)
    for at in range(1, noise.size):
        noise[at] = memory * noise[at - 1] + math.sqrt(1 - memory**2) * noise[at]
    logs = 10 + 0.15 * np.sin(2 * np.pi * hours / 24) - 0.1 * ((hours - MONDAY) // 24 % 7 >= 5) + 0.05 * noise
    if step_at is not None:
        logs[24 * step_at :] += math.log(step)
    return hours, logs


@pytest.mark.parametrize(("memory", "least"), [(0.0, 20), (0.9, 15)])
def test_a_step_three_days_before_the_end_is_found(memory: float, least: int) -> None:
    """Days alone find 0 to 3 % of them."""
    found = [recent_shift(*hours_of(seed, 63, memory, 60)) for seed in range(20)]
    near = [one for one in found if one is not None and abs(one.index - 24 * 60) <= 12 and one.log_ratio > 0]
    assert len(near) >= least


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_weeks_without_a_change_raise_few_recent_alarms(memory: float) -> None:
    """One look at each of 150 series; at half an alarm a year and some days each, one is expected."""
    assert sum(recent_shift(*hours_of(1000 + seed, 40, memory)) is not None for seed in range(150)) <= 5


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_one_unusual_hour_is_no_recent_change(memory: float) -> None:
    hours, logs = hours_of(3, 40, memory)
    logs[-30] += 1.0
    assert recent_shift(hours, logs) is None


@given(st.integers(0, 50), st.floats(-3, 3), st.booleans())
@settings(max_examples=15, deadline=None)
def test_a_recent_change_depends_on_ratios_only(seed: int, unit: float, has_gaps: bool) -> None:
    hours, logs = hours_of(seed, 35, 0.5, 32, 1.3)
    if has_gaps:
        kept = np.random.default_rng(seed).random(hours.size) < 0.8
        hours, logs = hours[kept], logs[kept]
    found, moved = recent_shift(hours, logs), recent_shift(hours, logs + unit)
    assert found is not None
    assert moved is not None
    assert moved.index == found.index
    assert moved.log_ratio == pytest.approx(found.log_ratio)
    low, high = found.log_interval
    assert low < found.log_ratio < high


@pytest.mark.parametrize("logs", [np.zeros(24 * 30), np.zeros(0), np.zeros(24 * 10)])
def test_constant_and_short_series_have_no_recent_change(logs: npt.NDArray[np.float64]) -> None:
    assert recent_shift(MONDAY + np.arange(logs.size), logs) is None


def test_a_known_change_is_not_recent() -> None:
    hours, logs = hours_of(1, 40, 0.0, 36, 1.3)
    found = recent_shift(hours, logs)
    assert found is not None
    assert abs(found.index - 24 * 36) <= 3
    assert recent_shift(hours, logs, [24 * 36]) is None


def test_a_recent_change_is_shown_as_not_confirmed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last two days are slower, which are too few for a change point."""
    varied = np.exp(0.05 * np.random.default_rng(5).normal(size=30))

    def value_of(day: int) -> float:
        return (20_000 if day < 28 else 26_000) * float(varied[day])

    history = history_of(tmp_path, value_of, 30, 8)
    options = ("--quantiles", "p50", "--significance", "0.002")
    page = tmp_path / "page.html"
    assert run("changes", "--history", history, *options, "--out", page) == 0
    assert "1 recent and not confirmed" in study_text(page)
    out = capsys.readouterr().out
    assert "since 2025-12-19 12:00" in out
    assert "16 hours, not confirmed" in out
    assert run("changes", "--history", history, *options, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    (one,) = found["recent"]
    assert (found["changes"], one["since"], one["hours"]) == ([], "2025-12-19T12:00Z", 16)
    assert one["low"] < one["ratio"] < one["high"]
    assert one["ratio"] == pytest.approx(1.3, rel=0.1)


def test_wrong_settings_are_refused() -> None:
    table = merge(to_table([interval([1])]))[0]
    with pytest.raises(UserError, match=r"from 0\.002 to 0\.5, not 0"):
        changes(table, significance=0.0)
    with pytest.raises(UserError, match="no quantile 'p42'"):
        changes(table, quantiles=["p42"])
