"""The live page over a sample fleet in a process of its own, and what a browser shows of it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from heliograph.dashboards.live.capture import FLAGS, browser
from heliograph.dashboards.live.serving import listen
from heliograph.dashboards.live.store import Store
from tests.fleet import sample_fleet
from tests.incidents import keep_incident
from tests.ports import free_port

__all__ = [
    "Running",
    "addresses",
    "chromium",
    "chromium_or_skip",
    "click_to",
    "click_to_fleet",
    "first_line",
    "live",
    "seen",
    "served",
    "start",
    "until",
]


class Running:
    """`heliograph live` over a sample fleet that goes on beating, with one kept flight recording."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self._stopping = threading.Event()
        self._beats = threading.Thread(target=self._beat, daemon=True)
        sample_fleet(folder, 0)
        keep_incident(folder)
        self._beats.start()
        place = ("--listen", f"127.0.0.1:{self.port}", "--segments", str(folder))
        self.process = start(*place, "--interval", "0.5", *options)

    def _beat(self) -> None:
        step = 0
        while not self._stopping.wait(0.25):
            step += 1
            sample_fleet(self.folder, min(5, step // 4))

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=20)
        self._stopping.set()
        self._beats.join()


@contextlib.contextmanager
def served(folder: Path, *more: str, **tokens: str) -> Iterator[Running]:
    """A live page that answers.

    Args:
        folder: An empty folder, for the segments and the token files.
        more: Further options.
        tokens: Tokens by the name of their option: `token_file`, `control_token_file`.
    """
    options = list(more)
    for name, token in tokens.items():
        file = folder / name
        file.write_text(f"{token}\n")
        file.chmod(0o600)
        options += [f"--{name.replace('_', '-')}", str(file)]
    page = Running(folder / "segments", *options)
    try:
        assert page.url in first_line(page.process)
        yield page
    finally:
        page.close()


@contextlib.contextmanager
def live(application: Any, store: Store, port: int = 0) -> Iterator[str]:
    """The server of the live page in this process, over a store that the test moves on; yields its address."""
    server = listen(application, "127.0.0.1", port)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.effective_port}/"
    finally:
        store.end()
        server.task_dispatcher.shutdown()
        for channel in list(server.active_channels.values()):
            channel.will_close = True  # the server runs until the last connection is closed
        server.trigger.pull_trigger(server.close)  # in its own thread, which waits for the sockets that this closes
        thread.join(10)
        assert not thread.is_alive(), "the server has not ended"


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "heliograph.monitor.cli", "live", *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def until(ready: Callable[[], Any], what: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, f"{what} did not happen within {seconds} s"
        time.sleep(0.1)


@contextlib.contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """Chromium and its driver, with a profile of its own."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = browser() or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}", "--window-size=1440,1800"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield found
    finally:
        found.quit()


@contextlib.contextmanager
def chromium_or_skip(profile: Path) -> Iterator[Any]:
    """The same; the test is skipped where a program is missing."""
    pytest.importorskip("selenium", reason="selenium is not installed")
    if browser() is None or shutil.which("chromedriver") is None:
        pytest.skip("chromium and its driver are not installed")
    with chromium(profile) as found:
        yield found


def seen(driver: Any, place: str) -> str:
    text: str = driver.execute_script(
        "const it = document.getElementById(arguments[0]); return it ? it.innerText : ''", place
    )
    return re.sub(r"\s+", " ", text)


def click_to_fleet(driver: Any, url: str) -> None:
    """Click the link to the first page."""
    click_to(driver, "nav a[href='/']", lambda: driver.current_url == url, "the first page")


def click_to(driver: Any, selector: str, arrived: Callable[[], Any], what: str, seconds: float = 60.0) -> None:
    """Click a link until the page it leads to is there.

    The next sample may replace the element before the click, or between press and release: then nothing happens.
    """
    from selenium.common.exceptions import WebDriverException

    def leads() -> bool:
        with contextlib.suppress(WebDriverException):
            driver.find_element("css selector", selector).click()
        end = time.monotonic() + CLICK_SECONDS
        while not (is_there := arrived()) and time.monotonic() < end:
            time.sleep(0.1)
        return bool(is_there)

    until(leads, what, seconds)


CLICK_SECONDS = 5.0
"""A page has come by then, or the click was lost."""


def addresses(driver: Any) -> set[str]:
    """Every address the page has asked for."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [item["params"]["request"]["url"] for item in messages if item["method"] == "Network.requestWillBeSent"]
    browsers_own = ("data:", "about:", "chrome:", "chrome-untrusted:", "devtools:", "blob:")
    return {url for url in sent if not url.startswith(browsers_own)}
