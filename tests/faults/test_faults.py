"""A few faults of each kind at each component; `make faults` does the same 200 times."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.faults import places
from tests.faults.cases import CASES
from tests.faults.house import TOP, House
from tests.faults.row import Row
from tests.faults.run import FAULTS, run_case, table

SEED = 11


@pytest.mark.parametrize("component", list(CASES))
def test_it_comes_back_from_a_fault_of_each_kind(component: str, tmp_path: Path) -> None:
    rows = run_case(component, tmp_path / "house", 1, SEED, threading.Event())
    assert [(row.fault, row.runs) for row in rows] == [(fault, 1) for fault in FAULTS]
    assert all(row.is_good for row in rows), rows


def test_a_full_disk_is_survived_and_left_behind(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a tmpfs takes root")
    rows = places.PARTS["disk full"](tmp_path / "disk", 1, SEED, threading.Event())
    assert all(row.is_good for row in rows), rows


def test_a_step_of_the_wall_clock_loses_nothing(tmp_path: Path) -> None:
    rows = places.PARTS["wall clock stepped"](tmp_path / "clock", 2, SEED, threading.Event())
    assert all(row.is_good for row in rows), rows


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
