"""A module that writes what changes as lines of JSON: events, and receivers and instances that change their state.

``heliograph monitor --module log`` writes to standard output, ``--module log=FILE`` appends to a file. Each line is one
object with `time_ns`, `what` ("event", "receiver" or "instance") and the fields of that thing, ready for a log shipper.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import IO, Any

from heliograph.engine import catalogue
from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.errors import UserError
from heliograph.monitor.fleet import receivers
from heliograph.monitor.model import Event, Snapshot
from heliograph.monitor.window import Watcher

__all__ = ["LogModule", "event_fields"]


def event_fields(event: Event) -> dict[str, Any]:
    """An event as plain values for JSON. The names are stable."""
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


class LogModule:
    """Writes lines of JSON to a file or to standard output."""

    def __init__(self, options: str = "", stream: IO[str] | None = None) -> None:
        """Open the file.

        Args:
            options: Path of the file to append to; empty: standard output.
            stream: Write here instead; it is not closed.

        Raises:
            UserError: The file cannot be opened.
        """
        self._own: IO[str] | None = None
        if stream is None and options:
            try:
                self._own = open(options, "a", encoding="utf-8")  # noqa: SIM115 (closed by close)
            except OSError as error:
                raise UserError(f"the log {options} cannot be opened: {error.strerror}") from None
        self._stream = stream or self._own or sys.stdout
        self._previous: Snapshot | None = None
        self._watcher = Watcher()
        self._receivers: dict[tuple[str, ...], str] = {}
        self._instances: dict[tuple[str, int], str] = {}

    def describe(self, scopes: Mapping[str, catalogue.Scope]) -> None:
        """Nothing to prepare: fields carry their own names."""

    def snapshot(self, snapshot: Snapshot) -> None:
        """Write what changed since the snapshot before."""
        instances = {(item.name, item.pid): item for item in snapshot.instances}
        for key, item in instances.items():
            before = self._instances.get(key)
            if before != item.health:
                fields = {"instance": item.name, "pid": item.pid, "from": before, "to": item.health}
                self._write(snapshot.time_ns, "instance", fields | {"reason": item.reason})
        self._instances = {key: item.health for key, item in instances.items()}
        rows = {row.identity: row for row in receivers(self._previous, snapshot, self._watcher)}
        for place, row in rows.items():
            was = self._receivers.get(place)
            if was != row.behaviour:
                fields = dict(zip(("instance", "topic", "stream"), place, strict=True))
                change = {"from": was, "to": row.behaviour, "reason": row.reason}
                self._write(snapshot.time_ns, "receiver", fields | change)
        self._receivers = {place: row.behaviour for place, row in rows.items()}
        self._previous = snapshot

    def event(self, event: Event) -> None:
        """Write an event."""
        self._write(event.time_ns, "event", event_fields(event))

    def close(self) -> None:
        """Close the file."""
        self._stream.flush()
        if self._own is not None:
            self._own.close()

    def _write(self, time_ns: int, what: str, fields: Mapping[str, Any]) -> None:
        line = {"time_ns": time_ns, "what": what, **fields}
        self._stream.write(json_text(line) + "\n")
        self._stream.flush()
