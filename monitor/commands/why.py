"""``heliograph why``: one page of text about one receiver, for an incident."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from typing import Any

from heliograph.engine.catalogue.outside import json_text
from heliograph.engine.catalogue.times import add_utc_option, date_time
from heliograph.monitor import fleet
from heliograph.monitor.commands.arguments import add_collect_option, interval, open_source
from heliograph.monitor.commands.common import Subparsers, add_command
from heliograph.monitor.commands.events import event_line
from heliograph.monitor.errors import UserError
from heliograph.monitor.faults import Fault, Faults
from heliograph.monitor.log import event_fields
from heliograph.monitor.losses import LossRow, losses
from heliograph.monitor.model import Event, Health, Snapshot
from heliograph.monitor.sources import ReceiverOfStream, receivers_of
from heliograph.monitor.text import bytes_text, count_text, duration_text, percent_text, printable, rate_text
from heliograph.monitor.window import Watcher

__all__ = ["command", "page"]

LOOKS = 4
EVENTS = 12
"""Most events on the page."""

_ABOUT = """\
Print one page about a receiver: since when it is in its state, its positions, queue, latencies, hosts, losses, faults
of its streams and hosts, what its source did, the last events, and the command to act. RECEIVER is the name of a
receiving instance, a shell pattern, or the name, id or address under which a source tracks the receiver.
"""


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``why``."""
    parser = add_command(
        subparsers, "why", "explain the state of one receiver on one page", _ABOUT, "heliograph why slow"
    )
    parser.add_argument("receiver", metavar="RECEIVER", help="name or shell pattern, id or address of the receiver")
    parser.add_argument("--interval", metavar="SECONDS", type=interval, default=0.5, help="of one of 4 observations")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_collect_option(parser)
    add_utc_option(parser)
    parser.set_defaults(run=run)


def _moment(ns: int, now_ns: int) -> str:
    return f"{date_time(ns)} ({duration_text(now_ns - ns)} ago)" if ns else "unknown"


def _mine(rows: Sequence[fleet.ReceiverRow], pattern: str) -> list[fleet.ReceiverRow]:
    return [row for row in rows if fnmatchcase(row.instance, pattern)]


def _tracked(known: Sequence[ReceiverOfStream], pattern: str) -> list[ReceiverOfStream]:
    return [row for row in known if pattern in (row.receiver, row.address) or fnmatchcase(row.name, pattern)]


def _receiver_lines(row: fleet.ReceiverRow, now_ns: int) -> Iterator[str]:
    p50, _, p999, longest = (value.text if value else "-" for value in row.latency)
    yield f"receiver {row.instance} of {row.topic}: {row.behaviour.words}: {row.reason}"
    yield f"  since       {_moment(row.since_ns, now_ns)}"
    yield f"  sender      {row.transmitter or 'out of reach'}, stream {row.stream}"
    yield (
        f"  positions   sent {count_text(row.sent)}, delivered {row.delivered}, lost {row.lost}, "
        f"in flight {count_text(row.in_flight)}"
    )
    behind = duration_text(row.lag_seconds * 1e9 if row.lag_seconds is not None else None)
    yield f"  behind      {count_text(row.lag_messages)} messages, {behind}"
    yield (
        f"  queue       {count_text(row.queue_messages)} messages, {bytes_text(row.queue_bytes)}, "
        f"{percent_text(row.queue_fill)} full"
    )
    yield f"  rates       sent {rate_text(row.sent_per_s)}/s, delivered {rate_text(row.delivered_per_s)}/s"
    yield f"  latency     p50 {p50}, p99.9 {p999}, longest {longest}"
    yield f"  late by     {row.late.blame if row.late else 'unknown: too few messages, or no hiccups measured'}"
    yield f"  missing     {percent_text(row.missing_ratio)} of packets, at {row.loss_place or 'no loss location'}"


def _tracked_lines(row: ReceiverOfStream, now_ns: int) -> Iterator[str]:
    yield f"at source {row.instance}, stream {row.stream}: {row.called}: {row.behaviour.words}"
    yield f"  since       {_moment(row.since_ns, now_ns)}"
    yield f"  last report {duration_text(row.silent_ns)} ago, {count_text(row.lag)} packets behind"
    yield f"  forecast    {row.forecast_text}; {row.lost_certain} packets certainly lost"
    yield f"  waited for  {duration_text(row.blame_ns or None)}"
    yield f"  requests    {row.naks}, {percent_text(row.nak_share)} of all; refused {row.naks_shed}"
    yield f"  action      {row.action or 'none'}; suspended {row.suspensions} times"


def _both_ends(rows: Sequence[fleet.ReceiverRow], snapshot: Snapshot) -> list[fleet.InstanceRow]:
    names = {row.instance for row in rows} | {row.transmitter for row in rows if row.transmitter}
    return [row for row in fleet.instances(None, snapshot) if row.name in names]


_VERBS = {"suspend": "resume", "expel": "readmit"}
"""The command that ends an action."""


