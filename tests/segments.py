"""An independent writer of stats segments, made from engine/docs/segment.md alone.

It shares no code with the engine or the monitor but the catalogue's tables, so a test that writes with it and reads
with the monitor checks both against the page::

    write_segment(
        folder / "alpha.4711.helio",
        name="alpha",
        objects=[
            SegmentObject("instance", {"instance": "alpha"}, values={"messages_received": 5}),
            SegmentObject(
                "receiver",
                {"instance": "alpha", "topic": "PRICES.A", "stream": "0a0b0c0d0e0f.30001"},
                values={"messages_delivered": 5, "next_message": 5},
                histograms={"total_latency": {12_000: 4, 900_000: 1}},   # value in ns: how often
            ),
        ],
        events=[SegmentEvent("stream_opened", "met a stream", arguments=(1,), slot=1)],
    )

Values that are not given are 0; a value of `ABSENT` says that the cell does not apply to the object. The result, a
`Written`, tells where each structure lies, for tests that damage or move it. Writing a path again with the same
description (other values) changes the file in place, as a running engine would, so readers that have it open see the
change; another description replaces the file, as another engine would.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from heliograph.engine import catalogue

__all__ = ["ABSENT", "SegmentEvent", "SegmentObject", "Written", "cell_index", "directory_text", "write_segment"]

HEADER_BYTES = 256
OBJECT_BYTES = 512
EVENT_BYTES = 256
HISTOGRAM_HEAD_BYTES = 64
PART_CELLS = 512
CELLS = 27648
HIGHEST = 60_000_000_000
WHOLE_INSTANCE = 0xFFFF_FFFF

ABSENT = 1 << 63

STATES = {"writing": 0, "running": 1, "closed": 2}
OBJECT_STATES = {"empty": 0, "live": 1, "gone": 2}
SEVERITIES = {"info": 0, "warning": 1, "error": 2}


@dataclass(frozen=True, slots=True)
class SegmentObject:
    """One object: its scope, identity, cells (by cell name) and histograms (by statistic: value in ns -> how often)."""

    scope: str
    labels: Mapping[str, str]
    info: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, int] = field(default_factory=dict)
    histograms: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    state: str = "live"
    generation: int = 1
    guard: int = 0
    """Odd: the writer stopped within an update."""
    created_ns: int = 0
    closed_ns: int = 0


@dataclass(frozen=True, slots=True)
class SegmentEvent:
    """One event: a name of the catalogue, its text, arguments, and the slot of the object it is about."""

    name: str
    text: str = ""
    arguments: Sequence[int] = ()
    slot: int = WHOLE_INSTANCE
    time_ns: int = 0


@dataclass(frozen=True, slots=True)
class Written:
    """Where the structures of a written segment lie, in bytes from the start of the file."""

    path: Path
    size: int
    directory: int
    directory_bytes: int
    objects: int
    events: int
    records: tuple[int, ...]
    """Record of each object, by slot."""
    histograms: Mapping[tuple[int, str], int]
    """Block by slot and statistic."""

    def poke(self, offset: int, data: bytes) -> None:
        """Overwrite bytes of the file in place."""
        with self.path.open("r+b") as file:
            file.seek(offset)
            file.write(data)


def _padded(text: str, size: int) -> bytes:
    return text.encode()[: size - 1].ljust(size, b"\0")


def _aligned(offset: int, step: int) -> int:
    return -(-offset // step) * step


def cell_index(value: int) -> int:
    """Cell of a value, as section 4 gives it."""
    bucket = max(0, (value | 2047).bit_length() - 1 - 10)
    return (bucket << 10) + (value >> bucket)


def directory_text() -> str:
    """The directory of every scope, statistic and event of the catalogue, as section 2 gives it."""
    lines: list[tuple[object, ...]] = []
    for scope in catalogue.scopes().values():
        record_bytes = 8 + 8 * len(scope.cells)
        names = (",".join(scope.labels), ",".join(scope.info))
        lines.append(("scope", scope.name, scope.id, record_bytes, *names, scope.help))
        for index, cell in enumerate(scope.cells):
            statistic = cell.statistic
            place = (8 + 8 * index, statistic.kind, statistic.unit, statistic.level)
            split = (statistic.split.label if statistic.split else "", cell.value or "")
            lines.append(("stat", scope.name, cell.name, *place, statistic.name, *split, statistic.help))
    for event in catalogue.events().values():
        lines.append(("event", event.name, event.id, event.severity, ",".join(event.arguments), event.help))
    return "".join("\t".join(map(str, line)) + "\n" for line in lines)


def _histogram(counts: Mapping[int, int], order: str) -> bytes:
    block = bytearray(HISTOGRAM_HEAD_BYTES + 8 * CELLS)
    inside = {value: often for value, often in counts.items() if 0 <= value <= HIGHEST}
    above = sum(often for value, often in counts.items() if value > HIGHEST)
    negative = sum(often for value, often in counts.items() if value < 0)
    total = sum(value * often for value, often in inside.items())
    used = sum({1 << cell_index(value) // PART_CELLS for value in inside})
    head = (0x48445231, 3, 1, HIGHEST, CELLS, 8, above, negative, total, used)
    struct.pack_into(f"{order}IIQQIIQQQQ", block, 0, *head)
    for value, often in inside.items():
        place = HISTOGRAM_HEAD_BYTES + 8 * cell_index(value)
        (before,) = struct.unpack_from(f"{order}Q", block, place)
        struct.pack_into(f"{order}Q", block, place, before + often)
    return bytes(block)


def _object_entry(item: SegmentObject, record: int, record_bytes: int, order: str) -> bytes:
    scope = catalogue.scopes()[item.scope]
    lines = [(key, item.labels[key]) for key in scope.labels]
    lines += [(key, item.info[key]) for key in scope.info if key in item.info]
    text = "".join(f"{key}={value}\n" for key, value in lines)
    head = struct.pack(
        f"{order}IIQQQQQ",
        OBJECT_STATES[item.state], scope.id, item.generation, record, record_bytes, item.created_ns, item.closed_ns,
    )  # fmt: skip
    return head + _padded(text, OBJECT_BYTES - len(head))


def _event_entry(number: int, event: SegmentEvent, order: str) -> bytes:
    kind = catalogue.events()[event.name]
    arguments = (*event.arguments, 0, 0, 0, 0)[:4]
    severity = SEVERITIES[kind.severity]
    head = struct.pack(f"{order}QQIIII4Q", number + 1, event.time_ns, kind.id, severity, event.slot, 0, *arguments)
    return head + _padded(event.text, EVENT_BYTES - len(head))


def _write_changes(file: BinaryIO, offset: int, data: bytes) -> None:
    """Write what differs, so that a reader that has the file open sees no more change than an engine would make."""
    file.seek(offset)
    before = file.read(len(data))
    for start in range(0, len(data), 512):
        chunk = data[start : start + 512]
        if before[start : start + 512] != chunk:
            file.seek(offset + start)
            file.write(chunk)


def write_segment(
    path: Path,
    *,
    name: str,
    objects: Sequence[SegmentObject] = (),
    events: Sequence[SegmentEvent] = (),
    pid: int | None = None,
    incarnation: int = 0x1234_5678_9ABC,
    started_ns: int | None = None,
    heartbeat_ns: int | None = None,
    state: str = "running",
    mode: int = 0,
    object_capacity: int = 64,
    event_capacity: int = 64,
    version: int = 1,
    byte_order: str = "<",
    product: str = "0.1.0",
    extra_directory: str = "",
) -> Written:
    """Write a whole segment.

    Args:
        path: The file; its folder is made.
        name: Instance name in the header.
        objects: Slots 0, 1, ... in this order.
        events: All events ever written, oldest first; only the last `event_capacity` fit, as in the engine.
        pid: Default: this process, so that the instance counts as alive.
        started_ns: Default: now.
        heartbeat_ns: Default: now.
        state: "writing", "running" or "closed".
        mode: 0 thread, 1 poll.
        byte_order: "<" or ">".
        extra_directory: Lines added at the end of the directory.
    """
    now = time.time_ns()
    started_ns = now if started_ns is None else started_ns
    heartbeat_ns = now if heartbeat_ns is None else heartbeat_ns
    order = byte_order
    scopes = catalogue.scopes()

    directory = (directory_text() + extra_directory).encode()
    objects_at = _aligned(HEADER_BYTES + len(directory), 8)
    events_at = objects_at + object_capacity * OBJECT_BYTES
    end = events_at + event_capacity * EVENT_BYTES
    records: list[int] = []
    blocks: dict[tuple[int, str], int] = {}
    for item in objects:
        records.append(end)
        end += 8 + 8 * len(scopes[item.scope].cells)
    for slot, item in enumerate(objects):
        for statistic in item.histograms:
            end = _aligned(end, 64)
            blocks[slot, statistic] = end
            end += HISTOGRAM_HEAD_BYTES + 8 * CELLS

    parts: list[tuple[int, bytes]] = [(HEADER_BYTES, directory)]
    for slot, item in enumerate(objects):
        cells = scopes[item.scope].cells
        unknown = {*item.values, *item.histograms} - {cell.name for cell in cells}
        if unknown:
            raise ValueError(f"{item.scope} has no cell {', '.join(sorted(unknown))}")
        if item.scope == "incident" and item.labels["event"] not in catalogue.events():
            raise ValueError(f"the catalogue has no event {item.labels['event']}")
        words = [blocks.get((slot, cell.name), item.values.get(cell.name, 0)) for cell in cells]
        parts.append((records[slot], struct.pack(f"{order}{1 + len(words)}Q", item.guard, *words)))
        entry = _object_entry(item, records[slot], 8 + 8 * len(cells), order)
        parts.append((objects_at + slot * OBJECT_BYTES, entry))
        parts += [(blocks[slot, key], _histogram(counts, order)) for key, counts in item.histograms.items()]
    for number, event in list(enumerate(events))[-event_capacity:]:
        parts.append((events_at + number % event_capacity * EVENT_BYTES, _event_entry(number, event, order)))

    header = struct.pack(
        f"{order}8sIIQQQQQQQQQQIIQQIIQQ",
        b"HELIOSEG", 0x01020304, version, end, STATES[state],
        os.getpid() if pid is None else pid, incarnation, started_ns, heartbeat_ns, mode,
        HEADER_BYTES, len(directory),
        objects_at, object_capacity, OBJECT_BYTES, len(objects),
        events_at, event_capacity, EVENT_BYTES, len(events), 1,
    )  # fmt: skip
    header += _padded(name, 48) + _padded(product, 32) + bytes(32)
    assert len(header) == HEADER_BYTES

    path.parent.mkdir(parents=True, exist_ok=True)
    in_place = path.exists() and path.stat().st_size == end
    target = path if in_place else path.with_suffix(".new")
    with target.open("r+b" if in_place else "w+b") as file:
        os.posix_fallocate(file.fileno(), 0, end)  # an engine reserves what it uses
        for offset, data in [*parts, (0, header)]:
            _write_changes(file, offset, data)
    if not in_place:
        target.replace(path)
    return Written(path, end, HEADER_BYTES, len(directory), objects_at, events_at, tuple(records), blocks)
