"""Records: the cells of one object, as a mapping that decodes a cell only when it is used.

Most objects of a large fleet are copied once a second, and only a few of their cells are used. `Values` therefore keeps
the bytes of the record and decodes a cell by name. Use of many cells builds the dictionary once.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from functools import lru_cache
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

from heliograph.monitor import _judge
from heliograph.monitor.directory import RecordLayout

__all__ = ["ABSENT", "Record", "Values", "gathered", "receiver_cells", "record_of"]

ABSENT = 1 << 63
"""Value of a cell that does not apply to its object."""
_WRAP = 1 << 64
_NOWHERE = (-8, False)
_SINGLE = 8
"""Up to this number of cells are decoded one by one; then all, which costs as much as about ten."""

Default = TypeVar("Default")


class Record:
    """Decodes the records of one scope."""

    __slots__ = (
        "_adjacent",
        "_blocks",
        "_names",
        "_none",
        "_plain",
        "_signed",
        "_words",
        "histograms",
        "layout",
        "places",
        "size",
        "word",
    )

    def __init__(self, layout: RecordLayout, order: str) -> None:
        """Decode records in a byte order, "<" or ">"."""
        self.layout = layout
        self.size = layout.record_bytes
        self.word = struct.Struct(f"{order}Q")
        self._words = struct.Struct(f"{order}{layout.record_bytes // 8}Q")
        self._plain = layout.plain
        self._signed = layout.signed
        self.places = {name: (8 * index, name in self._signed) for name, index in self._plain}
        """Byte offset of a cell by its name, and whether it is signed."""
        self.histograms = layout.histograms
        self._names = tuple(name for name, _ in self.histograms)
        at = [index for _, index in self.histograms]
        self._blocks: Callable[[bytes], tuple[int, ...]]
        self._none = bytes(8 * len(at))
        self._adjacent = slice(0, 0)
        if at and at == list(range(at[0], at[0] + len(at))):  # adjacent, as engines place them
            together = struct.Struct(f"{order}{len(at)}Q")
            self._blocks = lambda row: together.unpack_from(row, 8 * at[0])
            self._adjacent = slice(8 * at[0], 8 * (at[0] + len(at)))
        else:
            self._blocks = lambda row: tuple(word for index in at for word in self.word.unpack_from(row, 8 * index))

    def guard(self, row: bytes) -> int:
        """Return the guard (seqlock) of a record."""
        (value,) = self.word.unpack_from(row)
        return int(value)

    def blocks(self, row: bytes) -> tuple[tuple[str, int], ...]:
        """Return name and offset of the existing histograms."""
        if not self.histograms or row[self._adjacent] == self._none:
            return ()
        places = self._blocks(row)
        return tuple(pair for pair in zip(self._names, places, strict=True) if pair[1]) if any(places) else ()

    def has_same_blocks(self, row: bytes, other: bytes) -> bool:
        """Whether `blocks` is certainly the same for both records."""
        return not self.histograms or (self._adjacent.stop > 0 and row[self._adjacent] == other[self._adjacent])

    def values(self, row: bytes) -> dict[str, int]:
        """Return every value that applies, by cell name."""
        words = self._words.unpack(row)
        values = {name: words[index] for name, index in self._plain if words[index] != ABSENT}
        for name in self._signed & values.keys():
            if values[name] > ABSENT:
                values[name] -= _WRAP
        return values


@lru_cache(maxsize=256)
def record_of(layout: RecordLayout, order: str) -> Record:
    """Return the decoder of a layout: one for all segments of a version, so that their records are read together."""
    return Record(layout, order)


class Values(Mapping[str, int]):
    """The values of one record at one instant; immutable."""

    __slots__ = ("_all", "_asked", "_record", "_row")

    def __init__(self, record: Record, row: bytes) -> None:
        """Use the bytes of a whole record."""
        self._record = record
        self._row = row
        self._all: dict[str, int] | None = None
        self._asked = 0

    @overload
    def get(self, name: str, default: None = None, /) -> int | None: ...
    @overload
    def get(self, name: str, default: int, /) -> int: ...
    @overload
    def get(self, name: str, default: Default, /) -> int | Default: ...
    def get(self, name: str, default: object = None, /) -> object:
        """Return the value of a cell; `default` when it is missing or does not apply."""
        if self._all is not None:
            return self._all.get(name, default)
        self._asked += 1
        if self._asked > _SINGLE:
            return self._whole().get(name, default)
        place = self._record.places.get(name)
        if place is None:
            return default
        value: int = self._record.word.unpack_from(self._row, place[0])[0]
        if value < ABSENT:
            return value
        if value == ABSENT:
            return default
        return value - _WRAP if place[1] else value

    def __getitem__(self, name: str) -> int:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole())

    def __len__(self) -> int:
        return len(self._whole())

    def keys(self) -> KeysView[str]:
        """Return the names of the cells that apply."""
        return self._whole().keys()

    def items(self) -> ItemsView[str, int]:
        """Return names and values of the cells that apply."""
        return self._whole().items()

    def values(self) -> ValuesView[int]:
        """Return the values of the cells that apply."""
        return self._whole().values()

    def __repr__(self) -> str:
        return repr(self._whole())

    def __reduce__(self) -> tuple[type[dict[str, int]], tuple[dict[str, int]]]:
        return dict, (self._whole(),)

    def _whole(self) -> dict[str, int]:
        if self._all is None:
            self._all = self._record.values(self._row)
        return self._all


def gathered(
    found: Sequence[Mapping[str, int]], names: Sequence[str]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Return some cells of objects, a row for each, and which of them the objects have.

    A cell that is missing or does not apply is 0. A signed one is in two's complement.
    """
    records: dict[Record, list[int]] = {}
    others: list[int] = []
    for at, values in enumerate(found):
        if isinstance(values, Values):
            records.setdefault(values._record, []).append(at)
        else:
            others.append(at)
    if len(records) == 1 and not others:  # the usual case: one version of the engine
        ((record, _),) = records.items()
        return _of_record(record, found, names)
    table = np.zeros((len(found), len(names)), np.uint64)
    has = np.zeros(table.shape, np.bool_)
    for record, indexes in records.items():
        table[indexes], has[indexes] = _of_record(record, [found[at] for at in indexes], names)
    for at in others:
        row = [found[at].get(name) for name in names]
        has[at] = [value is not None for value in row]
        table[at] = [(value or 0) % _WRAP for value in row]
    return table, has


