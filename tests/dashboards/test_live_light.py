"""Light samples of the store: faults show at once, latencies and points are those of whole samples, exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from heliograph.dashboards.live.alerting import Alerting
from heliograph.dashboards.live.keeping import STORE_HISTOGRAMS
from heliograph.dashboards.live.pacing import Pace, Plan
from heliograph.dashboards.live.pages.head import taken
from heliograph.dashboards.live.pages.verdict import verdict
from heliograph.dashboards.live.series import EVERYTHING, HISTOGRAMS, HOST_HISTOGRAMS, QUANTILES, merged
from heliograph.dashboards.live.store import View, status_of
from heliograph.monitor.alerts import Judgement
from heliograph.monitor.fleet import ReceiverRow, receivers
from heliograph.monitor.latency import percentiles
from heliograph.monitor.model import Snapshot
from tests.dashboards.test_live_walks import SEEN, change, full, pause, step, storm
from tests.dashboards.views import NOW_NS, SECOND, Fleet
from tests.fleet import STREAM, TOPICS
from tests.segments import SegmentObject, write_segment

EVERY = 3
"""Number of samples of which one is whole: those of the moments 0, 3 and 6."""
MOMENTS = range(7)
_LATENCIES = {"p50_ns": None, "p99_ns": None, "p999_ns": None, "max_ns": None, "late": None}
Change = Callable[[Snapshot, int], Snapshot]


class Mixed(Pace):
    """A pace with light samples, whatever samples cost."""

    def plan(self, *, is_watched: bool = True) -> Plan:
        return Plan(1.0, EVERY if is_watched else 1, 0.5)


def mixed(fleet: Fleet) -> Fleet:
    """Let the store of a fleet take light samples."""
    fleet.store._pace = Mixed(1.0)
    return fleet


@pytest.fixture
def light(fleet: Fleet) -> Fleet:
    return mixed(fleet)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Fleet, Fleet]]:
    """The same fleet twice: with whole samples only, and with light ones."""
    found = Fleet(tmp_path / "whole"), Fleet(tmp_path / "light")
    mixed(found[1])
    yield found
    for one in found:
        one.close()


def without_latencies(rows: list[ReceiverRow]) -> list[ReceiverRow]:
    return [replace(row, **_LATENCIES) for row in rows]  # type: ignore[arg-type]


def latencies(view: View) -> dict[tuple[str, str, str], tuple[object, ...]]:
    return {row.identity: (row.p50_ns, row.p99_ns, row.p999_ns, row.max_ns, row.late) for row in view.rows}


def test_a_light_sample_reads_no_latencies_of_receivers(light: Fleet) -> None:
    asked = []

    def sample() -> Snapshot:
        asked.append(light.store.histograms)
        return light.sample()

    light.store._sample = sample  # type: ignore[method-assign]
    views = [light.at(moment) for moment in MOMENTS]
    whole = HISTOGRAMS | STORE_HISTOGRAMS
    few = HOST_HISTOGRAMS | STORE_HISTOGRAMS
    assert asked == [whole, few, few, whole, few, few, whole]
    assert [view.whole_ns == view.time_ns for view in views] == [True, False, False, True, False, False, True]


def test_a_fleet_whose_samples_are_cheap_takes_whole_ones_only(fleet: Fleet) -> None:
    views = [fleet.at(moment) for moment in MOMENTS]
    assert all(view.whole_ns == view.time_ns for view in views)
    assert [len(view.points) for view in views] == list(MOMENTS)
    assert all(view.interval == view.whole_interval == 1.0 for view in views)


def test_all_but_latencies_and_points_is_as_new_as_with_whole_samples(pair: tuple[Fleet, Fleet]) -> None:
    for moment in MOMENTS:
        whole, found = (fleet.at(moment) for fleet in pair)
        assert without_latencies(list(found.rows)) == without_latencies(list(whole.rows))
        assert [one.name for one in found.instances] == [one.name for one in whole.instances]
        for name in ("time_ns", "known", "streams", "faults", "losses", "raised", "events", "events_missed"):
            assert getattr(found, name) == getattr(whole, name), name
        assert list(found.rows.column("trust")) == list(whole.rows.column("trust"))  # type: ignore[attr-defined]
    assert {row.behaviour.value for row in whole.rows} > {"ok"}, "nothing was wrong"


def faulty(fleet: Fleet, fault: Change, moment: int) -> View:
    """Take the sample of a moment with a fault in it."""
    fleet.store._sample = lambda: fault(fleet.sample(), moment)  # type: ignore[method-assign]
    return fleet.at(moment)


@pytest.mark.parametrize("fault", [storm, pause, step, full])
def test_a_fault_shows_at_a_light_sample(fault: Change, pair: tuple[Fleet, Fleet]) -> None:
    appeared = []
    for moment in MOMENTS:
        whole, found = (faulty(fleet, fault, moment) for fleet in pair)
        assert found.faults == whole.faults
        if found.faults and not appeared:
            appeared.append((moment, found.whole_ns < found.time_ns))
            first = verdict(found, status_of(found, found.time_ns))
            assert any(found.faults[0].subject in sentence.text for sentence in first.sentences)
    assert appeared in ([(0, False)], [(1, True)], [(2, True)], [(3, False)])
    if fault in (pause, step):
        assert appeared == [(SEEN, True)]


def test_points_cover_whole_intervals_without_gap_or_overlap(pair: tuple[Fleet, Fleet]) -> None:
    for moment in MOMENTS:
        whole, found = (fleet.at(moment) for fleet in pair)
    assert [point.time_ns for point in found.points] == [NOW_NS + 3 * SECOND, NOW_NS + 6 * SECOND]
    assert [point.seconds for point in found.points] == [3.0, 3.0]
    groups = {EVERYTHING, *(f"topic:{topic}" for topic in TOPICS)}
    for group in groups:
        ours, theirs = merged(found.points, group), merged(whole.points, group)
        assert ours is not None
        assert theirs is not None
        assert ours.count == theirs.count > 0
        assert np.array_equal(ours.counts, theirs.counts)
        assert ours.total_ns == theirs.total_ns
    for series in ("delivered", "sent", "missed", "lost", "by_receiver"):
        sums = [
            {
                key: sum(getattr(point, series).get(key, 0.0) * point.seconds for point in view.points)
                for key in getattr(view.points[-1], series)
            }
            for view in (found, whole)
        ]
        assert sums[0] == pytest.approx(sums[1])


def test_a_burst_at_a_light_sample_is_in_the_rates_of_a_store(light: Fleet) -> None:
    def burst(snapshot: Snapshot, moment: int) -> Snapshot:
        return change(snapshot, "store_stream", {"messages_kept": 900 if moment else 0})

    for moment in MOMENTS:
        view = faulty(light, burst, moment)
    for name in view.keeping:
        assert [point.keeping[name].kept * point.seconds for point in view.points] == [900.0, 0.0]


def kept_snapshots(fleet: Fleet) -> list[Snapshot]:
    """The snapshots that the store of a fleet will take."""
    snapshots: list[Snapshot] = []

    def sample() -> Snapshot:
        snapshots.append(fleet.sample())
        return snapshots[-1]

    fleet.store._sample = sample  # type: ignore[method-assign]
    return snapshots


def test_counts_of_the_points_are_those_of_the_segments(light: Fleet) -> None:
    snapshots = kept_snapshots(light)
    views = [light.at(moment) for moment in MOMENTS]

    def total(snapshot: Snapshot) -> int:
        return sum(item.histograms["total_latency"].count for _, item in snapshot.of("receiver"))

    found = merged(views[-1].points, EVERYTHING)
    assert found is not None
    assert found.count == total(snapshots[6]) - total(snapshots[0])


def test_pauses_and_steps_of_clocks_are_in_exactly_one_point(pair: tuple[Fleet, Fleet]) -> None:
    def both(snapshot: Snapshot, moment: int) -> Snapshot:
        return step(pause(snapshot, moment), moment)

    for moment in MOMENTS:
        whole, found = (faulty(fleet, both, moment) for fleet in pair)
    for view in (whole, found):
        feeds = [point.hosts["feed"] for point in view.points]
        assert sum(one.steps for one in feeds) == 1
        assert sum(one.stepped_ns for one in feeds) == 5 * SECOND
        lengths = [point.hosts["alpha"].hiccup_ns or 0 for point in view.points]
        assert sum(length > SECOND for length in lengths) == 1


def test_latencies_stay_at_a_light_sample_and_cover_the_interval_between_whole_ones(light: Fleet) -> None:
    snapshots = kept_snapshots(light)
    views = [light.at(moment) for moment in MOMENTS]
    for begin in (0, 3):
        first = latencies(views[begin])
        assert all(p99 is not None for _, p99, *_ in first.values())
        assert latencies(views[begin + 1]) == latencies(views[begin + 2]) == first
    whole = receivers(snapshots[3], snapshots[6])
    assert latencies(views[6]) == {
        row.identity: (row.p50_ns, row.p99_ns, row.p999_ns, row.max_ns, row.late) for row in whole
    }


def test_a_new_receiver_has_latencies_from_the_next_whole_sample_on_and_takes_none_from_others(light: Fleet) -> None:
    light.at(0)
    before = latencies(light.at(1))
    labels = {"instance": "late", "topic": "PRICES.A", "stream": STREAM}
    counts = {"next_message": 60, "messages_delivered": 60}
    objects = [
        SegmentObject("instance", {"instance": "late"}),
        SegmentObject("receiver", labels, {}, counts, {"total_latency": {5_000_000: 60}}),
    ]
    write_segment(light.folder / "late.1.helio", name="late", objects=objects, incarnation=77, heartbeat_ns=NOW_NS)
    found = latencies(light.at(2))
    new = ("late", "PRICES.A", STREAM)
    assert found.pop(new)[:4] == (None, None, None, None)
    assert found == before
    after = latencies(light.at(3))
    assert after[new][1] == pytest.approx(5_000_000, rel=0.01)
    (light.folder / "late.1.helio").unlink()
    restarted = [objects[0], replace(objects[1], histograms={"total_latency": {9_000_000: 60}})]
    write_segment(light.folder / "late.2.helio", name="late", objects=restarted, incarnation=78, heartbeat_ns=NOW_NS)
    view = light.at(4)
    runs = [row.p99_ns for row in view.rows if row.instance == "late"]
    assert len(runs) == 2
    assert set(runs) == {after[new][1], None}, "another run has not the latencies of the run before"
    after.pop(new)
    assert {identity: own for identity, own in latencies(view).items() if identity != new} == after


def test_a_light_sample_that_fails_loses_nothing_of_the_points(light: Fleet) -> None:
    for moment in (0, 1):
        light.at(moment)
    sample = light.store._sample
    light.store._sample = lambda: (_ for _ in ()).throw(OSError("no file"))  # type: ignore[method-assign]
    assert "no file" in light.store.take().trouble
    light.store._sample = sample  # type: ignore[method-assign]
    views = [light.at(moment) for moment in (2, 3)]
    assert [point.seconds for point in views[-1].points] == [3.0]


def test_while_nobody_looks_all_samples_are_whole(light: Fleet) -> None:
    light.at(0)
    light.store._looked -= 1000
    views = [light.at(moment) for moment in (1, 2)]
    assert all(view.whole_ns == view.time_ns for view in views)
    light.store.look()
    assert light.at(3).whole_ns == views[-1].whole_ns


def test_the_page_says_how_often_it_samples_and_how_old_latencies_are(light: Fleet) -> None:
    light.at(0)
    assert "latencies" not in taken(light.store.view)
    view = light.at(2)
    said = status_of(view, view.time_ns).reason
    assert said == ("every 1 s, latencies and charts every 3 s, because a sample with them takes 0.5 s of a core")
    then, now = (f"{datetime.fromtimestamp(ns / 1e9):%H:%M:%S}" for ns in (view.whole_ns, view.time_ns))
    assert then != now
    assert taken(view) == f"sample of {now}, latencies and charts of {then}"


def test_a_healthy_fleet_says_until_when_its_packets_were_counted(light: Fleet) -> None:
    views = [light.at(moment) for moment in MOMENTS[:5]]
    healthy = [replace(view, rows=[], faults=(), raised=()) for view in views]
    well = replace(healthy[3], rows=[row for row in views[3].rows if row.behaviour.value == "ok"])
    assert "in the last 3 s" in verdict(well, status_of(well, well.time_ns)).more
    later = replace(healthy[4], rows=[row for row in views[4].rows if row.behaviour.value == "ok"])
    until = f"{datetime.fromtimestamp(views[3].time_ns / 1e9):%H:%M:%S}"
    assert f"in the 3 s until {until}" in verdict(later, status_of(later, later.time_ns)).more


class Recording:
    """An evaluator of alerts that keeps what it gets."""

    rules = ()
    step = 1.0
    kept = 60.0

    def record(self, snapshot: Snapshot) -> None:
        raise NotImplementedError

    def evaluate(self) -> Judgement:
        return Judgement()


def test_alerts_get_whole_samples_only(light: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[int] = []
    alerts = Alerting(Recording())
    monkeypatch.setattr(alerts, "feed", lambda snapshot: fed.append(snapshot.time_ns))
    light.store._alerts = alerts
    for moment in MOMENTS:
        light.at(moment)
    assert fed == [NOW_NS + moment * SECOND for moment in (0, 3, 6)]


def test_percentiles_of_a_point_are_those_of_its_whole_interval(light: Fleet) -> None:
    view = [light.at(moment) for moment in MOMENTS][-1]
    found = merged(view.points[-1:], EVERYTHING)
    assert found is not None
    wanted = dict(zip(QUANTILES, percentiles(found, tuple(QUANTILES.values())), strict=True))
    assert view.points[-1].latency[EVERYTHING] == wanted
