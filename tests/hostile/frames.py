"""Snapshot frames that no honest publisher makes: each is sound to the letter, and made to cost its reader dearly.

A body is written section by section (engine/docs/snapshot.md), so a test can claim any count, refer to anything and
repeat it. All are small: what matters is what a reader makes of each byte.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from heliograph.monitor.collector.report import Report, pack_message
from heliograph.monitor.packing.frame import RATIO, Head, pack
from heliograph.monitor.packing.varints import uint

__all__ = ["KEYFRAMES", "Body", "deltas", "message", "sealed"]

_HEAD = struct.Struct("<4sBBHQQQII")
_ENGINE_FORM = (3, 1, 60_000_000_000, 27_648)


def column(values: Iterable[int]) -> bytes:
    """A column of numbers."""
    found = [uint(value) for value in values]
    data = b"".join(found)
    return uint(len(found)) + uint(len(data)) + data


def text(value: bytes) -> bytes:
    """A text."""
    return uint(len(value)) + value


def sealed(body: bytes, number: int = 1, base: int = 0, stream: int = 7, tightly: bool = True) -> bytes:
    """A frame around a body, packed as tightly as the format permits, or not at all."""
    if not tightly:
        return pack(Head(stream, number, base), body, compress=False)
    packed, flags = zlib.compress(body, 9), 2
    plain = 0
    while RATIO * len(packed) < len(body):  # a reader refuses what is packed tighter: so it is packed less well
        plain += max(16, -(-len(body) // RATIO) - len(packed))
        stored = zlib.compressobj(0)
        rest = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = stored.compress(body[:plain]) + stored.flush(zlib.Z_FULL_FLUSH)
        packed += rest.compress(body[plain:]) + rest.flush() + struct.pack(">I", zlib.adler32(body))
    if len(packed) >= len(body):
        packed, flags = body, 0
    flags |= 0 if base else 1
    return _HEAD.pack(b"HSNP", 1, flags, 0, stream, number, base, len(body), zlib.crc32(body)) + packed


def message(
    frame: bytes, origin: int = 1, host: str = "hostile", publisher: int = 1, path: Sequence[int] = ()
) -> bytes:
    """One report of one frame."""
    return pack_message([Report(origin, "hostile", "/hostile", publisher, 1, 1_000_000_000, frame=frame)])


@dataclass
class Body:
    """The sections of a body; what is left alone is empty."""

    texts: Sequence[bytes] = ()
    shapes: Sequence[tuple[int, Sequence[int], Sequence[int], Sequence[tuple[int, int, int]]]] = ()
    """Scope, labels, info, cells: all numbers of texts."""
    forms: Sequence[tuple[int, int, int, int]] = ()
    instances: Sequence[Sequence[tuple[int, int]]] = ()
    """The runs of each, all new ones."""
    continued: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """The runs of instances of the base, by their number."""
    object_shapes: Sequence[int] = ()
    words: Sequence[int] = ()
    bits: bytes = b""
    object_forms: Sequence[int] = ()
    moved: Sequence[int] = ()
    """Gaps of the numbers that changed."""
    sums: Sequence[int] = ()
    changed: Sequence[int] = ()
    """Gaps of the histograms that changed."""
    lengths: Sequence[int] = ()
    cells: Sequence[int] = ()
    cell_sums: Sequence[int] = ()
    events: Sequence[bytes] = ()
    events_claimed: int | None = None
    extensions: bytes = b"\0"

    def bytes(self) -> bytes:
        """The body."""
        out = [uint(1), uint(0), column(map(len, self.texts)), *self.texts, uint(len(self.shapes))]
        for scope, labels, info, cells in self.shapes:
            out += [uint(scope), uint(len(labels)), *map(uint, labels), uint(len(info)), *map(uint, info)]
            out += [uint(len(cells)), *(uint(word) for cell in cells for word in cell)]
        out += [uint(len(self.forms)), *(uint(value) for form in self.forms for value in form)]
        out.append(uint(len(self.instances) + len(self.continued)))
        for place, runs in self.continued.items():
            out += [uint(place + 1), b"\0", uint(5), b"\0", _runs(runs)]
        for runs in self.instances:
            out += [b"\0\0\0", uint(1), uint(2), uint(3), b"\0", uint(5), b"\1\0", _runs(runs)]
        new = len(self.object_shapes)
        out += [column(self.object_shapes), column(self.words), column([1, 0] * new), self.bits]
        out += [column(self.object_forms), column(self.moved), column(self.sums)]
        out += [column(self.changed), column([0, 0, 0] * len(self.changed)), column(self.lengths)]
        out += [column(self.cells), column(self.cell_sums)]
        claimed = len(self.events) if self.events_claimed is None else self.events_claimed
        return b"".join([*out, uint(claimed), *self.events, self.extensions])


def _runs(runs: Sequence[tuple[int, int]]) -> bytes:
    return uint(len(runs)) + b"".join(uint(value) for run in runs for value in run)


def event(pairs: int = 0, length: int = 0) -> bytes:
    """One event, all its words the first text."""
    numbers = b"\0\0\0" + uint(1) + uint(1) + uint(1)
    return numbers + uint(pairs) + b"\0\0" * pairs + uint(pairs) + b"\0\1" * pairs + text(b"a" * length)


_TEXTS = (b"a", b"histogram", b"counter", b"")


def objects(count: int, cells: int = 0, histograms: int = 0, instances: int = 1) -> Body:
    """Objects of one shape that have all its cells."""
    shape = (0, (), (), [(0, 2, 3)] * cells + [(0, 1, 3)] * histograms)
    present = (1 << (cells + histograms)) - 1
    bits = present.to_bytes((cells + histograms + 7) // 8, "little")
    return Body(
        texts=_TEXTS,
        shapes=[shape],
        forms=[_ENGINE_FORM] if histograms else [],
        instances=[[(0, count // instances)]] * instances,
        object_shapes=[0] * (count // instances * instances),
        bits=bits * (count // instances * instances),
        object_forms=[0] * (histograms * (count // instances * instances)),
    )


def histograms(forms: Sequence[tuple[int, int, int, int]], count: int) -> Body:
    """Objects with a histogram each, of these forms in turn, and a value in the last cell of each."""
    body = objects(count, histograms=1)
    which = [place % len(forms) for place in range(count)]
    body.forms, body.object_forms = forms, which
    body.changed = [0] * count
    body.lengths = [1] * count
    body.cells = [forms[place][3] - 1 for place in which]
    body.cell_sums = [2] * count
    return body


def _filled(count: int) -> Body:
    """Histograms with a value in each of many cells."""
    body = objects(count, histograms=1)
    body.changed, body.lengths = [0] * count, [2000] * count
    body.cells, body.cell_sums = [0] * (2000 * count), [2] * (2000 * count)
    return body


_LARGEST = (5, 1, 2**63 - 1, 6_160_384)

KEYFRAMES: Mapping[str, Callable[[], Body]] = {
    "the largest histograms there can be": lambda: histograms([_LARGEST], 30),
    "thirty forms, each of millions of cells": lambda: histograms(
        [(5, 1, 2**63 - 1 - place, 6_160_384) for place in range(30)], 30
    ),
    "very many small forms": lambda: Body(forms=[(1, 1, 2 + place, 32) for place in range(4000)]),
    "texts without a letter": lambda: Body(texts=[b""] * 200_000),
    "one long text": lambda: Body(texts=[b"a" * 4_000_000]),
    "shapes of nothing": lambda: Body(texts=_TEXTS, shapes=[(0, (), (), ())] * 4_000),
    "shapes of thousands of cells": lambda: Body(texts=_TEXTS, shapes=[(0, (), (), [(0, 0, 0)] * 4000)] * 12),
    "shapes of thousands of labels": lambda: Body(texts=_TEXTS, shapes=[(0, [0] * 20_000, [0] * 20_000, ())]),
    "instances of nothing": lambda: Body(texts=_TEXTS, instances=[[]] * 20_000),
    "runs of nothing": lambda: Body(texts=_TEXTS, instances=[[(0, 0)] * 50_000]),
    "objects of nothing": lambda: objects(30_000),
    "objects of thousands of numbers by one bit each": lambda: objects(200, cells=4000),
    "objects of thousands of histograms": lambda: objects(30, histograms=4000),
    "objects that repeat one label thousands of times": lambda: Body(
        texts=_TEXTS,
        shapes=[(0, [0] * 60, (), ())],
        instances=[[(0, 5_000)]],
        object_shapes=[0] * 5_000,
        words=[0] * (60 * 5_000),
    ),
    "histograms with thousands of cells": lambda: _filled(60),
    "very many histograms of one value": lambda: histograms([_ENGINE_FORM], 10_000),
    "events of nothing": lambda: Body(texts=_TEXTS, events=[event()] * 20_000),
    "events of thousands of words": lambda: Body(texts=_TEXTS, events=[event(pairs=20_000)] * 4),
    "events of words": lambda: Body(texts=_TEXTS, events=[event(pairs=60)] * 1_000),
    "events of long texts": lambda: Body(texts=_TEXTS, events=[event(length=100_000)] * 20),
    "more events than there are bytes": lambda: Body(texts=_TEXTS, events_claimed=1 << 40),
    "extensions of nothing": lambda: Body(extensions=uint(100_000) + b"\0\0" * 100_000),
}
"""Keyframes by what they are made of."""


_MANY = 4_000


def deltas(count: int) -> list[bytes]:
    """A keyframe of many objects, numbers and histograms, then frames of a few bytes that each make all of it anew."""
    base = objects(_MANY, cells=40, histograms=2)
    out = [sealed(base.bytes(), tightly=False)]
    for number in range(2, count + 2):
        shape = number % 4
        body = Body(continued={0: [(1, _MANY)]})
        if shape == 2:
            body.moved, body.sums = [0], [2]
        elif shape == 3:
            body.changed, body.lengths, body.cells, body.cell_sums = [0], [1], [0], [2]
        out.append(sealed(body.bytes(), number, number - 1))
    return out
