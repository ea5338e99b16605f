"""The files of a message store: both directions against an independent reader, and `heliograph store`."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.engine import Instance, _store
from heliograph.engine.errors import Error, OptionError
from heliograph.engine.store.files import faults
from heliograph.engine.store.files import segments as segments_of
from heliograph.engine.store.reader import read as stored
from heliograph.engine.store.reader import streams
from heliograph.engine.store.server import StoreServer
from heliograph.monitor.cli import main
from tests.ports import free_port
from tests.stores import Kept, read, segment

GSI, PORT = bytes.fromhex("a1b2c3d4e5f6"), 7500
STREAM = "a1b2c3d4e5f6:7500"
WORD = st.integers(0, 2**64 - 1)
MESSAGE = st.builds(
    Kept,
    st.sampled_from(["PRICES.FX", "A", "É" * 100]),
    *[WORD] * 4,
    st.integers(0, 255),
    st.binary(max_size=100),
)


def fill(folder: Path, messages: Sequence[Kept], batch_bytes: int = 300, segment_bytes: int = 1500) -> None:
    _store.append(folder, GSI, PORT, "192.0.2.1:7500", messages, batch_bytes, segment_bytes)


@given(st.lists(MESSAGE, max_size=30), st.integers(0, 30), st.integers(0, 500), st.integers(0, 3000))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_the_independent_reader_reads_what_the_engine_writes(
    messages: list[Kept], cut: int, batch_bytes: int, segment_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder, messages[:cut], batch_bytes, segment_bytes)
        fill(folder, messages[cut:], batch_bytes, segment_bytes)
        assert read(folder) == messages
        assert faults(segments_of(folder, thorough=True)) == []


@given(st.lists(st.lists(MESSAGE, min_size=1, max_size=5), max_size=6), st.text(max_size=60), MESSAGE)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_the_engine_continues_what_the_independent_writer_wrote(
    batches: list[list[Kept]], source: str, more: Kept
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "store.lock").write_text("heliograph store 1\n")
        (folder / f"{GSI.hex()}-{PORT}-{1:016x}.seg").write_bytes(segment(GSI, PORT, batches, source))
        before = segments_of(folder, thorough=True)
        assert [one.messages for one in before] == [sum(map(len, batches))]
        assert (before[0].tail, before[0].whole_bytes) == ("ok", before[0].bytes)
        fill(folder, [more])
        assert read(folder) == [*(one for batch in batches for one in batch), more]


def some(count: int) -> list[Kept]:
    return [Kept("PRICES.FX", i, i, i, i, 0, b"x" * 20) for i in range(1, count + 1)]


def test_ls_and_verify_of_a_sound_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path, some(100))
    assert main(["store", "ls", str(tmp_path), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["segments"]
    assert sum(one["messages"] for one in listed) == 100
    assert {one["stream"] for one in listed} == {"a1b2c3d4e5f6:7500"}
    assert main(["store", "ls", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(listed) + 1
    with (tmp_path / sorted(path.name for path in tmp_path.glob("*.seg"))[-1]).open("ab") as last:
        last.write(b"HBAT")  # as a crash leaves it
    assert main(["store", "verify", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("ok: 100 messages")


def test_verify_names_damage_and_missing_segments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path, some(100))
    paths = sorted(tmp_path.glob("*.seg"))
    data = bytearray(paths[0].read_bytes())
    data[len(data) // 2] ^= 1
    paths[0].write_bytes(data)
    paths[2].unlink()
    assert main(["store", "verify", str(tmp_path), "--json"]) == 1
    damage, gap = json.loads(capsys.readouterr().out)["faults"]
    assert "segment 1: damaged at byte" in damage
    assert "segment 4: segments before it are missing" in gap


@pytest.mark.parametrize(
    ("removed", "left", "fault"),
    [((1, 2, 3), [4, 5, 6], ""), ((3,), [1, 2, 4, 5, 6], "segment 4: segments before it are missing")],
)
def test_a_store_may_be_verified_while_it_is_written(
    removed: tuple[int, ...], left: list[int], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention removes the oldest segments between two reads. One removed from the middle is a fault."""
    fill(tmp_path, some(80))
    last = len(list(tmp_path.glob("*.seg")))
    real = _store.segment

    def meanwhile(path: Path, one: tuple[bytes, int, int], thorough: bool) -> object:
        if one[2] == 3:
            for number in removed:
                (tmp_path / f"{GSI.hex()}-{PORT}-{number:016x}.seg").unlink()
            fill(tmp_path, some(80))
        return real(path, one, thorough)

    monkeypatch.setattr(_store, "segment", meanwhile)
    found = segments_of(tmp_path, thorough=True)
    assert [one.number for one in found] == [number for number in left if number <= last]
    assert [text.partition(", ")[2] for text in faults(found)] == ([fault] if fault else [])


