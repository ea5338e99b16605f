"""Change points: steps are found on their day, with what else changed; days without a change raise few alarms."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import to_table, write_table
from heliograph.monitor.history.merge import merge
from heliograph.monitor.history.schema import LatencyInterval
from heliograph.monitor.history.studies.changes import changes, e_divisive
from tests.history.recordings import interval
from tests.history.test_commands import run
from tests.history.test_report import study_text


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


def history_of(folder: Path, value_of: Callable[[int], float], count: int = 24) -> Path:
    """A history of some days with four hours each; the build changes on day 14."""
    rows: list[LatencyInterval] = []
    for day in range(count):
        random = np.random.default_rng(day)
        for hour in range(4):
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
        "series_studied": 0,
        "too_few_days": ["alpha PRICES.A receiver_total_latency: 5 days of 10"],
        "notes": [],
    }


def test_wrong_settings_are_refused() -> None:
    table = merge(to_table([interval([1])]))[0]
    with pytest.raises(UserError, match=r"from 0\.002 to 0\.5, not 0"):
        changes(table, significance=0.0)
    with pytest.raises(UserError, match="no quantile 'p42'"):
        changes(table, quantiles=["p42"])
