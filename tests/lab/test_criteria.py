"""Every scenario's criteria, over its whole length, on seeds that no constant of the engine was tuned on.

``make lab`` does the same with a hundred seeds. Here each scenario has as many
as a run of about a minute of one core allows.
"""

from __future__ import annotations

import pytest

from heliograph.monitor.lab.measures import MEASURES, passes
from heliograph.monitor.lab.runs import Trials, run_scenarios
from heliograph.monitor.lab.scenario import load, parse, shipped

HELD_OUT = 1000
"""The first seed: whoever tunes a constant does so with smaller ones."""

SEEDS = {"group-size": 2, "join-wave": 4}
"""Of those whose runs take some seconds each."""
USUAL = 12
"""Of all others, whose runs take about half a second."""

SIMULATED = [name for name in shipped() if load(name).network == "simulated"]


def failures(trials: Trials) -> list[str]:
    """Each run that is on the wrong side of a bound, as a sentence that says how to repeat it."""
    name = trials.scenario.name
    return [
        f'{name}: "{criterion.name}" with seed {outcome.seed}: {value:.4g} {MEASURES[criterion.measure].unit}, '
        f"bound {criterion.bound} (heliograph lab run {name} --first {outcome.seed} --seeds 1)"
        for outcome in trials.outcomes
        for criterion, value in zip(trials.scenario.criteria, outcome.values, strict=True)
        if not passes(criterion.measure, value, criterion.bound)
    ]


@pytest.mark.parametrize("name", SIMULATED)
def test_each_criterion_holds_on_seeds_nothing_was_tuned_on(name: str) -> None:
    scenario = load(name)
    for plan in scenario.plans.values():
        assert all(turn.at < plan.duration for turn in plan.turns)
    (trials,) = run_scenarios([scenario], SEEDS.get(name, USUAL), jobs=1, first=HELD_OUT)
    assert failures(trials) == []


@pytest.mark.parametrize("seed", [18, 72, 77, 1028, 1034, 1077])
def test_a_tcp_flow_that_lost_much_of_a_window_is_not_starved(seed: int) -> None:
    """Its recovery once never ended with these seeds: it got 1 to 17 % of the bottleneck, one packet a round trip."""
    (trials,) = run_scenarios([load("tcp-beside-pgmcc")], 1, jobs=1, first=seed)
    assert failures(trials) == []


def test_a_failure_is_said_with_scenario_criterion_seed_value_and_bound(small: str) -> None:
    scenario = parse(small.replace("bound = 0.1", "bound = 1.5"), "small.toml", "small")
    (trials,) = run_scenarios([scenario], 2, jobs=1, first=HELD_OUT)
    said = failures(trials)
    assert [text.split(":")[0] for text in said] == ["small", "small"]
    assert '"utilisation" with seed 1001: ' in said[1]
    assert f"{trials.outcomes[1].values[0]:.4g} share of the bottleneck, bound 1.5" in said[1]
    assert "--first 1001 --seeds 1" in said[1]