def test_a_directory_without_a_store_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "verify", str(tmp_path)]) == 2
    assert "is not a store" in capsys.readouterr().err
    (tmp_path / "store.lock").write_text("heliograph store 2\n")
    with pytest.raises(Error, match="not a store of version 1"):
        segments_of(tmp_path)


def fleet_of_messages(folder: Path) -> list[Kept]:
    """Messages of two topics in two streams."""
    messages = [
        Kept("PRICES.FX" if i % 3 else "ORDERS", 1000 + i, i, 10**18 + i, 10**18 + 1000 * i, i % 2, b"m%d" % i)
        for i in range(50)
    ]
    fill(folder, messages)
    _store.append(folder, bytes(6), 9, "", [Kept("PRICES.FX", 1, 0, 0, 5, 0, b"\xff\x00")], 300, 1500)
    return messages


def test_messages_are_read_by_each_of_their_numbers(tmp_path: Path) -> None:
    messages = fleet_of_messages(tmp_path)
    assert set(streams(tmp_path)) == {STREAM, "000000000000:9"}
    everything = list(stored(tmp_path, STREAM))
    assert [(one.topic, one.number, one.data, one.recovered) for one in everything] == [
        (one.topic, one.number, one.payload, bool(one.flags)) for one in messages
    ]
    assert [one.position for one in everything] == list(range(1, 51))
    for by, first, last, expected in (
        ("position", 11, 20, range(10, 20)),
        ("sequence", 1040, 2**64 - 1, range(40, 50)),
        ("number", 0, 3, range(4)),
        ("time", 10**18 + 5000, 10**18 + 7999, range(5, 8)),
    ):
        found = list(stored(tmp_path, STREAM, by=by, first=first, last=last))  # type: ignore[arg-type]
        assert [one.number for one in found] == list(expected), by
    for wrong in ({"stream": "x"}, {"stream": "a1b2c3d4e5f6:1"}, {"by": "age"}, {"first": 3, "last": 2}):
        with pytest.raises(OptionError):
            list(stored(tmp_path, **{"stream": STREAM, **wrong}))  # type: ignore[arg-type]


def test_replay_prints_what_is_asked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fleet_of_messages(tmp_path)

    def replay(*arguments: str) -> list[str]:
        assert main(["store", "replay", str(tmp_path), *arguments]) == 0
        return capfd.readouterr().out.splitlines()

    assert len(replay()) == 51
    assert replay("--stream", STREAM, "--topic", "ORD*", "--count", "3") == ["m0", "m3", "m6"]
    (last,) = map(json.loads, replay("--by", "number", "--first", "49", "--format", "json"))
    assert (last["data"], last["stream"], last["number"]) == ("m49", STREAM, 49)
    assert replay("--stream", "000000000000:9", "--format", "hex") == ["ff 00"]
    assert (
        replay("--by", "time", "--first", "2001-09-09T01:46:40+00:00", "--last", "2001-09-09T01:46:41+00:00")[0] == "m0"
    )
    assert main(["store", "replay", str(tmp_path), "--stream", "a1b2c3d4e5f6:1"]) == 2
    assert "has no stream a1b2c3d4e5f6:1" in capfd.readouterr().err
    with pytest.raises(SystemExit):
        main(["store", "replay", str(tmp_path), "--first", "yesterday"])
    assert "yesterday" in capfd.readouterr().err


