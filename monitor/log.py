"""A module that writes lines of JSON: changes, and on request every value.

``heliograph monitor --module log`` writes to standard output, ``--module log=FILE`` appends to a file. Other options
are words separated by commas (`OPTIONS`):

path=FILE         append to a file; it is reopened within a second after it was moved
to=ADDRESS        send to ``tcp://HOST:PORT``, ``udp://HOST:PORT`` or ``unix:///PATH``
events-only       events and topics only: an audit trail
values            also every object of every snapshot, with values and histograms
histograms=off    no histograms among the values
rate=LINES        largest number of value lines per second (default 100000); events have no limit

Each line is one object with `time_ns`, `what` ("event", "topic_created", "topic_destroyed", "receiver", "instance",
"snapshot" or "object") and the fields of that item, for a log shipper.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping
from typing import IO, Any

from heliograph.engine import catalogue
from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.errors import UserError
from heliograph.monitor.fleet import receivers
from heliograph.monitor.log_output import FileOutput, Output, SocketOutput, StreamOutput
from heliograph.monitor.model import Event, Histogram, InstanceState, ObjectState, Snapshot
from heliograph.monitor.modules.protocol import Topic
from heliograph.monitor.window import Watcher

__all__ = ["OPTIONS", "LogModule", "event_fields"]

OPTIONS = "path=FILE, to=ADDRESS, events-only, values, histograms=on|off, rate=LINES"
_OPTION = re.compile(r"(path|to|histograms|rate)=|(events-only|values)(,|$)")
_LINES_PER_SECOND = 100_000


def event_fields(event: Event) -> dict[str, Any]:
    """Convert an event to plain values for JSON. The names are stable."""
    return {
        "time_ns": event.time_ns,
        "instance": event.instance,
        "incarnation": f"{event.incarnation:016x}",
        "number": event.number,
        "name": event.name,
        "severity": event.severity,
        "labels": dict(event.labels),
        "arguments": dict(event.arguments),
        "text": event.text,
    }


def _histogram_fields(histogram: Histogram) -> dict[str, Any]:
    places, counts = histogram.filled()
    return {
        "digits": histogram.digits,
        "lowest": histogram.lowest,
        "highest": histogram.highest,
        "above": histogram.above,
        "negative": histogram.negative,
        "total_ns": histogram.total_ns,
        "cells": [list(pair) for pair in zip(places.tolist(), counts.tolist(), strict=True)],
    }


def _instance_fields(instance: InstanceState) -> dict[str, Any]:
    return {
        "instance": instance.name,
        "incarnation": f"{instance.incarnation:016x}",
        "health": instance.health,
        "reason": instance.reason,
        "pid": instance.pid,
        "started_ns": instance.started_ns,
        "heartbeat_ns": instance.heartbeat_ns,
        "objects": len(instance.objects),
    }


class LogModule:
    """Writes lines of JSON to a file, to a socket or to standard output."""

    def __init__(self, options: str = "", stream: IO[str] | None = None) -> None:
        """Open the output.

        Args:
            options: Path of the file to append to, or options as listed in the comment of this file; empty: standard
                output.
            stream: Output when the options name no file and no address; it is not closed.

        Raises:
            UserError: An option is wrong, or the file cannot be opened.
        """
        self._path, self._to = "", ""
        self._events_only = self._values = False
        self._histograms = True
        self._rate = _LINES_PER_SECOND
        if _OPTION.match(options):
            for word in options.split(","):
                self._set(word)
        else:
            self._path = options
        if self._path and self._to:
            raise UserError("give either path=FILE or to=ADDRESS")
        if self._path:
            self._output: Output = FileOutput(self._path)
        else:
            self._output = SocketOutput(self._to) if self._to else StreamOutput(stream or sys.stdout)
        self._allowance, self._filled = float(self._rate), time.monotonic()
        self._held_back = 0
        self._previous: Snapshot | None = None
        self._watcher = Watcher()
        self._receivers: dict[tuple[str, ...], str] = {}
        self._instances: dict[tuple[str, int], str] = {}

    def _set(self, word: str) -> None:
        """Set one option."""
        name, _, value = word.partition("=")
        if word in ("events-only", "values"):
            setattr(self, f"_{word.replace('-', '_')}", True)
        elif name in ("path", "to") and value:
            setattr(self, f"_{name}", value)
        elif name == "histograms" and value in ("on", "off"):
            self._histograms = value == "on"
        elif name == "rate":
            if not re.fullmatch(r"[1-9][0-9]{0,17}", value):
                raise UserError(f"rate={value}: must be a number of lines of at least 1")
            self._rate = int(value)
        else:
            raise UserError(f"unknown option '{word}'; options: {OPTIONS}")

    @property
    def lost(self) -> int:
        """Lines dropped: lines that the output did not accept, and value lines above the rate."""
        return self._output.lost + self._held_back

    def describe(self, scopes: Mapping[str, catalogue.Scope]) -> None:
        """Do nothing: fields carry their own names."""

    def snapshot(self, snapshot: Snapshot) -> None:
        """Write the changes since the previous snapshot, and the values."""
        if self._events_only:
            return
        lines = list(self._changes(snapshot))
        if self._values:
            lines += self._admitted(_value_lines(snapshot, self._histograms))
        if lines:
            self._output.write(lines)

    def _changes(self, snapshot: Snapshot) -> Iterator[bytes]:
        instances = {(item.name, item.pid): item for item in snapshot.instances}
        for key, item in instances.items():
            before = self._instances.get(key)
            if before != item.health:
                fields = {"instance": item.name, "pid": item.pid, "from": before, "to": item.health}
                yield _line(snapshot.time_ns, "instance", fields | {"reason": item.reason})
        self._instances = {key: item.health for key, item in instances.items()}
        rows = receivers(self._previous, snapshot, self._watcher)
        places = {identity: place for place, identity in enumerate(rows.identities)}
        for identity, place in places.items():
            was, now = self._receivers.get(identity), rows.behaviours[place]
            if was != now:
                fields = dict(zip(("instance", "topic", "stream"), identity, strict=True))
                yield _line(
                    snapshot.time_ns, "receiver", fields | {"from": was, "to": now, "reason": rows[place].reason}
                )
        self._receivers = {identity: rows.behaviours[place] for identity, place in places.items()}
        self._previous = snapshot

    def _admitted(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the value lines within the rate; count the others."""
        now = time.monotonic()
        self._allowance = min(self._rate, self._allowance + (now - self._filled) * self._rate)
        self._filled = now
        for line in lines:
            if self._allowance >= 1:
                self._allowance -= 1
                yield line
            else:
                self._held_back += 1

    def event(self, event: Event) -> None:
        """Write an event."""
        kind = catalogue.events().get(event.name)
        self._output.write([_line(event.time_ns, "event", event_fields(event) | ({"id": kind.id} if kind else {}))])

    def topic_created(self, topic: Topic) -> None:
        """Write that a topic was created."""
        self._output.write([_topic_line("topic_created", topic)])

    def topic_destroyed(self, topic: Topic) -> None:
        """Write that a topic was destroyed."""
        self._output.write([_topic_line("topic_destroyed", topic)])

    def close(self) -> None:
        """Close the output."""
        self._output.close()


