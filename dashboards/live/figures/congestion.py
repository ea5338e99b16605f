"""The chart of one stream's congestion control: panels over one time axis, with its events as marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.figures.lines import add_line, times
from heliograph.dashboards.live.figures.panels import Panel, Spacing, stack
from heliograph.dashboards.live.sending import WAITS, Sending
from heliograph.dashboards.live.series import Point
from heliograph.engine.catalogue.outside import Output, outside
from heliograph.monitor.model import Event

__all__ = ["MARKS", "PANELS", "Mark", "Value", "control", "kind_of", "values"]


class Mark(NamedTuple):
    """Display of one kind of event: each has a symbol of its own."""

    text: str
    symbol: str
    colour: str


MARKS: Mapping[str, Mark] = {
    "rate_lowered": Mark("rate lowered", "triangle-down", theme.WATCH),
    "rate_raised": Mark("rate raised", "triangle-up", theme.GOOD),
    "rate_floor": Mark("rate at its minimum", "triangle-down-open", theme.BAD),
    "rate_policy_changed": Mark("other rate policy", "circle-open", theme.FAINT),
    "congestion_on": Mark("congestion", "square", theme.WATCH),
    "congestion_off": Mark("congestion over", "square-open", theme.GOOD),
    "storm_detected": Mark("NAK storm", "x", theme.BAD),
    "storm_ended": Mark("NAK storm over", "x-open", theme.GOOD),
    "receiver_slow": Mark("receiver slow", "diamond", theme.WATCH),
    "receiver_paced": Mark("paced to a receiver", "diamond-tall", theme.WATCH),
    "receiver_suspended": Mark("receiver restricted", "diamond-wide", theme.BAD),
    "receiver_expelled": Mark("receiver expelled", "star", theme.BAD),
    "receiver_readmitted": Mark("receiver readmitted", "diamond-open", theme.GOOD),
    "receiver_forecast": Mark("loss forecast", "hourglass", theme.WATCH),
    "receiver_spared": Mark("receiver spared", "pentagon", theme.FAINT),
    "receiver_advice": Mark("action advised", "hexagon-open", theme.WATCH),
}
"""Events of congestion control by kind: names of events, and a change of the rate by its direction."""


class Value(NamedTuple):
    """One line of a panel."""

    panel: str
    name: str
    values: Sequence[float | None]
    """By point."""


PANELS: Mapping[str, tuple[str, str, str]] = {
    "rate": ("Rate", "KiB/s", "nothing is sent"),
    "loss": ("Loss", "%", "no loss was reported"),
    "window": ("Windows", "packets", "no window limits this stream"),
    "credit": ("Credit", "messages", "no receiver grants credit"),
    "waits": ("Data waits", "% of time", "data did not wait"),
    "naks": ("Requests", "per second", "nothing was requested"),
}
"""Title, unit, and the text of an empty panel, from the top."""

_SPACING = Spacing()
_STORM = "rgba(216,74,63,0.16)"
_DASHED = {"decided": "dash", "repairs sent": "dash", "paced to a slow receiver": "dot", "cut off, % of time": "dot"}


def kind_of(event: Event) -> str | None:
    """Return the kind of an event of congestion control (see MARKS); None for other events."""
    if event.name == "rate_changed":
        before, after = (event.arguments.get(name, 0) or float("inf") for name in ("from", "to"))  # 0: no limit
        return "rate_lowered" if after < before else "rate_raised"
    return event.name if event.name in MARKS else None


def _waits(item: Sending, reason: str) -> float | None:
    return 100 * item.waits[reason] if reason in item.waits else None


def values(points: Sequence[Point], stream: str) -> list[Value]:
    """Return the lines of all panels; those without a value are left out."""
    found = [point.sending.get(stream) for point in points]

    def line(panel: str, name: str, each: Sequence[float | None]) -> Value:
        return Value(panel, name, each)

    def kib(name: str) -> list[float | None]:
        return [getattr(item, name) / 1024 or None if item is not None else None for item in found]

    def plain(name: str) -> list[float | None]:
        return [getattr(item, name) if item is not None else None for item in found]

    def some(name: str, scale: float = 1.0) -> list[float | None]:
        """Return nothing when no point has a value other than 0."""
        each = [getattr(item, name) * scale if item is not None else None for item in found]
        return each if any(each) else [None] * len(each)

    lines = [
        line("rate", "sent", [item.data / 1024 if item is not None else None for item in found]),
        line("rate", "repairs", some("repair_data", 1 / 1024)),
        line("rate", "in force", kib("rate")),
        line("rate", "decided", kib("decided")),
        line("rate", "paced to a slow receiver", kib("paced")),
        line("loss", "decides the rate", some("loss", 100)),
        line("window", "packets permitted", plain("room")),
        line("window", "window of PGMCC", plain("window")),
        line("window", "unacknowledged", plain("unacked")),
        line("window", "repairs waiting", some("waiting")),
        line("credit", "credit left", plain("credit")),
        *(
            line("waits", reason.replace("_", " "), [_waits(item, reason) if item else None for item in found])
            for reason in WAITS
        ),
        line("naks", "NAKs", some("naks")),
        line("naks", "repairs sent", some("repairs")),
        line("naks", "cut off, % of time", some("cut", 100)),
    ]
    return [item for item in lines if any(value is not None for value in item.values)]


def control(points: Sequence[Point], stream: str, events: Iterable[Event]) -> Figure:
    """Rate, loss, windows, credit, waits and requests of a stream; marks and dotted lines are its events.

    The red ground is a NAK storm. The events must be those of the stream; others than of congestion control are left
    out.
    """
    x = times(points)
    figure = theme.figure("", x=x)
    lines = values(points, stream)
    if not lines:
        return figure
    filled = {line.panel for line in lines}
    panels = [
        Panel(key, f"{title}, {unit}" if key in filled else f"{title}: {nothing}", key in filled)
        for key, (title, unit, nothing) in PANELS.items()
    ]
    axes = stack(figure, panels, _SPACING)
    figure.update_layout(legend={"y": -0.05, "yanchor": "top"})
    figure.add_scatter(x=x, y=[None] * len(x), showlegend=False, hoverinfo="skip")  # the panel of events, also empty
    colours = dict.fromkeys(PANELS, 0)
    for line in lines:
        colour = theme.SERIES[colours[line.panel] % len(theme.SERIES)]
        colours[line.panel] += 1
        title, unit, _ = PANELS[line.panel]
        dash = _DASHED.get(line.name, "solid")
        add_line(figure, x, line.values, f"{title}: {line.name}", colour, unit=f",.1f {unit}", dash=dash, width=1.8)
        figure.data[-1]["yaxis"] = axes[line.panel]
    _add_storms(figure, points, x, stream)
    _add_marks(figure, x, events)
    return figure


def _add_storms(figure: Figure, points: Sequence[Point], x: Sequence[str], stream: str) -> None:
    """Add a red ground and a word to each stretch of points with a NAK storm."""
    begun: str | None = None
    for place, point in zip(x, points, strict=True):
        sent = point.sending.get(stream)
        if sent is not None and sent.storm:
            begun = begun or place
        elif begun is not None:
            _add_storm(figure, begun, place)
            begun = None
    if begun is not None:
        _add_storm(figure, begun, x[-1])


def _add_storm(figure: Figure, begun: str, ended: str) -> None:
    rest = {"xref": "x", "yref": "paper"}
    area = {"x0": begun, "x1": ended, "y0": 0, "y1": 1}
    figure.add_shape(type="rect", **area, fillcolor=_STORM, line={"width": 0}, layer="below", **rest)
    figure.add_annotation(text="NAK storm", x=begun, y=0, xanchor="left", yanchor="bottom", showarrow=False, **rest)


def _add_marks(figure: Figure, x: Sequence[str], events: Iterable[Event]) -> None:
    found: dict[str, list[tuple[str, str]]] = {}
    for event in events:
        kind = kind_of(event)
        moment = datetime.fromtimestamp(event.time_ns / 1e9).isoformat(sep=" ", timespec="milliseconds")
        if kind is not None and x and x[0] <= moment <= x[-1]:
            found.setdefault(kind, []).append((moment, outside(event.text or MARKS[kind].text, Output.PLOTLY)))
    for kind, mark in MARKS.items():
        if kind not in found:
            continue
        moments, texts = zip(*found[kind], strict=True)
        figure.add_scatter(
            x=moments,
            y=[0] * len(moments),
            name=mark.text,
            mode="markers",
            marker={
                "symbol": mark.symbol,
                "size": 10,
                "color": mark.colour,
                "line": {"width": 1, "color": mark.colour},
            },
            text=texts,
            hovertemplate="%{text}",
        )
        for moment in moments:
            line = {"color": mark.colour, "width": 1, "dash": "dot"}
            figure.add_shape(
                type="line", xref="x", yref="paper", x0=moment, x1=moment, y0=0, y1=_SPACING.top_of_panels, line=line
            )
