"""File format of flight recordings (engine/docs/flight.md): header, chunks and frames. `reader` decodes the frames."""

from __future__ import annotations

import os
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from heliograph.monitor.cursor import Cursor
from heliograph.monitor.directory import Directory, SegmentError, parse_directory
from heliograph.monitor.errors import UserError
from heliograph.monitor.header import text_of
from heliograph.monitor.ownership import is_own, stranger

__all__ = ["SUFFIX", "Chunk", "FlightError", "FlightFile", "Header", "Payload", "State", "open_file", "read_header"]

SUFFIX = ".flight"
VERSION = 1
HEADER_BYTES = 512
CHUNK_HEAD_BYTES = 64
FRAME_HEAD_BYTES = 8

# Far above the values of any recorder, and small enough that a forged file cannot keep a reader busy.
_FILE_LIMIT = 1 << 32
_DIRECTORY_LIMIT = 1 << 20
_CHUNKS_LIMIT = 1 << 10
_SLACK = 1 << 20
_PACKED = 4
"""Highest compression ratio assumed of a file system: a file's size may be this multiple of its blocks."""
_PIECE_BYTES = 1 << 20


class FlightError(UserError):
    """A flight recording cannot be read; the message states the reason."""


class State(IntEnum):
    """State of the file."""

    WRITING = 0
    RECORDING = 1
    CLOSED = 2
    FROZEN = 3


