"""The rows of the judge in C (`heliograph.monitor._judge`): one for each receiver, as a structured array."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from heliograph.monitor import _judge

__all__ = ["CELLS", "ROW", "Rows", "parts", "rows"]

ROW = np.dtype(
    {
        "names": [name for name, _, _ in _judge.FIELDS],
        "formats": [form for _, form, _ in _judge.FIELDS],
        "offsets": [offset for _, _, offset in _judge.FIELDS],
        "itemsize": _judge.ROW_BYTES,
    }
)
"""The layout of a row; `engine/binding/judge.h` describes its fields."""
CELLS = _judge.CELLS
"""The cells of a receiver that a join uses."""
_MOST = (1 << 64) - 1

Rows = npt.NDArray[np.void]


def rows(count: int) -> Rows:
    """Return rows of zeros, without a sender and without a window."""
    found = np.zeros(count, ROW)
    found["sender"] = found["window"] = -1
    return found


def parts(lag: int) -> tuple[int, int]:
    """Return a lag as two words: a sum of two counters may exceed one."""
    first = min(lag, _MOST)
    return first, lag - first
