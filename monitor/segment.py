"""Reads one stats segment, as specified in engine/docs/segment.md.

The file may come from another version, be truncated, or be forged. Every offset and count is checked against the size
of the file before it is used; an invalid one raises `SegmentError`. The reader never crashes.

`segment_file.py` reads bytes, `objects.py` the objects (each of one instant, in few calls), `blocks.py` histograms;
this module reads header, directory and events.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from heliograph.monitor.directory import Directory, SegmentError, parse_directory
from heliograph.monitor.header import (
    EVENT_BYTES,
    HEADER_BYTES,
    LAYOUT_VERSION,
    OBJECT_BYTES,
    WRITING,
    Header,
    parse_header,
    text_of,
)
from heliograph.monitor.model import Event, ObjectState
from heliograph.monitor.objects import GONE, LIVE, Objects
from heliograph.monitor.ownership import foreign_mark
from heliograph.monitor.records import Record, record_of
from heliograph.monitor.segment_file import SegmentFile

__all__ = ["EventBatch", "Header", "Segment", "SegmentError"]

EVENT_TEXT = 64
_SEVERITIES = ("info", "warning", "error")
_RECORD_LIMIT = 1 << 16


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events read from a ring."""

    events: tuple[Event, ...]
    cursor: int
    """Number of the next event, for the next reading."""
    missed: int
    """Events since the last cursor that were overwritten before they were read."""


