"""The sample fleet and the browser for the tests of the live page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards.browsing import Running, chromium_or_skip, served
from tests.dashboards.pasts import keep_history
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


@pytest.fixture(scope="module")
def open_to_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Live pages with every form."""
    place = tmp_path_factory.mktemp("pages")
    token = "fedcba9876543210-control"
    with served(place, "--history", str(keep_history(place / "history")), control_token_file=token) as page:
        yield page


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Any]:
    with chromium_or_skip(tmp_path / "profile") as found:
        yield found
