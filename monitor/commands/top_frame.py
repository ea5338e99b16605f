"""The display of ``heliograph top``: what is known at one moment, and its lines by view and size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from heliograph.engine.catalogue.times import time_of_day
from heliograph.monitor import fleet, sources
from heliograph.monitor.behaviour import Behaviour
from heliograph.monitor.clocks import clocks_text
from heliograph.monitor.columns import Column, cut, fitted
from heliograph.monitor.model import Health, Snapshot
from heliograph.monitor.text import (
    bytes_text,
    count_text,
    duration_text,
    percent_text,
    printable,
    rate_text,
)
from heliograph.monitor.window import Watcher
from heliograph.monitor.worst import worst

__all__ = ["SORTS", "Picture", "View", "frame", "lines_of", "picture"]

_RESET = "\x1b[0m"
_COLOURS = {
    Behaviour.OK: "\x1b[32m",
    Behaviour.RECOVERING: "\x1b[33m",
    Behaviour.LOSSY: "\x1b[33;1m",
    Behaviour.FALLING_BEHIND: "\x1b[31;1m",
    Behaviour.STALLED: "\x1b[37;41;1m",
    Behaviour.STOPPED: "\x1b[37;41;1m",
}
_BOLD = "\x1b[1m"
_HEADS = ("RECEIVER", "SENDER", "SOURCE")

Line = tuple[str, Behaviour | None]


def _number(value: float | None) -> float:
    return float("-inf") if value is None else value


SORTS: dict[str, Callable[[fleet.ReceiverRow], Any]] = {
    "worst": lambda row: row.badness,
    "name": lambda row: row.identity,
    "topic": lambda row: (row.topic, row.instance, row.stream),
    "rate": lambda row: row.delivered_per_s,
    "lag": lambda row: row.lag_messages,
    "behind": lambda row: _number(row.lag_seconds),
    "queue": lambda row: row.queue_fill,
    "lost": lambda row: row.lost,
    "missing": lambda row: row.missing_ratio,
    "naks": lambda row: row.naks_per_s,
    "p50": lambda row: _number(row.p50_ns),
    "p99.9": lambda row: _number(row.p999_ns),
    "max": lambda row: _number(row.max_ns),
}
"""Sort keys of the receivers by name. Names ascend, numbers descend."""

_ASCENDING = frozenset({"name", "topic"})


@dataclass(frozen=True, slots=True)
class View:
    """The part of the receivers that is shown, and in which order."""

    sort: str = "worst"
    reverse: bool = False
    text: str = ""
    """Shown are receivers whose instance, topic, state, stream or reason contains it, in any case."""
    first: int = 0
    """Index of the first receiver on the screen."""

    def chosen(self, rows: Sequence[fleet.ReceiverRow]) -> list[fleet.ReceiverRow]:
        """Return the rows of the view, all pages."""
        wanted = self.text.casefold()
        found = [row for row in rows if wanted in _searched(row)] if wanted else list(rows)
        if self.sort == "worst" and not self.reverse:
            return worst(found)
        found.sort(key=lambda row: row.identity)
        found.sort(key=SORTS[self.sort], reverse=(self.sort in _ASCENDING) == self.reverse)
        return found


def _searched(row: fleet.ReceiverRow) -> str:
    return "\n".join((row.instance, row.topic, row.behaviour.words, row.stream, row.reason)).casefold()


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything known at one moment; computed once, shown by any number of views."""

    time_ns: int
    instances: Sequence[fleet.InstanceRow]
    receivers: Sequence[fleet.ReceiverRow]
    transmitters: Sequence[fleet.TransmitterRow]
    streams: Sequence[sources.StreamRow]
    known: Sequence[sources.ReceiverOfStream]
    """Receivers as their sources see them, the worst first."""

    def fields(self, view: View) -> dict[str, Any]:
        """Return the picture for JSON; names are those of the rows."""
        return {
            "time": datetime.fromtimestamp(self.time_ns / 1e9, UTC).isoformat(timespec="milliseconds"),
            "time_ns": self.time_ns,
            "instances": [asdict(row) for row in self.instances],
            "receivers": [asdict(row) for row in view.chosen(self.receivers)],
            "transmitters": [asdict(row) for row in self.transmitters],
            "streams": [asdict(row) for row in self.streams],
            "sources": [{**asdict(row), "reason": row.reason} for row in self.known],
        }


def picture(previous: Snapshot | None, current: Snapshot, watcher: Watcher | None = None) -> Picture:
    """Join two snapshots.

    Args:
        previous: The previous snapshot; None: figures cover the whole life of each object.
        current: The current snapshot.
        watcher: Holds the earlier snapshots; None: receivers are judged by one observation.
    """
    return Picture(
        time_ns=current.time_ns,
        instances=fleet.instances(previous, current),
        receivers=fleet.receivers(previous, current, watcher),
        transmitters=fleet.transmitters(previous, current),
        streams=sources.streams(previous, current),
        known=worst(sources.receivers_of(current, previous)),
    )


