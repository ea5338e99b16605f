"""The page of one topic of one stream: its sender, all receivers in a race, repairs, and events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heliograph.dashboards.live.figures.hosts import stood
from heliograph.dashboards.live.figures.topic import queue, race, rates
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
    gauge,
    of_receiver,
    of_stream,
    picker,
    table,
    tile,
)
from heliograph.dashboards.live.pages.verdict import clause, fault_text, old
from heliograph.dashboards.live.receiving import Position, Receiving
from heliograph.dashboards.live.sending import Sending
from heliograph.dashboards.live.series import Point
from heliograph.dashboards.live.store import View
from heliograph.dashboards.words import ACTION, BEHAVIOUR, CALM, FAULT, HEALTH, Tone
from heliograph.monitor.behaviour import Behaviour
from heliograph.monitor.faults import Fault
from heliograph.monitor.fleet import ReceiverRow, TransmitterRow
from heliograph.monitor.groups import groups_of, rows_of_topic
from heliograph.monitor.joined import column_of
from heliograph.monitor.model import Event, Health
from heliograph.monitor.rows import InstanceRow
from heliograph.monitor.sources import ReceiverOfStream

__all__ = ["CHOICES", "PLACES", "Choice", "choice", "layout", "parts"]

_CHARTS: Mapping[str, tuple[str, str]] = {
    "tp-race": (
        "Sender and receivers",
        "packets of the stream behind the sender; the band is the history; dotted: as reported",
    ),
    "tp-rates": ("Sent, repaired, requested", "packets of this topic; repairs and NAKs of its whole stream"),
    "tp-queue": ("Submit queue", "messages of this topic that wait to be sent"),
    "tp-hosts": ("Hosts", "longest time without a processor, of sender and receivers; diamonds: the clock was set"),
}
"""Title and note of each chart."""

PLACES: Mapping[str, str] = {
    "tp-verdict": "children",
    "tp-tiles": "children",
    "tp-source": "children",
    **dict.fromkeys(_CHARTS, "figure"),
    **{f"{place}-twin": "children" for place in _CHARTS},
    "tp-receivers": "children",
    "tp-events": "children",
    "tp-topic": "options",
    "tp-stream": "options",
}
"""Ids of the parts that change with the view, and the property that holds them."""

CHOICES = ("tp-topic", "tp-stream")
"""Ids of the selections, in the address without the prefix."""

_MOST_ROWS = 40
_TONES: Sequence[Tone] = ("bad", "watch", "idle", "good")
_HEADS = (
    ("State", ""),
    ("Receiver", ""),
    ("Since", ""),
    ("Behind", "n"),
    ("Lag", "n"),
    ("Queue", ""),
    ("NAKs/s", "n"),
    ("Lost", "n"),
    ("Forecast of loss", "n"),
    ("Action", ""),
    ("p99.9", "n"),
    ("Why", ""),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The selections of one reader."""

    topic: str = ""
    stream: str = ""
    """The stream that carries the topic; empty or without it: that of the worst receiver."""


@dataclass(frozen=True, slots=True)
class _Racer:
    """One receiver, as it sees itself, as its source sees it, or both."""

    name: str
    row: ReceiverRow | None
    known: ReceiverOfStream | None

    @property
    def behaviour(self) -> Behaviour:
        if self.row is not None:
            return self.row.behaviour
        return self.known.behaviour if self.known is not None else Behaviour.UNKNOWN

    @property
    def tone(self) -> Tone:
        """The worse of the tones of its class and of the action on it."""
        tones = [BEHAVIOUR[self.behaviour].tone]
        if self.known is not None and self.known.action:
            tones.append(ACTION[self.known.action].tone)
        return min(tones, key=_TONES.index)


