"""The header of a stats segment (engine/docs/segment.md, section 1), checked against the size of its file.

After `parse_header` all offsets are safe: the directory, the table of objects and the ring of events lie within the
file, and their counts are not larger than those of any engine. A segment that is still being written (state 0) is only
marked as such; its other fields are neither checked nor used.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from heliograph.monitor.directory import SegmentError

__all__ = ["CLOSED", "RUNNING", "WRITING", "Header", "check_place", "parse_header", "text_of"]

LAYOUT_VERSION = 1
HEADER_BYTES = 256
OBJECT_BYTES = 512
EVENT_BYTES = 256
COMMAND_HEAD_BYTES = 64
COMMAND_BYTES = 1024

WRITING, RUNNING, CLOSED = 0, 1, 2

# Far above the needs of any engine, small enough that a forged file cannot keep a monitor busy.
_FILE_LIMIT = 1 << 34
_DIRECTORY_LIMIT = 1 << 20
_OBJECTS_LIMIT = 1 << 16
_EVENTS_LIMIT = 1 << 16
_COMMANDS_LIMIT = 1 << 10


@dataclass(frozen=True, slots=True)
class Header:
    """The fixed part of a segment: its writer and the offsets of its structures."""

    size: int
    state: int
    pid: int
    incarnation: int
    started_ns: int
    heartbeat_ns: int
    polled: bool
    directory_offset: int
    directory_bytes: int
    objects_offset: int
    object_capacity: int
    object_bytes: int
    objects_used: int
    events_offset: int
    event_capacity: int
    event_bytes: int
    events_written: int
    directory_version: int
    name: str
    product: str
    commands_offset: int = 0
    """0: the engine accepts no commands."""
    command_capacity: int = 0
    command_bytes: int = 0


def text_of(data: bytes) -> str:
    """Return the text up to the first NUL."""
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")


def check_place(file_bytes: int, offset: int, size: int, what: str) -> None:
    """Check that a structure begins at a multiple of 8 and lies between the header and the end of the file.

    Raises:
        SegmentError: It does not; the message begins with `what`.
    """
    if offset % 8 or offset < HEADER_BYTES or offset > file_bytes or size > file_bytes - offset:
        raise SegmentError(f"{what} ({size} bytes at {offset}) does not fit into its {file_bytes} bytes")


def parse_header(data: bytes, order: str, file_bytes: int, limit: int | None = None) -> Header:
    """Parse the 256 bytes of the header and check them.

    Args:
        data: The bytes; the caller has checked magic, byte order and version.
        order: "<" or ">".
        file_bytes: Actual size of the file.
        limit: Largest size of its tables in bytes; default: the size of the file.

    Raises:
        SegmentError: A claimed structure does not fit into the file.
    """
    fields = struct.unpack_from(f"{order}QQQQQQQQQQIIQQIIQQ", data, 16)
    size, state, pid, incarnation, started, heartbeat, mode, directory, directory_bytes = fields[:9]
    objects, capacity, object_bytes, used, events, event_capacity, event_bytes, written, version = fields[9:]
    commands, command_capacity, command_bytes = struct.unpack_from(f"{order}QII", data, 224)
    header = Header(
        size=size,
        state=state,
        pid=pid,
        incarnation=incarnation,
        started_ns=started,
        heartbeat_ns=heartbeat,
        polled=mode == 1,
        directory_offset=directory,
        directory_bytes=directory_bytes,
        objects_offset=objects,
        object_capacity=capacity,
        object_bytes=object_bytes,
        objects_used=used,
        events_offset=events,
        event_capacity=event_capacity,
        event_bytes=event_bytes,
        events_written=written,
        directory_version=version,
        name=text_of(data[144:192]),
        product=text_of(data[192:224]),
        commands_offset=commands,
        command_capacity=command_capacity,
        command_bytes=command_bytes,
    )
    if state not in (WRITING, RUNNING, CLOSED):
        raise SegmentError(f"its state is {state}")
    if state != WRITING:
        _check(header, file_bytes)
        _check_tables(header, file_bytes if limit is None else limit)
    return header


def _check_tables(header: Header, limit: int) -> None:
    """Check that the structures a reader scans are not larger than the file."""
    tables = header.directory_bytes + header.objects_used * header.object_bytes
    tables += header.event_capacity * header.event_bytes
    if tables > limit:
        raise SegmentError(f"it claims tables of {tables} bytes, more than it has (holes not counted)")


def _check(header: Header, file_bytes: int) -> None:
    if header.size > file_bytes or header.size > _FILE_LIMIT:
        raise SegmentError(f"it claims {header.size} bytes but has {file_bytes}")
    if header.directory_bytes > _DIRECTORY_LIMIT:
        raise SegmentError(f"it claims a directory of {header.directory_bytes} bytes")
    check_place(header.size, header.directory_offset, header.directory_bytes, "its directory")
    if header.object_bytes < OBJECT_BYTES or header.object_capacity > _OBJECTS_LIMIT:
        raise SegmentError(f"it claims {header.object_capacity} objects of {header.object_bytes} bytes")
    table_bytes = header.object_capacity * header.object_bytes
    check_place(header.size, header.objects_offset, table_bytes, "its table of objects")
    if header.objects_used > header.object_capacity:
        raise SegmentError(f"it uses {header.objects_used} objects of {header.object_capacity}")
    capacity = header.event_capacity
    if header.event_bytes < EVENT_BYTES or not 0 < capacity <= _EVENTS_LIMIT or capacity & (capacity - 1):
        raise SegmentError(f"it claims {capacity} events of {header.event_bytes} bytes")
    check_place(header.size, header.events_offset, capacity * header.event_bytes, "its ring of events")
    if header.commands_offset:
        capacity, entry_bytes = header.command_capacity, header.command_bytes
        if entry_bytes < COMMAND_BYTES or entry_bytes % 8 or not 0 < capacity <= _COMMANDS_LIMIT:
            raise SegmentError(f"it claims {capacity} commands of {entry_bytes} bytes")
        ring_bytes = COMMAND_HEAD_BYTES + capacity * entry_bytes
        check_place(header.size, header.commands_offset, ring_bytes, "its ring of commands")
