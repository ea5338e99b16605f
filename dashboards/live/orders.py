"""The callback of the form that sets or ends a level of detail; only a server with a control token has it."""

from __future__ import annotations

from typing import Any

from dash import Dash, Input, Output, State, ctx, no_update

from heliograph.dashboards.live.control import Control
from heliograph.dashboards.live.pages import detail
from heliograph.engine.catalogue.outside import outside

__all__ = ["add_levels"]


def add_levels(app: Dash, control: Control) -> None:
    """Add the callback of the page of the levels of detail."""

    @app.callback(
        output=(Output("dt-said", "children"), Output("dt-said", "className")),
        inputs={"sent": Input("dt-send", "n_clicks"), "ended": Input("dt-end", "n_clicks")},
        state={name: State(f"dt-{name}", "value") for name in detail.FIELDS},
        prevent_initial_call=True,
    )
    def on_level(sent: int | None, ended: int | None, **fields: Any) -> tuple[Any, Any]:
        verb = {"dt-send": "level", "dt-end": "end-level"}.get(str(ctx.triggered_id))
        if verb is None or not (sent if verb == "level" else ended):
            return no_update, no_update
        outcome = control.carry_out(fields | {"command": verb}, str(ctx.remote or ""))
        return outside(outcome.text), "said good" if outcome.is_done else "said bad"
