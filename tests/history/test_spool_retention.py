"""Old files of a spool are removed only when the history has every interval of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.days import compact
from heliograph.monitor.history.files import write_spool
from heliograph.monitor.history.hours import folder_of
from heliograph.monitor.history.retention import prune
from heliograph.monitor.history.rollup import Threads, rollup
from heliograph.monitor.history.spool_retention import PrunedSpool, prune_spool
from tests.history.recordings import NOON, interval, sample_spool
from tests.history.test_commands import run
from tests.history.test_days import NO_AGE
from tests.history.test_rollup import NOON_US, hours, merged

WEEK = timedelta(days=7)
LATER = datetime.fromtimestamp(NOON / 1e9, UTC) + timedelta(days=8)


def names(spool: Path) -> list[str]:
    return sorted(path.name for path in spool.rglob("*.parquet"))


def test_merged_files_of_the_age_are_removed_and_the_history_keeps_their_counts(tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    rows = sample_spool(spool, files=3)
    rollup(Threads(), spool, history)
    (late,) = write_spool(spool, [interval([5], seq=99, at_s=60)], "s0", 7)
    young = interval([6], seq=100, at_s=8 * 86_400)
    write_spool(spool, [young], "s0", 8)
    dry = prune_spool(spool, history, WEEK, now=LATER, dry_run=True)
    assert names(spool) == [f"s0-{number:06d}.parquet" for number in (0, 1, 2, 7, 8)]
    done = prune_spool(spool, history, WEEK, now=LATER)
    assert done == dry
    assert (done.files, done.intervals, done.young) == (3, len(rows), 1)
    (problem,) = done.problems
    assert problem.path == str(late)
    assert "1 of its intervals are not in hour 2025-11-21T12 of the history; run `heliograph" in problem.reason
    assert hours(history).equals(merged(rows))
    rollup(Threads(), spool, history)
    assert prune_spool(spool, history, WEEK, now=LATER).problems == ()
    assert names(spool) == ["s0-000008.parquet"]
    assert rollup(Threads(), spool, history).intervals == 0


@pytest.mark.parametrize("damage", ["gone", "cut", "manifest"])
def test_files_stay_when_the_history_has_lost_their_hour(tmp_path: Path, damage: str) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    write_spool(spool, [interval([5], seq=0)], "s0", 0)
    write_spool(spool, [interval([6], seq=1, at_s=3600)], "s0", 1)
    rollup(Threads(), spool, history)
    folder = folder_of(history, NOON_US)
    target = next(folder.glob("manifest-*" if damage == "manifest" else "*.parquet"))
    target.unlink() if damage == "gone" else target.write_bytes(target.read_bytes()[:-9])
    done = prune_spool(spool, history, WEEK, now=LATER)
    assert [Path(one.path).name for one in done.problems] == ["s0-000000.parquet"]
    assert names(spool) == ["s0-000000.parquet"]


def test_a_day_that_stands_for_its_hours_is_enough(tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    rows = sample_spool(spool, files=2)
    rollup(Threads(), spool, history)
    compact(history, NO_AGE)
    prune(history, NO_AGE)
    (day,) = (history / "1d").glob("*/*.parquet")
    whole = day.read_bytes()
    day.write_bytes(whole[:-1])
    assert len(prune_spool(spool, history, WEEK, now=LATER).problems) == 2
    day.write_bytes(whole)
    assert prune_spool(spool, history, WEEK, now=LATER).intervals == len(rows)
    assert names(spool) == []


def test_damaged_files_stay_and_missing_directories_are_errors(tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    sample_spool(spool, files=1)
    with pytest.raises(UserError, match="no history in"):
        prune_spool(spool, history, WEEK)
    rollup(Threads(), spool, history)
    (spool / "empty.parquet").touch()
    (problem,) = prune_spool(spool, history, WEEK, now=LATER).problems
    assert problem.path == str(spool / "empty.parquet")
    assert names(spool) == ["empty.parquet"]
    with pytest.raises(UserError, match="no spool in"):
        prune_spool(tmp_path / "none", history, WEEK)


def test_the_command_prunes_a_spool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    rows = sample_spool(spool, files=2)
    rollup(Threads(), spool, history)
    options = ("prune", "--spool-older-than", "7d", "--spool", spool, "--history", history)
    assert run(*options, "--dry-run") == 0
    assert f"2 files with {len(rows)} intervals removed, " in capsys.readouterr().out
    assert run(*options, "--json") == 0
    found = json.loads(capsys.readouterr().out)["spool"]
    assert (found["files"], found["intervals"], found["too_recent"], found["stay"]) == (2, len(rows), 0, [])
    assert names(spool) == []
    assert prune_spool(spool, history, WEEK) == PrunedSpool(0, 0, 0, 0, ())
