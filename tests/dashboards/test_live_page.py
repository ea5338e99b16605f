"""The fleet page as text: what it says first, its states, and what it sends to whom."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heliograph.dashboards.live.app import create, first_page
from heliograph.dashboards.live.easel import Easel
from heliograph.dashboards.live.pages import numbers
from heliograph.dashboards.live.pages.fleet import PLACES, Choice, parts
from heliograph.dashboards.live.pages.verdict import verdict
from heliograph.dashboards.live.store import Store, View, status_of
from heliograph.dashboards.words import ACTION, BEHAVIOUR, HEALTH, STATE
from heliograph.monitor.behaviour import BY_STATE, Behaviour
from heliograph.monitor.fleet import Receivers
from heliograph.monitor.model import Health, Snapshot
from heliograph.monitor.sampler import Sampler
from heliograph.monitor.sources import ACTIONS, OTHER_ACTION
from tests.bench.bench_scrape import Engines
from tests.bench.bench_scrape import Fleet as Measured
from tests.dashboards.views import NOW_NS, SECOND, Fleet, message


def texts(component: Any) -> Iterator[str]:
    """Every piece of text of a component, in the order in which it is read."""
    if isinstance(component, str | int | float):
        yield str(component)
    elif isinstance(component, list | tuple):
        for item in component:
            yield from texts(item)
    elif component is not None:
        yield from texts(getattr(component, "children", None))


def text(component: Any) -> str:
    return " ".join(texts(component))


@pytest.fixture
def running(fleet: Fleet) -> Fleet:
    fleet.at(0)
    fleet.at(1)
    return fleet


def said(fleet: Fleet, view: View | None = None) -> Any:
    shown = view or fleet.store.view
    return verdict(shown, status_of(shown, fleet.now_ns))


def test_the_first_line_of_a_well_fleet_builds_one_row_of_each_instance(tmp_path: Path) -> None:
    engines = Engines(tmp_path, Measured(3, 2), histograms=False)
    with Sampler(tmp_path, process_start=lambda pid: 0) as sampler:
        store = Store(lambda: sampler.sample(histograms=False))
        for _ in range(3):
            engines.move()
            store.take()
    assert verdict(store.view, status_of(store.view, store.view.time_ns)).headline == "All 2 receivers keep up"
    assert isinstance(store.view.rows, Receivers)
    assert len(store.view.rows._rows) == 2


def test_the_first_line_names_the_worst_receiver_and_why(running: Fleet) -> None:
    found = said(running)
    assert found.tone == "bad"
    assert found.headline.startswith("slow is falling behind on PRICES.")
    assert "queue 100 % full" in found.headline
    assert "lossy is lossy on PRICES.A and 3 other topics: loses 2.1 % of packets" in found.more
    assert found.more.endswith("the other 2 receivers keep up")


def test_a_healthy_fleet_is_said_to_be_well(running: Fleet) -> None:
    view = running.store.view
    well = tuple(
        replace(row, behaviour=Behaviour.OK, badness=0.0) for row in view.rows if row.instance in ("alpha", "bravo")
    )
    quiet = tuple(replace(point, lost={}) for point in view.points)
    found = said(running, replace(view, rows=well, points=quiet))
    assert (found.tone, found.headline, found.more) == (
        "good",
        "All 2 receivers keep up",
        "no packets lost in the last 1 s",
    )


def test_an_instance_that_died_is_named_even_if_it_never_received(running: Fleet) -> None:
    view = running.store.view
    well = tuple(replace(row, behaviour=Behaviour.OK, badness=0.0) for row in view.rows)
    dead = tuple(
        replace(row, health=Health.DEAD, reason="process 1 is gone") if row.name == "feed" else row
        for row in view.instances
    )
    found = said(running, replace(view, rows=well, instances=dead))
    assert (found.tone, found.headline) == ("bad", "feed is dead: process 1 is gone")


def test_a_receiver_that_was_closed_on_purpose_is_no_trouble(running: Fleet) -> None:
    view = running.store.view
    closed = tuple(replace(row, behaviour=Behaviour.STOPPED, badness=0.0, health=Health.CLOSED) for row in view.rows)
    assert said(running, replace(view, rows=closed)).tone == "idle"


def test_old_figures_are_called_old_before_anything_else(running: Fleet) -> None:
    running.now_ns += 40 * SECOND
    found = said(running)
    assert (found.tone, found.headline, found.more) == ("watch", "The data on this page is old", "last sample 40 s ago")


def test_nobody_running_is_not_an_error() -> None:
    store = Store(lambda: Snapshot(NOW_NS, ()), place="/nowhere")
    view = store.take()
    found = verdict(view, status_of(view, NOW_NS))
    assert (found.tone, found.headline) == ("idle", "No running instance found")
    assert "/nowhere" in found.more


def test_the_receivers_stand_worst_first_with_word_shape_and_reason(running: Fleet) -> None:
    shown = text(parts(running.store.view, Choice())["receivers"])
    places = [shown.index(f" {name} ") for name in ("slow", "lossy", "bravo", "alpha")]
    assert places[:2] == sorted(places[:2])
    assert max(places[:2]) < min(places[2:])
    for wanted in ("▲ falling behind", "◆ lossy", "● keeps up", "loses 2.1 % of packets"):
        assert wanted in shown


def test_every_state_has_a_word_and_a_shape_of_its_own() -> None:
    assert BEHAVIOUR.keys() == set(Behaviour)
    assert HEALTH.keys() == set(Health)
    assert STATE.keys() == set(BY_STATE)
    assert ACTION.keys() == {*ACTIONS.values(), OTHER_ACTION}
    for table in (BEHAVIOUR, HEALTH, STATE, ACTION):
        for attribute in ("text", "shape", "rank"):
            assert len({getattr(word, attribute) for word in table.values()}) == len(table)


def test_receivers_are_shown_as_their_source_sees_them_the_isolated_one_first(running: Fleet) -> None:
    shown = text(parts(running.store.view, Choice())["known"])
    places = [shown.index(f" {name} ") for name in ("slow", "lossy", "bravo", "alpha")]
    assert places == sorted(places)
    for wanted in ("▲ falling behind slow", "▲ suspend ", "2.1 %", "100 %", "180 µs", "42 s", "2.5 s", "● keeps up"):
        assert wanted in shown


def test_a_stream_shows_its_rate_what_it_is_decided_by_and_how_long_data_waits(running: Fleet) -> None:
    shown = text(parts(running.store.view, Choice())["streams"])
    for wanted in ("no storm feed", "3.8 MiB/s", "3.4 MiB/s", "lowered", "2.1 %", "30 %"):
        assert wanted in shown
    stormy = tuple(replace(row, storm=True, rate=0) for row in running.store.view.streams)
    shown = text(parts(replace(running.store.view, streams=stormy), Choice())["streams"])
    assert "■ NAK storm" in shown
    assert "no limit" in shown


def test_a_receiver_that_reports_nothing_has_no_figures_made_up(running: Fleet) -> None:
    view = running.store.view
    silent = tuple(
        replace(row, name="", loss=None, lag=None, buffer_fill=None, behaviour=Behaviour.UNKNOWN, action="")
        for row in view.known[:1]
    )
    shown = text(parts(replace(view, known=silent), Choice())["known"])
    assert silent[0].address in shown
    assert "○ not known" in shown
    assert shown.count("–") >= 4


def test_events_are_newest_first_and_tell_their_text(running: Fleet) -> None:
    shown = text(parts(running.store.view, Choice())["events"])
    assert shown.index("the receive queue of PRICES.A is full") < shown.index("feed started")


def test_each_chart_has_its_values_as_a_table(running: Fleet) -> None:
    found = parts(running.store.view, Choice())
    assert "PRICES.A 4,000" in text(found["throughput-twin"])
    assert "lossy 47 47" in text(found["naks-twin"])
    assert "lossy 42 42 0" in text(found["losses-twin"])
    assert "receiver slow" in text(found["latency-twin"])
    assert "p99.99" in text(found["spectrum-twin"])
    assert "PRICES.D" in text(parts(running.store.view, Choice(kind="topic"))["spectrum-twin"])


def test_every_place_is_filled_also_when_nothing_is_known() -> None:
    assert set(parts(View(), Choice())) == set(PLACES)


def test_a_reader_gets_a_view_once_and_then_only_the_state(running: Fleet) -> None:
    client = create(running.store, lambda: running.now_ns).server.test_client()
    everything = message(client, "/")
    assert {name.partition(".")[0] for name in everything["parts"]} == set(PLACES)
    assert everything["before"] is None
    again = message(client, "/", everything["drawing"])
    assert again["parts"] == {}
    assert again["stamp"]["word"] == "live"
    running.at(2)
    newer = message(client, "/", everything["drawing"])
    assert "receivers.children" in newer["parts"]
    assert (newer["before"], newer["drawing"] > 0) == (everything["drawing"], True)


def test_the_stamp_tells_a_stale_page_its_age(running: Fleet) -> None:
    client = create(running.store, lambda: running.now_ns + 12 * SECOND).server.test_client()
    answer = message(client, "/")
    assert (answer["stamp"]["word"], answer["stamp"]["tone"]) == ("stale", "watch")
    assert answer["stamp"]["reason"] == "last sample 12 s ago"
    assert answer["now"]["verdict.className"] == "verdict watch"
    assert "The data on this page is old" in json.dumps(answer["now"]["verdict.children"])


def test_what_is_spoken_changes_with_a_state_and_not_with_a_figure(running: Fleet) -> None:
    client = create(running.store, lambda: running.now_ns).server.test_client()
    heard, shown = [], []
    for moment in (2, 3, 4):
        running.at(moment)
        now = message(client, "/")["now"]
        heard.append(now["verdict-spoken.children"])
        shown.append(str(now["verdict.children"]))
    assert len(set(shown)) == 3
    assert set(heard) == {"slow is falling behind; lossy is lossy"}
    view = running.store.view
    swapped = tuple(replace(row, badness=90.0) if row.instance == "lossy" else row for row in view.rows)
    assert said(running, replace(view, rows=swapped)).announced == heard[0]
    better = tuple(replace(row, behaviour=Behaviour.OK) if row.instance == "lossy" else row for row in view.rows)
    assert said(running, replace(view, rows=better)).announced == "slow is falling behind"
    running.now_ns += 40 * SECOND
    assert said(running).announced == "The data on this page is old"


def test_a_view_is_drawn_once_for_all_readers(running: Fleet) -> None:
    drawn: list[int] = []
    go = threading.Event()

    def draw(view: View, choice: Choice) -> dict[str, Any]:
        go.wait(5)
        drawn.append(view.sequence)
        return {}

    easel = Easel(draw)
    view = running.store.view
    readers = [threading.Thread(target=easel.drawing, args=(view, Choice())) for _ in range(6)]
    for reader in readers:
        reader.start()
    go.set()
    for reader in readers:
        reader.join()
    assert drawn == [view.sequence]
    easel.drawing(replace(view, sequence=view.sequence - 1), Choice())
    assert drawn == [view.sequence]  # an older view does not undo a newer drawing


def test_drawings_of_many_choices_are_bounded(running: Fleet) -> None:
    easel = Easel(lambda view, choice: {})
    for number in range(200):
        easel.drawing(running.store.view, Choice(group=f"topic:{number}"))
    assert len(easel._newest) <= 32
    assert len(easel._shown) <= 16


def test_the_first_page_is_full(running: Fleet) -> None:
    page = first_page(running.store, lambda: running.now_ns)
    shown = text(page)
    assert "slow is falling behind" in shown
    assert "live" in shown
    assert json.dumps(page.to_plotly_json(), default=str).count('"figure"') == 0  # figures are objects, not strings


def test_the_page_and_its_layout_hold_no_address_of_anywhere(running: Fleet) -> None:
    client = create(running.store).server.test_client()
    for path in ("/", "/_dash-layout", "/_dash-dependencies", "/assets/heliograph.css", "/assets/state.js"):
        answer = client.get(path)
        assert answer.status_code == 200
        body = answer.get_data(as_text=True).replace("\\u002f", "/")
        assert "http:" not in body, path
        assert "https:" not in body, path
        assert not re.search(r"""(src|href|url|import)\W{1,3}//""", body), path


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (numbers.count(0), "0"),
        (numbers.count(9_999), "9,999"),
        (numbers.count(38_120), "38.1 k"),
        (numbers.count(2_400_000), "2.4 M"),
        (numbers.rate(0.25), "0.2"),
        (numbers.rate(None), "–"),
        (numbers.ratio(0.0005), "0.05 %"),
        (numbers.ratio(0.021), "2.1 %"),
        (numbers.ratio(0.97), "97 %"),
        (numbers.latency(870), "870 ns"),
        (numbers.latency(18_400), "18.4 µs"),
        (numbers.latency(2_310_000), "2.31 ms"),
        (numbers.latency(240_000_000), "240 ms"),
        (numbers.seconds(0.8), "0.8 s"),
        (numbers.seconds(420), "7 min"),
        (numbers.size(25_270_000), "24.1 MiB"),
    ],
)
def test_numbers_are_short_and_carry_their_unit(shown: str, wanted: str) -> None:
    assert shown == wanted
