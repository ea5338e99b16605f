"""Histories in an object store are written like local ones: by a store that fails, by two writers, by killed ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history import runs, writes
from heliograph.monitor.history.days import compact
from heliograph.monitor.history.files import write_spool
from heliograph.monitor.history.fresh import Found, Job
from heliograph.monitor.history.hours import (
    Contested,
    Manifest,
    commit,
    committed_days,
    committed_hours,
    folder_of,
    load,
    read_history,
)
from heliograph.monitor.history.remote import RemotePath, globbed
from heliograph.monitor.history.retention import prune
from heliograph.monitor.history.rollup import Plan, Threads, Written, rollup
from tests.history.object_store import FailingProxy, store_of_commands
from tests.history.recordings import interval, latencies, sample_spool
from tests.history.test_commands import run
from tests.history.test_days import NO_AGE
from tests.history.test_rollup import NOON_US, ORDER, Killed, merged

BUCKET = "written"


@pytest.fixture(scope="module")
def store() -> Iterator[FailingProxy]:
    pytest.importorskip("moto.server", reason="moto is not installed")
    with store_of_commands(BUCKET) as proxy:
        yield proxy


def at(name: str) -> RemotePath:
    return RemotePath("s3", PurePosixPath(BUCKET, name))


def rows_of(history: RemotePath | Path) -> Any:
    table, broken = read_history(history)
    assert broken == []
    return table.sort_by(ORDER)


def unlisted(history: RemotePath) -> list[str]:
    """Objects that no newest manifest lists, but the ledger."""
    listed = set()
    for folder in (*committed_hours(history), *committed_days(history)):
        manifest = load(folder)
        names = (f"manifest-{manifest.number:06d}.json", *(one.name for one in manifest.files))
        listed |= {str(folder / name) for name in names}
    found = {str(path) for path in globbed(history, "*", deep=True)} - {str(history / "merged-files.json")}
    return sorted(found - listed)


def test_a_history_in_a_store_that_fails_is_that_of_a_file_system(
    store: FailingProxy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample_spool(tmp_path / "spool", files=2, hours=16, per_file=2)
    spool, history = at("fails/spool"), at("fails/history")
    for path in sorted((tmp_path / "spool").rglob("*.parquet")):
        writes.put(spool / path.relative_to(tmp_path / "spool").as_posix(), path.read_bytes())
    store.every, before = 10, store.failed
    try:
        assert run("rollup", "--no-spark", "--spool", str(spool), "--history", str(history)) == 0
        assert "4 new intervals" in capsys.readouterr().out
        assert run("rollup", "--no-spark", "--spool", str(spool), "--history", str(history)) == 0
        assert ": 0 new intervals" in capsys.readouterr().out
        rollup(Threads(), tmp_path / "spool", tmp_path / "history")
        assert rows_of(history).equals(rows_of(tmp_path / "history"))
        first = next(committed_hours(history)).parent.name.removeprefix("date=")
        end = datetime.fromisoformat(first).replace(tzinfo=UTC) + timedelta(days=1)
        for place in (history, tmp_path / "history"):
            assert compact(place, NO_AGE).written == 2
            assert [one.day for one in prune(place, NO_AGE, now=end).days] == [first]
        assert rows_of(history).equals(rows_of(tmp_path / "history"))
        assert prune(history, None, NO_AGE, now=end).days[0].is_removed
        assert rows_of(history).num_rows > 0
        assert unlisted(history) == []
    finally:
        store.every = 0
    assert store.failed >= before + 10


class Together(Threads):
    """Threads that commit when others do, at their first pass."""

    def __init__(self, barrier: Barrier) -> None:
        super().__init__(1)
        self._barrier = barrier

    def write(self, plan: Plan) -> Iterable[Written]:
        done = list(super().write(plan))
        with suppress(BrokenBarrierError):
            self._barrier.wait(30)
        self._barrier.abort()
        return done


def test_writers_at_once_lose_nothing_and_merge_nothing_twice(store: FailingProxy, tmp_path: Path) -> None:
    """Two hosts with the same hours, and two roll-ups of one spool."""
    history = at("together/history")
    of_a = [interval(latencies(seq, 50), seq=seq, at_s=1800 * seq, source="a", instance="a") for seq in range(4)]
    of_b = [interval(latencies(9 + seq, 50), seq=seq, at_s=1800 * seq, source="b", instance="b") for seq in range(4)]
    write_spool(tmp_path / "a", of_a, "a", 0)
    write_spool(tmp_path / "b", of_b, "b", 0)
    barrier = Barrier(3)

    def one(spool: str) -> int:
        return rollup(Together(barrier), tmp_path / spool, history).intervals

    store.every = 10
    try:
        with ThreadPoolExecutor(3) as pool:
            assert sum(pool.map(one, ["a", "b", "a"])) == 8
    finally:
        store.every = 0
    assert rows_of(history).equals(merged(of_a, of_b))
    assert unlisted(history) == []


def test_a_run_killed_at_any_request_is_continued(
    store: FailingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = tmp_path / "spool"
    early, late = [interval([5], seq=0)], [interval([7], seq=1, at_s=60), interval([8], seq=2, at_s=3600)]
    write_spool(spool, early, "s0", 0)
    write_spool(tmp_path / "both", early, "s0", 0)
    write_spool(tmp_path / "both", late, "s0", 1)
    asked = writes._asked

    def killed_before(number: int) -> Callable[..., Any]:
        left = [number]

        def ask(*args: Any, **named: Any) -> Any:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return asked(*args, **named)

        return ask

    for number in range(30):
        history = at(f"killed/{number}")
        rollup(Threads(1), spool, history)
        monkeypatch.setattr(writes, "_asked", killed_before(number))
        try:
            rollup(Threads(1), tmp_path / "both", history)
            is_done = True
        except Killed:
            is_done = False
        monkeypatch.setattr(writes, "_asked", asked)
        table = rows_of(history)
        assert set(table["intervals"].to_pylist()) <= {1, 2}, "an hour is old or new"
        with monkeypatch.context() as patch:
            patch.setattr(runs, "_FORGOTTEN_S", -1.0)  # as two days later
            rollup(Threads(1), tmp_path / "both", history)
        assert rows_of(history).equals(merged(early, late)), number
        assert unlisted(history) == [], number
        if is_done:
            break
    assert is_done
    assert number >= 8


def test_a_slow_writer_notices_that_its_number_is_gone(store: FailingProxy, tmp_path: Path) -> None:
    """Its manifest can be created, because the one of this number was replaced and removed."""
    folder = at("slow/1h/date=2025-11-21/hour=12")
    for number in (1, 3):
        commit(folder, Manifest(number, (), {"theirs": [(0, number)]}))
    with pytest.raises(Contested, match="another writer has committed this hour"):
        commit(folder, Manifest(2, (), {"mine": [(0, 9)]}))
    with pytest.raises(Contested):
        commit(folder, Manifest(3, (), {"mine": [(0, 9)]}))
    assert load(folder).merged == {"theirs": [(0, 3)]}


class Interrupted(Threads):
    """Another roll-up commits the same hour between the halves' data file and its commit."""

    def __init__(self, other: Callable[[], object]) -> None:
        super().__init__(1)
        self._other: Callable[[], object] | None = other

    def write(self, plan: Plan) -> Iterable[Written]:
        done = list(super().write(plan))
        if self._other is not None:
            other, self._other = self._other, None
            other()
            (written,) = done
            assert (
                folder_of(RemotePath("s3", PurePosixPath(plan.history[5:])), written.begin_us) / written.name
            ).is_file()
        return done


