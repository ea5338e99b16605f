"""The sample fleet and the browser for the tests of the live page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heliograph.dashboards.live.capture import FLAGS, browser
from tests.dashboards.browsing import Running, first_line
from tests.dashboards.views import Fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    found = Fleet(tmp_path / "segments")
    yield found
    found.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    found = Running(tmp_path / "segments")
    try:
        assert found.url in first_line(found.process)
        yield found
    finally:
        found.close()


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Any]:
    pytest.importorskip("selenium", reason="selenium is not installed")
    from selenium import webdriver

    chromium, chromedriver = browser(), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip("chromium and its driver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1440,1800"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    try:
        yield found
    finally:
        found.quit()
