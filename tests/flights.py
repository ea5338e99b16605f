"""An independent writer of flight recordings, made from engine/docs/flight.md alone.

It shares no code with the recorder or the reader but the catalogue's tables::

    flight = FlightWriter(name="feed")
    flight.tick(new={0: FlightObject("instance", {"instance": "feed"}, {"messages_sent": 5})})
    flight.tick(changed={0: {"messages_sent": 9}})
    flight.write(folder / "feed.4711.flight")

Times begin at `START_NS` and go on by `interval_ns` a tick.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from heliograph.engine import catalogue
from tests.segments import SegmentEvent, directory_text

__all__ = ["MONO_NS", "START_NS", "FlightObject", "FlightWriter", "difference", "number", "small_directory"]

START_NS = 1_700_000_000_000_000_000
MONO_NS = 5_000_000_000

OBJECT, CHANGED, GONE, EVENT, TRIGGER, EVENTS_MISSED, LEFT_OUT = range(1, 8)
SEVERITIES = {"info": 0, "warning": 1, "error": 2}


def number(value: int) -> bytes:
    """An unsigned number."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def difference(value: int) -> bytes:
    """A signed one, modulo 2^64."""
    value = (value + (1 << 63)) % (1 << 64) - (1 << 63)
    return number(2 * value if value >= 0 else -2 * value - 1)


def _text(value: str) -> bytes:
    data = value.encode()
    return number(len(data)) + data


def small_directory() -> str:
    """A directory of the instance scope and a few events, for tests that read a file thousands of times."""
    wanted = {"instance", "instance_started", "packets_lost"}
    lines = [line for line in directory_text().splitlines() if line.split("\t")[1] in wanted]
    return "".join(line + "\n" for line in lines)


@dataclass(frozen=True, slots=True)
class FlightObject:
    """An object as it comes into the recording."""

    scope: str
    labels: Mapping[str, str]
    values: Mapping[str, int] = field(default_factory=dict)
    info: Mapping[str, str] = field(default_factory=dict)
    generation: int = 1
    created_ns: int = START_NS


