"""The page of one receiver: its state and since when, position, lag, latency by stage, losses, actions and events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heliograph.dashboards.live.figures.hosts import stood
from heliograph.dashboards.live.figures.receiver import lag, located, position, queue, stages
from heliograph.dashboards.live.pages import control, numbers, tables
from heliograph.dashboards.live.pages.address import refused
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.head import head
from heliograph.dashboards.live.pages.numbers import moment
from heliograph.dashboards.live.pages.parts import badge, card, cell, chart, picker, table, tile
from heliograph.dashboards.live.pages.verdict import clause, fault_text, old
from heliograph.dashboards.live.receiving import STAGES, Receiving
from heliograph.dashboards.live.store import View
from heliograph.dashboards.words import ACTION, BEHAVIOUR, FAULT, Tone
from heliograph.monitor.clocks import Trust
from heliograph.monitor.groups import groups_of, rows_of_instance
from heliograph.monitor.localise import PLACES as LOCATIONS
from heliograph.monitor.model import Event
from heliograph.monitor.sources import ReceiverOfStream

__all__ = ["CHOICES", "PLACES", "Choice", "choice", "layout", "parts"]

_CHARTS: Mapping[str, tuple[str, str]] = {
    "rx-position": ("Position and history", "packets behind the sender; the band is the history; dotted: as reported"),
    "rx-lag": ("Lag", "age of the oldest message that the application does not have"),
    "rx-queue": ("Receive queue", "the fullest queue of all topics"),
    "rx-stages": ("Latency by stage", "means of each interval; their sum is the mean latency"),
    "rx-losses": ("Loss locations", "packets that were missing at first, by interval"),
    "rx-hosts": ("Hosts", "longest time without a processor, here and at its senders; diamonds: the clock was set"),
}
"""Title and note of each chart."""

PLACES: Mapping[str, str] = {
    "rx-verdict": "children",
    "rx-tiles": "children",
    **dict.fromkeys(_CHARTS, "figure"),
    **{f"{place}-twin": "children" for place in _CHARTS},
    "rx-topics": "children",
    "rx-lost": "children",
    "rx-known": "children",
    "rx-events": "children",
    "rx-instance": "options",
    "rx-stream": "options",
}
"""Ids of the parts that change with the view, and the property that holds them."""

CHOICES = ("rx-instance", "rx-stream")
"""Ids of the selections, in the address without the prefix."""

_MOST_ROWS = 40
_RANGE = "of the last minutes"


@dataclass(frozen=True, slots=True)
class Choice:
    """The selections of one reader."""

    instance: str = ""
    """The receiver: name of its instance, or its address where only its source is in reach."""
    stream: str = ""
    """The stream in the chart of positions; empty or not received any more: that of the worst topic."""


def _names(view: View) -> list[str]:
    """Return the receivers, worst first; those that only their sources know follow."""
    here = (name for (name,) in groups_of(view.rows, "instance").names)
    return list(dict.fromkeys([*here, *(row.called for row in view.known)]))


def _is_about(event: Event, name: str, known: Sequence[ReceiverOfStream]) -> bool:
    places = {(row.instance, row.stream, row.address) for row in known}
    labels = event.labels
    return event.instance == name or (event.instance, labels.get("stream"), labels.get("receiver")) in places


def _of(view: View, name: str) -> View:
    """Return the part of a view that is about one receiver."""
    known = tuple(row for row in view.known if row.called == name)
    rows = tuple(rows_of_instance(view.rows, name))
    ends = {name, *(row.transmitter for row in rows), *(row.instance for row in known)}
    streams = {row.stream for row in rows} | {row.stream for row in known}
    return replace(
        view,
        rows=rows,
        known=known,
        faults=tuple(fault for fault in view.faults if fault.concerns(streams, ends)),
        losses=tuple(row for row in view.losses if row.instance == name),
        events=tuple(event for event in view.events if _is_about(event, name, known)),
    )


def _streams(own: View) -> list[str]:
    """Return the streams of a receiver, that of the worst topic first."""
    return list(dict.fromkeys([*(row.stream for row in own.rows), *(row.stream for row in own.known)]))


def _ends(own: View, name: str) -> list[str]:
    """Return the receiver and its senders in reach."""
    senders = (row.transmitter for row in own.rows)
    return list(dict.fromkeys([name, *(sender for sender in senders if sender)]))


def choice(values: Mapping[str, Sequence[str]], view: View) -> tuple[Choice, list[str]]:
    """Return the possible part of a selection, and messages about the rest.

    Args:
        values: Values by name: instance and stream, from an address.
        view: The view that the page shows.
    """
    said: list[str] = []
    name, stream = (str((values.get(key) or [""])[0]) for key in ("instance", "stream"))
    names = _names(view)
    if name not in names:
        if name:
            said.append(refused("Receiver", name, "is not in reach; the page shows the worst receiver"))
        name = names[0] if names else ""
    if stream and stream not in _streams(_of(view, name)):
        said.append(refused("Stream", stream, "is not received here; the page shows that of the worst topic"))
        stream = ""
    return Choice(name, stream), said


def parts(view: View, chosen: Choice) -> dict[str, Any]:
    """Return the content by part (see PLACES)."""
    name, points = chosen.instance, view.points
    own = _of(view, name)
    streams = _streams(own)
    stream = chosen.stream if chosen.stream in streams else (streams or [""])[0]
    return {
        "rx-verdict": _verdict(own, name),
        "rx-tiles": _tiles(own, name, stream),
        "rx-position": position(points, name, stream),
        "rx-position-twin": _position_twin(own, name, stream),
        "rx-lag": lag(points, name),
        "rx-lag-twin": _lag_twin(own),
        "rx-queue": queue(points, name),
        "rx-queue-twin": _queue_twin(own),
        "rx-stages": stages(points, name),
        "rx-stages-twin": _stages_twin(own, name),
        "rx-losses": located(points, name),
        "rx-losses-twin": _losses_twin(own, name),
        "rx-hosts": stood(points, _ends(own, name)),
        "rx-hosts-twin": tables.hosts(points, _ends(own, name)),
        "rx-topics": tables.topics(own).children,
        "rx-lost": _lost(own),
        "rx-known": [control.known(own), _actions(own)],
        "rx-events": tables.events(own),
        "rx-instance": [{"label": item, "value": item} for item in _names(view)],
        "rx-stream": [{"label": item, "value": item} for item in streams],
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
            *head("/receiver", "rx-", state, view, said),
            html.Div(
                [
                    picker("rx-instance", "Receiver", found["rx-instance"], chosen.instance, "none"),
                    picker("rx-stream", "Stream", found["rx-stream"], chosen.stream, "stream of the worst topic"),
                ],
                className="controls",
            ),
            html.Div(old(state) or found["rx-verdict"], id="rx-verdict"),
            html.Dl(found["rx-tiles"], id="rx-tiles", className="tiles"),
            html.Div(
                [
                    *(chart(place, title, note, found) for place, (title, note) in _CHARTS.items()),
                    card(
                        "Unrecoverable losses",
                        "by stream and cause, latest first; kept while the instance runs",
                        html.Div(found["rx-lost"], id="rx-lost"),
                    ),
                ],
                className="charts",
            ),
            card(
                "Topics",
                "worst first",
                html.Details(found["rx-topics"], id="rx-topics", className="twin", open=True),
            ),
            card("Actions", "as the sources see this receiver", html.Div(found["rx-known"], id="rx-known")),
            card(
                "Events",
                "of this receiver, and of its sources about it; newest first",
                html.Div(found["rx-events"], id="rx-events", className="events"),
            ),
        ]
    )


def _since(since_ns: int, own: View) -> str:
    if not since_ns:
        return "Since when is not known: there is only one observation."
    return f"Since {moment(since_ns, own.time_ns)}."


def _verdict(own: View, name: str) -> html.Section:
    """The state of the receiver in words, since when, and the evidence. A fault comes before a state that is well."""
    faults = sorted(own.faults, key=lambda fault: name not in fault.instances)[:_MOST_ROWS]  # its own ones first
    if own.rows:
        worst = own.rows[0]
        word, since = BEHAVIOUR[worst.behaviour], worst.since_ns
        headline = f"{name} keeps up" if word.tone == "good" else f"{clause(worst, own.rows)}: {worst.reason}"
    elif own.known:
        word, since = BEHAVIOUR[own.known[0].behaviour], own.known[0].since_ns
        headline = f"{name}, as its source sees it: {word.text}"
    else:
        text = f"{name} is not in reach any more" if name else "No receiver in reach"
        return html.Section([html.H1(text), html.P("")], className="verdict idle")
    tone: Tone = word.tone
    evidence = [fault_text(fault, own.time_ns) for fault in faults] + _evidence(own)
    state = _since(since, own)
    if faults and name in faults[0].instances and tone == "good":
        tone, state = FAULT[faults[0].kind].tone, f"{headline}. {state}"
        headline, *evidence = evidence
    body: list[Any] = [html.H1(headline), html.P(state)]
    if evidence:
        body.append(html.Ul([html.Li(text) for text in evidence]))
    return html.Section(body, className=f"verdict {tone}")


def _evidence(own: View) -> list[str]:
    """Return facts beside the headline: topics in another state, the sources' view, loss locations, late messages."""
    others = [row for row in own.rows if row.behaviour is not own.rows[0].behaviour]
    found = [f"{row.topic}: {row.reason}" for row in others if BEHAVIOUR[row.behaviour].tone != "good"]
    found += [f"{row.instance} sees: {row.reason}" for row in own.known if row.reason]
    for row in own.rows:
        if row.loss_place:
            found.append(f"Most missing packets: {LOCATIONS[row.loss_place]}")
        if row.late is not None:
            found.append(f"Latest messages: {row.late.reason}")
        if row.trust is Trust.FLAGGED and row.latency[0] is not None:
            found.append(f"Latency: {row.latency[0].reason}")
    return list(dict.fromkeys(found))[:_MOST_ROWS]


