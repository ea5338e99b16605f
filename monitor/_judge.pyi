"""The judge of receivers over whole fleets (engine/binding/judge.h, judge_module.c).

Rows are structured arrays with the layout FIELDS (`judging.rows`); cells are arrays of u64 with one row of CELLS for
each receiver. All are contiguous and changed in place.
"""

from __future__ import annotations

from array import array

import numpy as np
import numpy.typing as npt

_Rows = npt.NDArray[np.void]
_Cells = npt.NDArray[np.uint64]
_Positions = tuple[array[int], array[int], array[int]]

CELLS: tuple[str, ...]
"""The cells of a receiver that a join uses."""
FIELDS: tuple[tuple[str, str, int], ...]
"""Name, format and offset of each field of a row."""
ROW_BYTES: int
CLASSES: tuple[str, ...]
"""The classes by their number, field `behaviour`."""
BASES: tuple[str, ...]
"""The sources of a lag in seconds by their number, field `basis`."""
STEPS: int
"""Steps of a window."""
RUNS: int
CLOSED: int
ENDED: int
LAG_MESSAGES: int
QUEUE_FILL: float

def gather(
    rows: list[bytes], offsets: tuple[int, ...], swapped: bool, places: npt.NDArray[np.int64], cells: _Cells, /
) -> None:
    """Copy the cells of records to their places.

    Args:
        rows: The records.
        offsets: Byte offset of each of CELLS; -1: the record has no such cell.
        swapped: Whether the records have the other byte order.
        places: The row of `cells` for each record.
        cells: Receives the cells; one that does not apply is 0.
    """

def behind(times_ns: array[int], sent: array[int], sizes: array[int], message: int, /) -> tuple[int, int, bool] | None:
    """Return age and bytes of the way from a message to the last position, and whether it is bounded."""

def lags(rows: _Rows, now: _Cells, before: _Cells, lines: list[_Positions], /) -> None:
    """Fill the observation and the evidence of the interval; `lines` are the positions of the senders."""

class Windows:
    """The last observations of receivers, and their classes."""

    def resize(self, count: int, /) -> None:
        """Have this number of windows; new ones are empty."""
    def clear(self, number: int, /) -> None:
        """Empty a window."""
    def looks(self, number: int, /) -> int:
        """Return the number of observations in a window."""
    def judge(self, rows: _Rows, time_ns: int, /) -> None:
        """Add each observation to its window, and judge; IndexError: there is no such window."""
