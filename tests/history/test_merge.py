"""Merging tables: exact at any grouping, in any order, and through any number of partial merges."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from heliograph.monitor import _hdr
from heliograph.monitor.history import files as files_module
from heliograph.monitor.history import merge as merge_module
from heliograph.monitor.history.files import Broken, scan, to_table, write_spool
from heliograph.monitor.history.fresh import Job, read_units
from heliograph.monitor.history.merge import Merger, merge, merge_spool
from heliograph.monitor.history.rollup import Threads, rollup
from heliograph.monitor.history.schema import HISTORY, LABELS, PERCENTILES, LatencyInterval, arrow_schema
from tests.history.recordings import NOON, SECOND, damaged_at_its_end, interval, latencies, sample_spool

HOUR_NS = 3600 * SECOND


def direct(rows: list[LatencyInterval], *, hourly: bool = True) -> dict[tuple[int, str], np.ndarray]:
    """Counts by (hour, topic), added with numpy one by one."""
    sums: dict[tuple[int, str], np.ndarray] = defaultdict(lambda: np.uint64(0))
    for row in rows:
        counts = np.frombuffer(_hdr.decode(row.h)[0], dtype=np.uint64)
        hour = row.ts_ns // HOUR_NS * HOUR_NS if hourly else 0
        sums[hour, row.topic] = sums[hour, row.topic] + counts
    return dict(sums)


def check(table: pa.Table, rows: list[LatencyInterval]) -> None:
    """The table holds exactly the hours of the rows."""
    expected = direct(rows)
    found = {(int(row["ts"].timestamp()) * SECOND, row["topic"]): row for row in table.to_pylist()}
    assert found.keys() == expected.keys()
    assert table.num_rows == len(expected)
    for key, counts in expected.items():
        row = found[key]
        body, *shape = _hdr.decode(row["h"])
        assert body == counts.tobytes()
        n, low, high, _ = _hdr.summary(counts, *shape)
        assert (row["n"], row["min"], row["max"]) == (n, low, high)
        assert [row[name] for name in PERCENTILES] == _hdr.quantiles(counts, *shape, list(PERCENTILES.values()))
    assert sum(table["intervals"].to_pylist()) == len(rows)
    assert sum(table["sum"].to_pylist()) == sum(row.sum for row in rows)


def test_hours_are_exactly_the_sum_of_their_intervals(tmp_path: Path) -> None:
    rows = sample_spool(tmp_path, hours=5)
    table, problems = merge_spool(tmp_path)
    assert problems == []
    check(table, rows)


@pytest.mark.parametrize("seed", range(3))
def test_any_order_and_any_partial_merges_give_the_same_table(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_module, "_COMPACT_BYTES", 20_000)
    rng = random.Random(seed)
    rows = [
        interval(latencies(seq, 50), seq=seq, at_s=rng.uniform(0, 7200), topic=rng.choice("AB")) for seq in range(60)
    ]
    expected, _ = merge(to_table(rows))
    rng.shuffle(rows)
    merger = Merger()
    while rows:
        size = rng.randint(1, 9)
        merger.add(to_table(rows[:size]))
        rows = rows[size:]
    assert merger.result().equals(expected)


def test_rows_before_the_damage_of_a_file_are_not_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_module, "_GATHER_ROWS", 2)  # so that some rows are merged before the damage is found
    good = [interval([1000 + seq], seq=seq) for seq in range(12)]
    write_spool(tmp_path, good, "s0", 0)
    lost = [interval([5], seq=seq, source="s1") for seq in range(12)]
    damaged = damaged_at_its_end(tmp_path / "other", lost, monkeypatch)
    table, problems = merge_spool(tmp_path)
    check(table, good)
    assert [broken.path for broken, _ in problems] == [str(damaged)]
    part, found = read_units([Job(unit, {}) for unit in scan(tmp_path).units])
    assert part["n"].to_pylist() == [12]
    assert found.merged == {NOON // 1000: {"s0": [(0, 11)]}}
    assert [broken.path for broken, _ in found.problems] == [str(damaged)]


def test_builds_and_hosts_are_added_only_on_request() -> None:
    rows = [
        interval([1], seq=0, build="a", host="x"),
        interval([2], seq=1, build="b", host="x"),
        replace(interval([3], seq=2, build="b", host="x", level="2"), clock_error_ns=70),
    ]
    table, _ = merge(to_table(rows))
    assert sorted((row["build"], row["level"], row["n"]) for row in table.to_pylist()) == [
        ("a", "", 1),
        ("b", "", 1),
        ("b", "2", 1),
    ]
    (row,) = merge(table, by=LABELS)[0].to_pylist()
    assert (row["n"], row["host"], row["build"], row["clock_error_ns"]) == (3, "x", "", 70)
    assert [row["n"] for row in merge(table, by=(*LABELS, "build"))[0].to_pylist()] == [1, 2]


def test_without_a_period_a_row_spans_all_its_intervals() -> None:
    rows = [interval([1], seq=0, at_s=30), interval([2], seq=1, at_s=7200)]
    table, _ = merge(to_table(rows), None)
    (row,) = table.to_pylist()
    assert row["ts"].timestamp() == NOON / SECOND + 30
    assert row["len_ms"] == 7_180_000
    assert (row["n"], row["intervals"]) == (2, 2)


def test_digits_and_lowest_are_never_mixed_and_highest_becomes_the_largest() -> None:
    shapes = [(3, 1, 60_000_000_000), (3, 1, 1_000_000_000), (2, 1, 60_000_000_000), (3, 1000, 60_000_000_000)]
    rows = [interval([5000, 9000], seq=index, shape=shape) for index, shape in enumerate(shapes)]
    table, refused = merge(to_table(rows))
    assert not refused
    found = {(row["digits"], row["lowest"], row["highest"]): row["n"] for row in table.to_pylist()}
    assert found == {(3, 1, 60_000_000_000): 4, (2, 1, 60_000_000_000): 2, (3, 1000, 60_000_000_000): 2}


def test_rows_that_cannot_be_are_left_out_by_reason_and_the_rest_is_exact() -> None:
    good = [interval(latencies(seq, 40), seq=seq) for seq in range(4)]
    bad = [
        replace(interval([1, 2], seq=10), n=3),
        replace(interval([1, 2], seq=11), h=b"nonsense"),
        replace(interval([1, 2], seq=12), digits=2),
        replace(interval([1, 2], seq=13), digits=77),
        replace(interval([1, 2], seq=14), highest=100),
        replace(interval([1, 2], seq=15), sum=10**15, h=b""),
    ]
    table, refused = merge(to_table([*good, *bad]))
    check(table, good)
    assert sum(refused.values()) == len(bad)
    reasons = " / ".join(sorted(refused))
    for part in ("another number of values", "not an HdrHistogram", "another layout", "77 digits", "ends before"):
        assert part in reasons


def test_rows_without_values_keep_what_they_dropped() -> None:
    rows = [replace(interval([], seq=0), dropped=4), interval([7, 9], seq=1)]
    (row,) = merge(to_table(rows))[0].to_pylist()
    assert (row["n"], row["dropped"], row["min"], row["max"], row["intervals"]) == (2, 4, 7, 9, 2)


def test_nothing_merges_to_nothing(tmp_path: Path) -> None:
    empty = arrow_schema(HISTORY).empty_table()
    assert merge(empty)[0].equals(empty)
    assert merge_spool(tmp_path)[0].equals(empty)


def test_history_rows_merge_again() -> None:
    rows = [interval(latencies(seq, 30), seq=seq, at_s=1800 * seq, topic="A") for seq in range(8)]
    hours, _ = merge(to_table(rows))
    assert hours.num_rows == 4
    again, _ = merge(hours, None)
    at_once, _ = merge(to_table(rows), None)
    assert again["h"].equals(at_once["h"])
    assert again["intervals"].to_pylist() == [8]


def test_what_could_not_be_used_is_named_with_its_file(tmp_path: Path) -> None:
    good = sample_spool(tmp_path)
    write_spool(tmp_path, [replace(interval([1], seq=0, source="s1"), n=9)], "s1", 0)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    table, problems = merge_spool(tmp_path)
    check(table, good)
    assert {(Path(broken.path).name, rows) for broken, rows in problems} == {
        ("broken.parquet", 0),
        ("s1-000000.parquet", 1),
    }
    assert all(isinstance(broken, Broken) and broken.reason for broken, _ in problems)


def test_a_file_read_in_several_batches_is_exact_and_one_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [interval(latencies(number, 40), at_s=number, seq=number) for number in range(9)]
    rows = [replace(row, n=row.n + 1) if row.seq % 3 == 0 else row for row in rows]
    write_spool(tmp_path, rows, "a", 0)
    monkeypatch.setattr(files_module, "_BATCH_ROWS", 2)
    monkeypatch.setattr(merge_module, "_GATHER_ROWS", 2)
    table, problems = merge_spool(tmp_path)
    assert table["intervals"].to_pylist() == [6]
    assert table["n"].to_pylist() == [240]
    assert [rows for _, rows in problems] == [3]


def test_a_fault_of_the_merge_is_not_taken_for_damage_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault is to be seen; a file named as damaged would be left out of the result."""
    sample_spool(tmp_path / "spool")
    monkeypatch.setattr(merge_module, "_GATHER_ROWS", 1)  # so that rows are merged while a file is read

    def faulty(*args: object) -> None:
        raise ValueError("a fault of the merge")

    monkeypatch.setattr(merge_module, "_group", faulty)
    with pytest.raises(ValueError, match="a fault of the merge"):
        merge_spool(tmp_path / "spool")
    with pytest.raises(ValueError, match="a fault of the merge"):
        rollup(Threads(2), tmp_path / "spool", tmp_path / "history")


def test_progress_ends_at_the_number_of_rows(tmp_path: Path) -> None:
    rows = sample_spool(tmp_path)
    told: list[tuple[int, int]] = []
    merge_spool(tmp_path, progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (len(rows), len(rows))
    assert told == sorted(told)
