"""The Dash application: the pages, and the callbacks that answer to what a reader does.

The address names the page and holds its state. `page_at` is the router: it makes the page of an address. The parts
that change with each sample do not pass a callback: the server sends them (`push.py`, `updates.py`), and the
browser applies them (`assets/updates.js`). `assets/state.js` opens the connection and judges it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update

from heliograph.dashboards.live.control import Control
from heliograph.dashboards.live.curves import to_csv, to_hlog
from heliograph.dashboards.live.orders import add_levels
from heliograph.dashboards.live.pages import (
    alerts,
    command,
    congestion,
    detail,
    fleet,
    grid,
    history,
    incident,
    lab,
    receiver,
    stores,
    topic,
    whatif,
)
from heliograph.dashboards.live.pages.address import fields, refused
from heliograph.dashboards.live.pages.fleet import GRAPHS, PLACES, Choice
from heliograph.dashboards.live.pages.head import PAGES, stamp
from heliograph.dashboards.live.pages.parts import harmless
from heliograph.dashboards.live.pages.shell import shell
from heliograph.dashboards.live.pages.verdict import old, verdict
from heliograph.dashboards.live.past import Past
from heliograph.dashboards.live.push import Streams, serve
from heliograph.dashboards.live.recordings import Incident, NotARecording, Shelf
from heliograph.dashboards.live.replays import Replays
from heliograph.dashboards.live.series import EVERYTHING
from heliograph.dashboards.live.store import Status, Store, View, status_of
from heliograph.dashboards.live.updates import Followed, Updates, Values
from heliograph.dashboards.live.uploads import NotALog, Uploads
from heliograph.engine.catalogue.outside import outside
from heliograph.monitor.flight.page import page as flight_page

__all__ = ["create", "first_page", "followed", "page_at"]

_SELECTIONS = {
    "": ("groups", "kind"),
    "gr-": grid.CHOICES,
    "tp-": topic.CHOICES,
    "rx-": receiver.CHOICES,
    "cc-": congestion.CHOICES,
    "wi-": whatif.CHOICES,
    "st-": stores.CHOICES,
    "inc-": incident.CHOICES,
    "al-": alerts.CHOICES,
    "lab-": lab.CHOICES,
    "hy-": history.CHOICES,
    "dt-": detail.CHOICES,
    "act-": command.CHOICES,
}
"""Ids of the selections in the address, by the prefix of the page."""


class _OfOne(NamedTuple):
    """A page over the view alone: its module, the start of its ids, and what tells the store that it is in view."""

    page: Any
    prefix: str
    need: Callable[[Store], None] = lambda store: None


_OF_ONE: Mapping[str, _OfOne] = {
    "/grid": _OfOne(grid, "gr-"),
    "/topic": _OfOne(topic, "tp-"),
    "/receiver": _OfOne(receiver, "rx-", Store.need_stages),
    "/congestion": _OfOne(congestion, "cc-"),
    "/alerts": _OfOne(alerts, "al-", Store.need_alerts),
    "/stores": _OfOne(stores, "st-"),
    "/detail": _OfOne(detail, "dt-"),
}
"""By address."""
_PLOTLY: Any = {
    "relative_package_path": "package_data/plotly.min.js",
    "namespace": "plotly",
    "attributes": {"type": "text/plain", "data-later": "plotly"},
}
"""The library of the charts: its address only. `assets/charts.js` loads it after texts and tables have been drawn."""
_VERSION_CHECK = re.compile(r'"dash_version_url":"[^"]*"')


def _stay_here(app: Dash) -> None:
    """Remove the only external address that Dash writes into its page (a version check)."""
    frame = app.interpolate_index

    def interpolate_index(**parts: str) -> str:
        return str(frame(**parts | {"config": _VERSION_CHECK.sub('"dash_version_url":null', parts["config"])}))

    app.interpolate_index = interpolate_index
    app.index_string = app.index_string.replace("<html>", '<html lang="en">')


def first_page(store: Store, clock: Callable[[], int] = time.time_ns) -> Any:
    """Return the complete first page for a browser."""
    return page_at("/", "", store, Uploads(), clock)


def page_at(
    path: str,
    search: str,
    store: Store,
    uploads: Uploads,
    clock: Callable[[], int] = time.time_ns,
    control: Control | None = None,
    shelf: Shelf | None = None,
    past: Past | None = None,
    replays: Replays | None = None,
) -> Any:
    """Return the page of an address, complete.

    Args:
        path: Path of the address; an unknown one shows the first page and a message.
        search: The part of the address from "?" on, or nothing.
        store: The data.
        uploads: The uploaded logs.
        clock: Wall clock in ns since 1970.
        control: The gate of the commands; None: the server accepts none.
        shelf: The flight recordings; None: there is none.
        past: The history; None: the server shows none.
        replays: The decision logs; None: there is none.
    """
    store.look()
    view = store.view
    status = status_of(view, clock())
    state = stamp(view, status)
    values, said = fields(search)
    if path == "/lab":
        chosen, more = lab.selection(values, view, uploads)
        return harmless(lab.layout(view, state, chosen, uploads, [*said, *more]))
    if path == "/incident":
        held = shelf or Shelf()
        seen, more = incident.choice(values, held)
        return harmless(incident.layout(view, state, seen, held, [*said, *more]))
    if path == "/control":
        ordered, more = command.order(values, view, control) if control else (command.Order(), [])
        return harmless(command.layout(view, state, ordered, control, [*said, *more]))
    if path == "/history":
        era, more = history.choice(values, past)
        return harmless(history.layout(view, state, era, past, [*said, *more]))
    if path == "/whatif":
        logs = replays or Replays()
        tried, more = whatif.choice(values, logs)
        return harmless(whatif.layout(view, state, tried, logs, [*said, *more]))
    if path == "/detail":
        wanted, more = detail.choice(values, view)
        return harmless(detail.layout(view, state, wanted, control, [*said, *more]))
    if (one := _OF_ONE.get(path)) is not None:
        one.need(store)
        picked, more = one.page.choice(values, view)
        return harmless(one.page.layout(view, state, picked, [*said, *more]))
    if path not in PAGES:
        said.append(refused("Page", path, "does not exist; this is the first page"))
    store.need_alerts()
    choice, more = fleet.choice(values, view)
    return harmless(fleet.layout(view, state, verdict(view, status), choice, [*said, *more]))


def followed(
    uploads: Uploads,
    control: Control | None,
    shelf: Shelf,
    past: Past | None = None,
    replays: Replays | None = None,
) -> Mapping[str, Followed]:
    """Return the pages that follow the fleet, by address; every page shows at least how current it is.

    Args:
        uploads: The uploaded logs.
        control: The gate of the commands; None: the server accepts none.
        shelf: The flight recordings.
        past: The history; None: the server shows none.
        replays: The decision logs; None: there is none.
    """
    logs = replays or Replays()

    def lab_choice(view: View, values: Values) -> Hashable:
        return lab.selection(values, view, uploads)[0]

    def lab_parts(view: View, chosen: Any) -> Mapping[str, Any]:
        return lab.parts(view, chosen, uploads)

    def recordings(view: View, chosen: Any) -> Mapping[str, Any]:
        return {"inc-recording": incident.options(shelf)}

    def commands(view: View, chosen: Any) -> Mapping[str, Any]:
        return command.parts(view, control) if control else {}

    def past_choice(view: View, values: Values) -> Hashable:
        return history.choice(values, past)[0]

    def past_parts(view: View, chosen: Any) -> Mapping[str, Any]:
        return history.parts(past, chosen)

    def whatif_choice(view: View, values: Values) -> Hashable:
        return whatif.choice(values, logs)[0]

    def whatif_parts(view: View, chosen: Any) -> Mapping[str, Any]:
        return whatif.parts(logs, chosen)

    fleet_places = dict.fromkeys(PLACES, "children") | dict.fromkeys(GRAPHS, "figure") | {"groups": "options"}
    found = {
        "/": Followed("", fleet_places, fleet.parts, _fleet_choice, Store.need_alerts, _fleet_verdict, _TIMELY),
        "/lab": Followed("lab-", lab.PLACES, lab_parts, lab_choice),
        "/incident": Followed("inc-", {"inc-recording": "options"}, recordings),
        "/history": Followed("hy-", history.PLACES, past_parts, past_choice),
        "/whatif": Followed("wi-", whatif.PLACES, whatif_parts, whatif_choice),
        "/control": Followed("act-", command.PLACES if control else {}, commands),
    }
    return found | {path: _followed_one(one) for path, one in _OF_ONE.items()}


def _first(values: Values, name: str) -> str:
    return str((values.get(name) or [""])[0])


def _fleet_choice(view: View, values: Values) -> Choice:
    kind = _first(values, "kind")
    return Choice(_first(values, "groups") or EVERYTHING, "topic" if kind == "topic" else "receiver")


_TIMELY = (("verdict", "className"),)


def _fleet_verdict(view: View, status: Status, state: Mapping[str, Any]) -> Mapping[str, Any]:
    said = verdict(view, status)
    return {
        "verdict.children": fleet.verdict_parts(said),
        "verdict.className": f"verdict {said.tone}",
        "verdict-spoken.children": said.announced,
    }


def _followed_one(one: _OfOne) -> Followed:
    """A page of one object."""
    page, prefix = one.page, one.prefix

    def choose(view: View, values: Values) -> Hashable:
        found: Hashable = page.Choice(*(_first(values, name.removeprefix(prefix)) for name in page.CHOICES))
        return found

    def age(view: View, status: Status, state: Mapping[str, Any]) -> Mapping[str, Any]:
        aged = old(state)
        return {} if aged is None else {f"{prefix}verdict.children": aged}

    by_dash = getattr(page, "DRAWN_BY_DASH", ())
    return Followed(prefix, page.PLACES, page.parts, choose, one.need, age, drawn_by_dash=by_dash)


def create(
    store: Store,
    clock: Callable[[], int] = time.time_ns,
    control: Control | None = None,
    shelf: Shelf | None = None,
    streams: Streams | None = None,
    past: Past | None = None,
    replays: Replays | None = None,
) -> Dash:
    """Create the application over a store that the caller starts and closes.

    Args:
        store: The data.
        clock: Wall clock in ns since 1970.
        control: The gate of the commands; None: the server accepts none.
        shelf: The flight recordings; None: only those that readers upload.
        streams: Counts the streams of updates; None: a new count.
        past: The history; None: the server shows none.
        replays: The decision logs; None: there is none.
    """
    shelf = shelf or Shelf()
    app = Dash(
        __name__,
        title="Heliograph live",
        update_title="",
        serve_locally=True,
        compress=False,
        assets_folder="assets",
        suppress_callback_exceptions=True,  # otherwise the page would contain its layout twice
    )
    app.scripts.append_script(_PLOTLY)
    _stay_here(app)
    uploads = Uploads()
    app.layout = lambda: [dcc.Location(id="url", refresh=False), html.Div(id="page")]

    pages = followed(uploads, control, shelf, past, replays)

    @app.callback(Output("page", "children"), Input("url", "pathname"), State("url", "search"))
    def on_address(path: str | None, search: str | None) -> Any:
        whole = page_at(str(path or "/"), str(search or ""), store, uploads, clock, control, shelf, past, replays)
        page = pages.get(str(path), pages["/"])
        return shell(whole, page.prefix, page.drawn_by_browser)

    serve(app.server, store, Updates(store, pages, clock), streams)
    for page in pages.values():
        _add_parts(app, page)
    _add_lab(app, store, uploads)
    _add_incident(app, shelf)
    if control is not None:
        _add_control(app, control)
        add_levels(app, control)
    app.clientside_callback(
        ClientsideFunction("heliograph", "first"),
        Output("gr-page", "value"),
        *(Input(name, "value") for name in grid.CHOICES if name != "gr-page"),
        prevent_initial_call=True,
    )
    for prefix, choices in _SELECTIONS.items():
        _add_head(app, prefix, [Input(name, "value", allow_optional=True) for name in choices])
    return app


def _add_parts(app: Dash, page: Followed) -> None:
    """Add the callback that shows the parts which Dash draws, all in one pass (`assets/updates.js`)."""
    own = page.drawn_by_browser
    parts = [(name, kind) for name, kind in page.places.items() if name not in own]
    if parts := [*parts, *page.timely]:
        app.clientside_callback(
            ClientsideFunction("heliograph", "show"),
            [Output(name, kind, allow_duplicate=True) for name, kind in parts],
            Input(f"{page.prefix}stamp", "data-pass"),
            prevent_initial_call=True,
        )


def _add_head(app: Dash, prefix: str, choices: list[Input]) -> None:
    """Add the callbacks of a page that run in the browser: pause, and selections."""
    app.clientside_callback(
        ClientsideFunction("heliograph", "pause"),
        Output(f"{prefix}pause", "children"),
        Output(f"{prefix}pause", "aria-pressed"),
        Input(f"{prefix}pause", "n_clicks"),
    )
    app.clientside_callback(
        ClientsideFunction("heliograph", "choose"),
        Output(f"{prefix}address-notes", "children"),
        Input(f"{prefix}stamp", "id"),
        *choices,
    )


def _add_lab(app: Dash, store: Store, uploads: Uploads) -> None:
    """Add the callbacks of the latency lab."""
    values = [(name, "value") for name in lab.CHOICES]

    def selected(view: View, given: Mapping[str, Any]) -> lab.Selection:
        lists = {name.removeprefix("lab-"): value for name, value in given.items() if isinstance(value, list)}
        return lab.selection(lists, view, uploads)[0]

    app.clientside_callback(
        ClientsideFunction("heliograph", "file"),
        Output("lab-file", "data"),
        Output("lab-said", "children"),
        Input("lab-upload", "contents"),
        State("lab-upload", "filename"),
        prevent_initial_call=True,
    )

    @app.callback(
        output=(
            Output("lab-logs", "options"),
            Output("lab-logs", "value"),
            Output("lab-said", "children", allow_duplicate=True),
        ),
        inputs=Input("lab-file", "data"),
        state=State("lab-logs", "value"),
        prevent_initial_call=True,
    )
    def on_upload(file: Any, shown: list[str] | None) -> tuple[Any, Any, str]:
        if not isinstance(file, Mapping):
            return no_update, no_update, "no file"
        name = outside(str(file.get("name") or "log"))
        try:
            log = uploads.add(str(file.get("contents")), name)
        except NotALog as error:
            return no_update, no_update, outside(f"{name} is not shown: {error}.")
        chosen = list(dict.fromkeys([*(shown or []), log.key]))
        return harmless(lab.log_options(uploads)), chosen, outside(f"{log.name} is shown beside the lines.")

    @app.callback(
        output=Output("lab-download", "data"),
        inputs={"hlog": Input("lab-hlog", "n_clicks"), "csv": Input("lab-csv", "n_clicks")},
        state={"given": {name: State(name, prop) for name, prop in values}},
        prevent_initial_call=True,
    )
    def on_download(hlog: int | None, csv: int | None, given: Mapping[str, Any]) -> Any:
        view = store.view
        if not (hlog or csv):
            return no_update
        found, _ = lab.drawn(view, selected(view, given), uploads)
        kind, text = ("hlog", to_hlog(found)) if ctx.triggered_id == "lab-hlog" else ("csv", to_csv(found))
        moment = datetime.fromtimestamp(view.time_ns / 1e9).strftime("%Y%m%dT%H%M%S")
        return {"content": text, "filename": f"latency-{moment}.{kind}", "type": "text/plain", "base64": False}


def _add_incident(app: Dash, shelf: Shelf) -> None:
    """Add the callbacks of the page of a flight recording."""
    moving = {"inc-line": "data", "inc-when": "children", "inc-values": "children", "inc-drawn": "data"}
    cursor = {f"inc-at-{name}": Output("inc-at", name) for name in ("min", "max", "value")}

    @app.callback(
        output={name: Output(name, prop) for name, prop in {**incident.PLACES, **moving}.items()} | cursor,
        inputs={
            "given": {name: Input(name, "value") for name in incident.CHOICES},
            "_": Input("inc-again", "n_clicks"),
        },
        state={"shown": State("inc-drawn", "data")},
        prevent_initial_call=True,
    )
    def on_incident(given: Mapping[str, Any], _: int | None, shown: Any) -> dict[str, Any]:
        still: dict[str, Any] = dict.fromkeys([*incident.PLACES, *moving, *cursor], no_update)
        chosen = incident.selected(given)
        if not chosen.recording:
            return still | _empty(incident.unchosen(shelf))
        try:
            is_again = ctx.triggered_id in ("inc-again", "inc-recording")
            item = shelf.get(chosen.recording, oldest=0.0 if is_again else None)
        except NotARecording as error:
            return still | _empty(incident.nothing(f"{chosen.recording} is not shown: {error}", tone="bad"))
        if ctx.triggered_id == "inc-recording":
            chosen = incident.Choice(chosen.recording, chosen.span)
        place = incident.tick_of(item.study, chosen.at)
        answer: dict[str, Any] = harmless(incident.at_cursor(item.study, place))
        for name, value in answer.pop("inc-at").items():
            answer[f"inc-at-{name}"] = value
        if answer["inc-at-value"] == chosen.at:
            answer["inc-at-value"] = no_update
        drawn = incident.drawn(item, chosen)
        if drawn != shown:
            answer |= harmless(incident.parts(item, chosen)) | {"inc-drawn": drawn}
        return still | answer

    app.clientside_callback(
        ClientsideFunction("heliograph", "cursor"),
        Output("inc-when", "title"),
        Input("inc-line", "data"),
        Input("inc-axis", "figure"),
    )
    app.clientside_callback(
        ClientsideFunction("heliograph", "file"),
        Output("inc-file", "data"),
        Output("inc-said", "children"),
        Input("inc-upload", "contents"),
        State("inc-upload", "filename"),
        prevent_initial_call=True,
    )

    @app.callback(
        output=(
            Output("inc-recording", "options", allow_duplicate=True),
            Output("inc-recording", "value"),
            Output("inc-said", "children", allow_duplicate=True),
        ),
        inputs=Input("inc-file", "data"),
        prevent_initial_call=True,
    )
    def on_recording(file: Any) -> tuple[Any, Any, str]:
        if not isinstance(file, Mapping):
            return no_update, no_update, "no file"
        name = outside(str(file.get("name") or "recording"))
        try:
            item = shelf.add(str(file.get("contents")), name)
        except NotARecording as error:
            return no_update, no_update, outside(f"{name} is not shown: {error}.")
        return harmless(incident.options(shelf)), item.key, outside(f"{item.name} is shown.")

    @app.callback(
        output=(Output("inc-download", "data"), Output("inc-said", "children", allow_duplicate=True)),
        inputs=Input("inc-export", "n_clicks"),
        state=State("inc-recording", "value"),
        prevent_initial_call=True,
    )
    def on_export(clicks: int | None, key: Any) -> tuple[Any, Any]:
        if not clicks:
            return no_update, no_update
        try:
            item: Incident = shelf.get(str(key or ""))
        except NotARecording as error:
            return no_update, outside(f"There is nothing to download: {error}.")
        name = re.sub(r"[^A-Za-z0-9._-]", "_", item.name.removesuffix(".flight")) or "recording"
        content = {"content": flight_page(item.study), "filename": f"{name}.html", "type": "text/html"}
        return content | {"base64": False}, no_update


def _empty(found: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of the page of a recording when there is none."""
    return {**harmless(found), "inc-values": [], "inc-when": "", "inc-drawn": None}


def _add_control(app: Dash, control: Control) -> None:
    """Add the callback of the form of commands."""

    @app.callback(
        output=(Output("act-said", "children"), Output("act-said", "className")),
        inputs={"clicks": Input("act-send", "n_clicks")},
        state={name: State(f"act-{name}", "value") for name in command.FIELDS},
        prevent_initial_call=True,
    )
    def on_send(clicks: int | None, **fields: Any) -> tuple[Any, Any]:
        if not clicks:
            return no_update, no_update
        outcome = control.carry_out(fields, str(ctx.remote or ""))
        return outside(outcome.text), "said good" if outcome.is_done else "said bad"
