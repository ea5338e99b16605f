"""Nothing of the catalogue is left out: every statistic is exported under the catalogue's name, unit and help."""

from __future__ import annotations

import pytest
from prometheus_client.metrics_core import Metric

from heliograph.engine import catalogue
from heliograph.engine.catalogue import Scope, Statistic, names
from heliograph.exporters.collector import SnapshotCollector
from heliograph.exporters.families import describe
from heliograph.monitor.model import ObjectState
from heliograph.monitor.modules import LaneStats
from tests.exporters.making import START, at, histogram, instance, state

STATISTICS = [
    pytest.param(scope, statistic, id=f"{scope.name}.{statistic.name}")
    for scope in catalogue.scopes().values()
    for statistic in scope.statistics
]
NODE = "alpha"


def value_of(place: int) -> int:
    """A value that no other cell of the record has."""
    return 1_000_003 + 17 * place


def _everything() -> list[ObjectState]:
    """One object of every scope, each cell with a value of its own."""
    objects = []
    for scope in catalogue.scopes().values():
        labels = {name: NODE if name == "instance" else f"a {name}" for name in scope.labels}
        plain = [cell for cell in scope.cells if cell.statistic.kind != "histogram"]
        values = {cell.name: value_of(place) for place, cell in enumerate(plain)}
        histograms = {cell.name: histogram({7_000: 3}) for cell in scope.cells if cell.statistic.kind == "histogram"}
        info = {name: f"the {name}" for name in scope.info}
        objects.append(state(scope.name, labels, values, info=info, histograms=histograms))
    return objects


@pytest.fixture(scope="module")
def families() -> dict[str, Metric]:
    lane = LaneStats("prometheus", "exporter", succeeded=1, success_ns=START)
    module = LaneStats("jsonl", snapshots=1)
    collector = SnapshotCollector(lanes=lambda: [lane, module])
    collector.update(at(1, instance(NODE, *_everything())))
    return {_exposed(family): family for family in collector.collect()}


def _exposed(family: Metric) -> str:
    return family.name + ("_total" if family.type == "counter" else "")


@pytest.mark.parametrize(("scope", "statistic"), STATISTICS)
def test_a_statistic_is_exported_with_its_name_help_kind_and_labels(
    families: dict[str, Metric], scope: Scope, statistic: Statistic
) -> None:
    family = families[names.metric(statistic)]
    assert family.documentation == statistic.help
    assert family.type == {"counter": "counter", "histogram": "histogram"}.get(statistic.kind, "gauge")
    expected = {names.metric_label(name) for name in scope.labels}
    assert expected <= family.samples[0].labels.keys()
    assert "instance" not in family.samples[0].labels
    assert family.samples[0].labels["node"] == NODE


@pytest.mark.parametrize(("scope", "statistic"), STATISTICS)
def test_every_cell_of_a_statistic_has_its_value_in_base_units(
    families: dict[str, Metric], scope: Scope, statistic: Statistic
) -> None:
    family = families[names.metric(statistic)]
    if statistic.kind == "histogram":
        assert {s.value for s in family.samples if s.name.endswith("_count")} == {3.0}
        assert [s.value for s in family.samples if s.name.endswith("_sum")] == [pytest.approx(21e-6)]
        window = families[names.window_metric(statistic)]
        assert {s.labels["percentile"] for s in window.samples} == {"p50", "p99", "p99.9", "max"}
        assert {s.value for s in window.samples} == {7_003 / 1e9}
        return
    plain = [cell.name for cell in scope.cells if cell.statistic.kind != "histogram"]
    expected = {cell.value: value_of(plain.index(cell.name)) * names.scale(statistic) for cell in statistic.cells}
    label = statistic.split.label if statistic.split else ""
    assert {s.labels.get(label): s.value for s in family.samples} == {
        value: pytest.approx(number, rel=1e-12) for value, number in expected.items()
    }


@pytest.mark.parametrize("scope", list(catalogue.scopes().values()), ids=lambda scope: str(scope.name))
def test_what_describes_an_object_is_in_its_info_family_alone(families: dict[str, Metric], scope: Scope) -> None:
    if not scope.info:
        assert names.info_metric(scope) not in families
        return
    (sample,) = families[names.info_metric(scope)].samples
    assert sample.value == 1
    assert {sample.labels[name] for name in scope.info} == {f"the {name}" for name in scope.info}
    for statistic in scope.statistics:
        for other in families[names.metric(statistic)].samples:
            assert not set(scope.info) & other.labels.keys() - set(scope.labels)


def test_families_that_are_described_and_families_that_come_are_of_one_list(families: dict[str, Metric]) -> None:
    described = {_exposed(family): family for family in describe()}
    assert families.keys() <= described.keys()
    for name, family in families.items():
        assert (family.type, family.documentation) == (described[name].type, described[name].documentation)


def test_every_derived_family_is_described() -> None:
    described = {_exposed(family) for family in describe()}
    assert {names.family(derived) for derived in catalogue.derived().values()} <= described


def test_no_two_families_share_a_name() -> None:
    exposed = [_exposed(family) for family in describe()]
    assert len(exposed) == len(set(exposed))
