"""The filled cells of a histogram, read and listed in C, against numpy."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.monitor import _cells

PART = 512
CELLS = 70 * PART
FILLED = st.dictionaries(st.integers(0, CELLS - 1), st.integers(1, 2**64 - 1), max_size=20)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    path: Path = tmp_path_factory.mktemp("cells") / "block"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    yield descriptor
    os.close(descriptor)


def write(file: int, words: npt.NDArray[np.uint64], used: int, *, offset: int = 0, swapped: bool = False) -> None:
    order = ">" if swapped else "<"
    head = bytes(range(56)) + struct.pack(f"{order}Q", used)
    os.ftruncate(file, 0)
    os.pwrite(file, head + words.astype(f"{order}u8").tobytes(), offset)


def whole(size: int) -> tuple[int, int, None, bool, None]:
    """The request for all cells of the first histogram."""
    return 0, size, None, False, None


def words_of(filled: dict[int, int], size: int) -> npt.NDArray[np.uint64]:
    words = np.zeros(size, np.uint64)
    for place, value in filled.items():
        if place < size:
            words[place] = value
    return words


@given(FILLED, FILLED, st.integers(1, CELLS), st.integers(0, 2**64 - 1), st.booleans(), st.integers(0, 99))
def test_the_cells_of_used_parts_are_those_of_numpy(
    file: int, now: dict[int, int], before: dict[int, int], size: int, used: int, swapped: bool, offset: int
) -> None:
    words, known = words_of(now, size), np.flatnonzero(words_of(before, size))
    write(file, words, used, offset=offset, swapped=swapped)
    wanted = np.flatnonzero(words)
    if used and size <= 64 * PART:
        wanted = np.array([place for place in wanted if used >> int(place) // PART & 1], np.int64)
    for given_known in (None, known, wanted):
        reading = _cells.read(file, swapped, [(offset, size, None, True, given_known)])[0]
        assert reading is not None
        first, positions, contents, count, *rest = reading
        assert first == os.pread(file, 72, offset)
        assert rest == list(struct.unpack_from(">QQQ" if swapped else "<QQQ", first, 32))
        if given_known is not None and np.array_equal(given_known, wanted):
            assert positions is None
        else:
            assert positions is not None
            assert np.array_equal(np.frombuffer(positions, np.int64), wanted)
        assert np.array_equal(np.frombuffer(contents, np.uint64), words[wanted])
        assert count == int(words[wanted].sum(dtype=np.uint64))


def test_a_file_that_ends_within_a_used_part_is_an_error(file: int) -> None:
    words = np.ones(3 * PART, np.uint64)
    for used in (0, 0b111, 0b100):
        write(file, words, used)
        (reading,) = _cells.read(file, False, [whole(words.size)])
        assert reading is not None
        assert reading[3] in (3 * PART, PART)
        os.ftruncate(file, 64 + 8 * words.size - 1)
        with pytest.raises(EOFError):
            _cells.read(file, False, [whole(1), whole(words.size)])
    os.ftruncate(file, 71)
    with pytest.raises(EOFError):
        _cells.read(file, False, [whole(1)])


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 100])
def test_many_histograms_are_read_in_their_order(file: int, count: int) -> None:
    """Those with equal first bytes rest, if they may."""
    size = 3
    blocks = [words_of({0: number + 1, 2: 7 * number}, size) for number in range(count)]
    os.ftruncate(file, 0)
    heads = [bytes(56) + struct.pack("<Q", 1) for _ in blocks]
    for number, words in enumerate(blocks):
        os.pwrite(file, heads[number] + words.tobytes(), 128 * number)
    first = [head + words[:1].tobytes() for head, words in zip(heads, blocks, strict=True)]
    requests = [(128 * number, size, first[number], number % 3 == 0, None) for number in range(count)]
    found = _cells.read(file, False, requests)
    assert [one is None for one in found] == [number % 3 == 0 for number in range(count)]
    for number, one in enumerate(found):
        if one is not None:
            assert one[0] == first[number]
            assert np.array_equal(np.frombuffer(one[2], np.uint64), blocks[number][blocks[number] > 0])
    if count:
        os.pwrite(file, struct.pack("<Q", 99), 64)  # the first cell of the first one
        (changed,) = _cells.read(file, False, requests[:1])
        assert changed is not None
        assert struct.unpack_from("<Q", changed[2]) == (99,)


@pytest.mark.parametrize(("offset", "cells"), [(-1, 1), (0, 0), (0, -1)])
def test_an_impossible_place_is_refused(file: int, offset: int, cells: int) -> None:
    with pytest.raises(ValueError, match="there are no"):
        _cells.read(file, False, [(offset, cells, None, False, None)])
    with pytest.raises(OSError, match="descriptor"):
        _cells.read(-1, False, [whole(1)])


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ((0, 1, b"short", True, None), ValueError),
        ((0, 1), TypeError),
        (None, TypeError),
        ((0, 1, 5, True, None), TypeError),
    ],
)
def test_a_request_of_another_form_is_refused(file: int, request_: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        _cells.read(file, False, [request_])


def arrays(filled: dict[int, int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    cells = sorted(filled)
    return np.array(cells, np.int64), np.array([filled[cell] for cell in cells], np.uint64)


def cells_of(found: tuple[bytes, bytes]) -> dict[int, int]:
    cells, counts = np.frombuffer(found[0], np.int64).tolist(), np.frombuffer(found[1], np.uint64).tolist()
    assert cells == sorted(cells)
    return dict(zip(cells, counts, strict=True))


COUNTS = st.dictionaries(st.integers(0, 40), st.integers(1, 5), max_size=30)


@given(COUNTS, COUNTS)
def test_growth_is_the_difference_unless_a_count_fell(before: dict[int, int], more: dict[int, int]) -> None:
    now = {cell: before.get(cell, 0) + more.get(cell, 0) for cell in before.keys() | more.keys()}
    assert cells_of(_cells.grown(*arrays(now), *arrays(before)) or (b"", b"")) == more
    fell = any(count > more.get(cell, 0) for cell, count in before.items())
    assert (_cells.grown(*arrays(more), *arrays(before)) is None) == fell


@given(st.lists(FILLED, max_size=5), st.integers(1, CELLS))
def test_a_sum_is_that_of_numpy_modulo_2_to_64(parts: list[dict[int, int]], size: int) -> None:
    kept = [{cell: count for cell, count in part.items() if cell < size} for part in parts]
    wanted = sum((words_of(part, size) for part in kept), np.zeros(size, np.uint64))
    places = np.flatnonzero(wanted)
    assert cells_of(_cells.total([arrays(part) for part in kept], size)) == dict(
        zip(places.tolist(), wanted[places].tolist(), strict=True)
    )


@pytest.mark.parametrize("cell", [-1, 8, 2**62])
def test_a_cell_that_a_sum_does_not_have_is_refused(cell: int) -> None:
    with pytest.raises(ValueError, match=rf"no cell {cell} among 8"):
        _cells.total([arrays({cell: 1})], 8)


def test_positions_without_contents_are_refused() -> None:
    cells, counts = arrays({1: 1, 2: 2})
    for calling in (
        lambda: _cells.total([(cells, counts[:1])], 8),
        lambda: _cells.grown(cells[:1], counts, cells, counts),
        lambda: _cells.grown(cells, counts, cells, counts[:1]),
    ):
        with pytest.raises(ValueError, match="positions"):
            calling()


LAST = 999
"""The cell of values above the range."""
FRACTIONS = (0.5, 0.99, 1.0, 0.0)
READING = st.tuples(COUNTS, st.integers(0, 3))


def parts(one: tuple[dict[int, int], int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64], int]:
    return *arrays(one[0]), one[1]


def answers(
    newer: list[tuple[dict[int, int], int]],
    older: list[tuple[dict[int, int], int] | None],
    bounds: Sequence[int],
    fractions: Sequence[float] = FRACTIONS,
) -> list[tuple[list[int], list[int], int, int, int]]:
    """Buckets, places, highest cell, number of values and flags of each histogram."""
    before = [parts(one) if one is not None else None for one in older]
    found = _cells.digest([parts(one) for one in newer], before, np.array(bounds, np.int64), fractions, LAST)
    below, places, highest, totals, flags = (
        np.frombuffer(data, kind) for data, kind in zip(found, ("u8", "i8", "i8", "u8", "u1"), strict=True)
    )
    count = len(newer)
    by_column = zip(
        below.reshape(len(bounds) + 1, count).T.tolist(),
        places.reshape(len(fractions), count).T.tolist(),
        highest.tolist(),
        totals.tolist(),
        flags.tolist(),
        strict=True,
    )
    return list(by_column)


@given(st.lists(st.tuples(READING, st.none() | READING), max_size=4), st.lists(st.integers(-1, 45), max_size=5))
def test_a_digest_counts_and_ranks_the_values(
    pairs: list[tuple[tuple[dict[int, int], int], tuple[dict[int, int], int] | None]], bounds: list[int]
) -> None:
    """Against lists of all values; the older reading is added, so that no count falls."""
    newer = []
    for (counts, above), before in pairs:
        start, over = before or ({}, 0)
        whole = {cell: counts.get(cell, 0) + start.get(cell, 0) for cell in counts.keys() | start.keys()}
        newer.append((whole, above + over))
    found = answers(newer, [before for _, before in pairs], sorted(bounds))
    for (now, over), ((counts, above), _), (below, places, highest, total, flags) in zip(
        newer, pairs, found, strict=True
    ):
        assert below == [sum(n for cell, n in now.items() if cell < bound) for bound in sorted(bounds)] + [
            sum(now.values()) + over
        ]
        values = sorted(cell for cell, n in counts.items() for _ in range(n)) + [LAST] * above
        ranks = [max(1, math.ceil(round(fraction * len(values), 6))) for fraction in FRACTIONS]
        assert places == [values[rank - 1] if values else -1 for rank in ranks]
        assert (highest, total, flags) == (max(counts, default=-1), sum(counts.values()), 0)


@pytest.mark.parametrize("older", [({3: 5}, 0), ({2: 1}, 0), ({}, 3), ({3: 1, 9: 1}, 0)])
def test_all_values_count_where_a_count_fell(older: tuple[dict[int, int], int]) -> None:
    now = ({3: 4, 7: 1}, 2)
    ((_, places, highest, total, flags),) = answers([now], [older], [])
    assert (places, highest, total, flags) == ([3, LAST, LAST, 3], 7, 5, 1)


def test_a_sum_beyond_64_bits_is_marked() -> None:
    ((below, _, _, total, flags),) = answers([({1: 2**63, 2: 2**63}, 1)], [None], [2])
    assert (below, total, flags) == ([2**63, 1], 0, 2)


def test_a_question_of_another_form_is_refused() -> None:
    for fraction in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="fraction"):
            answers([({}, 0)], [None], [], [fraction])
    bounds = np.array([], np.int64)
    with pytest.raises(ValueError, match="as many"):
        _cells.digest([parts(({}, 0))], [], bounds, FRACTIONS, LAST)
    cells, counts = arrays({1: 1, 2: 2})
    with pytest.raises(ValueError, match="positions"):
        _cells.digest([(cells, counts[:1], 0)], [None], bounds, FRACTIONS, LAST)
