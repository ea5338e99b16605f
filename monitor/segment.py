"""Reader of one stats segment, exactly as engine/docs/segment.md specifies it.

The file may have been written by another version, cut short, or made up by an enemy: every offset and count is checked
against the file's size before it is followed, and what cannot be followed raises `SegmentError`. Nothing here crashes.

The file is read with `pread` rather than mapped. A mapped file that is truncated kills its reader (SIGBUS), and reading
a page the engine never wrote would allocate it; `pread` returns short and allocates nothing. Both see the same pages.

An object's values are of one instant: its table entry is read before and after, and its record is copied between two
equal, even readings of the guard. A guard that stays odd means the writer stopped within an update: the object is torn.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from heliograph.monitor.directory import Directory, RecordLayout, SegmentError, parse_directory
from heliograph.monitor.header import (
    EVENT_BYTES,
    HEADER_BYTES,
    LAYOUT_VERSION,
    OBJECT_BYTES,
    WRITING,
    Header,
    check_place,
    parse_header,
    text_of,
)
from heliograph.monitor.latency import layout_of
from heliograph.monitor.model import Event, Histogram, ObjectState

__all__ = ["EventBatch", "Header", "Segment", "SegmentError"]

OBJECT_HEAD_BYTES = 48
EVENT_TEXT = 64
HISTOGRAM_HEAD_BYTES = 64
HISTOGRAM_MAGIC = 0x48445231
_HISTOGRAM_SHAPE_BYTES = 32

ABSENT = 1 << 63
"""A cell that does not apply to its object."""
_EMPTY, _LIVE, _GONE = 0, 1, 2
_SEVERITIES = ("info", "warning", "error")

_RECORD_LIMIT = 1 << 16
_GUARD_TRIES = 200
_TRIES_BEFORE_YIELD = 20
_ENTRY_TRIES = 4


class _Record:
    """How to take the record of one scope apart."""

    __slots__ = ("histograms", "layout", "plain", "signed", "size", "unpack")

    def __init__(self, layout: RecordLayout, order: str) -> None:
        self.layout = layout
        self.size = layout.record_bytes
        self.unpack = struct.Struct(f"{order}{layout.record_bytes // 8}Q").unpack
        self.plain = layout.plain
        self.signed = layout.signed
        self.histograms = layout.histograms


class _Budget:
    """Bytes of histograms one reading may still take.

    Blocks do not overlap, so the histograms of a sound file are never more than the file; one in which thousands of
    objects point to the same block would otherwise keep a monitor busy.
    """

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = size

    def spend(self, size: int) -> bool:
        """Take `size` bytes; False when they are more than is left."""
        self.left -= size
        return self.left >= 0


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events read from a ring."""

    events: tuple[Event, ...]
    cursor: int
    """Number of the next event; give it to the next reading."""
    missed: int
    """Events since the last cursor that were overwritten before they were read."""


