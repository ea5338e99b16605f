"""The fleet page: the main fault and its receiver, the figures behind it, and the charts of the last minutes.

`parts` makes the content of every part that changes from a view; `layout` arranges the parts. The first page and every
update come from the same function, so that the first page is complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dash import dcc

from heliograph.dashboards.live.figures.latency import over_time, percentile_spectrum
from heliograph.dashboards.live.figures.lines import receiver_colours, topic_colours
from heliograph.dashboards.live.figures.repair import losses, naks
from heliograph.dashboards.live.figures.throughput import throughput
from heliograph.dashboards.live.pages import control, numbers, stores, tables
from heliograph.dashboards.live.pages.address import refused
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.head import head
from heliograph.dashboards.live.pages.parts import card, chart, named, tile
from heliograph.dashboards.live.pages.verdict import Verdict, drawn, troubled
from heliograph.dashboards.live.series import EVERYTHING, QUANTILES, Group, Point, merged
from heliograph.dashboards.live.store import View
from heliograph.dashboards.words import BEHAVIOUR
from heliograph.monitor.alerts import State
from heliograph.monitor.groups import groups_of
from heliograph.monitor.latency import percentiles

__all__ = ["PLACES", "Choice", "choice", "layout", "parts", "verdict_parts"]

PLACES = (
    "tiles",
    "receivers",
    "carried",
    "stores",
    "known",
    "streams",
    "throughput",
    "throughput-twin",
    "naks",
    "naks-twin",
    "losses",
    "losses-twin",
    "latency",
    "latency-twin",
    "spectrum",
    "spectrum-twin",
    "instances",
    "events",
    "groups",
)
"""Ids of the parts that change with the view; graphs change their figure, `groups` its options, others their text."""

GRAPHS = frozenset({"throughput", "naks", "losses", "latency", "spectrum"})


@dataclass(frozen=True, slots=True)
class Choice:
    """The selections of one reader."""

    group: Group = EVERYTHING
    """The group shown in the chart of latency over time."""
    kind: Literal["receiver", "topic"] = "receiver"
    """The lines of the spectrum: receivers or topics."""


def verdict_parts(verdict: Verdict) -> list[Any]:
    """Return the content of the first line."""
    return drawn(verdict)


def parts(view: View, choice: Choice) -> dict[str, Any]:
    """Return the content by part (see PLACES)."""
    points = view.points
    spectrum = view.spectrum_points
    return {
        "tiles": _tiles(view),
        "receivers": tables.receivers(view),
        "carried": tables.carried(view),
        "stores": stores.listed(view),
        "known": control.known(view),
        "streams": control.streams(view),
        "throughput": throughput(points),
        "throughput-twin": _throughput_twin(points),
        "naks": naks(points),
        "naks-twin": _receiver_twin(points, "NAKs/s", "naks"),
        "losses": losses(points),
        "losses-twin": _losses_twin(points),
        "latency": over_time(points, choice.group),
        "latency-twin": _latency_twin(points),
        "spectrum": percentile_spectrum(spectrum, choice.kind),
        "spectrum-twin": _spectrum_twin(spectrum, choice.kind),
        "instances": tables.instances(view),
        "events": tables.events(view),
        "groups": _groups(points),
    }


def choice(values: Mapping[str, Sequence[str]], view: View) -> tuple[Choice, list[str]]:
    """Return the possible part of a selection, and messages about the rest.

    Args:
        values: Values by name: groups and kind, from an address.
        view: The view that the page shows.
    """
    said: list[str] = []
    group, kind = (str((values.get(name) or [default])[0]) for name, default in (("groups", EVERYTHING), ("kind", "")))
    if all(option["value"] != group for option in _groups(view.points)):
        said.append(refused("Group", group, "has no latency at present; the chart shows all"))
        group = EVERYTHING
    if kind not in ("", "receiver", "topic"):
        said.append(refused("Kind", kind, "is not possible; the spectrum shows receivers"))
    return Choice(group, "topic" if kind == "topic" else "receiver"), said


def layout(
    view: View, state: Mapping[str, Any], verdict: Verdict, chosen: Choice | None = None, said: Sequence[str] = ()
) -> html.Main:
    """Return the whole page.

    Args:
        view: The view to show.
        state: Its stamp.
        verdict: The first line.
        chosen: The selection of the reader; None: the default.
        said: Messages about the address of the page.
    """
    chosen = chosen or Choice()
    found = parts(view, chosen)
    return html.Main(
        [
            *head("/", "", state, view, said),
            html.Section(verdict_parts(verdict), id="verdict", className=f"verdict {verdict.tone}"),
            html.Div(verdict.announced, id="verdict-spoken", className="unseen", role="status"),
            html.Dl(found["tiles"], id="tiles", className="tiles"),
            card(
                "Receivers",
                "worst first; over all topics of each",
                html.Div(found["receivers"], id="receivers"),
                html.P(dcc.Link("All of them in the grid", href="/grid", refresh=False), className="more"),
            ),
            card("Topics", "worst first; with their senders", html.Div(found["carried"], id="carried")),
            card("Message stores", "worst first", html.Div(found["stores"], id="stores")),
            card(
                "Congestion control",
                "receivers as their sources see them, worst first; rates of the streams",
                html.Div(found["known"], id="known"),
                html.Div(found["streams"], id="streams"),
            ),
            html.Div(
                [
                    chart("throughput", "Throughput by topic", "solid: sent; dotted: delivered per receiver", found),
                    chart("naks", "Repair requests by receiver", "sequence numbers requested (NAKs)", found),
                    chart("losses", "Loss by receiver", "lines: packets missed; triangles: packets lost", found),
                    chart(
                        "latency", "Latency over time", "from submit to delivery", found, _group_choice(found, chosen)
                    ),
                    chart(
                        "spectrum",
                        "Percentile spectrum",
                        "last minute; every nine has the same width",
                        found,
                        _kind_choice(chosen),
                    ),
                    card("Events", "newest first", html.Div(found["events"], id="events", className="events")),
                ],
                className="charts",
            ),
            card("Instances", "instances in trouble first", html.Div(found["instances"], id="instances")),
            html.P(
                "Read from shared memory on this host. The page sends nothing to the engines and loads nothing "
                "from other hosts.",
                className="foot",
            ),
        ]
    )


def _group_choice(found: Mapping[str, Any], chosen: Choice) -> html.Div:
    picker = dcc.Dropdown(
        id="groups", options=found["groups"], value=chosen.group, clearable=False, searchable=False, className="picker"
    )
    return named("Group of the chart", picker, kind="choice")


def _kind_choice(chosen: Choice) -> html.Div:
    options = [{"label": "by receiver", "value": "receiver"}, {"label": "by topic", "value": "topic"}]
    lines = dcc.RadioItems(id="kind", options=options, value=chosen.kind, inline=True)
    return named("Lines of the spectrum", lines, kind="choice")


def _groups(points: tuple[Point, ...]) -> list[dict[str, str]]:
    names = sorted({group for point in points for group in point.latency if group != EVERYTHING})
    options = [{"label": "all topics, all receivers", "value": EVERYTHING}]
    return options + [{"label": group.replace(":", " "), "value": group} for group in names]


def _tiles(view: View) -> list[html.Div]:
    last = view.points[-1] if view.points else None
    bad = troubled(view.rows)
    tones = {BEHAVIOUR[row.behaviour].tone for row in bad}
    receiving = len(groups_of(view.rows, "instance"))
    delivered = sum(last.delivered.values()) if last else 0.0
    sent = sum(last.sent.values()) if last else 0.0
    naks = sum(last.naks.values()) if last else 0.0
    lost = sum(sum(point.lost.values()) * point.seconds for point in view.points)
    span = sum(point.seconds for point in view.points)
    tail = last.latency.get(EVERYTHING, {}) if last else {}
    return [
        tile("In trouble", f"{len(bad)}", f"of {receiving} receivers", "bad" if "bad" in tones else "".join(tones)),
        _alerts(view),
        tile("Sent", numbers.rate(sent), "msg/s"),
        tile("Delivered", numbers.rate(delivered), "msg/s, total"),
        tile("Repair requests", numbers.rate(naks), "NAKs/s"),
        tile("Packets lost", numbers.count(lost), f"unrecoverable, {numbers.seconds(span)}", "bad" if lost else ""),
        tile("Latency p50", numbers.latency(tail.get("p50")), "all"),
        tile("Latency p99.9", numbers.latency(tail.get("p99.9")), "all"),
        _detail(view),
    ]


def _alerts(view: View) -> html.Div:
    """The number of alerts that fire, which opens their page."""
    board = view.alerts
    if board is None or not board.judgement.time_ns or board.trouble:
        return tile("Alerts", dcc.Link(numbers.NONE, href="/alerts", refresh=False), "not judged")
    firing, pending = board.count(State.FIRING), board.count(State.PENDING)
    tone = "bad" if firing else "watch" if pending else ""
    return tile("Alerts", dcc.Link(str(firing), href="/alerts", refresh=False), f"firing, {pending} pending", tone)


def _detail(view: View) -> html.Div:
    """The number of raised levels of detail, which opens their page."""
    left = sum(item.is_left_on for item in view.raised)
    word = "level raised" if len(view.raised) == 1 else "levels raised"
    note = f"{word}, {left} left on" if left else word
    return tile("Detail", dcc.Link(str(len(view.raised)), href="/detail", refresh=False), note, "watch" if left else "")


def _throughput_twin(points: tuple[Point, ...]) -> html.Table:
    last = points[-1] if points else Point(0, 0.0)
    rows = [
        (topic, (numbers.rate(last.sent.get(topic)), numbers.rate(last.delivered.get(topic))))
        for topic in sorted(topic_colours(points))
    ]
    return tables.twin("Throughput by topic, newest interval", ("sent/s", "delivered/s"), rows)


def _receiver_twin(points: tuple[Point, ...], name: str, series: str) -> html.Table:
    last: Mapping[str, float] = getattr(points[-1], series) if points else {}
    drawn = [key for key in sorted(receiver_colours(points)) if key in last]
    highest = {key: max(getattr(point, series).get(key, 0.0) for point in points) for key in drawn}
    rows = [(key, (numbers.rate(last[key]), numbers.rate(highest[key]))) for key in drawn]
    return tables.twin(f"{name} by receiver", (name, "highest shown"), rows)


def _losses_twin(points: tuple[Point, ...]) -> html.Table:
    last = points[-1] if points else Point(0, 0.0)
    rows = [
        (
            name,
            (
                numbers.rate(last.missed.get(name)),
                numbers.rate(last.recovered.get(name)),
                numbers.count(sum(point.lost.get(name, 0.0) * point.seconds for point in points)),
            ),
        )
        for name in sorted(receiver_colours(points))
        if name in last.missed
    ]
    return tables.twin("Loss by receiver", ("missed/s", "recovered/s", "lost, all shown"), rows)


def _latency_twin(points: tuple[Point, ...]) -> html.Table:
    last = points[-1] if points else Point(0, 0.0)
    rows = [
        (group.replace(":", " "), tuple(numbers.latency(found[name]) for name in QUANTILES))
        for group in _with_lines(points)
        if (found := last.latency.get(group)) is not None
    ]
    return tables.twin("Latency, newest interval", tuple(QUANTILES), rows)


def _with_lines(points: tuple[Point, ...]) -> list[Group]:
    """Return the groups that have lines in charts: all, the busiest topics, the receivers with most missing packets."""
    topics = (f"topic:{name}" for name in topic_colours(points))
    return sorted([EVERYTHING, *(f"receiver:{name}" for name in receiver_colours(points)), *topics])


def _spectrum_twin(points: tuple[Point, ...], kind: str) -> html.Table:
    fractions = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999, "max": 1.0}
    rows = []
    for group in _with_lines(points):
        if not group.startswith(f"{kind}:"):
            continue
        if (histogram := merged(points, group)) is not None:
            values = percentiles(histogram, tuple(fractions.values()))
            rows.append((group.partition(":")[2], tuple(numbers.latency(value) for value in values)))
    return tables.twin("Percentiles of the last minute", tuple(fractions), rows)