def _last(own: View, name: str) -> Receiving:
    return own.points[-1].receiving.get(name, Receiving()) if own.points else Receiving()


def _tiles(own: View, name: str, stream: str) -> list[html.Div]:
    last = _last(own, name)
    where = last.positions.get(stream)
    tail = own.points[-1].latency.get(f"receiver:{name}", {}) if own.points else {}
    lost = sum(row.lost for row in own.rows)
    forecasts = [row.forecast_ns for row in own.known if row.forecast_ns]
    leaves = numbers.seconds(min(forecasts) / 1e9) if forecasts else "none" if own.known else numbers.NONE
    return [
        tile("Delivered", numbers.rate(sum(row.delivered_per_s for row in own.rows)), "msg/s"),
        tile("Behind", numbers.count(sum(row.lag_messages for row in own.rows)), "messages"),
        tile("Lag", numbers.seconds(last.lag_seconds), "oldest message"),
        tile("Fullest queue", f"{100 * last.queue_fill:.0f} %", "", "bad" if last.queue_fill >= 0.8 else ""),
        tile("Behind in the stream", numbers.count(where.behind) if where else numbers.NONE, "packets"),
        tile("Loss forecast", leaves, "by its source", "bad" if forecasts else ""),
        tile("Lost", numbers.count(lost), "messages", "bad" if lost else ""),
        tile("Latency p99.9", numbers.latency(tail.get("p99.9")), "all topics"),
    ]


