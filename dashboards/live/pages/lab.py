"""The latency lab: percentile spectra of receivers, topics, windows and uploaded logs, and jitter over time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dash import dcc

from heliograph.dashboards.live.curves import Curve, Window, curves, title
from heliograph.dashboards.live.figures.lab import jitter_strip, spectra
from heliograph.dashboards.live.figures.lines import MOST_LINES
from heliograph.dashboards.live.pages import numbers, tables
from heliograph.dashboards.live.pages.address import refused
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.head import head, notes
from heliograph.dashboards.live.pages.parts import card, graph, named
from heliograph.dashboards.live.series import EVERYTHING, Group, Point
from heliograph.dashboards.live.store import View
from heliograph.dashboards.live.uploads import MOST_BYTES, Uploads
from heliograph.monitor.latency import jitter, percentiles

__all__ = ["CHOICES", "PLACES", "Selection", "drawn", "layout", "log_options", "parts", "selection"]

PLACES: Mapping[str, str] = {
    "lab-spectrum": "figure",
    "lab-spectrum-twin": "children",
    "lab-jitter": "figure",
    "lab-jitter-twin": "children",
    "lab-lines": "options",
    "lab-notes": "children",
}
"""Ids of the parts that change with the view, and the property that holds them."""

CHOICES = ("lab-lines", "lab-windows", "lab-recovered", "lab-logs")
"""Ids of the selections. Each is a list of values, in the address without the prefix."""

_WINDOWS: tuple[Window, ...] = ((0, 10), (0, 30), (0, 60), (30, 60))
_DEFAULT_WINDOW: Window = (0, 60)
_WINDOW = re.compile(r"([0-9]{1,4})-([0-9]{1,4})")
_LONGEST_WINDOW = 3600
_MOST_CHOSEN = 12
_FRACTIONS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999, "max": 1.0}


@dataclass(frozen=True, slots=True)
class Selection:
    """The selections of one reader."""

    lines: tuple[Group, ...] = (EVERYTHING,)
    windows: tuple[Window, ...] = (_DEFAULT_WINDOW,)
    apart: bool = False
    """Whether recovered messages are apart."""
    logs: tuple[str, ...] = ()
    """Keys of uploaded logs."""


def _groups(points: Sequence[Point]) -> list[Group]:
    return [EVERYTHING, *sorted({group for point in points for group in point.latency if group != EVERYTHING})]


def _window(text: str) -> Window | None:
    found = _WINDOW.fullmatch(text)
    ends = (int(found[1]), int(found[2])) if found else (0, 0)
    return ends if ends[0] < ends[1] <= _LONGEST_WINDOW else None


def _text(window: Window) -> str:
    return f"{window[0]}-{window[1]}"


def selection(values: Mapping[str, Sequence[str]], view: View, uploads: Uploads) -> tuple[Selection, list[str]]:
    """Return the possible part of a selection, and messages about the rest.

    Args:
        values: Values by name: lines, windows, recovered, logs; from an address or a browser.
        view: The view that the page shows.
        uploads: The uploaded logs.
    """
    said: list[str] = []
    given = {name: [str(value) for value in values.get(name) or ()] for name in ("lines", "windows", "logs")}
    for name, asked in given.items():
        if len(set(asked)) > _MOST_CHOSEN:
            said.append(f"Only the first {_MOST_CHOSEN} {name} are shown.")
        given[name] = list(dict.fromkeys(asked))[:_MOST_CHOSEN]
    known = set(_groups(view.points))
    said += [refused("Line", line, "has no latency at present") for line in given["lines"] if line not in known]
    said += [refused("Window", text, "is not possible") for text in given["windows"] if _window(text) is None]
    lost = [key for key in given["logs"] if uploads.get(key) is None]
    said += [refused("Log", key, "is not kept any more; upload it again") for key in lost]
    together = list(values.get("recovered") or ("together",))
    if not set(together) <= {"apart", "together"}:
        said.append(refused("Recovered", str(together[0]), "is not possible"))
    logs = tuple(key for key in given["logs"] if key not in lost)
    lines = tuple(line for line in given["lines"] if line in known)
    windows = tuple(found for text in given["windows"] if (found := _window(text)) is not None)
    return Selection(
        lines or (() if logs and not given["lines"] else (EVERYTHING,)),
        windows or (_DEFAULT_WINDOW,),
        "apart" in together,
        logs,
    ), said


def drawn(view: View, chosen: Selection, uploads: Uploads) -> tuple[list[Curve], list[str]]:
    """Return the curves of a selection, and notes about those that cannot be drawn as asked."""
    found, said = curves(view.spectrum_points, chosen.lines, chosen.windows, apart=chosen.apart)
    for key in chosen.logs:
        if (log := uploads.get(key)) is not None:
            found += log.curves
            said += log.notes
    if len(found) > MOST_LINES:
        said.append(f"{len(found) - MOST_LINES} of {len(found)} lines are not drawn; the table has them all.")
    return found, said


def parts(view: View, chosen: Selection, uploads: Uploads) -> dict[str, Any]:
    """Return the content by part (see PLACES)."""
    found, said = drawn(view, chosen, uploads)
    return {
        "lab-spectrum": spectra(found),
        "lab-spectrum-twin": _spectrum_twin(found),
        "lab-jitter": jitter_strip(view.points, chosen.lines),
        "lab-jitter-twin": _jitter_twin(view.points, chosen.lines),
        "lab-lines": [{"label": title(group), "value": group} for group in _groups(view.points)],
        "lab-notes": notes(said),
    }


def log_options(uploads: Uploads) -> list[dict[str, str]]:
    """Return the uploaded logs as options, newest first."""
    return [{"label": log.name, "value": log.key} for log in uploads.all()]


def layout(
    view: View, state: Mapping[str, Any], chosen: Selection, uploads: Uploads, said: Sequence[str] = ()
) -> html.Main:
    """Return the whole page.

    Args:
        view: The view to show.
        state: Its stamp.
        chosen: The selection of the reader.
        uploads: The uploaded logs.
        said: Messages about the address of the page.
    """
    found = parts(view, chosen, uploads)
    windows = list(dict.fromkeys((*_WINDOWS, *chosen.windows)))
    return html.Main(
        [
            *head("/lab", "lab-", state, view, said),
            html.H1("Latency lab", className="title"),
            html.Div(
                [
                    _picker("lab-lines", "Lines", found["lab-lines"], chosen.lines),
                    _picker(
                        "lab-windows",
                        "Windows",
                        [{"label": _window_text(window), "value": _text(window)} for window in windows],
                        [_text(window) for window in chosen.windows],
                    ),
                    _picker("lab-logs", "Uploaded logs", log_options(uploads), chosen.logs),
                    named(
                        "Recovered messages",
                        dcc.Checklist(
                            id="lab-recovered",
                            options=[{"label": "recovered messages apart", "value": "apart"}],
                            value=["apart"] if chosen.apart else [],
                        ),
                        kind="choice",
                    ),
                    dcc.Upload(
                        html.Button("Upload an HDR log", className="quiet"), id="lab-upload", className="upload"
                    ),
                    html.Button("Download as HDR log", id="lab-hlog", className="quiet", n_clicks=0),
                    html.Button("Download as CSV", id="lab-csv", className="quiet", n_clicks=0),
                    dcc.Download(id="lab-download"),
                    dcc.Store(id="lab-file"),
                ],
                className="controls",
            ),
            html.P(f"A log of at most {MOST_BYTES >> 20} MiB, plain or gzip.", id="lab-said", role="status"),
            html.Div(found["lab-notes"], id="lab-notes", className="notes", role="status"),
            card(
                "Percentile spectrum",
                "every nine has the same width; dotted: recovered; band: the error of the clocks",
                graph("lab-spectrum", found["lab-spectrum"], "Percentile spectrum", "420px"),
                _twin("lab-spectrum-twin", found),
            ),
            card(
                "Jitter",
                "p99.9 - p50 of each interval",
                graph("lab-jitter", found["lab-jitter"], "Jitter"),
                _twin("lab-jitter-twin", found),
            ),
        ]
    )


def _twin(place: str, found: Mapping[str, Any]) -> html.Details:
    return html.Details([html.Summary("As a table"), html.Div(found[place], id=place)], className="twin scroll")


def _picker(place: str, name: str, options: Sequence[Mapping[str, str]], value: Sequence[str]) -> html.Div:
    box = dcc.Dropdown(id=place, options=list(options), value=list(value), multi=True, placeholder="none")
    return named(name, html.Label(name, htmlFor=place), box, kind="picker")


def _window_text(window: Window) -> str:
    newer, older = window
    return f"last {older} s" if newer == 0 else f"{newer} to {older} s ago"


def _clock(curve: Curve) -> str:
    if curve.shift is None:
        return "not known" if curve.group else "not in the log"
    low, high = curve.shift
    return "one clock" if (low, high) == (0, 0) else f"{_signed(low)} to {_signed(high)}"


def _signed(value_ns: int) -> str:
    return f"{'-' if value_ns < 0 else '+'}{numbers.latency(abs(value_ns))}"


def _spectrum_twin(found: Sequence[Curve]) -> html.Table:
    rows = [
        (
            curve.name,
            (
                numbers.count(curve.histogram.count),
                *(numbers.latency(value) for value in percentiles(curve.histogram, tuple(_FRACTIONS.values()))),
                numbers.latency(jitter(curve.histogram)),
                _clock(curve),
            ),
        )
        for curve in found
    ]
    return tables.twin("Percentiles", ("values", *_FRACTIONS, "p99.9 - p50", "error of the clocks"), rows)


def _jitter_twin(points: Sequence[Point], groups: Sequence[Group]) -> html.Table:
    rows = []
    for group in groups:
        values = [item["p99.9"] - item["p50"] for point in points if (item := point.latency.get(group))]
        if values:
            shown = (values[-1], min(values), max(values))
            rows.append((title(group), tuple(numbers.latency(value) for value in shown)))
    return tables.twin("Jitter", ("newest", "lowest", "highest"), rows)