def _of_record(
    record: Record, found: Sequence[Mapping[str, int]], names: Sequence[str]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Return the same of objects with one record layout."""
    rows = b"".join([values._row for values in found])  # type: ignore[attr-defined]
    words = np.frombuffer(rows, record.word.format[0] + "u8").reshape(len(found), -1)
    places = [record.places.get(name, _NOWHERE)[0] // 8 for name in names]
    table = words[:, places].astype(np.uint64, copy=False)
    has = table != ABSENT
    has[:, [at for at, place in enumerate(places) if place < 0]] = False
    table[~has] = 0
    return table, has


def receiver_cells(found: Sequence[Mapping[str, int] | None]) -> npt.NDArray[np.uint64]:
    """Return the cells of receivers that a join uses, a row for each; 0 where the object or the cell is missing."""
    table = np.zeros((len(found), len(_judge.CELLS)), np.uint64)
    records: dict[Record, list[int]] = {}
    others: list[int] = []
    for at, values in enumerate(found):
        if isinstance(values, Values):
            records.setdefault(values._record, []).append(at)
        elif values is not None:
            others.append(at)
    for record, indexes in records.items():
        if record._signed.intersection(_judge.CELLS):
            others += indexes
            continue
        rows = [found[at]._row for at in indexes]  # type: ignore[union-attr]
        offsets = tuple(record.places[name][0] if name in record.places else -1 for name in _judge.CELLS)
        swapped = record.word.format[0] != ("<" if sys.byteorder == "little" else ">")
        _judge.gather(rows, offsets, swapped, np.array(indexes, np.int64), table)
    for at in others:
        cells = found[at] or {}
        table[at] = [min(max(cells.get(name, 0), 0), _WRAP - 1) for name in _judge.CELLS]
    return table
