"""Decodes flight recordings into ticks, objects with their cells over time, events and triggers.

A cell is stored as a list of changes (position of the tick, new value), so an hour with little activity stays small.
`Track.values` expands a cell into a series.

The file may still be written to, be truncated or be forged. Each chunk is read up to its first error, which is listed
in `Recording.damage`. Ticks missing between two chunks become a `Gap`.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from heliograph.monitor.directory import RecordLayout
from heliograph.monitor.flight.format import Chunk, FlightError, FlightFile, Header, Payload, open_file
from heliograph.monitor.model import Event

__all__ = ["Gap", "Limits", "Recording", "Series", "Track", "Trigger", "read"]

Series = npt.NDArray[np.float64]

_OBJECT, _CHANGED, _GONE, _EVENT, _TRIGGER, _EVENTS_MISSED, _LEFT_OUT = range(1, 8)
_TORN = 0x80
_SEVERITIES = ("info", "warning", "error")
_SLOTS_LIMIT = 1 << 16
_TIME_LIMIT = 1 << 62
_WORD = (1 << 64) - 1
_ABSENT = 1 << 63
_HEAVY = 32
"""Memory of an object or an event, in that of a changed value."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a recording is decoded; the rest is left out, and listed as damage."""

    ticks: int
    values: int
    """Changed values of cells; an object or an event counts as 32."""


@dataclass(slots=True)
class Track:
    """One object over the time it existed."""

    scope: str
    labels: Mapping[str, str]
    info: Mapping[str, str]
    created_ns: int
    generation: int
    first: int
    """Position of the first tick that has the object."""
    last: int
    """Position of the last tick that has the object."""
    changes: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    """By cell: positions of its changes and the new values. An absent cell is always 0."""
    signed: frozenset[str] = frozenset()
    """Cells whose values may be negative; `changes` has them in two's complement."""
    torn: list[int] = field(default_factory=list)
    """Positions of ticks at which the cells may be inconsistent with each other."""

    def values(self, cell: str, ticks: int) -> Series:
        """The cell at each of `ticks` positions; NaN where the object does not exist or the cell does not apply."""
        series = np.full(ticks, np.nan)
        series[self.first : self.last + 1] = 0.0
        positions, values = self.changes.get(cell, ((), ()))
        for index, at in enumerate(positions):
            end = positions[index + 1] if index + 1 < len(positions) else self.last + 1
            series[at:end] = self._number(cell, values[index])
        return series

    def value(self, cell: str, position: int) -> float:
        """The cell at a position at which the object exists; NaN where the cell does not apply."""
        positions, values = self.changes.get(cell, ((), ()))
        index = bisect_right(positions, position) - 1
        return self._number(cell, values[index]) if index >= 0 else 0.0

    def _number(self, cell: str, value: int) -> float:
        if value == _ABSENT:
            return math.nan
        return value - (1 << 64) if value > _ABSENT and cell in self.signed else value


@dataclass(frozen=True, slots=True)
class Trigger:
    """The moment at which the recorder began to keep the recording."""

    position: int
    time_ns: int
    event: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Ticks missing before a position."""

    position: int
    ticks: int
    seconds: float
    why: str


@dataclass(slots=True)
class Recording:
    """A decoded recording."""

    path: Path
    header: Header
    layouts: Mapping[int, RecordLayout]
    numbers: list[int] = field(default_factory=list)
    """Numbers of the ticks; 0 is the instance's first tick."""
    mono_ns: list[int] = field(default_factory=list)
    wall_ns: list[int] = field(default_factory=list)
    late_ns: list[int] = field(default_factory=list)
    planned_ns: list[int] = field(default_factory=list)
    """Planned time to the next tick, ns."""
    tracks: list[Track] = field(default_factory=list)
    events: list[tuple[int, Event]] = field(default_factory=list)
    """Events, each with the position of the tick that recorded it."""
    events_missed: int = 0
    triggers: list[Trigger] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    left_out: int = 0
    """Highest number of objects for which a key frame had no room."""
    damage: list[str] = field(default_factory=list)

    @property
    def times(self) -> Series:
        """Seconds from the first tick to each tick, by the monotonic clock."""
        times = np.array(self.mono_ns, dtype=np.int64)
        seconds: Series = (times - times[:1]) / 1e9
        return seconds

    @property
    def seconds(self) -> float:
        """Duration from the first tick to the last, seconds."""
        return (self.mono_ns[-1] - self.mono_ns[0]) / 1e9 if self.mono_ns else 0.0

    def of(self, scope: str) -> Iterator[Track]:
        """The objects of one scope."""
        return (track for track in self.tracks if track.scope == scope)

    def position_of(self, wall_ns: int) -> int:
        """Position of the first tick at or after a wall-clock time; of the last tick if there is none."""
        return min(bisect_left(self.wall_ns, wall_ns), len(self.wall_ns) - 1)

    @property
    def trigger(self) -> Trigger | None:
        """The trigger it was kept for; the last one if the ring was frozen several times."""
        for trigger in reversed(self.triggers):
            if not self.header.trigger_ns or trigger.time_ns == self.header.trigger_ns:
                return trigger
        return self.triggers[-1] if self.triggers else None


