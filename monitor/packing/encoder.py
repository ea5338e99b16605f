"""Encodes snapshots as frames: the first is complete, the next ones have changes.

A snapshot is flattened: the numbers of all objects form one row, their histograms another. A frame lists which objects
continue those of its base and which are new, and then the differences of the rows. A keyframe is a frame with an empty
base, so both are written by the same code.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from heliograph.engine import catalogue
from heliograph.monitor.latency import layout_of
from heliograph.monitor.model import Cells, Event, Health, Histogram, InstanceState, ObjectState, Snapshot
from heliograph.monitor.packing.frame import Head, PackingError, pack
from heliograph.monitor.packing.tables import HISTOGRAM, WORD, CellName, Directory, Layout, Numbering, Shape, bits_of
from heliograph.monitor.packing.varints import Numbers, encode, gaps, uint, zigzag
from heliograph.monitor.sparse import Form, changed, sparse_cells

__all__ = ["Encoder", "known_cells"]

HEALTHS = (Health.LIVE, Health.STALE, Health.CLOSED, Health.DEAD, Health.DAMAGED)

_Identity = tuple[object, ...]
_Key = tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]
_Names = frozenset[tuple[str, bool]]
"""Names of cells, and whether each is a histogram."""
_TABLE_SLACK = 4096
_MOST_ALIKE = 16
"""Number of similar shapes compared before a new one is defined; engines have one or two, an attacker thousands."""
_EMPTY = np.zeros(0, np.uint64)


@cache
def known_cells() -> Directory:
    """Kind and unit of every cell of the catalogue."""
    return {
        (scope.name, cell.name): (cell.statistic.kind, cell.statistic.unit)
        for scope in catalogue.scopes().values()
        for cell in scope.cells
    }


@cache
def _histograms(scope: str) -> tuple[str, ...]:
    found = catalogue.scopes().get(scope)
    return tuple(item.name for item in found.statistics if item.kind == HISTOGRAM) if found else ()


def _names(shape: Shape) -> _Names:
    return frozenset((cell.name, cell.kind == HISTOGRAM) for cell in shape.cells)


@dataclass(slots=True)
class _Flat:
    """A snapshot as rows, with its tables."""

    number: int = 0
    texts: dict[str, int] = field(default_factory=dict)
    shapes: dict[Shape, int] = field(default_factory=dict)
    forms: dict[Form, int] = field(default_factory=dict)
    layouts: dict[_Key, Layout] = field(default_factory=dict)
    instances: list[_Identity] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    first: list[int] = field(default_factory=lambda: [0])
    """Index of each instance's first object; the last entry is the number of objects."""
    objects: list[_Identity] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    """Start of each object's numbers in `row`; the last entry is the length of `row`."""
    row: Numbers = field(default_factory=lambda: _EMPTY)
    histogram_starts: list[int] = field(default_factory=lambda: [0])
    cells: list[tuple[Cells, Numbers]] = field(default_factory=list)
    sums: Numbers = field(default_factory=lambda: _EMPTY)
    """Three numbers for each histogram: above, negative, total."""


