"""The page of a stream's congestion control: data, chart, verdict, decisions, and its state in the address."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

from heliograph.dashboards.live.app import create, page_at
from heliograph.dashboards.live.figures import congestion as charts
from heliograph.dashboards.live.figures.congestion import MARKS, PANELS, kind_of, values
from heliograph.dashboards.live.pages import congestion
from heliograph.dashboards.live.pages.congestion import Choice, choice, parts
from heliograph.dashboards.live.receiving import REST
from heliograph.dashboards.live.sending import DECISIONS, WAITS, Sending, sending
from heliograph.dashboards.live.series import Point
from heliograph.dashboards.live.store import View
from heliograph.dashboards.live.uploads import Uploads
from heliograph.engine import catalogue
from heliograph.monitor.model import Event, Health, Snapshot
from tests.dashboards.test_live_page import text
from tests.dashboards.views import NOW_NS, SECOND, Fleet, checked, message
from tests.fleet import RATE, RATE_DECIDED, STREAM

control = checked(charts.control)

EVIL = '<b>"\N{RIGHT-TO-LEFT OVERRIDE}/?&#evil'
CHANGED = {"from": 4_000_000, "to": 3_600_000, "loss_millionths": 21_000, "receiver_index": 3}


@pytest.fixture
def running(fleet: Fleet) -> Fleet:
    for moment in (0, 1, 2, 3):
        fleet.at(moment)
    return fleet


def at(fleet: Fleet, search: str = "", path: str = "/congestion") -> Any:
    return page_at(path, search, fleet.store, Uploads(), lambda: fleet.now_ns)


def drawn(*found: Sending) -> list[Point]:
    return [Point(NOW_NS + second * SECOND, 1.0, sending={STREAM: one}) for second, one in enumerate(found)]


def event(name: str, second: float = 0.5, stream: str = STREAM, said: str = "", **arguments: int) -> Event:
    labels = {"instance": "feed", "stream": stream}
    return Event("feed", 1, 1, NOW_NS + round(second * SECOND), name, "info", labels, arguments, said)


def changed(snapshot: Snapshot, scope: str, **cells: int) -> Snapshot:
    """The snapshot with other values of all objects of a scope."""

    def other(owner: Any) -> Any:
        objects = tuple(
            replace(item, values={**item.values, **cells}) if item.scope == scope else item for item in owner.objects
        )
        return replace(owner, objects=objects)

    return replace(snapshot, instances=tuple(other(owner) for owner in snapshot.instances))


# Data


def test_every_name_is_one_of_the_catalogue() -> None:
    stream = {cell.name for cell in catalogue.scopes()["tx_stream"].cells}
    assert set(DECISIONS) <= stream
    assert {f"wait_time_{name}" for name in WAITS if name not in ("credit", REST)} == {
        name for name in stream if name.startswith("wait_time_")
    }
    assert set(MARKS) - {"rate_lowered", "rate_raised"} <= set(catalogue.events())
    assert len({mark.symbol for mark in MARKS.values()}) == len({mark.text for mark in MARKS.values()}) == len(MARKS)


def test_a_stream_has_the_rate_the_loss_and_the_limits_of_an_interval(running: Fleet) -> None:
    older = running.sample()
    running.at(4)
    newer = running.sample()
    found = sending(older, newer, ())[STREAM]
    assert (found.rate, found.decided, found.paced, found.loss) == (RATE, RATE_DECIDED, 0, 0.021)
    assert (found.room, found.window, found.unacked, found.credit, found.storm) == (None, None, None, None, False)
    assert found.waits == {REST: pytest.approx(0.3)}
    assert found.totals == {}

    cells = {"send_room": 0, "pgmcc_window": 12, "receivers_acknowledging": 2, "history_unacked": 9, "storm_active": 1}
    grown = {"wait_time_window": SECOND // 2, "cutoff_time": SECOND // 4, "rate_decreases": 3}
    more = changed(newer, "tx_stream", **cells, **grown)
    before = changed(older, "tx_stream", **dict.fromkeys(grown, 0))
    (first, *_) = [item.values["next_message"] for _, item in newer.of("transmitter")]
    more = changed(more, "transmitter", credit_limit=first + 500, credit_wait_time=SECOND // 5)
    found = sending(changed(before, "transmitter", credit_wait_time=0), more, ())[STREAM]
    assert (found.room, found.window, found.unacked, found.storm, found.cut) == (0, 12, 9, True, 0.25)
    assert found.waits == {"window": 0.5, "credit": 0.2}
    assert found.credit == 500  # of the topic with the fewest
    assert found.totals == {"rate_decreases": 3}


# Figure


def test_a_chart_of_nothing_is_an_empty_chart() -> None:
    assert len(control([], STREAM, []).data) == 0
    assert len(control([Point(NOW_NS, 1.0)], STREAM, [event("storm_detected")]).data) == 0


def test_panels_share_one_time_axis_and_say_when_they_are_empty(running: Fleet) -> None:
    points = running.store.view.points
    figure = control(points, STREAM, [])
    assert {trace.xaxis for trace in figure.data} == {None}
    titles = [note.text for note in figure.layout.annotations]
    assert titles == [
        "Events",
        "Rate, KiB/s",
        "Loss, %",
        "Windows: no window limits this stream",
        "Credit: no receiver grants credit",
        "Data waits, % of time",
        "Requests, per second",
    ]
    domains = [figure.layout[f"yaxis{number}"].domain for number in range(2, 2 + len(PANELS))]
    assert all(upper[0] > lower[1] for upper, lower in itertools.pairwise(domains))
    lines = {trace.name: trace.y[-1] for trace in figure.data if trace.name}
    assert lines["Rate: in force"] == RATE / 1024
    assert lines["Rate: decided"] == RATE_DECIDED / 1024
    assert lines["Loss: decides the rate"] == pytest.approx(2.1)
    assert figure.to_json() == control(points, STREAM, []).to_json()


def test_a_stream_without_a_limit_has_no_line_of_a_rate_in_force() -> None:
    found = values(drawn(Sending("feed", data=2048.0), Sending("feed", data=1024.0, rate=4096)), STREAM)
    assert [(line.name, list(line.values)) for line in found] == [("sent", [2.0, 1.0]), ("in force", [None, 4.0])]


def test_windows_and_credit_of_zero_are_drawn_where_they_limit() -> None:
    found = values(drawn(Sending("feed", room=0, window=4, credit=0)), STREAM)
    assert {(line.panel, line.name): line.values[0] for line in found if line.panel != "rate"} == {
        ("window", "packets permitted"): 0,
        ("window", "window of PGMCC"): 4,
        ("credit", "credit left"): 0,
    }


def test_events_are_marks_with_a_symbol_for_each_kind() -> None:
    found = [
        event("rate_changed", said="<b>down", **CHANGED),
        event("rate_changed", **{**CHANGED, "to": 0}),  # 0: no limit any more
        event("rate_changed", **{**CHANGED, "from": 0}),
        event("storm_detected"),
        event("receiver_suspended", second=7),  # after the last point
        event("stream_opened"),
    ]
    figure = control(drawn(Sending("feed"), Sending("feed")), STREAM, found)
    marks = {trace.name: trace for trace in figure.data if trace.mode == "markers"}
    assert {name: len(trace.x) for name, trace in marks.items()} == {
        "rate lowered": 2,
        "rate raised": 1,
        "NAK storm": 1,
    }
    assert marks["rate lowered"].text[0] == "&lt;b&gt;down"
    assert marks["NAK storm"].text == ("NAK storm",)
    assert len([shape for shape in figure.layout.shapes if shape.type == "line"]) == 4
    assert kind_of(event("stream_opened")) is None


def test_a_storm_is_a_ground_with_a_word_for_as_long_as_it_lasts() -> None:
    calm, storm = Sending("feed"), Sending("feed", storm=True)
    figure = control(drawn(calm, storm, storm, calm, storm), STREAM, [])
    grounds = [(shape.x0[-6:], shape.x1[-6:]) for shape in figure.layout.shapes if shape.type == "rect"]
    assert grounds == [("01.000", "03.000"), ("04.000", "04.000")]
    assert len([note for note in figure.layout.annotations if note.text == "NAK storm"]) == 2


# Page


def test_the_verdict_says_what_holds_the_data_back_and_the_last_decision(running: Fleet) -> None:
    view = running.store.view
    shown = text(parts(view, Choice(STREAM))["cc-verdict"])
    assert shown.startswith("Data of feed waits 30 % of the time for the rate, for repairs or for a window")
    assert "Rate in force: 3.8 MiB/s; decided: 3.4 MiB/s, lowered by the last decision, for a loss of 2.1 %" in shown
    assert "1 of 4 receivers in trouble, 1 isolated" in shown
    assert "slow: action suspend" in shown

    def said(**other: Any) -> Any:
        row = replace(view.streams[0], **other)
        return parts(replace(view, streams=(row,), points=()), Choice(STREAM))["cc-verdict"]

    storm = said(storm=True, naks_per_s=900.0, repairs_waiting=40)
    assert text(storm).startswith("NAK storm on the stream of feed: 900 NAKs/s, 40 repairs wait")
    assert storm.className == "verdict bad"
    calm = said(limited_share=0.0, troubled=0, isolated=0)
    assert text(calm).startswith("Nothing holds back the data of feed")
    assert calm.className == "verdict good"
    dead = tuple(
        replace(row, health=Health.DEAD, reason="gone") if row.name == "feed" else row for row in view.instances
    )
    shown = text(parts(replace(view, instances=dead), Choice(STREAM))["cc-verdict"])
    assert shown.startswith("feed, the source, is dead: gone")


def test_each_line_has_its_values_in_the_table(running: Fleet) -> None:
    view = running.store.view
    shown = text(parts(view, Choice(STREAM))["cc-axis-twin"])
    for line in values(view.points, STREAM):
        assert f"{PANELS[line.panel][0]}: {line.name}, " in shown
    assert "Rate: in force, KiB/s 3,906.2 3,906.2 3,906.2" in shown
    assert "Data waits: not divided, % of time 30 30 30" in shown


def test_decisions_show_their_inputs(running: Fleet) -> None:
    view = running.store.view
    found = (
        event("rate_changed", said="lossy decides", **CHANGED),
        event("receiver_suspended", value_millionths=30_000, duration_ms=1_500, receiver=7, action=3),
        event("congestion_on", waited_ns=2_000_000, queue_bytes=4_096, rate=0, cause=4),
        event("rate_floor", stream="1.2", said="of another stream"),
        event("stream_opened", said="no decision"),
    )
    shown = text(parts(replace(view, events=found), Choice(STREAM))["cc-events"])
    assert "rate lowered from 3.8 MiB/s, to 3.4 MiB/s, loss 2.1 % lossy decides" in shown
    assert "receiver restricted value 3.0 %, duration 1.50 s" in shown
    assert "congestion waited 2.00 ms, queue 4.0 KiB, rate no limit" in shown
    assert "another" not in shown
    assert "no decision" not in shown
    assert "No event of congestion control" in text(parts(view, Choice(STREAM))["cc-events"])


def test_decisions_so_far_inputs_and_topics_are_those_of_the_stream(running: Fleet) -> None:
    view = running.store.view
    points = drawn(replace(view.points[-1].sending[STREAM], totals={"rate_decreases": 3, "storms": 1}))
    far = tuple(replace(row, stream="1.2", name="other") for row in view.known[:1])
    found = parts(replace(view, points=tuple(points), known=(*view.known, *far)), Choice(STREAM))
    assert "rate lowered 3 NAK storm detected 1" in text(found["cc-totals"])
    assert "other" not in text(found["cc-known"])
    assert "slow" in text(found["cc-known"])
    links = [item.href for item in found["cc-topics"]._traverse() if hasattr(item, "href")]
    assert links == [f"/topic?topic=PRICES.{name}&stream={STREAM}" for name in "ABCD"]


def test_a_stream_that_has_gone_is_not_replaced_by_another(running: Fleet) -> None:
    found = parts(running.store.view, Choice("1.2"))
    assert set(found) == set(congestion.PLACES)
    assert text(found["cc-verdict"]).startswith("1.2 is not sent in reach any more")


def test_the_page_without_streams_is_whole(fleet: Fleet) -> None:
    assert "No sent stream in reach" in text(at(fleet))
    assert set(parts(View(), Choice())) == set(congestion.PLACES)


def test_the_address_holds_the_stream_and_the_default_is_the_worst(running: Fleet) -> None:
    (row,) = running.store.view.streams
    others = (replace(row, stream="1.2", isolated=0), row, replace(row, stream="3.4", isolated=0, storm=True))
    view = replace(running.store.view, streams=others)
    assert choice({}, view) == (Choice("3.4"), [])
    assert choice({"stream": ["1.2"]}, view) == (Choice("1.2"), [])
    assert choice({"stream": ["9.9"]}, view) == (
        Choice("3.4"),
        ['Stream "9.9" is not sent in reach; the page shows the worst stream.'],
    )


def test_fleet_and_topic_open_the_page_of_the_stream(running: Fleet) -> None:
    for path in ("/", "/topic"):
        page = at(running, "", path)
        links = [item.href for item in page._traverse() if str(getattr(item, "href", "")).startswith("/congestion?")]
        assert links == [f"/congestion?stream={STREAM}"], path


def test_a_hostile_name_is_text_and_its_link_leads_to_it(running: Fleet) -> None:
    view = running.store.view
    running.store._view = replace(
        view,
        streams=tuple(replace(row, stream=EVIL, instance=EVIL) for row in view.streams),
        known=tuple(replace(row, stream=EVIL, name=EVIL) for row in view.known),
        transmitters=tuple(replace(row, stream=EVIL, topic=EVIL) for row in view.transmitters),
        events=(replace(event("rate_changed", stream=EVIL, said=EVIL, **CHANGED), time_ns=view.time_ns),),
        points=tuple(replace(point, sending={EVIL: point.sending[STREAM]}) for point in view.points),
    )
    page = at(running, "", "/")
    (address,) = [item.href for item in page._traverse() if str(getattr(item, "href", "")).startswith("/congestion?")]
    shown = at(running, address.removeprefix("/congestion"))
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text(shown)
    assert "evil waits 30 % of the time" in text(shown)
    found = {getattr(item, "id", ""): item for item in shown._traverse()}
    assert found["cc-stream"].value == EVIL
    drawing = json.dumps(found["cc-axis"].figure.to_plotly_json())
    assert "evil" in drawing
    assert "<b>" not in drawing
    assert "\\u003cb" not in drawing
    assert "\\u202e" not in drawing


def test_old_data_is_called_old_before_anything_else(running: Fleet) -> None:
    running.now_ns += 40 * SECOND
    verdict = next(item for item in at(running)._traverse() if getattr(item, "id", "") == "cc-verdict")
    assert text(verdict) == "The data on this page is old last sample 40 s ago"


def test_the_page_is_followed_over_http(running: Fleet) -> None:
    client = create(running.store, lambda: running.now_ns).server.test_client()
    found = message(client, "/congestion", stream=STREAM)
    assert found["parts"]["cc-axis.figure"]["set"]["data"]
    again = message(client, "/congestion", found["drawing"], stream=STREAM)
    assert (again["before"], again["parts"]) == (found["drawing"], {})
    assert message(client, "/congestion", stream="no stream")["parts"]["cc-verdict.children"]
