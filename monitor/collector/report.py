"""Messages of publishers: each has reports, and each report has one frame of one origin (engine/docs/collector.md).

An *origin* is a segment folder of a host. It keeps its identity when its publisher restarts. The *path* lists the
relays a report has passed, so that none forwards it twice.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from heliograph.monitor.packing.frame import PackingError, Reader
from heliograph.monitor.packing.varints import uint

__all__ = ["MAX_HOPS", "TOPIC", "Report", "pack_message", "unpack_message"]

TOPIC = "_heliograph"
"""Default topic of published snapshots."""
MAX_HOPS = 8
"""Highest number of relays a report passes."""

_MAGIC = b"HCOL"
_VERSION = 1
_HEAD = struct.Struct("<4sBBH")
_ENDS = 1
_MOST_TEXT = 1024
_MOST_REPORTS = 1 << 16
_LEAST_BYTES = 10


@dataclass(frozen=True, slots=True)
class Report:
    """A frame, its origin and its publisher."""

    origin: int
    """Identity of the segment folder, 64 bits; a restart of the publisher does not change it."""
    host: str
    place: str
    """The segment folder."""
    publisher: int
    """Incarnation of the publisher, random."""
    started_ns: int
    """Start time of that incarnation by the clock of its host, ns since 1970."""
    interval_ns: int
    """Interval between reports, ns."""
    skipped: int = 0
    """Snapshots that were due but not sent since the publisher started."""
    path: tuple[int, ...] = ()
    """Relays it has passed, in order."""
    ends: bool = False
    """Whether the publisher ends; there will be no more reports."""
    frame: bytes = b""
    """The frame; empty if the report only has news of the publisher."""


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "replace")[:_MOST_TEXT]
    return uint(len(data)) + data


def pack_message(reports: Sequence[Report]) -> bytes:
    """Encode reports as one message.

    Raises:
        ValueError: A number does not fit.
    """
    out = [_HEAD.pack(_MAGIC, _VERSION, 0, 0), uint(len(reports))]
    for report in reports:
        numbers = (report.publisher, report.started_ns, report.interval_ns, report.skipped)
        head = b"".join(
            (
                uint(report.origin),
                _text(report.host),
                _text(report.place),
                *map(uint, numbers),
                uint(_ENDS if report.ends else 0),
                uint(len(report.path)),
                *map(uint, report.path),
            )
        )
        out += [uint(len(head)), head, uint(len(report.frame)), report.frame]
    return b"".join(out)


def unpack_message(data: bytes) -> list[Report]:
    """Decode the reports of a message.

    Raises:
        PackingError: The message is damaged or has an unknown version.
    """
    if len(data) < _HEAD.size or data[:4] != _MAGIC:
        raise PackingError(f"{len(data)} bytes are not a report of a publisher")
    if data[4] != _VERSION:
        raise PackingError(f"a report has version {data[4]}; this Heliograph reads version {_VERSION}")
    source = Reader(data[_HEAD.size :])
    reports = []
    for _ in range(source.count(_LEAST_BYTES, _MOST_REPORTS)):
        # Fields of later versions follow at the end of the head and are skipped.
        head = Reader(source.take(source.count(1, source.left)))
        origin, host, place = head.uint(), head.text(), head.text()
        publisher, started, interval, skipped, flags = (head.uint() for _ in range(5))
        path = tuple(head.uint() for _ in range(head.count(1, 2 * MAX_HOPS)))
        frame = source.take(source.count(1, source.left))
        ends = bool(flags & _ENDS)
        reports.append(Report(origin, host, place, publisher, started, interval, skipped, path, ends, frame))
    if source.left:
        raise PackingError(f"a report is damaged: {source.left} bytes follow its end")
    return reports
