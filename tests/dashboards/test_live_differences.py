"""What changed between two drawings: a browser that applies it shows the newer one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from dash import html
from hypothesis import given
from hypothesis import strategies as st

from heliograph.dashboards.live.app import create
from heliograph.dashboards.live.differences import difference, plain
from heliograph.dashboards.live.easel import Easel
from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.pages.fleet import GRAPHS, Choice, parts
from heliograph.dashboards.live.pages.parts import harmless
from heliograph.dashboards.live.store import Store, View
from heliograph.dashboards.live.updates import Message, Updates
from tests.dashboards.browsing import live, seen, until
from tests.dashboards.views import SECOND, Fleet


def keyed(row: tuple[str, Any]) -> dict[str, Any]:
    """A row of a table with its key, as JSON."""
    key, cells = row
    return {"type": "Tr", "props": {"key": key, "children": cells}}


DIGITS = st.integers(0, 9)
JSON = st.recursive(
    st.none() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from(["a", "name", "props", "children", "key"]), inner, max_size=3)
        | st.lists(st.tuples(st.text("ab", max_size=2), inner).map(keyed), max_size=5)
    ),
    max_leaves=12,
)


def applied(shown: Any, update: Any) -> Any:
    """Do as the browser does with a difference (`assets/updates.js`)."""
    if update is None:
        return shown
    if "set" in update:
        return update["set"]
    shown = json.loads(json.dumps(shown))
    path: list[Any] = []
    for operation in json.loads(json.dumps(update["do"])):
        (common, *rest), what, *more = operation
        path = [*path[:common], *rest]
        steps = [key for step in path for key in (("props", "children") if step == -1 else (step,))]
        inner = reduce(lambda found, key: found[key], steps, shown)
        match what:
            case "set":
                inner[more[0]] = more[1]
            case "delete":
                del inner[more[0]]
            case "extend":
                inner += more[0]
            case "drop":
                del inner[: more[0]]
            case "order":
                inner[:] = [inner[row] if isinstance(row, int) else row for row in more[0]]
            case other:
                raise AssertionError(other)
    return shown


@given(JSON, JSON)
def test_a_browser_that_applies_a_difference_shows_what_is_new(before: Any, after: Any) -> None:
    assert applied(before, difference(before, after)) == after


@given(
    st.lists(st.integers(0, 9), min_size=20, max_size=60), st.integers(0, 9), st.lists(st.integers(0, 9), max_size=9)
)
def test_a_curve_that_moves_sends_its_new_points_only(curve: list[int], gone: int, new: list[int]) -> None:
    before, after = {"data": [{"y": curve}] * 3}, {"data": [{"y": [*curve[gone:], *new]}] * 3}
    update = difference(before, after)
    assert applied(before, update) == after
    if update is not None and "do" in update:
        sent = [operation[2] for operation in update["do"] if operation[1] == "extend"]
        assert all(len(values) <= gone + len(new) for values in sent)


def test_a_trace_of_another_name_is_replaced_with_what_a_reader_hid_of_it() -> None:
    old = {"data": [{"type": "scatter", "name": "a", "y": list(range(90))}, {"name": "b", "y": list(range(90))}]}
    new = {"data": [{"type": "scatter", "name": "c", "y": list(range(90))}, {"name": "b", "y": list(range(90))}]}
    update = difference(old, new)
    assert update is not None
    ((path, what, place, trace),) = update["do"]
    assert (path, what, place, trace["name"]) == ([0, "data"], "set", 0, "c")


def table(rows: Mapping[str, str]) -> Any:
    """A table as JSON: the text of each row by its key."""
    return plain(
        html.Tbody([html.Tr([html.Td(text), html.Td(f"{text}, and why")], key=key) for key, text in rows.items()])
    )


def test_rows_that_change_places_are_not_written_again() -> None:
    names = [f"receiver-{number}" for number in range(15)]
    before, after = (table({name: f"{name} is slow" for name in order}) for order in (names, names[::-1]))
    update = difference(before, after)
    assert update == {"do": [[[0, -1], "order", list(range(15))[::-1]]]}
    assert applied(before, update) == after


@pytest.mark.parametrize(
    ("rows", "operations"),
    [
        ({"b": "2", "a": "1"}, [[[0, -1], "order", [1, 0]]]),
        ({"b": "2", "a": "9"}, [[[0, -1], "order", [1, 0]], [[1, 1, -1, 0, "props"], "set", "children", "9"]]),
        ({"b": "2"}, [[[0, -1], "order", [1]]]),
        ({"c": "3", "a": "1", "b": "2"}, [[[0, -1], "order", [table({"c": "3"})["props"]["children"][0], 0, 1]]]),
    ],
)
def test_a_row_is_the_same_wherever_it_is(rows: Mapping[str, str], operations: list[Any]) -> None:
    before = table({"a": "1", "b": "2"})
    wanted = table(rows)
    update = difference(before, wanted)
    assert update is not None
    assert applied(before, update) == wanted
    assert [it for it in update["do"] if "why" not in str(it[-1]) or it[1] == "order"] == operations


def test_a_row_that_has_come_is_made_of_one_that_has_left() -> None:
    before, after = table({"a": "1", "b": "2"}), table({"c": "2", "a": "1"})
    update = difference(before, after)
    assert applied(before, update) == after
    assert update == {"do": [[[0, -1], "order", [1, 0]], [[1, 0, "props"], "set", "key", "c"]]}


@pytest.mark.parametrize("keys", [["a", "a"], ["a", None]])
def test_rows_with_one_key_or_without_are_told_by_their_places(keys: list[str | None]) -> None:
    before, after = (plain(html.Tbody([html.Tr([text], key=key) for key in keys])) for text in ("old", "new"))
    update = difference(before, after)
    assert applied(before, update) == after
    assert update is not None
    assert all(operation[1] == "set" for operation in update["do"])


def test_what_is_drawn_becomes_plain_values() -> None:
    figure = Figure(title={"text": "t"})
    figure.add_scatter(y=np.array([1.5, np.nan]), fill=None)
    found = plain({"chart": figure, "text": [html.P("seen", className="x")]})
    assert found["chart"] == {"data": [{"type": "scatter", "y": [1.5, None]}], "layout": {"title": {"text": "t"}}}
    assert found["text"][0]["props"] == {"children": "seen", "className": "x"}
    with pytest.raises(TypeError, match="a part of the page has a set"):
        plain({"chart": {1, 2}})


def test_a_browser_follows_a_fleet_by_differences_and_gets_less_than_whole_views(fleet: Fleet) -> None:
    easel: Easel[Choice] = Easel(parts)
    moments = [fleet.at(moment) for moment in range(4)]
    views = [replace(moments[3], sequence=10 + count, points=moments[3].points * count) for count in range(20, 26)]
    drawing, update = easel.update(views[0], Choice(), None)
    shown = {name: change["set"] for name, change in update.changes.items()}
    for view in views[1:]:
        newest, update = easel.update(view, Choice(), drawing.number)
        assert update.before == drawing.number
        shown = {name: applied(part, update.changes.get(name)) for name, part in shown.items()}
        assert shown == newest.parts
        assert json.loads(update.text) == json.loads(json.dumps(update.changes))
        drawing = newest
    assert len(update.text) * 4 < len(json.dumps(drawing.parts))


@pytest.mark.parametrize("shown", [None, True, "1", 1.5, 12, {"drawing": 1}, [3]])
def test_an_unknown_drawing_gets_all_parts(shown: Any) -> None:
    easel: Easel[None] = Easel(lambda view, choice: {"a": "x", "b": [1]})
    _, update = easel.update(View(sequence=1), None, shown)
    assert (update.before, update.changes) == (None, {"a": {"set": "x"}, "b": {"set": [1]}})


def test_a_drawing_of_another_choice_and_of_long_ago() -> None:
    draw: Callable[[View, str], dict[str, Any]] = lambda view, choice: {"a": choice, "b": "same"}  # noqa: E731
    easel: Easel[str] = Easel(draw)
    first, _ = easel.update(View(sequence=1), "x", None)
    _, update = easel.update(View(sequence=1), "y", first.number)
    assert (update.before, update.changes) == (first.number, {"a": {"set": "y"}})
    for sequence in range(2, 40):
        easel.drawing(View(sequence=sequence), "y")
    _, update = easel.update(View(sequence=40), "x", first.number)
    assert (update.before, set(update.changes)) == (None, {"a", "b"})


@contextlib.contextmanager
def on_a_port(store: Store, sizes: list[int]) -> Iterator[str]:
    """The application over a store that the test moves on; collects the sizes of its messages in bytes."""
    made = Updates.message

    def measured(*arguments: Any) -> Message:
        found = made(*arguments)
        sizes.append(len(found.text))
        return found

    with pytest.MonkeyPatch.context() as patch, live(create(store).server, store) as url:
        patch.setattr(Updates, "message", measured)
        yield url


def _pair(random: Random) -> tuple[Any, Any]:
    """A part of a page, and the same a moment later: a curve has moved, cells have changed."""
    curve, gone = [random.randrange(9) for _ in range(40)], random.randrange(4)
    rows = [{"props": {"children": [str(random.randrange(9)) for _ in range(6)], "id": row}} for row in range(20)]
    before = {"data": [{"name": "a", "y": curve}, {"name": "b", "y": curve}], "rows": rows, "old": 1}
    after = json.loads(json.dumps(before))
    after["data"][0]["y"] = [*curve[gone:], *(random.randrange(9) for _ in range(gone))]
    for _ in range(random.randrange(5)):
        cells = after["rows"][random.randrange(20)]["props"]["children"]
        cells[random.randrange(6)] = "new"
    if random.randrange(2):
        del after["old"]
        after["data"][1] = {"name": "c", "y": [random.randrange(9)]}
    return before, after


APPLIED = """
return arguments[0].map(([before, operations]) => {
  const kept = JSON.stringify(before), found = window.heliograph.changed(before, operations);
  return JSON.stringify(before) === kept ? found : "what was held is changed";
});
"""
CHARTS = """
return arguments[0].map(id => (document.getElementById(id)?.data ?? []).map(
  trace => [trace.name, Array.from(trace.x), Array.from(trace.y)]));
