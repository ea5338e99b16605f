"""The processes of the demo: one module starts and ends all of them.

Each child leads its own session, so Ctrl-C reaches only the demo, which ends the children in order. If the demo is
killed, the kernel ends them (parent-death signal), and those that read standard input see its end.
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
    """One process, its log, and its pipes."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    end_signal: signal.Signals = signal.SIGTERM
    asked_to_end: bool = False
    _rest: bytes = field(default=b"", repr=False)

    def say(self, word: str) -> None:
        """Write one line to its standard input; a child that has ended is not an error here."""
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError, ValueError):
                self.process.stdin.write(f"{word}\n".encode())
                self.process.stdin.flush()

    def hear(self, timeout: float) -> dict[str, Any] | None:
        """Return the next line of its standard output, a JSON object; None when it has ended or at the timeout."""
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
        """Return the end of its log as text."""
        with contextlib.suppress(OSError):
            lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            return "\n".join(f"    {line}" for line in lines[-12:])
        return ""


class Children:
    """All processes of one demo."""

    def __init__(self, logs: Path, environment: Mapping[str, str]) -> None:
        """Logs go to the directory `logs`, one file per child; `environment` is added to that of the demo."""
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
        """Start a process. With `talks`, standard input and output are pipes; otherwise its output goes to its log."""
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
        """Return the children that ended without a request, or with an error."""
        return [
            child
            for child in self._children
            if (code := child.process.poll()) is not None
            and not (child.asked_to_end and code in (0, -child.end_signal))
        ]

    def end(self, *children: Child, timeout: float = 10.0) -> None:
        """Request the end of children, wait for them, and kill those that do not end."""
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
        """End all children that still run; does nothing after an orderly end."""
        self.end(*(child for child in self._children if child.process.poll() is None), timeout=5.0)