def _act(rows: Sequence[fleet.ReceiverRow], known: Sequence[ReceiverOfStream]) -> list[str]:
    """Return the commands that act on the receiver or show more of it."""
    found = []
    for source in known:
        verb = _VERBS.get(source.action, "suspend")
        seconds = ["--for", "60s"] if verb == "suspend" else []
        where = ["--instance", source.instance, "--stream", source.stream]
        found.append(["ctl", verb, source.called, *seconds, *where])
    for name in sorted({row.instance for row in rows}):
        found.append(["ctl", "freeze", "--instance", name])
        found.append(["ctl", "level", "3", "--for", "60s", "--instance", name])
    return [f"heliograph {shlex.join(words)}" for words in found]


def _concerning(
    faults: Sequence[Fault], rows: Sequence[fleet.ReceiverRow], known: Sequence[ReceiverOfStream]
) -> list[Fault]:
    """Return the faults of the streams that the receiver gets, and of the hosts of both ends."""
    streams = {row.stream for row in rows} | {row.stream for row in known}
    ends = {row.instance for row in rows} | {row.transmitter for row in rows} | {row.instance for row in known}
    return [fault for fault in faults if fault.concerns(streams, ends)]


def _events(rows: Sequence[fleet.ReceiverRow], known: Sequence[ReceiverOfStream], snapshot: Snapshot) -> list[Event]:
    names = {row.instance for row in rows}
    ids = {item for row in known for item in (row.receiver, row.address)}

    def concerns(event: Event) -> bool:
        named = event.labels.get("receiver", "") in ids or f"{event.arguments.get('receiver', 0):016x}" in ids
        return event.instance in names or named

    return [event for event in snapshot.events if concerns(event)][-EVENTS:]


def page(
    rows: Sequence[fleet.ReceiverRow],
    known: Sequence[ReceiverOfStream],
    lost: Sequence[LossRow],
    faults: Sequence[Fault],
    snapshot: Snapshot,
) -> list[str]:
    """Format the page."""
    lines: list[str] = []
    for row in rows:
        lines += [*_receiver_lines(row, snapshot.time_ns), ""]
    for item in known:
        lines += [*_tracked_lines(item, snapshot.time_ns), ""]
    lines += [
        f"host of {row.name}: {row.host or 'unknown'}, process {row.pid}, {row.health}: {row.reason}; "
        f"socket drops {row.socket_drops}"
        for row in _both_ends(rows, snapshot)
    ]
    lines += [
        f"losses of {row.instance}: {row.packets} packets, {row.cause.replace('_', ' ')}, last "
        f"{_moment(row.last_ns, snapshot.time_ns)}"
        for row in lost
    ]
    lines += [f"fault: {fault.text}" for fault in faults]
    found = [event_line(event) for event in _events(rows, known, snapshot)]
    lines += ["", "events:", *(f"  {text}" for text in found or ["none is kept"])]
    lines += ["", "to act:", *(f"  {text}" for text in _act(rows, known))]
    return [printable(line) for line in lines]


def _fields(
    rows: Sequence[fleet.ReceiverRow],
    known: Sequence[ReceiverOfStream],
    lost: Sequence[LossRow],
    faults: Sequence[Fault],
    snapshot: Snapshot,
) -> dict[str, Any]:
    return {
        "time_ns": snapshot.time_ns,
        "receivers": [asdict(row) for row in rows],
        "sources": [{**asdict(row), "reason": row.reason} for row in known],
        "instances": [asdict(row) for row in _both_ends(rows, snapshot)],
        "losses": [asdict(row) for row in lost],
        "faults": [{**asdict(fault), "text": fault.text} for fault in faults],
        "events": [event_fields(event) for event in _events(rows, known, snapshot)],
        "commands": _act(rows, known),
    }


def run(arguments: argparse.Namespace) -> int:
    """Observe the fleet and print the page.

    Raises:
        UserError: No receiver has this name, or no instance runs.
    """
    watcher, judge = Watcher(), Faults()
    histograms = ("total_latency", "host_hiccup")
    with open_source(arguments) as source:
        previous = current = source.sample(histograms)
        everything, faults = fleet.receivers(None, current, watcher), judge.update(None, current)
        events = list(current.events)
        for _ in range(LOOKS - 1):
            time.sleep(arguments.interval)
            previous, current = current, source.sample(histograms)
            everything, faults = fleet.receivers(previous, current, watcher), judge.update(previous, current)
            events += current.events
    current = replace(current, events=tuple(events))
    all_known = receivers_of(current, previous)
    rows, known = _mine(everything, arguments.receiver), _tracked(all_known, arguments.receiver)
    if not rows and not known:
        if not current.instances:
            raise UserError(source.absence)
        names = sorted({row.instance for row in everything} | {row.called for row in all_known})
        raise UserError(f"no receiver matches {arguments.receiver!r}; receivers: {', '.join(names) or 'none'}")
    if any(row.health is not Health.DEAD for row in rows):
        rows = [row for row in rows if row.health is not Health.DEAD]
    names_of = {row.instance for row in rows}
    known = known or [row for row in all_known if row.name in names_of]
    lost = [row for row in losses(current) if row.instance in names_of]
    mine = _concerning(faults, rows, known)
    if arguments.json:
        print(json_text(_fields(rows, known, lost, mine, current)))
        return 0
    print("\n".join(page(rows, known, lost, mine, current)))
    return 0
