"""Classic buckets and window percentiles from HDR counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.exporters.buckets import BOUNDS_NS, cumulative, le, since, window_values
from heliograph.monitor.latency import percentile, upper_bounds
from heliograph.monitor.model import Histogram
from tests.exporters.making import HIGHEST, histogram


def test_bounds_are_written_as_prometheus_3_normalises_them() -> None:
    texts = [le(bound) for bound in (5_000, 25_000, 100_000, 500_000, 1_000_000_000, 10_000_000_000)]
    assert texts == ["5e-06", "2.5e-05", "0.0001", "0.0005", "1.0", "10.0"]


def test_there_are_sixteen_ascending_buckets_and_one_for_everything() -> None:
    assert list(BOUNDS_NS) == sorted(set(BOUNDS_NS))
    assert [text for text, _ in cumulative(histogram({1: 1}))][-1] == "+Inf"
    assert len(cumulative(histogram({1: 1}))) == 17


@settings(max_examples=50)
@given(st.dictionaries(st.integers(0, HIGHEST), st.integers(1, 1000), max_size=40))
def test_every_bucket_is_the_exact_sum_of_the_cells_reported_at_or_below_it(counts: dict[int, int]) -> None:
    whole = histogram(counts)
    tops = upper_bounds(whole)
    for bound, (_, found) in zip(BOUNDS_NS, cumulative(whole), strict=False):
        assert found == int(whole.counts[tops <= bound].sum())
    assert cumulative(whole)[-1][1] == whole.count == sum(counts.values())


def test_a_value_whose_cell_reaches_above_the_bound_is_not_counted_below_it() -> None:
    at_bound = dict(cumulative(histogram({5_000: 1})))  # its cell is 5000 to 5003
    below = dict(cumulative(histogram({4_999: 1})))
    assert (at_bound["5e-06"], at_bound["1e-05"]) == (0, 1)
    assert below["5e-06"] == 1


def test_values_above_the_range_are_in_the_last_bucket_only() -> None:
    buckets = dict(cumulative(histogram({1_000: 2}, above=3)))
    assert (buckets["10.0"], buckets["+Inf"]) == (2, 5)


def test_an_empty_histogram_has_empty_buckets_and_no_percentiles() -> None:
    assert {count for _, count in cumulative(histogram({}))} == {0}
    assert window_values(histogram({})) == []


def test_window_percentiles_are_those_of_the_monitor() -> None:
    whole = histogram({10_000: 989, 50_000: 10, 900_000: 1})
    values = dict(window_values(whole))
    assert values == {
        "p50": percentile(whole, 0.5),
        "p99": percentile(whole, 0.99),
        "p99.9": percentile(whole, 0.999),
        "max": percentile(whole, 1.0),
    }
    assert values["p50"] < values["p99"] < values["max"]


def test_values_above_the_range_count_as_its_end_in_percentiles() -> None:
    values = dict(window_values(histogram({10_000: 1}, above=99)))
    assert values["p99"] == values["max"] == pytest.approx(HIGHEST, rel=1e-3)
    assert dict(window_values(histogram({}, above=1)))["p50"] == values["max"]


def test_since_is_the_difference_and_everything_when_begun_anew() -> None:
    older, newer = histogram({10_000: 5, 20_000: 1}), histogram({10_000: 7, 20_000: 1})
    assert since(newer, older).counts.sum() == 2
    assert since(newer, None) is newer
    assert since(older, newer) is older, "counts that fell belong to another life"
    coarse = Histogram(np.zeros(3840, dtype=np.uint64), lowest=1, highest=HIGHEST, digits=2)
    assert since(newer, coarse) is newer
