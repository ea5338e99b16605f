"""One run of a writer of a history: its lock or, in an object store, its marker.

    history/.run-5f0c…      while it exists, data files whose names begin with 5f0c… may lack a commit

On a file system a lock admits one writer at a time. So any marker that a run finds was left by a killed one, and what
no manifest lists is removed.

Object stores have no locks, and several writers may work at once; each commits by hours (`monitor.history.hours`). A
marker that is two days older than one's own, by the clock of the store, was left by a killed run. Its files are removed
if no manifest lists them. A run that is older than a day commits nothing more, so its files cannot be taken for those
of a killed run.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from types import TracebackType

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.hours import DAYS, RUNG, committed_days, committed_hours, discard, sweep
from heliograph.monitor.history.lock import FolderLock
from heliograph.monitor.history.remote import Place, RemotePath, globbed
from heliograph.monitor.history.writes import check_store, create, remove

__all__ = ["Run"]

_DAY_S = 86_400.0
_FORGOTTEN_S = 2 * _DAY_S
_MARKER = ".run-"


class Run:
    """A context around the work. A run that is killed, or ends by an error, leaves its marker.

    Args:
        history: Directory of the history; created when missing.
        busy: Message when another process holds the lock.

    Raises:
        UserError: Another process writes the history, or it cannot be written.
    """

    def __init__(self, history: Place, busy: str) -> None:
        self._history = history
        self._lock = None if isinstance(history, RemotePath) else FolderLock(history, busy)
        self._marker: Place | None = None
        self._began = 0.0
        self.name = secrets.token_hex(8)
        """Begins the names of the run's data files."""

    def begin(self) -> None:
        """Announce data files, and remove those of killed runs.

        Raises:
            UserError: The store cannot be used for commits, or cannot be read.
            OSError: The history cannot be written.
        """
        if self._marker is not None:
            return
        self._marker = self._history / f"{_MARKER}{self.name}"
        self._began = time.monotonic()
        create(self._marker, secrets.token_bytes(8))
        if isinstance(self._marker, RemotePath):
            check_store(self._marker)
        self._clean_up(self._marker)

    def check(self) -> None:
        """Check that the run may still commit.

        Raises:
            UserError: It is too old.
        """
        if self._marker is not None and time.monotonic() - self._began > _DAY_S:
            raise UserError("this run began more than a day ago and commits nothing more; run it again")

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._marker is not None:
                remove([self._marker])
        finally:
            if self._lock is not None:
                self._lock.release()

    def _clean_up(self, own: Place) -> None:
        others = [marker for marker in globbed(self._history, f"{_MARKER}*") if marker != own]
        if isinstance(own, RemotePath):
            for marker in others:
                self._forget(marker, own)
            return
        for folder in (*committed_hours(self._history), *committed_days(self._history)) if others else ():
            with suppress(UserError):  # its manifest cannot be read: the hour stays as it is
                sweep(folder)
        remove(others)

    def _forget(self, marker: Place, own: RemotePath) -> None:
        """Remove what a run in an object store left, if it is old enough."""
        assert isinstance(marker, RemotePath)
        try:
            if own.changed()[1] - marker.changed()[1] < _FORGOTTEN_S:
                return
        except FileNotFoundError:  # it has ended
            return
        run = marker.name.removeprefix(_MARKER)
        for pattern in (f"{RUNG}/date=*/hour=*/{run}-*.parquet", f"{DAYS}/date=*/{run}-*.parquet"):
            for path in globbed(self._history, pattern):
                discard(path.parent, [path.name])
                sweep(path.parent)  # it may have been killed after its commit
        remove([marker])