@dataclass(frozen=True, slots=True)
class _Topic:
    """The part of a view that is about one topic of one stream."""

    topic: str
    stream: str
    view: View
    sender: TransmitterRow | None
    owner: InstanceRow | None
    """The instance of the sender."""
    racers: Sequence[_Racer]
    """Its receivers, worst first; those of its stream that only the source knows are among them."""

    @property
    def rows(self) -> list[ReceiverRow]:
        return [racer.row for racer in self.racers if racer.row is not None]

    @property
    def far(self) -> list[_Racer]:
        """Receivers of the stream that only the source knows."""
        return [racer for racer in self.racers if racer.row is None]

    @property
    def point(self) -> Point | None:
        return self.view.points[-1] if self.view.points else None

    @property
    def sending(self) -> Sending | None:
        return self.point.sending.get(self.stream) if self.point is not None else None

    @property
    def ends(self) -> list[str]:
        """The instances of the sender and of the receivers, worst first."""
        first = [self.sender.instance] if self.sender is not None else []
        return list(dict.fromkeys([*first, *(racer.name for racer in self.racers)]))

    @property
    def faults(self) -> list[Fault]:
        """Faults of the stream and of the ends, worst first; those of other topics' queues are left out."""
        ends = set(self.ends)
        found = [fault for fault in self.view.faults if fault.concerns((self.stream,), ends)]
        return [fault for fault in found if fault.topic in ("", self.topic)]

    def position(self, name: str) -> Position | None:
        """Return the position of a receiver in the stream."""
        return self.point.receiving.get(name, Receiving()).positions.get(self.stream) if self.point else None


def _topics(view: View) -> list[tuple[str, str]]:
    """Return topics with their streams: those with receivers first, the worst first."""
    here = ((topic, stream) for topic, stream in groups_of(view.rows, "topic").names)
    return list(dict.fromkeys([*here, *((row.topic, row.stream) for row in view.transmitters)]))


def _of(view: View, chosen: Choice) -> _Topic:
    topic = chosen.topic
    streams = [stream for name, stream in _topics(view) if name == topic]
    stream = chosen.stream if chosen.stream in streams else (streams or [""])[0]
    rows = rows_of_topic(view.rows, topic, stream)
    known = {row.called: row for row in reversed(view.known) if row.stream == stream}  # the worst of equal names
    here = {name for name, _, other in column_of(view.rows, "identity") if other == stream}
    racers = [_Racer(row.instance, row, known.get(row.instance)) for row in rows]
    racers += [_Racer(name, None, row) for name, row in reversed(known.items()) if name not in here]
    racers.sort(key=lambda racer: _TONES.index(racer.tone))  # stable: otherwise as the monitor ranks them
    senders = [row for row in view.transmitters if (row.topic, row.stream) == (topic, stream)]
    sender = min(senders, key=lambda row: row.health is not Health.LIVE, default=None)
    owner = next((row for row in view.instances if sender is not None and row.name == sender.instance), None)
    return _Topic(topic, stream, view, sender, owner, racers)


def choice(values: Mapping[str, Sequence[str]], view: View) -> tuple[Choice, list[str]]:
    """Return the possible part of a selection, and messages about the rest.

    Args:
        values: Values by name: topic and stream, from an address.
        view: The view that the page shows.
    """
    said: list[str] = []
    topic, stream = (str((values.get(key) or [""])[0]) for key in ("topic", "stream"))
    topics = _topics(view)
    if topic not in {name for name, _ in topics}:
        if topic:
            said.append(refused("Topic", topic, "is not in reach; the page shows the topic of the worst receiver"))
        topic = topics[0][0] if topics else ""
        stream = stream if (topic, stream) in topics else ""
    elif stream and (topic, stream) not in topics:
        said.append(refused("Stream", stream, "does not carry this topic; the page shows that of the worst receiver"))
        stream = ""
    return Choice(topic, stream), said


