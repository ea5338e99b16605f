"""Histograms of a level of detail that fell expire, and come back when they count."""

from __future__ import annotations

from heliograph.exporters.collector import SnapshotCollector
from heliograph.exporters.levels import EXPIRE_SECONDS
from tests.exporters.making import at, histogram, instance, receiver, state

TOTAL, NETWORK = (f"heliograph_receiver_{name}_latency_seconds" for name in ("total", "network"))


def shown(collector: SnapshotCollector, second: float, level: int | None, counts: int) -> dict[str, float]:
    """The counts of the exported histograms, and the number of expired ones."""
    whole = {"total_latency": histogram({1_000: 5}), "network_latency": histogram({1_000: counts})}
    own = [] if level is None else [state("instance", {"instance": "alpha"}, {"detail_level": level})]
    collector.update(at(second, instance("alpha", receiver("alpha", histograms=whole), *own)))
    samples = [sample for family in collector.collect() for sample in family.samples]
    found = {
        one.name.removesuffix("_count"): one.value for one in samples if one.name.endswith("latency_seconds_count")
    }
    found["expired"] = next(one.value for one in samples if one.name == "heliograph_exporter_histograms_expired")
    return found


def test_a_histogram_above_the_level_expires_and_comes_back_when_it_counts() -> None:
    collector = SnapshotCollector()
    both = {TOTAL: 5, NETWORK: 7, "expired": 0}
    assert shown(collector, 0, 3, 7) == both
    assert shown(collector, 1000, 3, 7) == both, "its level is in force"
    assert shown(collector, 1001, 2, 7) == both
    assert shown(collector, 1000 + EXPIRE_SECONDS, 2, 7) == both
    assert shown(collector, 1001 + EXPIRE_SECONDS, 2, 7) == {TOTAL: 5, "expired": 1}
    assert shown(collector, 1002 + EXPIRE_SECONDS, 2, 9) == both | {NETWORK: 9}
    assert shown(collector, 1003 + EXPIRE_SECONDS, 2, 9) == both | {NETWORK: 9}
    assert shown(collector, 2000 + EXPIRE_SECONDS, 3, 9) == both | {NETWORK: 9}, "the level rose"


def test_nothing_expires_at_a_node_whose_level_is_unknown() -> None:
    collector = SnapshotCollector()
    for second in (0, 1000, 2000):
        assert shown(collector, second, None, 7) == {TOTAL: 5, NETWORK: 7, "expired": 0}
