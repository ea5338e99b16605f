"""The envelope of a frame, and safe reading of its body.

A frame has a head of 40 bytes and a body, plain or compressed. Every count is checked against the remaining bytes
before memory is allocated. A forged frame raises `PackingError` and costs no more than a valid frame of its size. The
body may have at most 32 times its compressed size, and the cost of decoding is limited by the size of the frame
(`Work`).
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from heliograph.monitor.cursor import Cursor
from heliograph.monitor.errors import UserError
from heliograph.monitor.latency import ENGINE_CELLS
from heliograph.monitor.packing import varints

__all__ = ["Head", "Limits", "PackingError", "Reader", "Work", "pack", "unpack"]

MAGIC = b"HSNP"
VERSION = 1
KEYFRAME = 1
COMPRESSED = 2
RATIO = 32
"""Highest compression ratio of a body."""

_HEAD = struct.Struct("<4sBBHQQQII")
_WORTH_BYTES = 512
"""Bodies below this size are not compressed."""


class PackingError(UserError):
    """A frame cannot be decoded or a snapshot cannot be encoded; the message states the reason."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a decoder."""

    body_bytes: int = 64 << 20
    instances: int = 1 << 16
    objects: int = 1 << 18
    """Objects in a snapshot."""
    cells: int = 1 << 24
    """Numbers of all objects in a snapshot."""
    histograms: int = 1 << 20
    strings: int = 1 << 20
    """Texts defined by a stream since its keyframe."""
    text_bytes: int = 1 << 14
    """Size of one text."""
    shapes: int = 1 << 12
    """Shapes (kinds of record)."""
    shape_cells: int = 1 << 16
    """Cells of all shapes."""
    names: int = 64
    """Labels, descriptions or arguments of one object or event."""
    forms: int = 64
    """Forms of histograms."""
    histogram_cells: int = ENGINE_CELLS
    """Cells of one histogram; the engine's histograms have this number."""
    events: int = 1 << 16
    """Events in a snapshot."""
    memory_bytes: int = 256 << 20
    """Estimated memory of a decoder's content."""


class Work:
    """Budget of processor time for decoding a frame, charged before each step.

    The unit is nanoseconds of a common processor, estimated generously. The budget for each byte is far above the
    needs of a valid frame; a frame built to slow a reader down is refused before it does.
    """

    __slots__ = ("_left",)

    ONCE = 150_000
    PER_BYTE = 7_000
    """Budget for each byte of the frame as received: 7 ms per KB."""
    BODY_BYTE = 3
    TEXT = 700
    SHAPE = 9_000
    NAME = 500
    CELL_NAME = 3_000
    FORM = 6_000
    INSTANCE = 16_000
    RUN = 1_200
    BITS = 80
    OBJECT = 13_000
    CHANGED_OBJECT = 6_000
    CELL = 120
    HISTOGRAM = 1_500
    CHANGE = 12_000
    CHANGED_CELL = 60
    HELD_CELL = 6
    EVENT = 14_000
    PAIR = 1_500
    EXTENSION = 3_500

    def __init__(self, frame_bytes: int) -> None:
        self._left = self.ONCE + self.PER_BYTE * frame_bytes

    def charge(self, each: int, count: int = 1) -> None:
        """Charge `count` units of work of `each` ns.

        Raises:
            PackingError: The budget of the frame is exceeded.
        """
        self._left -= each * count
        if self._left < 0:
            raise PackingError("a snapshot frame is damaged: decoding it costs too much for its size")


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a frame."""

    stream: int
    """Identity of the encoder, random."""
    number: int
    """Number of the frame, from 1, increasing by 1."""
    base: int
    """Number of the frame that its changes refer to; 0 in a keyframe."""


def pack(head: Head, body: bytes, compress: bool = True) -> bytes:
    """Build a frame."""
    flags = 0 if head.base else KEYFRAME
    packed = body
    if compress and len(body) >= _WORTH_BYTES:
        smaller = zlib.compress(body, 1)
        if len(smaller) < len(body) <= RATIO * len(smaller):
            flags |= COMPRESSED
            packed = smaller
    check = zlib.crc32(body)
    return _HEAD.pack(MAGIC, VERSION, flags, 0, head.stream, head.number, head.base, len(body), check) + packed


def unpack(frame: bytes, limit: int) -> tuple[Head, bytes]:
    """Split a frame into head and body.

    Raises:
        PackingError: It is not a frame, is damaged, has an unknown version, or its body exceeds `limit` bytes.
    """
    if len(frame) < _HEAD.size or frame[:4] != MAGIC:
        raise PackingError(f"{len(frame)} bytes are not a snapshot frame")
    _, version, flags, _, stream, number, base, size, check = _HEAD.unpack_from(frame)
    if version != VERSION:
        raise PackingError(f"a snapshot frame has version {version}; this Heliograph reads version {VERSION}")
    if not number or bool(flags & KEYFRAME) != (base == 0) or base >= number:
        raise PackingError(f"a snapshot frame is damaged: number {number} is based on {base}")
    if size > limit:
        raise PackingError(f"a snapshot frame has {size} bytes; the limit is {limit}")
    packed = memoryview(frame)[_HEAD.size :]
    if flags & COMPRESSED:
        if size > RATIO * len(packed):
            raise PackingError(f"a snapshot frame is damaged: {len(packed)} bytes claim to be {size}")
        body = _inflate(packed, size)
    else:
        body = bytes(packed)
    if len(body) != size:
        raise PackingError(f"a snapshot frame is damaged: its body has {len(body)} bytes, not {size}")
    if zlib.crc32(body) != check:
        raise PackingError("a snapshot frame is damaged: its checksum is wrong")
    return Head(stream, number, base), body


def _inflate(packed: memoryview, size: int) -> bytes:
    machine = zlib.decompressobj()
    try:
        body = machine.decompress(packed, max(size, 1))
        more = b"" if machine.eof else machine.decompress(machine.unconsumed_tail, 1)
    except zlib.error as error:
        raise PackingError(f"a snapshot frame is damaged: {error}") from None
    if more:
        raise PackingError(f"a snapshot frame is damaged: its body has more than {size} bytes")
    if not machine.eof or machine.unused_data:
        raise PackingError("a snapshot frame is damaged: its compressed bytes do not end with its body")
    return body


class Reader(Cursor):
    """Reads a body from start to end."""

    __slots__ = ()
    error = PackingError
    subject = "a snapshot frame is damaged: it"

    def count(self, each: int, most: int) -> int:
        """Read a count of items of at least `each` bytes; at most `most`.

        Raises:
            PackingError: The count exceeds `most` or the remaining bytes.
        """
        value = self.uint()
        if value > most or value * each > self.left:
            raise self.damaged(f"claims {value} items at byte {self.at}")
        return value

    def column(self, count: int | None = None) -> varints.Numbers:
        """Read a column of numbers; `count` of them, if given.

        Raises:
            PackingError: The column is damaged or has another length.
        """
        number, size = self.uint(), self.uint()
        if count is not None and number != count:
            raise self.damaged(f"has a column of {number} numbers, not {count}")
        if number > size:
            raise self.damaged(f"has {size} bytes, which cannot be {number} numbers")
        try:
            return varints.decode(self.take(size), number)
        except ValueError as error:
            raise PackingError(f"a snapshot frame is damaged: {error}") from None