class Encoder:
    """Encodes the frames of one stream. For one thread at a time."""

    def __init__(
        self,
        *,
        chain: bool = True,
        keyframe_every: int = 0,
        compress: bool = True,
        directory: Directory | None = None,
        stream: int | None = None,
    ) -> None:
        """Begin a stream; its first frame is a keyframe.

        Args:
            chain: Base each frame on the previous one: the smallest frames, for links without loss. Otherwise on the
                last keyframe, so that the loss of one frame affects no other.
            keyframe_every: Number of frames from one keyframe to the next, for late readers; 0: only the first.
            compress: Whether to compress frames if that saves enough.
            directory: Kind and unit by scope and cell; default: the catalogue's. A relay passes the directory of its
                publisher and may set `directory` again later.
            stream: Identity of the stream, 64 bits; default: random.
        """
        self._chain = chain
        self._every = keyframe_every
        self._compress = compress
        self.directory = directory if directory is not None else known_cells()
        self.stream = int.from_bytes(os.urandom(8), "little") if stream is None else stream
        self._base: _Flat | None = None
        self._number = 0
        self._since_keyframe = 0
        self._texts_at_keyframe = 0
        self._before: tuple[_Flat | None, int, int, int] = (None, 0, 0, 0)

    @property
    def number(self) -> int:
        """Number of the last frame; 0: none."""
        return self._number

    @property
    def made_keyframe(self) -> bool:
        """Whether the last frame was a keyframe."""
        return self._since_keyframe == 1

    def withdraw(self) -> None:
        """Undo the last frame, which was not sent; the next one gets its number. Works once for each frame."""
        self._base, self._number, self._since_keyframe, self._texts_at_keyframe = self._before

    def frame(self, snapshot: Snapshot, keyframe: bool = False) -> bytes:
        """Encode the next frame.

        Args:
            snapshot: Its content.
            keyframe: Make it a keyframe.

        Raises:
            PackingError: A number of the snapshot is not from 0 to 2^64 - 1, or the cells of a histogram do not match
                its parameters. The stream continues with the next snapshot.
        """
        base = None if keyframe else self._base
        if base is not None:
            due = self._every and self._since_keyframe >= self._every
            swollen = len(base.texts) > 2 * self._texts_at_keyframe + _TABLE_SLACK
            if due or swollen:
                base = None
        writer = _Writer(base or _Flat(), self.directory)
        try:
            body = writer.body(snapshot)
        except (OverflowError, TypeError) as error:
            raise PackingError(f"the snapshot cannot be packed: {error}") from None
        self._before = (self._base, self._number, self._since_keyframe, self._texts_at_keyframe)
        self._number += 1
        if base is None:
            self._since_keyframe = 0
            self._texts_at_keyframe = len(writer.texts)
        self._since_keyframe += 1
        head = Head(self.stream, self._number, base.number if base else 0)
        if base is None or self._chain:
            self._base = writer.flat(self._number)
        return pack(head, body, self._compress)


def _column(values: Numbers) -> bytes:
    data = encode(values)
    return uint(len(values)) + uint(len(data)) + data


def _numbers(values: Sequence[int]) -> Numbers:
    return np.array(values, np.uint64) if values else _EMPTY


def _u64(value: int) -> bytes:
    if not 0 <= value < 1 << 64:
        raise OverflowError(f"{value} is not from 0 to 2^64 - 1")
    return uint(value)


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "replace")
    return uint(len(data)) + data


