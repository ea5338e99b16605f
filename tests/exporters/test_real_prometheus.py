"""A real Prometheus scrapes the real endpoint with the project's own configuration, and answers questions."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.engine import catalogue
from heliograph.engine.catalogue import names
from heliograph.exporters.prometheus import PrometheusExporter
from heliograph.monitor.sampler import Sampler
from tests.fleet import sample_fleet
from tests.prometheus import Server, serve

CONFIGURATION = Path(__file__).resolve().parents[2] / "deploy/prometheus"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("prometheus")
    segments = place / "segments"
    sample_fleet(segments)
    exporter = PrometheusExporter("127.0.0.1:0")
    with Sampler(segments) as sampler:
        exporter.publish(sampler.sample())
        sample_fleet(segments, 1)
        exporter.publish(sampler.sample())
    shutil.copytree(CONFIGURATION / "rules", place / "rules")
    text = (CONFIGURATION / "prometheus.yml").read_text()
    assert "127.0.0.1:9464" in text
    text = text.replace("127.0.0.1:9464", f"127.0.0.1:{exporter.address[1]}")
    text = text.replace("scrape_interval: 5s", "scrape_interval: 2s").replace(
        "scrape_timeout: 4s", "scrape_timeout: 2s"
    )
    text = text.replace("evaluation_interval: 5s", "evaluation_interval: 500ms")
    target = f"static_configs: [{{targets: ['127.0.0.1:{exporter.address[1]}']}}]"
    detail = f"{{job_name: detail, metrics_path: /metrics/detail, scrape_interval: 2s, {target}}}"
    (place / "prometheus.yml").write_text(f"{text}\n  - {detail}\n")
    try:
        with serve(place / "prometheus.yml", place / "data") as found:
            found.wait_until('heliograph_node_up{job="heliograph"}')
            found.wait_until('heliograph_node_up{job="detail"}')
            yield found
    finally:
        exporter.close()


def test_the_exporter_is_scraped_without_an_error(server: Server) -> None:
    targets = {target["labels"]["job"]: target for target in server.get("targets")["activeTargets"]}
    assert targets.keys() == {"heliograph", "detail"}
    for target in targets.values():
        assert (target["health"], target["lastError"]) == ("up", "")


def test_a_query_finds_the_true_numbers(server: Server) -> None:
    assert server.query('heliograph_transmitter_messages_sent_total{job="heliograph",topic="PRICES.A"}') == {
        ("feed", "PRICES.A"): 44_000
    }
    worst = server.query("topk(1, sum by (node) (heliograph_fleet_receiver_lag_messages))")
    assert list(worst) == [("slow",)]


def test_percentiles_from_buckets_agree_with_the_exact_ones_to_a_bucket(server: Server) -> None:
    buckets = 'heliograph_receiver_total_latency_seconds_bucket{job="detail",topic="PRICES.A"}'
    by_buckets = server.query(f"histogram_quantile(0.99, sum by (le, node) ({buckets}))")
    window = "heliograph_receiver_total_latency_window_seconds"
    exact = server.query(f'{window}{{job="heliograph",percentile="p99",topic="PRICES.A"}}')
    assert by_buckets.keys() == {(node,) for node, _ in exact}
    for (node, _), value in exact.items():
        assert value / 2.5 <= by_buckets[(node,)] <= value * 2.5


def test_every_family_of_the_catalogue_that_the_fleet_has_arrived_with_its_kind(server: Server) -> None:
    metadata = {name: rows[0] for name, rows in server.get("metadata").items() if name.startswith("heliograph_")}
    for scope in catalogue.scopes().values():
        for statistic in scope.statistics:
            if statistic.kind != "histogram":
                counter = statistic.kind == "counter"
                # Prometheus asks for OpenMetrics, where a counter's family is called without the suffix.
                name = names.metric(statistic).removesuffix("_total" if counter else "")
                assert metadata[name]["type"] == ("counter" if counter else "gauge")
    assert metadata["heliograph_receiver_total_latency_seconds"]["type"] == "histogram"


def test_the_rules_are_loaded_and_evaluate_without_an_error(server: Server) -> None:
    server.wait_until("count(ALERTS) or vector(1)")
    groups = server.get("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    text = (CONFIGURATION / "rules/heliograph.yml").read_text(encoding="utf-8")
    assert len(rules) == text.count("- alert: ") + text.count("- record: ") > 15
    assert {rule.get("lastError", "") for rule in rules} == {""}


def test_our_node_label_is_not_renamed(server: Server) -> None:
    (row, *_) = server.get("query", query="heliograph_node_up")["result"]
    assert {"node", "instance", "job", "__name__"} == row["metric"].keys()
