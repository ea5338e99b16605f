"""Congestion control as tables: each receiver as its source sees it, the action on it, and the rate of each stream."""

from __future__ import annotations

from typing import Any

from heliograph.dashboards.live.pages import numbers
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.parts import badge, cell, gauge, of_receiver, of_stream, table
from heliograph.dashboards.live.store import View
from heliograph.dashboards.words import ACTION, BEHAVIOUR, Tone, Word
from heliograph.monitor.sources import ReceiverOfStream, StreamRow

__all__ = ["known", "streams"]

MOST_ROWS = 15

_STORM = Word("NAK storm", "■", "bad", 2)
_CALM = Word("no storm", "●", "good", 0)
_KNOWN_HEADS = (
    ("Class", ""),
    ("Receiver", ""),
    ("Source", ""),
    ("Action", ""),
    ("Loss", "n"),
    ("Behind", "n"),
    ("Buffer", ""),
    ("Round trip", "n"),
    ("NAKs/s", "n"),
    ("Not repaired", "n"),
    ("Data left", "n"),
    ("Slow for", "n"),
)
_STREAM_HEADS = (
    ("Storm", ""),
    ("Source", ""),
    ("Stream", ""),
    ("Sent", "n"),
    ("Rate in force", "n"),
    ("Rate decided", "n"),
    ("Last step", ""),
    ("Loss", "n"),
    ("Time limited", ""),
    ("Receivers", "n"),
    ("In trouble", "n"),
    ("Isolated", "n"),
)


def known(view: View) -> html.Div:
    """One line per receiver of a source, worst first."""
    shown = view.known[:MOST_ROWS]
    if not shown:
        return html.Div(html.P("No source has a receiver yet.", className="nothing"))
    body: list[Any] = [table(_KNOWN_HEADS, [_known(row) for row in shown], "Receivers as their sources see them")]
    if len(view.known) > len(shown):
        body.append(html.P(f"and {len(view.known) - len(shown)} more in a better state", className="more"))
    return html.Div(body)


def _tone(row: ReceiverOfStream) -> Tone:
    """The tone of the action on the receiver, if any, otherwise of its class."""
    return ACTION[row.action].tone if row.action else BEHAVIOUR[row.behaviour].tone


def _known(row: ReceiverOfStream) -> html.Tr:
    action = badge(ACTION[row.action]) if row.action else numbers.NONE
    return html.Tr(
        [
            html.Td(badge(BEHAVIOUR[row.behaviour])),
            html.Td([of_receiver(row.called), html.Span(f" {row.address}" if row.name else "", className="muted")]),
            cell(row.instance),
            cell(action),
            cell(numbers.ratio(row.loss) if row.loss is not None else numbers.NONE, "n"),
            cell(numbers.count(row.lag) if row.lag is not None else numbers.NONE, "n"),
            html.Td(gauge(row.buffer_fill) if row.buffer_fill is not None else numbers.NONE),
            cell(numbers.latency(row.round_trip_ns or None), "n"),
            cell(numbers.rate(row.naks_per_s), "n"),
            cell(numbers.count(row.naks_shed), "n loud" if row.naks_shed else "n"),
            cell(
                numbers.seconds(row.forecast_ns / 1e9) if row.forecast_ns else numbers.NONE,
                "n loud" if row.forecast_ns else "n",
            ),
            cell(numbers.seconds(row.slow_ns / 1e9) if row.slow_ns else numbers.NONE, "n"),
        ],
        key=f"{row.stream} {row.address}",
        className=_tone(row),
    )


def streams(view: View) -> html.Div:
    """One line per sent stream."""
    shown = view.streams[:MOST_ROWS]
    if not shown:
        return html.Div(html.P("No instance sends yet.", className="nothing"))
    body: list[Any] = [table(_STREAM_HEADS, [_stream(row) for row in shown], "Streams and their rates")]
    if len(view.streams) > len(shown):
        body.append(html.P(f"and {len(view.streams) - len(shown)} more", className="more"))
    return html.Div(body)


def _rate(value: int, none: str) -> str:
    return f"{numbers.size(value)}/s" if value else none


def _stream(row: StreamRow) -> html.Tr:
    word = _STORM if row.storm else _CALM
    return html.Tr(
        [
            html.Td(badge(word)),
            html.Td(html.Strong(row.instance)),
            html.Td(of_stream(row.stream)),
            cell(f"{numbers.size(row.bytes_per_s)}/s", "n"),
            cell(_rate(row.rate, "no limit"), "n"),
            cell(_rate(row.rate_decided, numbers.NONE), "n"),
            cell(row.rate_state or numbers.NONE),
            cell(numbers.ratio(row.loss), "n"),
            html.Td(gauge(row.limited_share)),
            cell(numbers.count(row.receivers), "n"),
            cell(numbers.count(row.troubled), "n loud" if row.troubled else "n"),
            cell(numbers.count(row.isolated), "n loud" if row.isolated else "n"),
        ],
        key=f"{row.instance} {row.stream}",
        className=word.tone,
    )
