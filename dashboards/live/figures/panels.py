"""Panels one above the other on one time axis, below a strip for the marks of events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from heliograph.dashboards.live.figure import Figure

__all__ = ["Panel", "Spacing", "stack"]


class Panel(NamedTuple):
    """One panel, from the top."""

    key: str
    title: str
    is_filled: bool = True
    """Whether it has lines; an empty one is low and has no values."""


class Spacing(NamedTuple):
    """Shares of the height of a chart."""

    marks: float = 0.04
    gap: float = 0.035
    empty: float = 0.05
    """Height of an empty panel, as a share of one with lines."""

    @property
    def top_of_panels(self) -> float:
        """Where the panels begin."""
        return 1 - self.gap - self.marks


def stack(figure: Figure, panels: Iterable[Panel], spacing: Spacing) -> dict[str, str]:
    """Divide a chart into a strip of marks and panels; return the axis of each panel by its key.

    The strip has the axis ``y``, from -1 to 1.
    """
    listed = list(panels)
    weights = {panel.key: 1.0 if panel.is_filled else spacing.empty for panel in listed}
    scale = (1 - spacing.marks - spacing.gap * (len(listed) + 1)) / sum(weights.values())
    style = dict(figure.layout["yaxis"])
    bare = {"showticklabels": False, "showgrid": False, "range": [-1, 1], "title": {"text": ""}}
    top = 1 - spacing.gap
    figure.update_layout(yaxis={**bare, "domain": [top - spacing.marks, top]}, margin={"t": 4})
    figure.update_layout(hoversubplots="axis")
    _add_title(figure, "Events", top)
    top -= spacing.marks + spacing.gap
    axes = {}
    for number, panel in enumerate(listed, 2):
        axes[panel.key] = f"y{number}"
        height = weights[panel.key] * scale
        shown = {**style, "domain": [max(0.0, top - height), top], "title": {"text": ""}, "nticks": 4, "anchor": "x"}
        if not panel.is_filled:
            shown |= bare
        _add_title(figure, panel.title, top)
        figure.update_layout(**{f"yaxis{number}": shown})
        top -= height + spacing.gap
    figure.update_layout(xaxis={"anchor": f"y{len(listed) + 1}"})
    return axes


def _add_title(figure: Figure, text: str, top: float) -> None:
    place = {"xref": "paper", "yref": "paper", "x": 0, "y": top, "xanchor": "left", "yanchor": "bottom"}
    figure.add_annotation(text=text, showarrow=False, **place)