class FlightWriter:
    """Writes ticks into chunks as a recorder would."""

    def __init__(
        self,
        *,
        name: str = "feed",
        pid: int | None = None,
        interval_ns: int = 10_000_000,
        chunks: int = 16,
        chunk_bytes: int = 65536,
        order: str = "<",
        directory: str | None = None,
    ) -> None:
        self.name, self.order, self.interval_ns = name, order, interval_ns
        self.pid = os.getpid() if pid is None else pid
        self.chunk_bytes = chunk_bytes
        self.directory = (directory_text() if directory is None else directory).encode()
        self.chunks = [b""] * chunks
        self.sequences = [0] * chunks
        self.sequence = 0
        self.ticks = 0
        self.mono_ns, self.wall_ns = MONO_NS - interval_ns, START_NS - interval_ns
        self.events = 0
        self.objects: dict[int, tuple[FlightObject, dict[str, int]]] = {}
        scopes = catalogue.scopes()
        self.index = {
            scope.name: {cell.name: 1 + place for place, cell in enumerate(scope.cells)} for scope in scopes.values()
        }
        self.ids = {scope.name: scope.id for scope in scopes.values()}

    def _cells(self, scope: str, values: Mapping[str, int], before: Mapping[str, int] | None) -> bytes:
        index = self.index[scope]
        out, last = bytearray(number(len(values))), 0
        for cell in sorted(values, key=index.__getitem__):
            out += number(index[cell] - last)
            out += number(values[cell]) if before is None else difference(values[cell] - before.get(cell, 0))
            last = index[cell]
        return bytes(out)

    def _object(self, slot: int, item: FlightObject, values: Mapping[str, int]) -> bytes:
        lines = "".join(f"{key}={value}\n" for key, value in {**item.labels, **item.info}.items())
        head = [OBJECT, slot, self.ids[item.scope], item.generation, item.created_ns]
        return b"".join(map(number, head)) + _text(lines) + self._cells(item.scope, values, None)

    def _event(self, event: SegmentEvent) -> bytes:
        kind = catalogue.events()[event.name]
        slot = 0 if event.slot == 0xFFFF_FFFF else event.slot + 1
        self.events += 1
        arguments = (*event.arguments, 0, 0, 0, 0)[:4]
        return (
            number(EVENT) + number(self.events - 1) + difference((event.time_ns or self.wall_ns) - self.wall_ns)
            + b"".join(map(number, (kind.id, SEVERITIES[kind.severity], slot, *arguments))) + _text(event.text)
        )  # fmt: skip

    def tick(
        self,
        *,
        new: Mapping[int, FlightObject] | None = None,
        changed: Mapping[int, Mapping[str, int]] | None = None,
        gone: Sequence[int] = (),
        events: Sequence[SegmentEvent] = (),
        why: str | None = None,
        late_ns: int = 0,
        missed: int = 0,
        wall_step_ns: int = 0,
        key: bool = False,
        raw: bytes = b"",
    ) -> None:
        """One tick; `changed` has the new values of cells, `raw` is appended to the frame."""
        passed = self.interval_ns * (1 + missed)
        self.mono_ns += passed
        self.wall_ns += passed + wall_step_ns
        told = bytearray()
        if why is not None:
            told += number(TRIGGER) + number(0) + number(self.wall_ns) + _text(why)
        for event in events:
            told += self._event(event)
        news = bytearray()
        for slot, item in (new or {}).items():
            self.objects[slot] = (item, dict(item.values))
            news += self._object(slot, item, item.values)
        for slot, values in (changed or {}).items():
            item, known = self.objects[slot]
            news += number(CHANGED) + number(slot) + self._cells(item.scope, values, known)
            known.update(values)
        ending = b"".join(number(GONE) + number(slot) for slot in gone)
        rest = number(late_ns) + number(missed) + number(self.interval_ns)
        frame = number(0) + number(self.ticks) + number(passed) + difference(wall_step_ns) + rest
        frame += told + news + ending + raw
        if self.ticks == 0 or key or not self._append(frame):
            self._next()
            frame = number(1) + number(self.ticks) + number(self.mono_ns) + number(self.wall_ns) + rest + told
            frame += b"".join(self._object(slot, item, values) for slot, (item, values) in self.objects.items())
            assert self._append(frame + ending + raw)
        for slot in gone:
            del self.objects[slot]
        self.ticks += 1

    def _next(self) -> None:
        place = self.sequence % len(self.chunks)
        self.sequence += 1
        self.sequences[place], self.chunks[place] = self.sequence, b""

    def _append(self, payload: bytes) -> bool:
        place = (self.sequence - 1) % len(self.chunks)
        frame = struct.pack(f"{self.order}II", len(payload), zlib.crc32(payload)) + payload
        frame += bytes(-len(frame) % 8)
        if 64 + len(self.chunks[place]) + len(frame) > self.chunk_bytes:
            return False
        self.chunks[place] += frame
        return True

    def data(self, *, state: int = 1, kept: int = 0, trigger_ns: int = 0, why: str = "", version: int = 1) -> bytes:
        """The file's bytes."""
        chunks_offset = -(-(512 + len(self.directory)) // 8) * 8
        size = chunks_offset + len(self.chunks) * self.chunk_bytes
        header = struct.pack(
            f"{self.order}8sIIQQQQQQQQQQIIQQQ",
            b"HELIOFLT", 0x01020304, version, size, state, self.pid, 77, START_NS, self.interval_ns,
            512, len(self.directory), chunks_offset, self.chunk_bytes, len(self.chunks), kept, trigger_ns,
            0, self.ticks,
        )  # fmt: skip
        header += self.name.encode().ljust(48, b"\0") + b"0.1.0".ljust(32, b"\0") + why.encode().ljust(200, b"\0")
        out = header.ljust(512, b"\0") + self.directory
        out = out.ljust(chunks_offset, b"\0")
        for sequence, frames in zip(self.sequences, self.chunks, strict=True):
            head = struct.pack(f"{self.order}QQ", sequence, len(frames)).ljust(64, b"\0")
            out += (head + frames).ljust(self.chunk_bytes, b"\0")
        return out

    def write(self, path: Path, *, state: int = 1, kept: int = 0, trigger_ns: int = 0, why: str = "") -> Path:
        """Write the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data(state=state, kept=kept, trigger_ns=trigger_ns, why=why))
        return path
