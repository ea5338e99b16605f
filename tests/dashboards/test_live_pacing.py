"""How often the store samples: within its share of a core, as asked in small fleets, light where that is cheaper."""

from __future__ import annotations

import itertools

import pytest

from heliograph.dashboards.live.pacing import MOST_SHARE, Pace, Plan

ROUNDED = 0.05
"""Seconds by which an interval of whole samples alone may be shorter than the share asks."""


def run(pace: Pace, whole: float, light: float, samples: int, *, is_watched: bool = True) -> list[tuple[bool, float]]:
    """Take samples of two costs as the store does; return whether each was light, and the seconds after it."""
    found = []
    for _ in range(samples):
        is_light = pace.is_light_next(is_watched=is_watched)
        pace.add(light if is_light else whole, is_light=is_light)
        found.append((is_light, pace.plan(is_watched=is_watched).interval))
    return found


@pytest.mark.parametrize("cost", [0.0, 0.001, 0.0375])
def test_a_fleet_whose_whole_samples_fit_has_no_others(cost: float) -> None:
    pace = Pace(0.25)
    assert run(pace, cost, cost / 10, 50) == [(False, 0.25)] * 50
    assert pace.plan() == Plan(0.25)
    assert pace.plan().whole_interval == 0.25


COSTS = [(0.05, 0.005), (0.11, 0.024), (0.5, 0.095), (0.5, 0.249), (10.0, 2.5), (10.0, 0.001)]


@pytest.mark.parametrize(("whole", "light"), COSTS)
@pytest.mark.parametrize("asked", [0.25, 1.0])
def test_both_kinds_together_stay_within_the_share(whole: float, light: float, asked: float) -> None:
    pace = Pace(asked)
    run(pace, whole, light, 10)
    found = run(pace, whole, light, 1000)
    used = sum(light if is_light else whole for is_light, _ in found)
    passed = sum(seconds for _, seconds in found)
    alone = whole / MOST_SHARE
    assert used / passed <= MOST_SHARE * (alone / (alone - ROUNDED) if alone > 1 else 1.01)
    assert all(seconds >= asked for _, seconds in found)
    assert min(seconds for _, seconds in found) <= max(asked, round(alone, 1))


def test_light_samples_come_often_and_whole_ones_at_the_stated_interval() -> None:
    pace = Pace(0.25)
    found = run(pace, 0.5, 0.1, 200)[4:]
    plan = pace.plan()
    assert plan.interval == pytest.approx(1.0)
    assert plan.cost == 0.5
    wholes = [place for place, (is_light, _) in enumerate(found) if not is_light]
    assert {after - before for before, after in itertools.pairwise(wholes)} == {plan.every}
    assert plan.whole_interval == pytest.approx(plan.every * plan.interval)


def test_light_samples_that_save_little_are_tried_seldom() -> None:
    found = run(Pace(0.25), 2.0, 1.5, 100)
    assert 1 <= sum(is_light for is_light, _ in found) <= 6
    assert not any(first and second for (first, _), (second, _) in itertools.pairwise(found))


def test_a_fleet_that_gets_cheap_light_samples_is_noticed() -> None:
    pace = Pace(0.25)
    run(pace, 2.0, 1.5, 30)
    assert sum(is_light for is_light, _ in run(pace, 2.0, 0.2, 100)) > 50


def test_nobody_looking_means_whole_samples_only() -> None:
    pace = Pace(0.25)
    run(pace, 0.5, 0.1, 20)
    found = run(pace, 0.5, 0.1, 20, is_watched=False)
    assert not any(is_light for is_light, _ in found)
    assert found[-1][1] == pytest.approx(0.5 / MOST_SHARE, abs=ROUNDED)


def test_one_expensive_sample_does_not_count() -> None:
    pace = Pace(0.25)
    run(pace, 0.01, 0.01, 5)
    pace.add(5.0, is_light=False)
    assert pace.plan() == Plan(0.25)
