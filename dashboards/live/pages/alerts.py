"""The page of the alerts: which rules fire, why the others do not, values against thresholds, runbooks and silences."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from dash import dcc

from heliograph.dashboards.live.alerting import Board
from heliograph.dashboards.live.figures.alerts import bars, timeline
from heliograph.dashboards.live.firing import RuleRow, figure, limit, named, rule_rows
from heliograph.dashboards.live.pages import numbers, tables
from heliograph.dashboards.live.pages.address import refused
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.head import head
from heliograph.dashboards.live.pages.numbers import moment
from heliograph.dashboards.live.pages.parts import (
    badge,
    card,
    cell,
    chart,
    of_alert,
    of_receiver,
    of_stream,
    of_topic,
    picker,
    table,
    tile,
)
from heliograph.dashboards.live.pages.verdict import old
from heliograph.dashboards.live.silences import Silence, silenced
from heliograph.dashboards.live.store import View
from heliograph.dashboards.words import ALERT, Tone
from heliograph.monitor.alerts import Held, Rule, State
from heliograph.monitor.groups import groups_of

__all__ = ["CHOICES", "DRAWN_BY_DASH", "PLACES", "Choice", "choice", "layout", "parts", "runbook"]

PLACES: Mapping[str, str] = {
    "al-verdict": "children",
    "al-tiles": "children",
    "al-rules": "children",
    "al-one": "children",
    "al-times": "figure",
    "al-times-twin": "children",
    "al-silences": "children",
    "al-alert": "options",
}
"""Ids of the parts that change with the view, and the property that holds them."""

DRAWN_BY_DASH = ("al-one",)
"""Ids of the parts whose children have components beyond html and links: a runbook is Markdown."""

CHOICES = ("al-alert", "al-show")
"""Ids of the selections, in the address without the prefix."""

_MOST_ROWS = 60
_OLD_JUDGEMENT = 30.0
"""Age of a judgement, in seconds, from which the page gives it."""
_NONE = "This server judges no alerts."
_LINK = re.compile(r"\[([^\]\n]+)\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Choice:
    """The selections of one reader."""

    alert: str = ""
    """Name of the alert that is shown whole; empty: the worst."""
    show: str = ""
    """State of the alerts in the table; empty: all."""


def choice(values: Mapping[str, Sequence[str]], view: View) -> tuple[Choice, list[str]]:
    """Return the possible part of a selection, and messages about the rest.

    Args:
        values: Values by name: alert and show, from an address.
        view: The view that the page shows.
    """
    alert, show = (str((values.get(name) or [""])[0]) for name in ("alert", "show"))
    said = []
    if alert and alert not in {rule.name for rule in _board(view).rules}:
        said.append(refused("Alert", alert, "is not in the rules; the page shows the worst alert"))
        alert = ""
    if show and show not in set(State):
        said.append(refused("Show", show, "is not a state; the table has all alerts"))
        show = ""
    return Choice(alert, show), said


def _board(view: View) -> Board:
    return view.alerts or Board()


def parts(view: View, chosen: Choice) -> dict[str, Any]:
    """Return the content by part (see PLACES)."""
    board = _board(view)
    rows = rule_rows(board)
    one = next((row for row in rows if row.rule.name == chosen.alert), rows[0] if rows else None)
    held = board.judgement.held
    lines = bars([(f"{_short(each.rule)}: {named(each.labels, short=True)}", each) for each in held])
    return {
        "al-verdict": _verdict(view, board, rows),
        "al-tiles": _tiles(board),
        "al-rules": _rules(view, rows, chosen),
        "al-one": _one(view, board, one) if one is not None else html.P(_NONE, className="nothing"),
        "al-times": timeline(board.judgement, lines),
        "al-times-twin": _twin(view, board),
        "al-silences": _silences(view, board),
        "al-alert": [{"label": rule.name, "value": rule.name} for rule in sorted(board.rules, key=lambda x: x.name)],
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
    states = [{"label": ALERT[item].text, "value": item.value} for item in State]
    return html.Main(
        [
            *head("/alerts", "al-", state, view, said),
            html.Div(
                [
                    picker("al-alert", "Alert", found["al-alert"], chosen.alert, "the worst"),
                    picker("al-show", "State", states, chosen.show, "all"),
                ],
                className="controls",
            ),
            html.Div(old(state) or found["al-verdict"], id="al-verdict"),
            html.Dl(found["al-tiles"], id="al-tiles", className="tiles"),
            card("Alerts", "worst first", html.Div(found["al-rules"], id="al-rules")),
            html.Section(found["al-one"], id="al-one", className="card", **{"data-drawn-by": "dash"}),
            chart(
                "al-times",
                "Conditions and alerts over time",
                "thin: the condition held; thick: the alert fired",
                found,
                height="300px",
            ),
            card("Silences", "of Alertmanager", html.Div(found["al-silences"], id="al-silences")),
            html.P(
                "The rules are those of deploy/alerts.toml, judged by promtool over the samples of this page. "
                "Prometheus judges them over its own, so the last minutes may differ, and sends the notifications.",
                className="foot",
            ),
        ]
    )


def _short(name: str) -> str:
    return name.removeprefix("Heliograph")


def _verdict(view: View, board: Board, rows: Sequence[RuleRow]) -> html.Section:
    """The first line: what fires, and how current that is."""
    judgement = board.judgement
    more = []
    if board.trouble:
        more.append(
            f"Since {moment(board.since_ns, view.time_ns or board.since_ns)} nothing is judged: {board.trouble}"
        )
    if not board.rules:
        return _section("idle", _NONE, *more)
    if not judgement.time_ns:
        return _section("watch" if board.trouble else "idle", "The alerts have not been judged yet", *more)
    age = (view.time_ns - judgement.time_ns) / 1e9
    kept = numbers.seconds((judgement.time_ns - judgement.oldest_ns) / 1e9)
    more.append(
        f"Judged at the sample of {moment(judgement.time_ns, view.time_ns)}, over {kept} of samples"
        + (f"; that is {numbers.seconds(age)} ago" if age > _OLD_JUDGEMENT else "")
    )
    if (manager := board.silences) is not None and manager.trouble:
        more.append(f"The silences are not known: {_absence(view, board)}")
    firing = [row for row in rows if row.state is State.FIRING]
    pending = [row for row in rows if row.state is State.PENDING]
    waiting = f"{len(pending)} pending" if pending else "none pending"
    if firing:
        first, others = firing[0], len(firing) - 1
        tone: Tone = "bad" if any(row.rule.severity == "critical" for row in firing) else "watch"
        headline = f"{_short(first.rule.name)} fires at {named(first.worst or {}, short=True)}"
        if others:
            headline += f", and {others} other alert{'s' * (others > 1)}"
        return _section(tone, f"{headline}; {waiting}", *more)
    if pending:
        return _section("watch", f"No alert fires; {waiting}: {_short(pending[0].rule.name)} first", *more)
    return _section("good", "No alert fires, and none is pending", *more)


def _section(tone: Tone, headline: str, *more: str) -> html.Section:
    return html.Section(
        [html.H1(headline), html.Ul([html.Li(text) for text in more])] if more else [html.H1(headline)],
        className=f"verdict {tone}",
    )


def _tiles(board: Board) -> list[html.Div]:
    counts = {state: board.count(state) for state in State}
    tones = {State.FIRING: "bad", State.PENDING: "watch"}
    found = [
        tile(ALERT[state].text.capitalize(), str(count), "alerts", tones.get(state, "") if count else "")
        for state, count in counts.items()
    ]
    manager = board.silences
    if manager is None:
        return [*found, tile("Silences", numbers.NONE, "no Alertmanager")]
    active = sum(one.is_active for one in manager.found)
    shown = str(active) if manager.time_ns else numbers.NONE
    return [
        *found,
        tile("Silences", shown, "not current" if manager.trouble else "active", "watch" if manager.trouble else ""),
    ]


def _rules(view: View, rows: Sequence[RuleRow], chosen: Choice) -> html.Div:
    shown = [row for row in rows if not chosen.show or row.state == chosen.show]
    if not shown:
        text = f"No alert is {ALERT[State(chosen.show)].text}." if chosen.show else _NONE
        return html.Div(html.P(text, className="nothing"))
    heads = (("State", ""), ("Alert", ""), ("Severity", ""), ("Worst object", ""), ("Value", "n"), ("Fires if", "n"))
    found = table((*heads, ("Since when, or why not", "")), [_rule(view, row, chosen) for row in shown], "Alerts")
    found.className = "scroll tall"
    return html.Div(found)


def _value(row: RuleRow, labels: Mapping[str, str] | None = None) -> str:
    """Return the value of an object of a rule, or the worst one."""
    readings = row.readings
    if labels is not None:
        readings = [one for one in readings if labels.items() <= one.labels.items()] or [
            one for one in readings if one.labels.items() <= labels.items()
        ]
    return figure(readings[0].value, row.rule.unit) if readings else numbers.NONE


def _rule(view: View, row: RuleRow, chosen: Choice) -> html.Tr:
    word = ALERT[row.state]
    first = row.held[0].labels if row.state in (State.FIRING, State.PENDING) else None
    silence = _hush(view, row)
    return html.Tr(
        [
            html.Td(badge(word)),
            html.Td(of_alert(row.rule.name, show=chosen.show)),
            cell(row.rule.severity, "muted"),
            cell(numbers.NONE if row.worst is None else named(row.worst), "muted"),
            cell(_value(row, first), "n"),
            cell(limit(row.rule) or numbers.NONE, "n"),
            html.Td(f"{row.reason}; {silence}" if silence else row.reason, className="why"),
        ],
        key=row.rule.name,
        className=word.tone if row.state in (State.FIRING, State.PENDING) else None,
    )


def _labels(rule: Rule, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of an alert that are known here."""
    return {"alertname": rule.name, "severity": rule.severity, **labels}


