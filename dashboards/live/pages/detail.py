"""The page of the levels of detail: which are raised, since when, until when, their cost; a form that sets or ends one.

Without the control token of the server the page is read-only. An address can prepare a command, only the form sends it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from heliograph.dashboards.live.control import EVERY, PATTERNS, Control
from heliograph.dashboards.live.detailing import Raised
from heliograph.dashboards.live.pages import numbers, tables
from heliograph.dashboards.live.pages.address import refused
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.head import head
from heliograph.dashboards.live.pages.numbers import moment
from heliograph.dashboards.live.pages.parts import badge, card, cell, entry, picker, table, tile
from heliograph.dashboards.live.pages.verdict import old
from heliograph.dashboards.live.store import View
from heliograph.dashboards.words import DETAIL, Tone
from heliograph.monitor.commands.levels import INSTANCE

__all__ = ["CHOICES", "FIELDS", "PLACES", "Choice", "choice", "layout", "parts"]

PLACES: Mapping[str, str] = {
    "dt-verdict": "children",
    "dt-tiles": "children",
    "dt-raised": "children",
    "dt-events": "children",
    "dt-instance": "options",
}
"""Ids of the parts that change with the view, and the property that holds them."""

CHOICES = ("dt-instance", "dt-of", "dt-pattern", "dt-level")
"""Ids of the selections, in the address without the prefix."""

FIELDS = ("instance", "of", "pattern", "level", "for", "who", "token")
"""Names of the fields of the form."""

_MOST_ROWS = 60
_MOST_PATTERN = 200
_LEVELS = {
    "0": "0: counters only",
    "1": "1: and recovery times and queues",
    "2": "2: and total latencies",
    "3": "3: and their stages",
}
_EVENTS = frozenset({"level_changed", "level_reverted"})
_OFF = (
    "Nothing can be changed on these pages. The option --control-token-file FILE of heliograph live lets readers with "
    "the token in that file set levels; on the host itself, heliograph ctl level does."
)
_HEADS = (
    ("State", ""),
    ("Instance", ""),
    ("Level", "n"),
    ("Of", ""),
    ("Since", ""),
    ("Ends in", "n"),
    ("Objects", "n"),
    ("No room for", "n"),
    ("Long duty cycles", "n"),
    ("Longest ever", "n"),
    ("", ""),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The selections of one reader: the start of a command."""

    instance: str = ""
    """Name and process of an instance, or `EVERY`."""
    of: str = ""
    """The kind of object of the pattern; empty: the whole instance."""
    pattern: str = ""
    level: str = ""


def _key(item: Raised) -> str:
    return f"{item.level.instance} ({item.pid})"


def _instances(view: View) -> dict[str, str]:
    """Return the instances that a command can go to: value and text."""
    found = sorted(f"{row.name} ({row.pid})" for row in view.instances if row.health in ("live", "stale"))
    return {EVERY: "every instance", **{name: name for name in found}}


def choice(values: Mapping[str, Sequence[str]], view: View) -> tuple[Choice, list[str]]:
    """Return the possible part of a selection, and messages about the rest.

    Args:
        values: Values by name: instance, of, pattern and level, from an address.
        view: The view that the page shows.
    """
    given = {name: str((values.get(name) or [""])[0]) for name in ("instance", "of", "pattern", "level")}
    known: Mapping[str, Mapping[str, Any]] = {
        "instance": _instances(view),
        "of": dict.fromkeys(PATTERNS),
        "level": _LEVELS,
    }
    said = []
    for name, possible in known.items():
        if given[name] and given[name] not in possible:
            said.append(refused(name.title(), given[name], "is not known"))
            given[name] = ""
    if len(given["pattern"]) > _MOST_PATTERN:
        said.append(refused("Pattern", given["pattern"], f"is longer than {_MOST_PATTERN} characters"))
        given["pattern"] = ""
    return Choice(**given), said


def parts(view: View, chosen: Choice) -> dict[str, Any]:
    """Return the content by part (see PLACES); the same for every choice."""
    events = tuple(event for event in view.events if event.name in _EVENTS or _is_of_level(event.name, event.text))
    return {
        "dt-verdict": _verdict(view),
        "dt-tiles": _tiles(view),
        "dt-raised": _raised(view),
        "dt-events": tables.events(replace(view, events=events, events_missed=0)),
        "dt-instance": [{"label": text, "value": name} for name, text in _instances(view).items()],
    }


def _is_of_level(name: str, text: str) -> bool:
    """Whether an event is a command about levels, from an engine or from this server."""
    return name in ("command", "command_refused") and (text.startswith("level ") or ": level " in text)


def layout(
    view: View, state: Mapping[str, Any], chosen: Choice, control: Control | None, said: Sequence[str] = ()
) -> html.Main:
    """Return the whole page.

    Args:
        view: The view to show.
        state: Its stamp.
        chosen: The selection of the reader.
        control: The gate of the commands; None: the server accepts none.
        said: Messages about the address of the page.
    """
    found = parts(view, chosen)
    return html.Main(
        [
            *head("/detail", "dt-", state, view, said),
            html.Div(old(state) or found["dt-verdict"], id="dt-verdict"),
            html.Dl(found["dt-tiles"], id="dt-tiles", className="tiles"),
            card("Raised levels", "the highest first", html.Div(found["dt-raised"], id="dt-raised")),
            _form(found, chosen) if control is not None else card("Read-only", "", html.P(_OFF)),
            card("Changes of levels", "newest first", html.Div(found["dt-events"], id="dt-events", className="events")),
            html.P(
                "The statistics hold the effects of a level, not the time that it takes; heliograph info measures that "
                "on a host. Long duty cycles are those above 50 ms. They and the histograms without room in the "
                "segment are counted since the level was first seen here, whatever their cause.",
                className="foot",
            ),
        ]
    )


