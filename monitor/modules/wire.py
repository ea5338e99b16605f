"""The protocol between the monitor and the child process of a module, over a socket pair.

The monitor sends records: a letter, the length of the rest (u32, little endian), and that many bytes.

    P   the module, JSON: {"native": path | "python": request, "options": text, "path": sys.path}
    S   a snapshot: its number and the snapshots dropped before it (2 x u64), then a frame of `monitor.packing`
    M   moments, JSON: a list of events and topic changes, in order
    A   request for an answer
    Z   the end: close the module, answer, exit

The child sends lines of JSON: ``{"answer": ...}`` to P, A and Z, and ``{"say": text}`` at any time.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

from heliograph.monitor.model import Event
from heliograph.monitor.modules.protocol import Direction, Moment, Topic, TopicChange

__all__ = ["HEAD", "NUMBERS", "moments_from", "moments_to", "record"]

HEAD = struct.Struct("<cI")
NUMBERS = struct.Struct("<QQ")


def record(kind: bytes, *parts: bytes) -> bytes:
    """Return a record of a kind."""
    return b"".join((HEAD.pack(kind, sum(map(len, parts))), *parts))


def _plain(moment: Moment) -> list[Any]:
    if isinstance(moment, Event):
        return [
            moment.instance,
            moment.incarnation,
            moment.number,
            moment.time_ns,
            moment.name,
            moment.severity,
            dict(moment.labels),
            dict(moment.arguments),
            moment.text,
        ]
    topic = moment.topic
    return [
        moment.created,
        topic.time_ns,
        topic.instance,
        topic.incarnation,
        topic.direction,
        topic.topic,
        topic.stream,
        topic.endpoint,
    ]


def moments_to(moments: Sequence[Moment]) -> bytes:
    """Encode moments as JSON."""
    return json.dumps([_plain(moment) for moment in moments], separators=(",", ":")).encode()


def moments_from(data: bytes) -> list[Moment]:
    """Decode moments."""
    found: list[Moment] = []
    for row in json.loads(data):
        if isinstance(row[0], bool):
            created, time_ns, instance, incarnation, direction, *rest = row
            found.append(TopicChange(Topic(time_ns, instance, incarnation, Direction(direction), *rest), created))
        else:
            found.append(Event(*row))
    return found