# -- lines ------------------------------------------------------------------------------------------------------------


def _summary(found: Picture) -> str:
    rows = found.instances
    live = sum(row.health is Health.LIVE for row in rows)
    sent, received = sum(row.sent_per_s for row in rows), sum(row.received_per_s for row in rows)
    naks = sum(row.naks_sent_per_s for row in rows)
    return (
        f"heliograph  {time_of_day(found.time_ns)}  {live} of {len(rows)} instances live  "
        f"sent {rate_text(sent)} msg/s  received {rate_text(received)} msg/s  {rate_text(naks)} NAK/s"
    )


def _latencies(row: fleet.ReceiverRow) -> Sequence[str]:
    """p50, p99.9 and the maximum, with the clock error of a one-way latency."""
    p50, _, p999, longest = row.latency
    return [value.text if value is not None else "-" for value in (p50, p999, longest)]


_RECEIVERS = (
    Column("RECEIVER", left=True), Column("TOPIC", left=True), Column("STATE", left=True), Column("MSG/S", 4),
    Column("LAG", 5), Column("BEHIND", 1), Column("QUEUE", 2), Column("LOST", 3), Column("MISSING", 8),
    Column("NAK/S", 9), Column("CLOCK", 12), Column("P50", 10), Column("P99.9", 6), Column("MAX", 11),
    Column("LATE BY", 7), Column("WHY", left=True),
)  # fmt: skip


def _receiver_lines(rows: Sequence[fleet.ReceiverRow], width: int | None) -> list[Line]:
    cells = [
        (
            row.instance,
            row.topic,
            row.behaviour.words,
            rate_text(row.delivered_per_s),
            count_text(row.lag_messages),
            duration_text(row.lag_seconds * 1e9 if row.lag_seconds is not None else None),
            percent_text(row.queue_fill),
            count_text(row.lost),
            percent_text(row.missing_ratio),
            rate_text(row.naks_per_s),
            clocks_text(row.clocks),
            *_latencies(row),
            row.late.blame if row.late else "-",
            row.reason,
        )
        for row in rows
    ]
    lines = fitted(_RECEIVERS, cells, width)
    per_row = len(lines) // (len(rows) + 1)
    marks = [None] * per_row + [row.behaviour for row in rows for _ in range(per_row)]
    return list(zip(lines, marks, strict=True))


_TRANSMITTERS = (
    Column("SENDER", left=True), Column("TOPIC", left=True), Column("MSG/S", 1), Column("DATA/S", 3),
    Column("NAK/S", 2), Column("REPAIRS", 4), Column("TRACKED", 7), Column("QUEUE", 5), Column("BATCH P99", 6),
    Column("RECEIVERS"),
)  # fmt: skip


def _transmitter_lines(rows: Sequence[fleet.TransmitterRow], width: int | None) -> list[str]:
    cells = [
        (
            row.instance,
            row.topic,
            rate_text(row.sent_per_s),
            bytes_text(row.bytes_per_s),
            rate_text(row.naks_per_s),
            percent_text(row.repair_ratio),
            count_text(row.tracked_receivers),
            bytes_text(row.queue_bytes),
            duration_text(row.batch_p99_ns),
            count_text(row.receivers),
        )
        for row in rows
    ]
    return ["", *fitted(_TRANSMITTERS, cells, width)] if cells else []


_STREAMS = (
    Column("SOURCE", left=True), Column("STREAM", left=True), Column("RATE", 1), Column("DECIDED", 2),
    Column("LOSS", 3), Column("STATE", 4), Column("LIMITED", 9), Column("RECEIVERS", 8), Column("IN TROUBLE", 5),
    Column("ISOLATED", 6), Column("STORM", left=True),
)  # fmt: skip


def _stream_lines(rows: Sequence[sources.StreamRow], width: int | None) -> list[str]:
    """Format the table of streams: their rates, and the state of their receivers."""
    cells = [
        (
            row.instance,
            row.stream,
            f"{bytes_text(row.rate)}/s" if row.rate else "no limit",
            f"{bytes_text(row.rate_decided)}/s" if row.rate_decided else "-",
            percent_text(row.loss),
            row.rate_state or "-",
            percent_text(row.limited_share),
            count_text(row.receivers),
            count_text(row.troubled),
            count_text(row.isolated),
            "NAK STORM" if row.storm else "-",
        )
        for row in rows
    ]
    return ["", *fitted(_STREAMS, cells, width)] if cells else []


