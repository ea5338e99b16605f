"""Files of the spool: whole or not there, never twice, and a broken one takes nothing with it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history import files
from heliograph.monitor.history.files import (
    Broken,
    Unit,
    UnreadableFile,
    read_in_steps,
    read_unit,
    scan,
    to_table,
    write_spool,
)
from heliograph.monitor.history.schema import LABELS, SPOOL, arrow_schema
from tests.history.recordings import damaged_at_its_end, interval, sample_spool


def rows_of(spool: Path) -> list[tuple[str, int]]:
    """(source, seq) of everything a spool gives."""
    found = []
    for unit in scan(spool).units:
        for _, table in read_unit(unit.paths):
            assert not isinstance(table, Broken)
            found += list(zip(table["source"].to_pylist(), table["seq"].to_pylist(), strict=True))
    return sorted(found)


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    rows = [interval([1, 2, 3], seq=index, at_s=index) for index in range(5)]
    (path,) = write_spool(tmp_path, rows, "s0", 0)
    assert path == tmp_path / "date=2025-11-21" / "s0-000000.parquet"
    ((_, table),) = read_unit([str(path)])
    assert table.equals(to_table(rows))


def test_the_histogram_column_has_no_dictionary_and_pages_have_checksums(tmp_path: Path) -> None:
    (path,) = write_spool(tmp_path, [interval([index], seq=index) for index in range(50)], "s0", 0)
    group = pq.read_metadata(path).row_group(0)
    column = group.column(pq.read_schema(path).names.index("h"))
    assert column.compression == "ZSTD"
    assert not column.has_dictionary_page
    damaged = bytearray(path.read_bytes())
    damaged[column.data_page_offset + column.total_compressed_size // 2] ^= 4
    path.write_bytes(damaged)
    ((_, found),) = read_unit([str(path)])
    assert isinstance(found, Broken)
    assert "crc" in found.reason.lower() or "checksum" in found.reason.lower()


def test_rows_go_to_the_folder_of_their_day(tmp_path: Path) -> None:
    rows = [interval([1], seq=0, at_s=0), interval([1], seq=1, at_s=12 * 3600)]
    assert [path.parent.name for path in write_spool(tmp_path, rows, "s0", 3)] == ["date=2025-11-21", "date=2025-11-22"]


def test_a_file_that_is_there_is_never_written_again(tmp_path: Path) -> None:
    (path,) = write_spool(tmp_path, [interval([1])], "s0", 0)
    before = path.stat()
    assert write_spool(tmp_path, [interval([2])], "s0", 0) == [path]
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_a_failed_write_leaves_no_file_and_no_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.pq, "write_table", full)
    with pytest.raises(OSError, match="No space"):
        write_spool(tmp_path, [interval([1])], "s0", 0)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_temporary_and_hidden_files_are_not_read(tmp_path: Path) -> None:
    (path,) = write_spool(tmp_path, [interval([1])], "s0", 0)
    shutil.copy(path, path.with_name(".tmp-9-s0-000001.parquet"))
    (tmp_path / ".old-3").mkdir()
    shutil.copy(path, tmp_path / ".old-3" / "s0-000002.parquet")
    assert rows_of(tmp_path) == [("s0", 0)]


def test_copies_give_each_row_once(tmp_path: Path) -> None:
    rows = sample_spool(tmp_path)
    everything = rows_of(tmp_path)
    assert len(everything) == len(rows)
    for path in list(tmp_path.rglob("*.parquet")):
        shutil.copy(path, tmp_path / f"copy-{path.name}")
    half = pa.concat_tables([to_table(rows[5:11])])
    files.write_table(tmp_path / "compacted.parquet", half)
    assert rows_of(tmp_path) == everything


def test_a_row_repeated_within_a_file_is_given_once(tmp_path: Path) -> None:
    write_spool(tmp_path, [interval([1], seq=0), interval([1], seq=0), interval([1], seq=1)], "s0", 0)
    assert rows_of(tmp_path) == [("s0", 0), ("s0", 1)]


def test_a_large_file_is_read_in_steps_and_gives_each_row_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_BATCH_ROWS", 4)
    rows = [interval([seq + 1], seq=seq) for seq in range(10)]
    (whole,) = write_spool(tmp_path / "whole", rows, "s0", 0)
    ((_, steps),) = read_in_steps([str(whole)])
    sizes = [step.num_rows for step in steps]
    assert (sum(sizes), max(sizes)) == (10, 4)
    (repeating,) = write_spool(tmp_path / "repeating", [*rows, rows[1], rows[9]], "s0", 0)
    for paths in ([repeating], [repeating, whole]):
        tables = [step for _, steps in read_in_steps([str(path) for path in paths]) for step in steps]
        assert pa.concat_tables(tables).equals(to_table(rows))


def test_rows_of_a_file_damaged_at_its_end_do_not_hide_their_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [interval([seq + 1], seq=seq) for seq in range(12)]
    damaged = damaged_at_its_end(tmp_path / "damaged", rows, monkeypatch)
    (whole,) = write_spool(tmp_path / "whole", rows, "s0", 0)
    ((_, steps),) = read_in_steps([str(damaged)])
    assert next(steps).num_rows == 4
    with pytest.raises(UnreadableFile) as caught:
        list(steps)
    assert caught.value.broken.path == str(damaged)
    (first, second) = read_unit([str(damaged), str(whole)])
    assert isinstance(first[1], Broken)
    assert second[1].equals(to_table(rows))


def test_files_of_several_sources_are_all_read(tmp_path: Path) -> None:
    mixed = [interval([1], seq=seq, source=source) for source in ("a", "b") for seq in range(3)]
    files.write_table(tmp_path / "mixed.parquet", to_table(mixed))
    write_spool(tmp_path, [interval([1], seq=7, source="a"), interval([1], seq=2, source="a")], "a", 0)
    assert rows_of(tmp_path) == [("a", 0), ("a", 1), ("a", 2), ("a", 7), ("b", 0), ("b", 1), ("b", 2)]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all", b"PAR1" + bytes(100) + b"PAR1"])
def test_a_file_that_is_no_parquet_is_named_and_the_others_are_read(tmp_path: Path, content: bytes) -> None:
    rows = sample_spool(tmp_path)
    (tmp_path / "broken.parquet").write_bytes(content)
    found = scan(tmp_path)
    assert [Path(broken.path).name for broken in found.broken] == ["broken.parquet"]
    assert found.broken[0].reason
    assert found.rows == len(rows) == len(rows_of(tmp_path))


def test_a_truncated_file_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    sample_spool(tmp_path, files=2, per_file=4)
    victim = tmp_path / "date=2025-11-21" / "s0-000000.parquet"
    victim.write_bytes(victim.read_bytes()[:-20])
    assert [Path(broken.path).name for broken in scan(tmp_path).broken] == [victim.name]
    assert rows_of(tmp_path) == [("s0", seq) for seq in range(4, 8)]


def test_parquet_of_something_else_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"price": [1.0]}), tmp_path / "prices.parquet")
    (broken,) = scan(tmp_path).broken
    assert broken.reason == "it lacks the columns digits, h, highest, len_ms, lowest, n, seq, source, ts"


def test_a_footer_whose_statistics_are_of_another_type_is_named(tmp_path: Path) -> None:
    good = to_table([interval([1])])
    position = good.schema.get_field_index("source")
    files.write_table(tmp_path / "number.parquet", good.set_column(position, "source", pa.array([1], pa.int32())))
    (broken,) = scan(tmp_path).broken
    assert broken.reason == "its column source has type INT32, not BYTE_ARRAY"


@pytest.mark.parametrize("footers", ["one by one", "at once, as of a store"])
def test_each_unfit_file_between_good_ones_is_named_in_the_order_of_names(
    footers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A schema that equals the one of the file before is not checked again."""
    position = to_table([]).schema.get_field_index("source")
    for seq in range(60):
        table = to_table([interval([1], seq=seq)])
        if seq % 5 == 2:
            table = table.drop_columns(["n" if seq % 2 else "h"])
        elif seq % 5 == 3:
            table = table.set_column(position, "source", pa.array([1], pa.int32()))
        files.write_table(tmp_path / f"{seq:02}.parquet", table)
        if seq % 5 == 4:
            (tmp_path / f"{seq:02}.parquet").write_bytes(b"PAR1")
    if footers != "one by one":
        monkeypatch.setattr(files, "RemotePath", type(tmp_path))
    found = scan(tmp_path)
    assert [Path(path).name for unit in found.units for path in unit.paths] == [
        f"{seq:02}.parquet" for seq in range(60) if seq % 5 < 2
    ]
    named = {Path(broken.path).name: broken.reason for broken in found.broken}
    assert list(named) == [f"{seq:02}.parquet" for seq in range(60) if seq % 5 >= 2]
    assert named["02.parquet"] == "it lacks the columns h"
    assert named["07.parquet"] == "it lacks the columns n"
    assert named["03.parquet"] == "its column source has type INT32, not BYTE_ARRAY"


