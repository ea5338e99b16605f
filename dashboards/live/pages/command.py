"""The control page: a form that sends a command to an engine, and the events that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heliograph.dashboards.live.control import COMMANDS, Control, key_of
from heliograph.dashboards.live.pages import tables
from heliograph.dashboards.live.pages.address import refused
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.head import head
from heliograph.dashboards.live.pages.parts import card, entry, picker
from heliograph.dashboards.live.store import View

__all__ = ["CHOICES", "FIELDS", "PLACES", "Order", "layout", "order", "parts"]

PLACES: Mapping[str, str] = {"act-instance": "options", "act-receiver": "options", "act-events": "children"}
"""Ids of the parts that change with the view, and the property that holds them."""

CHOICES = ("act-instance", "act-command", "act-receiver")
"""Ids of the selections in the address, there without the prefix."""

FIELDS = ("instance", "command", "receiver", "for", "rate", "why", "who", "token")
"""Names of all fields."""

_OFF = (
    "Nothing can be changed on these pages. The option --control-token-file FILE of heliograph live allows commands to "
    "the instances of this host, for readers with the token in that file."
)


@dataclass(frozen=True, slots=True)
class Order:
    """The selections of one reader: the start of a command."""

    instance: str | None = None
    command: str | None = None
    receiver: str | None = None


def _instances(control: Control) -> list[str]:
    return [key_of(item) for item in control.running()]


def _receivers(view: View) -> dict[str, str]:
    """Return the receivers of all sources: address and name."""
    return {row.address: f"{row.called} of {row.instance}, {row.address}" for row in view.known}


def order(values: Mapping[str, Sequence[str]], view: View, control: Control) -> tuple[Order, list[str]]:
    """Return the possible part of a selection, and messages about the rest.

    Args:
        values: Values by name, from an address.
        view: The view that the page shows.
        control: The gate of the commands.
    """
    known = {"instance": _instances(control), "command": COMMANDS, "receiver": _receivers(view)}
    given = {name: str(values[name][0]) for name in known if values.get(name)}
    said = [refused(name.title(), value, "is not known") for name, value in given.items() if value not in known[name]]
    return Order(**{name: value for name, value in given.items() if value in known[name]}), said


def parts(view: View, control: Control) -> dict[str, Any]:
    """Return the content by part (see PLACES)."""
    return {
        "act-instance": [{"label": name, "value": name} for name in _instances(control)],
        "act-receiver": [{"label": text, "value": address} for address, text in _receivers(view).items()],
        "act-events": tables.events(view),
    }


def layout(
    view: View,
    state: Mapping[str, Any],
    chosen: Order,
    control: Control | None,
    said: Sequence[str] = (),
) -> html.Main:
    """Return the whole page.

    Args:
        view: The view to show.
        state: Its stamp.
        chosen: The selection of the reader.
        control: The gate of the commands; None: the server accepts none.
        said: Messages about the address of the page.
    """
    top = [*head("/control", "act-", state, view, said), html.H1("Control", className="title")]
    if control is None:
        return html.Main([*top, card("Read-only", "", html.P(_OFF))])
    found = parts(view, control)
    commands = [{"label": name, "value": name} for name in COMMANDS]
    needs = "; ".join(f"{name}: {command.help}" for name, command in COMMANDS.items())
    return html.Main(
        [
            *top,
            card(
                "Command",
                "every command is an event with your name, and is written to the log of the server",
                html.Div(
                    [
                        picker("act-instance", "Instance", found["act-instance"], chosen.instance or "", "none"),
                        picker("act-command", "Command", commands, chosen.command or "", "none"),
                        picker("act-receiver", "Receiver", found["act-receiver"], chosen.receiver or "", "none"),
                        entry("act-for", "For", "30s, 5m, 2h"),
                        entry("act-rate", "Rate in bytes/s", "250k, 10M, 0"),
                        entry("act-why", "Reason", "for the receiver and the events"),
                        entry("act-who", "Your name", "for the events"),
                        entry("act-token", "Control token", "", "password"),
                        html.Button("Send", id="act-send", className="quiet", n_clicks=0),
                    ],
                    className="controls",
                ),
                html.P("", id="act-said", role="status"),
                html.P(needs, className="more"),
            ),
            card("Events", "newest first", html.Div(found["act-events"], id="act-events", className="events")),
        ]
    )
