"""The file of a segment, opened read-only: reads bytes at offsets, with errors that name the file.

It is read with `pread`, not mapped. Truncation of a mapped file kills its reader (SIGBUS), and a read of a page that
the engine never wrote would allocate it. `pread` returns fewer bytes and allocates nothing. Both see the same pages.
The reader takes no lock and writes nothing, so that a stopped reader delays no other process.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from heliograph.monitor import _cells
from heliograph.monitor.directory import SegmentError
from heliograph.monitor.header import Header, check_place
from heliograph.monitor.ownership import is_own, stranger

__all__ = ["SegmentFile"]


SLACK_BYTES = 1 << 20
"""Slack for file systems that report less than they hold."""


class SegmentFile:
    """An open file."""

    __slots__ = ("_file", "identity", "is_own", "owner", "path")

    def __init__(self, path: Path, all_users: bool = False) -> None:
        """Open it.

        Args:
            path: Path of the file.
            all_users: Accept a file of another user.

        Raises:
            SegmentError: It cannot be opened, is not a regular file, or belongs to another user.
        """
        self.path = path
        try:
            # A FIFO must not block the reader, and a link must not lead it out of the directory.
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise SegmentError(f"{path} cannot be opened: {error.strerror}") from None
        found = os.fstat(self._file)
        if not stat.S_ISREG(found.st_mode):
            self.close()
            raise SegmentError(f"{path} is not a regular file")
        self.identity = found.st_dev, found.st_ino
        self.owner = found.st_uid
        self.is_own = is_own(found.st_uid)
        if not self.is_own and not all_users:
            self.close()
            raise SegmentError(f"{path} is not read: {stranger(found.st_uid)}")

    @property
    def size(self) -> int:
        """Present size in bytes."""
        return os.fstat(self._file).st_size

    @property
    def limit(self) -> int:
        """Largest number of bytes to read for structures of one kind: the allocated size of the file.

        Engines allocate the memory they use, so the structures of a segment never overlap and are never holes. Without
        this limit, a file of a few KiB that claims gigabytes would cost its reader gigabytes.
        """
        return os.fstat(self._file).st_blocks * 512 + SLACK_BYTES

    @property
    def modified_ns(self) -> int:
        """Time of the last change by a write, ns since 1970."""
        return os.fstat(self._file).st_mtime_ns

    def close(self) -> None:
        """Close the file. Harmless when closed."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def damaged(self, what: str) -> SegmentError:
        """Return the error for a fault of the file."""
        return SegmentError(f"{self.path} is damaged: {what}")

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Read exactly these bytes.

        Raises:
            SegmentError: The file ends before; the message names `what`.
        """
        try:
            data = os.pread(self._file, size, offset)
        except OSError as error:
            raise SegmentError(f"{self.path} cannot be read: {error.strerror}") from None
        if len(data) != size:
            raise self.damaged(f"it ends within {what}")
        return data

    def read_cells(self, swapped: bool, requests: Sequence[_cells.Request], what: str) -> list[_cells.Reading | None]:
        """Read the filled cells of histograms; see `_cells.read`.

        Raises:
            SegmentError: The file ends before the last cell of one; the message names `what`.
        """
        try:
            return _cells.read(self._file, swapped, requests)
        except EOFError:
            raise self.damaged(f"it ends within {what}") from None
        except OSError as error:
            raise SegmentError(f"{self.path} cannot be read: {error.strerror}") from None

    def check(self, header: Header, offset: int, size: int, what: str) -> None:
        """Check that a structure lies within the size in the header.

        Raises:
            SegmentError: It does not; the message names `what`.
        """
        try:
            check_place(header.size, offset, size, what)
        except SegmentError as error:
            raise self.damaged(str(error)) from None
