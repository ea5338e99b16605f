"""How the live page looks: colours, marks and the frame every chart shares.

A colour never speaks alone: each state has a word and a shape as well.  Series colours are chosen to be told apart by
colour-blind readers (after Okabe and Ito) and to stand out at 3:1 or more from both the light and the dark ground, so
that a figure need not know which of them the reader uses.  Text and grid lines follow the ground by style sheet
(`assets/heliograph.css`, the only other place with colours).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

__all__ = ["BAD", "FAINT", "GOOD", "PERCENTILES", "SERIES", "WATCH", "colours", "figure"]

SERIES = ("#3a86c8", "#d0731f", "#189a76", "#a96bc4", "#a38a00", "#d8577f", "#1f97ab", "#80868f")
GOOD, WATCH, BAD, FAINT = "#189a76", "#c27a00", "#d84a3f", "#80868f"
PERCENTILES: Mapping[str, str] = {"p50": "#3a86c8", "p99": "#189a76", "p99.9": "#c27a00", "max": "#d84a3f"}

_GRID = "rgba(128,134,143,0.22)"
_FONT = "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans Condensed', 'DejaVu Sans', sans-serif"


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name, the same whenever the set of names is the same."""
    return {name: SERIES[index % len(SERIES)] for index, name in enumerate(sorted(set(names)))}


def figure(unit: str, *, x: Sequence[str] = (), y: Mapping[str, Any] | None = None) -> go.Figure:
    """An empty chart in the common frame: time from left to right, values from 0 up.

    Args:
        unit: what the y axis shows.
        x: the times of its points; the axis ends where they do.
        y: settings of the y axis that differ.
    """
    axis = {"gridcolor": _GRID, "linecolor": _GRID, "zeroline": False, "ticks": "", "fixedrange": True}
    drawing = go.Figure()
    drawing.update_layout(
        template=None,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": _FONT, "size": 11, "color": FAINT},
        margin={"l": 56, "r": 12, "t": 26, "b": 24},
        hovermode="x unified",
        hoverlabel={"font": {"family": _FONT, "size": 11}},
        legend={"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom", "font": {"size": 11}},
        showlegend=True,
        uirevision="kept",
        xaxis={**axis, "type": "date", "tickformat": "%H:%M:%S", "nticks": 7, "showgrid": False},
        yaxis={
            **axis,
            "title": {"text": unit, "standoff": 6, "font": {"size": 11}},
            "rangemode": "tozero",
            "nticks": 6,
            **(y or {}),
        },
    )
    if len(x) > 1:
        drawing.update_xaxes(range=[x[0], x[-1]])
    return drawing
