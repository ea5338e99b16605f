"""Cutting snapshots into intervals: every value is in exactly one of them, whatever comes and goes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from heliograph.monitor import _hdr
from heliograph.monitor.history.intervals import IntervalRecorder
from heliograph.monitor.history.schema import LatencyInterval
from heliograph.monitor.model import InstanceState, ObjectState
from tests.history.recordings import (
    NOON,
    SECOND,
    counts_of,
    histogram_of,
    instance,
    latencies,
    receiver,
    snapshot,
)

TEN = 10 * SECOND


def total(rows: list[LatencyInterval]) -> np.ndarray:
    """Counts of all rows together."""
    return np.sum([np.frombuffer(_hdr.decode(row.h)[0], dtype=np.uint64) for row in rows], axis=0, dtype=np.uint64)


def reading(values: list[int], **kwargs: object) -> object:
    return instance(receiver({"total_latency": histogram_of(values)}, **kwargs))  # type: ignore[arg-type]


def test_intervals_add_up_to_the_last_reading() -> None:
    recorder = IntervalRecorder(TEN)
    values = latencies(1, 900)
    rows = []
    for second in range(46):
        rows += recorder.update(snapshot(second, reading(values[: 20 * second])))
    rows += recorder.cut()
    assert [row.n for row in rows] == [200, 200, 200, 200, 100]
    assert [row.len_ms for row in rows] == [10_000, 10_000, 10_000, 10_000, 5_000]
    assert [row.ts_ns for row in rows] == [NOON + index * TEN for index in range(5)]
    assert [row.seq for row in rows] == list(range(5))
    assert len({row.source for row in rows}) == 1
    assert (total(rows) == counts_of(values)).all()


def test_a_row_says_whose_it_is_and_sums_up_its_values() -> None:
    recorder = IntervalRecorder(TEN)
    recorder.update(snapshot(0, reading([])))
    recorder.update(snapshot(1, reading([5, 100, 7000])))
    (row,) = recorder.cut()
    assert (row.instance, row.topic, row.stream, row.metric) == (
        "alpha",
        "PRICES.A",
        "0a1b.30001",
        "receiver_total_latency",
    )
    assert (row.n, row.min, row.max, row.sum, row.dropped) == (3, 5, 7003, 7105, 0)
    assert row.incarnation == f"{7:016x}"


def measured(values: list[int], *, level: int, build: str = "") -> InstanceState:
    """An instance whose receiver takes a stream of another host."""
    own = ObjectState(
        scope="instance",
        labels={"instance": "alpha"},
        info={"version": "0.1.0", "build": build, "host": "ny4-07"},
        values={"detail_level": level},
    )
    stream = ObjectState(
        scope="rx_stream",
        labels={"instance": "alpha", "stream": "0a1b.30001"},
        info={"source": "10.1.2.3:41000"},
        values={"clock_error_bound": 900 * level},
    )
    return instance(own, stream, receiver({"total_latency": histogram_of(values)}))


def test_a_row_says_where_and_by_which_build_it_was_measured() -> None:
    recorder = IntervalRecorder(TEN)
    recorder.update(snapshot(0, measured([], level=1)))
    recorder.update(snapshot(4, measured([5], level=1)))
    recorder.update(snapshot(8, measured([5, 6], level=2, build="4.2-rc1")))
    (row,) = recorder.cut()
    assert (row.host, row.build, row.link) == ("ny4-07", "4.2-rc1", "10.1.2.3")
    assert (row.level, row.clock_error_ns) == ("2", 1800), "the newest reading counts"
    recorder.update(snapshot(9, measured([5, 6, 7], level=2)))
    (row,) = recorder.cut()
    assert row.build == "0.1.0", "without the option, the version of Heliograph"


def test_what_was_counted_before_the_first_snapshot_is_not_recorded_again() -> None:
    old = latencies(1, 500)
    recorder = IntervalRecorder(TEN)
    rows = recorder.update(snapshot(0, reading(old, created_ns=NOON - TEN)))
    rows += recorder.update(snapshot(10, reading([*old, 1000, 2000], created_ns=NOON - TEN)))
    assert [row.n for row in rows] == [2]


def test_a_backlog_is_one_interval_since_the_object_was_created() -> None:
    recorder = IntervalRecorder(TEN, backlog=True)
    recorder.update(snapshot(0, reading([1, 2, 3], created_ns=NOON - TEN)))
    (row,) = recorder.cut()
    assert (row.n, row.ts_ns, row.len_ms) == (3, NOON - TEN, 10_000)


def test_an_object_that_appears_later_is_recorded_from_its_first_value() -> None:
    recorder = IntervalRecorder(TEN)
    recorder.update(snapshot(0))
    recorder.update(snapshot(4, reading([1, 2, 3], created_ns=NOON + 2 * SECOND)))
    (row,) = recorder.cut()
    assert (row.n, row.ts_ns, row.len_ms) == (3, NOON + 2 * SECOND, 2_000)


def test_a_histogram_turned_on_later_is_recorded_from_its_first_value() -> None:
    recorder = IntervalRecorder(TEN)
    recorder.update(snapshot(0, instance(receiver({}, created_ns=NOON - TEN))))
    recorder.update(snapshot(3, reading([1, 2, 3], created_ns=NOON - TEN)))
    (row,) = recorder.cut()
    assert (row.n, row.ts_ns) == (3, NOON)


def test_an_object_that_goes_is_recorded_to_its_last_reading() -> None:
    recorder = IntervalRecorder(TEN)
    recorder.update(snapshot(0, reading([])))
    recorder.update(snapshot(4, reading([1, 2, 3])))
    (row,) = recorder.update(snapshot(5))
    assert (row.n, row.len_ms) == (3, 4_000)
    assert recorder.cut() == []


def test_an_object_that_comes_back_is_not_counted_twice() -> None:
    recorder = IntervalRecorder(TEN)
    recorder.update(snapshot(0, reading([])))
    recorder.update(snapshot(4, reading([1, 2, 3])))
    rows = recorder.update(snapshot(5))
    recorder.update(snapshot(6, reading([1, 2, 3, 4])))
    rows += recorder.cut()
    assert [row.n for row in rows] == [3, 1]
    assert rows[1].ts_ns == NOON + 4 * SECOND


def test_another_run_of_an_instance_and_another_use_of_a_slot_begin_anew() -> None:
    recorder = IntervalRecorder(TEN)
    recorder.update(snapshot(0, reading([1, 2, 3])))
    restarted = instance(receiver({"total_latency": histogram_of([9])}, created_ns=NOON + SECOND), incarnation=8)
    rows = recorder.update(snapshot(2, restarted))
    reused = receiver({"total_latency": histogram_of([8, 8])}, created_ns=NOON + 3 * SECOND, generation=2)
    rows += recorder.update(snapshot(4, instance(reused, incarnation=8)))
    rows += recorder.cut()
    assert Counter(row.n for row in rows) == Counter([3, 1, 2])


def test_counts_that_go_backwards_are_refused_and_the_series_goes_on() -> None:
    recorder = IntervalRecorder(TEN)
    recorder.update(snapshot(0, reading([1, 2, 3])))
    rows = recorder.cut()
    recorder.update(snapshot(1, reading([1])))
    rows += recorder.cut()
    assert recorder.backwards == 1
    recorder.update(snapshot(2, reading([1, 2, 3, 4, 5])))
    rows += recorder.cut()
    assert [row.n for row in rows] == [3, 2]


def test_values_out_of_range_are_told_even_when_nothing_else_was_counted() -> None:
    recorder = IntervalRecorder(TEN)
    recorder.update(snapshot(0, reading([])))
    outside = histogram_of([], above=2, negative=3)
    recorder.update(snapshot(1, instance(receiver({"total_latency": outside}))))
    (row,) = recorder.cut()
    assert (row.n, row.dropped, row.min, row.max) == (0, 5, 0, 0)


@pytest.mark.parametrize("sum_ns", [0, 1, 2**62])
def test_a_sum_that_does_not_fit_the_cells_is_brought_within_them(sum_ns: int) -> None:
    from dataclasses import replace

    recorder = IntervalRecorder(TEN)
    odd = replace(histogram_of([100, 200]), total_ns=sum_ns)
    recorder.update(snapshot(0, instance(receiver({"total_latency": odd}))))
    (row,) = recorder.cut()
    assert row.n * row.min <= row.sum <= row.n * row.max


def test_a_wall_clock_that_is_set_back_ends_the_interval_and_loses_nothing() -> None:
    recorder = IntervalRecorder(TEN)
    values, later = latencies(1, 900), latencies(2, 300)
    rows = recorder.update(snapshot(0, reading(values[:100])))
    rows += recorder.update(snapshot(5, reading(values[:300])))
    back = recorder.update(snapshot(-3600, reading(values[:600])))
    assert [row.n for row in back] == [600]
    fresh = receiver({"total_latency": histogram_of(later)}, topic="LATER", created_ns=NOON - 3598 * SECOND)
    rows += recorder.update(snapshot(-3597, reading(values), instance(fresh, name="other", incarnation=9)))
    rows += recorder.update(snapshot(-3589, reading(values), instance(fresh, name="other", incarnation=9)))
    assert sorted(row.n for row in rows) == [300, 300]
    assert all(row.len_ms >= 0 for row in rows + back)
