"""Files of another user, and programs that may die of a signal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["NOBODY", "ROOT_ONLY", "give_away", "run"]

NOBODY = 65534
ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to make files of another user")


def give_away(path: Path) -> Path:
    """Make a file or folder another user's."""
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return path


def run(program: str, *arguments: object, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; a negative `returncode` is the signal it died of."""
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
