"""The history as a stream: equal to the direct merge, each interval once, also after kills and for damaged files."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from heliograph.monitor.cli import main
from heliograph.monitor.errors import UserError
from heliograph.monitor.history import rollup as rollup_module
from heliograph.monitor.history.files import write_spool
from heliograph.monitor.history.hours import folder_of, load
from heliograph.monitor.history.ledger import Ledger
from heliograph.monitor.history.lock import FolderLock
from heliograph.monitor.history.rollup import RolledUp, Threads, rollup
from tests.history.conftest import SHORT_LIVED
from tests.history.recordings import interval, latencies, sample_spool
from tests.history.test_cluster import commits, is_writing, kill, until
from tests.history.test_rollup import NOON_US, Killed, hours, merged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="no java: apt-get install openjdk-17-jre-headless"),
    pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="no pyspark: pip install .[history]"),
]


if importlib.util.find_spec("pyspark") is not None:
    from heliograph.monitor.history.stream import add_batch, stream


def once(spark: SparkSession, spool: Path, history: Path) -> RolledUp:
    """Merge what is there; returns the sum of the batches."""
    batches = [RolledUp(0, 0, 0, (), ())]
    stream(spark, spool, history, every=None, stop=Event(), told=lambda _, done: batches.append(done))
    whole = batches[0]
    for one in batches[1:]:
        whole = whole.followed_by(one)
    return whole


def test_a_stream_equals_the_direct_merge_and_takes_copies_once(spark: SparkSession, tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    rows = sample_spool(spool, files=4)
    rollup(Threads(), spool, history)
    more = [interval(latencies(seq, 50), seq=seq, at_s=60 * (seq - 500)) for seq in range(500, 504)]
    (target,) = write_spool(spool, more, "s0", 500)
    shutil.copy(target, target.with_name("copy.parquet"))
    damaged = target.with_name("s1-000000.parquet")
    damaged.write_bytes(target.read_bytes()[:-9])
    done = once(spark, spool, history)
    assert (done.intervals, done.hours) == (4, 1)
    assert [Path(broken.path).name for broken, _ in done.problems] == ["s1-000000.parquet"]
    assert hours(history).equals(merged(rows, more))
    assert load(folder_of(history, NOON_US)).batch == "0"
    damaged.unlink()
    assert rollup(Threads(), spool, history).intervals == 0


def test_the_source_reads_a_spool_at_once(spark: SparkSession, tmp_path: Path) -> None:
    from heliograph.monitor.history.source import SpoolSource

    rows = sample_spool(tmp_path / "spool", files=2)
    (tmp_path / "spool" / "empty.parquet").touch()
    (tmp_path / "nothing").mkdir()
    spark.dataSource.register(SpoolSource)
    found = spark.read.format("heliograph").load(str(tmp_path / "spool")).orderBy("problem", "seq").collect()
    assert [bytes(row.h) for row in found[:-1]] == [row.h for row in rows]
    assert [(row.ts.timestamp() * 1e9, row.topic, row.n) for row in found[:-1]] == [
        (row.ts_ns, row.topic, row.n) for row in rows
    ]
    assert found[-1].path.endswith("/empty.parquet")
    assert found[-1].problem
    assert spark.read.format("heliograph").load(str(tmp_path / "nothing")).count() == 0


def test_a_place_in_the_stream_is_the_files_before_it(tmp_path: Path) -> None:
    from pyspark.sql.streaming.datasource import ReadMaxFiles

    from heliograph.monitor.history.schema import spark_schema
    from heliograph.monitor.history.source import ROWS, SpoolSource

    spool = tmp_path / "spool"
    sample_spool(spool, files=3)
    options = {"path": str(spool), "maxFilesPerTrigger": "2"}
    reader = SpoolSource(options).streamReader(spark_schema(ROWS))
    start = reader.initialOffset()
    first = reader.latestOffset(start, reader.getDefaultReadLimit())
    files = next(iter(spool.rglob("*000000.parquet"))).parent
    (files / "copy.parquet").write_bytes((files / "s0-000000.parquet").read_bytes())
    second = reader.latestOffset(first, ReadMaxFiles(9))
    assert reader.latestOffset(second, ReadMaxFiles(9)) == second

    def paths(begin: dict[str, object], end: dict[str, object]) -> list[str]:
        parts = reader.partitions(begin, end)
        return sorted(Path(path).name for part in parts for unit in part.value[0] for path in unit)

    assert paths(start, first) == ["s0-000000.parquet", "s0-000001.parquet"]
    assert paths(first, second) == ["copy.parquet", "s0-000002.parquet"]
    assert paths(second, second) == []
    names = SpoolSource(options | {"content": "files"})
    listing = names.streamReader(names.schema())
    assert names.schema().fieldNames() == ["file"]
    (part,) = listing.partitions(start, first)
    listed = pa.Table.from_batches(listing.read(part))["file"].to_pylist()
    assert listed == [f"{files.name}/s0-00000{number}.parquet" for number in range(2)]
    with pytest.raises(UserError, match="maxFilesPerTrigger: '0' is not a number"):
        SpoolSource(options | {"maxFilesPerTrigger": "0"}).streamReader(spark_schema(ROWS))
    with pytest.raises(UserError, match="content: 'all' is none of rows, files"):
        SpoolSource({"content": "all"}).schema()
    with pytest.raises(UserError, match="needs the directory of a spool"):
        SpoolSource({}).reader(spark_schema(ROWS))


def assert_clean(history: Path) -> None:
    """No file that no manifest lists, and no marker."""
    assert sorted(path.name for path in history.iterdir()) == [".lock", "1h", "merged-files.json"]
    counted = sum(len(load(folder).files) for folder in (history / "1h").glob("*/*"))
    assert len(list(history.rglob("*.parquet"))) == counted


@pytest.mark.parametrize(
    ("where", "step", "passed", "committed"),
    [
        (rollup_module, "commit", 0, 0),
        (rollup_module, "commit", 1, 1),
        (rollup_module, "sweep", 1, 2),
        (Ledger, "save", 0, 3),
    ],
)
def test_a_batch_whose_driver_is_killed_at_a_step_of_its_commits_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: object, step: str, passed: int, committed: int
) -> None:
    """Spark repeats the batch, or a new stream begins with its files."""
    spool, history = tmp_path / "spool", tmp_path / "history"
    rows = sample_spool(spool, files=2, hours=3, per_file=6)
    names = {str(path.relative_to(spool)) for path in spool.rglob("*.parquet")}
    whole = getattr(where, step)
    left = [passed]

    def dies(*args: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return whole(*args)

    with monkeypatch.context() as patch:
        patch.setattr(where, step, dies)
        with pytest.raises(Killed):
            add_batch(Threads(1), spool, history, names, 7, lambda text: None)
    assert len(set(hours(history)["ts"].to_pylist())) == committed
    done = add_batch(Threads(1), spool, history, names, 7, lambda text: None)
    assert done.hours == 3 - committed
    assert hours(history).equals(merged(rows))
    assert {load(folder).batch for folder in (history / "1h").glob("*/*")} == {"7"}
    assert_clean(history)


def test_a_batch_has_no_other_files_than_its_own(tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    for seq in range(2):
        write_spool(spool, [interval([seq + 1], seq=seq)], "s0", seq)
    done = add_batch(Threads(1), spool, history, {"date=2025-11-21/s0-000001.parquet"}, 0, lambda text: None)
    assert done.intervals == 1
    assert load(folder_of(history, NOON_US)).merged == {"s0": [(1, 1)]}


def test_a_batch_waits_for_another_writer(tmp_path: Path) -> None:
    spool, history = tmp_path / "spool", tmp_path / "history"
    rows = sample_spool(spool, files=1, hours=1)
    lock = FolderLock(history, "busy")
    told = []

    def progress(text: str) -> None:
        told.append(text)
        if "waiting for another process" in text:
            lock.release()

    names = {str(path.relative_to(spool)) for path in spool.rglob("*.parquet")}
    add_batch(Threads(1), spool, history, names, 3, progress)
    assert told[0] == f"batch 3: waiting for another process that writes {history}"
    assert hours(history).equals(merged(rows))


def command(spool: Path, history: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start a stream that looks for new files every second; its output is added to the log."""
    words = ("history", "stream", "--every", "1", "--master", "local[1]", "--spool", spool, "--history", history)
    with log.open("ab") as file:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "heliograph.monitor.cli", *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=os.environ | {"JAVA_TOOL_OPTIONS": SHORT_LIVED},
            start_new_session=True,
        )


