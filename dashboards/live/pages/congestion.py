"""The page of one stream's congestion control: what limits it, what was decided, and from which inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from heliograph.dashboards.live.figures.congestion import MARKS, PANELS, control, kind_of, values
from heliograph.dashboards.live.pages import control as tables_of_control
from heliograph.dashboards.live.pages import numbers, tables
from heliograph.dashboards.live.pages.address import refused
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.head import head
from heliograph.dashboards.live.pages.numbers import moment
from heliograph.dashboards.live.pages.parts import card, cell, chart, of_topic, picker, table, tile
from heliograph.dashboards.live.pages.verdict import old
from heliograph.dashboards.live.receiving import REST
from heliograph.dashboards.live.sending import DECISIONS, WAITS, Sending
from heliograph.dashboards.live.store import View
from heliograph.dashboards.words import HEALTH, Tone
from heliograph.monitor.model import Event, Health
from heliograph.monitor.sources import StreamRow

__all__ = ["CHOICES", "PLACES", "Choice", "choice", "layout", "parts"]

PLACES: Mapping[str, str] = {
    "cc-verdict": "children",
    "cc-tiles": "children",
    "cc-axis": "figure",
    "cc-axis-twin": "children",
    "cc-events": "children",
    "cc-totals": "children",
    "cc-known": "children",
    "cc-topics": "children",
    "cc-stream": "options",
}
"""Ids of the parts that change with the view, and the property that holds them."""

CHOICES = ("cc-stream",)
"""Ids of the selections, in the address without the prefix."""

_TITLE = "Rate, loss, windows, credit, waits, requests"
_HEIGHT = "640px"
_MOST_ROWS = 60
_LEAST_WAIT = 0.01
"""Share of the time that is worth a word."""
_BYTES = frozenset({"from", "to", "rate", "bytes_per_second"})
_IDENTITIES = frozenset({"receiver", "receiver_index", "symptom", "action", "cause"})
"""Numbers of events that their texts put in words."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The selection of one reader."""

    stream: str = ""


def _order(row: StreamRow) -> tuple[Any, ...]:
    return not row.storm, -row.isolated, -row.troubled, -row.limited_share, row.instance, row.stream


def _streams(view: View) -> list[StreamRow]:
    """Return the streams, the one in most trouble first."""
    return sorted(view.streams, key=_order)


def choice(values: Mapping[str, Sequence[str]], view: View) -> tuple[Choice, list[str]]:
    """Return the possible part of a selection, and messages about the rest.

    Args:
        values: Values by name: stream, from an address.
        view: The view that the page shows.
    """
    stream = str((values.get("stream") or [""])[0])
    names = [row.stream for row in _streams(view)]
    if stream in names:
        return Choice(stream), []
    said = [refused("Stream", stream, "is not sent in reach; the page shows the worst stream")] if stream else []
    return Choice(names[0] if names else ""), said


def parts(view: View, chosen: Choice) -> dict[str, Any]:
    """Return the content by part (see PLACES)."""
    stream = chosen.stream
    row = next((row for row in view.streams if row.stream == stream), None)
    events = [event for event in view.events if event.labels.get("stream") == stream and kind_of(event) is not None]
    sent = view.points[-1].sending.get(stream) if view.points else None
    return {
        "cc-verdict": _verdict(view, stream, row, sent),
        "cc-tiles": _tiles(row, sent),
        "cc-axis": control(view.points, stream, events),
        "cc-axis-twin": _twin(view, stream),
        "cc-events": _events(view, events),
        "cc-totals": _totals(sent),
        "cc-known": tables_of_control.known(replace(view, known=tuple(x for x in view.known if x.stream == stream))),
        "cc-topics": _topics(view, stream),
        "cc-stream": [{"label": f"{item.instance}: {item.stream}", "value": item.stream} for item in _streams(view)],
    }


