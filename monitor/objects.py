"""Reads all objects of a segment in few calls, and rebuilds only those that changed.

A fleet of a thousand receivers has thousands of objects, and few of them change between two readings. The table of
objects and the records are therefore read in pieces of up to a MiB and compared with the previous reading. An object
with unchanged entry and record is the same `ObjectState` as in the previous reading.

Each object has the values of one instant (engine/docs/segment.md, section 3):

- A record that equals the last accepted copy in every byte is valid: its guard only counts up, so it was not written in
  between. One reading is enough.
- Changed records are read again, and then their guards once more. A copy between two equal, even guards is accepted. A
  record under change is read alone until it is valid, or is marked torn.
- The entries of rebuilt objects are read once more at the end. An object whose entry changed in between is read again.

Every offset, size and count is checked before it is used; a piece is never larger than the file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from heliograph.monitor.blocks import Blocks, Budget
from heliograph.monitor.directory import RecordLayout, SegmentError
from heliograph.monitor.header import Header, text_of
from heliograph.monitor.model import Histogram, ObjectState
from heliograph.monitor.records import Record, Values
from heliograph.monitor.segment_file import SegmentFile

__all__ = ["GONE", "LIVE", "Objects"]

EMPTY, LIVE, GONE = 0, 1, 2

PIECE_BYTES = 1 << 20
"""Largest number of bytes of records in one call: a piece and its previous copy fit into the processor's cache."""
GAP_BYTES = 4096
"""Records farther apart are read by separate calls: there is a histogram between them."""
SINGLY = 4
"""Up to this number of records of a piece are read one by one; more are read together."""

_HEAD_BYTES = 48
_GUARD_TRIES = 200
_TRIES_BEFORE_YIELD = 20
_ENTRY_TRIES = 4
_FIELDS_MOST = 64
"""Largest number of labels and info fields of an object."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The entry of a slot."""

    record: Record
    offset: int
    live: bool
    generation: int
    created_ns: int
    closed_ns: int
    labels: Mapping[str, str]
    info: Mapping[str, str]


class _Piece:
    """Records read by one call: those of adjacent objects, in the order of their offsets."""

    __slots__ = ("doubtful", "ends", "last", "offset", "size", "slots", "spans", "starts")

    def __init__(self, members: Sequence[tuple[int, _Place]]) -> None:
        self.slots = [slot for slot, _ in members]
        self.offset = members[0][1].offset
        starts = [place.offset - self.offset for _, place in members]
        ends = [start + place.record.size for start, (_, place) in zip(starts, members, strict=True)]
        self.size = max(ends)
        self.spans = [slice(start, end) for start, end in zip(starts, ends, strict=True)]
        """Byte range of the record of each member in the piece."""
        self.starts = np.array(starts) // 8
        self.ends = np.array(ends) // 8
        self.last: bytearray | None = None
        """The last accepted bytes; None: not read yet."""
        self.doubtful: set[int] = set()
        """Members that are always read again: they are torn, or their slot was reused."""

    def changed(self, data: bytes, rows: Mapping[int, bytes]) -> Sequence[int]:
        """Return the members whose bytes differ from the last accepted ones."""
        if self.last is None:
            self.last = bytearray(data)
            new = {n for n, slot in enumerate(self.slots) if slot not in rows or rows[slot] != data[self.spans[n]]}
            return sorted(new | self.doubtful)
        if data == self.last:
            return sorted(self.doubtful)
        words = np.flatnonzero(_words(data) != _words(self.last))
        found = set(np.flatnonzero(np.searchsorted(words, self.starts) != np.searchsorted(words, self.ends)).tolist())
        return sorted(found | self.doubtful)


def _words(data: bytes | bytearray) -> npt.NDArray[np.uint64]:
    return np.frombuffer(data, np.uint64)


