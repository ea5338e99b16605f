"""The roll-up, on threads and on Spark: exactly the direct merge, each interval once, and bad input named."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heliograph.engine import _store
from heliograph.engine.store.archive import Archive
from heliograph.engine.store.export import Selection, export
from heliograph.monitor.errors import UserError
from heliograph.monitor.history import rollup as rollup_module
from heliograph.monitor.history import rollup_spark
from heliograph.monitor.history.files import Unit, to_table, write_spool, write_table
from heliograph.monitor.history.fresh import Job, read_units
from heliograph.monitor.history.hours import Manifest, commit, folder_of, load, read_history
from heliograph.monitor.history.lock import FolderLock
from heliograph.monitor.history.merge import merge, merge_spool
from heliograph.monitor.history.rollup import Plan, RolledUp, Runner, Threads, Written, rollup
from heliograph.monitor.history.rollup_spark import OnSpark
from heliograph.monitor.history.schema import LatencyInterval
from tests.history.recordings import NOON, interval, latencies, sample_spool

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

ORDER = [(name, "ascending") for name in ("ts", "instance", "topic", "stream", "metric", "tag", "digits", "lowest")]
NOON_US = NOON // 1000
MakeRunner = Callable[[], Runner]


@pytest.fixture(params=["threads", "spark"])
def runner(request: pytest.FixtureRequest) -> MakeRunner:
    if request.param == "threads":
        return lambda: Threads(2)
    spark: SparkSession = request.getfixturevalue("spark")
    return lambda: OnSpark(spark)


def hours(history: Path) -> pa.Table:
    """All hours, in the order the direct merge gives them."""
    table, broken = read_history(history)
    assert broken == []
    return table.sort_by(ORDER)


def merged(*rows: Iterable[LatencyInterval]) -> pa.Table:
    """The hours of rows, merged at once."""
    return merge(to_table([row for some in rows for row in some]))[0].sort_by(ORDER)


def files_of(history: Path) -> dict[str, int]:
    """All files with their time of change."""
    return {str(path.relative_to(history)): path.stat().st_mtime_ns for path in history.rglob("*") if path.is_file()}


def test_hours_equal_a_direct_merge(runner: MakeRunner, tmp_path: Path) -> None:
    rows = sample_spool(tmp_path / "spool", files=5, hours=30)
    done = rollup(runner(), tmp_path / "spool", tmp_path / "history")
    direct, _ = merge_spool(tmp_path / "spool")
    assert hours(tmp_path / "history").equals(direct)
    assert (done.intervals, done.values) == (len(rows), sum(row.n for row in rows))
    assert done.hours == len(set(direct["ts"].to_pylist()))
    assert (done.kept, done.problems) == ((), ())
    first = tmp_path / "history" / "1h" / "date=2025-11-21" / "hour=12"
    assert len(list(first.glob("*.parquet"))) == 1


def test_running_again_changes_nothing_and_copies_count_once(runner: MakeRunner, tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    sample_spool(spool)
    rollup(runner(), spool, history)
    once, files = hours(history), files_of(history)
    for path in list(spool.rglob("*.parquet")):
        shutil.copy(path, path.with_name(f"copy-of-{path.name}"))
    assert rollup(runner(), spool, history) == RolledUp(0, 0, 0, (), ())
    assert hours(history).equals(once)
    assert {name for name in files_of(history) if name.startswith("1h/")} == {
        name for name in files if name.startswith("1h/")
    }
    assert sorted(path.name for path in history.iterdir()) == [".lock", "1h", "merged-files.json"]


def test_two_hosts_fill_one_history(runner: MakeRunner, tmp_path: Path) -> None:
    """The second spool has the same hour: neither host may lose it."""
    history = tmp_path / "history"
    of_a = [interval(latencies(seq, 50), seq=seq, at_s=seq, source="host-a", instance="a") for seq in range(4)]
    of_b = [interval(latencies(9 + seq, 50), seq=seq, at_s=seq, source="host-b", instance="b") for seq in range(2)]
    write_spool(tmp_path / "a", of_a, "host-a", 0)
    write_spool(tmp_path / "b", of_b, "host-b", 0)
    rollup(runner(), tmp_path / "a", history)
    done = rollup(runner(), tmp_path / "b", history)
    assert (done.intervals, done.hours, done.kept) == (2, 1, ())
    assert hours(history).equals(merged(of_a, of_b))


def test_late_intervals_enter_after_the_spool_was_pruned(runner: MakeRunner, tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    early = [interval(latencies(0, 9), seq=0), interval(latencies(1, 9), seq=1, at_s=7200)]
    write_spool(spool, early, "s0", 0)
    rollup(runner(), spool, history)
    untouched = files_of(folder_of(history, NOON_US + 7_200_000_000))
    shutil.rmtree(spool)
    late = [interval(latencies(2, 9), seq=2, at_s=60)]
    write_spool(spool, late, "s0", 1)
    done = rollup(runner(), spool, history)
    assert (done.intervals, done.hours, done.kept, done.problems) == (1, 1, (), ())
    assert hours(history).equals(merged(early, late))
    assert files_of(folder_of(history, NOON_US + 7_200_000_000)) == untouched, "an hour without news is not written"
    assert rollup(runner(), spool, history).intervals == 0


def test_a_hole_in_the_numbers_is_filled_later(tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    rows = [interval(latencies(seq, 9), seq=seq, at_s=seq) for seq in range(9)]
    for number, part in enumerate(([0, 1], [4, 6, 8])):
        write_spool(spool, [rows[seq] for seq in part], "s0", number)
    rollup(Threads(), spool, history)
    assert load(folder_of(history, NOON_US)).merged == {"s0": [(0, 1), (4, 4), (6, 6), (8, 8)]}
    write_spool(spool, rows, "s0", 2)
    assert rollup(Threads(), spool, history).intervals == 4
    assert load(folder_of(history, NOON_US)).merged == {"s0": [(0, 8)]}
    assert hours(history).equals(merged(rows))


def test_merged_files_are_not_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    sample_spool(spool)
    rollup(Threads(), spool, history)
    write_spool(spool, [interval([5], seq=500, at_s=30)], "s0", 500)
    opened = []
    whole = rollup_module.scan

    def noted(folder: Path, skip: Callable[[str], bool] | None) -> object:
        found = whole(folder, skip)
        opened.extend(path for unit in found.units for path in unit.paths)
        return found

    monkeypatch.setattr(rollup_module, "scan", noted)
    assert rollup(Threads(), spool, history).intervals == 1
    assert [Path(path).name for path in opened] == ["s0-000500.parquet"]
    (history / "merged-files.json").write_text("{ lost")
    assert rollup(Threads(), spool, history).intervals == 0, "the ledger only saves time"
    assert len(opened) == 1 + 4


def test_replace_makes_the_hours_of_the_spool_anew(runner: MakeRunner, tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    for number in range(2):
        write_spool(spool, [interval(latencies(number, 9), seq=number)], "s0", number)
    rollup(runner(), spool, history)
    (spool / "date=2025-11-21" / "s0-000001.parquet").unlink()
    assert rollup(runner(), spool, history).hours == 0
    assert hours(history)["intervals"].to_pylist() == [2], "an hour never shrinks unless told to"
    rollup(runner(), spool, history, replace=True)
    assert hours(history)["intervals"].to_pylist() == [1]
    assert load(folder_of(history, NOON_US)).merged == {"s0": [(0, 0)]}


def test_broken_files_and_rows_are_named_and_nothing_else_is_lost(runner: MakeRunner, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    sample_spool(spool)
    direct, _ = merge_spool(spool)
    write_spool(spool, [replace(interval([1, 2], seq=0, source="s1"), n=9)], "s1", 0)
    (spool / "empty.parquet").write_bytes(b"")
    (flipped,) = write_spool(spool, [interval([value], seq=value, source="s2") for value in range(200)], "s2", 0)
    content = bytearray(flipped.read_bytes())
    content[len(content) // 3] ^= 1
    flipped.write_bytes(content)
    done = rollup(runner(), spool, tmp_path / "history")
    assert hours(tmp_path / "history").equals(direct)
    assert [(Path(broken.path).name, rows) for broken, rows in done.problems] == [
        ("s1-000000.parquet", 1),
        ("s2-000000.parquet", 0),
        ("empty.parquet", 0),
    ]
    content[len(content) // 3] ^= 1
    flipped.write_bytes(content)
    assert rollup(runner(), spool, tmp_path / "history").intervals == 200, "an unreadable file is tried again"


def test_an_interval_across_hours_keeps_its_length(tmp_path: Path) -> None:
    long = replace(interval([7], seq=0, at_s=1800), len_ms=3 * 3_600_000)
    write_spool(tmp_path / "spool", [long, interval([8], seq=1, at_s=0)], "s0", 0)
    rollup(Threads(), tmp_path / "spool", tmp_path / "history")
    (row,) = hours(tmp_path / "history").to_pylist()
    assert row["covered_ms"] == 3 * 3_600_000 + 10_000
    assert (row["first_ts"].timestamp(), row["last_ts"].timestamp()) == (NOON / 1e9, NOON / 1e9 + 1800 + 3 * 3600)


def test_a_series_in_several_parts_of_an_hour_stays_whole(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour of many series is written by several tasks; a part without new rows keeps its committed ones."""
    monkeypatch.setattr(rollup_spark, "_PART_ROWS", 5)
    spool, history = tmp_path / "spool", tmp_path / "history"
    rows = [interval(latencies(seq, 9), seq=seq, topic=f"T{seq % 12}") for seq in range(24)]
    write_spool(spool, rows, "s0", 0)
    rollup(OnSpark(spark), spool, history)
    assert len(load(folder_of(history, NOON_US)).files) == 3
    assert hours(history).equals(merged(rows))
    more = [interval(latencies(seq, 9), seq=seq, topic=f"T{seq % 12}") for seq in range(24, 30)]
    write_spool(spool, more, "s0", 1)
    assert rollup(OnSpark(spark), spool, history).intervals == 6
    assert hours(history).equals(merged(rows, more))