def test_a_damaged_footer_does_not_end_the_process(tmp_path: Path) -> None:
    """pyarrow aborts when it is asked for the statistics of a column chunk whose type is not that of its column."""
    (path,) = write_spool(tmp_path, [interval([1])], "s0", 0)
    named, read = _scan_damaged(path, 0x40)
    assert named > 100
    assert read > 100


def test_sizes_of_another_type_do_not_end_the_process(tmp_path: Path) -> None:
    """pyarrow aborts when it is asked for a column chunk of numbers that has the sizes of texts."""
    table = to_table([interval([1])])
    table = table.set_column(table.schema.get_field_index("seq"), "seq", pa.array([b"12345678"]))
    path = tmp_path / "texts.parquet"
    pq.write_table(table, path, store_schema=False)
    whole = path.read_bytes()
    texts, numbers = (bytes((0x15, 2 * kind, 0x25, 2, 0x18, 3)) + b"seq" for kind in (6, 2))  # compact Thrift
    assert whole.count(texts) == 1
    path.write_bytes(whole.replace(texts, numbers))
    assert pq.read_metadata(path).schema.column(table.schema.get_field_index("seq")).physical_type == "INT64"
    assert _scan_damaged(path, 0, at_most=1) == (1, 0)


def _scan_damaged(path: Path, mask: int, at_most: int = 1 << 20) -> tuple[int, int]:
    """Scan with each byte of the footer changed in turn; count files that were named and those that were read."""
    arguments = [sys.executable, "-c", _SCAN_DAMAGED, str(path), str(mask), str(at_most)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    named, read = map(int, done.stdout.split())
    return named, read


_SCAN_DAMAGED = """
import sys
from pathlib import Path
from heliograph.monitor.history.files import Broken, read_unit, scan
path, mask, at_most = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
whole = path.read_bytes()
begin = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
counts = [0, 0]
for at in range(begin, min(begin + at_most, len(whole) - 8)):
    path.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
    found = scan(path.parent)
    tables = [table for unit in found.units for _, table in read_unit(unit.paths)]
    counts[bool(tables) and not any(isinstance(table, Broken) for table in tables)] += 1
print(*counts)
"""


def _shortened(units: tuple[Unit, ...]) -> list[tuple[int, tuple[str, ...], int, int]]:
    return [(unit.rows, unit.sources, unit.first_us, unit.last_us) for unit in units]


def test_a_scan_gives_the_same_with_and_without_what_the_footer_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = ("b", "a", "b", "c\u20ac")
    rows = [interval([1], seq=7 - seq, source=source, at_s=seq % 3) for seq, source in enumerate(sources)]
    (path,) = write_spool(tmp_path / "told", rows, "a", 0)
    files.write_table(tmp_path / "silent" / "a.parquet", to_table(rows))
    opened = []
    monkeypatch.setattr(files, "_parquet", lambda path, original=files._parquet: opened.append(path) or original(path))
    told = scan(tmp_path / "told").units
    assert opened == []
    first_us = rows[0].ts_ns // 1000
    assert _shortened(told) == [(4, ("a", "b", "c\u20ac"), first_us, first_us + 2_000_000)]
    assert _shortened(scan(tmp_path / "silent").units) == _shortened(told)
    assert len(opened) == 1
    write_spool(tmp_path / "told", [rows[3]], "again", 0)
    (unit,) = scan(tmp_path / "told").units
    assert len(unit.paths) == 2
    assert str(path) in unit.paths


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        b"[2,0,0,[]]",
        b'[2,0,Infinity,[["a",0,1]]]',
        b'[2,0,0,[["a",0,"1"]]]',
        b"[2,0,0,[[1,0,1]]]",
        b'[2,0,0,[["a",0]]]',
        b'[2,1000000000000000000,1000000000000000000,[["a",0,1]]]',
        b'[3,0,0,[["a",0,2]]]',
        b"\xff",
    ],
)
def test_a_footer_that_tells_nothing_usable_has_the_columns_read(content: bytes, tmp_path: Path) -> None:
    """The number of rows is one of its statements: tools that join files keep the metadata of the first."""
    rows = [interval([1], seq=seq) for seq in range(2)]
    table = to_table(rows).replace_schema_metadata({b"heliograph.spool.content": content})
    files.write_table(tmp_path / "a.parquet", table)
    time_us = rows[0].ts_ns // 1000
    assert _shortened(scan(tmp_path).units) == [(2, ("s0",), time_us, time_us)]


