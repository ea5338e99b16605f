"""The page of all rows of a fleet: receivers of topics, receivers, topics or instances; filtered, sorted, page by page.

The state is in the address. The server filters and sorts (`listing.py`), so a browser holds the rows that it shows,
whatever the size of the fleet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dash import dcc

from heliograph.dashboards.live.listing import Lines, Names, Window, Wish, number_of_page, window
from heliograph.dashboards.live.pages import numbers
from heliograph.dashboards.live.pages.address import refused
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.head import head
from heliograph.dashboards.live.pages.parts import badge, cell, entry, gauge, of_receiver, of_topic, picker
from heliograph.dashboards.live.pages.tables import instance_figures
from heliograph.dashboards.live.pages.verdict import old
from heliograph.dashboards.live.store import View
from heliograph.dashboards.words import BEHAVIOUR, HEALTH, Word
from heliograph.monitor.behaviour import CLASSES
from heliograph.monitor.fleet import InstanceRow, ReceiverRow
from heliograph.monitor.groups import Group, Kind, groups_of, labels_of, vector_of
from heliograph.monitor.model import Health

__all__ = ["CHOICES", "PLACES", "Choice", "choice", "layout", "parts"]

PLACES: Mapping[str, str] = {
    "gr-verdict": "children",
    "gr-count": "children",
    "gr-rows": "children",
    "gr-turn": "children",
}
"""Ids of the parts that change with the view, and the property that holds them."""

CHOICES = ("gr-of", "gr-name", "gr-state", "gr-sort", "gr-page")
"""Ids of the selections, in the address without the prefix."""

_MOST_PATTERN = 200
_TROUBLE = "trouble"
_HEALTHS = tuple(Health)


@dataclass(frozen=True, slots=True)
class Choice:
    """The selections of one reader, as in the address."""

    of: str = ""
    """The kind of a row: a name in `_SORTS`; empty: a topic of a receiver."""
    name: str = ""
    """Part of a name, or a pattern."""
    state: str = ""
    """A state, or `_TROUBLE`: every state that is not good; empty: all."""
    sort: str = ""
    """Name of a column, with "-" in front for the greatest first; empty: the worst first."""
    page: str = ""
    """Number of the page, from 1; empty: the first."""


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    name: str = ""
    """Name of the values to sort by; empty: it cannot be sorted by."""
    kind: str = ""
    """Class of the cells: "n" for numbers."""

    @property
    def first(self) -> str:
        """The order of the first press: names from A on, numbers from the greatest down."""
        return f"-{self.name}" if self.kind else self.name


@dataclass(frozen=True, slots=True)
class _Sort:
    """One sort of rows."""

    title: str
    columns: Sequence[_Column]
    words: Mapping[str, Word]
    """The states by name; the number of a state is its place here."""
    lines: Callable[[View], Lines]
    row: Callable[[View, int], tuple[str, Word, Sequence[html.Td]]]
    """Makes the key, the state and the further cells of a row by its place."""


def _name_cell(shown: Any, *more: str) -> html.Td:
    return html.Td([shown, *(html.Span(f" {text}", className="muted") for text in more)])


# ---- topics of receivers ----


def _each_lines(view: View) -> Lines:
    rows = view.rows
    named, index = labels_of(rows, "instance")
    carried, places = labels_of(rows, "topic")
    names: dict[str, Names] = {
        "instance": ([name for (name,) in named], index),
        "topic": ([topic for topic, _ in carried], places),
    }
    return Lines(len(rows), names, lambda: vector_of(rows, "behaviour"), lambda name: vector_of(rows, name))


def _each(view: View, place: int) -> tuple[str, Word, Sequence[html.Td]]:
    row: ReceiverRow = view.rows[place]
    return (
        f"{row.instance} {row.topic} {row.stream}",
        BEHAVIOUR[row.behaviour],
        [
            html.Td(of_receiver(row.instance)),
            html.Td(of_topic(row.topic, row.stream)),
            cell(row.transmitter or row.stream, "muted"),
            cell(numbers.rate(row.sent_per_s), "n"),
            cell(numbers.rate(row.delivered_per_s), "n"),
            cell(numbers.count(row.lag_messages), "n"),
            cell(numbers.seconds(row.lag_seconds), "n"),
            html.Td(gauge(row.queue_fill)),
            cell(numbers.ratio(row.missing_ratio), "n"),
            cell(numbers.count(row.lost), "n loud" if row.lost else "n"),
            cell(numbers.latency(row.p50_ns), "n"),
            cell(numbers.latency(row.p999_ns), "n"),
        ],
    )


# ---- receivers, and topics ----


def _group_lines(view: View, kind: Kind) -> Lines:
    groups = groups_of(view.rows, kind)
    own = (
        {"instance": [name[0] for name in groups.names]}
        if kind == "instance"
        else {
            "topic": [name[0] for name in groups.names],
            "stream": [name[1] for name in groups.names],
        }
    )
    index = np.arange(len(groups))
    names: dict[str, Names] = {name: (texts, index) for name, texts in own.items()}
    return Lines(len(groups), names, lambda: groups.vector("behaviour"), groups.vector)


def _group_cells(group: Group) -> list[html.Td]:
    return [
        cell(numbers.count(group.count), "n"),
        cell(numbers.rate(group.delivered_per_s), "n"),
        cell(numbers.seconds(group.lag_seconds), "n"),
        html.Td(gauge(group.queue_fill)),
        cell(numbers.rate(group.naks_per_s), "n"),
        cell(numbers.ratio(group.missing_ratio), "n"),
        cell(numbers.count(group.lost), "n loud" if group.lost else "n"),
    ]


def _receiver(view: View, place: int) -> tuple[str, Word, Sequence[html.Td]]:
    group = groups_of(view.rows, "instance")[place]
    (name,) = group.name
    word = BEHAVIOUR[group.worst.behaviour]
    why = group.worst.reason if word.tone == "good" else f"{group.worst.topic}: {group.worst.reason}"
    return name, word, [html.Td(of_receiver(name)), *_group_cells(group), html.Td(why, className="why")]


def _topic(view: View, place: int) -> tuple[str, Word, Sequence[html.Td]]:
    group = groups_of(view.rows, "topic")[place]
    topic, stream = group.name
    name = _name_cell(of_topic(topic, stream), group.worst.transmitter or "out of reach")
    cells = [name, cell(stream, "muted"), *_group_cells(group), html.Td(of_receiver(group.worst.instance))]
    return f"{topic} {stream}", BEHAVIOUR[group.worst.behaviour], cells


# ---- instances ----

_OF_INSTANCE: Mapping[str, Callable[[InstanceRow], float]] = {
    "sent": lambda row: row.sent_per_s,
    "received": lambda row: row.received_per_s,
    "naks_in": lambda row: row.naks_received_per_s,
    "naks_out": lambda row: row.naks_sent_per_s,
    "drops": lambda row: row.socket_drops,
    "memory": lambda row: row.memory_bytes,
    "up": lambda row: row.uptime_s,
}


def _instances(view: View) -> list[InstanceRow]:
    """Return the instances, those in trouble first."""
    return sorted(view.instances, key=lambda row: (-HEALTH[row.health].rank, row.name))


def _instance_lines(view: View) -> Lines:
    rows = _instances(view)
    index = np.arange(len(rows))
    names: dict[str, Names] = {"name": ([row.name for row in rows], index), "host": ([row.host for row in rows], index)}
    return Lines(
        len(rows),
        names,
        lambda: np.array([_HEALTHS.index(row.health) for row in rows], np.float64),
        lambda name: np.array([_OF_INSTANCE[name](row) for row in rows], np.float64),
    )


def _instance(view: View, place: int) -> tuple[str, Word, Sequence[html.Td]]:
    row = _instances(view)[place]
    return (
        row.name,
        HEALTH[row.health],
        [
            html.Td(html.Strong(row.name)),
            cell(row.host or "–", "muted"),
            *instance_figures(row),
        ],
    )


_BEHAVIOURS: Mapping[str, Word] = {item.value: BEHAVIOUR[item] for item in CLASSES}
_GROUPED = (
    _Column("Delivered/s", "delivered_per_s", "n"),
    _Column("Behind", "lag_seconds", "n"),
    _Column("Queue", "queue_fill", "g"),
    _Column("NAKs/s", "naks_per_s", "n"),
    _Column("Missing", "missing_ratio", "n"),
    _Column("Lost", "lost", "n"),
)
_SORTS: Mapping[str, _Sort] = {
    "": _Sort(
        "topics of receivers",
        (
            _Column("Receiver", "instance"),
            _Column("Topic", "topic"),
            _Column("From"),
            _Column("Sent/s", "sent_per_s", "n"),
            _Column("Delivered/s", "delivered_per_s", "n"),
            _Column("Messages behind", "lag_messages", "n"),
            _Column("Behind", "lag_seconds", "n"),
            _Column("Queue", "queue_fill", "g"),
            _Column("Missing", "missing_ratio", "n"),
            _Column("Lost", "lost", "n"),
            _Column("p50", "", "n"),
            _Column("p99.9", "", "n"),
        ),
        _BEHAVIOURS,
        _each_lines,
        _each,
    ),
    "receivers": _Sort(
        "receivers",
        (_Column("Receiver", "instance"), _Column("Topics", "count", "n"), *_GROUPED, _Column("Why")),
        _BEHAVIOURS,
        lambda view: _group_lines(view, "instance"),
        _receiver,
    ),
    "topics": _Sort(
        "topics",
        (
            _Column("Topic", "topic"),
            _Column("Stream", "stream"),
            _Column("Receivers", "count", "n"),
            *_GROUPED,
            _Column("Worst receiver"),
        ),
        _BEHAVIOURS,
        lambda view: _group_lines(view, "topic"),
        _topic,
    ),
    "instances": _Sort(
        "instances",
        (
            _Column("Instance", "name"),
            _Column("Host", "host"),
            _Column("Sent/s", "sent", "n"),
            _Column("Received/s", "received", "n"),
            _Column("NAKs in/s", "naks_in", "n"),
            _Column("NAKs out/s", "naks_out", "n"),
            _Column("Socket drops", "drops", "n"),
            _Column("Memory", "memory", "n"),
            _Column("Up", "up", "n"),
        ),
        {item.value: HEALTH[item] for item in _HEALTHS},
        _instance_lines,
        _instance,
    ),
}
"""The sorts of rows by their names in the address."""


def _states_of(chosen: Choice) -> dict[str, str]:
    """Return the states that rows can be filtered by: name and text."""
    words = _SORTS[chosen.of].words
    return {_TROUBLE: "every state but good", **{name: word.text for name, word in words.items()}}


def _possible(chosen: Choice) -> tuple[Choice, list[str]]:
    """Return the possible part of a choice, and messages about the rest."""
    said = []
    of, name, state, sort, page = chosen.of, chosen.name, chosen.state, chosen.sort, chosen.page
    if of not in _SORTS:
        said.append(refused("Rows", of, "are not known; the page shows topics of receivers"))
        of = ""
    if len(name) > _MOST_PATTERN:
        said.append(refused("Name", name, f"is longer than {_MOST_PATTERN} characters; the page shows every name"))
        name = ""
    if state and state not in _states_of(Choice(of)):
        said.append(refused("State", state, "is not known; the page shows every state"))
        state = ""
    if sort and sort.removeprefix("-") not in {column.name for column in _SORTS[of].columns if column.name}:
        said.append(refused("Order", sort, "is not that of a column; the worst row is first"))
        sort = ""
    if page and number_of_page(page) is None:
        said.append(refused("Page", page, "is not a number from 1 to 999,999,999; this is the first page"))
        page = ""
    return Choice(of, name, state, sort, page), said


def choice(values: Mapping[str, Sequence[str]], view: View) -> tuple[Choice, list[str]]:
    """Return the possible part of a selection, and messages about the rest.

    Args:
        values: Values by name: of, name, state, sort and page, from an address.
        view: The view that the page shows.
    """
    given = (str((values.get(name.removeprefix("gr-")) or [""])[0]) for name in CHOICES)
    chosen, said = _possible(Choice(*given))
    page = number_of_page(chosen.page) or 1
    if page > (pages := _window(view, chosen).pages):
        said.append(refused("Page", chosen.page, f"is after the last one, which is {pages:,}; this is the last page"))
    return chosen, said


def _window(view: View, chosen: Choice) -> Window:
    sort = _SORTS[chosen.of]
    names = tuple(sort.words)
    states = None
    if chosen.state == _TROUBLE:
        states = frozenset(place for place, name in enumerate(names) if sort.words[name].tone != "good")
    elif chosen.state:
        states = frozenset((names.index(chosen.state),))
    wish = Wish(
        chosen.name,
        states,
        chosen.sort.removeprefix("-"),
        chosen.sort.startswith("-"),
        number_of_page(chosen.page) or 1,
    )
    return window(sort.lines(view), wish)


def parts(view: View, chosen: Choice) -> dict[str, Any]:
    """Return the content by part (see PLACES)."""
    chosen, _ = _possible(chosen)
    found = _window(view, chosen)
    return {
        "gr-verdict": html.H1(f"All {_SORTS[chosen.of].title}", className="title"),
        "gr-count": _count(view, chosen, found),
        "gr-rows": _rows(view, chosen, found),
        "gr-turn": _turn(found),
    }


def _count(view: View, chosen: Choice, found: Window) -> str:
    sort = _SORTS[chosen.of]
    if not found.places:
        known = sort.lines(view).size
        return f"None of {known:,} rows matches." if known else f"There are no {sort.title} yet."
    last = found.first + len(found.places) - 1
    if not chosen.name and not chosen.state:
        return f"Rows {found.first:,} to {last:,} of {found.found:,}"
    return f"Rows {found.first:,} to {last:,} of {found.found:,} that match, among {sort.lines(view).size:,}"


def _rows(view: View, chosen: Choice, found: Window) -> html.Table:
    sort = _SORTS[chosen.of]
    heads = [
        html.Th(_order("State", "", not chosen.sort), scope="col"),
        *(_head(item, chosen) for item in sort.columns),
    ]
    body = []
    for place in found.places:
        key, word, cells = sort.row(view, place)
        body.append(html.Tr([html.Td(badge(word)), *cells], key=key, className=word.tone))
    return html.Table(
        [html.Thead(html.Tr(heads)), html.Tbody(body)], **{"aria-label": f"{sort.title}, page {found.page}"}
    )


def _head(column: _Column, chosen: Choice) -> html.Th:
    kind = "n" if column.kind == "n" else None
    if not column.name:
        return html.Th(column.title, className=kind, scope="col")
    order, now = _order(column.title, column.first), {}
    if chosen.sort.removeprefix("-") == column.name:
        is_down = chosen.sort.startswith("-")
        shape = html.Span(" ▼" if is_down else " ▲", **{"aria-hidden": "true"})
        order = _order([column.title, shape], column.name if is_down else f"-{column.name}")
        now = {"aria-sort": "descending" if is_down else "ascending"}
    return html.Th(order, className=kind, scope="col", **{"data-title": column.title}, **now)


def _order(title: Any, sort: str, is_pressed: bool = False) -> html.Button:
    """A button in the head of a column; `assets/state.js` sets the selection."""
    pressed = {"aria-pressed": "true"} if is_pressed else {}
    return html.Button(
        title, className="order", type="button", **{"data-set": "gr-sort", "data-value": sort}, **pressed
    )


def _turn(found: Window) -> list[Any]:
    """The buttons that turn the pages; one without effect stays, so that it keeps the focus."""
    targets = {
        "First": 1,
        "Previous": max(1, found.page - 1),
        "Next": min(found.pages, found.page + 1),
        "Last": found.pages,
    }
    return [
        *(
            html.Button(
                title,
                className="quiet",
                type="button",
                **{"data-set": "gr-page", "data-value": str(page), "aria-disabled": str(page == found.page).lower()},
            )
            for title, page in targets.items()
        ),
        html.Span(f"Page {found.page:,} of {found.pages:,}", className="muted"),
    ]


def layout(view: View, state: Mapping[str, Any], chosen: Choice, said: Sequence[str] = ()) -> html.Main:
    """Return the whole page.

    Args:
        view: The view to show.
        state: Its stamp.
        chosen: The selection of the reader.
        said: Messages about the address of the page.
    """
    found = parts(view, chosen)
    kinds = [{"label": sort.title, "value": name} for name, sort in _SORTS.items() if name]
    states = [{"label": text, "value": name} for name, text in _states_of(chosen).items()]
    return html.Main(
        [
            *head("/grid", "gr-", state, view, said),
            html.Div(old(state) or found["gr-verdict"], id="gr-verdict"),
            html.Div(
                [
                    picker("gr-of", "Rows", kinds, chosen.of, _SORTS[""].title),
                    entry("gr-name", "Part of a name", "or a pattern: desk-*", value=chosen.name, waits=True),
                    picker("gr-state", "State", states, chosen.state, "every state"),
                ],
                className="controls",
            ),
            html.Div(
                [dcc.Input(id=f"gr-{name}", type="hidden", value=getattr(chosen, name)) for name in ("sort", "page")],
                hidden=True,
            ),
            html.Section(
                [
                    html.P(found["gr-count"], id="gr-count", role="status"),
                    html.Div(found["gr-rows"], id="gr-rows", className="scroll"),
                    html.Nav(found["gr-turn"], id="gr-turn", className="turn", **{"aria-label": "Pages of rows"}),
                ],
                className="card",
            ),
            html.P(
                "A title sorts by its column; a second press turns the order around. The worst row is first otherwise. "
                "The address holds what is chosen here.",
                className="foot",
            ),
        ]
    )