def _hush(view: View, row: RuleRow) -> str:
    """Return how many of the firing objects are silenced, in words."""
    silences = _board(view).silences
    firing = [one for one in row.held if one.is_firing]
    found = [silenced(silences, _labels(row.rule, one.labels)) for one in firing]
    sure = sum(any(certain for _, certain in each) for each in found)
    maybe = sum(bool(each) for each in found) - sure
    if not sure and not maybe:
        return ""
    if sure == len(firing):
        return "silenced"
    return f"{sure} of {len(firing)} silenced" if not maybe else f"perhaps silenced ({sure + maybe} of {len(firing)})"


def _one(view: View, board: Board, row: RuleRow) -> list[Any]:
    """One alert whole: its objects, its condition and its runbook."""
    rule = row.rule
    heads = (("Object", ""), ("State", ""), ("Value", "n"), ("Fires if", "n"), ("Since", ""), ("Opens", ""))
    objects = [_firing(view, row, one) for one in row.held if one.is_firing or one.is_pending]
    known = [dict(one.labels) for one in row.held if one.is_firing or one.is_pending]
    for reading in row.readings:
        if not any(labels.items() <= reading.labels.items() for labels in known):
            objects.append(_reading(view, row, reading.labels, reading.value))
    times = f"fires after {numbers.seconds(rule.holds)}" if rule.holds else "fires at once"
    body: list[Any] = [
        html.Header(
            [
                html.H2(rule.name),
                html.P(f"{rule.severity}, {times}, stays for {numbers.seconds(rule.keep)} after its condition"),
            ]
        ),
        html.P([badge(ALERT[row.state]), f" {row.reason}"], className="more"),
    ]
    if objects:
        body.append(table(heads, objects[:_MOST_ROWS], f"Objects of {rule.name}"))
    if len(objects) > _MOST_ROWS:
        body.append(html.P(f"and {len(objects) - _MOST_ROWS} more", className="more"))
    body.append(html.Details([html.Summary("Condition"), html.Pre(_lines(rule.condition))], className="twin scroll"))
    if rule.runbook:
        body.append(dcc.Markdown(runbook(rule), className="runbook", dangerously_allow_html=False))
    else:
        body.append(html.P("This alert has no runbook.", className="nothing"))
    return body


