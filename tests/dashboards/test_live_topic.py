"""The page of one topic: data of its stream, figures, verdict, tables, and its state in the address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from heliograph.dashboards.live.app import create, page_at
from heliograph.dashboards.live.figures import topic as charts
from heliograph.dashboards.live.figures.lines import MOST_LINES
from heliograph.dashboards.live.pages import topic
from heliograph.dashboards.live.pages.topic import Choice, choice, parts
from heliograph.dashboards.live.receiving import Position, Receiving
from heliograph.dashboards.live.sending import Sending, sending
from heliograph.dashboards.live.series import Point
from heliograph.dashboards.live.store import View
from heliograph.dashboards.live.uploads import Uploads
from heliograph.monitor.behaviour import Behaviour
from heliograph.monitor.model import Event, Health
from tests.dashboards.test_live_page import text
from tests.dashboards.views import NOW_NS, SECOND, Fleet, checked, message
from tests.fleet import RECEIVERS, STREAM, TOPICS

race = checked(charts.race)
rates = checked(charts.rates)

EVIL = '<b>"\N{RIGHT-TO-LEFT OVERRIDE}/?&#evil'
PRICES = Choice("PRICES.A", STREAM)
CHARTS: dict[str, Callable[[list[Point]], go.Figure]] = {
    "race": lambda points: race(points, STREAM, ["slow", "lossy"]),
    "rates": lambda points: rates(points, STREAM, "PRICES.A"),
}


@pytest.fixture
def running(fleet: Fleet) -> Fleet:
    for moment in (0, 1, 2, 3):
        fleet.at(moment)
    return fleet


def at(fleet: Fleet, search: str = "", path: str = "/topic") -> Any:
    return page_at(path, search, fleet.store, Uploads(), lambda: fleet.now_ns)


def drawn(sent: Sending | None, **receivers: Position) -> list[Point]:
    found = {name: Receiving(positions={STREAM: where}) for name, where in receivers.items()}
    sending = {STREAM: sent} if sent is not None else {}
    return [Point(NOW_NS + second * SECOND, 1.0, receiving=found, sending=sending) for second in (0, 1)]


def only(view: View, name: str) -> View:
    """The view when only one receiver is in reach, of the host and of the sources."""
    return replace(
        view,
        rows=tuple(row for row in view.rows if row.instance == name),
        known=tuple(row for row in view.known if row.name == name),
    )


# Data


def test_a_stream_has_its_history_rates_and_the_positions_that_were_reported(running: Fleet) -> None:
    found = running.store.view.points[-1].sending[STREAM]
    assert (found.instance, found.newest, found.depth) == ("feed", 25_999, 16_384)
    assert (found.packets, found.repairs, found.naks) == (2_000.0, 54.0, 54.0)
    assert found.topics == {name: rate / 5 for name, rate in TOPICS.items()}
    assert found.reported == {"slow": 1_500, "lossy": 12, "bravo": 3, "alpha": 3}


def test_a_stream_whose_sender_has_gone_is_absent(running: Fleet) -> None:
    older = running.sample()
    running.at(4)
    newer = running.sample()
    assert set(sending(older, newer, ())) == {STREAM}
    left = tuple(instance for instance in newer.instances if instance.name != "feed")
    assert sending(older, replace(newer, instances=left), ()) == {}


# Figures


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_of_nothing_is_an_empty_chart(chart: str) -> None:
    assert len(CHARTS[chart]([]).data) == 0
    assert len(CHARTS[chart]([Point(NOW_NS, 1.0)]).data) == 0


@pytest.mark.parametrize("chart", CHARTS)
def test_the_same_points_make_the_same_chart(chart: str, running: Fleet) -> None:
    points = list(running.store.view.points)
    assert len(CHARTS[chart](points).data) > 0
    assert CHARTS[chart](points).to_json() == CHARTS[chart](points).to_json()


def test_receivers_race_within_the_band_of_the_history() -> None:
    sent = Sending("feed", newest=99, oldest=50, reported={"slow": 30, "far": 20})
    points = drawn(sent, slow=Position(99, 50, 40), alpha=Position(99, 50, 100))
    figure = race(points, STREAM, ["slow", "alpha", "far"])
    lines = {trace.name: trace for trace in figure.data}
    assert set(lines) == {"history", "slow", "slow, as reported", "has left the history", "alpha", "far, as reported"}
    assert {name: trace.y[-1] for name, trace in lines.items()} == {
        "history": 50,
        "slow": 60,
        "slow, as reported": 30,
        "has left the history": 60,
        "alpha": 0,
        "far, as reported": 20,
    }
    assert figure.layout.yaxis.autorange == "reversed"
    assert lines["slow"].line.color == lines["slow, as reported"].line.color
    assert [name for name, trace in lines.items() if trace.line.dash == "dot"] == [
        "far, as reported",
        "slow, as reported",
    ]
    assert not lines["slow, as reported"].showlegend
    assert lines["far, as reported"].showlegend


def test_a_race_without_its_sender_has_no_band() -> None:
    figure = race(drawn(None, slow=Position(99, None, 40)), STREAM, ["slow"])
    assert [trace.name for trace in figure.data] == ["slow"]


def test_a_large_race_shows_its_worst_and_counts_the_rest() -> None:
    names = [f"r{number}" for number in range(30)]
    figure = race(drawn(None, **{name: Position(9, 0, 5) for name in names}), STREAM, names)
    assert {trace.name for trace in figure.data} == set(names[:MOST_LINES])
    assert figure.layout.annotations[0].text == "18 receivers in a better state are not drawn"


def test_rates_are_those_of_the_topic_and_its_stream(running: Fleet) -> None:
    figure = rates(running.store.view.points, STREAM, "PRICES.A")
    assert {trace.name: trace.y[-1] for trace in figure.data} == {"sent": 800.0, "repaired": 54.0, "NAKs": 54.0}


# Page


def test_the_verdict_names_the_worst_receiver_of_the_topic_and_the_evidence(running: Fleet) -> None:
    shown = text(parts(running.store.view, PRICES)["tp-verdict"])
    assert shown.startswith("slow is falling behind on PRICES.A: ")
    assert "lossy is lossy on PRICES.A: loses 2.1 % of packets" in shown
    assert "feed sees slow: action suspend" in shown


def test_a_topic_without_trouble_keeps_up(running: Fleet) -> None:
    section = parts(only(running.store.view, "alpha"), PRICES)["tp-verdict"]
    assert text(section) == "The receiver of PRICES.A keeps up"
    assert section.className == "verdict good"


def test_receivers_are_worst_first_with_class_lag_queue_losses_since_and_action(running: Fleet) -> None:
    table = parts(running.store.view, PRICES)["tp-receivers"]
    shown = text(table)
    places = [shown.index(f" {name} ") for name in ("slow", "lossy", "bravo", "alpha")]
    assert places[:2] == sorted(places[:2])
    assert max(places[:2]) < min(places[2:])
    for wanted in ("▲ falling behind", "100 %", "in 42 s", "▲ suspend", " 60 ", " of all requests"):
        assert wanted in shown
    links = [item.href for item in table._traverse() if hasattr(item, "href")]
    assert sorted(links) == [f"/receiver?instance={name}" for name in sorted(RECEIVERS)]


def test_the_forecast_is_that_of_the_source(running: Fleet) -> None:
    view = running.store.view
    past = tuple(
        replace(row, forecast="past", forecast_ns=None, lost_certain=21_000) if row.name == "slow" else row
        for row in view.known
    )
    found = parts(replace(view, known=past), PRICES)
    assert "21.0 k packets have left" in text(found["tp-receivers"])
    assert "Loss forecast past" in text(found["tp-tiles"])
    silent = tuple(replace(row, forecast="", forecast_ns=None) for row in view.known)
    assert "Loss forecast –" in text(parts(replace(view, known=silent), PRICES)["tp-tiles"])


def test_a_receiver_that_only_the_source_knows_is_among_them(running: Fleet) -> None:
    view = running.store.view
    far = replace(
        view,
        rows=tuple(row for row in view.rows if row.instance != "slow"),
        points=tuple(replace(point, receiving={}) for point in view.points),
    )
    found = parts(far, PRICES)
    assert text(found["tp-receivers"]).index("slow") < text(found["tp-receivers"]).index("alpha")
    assert "1,500 packets" in text(found["tp-receivers"])
    assert "out of reach; as its source sees it" in text(found["tp-receivers"])
    assert "slow – 1,500 – in 42 s" in text(found["tp-race-twin"])


def test_each_chart_has_a_table(running: Fleet) -> None:
    found = parts(running.store.view, PRICES)
    shown = text(found["tp-race-twin"])
    assert "feed (sender): packets 9,616 to 25,999: 16,384 in the history" in shown
    assert "slow 0 1,500 16,384 in 42 s 0" in shown
    assert "sent, this topic 800 800" in text(found["tp-rates-twin"])
    assert "NAKs, whole stream 54 54" in text(found["tp-rates-twin"])


def test_events_are_those_of_the_topic_and_of_its_stream(running: Fleet) -> None:
    view = running.store.view

    def event(said: str, **labels: str) -> Event:
        return Event("feed", 1, 1, NOW_NS, "rate_changed", "info", labels, {}, said)

    events = (
        event("of the stream", stream=STREAM),
        event("of the topic", stream=STREAM, topic="PRICES.A"),
        event("of another topic", stream=STREAM, topic="PRICES.B"),
        event("of another stream", stream="1.2", topic="PRICES.A"),
    )
    shown = text(parts(replace(view, events=events), PRICES)["tp-events"])
    assert "of the stream" in shown
    assert "of the topic" in shown
    assert "of another" not in shown


def test_a_topic_that_has_gone_is_not_replaced_by_another(running: Fleet) -> None:
    found = parts(running.store.view, Choice("gone", STREAM))
    assert set(found) == set(topic.PLACES)
    assert text(found["tp-verdict"]).startswith("gone is not in reach any more")
    assert "No receiver of this topic is in reach." in text(found["tp-receivers"])


def test_a_topic_without_receivers_says_so(running: Fleet) -> None:
    view = replace(running.store.view, rows=(), known=())
    assert text(parts(view, PRICES)["tp-verdict"]) == "PRICES.A has no receiver in reach"
    far = replace(running.store.view, rows=())
    shown = parts(far, PRICES)["tp-verdict"]
    assert "Its source knows 4 receivers of the stream" in text(shown)
    assert shown.className == "verdict bad"  # the source has suspended one of them


def test_a_sender_out_of_reach_or_dead_is_said(running: Fleet) -> None:
    view = running.store.view
    alone = parts(replace(view, transmitters=()), PRICES)
    assert "The sender is out of reach" in text(alone["tp-verdict"])
    assert "The sender is out of reach." in text(alone["tp-source"])
    dead = tuple(
        replace(row, health=Health.DEAD, reason="process 1 is gone") if row.name == "feed" else row
        for row in view.instances
    )
    shown = text(parts(replace(view, instances=dead), PRICES)["tp-verdict"])
    assert shown.startswith("feed, the sender of PRICES.A, is dead: process 1 is gone slow is falling behind")


def test_receivers_that_closed_are_not_said_to_keep_up(running: Fleet) -> None:
    view = only(running.store.view, "alpha")
    closed = tuple(replace(row, behaviour=Behaviour.STOPPED, badness=0.0) for row in view.rows)
    shown = text(parts(replace(view, rows=closed, known=()), PRICES)["tp-verdict"])
    assert shown == "PRICES.A has no receiver in reach"


def test_the_page_without_topics_is_whole(fleet: Fleet) -> None:
    assert "No topic in reach" in text(at(fleet))
    assert set(parts(View(), Choice())) == set(topic.PLACES)


def test_the_address_holds_topic_and_stream(running: Fleet) -> None:
    view = running.store.view
    assert choice({}, view)[1] == []
    assert choice({"topic": ["PRICES.B"], "stream": [STREAM]}, view) == (Choice("PRICES.B", STREAM), [])
    assert choice({"topic": ["PRICES.B"], "stream": ["1.2"]}, view) == (
        Choice("PRICES.B"),
        ['Stream "1.2" does not carry this topic; the page shows that of the worst receiver.'],
    )
    found, said = choice({"topic": ["nothing"]}, view)
    assert found.topic == view.rows[0].topic
    assert said == ['Topic "nothing" is not in reach; the page shows the topic of the worst receiver.']
    assert "slow is falling behind on PRICES.C" in text(at(running, f"?topic=PRICES.C&stream={STREAM}"))


def test_each_row_of_fleet_and_receiver_opens_the_page_of_its_topic(running: Fleet) -> None:
    for path in ("/", "/receiver"):
        page = at(running, "", path)
        links = [item.href for item in page._traverse() if str(getattr(item, "href", "")).startswith("/topic?")]
        assert set(links) == {f"/topic?topic={name}&stream={STREAM}" for name in TOPICS}, path


def test_a_hostile_name_is_text_and_its_link_leads_to_it(running: Fleet) -> None:
    view = running.store.view
    running.store._view = replace(
        view,
        rows=tuple(replace(row, topic=EVIL, stream=EVIL, instance=EVIL, reason=EVIL) for row in view.rows[:1]),
        transmitters=tuple(replace(row, topic=EVIL, stream=EVIL, endpoint=EVIL) for row in view.transmitters[:1]),
        known=tuple(replace(row, stream=EVIL, name=EVIL) for row in view.known[:1]),
        points=tuple(
            replace(point, sending={EVIL: replace(point.sending[STREAM], reported={EVIL: 7})}) for point in view.points
        ),
    )
    page = at(running, "", "/")
    (address, *_) = [item.href for item in page._traverse() if str(getattr(item, "href", "")).startswith("/topic?")]
    name = "%3Cb%3E%22%E2%80%AE%2F%3F%26%23evil"
    assert address == f"/topic?topic={name}&stream={name}"
    shown = at(running, address.removeprefix("/topic"))
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text(shown)
    assert "evil is falling behind" in text(shown)
    found = {getattr(item, "id", ""): item for item in shown._traverse()}
    assert found["tp-topic"].value == EVIL
    (line,) = [trace["name"] for trace in found["tp-race"].figure.data if "evil" in trace["name"]]
    assert line.startswith("&lt;b&gt;")
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in line


def test_old_data_is_called_old_before_anything_else(running: Fleet) -> None:
    running.now_ns += 40 * SECOND
    page = at(running)
    verdict = next(item for item in page._traverse() if getattr(item, "id", "") == "tp-verdict")
    assert text(verdict) == "The data on this page is old last sample 40 s ago"


def test_the_page_is_followed_over_http(running: Fleet) -> None:
    client = create(running.store, lambda: running.now_ns).server.test_client()
    found = message(client, "/topic", topic="PRICES.B")
    assert found["parts"]["tp-race.figure"]["set"]["data"]
    again = message(client, "/topic", found["drawing"], topic="PRICES.B")
    assert (again["parts"], set(again["now"])) == ({}, {"tp-taken.children"})
    running.now_ns += 40 * SECOND
    aged = message(client, "/topic", found["drawing"], topic="PRICES.B")
    assert (aged["parts"], set(aged["now"])) == ({}, {"tp-taken.children", "tp-verdict.children"})
    assert "The data on this page is old" in str(aged["now"]["tp-verdict.children"])
    assert message(client, "/topic", topic=["no topic"] * 3)["parts"]["tp-verdict.children"]
