"""Processes that are killed, stopped and started again, and what is looked at to see how they fared.

A `House` has a folder of its own: segments, logs, files of the actors. Each child leads a session of its own and dies
with the process that started it; all carry a mark in their environment by which `survivors` finds whoever is left
behind.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tests.faults.actors import RECORD

__all__ = ["DEADLINE_SECONDS", "TOP", "House", "Stopped"]

TOP = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 60.0
"""Within which everything must have recovered. A loaded machine takes its time; what is measured is in the table."""
POLL_SECONDS = 0.02
_MARK = "HELIOGRAPH_FAULTS"
_DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
"""Not by `preexec_fn`, which may deadlock where there are threads."""


class Stopped(Exception):
    """Somebody pressed Ctrl-C, or the time is over."""


class House:
    """One folder and the processes in it."""

    def __init__(self, folder: Path, stop: threading.Event | None = None) -> None:
        """Make the folder. When `stop` is set, waiting ends with `Stopped`."""
        self.folder = folder
        self._stop = stop or threading.Event()
        self.segments = folder / "segments"
        self.segments.mkdir(parents=True)
        self._token = secrets.token_hex(8)
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._lives = 0
        self.environment: dict[str, str] = {}
        """Of the children, beside what they inherit."""
        self.prefix: list[str] = []
        """Before the command lines of the children that come next."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def until(self, is_so: Callable[[], object], seconds: float = DEADLINE_SECONDS) -> float | None:
        """Seconds until something is so; None: it never was."""
        began = time.monotonic()
        while not is_so():
            if time.monotonic() - began > seconds:
                return None
            self.sleep(POLL_SECONDS)
        return time.monotonic() - began

    def sleep(self, seconds: float) -> None:
        """Let the others work."""
        if self._stop.wait(seconds):
            raise Stopped

    def start(self, name: str, *words: str | Path, output: Path | None = None) -> subprocess.Popen[bytes]:
        """Start `python -m ...`; what it says is appended to a log, or to `output`."""
        places = {"HELIOGRAPH_SEGMENT_DIR": str(self.segments), _MARK: self._token}
        with (output or self.folder / f"{name}.log").open("ab") as file:
            process = subprocess.Popen(
                [*_DIES_WITH_PARENT, *self.prefix, sys.executable, "-m", *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT if output is None else subprocess.DEVNULL,
                cwd=TOP,
                env={**os.environ, **self.environment, **places},
                start_new_session=True,
            )
        self._children[name] = process
        return process

    def actor(self, role: str, url: str) -> subprocess.Popen[bytes]:
        """Start an actor in its next life."""
        self._lives += 1
        return self.start(role, "tests.faults.actors", role, self.folder, str(self._lives), url)

    def heliograph(self, name: str, *words: str | Path, output: Path | None = None) -> subprocess.Popen[bytes]:
        """Start a command of the command line."""
        return self.start(name, "heliograph.monitor.cli", *words, output=output)

    def child(self, name: str) -> subprocess.Popen[bytes]:
        """The present life of a process."""
        return self._children[name]

    def names(self) -> list[str]:
        """Of all processes, those that watch before those that are watched."""
        return list(reversed(self._children))

    def end(self, name: str, number: signal.Signals = signal.SIGTERM, seconds: float = 30.0) -> int:
        """End a process and take its status; one that does not end is killed, which counts as -9.

        Raises:
            Stopped: The run ends; `close` ends the process.
        """
        process = self._children[name]
        if process.poll() is None:
            process.send_signal(number)
        if self.until(lambda: process.poll() is not None, seconds) is None:
            process.kill()
        return process.wait()

    def survivors(self) -> list[int]:
        """Processes of this house that still are, zombies not counted: their parent has taken them."""
        mark = f"{_MARK}={self._token}".encode()
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (place / "environ").read_bytes().split(b"\0"):
                    found.append(int(place.name))
        return found

    def close(self) -> None:
        """End everything."""
        for process in self._children.values():
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)
                    process.kill()
            process.wait()
        for pid in self.survivors():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def records(self, name: str, since: int = 0) -> list[tuple[int, int]]:
        """What an actor has written after so many records; a last one that is cut off is left out."""
        try:
            with (self.folder / name).open("rb") as file:
                file.seek(since * RECORD.size)
                data = file.read()
        except FileNotFoundError:
            return []
        return list(RECORD.iter_unpack(data[: len(data) // RECORD.size * RECORD.size]))

    def count(self, name: str) -> int:
        """Records in a file."""
        try:
            return (self.folder / name).stat().st_size // RECORD.size
        except FileNotFoundError:
            return 0

    def last_words(self, name: str) -> str:
        """The end of a log, for people."""
        with contextlib.suppress(OSError):
            return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")[-1500:]
        return ""
