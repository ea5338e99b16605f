"""The file under a segment, opened to read and for nothing else: bytes by place, and errors that name it.

It is read with `pread` rather than mapped. A mapped file that is truncated kills its reader (SIGBUS), and reading a
page the engine never wrote would allocate it; `pread` returns short and allocates nothing. Both see the same pages. No
lock is taken and nothing is written, so a reader that stops at any place holds up nobody.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from heliograph.monitor.directory import SegmentError
from heliograph.monitor.header import Header, check_place
from heliograph.monitor.ownership import is_own, stranger

__all__ = ["SegmentFile"]


SLACK_BYTES = 1 << 20
"""For file systems that count less than they hold."""


class SegmentFile:
    """An open file."""

    __slots__ = ("_file", "identity", "is_own", "owner", "path")

    def __init__(self, path: Path, all_users: bool = False) -> None:
        """Open it.

        Args:
            path: Where it is.
            all_users: It may belong to another user.

        Raises:
            SegmentError: It cannot be opened, is not a regular file, or is another user's.
        """
        self.path = path
        try:
            # A FIFO must not block the reader, nor a link lead it out of the folder.
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
        """Bytes it has now."""
        return os.fstat(self._file).st_size

    @property
    def limit(self) -> int:
        """Bytes that may be read of structures of one kind: no more than the file has, holes not counted.

        Engines reserve what they use, so the structures of a segment never overlap and are never holes. A file of a few
        KiB that claims gigabytes would otherwise cost its reader gigabytes.
        """
        return os.fstat(self._file).st_blocks * 512 + SLACK_BYTES

    @property
    def modified_ns(self) -> int:
        """When it was last changed through a write, ns since 1970."""
        return os.fstat(self._file).st_mtime_ns

    def close(self) -> None:
        """Close it. Harmless when closed."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def damaged(self, what: str) -> SegmentError:
        """The error that says what is wrong with the file."""
        return SegmentError(f"{self.path} is damaged: {what}")

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Exactly these bytes.

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

    def check(self, header: Header, offset: int, size: int, what: str) -> None:
        """Check that a structure lies within what the header claims.

        Raises:
            SegmentError: It does not; the message names `what`.
        """
        try:
            check_place(header.size, offset, size, what)
        except SegmentError as error:
            raise self.damaged(str(error)) from None