def parts(view: View, chosen: Choice) -> dict[str, Any]:
    """Return the content by part (see PLACES)."""
    own = _of(view, chosen)
    names = [racer.name for racer in own.racers]
    topics = _topics(view)
    return {
        "tp-verdict": _verdict(own),
        "tp-tiles": _tiles(own),
        "tp-source": _source(own),
        "tp-race": race(view.points, own.stream, names),
        "tp-race-twin": _race_twin(own),
        "tp-rates": rates(view.points, own.stream, own.topic),
        "tp-rates-twin": _rates_twin(own),
        "tp-queue": queue(view.points, own.stream, own.topic),
        "tp-queue-twin": _queue_twin(own),
        "tp-hosts": stood(view.points, own.ends),
        "tp-hosts-twin": tables.hosts(view.points, own.ends),
        "tp-receivers": _receivers(own),
        "tp-events": tables.events(_with_events(own)),
        "tp-topic": [{"label": name, "value": name} for name in sorted({name for name, _ in topics})],
        "tp-stream": [{"label": stream, "value": stream} for name, stream in topics if name == own.topic],
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
            *head("/topic", "tp-", state, view, said),
            html.Div(
                [
                    picker("tp-topic", "Topic", found["tp-topic"], chosen.topic, "none"),
                    picker("tp-stream", "Stream", found["tp-stream"], chosen.stream, "stream of the worst receiver"),
                ],
                className="controls",
            ),
            html.Div(old(state) or found["tp-verdict"], id="tp-verdict"),
            html.Dl(found["tp-tiles"], id="tp-tiles", className="tiles"),
            html.Div(
                [chart(place, title, note, found) for place, (title, note) in _CHARTS.items()],
                className="charts",
            ),
            card("Receivers", "worst first", html.Div(found["tp-receivers"], id="tp-receivers")),
            card("Sender", "and its stream", html.Div(found["tp-source"], id="tp-source")),
            card(
                "Events",
                "of this topic and of its stream, newest first",
                html.Div(found["tp-events"], id="tp-events", className="events"),
            ),
        ]
    )


def _is_about(event: Event, own: _Topic) -> bool:
    labels = event.labels
    return labels.get("stream") == own.stream and labels.get("topic", own.topic) == own.topic


def _with_events(own: _Topic) -> View:
    return View(time_ns=own.view.time_ns, events=tuple(event for event in own.view.events if _is_about(event, own)))


def _section(tone: Tone, headline: str, *more: str) -> html.Section:
    body: list[Any] = [html.H1(headline)]
    if more:
        body.append(html.Ul([html.Li(text) for text in dict.fromkeys(more)]))
    return html.Section(body, className=f"verdict {tone}")


def _verdict(own: _Topic) -> html.Section:
    """The state of the topic in words, with the evidence."""
    topic, owner = own.topic, own.owner
    if own.sender is None and not own.rows:
        if not topic:
            return _section("idle", "No topic in reach", "No instance in reach sends or receives a topic.")
        return _section(
            "idle", f"{topic} is not in reach any more", "Neither its sender nor a receiver of it is in reach."
        )
    bad = [row for row in own.rows if row.behaviour not in CALM and row.badness > 0]
    faults = own.faults
    told = [fault_text(fault, own.view.time_ns) for fault in faults[:_MOST_ROWS]]
    more = [f"{clause(row, own.rows)}: {row.reason}" for row in bad[1:_MOST_ROWS]] + told
    more += [
        f"{racer.known.instance} sees {racer.name}: {racer.known.reason}"
        for racer in own.racers[:_MOST_ROWS]
        if racer.known is not None and racer.known.reason
    ]
    if own.sender is None:
        more.append("The sender is out of reach: what was sent, the history and the forecast of loss are not known.")
    if owner is not None and owner.health is not Health.LIVE:
        word = HEALTH[owner.health]
        if bad:
            more.insert(0, f"{clause(bad[0], own.rows)}: {bad[0].reason}")
        return _section(word.tone, f"{owner.name}, the sender of {topic}, is {word.text}: {owner.reason}", *more)
    if bad:
        return _section(BEHAVIOUR[bad[0].behaviour].tone, f"{clause(bad[0], own.rows)}: {bad[0].reason}", *more)
    count = len([row for row in own.rows if row.behaviour is not Behaviour.STOPPED])
    if not count:
        tone: Tone = min((racer.tone for racer in own.far), key=_TONES.index, default="idle")
        if own.far:
            more.append(f"Its source knows {len(own.far)} receivers of the stream; their topics are not known here.")
        return _section("idle" if tone == "good" else tone, f"{topic} has no receiver in reach", *more)
    headline = f"The receiver of {topic} keeps up" if count == 1 else f"All {count} receivers of {topic} keep up"
    troubled: Tone = min((racer.tone for racer in own.racers), key=_TONES.index)
    if faults:
        tone = min(FAULT[faults[0].kind].tone, troubled, key=_TONES.index)
        return _section(tone, told[0], headline, *more[1:])
    return _section("good" if troubled == "idle" else troubled, headline, *more)