def layout(view: View, state: Mapping[str, Any], chosen: Choice, said: Sequence[str] = ()) -> html.Main:
    """Return the whole page.

    Args:
        view: The view to show.
        state: Its stamp.
        chosen: The selection of the reader.
        said: Messages about the address of the page.
    """
    found = parts(view, chosen)
    return html.Main(
        [
            *head("/congestion", "cc-", state, view, said),
            html.Div([picker("cc-stream", "Stream", found["cc-stream"], chosen.stream, "none")], className="controls"),
            html.Div(old(state) or found["cc-verdict"], id="cc-verdict"),
            html.Dl(found["cc-tiles"], id="cc-tiles", className="tiles"),
            chart("cc-axis", _TITLE, "on one time axis; marks and dotted lines: events", found, height=_HEIGHT),
            card(
                "Decisions", "events of congestion control, newest first", html.Div(found["cc-events"], id="cc-events")
            ),
            card(
                "Inputs of the decisions",
                "receivers as the source sees them, worst first",
                html.Div(found["cc-known"], id="cc-known"),
            ),
            card(
                "Decisions so far",
                [
                    "since the start of the stream; with all inputs in the decision log: ",
                    html.A(
                        "what other options would have decided",
                        href=f"/whatif?{urlencode({'log': chosen.stream}, errors='replace')}",
                    ),
                ],
                html.Div(found["cc-totals"], id="cc-totals"),
            ),
            card("Topics", "of this stream", html.Div(found["cc-topics"], id="cc-topics")),
        ]
    )


def _section(tone: Tone, headline: str, *more: str) -> html.Section:
    body: list[Any] = [html.H1(headline)]
    if more:
        body.append(html.Ul([html.Li(text) for text in more]))
    return html.Section(body, className=f"verdict {tone}")


def _per_second(value: int, none: str = "no limit") -> str:
    return f"{numbers.size(value)}/s" if value else none


def _longest(row: StreamRow, sent: Sending | None) -> tuple[str, float]:
    """Return the reason for which data waits longest, and the share of the time."""
    if sent is not None and sent.waits:
        reason = max(sent.waits, key=lambda name: sent.waits[name])
        return WAITS[reason], sent.waits[reason]
    return WAITS[REST], row.limited_share


def _verdict(view: View, stream: str, row: StreamRow | None, sent: Sending | None) -> html.Section:
    """The limits of the stream in words, and the decision behind them."""
    if row is None:
        text = f"{stream} is not sent in reach any more" if stream else "No sent stream in reach"
        return _section("idle", text, "Congestion control is seen at the sender, and no sender of it is in reach.")
    more = [f"Rate in force: {_per_second(row.rate)}; decided: {_per_second(row.rate_decided)}"]
    if row.rate_state:
        more[0] += f", {row.rate_state} by the last decision, for a loss of {numbers.ratio(row.loss)}"
    if sent is not None and sent.paced:
        more.append(f"The stream is paced to a slow receiver: {_per_second(sent.paced)}")
    if row.troubled or row.isolated:
        more.append(f"{row.troubled} of {row.receivers} receivers in trouble, {row.isolated} isolated")
    more += [f"{item.called}: {item.reason}" for item in view.known if item.stream == stream and item.action][
        :_MOST_ROWS
    ]
    owner = next((item for item in view.instances if item.name == row.instance), None)
    if owner is not None and owner.health is not Health.LIVE:
        word = HEALTH[owner.health]
        return _section(word.tone, f"{owner.name}, the source, is {word.text}: {owner.reason}", *more)
    if row.storm:
        asked = f"{numbers.rate(row.naks_per_s)} NAKs/s, {numbers.count(row.repairs_waiting)} repairs wait"
        return _section("bad", f"NAK storm on the stream of {row.instance}: {asked}", *more)
    reason, share = _longest(row, sent)
    if share >= _LEAST_WAIT:
        return _section("watch", f"Data of {row.instance} waits {numbers.ratio(share)} of the time {reason}", *more)
    tone: Tone = "watch" if row.troubled or row.isolated else "good"
    return _section(tone, f"Nothing holds back the data of {row.instance}", *more)


