"""From a stream of snapshots to what a scraper sees."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from heliograph.exporters.collector import SnapshotCollector
from heliograph.exporters.levels import EXPIRE_SECONDS
from heliograph.exporters.prometheus import exposition
from heliograph.exporters.selection import Selection
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Health, Snapshot
from heliograph.monitor.sampler import Sampler
from tests.exporters.making import at, histogram, instance, receiver, state
from tests.fleet import RECEIVERS, STREAM, TOPICS, sample_fleet

TOTAL, CALLBACK = "total_latency", "callback_time"
NOW = 1_700_000_000_000_000_000


def samples(collector: SnapshotCollector, name: str) -> list[Sample]:
    """What the answer holds of a series, read back by the client's own parser."""
    text = exposition(collector).decode()
    return [found for family in text_string_to_metric_families(text) for found in family.samples if found.name == name]


def value(collector: SnapshotCollector, name: str, **labels: str) -> float:
    matching = [one for one in samples(collector, name) if labels.items() <= one.labels.items()]
    assert len(matching) == 1, f"{name} {labels}: {matching}"
    return float(matching[0].value)


@pytest.fixture
def fleet(tmp_path: Path) -> SnapshotCollector:
    """The sample fleet at both moments."""
    collector = SnapshotCollector()
    with Sampler(tmp_path, clock=iter([NOW, NOW + 1_000_000_000]).__next__) as sampler:
        for moment in (0, 1):
            sample_fleet(tmp_path, moment, now_ns=NOW)
            collector.update(sampler.sample())
    return collector


def test_a_fleet_is_exported_with_its_true_numbers(fleet: SnapshotCollector) -> None:
    assert value(fleet, "heliograph_transmitter_messages_sent_total", node="feed", topic="PRICES.A") == 44_000
    assert value(fleet, "heliograph_rx_stream_packets_lost_total", node="slow", reason="window_advanced") == 16
    assert {one.labels["node"] for one in samples(fleet, "heliograph_node_up")} == {"feed", *RECEIVERS}
    assert value(fleet, "heliograph_node_heartbeat_timestamp_seconds", node="slow") == NOW / 1e9 + 1


def test_receivers_are_joined_with_their_sender(fleet: SnapshotCollector) -> None:
    place = {"node": "slow", "topic": "PRICES.A", "stream": STREAM, "transmitter": "feed"}
    lag = value(fleet, "heliograph_fleet_receiver_lag_messages", **place)
    assert lag > 3000
    assert value(fleet, "heliograph_fleet_receiver_lag_seconds", **place) == pytest.approx(lag / TOPICS["PRICES.A"])
    assert value(fleet, "heliograph_fleet_receiver_queue_ratio", **place) == 1
    assert value(fleet, "heliograph_fleet_receiver_nak_share", node="lossy", topic="PRICES.A") == pytest.approx(47 / 54)
    residuals = samples(fleet, "heliograph_fleet_receiver_residual_messages")
    assert len(residuals) == len(RECEIVERS) * len(TOPICS)
    assert {one.value for one in residuals} == {0.0}


def test_exactly_one_class_of_a_receiver_holds(fleet: SnapshotCollector) -> None:
    held = [one for one in samples(fleet, "heliograph_fleet_receiver_class") if one.value == 1]
    by_node = {one.labels["node"]: one.labels["class"] for one in held}
    assert len(held) == len(RECEIVERS) * len(TOPICS)
    assert by_node == {"alpha": "ok", "bravo": "ok", "slow": "falling_behind", "lossy": "lossy"}


def test_peers_are_called_by_their_nodes(fleet: SnapshotCollector) -> None:
    peers = samples(fleet, "heliograph_tx_receiver_naks_received_sequences_total")
    assert {one.labels["receiver"] for one in peers} == {"alpha", "bravo", "slow", "lossy"}


def test_a_receiver_without_its_sender_has_no_lag_but_still_its_books() -> None:
    collector = SnapshotCollector()
    collector.update(at(1, instance("alpha", receiver("alpha", messages_delivered=5, next_message=5))))
    assert samples(collector, "heliograph_fleet_receiver_lag_messages") == []
    assert value(collector, "heliograph_fleet_receiver_residual_messages", node="alpha", transmitter="") == 0


def test_a_receiver_that_went_away_is_not_in_the_next_answer() -> None:
    collector = SnapshotCollector()
    collector.update(at(1, instance("alpha", receiver("alpha", "A"), receiver("alpha", "B"))))
    collector.update(at(2, instance("alpha", receiver("alpha", "A"), receiver("alpha", "B", live=False))))
    topics = {one.labels["topic"] for one in samples(collector, "heliograph_receiver_messages_delivered_total")}
    assert topics == {"A"}
    collector.update(at(3))
    assert samples(collector, "heliograph_receiver_messages_delivered_total") == []
    assert samples(collector, "heliograph_node_up") == []


