"""The style of the live page: colours, marks and the frame that every chart shares.

Colour is never the only sign: each state has a word and a shape too. The colours of series can be distinguished by
colour-blind readers (after Okabe and Ito). Their contrast is at least 3:1 on the light and on the dark ground, so that
a figure is independent of the ground. Text and grid lines follow the ground by style sheet (`assets/heliograph.css`,
the only other place with colours).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from heliograph.dashboards.live.figure import Figure

__all__ = ["BAD", "FAINT", "GOOD", "PERCENTILES", "SERIES", "WATCH", "colours", "figure"]

SERIES = ("#3a86c8", "#d0731f", "#189a76", "#a96bc4", "#a38a00", "#d8577f", "#1f97ab", "#80868f")
GOOD, WATCH, BAD, FAINT = "#189a76", "#c27a00", "#d84a3f", "#80868f"
PERCENTILES: Mapping[str, str] = {"p50": "#3a86c8", "p99": "#189a76", "p99.9": "#c27a00", "max": "#d84a3f"}

_GRID = "rgba(128,134,143,0.22)"
_FONT = "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans Condensed', 'DejaVu Sans', sans-serif"


def colours(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each name; equal sets of names give equal colours."""
    return {name: SERIES[index % len(SERIES)] for index, name in enumerate(sorted(set(names)))}


def figure(unit: str, *, x: Sequence[str] = (), y: Mapping[str, Any] | None = None) -> Figure:
    """An empty chart in the common frame: time from left to right, values from 0 up.

    Args:
        unit: Unit of the y axis.
        x: Times of the points; the axis ends with them.
        y: Settings of the y axis that differ from the default.
    """
    axis = {"gridcolor": _GRID, "linecolor": _GRID, "zeroline": False, "ticks": "", "fixedrange": True}
    drawing = Figure(
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
            "ticklabeloverflow": "allow",  # without a question of the browser for the place of each label
            **(y or {}),
        },
    )
    if len(x) > 1:
        drawing.update_layout(xaxis={"range": [x[0], x[-1]]})
    return drawing
