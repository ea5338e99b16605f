"""Scenario files: what is read, and what is said of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.monitor.lab.scenario import ScenarioError, Turn, load, parse, shipped


def test_a_file_says_what_is_on_the_network(small: str) -> None:
    scenario = parse(small, "small.toml", "small")
    assert (scenario.name, scenario.title, scenario.repeat) == ("small", "A bottleneck that narrows", 1)
    plan = scenario.plans[""]
    assert (plan.duration, plan.interval) == (2.0, 0.05)
    assert [(pipe.name, pipe.rate, pipe.overhead) for pipe in plan.pipes] == [("bottleneck", 2_000_000, 66)]
    assert plan.sources[0].options is not None
    assert "send_window=4096" in plan.sources[0].options
    assert [(group.name, group.count, group.drain) for group in plan.receivers] == [
        ("good", 2, -1.0),
        ("slow & bad", 1, 400.0),
    ]
    assert plan.tcps[0].pipe == "bottleneck"
    assert plan.turns == (
        Turn(0.5, "loss", 1, 0.01, 0.0),
        Turn(1.0, "pipe", 0, 1_000_000.0, 30_000.0),
        Turn(1.2, "offered", 0, 500_000.0, 0.0),
    )
    assert [(one.name, one.bound) for one in scenario.criteria] == [("utilisation", 0.1), ("loss", None)]


def test_variants_change_values_by_their_path(small: str) -> None:
    scenario = parse(
        small + '[variant.few]\n"receivers.0.count" = 1\n[variant.far]\n"source.0.feedback_delay" = 0.5\n', "f", "f"
    )
    assert list(scenario.plans) == ["few", "far"]
    assert [plan.receivers[0].count for plan in scenario.plans.values()] == [1, 2]
    assert [plan.sources[0].feedback_delay for plan in scenario.plans.values()] == [0.001, 0.5]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("duration = 2.0", "", "duration is missing"),
        ("duration = 2.0", 'duration = "long"', "duration is a number from 0.001 to 100000, not 'long'"),
        ("duration = 2.0", "duration = 2.0\ncolour = 3", 'unknown key "colour"; there are: title'),
        ("rate = 2_000_000", "rate = -1", "pipe[0].rate is a whole number from 1 to"),
        ("rate = 2_000_000", "rate = 2_000_000\nloss = 1.5", "pipe[0].loss is a number from 0 to 1, not 1.5"),
        (
            "send_window = 4096",
            "send_windw = 4096",
            "a transmitter has no option send_windw; did you mean",
        ),
        ("send_window = 4096", "send_window = 1", "source[0].options: option send_window is a whole number from 16"),
        ("send_window = 4096", "ack = 'auto'", "option ack belongs to a receiver"),
        ("count = 2", "count = true", "receivers[0].count is a whole number from 1 to 10000, not True"),
        ('name = "good"', 'name = "slow & bad"', 'receivers[1].name: there are two "slow & bad"'),
        ("{ at = 0.5, loss = 0.01 }", "{ at = 0.5 }", "receivers[1].changes[0] changes one of loss, delay, drain"),
        ("{ at = 0.5, loss = 0.01 }", "{ at = 0.5, loss = 2 }", "receivers[1].changes[0].loss is a number from 0 to 1"),
        ("{ at = 0.5, loss = 0.01 }", "3", "receivers[1].changes[0] is a table, not 3"),
        ("offered = 900_000", 'offered = 900_000\npipe = "hose"', "source[0].pipe is one of , bottleneck, not 'hose'"),
        (
            'measure = "utilisation"',
            'measure = "beauty"',
            'criterion[0]: there is no measure "beauty"; there are: settle',
        ),
        ("begin = 0.5", "", 'criterion[0]: measure "utilisation" needs the value "begin"'),
        ("begin = 0.5", "begin = 0.5\nfrom = 1", 'criterion[0]: measure "utilisation" has no value "from"'),
        ("begin = 0.5", 'begin = "now"', 'criterion[0]: begin of measure "utilisation" is a number'),
        ("begin = 0.5", "begin = 2.5", "criterion[0].begin is a moment of the run, which takes 2 seconds, not 2.5"),
        ("bound = 0.1", "bound = true", "criterion[0].bound is a number, not True"),
        ("[[mark]]", "[mark]", "mark is a list of tables"),
        ("title =", "title", "small.toml: "),
        ("duration = 2.0", "duration = 2.0\nrepeat = 0", "repeat is a whole number from 1 to 1000, not 0"),
        ("duration = 2.0", 'duration = 2.0\nnetwork = "moon"', "network is one of simulated, namespaces, not 'moon'"),
    ],
)
def test_a_mistake_is_told_with_file_key_and_what_is_allowed(small: str, old: str, new: str, words: str) -> None:
    assert old in small
    with pytest.raises(ScenarioError) as refused:
        parse(small.replace(old, new, 1), "small.toml", "small")
    assert str(refused.value).startswith("small.toml: ")
    assert words in str(refused.value)


def test_a_variant_that_leads_nowhere_is_told(small: str) -> None:
    with pytest.raises(ScenarioError, match=r'variant.few: there is nothing at "receivers.9.count"'):
        parse(small + '[variant.few]\n"receivers.9.count" = 1\n', "small.toml", "small")


def test_an_empty_network_is_told(small: str) -> None:
    with pytest.raises(ScenarioError, match="at least one"):
        parse("title = 'a'\nshows = 'b'\nduration = 1.0\ninterval = 0.1\n", "small.toml", "small")


def test_a_file_is_found_by_its_path(small: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(small, encoding="utf-8")
    assert load(str(path)).name == "mine"
    with pytest.raises(ScenarioError, match=r"none\.toml"):
        load(str(tmp_path / "none.toml"))


def test_a_name_that_is_none_is_told_with_those_there_are() -> None:
    with pytest.raises(ScenarioError, match=f"there are: {shipped()[0]}"):
        load("nothing")


@pytest.mark.parametrize("name", shipped())
def test_a_scenario_that_comes_along_can_be_read(name: str) -> None:
    scenario = load(name)
    assert scenario.title
    assert scenario.shows.endswith(".")
    assert scenario.criteria