class _Decoder:
    """Applies the frames in order."""

    def __init__(self, file: FlightFile, limits: Limits | None) -> None:
        self.file = file
        self.limits = limits
        self.noted = 0
        self.most = limits.values if limits is not None else math.inf
        self.recording = Recording(file.path, file.header, file.directory.scopes, damage=list(file.damage))
        self.names = {
            number: {cell.offset // 8: cell.name for cell in layout.cells}
            for number, layout in file.directory.scopes.items()
        }
        self.live: dict[int, tuple[Track, Mapping[int, str], dict[int, int]]] = {}
        """By slot: the track, its cell names, and the current values."""
        self.labels: dict[int, Mapping[str, str]] = {}
        self.position = -1

    def run(self) -> Recording:
        for chunk in self.file.chunks:
            if self.is_enough:
                self.recording.damage.append(f"the rest, from chunk {chunk.sequence} on, is more than is read here")
                break
            self.chunk(chunk)
        self.end_all()
        return self.recording

    @property
    def is_enough(self) -> bool:
        """Whether a limit is reached."""
        most = self.limits
        return most is not None and (len(self.recording.numbers) >= most.ticks or self.noted > most.values)

    def end_all(self) -> None:
        for track, _, _ in self.live.values():
            track.last = self.position
        self.live.clear()

    def chunk(self, chunk: Chunk) -> None:
        is_first = True
        try:
            for payload in chunk.frames():
                cursor = Payload(payload)
                is_key = bool(cursor.uint() & 1)
                if is_first and not is_key:
                    raise FlightError(f"chunk {chunk.sequence} does not begin with a key frame")
                self.tick(cursor, is_key, chunk.sequence)
                self.items(cursor, self.restart() if is_key else {})
                is_first = False
                if self.is_enough:
                    raise FlightError(f"chunk {chunk.sequence} has more than is read here")
        except FlightError as error:
            self.recording.damage.append(str(error))

    def restart(self) -> dict[tuple[int, int], Track]:
        """Prepare for a key frame, which lists all objects; return the previous tracks by slot and generation."""
        before = {(slot, track.generation): track for slot, (track, _, _) in self.live.items()}
        for track in before.values():
            track.last = self.position - 1
        self.live.clear()
        return before

    def tick(self, cursor: Payload, is_key: bool, sequence: int) -> None:
        """Read the time of a frame."""
        out = self.recording
        number = cursor.uint()
        passed, wall = cursor.uint(), cursor.uint() if is_key else cursor.difference()
        late, missed, planned = cursor.uint(), cursor.uint(), cursor.uint()
        if not is_key and not out.numbers:
            raise FlightError(f"chunk {sequence} has a tick without a key frame before it")
        mono_ns = passed if is_key else out.mono_ns[-1] + passed
        wall_ns = wall if is_key else out.wall_ns[-1] + passed + wall
        if not (0 <= wall_ns < _TIME_LIMIT and mono_ns < _TIME_LIMIT and late < _TIME_LIMIT and planned < _TIME_LIMIT):
            raise FlightError(f"chunk {sequence} has a tick with an impossible time")
        if out.numbers and (number <= out.numbers[-1] or mono_ns < out.mono_ns[-1]):
            raise FlightError(f"chunk {sequence} has ticks out of order")
        self.position += 1
        lost = number - out.numbers[-1] - 1 if out.numbers else 0
        if lost or missed:
            seconds = (mono_ns - out.mono_ns[-1]) / 1e9 if out.mono_ns else 0.0
            why = "their chunk was lost" if lost else "the recorder was late"
            out.gaps.append(Gap(self.position, lost + missed, seconds, why))
        out.numbers.append(number)
        out.mono_ns.append(mono_ns)
        out.wall_ns.append(wall_ns)
        out.late_ns.append(late)
        out.planned_ns.append(planned)

    def items(self, cursor: Payload, before: Mapping[tuple[int, int], Track]) -> None:
        events = []
        while cursor.left:
            if self.noted > self.most:
                raise FlightError("a frame has more than is read here")
            item = cursor.uint()
            kind = item & ~_TORN
            if kind == _CHANGED:
                self.changed(cursor, bool(item & _TORN))
            elif kind == _OBJECT:
                self.object(cursor, before, bool(item & _TORN))
            elif item == _GONE:
                self.gone(cursor)
            elif item == _EVENT:
                events.append(self.event(cursor))
            elif item == _TRIGGER:
                cause, time_ns = cursor.uint(), cursor.uint()
                trigger = Trigger(self.position, time_ns, cause - 1 if cause else None, cursor.text())
                self.recording.triggers.append(trigger)
            elif item == _EVENTS_MISSED:
                self.recording.events_missed += cursor.uint()
            elif item == _LEFT_OUT:
                self.recording.left_out = max(self.recording.left_out, cursor.uint())
            else:
                raise FlightError(f"a frame has an item of kind {item}, which this Heliograph does not know")
        for event, slot in events:  # a tick may have both an object and an event of it
            labels = self.labels.get(slot - 1, event.labels)
            self.recording.events.append((self.position, replace(event, labels=labels)))

    def object(self, cursor: Payload, before: Mapping[tuple[int, int], Track], torn: bool) -> None:
        self.noted += _HEAVY
        slot, scope, generation, created = (cursor.uint() for _ in range(4))
        text = cursor.text()
        layout = self.recording.layouts.get(scope)
        if layout is None or slot >= _SLOTS_LIMIT:
            raise FlightError(f"a frame has an object of scope {scope} in slot {slot}")
        if slot in self.live:
            self.live[slot][0].last = self.position - 1
        track = before.get((slot, generation))
        if track is None or track.scope != layout.name:
            fields = dict(line.partition("=")[::2] for line in text.split("\n") if "=" in line)
            labels = {key: fields.pop(key, "") for key in layout.labels}
            track = Track(layout.name, labels, fields, created, generation, self.position, self.position)
            track.signed = layout.signed
            self.recording.tracks.append(track)
            known: dict[int, int] = {}
        else:
            known = self.values_of(track, scope)
        names = self.names[scope]
        values = self.cells(cursor, names, None)
        self.live[slot] = (track, names, values)
        self.labels[slot] = track.labels
        for index, name in names.items():
            if values.get(index, 0) != known.get(index, 0):
                self.note(track, name, values.get(index, 0))
        if torn:
            track.torn.append(self.position)

    def values_of(self, track: Track, scope: int) -> dict[int, int]:
        return {index: track.changes[name][1][-1] for index, name in self.names[scope].items() if name in track.changes}

    def note(self, track: Track, name: str, value: int) -> None:
        self.noted += 1
        positions, values = track.changes.setdefault(name, ([], []))
        if positions and positions[-1] == self.position:
            values[-1] = value
        else:
            positions.append(self.position)
            values.append(value)

    def cells(self, cursor: Payload, names: Mapping[int, str], before: Mapping[int, int] | None) -> dict[int, int]:
        """Read the cells of an item; with `before`, the changed cells."""
        found: dict[int, int] = {}
        index = 0
        for _ in range(cursor.uint()):
            index += cursor.uint()
            if index not in names:
                raise FlightError(f"a frame has cell {index}, which its scope does not have")
            if before is None:
                found[index] = cursor.uint()
            else:
                found[index] = (before.get(index, 0) + cursor.difference()) & _WORD
        return found

    def changed(self, cursor: Payload, torn: bool) -> None:
        slot = cursor.uint()
        entry = self.live.get(slot)
        if entry is None:
            raise FlightError(f"a frame changes slot {slot}, which is empty")
        track, names, values = entry
        for index, value in self.cells(cursor, names, values).items():
            values[index] = value
            self.note(track, names[index], value)
        if torn:
            track.torn.append(self.position)

    def gone(self, cursor: Payload) -> None:
        slot = cursor.uint()
        entry = self.live.pop(slot, None)
        if entry is None:
            raise FlightError(f"a frame closes slot {slot}, which is empty")
        entry[0].last = self.position

    def event(self, cursor: Payload) -> tuple[Event, int]:
        """Read an event; return it with the slot of its object plus 1, or 0."""
        self.noted += _HEAVY
        number = cursor.uint()
        time_ns = self.recording.wall_ns[-1] + cursor.difference()
        kind_id, severity, slot = cursor.uint(), cursor.uint(), cursor.uint()
        values = [cursor.uint() for _ in range(4)]
        text = cursor.text()
        kind = self.file.directory.events.get(kind_id)
        names = kind.arguments if kind else ("argument_1", "argument_2", "argument_3", "argument_4")
        header = self.file.header
        event = Event(
            instance=header.name,
            incarnation=header.incarnation,
            number=number,
            time_ns=time_ns,
            name=kind.name if kind else f"event_{kind_id}",
            severity=_SEVERITIES[severity] if severity < len(_SEVERITIES) else f"severity_{severity}",
            labels={"instance": header.name},
            arguments=dict(zip(names, values, strict=False)),
            text=text,
        )
        return event, slot


def read(path: Path, all_users: bool = False, limits: Limits | None = None) -> Recording:
    """Read and decode a recording.

    Args:
        path: The file.
        all_users: Also read files of other users.
        limits: How much to decode; None: everything.

    Raises:
        FlightError: The file is not a flight recording, or no tick of it can be read.
    """
    file = open_file(path, all_users)
    recording = _Decoder(file, limits).run()
    if not recording.numbers:
        why = recording.damage[0] if recording.damage else "none is complete yet"
        raise FlightError(f"{path} has no readable tick: {why}")
    return recording