def test_another_writer_keeps_files_that_are_not_committed_yet(store: FailingProxy, tmp_path: Path) -> None:
    history = at("interrupted")
    mine = [interval([seq], seq=seq) for seq in (1, 2)]
    theirs = [interval([seq], seq=seq, source="s1", instance="b") for seq in (3, 4)]
    write_spool(tmp_path / "mine", mine, "s0", 0)
    write_spool(tmp_path / "theirs", theirs[:1], "s1", 0)

    def other() -> None:
        rollup(Threads(1), tmp_path / "theirs", history)
        write_spool(tmp_path / "theirs", theirs[1:], "s1", 1)
        rollup(Threads(1), tmp_path / "theirs", history)

    assert rollup(Interrupted(other), tmp_path / "mine", history).intervals == 2
    assert load(folder_of(history, NOON_US)).number == 3
    assert rows_of(history).equals(merged(mine, theirs))
    assert unlisted(history) == []


class Overtaken(Threads):
    """Another roll-up merges the same intervals after this one has seen which are new."""

    def __init__(self, other: Callable[[], object]) -> None:
        super().__init__(1)
        self._other: Callable[[], object] | None = other

    def read(self, jobs: Sequence[Job]) -> Found:
        found = super().read(jobs)
        if self._other is not None:
            other, self._other = self._other, None
            other()
        return found


def test_two_roll_ups_of_one_spool_merge_an_interval_once(store: FailingProxy, tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", at("overtaken")
    rows = sample_spool(spool, files=1)
    mine = rollup(Overtaken(lambda: rollup(Threads(1), spool, history)), spool, history)
    assert mine.intervals == 0
    assert rows_of(history).equals(merged(rows))
    assert unlisted(history) == []


def test_a_store_that_ignores_conditions_is_refused(store: FailingProxy, tmp_path: Path) -> None:
    sample_spool(tmp_path / "spool", files=1)
    store.ignores_conditions = True
    try:
        with pytest.raises(UserError, match="this store ignores `If-None-Match"):
            rollup(Threads(1), tmp_path / "spool", at("ignores"))
    finally:
        store.ignores_conditions = False
    assert globbed(at("ignores"), "*.parquet", deep=True) == []


def test_a_store_that_does_not_answer_is_an_error(
    store: FailingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample_spool(tmp_path / "spool", files=1)

    def silent(path: RemotePath, operation: str, **named: object) -> None:
        raise OSError(f"{path} cannot be written: no answer")

    monkeypatch.setattr(writes, "_asked", silent)
    with pytest.raises(UserError, match=r"the history s3://.* cannot be written: .*no answer"):
        rollup(Threads(1), tmp_path / "spool", at("silent"))


def test_hours_of_an_earlier_version_in_a_store_are_refused(store: FailingProxy, tmp_path: Path) -> None:
    sample_spool(tmp_path / "spool", files=1)
    writes.put(at("earlier") / "date=2025-11-21/hour=12/part-0.parquet", b"PAR1")
    with pytest.raises(UserError, match="has hours of an earlier version; roll it up once on a file system"):
        rollup(Threads(1), tmp_path / "spool", at("earlier"))
