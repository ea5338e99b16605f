"""The envelope of a frame, and reading its body without trusting it.

A frame is a head of 40 bytes and a body, plain or compressed. Everything a reader takes is checked against what is
left before anything is made of it: a frame that lies raises `PackingError` and costs no more than honest bytes of its
length would. The body may not be more than 32 times its packed bytes, so that a small frame stays small, and what is
made of it is paid for by the bytes that came (`Work`).
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
"""Most bytes of a body for each byte it is packed in."""

_HEAD = struct.Struct("<4sBBHQQQII")
_WORTH_BYTES = 512
"""Smaller bodies are not worth compressing."""


class PackingError(UserError):
    """Bytes are no frame that can be read, or a snapshot cannot be made into one; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most a decoder accepts."""

    body_bytes: int = 64 << 20
    instances: int = 1 << 16
    objects: int = 1 << 18
    """In a snapshot."""
    cells: int = 1 << 24
    """Numbers of all objects of a snapshot together."""
    histograms: int = 1 << 20
    strings: int = 1 << 20
    """Different texts a stream may have named since its keyframe."""
    text_bytes: int = 1 << 14
    """Of one text."""
    shapes: int = 1 << 12
    """Different kinds of record."""
    shape_cells: int = 1 << 16
    """Of all kinds of record together."""
    names: int = 64
    """Labels, further descriptions or arguments of one object or event."""
    forms: int = 64
    """Different forms of histograms."""
    histogram_cells: int = ENGINE_CELLS
    """Of one histogram: as many as the engine makes."""
    events: int = 1 << 16
    """In a snapshot."""
    memory_bytes: int = 256 << 20
    """What a decoder may hold, by its own estimate."""


class Work:
    """What reading a frame may cost, charged before it is done.

    Nanoseconds of a usual processor, estimated and rather too many than too few. What its bytes allow is far more
    than an honest frame needs; one whose bytes were packed tightly to make a reader slow is refused before it does.
    """

    __slots__ = ("_left",)

    ONCE = 150_000
    PER_BYTE = 7_000
    """Of the frame as it came. 7 ms for a KB."""
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
        """Take `count` pieces of work of `each` ns.

        Raises:
            PackingError: It would be more than the frame's bytes allow.
        """
        self._left -= each * count
        if self._left < 0:
            raise PackingError("a snapshot frame is damaged: reading it would cost more than its bytes allow")


@dataclass(frozen=True, slots=True)
class Head:
    """What a frame says of itself."""

    stream: int
    """Who encodes: random, another for every encoder."""
    number: int
    """Of the frame, from 1; each is one more than the one before."""
    base: int
    """Number of the frame whose changes it holds; 0 in a keyframe."""


def pack(head: Head, body: bytes, compress: bool = True) -> bytes:
    """A frame."""
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
    """Head and body of a frame.

    Raises:
        PackingError: It is not a frame, is damaged, of a version not known here, or larger than `limit` bytes.
    """
    if len(frame) < _HEAD.size or frame[:4] != MAGIC:
        raise PackingError(f"{len(frame)} bytes that are no snapshot frame")
    _, version, flags, _, stream, number, base, size, check = _HEAD.unpack_from(frame)
    if version != VERSION:
        raise PackingError(f"a snapshot frame of version {version}; this Heliograph reads version {VERSION}")
    if not number or bool(flags & KEYFRAME) != (base == 0) or base >= number:
        raise PackingError(f"a snapshot frame is damaged: number {number} is based on {base}")
    if size > limit:
        raise PackingError(f"a snapshot frame of {size} bytes; at most {limit} are taken")
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
        raise PackingError("a snapshot frame is damaged: its check sum is wrong")
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
        raise PackingError("a snapshot frame is damaged: its packed bytes do not end where its body does")
    return body


class Reader(Cursor):
    """Takes a body apart, front to back."""

    __slots__ = ()
    error = PackingError
    subject = "a snapshot frame is damaged: it"

    def count(self, each: int, most: int) -> int:
        """A number of things of at least `each` bytes, `most` at most.

        Raises:
            PackingError: They cannot all be there.
        """
        value = self.uint()
        if value > most or value * each > self.left:
            raise self.damaged(f"claims {value} of something at byte {self.at}")
        return value

    def column(self, count: int | None = None) -> varints.Numbers:
        """A column of numbers; `count` of them, when given.

        Raises:
            PackingError: It is damaged, or has another length.
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
