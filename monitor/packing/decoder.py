"""Decodes frames into snapshots.

The decoder keeps the last keyframe and the last frame; the next frame may be based on either. A frame with another base
is skipped, and `waiting` states which frame is missing. Two successive snapshots share their unchanged objects, so the
cost of a stream depends on its changes only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from heliograph.monitor.latency import layout_of
from heliograph.monitor.model import Event, Health, InstanceState, ObjectState, Snapshot
from heliograph.monitor.packing.encoder import HEALTHS
from heliograph.monitor.packing.frame import Head, Limits, PackingError, Reader, Work, unpack
from heliograph.monitor.packing.tables import CellName, Directory, Layout, Shape
from heliograph.monitor.packing.varints import Numbers, Positions, positions, unzigzag
from heliograph.monitor.sparse import Form, SparseHistogram, added

__all__ = ["Decoder", "DecoderStats"]

_NO_NUMBERS = np.zeros(0, np.uint64)
_MANY = 4
_LEAST_EVENT_BYTES = 9
_LEAST_INSTANCE_BYTES = 5
_MOST_CELLS = 1 << 12
"""Highest number of cells of one shape."""


@dataclass(frozen=True, slots=True)
class DecoderStats:
    """Counters of the frames of a stream; they continue when its encoder restarts."""

    frames: int = 0
    """Frames decoded to a snapshot."""
    keyframes: int = 0
    """Keyframes among them."""
    missed: int = 0
    """Frames missing between the first and the last frame of an encoder."""
    unusable: int = 0
    """Frames received whose base frame is missing."""
    repeated: int = 0
    """Frames received twice or late."""
    restarts: int = 0
    """Times another encoder took over."""


@dataclass(slots=True)
class _State:
    """A decoded snapshot and its tables."""

    number: int = 0
    texts: list[str] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    forms: list[Form] = field(default_factory=list)
    instances: list[InstanceState] = field(default_factory=list)
    first: list[int] = field(default_factory=lambda: [0])
    objects: list[ObjectState] = field(default_factory=list)
    layouts: list[Layout] = field(default_factory=list)
    row: Numbers = field(default_factory=lambda: _NO_NUMBERS)
    starts: Positions = field(default_factory=lambda: np.zeros(1, np.int64))
    """Start of each object's numbers in `row`; the last entry is the length of `row`."""
    histograms: list[SparseHistogram] = field(default_factory=list)
    histogram_starts: list[int] = field(default_factory=lambda: [0])
    text_bytes: int = 0
    """Size of `texts`."""
    shape_cells: int = 0
    """Number of cells of `shapes`."""
    held_cells: int = 0
    """Number of cells of `histograms`."""
    weight: int = 0
    """Estimated memory, bytes."""


class Decoder:
    """Reads the frames of one stream. For one thread at a time."""

    def __init__(self, limits: Limits | None = None) -> None:
        """Prepare to decode; the first keyframe gives the first snapshot.

        Args:
            limits: Limits of a frame; default: those of `Limits`.
        """
        self._limits = limits or Limits()
        self._stream: int | None = None
        self._newest = 0
        self._key: _State | None = None
        self._last: _State | None = None
        self._waiting = "nothing has been received"
        self._stats = DecoderStats()
        self._directory: tuple[list[Shape], Directory] = ([], {})

    @property
    def stats(self) -> DecoderStats:
        """The counters."""
        return self._stats

    @property
    def waiting(self) -> str:
        """Why there is no newer snapshot, for display; empty if the last frame gave one."""
        return self._waiting

    @property
    def weight(self) -> int:
        """Estimated memory of its content, bytes."""
        states = {id(state): state for state in (self._key, self._last) if state is not None}
        return sum(state.weight for state in states.values())

    @property
    def directory(self) -> Directory:
        """Kind and unit of every cell defined by the stream, by scope and cell."""
        shapes = self._last.shapes if self._last else []
        if self._directory[0] is not shapes:
            found = {(shape.scope, cell.name): (cell.kind, cell.unit) for shape in shapes for cell in shape.cells}
            self._directory = (shapes, found)
        return self._directory[1]

    def feed(self, frame: bytes) -> Snapshot | None:
        """Decode the next frame.

        Returns:
            Its snapshot; None if its base frame is missing or it is not newer than the last frame.

        Raises:
            PackingError: The frame is damaged, has another version or exceeds a limit. The state does not change.
        """
        head, body = unpack(frame, self._limits.body_bytes)
        restarted = self._stream is not None and head.stream != self._stream
        if not restarted and self._stream is not None and head.number <= self._newest:
            self._stats = replace(self._stats, repeated=self._stats.repeated + 1)
            return None
        base = _State() if not head.base else None if restarted else self._kept(head.base)
        work = Work(len(frame))
        work.charge(work.BODY_BYTE, len(body))
        made = _Read(body, base, self._limits, work).all(head.number) if base is not None else None
        self._note(head, restarted, made is not None)
        if made is None:
            return None
        state, snapshot = made
        if not head.base:
            self._key = state
        self._last = state
        return snapshot

    def _kept(self, number: int) -> _State | None:
        return next((state for state in (self._last, self._key) if state is not None and state.number == number), None)

    def _note(self, head: Head, restarted: bool, used: bool) -> None:
        """Count a valid frame."""
        stats = self._stats
        if restarted:
            self._key = self._last = None
            stats = replace(stats, restarts=stats.restarts + 1)
        if self._stream is not None:
            # All frames of an encoder that took over could have been received.
            stats = replace(stats, missed=stats.missed + head.number - (0 if restarted else self._newest) - 1)
        self._stream, self._newest = head.stream, head.number
        if used:
            self._waiting = ""
            keyframes = stats.keyframes + (not head.base)
            self._stats = replace(stats, frames=stats.frames + 1, keyframes=keyframes)
        else:
            self._waiting = (
                f"frame {head.number} has the changes since frame {head.base}, which was not received; "
                "the next keyframe is complete"
            )
            self._stats = replace(stats, unusable=stats.unusable + 1)


