"""A few faults of each kind at each component; `make faults` does the same 200 times."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults import places
from tests.faults.cases import CASES, remains
from tests.faults.house import TOP, House
from tests.faults.row import Row, Skipped
from tests.faults.run import FAULTS, run_case, table

SEED = 11


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[list[Row]]]]:
    """Every component in a house of its own, some at once: most of the time is waiting."""
    stop = threading.Event()
    pool = ThreadPoolExecutor(4)
    folder = tmp_path_factory.mktemp("houses")
    yield {name: pool.submit(run_case, name, folder / str(number), 1, SEED, stop) for number, name in enumerate(CASES)}
    stop.set()
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("component", list(CASES))
def test_it_comes_back_from_a_fault_of_each_kind(component: str, houses: dict[str, Future[list[Row]]]) -> None:
    rows = houses[component].result()
    assert [(row.fault, row.runs) for row in rows] == [(fault, 1) for fault in FAULTS]
    assert all(row.is_good for row in rows), rows


def test_a_full_disk_is_survived_and_left_behind(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a tmpfs takes root")
    rows = places.PARTS["disk full"](tmp_path / "disk", 1, SEED, threading.Event())
    assert all(row.is_good for row in rows), rows


def test_a_step_of_the_wall_clock_loses_nothing(tmp_path: Path) -> None:
    rows = places.PARTS["wall clock stepped"](tmp_path / "clock", 4, SEED, threading.Event())
    assert all(row.is_good for row in rows), rows


def test_engines_in_time_namespaces_find_each_other_and_come_back(tmp_path: Path) -> None:
    try:
        rows = places.PARTS["other monotonic clock"](tmp_path / "clock", 2, SEED, threading.Event())
    except Skipped as error:
        pytest.skip(str(error))
    assert all(row.is_good for row in rows), rows


def _inhabitants(folder: Path) -> list[str]:
    """Command lines of the processes whose temporary files go to a folder."""
    mark = f"TMPDIR={folder}".encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (place / "environ").read_bytes().split(b"\0"):
                found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


@pytest.mark.parametrize("part", ["publisher of statistics", "disk full", "other monotonic clock"])
def test_ctrl_c_leaves_nothing_behind(part: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.faults.run", "--faults", "500", "--rollups", "0", "--only", part]
    with House(tmp_path / "house") as house, (tmp_path / "said").open("w") as said:
        temporary = tmp_path / "tmp"
        temporary.mkdir()
        environment = {**os.environ, "TMPDIR": str(temporary)}
        run = subprocess.Popen(words, cwd=TOP, env=environment, stdout=said, stderr=subprocess.STDOUT)
        try:
            at_work = house.until(lambda: run.poll() is not None or len(_inhabitants(temporary)) >= 3)
            if run.poll() is not None and "skipped" in (tmp_path / "said").read_text():
                pytest.skip((tmp_path / "said").read_text())
            assert at_work is not None
            run.send_signal(signal.SIGINT)
            assert run.wait(30.0) == 130, (tmp_path / "said").read_text()
        finally:
            run.kill()
            run.wait()
        assert house.until(lambda: not _inhabitants(temporary), 10.0) is not None, _inhabitants(temporary)
        assert list(temporary.iterdir()) == []
        assert str(temporary) not in Path("/proc/self/mounts").read_text()


def test_nobody_is_left_when_a_house_is_closed(tmp_path: Path) -> None:
    with House(tmp_path / "house") as house:
        house.start("sleeper", "tests.faults.visitor")
        assert house.until(house.survivors) is not None
    assert house.survivors() == []


def test_a_loss_and_a_component_that_does_not_come_back_are_seen() -> None:
    good = Row("engine", "kill", 3, 3, 0.5, 0, 0)
    assert good.is_good
    assert not Row("engine", "kill", 3, 2, 0.5, 0, 0).is_good
    assert not Row("engine", "kill", 3, 3, 0.5, 1, 0).is_good
    assert not Row("engine", "kill", 3, 3, 0.5, 0, 1).is_good
    assert not Row("engine", "kill", 3, 3, 0.5, 0, 0, ["a process is left"]).is_good
    assert table([good])[-1] == "| engine | kill | 3 | 3 | 0.50 | 0 | 0 |"


def test_files_of_more_than_one_life_of_a_name_are_seen(tmp_path: Path) -> None:
    for name in ("publisher.7.helio", "publisher.7.flight", "subscriber.8.helio"):
        (tmp_path / name).touch()
    assert remains(tmp_path) == ""
    (tmp_path / "publisher.6.helio").touch()
    assert remains(tmp_path) == "files of more than one life: {'publisher': ['6', '7']}"


def test_what_was_acknowledged_and_is_not_there_counts(tmp_path: Path) -> None:
    from tests.faults.actors import RECORD

    with House(tmp_path / "house") as house:
        (house.folder / "acked.bin").write_bytes(RECORD.pack(1, 1) + RECORD.pack(1, 2))
        (house.folder / "received.bin").write_bytes(RECORD.pack(1, 1) + b"half")
        assert set(house.records("acked.bin")) - set(house.records("received.bin")) == {(1, 2)}


def test_a_run_prints_its_seed_and_its_table() -> None:
    words = [sys.executable, "-m", "tests.faults.run", "--faults", "1", "--rollups", "0", "--only", "publisher of"]
    done = subprocess.run(words, cwd=TOP, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed" in done.stdout
    assert "| publisher of statistics | kill | 1 | 1 |" in done.stdout
