"""`heliograph store export`: the archive has every finished message once, whatever happens to the runs."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from heliograph.engine import _store
from heliograph.engine.errors import Error, UsageError
from heliograph.engine.store import archive as archives
from heliograph.engine.store.archive import Archive, partition
from heliograph.engine.store.export import Selection, export
from heliograph.engine.store.files import segments
from heliograph.engine.store.reader import read, streams
from heliograph.monitor.cli import main
from tests.stores import Kept

GSI = bytes.fromhex("a1b2c3d4e5f6")
DAY = 86_400_000_000_000
START = 20_000 * DAY - 5_000
TOPICS = ["PRICES.FX", "a/../../b", "É" * 120, "%41=~", "date=1", " ", "x" * 255, "/" * 255, "123"]
Row = tuple[Any, ...]


def message(number: int, topic: str = "PRICES.FX", receive_ns: int | None = None) -> Kept:
    at = START + number * 10 if receive_ns is None else receive_ns
    return Kept(topic, number % 3, 2**63 + number, at - 5 if number % 2 else 0, at, number % 2, b"%d" % number * 3)


def fill(folder: Path, messages: list[Kept], port: int = 7500, segment_bytes: int = 6000) -> None:
    folder.mkdir(exist_ok=True)
    _store.append(folder, GSI, port, "192.0.2.1:7500", messages, 300, segment_bytes)


def wanted(store: Path, *, finished: bool = True) -> list[Row]:
    """The rows that an archive of the store must have, from the store's own reader."""
    last = {one.stream: one.position for one in segments(store)}
    return sorted(
        (
            *(one.topic, one.receive_ns // DAY, one.stream, one.position, one.number, one.sequence or None),
            *(one.receive_ns // 1000, one.receive_ns, one.submit_ns or None, one.recovered, one.data),
        )
        for stream in streams(store)
        for one in read(store, stream)
        if not finished or one.position < last[stream]
    )


def rows(out: Path) -> list[Row]:
    """The rows of an archive; the topic of each file from its path and its metadata."""
    found = []
    for path in out.rglob("*.parquet"):
        topic = pq.read_schema(path).metadata[b"heliograph.topic"].decode()
        table = pq.ParquetFile(path).read(use_threads=False)
        day = int(datetime.fromisoformat(f"{path.parent.name.removeprefix('date=')}T00:00+00:00").timestamp()) // 86400
        assert path.parent.relative_to(out).as_posix() == partition((topic, day))
        table = table.set_column(4, "time", table["time"].cast("int64"))
        found += [(topic, day, *row.values()) for row in table.to_pylist()]
    return sorted(found)


def files(out: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in out.rglob("*.parquet")}


def test_an_archive_has_each_finished_message_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    messages = [message(i, TOPICS[i % len(TOPICS)]) for i in range(1, 500)]
    fill(store, messages[:200])
    fill(store, messages[:100], port=7501)
    assert main(["store", "export", str(store), "--to", str(out), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert rows(out) == wanted(store)
    last = {one.stream: one for one in segments(store)}
    assert first["lag_messages"] == sum(one.messages for one in last.values())
    oldest = min(one.first_ns for one in last.values())
    assert 0 <= time.time_ns() - oldest - first["lag_ns"] < 60e9
    assert {path.relative_to(out).parts[0] for path in out.rglob("*") if path.is_dir()} >= {archives.WORK_FOLDER}
    assert all(path.suffix == ".parquet" for path in out.rglob("*") if path.is_file() and path.parent.name != "_export")

    before = files(out)
    fill(store, messages[200:])
    assert main(["store", "export", str(store), "--to", str(out)]) == 0
    assert "not exported yet, the oldest" in capsys.readouterr().out
    assert rows(out) == wanted(store)
    assert before.keys() < files(out).keys()
    assert before.items() <= files(out).items()  # what is there is not written again

    before = files(out)
    assert main(["store", "export", str(store), "--to", str(out)]) == 0
    assert "exported 0 messages, 0 bytes, from 0 segments to 0 files" in capsys.readouterr().out
    (out / "_export/exported.json").write_text("{")  # a lost ledger costs time only
    assert main(["store", "export", str(store), "--to", str(out)]) == 0
    assert "exported 0 messages" in capsys.readouterr().out
    assert files(out) == before

    assert main(["store", "export", str(store), "--to", str(out), "--unfinished"]) == 0
    assert "; nothing is left" in capsys.readouterr().out
    assert rows(out) == wanted(store, finished=False)
    fill(store, [message(2000 + i) for i in range(3)])
    assert main(["store", "export", str(store), "--to", str(out), "--unfinished"]) == 0
    assert "exported 3 messages" in capsys.readouterr().out
    assert rows(out) == wanted(store, finished=False)

    table = ds.dataset(out, partitioning=ds.partitioning(flavor="hive")).to_table(columns=["topic", "date", "number"])
    assert set(table["topic"].to_pylist()) >= {"PRICES.FX", "a/../../b", "%41=~", "date=1", " ", "123"}


def test_what_is_selected_adds_up(tmp_path: Path) -> None:
    """Runs with other selections, in any order, with few rows in memory and few files at a time."""
    store, out = tmp_path / "store", tmp_path / "out"
    dice = random.Random(7)
    fill(store, [message(i, dice.choice(TOPICS)) for i in range(1, 400)], segment_bytes=20_000)
    whole = wanted(store)
    expected: set[Row] = set()
    with pytest.MonkeyPatch.context() as patch, Archive(out) as archive:
        patch.setattr(archives, "_PARTS_MAX", 3)
        patch.setattr(archives, "_BUFFER_BYTES", 20_000)
        for _ in range(6):
            first = START + dice.randrange(4000)
            last = first + dice.randrange(2000)
            pattern = dice.choice([None, "*=*", "PRICES.FX", "x*"])
            export(store, archive, Selection(pattern, "time", first, last))
            of_pattern = {None: TOPICS, "*=*": ["%41=~", "date=1"], "PRICES.FX": ["PRICES.FX"], "x*": ["x" * 255]}
            expected |= {row for row in whole if row[0] in of_pattern[pattern] and first <= row[7] <= last}
        assert rows(out) == sorted(expected)
        with pytest.raises(UsageError, match="another process writes the archive"):
            Archive(out)
        export(store, archive, Selection(by="number", last=2**63 + 100))
        assert rows(out) == sorted(expected | {row for row in whole if row[4] <= 2**63 + 100})
        export(store, archive, Selection())
        assert rows(out) == wanted(store)
        assert max(pq.read_metadata(path).num_row_groups for path in out.rglob("*.parquet")) > 1


KILLED = """
import os, signal, sys
from heliograph.monitor.cli import main
left = int(sys.argv[1])
def counted(real):
    def call(*arguments):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)
    return call
os.fsync, os.rename, os.mkdir = counted(os.fsync), counted(os.rename), counted(os.mkdir)
main(["store", "export", sys.argv[2], "--to", sys.argv[3]])
"""


def test_the_last_segment_of_a_stream_that_rests_is_finished(tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    fill(store, [message(i) for i in range(1, 100)])
    last = sorted(store.glob("*.seg"))[-1]
    with Archive(out) as archive:
        for age, expected in ((500, wanted(store)), (700, wanted(store, finished=False))):
            os.utime(last, (time.time() - age,) * 2)
            done = export(store, archive, Selection())
            assert rows(out) == expected
            assert done.lag_messages == 99 - len(expected)
        fill(store, [message(i) for i in range(100, 105)])  # the stream continues
        assert export(store, archive, Selection()).lag_messages == 5
        os.utime(last, (time.time() - 700,) * 2)
        assert export(store, archive, Selection()).messages == 5
        assert rows(out) == wanted(store, finished=False)


def test_a_killed_run_is_continued(tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    fill(store, [message(i, TOPICS[i % 4]) for i in range(1, 300)])
    before: list[Row] = []
    left = []
    for calls in (5, 11, 15, 21):
        done = subprocess.run([sys.executable, "-c", KILLED, str(calls), str(store), str(out)], check=False)
        assert done.returncode == -signal.SIGKILL
        found = rows(out)
        assert len(set(found)) == len(found)
        assert set(before) <= set(found) < set(wanted(store))
        before = found
        left += (out / "_export").glob("*.tmp")
    assert before
    assert left
    assert main(["store", "export", str(store), "--to", str(out)]) == 0
    assert rows(out) == wanted(store)
    assert list((out / "_export").glob("*.tmp")) == []


def test_damage_and_retention_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    fill(store, [message(i) for i in range(1, 100)], segment_bytes=1500)
    paths = sorted(store.glob("*.seg"))
    sound = paths[1].read_bytes()
    paths[1].write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    complete = wanted_without(store, 2, sound)
    arguments = ["store", "export", str(store), "--to", str(out)]
    assert main(arguments) == 1
    told = capsys.readouterr()
    assert "segment 2: " in told.err
    assert rows(out) == complete
    paths[1].write_bytes(sound)  # a late segment
    assert main(arguments) == 0
    assert rows(out) == wanted(store)
    capsys.readouterr()

    before = wanted(store)
    gone = segments(store)[-1]
    fill(store, [message(i) for i in range(200, 300)], segment_bytes=1500)
    lost = [one for one in segments(store) if one.number <= gone.number + 1]
    for one in lost:
        for path in store.glob(f"*{one.number:016x}.*"):
            path.unlink()
    assert main([*arguments, "--json"]) == 1
    missed = sum(one.messages for one in lost if one.number >= gone.number)
    told = capsys.readouterr()
    assert json.loads(told.out)["missed_messages"] == missed
    assert "were removed from the store before they were exported" in told.err
    assert rows(out) == sorted([*before, *wanted(store)])


def wanted_without(store: Path, number: int, sound: bytes) -> list[Row]:
    path = next(store.glob(f"*{number:016x}.seg"))
    damaged = path.read_bytes()
    path.write_bytes(sound)
    left = next(one for one in segments(store) if one.number == number)
    found = [row for row in wanted(store) if not left.position <= row[3] < left.position + left.messages]
    path.write_bytes(damaged)
    return found


def test_a_stream_that_begins_again_is_added(tmp_path: Path) -> None:
    """The store was removed; its stream has segment 1 again. A copy of another store is refused where it differs."""
    store, other, out = tmp_path / "store", tmp_path / "other", tmp_path / "out"
    fill(store, [message(i) for i in range(1, 100)])
    fill(other, [message(i) for i in range(500, 600)])
    with Archive(out) as archive:
        export(store, archive, Selection())
        export(other, archive, Selection())
        assert rows(out) == sorted([*wanted(store), *wanted(other)])
        shorter = tmp_path / "shorter"
        fill(shorter, [message(i) for i in range(1, 100)], segment_bytes=700)
        with pytest.raises(Error, match=r"which its segment does not have: .* a directory of its own"):
            export(shorter, archive, Selection())
        assert rows(out) == sorted([*wanted(store), *wanted(other)])
        path = next(out.rglob(f"*-{START + 10:016x}.parquet"))
        path.write_bytes(path.read_bytes()[:100])
        (archive.work / "exported.json").unlink()
        with pytest.raises(Error, match=f"{path.name} cannot be read.*remove it"):
            export(store, archive, Selection())


def test_it_follows_a_store_until_it_is_stopped(tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    fill(store, [message(i, receive_ns=time.time_ns()) for i in range(1, 50)])
    command = [sys.executable, "-m", "heliograph.monitor.cli", "store", "export", str(store), "--to", str(out)]
    following = [*command, "--follow", "--unfinished", "--interval", "0.1s", "--json"]
    with subprocess.Popen(following, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        assert (first["messages"], first["lag_messages"], first["lag_ns"]) == (49, 0, 0)
        fill(store, [message(i, receive_ns=time.time_ns()) for i in range(50, 60)])
        assert json.loads(process.stdout.readline())["messages"] == 10
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert rows(out) == wanted(store, finished=False)


def test_a_store_is_exported_while_it_is_written_and_trimmed(tmp_path: Path) -> None:
    """Every exported message is one that was written, and no finished one that was left is missing."""
    store, out = tmp_path / "store", tmp_path / "out"
    fill(store, [message(1)])
    stop = threading.Event()

    def write() -> None:
        for i in range(2, 60):
            fill(store, [message(i * 100 + j) for j in range(20)], segment_bytes=3000)
            if i % 5 == 0 and stop.wait(0.01):
                return
            for path in sorted(store.glob("*.seg"))[:-8]:
                path.unlink()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with Archive(out) as archive:
            while writer.is_alive():
                assert export(store, archive, Selection(has_unfinished=True)).faults == []
            done = export(store, archive, Selection(has_unfinished=True))
    finally:
        stop.set()
        writer.join()
    found = rows(out)
    assert set(wanted(store, finished=False)) <= set(found)
    assert len({row[3] for row in found}) == len(found)
    assert len(found) + done.missed_messages == 58 * 20 + 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--from", "5", "--until", "4"], "--from 5 is later than --until 4"),
        (["--to", "store/archive"], "must not be in the store"),
        (["--to", "full"], "the export to full failed: full"),
    ],
)
def test_a_mistake_is_named(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / "store", [message(1)])
    (tmp_path / "full").write_text("a file")
    assert main(["store", "export", "store", "--to", "out", *arguments]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "store/archive").exists()
    assert main(["store", "export", "nothing", "--to", "out2"]) == 2
    assert not (tmp_path / "out2").exists()


def test_a_day_and_a_stream_of_their_own_have_files_of_their_own(tmp_path: Path) -> None:
    fill(tmp_path / "store", [message(i) for i in range(1, 1500)], segment_bytes=50_000)
    with Archive(tmp_path / "out") as archive:
        export(tmp_path / "store", archive, Selection())
    midnight = datetime.fromtimestamp((START + 5000) // 10**9, UTC)
    assert {path.name for path in (tmp_path / "out").rglob("date=*")} == {"date=2024-10-03", "date=2024-10-04"}
    assert f"{midnight:%Y-%m-%d}" == "2024-10-04"
