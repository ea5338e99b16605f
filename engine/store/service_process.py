"""The service of a store in a process of its own, started by the process that writes the store."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

from heliograph.engine.store.service import ServiceCounts, StoreService

__all__ = ["ServiceProcess"]

_RESTART_SECONDS = 1.0
_END_SECONDS = 5.0
_NICE = 5
"""The process that keeps messages has the processor first."""


class ServiceProcess:
    """The service of a store that this process writes, in a process of its own; it is started again when it ends."""

    def __init__(self, path: Path, listener: socket.socket, rate: int, readers: int) -> None:
        """Start it.

        Args:
            path: Directory of the store.
            listener: From `listening_socket`; subscribers can wait in it while the process starts again.
            rate: Limit on the bytes per second; 0: no limit.
            readers: Most subscribers at a time.
        """
        self._listener = listener
        module = "heliograph.engine.store.service_process"
        arguments = (str(path), str(listener.fileno()), str(rate), str(readers))
        self._command = (sys.executable, "-m", module, *arguments)
        self.restarts = 0
        self._before = ServiceCounts()
        self._now = asdict(self._before)
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self._started = time.monotonic()
        self._text = b""
        # It reads the end of its standard input when this process ends, however it ends.
        process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[self._listener.fileno()]
        )
        os.set_blocking(_output(process), False)
        return process

    def tend(self) -> str:
        """Take its counts, and start it again when it has ended. Returns how it ended; empty while it runs."""
        self._take_counts()
        code = self._process.poll()
        if code is None or time.monotonic() - self._started < _RESTART_SECONDS:
            return ""
        self._end()
        self._before = replace(self.counts(), readers=0)
        self._now = dict.fromkeys(asdict(self._before), 0)
        self.restarts += 1
        self._process = self._start()
        return f"the service for subscribers ended with code {code}; it is started again"

    def counts(self) -> ServiceCounts:
        """Its counts, over all starts; at most a second old when `tend` is called as often."""
        return replace(self._before, **{name: self._now[name] + count for name, count in asdict(self._before).items()})

    def _take_counts(self) -> None:
        """The last whole line that it has written."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(_output(self._process), 1 << 16):
                *lines, self._text = (self._text + data).split(b"\n")
                if lines:
                    self._now = json.loads(lines[-1])

    def close(self) -> None:
        """End it."""
        self._end()
        self._listener.close()

    def _end(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _output(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout
    return process.stdout.fileno()


def _main(path: str, descriptor: str, rate: str, readers: str) -> None:
    """Serve for the process that has started this one, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(_NICE)
    os.set_blocking(1, False)  # a parent that does not read stops nobody
    listener = socket.socket(fileno=int(descriptor))
    service = StoreService(Path(path), listener, readers=int(readers), rate=int(rate))

    def until_parent_ends() -> None:
        while os.read(0, 1):
            pass
        service.close()

    threading.Thread(target=until_parent_ends, daemon=True).start()
    service.run(_report)


def _report(counts: ServiceCounts) -> None:
    """Tell the process that has started this one."""
    with contextlib.suppress(OSError):  # it has ended, or does not read
        os.write(1, json.dumps(asdict(counts)).encode() + b"\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])
