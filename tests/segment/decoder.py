"""An independent reader of stats segments, made from engine/docs/segment.md alone.

It shares no code with the engine, the monitor or the catalogue: what it knows of scopes, statistics and events it reads
from the segment's own directory. Every structure is checked against the page; anything that differs raises `Damaged`
with the section that was broken, so a test that decodes a segment has tested its layout.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Damaged", "Decoded", "Event", "Histogram", "Object", "Scope", "Statistic", "decode", "decode_live"]

HEADER = struct.Struct("<8sIIQQQQQQQQQQIIQQIIQQ48s32sQII16s")
OBJECT = struct.Struct("<IIQQQQQ464s")
EVENT = struct.Struct("<QQIIII4Q192s")
HISTOGRAM = struct.Struct("<IIQQIIQQQQ")
STATES = ("writing", "running", "closed")
OBJECT_STATES = ("empty", "live", "gone")
SEVERITIES = ("info", "warning", "error")
KINDS = {"counter", "gauge", "signed", "peak", "histogram"}


class Damaged(Exception):
    """The bytes are not what the page says."""


class Overtaken(Damaged):
    """A histogram has a count in a part without its bit: damage, or a count that came while a copy was taken."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """One `stat` line of the directory."""

    cell: str
    offset: int
    kind: str
    unit: str
    level: int
    name: str
    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Scope:
    """One `scope` line with its `stat` lines."""

    name: str
    id: int
    record_bytes: int
    labels: tuple[str, ...]
    info: tuple[str, ...]
    statistics: tuple[Statistic, ...]


@dataclass(frozen=True, slots=True)
class Histogram:
    """Section 4: how often each cell's values were counted."""

    counts: Mapping[int, int]
    above: int
    negative: int
    sum: int

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Object:
    """Section 3: one slot in use."""

    slot: int
    state: str
    scope: str
    generation: int
    created_ns: int
    closed_ns: int
    labels: Mapping[str, str]
    torn: bool
    values: Mapping[str, int]
    histograms: Mapping[str, Histogram]


@dataclass(frozen=True, slots=True)
class Event:
    """Section 5: one entry of the ring."""

    number: int
    time_ns: int
    name: str
    severity: str
    slot: int
    arguments: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """A whole segment."""

    state: str
    pid: int
    incarnation: int
    started_ns: int
    heartbeat_ns: int
    mode: str
    name: str
    product: str
    scopes: Mapping[str, Scope]
    objects: tuple[Object, ...]
    events: tuple[Event, ...]
    events_written: int

    def of(self, scope: str, **labels: str) -> list[Object]:
        """The objects of a scope that carry these labels."""
        return [o for o in self.objects if o.scope == scope and labels.items() <= o.labels.items()]


def _require(condition: bool, why: str) -> None:
    if not condition:
        raise Damaged(why)


def _text(field: bytes, what: str) -> str:
    text, _, padding = field.partition(b"\0")
    _require(not padding.strip(b"\0"), f"{what}: bytes behind the NUL")
    return text.decode()


def _names(field: str) -> tuple[str, ...]:
    return tuple(field.split(",")) if field else ()