class Segment:
    """An open segment. Use as a context manager, or call `close`. Not for several threads at once."""

    def __init__(self, path: Path) -> None:
        """Open and check a segment.

        Raises:
            SegmentError: It cannot be opened, or is not a segment this version can read.
        """
        self.path = path
        try:
            # A FIFO must not block the reader, nor a link lead it out of the folder.
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise SegmentError(f"{path} cannot be opened: {error.strerror}") from None
        try:
            self.identity = self._identity()
            self.refresh()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def refresh(self) -> None:
        """Read anew what is otherwise read once: the directory and who writes the segment.

        Raises:
            SegmentError: The segment is damaged.
        """
        self._order = self._byte_order()
        self._records: dict[int, _Record] = {}
        self._identities: dict[int, tuple[bytes, Mapping[str, str], Mapping[str, str]]] = {}
        self._blocks: dict[int, tuple[bytes, int]] = {}
        self.opened = self.header()
        self.directory = self._directory(self.opened)

    @property
    def modified_ns(self) -> int:
        """When the file was last changed through a write, ns since 1970."""
        return os.fstat(self._file).st_mtime_ns

    def close(self) -> None:
        """Close the file; the segment cannot be read any more. Harmless when closed."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    # Reading bytes

    def _identity(self) -> tuple[int, int]:
        found = os.fstat(self._file)
        if not stat.S_ISREG(found.st_mode):
            raise SegmentError(f"{self.path} is not a regular file")
        return found.st_dev, found.st_ino

    def _damaged(self, what: str) -> SegmentError:
        return SegmentError(f"{self.path} is damaged: {what}")

    def _read(self, offset: int, size: int, what: str) -> bytes:
        try:
            data = os.pread(self._file, size, offset)
        except OSError as error:
            raise SegmentError(f"{self.path} cannot be read: {error.strerror}") from None
        if len(data) != size:
            raise self._damaged(f"it ends within {what}")
        return data

    def _byte_order(self) -> str:
        head = self._read(0, 16, "its header")
        if head[:8] != b"HELIOSEG":
            raise SegmentError(f"{self.path} is not a stats segment")
        order = {b"\x04\x03\x02\x01": "<", b"\x01\x02\x03\x04": ">"}.get(head[8:12])
        if order is None:
            raise self._damaged("its byte order mark is unknown")
        (version,) = struct.unpack_from(f"{order}I", head, 12)
        if version != LAYOUT_VERSION:
            raise SegmentError(
                f"{self.path} has layout version {version}; this Heliograph reads version {LAYOUT_VERSION}"
            )
        return order

    # Header and directory

    def header(self) -> Header:
        """Read and check the header as it is now.

        Raises:
            SegmentError: It is damaged.
        """
        data = self._read(0, HEADER_BYTES, "its header")
        try:
            header = parse_header(data, self._order, os.fstat(self._file).st_size)
        except SegmentError as error:
            raise self._damaged(str(error)) from None
        return header if header.name else replace(header, name=self.path.name.split(".", 1)[0])

    def _fits(self, header: Header, offset: int, size: int, what: str) -> None:
        try:
            check_place(header.size, offset, size, what)
        except SegmentError as error:
            raise self._damaged(str(error)) from None

    def _directory(self, header: Header) -> Directory:
        if header.state == WRITING:
            return Directory({}, {})
        data = self._read(header.directory_offset, header.directory_bytes, "its directory")
        try:
            directory = parse_directory(data.rstrip(b"\0").decode("utf-8", "replace"))
        except SegmentError as error:
            raise self._damaged(str(error)) from None
        for layout in directory.scopes.values():
            if layout.record_bytes > _RECORD_LIMIT:
                raise self._damaged(f"it claims records of {layout.record_bytes} bytes")
            self._records[layout.id] = _Record(layout, self._order)
        return directory

    # Objects

    def objects(self, histograms: bool | Collection[str] = True) -> tuple[ObjectState, ...]:
        """Every object, live or gone, each of one instant.

        Args:
            histograms: Which to read: all, none, or the statistics named. They are most of the cost.

        Raises:
            SegmentError: The segment is damaged.
        """
        header = self.header()
        if header.state == WRITING:
            return ()
        found: dict[int, ObjectState | None] = {}
        wanted: Sequence[int] = range(header.objects_used)
        for _ in range(_ENTRY_TRIES):
            before = self._entries(header)
            budget = _Budget(header.size)
            failed: dict[int, SegmentError] = {}
            for slot in wanted:
                try:
                    found[slot] = self._object(header, slot, before[slot], histograms, budget)
                except SegmentError as error:
                    failed[slot] = error
            after = self._entries(header)
            changed = [slot for slot in wanted if before[slot] != after[slot]]
            for slot in changed:  # the engine took the slot for another object meanwhile
                found.pop(slot, None)
                failed.pop(slot, None)
            if failed:
                raise next(iter(failed.values()))
            if not changed:
                break
            wanted = changed
        return tuple(item for _, item in sorted(found.items()) if item is not None)

    def _entries(self, header: Header) -> list[bytes]:
        size = header.object_bytes
        data = self._read(header.objects_offset, header.objects_used * size, "its table of objects")
        return [data[start : start + size] for start in range(0, len(data), size)]

    def _object(
        self, header: Header, slot: int, entry: bytes, histograms: bool | Collection[str], budget: _Budget
    ) -> ObjectState | None:
        state, scope, generation, offset, size, created, closed = struct.unpack_from(f"{self._order}IIQQQQQ", entry)
        if state == _EMPTY:
            return None
        record = self._records.get(scope)
        if record is None or state not in (_LIVE, _GONE):
            raise self._damaged(f"object {slot} has scope {scope} and state {state}")
        if size < record.size:
            raise self._damaged(f"object {slot} has a record of {size} bytes, its scope one of {record.size}")
        self._fits(header, offset, size, f"the record of object {slot}")
        labels, info = self._identify(slot, entry, record.layout)
        words, torn = self._consistent(offset, record)
        taken = {}
        if histograms:
            for name, index in record.histograms:
                if words[index] and (histograms is True or name in histograms):
                    taken[name] = self._histogram(header, words[index], budget)
        values = {name: words[index] for name, index in record.plain if words[index] != ABSENT}
        for name in record.signed & values.keys():
            if values[name] > ABSENT:
                values[name] -= 1 << 64
        return ObjectState(
            scope=record.layout.name,
            labels=labels,
            info=info,
            values=values,
            histograms=taken,
            live=state == _LIVE,
            torn=torn,
            created_ns=created,
            generation=generation,
            closed_ns=closed,
            slot=slot,
        )

    def _identify(self, slot: int, entry: bytes, layout: RecordLayout) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Labels and info of an entry. They rarely change, so they are parsed once."""
        known = self._identities.get(slot)
        if known is not None and known[0] == entry:
            return known[1], known[2]
        fields: dict[str, str] = {}
        for line in text_of(entry[OBJECT_HEAD_BYTES:]).split("\n"):
            key, equals, value = line.partition("=")
            if equals:
                fields.setdefault(key, value)
        missing = [key for key in layout.labels if key not in fields]
        if missing:
            raise self._damaged(f"object {slot} ({layout.name[:40]}) has no label {missing[0][:40]!r}")
        labels = {key: fields.pop(key) for key in layout.labels}
        self._identities[slot] = (entry, labels, fields)
        return labels, fields

    def _consistent(self, offset: int, record: _Record) -> tuple[tuple[int, ...], bool]:
        """The words of a record, and whether they may not belong together."""
        for attempt in range(_GUARD_TRIES):
            before = self._read(offset, 8, "a record")
            words = record.unpack(self._read(offset, record.size, "a record"))
            if before == self._read(offset, 8, "a record") and not words[0] & 1:
                return words, False
            if attempt > _TRIES_BEFORE_YIELD:
                os.sched_yield()  # the writer may be waiting for this very core
        return words, True

    def _histogram(self, header: Header, offset: int, budget: _Budget) -> Histogram:
        if offset % 64:
            raise self._damaged(f"it has a histogram at {offset}, which is no multiple of 64")
        self._fits(header, offset, HISTOGRAM_HEAD_BYTES, "the head of a histogram")
        known = self._blocks.get(offset)
        cells = known[1] if known else self._cells(header, offset)
        if not budget.spend(8 * cells):
            raise self._damaged("its histograms overlap")
        data = self._read(offset, HISTOGRAM_HEAD_BYTES + 8 * cells, "a histogram")
        shape = data[:_HISTOGRAM_SHAPE_BYTES]
        if known and known[0] != shape:  # the block was used again with other parameters
            del self._blocks[offset]
            return self._histogram(header, offset, budget)
        self._blocks[offset] = (shape, cells)
        digits, lowest, highest = struct.unpack_from(f"{self._order}IQQ", data, 4)
        above, negative, total = struct.unpack_from(f"{self._order}QQQ", data, 32)
        counts = np.frombuffer(data, dtype=f"{self._order}u8", offset=HISTOGRAM_HEAD_BYTES)
        return Histogram(counts.astype(np.uint64, copy=False), lowest, highest, digits, above, negative, total)

    def _cells(self, header: Header, offset: int) -> int:
        """Check the head of a histogram and that all of it is in the file; its number of cells."""
        head = self._read(offset, HISTOGRAM_HEAD_BYTES, "the head of a histogram")
        magic, digits, lowest, highest, cells, cell_bytes = struct.unpack_from(f"{self._order}IIQQII", head)
        if magic != HISTOGRAM_MAGIC or cell_bytes != 8:
            raise self._damaged(f"there is no histogram at {offset}")
        try:
            expected = layout_of(digits, lowest, highest).cells
        except ValueError as error:
            raise self._damaged(f"at {offset}: {error}") from None
        if cells != expected:
            raise self._damaged(f"the histogram at {offset} has {cells} cells; its parameters make {expected}")
        self._fits(header, offset, HISTOGRAM_HEAD_BYTES + 8 * cells, "a histogram")
        return int(cells)

    # Events

    def events(self, cursor: int | None = None, until: int | None = None) -> EventBatch:
        """Events from number `cursor` on, oldest first; None: all that the ring still holds.

        Args:
            cursor: The number to begin with.
            until: The number to end before; None: read all there are.

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
        begin = min(max(first, oldest), end)  # what was overwritten from `end` on is for the next reading to miss
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
        """When event `number` happened, ns since 1970; None: it has not; 0: it cannot be read any more.

        Raises:
            SegmentError: The segment is damaged.
        """
        header = self.header()
        if header.state == WRITING or number >= header.events_written:
            return None
        event = self._event(header, number)
        return event.time_ns if event is not None else 0

    def _event(self, header: Header, number: int) -> Event | None:
        """Event `number`, None when it is being overwritten."""
        offset = header.events_offset + number % header.event_capacity * header.event_bytes
        before = self._read(offset, 8, "its events")
        data = self._read(offset, EVENT_BYTES, "its events")
        after = self._read(offset, 8, "its events")
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
        """Labels of the object in a slot; the instance's own where there is none."""
        if slot < header.objects_used:
            entry = self._read(header.objects_offset + slot * header.object_bytes, OBJECT_BYTES, "its table of objects")
            state, scope = struct.unpack_from(f"{self._order}II", entry)
            record = self._records.get(scope)
            if state in (_LIVE, _GONE) and record is not None:
                return self._identify(slot, entry, record.layout)[0]
        return {"instance": header.name}