def _forecast(known: ReceiverOfStream | None) -> tuple[str, bool]:
    """Return the forecast of the source as text, and whether packets leave the history."""
    if known is None or not known.forecast:
        return numbers.NONE, False
    if known.forecast == "past":
        return f"{numbers.count(known.lost_certain)} packets have left", True
    if known.forecast_ns:
        return f"in {numbers.seconds(known.forecast_ns / 1e9)}", True
    return "none", False


def _tiles(own: _Topic) -> list[html.Div]:
    rows, sender = own.rows, own.sender
    bad = [row for row in rows if row.behaviour not in CALM and row.badness > 0]
    lags = [row.lag_seconds for row in rows if row.lag_seconds is not None]
    tails = [row.p999_ns for row in rows if row.p999_ns is not None]
    lost = sum(row.lost for row in rows)
    times = [racer.known.forecast_ns for racer in own.racers if racer.known is not None and racer.known.forecast_ns]
    gone = any(racer.known is not None and racer.known.forecast == "past" for racer in own.racers)
    known = any(racer.known is not None and racer.known.forecast for racer in own.racers)
    leaves = "past" if gone else numbers.seconds(min(times) / 1e9) if times else "none" if known else numbers.NONE
    delivered = sum(row.delivered_per_s for row in rows) / len(rows) if rows else None
    return [
        tile("In trouble", f"{len(bad)}", f"of {len(rows)} receivers", "bad" if bad else ""),
        tile("Sent", numbers.rate(sender.sent_per_s if sender else None), "msg/s"),
        tile("Delivered", numbers.rate(delivered), "msg/s, mean"),
        tile("Largest lag", numbers.seconds(max(lags) if lags else None), "oldest message"),
        tile("Loss forecast", leaves, "by the source", "bad" if times or gone else ""),
        tile("Lost", numbers.count(lost), "messages", "bad" if lost else ""),
        tile("Latency p99.9", numbers.latency(max(tails) if tails else None), "worst"),
    ]


def _source(own: _Topic) -> html.Div:
    """The sender of the topic, with the page of its congestion control."""
    sender = own.sender
    if sender is None:
        return html.Div(html.P("The sender is out of reach.", className="nothing"))
    heads = (
        ("State", ""),
        ("Sender", ""),
        ("Congestion control", ""),
        ("Sent/s", "n"),
        ("Bytes/s", "n"),
        ("Next message", "n"),
        ("Queue", "n"),
        ("History", "n"),
        ("Repairs/s", "n"),
        ("NAKs/s", "n"),
        ("Endpoint", ""),
    )
    word = HEALTH[sender.health]
    row = html.Tr(
        [
            html.Td(badge(word)),
            html.Td(html.Strong(sender.instance)),
            html.Td(of_stream(own.stream)),
            cell(numbers.rate(sender.sent_per_s), "n"),
            cell(f"{numbers.size(sender.bytes_per_s)}/s", "n"),
            cell(f"{sender.next_message:,}", "n"),
            cell(numbers.size(sender.queue_bytes), "n"),
            cell(f"{numbers.count(sender.history_packets)} packets", "n"),
            cell(numbers.rate(sender.repairs_per_s), "n"),
            cell(numbers.rate(sender.naks_per_s), "n"),
            cell(sender.endpoint, "muted"),
        ],
        className=word.tone,
    )
    return html.Div(table(heads, [row], "Sender of the topic"))


def _receivers(own: _Topic) -> html.Div:
    shown = own.racers[:_MOST_ROWS]
    if not shown:
        return html.Div(html.P("No receiver of this topic is in reach.", className="nothing"))
    body: list[Any] = [table(_HEADS, [_receiver(racer, own) for racer in shown], "Receivers of the topic, worst first")]
    if len(own.racers) > len(shown):
        body.append(html.P(f"and {len(own.racers) - len(shown)} more in a better state", className="more"))
    return html.Div(body)


