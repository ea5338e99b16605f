"""Command lines that are killed a thousand times.

They are forked from a server that has imported everything (`multiprocessing`, method ``forkserver``). So a start takes
some milliseconds instead of the 0.3 s of a new Python, and runs the same `main` as the command. The server has no
threads, no engine and no sockets when it forks. Each process leads a session of its own and dies with the server, which
ends with the process that runs the soak.
"""

from __future__ import annotations

import ctypes
import itertools
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

__all__ = ["Command", "Commands", "Failed", "until"]

DEADLINE_SECONDS = 60.0
"""Within which everything must have happened. A loaded machine takes its time."""
_END_SECONDS = 30.0
_POLL_SECONDS = 0.003
_PR_SET_PDEATHSIG = 1
_IMPORTED = [
    "heliograph.engine.instance",
    "heliograph.engine.store.follower",
    "heliograph.engine.store.position_file",
    "heliograph.engine.store.remote",
    "heliograph.engine.store.server",
    "heliograph.engine.store.subscriptions",
    "heliograph.monitor.cli",
    "tests.soak.quorum",
]


class Failed(Exception):
    """Something that must hold did not; the text says which."""


def until(is_so: Callable[[], object], what: str) -> float:
    """Seconds until something is so.

    Raises:
        Failed: It was not, within a minute.
    """
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > DEADLINE_SECONDS:
            raise Failed(f"not within {DEADLINE_SECONDS:.0f} s: {what}")
        time.sleep(_POLL_SECONDS)
    return time.monotonic() - began


def _run(words: tuple[str, ...], output: Path, errors: Path, parent: int) -> None:
    os.setsid()  # Ctrl-C reaches the soak only
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    for path, number in ((output, 1), (errors, 2)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    from heliograph.monitor.cli import main

    sys.exit(main(words))


def _pid(place: Path) -> None:
    place.write_text(str(os.getppid()))


class Command:
    """A command line that runs; its output and errors go to files."""

    def __init__(self, words: tuple[str, ...], output: Path, errors: Path, parent: int) -> None:
        self.words, self.output, self._errors = words, output, errors
        context = multiprocessing.get_context("forkserver")
        self._process = context.Process(target=_run, args=(words, output, errors, parent), daemon=True)
        self._process.start()

    def errors(self) -> str:
        """What it has said on standard error."""
        return self._errors.read_text(errors="replace") if self._errors.exists() else ""

    def has_output(self) -> bool:
        """It has written something on standard output."""
        return self.output.exists() and self.output.stat().st_size > 0

    def until(self, is_so: Callable[[], object], what: str) -> None:
        """Wait for something while it runs.

        Raises:
            Failed: It was not so within a minute, or the command has ended.
        """
        until(lambda: is_so() or not self._process.is_alive(), f"{what}; {self}")
        if not is_so():
            raise Failed(f"it has ended: {self}")

    def kill(self) -> None:
        """Kill it; nothing of it runs afterwards.

        Raises:
            Failed: It had ended before.
        """
        self._process.kill()
        self._process.join()
        if self._process.exitcode != -signal.SIGKILL:
            raise Failed(f"it has ended with {self._process.exitcode}: {self}")

    def end(self) -> None:
        """Have it end, and wait for that.

        Raises:
            Failed: It ended with another status than 0, or not at all.
        """
        self._process.terminate()
        self.wait()

    def wait(self, seconds: float = _END_SECONDS) -> None:
        """Wait until it has ended. Exceptions as in `end`."""
        self._process.join(seconds)
        if self._process.exitcode != 0:
            raise Failed(f"it has ended with {self._process.exitcode}: {self}")

    def close(self) -> None:
        """End it if it runs. A store ends its service; a kill would leave that running for a moment."""
        self._process.terminate()
        self._process.join(_END_SECONDS)
        self._process.kill()
        self._process.join()
        self._process.close()

    def __str__(self) -> str:
        return f"heliograph {' '.join(self.words)}: {self.errors()[-1000:]}"


class Commands:
    """Starts command lines; those that still run at the end are ended."""

    def __init__(self, folder: Path) -> None:
        """Their segments and output go to `folder`."""
        self._folder = folder
        self._numbers = itertools.count()
        self._running: list[Command] = []
        folder.mkdir(exist_ok=True)
        self._segments = folder / "segments"
        self._segments.mkdir()
        os.environ["HELIOGRAPH_SEGMENT_DIR"] = str(self._segments)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_IMPORTED)
        place = folder / "server"
        first = context.Process(target=_pid, args=(place,))
        first.start()
        first.join()
        self._parent = int(place.read_text())

    def start(self, *words: str | Path) -> Command:
        """Start `heliograph WORDS...`."""
        path = self._folder / f"command-{next(self._numbers)}"
        command = Command(tuple(map(str, words)), path.with_suffix(".out"), path.with_suffix(".err"), self._parent)
        self._running.append(command)
        return command

    def forget(self, command: Command) -> None:
        """Remove what a command that was killed has left: its output and its segment."""
        self._running.remove(command)
        command.close()
        for path in (command.output, command.output.with_suffix(".err")):
            path.unlink(missing_ok=True)

    def serve(self, folder: Path, endpoint: str, topic: str, *words: str) -> Command:
        """Start a store and wait until it keeps."""
        options = ("-o", f"name={folder.name}", "--batch-time", "0.005s")
        command = self.start("store", "serve", folder, endpoint, topic, *options, *words)
        command.until(lambda: command.errors().startswith("keeping"), "the store keeps")
        return command

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for command in self._running:
            command.close()
