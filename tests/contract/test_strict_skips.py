"""The plugin that makes a skip fail in CI, tried on a session of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
TESTS = """
import pytest

def test_that_could_run(): pytest.skip("no tshark here")
def test_that_cannot(): pytest.skip("the data set is not beside the repository")
def test_fine(): pass
"""


def outcome(folder: Path, strict: str) -> str:
    (folder / "test_sample.py").write_text(TESTS, encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.plugins.strict_skips",
            "-p",
            "no:cacheprovider",
            str(folder),
        ],
        env={**os.environ, "HELIOGRAPH_STRICT": strict, "PYTHONPATH": f"{TOP}:{os.environ.get('PYTHONPATH', '')}"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def test_in_strict_mode_only_the_allowed_skip_passes(tmp_path: Path) -> None:
    text = outcome(tmp_path, "1")
    assert "1 failed, 1 passed, 1 skipped" in text
    assert "skipped in strict mode: no tshark here" in text


def test_otherwise_skips_are_skips(tmp_path: Path) -> None:
    assert "1 passed, 2 skipped" in outcome(tmp_path, "")
