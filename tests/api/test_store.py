"""The files of a message store: both directions against an independent reader, and `heliograph store`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.engine import _store
from heliograph.engine.errors import Error
from heliograph.engine.store import faults, segments
from heliograph.monitor.cli import main
from tests.stores import Kept, read, segment

GSI, PORT = bytes.fromhex("a1b2c3d4e5f6"), 7500
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
        assert faults(segments(folder, thorough=True)) == []


@given(st.lists(st.lists(MESSAGE, min_size=1, max_size=5), max_size=6), st.text(max_size=60), MESSAGE)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_the_engine_continues_what_the_independent_writer_wrote(
    batches: list[list[Kept]], source: str, more: Kept
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "store.lock").write_text("heliograph store 1\n")
        (folder / f"{GSI.hex()}-{PORT}-{1:016x}.seg").write_bytes(segment(GSI, PORT, batches, source))
        before = segments(folder, thorough=True)
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
    found = segments(tmp_path, thorough=True)
    assert [one.number for one in found] == [number for number in left if number <= last]
    assert [text.partition(", ")[2] for text in faults(found)] == ([fault] if fault else [])


def test_a_directory_without_a_store_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "verify", str(tmp_path)]) == 2
    assert "is not a store" in capsys.readouterr().err
    (tmp_path / "store.lock").write_text("heliograph store 2\n")
    with pytest.raises(Error, match="not a store of version 1"):
        segments(tmp_path)
