"""What changed between two drawings: a browser that applies it shows the newer one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest
from dash import Patch, html, no_update
from hypothesis import given
from hypothesis import strategies as st

from heliograph.dashboards.live.differences import difference, plain
from heliograph.dashboards.live.easel import Easel
from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.pages.fleet import Choice, parts
from heliograph.dashboards.live.store import View
from tests.dashboards.views import Fleet

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
