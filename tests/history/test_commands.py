"""The command line of the history: what it prints, where, and with which exit code."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.actions import writable
from heliograph.monitor.history.commands import command
from heliograph.monitor.history.files import to_table, write_spool, write_table
from heliograph.monitor.history.hlog import head
from heliograph.monitor.history.merge import merge
from heliograph.monitor.history.spark import spark_session
from tests.history.recordings import NOON, interval, sample_spool


def run(*arguments: str | Path) -> int:
    parser = argparse.ArgumentParser()
    command(parser.add_subparsers(required=True))
    args = parser.parse_args(["history", *map(str, arguments)])
    code: int = args.run(args)
    return code


def test_merge_prints_a_line_per_series(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_spool(tmp_path)
    assert run("merge", "--spool", tmp_path) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert " ".join(lines[0].split()) == "instance topic metric values p50 p90 p99 p99.9 p99.99 p99.999 max jitter"
    assert [line.split()[:4] for line in lines[1:]] == [
        ["alpha", f"PRICES.{topic}", "receiver_total_latency", "2,400"] for topic in "AB"
    ]
    assert err == ""


def test_merge_by_the_hour_as_json_is_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = sample_spool(tmp_path)
    assert run("merge", "--spool", tmp_path, "--hourly", "--json") == 0
    found = json.loads(capsys.readouterr().out)["series"]
    assert len(found) == 4
    assert sum(row["n"] for row in found) == sum(row.n for row in rows)
    assert "h" not in found[0]
    hour = 3600 * 10**9
    assert {row["ts_ns"] for row in found} == {row.ts_ns // hour * hour for row in rows}
    assert {row["len_ns"] for row in found} == {hour}
    assert sum(row["covered_ns"] for row in found) == sum(row.len_ms for row in rows) * 10**6
    assert min(row["first_ts_ns"] for row in found) == min(row.ts_ns for row in rows)
    assert max(row["last_ts_ns"] for row in found) == max(row.ts_ns + row.len_ms * 10**6 for row in rows)
    assert all(row["min_ns"] <= row["p50_ns"] <= row["p99_9_ns"] <= row["max_ns"] for row in found)
    assert all({name for name in row if name.endswith("_ms")} == set() for row in found)


def test_merge_by_other_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_spool(tmp_path, [interval([1], seq=seq, build=build) for seq, build in enumerate("ab")], "s0", 0)
    assert run("merge", "--spool", tmp_path, "--by", "topic,build") == 0
    lines = [line.split()[:3] for line in capsys.readouterr().out.splitlines()]
    assert lines == [["topic", "build", "values"], ["PRICES.A", "a", "1"], ["PRICES.A", "b", "1"]]
    with pytest.raises(UserError, match="there is no label color; the labels are instance, topic"):
        run("merge", "--spool", tmp_path, "--by", "topic,color")


@pytest.mark.parametrize(("text", "path"), [("/a b", "/a b"), ("file:///a%20b", "/a b"), ("x", "x")])
def test_a_directory_may_be_a_file_address(text: str, path: str) -> None:
    assert writable(text) == Path(path)


@pytest.mark.parametrize("text", ["ftp://host/x", "file://host/x"])
def test_other_storage_is_refused_by_its_name(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("rollup", "--spool", text)
    err = capsys.readouterr().err
    assert f"{text}: " in err
    assert "directories are paths, file:///PATH, or s3://" in err


def test_a_roll_up_without_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = sample_spool(tmp_path / "spool")
    command = ("rollup", "--no-spark", "--spool", tmp_path / "spool", "--history", tmp_path / "history")
    assert run(*command) == 0
    values = sum(row.n for row in rows)
    assert capsys.readouterr().out == f"{tmp_path / 'history'}: 24 new intervals with {values:,} values in 2 hours\n"
    assert run(*command) == 0
    assert "0 new intervals" in capsys.readouterr().out


def test_what_could_not_be_used_is_told_on_stderr_and_by_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample_spool(tmp_path)
    (tmp_path / "broken.parquet").write_bytes(b"junk")
    write_spool(tmp_path, [replace(interval([1], source="s9"), n=4)], "s9", 0)
    assert run("merge", "--spool", tmp_path) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 3
    assert "broken.parquet: left out completely: " in err
    assert "s9-000000.parquet: 1 row left out: a payload counts another number of values" in err


def test_progress_is_told_only_when_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_spool(tmp_path)
    run("merge", "--spool", tmp_path, "--progress")
    assert "of 24 intervals" in capsys.readouterr().err


def test_import_tells_each_log_and_each_line_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "bad.hlog"
    log.write_text(head(NOON) + "1.0,1.0\n")
    assert run("import", log, "--spool", tmp_path / "spool") == 1
    out, err = capsys.readouterr()
    assert out == f"{log}: 0 intervals\n"
    assert err == f"heliograph: {log}:6: left out: it has 2 fields, not 4: start, length, max, histogram\n"


def test_report_writes_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(tmp_path / "history" / "a.parquet", merge(to_table([interval([1, 2])]))[0])
    assert run("report", "--history", tmp_path / "history", "--out", tmp_path / "r.html", "--title", "Mine") == 0
    assert capsys.readouterr().out == f"{tmp_path / 'r.html'}: 1 series\n"
    assert "<h1>Mine</h1>" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_roll_up_without_a_spool_fails_before_spark_starts(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no spool in"):
        run("rollup", "--spool", tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("java", "reason"),
    [
        (None, "no java was found"),
        ("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n", "is Java 11"),
        ("#!/bin/sh\necho 'java version \"1.8.0_402\"' >&2\n", "is Java 8"),
        ("#!/bin/sh\nexit 1\n", "does not run"),
    ],
)
def test_without_a_fit_java_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, java: str | None, reason: str
) -> None:
    if java is not None:
        (tmp_path / "java").write_text(java)
        (tmp_path / "java").chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin" if java is not None else str(tmp_path))
    with pytest.raises(UserError, match=f"Spark needs Java 17 or newer and .*{reason}.*openjdk-17"), spark_session():
        pass


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import argparse, sys\n"
        "from heliograph.monitor.history.commands import command\n"
        "parser = argparse.ArgumentParser(); command(parser.add_subparsers())\n"
        "print(*sorted({'numpy', 'pyarrow', 'pyspark', 'pandas'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