def test_replay_stops_at_damage_with_the_segment_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fleet_of_messages(tmp_path)
    path = tmp_path / f"{GSI.hex()}-{PORT}-{1:016x}.seg"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert main(["store", "replay", str(tmp_path), "--stream", STREAM]) == 2
    assert f"the segment {path.name} is damaged" in capfd.readouterr().err


def test_replay_sends_messages_again(tmp_path: Path, segments: Path, capfd: pytest.CaptureFixture[str]) -> None:
    endpoint = f"rmm+unicast://127.0.0.1:{free_port()}"
    folder = tmp_path / "store"
    folder.mkdir()
    fleet_of_messages(folder)
    with Instance(name="desk") as desk:
        receiver = desk.receiver(endpoint, "ORDERS", ack="auto")
        assert main(["store", "replay", str(folder), "--topic", "ORDERS", "--to", endpoint, "--rate", "1000"]) == 0
        received: list[bytes] = []
        end = time.monotonic() + 10
        while len(received) < 17 and time.monotonic() < end:
            received += [message.data for message in receiver.receive(timeout=0.1)]
    assert received == [b"m%d" % i for i in range(0, 50, 3)]
    assert "sent 17 messages on 1 topics" in capfd.readouterr().err


def test_trim_removes_the_oldest_segments_and_nothing_else(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    now = time.time_ns()
    old = [Kept("A", 0, i, 1, now - 10**12 + i, 0, b"x" * 100) for i in range(60)]
    new = [Kept("A", 0, i, 1, now, 0, b"x" * 100) for i in range(60, 100)]
    fill(tmp_path, old)
    fill(tmp_path, new)
    _store.append(tmp_path, bytes(6), 9, "", old[:3], 300, 1500)  # a stream that ended
    before = {path.name for path in tmp_path.iterdir()}

    def trim(*arguments: str) -> str:
        assert main(["store", "trim", str(tmp_path), *arguments]) == 0
        return capfd.readouterr().out

    assert trim("--keep-time", "900s", "--dry-run").splitlines()[-1].startswith("would remove")
    assert {path.name for path in tmp_path.iterdir()} == before
    removed = json.loads(trim("--keep-time", "900s", "--json"))["removed"]
    assert {one["stream"] for one in removed} == {STREAM, "000000000000:9"}
    left = list(stored(tmp_path, STREAM))
    assert left[-1].number == 99
    assert 50 < left[0].number <= 60
    assert (
        sorted(path.stem for path in tmp_path.glob("*.idx"))
        == sorted(path.stem for path in tmp_path.glob("*.seg"))[:-1]
    )
    assert streams(tmp_path) == [STREAM]
    trim("--keep-bytes", "3k", "--stream", STREAM)
    assert sum(path.stat().st_size for path in tmp_path.glob("*.seg")) <= 3072
    trim("--keep-bytes", "1")
    assert len(list(tmp_path.glob("*.seg"))) == 1
    assert faults(segments_of(tmp_path, thorough=True)) == []
    fill(tmp_path, new)  # positions go on
    assert list(stored(tmp_path, STREAM))[-1].position == 140
    for wrong, words in (
        ([], "give --keep-bytes, --keep-time or both"),
        (["--keep-bytes", "1k", "--stream", "a1b2c3d4e5f6:1"], "has no stream a1b2c3d4e5f6:1"),
    ):
        assert main(["store", "trim", str(tmp_path), *wrong]) == 2
        assert words in capfd.readouterr().err


def test_trim_refuses_a_store_that_is_written(
    tmp_path: Path, segments: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fill(tmp_path, some(100))
    with StoreServer(tmp_path, name="store"):
        assert main(["store", "trim", str(tmp_path), "--keep-bytes", "1"]) == 2
    assert "another process writes the store" in capfd.readouterr().err
    assert len(list(stored(tmp_path, STREAM))) == 100
