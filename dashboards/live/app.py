"""The Dash application: one timer in the browser, one store in the server, and plain functions between them.

Every browser sends one request per interval. Each view is drawn once for all browsers (`Easel`), so that the cost of
drawing does not grow with their number. A request that arrives during a drawing waits for its result. A view that the
browser already shows is not sent again.

The browser decides when to send the next request and whether the server answers: see `assets/state.js`.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, no_update

from heliograph.dashboards.live.pages import fleet
from heliograph.dashboards.live.pages.fleet import GRAPHS, PLACES, Choice
from heliograph.dashboards.live.pages.parts import harmless
from heliograph.dashboards.live.pages.verdict import verdict
from heliograph.dashboards.live.series import EVERYTHING
from heliograph.dashboards.live.store import Store, View, status_of

__all__ = ["Easel", "create", "first_page", "refresh"]

_MOST_CHOICES = 32
_VERSION_CHECK = re.compile(r'"dash_version_url":"[^"]*"')


def _stay_here(app: Dash) -> None:
    """Remove the only external address that Dash writes into its page (a version check)."""
    frame = app.interpolate_index

    def interpolate_index(**parts: str) -> str:
        return str(frame(**parts | {"config": _VERSION_CHECK.sub('"dash_version_url":null', parts["config"])}))

    app.interpolate_index = interpolate_index


class Easel:
    """The drawings of the newest view, one per choice; safe to use from many threads."""

    def __init__(self, draw: Callable[[View, Choice], Mapping[str, Any]] = fleet.parts) -> None:
        self._draw = draw
        self._lock = threading.Lock()
        self._done: OrderedDict[Choice, tuple[int, Mapping[str, Any]]] = OrderedDict()

    def parts(self, view: View, choice: Choice) -> Mapping[str, Any]:
        """Return the parts of the page, drawn at most once per view and choice."""
        with self._lock:
            done = self._done.get(choice)
            if done is None or done[0] < view.sequence:
                done = (view.sequence, harmless(self._draw(view, choice)))
                self._done[choice] = done
            self._done.move_to_end(choice)
            while len(self._done) > _MOST_CHOICES:
                self._done.popitem(last=False)
            return done[1]


def first_page(store: Store, clock: Callable[[], int] = time.time_ns) -> Any:
    """Return the complete first page for a browser."""
    view, now = store.view, clock()
    state = status_of(view, now)
    return harmless(fleet.layout(view, state, verdict(view, state), now))


def refresh(
    store: Store,
    easel: Easel,
    choice: Choice,
    seen: int | None,
    *,
    clock: Callable[[], int] = time.time_ns,
) -> dict[str, Any]:
    """Return the parts that changed since the last request of a browser, by id.

    Args:
        seen: Sequence number of the view that the browser shows with this choice; None: it needs all parts.
    """
    view, now = store.view, clock()
    state = status_of(view, now)
    said = verdict(view, state)
    answer: dict[str, Any] = harmless(
        {
            "stamp": fleet.stamp(view, state, now),
            "verdict": fleet.verdict_parts(said),
            "verdict-tone": f"verdict {said.tone}",
            "taken": fleet.taken(view),
        }
    )
    if seen == view.sequence:
        return answer | dict.fromkeys(PLACES, no_update)
    return answer | dict(easel.parts(view, choice))


def create(store: Store, clock: Callable[[], int] = time.time_ns) -> Dash:
    """Create the application over a store that the caller starts and closes."""
    app = Dash(
        __name__,
        title="Heliograph live",
        update_title="",
        serve_locally=True,
        compress=False,
        assets_folder="assets",
        suppress_callback_exceptions=True,  # otherwise the page would contain its layout twice
    )
    _stay_here(app)
    easel = Easel()
    app.layout = lambda: first_page(store, clock)
    outputs = {
        "stamp": Output("stamp", "data"),
        "verdict": Output("verdict", "children"),
        "verdict-tone": Output("verdict", "className"),
        "taken": Output("taken", "children"),
    }
    properties = dict.fromkeys(GRAPHS, "figure") | {"groups": "options"}
    outputs |= {place: Output(place, properties.get(place, "children")) for place in PLACES}

    @app.callback(
        output=outputs,
        inputs={"_": Input("ask", "data"), "group": Input("groups", "value"), "kind": Input("kind", "value")},
        state={"stamp": State("stamp", "data")},
        prevent_initial_call=True,
    )
    def on_ask(_: int | None, group: str | None, kind: str | None, stamp: Mapping[str, Any] | None) -> dict[str, Any]:
        choice = Choice(group or EVERYTHING, "topic" if kind == "topic" else "receiver")
        seen = stamp.get("sequence") if stamp and ctx.triggered_id == "ask" else None
        return refresh(store, easel, choice, seen, clock=clock)

    app.clientside_callback(
        ClientsideFunction("heliograph", "pause"),
        Output("tick", "disabled"),
        Output("pause", "children"),
        Output("pause", "aria-pressed"),
        Input("pause", "n_clicks"),
    )
    app.clientside_callback(
        ClientsideFunction("heliograph", "tick"),
        Output("ask", "data"),
        Output("state", "className"),
        Output("state-shape", "children"),
        Output("state-word", "children"),
        Output("state-reason", "children"),
        Input("tick", "n_intervals"),
        Input("tick", "disabled"),
        State("stamp", "data"),  # as an input it would delay the callback during a request
    )
    return app
