"""What a collector misses reaches Prometheus: every family of its account, with the numbers of the account."""

from __future__ import annotations

from prometheus_client.metrics_core import Metric

from heliograph.engine import catalogue
from heliograph.engine.catalogue import names
from heliograph.exporters.collector import SnapshotCollector
from heliograph.exporters.families import account_families
from heliograph.monitor.collector.account import Account, CollectorStats, HostState
from heliograph.monitor.collector.origin import OriginStats
from tests.exporters.making import at

STATS = OriginStats(
    snapshots=11,
    lost=12,
    awaiting=13,
    skipped=14,
    damaged=15,
    dropped=20,
    duplicates=16,
    restarts=17,
    bytes=18,
    events=19,
    events_missed=9,
)
HOSTS = (
    HostState(1, "one", "/p", False, "", 0.5, 1.0, 2, 3, STATS, {"feed": 4, "sink": 5}),
    HostState(2, "two", "/p", True, "silent for 9.0 s", 9.0, 1.0, 0, 0, OriginStats(), {}),
)
ACCOUNT = Account(
    CollectorStats(
        *(21, 22, 23, 24, 25, 26),
        refused_by={"damaged": 27, "memory": 28},
        forgotten=29,
        memory_bytes=30,
        memory_limit=31,
        objects=32,
    ),
    HOSTS,
)


def _values(families: list[Metric]) -> dict[str, dict[tuple[str, ...], float]]:
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples} for family in families
    }


def test_every_family_of_a_collector_has_its_number() -> None:
    found = _values(list(account_families(ACCOUNT)))
    of_one = {
        "snapshots": 11,
        "snapshots_lost": 12,
        "snapshots_awaiting_keyframe": 13,
        "snapshots_skipped": 14,
        "snapshots_damaged": 15,
        "reports_dropped": 20,
        "snapshots_duplicate": 16,
        "publisher_changes": 17,
        "bytes": 18,
        "events": 19,
        "host_up": 1,
        "host_age_seconds": 0.5,
        "host_relays": 2,
    }
    for name, value in of_one.items():
        assert found[f"heliograph_collector_{name}"]["one",] == value, name
    assert found["heliograph_collector_host_up"]["two",] == 0
    assert found["heliograph_collector_events_missed"] == {("one", "feed"): 4, ("one", "sink"): 5}
    totals = {"hosts": 2, "messages": 21, "messages_refused": 23, "messages_lost": 24}
    totals |= {"reports_looped": 25, "reports_untracked": 26, "hosts_evicted": 29}
    totals |= {"memory_bytes": 30, "memory_limit_bytes": 31, "objects": 32}
    assert found["heliograph_collector_reports_refused"] == {("damaged",): 27, ("memory",): 28}
    for name, value in totals.items():
        assert found[f"heliograph_collector_{name}"] == {(): value}, name


def test_no_family_of_a_collector_is_left_out() -> None:
    expected = {
        names.family(derived).removesuffix("_total")
        for name, derived in catalogue.derived().items()
        if name.startswith("collector_")
    }
    assert {family.name for family in account_families(ACCOUNT)} == expected


def test_the_account_is_served_with_the_fleet_and_absent_where_nothing_is_collected() -> None:
    for account, served in ((ACCOUNT, True), (None, False)):
        collector = SnapshotCollector(account=lambda account=account: account)  # type: ignore[misc]
        collector.update(at(1))
        found = {family.name for family in collector.collect()}
        assert ("heliograph_collector_hosts" in found) is served
