"""The head of every page: its name, the links to the other pages, how current the page is, and the pause."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from dash import dcc

from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.store import Service, Status, View

__all__ = ["PAGES", "head", "notes", "stamp", "taken"]

PAGES: Mapping[str, str] = {
    "/": "Fleet",
    "/grid": "Grid",
    "/alerts": "Alerts",
    "/topic": "Topic",
    "/receiver": "Receiver",
    "/congestion": "Congestion",
    "/whatif": "What if",
    "/stores": "Stores",
    "/lab": "Latency lab",
    "/history": "History",
    "/incident": "Incident",
    "/detail": "Detail",
    "/control": "Control",
}
"""Address and name of each page, in the order of the links on every page."""

_STATES: Mapping[Service, tuple[str, str, str]] = {
    Service.STARTING: ("starting", "◌", "idle"),
    Service.LIVE: ("live", "●", "good"),
    Service.STALE: ("stale", "◑", "watch"),
    Service.EMPTY: ("live", "○", "idle"),
}


def stamp(view: View, status: Status) -> dict[str, Any]:
    """Return how current a page is, for the browser."""
    word, shape, tone = _STATES[status.service]
    return {
        "sequence": view.sequence,
        "interval": view.interval,
        "word": word,
        "shape": shape,
        "tone": tone,
        "reason": status.reason,
    }


def taken(view: View) -> str:
    """Return the time of the newest sample as text, and that of the latencies and charts where it is older."""
    if not view.time_ns:
        return "no sample yet"
    said = f"sample of {datetime.fromtimestamp(view.time_ns / 1e9):%H:%M:%S}"
    if view.whole_ns == view.time_ns:
        return said
    return f"{said}, latencies and charts of {datetime.fromtimestamp(view.whole_ns / 1e9):%H:%M:%S}"


def notes(texts: Sequence[str]) -> list[html.P]:
    """Return messages for the reader as paragraphs."""
    return [html.P(text) for text in texts]


def head(page: str, prefix: str, state: Mapping[str, Any], view: View, said: Sequence[str]) -> list[Any]:
    """Return the head of a page, and what the browser needs to follow it (`assets/state.js`).

    Args:
        page: Address of the page.
        prefix: Start of the ids, so that each page has its own.
        state: The stamp of the first view.
        view: The first view.
        said: Messages about the address of the page.
    """
    links = [
        html.Span(name, className="here", **{"aria-current": "page"})
        if address == page
        else dcc.Link(name, href=address, refresh=False)
        for address, name in PAGES.items()
    ]
    return [
        html.Div(id=f"{prefix}stamp", hidden=True, **{"data-page": page, "data-stamp": json.dumps(state)}),
        html.Header(
            [
                html.Div(["Heliograph", html.Span("live")], className="brand"),
                html.Nav(links, className="pages", **{"aria-label": "Pages"}),
                html.Span(
                    [
                        html.Span(
                            state["shape"], id=f"{prefix}state-shape", className="shape", **{"aria-hidden": "true"}
                        ),
                        html.Span(state["word"], id=f"{prefix}state-word", role="status"),
                        html.Small(state["reason"], id=f"{prefix}state-reason"),
                    ],
                    id=f"{prefix}state",
                    className=f"pill {state['tone']}",
                ),
                html.Span(className="space"),
                html.Span(taken(view), id=f"{prefix}taken", className="taken"),
                html.Button("Pause", id=f"{prefix}pause", className="quiet", n_clicks=0, **{"aria-pressed": "false"}),
            ],
            className="head",
        ),
        html.Div(notes(said), id=f"{prefix}address-notes", className="notes", role="status"),
    ]