def _tiles(row: StreamRow | None, sent: Sending | None) -> list[html.Div]:
    if row is None:
        return []
    _, share = _longest(row, sent)
    credit = numbers.count(sent.credit) if sent is not None and sent.credit is not None else numbers.NONE
    room = numbers.count(sent.room) if sent is not None and sent.room is not None else numbers.NONE
    return [
        tile("Sent", f"{numbers.size(row.bytes_per_s)}/s", "data"),
        tile("Rate in force", _per_second(row.rate), ""),
        tile("Rate decided", _per_second(row.rate_decided), row.rate_state),
        tile("Loss", numbers.ratio(row.loss), "that decides"),
        tile("Data waits", numbers.ratio(share), "of the time", "watch" if share >= _LEAST_WAIT else ""),
        tile("Packets permitted", room, "by windows"),
        tile("Credit left", credit, "messages"),
        tile(
            "NAK storm", "yes" if row.storm else "no", f"{numbers.rate(row.naks_per_s)}/s", "bad" if row.storm else ""
        ),
    ]


def _twin(view: View, stream: str) -> html.Table:
    """Newest, lowest and highest value of each line of the chart."""
    rows = []
    for panel, name, each in values(view.points, stream):
        title, unit, _ = PANELS[panel]
        known = [value for value in each if value is not None]
        newest = each[-1]
        shown = tuple(_figure(value) for value in (newest, min(known), max(known)))
        rows.append((f"{title}: {name}, {unit}", shown))
    heads = ("newest", "lowest shown", "highest shown") if rows else ("the sender is out of reach",)
    return tables.twin("Congestion control", heads, rows)


def _figure(value: float | None) -> str:
    return numbers.NONE if value is None else f"{value:,.1f}" if value % 1 else f"{value:,.0f}"


def _events(view: View, events: Sequence[Event]) -> html.Div:
    if not events:
        return html.Div(
            html.P("No event of congestion control since the server of this page started.", className="nothing")
        )
    heads = (("Time", ""), ("Decision", ""), ("Inputs and result", ""), ("Text", ""))
    rows = [
        html.Tr(
            [
                cell(moment(event.time_ns, view.time_ns), "muted"),
                html.Td(html.Strong(MARKS[kind_of(event) or ""].text)),
                cell(_inputs(event)),
                html.Td(event.text, className="why"),
            ],
            key=f"{event.instance} {event.incarnation} {event.number}",
        )
        for event in events[:_MOST_ROWS]
    ]
    return html.Div(table(heads, rows, "Events of congestion control"))


def _inputs(event: Event) -> str:
    """Return the numbers of an event with their names and units."""
    found = [_input(name, value) for name, value in event.arguments.items() if name not in _IDENTITIES]
    return ", ".join(found)


def _input(name: str, value: int) -> str:
    stem, _, unit = name.rpartition("_")
    if unit == "millionths":
        return f"{stem} {numbers.ratio(value / 1e6)}"
    if unit in ("ns", "ms"):
        return f"{stem} {numbers.latency(value * (1_000_000 if unit == 'ms' else 1))}"
    if name in _BYTES:
        return f"{'rate' if name == 'bytes_per_second' else name} {_per_second(value)}"
    if name == "queue_bytes":
        return f"queue {numbers.size(value)}"
    return f"{name.replace('_', ' ')} {value:,}"


def _totals(sent: Sending | None) -> html.Table | html.P:
    counts = sent.totals if sent is not None else {}
    rows = [(meaning, (f"{counts[name]:,}",)) for name, meaning in DECISIONS.items() if name in counts]
    if not rows:
        return html.P("No decision was counted.", className="nothing")
    return tables.twin("Decisions so far", ("times",), rows)


def _topics(view: View, stream: str) -> html.Div:
    heads = (("Topic", ""), ("Sent/s", "n"), ("Packets/s", "n"), ("Queue", "n"), ("Receivers in reach", "n"))
    found = [row for row in view.transmitters if row.stream == stream]
    rows = [
        html.Tr(
            [
                html.Td(of_topic(row.topic, row.stream)),
                cell(numbers.rate(row.sent_per_s), "n"),
                cell(numbers.rate(row.packets_per_s), "n"),
                cell(numbers.size(row.queue_bytes), "n"),
                cell(numbers.count(row.receivers), "n"),
            ],
            key=row.topic,
        )
        for row in found[:_MOST_ROWS]
    ]
    if not rows:
        return html.Div(html.P("No topic of this stream is in reach.", className="nothing"))
    body: list[Any] = [table(heads, rows, "Topics of the stream")]
    if len(found) > len(rows):
        body.append(html.P(f"and {len(found) - len(rows)} more", className="more"))
    return html.Div(body)
