"""`heliograph info`: the levels of detail, what each adds by the catalogue, its cost. No test judges a speed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import pytest

from heliograph.engine import catalogue
from heliograph.engine.info import cost_text
from heliograph.engine.levels import CASES, LEVELS, ORDER, Case, Interval, costs_of, ladder, measure, median_interval

COMMAND = [sys.executable, "-m", "heliograph.monitor.cli", "info"]


def info(*arguments: str) -> str:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def rounds(*levels: tuple[float, ...]) -> list[float]:
    """Slots as they are measured, from the values of levels 0 to 3 in each round."""
    return [one[level] for one in levels for level in ORDER]


def test_the_ladder_has_every_statistic_of_the_catalogue_once() -> None:
    statistics = [statistic for scope in catalogue.scopes().values() for statistic in scope.statistics]
    found = [name for added in ladder() for name in added.histograms]
    assert sorted(found) == sorted(f"{s.scope}.{s.name}" for s in statistics if s.kind == "histogram")
    assert sum(added.cells for added in ladder()) == sum(len(s.cells) for s in statistics if s.kind != "histogram")
    assert "rx_stream.recovery_time" in ladder()[1].histograms
    assert "total_latency" in ladder()[2].text


def test_costs_are_differences_within_a_round() -> None:
    found = costs_of(rounds((100, 101, 104, 110), (200, 201, 204, 210), (150, 151, 154, 160)))
    assert [cost.level for cost in found] == list(LEVELS)
    assert [cost.added_ns.median for cost in found] == [0, 1, 4, 10]
    assert [cost.ns.median for cost in found] == [150, 151, 154, 160]
    assert found[3].throughput == pytest.approx(150 / 160)
    assert (found[3].added_ns.low, found[3].added_ns.high) == (10, 10)
    assert found[3].is_seen
    assert found[0].rounds == 3


def test_a_steady_drift_cancels_out() -> None:
    slots = [value + 7 * place for place, value in enumerate(rounds(*[(100, 100, 100, 103)] * 5))]
    assert [cost.added_ns.median for cost in costs_of(slots)] == [0, 0, 0, 3]


def test_what_is_no_whole_round_is_refused() -> None:
    for slots in ([], [1.0], [1.0] * 12):
        with pytest.raises(ValueError, match="not complete rounds of 8"):
            costs_of(slots)


def test_the_interval_holds_the_median_in_95_of_100_measurements() -> None:
    numbers = random.Random(7)
    held = 0
    for _ in range(2000):
        found = median_interval([numbers.expovariate(1.0) for _ in range(40)])
        held += found.low <= 0.6931 <= found.high  # the median of that distribution: ln 2
    assert 0.94 <= held / 2000 <= 0.99
    assert median_interval([3.0]) == Interval(3.0, 3.0, 3.0)
    assert median_interval([1.0, 2.0, 9.0]) == Interval(2.0, 1.0, 9.0)


def test_a_difference_that_noise_could_make_is_not_claimed() -> None:
    numbers = random.Random(3)
    noisy = costs_of([value + numbers.gauss(0, 20) for value in rounds(*[(100.0, 100.0, 100.0, 180.0)] * 30)])
    assert "no difference to level 0 larger than the noise" in cost_text(noisy[1])
    assert "throughput" not in cost_text(noisy[2])
    assert "of level 0" in cost_text(noisy[3])
    assert noisy[3].is_seen
    assert cost_text(noisy[0]).count("(") == 1


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_level_is_measured(case: Case) -> None:
    shares: list[float] = []
    found = measure(case, 0.1, shares.append, slot=0.0005)
    assert [cost.level for cost in found] == list(LEVELS)
    for cost in found:
        assert 0 < cost.ns.low <= cost.ns.median <= cost.ns.high < 1e6
        assert cost.rounds == 16
    assert (shares[0], shares[-1]) == (0, 1)
    assert shares == sorted(shares)


def test_info_prints_levels_and_costs_and_json_has_the_same() -> None:
    text = info("--seconds", "0.2")
    assert "heliograph ctl level" in text
    assert all(f"  {case.name}, 16 rounds\n" in text for case in CASES)
    assert "a build without statistics" in text
    facts: dict[str, Any] = json.loads(info("--json", "--seconds", "0.2"))
    assert [added["level"] for added in facts["levels of detail"]] == list(LEVELS)
    costs = facts["cost of the levels"]
    assert set(costs) == {case.name for case in CASES}
    for cost in costs["one by one"]:
        assert cost["ns"]["low"] <= cost["ns"]["median"] <= cost["ns"]["high"]
        assert set(cost["added_ns"]) == {"median", "low", "high"}
    assert isinstance(facts["host"]["UDP send offload (GSO)"], bool)
    assert facts["host"]["segment folder free bytes"] > 0
    assert facts["host"]["clock"]
    assert "with" in facts["installed"]["build"]


def test_info_measures_nothing_when_told() -> None:
    facts = json.loads(info("--json", "--no-measure"))
    assert "cost of the levels" not in facts
    assert len(facts["levels of detail"]) == len(LEVELS)
    assert "cost of a message" not in info("--no-measure")