def test_the_command_counts_once_what_a_killed_one_has_begun_and_streams_until_ctrl_c(tmp_path: Path) -> None:
    spool, history, log = tmp_path / "spool", tmp_path / "history", tmp_path / "log"
    rows = sample_spool(spool, files=12, hours=6)
    process = command(spool, history, log)
    try:
        until(lambda: is_writing(history) or process.poll() is not None, "the second half of a batch")
    finally:
        kill(process)
    assert process.returncode == -signal.SIGKILL, log.read_text()
    assert commits(history) == 0, "killed too late"
    process = command(spool, history, log)
    try:

        def has(number: int) -> bool:
            return log.read_text().count(" new intervals") >= number or process.poll() is not None

        until(lambda: has(1), "the first batch")
        late = [interval([7], seq=900, at_s=30)]
        write_spool(spool, late, "s0", 900)
        until(lambda: has(2), "the second batch")
        os.killpg(process.pid, signal.SIGINT)  # the whole foreground group, as a terminal does
        until(lambda: process.poll() is not None, "the end")
    finally:
        kill(process)
    assert process.returncode == 0, log.read_text()
    told = [line.partition(": ")[2] for line in log.read_text().splitlines() if line.startswith("batch ")]
    assert told == [
        f"{len(rows)} new intervals with {sum(row.n for row in rows):,} values in 6 hours",
        "1 new intervals with 1 values in 1 hour",
    ]
    assert "Traceback" not in log.read_text()
    assert hours(history).equals(merged(rows, late))
    assert_clean(history)


@pytest.mark.parametrize("text", ["0", "soon", "nan", "1e9"])
def test_a_time_that_is_none_is_named(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["history", "stream", "--every", text])
    assert end.value.code == 2
    assert f"{text} is not a time from 1 to 86400 seconds" in capsys.readouterr().err