class Segment:
    """An open segment. Use as a context manager, or call `close`. Not for several threads at once."""

    def __init__(self, path: Path, all_users: bool = False) -> None:
        """Open and check a segment.

        Args:
            path: Path of the file.
            all_users: Accept a segment of another user; the name of its instance is then ``NAME@uidUID``.

        Raises:
            SegmentError: It cannot be opened, belongs to another user, or is not a segment of a supported version.
        """
        self.path = path
        self._file = SegmentFile(path, all_users)
        self.identity = self._file.identity
        self.owner = self._file.owner
        self._mark = "" if self._file.is_own else foreign_mark(self._file.owner)
        try:
            self.refresh()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def refresh(self) -> None:
        """Read the data again that is normally read once: the directory and the identity of the writer.

        Raises:
            SegmentError: The segment is damaged.
        """
        self._order = self._byte_order()
        self._content: tuple[bytes, int, int] | None = None
        """The bytes of the last header, and the sizes of the file then."""
        self._records: dict[int, Record] = {}
        self._objects = Objects(self._file, self._order, self._records, self._mark)
        self.opened = self.header()
        self.directory = self._directory(self.opened)

    @property
    def modified_ns(self) -> int:
        """Time of the last change of the file by a write, ns since 1970."""
        return self._file.modified_ns

    def close(self) -> None:
        """Close the file; the segment can then not be read. Harmless when closed."""
        self._file.close()

    def _byte_order(self) -> str:
        head = self._file.read(0, 16, "its header")
        if head[:8] != b"HELIOSEG":
            raise SegmentError(f"{self.path} is not a stats segment")
        order = {b"\x04\x03\x02\x01": "<", b"\x01\x02\x03\x04": ">"}.get(head[8:12])
        if order is None:
            raise self._file.damaged("its byte order mark is unknown")
        (version,) = struct.unpack_from(f"{order}I", head, 12)
        if version != LAYOUT_VERSION:
            raise SegmentError(
                f"{self.path} has layout version {version}; this Heliograph reads version {LAYOUT_VERSION}"
            )
        return order

    # Header and directory

    def header(self) -> Header:
        """Read and check the present header.

        Raises:
            SegmentError: The header is damaged.
        """
        content = self._file.read(0, HEADER_BYTES, "its header"), self._file.size, self._file.limit
        if content != self._content:
            self._header, self._content = self._parsed(*content), content
        return self._header

    def _parsed(self, data: bytes, size: int, limit: int) -> Header:
        try:
            header = parse_header(data, self._order, size, limit)
        except SegmentError as error:
            raise self._file.damaged(str(error)) from None
        if header.name and not self._mark:
            return header
        return replace(header, name=(header.name or self.path.name.split(".", 1)[0]) + self._mark)

    def _directory(self, header: Header) -> Directory:
        if header.state == WRITING:
            return Directory({}, {})
        data = self._file.read(header.directory_offset, header.directory_bytes, "its directory")
        try:
            directory = parse_directory(data.rstrip(b"\0").decode("utf-8", "replace"))
        except SegmentError as error:
            raise self._file.damaged(str(error)) from None
        for layout in directory.scopes.values():
            if layout.record_bytes > _RECORD_LIMIT:
                raise self._file.damaged(f"it claims records of {layout.record_bytes} bytes")
            self._records[layout.id] = record_of(layout, self._order)
        return directory

    # Objects

    def objects(self, histograms: bool | Collection[str] = True) -> tuple[ObjectState, ...]:
        """Return every object, live or destroyed, each of one instant.

        Args:
            histograms: Histograms to read: all, none, or the named statistics. They are most of the cost.

        Raises:
            SegmentError: The segment is damaged.
        """
        header = self.header()
        if header.state == WRITING:
            return ()
        return self._objects.read(header, histograms)

    def torn(self) -> tuple[ObjectState, ...]:
        """Return the torn objects only: cheaper than `objects`, although every record is read.

        Raises:
            SegmentError: The segment is damaged.
        """
        header = self.header()
        return () if header.state == WRITING else self._objects.torn(header)

    # Events

    def events(self, cursor: int | None = None, until: int | None = None) -> EventBatch:
        """Return the events from number `cursor` on, oldest first; None: all that the ring still holds.

        Args:
            cursor: Number of the first event.
            until: Number after the last event; None: all.

        Raises:
            SegmentError: The segment is damaged.
        """
        header = self.header()
        if header.state == WRITING:
            return EventBatch((), cursor or 0, 0)
        written, capacity = header.events_written, header.event_capacity
        oldest = max(0, written - capacity)
        end = written if until is None else min(written, until)
        first = min(oldest if cursor is None else cursor, end)
        begin = min(max(first, oldest), end)  # events overwritten from `end` on are counted by the next reading
        missed = begin - first
        events = []
        for number in range(begin, end):
            event = self._event(header, number)
            if event is None:
                missed += 1
            else:
                events.append(event)
        return EventBatch(tuple(events), end, missed)

    def event_moment(self, number: int) -> int | None:
        """Return the time of event `number`, ns since 1970; None: it has not happened; 0: it can no longer be read.

        Raises:
            SegmentError: The segment is damaged.
        """
        header = self.header()
        if header.state == WRITING or number >= header.events_written:
            return None
        event = self._event(header, number)
        return event.time_ns if event is not None else 0

    def _event(self, header: Header, number: int) -> Event | None:
        """Return event `number`; None while it is being overwritten."""
        offset = header.events_offset + number % header.event_capacity * header.event_bytes
        before = self._file.read(offset, 8, "its events")
        data = self._file.read(offset, EVENT_BYTES, "its events")
        after = self._file.read(offset, 8, "its events")
        if struct.unpack(f"{self._order}QQQ", before + data[:8] + after) != (number + 1,) * 3:
            return None
        time_ns, kind_id, severity, slot, _, *values = struct.unpack_from(f"{self._order}QIIII4Q", data, 8)
        kind = self.directory.events.get(kind_id)
        names = kind.arguments if kind else ("argument_1", "argument_2", "argument_3", "argument_4")
        return Event(
            instance=header.name,
            incarnation=header.incarnation,
            number=number,
            time_ns=time_ns,
            name=kind.name if kind else f"event_{kind_id}",
            severity=_SEVERITIES[severity] if severity < len(_SEVERITIES) else f"severity_{severity}",
            labels=self._labels_of(header, slot),
            arguments=dict(zip(names, values, strict=False)),
            text=text_of(data[EVENT_TEXT:]),
        )

    def _labels_of(self, header: Header, slot: int) -> Mapping[str, str]:
        """Return the labels of the object in a slot; those of the instance where there is no object."""
        if slot < header.objects_used:
            entry = self._file.read(
                header.objects_offset + slot * header.object_bytes, OBJECT_BYTES, "its table of objects"
            )
            state, scope = struct.unpack_from(f"{self._order}II", entry)
            record = self._records.get(scope)
            if state in (LIVE, GONE) and record is not None:
                return self._objects.identify(slot, entry, record.layout)[0]
        return {"instance": header.name}
