"""The page of the message stores: data of an interval, states, tables, charts, and its state in the address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from heliograph.dashboards.live.app import create, page_at
from heliograph.dashboards.live.figures import stores as charts
from heliograph.dashboards.live.keeping import Judged, Keeping, KeptStream, Stability, Subscribed, judged, keeping
from heliograph.dashboards.live.pages import stores
from heliograph.dashboards.live.pages.stores import Choice, choice, parts
from heliograph.dashboards.live.series import Point
from heliograph.dashboards.live.store import View
from heliograph.dashboards.live.uploads import Uploads
from heliograph.dashboards.words import STORE
from heliograph.monitor.behaviour import Behaviour
from heliograph.monitor.model import Health, Snapshot
from tests.dashboards.test_live_page import text
from tests.dashboards.views import NOW_NS, SECOND, Fleet, checked, message
from tests.fleet import STREAM

kept, behind, file_times, disk = map(checked, (charts.kept, charts.behind, charts.file_times, charts.disk))

EVIL = '<b>"\N{RIGHT-TO-LEFT OVERRIDE}/?&#evil'
GIB = 1 << 30
SERVICE = {
    "service_readers": 3,
    "service_requests": 500,
    "service_requests_refused": 1,
    "service_requests_aborted": 2,
    "service_bytes_sent": 3_000_000,
    "service_restarts": 4,
    "write_failures": 5,
    "segments_removed": 6,
}


@pytest.fixture
def running(fleet: Fleet) -> Fleet:
    for moment in (2, 3):
        fleet.at(moment)
    return fleet


def at(fleet: Fleet, search: str = "", path: str = "/stores") -> Any:
    return page_at(path, search, fleet.store, Uploads(), lambda: fleet.now_ns)


def after(*found: Keeping, name: str = "bravo", seconds: int = 20) -> list[Point]:
    """Points with a store, at equal distances."""
    return [Point(NOW_NS + i * seconds * SECOND, 1.0, keeping={name: one}) for i, one in enumerate(found)]


def with_stores(view: View, found: Mapping[str, Keeping]) -> View:
    """The view when these are the stores, now and a while before."""
    before = {name: replace(one, restarts=0, streams={}) for name, one in found.items()}
    points = (Point(view.time_ns - 60 * SECOND, 1.0, keeping=before), Point(view.time_ns, 1.0, keeping=found))
    return replace(view, keeping=found, points=points)


def changed(snapshot: Snapshot, scope: str, **values: int) -> Snapshot:
    """The snapshot with other values of the objects of a scope, which all of them must have."""
    instances = []
    for one in snapshot.instances:
        objects = []
        for item in one.objects:
            if item.scope == scope:
                assert values.keys() <= item.values.keys()
                item = replace(item, values={**item.values, **values})
            objects.append(item)
        instances.append(replace(one, objects=tuple(objects)))
    return replace(snapshot, instances=tuple(instances))


# Data


def test_a_store_has_its_streams_files_and_times(running: Fleet) -> None:
    (found,) = running.store.view.keeping.values()
    assert running.store.view.points[-1].keeping == {"bravo": found}
    assert (found.directory, found.fsync, found.health) == ("/var/lib/heliograph/store", "batch", Health.LIVE)
    assert (found.segments, found.segment_bytes, found.disk_bytes) == (2, 130_000 * 240, 1 << 34)
    assert found.used == pytest.approx(0.5, abs=0.01)
    one = found.streams[STREAM]
    assert (one.first, one.last, one.written, one.durable) == (1, 130_000, 129_980, 129_980)
    assert (one.kept, one.data, one.bytes, one.lost) == (10_000.0, 2_000_000.0, 26_000_000, 0)
    # 3 messages of each topic are not delivered, and 4 of each wait in the receive queue.
    assert (one.behind, found.behind, found.kept) == (28, 28, 10_000.0)
    assert one.lag_seconds == found.lag_seconds == pytest.approx(0.007, abs=0.001)
    assert {name: round(value, -3) for name, value in found.write_times.items()} == {
        "p50": 19_000,
        "p99": 50_000,
        "max": 100_000,
    }
    assert found.sync_times["p99"] == pytest.approx(1_000_000, rel=0.01)
    assert one.durable_times["p99"] == pytest.approx(45_000_000, rel=0.01)


def test_the_numbers_of_the_service_are_those_of_the_catalogue(running: Fleet) -> None:
    older = changed(running.sample(), "store", **dict.fromkeys(SERVICE, 0))
    running.at(4)
    newer = changed(running.sample(), "store", is_blocked=1, **SERVICE)
    (found,) = keeping(older, newer, running.store.view.rows).values()
    assert (found.readers, found.requests, found.sent) == (3, 500.0, 3_000_000.0)
    assert (found.refused, found.aborted, found.restarts, found.failures) == (1, 2, 4, 5)
    assert (found.segments_removed, found.is_blocked) == (6, True)


def test_a_store_has_its_subscriptions_and_the_stability_of_its_streams(running: Fleet) -> None:
    (found,) = running.store.view.keeping.values()
    (one,) = found.subscriptions
    assert (one.name, one.topic, one.stream, one.next_message, one.waiting) == (
        *("desk-1", "PRICES.A", STREAM),
        *(13 * 4000 - 250, 230),
    )
    assert (one.progress, one.saved_seconds) == (4000.0, pytest.approx(0.1, abs=0.01))
    quorum = found.streams[STREAM].stability
    assert quorum is not None
    assert (quorum.source, quorum.present, quorum.required, quorum.messages) == ("feed", 1, 1, 400)
    assert (quorum.bytes, quorum.limit_messages, quorum.limit_bytes) == (96_000, 50_000, 16 << 20)
    assert quorum.times["p50"] == pytest.approx(9_000_000, rel=0.06)


def test_a_subscription_has_no_progress_before_the_second_snapshot_and_lags_come_first(running: Fleet) -> None:
    newer = running.sample()
    (found,) = keeping(None, newer, running.store.view.rows).values()
    assert [one.progress for one in found.subscriptions] == [0.0]
    bravo = next(one for one in newer.instances if one.name == "bravo")
    (own,) = bravo.of("store_subscription")
    late = replace(own, labels={**own.labels, "subscription": "late"}, values={**own.values, "messages_waiting": 999})
    gone = replace(own, labels={**own.labels, "subscription": "gone"}, live=False)
    instances = [replace(one, objects=(*one.objects, late, gone)) if one is bravo else one for one in newer.instances]
    (found,) = keeping(None, replace(newer, instances=tuple(instances)), running.store.view.rows).values()
    assert [one.name for one in found.subscriptions] == ["late", "desk-1"]


def test_a_store_whose_source_is_out_of_reach_has_no_lag_in_messages(running: Fleet) -> None:
    newer = running.sample()
    alone = replace(newer, instances=tuple(one for one in newer.instances if one.name != "feed"))
    (found,) = keeping(None, alone, running.store.view.rows).values()
    assert (found.behind, found.streams[STREAM].behind) == (None, None)
    assert found.streams[STREAM].stability is None


def test_a_killed_run_of_the_same_name_does_not_hide_the_store(running: Fleet) -> None:
    newer = running.sample()
    bravo = next(one for one in newer.instances if one.name == "bravo")
    dead = replace(bravo, health=Health.DEAD, reason="process 1 is gone", incarnation=7)
    rows = [row for row in running.store.view.rows if row.instance == "bravo"]
    gone = [replace(row, behaviour=Behaviour.STOPPED, badness=900.0) for row in rows]
    for instances in ((*newer.instances, dead), (dead, *newer.instances)):
        (found,) = keeping(None, replace(newer, instances=instances), [*gone, *rows]).values()
        assert (found.health, found.behaviour, found.behind) == (Health.LIVE, Behaviour.OK, 28)
        assert judged("bravo", found, ()).state == "keeping"


# States

SOUND = Keeping(disk_bytes=100 * GIB, disk_free=50 * GIB, why="PRICES.A: keeps up")


@pytest.mark.parametrize(
    ("before", "now", "state", "reason"),
    [
        (SOUND, SOUND, "keeping", ""),
        (SOUND, replace(SOUND, behaviour=Behaviour.RECOVERING, why="T: 9 behind"), "catching_up", "T: 9 behind"),
        (SOUND, replace(SOUND, behaviour=Behaviour.STALLED, why="T: stands"), "behind", "T: stands"),
        (SOUND, replace(SOUND, behaviour=Behaviour.FALLING_BEHIND, why="T: late"), "behind", "T: late"),
        (SOUND, replace(SOUND, restarts=2), "restarted", "its service ended and was started again (2)"),
        (replace(SOUND, restarts=2), replace(SOUND, restarts=2), "keeping", ""),
        (SOUND, replace(SOUND, streams={STREAM: KeptStream(lost=7)}), "gap", "it has lost 7 messages"),
        (SOUND, replace(SOUND, disk_free=5 * GIB), "full", "95% of its disk is in use"),
        (replace(SOUND, disk_free=31 * GIB), replace(SOUND, disk_free=30 * GIB), "filling", "within 4 h"),
        (SOUND, replace(SOUND, disk_free=49 * GIB), "keeping", ""),  # half of the disk is free
        (SOUND, replace(SOUND, is_blocked=True, failures=9), "blocked", "it cannot write; 9 writes have failed"),
        (SOUND, replace(SOUND, health=Health.DEAD, reason="process 1 is gone"), "health:dead", "process 1 is gone"),
        (SOUND, replace(SOUND, health=Health.STALE, is_blocked=True, reason="silent"), "health:stale", "silent"),
    ],
)
def test_the_state_of_a_store_is_the_worst_that_is_true(before: Keeping, now: Keeping, state: str, reason: str) -> None:
    found = judged("bravo", now, after(before, now))
    assert (found.state, reason in found.reason) == (state, True)
    assert bool(reason) == bool(found.reason)
    assert state in STORE


def test_the_filling_of_the_disk_is_forecast() -> None:
    free = [replace(SOUND, disk_free=space) for space in (36 * GIB, 34 * GIB, 30 * GIB)]
    found = judged("bravo", free[-1], after(*free, seconds=600))
    assert found == Judged("filling", "at the present rate the disk is full within 4 h", 30 * 200.0)
    assert judged("bravo", free[-1], after(*free, seconds=1)).full_seconds is None  # too short to tell
    assert judged("bravo", free[0], after(*reversed(free))).full_seconds is None  # it becomes emptier
    assert judged("bravo", SOUND, ()).full_seconds is None


# The page


def test_stores_are_listed_worst_first_and_lead_to_their_page(running: Fleet) -> None:
    view = with_stores(
        running.store.view,
        {
            "sound": SOUND,
            "again": replace(SOUND, restarts=1),
            "stopped": replace(SOUND, is_blocked=True),
            "late": replace(SOUND, behaviour=Behaviour.STALLED, why="T: stands"),
        },
    )
    order = ["stopped", "late", "again", "sound"]
    found = parts(view, Choice())
    links = [item.href for item in found["st-list"]._traverse() if hasattr(item, "href")]
    assert links == [f"/stores?store={name}" for name in order]
    assert found["st-verdict"].className == "verdict bad"
    shown = text(found["st-verdict"])
    assert shown.startswith("stopped: blocked: it cannot write; 0 writes have failed late: behind: T: stands")
    assert "sound" not in shown
    assert "2 of 4 stores" in text(found["st-tiles"])
    other = parts(view, Choice("sound"))
    assert text(other["st-verdict"]).startswith("sound: keeping stopped: blocked")
    assert [option["value"] for option in other["st-store"]] == sorted(order)


def test_the_fleet_lists_the_stores_too(running: Fleet) -> None:
    page = at(running, "", "/")
    links = [item.href for item in page._traverse() if str(getattr(item, "href", "")).startswith("/stores?")]
    assert links == ["/stores?store=bravo"]
    places = {getattr(item, "id", ""): item for item in page._traverse()}
    assert "keeping bravo 1 10.0 k 28" in text(places["stores"])


def test_each_chart_has_lines_and_a_table(running: Fleet) -> None:
    view = running.store.view
    found = parts(view, Choice("bravo"))
    assert set(found) == set(stores.PLACES)
    lines = {
        "kept": {trace.name: trace.y[-1] for trace in kept(view.points, "bravo").data},
        "behind": {trace.name: trace.y[-1] for trace in behind(view.points, "bravo").data},
        "times": {trace.name: round(trace.y[-1], 1) for trace in file_times(view.points, "bravo").data},
        "disk": {trace.name: round(trace.y[-1] * GIB) for trace in disk(view.points, "bravo").data},
    }
    assert lines == {
        "kept": {STREAM: 10_000.0},
        "behind": {STREAM: 28, f"{STREAM}, not written": 20},
        "times": {"write, p99": 0.1, "fsync, p99": 1.0, "durable, p99": 45.0},
        "disk": {"free": (1 << 33) - 130_000 * 240, "segments": 130_000 * 240},
    }
    assert f"{STREAM} 10.0 k 1.9 MiB" in text(found["st-kept-twin"])
    assert "free 8.0 GiB 8.0 GiB segments 29.8 MiB 29.8 MiB" in text(found["st-disk-twin"])
    assert f"{STREAM} 28 20" in text(found["st-behind-twin"])
    assert "write 19.0 µs 50.0 µs 100 µs fsync 380 µs 1.00 ms" in text(found["st-times-twin"])
    assert f"{STREAM} 10.0 k 130,000 28 0 20 20 130 k 24.8 MiB 0" in text(found["st-streams"])
    assert "/var/lib/heliograph/store batch 2" in text(found["st-files"])


def test_subscriptions_and_stability_are_tables_and_a_lost_quorum_is_loud(running: Fleet) -> None:
    found = parts(running.store.view, Choice("bravo"))
    assert f"desk-1 PRICES.A {STREAM} 51,750 230 4,000 0.1 s ago" in text(found["st-subscriptions"])
    assert f"{STREAM} feed 1 of 1" in text(found["st-stability"])
    assert "400 50.0 k 93.8 KiB 16.0 MiB" in text(found["st-stability"])
    (bravo,) = running.store.view.keeping.values()
    many = [Subscribed(f"desk-{i}", "T", STREAM) for i in range(41)]
    streams = {STREAM: KeptStream(stability=Stability("feed", present=1, required=2))}
    view = with_stores(running.store.view, {"bravo": replace(bravo, subscriptions=many, streams=streams)})
    found = parts(view, Choice("bravo"))
    assert text(found["st-subscriptions"]).endswith("and 1 more")
    loud = [text(item) for item in found["st-stability"]._traverse() if "loud" in str(getattr(item, "className", ""))]
    assert loud == ["1 of 2"]
    empty = parts(with_stores(running.store.view, {"bravo": SOUND}), Choice("bravo"))
    assert text(empty["st-subscriptions"]) == "It keeps no durable subscription."
    assert text(empty["st-stability"]) == "No source in reach asks for acknowledgements."


def test_without_a_store_the_page_says_so(fleet: Fleet) -> None:
    assert "No message store in reach" in text(at(fleet))
    assert set(parts(View(), Choice())) == set(stores.PLACES)
    assert len(kept([Point(NOW_NS, 1.0)], "bravo").data) == 0
    fleet.at(0)
    assert text(parts(fleet.store.view, Choice("gone"))["st-verdict"]) == "gone is not in reach any more"


def test_the_address_holds_the_store(running: Fleet) -> None:
    view = running.store.view
    assert choice({}, view) == (Choice(), [])
    assert choice({"store": ["bravo"]}, view) == (Choice("bravo"), [])
    assert choice({"store": ["nothing"]}, view) == (
        Choice(),
        ['Store "nothing" is not in reach; the page shows the worst store.'],
    )
    assert "bravo: keeping" in text(at(running, "?store=bravo"))
    assert "bravo: keeping" in text(at(running))


def test_a_hostile_name_is_text_and_its_link_leads_to_it(running: Fleet) -> None:
    found = replace(SOUND, streams={EVIL: KeptStream(last=5, kept=1.0)}, directory=EVIL, why=EVIL)
    hostile = replace(found, behaviour=Behaviour.STALLED)
    running.store._view = with_stores(running.store.view, {EVIL: hostile})
    page = at(running, "", "/")
    (address,) = [item.href for item in page._traverse() if str(getattr(item, "href", "")).startswith("/stores?")]
    assert address == "/stores?store=%3Cb%3E%22%E2%80%AE%2F%3F%26%23evil"
    shown = at(running, address.removeprefix("/stores"))
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text(shown)
    assert "evil: behind" in text(shown)
    places = {getattr(item, "id", ""): item for item in shown._traverse()}
    assert places["st-store"].value == EVIL
    (line,) = [trace["name"] for trace in places["st-kept"].figure.data]
    assert line.startswith("&lt;b&gt;")


def test_the_page_is_followed_over_http_and_old_data_is_called_old(running: Fleet) -> None:
    client = create(running.store, lambda: running.now_ns).server.test_client()
    found = message(client, "/stores", store="bravo")
    assert found["parts"]["st-kept.figure"]["set"]["data"]
    again = message(client, "/stores", found["drawing"], store="bravo")
    assert (again["parts"], set(again["now"])) == ({}, {"st-taken.children"})
    running.now_ns += 40 * SECOND
    aged = message(client, "/stores", found["drawing"], store="bravo")
    assert "The data on this page is old" in str(aged["now"]["st-verdict.children"])
    assert message(client, "/stores", store="no store")["parts"]["st-verdict.children"]
