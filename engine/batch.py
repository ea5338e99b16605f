"""Batch: many messages in one buffer, for millions of messages per second.

batch = receiver.receive_batch()
prices = batch.matrix("<f8")          # messages of equal size, as rows of numbers
for view in batch:                    # or single messages, without a copy
    ...
latency = batch.table["receive_ns"] - batch.table["submit_ns"]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any, overload

from heliograph.engine._core import common_length

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["FIELDS", "Batch"]

FIELDS = [
    ("offset", "<u8"),
    ("length", "<u8"),
    ("number", "<u8"),
    ("submit_ns", "<i8"),
    ("receive_ns", "<i8"),
    ("stream", "<u4"),
    ("flags", "<u4"),
]
"""The fields of a record of `Batch.table`, as a numpy type."""

_RECORD_BYTES = 48


@cache
def _table_type() -> np.dtype[np.void]:
    import numpy as np

    return np.dtype(FIELDS)


@lru_cache(maxsize=64, typed=True)
def _element_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The numpy type of one element; making it from a text or a class costs more than a batch."""
    import numpy as np

    return np.dtype(dtype).base


class Batch(Sequence[memoryview]):
    """Messages received together: a sequence of views into `data`. Views and arrays are created on access."""

    __slots__ = ("__dict__", "_view", "data", "records")

    def __init__(self, data: bytes, records: bytes) -> None:
        self.data = data
        """The concatenated bytes of the messages."""
        self.records = records
        """One record for each message, with the fields of `FIELDS`."""
        self._view = memoryview(data)

    def __len__(self) -> int:
        return len(self.records) // _RECORD_BYTES

    @cached_property
    def table(self) -> npt.NDArray[np.void]:
        """Position and origin of each message: a numpy array of records with the fields of `FIELDS`.

        Offset and length are bytes within `data`. Times are ns since 1970, wall clock. Bit 0 of flags is set if the
        message was recovered. Stream is the index of the stream in this receiver.
        """
        import numpy as np  # imported here, so that programs without arrays start faster

        return np.frombuffer(self.records, dtype=_table_type())

    @cached_property
    def _offsets(self) -> list[int]:
        offsets: list[int] = self.table["offset"].tolist()
        return [*offsets, len(self.data)]

    def matrix(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Messages of equal size as a read-only numpy array of shape (messages, size / itemsize), without a copy.

        The array keeps `data`, so it outlives the batch and the receiver.

        Args:
            dtype: Type of the elements, such as ``"<f8"``. The 64 types used last are cached.

        Raises:
            ValueError: The messages have different sizes, or their size is not a multiple of the type's size, or the
                type holds Python objects.
            TypeError: numpy does not know the type.
        """
        import numpy as np

        length = common_length(self.records)
        try:
            kind = _element_type(dtype)  # type: ignore[arg-type]  # a TypeError when it cannot be hashed
        except TypeError:  # a list of fields, or no type at all
            kind = np.dtype(dtype).base
        if len(self) == 0:
            return np.empty((0, 0), dtype=kind)
        if kind.itemsize == 0 or kind.hasobject or length % kind.itemsize != 0:
            raise ValueError(f"messages of {length} bytes are no rows of {kind}, {kind.itemsize} bytes each")
        return np.ndarray((len(self), length // kind.itemsize), kind, self.data)

    @overload
    def __getitem__(self, place: int) -> memoryview: ...
    @overload
    def __getitem__(self, place: slice) -> list[memoryview]: ...
    def __getitem__(self, place: int | slice) -> memoryview | list[memoryview]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        number = range(len(self))[place]
        return self._view[self._offsets[number] : self._offsets[number + 1]]

    def __iter__(self) -> Iterator[memoryview]:
        view, start = self._view, 0
        for end in self._offsets[1:]:
            yield view[start:end]
            start = end

    def __repr__(self) -> str:
        return f"<Batch of {len(self)} messages, {len(self.data)} bytes>"
