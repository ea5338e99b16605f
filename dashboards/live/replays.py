"""The decision logs of the server's directories, and their replays with other options: bounded, each made once.

A name of an address never becomes a path: it is looked up among the files that the directories list. A replay runs in a
process of its own, with a limit on its processor time, so that neither a long log nor a damaged one touches the pages.
One runs at a time; a page that asks gets the result, or nothing yet.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import stat
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from multiprocessing.connection import Connection
from pathlib import Path

from heliograph.monitor.lab.whatif import WhatIf, whatif

__all__ = ["Log", "Question", "Replays"]

MOST_BYTES = 16 << 20
"""Largest log that is replayed here; the default size of a log."""
_CPU_SECONDS = 20
_SECONDS = 60.0
"""Longest time of a replay on a busy machine."""
_MOST_LISTED = 100
_MOST_RESULTS = 32
_FRESH_SECONDS = 5.0
"""Age from which the directories are listed again."""
_SUFFIX = ".decisions"
_HEAD = struct.Struct("=8sII8xqII48s40s")
"""Head of a log (engine/docs/decisions.md): magic, byte order, version, begun, full, entries, instance, stream."""


@dataclass(frozen=True, slots=True)
class Log:
    """A decision log in a directory of the server."""

    name: str
    """Name of its file."""
    path: Path
    instance: str
    stream: str
    begun_ns: int
    """Wall clock in ns since 1970."""
    size: int
    version: tuple[int, int]
    """Time of the last change, and size."""

    @property
    def title(self) -> str:
        """Instance, stream and begin."""
        begun = datetime.fromtimestamp(self.begun_ns / 1e9)
        return f"{self.instance}: {self.stream}, since {begun:%Y-%m-%d %H:%M:%S}"


@dataclass(frozen=True, slots=True)
class Question:
    """A log and the options to replay it with."""

    log: str
    """Name of its file."""
    options: tuple[tuple[str, str], ...] = ()


_Key = tuple[Question, tuple[int, int]]


class Replays:
    """The logs of some directories; safe to use from many threads."""

    def __init__(self, folders: Sequence[Path] = (), seconds: float = _SECONDS, most_bytes: int = MOST_BYTES) -> None:
        """Take the directories; nothing is read before a page asks.

        Args:
            folders: Directories with decision logs.
            seconds: Longest time of a replay.
            most_bytes: Largest log that is replayed.
        """
        self.folders = tuple(folders)
        self._seconds = seconds
        self._most = most_bytes
        self._lock = threading.Lock()
        self._logs: Mapping[str, Log] = {}
        self._looked: float | None = None
        self._results: OrderedDict[_Key, WhatIf | str] = OrderedDict()
        self._worker: threading.Thread | None = None

    def logs(self) -> Mapping[str, Log]:
        """Return the logs by the names of their files, the newest first."""
        with self._lock:
            now = time.monotonic()
            if self._looked is None or now - self._looked > _FRESH_SECONDS:
                self._looked = now
                found = [log for folder in self.folders for log in _listed(folder)]
                found.sort(key=lambda log: log.version[0])
                newest = {log.name: log for log in found[-_MOST_LISTED:]}
                self._logs = dict(reversed(newest.items()))
            return self._logs

    def find(self, text: str) -> Log | None:
        """Return the log of a name, or the newest one of a stream."""
        logs = self.logs()
        return logs.get(text) or next((log for log in logs.values() if log.stream == text), None)

    def answer(self, question: Question) -> WhatIf | str | None:
        """Return the replay, or why there is none; None: it is being made, ask again."""
        log = self.logs().get(question.log)
        if log is None:
            return "the log does not exist any more"
        if log.size > self._most:
            return (
                f"the log has {log.size / (1 << 20):.0f} MiB, and this page replays at most {self._most >> 20} MiB; "
                "heliograph lab replay reads it"
            )
        key = (question, log.version)
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                return self._results[key]
            if self._worker is None or not self._worker.is_alive():
                self._worker = threading.Thread(
                    target=self._work, args=(key, log.path), name="heliograph-live-replay", daemon=True
                )
                self._worker.start()
            return None

    def _work(self, key: _Key, path: Path) -> None:
        try:
            found = _apart(path, dict(key[0].options), self._seconds)
        except Exception as error:  # a page must survive any log, and show it
            found = f"the replay failed: {error}"
        with self._lock:
            self._results[key] = found
            while len(self._results) > _MOST_RESULTS:
                self._results.popitem(last=False)


def _listed(folder: Path) -> list[Log]:
    """Return the decision logs of a directory; files that are none are left out."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(_SUFFIX)]
    except OSError:
        return []
    return [log for name in names if (log := _head_of(folder / name)) is not None]


def _head_of(path: Path) -> Log | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            return None
        data = os.read(file, _HEAD.size)
    except OSError:
        return None
    finally:
        os.close(file)
    if len(data) < _HEAD.size:
        return None
    magic, order, version, begun, _, _, instance, stream = _HEAD.unpack(data)
    if (magic, order, version) != (b"HELIODEC", 0x01020304, 1):
        return None
    texts = [part.split(b"\0", 1)[0].decode("utf-8", "replace") for part in (instance, stream)]
    begun_ns = min(max(begun, 0), 1 << 62)
    return Log(path.name, path, texts[0], texts[1], begun_ns, found.st_size, (found.st_mtime_ns, found.st_size))


def _apart(path: Path, options: Mapping[str, str], seconds: float) -> WhatIf | str:
    """Replay a log in a process of its own; returns why it has no result, if so."""
    context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_replay, args=(there, path, options), daemon=True)
    process.start()
    there.close()
    try:
        if not here.poll(seconds):
            return f"the replay took more than {seconds:.0f} s; heliograph lab replay has no limit"
        found: WhatIf | str = here.recv()
        return found
    except EOFError:
        process.join(5)
        return "the replay ended without a result: the log needs more time than this page gives, or it is damaged"
    finally:
        here.close()
        process.kill()
        process.join()


def _replay(there: Connection, path: Path, options: Mapping[str, str]) -> None:
    """Replay a log and send the result; runs in a process of its own."""
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    try:
        there.send(whatif(path, options))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        there.send(str(reason))
