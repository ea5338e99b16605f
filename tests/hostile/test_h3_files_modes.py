"""H3, the local part: what an instance tells of its streams is for its user and group alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from heliograph.engine import Instance
from tests.hostile.users import NOBODY, ROOT_ONLY, run


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_h3_files_with_stream_identities_are_not_for_everybody(segments: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    before = os.umask(0)
    try:
        with (
            Instance(name="feed", decision_log=str(logs)) as instance,
            instance.transmitter("rmm+unicast://127.0.0.7:45321", "T") as transmitter,
        ):
            transmitter.send(b"x")
            transmitter.flush()
            instance.freeze_flight("to see it")
            modes = {path.suffix: mode(path) for path in segments.iterdir()}
            (log,) = logs.iterdir()
            assert mode(log) == 0o640
    finally:
        os.umask(before)
    assert modes == {".helio": 0o640, ".flight": 0o640}
    (kept,) = segments.glob("*.1.flight")
    assert mode(kept) == 0o640


def test_h3_rings_are_for_their_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rings = tmp_path / "rings"
    monkeypatch.setenv("HELIOGRAPH_RING_DIR", str(rings))
    with Instance(mode="poll") as instance, instance.transmitter("shm://h3.modes", "T"):
        assert mode(rings) == 0o700
        assert {mode(path) for path in rings.iterdir()} == {0o600}


STRANGER = f"""
import os, sys
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
for path in sys.argv[1:]:
    try:
        os.open(path, os.O_RDONLY)
        print("read")
    except PermissionError:
        print("refused")
"""


@ROOT_ONLY
def test_h3_another_user_reads_no_stream_identity(segments: Path) -> None:
    for folder in (segments, *segments.parents):
        if folder == Path("/tmp"):
            break
        folder.chmod(0o755)
    with Instance(name="feed"):
        files = sorted(segments.iterdir())
        assert len(files) == 2
        done = run(STRANGER, *files)
        assert done.stdout.split() == ["refused"] * 2, done.stderr
