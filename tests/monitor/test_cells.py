"""The cells of a histogram that are not 0, listed in C, against numpy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.monitor import _cells

WORDS = st.dictionaries(st.integers(0, 60), st.integers(1, 2**64 - 1), max_size=20)


def words_of(filled: dict[int, int], size: int) -> npt.NDArray[np.uint64]:
    words = np.zeros(size, np.uint64)
    for place, value in filled.items():
        if place < size:
            words[place] = value
    return words


@given(WORDS, WORDS, st.integers(0, 61), st.booleans(), st.integers(0, 7))
def test_positions_and_contents_are_those_of_numpy(
    now: dict[int, int], before: dict[int, int], size: int, swapped: bool, shift: int
) -> None:
    words, known = words_of(now, size), np.flatnonzero(words_of(before, size))
    stored = words.byteswap() if swapped else words
    data = memoryview(bytes(shift) + stored.tobytes())[shift:]
    wanted = np.flatnonzero(words)
    for given_known in (None, known, wanted):
        positions, contents = _cells.filled(data, swapped, given_known)
        if given_known is not None and np.array_equal(given_known, wanted):
            assert positions is None
        else:
            assert positions is not None
            assert np.array_equal(np.frombuffer(positions, np.int64), wanted)
        assert np.array_equal(np.frombuffer(contents, np.uint64), words[wanted])


@pytest.mark.parametrize("size", [1, 7, 9])
def test_a_buffer_that_holds_no_words_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="64-bit items"):
        _cells.filled(bytes(size), False, None)