_KNOWN = (
    Column("SOURCE", left=True), Column("RECEIVER", left=True), Column("CLASS", left=True),
    Column("ACTION", 1, left=True), Column("LOSS", 4), Column("LAG", 5), Column("BEHIND", 2), Column("BUFFER", 6),
    Column("RTT", 11), Column("NAK/S", 7), Column("OF ALL", 9), Column("SHED", 10), Column("DATA LEFT", 3),
    Column("WAITED", 8), Column("SLOW FOR", left=True),
)  # fmt: skip


def _known_lines(rows: Sequence[sources.ReceiverOfStream], width: int | None) -> list[str]:
    """Format the table of receivers as their sources see them, the worst first."""
    cells = [
        (
            row.instance,
            row.called,
            row.behaviour.words,
            row.action or "-",
            percent_text(row.loss),
            count_text(row.lag),
            duration_text(row.lag_ns),
            percent_text(row.buffer_fill),
            duration_text(row.round_trip_ns or None),
            rate_text(row.naks_per_s),
            percent_text(row.nak_share_lately),
            count_text(row.naks_shed),
            row.forecast_text,
            duration_text(row.blame_ns or None),
            duration_text(row.slow_ns or None),
        )
        for row in rows
    ]
    return ["", *fitted(_KNOWN, cells, width)] if cells else []


def _worst_line(rows: Sequence[fleet.ReceiverRow]) -> str:
    trouble = [row for row in fleet.worst_instances(rows) if row.behaviour is not Behaviour.OK and row.badness > 0]
    if not trouble:
        at_once = " (one observation)" if any(row.looks == 1 for row in rows) else ""
        return f"every receiver keeps up{at_once}" if rows else "no receivers"
    named = (f"{row.instance} ({row.behaviour.replace('_', ' ')}: {row.reason})" for row in trouble)
    return printable("worst: " + "; then ".join(named))


def _ill_lines(found: Picture, most: int | None) -> list[Line]:
    """Name instances that are not live, in at most `most` lines, so that the receivers keep their place."""
    ill = [row for row in found.instances if row.health is not Health.LIVE]
    named = ill if most is None or len(ill) <= most else ill[: max(0, most - 1)]
    lines: list[Line] = []
    for row in named:
        advice = " ('heliograph clean' removes its files)" if row.health is Health.DEAD else ""
        lines.append((printable(f"{row.health}: {row.name}: {row.reason}{advice}"), Behaviour.STOPPED))
    if len(named) < len(ill):
        lines.append((f"and {len(ill) - len(named)} more instances that are not live", Behaviour.STOPPED))
    return lines


def lines_of(
    found: Picture, view: View, width: int | None = None, height: int | None = None, colour: bool = False
) -> tuple[list[str], View, int]:
    """Return the lines of one display, the view as it can be shown, and the number of receivers on the screen.

    Args:
        found: The picture.
        view: The wanted part of the receivers. Its first row is moved where the rows end before it.
        width: Cells of a line; None: no limit.
        height: Largest number of lines; None: no limit.
        colour: Mark states with ANSI colours.
    """
    ill = _ill_lines(found, None if height is None else max(1, height // 4))
    above: list[Line] = [(_summary(found), None), (_worst_line(found.receivers), None), *ill, ("", None)]
    rows = view.chosen(found.receivers)
    fits = len(rows)
    if height is not None:
        # A line for the titles; a narrow terminal takes two lines a row, which `_receiver_lines` decides.
        room = max(1, height - len(above) - 1)
        per_row = len(_receiver_lines(rows[:1], width)) // 2 if rows else 1
        fits = max(1, room // per_row - (per_row - 1))
    view = replace(view, first=max(0, min(view.first, len(rows) - fits)))
    shown = rows[view.first : view.first + fits]
    lines = above + _receiver_lines(shown, width)
    if len(shown) == len(rows):  # others only where all receivers have found room
        lines += [
            (line, None)
            for some in (
                _transmitter_lines(found.transmitters, width),
                _stream_lines(found.streams, width),
                _known_lines(found.known, width),
            )
            for line in some
        ]
    return [_painted(cut(line, width), mark, colour) for line, mark in lines[:height]], view, len(shown)


def frame(
    previous: Snapshot | None,
    current: Snapshot,
    width: int | None = None,
    height: int | None = None,
    colour: bool = False,
    watcher: Watcher | None = None,
) -> list[str]:
    """Return the lines of one display of two snapshots, the worst receivers first; see `picture` and `lines_of`."""
    return lines_of(picture(previous, current, watcher), View(), width, height, colour)[0]


def _painted(line: str, mark: Behaviour | None, colour: bool) -> str:
    if not colour:
        return line
    if mark is not None:
        return f"{_COLOURS[mark]}{line}{_RESET}" if mark is not Behaviour.OK else line
    return f"{_BOLD}{line}{_RESET}" if line.startswith(("heliograph", *_HEADS)) else line