class _Writer:
    """Encodes the body of one frame."""

    def __init__(self, base: _Flat, directory: Directory) -> None:
        self._base = base
        self._directory = directory
        self.texts: Numbering[str] = Numbering(base.texts)
        self._shapes: Numbering[Shape] = Numbering(base.shapes)
        self._forms: Numbering[Form] = Numbering(base.forms)
        self._layouts: dict[_Key, Layout] = dict(base.layouts)
        self._alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[tuple[Shape, _Names]]] = {}
        """Shapes by scope, labels and info, with the names of their cells."""
        for shape in base.shapes:
            self._alike.setdefault(shape[:3], []).append((shape, _names(shape)))
        self._now = _Flat()
        self._row: list[int] = []
        self._sums: list[int] = []
        self._sources: list[int] = []
        """Index of the base's object that each object continues; -1: none."""
        self._new: list[tuple[ObjectState, Layout, tuple[Form, ...]]] = []

    def flat(self, number: int) -> _Flat:
        """The snapshot as the next frame's base."""
        now = self._now
        now.number = number
        now.texts, now.shapes, now.forms = self.texts.all(), self._shapes.all(), self._forms.all()
        now.layouts = self._layouts
        return now

    def body(self, snapshot: Snapshot) -> bytes:
        """All sections. The tables come first in the frame and are encoded last."""
        instances = self._instances(snapshot.instances)
        objects = self._new_objects()
        rows = self._rows() + self._cells()
        events = self._events(snapshot.events)
        head = _u64(snapshot.time_ns) + _u64(snapshot.events_missed)
        shapes = self._new_shapes()  # it adds texts, so it runs first
        return b"".join((head, self._new_texts(), shapes, self._new_forms(), instances, objects, rows, events, b"\0"))

    # Tables

    def _new_texts(self) -> bytes:
        data = [text.encode("utf-8", "replace") for text in self.texts.new]
        return _column(_numbers([len(item) for item in data])) + b"".join(data)

    def _new_shapes(self) -> bytes:
        out = [uint(len(self._shapes.new))]
        for shape in self._shapes.new:
            out.append(uint(self.texts[shape.scope]))
            for names in (shape.labels, shape.info):
                out.append(uint(len(names)))
                out += [uint(self.texts[name]) for name in names]
            out.append(uint(len(shape.cells)))
            out += [uint(self.texts[word]) for cell in shape.cells for word in cell]
        return b"".join(out)

    def _new_forms(self) -> bytes:
        return uint(len(self._forms.new)) + b"".join(uint(value) for form in self._forms.new for value in form)

    # Instances and objects

    def _instances(self, instances: Sequence[InstanceState]) -> bytes:
        base, now = self._base, self._now
        where = {identity: index for index, identity in reversed(list(enumerate(base.instances)))}
        out = [uint(len(instances))]
        following = 0
        for instance in instances:
            identity = (instance.name, instance.path, instance.pid, instance.incarnation, instance.started_ns)
            index = where.get(identity, -1)
            known = index >= following
            if known:
                following = index + 1
                out.append(uint(index + 1))
            else:
                out.append(b"\0" + uint(self.texts[instance.name]) + uint(self.texts[instance.path]))
                out += [_u64(instance.pid), _u64(instance.incarnation), _u64(instance.started_ns)]
            out.append(uint(HEALTHS.index(instance.health)) + _u64(instance.heartbeat_ns))
            same = known and base.reasons[index] == instance.reason
            out.append(b"\0" if same else b"\1" + _text(instance.reason))
            out.append(self._objects(instance.objects, index if known else -1))
            now.instances.append(identity)
            now.reasons.append(instance.reason)
            now.first.append(len(now.objects))
        return b"".join(out)

    def _objects(self, objects: Sequence[ObjectState], owner: int) -> bytes:
        """Runs of an instance's objects; a run has new objects or neighbours in the base."""
        base, now = self._base, self._now
        following, end = (base.first[owner], base.first[owner + 1]) if owner >= 0 else (0, 0)
        where: dict[_Identity, int] | None = None
        runs: list[list[int]] = []
        for item in objects:
            layout = self._layout(item)
            forms = tuple(_form(item.histograms[name]) for name in layout.histograms)
            identity = (
                layout.number,
                layout.bits,
                forms,
                *item.labels.values(),
                *item.info.values(),
                item.created_ns,
                item.generation,
            )
            source = -1
            if following < end and base.objects[following] == identity:
                source = following
            elif following < end:
                if where is None:
                    where = {base.objects[index]: index for index in range(end - 1, following - 1, -1)}
                found = where.get(identity, -1)
                source = found if found >= following else -1
            if source >= 0:
                following = source + 1
                if runs and runs[-1][0] and runs[-1][0] - 1 + runs[-1][1] == source:
                    runs[-1][1] += 1
                else:
                    runs.append([source + 1, 1])
            else:
                self._new.append((item, layout, forms))
                if runs and not runs[-1][0]:
                    runs[-1][1] += 1
                else:
                    runs.append([0, 1])
            self._sources.append(source)
            now.objects.append(identity)
            self._take(item, layout)
        return uint(len(runs)) + b"".join(uint(value) for run in runs for value in run)

    def _take(self, item: ObjectState, layout: Layout) -> None:
        """Append an object to the rows."""
        now = self._now
        self._row.append(item.live | item.torn << 1)
        values = item.values
        if layout.signed:  # the row has 64-bit words: two's complement
            values = {**values, **{name: values[name] & WORD for name in layout.signed}}
        self._row += [values[name] for name in layout.cells]
        now.starts.append(len(self._row))
        for name in layout.histograms:
            histogram = item.histograms[name]
            now.cells.append(sparse_cells(histogram))
            self._sums += (histogram.above, histogram.negative, histogram.total_ns)
        now.histogram_starts.append(len(now.cells))

    def _layout(self, item: ObjectState) -> Layout:
        key = (item.scope, tuple(item.labels), tuple(item.info), tuple(item.values), tuple(item.histograms))
        known = self._layouts.get(key)
        if known is None:
            shape = self._shape(key)
            bits = bits_of(shape, frozenset(item.values), frozenset(item.histograms))
            known = self._layouts[key] = Layout(shape, self._shapes[shape], bits)
        return known

    def _shape(self, key: _Key) -> Shape:
        """A shape with the cells of a record: a known one, or a new one that includes the catalogue's cells."""
        scope, labels, info, values, histograms = key
        alike = self._alike.setdefault(key[:3], [])
        for shape, names in alike[:_MOST_ALIKE]:
            if names.issuperset((name, False) for name in values) and names.issuperset(
                (name, True) for name in histograms
            ):
                return shape
        cells = []
        for name in values:
            kind, unit = self._directory.get((scope, name), ("", ""))
            cells.append(CellName(name, "" if kind == HISTOGRAM else kind, unit))
        for name in dict.fromkeys((*histograms, *_histograms(scope))):
            cells.append(CellName(name, HISTOGRAM, self._directory.get((scope, name), ("", "nanoseconds"))[1]))
        made = Shape(scope, labels, info, tuple(cells))
        alike.append((made, _names(made)))
        return made

    def _new_objects(self) -> bytes:
        texts = self.texts
        shapes: list[int] = []
        words: list[int] = []
        numbers: list[int] = []
        forms: list[int] = []
        bits: list[bytes] = []
        for item, layout, own in self._new:
            shapes.append(layout.number)
            words += [texts[word] for word in item.labels.values()]
            words += [texts[word] for word in item.info.values()]
            numbers += (item.created_ns, item.generation)
            bits.append(layout.bits)
            forms += [self._forms[form] for form in own]
        columns = (_column(_numbers(values)) for values in (shapes, words, numbers))
        return b"".join(columns) + b"".join(bits) + _column(_numbers(forms))

    # Rows

    def _aligned(self, before: Numbers, starts: Sequence[int], own: Sequence[int], size: int) -> Numbers:
        """The base's row in the order of the current objects; 0 for new ones. `starts` and `own` are the starts of
        the objects in the base's row and in the current row."""
        out = np.zeros(size, np.uint64)
        sources = self._sources
        start = 0
        while start < len(sources):
            source, end = sources[start], start + 1
            while end < len(sources) and source >= 0 and sources[end] == source + end - start:
                end += 1
            if source >= 0:
                out[own[start] : own[end]] = before[starts[source] : starts[source + end - start]]
            start = end
        return out

    def _rows(self) -> bytes:
        base, now = self._base, self._now
        now.row = _numbers(self._row)
        differences = now.row - self._aligned(base.row, base.starts, now.starts, len(now.row))
        moved = np.flatnonzero(differences)
        return _column(gaps(moved)) + _column(zigzag(differences[moved]))

    def _cells(self) -> bytes:
        base, now = self._base, self._now
        now.sums = _numbers(self._sums)
        tripled = [3 * index for index in base.histogram_starts]
        own = [3 * index for index in now.histogram_starts]
        sums = now.sums - self._aligned(base.sums, tripled, own, len(now.sums))
        nothing = (np.zeros(0, np.int64), _EMPTY)
        touched: list[int] = []
        lengths: list[int] = []
        cells: list[Numbers] = []
        numbers: list[Numbers] = []
        for index, source in enumerate(self._sources):
            first = now.histogram_starts[index]
            for offset in range(now.histogram_starts[index + 1] - first):
                current = now.cells[first + offset]
                before = base.cells[base.histogram_starts[source] + offset] if source >= 0 else nothing
                same = current[0] is before[0] and current[1] is before[1]  # decoded and forwarded
                change = nothing if same else changed(before, current)
                if len(change[0]) or sums[3 * (first + offset) : 3 * (first + offset) + 3].any():
                    touched.append(first + offset)
                    lengths.append(len(change[0]))
                    cells.append(gaps(change[0]))
                    numbers.append(change[1])
        which = np.array(touched, np.int64)
        return b"".join(
            (
                _column(gaps(which)),
                _column(zigzag(sums.reshape(-1, 3)[which].reshape(-1))),
                _column(_numbers(lengths)),
                _column(np.concatenate(cells) if cells else _EMPTY),
                _column(zigzag(np.concatenate(numbers)) if numbers else _EMPTY),
            )
        )

    # Events

    def _events(self, events: Sequence[Event]) -> bytes:
        texts = self.texts
        out = [uint(len(events))]
        for event in events:
            out += [uint(texts[word]) for word in (event.instance, event.name, event.severity)]
            out += [_u64(value) for value in (event.incarnation, event.number, event.time_ns)]
            out.append(uint(len(event.labels)))
            out += [uint(texts[word]) for pair in event.labels.items() for word in pair]
            out.append(uint(len(event.arguments)))
            for name, value in event.arguments.items():
                out += [uint(texts[name]), _u64(value)]
            out.append(_text(event.text))
        return b"".join(out)


def _form(histogram: Histogram) -> Form:
    try:
        cells = layout_of(histogram.digits, histogram.lowest, histogram.highest).cells
    except ValueError as error:
        raise PackingError(f"the snapshot cannot be packed: {error}") from None
    if type(histogram) is Histogram and histogram.counts.size != cells:
        raise PackingError(f"the snapshot cannot be packed: a histogram has {histogram.counts.size} cells, not {cells}")
    return Form(histogram.digits, histogram.lowest, histogram.highest, cells)