# -- the archive of a message store, which needs the session too -------------------------------------------------------


def test_spark_reads_the_archive_of_a_store(spark: SparkSession, tmp_path: Path) -> None:
    """Values, partitions and hostile names; files that are being written are not seen."""
    store, out = tmp_path / "store", tmp_path / "out"
    store.mkdir()
    topics = ["PRICES.FX", "a/../../b", "%41=~", "date=1"]
    messages = [(topics[i % 4], 0, 2**63 + i, 0, NOON + i * 20 * 3_600_000_000_000, 1, b"%d" % i) for i in range(8)]
    _store.append(store, b"\1\2\3\4\5\6", 7500, "", messages, 300, 1 << 20)
    with Archive(out) as archive:
        export(store, archive, Selection(has_unfinished=True))
        (archive.work / "half.tmp").write_bytes(b"PAR1")
    rows = spark.read.parquet(str(out)).orderBy("position").collect()
    assert [(row.topic, row.stream, int(row.number), row.receive_ns, bytes(row.payload)) for row in rows] == [
        (topic, "010203040506:7500", number, at, data) for topic, _, number, _, at, _, data in messages
    ]
    assert [row.date for row in rows] == [datetime.fromtimestamp(row[4] // 10**9, UTC).date() for row in messages]
    assert [row.time.timestamp() for row in rows] == [row[4] / 1e9 for row in messages]
    assert {(row.submit_ns, row.sequence, row.recovered) for row in rows} == {(None, None, True)}


# -- killed runs, other writers, damage -------------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for the end of the process: nothing but `finally` runs after it."""


class KilledAfter:
    """Threads that end after some written hours, before any of them is committed."""

    def __init__(self, hours: int) -> None:
        self._threads = Threads(1)
        self._hours = hours
        self.read = self._threads.read

    def write(self, plan: Plan) -> Iterable[Written]:
        for number, written in enumerate(self._threads.write(plan)):
            if number == self._hours:
                raise Killed
            yield written


@pytest.mark.parametrize("written", [0, 1, 3])
def test_a_run_killed_while_it_writes_leaves_the_old_hours_and_the_next_cleans_up(tmp_path: Path, written: int) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    rows = sample_spool(spool, hours=4)
    with pytest.raises(Killed):
        rollup(KilledAfter(written), spool, history)
    assert hours(history).num_rows == 0
    rollup(Threads(), spool, history)
    assert hours(history).equals(merged(rows))
    counted = sum(len(load(folder).files) for folder in (history / "1h").glob("*/*"))
    assert len(list(history.rglob("*.parquet"))) == counted
    assert list(history.glob(".*")) == [history / ".lock"]


@pytest.mark.parametrize("commits", [0, 1, 2])
def test_a_run_killed_between_two_commits_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    rows = sample_spool(spool, hours=4)
    left = [commits]

    def killed(folder: Path, manifest: Manifest) -> None:
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        commit(folder, manifest)

    monkeypatch.setattr(rollup_module, "commit", killed)
    with pytest.raises(Killed):
        rollup(Threads(), spool, history)
    assert len(set(hours(history)["ts"].to_pylist())) == commits
    monkeypatch.setattr(rollup_module, "commit", commit)
    rollup(Threads(), spool, history)
    assert hours(history).equals(merged(rows))


def test_two_roll_ups_do_not_write_one_history_at_once(tmp_path: Path) -> None:
    sample_spool(tmp_path / "spool", files=1)
    with (
        FolderLock(tmp_path / "history", "busy"),
        pytest.raises(UserError, match="another roll-up is writing the history"),
    ):
        rollup(Threads(), tmp_path / "spool", tmp_path / "history")


def test_a_commit_of_another_writer_is_not_overwritten(tmp_path: Path) -> None:
    """Two machines do not share the lock of a directory on every file system."""
    commit(tmp_path, Manifest(1, (), {"theirs": [(0, 9)]}))
    with pytest.raises(UserError, match="another writer has committed this hour"):
        commit(tmp_path, Manifest(1, (), {"mine": [(0, 9)]}))
    assert load(tmp_path).merged == {"theirs": [(0, 9)]}
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["manifest-000001.json"]


class WritesElsewhere:
    """A worker whose disk is not this machine's."""

    def __init__(self) -> None:
        self._threads = Threads()
        self.read = self._threads.read

    def write(self, plan: Plan) -> Iterable[Written]:
        for written in self._threads.write(plan):
            (folder_of(Path(plan.history), written.begin_us) / written.name).unlink()
            yield written


def test_workers_that_write_elsewhere_are_an_error(tmp_path: Path) -> None:
    sample_spool(tmp_path / "spool")
    with pytest.raises(UserError, match=r"a worker wrote .*does not see it.*share"):
        rollup(WritesElsewhere(), tmp_path / "spool", tmp_path / "history")
    assert hours(tmp_path / "history").num_rows == 0


def test_workers_that_do_not_see_the_spool_are_named(tmp_path: Path) -> None:
    unit = Unit((str(tmp_path / "gone.parquet"),), 1, ("s0",), 0, 0)
    _, found = read_units([Job(unit, {})], "worker-7")
    ((broken, rows),) = found.problems
    assert rows == 0
    assert "the worker on worker-7 does not see it" in broken.reason


@pytest.mark.parametrize("damage", ["data", "manifest", "gone"])
def test_an_hour_that_cannot_be_read_stays_as_it_is(runner: MakeRunner, tmp_path: Path, damage: str) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    write_spool(spool, [interval([1], seq=0), interval([2], seq=1, at_s=3600)], "s0", 0)
    rollup(runner(), spool, history)
    folder = folder_of(history, NOON_US)
    target = next(folder.glob("manifest-*" if damage == "manifest" else "*.parquet"))
    target.unlink() if damage == "gone" else target.write_bytes(b"{}" if damage == "manifest" else b"PAR1")
    before = files_of(folder)
    write_spool(spool, [interval([3], seq=2, at_s=1), interval([4], seq=3, at_s=3601)], "s0", 1)
    done = rollup(runner(), spool, history)
    assert (done.intervals, done.hours) == (1, 1), "the other hour takes its interval"
    assert [broken.path for broken, _ in done.problems] == [str(folder)]
    assert "cannot be read" in done.problems[0][0].reason
    assert {name for name in files_of(folder) if not name.startswith(".")} == set(before)
    _, broken = read_history(history)
    assert [Path(one.path).name for one in broken] == ["hour=12"]


def test_a_history_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    sample_spool(tmp_path / "spool", files=1)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot be written"):
        rollup(Threads(), tmp_path / "spool", tmp_path / "file" / "history")


# -- hours of earlier versions ----------------------------------------------------------------------------------------


def earlier(history: Path, rows: list[LatencyInterval], folder: str = "date=2025-11-21/hour=12") -> None:
    """Write an hour as versions before manifests did."""
    table = merge(to_table(rows))[0].drop_columns(["first_ts", "last_ts", "covered_ms"])
    write_table(history / folder / "part-0.parquet", table)


def test_a_history_of_an_earlier_version_is_read_and_taken_over(runner: MakeRunner, tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    rows = [interval(latencies(seq, 9), seq=seq, at_s=seq) for seq in range(3)]
    others = [interval(latencies(seq, 9), seq=seq, at_s=3600, instance="b") for seq in range(3, 5)]
    earlier(history, rows)
    earlier(history, others, ".old-77/date=2025-11-21/hour=13")  # a killed run had set it aside
    assert hours(history)["intervals"].to_pylist() == [3]
    write_spool(spool, rows, "s0", 0)
    write_spool(spool, [interval([9], seq=5, at_s=3700, instance="c")], "s0", 1)
    done = rollup(runner(), spool, history)
    assert done.kept == ()
    assert [row["intervals"] for row in hours(history).to_pylist()] == [3, 2, 1]
    assert not load(folder_of(history, NOON_US)).adopted
    assert sorted(path.name for path in history.iterdir()) == [".lock", "1h", "merged-files.json"]
    assert rollup(runner(), spool, history) == RolledUp(0, 0, 0, (), ())


def test_an_adopted_hour_keeps_series_of_which_the_spool_has_less(runner: MakeRunner, tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    rows = [interval(latencies(seq, 9), seq=seq, at_s=seq) for seq in range(4)]
    earlier(history, rows)
    write_spool(spool, rows[3:], "s0", 0)
    done = rollup(runner(), spool, history)
    assert done.kept == ("2025-11-21T12: 1 intervals left out",)
    assert hours(history)["intervals"].to_pylist() == [4]
    late = interval(latencies(8, 9), seq=8, at_s=9)
    write_spool(spool, [late], "s0", 1)
    assert rollup(runner(), spool, history).kept == (), "from now on the hour knows what it has"
    assert hours(history)["intervals"].to_pylist() == [5]
