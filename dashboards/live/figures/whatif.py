"""The chart of a replay: the rate as recorded and as decided with other options, on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.figure import Figure
from heliograph.monitor.lab.whatif import Step, WhatIf

__all__ = ["rates"]


def rates(found: WhatIf | None) -> Figure:
    """The rates of both sides in KiB/s as steps; a gap where there is no limit. None: an empty chart."""
    sides: Sequence[tuple[str, tuple[Step, ...], str, str]] = ()
    if found is not None:
        sides = (
            ("decided", found.recorded.steps, theme.SERIES[0], "solid"),
            ("with these options", found.made.steps, theme.SERIES[1], "dash"),
        )
    ends = [step.time_ns for _, steps, _, _ in sides for step in steps]
    begin = min(ends, default=0)
    end = begin + round(found.seconds * 1e9) if found is not None else 0
    figure = theme.figure("KiB/s", x=[_time(begin), _time(end)] if end > begin else ())
    for name, steps, colour, dash in sides:
        if not steps:
            continue
        figure.add_scatter(
            x=[*(_time(step.time_ns) for step in steps), _time(max(end, steps[-1].time_ns))],
            y=[step.rate / 1024 or None for step in (*steps, steps[-1])],
            name=name,
            mode="lines",
            line={"color": colour, "width": 1.8, "dash": dash, "shape": "hv"},
            hovertemplate="%{y:,.1f} KiB/s",
            connectgaps=False,
        )
    return figure


def _time(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9).isoformat(sep=" ", timespec="milliseconds")