def runbook(rule: Rule) -> list[str]:
    """Return the lines of a rule's runbook in Markdown; links between runbooks open the alerts."""
    return _LINK.sub(lambda link: _linked(link, rule), rule.runbook).splitlines()


def _lines(text: str) -> list[Any]:
    return [part for line in text.splitlines() for part in (line, html.Br())]


def _linked(link: re.Match[str], rule: Rule) -> str:
    """A link between runbooks opens the alert; others lead to the team's copy of the pages."""
    text, target = link.groups()
    name = target.removesuffix(".md")
    if re.fullmatch(r"Heliograph\w+", name):
        return f"[{text}](/alerts?alert={name})"
    return f"[{text}]({urljoin(rule.runbook_url, target)})"


def _opens(view: View, labels: Mapping[str, str]) -> list[Any]:
    """Return links to the pages of an object, as far as it is in reach."""
    found: list[Any] = []
    receivers = {name for (name,) in groups_of(view.rows, "instance").names}
    for name in dict.fromkeys(labels.get(key, "") for key in ("receiver", "node")):
        if name in receivers:
            found.append(of_receiver(name))
    stream, topic = labels.get("stream", ""), labels.get("topic", "")
    if topic and stream:
        found.append(of_topic(topic, stream))
    if stream in {row.stream for row in view.streams}:
        found.append(of_stream(stream, "stream"))
    return [part for each in found for part in (each, " ")][:-1] or [numbers.NONE]


