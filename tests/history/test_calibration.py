"""A short version of `make calibrate-history`: the gates of the statistics hold on some hundred generated samples."""

from __future__ import annotations

import pytest

from tests.history.calibration import KINDS, equal_pairs, false_alarms, slower_pairs, steps_found


def test_equal_pairs_of_four_processes_are_seldom_called_different() -> None:
    """Gate: 8 % of 200 pairs. Without calibration it is more for each process with a memory."""
    calls = [one for kind in KINDS for one in equal_pairs(kind, 0, 25, ("p50", "p99"), window=60)]
    pairs = sum(one.pairs for one in calls)
    assert pairs == 200
    assert sum(one.calibrated for one in calls) / pairs <= 0.08
    assert sum(one.bare for one in calls) > sum(one.calibrated for one in calls)


@pytest.mark.parametrize(("quantile", "slower", "gate"), [("p99", 1.05, 0.8), ("p99.9", 1.10, 0.7)])
def test_six_slower_hours_are_found(quantile: str, slower: float, gate: float) -> None:
    found = slower_pairs("memory of 2 intervals", quantile, slower, pairs=10, per=600)
    assert found.calibrated / found.pairs >= gate


def test_months_without_a_change_raise_few_alarms_and_steps_are_found() -> None:
    """Gates: one alarm per series and year; 90 % of steps of 10 % dated to three days."""
    assert false_alarms(1, 36, 30, memory=0.0) <= 1
    assert false_alarms(1, 36, 30, memory=0.9) <= 1
    assert steps_found(3, 36, 0.0, step_at=15) >= 0.9