class _Bytes:
    """The file, every access checked against its size."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def unpack(self, layout: struct.Struct, offset: int, what: str) -> tuple[Any, ...]:
        self.check(offset, layout.size, what)
        return layout.unpack_from(self.data, offset)

    def word(self, offset: int, what: str) -> int:
        self.check(offset, 8, what)
        return int.from_bytes(self.data[offset : offset + 8], "little")

    def check(self, offset: int, length: int, what: str) -> None:
        _require(0 <= offset <= len(self.data) - length, f"{what} lies outside the file")


def _directory(text: str) -> tuple[dict[str, Scope], dict[int, tuple[str, str]]]:
    """Section 2: scopes by name; events (name, severity) by id."""
    _require(text.endswith("\n"), "2: the directory's last line is not ended")
    heads: dict[str, tuple[str, ...]] = {}
    cells: dict[str, list[Statistic]] = {}
    events: dict[int, tuple[str, str]] = {}
    for line in text[:-1].split("\n"):
        word, *fields = line.split("\t")
        if word == "scope":
            name, *rest = fields
            heads[name] = tuple(rest)
            cells[name] = []
        elif word == "stat":
            scope, cell, offset, kind, unit, level, statistic, label, value, help_text = fields[:10]
            _require(kind in KINDS, f"2: {cell} is of kind {kind}")
            _require(bool(help_text), f"2: {cell} has no help")
            _require(bool(label) == bool(value), f"2: {cell} has half a split")
            cells[scope].append(Statistic(cell, int(offset), kind, unit, int(level), statistic, label, value))
        elif word == "event":
            name, number, severity, _arguments, _help = fields[:5]
            _require(severity in SEVERITIES, f"2: {name} is of severity {severity}")
            events[int(number)] = (name, severity)
    scopes = {}
    for name, (number, record_bytes, labels, info, _help) in heads.items():
        for stat in cells[name]:
            _require(stat.offset % 8 == 0 and 8 <= stat.offset <= int(record_bytes) - 8, f"2: {stat}")
        scopes[name] = Scope(name, int(number), int(record_bytes), _names(labels), _names(info), tuple(cells[name]))
    return scopes, events


def _histogram(file: _Bytes, offset: int) -> Histogram:
    """Section 4."""
    _require(offset % 64 == 0, "4: a histogram does not begin at a multiple of 64")
    magic, digits, lowest, highest, cells, cell_bytes, above, negative, total, used = file.unpack(
        HISTOGRAM, offset, "4: a histogram"
    )
    _require((magic, digits, lowest, highest) == (0x48445231, 3, 1, 60_000_000_000), "4: parameters")
    _require((cells, cell_bytes) == (27648, 8), "4: cells")
    file.check(offset + 64, 27648 * 8, "4: the counts")
    counts = struct.unpack_from("<27648Q", file.data, offset + 64)
    filled = {cell: often for cell, often in enumerate(counts) if often}
    if used and not all(used >> cell // 512 & 1 for cell in filled):
        raise Overtaken("4: a count in a part that is not used")
    return Histogram(filled, above, negative, total)


def _labels(field: bytes, scope: Scope) -> dict[str, str]:
    text = _text(field, "3: labels")
    _require(text == "" or text.endswith("\n"), "3: the last label is not ended")
    pairs = [line.partition("=") for line in text.split("\n")[:-1]]
    _require(all(equals for _, equals, _ in pairs), "3: a label without =")
    keys = [key for key, _, _ in pairs]
    _require(tuple(keys) == (*scope.labels, *scope.info)[: len(keys)], f"3: {scope.name} has labels {keys}")
    _require(len(keys) >= len(scope.labels), f"3: {scope.name} lacks labels, it has {keys}")
    return {key: value for key, _, value in pairs}


def _objects(file: _Bytes, offset: int, used: int, entry_bytes: int, scopes: Mapping[str, Scope]) -> Iterator[Object]:
    """Section 3."""
    by_id = {scope.id: scope for scope in scopes.values()}
    for slot in range(used):
        state, scope_id, generation, record, record_bytes, created, closed, labels = file.unpack(
            OBJECT, offset + slot * entry_bytes, "3: an object"
        )
        if OBJECT_STATES[state] == "empty":
            continue
        scope = by_id[scope_id]
        _require(record_bytes == scope.record_bytes, "3: the record's size is not its scope's")
        _require(record % 8 == 0, "3: a record does not begin at a multiple of 8")
        file.check(record, scope.record_bytes, "3: a record")
        _require(generation >= 1, "3: a used slot of generation 0")
        _require((closed == 0) == (OBJECT_STATES[state] == "live"), "3: closed does not fit the state")
        words = {s.cell: file.word(record + s.offset, s.cell) for s in scope.statistics}
        kinds = {s.cell: s.kind for s in scope.statistics}
        yield Object(
            slot,
            OBJECT_STATES[state],
            scope.name,
            generation,
            created,
            closed,
            _labels(labels, scope),
            torn=file.word(record, "3: the guard") % 2 == 1,
            values={
                cell: word - 2**64 if kinds[cell] == "signed" and word > 2**63 else word
                for cell, word in words.items()
                if kinds[cell] != "histogram"
            },
            histograms={
                cell: _histogram(file, word) for cell, word in words.items() if kinds[cell] == "histogram" and word
            },
        )


def _events(
    file: _Bytes, offset: int, capacity: int, entry_bytes: int, written: int, kinds: Mapping[int, tuple[str, str]]
) -> Iterator[Event]:
    """Section 5, oldest first; entries being written are left out."""
    _require(capacity > 0 and capacity & (capacity - 1) == 0, "5: the capacity is not a power of two")
    for number in range(max(0, written - capacity), written):
        at = offset + number % capacity * entry_bytes
        mark, time_ns, kind, severity, slot, _reserved, a, b, c, d, text = file.unpack(EVENT, at, "5: an event")
        if mark != number + 1:
            continue
        name, declared = kinds[kind]
        _require(SEVERITIES[severity] == declared, f"5: {name} is {SEVERITIES[severity]}, declared {declared}")
        yield Event(number, time_ns, name, declared, slot, (a, b, c, d), _text(text, "5: text"))


def decode(data: bytes) -> Decoded:
    """Decode the bytes of a segment whose header says it is written.

    Raises:
        Damaged: something is not as engine/docs/segment.md says.
    """
    file = _Bytes(data)
    fields = file.unpack(HEADER, 0, "1: the header")
    magic, order, version, size, state, pid, incarnation, started, heartbeat, mode = fields[:10]
    directory_at, directory_bytes, objects_at, capacity, object_bytes, used = fields[10:16]
    events_at, event_capacity, event_bytes, written, directory_version = fields[16:21]
    name, product, commands_at, command_capacity, command_bytes, reserved = fields[21:]
    _require(magic == b"HELIOSEG", "1: magic")
    _require(order == 0x01020304, "1: byte order")
    _require(version == 1, "1: layout version")
    _require(size == len(data), "1: size")
    _require(directory_version == 1, "1: directory version")
    _require((object_bytes, event_bytes) == (512, 256), "1: entry sizes")
    _require(reserved == bytes(16), "1: reserved is not 0")
    _require(used <= capacity, "1: more objects used than there are")
    for offset in (directory_at, objects_at, events_at, commands_at):
        _require(offset % 8 == 0, "1: a structure does not begin at a multiple of 8")
    file.check(directory_at, directory_bytes, "1: the directory")
    file.check(objects_at, capacity * object_bytes, "1: the table of objects")
    file.check(events_at, event_capacity * event_bytes, "1: the ring of events")
    if commands_at:
        _require(command_bytes == 1024 and command_capacity > 0, "8: the size of the ring of commands")
        file.check(commands_at, 64 + command_capacity * command_bytes, "8: the ring of commands")
    scopes, kinds = _directory(data[directory_at : directory_at + directory_bytes].decode())
    return Decoded(
        STATES[state],
        pid,
        incarnation,
        started,
        heartbeat,
        ("thread", "poll")[mode],
        _text(name, "1: name"),
        _text(product, "1: product version"),
        scopes,
        tuple(_objects(file, objects_at, used, object_bytes, scopes)),
        tuple(_events(file, events_at, event_capacity, event_bytes, written, kinds)),
        written,
    )


def decode_live(segment: Path | None) -> Decoded:
    """A segment that an engine writes meanwhile, an instance's `segment`.

    A copy is taken from front to back, so a histogram's `used` can be older than the counts behind it (section 4). The
    next copy has both; damage is there again. Any other damage is damage at once.
    """
    assert segment is not None, "the instance has no segment"
    try:
        return decode(segment.read_bytes())
    except Overtaken:
        return decode(segment.read_bytes())
