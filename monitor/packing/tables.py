"""Tables that a stream of frames defines once: texts, shapes of records, forms of histograms.

Frames refer to their entries by number. A frame has the entries that its base lacks; they continue its numbering.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

__all__ = [
    "HISTOGRAM",
    "SIGNED",
    "WORD",
    "CellName",
    "Directory",
    "Layout",
    "Numbering",
    "Shape",
    "bits_of",
    "present",
]

HISTOGRAM = "histogram"
SIGNED = "signed"
WORD = (1 << 64) - 1

Directory = Mapping[tuple[str, str], tuple[str, str]]
"""Kind and unit by scope and cell."""

Key = TypeVar("Key", bound=Hashable)


class CellName(NamedTuple):
    """One number or one histogram of a record, as its writer describes it."""

    name: str
    kind: str
    """counter, gauge, signed, peak, histogram, or a kind of a later version; empty: unknown."""
    unit: str


class Shape(NamedTuple):
    """A kind of record: the names of its labels, its description and its cells."""

    scope: str
    labels: tuple[str, ...]
    info: tuple[str, ...]
    cells: tuple[CellName, ...]


class Numbering(Generic[Key]):
    """Numbers keys in the order of first use, after the known ones."""

    __slots__ = ("known", "new")

    def __init__(self, known: dict[Key, int]) -> None:
        self.known = known
        self.new: dict[Key, int] = {}

    def __getitem__(self, key: Key) -> int:
        found = self.known.get(key)
        if found is None:
            found = self.new.get(key)
            if found is None:
                found = self.new[key] = len(self.known) + len(self.new)
        return found

    def __len__(self) -> int:
        return len(self.known) + len(self.new)

    def all(self) -> dict[Key, int]:
        """Known and new keys; the result may be the known dictionary itself."""
        if not self.new:
            return self.known
        if not self.known:
            return self.new
        return {**self.known, **self.new}


@dataclass(frozen=True)
class Layout:
    """A shape and a bit for each of its cells that an object has; the first is the lowest bit of the first byte."""

    shape: Shape
    number: int
    """Number of the shape."""
    bits: bytes

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """Names of its numbers, in order."""
        return tuple(item.name for item in present(self.shape, self.bits) if item.kind != HISTOGRAM)

    @cached_property
    def signed(self) -> tuple[str, ...]:
        """Names of its numbers that may be negative."""
        return tuple(item.name for item in present(self.shape, self.bits) if item.kind == SIGNED)

    @cached_property
    def histograms(self) -> tuple[str, ...]:
        """Names of its histograms, in order."""
        return tuple(item.name for item in present(self.shape, self.bits) if item.kind == HISTOGRAM)


def present(shape: Shape, bits: bytes) -> Iterator[CellName]:
    """The cells whose bit is set."""
    for start, byte in enumerate(bits):
        if byte:
            for index, item in enumerate(shape.cells[8 * start : 8 * start + 8]):
                if byte >> index & 1:
                    yield item


def bits_of(shape: Shape, values: frozenset[str], histograms: frozenset[str]) -> bytes:
    """The bits of the given cells and histograms."""
    out = bytearray((len(shape.cells) + 7) // 8)
    for index, item in enumerate(shape.cells):
        if item.name in (histograms if item.kind == HISTOGRAM else values):
            out[index >> 3] |= 1 << (index & 7)
    return bytes(out)
