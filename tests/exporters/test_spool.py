"""The spool exporter: everything read is written once, and what cannot be written is kept."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from heliograph.exporters import load
from heliograph.exporters.spool import SpoolExporter
from heliograph.monitor.errors import UserError
from heliograph.monitor.history import files
from heliograph.monitor.history.merge import merge_spool
from heliograph.monitor.model import InstanceState
from tests.history.recordings import histogram_of, instance, latencies, receiver, snapshot

VALUES = latencies(1, 4000)


def reading(count: int) -> InstanceState:
    return instance(receiver({"total_latency": histogram_of(VALUES[:count])}))


def recorded(spool: Path) -> tuple[int, int]:
    """Values and intervals in a spool."""
    table, problems = merge_spool(spool)
    assert problems == []
    return sum(table["n"].to_pylist()), sum(table["intervals"].to_pylist())


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Append to it to fill the disk, clear it to make room."""
    full: list[bool] = []
    original = files.pq.write_table

    def write(table: object, file: object, **options: object) -> None:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(table, file, **options)

    monkeypatch.setattr(files.pq, "write_table", write)
    return full


def test_it_is_found_by_its_name(tmp_path: Path) -> None:
    exporter = load("spool")(directory=tmp_path / "spool")
    exporter.close()
    assert isinstance(exporter, SpoolExporter)


def test_every_value_is_in_the_spool_once(tmp_path: Path) -> None:
    exporter = SpoolExporter(tmp_path)
    for second in range(200):
        exporter.publish(snapshot(second, reading(20 * second)))
    exporter.close()
    assert recorded(tmp_path) == (20 * 199, 20)
    assert exporter.rows_written == 20
    assert len(list(tmp_path.rglob("*.parquet"))) == 4


def test_files_come_by_the_minute_and_are_never_changed(tmp_path: Path) -> None:
    exporter = SpoolExporter(tmp_path)
    seen: dict[Path, int] = {}
    for second in range(0, 190, 5):
        exporter.publish(snapshot(second, reading(20 * second)))
        for path in tmp_path.rglob("*.parquet"):
            assert seen.setdefault(path, path.stat().st_mtime_ns) == path.stat().st_mtime_ns
    assert len(seen) == 3
    exporter.close()


def test_files_come_at_once_when_the_wall_clock_is_set_back(tmp_path: Path) -> None:
    exporter = SpoolExporter(tmp_path)
    for second in range(0, 70, 5):
        exporter.publish(snapshot(second, reading(20 * second)))
    before = exporter.rows_written
    exporter.publish(snapshot(-3600, reading(2000)))
    assert exporter.rows_written > before
    exporter.close()
    assert recorded(tmp_path)[0] == 2000


def test_two_runs_never_use_the_same_names(tmp_path: Path) -> None:
    for run in range(2):
        exporter = SpoolExporter(tmp_path)
        exporter.publish(snapshot(0, instance(incarnation=run)))
        exporter.publish(snapshot(1, reading(50)))
        exporter.close()
    assert len(list(tmp_path.rglob("*.parquet"))) == 2
    assert recorded(tmp_path) == (100, 2)


def test_nothing_is_lost_while_the_disk_is_full(tmp_path: Path, disk: list[bool]) -> None:
    exporter = SpoolExporter(tmp_path)
    told = []
    for second in range(0, 200, 5):
        disk[:] = [True] if 50 <= second < 100 else []
        try:
            exporter.publish(snapshot(second, reading(20 * second)))
        except UserError as error:
            told.append(str(error))
    exporter.close()
    assert len(told) == 8  # tried again every five seconds
    assert all(
        "No space left on device; " in text and "intervals are kept for the next attempt" in text for text in told
    )
    assert recorded(tmp_path) == (20 * 195, 20)
    assert exporter.rows_dropped == 0


def test_beyond_the_bound_the_oldest_rows_are_given_up_and_counted(tmp_path: Path, disk: list[bool]) -> None:
    exporter = SpoolExporter(tmp_path, flush=10.0, max_rows=5)
    disk.append(True)
    for second in range(0, 200, 10):
        try:
            exporter.publish(snapshot(second, reading(20 * second)))
        except UserError:
            assert second
    disk.clear()
    exporter.close()
    assert exporter.rows_dropped == 14
    assert recorded(tmp_path) == (5 * 200, 5)


def test_what_is_lost_at_the_end_is_told(tmp_path: Path, disk: list[bool]) -> None:
    exporter = SpoolExporter(tmp_path)
    exporter.publish(snapshot(0, reading(10)))
    disk.append(True)
    with pytest.raises(UserError, match=r"No space left.*; 1 intervals are lost"):
        exporter.close()
    assert exporter.rows_dropped == 1
    SpoolExporter(tmp_path).close()  # the folder is free again


def test_a_second_exporter_is_kept_out_until_the_first_is_closed(tmp_path: Path) -> None:
    first = SpoolExporter(tmp_path)
    with pytest.raises(UserError, match="another exporter is writing the spool"):
        SpoolExporter(tmp_path)
    first.close()
    first.close()
    SpoolExporter(tmp_path).close()


def test_a_folder_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot be written: Not a directory"):
        SpoolExporter(tmp_path / "file" / "spool")


def test_snapshots_without_histograms_write_nothing(tmp_path: Path) -> None:
    exporter = SpoolExporter(tmp_path)
    for second in range(0, 200, 20):
        exporter.publish(snapshot(second, instance(receiver({}))))
    exporter.close()
    assert list(tmp_path.rglob("*.parquet")) == []