def _receiver(racer: _Racer, own: _Topic) -> html.Tr:
    row, known = racer.row, racer.known
    forecast, leaves = _forecast(known)
    action = badge(ACTION[known.action]) if known is not None and known.action else numbers.NONE
    since = row.since_ns if row is not None else known.since_ns if known is not None else 0
    reasons = [row.reason] if row is not None else ["out of reach; as its source sees it"]
    reasons += [known.reason] if known is not None and known.reason else []
    lost = row.lost if row is not None else None
    return html.Tr(
        [
            html.Td(badge(BEHAVIOUR[racer.behaviour])),
            html.Td(of_receiver(racer.name)),
            cell(moment(since, own.view.time_ns) if since else numbers.NONE),
            cell(f"{numbers.count(row.lag_messages)} messages" if row is not None else _packets(known), "n"),
            cell(numbers.seconds(row.lag_seconds if row is not None else _reported_lag(known)), "n"),
            html.Td(gauge(row.queue_fill) if row is not None else numbers.NONE),
            cell(numbers.rate(row.naks_per_s if row is not None else known.naks_per_s if known else None), "n"),
            cell(numbers.count(lost) if lost is not None else numbers.NONE, "n loud" if lost else "n"),
            cell(forecast, "n loud" if leaves else "n"),
            cell(action),
            cell(numbers.latency(row.p999_ns if row is not None else None), "n"),
            html.Td("; ".join(reasons), className="why"),
        ],
        key=racer.name,
        className=racer.tone,
    )


def _packets(known: ReceiverOfStream | None) -> str:
    return f"{numbers.count(known.lag)} packets" if known is not None and known.lag is not None else numbers.NONE


def _reported_lag(known: ReceiverOfStream | None) -> float | None:
    return known.lag_ns / 1e9 if known is not None and known.lag_ns is not None else None


def _race_twin(own: _Topic) -> html.Table:
    """Positions by receiver, and which of them lose packets when."""
    names = ("behind", "reported behind", "until loss", "forecast of the source", "certainly lost")
    sent = own.sending
    rows = []
    if sent is not None:
        depth = f"packets {sent.oldest:,} to {sent.newest:,}: {sent.depth:,} in the history"
        rows.append((f"{sent.instance} (sender): {depth}", ("0", "", "", "", "")))
    for racer in own.racers[:_MOST_ROWS]:
        where, known = own.position(racer.name), racer.known
        rows.append(
            (
                racer.name,
                (
                    f"{where.behind:,}" if where is not None else numbers.NONE,
                    f"{known.lag:,}" if known is not None and known.lag is not None else numbers.NONE,
                    f"{where.margin:,}" if where is not None and where.margin is not None else numbers.NONE,
                    _forecast(known)[0],
                    f"{known.lost_certain:,}" if known is not None else numbers.NONE,
                ),
            )
        )
    return tables.twin("Positions in packets of the stream", names, rows)


def _rates_twin(own: _Topic) -> html.Table:
    found = [item for point in own.view.points if (item := point.sending.get(own.stream)) is not None]
    if not found:
        return tables.twin("Packets per second", ("the sender is out of reach",), [])
    rows = [
        ("sent, this topic", [item.topics.get(own.topic, 0.0) for item in found]),
        ("sent, whole stream", [item.packets for item in found]),
        ("repaired, whole stream", [item.repairs for item in found]),
        ("NAKs, whole stream", [item.naks for item in found]),
    ]
    shown = [(name, (numbers.rate(values[-1]), numbers.rate(max(values)))) for name, values in rows]
    return tables.twin("Packets per second", ("newest interval", "highest shown"), shown)


def _queue_twin(own: _Topic) -> html.Table:
    found = [item.fills for point in own.view.points if (item := point.sending.get(own.stream)) is not None]
    fills = [fill[own.topic] for fill in found if own.topic in fill]
    rows = [("submit queue", (numbers.ratio(fills[-1]), numbers.ratio(max(fills))))] if fills else []
    return tables.twin("Submit queue", ("newest", "fullest shown") if rows else ("the sender is out of reach",), rows)
