"""The filled cells of a histogram, read and listed in C, against numpy."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

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
        first, positions, contents, count = _cells.read(file, offset, size, swapped, given_known)
        assert first == os.pread(file, 72, offset)
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
        assert _cells.read(file, 0, words.size, False, None)[3] in (3 * PART, PART)
        os.ftruncate(file, 64 + 8 * words.size - 1)
        with pytest.raises(EOFError):
            _cells.read(file, 0, words.size, False, None)
    os.ftruncate(file, 71)
    with pytest.raises(EOFError):
        _cells.read(file, 0, 1, False, None)


@pytest.mark.parametrize(("offset", "cells"), [(-1, 1), (0, 0), (0, -1)])
def test_an_impossible_place_is_refused(file: int, offset: int, cells: int) -> None:
    with pytest.raises(ValueError, match="there are no"):
        _cells.read(file, offset, cells, False, None)
    with pytest.raises(OSError, match="descriptor"):
        _cells.read(-1, 0, 1, False, None)


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
