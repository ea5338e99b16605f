"""A chart as plain data, in Plotly's JSON format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Figure"]


class Figure:
    """The traces and the layout of a chart, with the names of `plotly.graph_objects`.

    `plotly.graph_objects` checks and copies each value, which took four fifths of the time of a view. Nothing is
    checked here: the tests give the charts to `plotly.graph_objects`, which rejects what the format does not have.
    """

    __slots__ = ("data", "layout")

    def __init__(self, **layout: Any) -> None:
        """Create a chart without traces."""
        self.data: list[dict[str, Any]] = []
        self.layout: dict[str, Any] = layout

    def add_scatter(self, **trace: Any) -> None:
        """Add lines, markers or both; settings that are None are left out."""
        self._add("scatter", trace)

    def add_bar(self, **trace: Any) -> None:
        """Add bars; settings that are None are left out."""
        self._add("bar", trace)

    def add_annotation(self, **annotation: Any) -> None:
        """Add a text."""
        self.layout.setdefault("annotations", []).append(annotation)

    def add_shape(self, **shape: Any) -> None:
        """Add a line or a rectangle."""
        self.layout.setdefault("shapes", []).append(shape)

    def update_layout(self, **layout: Any) -> None:
        """Change settings of the layout; the other settings of a nested one stay."""
        _merge(self.layout, layout)

    def to_plotly_json(self) -> dict[str, Any]:
        """Return the chart for Dash, which calls this before it writes JSON."""
        return {"data": self.data, "layout": self.layout}

    def _add(self, kind: str, trace: Mapping[str, Any]) -> None:
        self.data.append({"type": kind, **{name: value for name, value in trace.items() if value is not None}})


def _merge(into: dict[str, Any], changes: Mapping[str, Any]) -> None:
    for name, value in changes.items():
        inner = into.get(name)
        if isinstance(inner, dict) and isinstance(value, Mapping):
            _merge(inner, value)
        else:
            into[name] = value
