"""A few rounds of `make soak-store`, where no other test does the same: stores that return to a quorum."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.house import TOP
from tests.stores import Kept, write_store

from .parts import Limits, held_by, victims
from .processes import Failed, until
from .quorum import quorum
from .run import PARTS

STREAM = "a1b2c3d4e5f6:7500"


def _processes(folder: Path) -> list[str]:
    """Command lines of the processes whose temporary files go to a folder."""
    mark = f"TMPDIR={folder}".encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (place / "environ").read_bytes().split(b"\0"):
                found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


def test_stores_that_are_killed_and_return_hold_the_quorum(tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32)
    said = victims(Limits("victims", 4, 60.0, random.Random(seed)), tmp_path / "victims")
    assert said.startswith(tuple(f"{count} victims, " for count in range(1, 5))), seed


def test_what_a_quorum_calls_stable_survives_any_one_store(tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32)
    said = quorum(Limits("quorum", 3, 60.0, random.Random(seed)), tmp_path / "quorum")
    assert said.startswith(tuple(f"{count} losses of a store, " for count in range(1, 4))), (seed, said)


def test_a_message_that_one_store_alone_has_is_seen(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two", "three")]
    for folder, numbers in zip(folders, ([0, 1, 2], [0, 1], [1]), strict=True):
        write_store(folder, [Kept("ORDERS", 0, n, n + 1, n + 1, 0, b"%d" % n) for n in numbers])
    assert held_by(2, folders, STREAM, 0, 2, "both") == 2
    with pytest.raises(Failed, match=r"last: 1 acknowledged messages are in less than 2 stores: \[2\]"):
        held_by(2, folders, STREAM, 0, 3, "last")


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A directory with a short name: the path of a socket within it has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        yield Path(name)


@pytest.mark.parametrize("part", ["kills", "victims", "seams"])
def test_ctrl_c_leaves_nothing_behind(part: str, tmp_path: Path, temporary: Path) -> None:
    words = [sys.executable, "-m", "tests.soak.run", "--results", str(tmp_path / "results")]
    words += [word for name in PARTS for word in (f"--{name}", "500" if name == part else "0")]
    with (tmp_path / "said").open("w") as said:
        run = subprocess.Popen(
            words, cwd=TOP, env={**os.environ, "TMPDIR": str(temporary)}, stdout=said, stderr=subprocess.STDOUT
        )
        try:
            until(lambda: run.poll() is not None or list(temporary.glob("*/*/*/*.seg")), "it is at work")
            run.send_signal(signal.SIGINT)
            assert run.wait(30.0) == 130, (tmp_path / "said").read_text()
        finally:
            run.kill()
            run.wait()
    until(lambda: not _processes(temporary), "all have ended")
    assert list(temporary.iterdir()) == []
