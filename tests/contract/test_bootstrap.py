"""The way from a fresh clone: pins, and what is said when something is missing."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

TOP = Path(__file__).resolve().parents[2]
BOOTSTRAP = TOP / "deploy/bootstrap"


def requirements(*extras: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BOOTSTRAP / "requirements.py"), str(TOP / "pyproject.toml"), *extras]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    lines = (TOP / "deploy/constraints.txt").read_text(encoding="utf-8").splitlines()
    return {normal(name): version for name, _, version in (line.partition("==") for line in lines if line[0] != "#")}


def test_users_get_ranges_and_make_gets_pins_within_them() -> None:
    pinned = pins()
    for line in requirements("all", "dev").stdout.splitlines():
        requirement = Requirement(line)
        assert "==" not in line, f"{line}: pyproject.toml names ranges, deploy/constraints.txt the versions"
        assert pinned[normal(requirement.name)] in requirement.specifier, line


def test_what_users_get_has_a_lower_bound() -> None:
    for line in requirements("all").stdout.splitlines():
        assert ">=" in line, line


def test_every_package_of_the_environment_is_pinned() -> None:
    pinned = pins()
    for found in distributions():
        name = normal(found.metadata["Name"])
        if name not in {"heliograph", "pip"}:
            assert pinned.get(name) == found.version, f"{name} {found.version}: see deploy/constraints.txt"


def test_the_base_needs_no_heavy_library() -> None:
    names = {Requirement(line).name for line in requirements().stdout.splitlines()}
    assert names == {"numpy", "prometheus-client", "scikit-build-core"}


def test_an_unknown_extra_is_named() -> None:
    done = requirements("nonsense")
    assert done.returncode != 0
    assert "no extra 'nonsense'" in done.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the bootstrap, so that nothing of ours is touched."""
    shutil.copytree(TOP / "deploy", tmp_path / "clone/deploy", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TOP / "pyproject.toml", tmp_path / "clone")
    return tmp_path / "clone"


def run(script: Path, fakes: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a script with programs of our own before the system's."""
    programs = script.parent / "fakes"
    programs.mkdir()
    for name, body in fakes.items():
        (programs / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHON"}
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    return subprocess.run(["sh", str(script)], env=environment, capture_output=True, text=True, check=False)


def test_an_old_python_is_refused_with_what_to_do(copy: Path) -> None:
    done = run(copy / "deploy/bootstrap/environment.sh", {"python3": "echo Python 3.9.2; exit 1"})
    assert done.returncode == 1
    assert "Heliograph needs Python 3.11 or newer" in done.stderr
    assert not (copy / ".venv").exists()


def test_without_rights_the_command_is_printed_and_the_rest_goes_on(copy: Path) -> None:
    fakes = {
        "dpkg-query": 'case "$4" in tshark | cmake) exit 1 ;; esac; printf installed',
        "apt-get": "echo called >&2; exit 1",
        "id": "echo 1000",
        "sudo": "exit 1",
    }
    done = run(copy / "deploy/bootstrap/system.sh", fakes)
    assert done.returncode == 0
    assert "apt-get install --no-install-recommends cmake tshark\n" in done.stdout
    assert "called" not in done.stderr


def test_a_complete_system_is_left_alone(copy: Path) -> None:
    fakes = {"dpkg-query": "printf installed", "apt-get": "echo called >&2; exit 1"}
    done = run(copy / "deploy/bootstrap/system.sh", fakes)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_one_of_two_alternatives_is_enough(copy: Path) -> None:
    fakes = {
        "dpkg-query": 'case "$4" in openjdk-17-jre-headless) exit 1 ;; esac; printf installed',
        "apt-get": "echo called >&2; exit 1",
    }
    done = run(copy / "deploy/bootstrap/system.sh", fakes)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def stages(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(BOOTSTRAP / "stages.py"), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_stages_show_how_far_they_are_and_end_at_the_first_failure() -> None:
    ninja = r"build=printf '[1/4] a.c\n[4/4] d.c\nwarning\n'"
    ctest = r"ctest=printf ' 1/2 Test  #1: a .. Passed\n 2/2 Test  #2: b ..***Failed\n'"
    pytest_lines = r"py=printf 'tests/a.py ...s [ 50%%]\ntests/b.py .F. [ 75%%]\n..... [ 99%%]\n'"
    done = stages(ninja, ctest, pytest_lines, "bad=sh -c 'exit 3'", "never=true")
    told, _ = done.communicate(timeout=60)
    assert done.returncode == 3
    lines = told.splitlines()
    assert {"[1/5] build ...", "[1/5] build ... 100% 0:00", "warning", "[2/5] ctest ... 100% 0:00"} <= set(lines)
    assert "a.c" not in told
    assert "***Failed" in told
    assert "tests/b.py .F. [ 75%]" in lines
    assert "tests/a.py" not in told
    assert re.search(r"\n\[4/5\] bad: failed with status 3 in \d+:\d\d\nnever: not run\n$", told)


def test_an_interrupted_stage_leaves_no_process_behind(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    # A shell starts what it runs in the background with SIGINT ignored.
    with stages(f"""one=sh -c 'sleep 300 & echo $! >"{pid}"; echo ready; wait'""") as running:
        assert running.stdout is not None
        while "ready" not in running.stdout.readline():
            pass
        running.send_signal(signal.SIGINT)
        told, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "interrupted" in told
    state = Path(f"/proc/{pid.read_text(encoding='utf-8').strip()}/stat")
    assert not state.exists() or state.read_text(encoding="utf-8").split()[2] == "Z"
