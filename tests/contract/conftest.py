"""Where the tests of the contract find the house and what was built of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def top() -> Path:
    """The repository."""
    return TOP


@pytest.fixture(scope="session")
def native_build() -> Path:
    """The release build of the C core: ``build/release``, or what HELIOGRAPH_NATIVE_BUILD names."""
    folder = Path(os.environ.get("HELIOGRAPH_NATIVE_BUILD", TOP / "build" / "release"))
    if not (folder / "CMakeCache.txt").exists():
        pytest.skip(f"no C build in {folder}; `make test` makes it")
    return folder