def _position_twin(own: View, name: str, stream: str) -> html.Table:
    """Positions in the stream, and which packets leave the history when."""
    where = _last(own, name).positions.get(stream)
    if where is None:
        return tables.twin("Position", ("no position is known",), [])
    rows = [
        ("stream", (stream,)),
        ("newest packet sent", (f"{where.newest:,}",)),
        ("next packet that the receiver needs", (f"{where.needed:,}",)),
        ("packets behind", (f"{where.behind:,}",)),
        ("packets behind, as reported", (f"{where.reported:,}" if where.reported is not None else numbers.NONE,)),
    ]
    if where.oldest is None or where.margin is None:
        return tables.twin("Position", ("",), [*rows, ("history", ("the sender is out of reach",))])
    pace = _pace(own, name, stream)
    rows += [
        ("oldest packet in the history", (f"{where.oldest:,}",)),
        ("packets in the history", (f"{where.depth:,}",)),
        ("packets that leave the history, per second", (numbers.rate(pace),)),
        ("time until the newest packet leaves", (numbers.seconds((where.depth or 0) / pace if pace else None),)),
        ("time until the needed packet leaves", (_leaves(where.margin, pace),)),
        ("forecast of its sources", ("; ".join(row.forecast_text for row in own.known) or numbers.NONE,)),
    ]
    return tables.twin("Position", ("",), rows)


def _pace(own: View, name: str, stream: str) -> float | None:
    """Return the packets per second that leave the history, over the points shown; None: unknown."""
    found = [
        (point.time_ns, where.oldest)
        for point in own.points
        if (where := point.receiving.get(name, Receiving()).positions.get(stream)) and where.oldest is not None
    ]
    if len(found) < 2 or found[-1][0] <= found[0][0]:
        return None
    return max(0.0, (found[-1][1] - found[0][1]) / ((found[-1][0] - found[0][0]) / 1e9))