@pytest.mark.parametrize("time_us", [1 << 60, -(1 << 60)])
def test_times_beyond_the_calendar_do_not_end_the_scan(time_us: int, tmp_path: Path) -> None:
    good = to_table([interval([1])])
    position = good.schema.get_field_index("ts")
    times = pa.array([time_us], pa.timestamp("us", "UTC"))
    files.write_table(tmp_path / "late.parquet", good.set_column(position, good.schema.field(position), times))
    (found,) = scan(tmp_path).broken
    assert found.reason == f"column ts has a time outside the years 2 to 9998: {time_us} us since 1970"


def test_columns_of_the_wrong_type_or_without_values_are_named(tmp_path: Path) -> None:
    good = to_table([interval([1])])
    position = good.schema.get_field_index("n")
    files.write_table(tmp_path / "text.parquet", good.set_column(position, "n", pa.array(["many"])))
    files.write_table(tmp_path / "void.parquet", good.set_column(position, "n", pa.array([None], pa.int64())))
    reasons = {}
    for path in ("text.parquet", "void.parquet"):
        ((_, found),) = read_unit([str(tmp_path / path)])
        assert isinstance(found, Broken)
        reasons[path] = found.reason
    assert reasons == {"text.parquet": "column n is string, not int64", "void.parquet": "column n lacks 1 values"}


