"""Generated files are what the generator writes now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_headers_and_reference_pages_are_fresh(top: Path) -> None:
    script = top / "engine/catalogue/generate.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_generated_files_say_so(top: Path) -> None:
    public = (top / "engine/include/heliograph" / name for name in ("actions.h", "errors.h"))
    headers = [*(top / "engine/core/generated").glob("*.h"), *public]
    assert len(headers) > 3
    for path in headers:
        assert "do not edit" in path.read_text(encoding="utf-8").splitlines()[0], path
