"""The text formats: byte for byte what prometheus-client writes, with labels escaped once."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.exposition import generate_latest as plain
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics
from prometheus_client.registry import Collector

from heliograph.exporters import rendering
from heliograph.exporters.collector import SnapshotCollector
from heliograph.exporters.families import describe
from heliograph.exporters.rendering import Format, Renderer
from tests.exporters.making import at, histogram, instance, receiver

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
ORACLES: dict[Format, Callable[[Collector], bytes]] = {Format.TEXT: plain, Format.OPENMETRICS: openmetrics}
HARD = (
    "",
    "plain",
    'a "quoted" name',
    "back\\slash",
    "line\nbreak",
    "\\n",
    "é 信号 \U0001f4a1",
    '{a="b"} 1',
    "x" * 500,
)
NUMBERS = (
    0, 1, -1, 0.1, 1e-9, 5e-06, 123456.789, 999_999, 1e6, 1_000_000.5, -1e6, -1e9, 1234567, 12_345_678_901, 1e15, 1e16,
    2.0**63, 2**64 - 1, 1e300, -0.0, math.inf, -math.inf, math.nan, True,
)  # fmt: skip


class Fixed(Collector):
    """A registry with these families."""

    def __init__(self, *families: Metric) -> None:
        self.families = families

    def collect(self) -> list[Metric]:
        return list(self.families)


def hard() -> Fixed:
    gauge = GaugeMetricFamily("g", 'A "help"\nof two \\ lines.', labels=["zone", "node"])
    counter = CounterMetricFamily("c", "Counts.", labels=["node"])
    histograms = HistogramMetricFamily("h_seconds", "Times.", labels=["node"])
    for text in HARD:
        gauge.add_metric([text, "n"], 1)
        counter.add_metric([text], 2)
        histograms.add_metric([text], [("0.5", 1), ("+Inf", 3)], 1.5)
    numbers = GaugeMetricFamily("n", "", labels=["place"])
    for place, number in enumerate(NUMBERS):
        numbers.add_metric([str(place)], number)
    return Fixed(gauge, counter, histograms, numbers, GaugeMetricFamily("bare", "No labels.", value=7))


def fleet(second: float) -> CollectorRegistry:
    objects = [
        receiver("alpha", topic, messages_delivered=5_000_000, histograms={"total_latency": histogram({10_000: 5})})
        for topic in ("A", "B", 'C "d"')
    ]
    collector = SnapshotCollector(monotonic_ns=lambda: 0)
    collector.update(at(second, instance("alpha", *objects)))
    return collector.registry()


@pytest.mark.parametrize("form", Format)
def test_labels_numbers_and_help_are_written_as_prometheus_client_does(form: Format) -> None:
    renderer = Renderer(1000)
    for _ in range(2):  # the second time from kept beginnings
        assert renderer.render(hard().collect(), form) == ORACLES[form](hard())


@pytest.mark.parametrize("form", Format)
def test_a_fleet_is_written_as_prometheus_client_does(form: Format) -> None:
    renderer = Renderer(1000)
    for second in (1, 2):
        assert renderer.render(fleet(second).collect(), form) == ORACLES[form](fleet(second))


@pytest.mark.parametrize("form", Format)
def test_every_family_is_written_as_prometheus_client_does(form: Format) -> None:
    everything = Fixed(*describe())
    assert {family.type for family in everything.collect()} == {"counter", "gauge", "histogram"}
    assert Renderer(0).render(everything.collect(), form) == ORACLES[form](everything)


@pytest.mark.parametrize(
    "accept",
    ["", "*/*", "text/plain;version=0.0.4", "text/plain;version=1.0.0;escaping=allow-utf-8", OPENMETRICS]
    + [f"{OPENMETRICS};escaping={scheme}" for scheme in ("allow-utf-8", "underscores", "dots", "values")]
    + ["application/openmetrics-text", "application/openmetrics-text;version=2.0.0"],
)
def test_each_accept_header_gets_what_prometheus_client_would_answer(accept: str) -> None:
    encode, content_type = Renderer(1000).choose(accept)
    oracle, expected_type = choose_encoder(accept)
    assert content_type == expected_type
    assert encode(fleet(1)) == oracle(fleet(1))


def test_labels_are_escaped_once_and_series_that_are_gone_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    escaped = []
    written = rendering._beginning

    def counted(name: str, labels: dict[str, str]) -> str:
        escaped.append(name)
        return written(name, labels)

    monkeypatch.setattr(rendering, "_beginning", counted)
    renderer = Renderer(10)

    def gauge(*nodes: str) -> Metric:
        family = GaugeMetricFamily("g", "A gauge.", labels=["node"])
        for node in nodes:
            family.add_metric([node], 1)
        return family

    for form in Format:
        renderer.render([gauge("a", "b")], form)
    assert len(escaped) == 2
    renderer.render([gauge(*map(str, range(9)))], Format.TEXT)
    assert len(escaped) == 11
    renderer.render([gauge("a", "b")], Format.TEXT)
    assert len(escaped) == 13, "11 beginnings were more than the limit"