def _firing(view: View, row: RuleRow, one: Held) -> html.Tr:
    state = State.FIRING if one.is_firing else State.PENDING
    since = (one.fired if one.is_firing else one.condition)[-1]
    text = moment(since.begin_ns, view.time_ns) + ("" if since.is_whole else " or earlier")
    found = silenced(_board(view).silences, _labels(row.rule, one.labels)) if one.is_firing else []
    for silence, certain in found[:1]:
        text += f"; {'silenced' if certain else 'perhaps silenced'} until {moment(silence.end_ns, view.time_ns)}"
    return html.Tr(
        [
            html.Td(html.Strong(named(one.labels))),
            html.Td(badge(ALERT[state])),
            cell(_value(row, one.labels), "n"),
            cell(limit(row.rule), "n"),
            cell(text),
            html.Td(_opens(view, one.labels)),
        ],
        key=named(one.labels),
        className=ALERT[state].tone,
    )


def _reading(view: View, row: RuleRow, labels: Mapping[str, str], value: float) -> html.Tr:
    return html.Tr(
        [
            cell(named(labels)),
            html.Td(badge(ALERT[State.QUIET])),
            cell(figure(value, row.rule.unit), "n"),
            cell(limit(row.rule), "n"),
            cell(numbers.NONE),
            html.Td(_opens(view, labels)),
        ],
        key=named(labels),
    )


def _twin(view: View, board: Board) -> html.Table:
    judgement = board.judgement
    rows = []
    for item in judgement.held:
        name = f"{_short(item.rule)}: {named(item.labels)}"
        for kind, spans in (("condition", item.condition), ("fired", item.fired)):
            for span in spans:
                end = "now" if span.end_ns is None else moment(span.end_ns, view.time_ns)
                begin = moment(span.begin_ns, view.time_ns) + ("" if span.is_whole else " or earlier")
                rows.append((f"{name}, {kind}", (begin, end)))
    heads = ("from", "to") if rows else ("no condition held",)
    return tables.twin("Conditions and alerts over time", heads, rows)


def _absence(view: View, board: Board) -> str:
    manager = board.silences
    if manager is None:
        return ""
    since = moment(manager.since_ns, view.time_ns or manager.since_ns)
    return f"{manager.address} since {since}: {manager.trouble}"


def _silences(view: View, board: Board) -> list[Any]:
    manager = board.silences
    if manager is None:
        text = "No Alertmanager is given: heliograph live --alertmanager http://HOST:PORT shows its silences."
        return [html.P(text, className="nothing")]
    body: list[Any] = []
    if manager.trouble:
        body.append(html.P(_absence(view, board), className="said bad"))
    if not manager.time_ns:
        return body or [html.P(f"{manager.address} has not answered yet.", className="nothing")]
    read = f"Read from {manager.address} at {moment(manager.time_ns, view.time_ns or manager.time_ns)}"
    omitted = f"; {manager.omitted} of its silences are left out" if manager.omitted else ""
    if manager.found:
        heads = (("State", ""), ("Labels", ""), ("From", ""), ("To", ""), ("By", ""), ("Comment", ""))
        body.append(table(heads, [_silence(view, one) for one in manager.found[:_MOST_ROWS]], "Silences"))
        if len(manager.found) > _MOST_ROWS:
            body.append(html.P(f"and {len(manager.found) - _MOST_ROWS} more", className="more"))
    else:
        body.append(html.P("No silence is active or planned.", className="nothing"))
    return [*body, html.P(f"{read}{omitted}.", className="more")]


def _silence(view: View, one: Silence) -> html.Tr:
    return html.Tr(
        [
            cell("active" if one.is_active else "planned"),
            cell(", ".join(map(str, one.matchers))),
            cell(moment(one.begin_ns, view.time_ns or one.begin_ns), "muted"),
            cell(moment(one.end_ns, view.time_ns or one.end_ns)),
            cell(one.author),
            html.Td(one.comment, className="why"),
        ]
    )
