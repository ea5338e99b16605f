"""Runs: the same for the same seed, one worst seed a criterion, the same in one process and in several."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from heliograph.monitor.lab.charts import charts
from heliograph.monitor.lab.curves import run
from heliograph.monitor.lab.measures import MEASURES, measure, passes
from heliograph.monitor.lab.runs import Trials, run_scenarios
from heliograph.monitor.lab.scenario import Scenario, load, parse, shipped


@pytest.fixture
def scenario(small: str) -> Scenario:
    return parse(small, "small.toml", "small")


def values(trials: Trials) -> list[tuple[float, ...]]:
    return [outcome.values for outcome in trials.outcomes]


def test_the_same_seed_gives_the_same_curves(scenario: Scenario) -> None:
    plan = scenario.plans[""]
    first, again, other = run(plan, 5), run(plan, 5), run(plan, 6)
    assert {name: first.column(name) for name in first.names} == {name: again.column(name) for name in again.names}
    assert first.events == again.events
    assert any(first.column(name) != other.column(name) for name in first.names)


def test_the_curves_agree_with_the_receivers_at_the_end(scenario: Scenario) -> None:
    curves = run(scenario.plans[""], 1)
    assert len(curves.time) == 40
    assert curves.time[-1] == pytest.approx(2.0)
    assert [receiver.group for receiver in curves.receivers] == [0, 0, 1]
    good = sum(receiver.delivered for receiver in curves.receivers if receiver.group == 0)
    assert good == curves.last("group0.delivered") > 1000
    assert curves.column("pipe0.rate")[18:22] == [2e6, 1e6, 1e6, 1e6]
    assert max(curves.column("group1.queue")) <= 50_000
    assert curves.last("tcp0.acked") > 0
    assert sum(curves.per_second("group0.delivered")) * 0.05 == pytest.approx(good)


def test_the_worst_seed_is_held_against_the_bound(scenario: Scenario) -> None:
    (trials,) = run_scenarios([scenario], seeds=3, jobs=1)
    assert [outcome.seed for outcome in trials.outcomes] == [1, 2, 3]
    used, loss = trials.verdicts
    assert used.value == min(row[0] for row in values(trials))
    assert values(trials)[used.worst_seed - 1][0] == used.value
    assert loss.value == max(row[1] for row in values(trials))
    assert (used.passed, loss.passed) == (True, True)
    facts = used.as_json()
    assert facts["name"] == "utilisation"
    assert (facts["bound"], facts["wanted"], facts["verdict"], facts["seeds"]) == (0.1, "at least", "pass", 3)
    assert loss.as_json()["wanted"] == "reported"


def test_several_processes_come_to_the_same(scenario: Scenario) -> None:
    told: list[tuple[int, int]] = []
    (alone,) = run_scenarios([scenario], seeds=3, jobs=1)
    (together,) = run_scenarios([scenario], seeds=3, jobs=2, tell=lambda done, of: told.append((done, of)))
    assert values(alone) == values(together)
    assert alone.outcomes[0].drawn == together.outcomes[0].drawn
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_scenario_may_want_several_runs_a_seed(small: str) -> None:
    scenario = parse(small.replace("duration = 2.0", "duration = 1.0\nrepeat = 3"), "small.toml", "small")
    (trials,) = run_scenarios([scenario], seeds=2, jobs=1)
    assert [outcome.seed for outcome in trials.outcomes] == [1, 2, 3, 4, 5, 6]


def test_seeds_go_on_from_the_first_whose_events_are_kept(small: str) -> None:
    scenario = parse(small.replace("duration = 2.0", "duration = 1.0\nrepeat = 2"), "small.toml", "small")
    (trials,) = run_scenarios([scenario], seeds=2, jobs=1, first=1000)
    assert [outcome.seed for outcome in trials.outcomes] == [1000, 1001, 1002, 1003]
    assert [bool(outcome.events) for outcome in trials.outcomes] == [True, False, False, False]
    (again,) = run_scenarios([scenario], seeds=1, jobs=1, first=1001)
    assert values(again)[0] == values(trials)[1]


def test_the_band_holds_the_middle_of_the_runs(scenario: Scenario) -> None:
    (trials,) = run_scenarios([scenario], seeds=4, jobs=1)
    low, high = trials.band("", 0, 1)
    for outcome in trials.outcomes:
        inside = zip(low, outcome.drawn[""][0].series[1].values, high, strict=True)
        assert all(one <= value <= other for one, value, other in inside)


@pytest.mark.parametrize("name", [name for name in shipped() if load(name).network == "simulated"])
def test_a_scenario_that_comes_along_begins_and_is_drawn(name: str) -> None:
    """Its first second with five receivers; whether it comes out as it must: test_criteria.py."""
    for plan in load(name).plans.values():
        if sum(group.count for group in plan.receivers) > 50 and plan.receivers[0].join == 0:
            plan = replace(plan, receivers=tuple(replace(group, count=5) for group in plan.receivers))
        curves = run(replace(plan, duration=plan.interval * 20), 1)
        assert len(curves.time) == 20
        assert all(one.values for chart in charts(curves) for one in chart.series)
        assert curves.last("source0.packets_sent") > 100


def test_the_bad_receiver_is_found_as_promised() -> None:
    (trials,) = run_scenarios([load("one-bad-receiver")], seeds=1, jobs=1)
    assert [verdict.passed for verdict in trials.verdicts[:2]] == [True, True]


def test_what_never_happens_does_not_pass() -> None:
    assert not passes("told_after", math.inf, 1.0)
    assert not passes("told_after", math.inf, None)
    assert not passes("utilisation", math.nan, 0.0)
    assert passes("utilisation", 0.8, 0.8)
    assert not passes("utilisation", 0.79, 0.8)
    assert passes("told_times", 0, 0)


def test_every_measure_says_what_it_is() -> None:
    assert all(one.help.endswith(".") and len(one.help) > 20 for one in MEASURES.values())


def test_loss_and_utilisation_are_what_was_set(small: str) -> None:
    text = small.replace("loss = 0.05", "loss = 0.05\ncount = 4").replace("{ at = 0.5, loss = 0.01 }", "")
    runs = {"": run(parse(text, "small.toml", "small").plans[""], 1)}
    assert measure("loss_share", runs, {"begin": 0.2, "end": 0.5}) == pytest.approx(0.05, abs=0.02)
    # 0.9 of 2 MB/s offered, an eighth of headers, a fifth of repairs
    assert measure("utilisation", runs, {"begin": 0.2, "end": 0.5}) == pytest.approx(0.61, abs=0.06)
