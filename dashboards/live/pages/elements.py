"""The elements of `dash.html`, made in a tenth of the time.

A drawing has more than a thousand elements, and the constructors of Dash look at each property several times, for the
text of an error that never comes. Here the names of the properties are checked, and the element is filled. The elements
are those of Dash: same classes, same content.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import dash

if TYPE_CHECKING:
    from collections.abc import Callable

    from dash import html
    from dash.development.base_component import Component

__all__ = ["html"]


def _maker(kind: type[Component]) -> Callable[..., Component]:
    """Return a function that does what the constructor of a class of elements does."""
    own = {name: value for name, value in vars(kind()).items() if name != "children"}
    known = frozenset(own["_prop_names"])
    wildcards = tuple(own["_valid_wildcard_attributes"])

    def make(children: Any = None, **properties: Any) -> Component:
        if not known.issuperset(properties):
            for name in properties:
                if name not in known and not name.startswith(wildcards):
                    raise TypeError(f"html.{kind.__name__} has no property {name!r}")
        made = object.__new__(kind)
        made.__dict__.update(own, children=children, **properties)
        return made

    return make


if not TYPE_CHECKING:
    html = SimpleNamespace(**{name: _maker(getattr(dash.html, name)) for name in dash.html.__all__})
