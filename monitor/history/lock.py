"""One writer at a time for a directory: a lock that the kernel releases when its holder ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from heliograph.monitor.errors import UserError

__all__ = ["Busy", "FolderLock"]


class Busy(UserError):
    """Another process holds the lock."""


class FolderLock:
    """Holds ``folder/.lock``; creates the folder when missing.

    Args:
        folder: The directory to lock.
        busy: Message when another process holds the lock.

    Raises:
        Busy: Another process holds it.
        UserError: The directory cannot be written.
    """

    def __init__(self, folder: Path, busy: str) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._handle: int | None = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UserError(f"the directory {folder} cannot be written: {error.strerror or error}") from error
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            raise Busy(busy) from error

    def release(self) -> None:
        """Release the lock; harmless when done already."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