class Objects:
    """The objects of one open segment."""

    def __init__(self, file: SegmentFile, order: str, records: Mapping[int, Record], mark: str = "") -> None:
        """Create the reader; reads nothing.

        Args:
            file: The segment.
            order: Its byte order, "<" or ">".
            records: Decoders of records, by scope id.
            mark: Suffix of the name of the instance.
        """
        self._file = file
        self._mark = mark
        self._entry = struct.Struct(f"{order}IIQQQQQ")
        self._word = np.dtype(f"{order}u8")
        self._records = records
        self._blocks = Blocks(file, order)
        self._identities: dict[int, tuple[bytes, Mapping[str, str], Mapping[str, str]]] = {}
        self._forget()

    def _forget(self) -> None:
        self._shape: tuple[int, int, int] | None = None
        self._table = b""
        self._suspect: set[int] = set()  # slots whose entry may differ from `_table`
        self._places: dict[int, _Place] = {}
        self._rows: dict[int, bytes] = {}  # the last accepted record of a slot
        self._torn: set[int] = set()
        self._histograms: dict[int, tuple[tuple[str, int], ...]] = {}  # by slot, where there are any
        self._values: dict[int, Values] = {}  # of every object
        self._slots: Sequence[int] | None = None  # of all objects, in their order; None: some are new or gone
        self._plain: dict[int, ObjectState] = {}  # without histograms, those that were asked for
        self._pieces: list[_Piece] | None = None
        self._all: tuple[ObjectState, ...] | None = None

    def read(self, header: Header, histograms: bool | Collection[str]) -> tuple[ObjectState, ...]:
        """Return every object, live or destroyed, in the order of slots.

        Raises:
            SegmentError: The segment is damaged.
        """
        shape = (header.objects_offset, header.object_bytes, header.size)
        if shape != self._shape:
            self._forget()
            self._shape = shape
        try:
            return self._read(header, histograms)
        except BaseException:
            self._forget()  # it may mix old and new data
            raise

    def torn(self, header: Header) -> tuple[ObjectState, ...]:
        """Return the torn objects: every record is read, and no object is built but these.

        A later `read` finds all that has changed since the `read` before.

        Raises:
            SegmentError: The segment is damaged.
        """
        pieces = self._pieces
        if pieces is None or any(piece.last is None for piece in pieces) or not self._is_table_known(header):
            return tuple(item for item in self.read(header, False) if item.torn)
        found: dict[int, bytes] = {}
        for piece in pieces:
            data = self._file.read(piece.offset, piece.size, "a record")
            changed = piece.changed(data, self._rows)
            quiet = np.zeros(len(changed), bool)
            if len(changed) > SINGLY:
                quiet = self._undisturbed(piece, data, changed)[0]
            for at in np.flatnonzero(~quiet).tolist():
                slot = piece.slots[changed[at]]
                row, torn = self._consistent(self._places[slot])
                if torn:
                    found[slot] = row
        if found and self._changed_entries(header, found):
            return tuple(item for item in self.read(header, False) if item.torn)
        return tuple(
            self._state(slot, place, Values(place.record, found[slot]), {}, torn=True)
            for slot, place in ((slot, self._places[slot]) for slot in sorted(found))
        )

    def _is_table_known(self, header: Header) -> bool:
        """Whether the table is that of the last `read`."""
        if self._suspect or (header.objects_offset, header.object_bytes, header.size) != self._shape:
            return False
        size = header.objects_used * header.object_bytes
        return self._file.read(header.objects_offset, size, "its table of objects") == self._table

    def _read(self, header: Header, histograms: bool | Collection[str]) -> tuple[ObjectState, ...]:
        failed: dict[int, SegmentError] = {}
        fresh = self._learn(header, failed)
        fresh |= self._read_records()
        taken: dict[int, ObjectState] = {}
        again: Collection[int] = fresh
        for attempt in range(_ENTRY_TRIES):
            budget = Budget(min(header.size, self._file.limit))
            for slot in again:
                self._make(slot)
            self._take_histograms(header, histograms, again if attempt else None, budget, taken, failed)
            again = self._changed_entries(header, {*again, *taken, *failed} if not attempt else again)
            for slot in again:  # the engine reused the slot for another object in between
                failed.pop(slot, None)
                taken.pop(slot, None)
            if failed:
                raise next(iter(failed.values()))
            if not again:
                break
            self._relearn(header, again, failed)
        if failed:
            raise next(iter(failed.values()))
        for slot in again:  # it changes faster than it can be read: the next reading returns it
            self._unmake(slot)
        if self._slots is None:
            self._slots = sorted(self._values)
        if taken:
            return tuple([taken[slot] if slot in taken else self._bare(slot) for slot in self._slots])
        if self._all is None:
            self._all = tuple(map(self._bare, self._slots))
        return self._all

    # ---- the table ----

    def _learn(self, header: Header, failed: dict[int, SegmentError]) -> set[int]:
        """Read the table; returns the slots with a changed entry."""
        size, used = header.object_bytes, header.objects_used
        data = self._file.read(header.objects_offset, used * size, "its table of objects")
        if data == self._table and not self._suspect:
            return set()
        common = min(len(data), len(self._table)) // size
        changed = set(range(common, used)) | {slot for slot in self._suspect if slot < used}
        if common:
            now, then = (np.frombuffer(table, np.uint8, common * size) for table in (data, self._table))
            changed |= set((np.flatnonzero(now != then) // size).tolist())
        for slot in range(used, len(self._table) // size):
            self._drop(slot)
        self._table = data
        self._suspect = set()
        for slot in changed:
            self._learn_slot(header, slot, data[slot * size : (slot + 1) * size], failed)
        return changed

    def _drop(self, slot: int) -> None:
        """Forget the object of a slot."""
        if self._places.pop(slot, None) is not None:
            self._pieces = None
        self._unread(slot)
        self._unmake(slot)

    def _unread(self, slot: int) -> None:
        self._rows.pop(slot, None)
        self._histograms.pop(slot, None)
        self._torn.discard(slot)

    def _learn_slot(self, header: Header, slot: int, entry: bytes, failed: dict[int, SegmentError]) -> None:
        try:
            place = self._parse(header, slot, entry)
        except SegmentError as error:
            failed[slot] = error
            self._suspect.add(slot)
            place = None
        if place is None:
            self._drop(slot)
            return
        known = self._places.get(slot)
        if known is None or (known.offset, known.record) != (place.offset, place.record):
            self._pieces = None
        elif known.generation == place.generation and slot in self._rows and self._pieces is not None:
            self._places[slot] = place  # the same object, closed: its record may have changed too
            return
        else:
            self._pieces = None
        self._places[slot] = place
        self._unread(slot)

    def _parse(self, header: Header, slot: int, entry: bytes) -> _Place | None:
        state, scope, generation, offset, size, created, closed = self._entry.unpack_from(entry)
        if state == EMPTY:
            return None
        record = self._records.get(scope)
        if record is None or state not in (LIVE, GONE):
            raise self._file.damaged(f"object {slot} has scope {scope} and state {state}")
        if size < record.size:
            raise self._file.damaged(f"object {slot} has a record of {size} bytes, its scope one of {record.size}")
        self._file.check(header, offset, size, f"the record of object {slot}")
        labels, info = self.identify(slot, entry, record.layout)
        return _Place(record, offset, state == LIVE, generation, created, closed, labels, info)

    def identify(self, slot: int, entry: bytes, layout: RecordLayout) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return labels and info of an entry. They rarely change, so they are parsed once.

        Raises:
            SegmentError: A label of its scope is missing.
        """
        known = self._identities.get(slot)
        if known is not None and known[0] == entry:
            return known[1], known[2]
        fields: dict[str, str] = {}
        for line in text_of(entry[_HEAD_BYTES:]).split("\n", _FIELDS_MOST)[:_FIELDS_MOST]:
            key, equals, value = line.partition("=")
            if equals:
                fields.setdefault(key, value)
        if self._mark and "instance" in fields:
            fields["instance"] += self._mark
        missing = [key for key in layout.labels if key not in fields]
        if missing:
            raise self._file.damaged(f"object {slot} ({layout.name[:40]}) has no label {missing[0][:40]!r}")
        labels = {key: fields.pop(key) for key in layout.labels}
        self._identities[slot] = (entry, labels, fields)
        return labels, fields

    def _changed_entries(self, header: Header, slots: Collection[int]) -> list[int]:
        """Return the slots whose entry has changed since it was read."""
        if not slots:
            return []
        size, first, last = header.object_bytes, min(slots), max(slots) + 1
        now = self._file.read(header.objects_offset + first * size, (last - first) * size, "its table of objects")
        then = self._table[first * size : last * size]
        if now == then:
            return []
        differing = set(
            (np.flatnonzero(np.frombuffer(now, np.uint8) != np.frombuffer(then, np.uint8)) // size).tolist()
        )
        changed = sorted(slot for slot in slots if slot - first in differing)
        self._suspect.update(changed)
        return changed

    def _relearn(self, header: Header, slots: Iterable[int], failed: dict[int, SegmentError]) -> None:
        """Read entry and record of single slots again."""
        size = header.object_bytes
        table = bytearray(self._table)
        for slot in slots:
            entry = self._file.read(header.objects_offset + slot * size, size, "its table of objects")
            table[slot * size : (slot + 1) * size] = entry
            self._learn_slot(header, slot, entry, failed)
            place = self._places.get(slot)
            if place is not None:
                self._accept(slot, *self._consistent(place))
        self._table = bytes(table)
        self._pieces = None  # they hold the previous objects of the slots

    # ---- records ----

    def _arranged(self) -> list[_Piece]:
        """Return all records in pieces; rebuilt when a record has moved."""
        if self._pieces is not None:
            return self._pieces
        pieces = []
        members: list[tuple[int, _Place]] = []
        begin = end = 0
        for slot, place in sorted(self._places.items(), key=lambda item: item[1].offset):
            last = place.offset + place.record.size
            if members and (place.offset - end > GAP_BYTES or last - begin > PIECE_BYTES):
                pieces.append(_Piece(members))
                members = []
            if not members:
                begin, end = place.offset, 0
            members.append((slot, place))
            end = max(end, last)
        if members:
            pieces.append(_Piece(members))
        # Records of an engine are adjacent, so their total is not larger than the file.
        claimed = max(sum(place.record.size for place in self._places.values()), sum(piece.size for piece in pieces))
        if claimed > self._file.limit:
            raise self._file.damaged(f"it claims records of {claimed} bytes, more than it has")
        for piece in pieces:
            piece.doubtful = {n for n, slot in enumerate(piece.slots) if slot in self._torn}
        self._pieces = pieces
        return pieces

    def _read_records(self) -> set[int]:
        """Read every record; returns the slots with a changed record."""
        fresh: set[int] = set()
        for piece in self._arranged():
            data = self._file.read(piece.offset, piece.size, "a record")
            changed = piece.changed(data, self._rows)
            if not changed:
                continue
            rows: Mapping[int, bytes] = self._together(piece, data, changed) if len(changed) > SINGLY else {}
            assert piece.last is not None
            for member in changed:
                slot = piece.slots[member]
                row, torn = (rows[member], False) if member in rows else self._consistent(self._places[slot])
                piece.last[piece.spans[member]] = row
                if torn:
                    piece.doubtful.add(member)
                elif piece.doubtful:
                    piece.doubtful.discard(member)
                self._accept(slot, row, torn)
                fresh.add(slot)
        return fresh

    def _together(self, piece: _Piece, before: bytes, changed: Sequence[int]) -> dict[int, bytes]:
        """Return copies of the members that were not written: the record is read between two readings of the guards."""
        quiet, data, begin = self._undisturbed(piece, before, changed)
        rows = {}
        for member in np.array(changed)[quiet].tolist():
            span = piece.spans[member]
            rows[member] = data[span.start - begin : span.stop - begin]
        return rows

    def _undisturbed(
        self, piece: _Piece, before: bytes, changed: Sequence[int]
    ) -> tuple[npt.NDArray[np.bool_], bytes, int]:
        """Read members again, then their guards; returns which were not written, the bytes, and their place in it."""
        members = np.array(changed)
        begin, end = 8 * int(piece.starts[members[0]]), 8 * int(piece.ends[members].max())
        data = self._file.read(piece.offset + begin, end - begin, "a record")
        after = self._file.read(piece.offset + begin, end - begin, "a record")
        starts = piece.starts[members]
        first, copy, last = (
            _words(before)[starts],
            _words(data)[starts - begin // 8],
            _words(after)[starts - begin // 8],
        )
        return (first == copy) & (copy == last) & (copy.view(self._word) & 1 == 0), data, begin

    def _accept(self, slot: int, row: bytes, torn: bool) -> None:
        record, known = self._places[slot].record, self._rows.get(slot)
        self._rows[slot] = row
        if torn:
            self._torn.add(slot)
        elif self._torn:
            self._torn.discard(slot)
        if known is not None and record.has_same_blocks(row, known):
            return
        blocks = record.blocks(row)
        if blocks:
            self._histograms[slot] = blocks
        elif slot in self._histograms:
            del self._histograms[slot]

    def _consistent(self, place: _Place) -> tuple[bytes, bool]:
        """Read a record alone; returns it and whether it may be inconsistent."""
        row = b""
        for attempt in range(_GUARD_TRIES):
            before = self._file.read(place.offset, 8, "a record")
            row = self._file.read(place.offset, place.record.size, "a record")
            after = self._file.read(place.offset, 8, "a record")
            if before == after == row[:8] and not place.record.guard(row) & 1:
                return row, False
            if attempt > _TRIES_BEFORE_YIELD:
                os.sched_yield()  # the writer may be waiting for this core
        return row, True

    # ---- objects ----

    def _make(self, slot: int) -> None:
        """Take the values of the object of a slot from the last entry and record."""
        place = self._places.get(slot)
        if place is None:
            self._unmake(slot)
            return
        if slot not in self._values:
            self._slots = None
        self._values[slot] = Values(place.record, self._rows[slot])
        self._plain.pop(slot, None)
        self._all = None

    def _unmake(self, slot: int) -> None:
        if self._values.pop(slot, None) is not None:
            self._slots = None
        self._plain.pop(slot, None)
        self._all = None

    def _bare(self, slot: int) -> ObjectState:
        """Return the object of a slot without histograms; the same one until it changes."""
        found = self._plain.get(slot)
        if found is None:
            found = self._plain[slot] = self._state(slot, self._places[slot], self._values[slot], {})
        return found

    def _state(
        self,
        slot: int,
        place: _Place,
        values: Mapping[str, int],
        histograms: Mapping[str, Histogram],
        torn: bool | None = None,
    ) -> ObjectState:
        return ObjectState(
            scope=place.record.layout.name,
            labels=place.labels,
            info=place.info,
            values=values,
            histograms=histograms,
            live=place.live,
            torn=slot in self._torn if torn is None else torn,
            created_ns=place.created_ns,
            generation=place.generation,
            closed_ns=place.closed_ns,
            slot=slot,
        )

    def _take_histograms(
        self,
        header: Header,
        wanted: bool | Collection[str],
        slots: Collection[int] | None,
        budget: Budget,
        taken: dict[int, ObjectState],
        failed: dict[int, SegmentError],
    ) -> None:
        """Return the objects with the requested histograms, which are read each time: records do not contain counts."""
        if not wanted:
            return
        members: list[tuple[int, list[str]]] = []
        offsets: list[int] = []
        for slot in sorted(self._histograms if slots is None else self._histograms.keys() & set(slots)):
            names = []
            for name, at in self._histograms[slot]:
                if wanted is True or name in wanted:
                    names.append(name)
                    offsets.append(at)
            if names:
                members.append((slot, names))
        readings = iter(self._blocks.read(header, offsets, budget))
        for slot, names in members:
            found = {name: next(readings) for name in names}
            histograms = {name: one for name, one in found.items() if isinstance(one, Histogram)}
            if len(histograms) == len(found):
                taken[slot] = self._state(slot, self._places[slot], self._values[slot], histograms)
            else:
                failed[slot] = next(one for one in found.values() if isinstance(one, SegmentError))