"""
PRINTED = "window.dispatchEvent(new Event('beforeprint'));" + CHARTS
"""A page that is printed shows the newest of all charts, also of those that wait for their turn."""


def test_charts_and_tables_in_a_browser_are_those_of_the_newest_view(fleet: Fleet, driver: Any) -> None:
    for moment in range(4):
        base = fleet.at(moment)
    last = base.points[-1]
    points = [replace(last, time_ns=last.time_ns + number * SECOND, sent={"T": float(number)}) for number in range(90)]
    store = fleet.store

    def show(step: int) -> None:
        rows = tuple(replace(row, naks_per_s=1000.0 + step) for row in base.rows)
        now = tuple(points[step : step + 60])
        store.show(replace(base, sequence=100 + step, rows=rows, points=now, interval=0.2))

    show(0)
    graphs = sorted(GRAPHS)
    sizes: list[int] = []
    driver.set_window_size(1440, 8000)  # all charts in view
    with on_a_port(store, sizes) as url:
        driver.get(url)
        for step in range(1, 9):
            show(step)
            newest = plain(harmless(parts(store.view, Choice())))
            wanted = [[[line["name"], line["x"], line["y"]] for line in newest[name]["data"]] for name in graphs]
            until(lambda wanted=wanted: driver.execute_script(PRINTED, graphs) == wanted, f"the charts of view {step}")
            if step == 4:
                driver.refresh()
        assert "1,008" in seen(driver, "receivers") or "4,032" in seen(driver, "receivers")
        found = [(before, after, difference(before, after)) for before, after in map(_pair, [Random(4)] * 100)]
        changed = [(before, after, update["do"]) for before, after, update in found if update]
        assert len(changed) > 80
        assert driver.execute_script(APPLIED, [[before, do] for before, _, do in changed]) == [it[1] for it in changed]
        driver.get("about:blank")  # ends its requests
    assert sorted(sizes)[len(sizes) // 2] * 4 < max(sizes)
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


NOTE = """
const [milliseconds] = arguments, react = Plotly.react;
window.charts = [];
Plotly.react = (place, ...rest) => {
  window.charts.push([place.id, performance.now()]);
  const until = performance.now() + milliseconds;
  while (performance.now() < until);
  return react(place, ...rest);
};
"""
"""Notes the charts that are drawn, with the time, and makes each take longer."""
TAKE = "window.charts = []; heliograph.take({before: null, drawing: 1, now: {}, parts: arguments[0]})"
DRAWN = "return window.charts"
BELOW = "return arguments[0].every(id => document.getElementById(id).getBoundingClientRect().top > innerHeight)"
INTO_VIEW = "document.getElementById(arguments[0]).scrollIntoView({block: 'center'})"


class Paused:
    """The first page, paused, with the charts of one view; the test gives it others."""

    def __init__(self, fleet: Fleet, driver: Any, url: str, most: int | None = None) -> None:
        self._driver = driver
        self.graphs = sorted(GRAPHS)[:most]
        self._figures = {name: plain(harmless(parts(fleet.store.view, Choice())[name])) for name in self.graphs}
        driver.get(url)
        until(lambda: "live" in seen(driver, "state"), "a live page")
        driver.find_element("id", "pause").click()
        until(lambda: "paused" in seen(driver, "state"), "the pause")
        until(lambda: all(driver.execute_script(PRINTED, self.graphs)), "the charts")

    def take(self, moment: int) -> list[list[Any]]:
        """Give the browser charts with other values; return what they show when all are drawn."""
        given = {name: json.loads(json.dumps(self._figures[name])) for name in self.graphs}
        for figure in given.values():
            for line in figure["data"]:
                line["y"] = [moment] * len(line["y"])
        changes = {f"{name}.figure": {"set": figure} for name, figure in given.items()}
        self._driver.execute_script(TAKE, changes | {"carried.children": {"set": f"moment {moment}"}})
        until(lambda: seen(self._driver, "carried") == f"moment {moment}", "a drawing of the tables")
        return [[[line["name"], line["x"], line["y"]] for line in figure["data"]] for figure in given.values()]

    @property
    def drawn(self) -> list[str]:
        """Return the charts that were drawn since the last `take`."""
        return [name for name, _ in self._driver.execute_script(DRAWN)]

    @property
    def pauses_ms(self) -> list[float]:
        """Return the times between the beginnings of two charts, since the last `take`."""
        return [later - earlier for (_, earlier), (_, later) in pairwise(self._driver.execute_script(DRAWN))]


@pytest.fixture
def full(fleet: Fleet) -> Fleet:
    for moment in range(4):
        fleet.at(moment)
    return fleet


def test_charts_out_of_view_take_turns_and_one_that_comes_into_view_is_drawn(full: Fleet, driver: Any) -> None:
    driver.set_window_size(1440, 500)
    with on_a_port(full.store, []) as url:
        page = Paused(full, driver, url)
        assert driver.execute_script(BELOW, page.graphs)
        driver.execute_script(NOTE, 0)
        drawn = []
        for moment in range(4 * len(page.graphs)):
            wanted = page.take(moment)
            drawn.append(page.drawn)
        assert sorted(name for names in drawn for name in names) == page.graphs
        assert max(len(names) for names in drawn) == 1
        late = page.graphs.index(next(names[0] for names in drawn if names))
        driver.execute_script(INTO_VIEW, page.graphs[late])
        until(lambda: driver.execute_script(CHARTS, page.graphs)[late] == wanted[late], "the chart that came into view")
        driver.get("about:blank")  # ends its requests
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_slow_charts_are_drawn_one_by_one_and_all_without_a_further_message(full: Fleet, driver: Any) -> None:
    driver.set_window_size(1440, 8000)  # all charts in view
    with on_a_port(full.store, []) as url:
        page = Paused(full, driver, url, most=3)
        driver.execute_script(NOTE, 60)
        for moment in range(2):
            wanted = page.take(moment)
            until(
                lambda wanted=wanted: driver.execute_script(CHARTS, page.graphs) == wanted, "the newest of each chart"
            )
            assert sorted(page.drawn) == page.graphs
            assert min(page.pauses_ms) > 1000
        driver.get("about:blank")  # ends its requests
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
