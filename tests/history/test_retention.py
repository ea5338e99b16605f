"""Pruned histories: the same counts before, during and after, at every kill; late intervals are refused by name."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history import hours as hours_module
from heliograph.monitor.history import retention
from heliograph.monitor.history.days import Compacted, compact
from heliograph.monitor.history.files import write_spool, write_table
from heliograph.monitor.history.hours import (
    DataFile,
    Manifest,
    closed_days,
    commit,
    folder_of,
    is_of_day,
    load,
    read_history,
    read_hour,
    read_parts,
)
from heliograph.monitor.history.lock import FolderLock
from heliograph.monitor.history.merge import DAY_US, merge
from heliograph.monitor.history.retention import Pruned, prune
from heliograph.monitor.history.rollup import Threads, rollup
from heliograph.monitor.history.rollup_spark import OnSpark
from tests.history.recordings import NOON, interval
from tests.history.test_commands import run
from tests.history.test_days import DAY, HOUR, NO_AGE, direct, made
from tests.history.test_rollup import ORDER, Killed, earlier, files_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def compacted(tmp_path: Path, *, seed: int = 0, count: int = 40, over_hours: int = 11) -> tuple[Path, list[Any]]:
    """A history with days."""
    history, rows = made(tmp_path, seed=seed, count=count, over_hours=over_hours)
    compact(history, NO_AGE)
    return history, rows


def whole(history: Path) -> pa.Table:
    """All counts of a history, merged to days; no file is unreadable."""
    table, broken = read_history(history)
    assert broken == []
    return merge(table, DAY_US)[0].sort_by(ORDER)


def data_files(history: Path) -> list[str]:
    """The data files below the hours and below the days."""
    return sorted(str(path.relative_to(history)) for path in history.rglob("*.parquet"))


def switched(history: Path, date: str = DAY) -> Path:
    """Commit by hand that a day stands for its hours; returns its directory."""
    day = history / "1d" / date
    old = load(day)
    commit(day, Manifest(old.number + 1, old.files, {}, old.intervals, old.values, hours=old.hours,
                         stands_for_hours=True))  # fmt: skip
    return day


# -- readers ----------------------------------------------------------------------------------------------------------


def test_a_reader_takes_the_day_or_its_hours(tmp_path: Path) -> None:
    history, rows = compacted(tmp_path, over_hours=70)
    assert not any(is_of_day(read_history(history)[0]).to_pylist())
    switched(history)
    table = read_history(history)[0]
    of_day = table.filter(is_of_day(table))
    assert {ts.date().isoformat() for ts in of_day["ts"].to_pylist()} == {"2025-11-21"}
    assert whole(history).equals(direct(rows))
    shutil.rmtree(history / "1h" / DAY)
    assert whole(history).equals(direct(rows))


def test_the_manifest_of_a_closed_day_has_a_format_of_its_own(tmp_path: Path) -> None:
    """Earlier versions read format 2 only, and name a manifest of another format."""
    history, _ = compacted(tmp_path)
    before = [json.loads(path.read_text())["format"] for path in history.rglob("manifest-*.json")]
    assert set(before) == {2}
    prune(history, NO_AGE)
    after = [json.loads(path.read_text())["format"] for path in history.rglob("manifest-*.json")]
    assert set(after) == {3}
    assert len(after) == 1 + 24


@pytest.mark.parametrize("hour", range(11))
def test_a_reader_sees_one_side_while_a_prune_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hour: int) -> None:
    """The prune comes after the reader has read some hours of the day."""
    history, rows = compacted(tmp_path, count=120)
    left = [hour]

    def interrupted(folder: Path, files: tuple[DataFile, ...]) -> pa.Table:
        if left[0] == 0:
            left[0] = -1
            prune(history, NO_AGE)
        left[0] -= 1
        return read_hour(folder, files)

    with monkeypatch.context() as patch:
        patch.setattr(hours_module, "read_hour", interrupted)
        table, broken = read_history(history)
    assert left[0] < 0
    assert broken == []
    assert len(set(is_of_day(table).to_pylist())) == 1, "rows of hours and of the day are not mixed"
    assert merge(table, DAY_US)[0].sort_by(ORDER).equals(direct(rows))


def test_readers_beside_a_prune_always_see_all_counts(tmp_path: Path) -> None:
    history, rows = compacted(tmp_path, count=60, over_hours=90)
    expected = direct(rows)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(prune, history, NO_AGE)
        reads = 0
        while not running.done():
            assert whole(history).equals(expected)
            reads += 1
    assert len(running.result().days) == 5
    assert reads > 1


def test_a_lost_day_is_named_and_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    history, _ = compacted(tmp_path, count=120)
    prune(history, NO_AGE)
    shutil.rmtree(history / "1d" / DAY)
    table, broken = read_history(history)
    assert table.num_rows == 0
    assert [Path(one.path).name for one in broken] == [f"hour={hour}" for hour in range(12, 23)]
    (done,) = compact(history, NO_AGE).problems
    assert Path(done.path).name == DAY


def test_a_day_whose_manifest_cannot_be_read_is_named_and_its_hours_are_read(tmp_path: Path) -> None:
    history, rows = compacted(tmp_path)
    (history / "1d" / DAY / "manifest-000001.json").write_text("{")
    table, broken = read_history(history)
    assert [Path(one.path).name for one in broken] == [DAY]
    assert merge(table, DAY_US)[0].sort_by(ORDER).equals(direct(rows))


# -- the hours of old days --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_the_same_before_and_after(tmp_path: Path, seed: int) -> None:
    history, rows = compacted(tmp_path, seed=seed, count=120, over_hours=70)
    before = data_files(history)
    assert whole(history).equals(direct(rows))
    planned = prune(history, NO_AGE, dry_run=True)
    assert data_files(history) == before, "a dry run changes nothing"
    done = prune(history, NO_AGE)
    assert planned == done
    assert whole(history).equals(direct(rows))
    assert data_files(history) == [name for name in before if name.startswith("1d/")]
    assert (done.current, done.young, done.problems) == (0, 0, ())
    assert [one.day for one in done.days] == sorted({name[8:18] for name in before})
    assert sum(one.files for one in done.days) == len(before) - len(done.days)
    assert sum(one.intervals for one in done.days) == len(rows)
    files = files_of(history)
    assert prune(history, NO_AGE) == Pruned((), len(done.days), 0, ())
    assert compact(history, NO_AGE) == Compacted(0, len(done.days), 0, ()), "a pruned day is not built again"
    assert files_of(history) == files


def test_a_day_stays_until_it_has_the_age(tmp_path: Path) -> None:
    history, _ = compacted(tmp_path)
    end = datetime(2025, 11, 22, tzinfo=UTC)
    age = timedelta(days=90)
    assert prune(history, age, now=end + age - timedelta(microseconds=1)) == Pruned((), 0, 1, ())
    assert len(prune(history, age, now=end + age).days) == 1


def late_hour(history: Path) -> None:
    """An interval has come since the day was built."""
    write_spool(history.parent / "spool", [interval([9], seq=1000, at_s=60)], "s0", 1)
    rollup(Threads(), history.parent / "spool", history)


def no_day(history: Path) -> None:
    shutil.rmtree(history / "1d")


def damaged_day(history: Path) -> None:
    (path,) = (history / "1d" / DAY).glob("*.parquet")
    metadata = pq.read_metadata(path)
    content = bytearray(path.read_bytes())
    column = metadata.row_group(0).column(metadata.schema.names.index("h"))
    content[column.data_page_offset + column.total_compressed_size - 50] ^= 1
    path.write_bytes(content)


def missing_day_file(history: Path) -> None:
    next((history / "1d" / DAY).glob("*.parquet")).unlink()


def damaged_hour(history: Path) -> None:
    next((history / "1h").rglob("*.parquet")).write_bytes(b"PAR1")


def unreadable_hour(history: Path) -> None:
    next((history / "1h").rglob("manifest-*")).write_text("{")


def removed_hour(history: Path) -> None:
    shutil.rmtree(folder_of(history, NOON // 1000))


def other_rows(history: Path) -> None:
    """The day has the same numbers as its hours, and other counts."""
    day = history / "1d" / DAY
    old = load(day)
    table = read_hour(day, old.files)
    at = table.column_names.index("sum")
    changed = table.set_column(at, table.schema.field(at), pa.array([value + 1 for value in table["sum"].to_pylist()]))
    (day / old.files[0].name).unlink()
    write_table(day / old.files[0].name, changed)


def other_counts(history: Path) -> None:
    (path,) = (history / "1d" / DAY).glob("manifest-*")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"intervals": 41}))


def earlier_hour(history: Path) -> None:
    earlier(history, [interval([7], seq=0, at_s=-7200)], f"{DAY}/hour=10")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (late_hour, "its hour 12 has changed since; run `heliograph history compact` first"),
        (no_day, "it is not merged into a day yet; run `heliograph history compact` first"),
        (damaged_day, "CRC"),
        (missing_day_file, "No such file"),
        (damaged_hour, "Parquet"),
        (unreadable_hour, "the manifest cannot be read"),
        (removed_hour, "its hour 12 has changed since"),
        (other_rows, "does not have the rows of its hours"),
        (other_counts, "its manifest counts 41, those of its hours 40"),
        (earlier_hour, "it has hours of an earlier version"),
    ],
)
def test_a_day_that_does_not_repeat_its_hours_stays_and_is_named(
    tmp_path: Path, damage: Callable[[Path], None], reason: str
) -> None:
    history, _ = compacted(tmp_path)
    damage(history)
    before = files_of(history)
    done = prune(history, NO_AGE)
    assert (done.days, done.current) == ((), 0)
    assert [Path(broken.path).name for broken in done.problems] == [DAY]
    assert reason in done.problems[0].reason
    assert files_of(history) == before


def test_no_file_is_removed_while_a_closed_day_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history, _ = compacted(tmp_path)

    def killed(day: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(retention._Day, "clear", killed)
        with pytest.raises(Killed):
            prune(history, NO_AGE)
    damaged_day(history)
    before = files_of(history)
    (problem,) = prune(history, NO_AGE).problems
    assert Path(problem.path).name == DAY
    assert files_of(history) == before


# -- late intervals ---------------------------------------------------------------------------------------------------


@pytest.fixture(params=["threads", "spark"])
def runner(request: pytest.FixtureRequest) -> Callable[[], Any]:
    if request.param == "threads":
        return lambda: Threads(2)
    spark: SparkSession = request.getfixturevalue("spark")
    return lambda: OnSpark(spark)


def test_late_intervals_are_refused_by_name_and_others_enter(runner: Callable[[], Any], tmp_path: Path) -> None:
    """Also for an hour of the day that has no rows, and beside intervals of an open day in the same files."""
    history, rows = compacted(tmp_path)
    prune(history, NO_AGE)
    late = [interval([9], seq=1000 + at, at_s=at * HOUR) for at in (-12, 0, 11)]
    new = [interval([9], seq=2000, at_s=24 * HOUR)]
    path = write_spool(tmp_path / "spool", late, "s0", 1)[0]
    write_spool(tmp_path / "spool", new, "s0", 2)
    shutil.copy(path, path.with_name("copy.parquet"))
    done = rollup(runner(), tmp_path / "spool", history)
    assert (done.intervals, done.hours) == (1, 1)
    ((broken, refused),) = done.problems
    assert broken.path in {str(path), str(path.with_name("copy.parquet"))}
    assert refused == 3
    assert broken.reason.startswith("the hours of 2025-11-21 were pruned")
    assert whole(history).equals(direct(rows + new))


def test_repeated_intervals_of_a_pruned_day_are_recognized(tmp_path: Path) -> None:
    history, rows = compacted(tmp_path)
    prune(history, NO_AGE)
    (history / "merged-files.json").unlink()
    done = rollup(Threads(), tmp_path / "spool", history)
    assert (done.intervals, done.problems) == (0, ())
    assert whole(history).equals(direct(rows))


def test_replace_does_not_touch_a_pruned_day(tmp_path: Path) -> None:
    history, rows = compacted(tmp_path)
    prune(history, NO_AGE)
    done = rollup(Threads(), tmp_path / "spool", history, replace=True)
    assert done.intervals == 0
    assert [refused for _, refused in done.problems] == [len(rows)]
    assert whole(history).equals(direct(rows))


def test_the_roll_up_command_counts_and_names_what_it_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history, _ = compacted(tmp_path)
    prune(history, NO_AGE)
    write_spool(tmp_path / "spool", [interval([9], seq=1000), interval([9], seq=1001)], "s0", 1)
    assert run("rollup", "--no-spark", "--spool", tmp_path / "spool", "--history", history) == 1
    out, err = capsys.readouterr()
    assert "0 new intervals" in out
    assert "s0-000001.parquet: 2 rows left out: the hours of 2025-11-21 were pruned" in err


# -- killed runs, other writers, full disks ---------------------------------------------------------------------------

_CHANGING = ("link", "unlink", "mkdir", "fsync", "rename", "rmdir")


@contextmanager
def failing(
    patch: pytest.MonkeyPatch, at: int, error: Callable[[], BaseException], *, after: bool
) -> Iterator[list[str]]:
    """Let the file-system operation number `at`, and every one after it, fail: before it or after it is done."""
    done: list[str] = []

    def wrapped(name: str, whole: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any, **options: Any) -> Any:
            done.append(name)
            if len(done) > at + (1 if after else 0):
                raise error()
            result = whole(*arguments, **options)
            if len(done) > at:
                raise error()
            return result

        return operation

    with patch.context() as context:
        for name in _CHANGING:
            context.setattr(os, name, wrapped(name, getattr(os, name)))
        yield done


def full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("days_age", [None, NO_AGE], ids=["hours", "days"])
@pytest.mark.parametrize("how", ["killed-before", "killed-after", "full-disk"])
def test_a_run_that_fails_at_any_step_changes_no_count_and_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, days_age: timedelta | None
) -> None:
    """A killed process does nothing more: every later operation fails too."""
    made_once, rows = compacted(tmp_path / "made", count=6, over_hours=3)
    expected = direct(rows)
    monkeypatch.setattr(retention, "_HOURS", range(12, 16))  # all hours are treated alike; the last has no rows
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    at = 0
    while True:
        history = tmp_path / f"history-{at}"
        shutil.copytree(made_once, history)
        error, expected_error = (full, UserError) if how == "full-disk" else (Killed, Killed)
        with failing(monkeypatch, at, error, after=how == "killed-after") as done, suppress(expected_error):
            prune(history, NO_AGE, days_age)
        if len(done) <= at:
            break
        found = whole(history)
        is_removed = days_age is not None and found.num_rows == 0
        assert is_removed or found.equals(expected), f"{how} at operation {at}, {done[at]}"
        assert compact(history, NO_AGE).problems == ()
        assert prune(history, NO_AGE, days_age).problems == ()
        assert whole(history).num_rows == (0 if days_age is not None else expected.num_rows)
        assert days_age is not None or whole(history).equals(expected)
        left = [path for path in history.rglob("*") if path.is_file()]
        assert len(left) == 4 + (1 if days_age is not None else 2) + 2, left  # manifests, data; lock and ledger
        shutil.rmtree(history)
        at += 1
    assert at > 4 * 4


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history, _ = compacted(tmp_path)
    with (
        failing(monkeypatch, 9, full, after=False),
        pytest.raises(UserError, match=r"cannot be written: No space left"),
    ):
        prune(history, NO_AGE)


def test_two_writers_do_not_mix(tmp_path: Path) -> None:
    history, _ = compacted(tmp_path)
    with FolderLock(history, "busy"):
        with pytest.raises(UserError, match="another process is writing the history"):
            prune(history, NO_AGE)
        assert len(prune(history, NO_AGE, dry_run=True).days) == 1, "a dry run only reads"


@pytest.mark.parametrize("at_s", [60.0, -7200.0], ids=["hour-with-rows", "hour-without-rows"])
def test_an_hour_that_another_machine_commits_during_the_prune_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_s: float
) -> None:
    """Two machines do not share the lock of a directory on every file system."""
    history, rows = compacted(tmp_path)
    late = [interval([9], seq=1000, at_s=at_s)]
    write_spool(tmp_path / "late", late, "s9", 0)
    check = retention._Day.switch

    def overtaken(day: Any, hours: dict[Path, Manifest]) -> Manifest | None:
        planned = check(day, hours)
        shutil.copytree(history, tmp_path / "copy")
        rollup(Threads(), tmp_path / "late", tmp_path / "copy")  # our lock is held here
        shutil.copytree(tmp_path / "copy", history, dirs_exist_ok=True)
        return planned

    with monkeypatch.context() as patch:
        patch.setattr(retention._Day, "switch", overtaken)
        (problem,) = prune(history, NO_AGE).problems
    assert "another writer has committed this hour" in problem.reason
    assert whole(history).equals(direct(rows + late))
    assert compact(history, NO_AGE).written == 1
    assert prune(history, NO_AGE).problems == ()
    assert whole(history).equals(direct(rows + late))


@pytest.mark.parametrize("step", ["read", "write"])
def test_a_roll_up_that_a_prune_overtakes_commits_nothing(tmp_path: Path, step: str) -> None:
    """The same the other way round: the prune of another machine comes between two steps of the roll-up."""
    history, rows = compacted(tmp_path)
    write_spool(tmp_path / "late", [interval([9], seq=1000, at_s=60)], "s9", 0)

    class Overtaken:
        def __init__(self) -> None:
            self._threads = Threads(1)

        def read(self, jobs: Any) -> Any:
            found = self._threads.read(jobs)
            self._prune("read")
            return found

        def write(self, plan: Any) -> Any:
            written = list(self._threads.write(plan))
            self._prune("write")
            return written

        def _prune(self, at: str) -> None:
            if at == step:
                shutil.copytree(history, tmp_path / "copy")
                prune(tmp_path / "copy", NO_AGE)
                shutil.rmtree(history / "1d")
                for path in (history / "1h").rglob("*.parquet"):
                    if (tmp_path / "copy" / path.relative_to(history)).exists() is False and step == "read":
                        path.unlink()
                shutil.copytree(tmp_path / "copy", history, dirs_exist_ok=True)

    if step == "read":
        (problem,) = [broken for broken, _ in rollup(Overtaken(), tmp_path / "late", history).problems]
        assert "pruned its day meanwhile" in problem.reason
        again = rollup(Threads(), tmp_path / "late", history)
    else:
        again = rollup(Overtaken(), tmp_path / "late", history)
    assert whole(history).equals(direct(rows))
    ((_, refused),) = again.problems
    assert refused == 1, "the next run, or pass, refuses it by name"


# -- whole days -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["hours", "days", "pruned"])
def test_a_removed_day_takes_no_intervals_and_keeps_its_numbers(tmp_path: Path, before: str) -> None:
    history, rows = made(tmp_path, over_hours=30, count=60)
    if before != "hours":
        compact(history, NO_AGE)
    if before == "pruned":
        prune(history, NO_AGE)
    first = [row for row in rows if row.ts_ns // 1000 // DAY_US == NOON // 1000 // DAY_US]
    others = [row for row in rows if row not in first]
    moment = datetime(2025, 11, 22, tzinfo=UTC) + timedelta(days=9)
    (done,) = prune(history, None, timedelta(days=9), now=moment).days
    assert (done.day, done.is_removed, done.intervals) == ("2025-11-21", True, len(first))
    assert whole(history).equals(direct(others))
    assert not list(history.glob(f"*/{DAY}/**/*.parquet"))
    manifest = load(history / "1d" / DAY)
    assert (manifest.intervals, manifest.values) == (len(first), sum(row.n for row in first))
    (history / "merged-files.json").unlink()
    write_spool(tmp_path / "spool", [interval([9], seq=1000)], "s0", 1)
    ((broken, refused),) = rollup(Threads(), tmp_path / "spool", history).problems
    assert refused == 1
    assert "the day 2025-11-21 was removed from the history" in broken.reason
    assert whole(history).equals(direct(others))
    assert compact(history, NO_AGE).problems == ()
    assert prune(history, None, timedelta(days=9), now=moment) == Pruned((), 1, 1, ())
    assert closed_days(history)["2025-11-21"].startswith("the day")


def test_a_reader_sees_a_removed_day_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history, _ = compacted(tmp_path, count=120)
    left = [5]

    def interrupted(folder: Path, files: tuple[DataFile, ...]) -> pa.Table:
        left[0] -= 1
        if left[0] == 0:
            prune(history, None, NO_AGE)
        return read_hour(folder, files)

    monkeypatch.setattr(hours_module, "read_hour", interrupted)
    parts = list(read_parts(history))
    assert left[0] <= 0
    assert [part.num_rows for part in parts] == [0], "the hours read before the removal are not half a day"


def test_hours_that_appear_in_a_closed_day_are_never_deleted(tmp_path: Path) -> None:
    history, _ = compacted(tmp_path)
    prune(history, NO_AGE)
    earlier(history, [interval([7], seq=0, at_s=-7200)], f"{DAY}/hour=10")
    rollup(Threads(), tmp_path / "spool", history)
    assert len(list((history / DAY).rglob("*.parquet"))) == 1


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_shows_what_would_go_and_what_went(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history, rows = compacted(tmp_path)
    files = len(data_files(history)) - 1
    assert run("prune", "--history", history, "--older-than", "1d", "--dry-run") == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith(f"2025-11-21  hours removed: {files} files, ")
    assert out[1].endswith("0 pruned before, 0 too recent (dry run: nothing was changed)")
    assert len(data_files(history)) == files + 1
    assert run("prune", "--history", history, "--older-than", "2w", "--json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    (found,) = told["days"]
    assert (found["day"], found["action"], found["files"]) == ("2025-11-21", "hours removed", files)
    assert (found["intervals"], found["bytes"] > 0) == (len(rows), True)
    assert (told["dry_run"], told["stay"], told["pruned_before"], told["too_recent"]) == (False, [], 0, 0)
    assert run("prune", "--history", history, "--remove-days-older-than", "99y", "--older-than", "1d") == 0
    assert capsys.readouterr().out.startswith(f"{history}: 0 days without hours now, 0 removed, 0 freed, 1 pruned")
    assert run("prune", "--history", history, "--remove-days-older-than", "30d") == 0
    assert "day removed: 1 files, " in capsys.readouterr().out
    assert run("rollup", "--no-spark", "--spool", tmp_path / "spool", "--history", history) == 0


def test_the_command_names_days_that_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history, _ = made(tmp_path)
    assert run("prune", "--history", history, "--older-than", "1d", "--json") == 1
    out, err = capsys.readouterr()
    (stays,) = json.loads(out)["stay"]
    assert stays["reason"].startswith("it is not merged into a day yet")
    assert f"{DAY}: stays as it is: it is not merged into a day yet" in err


def test_wrong_ages_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for age in ("90", "0d", "-1d", "1.5y", "200y", "d"):
        with pytest.raises(SystemExit):
            run("prune", "--history", tmp_path, f"--older-than={age}")
        assert "is not an age such as 90d, 12w or 2y" in capsys.readouterr().err
    with pytest.raises(UserError, match="say what to prune: --older-than AGE"):
        run("prune", "--history", tmp_path)
    with pytest.raises(UserError, match="no history in"):
        run("prune", "--history", tmp_path / "nothing", "--older-than", "1d")


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history, rows = compacted(tmp_path)
    calls = [0]

    def interrupted(folder: Path, manifest: Manifest) -> None:
        calls[0] += 1
        if calls[0] == 9:
            raise KeyboardInterrupt
        commit(folder, manifest)

    with monkeypatch.context() as patch:
        patch.setattr(retention, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run("prune", "--history", history, "--older-than", "1d")
    assert not [path for path in history.rglob(".*") if path.name != ".lock"]
    assert whole(history).equals(direct(rows))
    assert run("prune", "--history", history, "--older-than", "1d") == 0
    assert whole(history).equals(direct(rows))
