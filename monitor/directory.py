"""The directory of a stats segment: the description of its records in the file (engine/docs/segment.md, section 2).

A monitor of one version reads an engine of another version, because this module uses no statistic by name. The cells of
a record, their offsets and their names come from the file. Unknown lines and extra fields are skipped. A line that
addresses data outside its record is rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heliograph.monitor.errors import UserError

__all__ = ["Directory", "EventKind", "RecordLayout", "SegmentError", "StatCell", "parse_directory"]

GUARD_BYTES = 8

# Far above the needs of any engine: the reader allocates for every line of a directory.
_SCOPES_LIMIT = 256
_CELLS_LIMIT = 1 << 14
_EVENTS_LIMIT = 1 << 12


class SegmentError(UserError):
    """A stats segment cannot be read; the message names the fault."""


@dataclass(frozen=True, slots=True)
class StatCell:
    """One 64-bit cell of a record, as the file describes it."""

    name: str
    offset: int
    kind: str
    unit: str
    level: int
    statistic: str
    label: str
    value: str
    help: str


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """The record of one scope."""

    name: str
    id: int
    record_bytes: int
    labels: tuple[str, ...]
    info: tuple[str, ...]
    help: str
    cells: tuple[StatCell, ...]

    @property
    def plain(self) -> tuple[tuple[str, int], ...]:
        """Name and index, in 64-bit words from the start of the record, of the cells that hold a value."""
        return tuple((cell.name, cell.offset // 8) for cell in self.cells if cell.kind != "histogram")

    @property
    def signed(self) -> frozenset[str]:
        """Names of the cells with signed values, in two's complement."""
        return frozenset(cell.name for cell in self.cells if cell.kind == "signed")

    @property
    def histograms(self) -> tuple[tuple[str, int], ...]:
        """Name and word index of the cells that hold the offset of a histogram."""
        return tuple((cell.name, cell.offset // 8) for cell in self.cells if cell.kind == "histogram")


@dataclass(frozen=True, slots=True)
class EventKind:
    """One kind of event."""

    name: str
    id: int
    severity: str
    arguments: tuple[str, ...]
    help: str


@dataclass(frozen=True, slots=True)
class Directory:
    """The contents of a segment as described by its directory."""

    scopes: Mapping[int, RecordLayout]
    """Record layouts by scope id."""
    events: Mapping[int, EventKind]
    """Event kinds by event id."""


def _number(text: str, line: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise SegmentError(f"the directory has {text[:40]!r} in place of a number, in {line[:80]!r}")
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _scope(fields: list[str], line: str) -> tuple[str, int, int, tuple[str, ...], tuple[str, ...], str]:
    name, number, record_bytes, labels, info, text = fields[1:7]
    size = _number(record_bytes, line)
    if size < GUARD_BYTES or size % 8:
        raise SegmentError(f"the directory gives records of {size} bytes to scope {name[:40]!r}")
    return name, _number(number, line), size, _names(labels), _names(info), text


def _stat(fields: list[str], line: str) -> StatCell:
    _, _, name, offset, kind, unit, level, statistic, label, value, text = fields[:11]
    return StatCell(name, _number(offset, line), kind, unit, _number(level, line), statistic, label, value, text)


def parse_directory(text: str) -> Directory:
    """Parse the lines of a directory.

    Raises:
        SegmentError: A known line lacks fields, has no number where one is needed, or points outside its record.
    """
    heads = {}
    cells: dict[str, list[StatCell]] = {}
    events = {}
    least = {"scope": 7, "stat": 11, "event": 6}
    most = {"scope": _SCOPES_LIMIT, "stat": _CELLS_LIMIT, "event": _EVENTS_LIMIT}
    known = dict.fromkeys(most, 0)
    for line in text.split("\n"):
        fields = line.split("\t")
        word = fields[0]
        if word not in least:
            continue
        known[word] += 1
        if known[word] > most[word]:
            raise SegmentError(f"the directory has more than {most[word]} lines of the kind {word}")
        if len(fields) < least[word]:
            raise SegmentError(f"the directory has a {word} line with {len(fields)} fields: {line[:80]!r}")
        if word == "scope":
            head = _scope(fields, line)
            heads[head[0]] = head
        elif word == "stat":
            cells.setdefault(fields[1], []).append(_stat(fields, line))
        else:
            number = _number(fields[2], line)
            events[number] = EventKind(fields[1], number, fields[3], _names(fields[4]), fields[5])

    scopes = {}
    for name, number, size, labels, info, help_text in heads.values():
        if len({cell.offset for cell in cells.get(name, ())}) < len(cells.get(name, ())):
            raise SegmentError(f"the directory puts two cells of scope {name[:40]} at one offset")
        for cell in cells.get(name, ()):
            if cell.offset % 8 or not GUARD_BYTES <= cell.offset <= size - 8:
                raise SegmentError(f"the directory puts cell {name[:40]}.{cell.name[:40]} outside its record")
        scopes[number] = RecordLayout(name, number, size, labels, info, help_text, tuple(cells.get(name, ())))
    return Directory(scopes, events)