def _damaged(what: str) -> PackingError:
    return PackingError(f"a snapshot frame is damaged: {what}")


class _Read:
    """Decodes the body of one frame."""

    def __init__(self, body: bytes, base: _State, limits: Limits, work: Work) -> None:
        self._in = Reader(body)
        self._base = base
        self._limits = limits
        self._work = work
        self._now = _State()
        self._sources: list[int] = []
        """Index of the base's object that each object continues; -1: none."""
        self._following = 0
        """Objects of the base below this index cannot be continued any more."""
        self._as_before = False
        """Whether the objects are exactly those of the base, as in most frames."""

    def all(self, number: int) -> tuple[_State, Snapshot]:
        """Decode the complete body."""
        now = self._now
        now.number = number
        time_ns, missed = self._in.uint(), self._in.uint()
        self._tables()
        heads = self._instances()
        self._new_objects()
        touched = self._rows()
        touched |= self._changes()
        self._remake(touched)
        now.instances = [
            replace(head, objects=tuple(now.objects[now.first[index] : now.first[index + 1]]))
            for index, head in enumerate(heads)
        ]
        now.weight = self._weight()
        if now.weight > self._limits.memory_bytes:
            raise _damaged(f"it needs more than {self._limits.memory_bytes >> 20} MiB of memory")
        events = tuple(self._events())
        self._extensions()
        return now, Snapshot(time_ns, tuple(now.instances), events, missed)

    def _weight(self) -> int:
        """Estimated memory of the snapshot without sharing, bytes."""
        now = self._now
        return (
            (_TEXT_WEIGHT * len(now.texts) + now.text_bytes)
            + _CELL_WEIGHT * now.shape_cells
            + _INSTANCE_WEIGHT * len(now.first)
            + _OBJECT_WEIGHT * len(now.objects)
            + _NUMBER_WEIGHT * len(now.row)
            + _HISTOGRAM_WEIGHT * len(now.histograms)
            + 16 * now.held_cells
        )

    # Tables

    def _tables(self) -> None:
        base, now, source, limits, work = self._base, self._now, self._in, self._limits, self._work
        lengths = source.column()
        if len(base.texts) + len(lengths) > limits.strings:
            raise _damaged(f"it defines more than {limits.strings} texts")
        if len(lengths) and int(lengths.max()) > limits.text_bytes:
            raise _damaged(f"it defines a text of more than {limits.text_bytes} bytes")
        work.charge(work.TEXT, len(lengths))
        texts = [source.take(length).decode("utf-8", "replace") for length in lengths.tolist()]
        now.texts = base.texts + texts if texts else base.texts
        now.text_bytes = base.text_bytes + int(lengths.sum())
        shapes = [self._shape() for _ in range(source.count(4, limits.shapes - len(base.shapes)))]
        now.shapes = base.shapes + shapes if shapes else base.shapes
        now.shape_cells = base.shape_cells + sum(len(shape.cells) for shape in shapes)
        if now.shape_cells > limits.shape_cells:
            raise _damaged(f"its shapes have more than {limits.shape_cells} cells")
        forms = [self._form() for _ in range(source.count(4, limits.forms - len(base.forms)))]
        now.forms = base.forms + forms if forms else base.forms

    def _word(self) -> str:
        return self._now.texts[self._in.uint(len(self._now.texts))]

    def _shape(self) -> Shape:
        source, work = self._in, self._work
        work.charge(work.SHAPE)
        scope = self._word()
        labels = self._names()
        info = self._names()
        count = source.count(3, _MOST_CELLS)
        work.charge(work.CELL_NAME, count)
        cells = tuple(CellName(self._word(), self._word(), self._word()) for _ in range(count))
        return Shape(scope, labels, info, cells)

    def _names(self) -> tuple[str, ...]:
        count = self._in.count(1, self._limits.names)
        self._work.charge(self._work.NAME, count)
        return tuple(self._word() for _ in range(count))

    def _form(self) -> Form:
        self._work.charge(self._work.FORM)
        form = Form(*(self._in.uint() for _ in range(4)))
        if form.cells > self._limits.histogram_cells:
            raise _damaged(f"a histogram has {form.cells} cells; the limit is {self._limits.histogram_cells}")
        try:
            expected = layout_of(form.digits, form.lowest, form.highest).cells
        except ValueError as error:
            raise _damaged(str(error)) from None
        if form.cells != expected:
            raise _damaged(f"a histogram has {form.cells} cells; its parameters require {expected}")
        return form

    # Instances and objects

    def _instances(self) -> list[InstanceState]:
        source, base, now = self._in, self._base, self._now
        heads = []
        following = 0
        for _ in range(source.count(_LEAST_INSTANCE_BYTES, self._limits.instances)):
            self._work.charge(self._work.INSTANCE)
            index = source.uint(len(base.instances) + 1) - 1
            if index >= 0:
                if index < following:
                    raise _damaged("it continues an instance twice or out of order")
                following = index + 1
                known = base.instances[index]
                name, path, pid = known.name, known.path, known.pid
                incarnation, started = known.incarnation, known.started_ns
            else:
                name, path = self._word(), self._word()
                pid, incarnation, started = source.uint(), source.uint(), source.uint()
            code = source.uint()
            health = HEALTHS[code] if code < len(HEALTHS) else Health.DAMAGED
            heartbeat = source.uint()
            if source.uint(2):
                reason = source.text(self._limits.text_bytes)
            elif index >= 0:
                reason = base.instances[index].reason
            else:
                raise _damaged("a new instance keeps the reason of an old one")
            self._runs()
            now.first.append(len(self._sources))
            heads.append(InstanceState(name, health, reason, pid, incarnation, started, heartbeat, path))
        return heads

    def _runs(self) -> None:
        """Read which objects an instance has. Each object of the base is continued at most once and in order, so
        memory grows only by new objects, each of which has its own bytes in the frame."""
        source, base, sources = self._in, self._base, self._sources
        runs = source.count(2, source.left)
        self._work.charge(self._work.RUN, runs)
        for _ in range(runs):
            start = source.uint(len(base.objects) + 1) - 1
            count = source.uint(self._limits.objects - len(sources) + 1)
            if start < 0:
                if count > source.left:
                    raise _damaged(f"it ends before its {count} new objects")
                sources += [-1] * count
            else:
                if start < self._following or start + count > len(base.objects):
                    raise _damaged("it continues an object twice or out of order")
                self._following = start + count
                sources += range(start, start + count)

    def _new_objects(self) -> None:
        """Build the objects: those of the base unchanged, and new ones without their numbers."""
        source, base, now, limits, work = self._in, self._base, self._now, self._limits, self._work
        new = self._sources.count(-1)
        work.charge(work.OBJECT, new)
        # The same number as the base, rising and without duplicates: these are the objects of the base.
        self._as_before = not new and len(self._sources) == len(base.objects)
        numbers = source.column(new).tolist()
        if any(number >= len(now.shapes) for number in numbers):
            raise _damaged("an object has an undefined shape")
        shapes = [now.shapes[number] for number in numbers]
        named = sum(len(shape.labels) + len(shape.info) for shape in shapes)
        work.charge(work.NAME, named)
        words = self._words(named)
        moments = source.column(2 * new).tolist()
        layouts: dict[tuple[int, bytes], Layout] = {}
        own = []
        cells = 0
        for number, shape in zip(numbers, shapes, strict=True):
            bits = source.take((len(shape.cells) + 7) // 8)
            work.charge(work.BITS, len(bits))
            count = int.from_bytes(bits).bit_count()
            work.charge(work.CELL, count)
            cells += 1 + count
            if cells > limits.cells:
                raise _damaged(f"it has more than {limits.cells} numbers")
            own.append(layouts.setdefault((number, bits), Layout(shape, number, bits)))
        count = sum(len(layout.histograms) for layout in own)
        work.charge(work.HISTOGRAM, count)
        forms = source.column(count).tolist()
        if any(number >= len(now.forms) for number in forms):
            raise _damaged("a histogram has an undefined form")
        if self._as_before:
            now.objects, now.histograms = list(base.objects), list(base.histograms)
            now.layouts, now.starts, now.histogram_starts = base.layouts, base.starts, base.histogram_starts
            now.held_cells = base.held_cells
            return
        form = (now.forms[number] for number in forms)
        fresh = zip(own, _pairs(moments), strict=True)
        starts = [0]
        for index in self._sources:
            if index >= 0:
                layout = base.layouts[index]
                now.objects.append(base.objects[index])
                first = base.histogram_starts[index]
                now.histograms += base.histograms[first : base.histogram_starts[index + 1]]
            else:
                layout, (created, generation) = next(fresh)
                labels = {name: next(words) for name in layout.shape.labels}
                info = {name: next(words) for name in layout.shape.info}
                now.objects.append(
                    ObjectState(layout.shape.scope, labels, info, {}, created_ns=created, generation=generation)
                )
                now.histograms += [SparseHistogram(next(form), *_NO_CELLS) for _ in layout.histograms]
            now.layouts.append(layout)
            now.histogram_starts.append(len(now.histograms))
            starts.append(starts[-1] + 1 + len(layout.cells))
        if starts[-1] > limits.cells or len(now.histograms) > limits.histograms:
            raise _damaged(f"it has {starts[-1]} numbers and {len(now.histograms)} histograms")
        now.starts = np.array(starts, np.int64)
        now.held_cells = sum(len(histogram.cells) for histogram in now.histograms)

    def _words(self, count: int) -> Iterator[str]:
        texts = self._now.texts
        numbers = self._in.column(count)
        if len(numbers) and int(numbers.max()) >= len(texts):
            raise _damaged("it uses an undefined text")
        return (texts[number] for number in numbers.tolist())

    # Rows

    def _rows(self) -> set[int]:
        """Read the changes of the row of numbers; return the indexes of changed objects."""
        base, now = self._base, self._now
        size = int(now.starts[-1])
        row = base.row.copy() if self._as_before else np.zeros(size, np.uint64)
        sources = self._sources
        start = len(sources) if self._as_before else 0
        while start < len(sources):
            index, end = sources[start], start + 1
            while end < len(sources) and index >= 0 and sources[end] == index + end - start:
                end += 1
            if index >= 0:
                row[now.starts[start] : now.starts[end]] = base.row[
                    base.starts[index] : base.starts[index + end - start]
                ]
            start = end
        moved = self._positions(size)
        row[moved] += unzigzag(self._in.column(len(moved)))
        now.row = row
        return set(np.unique(np.searchsorted(now.starts, moved, "right") - 1).tolist())

    def _positions(self, bound: int) -> Positions:
        try:
            return positions(self._in.column(), bound)
        except ValueError as error:
            raise _damaged(str(error)) from None

    def _changes(self) -> set[int]:
        """Read the changes of the histograms; return the indexes of changed objects."""
        source, now = self._in, self._now
        which = self._positions(len(now.histograms))
        sums = unzigzag(source.column(3 * len(which))).reshape(-1, 3)
        lengths = source.column(len(which))
        cells = source.column()
        numbers = unzigzag(source.column(len(cells)))
        if len(lengths) and int(lengths.max()) > len(cells):
            raise _damaged("a histogram has more changes than cells")
        counts = lengths.astype(np.int64)
        if int(counts.sum()) != len(cells):
            raise _damaged("some changed cells belong to no histogram")
        work = self._work
        work.charge(work.CHANGE, len(which))
        work.charge(work.CHANGED_CELL, len(cells))
        held = [now.histograms[index] for index in which.tolist()]
        moved = self._moved(cells, counts, held)
        work.charge(work.HELD_CELL, sum(len(old.cells) for old in held))
        begin = 0
        for index, old, size, change in zip(which.tolist(), held, counts.tolist(), sums.tolist(), strict=True):
            end = begin + size
            changed = added((old.cells, old.numbers), (moved[begin:end], numbers[begin:end]))
            now.held_cells += len(changed[0]) - len(old.cells)
            now.histograms[index] = SparseHistogram(
                old,
                *changed,
                old.above + change[0] & _WORD,
                old.negative + change[1] & _WORD,
                old.total_ns + change[2] & _WORD,
            )
            begin = end
        owners = np.searchsorted(np.array(now.histogram_starts), which, "right") - 1
        return set(np.unique(owners).tolist())

    @staticmethod
    def _moved(gaps: Numbers, counts: Positions, held: Sequence[SparseHistogram]) -> Positions:
        """Positions of the changed cells of all histograms in turn, from their gaps; `counts` has the number of
        changed cells of each."""
        if not len(gaps):
            return np.zeros(0, np.int64)
        bounds = np.repeat(np.array([old.size for old in held], np.int64), counts)
        if (gaps >= bounds.view(np.uint64)).any():
            raise _damaged("a cell is not in its histogram")
        ends = np.cumsum(gaps.astype(np.int64) + 1)
        before = np.concatenate((np.zeros(1, np.int64), ends))[np.cumsum(counts) - counts]
        moved: Positions = ends - np.repeat(before, counts) - 1
        if (moved >= bounds).any():
            raise _damaged("a cell is not in its histogram")
        return moved

    def _remake(self, touched: set[int]) -> None:
        """Build the objects that are new or changed."""
        now = self._now
        if not self._as_before:
            touched.update(index for index, source in enumerate(self._sources) if source < 0)
        work = self._work
        work.charge(work.CHANGED_OBJECT, len(touched) - self._sources.count(-1))
        owned = np.fromiter(touched, np.int64, len(touched))
        work.charge(work.CELL, int((now.starts[owned + 1] - now.starts[owned]).sum()) if len(owned) else 0)
        row = now.row.tolist() if _MANY * len(touched) > len(now.objects) else None  # all at once if many changed
        for index in touched:
            item, layout = now.objects[index], now.layouts[index]
            start, end = int(now.starts[index]), int(now.starts[index + 1])
            flags, *values = row[start:end] if row is not None else now.row[start:end].tolist()
            first = now.histogram_starts[index]
            histograms = now.histograms[first : now.histogram_starts[index + 1]]
            now.objects[index] = ObjectState(
                scope=item.scope,
                labels=item.labels,
                info=item.info,
                values=_signed(dict(zip(layout.cells, values, strict=True)), layout),
                histograms=dict(zip(layout.histograms, histograms, strict=True)),
                live=bool(flags & 1),
                torn=bool(flags & 2),
                created_ns=item.created_ns,
                generation=item.generation,
            )

    # Events

    def _events(self) -> Iterator[Event]:
        source, names, work = self._in, self._limits.names, self._work
        count = source.count(_LEAST_EVENT_BYTES, self._limits.events)
        work.charge(work.EVENT, count)
        for _ in range(count):
            instance, name, severity = self._word(), self._word(), self._word()
            incarnation, number, time_ns = source.uint(), source.uint(), source.uint()
            pairs = source.count(2, names)
            work.charge(work.PAIR, pairs)
            labels = {self._word(): self._word() for _ in range(pairs)}
            pairs = source.count(2, names)
            work.charge(work.PAIR, pairs)
            arguments: Mapping[str, int] = {self._word(): source.uint() for _ in range(pairs)}
            text = source.text(self._limits.text_bytes)
            yield Event(instance, incarnation, number, time_ns, name, severity, labels, arguments, text)

    def _extensions(self) -> None:
        """Skip the sections of later versions; the frame must end after them."""
        source = self._in
        count = source.count(2, source.left)
        self._work.charge(self._work.EXTENSION, count)
        for _ in range(count):
            source.text()
            source.take(source.count(1, source.left))
        if source.left:
            raise _damaged(f"{source.left} bytes follow its end")


_TEXT_WEIGHT = 80
_CELL_WEIGHT = 80
_INSTANCE_WEIGHT = 300
_OBJECT_WEIGHT = 900
_NUMBER_WEIGHT = 120
_HISTOGRAM_WEIGHT = 450

_WORD = (1 << 64) - 1
_NO_CELLS = (np.zeros(0, np.int64), _NO_NUMBERS)


def _signed(values: dict[str, int], layout: Layout) -> dict[str, int]:
    """The numbers, with signed ones converted from two's complement."""
    for name in layout.signed:
        if values[name] >> 63:
            values[name] -= 1 << 64
    return values


def _pairs(values: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(values[::2], values[1::2], strict=True)
