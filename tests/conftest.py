"""What every test gets: a segment folder of its own, so that none sees or touches the engines of this host."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

pytest_plugins = ["tests.plugins.strict_skips"]

# A shell that runs the tests in the background has them ignore Ctrl-C, and so would the programs they start and stop.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's segment folder, empty; also what processes it starts will use."""
    folder = tmp_path / "segments"
    folder.mkdir()
    monkeypatch.setenv("HELIOGRAPH_SEGMENT_DIR", str(folder))
    return folder
