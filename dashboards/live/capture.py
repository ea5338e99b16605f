"""Takes a picture of a running live page with headless Chromium, in real time.

Chromium is controlled over its debugging pipe (two file descriptors, JSON messages terminated by NUL). This needs no
driver program, no WebSocket library, and no virtual time that would change the page's timer. The browser starts with an
empty profile in a temporary directory and connects only to the page.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from heliograph.monitor.errors import UserError

__all__ = ["FLAGS", "browser", "capture"]

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_DRAWN = "document.querySelectorAll('.js-plotly-plot .main-svg').length > 0 && document.querySelector('main') !== null"
_CHUNK = 1 << 20
_RENUMBER = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads from descriptor 3 and writes to descriptor 4; a shell cannot renumber descriptors above 9."""


def browser() -> str | None:
    """Return the program of an installed Chromium; None when there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def capture(
    url: str, file: Path, *, width: int = 1440, after: float = 3.0, timeout: float = 60.0, token: bytes | None = None
) -> None:
    """Write a PNG of the whole page.

    Args:
        url: Address of the page.
        file: Output file; its directory must exist.
        width: Width of the window in pixels.
        after: Seconds that the page runs after it is drawn.
        timeout: Seconds until the capture fails.
        token: Access token of the page.

    Raises:
        UserError: Chromium is missing, or the page did not appear in time.
    """
    program = browser()
    if program is None:
        raise UserError("no picture: Chromium is not installed (Debian: apt-get install chromium)")
    deadline = time.monotonic() + timeout
    with (
        tempfile.TemporaryDirectory(prefix="heliograph-chromium-", ignore_cleanup_errors=True) as profile,
        _Browser(program, profile, deadline) as chromium,
    ):
        chromium.open(url, width, token)
        while not chromium.value(_DRAWN):
            time.sleep(0.1)
            if time.monotonic() > deadline:
                raise UserError(f"no picture: {url} did not show the live page within {timeout:g} s")
        time.sleep(after)
        picture = chromium.picture(width)
    file.write_bytes(picture)


class _Browser:
    """One Chromium with one page, controlled over its pipe."""

    def __init__(self, program: str, profile: str, deadline: float) -> None:
        self._deadline = deadline
        self._number = 0
        self._session: str | None = None
        self._rest = b""
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        command = [program, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _RENUMBER, str(theirs_in), str(theirs_out), *command],
                pass_fds=(theirs_in, theirs_out),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        finally:
            os.close(theirs_in)
            os.close(theirs_out)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._out)  # the browser ends when its pipe is closed
        os.close(self._in)
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def open(self, url: str, width: int, token: bytes | None) -> None:
        """Open the page; send the token with every request."""
        target = self._call("Target.createTarget", {"url": "about:blank"})
        attached = self._call("Target.attachToTarget", {"targetId": target["targetId"], "flatten": True})
        self._session = attached["sessionId"]
        self._size(width, 1200)
        if token is not None:
            self._call("Network.enable", {})
            headers = {"Authorization": f"Bearer {token.decode()}"}
            self._call("Network.setExtraHTTPHeaders", {"headers": headers})
        answer = self._call("Page.navigate", {"url": url})
        if "errorText" in answer:
            raise UserError(
                f"no picture: {url} cannot be opened ({answer['errorText']}); check that `heliograph live` is running"
            )

    def value(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self._call("Runtime.evaluate", {"expression": script, "returnByValue": True})
        return answer["result"].get("value")

    def picture(self, width: int) -> bytes:
        """Return the whole page as PNG."""
        height = int(self.value("Math.ceil(document.documentElement.getBoundingClientRect().height)"))
        self._size(width, height)
        time.sleep(0.4)  # the charts adapt to the window
        return base64.b64decode(self._call("Page.captureScreenshot", {"format": "png"})["data"])

    def _size(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", metrics)

    def _call(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        try:
            os.write(self._out, json.dumps(message).encode() + b"\0")
        except BrokenPipeError:
            raise UserError("no picture: Chromium ended unexpectedly") from None
        while True:
            answer = self._read()
            if answer.get("id") != self._number:
                continue  # an event
            if "error" in answer:
                raise UserError(f"no picture: Chromium rejected {method}: {answer['error'].get('message')}")
            result: dict[str, Any] = answer["result"]
            return result

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            left = self._deadline - time.monotonic()
            if left <= 0 or not select.select([self._in], [], [], left)[0]:
                raise UserError("no picture: Chromium did not answer in time")
            chunk = os.read(self._in, _CHUNK)
            if not chunk:
                raise UserError("no picture: Chromium ended unexpectedly")
            self._rest += chunk
        text, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(text)
        return answer