def _line(time_ns: int, what: str, fields: Mapping[str, Any]) -> bytes:
    text = json_text({"time_ns": time_ns, "what": what, **fields})
    return text.encode("utf-8", "surrogatepass") + b"\n"


def _topic_line(what: str, topic: Topic) -> bytes:
    fields = {name: getattr(topic, name) for name in ("instance", "direction", "topic", "stream", "endpoint")}
    return _line(topic.time_ns, what, fields | {"incarnation": f"{topic.incarnation:016x}"})


def _value_lines(snapshot: Snapshot, histograms: bool) -> Iterator[bytes]:
    """Yield a line for the snapshot with its instances, and one for each object."""
    instances = [_instance_fields(instance) for instance in snapshot.instances]
    yield _line(snapshot.time_ns, "snapshot", {"instances": instances})
    for instance in snapshot.instances:
        of = {"instance": instance.name, "incarnation": f"{instance.incarnation:016x}"}
        for item in instance.objects:
            yield _line(snapshot.time_ns, "object", of | _object_fields(item, histograms))


def _object_fields(item: ObjectState, histograms: bool) -> dict[str, Any]:
    fields = {
        "scope": item.scope,
        "created_ns": item.created_ns,
        "live": item.live,
        "torn": item.torn,
        "labels": dict(item.labels),
        "info": dict(item.info),
        "values": dict(item.values),
    }
    if histograms:
        fields["histograms"] = {name: _histogram_fields(found) for name, found in item.histograms.items()}
    return fields