@pytest.mark.parametrize(
    ("health", "up"), [(Health.LIVE, 1.0), (Health.STALE, 1.0), (Health.DEAD, 0.0), (Health.DAMAGED, 0.0)]
)
def test_a_node_is_up_while_its_process_lives(health: Health, up: float) -> None:
    collector = SnapshotCollector()
    collector.update(at(1, instance("alpha", receiver("alpha"), health=health)))
    assert value(collector, "heliograph_node_up", node="alpha") == up
    states = {one.labels["state"]: one.value for one in samples(collector, "heliograph_node_health")}
    assert [name for name, holds in states.items() if holds] == [health.value]
    assert bool(samples(collector, "heliograph_receiver_messages_delivered_total")) is bool(up)


def test_a_node_that_closed_cleanly_is_not_called_down() -> None:
    collector = SnapshotCollector()
    collector.update(at(1, instance("alpha", health=Health.CLOSED)))
    assert samples(collector, "heliograph_node_up") == []


def test_percentiles_cover_at_least_a_window_and_no_more_than_two() -> None:
    collector = SnapshotCollector(window=10)
    counted = {1_000: 1}
    seen = []
    for second in range(60):
        if second == 20:
            counted[5_000_000] = 1  # once, a single slow message
        counted[1_000] += 1
        collector.update(at(second, instance("a", receiver("a", histograms={"total_latency": histogram(counted)}))))
        slowest = value(collector, "heliograph_receiver_total_latency_window_seconds", node="a", percentile="max")
        if slowest > 0.001:
            seen.append(second)
        length = value(collector, "heliograph_exporter_window_seconds")
        assert length <= 20
        assert second < 10 or length >= 10
    assert set(range(20, 30)) <= set(seen)
    assert seen[-1] < 40
    assert value(collector, "heliograph_receiver_total_latency_seconds_count", node="a") == 62


def test_a_clock_set_back_begins_a_new_window() -> None:
    collector = SnapshotCollector(window=10)
    for second in (100, 101, 50, 51):
        collector.update(at(second, instance("a", receiver("a", histograms={"total_latency": histogram({9: second})}))))
    assert value(collector, "heliograph_exporter_window_seconds") == 1


def test_torn_reads_and_missed_events_add_up_over_snapshots() -> None:
    collector = SnapshotCollector()
    torn = state("instance", {"instance": "alpha"}, torn=True)
    for second in (1, 2, 3):
        collector.update(at(second, instance("alpha", torn), events_missed=second))
    assert value(collector, "heliograph_stats_torn_reads_total", node="alpha") == 3
    assert value(collector, "heliograph_stats_events_missed_total") == 6


def test_the_series_are_counted_and_the_cap_tells_what_it_folded() -> None:
    topics = [receiver("alpha", f"T{number}", messages_lost=number) for number in range(50)]
    whole, capped = SnapshotCollector(), SnapshotCollector(max_series=600)
    for collector in (whole, capped):
        collector.update(at(1, instance("alpha", *topics)))
    shown = [one for family in whole.collect() for one in family.samples if "topic" in one.labels]
    assert value(whole, "heliograph_exporter_series") == len(shown) > 1000
    assert samples(whole, "heliograph_exporter_series_folded") == []
    assert value(capped, "heliograph_exporter_series_limit") == 600
    assert value(capped, "heliograph_exporter_series_folded", scope="receiver") > 0
    assert 300 < value(capped, "heliograph_exporter_series") <= 600
    names = {one.labels["topic"] for one in samples(capped, "heliograph_receiver_messages_lost_total")}
    assert {"T49", "T48", "_other"} <= names
    total = sum(one.value for one in samples(capped, "heliograph_receiver_messages_lost_total"))
    assert total == sum(range(50))


def test_labels_from_hostile_names_are_harmless_and_told_apart() -> None:
    name = 'evil"\\\nname{}'
    collector = SnapshotCollector()
    collector.update(
        at(1, instance(name, receiver(name, 'to"pic\\', messages_delivered=7), receiver(name, 'to"pic\\u005c')))
    )
    node = 'evil"\\u005c\\u000aname{}'
    metric = "heliograph_receiver_messages_delivered_total"
    assert value(collector, metric, node=node, topic='to"pic\\u005c') == 7
    assert value(collector, metric, node=node, topic='to"pic\\u005cu005c') == 0


def test_nothing_is_exported_with_a_timestamp_or_as_created(fleet: SnapshotCollector) -> None:
    text = exposition(fleet).decode()
    assert "_created" not in text
    parsed = [one for family in text_string_to_metric_families(text) for one in family.samples]
    assert parsed
    assert {one.timestamp for one in parsed} == {None}


