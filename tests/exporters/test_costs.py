"""The exporter's own cost: CPU time by stage and bytes, which only grow."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from heliograph.exporters import costs
from heliograph.exporters.costs import STAGES, Costs
from heliograph.exporters.prometheus import PrometheusExporter
from tests.exporters.making import at, instance, receiver
from tests.exporters.test_prometheus import get


def test_the_cpu_time_of_a_stage_is_that_within_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0]
    monkeypatch.setattr(costs.time, "thread_time_ns", lambda: clock[0])
    made = Costs()

    for stage, took in (("sampling", 7), ("joining", 3), ("sampling", 1)):
        clock[0] += 100
        with made.during(stage):
            clock[0] += took
    assert made.by_stage() == {"sampling": 8, "joining": 3, "rendering": 0}


def test_an_answer_has_the_cost_of_the_earlier_ones() -> None:
    made = Costs()
    exporter = PrometheusExporter("127.0.0.1:0", costs=made)
    try:
        bodies = []
        for second in (1, 2):
            exporter.publish(at(second, instance("alpha", receiver("alpha", messages_delivered=second))))
            bodies.append(get(exporter)[1])
    finally:
        exporter.close()
    found = {
        (sample.name, sample.labels.get("stage")): sample.value
        for family in text_string_to_metric_families(bodies[1].decode())
        for sample in family.samples
    }
    assert found["heliograph_exporter_answer_bytes_total", None] == len(bodies[0])
    assert made.bytes == sum(map(len, bodies))
    stages = {stage: found["heliograph_exporter_cpu_seconds_total", stage] for stage in STAGES}
    assert stages["sampling"] == 0
    assert stages["joining"] > 0
    assert stages["rendering"] > 0
