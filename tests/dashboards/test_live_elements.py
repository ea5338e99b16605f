"""The elements of a page: made without the constructors of Dash, as those make them, and drawn in a browser."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from random import Random
from typing import Any

import dash
import pytest

from heliograph.dashboards.live.differences import plain
from heliograph.dashboards.live.pages.elements import html

GIVEN: dict[str, Any] = {"id": "a", "className": "n", "title": None, "data-page": "/", "aria-label": "A"}


@pytest.mark.parametrize("name", dash.html.__all__)
def test_an_element_is_that_of_dash(name: str) -> None:
    children = ["x", dash.html.I("y")]
    made, of_dash = (getattr(place, name)(children, **GIVEN) for place in (html, dash.html))
    assert type(made) is type(of_dash)
    # Not `str()`: Dash prints data-* and aria-* in the order of a set, which differs from one interpreter to the next.
    assert vars(made) == vars(of_dash)
    empty = getattr(html, name)()
    assert vars(empty) == vars(getattr(dash.html, name)())
    for one in (made, empty, of_dash):
        assert plain(one) == as_dash_writes(one)


def as_dash_writes(part: Any) -> Any:
    if hasattr(part, "to_plotly_json"):
        return as_dash_writes(part.to_plotly_json())
    if isinstance(part, dict):
        return {name: as_dash_writes(item) for name, item in part.items()}
    return [as_dash_writes(item) for item in part] if isinstance(part, list) else part


def test_components_with_further_properties_are_written_as_dash_writes_them() -> None:
    link = dash.dcc.Link("Grid", href="/grid", refresh=False)
    assert plain(link) == as_dash_writes(link)


def test_a_property_that_an_element_has_not_is_refused() -> None:
    with pytest.raises(TypeError, match="Td has no property 'colspan'"):
        html.Td("x", colspan=2)


DRAW = """
const [before, after] = arguments, place = document.createElement("div"), fresh = document.createElement("div");
document.body.replaceChildren(place, fresh);
heliographDraw(place, undefined, before);
const link = place.querySelector("a");
const rows = new Map(Array.from(place.querySelectorAll("tr"), row => [row.title, row]));
link?.focus();
heliographDraw(place, before, after);
heliographDraw(fresh, undefined, after);
return {
  drawn: place.innerHTML,
  wanted: fresh.innerHTML,
  stayed: Array.from(place.querySelectorAll("tr")).filter(row => rows.get(row.title) === row).map(row => row.title),
  focused: document.activeElement === link ? link.closest("tr").title : null,
};
"""


def table(rows: Mapping[str, int]) -> Any:
    """A table with a link in each row, as JSON: a figure by the name of the row."""
    body = [
        html.Tr([html.Td(html.A(name, href=f"/receiver?instance={name}")), html.Td(str(value))], key=name, title=name)
        for name, value in rows.items()
    ]
    return plain(html.Table(html.Tbody(body)))


def test_rows_move_with_their_elements_and_the_focus(driver: Any) -> None:
    driver.execute_script((files("heliograph.dashboards.live") / "assets" / "elements.js").read_text())
    random, followed = Random(5), 0
    for _ in range(200):
        before, after = (
            {name: random.randrange(4) for name in random.sample("abcdefgh", random.randrange(9))} for _ in range(2)
        )
        found = driver.execute_script(DRAW, table(before), table(after))
        assert found["drawn"] == found["wanted"], (before, after)
        assert found["stayed"] == [name for name in after if name in before], (before, after)
        first = next(iter(before), None)
        assert found["focused"] == (first if first in after else None), (before, after)
        followed += first is not None and first in after
    assert followed > 50
