"""The tables of the fleet page: receivers, instances, events, and the values of the charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from heliograph.dashboards.live.pages import numbers
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.parts import badge, cell, gauge, of_receiver, of_topic, spark, table
from heliograph.dashboards.live.series import Point
from heliograph.dashboards.live.store import View
from heliograph.dashboards.words import BEHAVIOUR, HEALTH, Word
from heliograph.monitor.fleet import InstanceRow, TransmitterRow
from heliograph.monitor.groups import Group, groups_of
from heliograph.monitor.model import Event

__all__ = ["carried", "events", "hosts", "instance_figures", "instances", "receivers", "topics", "twin"]

MOST_ROWS = 15
MOST_EVENTS = 60
_SPARK_POINTS = 60

_SEVERITY: Mapping[str, Word] = {
    "info": Word("info", "·", "idle", 0),
    "warning": Word("warning", "▲", "watch", 1),
    "error": Word("error", "■", "bad", 2),
}
_NOBODY = Word("no receivers", "○", "idle", 0)
_RECEIVER_HEADS = (
    ("State", ""),
    ("Receiver", ""),
    ("Delivered/s", "n"),
    ("last minute", ""),
    ("Behind", "n"),
    ("Queue", ""),
    ("NAKs/s", "n"),
    ("last minute", ""),
    ("Missing", "n"),
    ("Lost", "n"),
    ("p50", "n"),
    ("p99.9", "n"),
    ("Why", ""),
)


def receivers(view: View) -> html.Div:
    """One line per receiving instance, worst first; the numbers cover all its topics."""
    groups = groups_of(view.rows, "instance")
    recent = view.points[-_SPARK_POINTS:]
    rows = [_receiver(groups[place], recent) for place in range(min(len(groups), MOST_ROWS))]
    body: list[Any] = [table(_RECEIVER_HEADS, rows, "Receivers, worst first")]
    if len(groups) > len(rows):
        body.append(html.P(f"and {len(groups) - len(rows)} more in a better state", className="more"))
    if not rows:
        body = [html.P("No instance receives yet.", className="nothing")]
    return html.Div(body)


def _receiver(group: Group, recent: Sequence[Point]) -> html.Tr:
    worst = group.worst
    word = BEHAVIOUR[worst.behaviour]
    name = worst.instance
    latency = recent[-1].latency.get(f"receiver:{name}", {}) if recent else {}
    many = f" {group.count} topics" if group.count > 1 else f" {worst.topic}"
    why = f"{worst.topic}: {worst.reason}" if group.count > 1 and word.tone != "good" else worst.reason
    return html.Tr(
        [
            html.Td(badge(word)),
            html.Td([of_receiver(name), html.Span(many, className="muted")]),
            cell(numbers.rate(group.delivered_per_s), "n"),
            html.Td(spark([point.by_receiver.get(name) for point in recent], "messages delivered per second")),
            cell(numbers.seconds(group.lag_seconds or 0.0), "n"),
            html.Td(gauge(group.queue_fill)),
            cell(numbers.rate(group.naks_per_s), "n"),
            html.Td(spark([point.naks.get(name) for point in recent], "NAKs per second")),
            cell(numbers.ratio(group.missing_ratio), "n"),
            cell(numbers.count(group.lost), "n loud" if group.lost else "n"),
            cell(numbers.latency(latency.get("p50")), "n"),
            cell(numbers.latency(latency.get("p99.9")), "n"),
            html.Td(why, className="why"),
        ],
        key=name,
        className=word.tone,
    )


def topics(view: View) -> html.Details:
    """One line for each receiver and topic, worst first."""
    heads = (
        ("State", ""),
        ("Receiver", ""),
        ("Topic", ""),
        ("From", ""),
        ("Sent/s", "n"),
        ("Delivered/s", "n"),
        ("Behind", "n"),
        ("Recovered", "n"),
        ("Lost", "n"),
        ("p50", "n"),
        ("p99", "n"),
        ("p99.9", "n"),
        ("max", "n"),
    )
    rows = [
        html.Tr(
            [
                html.Td(badge(BEHAVIOUR[row.behaviour])),
                cell(row.instance),
                html.Td(of_topic(row.topic, row.stream)),
                cell(row.transmitter or row.stream),
                cell(numbers.rate(row.sent_per_s), "n"),
                cell(numbers.rate(row.delivered_per_s), "n"),
                cell(numbers.count(row.lag_messages), "n"),
                cell(numbers.count(row.recovered), "n"),
                cell(numbers.count(row.lost), "n loud" if row.lost else "n"),
                cell(numbers.latency(row.p50_ns), "n"),
                cell(numbers.latency(row.p99_ns), "n"),
                cell(numbers.latency(row.p999_ns), "n"),
                cell(numbers.latency(row.max_ns), "n"),
            ],
            key=f"{row.instance} {row.topic} {row.stream}",
        )
        for row in view.rows[: 2 * MOST_ROWS]
    ]
    note = f"Each topic of each receiver ({len(view.rows)})"
    return html.Details(
        [html.Summary(note), table(heads, rows, "Receivers by topic, worst first")], className="twin", id="each-topic"
    )


def carried(view: View) -> html.Div:
    """One line per topic of a stream, that of the worst receiver first."""
    heads = (
        ("State", ""),
        ("Topic", ""),
        ("From", ""),
        ("Sent/s", "n"),
        ("Receivers", "n"),
        ("Behind", "n"),
        ("Lost", "n"),
        ("Worst receiver", ""),
        ("Stream", ""),
    )
    groups = groups_of(view.rows, "topic")
    sent = {(row.topic, row.stream): row for row in view.transmitters}
    places = list(dict.fromkeys([*groups.names, *sent]))
    if not places:
        return html.Div(html.P("No topic in reach.", className="nothing"))
    lines = [
        _carried(topic, stream, groups.find((topic, stream)), sent.get((topic, stream)))
        for topic, stream in places[:MOST_ROWS]
    ]
    body: list[Any] = [table(heads, lines, "Topics, worst first")]
    if len(places) > MOST_ROWS:
        body.append(html.P(f"and {len(places) - MOST_ROWS} more in a better state", className="more"))
    return html.Div(body)


def _carried(topic: str, stream: str, group: Group | None, sent: TransmitterRow | None) -> html.Tr:
    worst = group.worst if group else None
    word = BEHAVIOUR[worst.behaviour] if worst else _NOBODY
    lost = group.lost if group else 0
    name = sent.instance if sent else (worst.transmitter if worst else None) or "out of reach"
    return html.Tr(
        [
            html.Td(badge(word)),
            html.Td(of_topic(topic, stream)),
            cell(name),
            cell(numbers.rate(sent.sent_per_s if sent else worst.sent_per_s if worst else None), "n"),
            cell(numbers.count(group.count if group else 0), "n"),
            cell(numbers.seconds(group.lag_seconds if group else None), "n"),
            cell(numbers.count(lost), "n loud" if lost else "n"),
            html.Td(of_receiver(worst.instance)) if worst else cell(numbers.NONE),
            cell(stream, "muted"),
        ],
        key=f"{topic} {stream}",
        className=word.tone,
    )


def instances(view: View) -> html.Div:
    """One line per instance, instances in trouble first."""
    heads = (
        ("State", ""),
        ("Instance", ""),
        ("Sent/s", "n"),
        ("Received/s", "n"),
        ("NAKs in/s", "n"),
        ("NAKs out/s", "n"),
        ("Socket drops", "n"),
        ("Memory", "n"),
        ("Up", "n"),
        ("Where", ""),
    )
    ordered = sorted(view.instances, key=lambda row: (-HEALTH[row.health].rank, row.name))
    rows = [_instance(row) for row in ordered[:MOST_ROWS]]
    if not rows:
        return html.Div(html.P("No instance found.", className="nothing"))
    body: list[Any] = [table(heads, rows, "Instances")]
    if len(ordered) > MOST_ROWS:
        body.append(html.P(f"and {len(ordered) - MOST_ROWS} more", className="more"))
    return html.Div(body)


def instance_figures(row: InstanceRow) -> list[html.Td]:
    """Return the cells of an instance with figures: sent, received, NAKs in and out, socket drops, memory, time up."""
    return [
        cell(numbers.rate(row.sent_per_s), "n"),
        cell(numbers.rate(row.received_per_s), "n"),
        cell(numbers.rate(row.naks_received_per_s), "n"),
        cell(numbers.rate(row.naks_sent_per_s), "n"),
        cell(numbers.count(row.socket_drops), "n"),
        cell(numbers.size(row.memory_bytes), "n"),
        cell(numbers.seconds(row.uptime_s), "n"),
    ]


def _instance(row: InstanceRow) -> html.Tr:
    word = HEALTH[row.health]
    return html.Tr(
        [
            html.Td(badge(word), title=row.reason),
            html.Td(html.Strong(row.name)),
            *instance_figures(row),
            cell(f"{row.host}, pid {row.pid}" if row.host else f"pid {row.pid}", "muted"),
        ],
        key=row.name,
        className=word.tone,
    )


def events(view: View) -> html.Div:
    """The events, newest first."""
    rows = [_event(event) for event in view.events[:MOST_EVENTS]]
    if not rows:
        return html.Div(html.P("No events since the server of this page started.", className="nothing"))
    body: list[Any] = [html.Div(html.Table(html.Tbody(rows), **{"aria-label": "Events"}), className="scroll tall")]
    if view.events_missed:
        body.append(html.P(f"{view.events_missed:,} were overwritten before they could be read", className="more"))
    return html.Div(body)


def _event(event: Event) -> html.Tr:
    word = _SEVERITY.get(event.severity, _SEVERITY["info"])
    moment = datetime.fromtimestamp(event.time_ns / 1e9)
    return html.Tr(
        [
            html.Td(moment.strftime("%H:%M:%S"), className="muted", title=moment.isoformat(timespec="milliseconds")),
            html.Td(html.Span(word.shape, className=f"shape {word.tone}", title=word.text)),
            html.Td(html.Strong(event.instance)),
            html.Td(event.text or event.name.replace("_", " "), className="why"),
        ],
        key=f"{event.instance} {event.incarnation} {event.number}",
        className=word.tone,
    )


def twin(place: str, names: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> html.Table:
    """The newest values of a chart as a table: one row per line of the chart."""
    head = html.Tr([html.Th("")] + [html.Th(name, className="n") for name in names])
    body = [html.Tr([cell(name), *(cell(value, "n") for value in values)], key=name) for name, values in rows]
    return html.Table([html.Thead(head), html.Tbody(body)], **{"aria-label": place})


def hosts(points: Sequence[Point], names: Sequence[str]) -> html.Table:
    """The values of the chart of hosts: how long each instance stood still, and how often its wall clock was set."""
    rows = []
    for name in names[:MOST_ROWS]:
        found = [row for point in points if (row := point.hosts.get(name)) is not None]
        longest = [row.hiccup_ns for row in found if row.hiccup_ns is not None]
        newest = found[-1].hiccup_ns if found else None
        steps = sum(row.steps for row in found)
        shown = (numbers.latency(newest), numbers.latency(max(longest) if longest else None), numbers.count(steps))
        rows.append((name, shown))
    return twin("Time without a processor", ("newest interval", "longest shown", "clock set, times"), rows)
