"""The elements of a page, which are made without the constructors of Dash, against those constructors."""

from __future__ import annotations

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
