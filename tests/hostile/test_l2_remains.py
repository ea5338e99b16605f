"""L2: what a killed instance left is removed when one of its name starts again, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from heliograph.engine import Instance
from tests.hostile.users import ROOT_ONLY, give_away

ENGINE = """
import sys, time
from heliograph.engine import Instance
with Instance(name=sys.argv[1]):
    print("up", flush=True)
    time.sleep(60)
"""


@contextmanager
def engine(name: str) -> Iterator[subprocess.Popen[str]]:
    """An instance in a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", ENGINE, name], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "up\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def killed(name: str) -> int:
    """The number of a process that was killed with an instance of this name."""
    with engine(name) as process:
        return process.pid


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_l2_a_restart_removes_what_its_name_left(segments: Path) -> None:
    for _ in range(2):
        pid = killed("feed")
        assert {f"feed.{pid}.helio", f"feed.{pid}.flight"} <= names(segments)
    with Instance(name="feed"):
        assert names(segments) == {f"feed.{os.getpid()}.helio", f"feed.{os.getpid()}.flight"}
    assert not names(segments)


def test_l2_other_names_and_kept_recordings_stay(segments: Path) -> None:
    other = killed("feed2")
    pid = killed("feed")
    kept = segments / f"feed.{pid}.1.flight"
    kept.write_bytes(b"evidence")
    stays = {kept.name, f"feed2.{other}.helio", f"feed2.{other}.flight", "feed.x.helio"}
    (segments / "feed.x.helio").write_bytes(b"")
    with Instance(name="feed"):
        assert names(segments) == stays | {f"feed.{os.getpid()}.helio", f"feed.{os.getpid()}.flight"}


@pytest.mark.parametrize("stopped", [False, True])
def test_l2_a_live_instance_of_the_name_keeps_its_files(segments: Path, stopped: bool) -> None:
    with engine("feed") as process:
        if stopped:
            process.send_signal(signal.SIGSTOP)
        with Instance(name="feed"):
            assert {f"feed.{process.pid}.helio", f"feed.{process.pid}.flight"} <= names(segments)
        assert {f"feed.{process.pid}.helio", f"feed.{process.pid}.flight"} <= names(segments)


@ROOT_ONLY
def test_l2_files_of_other_users_stay(segments: Path) -> None:
    pid = killed("feed")
    give_away(segments / f"feed.{pid}.helio")
    with Instance(name="feed"):
        assert f"feed.{pid}.helio" in names(segments)
        assert f"feed.{pid}.flight" not in names(segments)


def test_l2_half_made_files_are_removed_too(segments: Path) -> None:
    for name in (".feed.1.helio.0.new", ".feed.1.flight.3.new"):
        (segments / name).write_bytes(b"")
    with Instance(name="feed"):
        assert not [name for name in names(segments) if name.startswith(".")]
