"""The two sizes of an answer: ``/metrics`` has all that alerts and dashboards use, ``/metrics/detail`` everything."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.engine import catalogue
from heliograph.exporters import families
from heliograph.exporters.buckets import BOUNDS_NS
from heliograph.exporters.collector import SnapshotCollector
from heliograph.exporters.prometheus import PrometheusExporter
from heliograph.exporters.selection import BASIC_BOUNDS_NS, EVERYTHING, Selection, of_query
from heliograph.monitor.model import ObjectState
from tests.exporters.making import at, histogram, instance, receiver, state
from tests.exporters.test_prometheus import get

TOP = Path(__file__).resolve().parents[2]
BASIC = Selection(detail=False)
MOST = 25
"""Series of a receiver of a topic in ``/metrics``."""
USERS = sorted(
    [
        *(TOP / "deploy/prometheus/rules").glob("*.yml"),
        *(TOP / "deploy/grafana").rglob("*.json"),
        TOP / "exporters/alerts/rules.toml",
        TOP / "deploy/alerts.toml",
    ]
)


def _receiver(node: str, topic: str) -> ObjectState:
    names = [one.name for one in catalogue.scopes()["receiver"].statistics if one.kind == "histogram"]
    counts = {name: histogram({10_000: 5000}) for name in names}
    return receiver(node, topic, histograms=counts, next_message=9, messages_delivered=9)


def collector() -> SnapshotCollector:
    """Two receiving nodes with two topics, and their source; each at the highest level of detail."""
    made = SnapshotCollector()
    for second in (1, 2):
        nodes = [instance("feed", *_source())]
        for node in ("fast", "slow"):
            info = {"feedback_address": f"{node}:1"}
            labels = {"instance": node, "stream": "s1"}
            objects = [_receiver(node, topic) for topic in ("A", "B")]
            hiccup = {"host_hiccup": histogram({5_000: 100})}
            own = state("instance", {"instance": node}, histograms=hiccup)
            nodes.append(instance(node, own, state("rx_stream", labels, info=info), *objects))
        made.update(at(second, *nodes))
    return made


def _source() -> Iterator[ObjectState]:
    own = {"instance": "feed", "stream": "s1"}
    yield state("tx_stream", own)
    for topic in ("A", "B"):
        yield state("transmitter", {**own, "topic": topic}, {"next_message": 12, "messages_sent": 12})
    for node in ("fast", "slow"):
        yield state("tx_receiver", {**own, "receiver": f"{node}:1"}, {"naks_received": 3})


def series(selection: Selection) -> list[tuple[str, dict[str, str]]]:
    return [(one.name, one.labels) for family in collector().families(selection) for one in family.samples]


def test_every_name_that_alerts_and_dashboards_use_is_in_metrics() -> None:
    assert len(USERS) > 4
    used = {name for path in USERS for name in re.findall(r"heliograph_\w+", path.read_text(encoding="utf-8"))}
    everything, basic = ({name for name, _ in series(one)} for one in (EVERYTHING, BASIC))
    assert len(used & everything) > 20
    assert used & everything <= basic


def test_every_bucket_that_the_rules_use_is_in_metrics() -> None:
    used = {le for path in USERS for le in re.findall(r'\ble=\\?"([^"\\]+)', path.read_text(encoding="utf-8"))}
    found = {
        labels["le"] for name, labels in series(BASIC) if name == "heliograph_receiver_total_latency_seconds_bucket"
    }
    assert used
    assert used <= found
    assert set(BASIC_BOUNDS_NS) <= set(BOUNDS_NS)


def test_a_receiver_of_a_topic_has_few_series_in_metrics_and_all_in_detail() -> None:
    def counted(selection: Selection) -> set[int]:
        found = Counter(
            (labels["node"], labels["topic"])
            for name, labels in series(selection)
            if "topic" in labels and "transmitter" not in name
        )
        assert len(found) == 4
        return set(found.values())

    (most,) = counted(BASIC)
    assert most <= MOST
    (whole,) = counted(EVERYTHING)
    assert whole > 9 * MOST


def test_filters_choose_topics_receivers_and_names() -> None:
    topics = series(Selection(topics=frozenset({"A"})))
    assert {labels.get("topic") for _, labels in topics} == {"A"}
    assert {labels["node"] for _, labels in topics} == {"feed", "fast", "slow"}
    receivers = series(Selection(receivers=frozenset({"slow"})))
    assert {labels.get("receiver", labels["node"]) for _, labels in receivers} == {"slow"}
    assert {labels.get("topic") for _, labels in receivers} == {None, "A", "B"}
    name = "heliograph_receiver_network_latency_seconds"
    assert {found for found, _ in series(of_query(False, {"name[]": [f"{name}_sum"]}))} == {f"{name}_sum"}
    both = of_query(True, {"name[]": [name], "topic": ["B"], "receiver": ["slow"]})
    assert {(labels["node"], labels["topic"]) for _, labels in series(both)} == {("slow", "B")}
    assert series(Selection(topics=frozenset({"absent"}))) == []


def test_nothing_is_computed_of_families_that_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "columns", None)
    name = "heliograph_receiver_messages_delivered_total"
    assert {found for found, _ in series(Selection(names=frozenset({name})))} == {name}
    topics = frozenset({"absent"})
    assert series(Selection(topics=topics)) == []


def test_the_endpoint_serves_both_and_their_filters() -> None:
    exporter = PrometheusExporter("127.0.0.1:0")
    try:
        exporter.publish(at(1, instance("alpha", _receiver("alpha", "A"), _receiver("alpha", "B"))))
        basic, detail = get(exporter)[1], get(exporter, "/metrics/detail")[1]
        assert b"heliograph_receiver_messages_recovered_total" not in basic
        assert b'heliograph_receiver_messages_recovered_total{node="alpha"' in detail
        one = get(exporter, "/metrics/detail?topic=B")[1]
        assert b'topic="B"' in one
        assert b'topic="A"' not in one
        assert get(exporter, "/metrics/other")[0].status == 404
    finally:
        exporter.close()
