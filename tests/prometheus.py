"""A real Prometheus for tests, on a port it chooses itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

DEADLINE = 60.0


class Server:
    """A running Prometheus."""

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, path: str, **parameters: str) -> Any:
        question = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(question, timeout=10) as answer:
            body = json.load(answer)
        assert body["status"] == "success"
        return body["data"]

    def query(self, expression: str) -> dict[tuple[str, ...], float]:
        """Values by the labels `node` and `topic`, as far as there are any."""
        rows = self.get("query", query=expression)["result"]
        return {
            tuple(row["metric"][key] for key in ("node", "topic") if key in row["metric"]): float(row["value"][1])
            for row in rows
        }

    def wait_until(self, expression: str) -> None:
        until = time.monotonic() + DEADLINE
        while time.monotonic() < until:
            try:
                if self.query(expression):
                    return
            except OSError:
                pass  # not listening yet
            time.sleep(0.1)
        pytest.fail(f"Prometheus has no answer to {expression} after {DEADLINE:g} s")


@contextmanager
def serve(configuration: Path, data: Path, *flags: str) -> Iterator[Server]:
    """Run Prometheus with a configuration file and further flags; skips the test where there is none."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed")
    process = subprocess.Popen(
        [
            program,
            f"--config.file={configuration}",
            f"--storage.tsdb.path={data}",
            "--web.listen-address=127.0.0.1:0",
            "--log.format=json",
            *flags,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Server(_address(process))
    finally:
        process.terminate()
        process.wait(timeout=30)


def _address(process: subprocess.Popen[str]) -> str:
    """Where it listens, from its log, since it chose the port; the rest of the log is read and dropped."""
    assert process.stderr is not None
    address = None
    for line in process.stderr:
        entry = json.loads(line)
        if entry.get("msg") == "Listening on":
            address = entry["address"]
            break
    assert address, "Prometheus ended without listening"
    threading.Thread(target=lambda: [None for _ in process.stderr or ()], daemon=True).start()
    return f"http://{address}"