def test_labels_absent_from_older_files_read_as_empty(tmp_path: Path) -> None:
    older = to_table([interval([1])]).drop_columns(["tag", "topic", "dropped"])
    files.write_table(tmp_path / "older.parquet", older)
    ((_, table),) = read_unit([str(tmp_path / "older.parquet")])
    assert table.schema.equals(arrow_schema(SPOOL))
    assert [table[label][0].as_py() for label in LABELS] == ["alpha", "", "", "receiver_total_latency", ""]
    assert table["dropped"].to_pylist() == [0]


def test_a_spool_that_is_not_there_is_told() -> None:
    with pytest.raises(UserError, match="no spool in /nowhere/spool: record one"):
        scan(Path("/nowhere/spool"))


def test_what_a_killed_writer_left_is_removed_at_once_and_what_is_being_written_stays(tmp_path: Path) -> None:
    day = tmp_path / "date=2026-11-21"
    day.mkdir()
    left, young, locked = day / ".tmp-1-a.parquet", day / ".tmp-2-a.parquet", day / ".tmp-3-a.parquet"
    for path in (left, young, locked):
        path.write_bytes(b"half a file")
    os.utime(left, (0, 0))
    with locked.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        files.remove_leftovers(tmp_path)
    assert list(day.iterdir()) == [locked]


def test_a_writer_whose_file_was_removed_before_it_was_locked_makes_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "date=2026-11-21" / "a.parquet"
    lock, removed = fcntl.flock, []

    def late(file: IO[bytes], how: int) -> None:
        if how == fcntl.LOCK_SH and not removed:
            removed.extend(target.parent.glob(".tmp-*"))
            files.remove_leftovers(tmp_path)
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    files.write_table(target, files.to_table([]))
    assert removed
    assert list(target.parent.iterdir()) == [target]