def _leaves(margin: int, pace: float | None) -> str:
    if margin < 0:
        return f"{-margin:,} packets have left"
    return "never at this rate" if pace == 0 else numbers.seconds(margin / pace if pace else None)


def _lag_twin(own: View) -> html.Table:
    rows = [
        (
            row.topic,
            (
                numbers.count(row.lag_messages),
                numbers.size(row.lag_bytes) if row.lag_bytes is not None else numbers.NONE,
                numbers.seconds(row.lag_seconds),
                str(row.lag_basis),
            ),
        )
        for row in own.rows[:_MOST_ROWS]
    ]
    return tables.twin("Lag by topic", ("messages", "bytes", "time", "basis of the time"), rows)


def _queue_twin(own: View) -> html.Table:
    rows = [
        (row.topic, (numbers.count(row.queue_messages), numbers.size(row.queue_bytes), numbers.ratio(row.queue_fill)))
        for row in own.rows[:_MOST_ROWS]
    ]
    return tables.twin("Queue by topic", ("messages", "bytes", "fill"), rows)


def _stages_twin(own: View, name: str) -> html.Table:
    found = [item.stages for point in own.points if (item := point.receiving.get(name)) and item.stages]
    rows = []
    for stage, meaning in STAGES.items():
        values = [one[stage] for one in found if stage in one]
        shown = (found[-1].get(stage), max(values)) if values else (None, None)
        rows.append((f"{stage}: {meaning}", tuple(numbers.latency(value) for value in shown)))
    return tables.twin("Latency by stage", ("newest mean", "highest mean"), rows)


def _losses_twin(own: View, name: str) -> html.Table:
    """Packets by loss location, with the first and the last time in the range of the chart."""
    seen: dict[str, list[tuple[int, int]]] = {}
    for point in own.points:
        for place, count in point.receiving.get(name, Receiving()).located.items():
            seen.setdefault(place, []).append((point.time_ns, count))
    rows = [
        (
            f"{place}: {LOCATIONS[place]}",
            (
                numbers.count(sum(count for _, count in found)),
                moment(found[0][0], own.time_ns),
                moment(found[-1][0], own.time_ns),
            ),
        )
        for place, found in sorted(seen.items())
    ]
    return tables.twin("Loss locations", (f"packets {_RANGE}", "first", "last"), rows)


def _lost(own: View) -> html.Div:
    if not own.losses:
        return html.Div(html.P("No packet was lost.", className="nothing"))
    heads = (
        ("Cause", ""),
        ("From", ""),
        ("Losses", "n"),
        ("Packets", "n"),
        ("Longest", "n"),
        ("First", ""),
        ("Last", ""),
        ("Sequences", ""),
        ("Stream", ""),
    )
    rows = [
        html.Tr(
            [
                html.Td(html.Strong(row.cause.replace("_", " "))),
                cell(row.transmitter or row.source or row.stream),
                cell(numbers.count(row.observations), "n"),
                cell(numbers.count(row.packets), "n loud"),
                cell(numbers.count(row.longest), "n"),
                cell(moment(row.first_ns, own.time_ns)),
                cell(moment(row.last_ns, own.time_ns)),
                cell(f"{row.first_sequence:,} to {row.last_sequence:,}", "muted"),
                cell(row.stream, "muted"),
            ]
        )
        for row in own.losses[:_MOST_ROWS]
    ]
    return html.Div(table(heads, rows, "Unrecoverable losses"))


def _actions(own: View) -> html.Div:
    """The actions of the sources on this receiver, with their history."""
    heads = (
        ("Action", ""),
        ("Source", ""),
        ("Class since", ""),
        ("Suspensions", "n"),
        ("Not repaired", "n"),
        ("Data waited for it", "n"),
        ("Certainly lost", "n"),
        ("Forecast", ""),
        ("Stream", ""),
    )
    rows = [
        html.Tr(
            [
                html.Td(badge(ACTION[row.action])),
                cell(row.instance),
                cell(moment(row.since_ns, own.time_ns) if row.since_ns else numbers.NONE),
                cell(numbers.count(row.suspensions), "n"),
                cell(numbers.count(row.naks_shed), "n"),
                cell(numbers.seconds(row.blame_ns / 1e9), "n"),
                cell(numbers.count(row.lost_certain), "n"),
                cell(row.forecast_text),
                cell(row.stream, "muted"),
            ]
        )
        for row in own.known[:_MOST_ROWS]
    ]
    return html.Div(table(heads, rows, "Actions of the sources") if rows else None)
