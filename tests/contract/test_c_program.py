"""A C program needs the library and its headers as they are installed, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.ports import free_port


def test_a_c_program_builds_and_runs_against_what_is_installed(top: Path, native_build: Path, tmp_path: Path) -> None:
    for tool in ("cmake", "cc"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} here")
    prefix, program = tmp_path / "installed", tmp_path / "hello"
    subprocess.run(["cmake", "--install", native_build, "--prefix", prefix], check=True, capture_output=True)
    (library,) = prefix.rglob("libheliograph.so")
    source = top / "deploy/examples/hello.c"
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{prefix / 'include'}", source]
    subprocess.run([*command, f"-L{library.parent}", "-lheliograph", "-o", program], check=True)
    endpoint = f"rmm://239.192.77.5:{free_port()}?interface=127.0.0.1&linger=0"
    done = subprocess.run(
        [program, endpoint],
        env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "seen\n", "")
