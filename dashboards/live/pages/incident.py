"""The page of a flight recording: the unusual stretch in words, all curves on one time axis, and each tick."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dash import dcc

from heliograph.dashboards.live.figures.incident import height_of, incident, shown_curves, x_of
from heliograph.dashboards.live.pages import tables
from heliograph.dashboards.live.pages.address import refused
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.head import head, notes
from heliograph.dashboards.live.pages.parts import card, cell, chart, named, picker, table, tile
from heliograph.dashboards.live.recordings import MOST_BYTES, Incident, NotARecording, Shelf
from heliograph.dashboards.live.store import View
from heliograph.engine.catalogue.times import time_of_day
from heliograph.monitor.flight.curves import Curve
from heliograph.monitor.flight.deviations import METHOD
from heliograph.monitor.flight.study import Study
from heliograph.monitor.flight.text import findings_texts, head_lines, moment, shown
from heliograph.monitor.text import duration_text

__all__ = [
    "CHOICES",
    "PLACES",
    "SPANS",
    "Choice",
    "at_cursor",
    "choice",
    "drawn",
    "layout",
    "nothing",
    "options",
    "parts",
    "selected",
    "span_of",
    "tick_of",
    "unchosen",
]

PLACES: Mapping[str, str] = {
    "inc-verdict": "children",
    "inc-tiles": "children",
    "inc-axis": "figure",
    "inc-axis-box": "style",
    "inc-axis-twin": "children",
    "inc-events": "children",
}
"""Ids of the parts that change with the recording and the span, and the property that holds them."""

CHOICES = ("inc-recording", "inc-span", "inc-at")
"""Ids of the selections, in the address without the prefix."""

SPANS: Mapping[str, str] = {
    "whole": "the whole recording",
    "unusual": "the unusual stretch",
    "trigger": "2 s around the trigger",
    "10": "10 s around the cursor",
    "1": "1 s around the cursor",
    "0.2": "0.2 s around the cursor",
}
"""Spans of the chart, by their value in the address."""

_MARGIN_SECONDS = 0.25
_AROUND_TRIGGER_SECONDS = 1.0
_MOST_ROWS = 60


@dataclass(frozen=True, slots=True)
class Choice:
    """The selection of one reader."""

    recording: str = ""
    """Key of the recording; empty: none."""
    span: str = "whole"
    at: int | None = None
    """Number of the tick with the cursor; None: the begin of the unusual stretch."""


def options(shelf: Shelf) -> list[dict[str, str]]:
    """Return the recordings as options."""
    return [{"label": name, "value": key} for key, name in shelf.options()]


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def choice(values: Mapping[str, Sequence[str]], shelf: Shelf) -> tuple[Choice, list[str]]:
    """Return the possible part of a selection, and messages about the rest.

    Args:
        values: Values by name: recording, span, at, from an address.
        shelf: The recordings.
    """
    given = {name: str((values.get(name) or [""])[0]) for name in ("recording", "span", "at")}
    known = [key for key, _ in shelf.options()]
    said = []
    key = given["recording"]
    if key and key not in known:
        said.append(refused("Recording", key, "is not there, or not any more; upload it again"))
        key = ""
    if given["span"] and given["span"] not in SPANS:
        said.append(refused("Span", given["span"], "is not possible"))
    at = _number(given["at"])
    if given["at"] and at is None:
        said.append(refused("Tick", given["at"], "is not a number"))
    return Choice(key, given["span"] if given["span"] in SPANS else "whole", at), said


def selected(given: Mapping[str, Any]) -> Choice:
    """Return the selection of the controls of a browser; an impossible span or tick is replaced by the default.

    Args:
        given: Values by id.
    """
    span = str(given.get("inc-span") or "")
    at = given.get("inc-at")
    number = _number(str(int(at)) if isinstance(at, float) and at.is_integer() else str(at or ""))
    return Choice(str(given.get("inc-recording") or ""), span if span in SPANS else "whole", number)


def tick_of(study: Study, at: int | None) -> int:
    """Return the position of the cursor: the tick with this number, else the next one, else the last."""
    if at is None:
        return study.findings.first if study.findings is not None else study.focus
    numbers = study.recording.numbers
    return min(int(np.searchsorted(np.array(numbers), at)), len(numbers) - 1)


def span_of(study: Study, span: str, cursor: int) -> tuple[int, int]:
    """Return the positions of the first and the last tick of a span.

    A span around the cursor moves in steps of half its length, so that the chart stays while the cursor moves.
    """
    times = study.recording.times
    trigger = study.recording.trigger
    if span == "unusual" and study.findings is not None:
        low, high = float(times[study.findings.first]), float(times[study.findings.last])
        margin = max(_MARGIN_SECONDS, (high - low) / 4)
        low, high = low - margin, high + margin
    elif span == "trigger" and trigger is not None:
        middle = float(times[trigger.position])
        low, high = middle - _AROUND_TRIGGER_SECONDS, middle + _AROUND_TRIGGER_SECONDS
    elif span in ("10", "1", "0.2"):
        length = float(span)
        middle = round(float(times[cursor]) / (length / 2)) * (length / 2)
        low, high = middle - length / 2, middle + length / 2
    else:
        low, high = float(times[0]), float(times[-1])
    first, last = (int(np.searchsorted(times, edge, side)) for edge, side in ((low, "left"), (high + 1e-9, "right")))  # type: ignore[call-overload]
    first = min(max(0, first), len(times) - 1)
    return first, min(max(first + 1, last - 1), len(times) - 1)


def parts(item: Incident, chosen: Choice) -> dict[str, Any]:
    """Return the content by part (see PLACES)."""
    study = item.study
    cursor = tick_of(study, chosen.at)
    first, last = span_of(study, chosen.span, cursor)
    return {
        "inc-verdict": _verdict(study),
        "inc-tiles": _tiles(item),
        "inc-axis": incident(study, first, last, cursor),
        "inc-axis-box": {"height": f"{height_of(study)}px"},
        "inc-axis-twin": _twin(study, first, last),
        "inc-events": _events(study, first, last, cursor),
    }


def nothing(headline: str, *more: str, tone: str = "idle") -> dict[str, Any]:
    """Return the content by part for a page without a recording."""
    return {
        "inc-verdict": _section(tone, headline, more),
        "inc-tiles": [],
        "inc-axis": {"data": [], "layout": {"xaxis": {"visible": False}, "yaxis": {"visible": False}}},
        "inc-axis-box": {"height": "0px"},
        "inc-axis-twin": [],
        "inc-events": [],
    }


def at_cursor(study: Study, cursor: int) -> dict[str, Any]:
    """Return the parts that follow the cursor: its line, the time, and the values of the tick."""
    recording = study.recording
    first, last = recording.numbers[0], recording.numbers[-1]
    return {
        "inc-line": {"x": x_of(recording.wall_ns[cursor], study), "time": moment(recording.wall_ns[cursor])},
        "inc-when": _when(study, cursor),
        "inc-values": _values(study, cursor),
        "inc-at": {"min": first, "max": last, "value": recording.numbers[cursor]},
    }


def layout(
    view: View,
    state: Mapping[str, Any],
    chosen: Choice,
    shelf: Shelf,
    said: Sequence[str] = (),
) -> html.Main:
    """Return the whole page.

    Args:
        view: The view of the fleet, for the head.
        state: Its stamp.
        chosen: The selection of the reader.
        shelf: The recordings.
        said: Messages about the address of the page.
    """
    item, found = _opened(shelf, chosen)
    moving: dict[str, Any] = {"inc-line": None, "inc-when": "", "inc-values": [], "inc-at": {"min": 0, "max": 0}}
    if item is not None:
        moving = at_cursor(item.study, tick_of(item.study, chosen.at))
    spans = [{"label": name, "value": value} for value, name in SPANS.items()]
    listed = options(shelf)
    kept = chosen.recording if item is not None else ""
    return html.Main(
        [
            *head("/incident", "inc-", state, view, said),
            html.Div(
                [
                    picker("inc-recording", "Recording", listed, kept, "choose a recording"),
                    picker("inc-span", "Shown", spans, chosen.span, "the whole recording"),
                    html.Button("Read again", id="inc-again", className="quiet", n_clicks=0),
                    dcc.Upload(
                        html.Button("Upload a recording", className="quiet"), id="inc-upload", className="upload"
                    ),
                    html.Button("Download as HTML", id="inc-export", className="quiet", n_clicks=0),
                    dcc.Download(id="inc-download"),
                    dcc.Store(id="inc-file"),
                    dcc.Store(id="inc-drawn", data=drawn(item, chosen)),
                    dcc.Store(id="inc-line", data=moving["inc-line"]),
                ],
                className="controls",
            ),
            html.P(f"A flight recording of at most {MOST_BYTES >> 20} MiB.", id="inc-said", role="status"),
            html.Div(found["inc-verdict"], id="inc-verdict"),
            html.Dl(found["inc-tiles"], id="inc-tiles", className="tiles"),
            html.Div(
                [
                    named(
                        "Cursor",
                        html.Label("Cursor: arrow keys move it by one tick", htmlFor="inc-at"),
                        dcc.Input(id="inc-at", type="range", step=1, className="cursor", **moving["inc-at"]),
                        html.Span(moving["inc-when"], id="inc-when"),
                        kind="scrub",
                    )
                ],
                className="controls",
            ),
            _chart(found),
            card("At the cursor", "values of one tick", html.Div(moving["inc-values"], id="inc-values")),
            card("Events", "of the span shown", html.Div(found["inc-events"], id="inc-events")),
        ]
    )


def _chart(found: Mapping[str, Any]) -> html.Section:
    """The chart in a box whose height follows the number of its panels."""
    section = chart(
        "inc-axis",
        "All curves",
        "on one time axis; marks and dotted lines: events; blue ground: the unusual stretch; red line: the cursor",
        found,
        height="100%",
    )
    body = section.children
    body[1] = html.Div(body[1], id="inc-axis-box", className="box", style=found["inc-axis-box"])
    return section


def _opened(shelf: Shelf, chosen: Choice) -> tuple[Incident | None, dict[str, Any]]:
    if not chosen.recording:
        return None, unchosen(shelf)
    try:
        item = shelf.opened(chosen.recording)
    except NotARecording as error:
        return None, nothing(f"{chosen.recording} is not shown: {error}", tone="bad")
    return item, parts(item, chosen)


def unchosen(shelf: Shelf) -> dict[str, Any]:
    """Return the content by part before a recording is chosen."""
    more = ["Each instance records its last seconds, every 10 ms; a trigger keeps them (heliograph ctl freeze)."]
    if shelf.trouble:
        more.append(shelf.trouble)
    return nothing("Choose a recording, or upload one" if shelf.options() else "No recording is in reach", *more)


def drawn(item: Incident | None, chosen: Choice) -> list[Any] | None:
    """Return what the chart shows, to know whether another choice needs another chart."""
    if item is None:
        return None
    cursor = tick_of(item.study, chosen.at)
    return [item.key, str(item.read_ns), chosen.span, *span_of(item.study, chosen.span, cursor)]


def _section(tone: str, headline: str, more: Sequence[str]) -> html.Section:
    body: list[Any] = [html.H1(headline)]
    if more:
        body.append(html.Ul([html.Li(text) for text in more]))
    return html.Section(body, className=f"verdict {tone}")


def _verdict(study: Study) -> html.Section:
    """The recording and its unusual stretch in words."""
    headline, *rest = findings_texts(study)
    section = _section("watch" if rest else "good", headline, rest)
    section.children += [html.P(head_lines(study)[0]), html.P(METHOD, className="method")]
    if study.recording.damage:
        damage = [f"damaged: {text}" for text in study.recording.damage[:3]]
        section.children.extend(notes(damage))
    return section


def _tiles(item: Incident) -> list[html.Div]:
    study = item.study
    recording, header = study.recording, study.recording.header
    steps = np.diff(recording.times)
    missing = sum(gap.ticks for gap in recording.gaps)
    tiles = [
        tile("Instance", header.name, f"process {header.pid}"),
        tile("Recording", f"{recording.seconds:.2f} s", ""),
        tile(
            "Ticks",
            f"{len(recording.numbers):,}",
            f"of {duration_text(float(np.median(steps)) * 1e9)}" if len(steps) else "",
        ),
        tile("Missing ticks", f"{missing:,}", "", "watch" if missing else ""),
        tile("Objects", f"{len(recording.tracks):,}", ""),
        tile("Events", f"{len(recording.events):,}", ""),
    ]
    if item.is_ring:
        tiles.append(tile("Read at", time_of_day(item.read_ns), "the ring goes on: read again"))
    return tiles


def _when(study: Study, cursor: int) -> str:
    recording = study.recording
    at = f"{moment(recording.wall_ns[cursor])}, {recording.times[cursor]:+.3f} s, tick {recording.numbers[cursor]:,}"
    found = study.findings
    if found is None:
        return at
    away = float(recording.times[cursor] - recording.times[found.first])
    return f"{at}; {abs(away):.3f} s {'before' if away < 0 else 'after'} the unusual stretch begins"


def _shown(value: float, curve: Curve) -> str:
    unit = curve.spec.unit
    bare = unit.startswith("B") or unit in ("ns", "millionths") or math.isnan(value)
    return shown(value, unit) if bare else f"{shown(value, unit)} {unit}"


def _values(study: Study, cursor: int) -> html.Div:
    """The values of one tick beside those of the tick before and the usual ones."""
    found = study.findings
    deviating = {
        item.curve.spec.key for item in (found.deviations if found else ()) if item.first <= cursor <= item.last
    }
    rows = []
    for curve in shown_curves(study):
        values = curve.values
        known = values[~np.isnan(values)]
        is_loud = curve.spec.key in deviating
        rows.append(
            html.Tr(
                [
                    html.Td(html.Strong(curve.spec.title) if is_loud else curve.spec.title),
                    cell(_shown(float(values[cursor]), curve), "n"),
                    cell(_shown(float(values[cursor - 1]) if cursor else math.nan, curve), "n"),
                    cell(_shown(float(np.median(known)) if len(known) else math.nan, curve), "n"),
                    cell("deviates" if is_loud else ""),
                ],
                className="watch" if is_loud else None,
            )
        )
    heads = (("Curve", ""), ("At the cursor", "n"), ("One tick before", "n"), ("Median", "n"), ("", ""))
    return html.Div(table(heads, rows, "Values at the cursor"))


def _twin(study: Study, first: int, last: int) -> html.Table:
    """Least, median and greatest value of each line of the chart."""
    rows = []
    for curve in shown_curves(study):
        values = curve.values[first : last + 1]
        known = values[~np.isnan(values)]
        figures = (known.min(), np.median(known), known.max()) if len(known) else (math.nan,) * 3
        when = moment(study.recording.wall_ns[first + int(np.nanargmax(values))]) if len(known) else ""
        rows.append(
            (
                f"{curve.spec.group}: {curve.spec.title}",
                (*(_shown(float(value), curve) for value in figures), when),
            )
        )
    return tables.twin("All curves", ("least", "median", "greatest", "at"), rows)


def _events(study: Study, first: int, last: int, cursor: int) -> html.Div:
    """The events of a span; if there are too many, those nearest to the cursor."""
    inside = [(position, event) for position, event in study.recording.events if first <= position <= last]
    near = sorted(inside, key=lambda pair: abs(pair[0] - cursor))[:_MOST_ROWS]
    if not near:
        return html.Div(html.P("No event in this span.", className="nothing"))
    rows = [
        html.Tr(
            [
                cell(moment(event.time_ns), "muted"),
                cell(event.severity),
                html.Td(html.Strong(event.name)),
                html.Td(event.text, className="why"),
            ]
        )
        for _, event in sorted(near, key=lambda pair: pair[1].time_ns)
    ]
    heads = (("Time", ""), ("Severity", ""), ("Event", ""), ("Text", ""))
    body: list[Any] = [table(heads, rows, "Events of the recording")]
    if len(inside) > len(near):
        body.append(html.P(f"and {len(inside) - len(near):,} more in this span", className="more"))
    return html.Div(body)
