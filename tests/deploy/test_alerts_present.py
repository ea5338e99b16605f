"""The alerts of the present: judged by the evaluator of `alerts check`, over a bounded time, with true reasons."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from heliograph.exporters.alerts import promtool
from heliograph.exporters.alerts.check import Past, check
from heliograph.exporters.alerts.present import KEPT, Present, Ring, next_span
from heliograph.exporters.alerts.settings import DEFAULT, load
from heliograph.exporters.collector import SnapshotCollector
from heliograph.monitor.alerts import Judgement, Rule, State, load_evaluator
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Snapshot
from tests.dashboards.pictures import moments

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
ROOT = Path(__file__).resolve().parents[2]
SECOND = 1_000_000_000
LABELS = {"job": "heliograph", "instance": "live"}


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> list[Snapshot]:
    """90 seconds of the sample fleet."""
    return list(moments(tmp_path_factory.mktemp("present") / "segments"))


@pytest.fixture(scope="module")
def present(snapshots: list[Snapshot]) -> Present:
    found = Present(ROOT / DEFAULT)
    for snapshot in snapshots:
        found.record(snapshot)
    return found


@pytest.fixture(scope="module")
def judgement(present: Present) -> Judgement:
    return present.evaluate()


def by_name(present: Present) -> Mapping[str, Rule]:
    return {rule.name.removeprefix("Heliograph"): rule for rule in present.rules}


def test_the_present_is_what_alerts_check_finds_in_the_same_samples(
    snapshots: list[Snapshot], judgement: Judgement
) -> None:
    past = Past(snapshots[0].time_ns / 1e9, 5.0)
    collector = SnapshotCollector()
    for number, snapshot in enumerate(snapshots[::5]):
        collector.update(snapshot)
        for family in collector.collect():
            for sample in family.samples:
                past.add(sample.name, {**sample.labels, **LABELS}, number, float(sample.value))
        past.add("up", LABELS, number, 1.0)
    wanted = {
        (one.alert, tuple(pair for pair in one.labels if pair[0] != "instance"), one.condition, one.fired)
        for one in check(past, load(ROOT / DEFAULT))
    }
    found = {
        (
            one.rule,
            tuple(sorted(one.labels.items())),
            one.condition[0].begin_ns / 1e9,
            one.fired[0].begin_ns / 1e9 if one.fired else None,
        )
        for one in judgement.held
    }
    assert found == wanted
    assert len({alert for alert, _, _, fired in found if fired}) == 5


def test_every_rule_has_a_state_and_a_value_or_a_reason(present: Present, judgement: Judgement) -> None:
    rules = by_name(present)
    states: dict[State, set[str]] = {state: set() for state in State}
    for name, rule in rules.items():
        states[judgement.state(rule)].add(name)
    assert states[State.FIRING] == {
        "CryingBabyReceiver",
        "LossAhead",
        "ReceiverFallingBehind",
        "ReceiverQueueNearFull",
        "UnrecoverableLoss",
    }
    assert states[State.PENDING] == {"DetailLeftOn", "NakRatioHigh", "ReceiverIsolated", "ReconciliationResidual"}
    assert states[State.EMPTY] == {"HostHiccupHigh", "JitterAboveHost"}
    assert "HeliographHostHiccupHigh" not in judgement.seen, "the fleet has no such object"
    assert "HeliographJitterAboveHost" in judgement.seen
    assert all(rule.comparison or rule.severity == "none" for rule in present.rules)
    assert all(rule.runbook.startswith(f"# {rule.name} (") for rule in present.rules)
    assert {name: rules[name].hindrance for name in states[State.UNKNOWN]} == {
        "CollectorHostSilent": "its values are of the collector, which this page does not read",
        "FlowControlCollapse": "it looks back 1 h, and this page keeps 15 min",
        "LatencyBudgetFastBurn": "it looks back 6.5 h, and this page keeps 15 min",
        "LatencyBudgetSlowBurn": "it looks back 3.25 d, and this page keeps 15 min",
        "LatencyTailShift": "it looks back 7.08 d, and this page keeps 15 min",
        "MemoryExhaustionPredicted": "it looks back 30 min, and this page keeps 15 min",
        "ModuleDropping": "its values are of the process that runs the modules, which this page does not read",
        "SeriesCapped": "its value is of the exporter, which this page does not read",
        "SnapshotsLost": "its values are of the collector, which this page does not read",
        "StoreDiskFilling": "it looks back 1 h, and this page keeps 15 min",
        "Watchdog": "it always fires, in Prometheus; its absence there is the alarm",
    }


def test_values_are_those_of_the_newest_sample_the_nearest_first(present: Present, judgement: Judgement) -> None:
    def values(name: str) -> list[tuple[str, float]]:
        return [(one.labels.get("node", ""), one.value) for one in judgement.readings[f"Heliograph{name}"]]

    assert values("MemoryHigh") == [("feed", 0.24)]
    assert values("ReceiverQueueNearFull")[0] == ("slow", 1.0)
    assert values("ReceiverStalled")[0][0] == "slow", "the lowest rate is the nearest to 0"
    assert [node for node, _ in values("NodeDown")] == ["alpha", "bravo", "feed", "lossy", "slow"]
    for name, rule in by_name(present).items():
        found = [rule.nearness(value) for _, value in values(name)]
        assert found == sorted(found, reverse=True)


def test_a_time_that_may_have_begun_earlier_says_so(judgement: Judgement) -> None:
    spans = {one.rule.removeprefix("Heliograph"): one.condition[-1] for one in judgement.held}
    assert not spans["DetailLeftOn"].is_whole
    assert spans["DetailLeftOn"].begin_ns == judgement.oldest_ns
    assert not spans["NakRatioHigh"].is_whole, "it looks back 5 minutes"
    assert spans["ReconciliationResidual"].is_whole
    fired = {one.rule.removeprefix("Heliograph"): one.fired[-1] for one in judgement.held if one.fired}
    assert not fired["LossAhead"].is_whole
    assert fired["CryingBabyReceiver"].begin_ns - judgement.oldest_ns == 30 * SECOND
    assert judgement.time_ns - judgement.oldest_ns == 85 * SECOND


def test_a_fault_in_one_rule_leaves_the_others(snapshots: list[Snapshot]) -> None:
    present = Present(ROOT / DEFAULT)
    for snapshot in snapshots[:6]:
        present.record(snapshot)
    of_place = tuple(sorted(LABELS.items()))
    twice = ("heliograph_exporter_snapshot_timestamp_seconds", (*of_place, ("z", "1")))
    present._ring._rows[twice] = present._ring._rows[twice[0], of_place]
    found = present.evaluate()
    assert found.errors.keys() == {f"Heliograph{name}" for name in ("HeartbeatLate", "PublisherSilent", "StatsStale")}
    assert all("many-to-many" in text or "duplicate series" in text for text in found.errors.values())
    states = {name: found.state(rule) for name, rule in by_name(present).items()}
    assert states["StatsStale"] is State.UNKNOWN
    assert states["DetailLeftOn"] is State.PENDING


def test_the_ring_keeps_the_newest_steps_and_forgets_ended_series() -> None:
    ring = Ring(4)
    one, other = ("a", ()), ("b", ())
    ring.add(0, {one: 1.0, other: 5.0})
    ring.add(1, {one: 2.0})
    ring.add(3, {one: 4.0})
    assert (ring.first, ring.last) == (0, 3)
    rows: dict[Any, list[float]] = {key: list(row) for key, row in ring.rows(0)}
    assert rows[one][:2] == [1.0, 2.0]
    assert math.isnan(rows[one][2])
    assert rows[one][3] == 4.0
    ring.add(4, {one: 6.0})
    assert (ring.first, ring.names()) == (1, {"a"}), "the only value of b is too old"
    ring.add(100, {other: 7.0})
    assert (ring.first, ring.last, ring.names()) == (97, 100, {"b"})


def test_a_clock_that_was_set_back_starts_again(snapshots: list[Snapshot]) -> None:
    present = Present(ROOT / DEFAULT)
    for snapshot in (snapshots[20], snapshots[30], snapshots[3]):
        present.record(snapshot)
    assert (present._ring.first, present._ring.last, present._start_ns) == (0, 0, snapshots[3].time_ns)
    assert present._newest_ns == snapshots[3].time_ns


def test_rare_samples_hinder_rules_about_short_times() -> None:
    found = by_name(Present(ROOT / DEFAULT, interval=15.0))
    assert (
        found["CryingBabyReceiver"].hindrance == "it needs two samples within 20 s, and this page takes one every 15 s"
    )
    assert found["NodeDown"].hindrance == found["SocketDrops"].hindrance == ""


def test_a_judgement_that_takes_long_is_followed_by_one_over_fewer_samples(snapshots: list[Snapshot]) -> None:
    spans = [KEPT]
    for took in (9.0, 9.0, 2.0, 0.2, 0.2):
        spans.append(next_span(spans[-1], took, KEPT))
    assert spans == [900.0, 450.0, 360.0, 360.0, 720.0, 900.0]
    present = Present(ROOT / DEFAULT)
    for snapshot in snapshots:
        present.record(snapshot)
    present._span = 30.0
    found = present.evaluate()
    assert found.time_ns - found.oldest_ns == 25 * SECOND
    spans_of = {one.rule.removeprefix("Heliograph"): one.condition[-1] for one in found.held}
    assert not spans_of["CryingBabyReceiver"].is_whole, "it may have begun before the judged time"


def test_any_name_goes_to_promtool_and_back() -> None:
    names = ['a"b\\c{},d= "', "é\N{RIGHT-TO-LEFT OVERRIDE}", "\x01\x7f\n\t", "\N{GRINNING FACE}\N{TAG SPACE}"]
    inputs = [promtool.series("up", (("node", name),), ["1"]) for name in [*names, "half \ud83d"]]
    report = promtool.evaluate([], inputs, 5.0, {}, ["up"])
    assert {dict(labels)["node"] for labels, _ in report.values["up"]} == {*names, "half \ufffd"}


def test_a_condition_of_several_parts_needs_a_measure() -> None:
    from heliograph.exporters.alerts.settings import _compared

    assert _compared("A", "max by (node) (a > 2 or b) / c >= 0.5", "", "") == (
        "max by (node) (a > 2 or b) / c",
        ">=",
        0.5,
    )
    assert _compared("A", "a > 1 and b > 2", "a", "> 1") == ("a", ">", 1.0)
    assert _compared("A", "vector(1)", "", "") == ("", "", 0.0)
    for several in ("a > 1 and b > 2", "a or b > 2", "a > b > 2", "a"):
        with pytest.raises(ValueError, match="several parts"):
            _compared("A", several, "", "")


def test_the_installed_evaluator_has_the_settings_of_the_release_or_of_a_file(tmp_path: Path) -> None:
    assert [rule.name for rule in load_evaluator().rules] == [rule.name for rule in Present(ROOT / DEFAULT).rules]
    file = tmp_path / "alerts.toml"
    file.write_text((ROOT / DEFAULT).read_text().replace("ratio = 0.85 ", "ratio = 0.5 "))
    evaluator = load_evaluator(file)
    assert {rule.limit for rule in evaluator.rules if rule.name == "HeliographMemoryHigh"} == {0.5}
    with pytest.raises(UserError, match="cannot read"):
        load_evaluator(tmp_path / "none.toml")


def test_a_machine_without_promtool_says_what_is_missing(
    present: Present, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="promtool is not installed"):
        present.evaluate()
