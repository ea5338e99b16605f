"""The shell of a page: what Dash draws of it. The rest goes to the browser as data, and `assets/elements.js` draws it.

Dash asks each component of a page, at each change of any, whether the change concerns it, also when its element is not
on the screen any more. The cells of the tables are most components of a page, and Dash changes none of them.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from dash.development.base_component import Component

from heliograph.dashboards.live.differences import plain

__all__ = ["shell"]


def shell(page: Component, prefix: str, names: Collection[str]) -> Component:
    """Take the content of some parts out of a page, and add it as data; returns the page, which is changed in place.

    Args:
        page: The whole page.
        prefix: Start of its ids.
        names: Ids of the parts whose children the browser draws itself.
    """
    by_id = {found.id: found for found in page._traverse() if getattr(found, "id", None)}
    parts = {}
    for name in names:
        if (place := by_id.get(name)) is not None:
            parts[f"{name}.children"] = plain(getattr(place, "children", None))
            place.children = None
    setattr(by_id[f"{prefix}stamp"], "data-parts", json.dumps(parts, separators=(",", ":")))
    return page