def test_promtool_has_nothing_to_say(fleet: SnapshotCollector) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run([promtool, "check", "metrics"], input=exposition(fleet), capture_output=True, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_snapshots_that_nobody_reads_are_prepared_every_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = []
    prepare = SnapshotCollector._prepare

    def counted(collector: SnapshotCollector, snapshot: Snapshot, detail: bool = False) -> None:
        prepared.append(snapshot.time_ns)
        prepare(collector, snapshot, detail)

    monkeypatch.setattr(SnapshotCollector, "_prepare", counted)
    collector = SnapshotCollector()
    for second in range(1, 13):
        collector.update(at(second, instance("alpha", receiver("alpha", messages_delivered=second))))
    assert len(prepared) == 3, "the first, and one every 5 s"
    list(collector.collect())
    list(collector.collect())
    assert len(prepared) == 4, "the latest, once"
    values = {s.name: s.value for family in collector.collect() for s in family.samples}
    assert values["heliograph_receiver_messages_delivered_total"] == 12


def test_a_snapshot_with_histograms_is_taken_for_an_answer_only() -> None:
    taken = []

    def whole(_: bool | Collection[str]) -> Snapshot:
        taken.append(second)
        if second == 8:
            raise UserError("the directory is gone")
        counts = {"total_latency": histogram({1_000: second})}
        return at(second, instance("alpha", receiver("alpha", messages_delivered=second, histograms=counts)))

    collector = SnapshotCollector(whole=whole)
    for second in range(1, 8):
        collector.update(at(second, instance("alpha", receiver("alpha", messages_delivered=second))))
    assert taken == [1, 6], "the first, and one every 5 s"
    counted = "heliograph_receiver_total_latency_seconds_count"
    for _ in range(2):
        assert value(collector, counted, node="alpha") == 7
    assert taken == [1, 6, 7]
    second = 8
    collector.update(at(second, instance("alpha", receiver("alpha", messages_delivered=second))))
    assert value(collector, counted, node="alpha") == 7, "the last that was read"


def _is_named(name: str, named: bool | Collection[str]) -> bool:
    return named if isinstance(named, bool) else name in named


def test_histograms_that_no_answer_shows_are_read_once_a_window() -> None:
    """Those of /metrics are read for each answer; an answer with all finds the start of its window."""
    wanted: list[bool | Collection[str]] = []
    second = 0

    def whole(named: bool | Collection[str]) -> Snapshot:
        wanted.append(named)
        made = {name: histogram({1_000: 100, 9_000: second}) for name in (TOTAL, CALLBACK)}
        shown = {name: one for name, one in made.items() if _is_named(name, named)}
        return at(second, instance("alpha", receiver("alpha", histograms=shown)))

    collector = SnapshotCollector(whole=whole, window=15)
    basic = collector.selected(Selection(detail=False))
    for second in range(0, 36, 5):
        collector.update(at(second, instance("alpha", receiver("alpha"))))
        found = {sample.name: sample.value for family in basic.collect() for sample in family.samples}
        assert found["heliograph_receiver_total_latency_seconds_count"] == 100 + second
        assert "heliograph_receiver_callback_time_seconds_count" not in found
    assert [named is True for named in wanted] == [second % 15 == 0 for second in range(0, 36, 5)]
    assert all(TOTAL in named and CALLBACK not in named for named in wanted if not isinstance(named, bool))
    for _ in range(2):
        assert value(collector, "heliograph_receiver_callback_time_seconds_count") == 100 + 35
        window = value(collector, "heliograph_receiver_callback_time_window_seconds", percentile="p50")
        assert window == pytest.approx(9e-6, rel=1e-3), "without the values of 1 us, counted before"
        assert value(collector, "heliograph_exporter_window_seconds") == 20
    assert len(wanted) == 9, "the last with all, once"
    assert wanted[-1] is True


def test_an_expired_histogram_stays_expired_while_it_is_not_read() -> None:
    taken: list[Snapshot] = []

    def whole(named: bool | Collection[str]) -> Snapshot:
        (owner,) = taken[-1].instances
        objects = [
            replace(item, histograms={name: one for name, one in item.histograms.items() if _is_named(name, named)})
            for item in owner.objects
        ]
        return replace(taken[-1], instances=(replace(owner, objects=tuple(objects)),))

    collector = SnapshotCollector(whole=whole, window=15)

    def expired(second: float, counts: int, detail: bool) -> tuple[float, bool]:
        made = {TOTAL: histogram({1_000: 5}), "network_latency": histogram({1_000: counts})}
        own = state("instance", {"instance": "alpha"}, {"detail_level": 2})
        taken.append(at(second, instance("alpha", receiver("alpha", histograms=made), own)))
        collector.update(taken[-1])
        found = {s.name: s.value for family in collector.selected(Selection(detail)).collect() for s in family.samples}
        is_shown = "heliograph_receiver_network_latency_seconds_count" in found
        return found["heliograph_exporter_histograms_expired"], is_shown

    assert expired(0, 7, detail=True) == (0, True)
    assert expired(5, 7, detail=False) == (0, False)
    assert expired(EXPIRE_SECONDS, 7, detail=True) == (1, False)
    assert expired(EXPIRE_SECONDS + 5, 7, detail=False) == (1, False), "it was not read"
    assert expired(EXPIRE_SECONDS + 6, 8, detail=True) == (0, True), "it counts again"
