"""The page of one receiver: data of an interval, figures, verdict, tables, and its state in the address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from heliograph.dashboards.live.app import create, page_at
from heliograph.dashboards.live.figures import receiver as charts
from heliograph.dashboards.live.pages import receiver
from heliograph.dashboards.live.pages.receiver import Choice, choice, parts
from heliograph.dashboards.live.receiving import REST, Position, Receiving
from heliograph.dashboards.live.series import Point
from heliograph.dashboards.live.store import View
from heliograph.dashboards.live.uploads import Uploads
from heliograph.monitor.behaviour import Behaviour
from heliograph.monitor.model import Event
from tests.dashboards.test_live_page import text
from tests.dashboards.views import NOW_NS, SECOND, Fleet, checked, message
from tests.fleet import STREAM, TOPICS

lag = checked(charts.lag)
located = checked(charts.located)
position = checked(charts.position)
queue = checked(charts.queue)
stages = checked(charts.stages)

EVIL = '<b>"\N{RIGHT-TO-LEFT OVERRIDE}/?&#evil'
CHARTS: dict[str, Callable[[list[Point]], go.Figure]] = {
    "position": lambda points: position(points, "slow", STREAM),
    "lag": lambda points: lag(points, "slow"),
    "queue": lambda points: queue(points, "slow"),
    "stages": lambda points: stages(points, "slow"),
    "located": lambda points: located(points, "slow"),
}


@pytest.fixture
def running(fleet: Fleet) -> Fleet:
    fleet.store.need_stages()
    for moment in (0, 1, 2, 3):
        fleet.at(moment)
    return fleet


def at(fleet: Fleet, search: str = "") -> Any:
    return page_at("/receiver", search, fleet.store, Uploads(), lambda: fleet.now_ns)


def drawn(one: Receiving) -> list[Point]:
    return [Point(NOW_NS + second * SECOND, 1.0, receiving={"slow": one}) for second in (0, 1)]


def named(view: View, old: str, new: str) -> View:
    """The view after a receiver had another name."""
    return replace(
        view,
        rows=tuple(replace(row, instance=new) if row.instance == old else row for row in view.rows),
        known=tuple(replace(row, name=new) if row.name == old else row for row in view.known),
        losses=tuple(replace(row, instance=new, cause=new) for row in view.losses),
    )


# Data


def test_a_receiver_has_its_position_lag_queue_and_loss_locations(running: Fleet) -> None:
    found = running.store.view.points[-1].receiving
    assert set(found) == {"alpha", "bravo", "slow", "lossy"}
    where = found["slow"].positions[STREAM]
    assert (where.newest, where.oldest, where.needed, where.reported) == (25_999, 26_000 - 16_384, 26_000, 1_500)
    assert (where.behind, where.depth, where.margin) == (0, 16_384, 16_384)
    assert found["slow"].queue_fill == 1.0
    assert found["alpha"].queue_fill < 0.01
    assert (found["slow"].lag_seconds or 0.0) > (found["alpha"].lag_seconds or 0.0)
    assert found["lossy"].located == {"network": 42}  # the sender is in reach and has sent them
    assert found["alpha"].located == {}


def test_stages_add_up_to_the_mean_latency(running: Fleet) -> None:
    found = running.store.view.points[-1].receiving["alpha"].stages
    assert list(found) == ["batch", "order", REST]
    shape = 1.1725  # mean of the sample latencies, in medians
    assert found["batch"] == pytest.approx(3_000 * shape, rel=0.01)
    assert found["order"] == pytest.approx(900 * shape, rel=0.05)
    assert sum(found.values()) == pytest.approx(18_000 * shape, rel=0.01)


def test_stages_are_read_only_while_a_page_shows_them(fleet: Fleet) -> None:
    for moment in (0, 1):
        view = fleet.at(moment)
    assert view.points[-1].receiving["alpha"].stages == {}
    at(fleet)
    assert fleet.at(2).points[-1].receiving["alpha"].stages == {}  # the start of the interval was not read
    assert fleet.at(3).points[-1].receiving["alpha"].stages


def test_a_receiver_without_its_sender_has_no_history() -> None:
    where = Position(newest=9, oldest=None, needed=4)
    assert (where.behind, where.depth, where.margin) == (6, None, None)
    past = Position(newest=99, oldest=50, needed=40)
    assert (past.behind, past.depth, past.margin) == (60, 50, -10)


# Figures


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_of_nothing_is_an_empty_chart(chart: str) -> None:
    assert len(CHARTS[chart]([]).data) == 0
    assert len(CHARTS[chart]([Point(NOW_NS, 1.0)]).data) == 0


@pytest.mark.parametrize("chart", CHARTS)
def test_the_same_points_make_the_same_chart(chart: str, running: Fleet) -> None:
    points = list(running.store.view.points)
    figure = CHARTS[chart](points)
    assert len(figure.data) > 0
    assert figure.to_json() == CHARTS[chart](points).to_json()


def test_the_history_is_a_band_below_the_sender() -> None:
    figure = position(drawn(Receiving(positions={STREAM: Position(99, 50, 90, 20)})), "slow", STREAM)
    lines = {trace.name: trace for trace in figure.data}
    assert list(lines) == ["history", "receiver", "as reported"]
    assert (lines["history"].y[0], lines["receiver"].y[0], lines["as reported"].y[0]) == (50, 10, 20)
    assert lines["history"].fill == "tozeroy"
    assert figure.layout.yaxis.autorange == "reversed"


def test_a_receiver_outside_the_history_is_marked() -> None:
    figure = position(drawn(Receiving(positions={STREAM: Position(99, 50, 40)})), "slow", STREAM)
    assert [trace.name for trace in figure.data] == ["history", "receiver", "has left the history"]
    assert figure.data[-1].y == (60, 60)


def test_stages_and_locations_are_stacked_in_one_order() -> None:
    points = drawn(Receiving(stages={"order": 3_000.0, "batch": 1_000.0}, located={"queue": 2, "network": 1}))
    assert [(trace.name, trace.y[0]) for trace in stages(points, "slow").data] == [("batch", 1.0), ("order", 3.0)]
    assert [(trace.name, trace.y[0]) for trace in located(points, "slow").data] == [("network", 1), ("queue", 2)]
    assert stages(points, "slow").layout.barmode == "stack"


# Page


def test_the_verdict_says_the_class_since_when_and_the_evidence(running: Fleet) -> None:
    shown = text(parts(running.store.view, Choice("slow"))["rx-verdict"])
    assert shown.startswith("slow is falling behind on PRICES.")
    assert " Since " in shown
    assert "feed sees: action suspend; falling behind" in shown
    assert "packets it needs leave the history in 42" in shown
    assert "Most missing packets: the network lost them" in shown
    assert text(parts(running.store.view, Choice("alpha"))["rx-verdict"]).startswith("alpha keeps up")


def test_one_observation_has_no_time_since(running: Fleet) -> None:
    view = running.store.view
    once = replace(view, rows=tuple(replace(row, since_ns=0) for row in view.rows))
    assert "there is only one observation" in text(parts(once, Choice("slow"))["rx-verdict"])


def test_each_chart_has_a_table(running: Fleet) -> None:
    found = parts(running.store.view, Choice("slow"))
    shown = text(found["rx-position-twin"])
    for wanted in (
        "newest packet sent 25,999",
        "next packet that the receiver needs 26,000",
        "oldest packet in the history 9,616",
        "packets that leave the history, per second 2,000",
        "time until the newest packet leaves 8.2 s",
        "time until the needed packet leaves 8.2 s",
        "forecast of its sources 42",
    ):
        assert wanted in shown
    assert all(topic in text(found[f"rx-{name}-twin"]) for topic in TOPICS for name in ("lag", "queue"))
    assert "batch: the sender fills a packet 3.5" in text(found["rx-stages-twin"])
    lossy = text(parts(running.store.view, Choice("lossy"))["rx-losses-twin"])
    assert "network: the network lost them 126 " in lossy


def test_losses_have_cause_first_and_last_time(running: Fleet) -> None:
    shown = text(parts(running.store.view, Choice("slow"))["rx-lost"])
    assert "window advanced" in shown
    assert "1,000 to 9,000" in shown
    assert "No packet was lost." in text(parts(running.store.view, Choice("alpha"))["rx-lost"])


def test_actions_and_events_are_those_of_the_receiver(running: Fleet) -> None:
    view = running.store.view
    (address,) = {row.address for row in view.known if row.name == "slow"}
    labels = {"instance": "feed", "stream": STREAM, "receiver": address}
    about = Event("feed", 1, 1, NOW_NS, "receiver_slow", "warning", labels, {}, "a receiver is slow")
    found = parts(replace(view, events=(about, *view.events)), Choice("slow"))
    assert "suspend feed" in text(found["rx-known"])
    events = text(found["rx-events"])
    assert "a receiver is slow" in events
    assert "the receive queue of PRICES.A is full" in events
    assert "feed started" not in events
    assert "a receiver is slow" not in text(parts(view, Choice("alpha"))["rx-events"])


def test_a_receiver_that_only_its_source_knows_has_a_page(running: Fleet) -> None:
    view = running.store.view
    far = replace(view, rows=tuple(row for row in view.rows if row.instance != "slow"))
    assert text(parts(far, Choice("slow"))["rx-verdict"]).startswith("slow, as its source sees it: falling behind")
    silent = replace(far, known=tuple(replace(row, name="", behaviour=Behaviour.UNKNOWN) for row in far.known[:1]))
    address = silent.known[0].address
    assert choice({"instance": [address]}, silent) == (Choice(address), [])
    assert "not known" in text(parts(silent, Choice(address))["rx-verdict"])


def test_a_receiver_that_has_gone_is_not_replaced_by_another(running: Fleet) -> None:
    found = parts(running.store.view, Choice("gone"))
    assert set(found) == set(receiver.PLACES)
    assert text(found["rx-verdict"]).strip() == "gone is not in reach any more"


def test_the_page_without_receivers_is_whole(fleet: Fleet) -> None:
    assert "No receiver in reach" in text(at(fleet))
    assert set(parts(View(), Choice())) == set(receiver.PLACES)


def test_the_address_holds_receiver_and_stream(running: Fleet) -> None:
    view = running.store.view
    assert choice({}, view) == (Choice("slow"), [])
    assert choice({"instance": ["lossy"], "stream": [STREAM]}, view) == (Choice("lossy", STREAM), [])
    found, said = choice({"instance": ["nobody"], "stream": ["1.2"]}, view)
    assert found == Choice("slow")
    assert said == [
        'Receiver "nobody" is not in reach; the page shows the worst receiver.',
        'Stream "1.2" is not received here; the page shows that of the worst topic.',
    ]
    assert "lossy is lossy" in text(at(running, "?instance=lossy"))


def test_each_row_of_the_fleet_opens_the_page_of_its_receiver(running: Fleet) -> None:
    page = page_at("/", "", running.store, Uploads(), lambda: running.now_ns)
    links = [item.href for item in page._traverse() if str(getattr(item, "href", "")).startswith("/receiver?")]
    assert set(links) == {f"/receiver?instance={name}" for name in ("alpha", "bravo", "slow", "lossy")}
    # One each in the table of receivers and in that of the sources; the worst of each topic; two in the first line.
    assert len(links) == 14


def test_a_hostile_name_is_text_and_its_link_leads_to_it(running: Fleet) -> None:
    running.store._view = named(running.store.view, "slow", EVIL)
    page = page_at("/", "", running.store, Uploads(), lambda: running.now_ns)
    (address, *_) = [item.href for item in page._traverse() if "evil" in str(getattr(item, "href", ""))]
    assert address == "/receiver?instance=%3Cb%3E%22%E2%80%AE%2F%3F%26%23evil"
    shown = at(running, address.removeprefix("/receiver"))
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text(shown)
    assert "evil is falling behind" in text(shown)
    assert next(item for item in shown._traverse() if getattr(item, "id", "") == "rx-instance").value == EVIL


def test_the_page_is_followed_over_http(running: Fleet) -> None:
    client = create(running.store, lambda: running.now_ns).server.test_client()
    found = message(client, "/receiver", instance="lossy")
    assert found["parts"]["rx-losses.figure"]["set"]["data"]
    again = message(client, "/receiver", found["drawing"], instance="lossy")
    assert (again["before"], again["parts"]) == (found["drawing"], {})
    assert message(client, "/receiver", instance="nobody", stream="x")["parts"]["rx-verdict.children"]
