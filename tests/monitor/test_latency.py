"""Percentiles and the bucket layout, checked against the hdrhistogram package and against plain sorting."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from heliograph.monitor import latency
from heliograph.monitor.model import Histogram
from heliograph.monitor.sparse import merged
from tests.segments import CELLS, HIGHEST, cell_index

HDR = pytest.importorskip("hdrh.histogram", reason="the hdrhistogram package is not installed").HdrHistogram

FRACTIONS = [0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0]


def _values(seed: int, count: int, highest: int = HIGHEST) -> list[int]:
    draw = random.Random(seed)
    return [min(highest, int(math.exp(draw.uniform(0, math.log(highest))))) for _ in range(count)]


def _histogram(values: list[int], digits: int = 3, lowest: int = 1, highest: int = HIGHEST) -> Histogram:
    counts = np.zeros(latency.layout_of(digits, lowest, highest).cells, dtype=np.uint64)
    for value in values:
        counts[latency.cell_of(value, digits, lowest, highest)] += np.uint64(1)
    return Histogram(counts, lowest, highest, digits)


def test_the_layout_of_the_segment_has_its_cells() -> None:
    assert latency.layout_of(3, 1, HIGHEST).cells == CELLS


@pytest.mark.parametrize("value", [0, 1, 2047, 2048, 2049, 4095, 4096, 1_000_000, 123_456_789, HIGHEST])
def test_a_value_lies_in_the_cell_that_the_page_gives(value: int) -> None:
    histogram = _histogram([value])
    cell = latency.cell_of(value)
    assert cell == cell_index(value)
    assert latency.lower_bounds(histogram)[cell] <= value <= latency.upper_bounds(histogram)[cell]


@pytest.mark.parametrize(
    ("digits", "lowest", "highest"), [(3, 1, HIGHEST), (2, 1, HIGHEST), (3, 1000, 10**10), (1, 1, 2), (5, 1, 10**6)]
)
def test_layouts_are_those_of_hdrhistogram(digits: int, lowest: int, highest: int) -> None:
    theirs = HDR(lowest, highest, digits)
    assert latency.layout_of(digits, lowest, highest).cells == theirs.counts_len
    for value in [lowest, *_values(digits, 300, highest), highest]:
        cell = latency.cell_of(value, digits, lowest, highest)
        assert cell == theirs._counts_index_for(value)
        upper = latency.upper_bounds(_histogram([], digits, lowest, highest))[cell]
        assert upper == theirs.get_highest_equivalent_value(value)


def test_histograms_of_many_nodes_are_the_histogram_of_all_their_values() -> None:
    nodes = [_values(seed, 50 * seed) for seed in range(1, 12)]
    parts = [
        replace(_histogram(values), above=number, negative=2 * number, total_ns=sum(values))
        for number, values in enumerate(nodes)
    ]
    union = _histogram([value for values in nodes for value in values])
    whole = merged(parts)
    assert whole is not None
    assert whole.counts.tobytes() == union.counts.tobytes()
    assert (whole.above, whole.negative, whole.total_ns) == (55, 110, sum(map(sum, nodes)))
    again = merged([part for part in (merged(parts[:4]), merged(parts[4:])) if part])
    assert again is not None
    assert again.counts.tobytes() == union.counts.tobytes()


def test_those_never_lost_are_the_difference_to_the_bit() -> None:
    clean, recovered = _values(1, 4000), _values(2, 300)
    part = replace(_histogram(recovered), above=2, total_ns=sum(recovered))
    whole = replace(_histogram([*clean, *recovered]), above=5, total_ns=sum(clean) + sum(recovered))
    found = latency.never_lost(whole, part, 302)
    assert found is not None
    assert found.counts.tobytes() == _histogram(clean).counts.tobytes()
    assert (found.above, found.negative, found.total_ns) == (3, 0, sum(clean))


def test_where_some_recovered_were_not_told_apart_there_is_no_difference() -> None:
    assert latency.never_lost(_histogram([5, 7, 9]), _histogram([7]), 2) is None
    invalid = replace(_histogram([7]), negative=1)  # by two clocks one of the two took less than no time
    found = latency.never_lost(_histogram([5, 7, 9]), invalid, 2)
    assert found is not None
    assert found.negative == 0
    assert found.counts.tobytes() == _histogram([5, 9]).counts.tobytes()


def test_recovered_values_of_another_receiver_are_refused() -> None:
    with pytest.raises(ValueError, match="not part of"):
        latency.never_lost(_histogram([5]), _histogram([6]), 1)
    with pytest.raises(ValueError, match="layouts"):
        latency.never_lost(_histogram([5]), _histogram([5], 2), 1)


def test_bounds_of_cells_follow_each_other_without_a_gap() -> None:
    empty = _histogram([])
    lower, upper = latency.lower_bounds(empty), latency.upper_bounds(empty)
    assert lower[0] == 0
    assert np.array_equal(lower[1:], upper[:-1] + np.uint64(1))
    assert upper[-1] >= HIGHEST


@pytest.mark.parametrize("parameters", [(0, 1, 100), (6, 1, 100), (3, 0, 100), (3, 60, 100), (3, 1, 2**63)])
def test_impossible_parameters_are_refused(parameters: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError):
        latency.layout_of(*parameters)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 99, 100, 101, 1000, 4321])
def test_a_percentile_is_the_value_of_rank_ceil_p_n(count: int) -> None:
    values = sorted(_values(count, count))
    histogram = _histogram(values)
    upper = latency.upper_bounds(histogram)
    # Exact: the fractions are read as decimals, as a person means them.
    expected = []
    for text in ("0", "0.01", "0.1", "0.5", "0.9", "0.99", "0.999", "0.9999", "1"):
        numerator, denominator = int(float(text) * 10_000 + 0.5), 10_000
        rank = max(1, -(-numerator * count // denominator))
        expected.append(int(upper[latency.cell_of(values[rank - 1])]))
    assert latency.percentiles(histogram, FRACTIONS) == expected


def test_a_rank_is_not_raised_by_binary_dust() -> None:
    """0.07 * 100 is 7.000000000000001: the seventh value, not the eighth."""
    histogram = _histogram([index * 10 for index in range(1, 101)])
    assert latency.percentile(histogram, 0.07) == 70
    assert latency.percentile(histogram, 0.29) == 290


def test_max_mean_and_min_are_those_of_hdrhistogram() -> None:
    values = _values(7, 5000)
    theirs = HDR(1, HIGHEST, 3)
    for value in values:
        theirs.record_value(value)
    histogram = _histogram(values)
    assert latency.maximum(histogram) == theirs.get_max_value()
    assert latency.mean(histogram) == pytest.approx(theirs.get_mean_value(), rel=1e-9)
    assert latency.minimum(histogram) <= min(values) <= latency.minimum(histogram) * 1.001
    assert histogram.count == theirs.get_total_count()


def test_an_empty_histogram_has_zeros_and_no_spectrum() -> None:
    empty = _histogram([])
    assert latency.percentiles(empty, FRACTIONS) == [0] * len(FRACTIONS)
    assert (latency.maximum(empty), latency.minimum(empty), latency.mean(empty), latency.jitter(empty)) == (0, 0, 0, 0)
    assert latency.spectrum(empty).values.size == 0
    assert latency.spectrum(empty).nines.size == 0


def test_a_fraction_outside_0_to_1_is_refused() -> None:
    with pytest.raises(ValueError):
        latency.percentile(_histogram([1]), 99.0)


def test_jitter_is_p999_less_p50() -> None:
    histogram = _histogram([1000] * 999 + [2000] * 1)
    assert latency.jitter(histogram) == 0
    assert latency.jitter(_histogram([1000] * 99 + [2000])) == 1000


def test_merging_adds_cells_and_never_averages() -> None:
    first, second = _values(1, 400), _values(2, 600)
    both = merged([_histogram(first), _histogram(second)])
    assert both is not None
    assert np.array_equal(both.counts, _histogram(first + second).counts)
    assert merged([]) is None
    with pytest.raises(ValueError):
        merged([_histogram(first), _histogram([5], 2)])


def test_an_interval_is_the_difference_of_two_readings() -> None:
    first, second = _values(3, 300), _values(4, 200)
    interval = _histogram(first + second).minus(_histogram(first))
    assert np.array_equal(interval.counts, _histogram(second).counts)


def test_a_spectrum_rises_to_one_and_is_thinned() -> None:
    values = _values(5, 20_000)
    histogram = _histogram(values)
    spectrum = latency.spectrum(histogram, points=100)
    assert 10 < spectrum.values.size <= 101
    assert np.all(np.diff(spectrum.fractions) > 0)
    assert np.all(np.diff(spectrum.values.astype(np.int64)) > 0)
    assert spectrum.fractions[-1] == 1.0
    assert int(spectrum.values[-1]) == latency.maximum(histogram)
    assert np.all(np.isfinite(spectrum.nines))
    for fraction, value in zip(spectrum.fractions, spectrum.values, strict=True):
        assert latency.percentile(histogram, float(fraction)) == value


def test_the_rank_is_exact_for_a_billion_values_and_more() -> None:
    counts = np.zeros(CELLS, dtype=np.uint64)
    counts[10], counts[20] = 9_999_900_000, 100_000  # p99.999 is the last of the first kind
    histogram = Histogram(counts, 1, HIGHEST, 3)
    assert latency.percentile(histogram, 0.99999) == 10
    counts[10], counts[20] = 9_999_899_999, 100_001
    assert latency.percentile(histogram, 0.99999) == 20