def _form(found: Mapping[str, Any], chosen: Choice) -> html.Section:
    levels = [{"label": text, "value": level} for level, text in _LEVELS.items()]
    kinds = [{"label": kind, "value": kind} for kind in PATTERNS]
    return card(
        "Set a level",
        "it ends by itself; every command is an event with your name, and is written to the log of the server",
        html.Div(
            [
                picker("dt-instance", "Instance", found["dt-instance"], chosen.instance, "none"),
                picker("dt-of", "Of", kinds, chosen.of, "the whole instance"),
                entry("dt-pattern", "Pattern", "PRICES.*", value=chosen.pattern),
                picker("dt-level", "Level", levels, chosen.level, "none"),
                entry("dt-for", "For", "30s, 5m, 2h"),
                entry("dt-who", "Your name", "for the events"),
                entry("dt-token", "Control token", "", "password"),
                html.Button("Set", id="dt-send", className="quiet", n_clicks=0),
                html.Button("End now", id="dt-end", className="quiet", n_clicks=0),
            ],
            className="controls",
        ),
        html.P("", id="dt-said", role="status"),
        html.P(
            "A topic is sent and received in several instances, and a delay is measured at both ends: choose every "
            "instance. End now needs instance, kind and pattern, and neither level nor time.",
            className="more",
        ),
    )


def _ends(item: Raised, view: View) -> str:
    until = item.level.until_ns
    return "no end" if until is None else numbers.seconds(max(0, until - view.time_ns) / 1e9)


def _clause(item: Raised, view: View) -> str:
    """Return a clause such as ``level 3 of topic=PRICES.* at feed, which ends in 30 s``."""
    until = "without an end" if item.level.until_ns is None else f"which ends in {_ends(item, view)}"
    return f"{item.clause}, {until}"


def _verdict(view: View) -> html.Section:
    raised = view.raised
    if not raised:
        return html.Section([html.H1("No level of detail is raised")], className="verdict good")
    left = [item for item in raised if item.is_left_on]
    first = left[0] if left else raised[0]
    tone: Tone = "watch" if left else "good"
    more = [
        f"{_clause(item, view).capitalize()}." for item in raised if item is not first and item.level != first.level
    ][:2]
    refused = sum(item.refused for item in raised)
    if refused:
        more.append(f"{numbers.count(refused)} histograms found no room in the segment (option segment_bytes).")
    if left:
        headline = f"Detail was left on: {_clause(first, view)}"
        more.insert(0, "It costs processor time and memory until then. End now, below, ends it.")
    else:
        headline = f"Detail is raised: {_clause(first, view)}"
    return html.Section(
        [html.H1(headline), html.Ul([html.Li(text) for text in more])] if more else [html.H1(headline)],
        className=f"verdict {tone}",
    )


def _tiles(view: View) -> list[html.Div]:
    raised = view.raised
    left = sum(item.is_left_on for item in raised)
    ends = [item.level.until_ns for item in raised if item.level.until_ns is not None]
    refused = sum(item.refused for item in raised)
    objects = sum(item.level.objects or 0 for item in raised)
    return [
        tile("Raised", str(len(raised)), f"in {len({_key(item) for item in raised})} instances"),
        tile("Left on", str(left), "longer than 1 h", "watch" if left else ""),
        tile("Objects", numbers.count(objects), "measured in more detail"),
        tile("Next end in", numbers.seconds((min(ends) - view.time_ns) / 1e9) if ends else numbers.NONE, ""),
        tile("No room for", numbers.count(refused), "histograms", "watch" if refused else ""),
    ]


def _raised(view: View) -> html.Div:
    if not view.raised:
        return html.Div(html.P("No level of detail is raised.", className="nothing"))
    body: list[Any] = [table(_HEADS, [_row(view, item) for item in view.raised[:_MOST_ROWS]], "Raised levels")]
    if len(view.raised) > _MOST_ROWS:
        body.append(html.P(f"and {len(view.raised) - _MOST_ROWS} more", className="more"))
    return html.Div(body)


def _row(view: View, item: Raised) -> html.Tr:
    word = DETAIL[item.is_left_on]
    level = item.level
    since = moment(item.since_ns, view.time_ns) + ("" if item.is_whole else " or earlier")
    return html.Tr(
        [
            html.Td(badge(word)),
            html.Td(html.Strong(level.instance)),
            cell(str(level.level), "n"),
            cell(item.selected),
            cell(since, "muted"),
            cell(_ends(item, view), "n"),
            cell(numbers.NONE if level.objects is None else numbers.count(level.objects), "n"),
            cell(numbers.count(item.refused), "n loud" if item.refused else "n"),
            cell(numbers.NONE if item.overruns is None else numbers.count(item.overruns), "n"),
            cell(numbers.latency(item.cycle_max_ns), "n"),
            html.Td(_prepared(item)),
        ],
        className=word.tone,
    )


def _prepared(item: Raised) -> Any:
    """A link that prepares the form for this level; the page loads again, so that it also works from this page."""
    if not item.is_live or item.level.objects is None:
        return numbers.NONE
    selected = {"instance": _key(item)}
    kind, _, pattern = item.level.selector.partition("=")
    if item.level.selector != INSTANCE:
        if kind not in PATTERNS or " " in pattern:
            return "heliograph ctl"  # several patterns: the form takes one
        selected |= {"of": kind, "pattern": pattern}
    return html.A("change or end", href=f"/detail?{urlencode(selected)}")
