"""The merge kernel: groups add up exactly, a bad row takes nothing with it, bad arguments are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heliograph.monitor import _hdr
from tests.history.recordings import SHAPE, counts_of, latencies


def merge(payloads: list[bytes], groups: list[int], **changes: Any) -> tuple[Any, ...]:
    """Run the kernel over payloads by group; `changes` replace arguments."""
    lengths = [len(payload) for payload in payloads]
    group = np.array(groups, dtype=np.int64)
    count = int(group.max()) + 1 if len(group) else 0
    arguments: dict[str, Any] = {
        "offsets": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        "data": b"".join(payloads),
        "order": np.argsort(group, kind="stable").astype(np.int64),
        "starts": np.searchsorted(np.sort(group), np.arange(count + 1)).astype(np.int64),
        "highest": np.full(len(payloads), SHAPE[2], dtype=np.int64),
        "digits": SHAPE[0],
        "lowest": SHAPE[1],
        "quantiles": [0.5, 0.999],
        **changes,
    }
    ends, bodies, totals, _, values, status = _hdr.merge(**arguments)
    at = np.frombuffer(ends, dtype=np.int64)
    merged = [bodies[at[index] : at[index + 1]] for index in range(count)]
    quantiles = np.frombuffer(values, dtype=np.int64).reshape(count, len(arguments["quantiles"]))
    return merged, np.frombuffer(totals, dtype=np.int64).tolist(), quantiles, list(status)


def bodies(seeds: range) -> tuple[list[bytes], list[Any]]:
    counts = [counts_of(latencies(seed, 300)) for seed in seeds]
    return [_hdr.encode(one, *SHAPE) for one in counts], counts


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_groups_add_up_cell_by_cell(kind: type) -> None:
    payloads, counts = bodies(range(30))
    groups = [seed % 4 for seed in range(30)]
    lengths = [len(payload) for payload in payloads]
    merged, totals, quantiles, status = merge(
        payloads, groups, offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(kind)
    )
    assert status == [0] * 30
    for group in range(4):
        direct = np.sum([one for one, of in zip(counts, groups, strict=True) if of == group], axis=0, dtype=np.uint64)
        assert merged[group] == _hdr.encode(direct, *SHAPE)
        assert totals[group] == direct.sum()
        assert quantiles[group].tolist() == _hdr.quantiles(direct, *SHAPE, [0.5, 0.999])


def test_compressed_and_plain_payloads_add_up_alike() -> None:
    payloads, counts = bodies(range(2))
    payloads[1] = _hdr.encode(counts[1], *SHAPE, compress=True)
    merged, _, _, status = merge(payloads, [0, 0])
    assert status == [0, 0]
    assert merged[0] == _hdr.encode(counts[0] + counts[1], *SHAPE)


def test_a_refused_row_leaves_its_group_as_if_it_were_not_there() -> None:
    payloads, counts = bodies(range(4))
    cut_off = payloads[1][:-1] + b"\xff"  # all its words but the last are sound
    damaged = _hdr.encode(counts[2], *SHAPE, compress=True)[:-1] + b"\x00"  # the checksum at its very end
    merged, totals, _, status = merge([payloads[0], cut_off, damaged, payloads[3]], [0, 0, 0, 0])
    assert [code == 0 for code in status] == [True, False, False, True]
    assert merged[0] == _hdr.encode(counts[0] + counts[3], *SHAPE)
    assert totals == [600]
    assert "damaged word" in _hdr.refusal(status[1])


def test_a_row_with_another_number_of_values_than_expected_is_refused() -> None:
    payloads, counts = bodies(range(2))
    merged, _, _, status = merge(payloads, [0, 0], expected=np.array([300, 299], dtype=np.int64))
    assert [code == 0 for code in status] == [True, False]
    assert "another number of values" in _hdr.refusal(status[1])
    assert merged[0] == _hdr.encode(counts[0], *SHAPE)


def test_other_digits_and_a_higher_highest_are_refused_and_a_lower_one_adds_exactly() -> None:
    values = latencies(1, 100)
    shapes = [(3, 1, 60_000_000_000), (2, 1, 60_000_000_000), (3, 2, 60_000_000_000), (3, 1, 120_000_000_000)]
    payloads = [_hdr.encode(counts_of(values, shape), *shape) for shape in [*shapes, (3, 1, 1_000_000_000)]]
    merged, totals, _, status = merge(payloads, [0] * 5)
    assert [code == 0 for code in status] == [True, False, False, False, True]
    assert totals == [200]
    assert merged[0] == _hdr.encode(2 * counts_of(values), *SHAPE)


def test_the_highest_of_a_group_is_that_of_the_rows_it_accepted() -> None:
    values = latencies(1, 100)
    shapes = [(3, 1, 1_000_000_000), (3, 1, 2_000_000_000), (3, 1, 60_000_000_000)]
    payloads = [_hdr.encode(counts_of(values, shape), *shape) for shape in shapes]
    highest = np.array([shape[2] for shape in shapes], dtype=np.int64)
    merged, totals, _, status = merge([*payloads[:2], b""], [0, 0, 0], highest=highest)
    assert [code == 0 for code in status] == [True, True, False]
    assert totals == [200]
    assert _hdr.decode(merged[0])[3] == 2_000_000_000
    _, _, _, status = merge(payloads[1:2], [0], highest=highest[:1])
    assert "another layout" in _hdr.refusal(status[0])


def test_totals_beyond_63_bits_are_refused() -> None:
    counts = np.zeros(_hdr.cells(*SHAPE), dtype=np.uint64)
    counts[5] = 2**62
    merged, totals, _, status = merge([_hdr.encode(counts, *SHAPE)] * 3, [0, 0, 0])
    assert [code == 0 for code in status] == [True, False, False]
    assert totals == [2**62]
    assert merged[0] == _hdr.encode(counts, *SHAPE)


def test_nothing_merges_to_nothing() -> None:
    assert merge([], [], starts=np.zeros(1, dtype=np.int64))[:2] == ([], [])


@pytest.mark.parametrize(
    "changes",
    [
        {"offsets": np.array([0, 10**6], dtype=np.int32)},
        {"offsets": np.array([5, 0], dtype=np.int32)},
        {"offsets": np.array([-5, 3], dtype=np.int32)},
        {"offsets": np.array([0, 1], dtype=np.int8)},
        {"offsets": np.array([], dtype=np.int32)},
        {"order": np.array([1], dtype=np.int64)},
        {"order": np.array([-1], dtype=np.int64)},
        {"order": np.array([0], dtype=np.int32)},
        {"starts": np.array([0, 2], dtype=np.int64)},
        {"starts": np.array([1, 0], dtype=np.int64)},
        {"starts": np.array([], dtype=np.int64)},
        {"highest": np.array([], dtype=np.int64)},
        {"highest": np.array([0], dtype=np.int64)},
        {"highest": np.array([2**63 - 1], dtype=np.int64), "digits": 5},
        {"expected": np.array([1, 2], dtype=np.int64)},
        {"digits": 9},
        {"lowest": 0},
        {"quantiles": [0.9, 0.5]},
        {"quantiles": [1.5]},
        {"quantiles": [float("nan")]},
    ],
)
def test_arguments_that_cannot_be_are_refused(changes: dict[str, Any]) -> None:
    payloads, _ = bodies(range(1))
    with pytest.raises(ValueError):
        merge(payloads, [0], **changes)