@dataclass(frozen=True, slots=True)
class Header:
    """The header of the file."""

    size: int
    state: State
    pid: int
    incarnation: int
    started_ns: int
    interval_ns: int
    directory_offset: int
    directory_bytes: int
    chunks_offset: int
    chunk_bytes: int
    chunks: int
    number: int
    """Number of a kept recording; 0 for the ring."""
    trigger_ns: int
    trigger_event: int | None
    """Number of the event that triggered it; None if kept by command, or for the ring."""
    ticks: int
    """Number of ticks recorded."""
    name: str
    product: str
    why: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """The frames of one chunk, as bytes."""

    sequence: int
    data: bytes
    order: str

    def frames(self) -> Iterator[bytes]:
        """The payload of each frame, in order.

        Raises:
            FlightError: A frame is cut off or its checksum is wrong. The frames before it are valid.
        """
        at, end = 0, len(self.data)
        while at < end:
            if end - at < FRAME_HEAD_BYTES:
                raise FlightError(f"chunk {self.sequence} ends within a frame header")
            length, check = struct.unpack_from(f"{self.order}II", self.data, at)
            at += FRAME_HEAD_BYTES
            if length > end - at:
                raise FlightError(f"chunk {self.sequence} ends within a frame of {length} bytes")
            payload = self.data[at : at + length]
            if zlib.crc32(payload) != check:
                raise FlightError(f"a frame in chunk {self.sequence} has a wrong checksum")
            yield payload
            at += -(-length // 8) * 8


class Payload(Cursor):
    """Reads the numbers and texts of a frame."""

    __slots__ = ()
    error = FlightError
    subject = "a frame"


@dataclass(frozen=True, slots=True)
class FlightFile:
    """Content of a file before its frames are decoded."""

    path: Path
    header: Header
    directory: Directory
    chunks: tuple[Chunk, ...]
    """Oldest first."""
    damage: tuple[str, ...]
    """One sentence for each part that could not be read."""


def _header(data: bytes, order: str, path: Path) -> Header:
    fields = struct.unpack_from(f"{order}QQQQQQQQQQIIQQQ", data, 16)
    size, state, pid, incarnation, started, interval, directory, directory_bytes = fields[:8]
    chunks_offset, chunk_bytes, chunks, number, trigger, event, ticks = fields[8:]
    if state > State.FROZEN:
        raise FlightError(f"{path} is damaged: its state is {state}")
    if size > _FILE_LIMIT or directory_bytes > _DIRECTORY_LIMIT or not 0 < chunks <= _CHUNKS_LIMIT:
        raise FlightError(f"{path} is damaged: its header has values that no recorder writes")
    fits = HEADER_BYTES <= directory <= chunks_offset - directory_bytes and chunks_offset % 8 == 0
    if not fits or chunk_bytes % 8 or not CHUNK_HEAD_BYTES < chunk_bytes <= size:
        raise FlightError(f"{path} is damaged: its parts overlap")
    if chunks_offset + chunks * chunk_bytes > size:
        raise FlightError(f"{path} is damaged: its chunks are larger than the file size in its header")
    return Header(
        size=size,
        state=State(state),
        pid=pid,
        incarnation=incarnation,
        started_ns=started,
        interval_ns=interval,
        directory_offset=directory,
        directory_bytes=directory_bytes,
        chunks_offset=chunks_offset,
        chunk_bytes=chunk_bytes,
        chunks=chunks,
        number=number,
        trigger_ns=trigger,
        trigger_event=event - 1 if event else None,
        ticks=ticks,
        name=text_of(data[128:176]) or path.name.split(".", 1)[0],
        product=text_of(data[176:208]),
        why=text_of(data[208:408]),
    )


class _Reading:
    """One pass over an open file."""

    def __init__(self, file: int, path: Path, all_users: bool) -> None:
        self.file = file
        self.path = path
        found = os.fstat(file)
        self.identity = (found.st_dev, found.st_ino)
        if not stat.S_ISREG(found.st_mode):
            raise FlightError(f"{path} is not a regular file")
        if not is_own(found.st_uid) and not all_users:
            raise FlightError(f"{path} is not read: {stranger(found.st_uid)}")
        self.size = found.st_size
        self.left = found.st_blocks * 512 * _PACKED + _SLACK
        """Limit of chunk bytes to read; holes are not counted."""
        self.damage: list[str] = []

    def read(self, offset: int, size: int) -> bytes:
        """Read up to `size` bytes; fewer at the end of the file."""
        try:
            return os.pread(self.file, size, offset)
        except OSError as error:
            raise FlightError(f"{self.path} cannot be read: {error.strerror}") from None

    def order(self) -> str:
        head = self.read(0, 16)
        if head[:8] != b"HELIOFLT"[: len(head)] or len(head) < 8:
            raise FlightError(f"{self.path} is not a flight recording")
        if len(head) < 16:
            raise FlightError(f"{self.path} is cut off within its header")
        order = {b"\x04\x03\x02\x01": "<", b"\x01\x02\x03\x04": ">"}.get(head[8:12])
        if order is None:
            raise FlightError(f"{self.path} is damaged: its byte order mark is unknown")
        (version,) = struct.unpack_from(f"{order}I", head, 12)
        if version != VERSION:
            raise FlightError(f"{self.path} has version {version}; this Heliograph reads version {VERSION}")
        return order

    def header(self, order: str) -> Header:
        data = self.read(0, HEADER_BYTES)
        if len(data) < HEADER_BYTES:
            raise FlightError(f"{self.path} is cut off within its header")
        header = _header(data, order, self.path)
        if self.size < header.size:
            self.damage.append(f"the file is cut off: {self.size} of {header.size} bytes are there")
        return header

    def directory(self, header: Header) -> Directory:
        data = self.read(header.directory_offset, header.directory_bytes)
        if len(data) < header.directory_bytes:
            raise FlightError(f"{self.path} is cut off within its directory")
        try:
            return parse_directory(data.rstrip(b"\0").decode("utf-8", "replace"))
        except SegmentError as error:
            raise FlightError(f"{self.path} is damaged: {error}") from None

    def frames(self, sequence: int, offset: int, size: int) -> bytes:
        """Read the frames of a chunk up to a hole; a forged sparse file may claim gigabytes that no disk holds."""
        pieces = []
        for at in range(0, size, _PIECE_BYTES):
            piece = self.read(offset + at, min(_PIECE_BYTES, size - at))
            if len(piece) == _PIECE_BYTES and not piece.strip(b"\0"):
                self.damage.append(f"chunk {sequence} has a hole after {at} bytes")
                break
            pieces.append(piece)
            if len(piece) < _PIECE_BYTES:
                break
        return b"".join(pieces)

    def chunk(self, header: Header, order: str, place: int) -> Chunk | None:
        """Read a chunk; None if it is empty or was overwritten during the read."""
        offset = header.chunks_offset + place * header.chunk_bytes
        head = self.read(offset, CHUNK_HEAD_BYTES)
        if len(head) < CHUNK_HEAD_BYTES:
            return None
        sequence, used = struct.unpack_from(f"{order}QQ", head)
        if sequence == 0:
            return None
        if used > header.chunk_bytes - CHUNK_HEAD_BYTES:
            self.damage.append(f"chunk {sequence} claims {used} bytes")
            return None
        self.left -= used
        if self.left < 0:
            self.damage.append(f"chunk {sequence} claims {used} bytes, more than the file has")
            return None
        data = self.frames(sequence, offset + CHUNK_HEAD_BYTES, used)
        if self.read(offset, 8) != head[:8]:
            return None
        return Chunk(sequence, data, order)


@contextmanager
def _opened(path: Path, all_users: bool) -> Iterator[_Reading]:
    try:
        # O_NONBLOCK: a FIFO must not block the reader.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise FlightError(f"{path} cannot be opened: {error.strerror}") from None
    try:
        yield _Reading(file, path, all_users)
    finally:
        os.close(file)


def read_header(path: Path, all_users: bool = False) -> tuple[Header, tuple[int, int]]:
    """Read the header of a flight recording, and device and inode of its file.

    Args:
        path: The file.
        all_users: Also read files of other users.

    Raises:
        FlightError: The file cannot be opened or is not a flight recording.
    """
    with _opened(path, all_users) as reading:
        return reading.header(reading.order()), reading.identity


def open_file(path: Path, all_users: bool = False) -> FlightFile:
    """Read a flight recording, kept or still being recorded. Damaged parts are skipped and listed in `damage`.

    Args:
        path: The file.
        all_users: Also read files of other users.

    Raises:
        FlightError: The file cannot be opened or is not a flight recording.
    """
    with _opened(path, all_users) as reading:
        order = reading.order()
        header = reading.header(order)
        directory = reading.directory(header)
        found = [reading.chunk(header, order, place) for place in range(header.chunks)]
    chunks = {chunk.sequence: chunk for chunk in found if chunk is not None}
    return FlightFile(
        path, header, directory, tuple(chunks[sequence] for sequence in sorted(chunks)), tuple(reading.damage)
    )
