"""The library exports what ``heliograph.h`` declares as HELIO_API, and nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest


def declared(header: Path) -> set[str]:
    """Functions marked HELIO_API, comments left out."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)
    return set(re.findall(r"^HELIO_API\b[^;(]*?\b(helio_\w+)\s*\(", text, re.MULTILINE))


def exported(library: Path) -> set[str]:
    lines = subprocess.run(
        ["nm", "--dynamic", "--defined-only", "--format=posix", str(library)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    return {line.split()[0] for line in lines}


def test_the_library_exports_exactly_the_public_functions(top: Path, native_build: Path) -> None:
    if shutil.which("nm") is None:
        pytest.skip("no nm (binutils) here")
    libraries = sorted(path for path in native_build.rglob("libheliograph.so*") if not path.is_symlink())
    assert libraries, f"no libheliograph.so in {native_build}"
    public = declared(top / "engine/include/heliograph/heliograph.h")
    assert len(public) > 15
    assert exported(libraries[0]) == public
