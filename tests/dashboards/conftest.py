"""The sample fleet for every test of the live page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboards.views import Fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    found = Fleet(tmp_path / "segments")
    yield found
    found.close()
