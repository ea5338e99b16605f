"""Sets of sequence numbers, as sorted ranges with both ends included: ``[(0, 359), (400, 400)]``."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

__all__ = ["Ranges", "inside", "overlap", "ranges_of", "union"]

Ranges = list[tuple[int, int]]
Integers = npt.NDArray[np.int64]


def ranges_of(numbers: Integers) -> Ranges:
    """Return the ranges of numbers in any order, repeated or not."""
    distinct = np.unique(numbers)
    if distinct.size == 0:
        return []
    ends = np.flatnonzero(np.diff(distinct) != 1)
    first = distinct[np.concatenate(([0], ends + 1))]
    last = distinct[np.concatenate((ends, [distinct.size - 1]))]
    return list(zip(first.tolist(), last.tolist(), strict=True))


def union(sets: Iterable[Ranges]) -> Ranges:
    """Return the ranges of all numbers that are in any of the sets; adjacent ranges become one."""
    result: Ranges = []
    for first, last in sorted(one for ranges in sets for one in ranges):
        if result and first <= result[-1][1] + 1:
            result[-1] = result[-1][0], max(result[-1][1], last)
        else:
            result.append((first, last))
    return result


def overlap(one: Ranges, other: Ranges) -> bool:
    """Return whether two sets of sorted ranges have a number in common."""
    left, right = 0, 0
    while left < len(one) and right < len(other):
        if one[left][1] < other[right][0]:
            left += 1
        elif other[right][1] < one[left][0]:
            right += 1
        else:
            return True
    return False


def inside(ranges: Ranges, numbers: Integers) -> npt.NDArray[np.bool_]:
    """Return for each number whether the sorted ranges contain it."""
    if not ranges:
        return np.zeros(numbers.shape, dtype=np.bool_)
    bounds = np.array(ranges, dtype=np.int64)
    at = np.searchsorted(bounds[:, 0], numbers, side="right") - 1
    result: npt.NDArray[np.bool_] = (at >= 0) & (numbers <= bounds[np.maximum(at, 0), 1])
    return result
