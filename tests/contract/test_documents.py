"""The documents people read: the pictures are fresh, and what the pages name exists."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_picture_of_the_architecture_is_fresh() -> None:
    subprocess.run([sys.executable, ROOT / "deploy" / "bootstrap" / "picture.py", "--check"], check=True)
