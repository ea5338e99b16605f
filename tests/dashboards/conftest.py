"""The sample fleet and the browser for the tests of the live page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heliograph.dashboards.live.capture import browser
from tests.dashboards.browsing import Running, chromium, served
from tests.dashboards.views import Fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    found = Fleet(tmp_path / "segments")
    yield found
    found.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with served(tmp_path) as found:
        yield found


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Any]:
    pytest.importorskip("selenium", reason="selenium is not installed")
    if browser() is None or shutil.which("chromedriver") is None:
        pytest.skip("chromium and its driver are not installed")
    with chromium(tmp_path / "profile") as found:
        yield found
