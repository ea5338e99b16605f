"""The shell of a page: what Dash draws of it. The rest goes to the browser as data, and the page's scripts draw it.

Dash asks each component of a page, at each change of any, whether the change concerns it, also when its element is not
on the screen any more. The cells of the tables are most components of a page, and Dash changes none of them. Charts
cost more with Dash than without (`assets/charts.js`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from dash import dcc, html
from dash.development.base_component import Component

from heliograph.dashboards.live.differences import plain

__all__ = ["shell"]


def shell(page: Component, prefix: str, taken: Mapping[str, str]) -> Component:
    """Take some parts out of a page, and add them as data; returns the page, which is changed in place.

    Args:
        page: The whole page.
        prefix: Start of its ids.
        taken: The parts that the browser draws itself: "children" or "figure" by id.
    """
    found = [page, *page._traverse()]
    by_id = {one.id: one for one in found if getattr(one, "id", None)}
    parts = {}
    for name, kind in taken.items():
        if (place := by_id.get(name)) is not None:
            parts[f"{name}.{kind}"] = plain(getattr(place, kind, None))
            if kind == "children":
                place.children = None
    for around in found:
        chart = getattr(around, "children", None)
        if isinstance(chart, dcc.Graph) and taken.get(chart.id) == "figure":
            around.children = html.Div(id=chart.id, className=chart.className, style=chart.style)
    setattr(by_id[f"{prefix}stamp"], "data-parts", json.dumps(parts, separators=(",", ":")))
    return page
