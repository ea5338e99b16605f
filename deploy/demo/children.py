"""The processes of the demo: started in one place, ended in one place, none left behind.

Each child leads a session of its own, so Ctrl-C reaches only the demo, which ends the children in order. If the demo
itself is killed, the kernel ends them (parent-death signal), and those that listen on standard input see its end.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Child", "Children"]

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


@dataclass(slots=True)
class Child:
    """One process, its log, and how to talk with it."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    end_signal: signal.Signals = signal.SIGTERM
    asked_to_end: bool = False
    _rest: bytes = field(default=b"", repr=False)

    def say(self, word: str) -> None:
        """Write one line to its standard input; a child that is gone is not an error here."""
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError, ValueError):
                self.process.stdin.write(f"{word}\n".encode())
                self.process.stdin.flush()

    def hear(self, timeout: float) -> dict[str, Any] | None:
        """The next line of its standard output, one JSON object; None when none came in time or it has ended."""
        assert self.process.stdout is not None
        until = time.monotonic() + timeout
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            chunk = os.read(self.process.stdout.fileno(), 65536)
            if not chunk:
                return None
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def last_words(self) -> str:
        """The end of its log, for people."""
        with contextlib.suppress(OSError):
            lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            return "\n".join(f"    {line}" for line in lines[-12:])
        return ""


class Children:
    """All processes of one demo."""

    def __init__(self, logs: Path, environment: Mapping[str, str]) -> None:
        """Logs go to the folder `logs`, one file a child; `environment` is added to the demo's own."""
        self._logs = logs
        self._environment = {**os.environ, **environment}
        self._children: list[Child] = []
        logs.mkdir(parents=True, exist_ok=True)

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        talks: bool = False,
        end_signal: signal.Signals = signal.SIGTERM,
    ) -> Child:
        """Start a process. With `talks`, its standard input and output are pipes; else both outputs go to its log."""
        log = self._logs / f"{name}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talks else file,
                stderr=file,
                env=self._environment,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        child = Child(name, process, log, end_signal)
        self._children.append(child)
        return child

    def fallen(self) -> list[Child]:
        """Children that ended though nobody asked them to, or ended badly."""
        return [
            child
            for child in self._children
            if (code := child.process.poll()) is not None
            and not (child.asked_to_end and code in (0, -child.end_signal))
        ]

    def end(self, *children: Child, timeout: float = 10.0) -> None:
        """Ask children to end, wait for them, and kill those that do not."""
        for child in children:
            child.asked_to_end = True
            child.say("end")
            if child.process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    child.process.stdin.close()
            elif child.process.poll() is None:
                child.process.send_signal(child.end_signal)
        until = time.monotonic() + timeout
        for child in children:
            try:
                child.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.process.pid, signal.SIGKILL)
                child.process.wait()

    def end_all(self) -> None:
        """End whatever still runs; nothing to do after an orderly end."""
        self.end(*(child for child in self._children if child.process.poll() is None), timeout=5.0)
