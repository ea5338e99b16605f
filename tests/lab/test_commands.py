"""``heliograph lab`` as it is typed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heliograph.monitor.lab.scenario import shipped

LAB = (sys.executable, "-m", "heliograph.monitor.cli", "lab")


def lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LAB, *arguments], capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def file(small: str, tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(small, encoding="utf-8")
    return str(path)


def test_list_names_what_comes_along() -> None:
    done = lab("list")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == shipped()


def test_show_says_what_must_come_out(file: str) -> None:
    done = lab("show", file)
    assert done.returncode == 0
    assert "pipe bottleneck: 2,000,000 B/s" in done.stdout
    assert "utilisation: at least 0.1 share of the bottleneck" in done.stdout
    assert "loss: is reported" in done.stdout


def test_run_prints_the_criteria_and_writes_both_files(file: str, tmp_path: Path) -> None:
    done = lab("run", file, "--seeds", "2", "--jobs", "1", "--json", "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)["criteria"]
    assert [(row["name"], row["verdict"], row["seeds"]) for row in rows] == [
        ("utilisation", "pass", 2),
        ("loss", "pass", 2),
    ]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["small.html", "small.json"]
    facts = json.loads((tmp_path / "out" / "small.json").read_text(encoding="utf-8"))
    assert facts["criteria"] == rows
    rate = facts["variants"][""]["charts"]["rate"]["series"]
    assert len(rate["source: sent"]) == 40


def test_a_criterion_that_fails_is_the_exit_code(file: str, small: str, tmp_path: Path) -> None:
    Path(file).write_text(small.replace("bound = 0.1", "bound = 1.5"), encoding="utf-8")
    done = lab("run", file, "--seeds", "1", "--jobs", "1", "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "fail  utilisation" in done.stdout


def test_a_mistake_is_a_sentence_and_code_2(file: str, small: str, tmp_path: Path) -> None:
    Path(file).write_text(small.replace("send_window", "send_widow"), encoding="utf-8")
    done = lab("run", file, "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "small.toml: source[0].options: a transmitter has no option" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("wrong", ["0", "-1", "many"])
def test_seeds_are_a_whole_number(file: str, wrong: str) -> None:
    assert lab("run", file, f"--seeds={wrong}").returncode == 2


def test_first_is_the_first_seed(file: str, tmp_path: Path) -> None:
    done = lab("run", file, "--seeds", "1", "--first", "1007", "--jobs", "1", "--json", "--out", str(tmp_path / "out"))
    assert done.returncode == 0
    assert [row["worst_seed"] for row in json.loads(done.stdout)["criteria"]] == [1007, 1007]
    assert lab("run", file, "--first", "0").returncode == 2


def test_ctrl_c_leaves_no_process_and_no_half_file(file: str, small: str, tmp_path: Path) -> None:
    Path(file).write_text(small.replace("duration = 2.0", "duration = 500.0"), encoding="utf-8")
    out = tmp_path / "out"
    running = subprocess.Popen(
        [*LAB, "run", file, "--seeds", "8", "--jobs", "2", "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    deadline = time.monotonic() + 30
    while not out.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=30)
    assert running.returncode == 130
    assert b"Traceback" not in said
    assert list(out.iterdir()) == []
    assert gone(running.pid, seconds=10)


def gone(group: int, seconds: float) -> bool:
    """Whether the process group has no process any more, at last."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
