"""The process that runs one module: ``python -m heliograph.monitor.modules.child FD`` (see `process.ProcessSink`).

It shares only one end of a socket pair with the monitor, so it may crash, hang or exit. When the monitor ends, it
closes the module and exits; when the module does not return in time, it exits without.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import threading
from typing import Any

from heliograph.monitor.errors import UserError
from heliograph.monitor.modules import finding
from heliograph.monitor.modules.host import PythonSink
from heliograph.monitor.modules.lane import Ledger, Portion, Sink, sentence
from heliograph.monitor.modules.wire import HEAD, NUMBERS, moments_from
from heliograph.monitor.packing import Decoder

__all__ = ["main"]

_GRACE_SECONDS = 10.0
_FAILURES = 16
"""Largest number of different failures in one answer."""
_SENTENCES = 20
"""Largest number of messages of the module passed on between two answers."""


class _Answer(Ledger):
    """Collects the failures of the module until the monitor asks for them."""

    def __init__(self, line: _Line) -> None:
        super().__init__("", "", lambda text: None)
        self._line = line
        self._gathered = threading.Lock()
        self._failures: dict[tuple[str, str], int] = {}
        self._counts: dict[str, int] = {}
        self._said = 0

    def failed(self, text: str, doing: str = "", times: int = 1) -> None:
        """Keep a failure for the answer."""
        with self._gathered:
            key = (doing, text) if (doing, text) in self._failures or len(self._failures) < _FAILURES else ("", "…")
            self._failures[key] = self._failures.get(key, 0) + times

    def count(self, **by: int) -> None:
        """Keep counts for the answer."""
        with self._gathered:
            for name, number in by.items():
                self._counts[name] = self._counts.get(name, 0) + number

    def say(self, text: str) -> None:
        """Pass on a message at once."""
        with self._gathered:
            self._said += 1
            said = self._said
        if said <= _SENTENCES:
            self._line.send({"say": text})

    def take(self) -> dict[str, Any]:
        """Return the collected failures and counts, and clear them."""
        with self._gathered:
            failures, self._failures = self._failures, {}
            counts, self._counts = self._counts, {}
            said, self._said = self._said, 0
        if said > _SENTENCES:
            self._line.send({"say": f"says {said - _SENTENCES} messages more than the limit"})
        return {"failures": [[doing, text, times] for (doing, text), times in failures.items()], "counts": counts}


class _Line:
    """The child's end of the connection."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._file = end.makefile("rb")
        self._lock = threading.Lock()

    def send(self, what: dict[str, Any]) -> None:
        """Send a line; it is no error when the monitor has ended."""
        with self._lock:
            try:
                self._end.sendall(json.dumps(what).encode() + b"\n")
            except OSError:
                return

    def receive(self) -> tuple[bytes, bytes] | None:
        """Return the next record; None at the end."""
        head = self._file.read(HEAD.size)
        if len(head) < HEAD.size:
            return None
        kind, length = HEAD.unpack(head)
        body = self._file.read(length)
        return (kind, body) if len(body) == length else None


def _watch(end: socket.socket) -> None:
    """Exit some time after the monitor has ended, whatever the module does."""
    watcher = select.poll()
    watcher.register(end, 0)
    watcher.poll()
    threading.Event().wait(_GRACE_SECONDS)
    os._exit(1)


def _opened(body: bytes, answer: _Answer) -> Sink:
    what = json.loads(body)
    sys.path[:] = what["path"]
    if "native" in what:
        from heliograph.monitor.modules.native import NativeSink

        return NativeSink(what["native"], what["options"], answer)
    return PythonSink(finding.load(what["python"])[1])


def _run(line: _Line) -> None:
    answer = _Answer(line)
    first = line.receive()
    if first is None:
        return
    try:
        sink = _opened(first[1], answer)
    except UserError as error:
        line.send({"answer": {"refused": str(error)}})
        return
    sink.start(answer)
    line.send({"answer": answer.take()})
    decoder = Decoder()
    portion: Portion | None = None
    while (received := line.receive()) is not None:
        kind, body = received
        try:
            if kind == b"S":
                snapshot = decoder.feed(body[NUMBERS.size :])
                portion = Portion(snapshot, (), *NUMBERS.unpack_from(body))
                sink.take(portion, answer)
            elif kind == b"M":
                sink.take(Portion(None, moments_from(body)), answer)
        except Exception as error:
            answer.failed(sentence(error))
        if kind == b"Z":
            break
        if kind == b"A":
            line.send({"answer": answer.take()})
    try:
        sink.close(answer)
    except Exception as error:
        answer.failed(sentence(error), "in close")
    line.send({"answer": answer.take()})


def main() -> None:
    """Run the module until the monitor requests the end, or ends."""
    # Ctrl-C and a service manager's signal reach the whole group; the monitor decides when its children end.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    end = socket.socket(fileno=int(sys.argv[1]))
    threading.Thread(target=_watch, args=(end,), daemon=True).start()
    _run(_Line(end))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
