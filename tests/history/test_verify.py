"""The second decoder: it agrees with every row that is right, and names every row that is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heliograph.monitor import _hdr
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.days import compact
from heliograph.monitor.history.files import read_table, write_spool
from heliograph.monitor.history.hours import committed_hours, load, read_history
from heliograph.monitor.history.rollup import Threads, rollup
from heliograph.monitor.history.rows import rows
from heliograph.monitor.history.schema import HISTORY, PERCENTILES, SPOOL
from heliograph.monitor.history.verify import verify_history, verify_spool
from tests.history.recordings import counts_of, interval, latencies, sample_spool
from tests.history.test_commands import run
from tests.history.test_days import NO_AGE

pytest.importorskip("hdrh.histogram", reason="the hdrhistogram package is not installed")


def made(tmp_path: Path) -> tuple[Path, Path]:
    spool, history = tmp_path / "spool", tmp_path / "history"
    sample_spool(spool)
    write_spool(spool, [interval([0, 1, 3], seq=7, source="s1", topic="C", shape=(1, 1, 2)),
                        interval([5_000_000, 9_000_000_000], seq=8, source="s1", shape=(5, 1024, 1 << 40))],
                "s1", 0)  # fmt: skip
    rollup(Threads(), spool, history)
    compact(history, NO_AGE)
    return spool, history


def changed(path: Path, column: str, row: int, value: object) -> None:
    """Write a file again with another value."""
    table = pq.read_table(path)
    index = table.schema.get_field_index(column)
    values = table[column].to_pylist()
    values[row] = value
    pq.write_table(
        table.set_column(index, table.schema.field(index), pa.array(values, table.schema.field(index).type)), path
    )


def test_everything_that_is_right_is_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spool, history = made(tmp_path)
    assert run("verify", "--spool", spool, "--history", history) == 0
    out, err = capsys.readouterr()
    assert out == (
        "spool: 26 rows with 4,805 values in 4 files: all equal\n"
        "hours: 6 rows with 4,805 values in 2 files: all equal\n"
        "days: 4 rows with 4,805 values in 1 files: all equal\n"
    )
    assert err == ""


def test_a_row_that_differs_is_named_by_file_row_and_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spool, history = made(tmp_path)
    folder = next(committed_hours(history))
    hour = folder / load(folder).files[0].name
    table = read_table(hour, HISTORY)
    p99, n = table["p99"][1].as_py(), table["n"][2].as_py()
    changed(hour, "p99", 1, p99 + 1)
    changed(hour, "n", 2, n + 1)
    recording = sorted(spool.rglob("s0-*.parquet"))[0]
    largest = read_table(recording, SPOOL)["max"][3].as_py()
    changed(recording, "max", 3, largest + 1024)
    assert run("verify", "--spool", spool, "--history", history, "--json") == 1
    out, err = capsys.readouterr()
    checked = {one["kind"]: one for one in json.loads(out)["checked"]}
    named = [(one["row"], one["column"], one["stored"], one["found"]) for one in checked["hours"]["differences"]]
    assert named[:2] == [(1, "p99", p99 + 1, p99), (2, "n", n + 1, n)]
    assert [(row, column, stored - found) for row, column, stored, found in named[2:]] == [(None, "values", -1)]
    assert [one["column"] for one in checked["spool"]["differences"]] == ["max"]
    assert checked["days"]["differences"] == []
    assert f"{hour}: row 1 (" in err
    assert f"p99 is {p99 + 1:,}, hdrhistogram reads {p99:,}" in err
    assert f"{recording}: row 3 (alpha/PRICES.B/receiver_total_latency): max is" in err


def test_damage_is_named_and_the_rest_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spool, history = made(tmp_path)
    recordings = sorted(spool.rglob("s0-*.parquet"))
    body = read_table(recordings[0], SPOOL)["h"][2].as_py()
    changed(recordings[0], "h", 2, body[:-3])
    recordings[1].write_bytes(b"junk")
    folder = next(committed_hours(history))
    (folder / load(folder).files[0].name).unlink()
    assert run("verify", "--spool", spool, "--history", history) == 1
    out, err = capsys.readouterr()
    assert "spool: 18 rows with" in out
    assert f"{recordings[0]}: row 2: left out completely" in err
    assert f"{recordings[1]}: left out completely" in err
    assert f"{folder}/" in err


def test_nothing_to_check_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="neither a directory `spool` nor `history`"):
        run("verify")
    with pytest.raises(UserError, match="no spool in"):
        verify_spool(tmp_path / "nowhere")
    with pytest.raises(UserError, match="no history in"):
        verify_history(tmp_path / "nowhere")
    sample_spool(tmp_path / "spool", files=1)
    assert run("verify") == 0


def test_rank_arithmetic_is_exact_where_floats_are_not(tmp_path: Path) -> None:
    """n and n * p meet at whole ranks, just above them and just below."""
    found = []
    for seq, n in enumerate((1, 2, 9, 10, 99, 100, 101, 999, 1000, 1001, 9_999, 10_000, 10_001, 100_000)):
        counts = counts_of([])
        counts[1 : n + 1 if n < 2000 else 2001] = n // min(n, 2000)
        counts[1] += np.uint64(n - int(counts.sum()))
        found.append(replace(interval([1], seq=seq, topic=f"T{n}"), n=n, min=1,
                             max=_hdr.summary(counts, 3, 1, 60_000_000_000)[2],
                             h=_hdr.encode(counts, 3, 1, 60_000_000_000)))  # fmt: skip
    write_spool(tmp_path / "spool", found, "s0", 0)
    rollup(Threads(), tmp_path / "spool", tmp_path / "history")
    for one in (verify_spool(tmp_path / "spool"), *verify_history(tmp_path / "history")):
        assert (one.differences, one.broken) == ((), ())


def test_a_row_of_a_history_is_an_object_with_a_histogram(tmp_path: Path) -> None:
    values = latencies(4, 5000)
    write_spool(tmp_path / "spool", [interval(values, topic="A")], "s0", 0)
    rollup(Threads(), tmp_path / "spool", tmp_path / "history")
    (row,) = rows(read_history(tmp_path / "history")[0])
    judged = row.histogram()
    assert (row.labels["topic"], row.length.total_seconds(), row.start.hour) == ("A", 3600, 12)
    assert judged.get_total_count() == row.figures["n"] == 5000
    assert judged.get_max_value() == row.figures["max"]
    for name, fraction in PERCENTILES.items():
        assert judged.get_value_at_percentile(100 * fraction) == row.figures[name]
    assert judged.record_value(12_345)
    assert np.array_equal(row.counts().counts, counts_of(values))
