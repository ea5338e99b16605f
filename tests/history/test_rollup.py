"""The roll-up on Spark: exactly the direct merge, the same when run again, and not stopped by what is broken."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import read_history, write_spool
from heliograph.monitor.history.lock import FolderLock
from heliograph.monitor.history.merge import merge_spool
from heliograph.monitor.history.rollup import rollup
from tests.history.recordings import interval, latencies, sample_spool

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

ORDER = [(name, "ascending") for name in ("ts", "instance", "topic", "stream", "metric", "tag", "digits", "lowest")]


def hours(history: Path) -> pa.Table:
    """All hours, in the order the direct merge gives them."""
    table, broken = read_history(history)
    assert broken == []
    return table.sort_by(ORDER)


def test_hours_equal_a_direct_merge(spark: SparkSession, tmp_path: Path) -> None:
    rows = sample_spool(tmp_path / "spool", files=5, hours=30)
    done = rollup(spark, tmp_path / "spool", tmp_path / "history")
    direct, _ = merge_spool(tmp_path / "spool")
    assert hours(tmp_path / "history").equals(direct)
    assert (done.intervals, done.values) == (len(rows), sum(row.n for row in rows))
    assert done.hours == len(set(direct["ts"].to_pylist()))
    assert (done.kept, done.problems) == ((), ())
    first = tmp_path / "history" / "date=2025-11-21" / "hour=12"
    assert len(list(first.glob("*.parquet"))) == 1


def test_running_again_changes_nothing_and_copies_count_once(spark: SparkSession, tmp_path: Path) -> None:
    sample_spool(tmp_path / "spool")
    rollup(spark, tmp_path / "spool", tmp_path / "history")
    once = hours(tmp_path / "history")
    for path in list((tmp_path / "spool").rglob("*.parquet")):
        shutil.copy(path, path.with_name(f"copy-of-{path.name}"))
    rollup(spark, tmp_path / "spool", tmp_path / "history")
    assert hours(tmp_path / "history").equals(once)
    assert sorted(path.name for path in (tmp_path / "history").iterdir()) == [".lock", "date=2025-11-21"]


def test_hours_grow_with_the_spool_and_others_stay(spark: SparkSession, tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    write_spool(spool, [interval(latencies(0, 9), seq=0)], "s0", 0)
    write_spool(spool, [interval(latencies(1, 9), seq=1, at_s=7200)], "s0", 1)
    rollup(spark, spool, history)
    kept = sorted((history / "date=2025-11-21" / "hour=14").iterdir())
    (spool / "date=2025-11-21" / "s0-000001.parquet").unlink()
    write_spool(spool, [interval(latencies(2, 9), seq=2, at_s=60)], "s0", 2)
    assert rollup(spark, spool, history).hours == 1
    assert hours(history)["intervals"].to_pylist() == [2, 1]
    assert sorted((history / "date=2025-11-21" / "hour=14").iterdir()) == kept


def test_an_hour_never_shrinks_unless_told_to(spark: SparkSession, tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    for number in range(2):
        write_spool(spool, [interval(latencies(number, 9), seq=number)], "s0", number)
    rollup(spark, spool, history)
    (spool / "date=2025-11-21" / "s0-000001.parquet").unlink()
    done = rollup(spark, spool, history)
    assert (done.hours, done.kept) == (0, ("date=2025-11-21/hour=12",))
    assert hours(history)["intervals"].to_pylist() == [2]
    assert rollup(spark, spool, history, replace=True).kept == ()
    assert hours(history)["intervals"].to_pylist() == [1]


def test_broken_files_and_rows_are_named_and_nothing_else_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    sample_spool(spool)
    direct, _ = merge_spool(spool)
    write_spool(spool, [replace(interval([1, 2], seq=0, source="s1"), n=9)], "s1", 0)
    (spool / "empty.parquet").write_bytes(b"")
    (flipped,) = write_spool(spool, [interval([value], seq=value, source="s2") for value in range(200)], "s2", 0)
    content = bytearray(flipped.read_bytes())
    content[len(content) // 3] ^= 1
    flipped.write_bytes(content)
    done = rollup(spark, spool, tmp_path / "history")
    assert hours(tmp_path / "history").equals(direct)
    assert [(Path(broken.path).name, rows) for broken, rows in done.problems] == [
        ("s1-000000.parquet", 1),
        ("s2-000000.parquet", 0),
        ("empty.parquet", 0),
    ]


def test_an_hour_set_aside_by_a_killed_run_is_put_back(spark: SparkSession, tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    sample_spool(spool)
    rollup(spark, spool, history)
    before = hours(history)
    aside = history / ".old-99" / "date=2025-11-21"
    aside.mkdir(parents=True)
    (history / "date=2025-11-21" / "hour=12").rename(aside / "hour=12")
    (history / ".tmp-99").mkdir()
    shutil.rmtree(spool)
    spool.mkdir()
    assert rollup(spark, spool, history).hours == 0
    assert hours(history).equals(before)
    assert sorted(path.name for path in history.iterdir()) == [".lock", "date=2025-11-21"]


def test_two_roll_ups_do_not_write_one_history_at_once(spark: SparkSession, tmp_path: Path) -> None:
    sample_spool(tmp_path / "spool", files=1)
    with (
        FolderLock(tmp_path / "history", "busy"),
        pytest.raises(UserError, match="another roll-up is writing the history"),
    ):
        rollup(spark, tmp_path / "spool", tmp_path / "history")


def test_a_history_that_cannot_be_written_is_told(spark: SparkSession, tmp_path: Path) -> None:
    sample_spool(tmp_path / "spool", files=1)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot be written"):
        rollup(spark, tmp_path / "spool", tmp_path / "file" / "history")
