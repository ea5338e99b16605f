"""Days of a history: exactly the direct merge, rebuilt after late intervals, and never fewer values than before."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history import days as days_module
from heliograph.monitor.history.days import Compacted, compact
from heliograph.monitor.history.files import to_table, write_spool
from heliograph.monitor.history.hours import Manifest, commit, folder_of, load, read_history, read_hour
from heliograph.monitor.history.lock import FolderLock
from heliograph.monitor.history.merge import DAY_US, merge
from heliograph.monitor.history.rollup import Threads, rollup
from heliograph.monitor.history.schema import LatencyInterval
from tests.history.recordings import NOON, interval, latencies
from tests.history.test_commands import run
from tests.history.test_rollup import ORDER, Killed, earlier, files_of

HOUR = 3600.0
DAY = "date=2025-11-21"
NO_AGE = timedelta(0)


def made(tmp_path: Path, *, seed: int = 0, count: int = 40, over_hours: int = 11) -> tuple[Path, list[LatencyInterval]]:
    """A history of a spool of random intervals from noon on, and its rows."""
    random = np.random.default_rng(seed)
    rows = [
        interval(
            latencies(seed + seq, int(random.integers(0, 50))),
            seq=seq,
            at_s=float(random.integers(0, over_hours * 3600)),
            topic=f"T{random.integers(3)}",
            host=f"h{random.integers(2)}",
            shape=((3, 1, 60_000_000_000), (2, 1, 3_600_000_000))[int(random.integers(2))],
        )
        for seq in range(count)
    ]
    write_spool(tmp_path / "spool", rows, "s0", 0)
    rollup(Threads(2), tmp_path / "spool", tmp_path / "history")
    return tmp_path / "history", rows


def days(history: Path) -> pa.Table:
    """The rows of all committed days."""
    folders = sorted((history / "1d").glob("date=*"))
    return pa.concat_tables([read_hour(folder, load(folder).files) for folder in folders]).sort_by(ORDER)


def direct(rows: list[LatencyInterval]) -> pa.Table:
    """The days of rows, merged at once."""
    return merge(to_table(rows), DAY_US)[0].sort_by(ORDER)


@pytest.mark.parametrize("seed", range(6))
def test_days_equal_the_direct_merge_of_the_spool(tmp_path: Path, seed: int) -> None:
    history, rows = made(tmp_path, seed=seed, count=120, over_hours=70)
    of_hours = read_history(history)[0]
    done = compact(history, NO_AGE)
    assert (done.current, done.young, done.problems) == (0, 0, ())
    assert days(history).equals(direct(rows))
    manifests = [load(folder) for folder in (history / "1d").iterdir()]
    assert done.written == len(manifests)
    assert sum(one.intervals for one in manifests) == len(rows)
    assert sum(one.values for one in manifests) == sum(row.n for row in rows)
    assert read_history(history)[0].equals(of_hours), "readers of hours do not count the days too"
    before = files_of(history)
    assert compact(history, NO_AGE) == Compacted(0, done.written, 0, ())
    assert files_of(history) == before


def test_late_intervals_rebuild_their_day_only(tmp_path: Path) -> None:
    history, rows = made(tmp_path)
    late = [interval([9], seq=1000, at_s=60), interval([9], seq=1001, at_s=24 * HOUR)]
    write_spool(tmp_path / "spool", late[1:], "s0", 1)
    rollup(Threads(), tmp_path / "spool", history)
    compact(history, NO_AGE)
    write_spool(tmp_path / "spool", late[:1], "s0", 2)
    rollup(Threads(), tmp_path / "spool", history)
    assert compact(history, NO_AGE) == Compacted(1, 1, 0, ())
    assert days(history).equals(direct(rows + late))
    assert load(history / "1d" / DAY).number == 2
    assert load(history / "1d" / DAY).hours["12"] == 2
    assert len(files_of(history / "1d" / DAY)) == 2, "the old file and manifest are removed"


def test_a_day_is_left_out_until_it_has_the_age(tmp_path: Path) -> None:
    history, _ = made(tmp_path)
    end = datetime(2025, 11, 22, tzinfo=UTC)
    almost = end + timedelta(days=2, microseconds=-1)
    assert compact(history, timedelta(days=2), now=almost) == Compacted(0, 0, 1, ())
    assert compact(history, timedelta(days=2), now=end + timedelta(days=2)).written == 1


def test_hours_of_an_earlier_version_are_in_the_day(tmp_path: Path) -> None:
    rows = [interval(latencies(seq, 9), seq=seq, at_s=seq) for seq in range(3)]
    earlier(tmp_path / "history", rows)
    assert compact(tmp_path / "history", NO_AGE).written == 1
    assert days(tmp_path / "history")["n"].to_pylist() == [27]
    assert read_history(tmp_path / "history")[0]["n"].to_pylist() == [27]


# -- killed runs, other writers, damage -------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", ["write_table", "commit", "sweep"])
def test_a_run_killed_at_any_step_leaves_the_old_or_the_new_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    history, rows = made(tmp_path)
    compact(history, NO_AGE)
    late = [interval([9], seq=1000, at_s=60)]
    write_spool(tmp_path / "spool", late, "s0", 1)
    rollup(Threads(), tmp_path / "spool", history)
    whole: Callable[..., object] = getattr(days_module, step)

    def killed(*arguments: object) -> None:
        if after:
            whole(*arguments)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(days_module, step, killed)
        with pytest.raises(Killed):
            compact(history, NO_AGE)
    is_committed = step == "sweep" or (step == "commit" and after)
    assert days(history).equals(direct(rows + late if is_committed else rows))
    compact(history, NO_AGE)
    assert days(history).equals(direct(rows + late))
    assert len(files_of(history / "1d" / DAY)) == 2, "nothing is left over"


def test_two_writers_do_not_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history, _ = made(tmp_path)
    with FolderLock(history, "busy"), pytest.raises(UserError, match="another process is writing the history"):
        compact(history, NO_AGE)
    theirs = Manifest(1, (), {}, hours={"12": 1})
    whole = days_module.write_table

    def overtaken(target: Path, table: pa.Table) -> None:
        """Another machine, which does not share the lock, commits first."""
        whole(target, table)
        commit(target.parent, theirs)

    monkeypatch.setattr(days_module, "write_table", overtaken)
    (problem,) = compact(history, NO_AGE).problems
    assert "another writer has committed this day" in problem.reason
    assert load(history / "1d" / DAY) == theirs


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_damaged_day_is_rebuilt_from_its_hours(tmp_path: Path, damage: str) -> None:
    history, rows = made(tmp_path)
    compact(history, NO_AGE)
    (path,) = (history / "1d" / DAY).glob("*.parquet")
    path.unlink() if damage == "gone" else path.write_bytes(path.read_bytes()[:-9])
    assert compact(history, NO_AGE).written == 1
    assert days(history).equals(direct(rows))


def removed_hour(history: Path) -> None:
    shutil.rmtree(folder_of(history, NOON // 1000))


def begun_again_hour(history: Path) -> None:
    folder = folder_of(history, NOON // 1000)
    once, again = load(folder), folder / "manifest-000002.json"
    (folder / f"manifest-{once.number:06d}.json").rename(again)
    (history / "1d" / DAY / "manifest-000001.json").unlink()
    compact(history, NO_AGE)
    again.rename(folder / "manifest-000001.json")


def replaced_hours(history: Path) -> None:
    """The spool has fewer intervals than the history."""
    spool = history.parent / "replacing"
    write_spool(spool, [interval([9], seq=2000)], "s9", 0)
    rollup(Threads(), spool, history, replace=True)


def damaged_hour(history: Path) -> None:
    next(folder_of(history, NOON // 1000).glob("*.parquet")).write_bytes(b"PAR1")
    next((history / "1d" / DAY).glob("*.parquet")).unlink()


def damaged_manifest(history: Path) -> None:
    next((history / "1d" / DAY).glob("manifest-*")).write_text("{")


def newer_format(history: Path) -> None:
    (manifest,) = (history / "1d" / DAY).glob("manifest-*")
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": 4}))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (removed_hour, "no longer has its hour 12"),
        (begun_again_hour, "no longer has its hour 12"),
        (replaced_hours, "intervals, the day 40; the day stays"),
        (damaged_hour, "Parquet"),
        (damaged_manifest, "the manifest cannot be read"),
        (newer_format, "it has format 4, this version reads 2 and 3; update heliograph"),
    ],
    ids=["hour-removed", "hour-begun-again", "hour-replaced", "hour-damaged", "manifest-damaged", "format-newer"],
)
def test_a_day_that_cannot_be_rebuilt_stays_and_is_named(
    tmp_path: Path, damage: Callable[[Path], None], reason: str
) -> None:
    history, _ = made(tmp_path)
    compact(history, NO_AGE)
    damage(history)
    before = files_of(history / "1d")
    done = compact(history, NO_AGE)
    assert done.written == 0
    assert [Path(broken.path).name for broken in done.problems] == [DAY]
    assert reason in done.problems[0].reason
    assert files_of(history / "1d") == before


def test_the_command_prints_the_days_and_names_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history, _ = made(tmp_path)
    assert run("compact", "--history", history) == 0
    assert capsys.readouterr().out.endswith("history: 1 day written, 0 up to date, 0 too recent\n")
    damaged_manifest(history)
    assert run("compact", "--history", history) == 1
    assert "the manifest cannot be read" in capsys.readouterr().err
    with pytest.raises(UserError, match="no history in"):
        run("compact", "--history", tmp_path / "nothing")
    with pytest.raises(SystemExit):
        run("compact", "--history", history, "--age", "-1")
