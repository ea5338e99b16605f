"""What changed between two drawings: a browser that applies it shows the newer one."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest
from dash import Patch, html, no_update
from flask import Response, request
from hypothesis import given
from hypothesis import strategies as st
from waitress.server import create_server

from heliograph.dashboards.live.app import create
from heliograph.dashboards.live.differences import difference, plain
from heliograph.dashboards.live.easel import Easel
from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.pages.fleet import GRAPHS, Choice, parts
from heliograph.dashboards.live.pages.parts import harmless
from heliograph.dashboards.live.store import Store, View
from tests.dashboards.browsing import seen, until
from tests.dashboards.views import SECOND, Fleet

DIGITS = st.integers(0, 9)
JSON = st.recursive(
    st.none() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["a", "name", "y"]), inner, max_size=3),
    max_leaves=12,
)


def applied(shown: Any, update: Any) -> Any:
    """Do as the browser does with an update (patchHandlers of dash-renderer)."""
    if update is no_update:
        return shown
    if not isinstance(update, Patch):
        return update
    shown = json.loads(json.dumps(shown))
    for operation in json.loads(json.dumps(update.to_plotly_json()))["operations"]:
        *path, last = operation["location"]
        inner = reduce(lambda found, step: found[step], path, shown)
        match operation["operation"]:
            case "Assign":
                inner[last] = operation["params"]["value"]
            case "Delete":
                del inner[last]
            case "Extend":
                inner[last] += operation["params"]["value"]
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
    if isinstance(update, Patch):
        sent = [item["params"]["value"] for item in update._operations if item["operation"] == "Extend"]
        assert all(len(values) <= gone + len(new) for values in sent)


def test_a_trace_of_another_name_is_replaced_with_what_a_reader_hid_of_it() -> None:
    old = {"data": [{"type": "scatter", "name": "a", "y": list(range(90))}, {"name": "b", "y": list(range(90))}]}
    new = {"data": [{"type": "scatter", "name": "c", "y": list(range(90))}, {"name": "b", "y": list(range(90))}]}
    (operation,) = difference(old, new)._operations
    assert operation["location"] == ["data", 0]


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
    drawing, shown = easel.update(views[0], Choice(), None)
    for view in views[1:]:
        newest, update = easel.update(view, Choice(), drawing.number)
        shown = {name: applied(part, update[name]) for name, part in shown.items()}
        assert shown == newest.parts
        drawing = newest
    sent = sum(len(json.dumps(part, default=lambda item: item.to_plotly_json())) for part in _changed(update))
    assert sent * 4 < len(json.dumps(drawing.parts))


def _changed(update: Any) -> list[Any]:
    return [part for part in update.values() if part is not no_update]


@pytest.mark.parametrize("shown", [None, True, "1", 1.5, 12, {"drawing": 1}, [3]])
def test_an_unknown_drawing_gets_all_parts(shown: Any) -> None:
    easel: Easel[None] = Easel(lambda view, choice: {"a": "x", "b": [1]})
    _, update = easel.update(View(sequence=1), None, shown)
    assert update == {"a": "x", "b": [1]}


def test_a_drawing_of_another_choice_and_of_long_ago() -> None:
    draw: Callable[[View, str], dict[str, Any]] = lambda view, choice: {"a": choice, "b": "same"}  # noqa: E731
    easel: Easel[str] = Easel(draw)
    first, _ = easel.update(View(sequence=1), "x", None)
    _, update = easel.update(View(sequence=1), "y", first.number)
    assert update == {"a": "y", "b": no_update}
    for sequence in range(2, 40):
        easel.drawing(View(sequence=sequence), "y")
    _, update = easel.update(View(sequence=40), "x", first.number)
    assert update == {"a": "x", "b": "same"}


@contextlib.contextmanager
def on_a_port(store: Store, sizes: list[int]) -> Iterator[str]:
    """The application over a store that the test moves on; collects the sizes of its updates in bytes."""
    application = create(store).server

    @application.after_request
    def measure(answer: Response) -> Response:
        if request.path == "/_dash-update-component":
            sizes.append(answer.content_length or 0)
        return answer

    server = create_server(application, host="127.0.0.1", port=0, threads=4)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.effective_port}/"
    finally:
        server.task_dispatcher.shutdown()
        server.close()
        thread.join(10)


CHARTS = """
return arguments[0].map(id => (document.querySelector('#' + id + ' .js-plotly-plot')?.data ?? []).map(
  trace => [trace.name, Array.from(trace.x), Array.from(trace.y)]));
"""


def test_charts_and_tables_in_a_browser_are_those_of_the_newest_view(fleet: Fleet, driver: Any) -> None:
    for moment in range(4):
        base = fleet.at(moment)
    last = base.points[-1]
    points = [replace(last, time_ns=last.time_ns + number * SECOND, sent={"T": float(number)}) for number in range(90)]
    store = fleet.store

    def show(step: int) -> None:
        rows = tuple(replace(row, naks_per_s=1000.0 + step) for row in base.rows)
        now = tuple(points[step : step + 60])
        store._view = replace(base, sequence=100 + step, rows=rows, points=now, interval=0.2)

    show(0)
    graphs = sorted(GRAPHS)
    sizes: list[int] = []
    with on_a_port(store, sizes) as url:
        driver.get(url)
        for step in range(1, 9):
            show(step)
            newest = plain(harmless(parts(store.view, Choice())))
            wanted = [[[line["name"], line["x"], line["y"]] for line in newest[name]["data"]] for name in graphs]
            until(lambda wanted=wanted: driver.execute_script(CHARTS, graphs) == wanted, f"the charts of view {step}")
            if step == 4:
                driver.refresh()
        assert "1,008" in seen(driver, "receivers") or "4,032" in seen(driver, "receivers")
        driver.get("about:blank")  # ends its requests
    assert sorted(sizes)[len(sizes) // 2] * 4 < max(sizes)
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
