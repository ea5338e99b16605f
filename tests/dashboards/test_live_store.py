"""The live page's store: one sampler for all readers, bounded, and honest about how old it is."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from heliograph.dashboards.live.store import Service, Store, View, status_of
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Event, Health, Snapshot
from heliograph.monitor.rows import InstanceRow
from tests.dashboards.views import NOW_NS, SECOND, Fleet

NOBODY = ("one", Health.LIVE, "", 1, "", "", 1.0, *(0.0,) * 8, 0, 0, 0)


def empty(time_ns: int, events: tuple[Event, ...] = ()) -> Snapshot:
    return Snapshot(time_ns, (), events)


def event(number: int) -> Event:
    return Event("feed", 1, number, NOW_NS + number, "instance_started", "info", {}, {}, f"event {number}")


def test_what_is_kept_is_bounded_and_the_newest() -> None:
    moments = iter(range(1000))

    def sample() -> Snapshot:
        moment = next(moments)
        return empty(NOW_NS + moment * SECOND, (event(2 * moment), event(2 * moment + 1)))

    store = Store(sample, points=20, cells=5, events=7)
    for _ in range(100):
        view = store.take()
    assert len(view.points) == 20
    assert view.points[-1].time_ns == NOW_NS + 99 * SECOND
    assert [item.number for item in view.events] == [199, 198, 197, 196, 195, 194, 193]


def test_only_the_newest_points_keep_their_histogram_cells(fleet: Fleet) -> None:
    fleet.store = Store(fleet.sample, points=10, cells=2)
    for moment in (0, 1, 2, 3):
        view = fleet.at(moment)
    assert [bool(point.cells) for point in view.points] == [False, True, True]
    assert all(point.latency for point in view.points)


def test_a_view_is_never_changed_by_later_samples(fleet: Fleet) -> None:
    first = fleet.at(0)
    second = fleet.at(1)
    assert (first.sequence, second.sequence) == (1, 2)
    assert first.points == ()
    assert len(second.points) == 1


def test_a_sample_that_fails_keeps_the_last_view_and_says_so(fleet: Fleet) -> None:
    fleet.at(0)
    good = fleet.at(1)
    store = fleet.store
    store._sample = lambda: (_ for _ in ()).throw(UserError("the folder cannot be listed"))  # type: ignore[method-assign]
    view = store.take()
    assert view.rows == good.rows
    assert view.sequence == good.sequence + 1
    state = status_of(view, fleet.now_ns + 4 * SECOND)
    assert state.service is Service.STALE
    assert state.reason == "sampling failed: the folder cannot be listed; last sample 4 s ago"
    store._sample = fleet.sample  # type: ignore[method-assign]
    assert status_of(store.take(), fleet.now_ns).service is Service.LIVE


def test_a_running_fleet_is_live(fleet: Fleet) -> None:
    view = fleet.at(0)
    assert status_of(view, fleet.now_ns).service is Service.LIVE


def test_a_view_that_is_not_renewed_is_stale_with_its_age(fleet: Fleet) -> None:
    view = fleet.at(0)
    state = status_of(view, fleet.now_ns + 34 * SECOND)
    assert (state.service, state.reason) == (Service.STALE, "last sample 34 s ago")


def test_a_fleet_without_a_heartbeat_is_stale(fleet: Fleet) -> None:
    fleet.at(0)
    fleet.now_ns += 20 * SECOND
    view = fleet.store.take()
    state = status_of(view, fleet.now_ns)
    assert (state.service, state.reason) == (Service.STALE, "no live instance; last heartbeat 20 s ago")


def test_a_folder_without_instances_is_named() -> None:
    store = Store(lambda: empty(NOW_NS), place="/nowhere")
    assert status_of(store.view, NOW_NS).service is Service.STARTING
    state = status_of(store.take(), NOW_NS)
    assert (state.service, state.reason) == (Service.EMPTY, "no instance in /nowhere")


def test_where_hosts_are_collected_the_page_says_why_none_is_there() -> None:
    store = Store(lambda: empty(NOW_NS), place="rum://here:1", absence=lambda: "no report received")
    state = status_of(store.take(), NOW_NS)
    assert (state.service, state.reason) == (Service.EMPTY, "no report received")


def test_a_sample_that_takes_long_comes_less_often_and_the_page_says_why() -> None:
    def sample() -> Snapshot:
        end = time.thread_time() + cost
        while time.thread_time() < end:
            pass
        return Snapshot(time.time_ns(), ())

    cost = 0.05
    store = Store(sample, interval=0.1)
    for _ in range(3):
        store.take()
    view = store.view
    assert 0.3 <= view.interval < 5
    assert view.slowed >= cost
    live = replace(view, instances=(InstanceRow(*NOBODY),), heard_ns=view.time_ns)
    assert "because a sample takes 0.1 s of a core" in status_of(live, view.time_ns).reason
    cost = 0.0
    store.take()
    assert store.view.interval == 0.1
    assert store.view.slowed == 0


def test_one_thread_samples_however_many_look() -> None:
    threads: set[str] = set()
    enough = threading.Event()
    taken = 0

    def sample() -> Snapshot:
        nonlocal taken
        taken += 1
        threads.add(threading.current_thread().name)
        if taken > 3:
            enough.set()
        return empty(NOW_NS + taken * SECOND)

    store = Store(sample, interval=0.01)
    store.start()
    try:
        views: list[View] = []
        readers = [threading.Thread(target=lambda: views.append(store.view)) for _ in range(8)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        assert enough.wait(10)
        assert len(views) == 8
    finally:
        store.close()
    assert threads == {threading.current_thread().name, "heliograph-live-sampler"}
    after = taken
    assert not any(thread.name == "heliograph-live-sampler" for thread in threading.enumerate())
    assert taken == after


@pytest.mark.parametrize(("seconds", "text"), [(4, "4 s"), (120, "2 min"), (7200, "2 h")])
def test_ages_are_short(seconds: int, text: str, fleet: Fleet) -> None:
    view = fleet.at(0)
    assert status_of(view, fleet.now_ns + seconds * SECOND).reason == f"last sample {text} ago"
