"""Parquet files of an archive: the messages of stores, in columns.

    OUT/topic=PRICES.FX/date=2026-11-21/a1b2c3d4e5f6-7500-0000000000000001-189f6a2c3b4d5e6f.parquet

The file of a segment, topic and day (UTC, by receive time) has every message of these that was exported, once. It is
replaced as a whole by a file with the same messages and more, so a message is never in two files. The name is that of
the segment with the receive time of its first message: a stream whose store was removed begins at segment 1 again.

Files are written in ``OUT/_export``, made durable and renamed. Spark, DuckDB and pyarrow do not see that directory.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from pathlib import Path
from typing import IO
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from heliograph.engine.errors import Error, UsageError
from heliograph.engine.store.reader import StoredMessage

__all__ = ["WORK_FOLDER", "Archive", "Written", "partition"]

WORK_FOLDER = "_export"
_PARTS_MAX = 256
"""Files that are written at a time; a segment with more topics and days is read again for the others."""
_BUFFER_BYTES = 32 << 20
_ROW_BYTES = 600
"""Memory of a message beside its payload."""
_NAME_MAX = 240
_SHORTENED = 16
_DAY_NS = 86_400_000_000_000

_SCHEMA = pa.schema(
    [
        ("stream", pa.string()),
        ("position", pa.uint64()),
        ("number", pa.uint64()),
        ("sequence", pa.uint64()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("receive_ns", pa.uint64()),
        ("submit_ns", pa.uint64()),
        ("recovered", pa.bool_()),
        ("payload", pa.binary()),
    ]
)

Key = tuple[str, int]
"""Topic, and day since 1970."""


def partition(key: Key) -> str:
    """The path of a topic and day below the archive.

    The bytes of the name of the topic are escaped as in an address, but for ``A-Z a-z 0-9 . _ -``. A longer name than
    a file system takes is shortened and ends with ``~`` and a hash.
    """
    topic, day = key
    name = quote(topic, safe="").replace("~", "%7E")
    if len(name) > _NAME_MAX:
        name = f"{quote(topic[:_SHORTENED], safe='')}~{hashlib.sha256(topic.encode()).hexdigest()[:32]}"
    return f"topic={name}/date={date(1970, 1, 1) + timedelta(days=day)}"


class Archive:
    """A directory of Parquet files, locked for one writer."""

    def __init__(self, folder: Path) -> None:
        """Create what is missing, lock the directory, and remove what a killed writer has left.

        Raises:
            UsageError: Another process writes the archive.
            OSError: The directory cannot be written.
        """
        self.folder = folder
        self.work = folder / WORK_FOLDER
        self.work.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.work / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise UsageError(f"another process writes the archive {folder}") from None
        for left in self.work.glob("*.tmp"):
            left.unlink()

    def close(self) -> None:
        """Release the lock."""
        os.close(self._lock)

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def passing(self, name: str, done: set[Key]) -> Iterator[Pass]:
        """Write the files of a segment. Without `Pass.commit` nothing is changed.

        Args:
            name: Name of its files.
            done: Keys that an earlier pass has written; their messages are left out.
        """
        current = Pass(self, name, done)
        try:
            yield current
        finally:
            current.drop()

    def publish(self, temporary: Path, target: Path) -> None:
        """Rename a file that is durable, so that its name is durable too."""
        new = [folder for folder in (target.parent, target.parent.parent) if not folder.is_dir()]
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.rename(target)
        for folder in (target.parent, *(one.parent for one in new)):
            _sync(folder)


class Written:
    """What was written.

    Attributes:
        files: Files, new or replaced.
        messages: Messages that the archive did not have.
        bytes: Bytes of their payloads.
    """

    def __init__(self) -> None:
        self.files = self.messages = self.bytes = 0

    def add(self, other: Written) -> None:
        """Add the counts of another."""
        self.files += other.files
        self.messages += other.messages
        self.bytes += other.bytes


class Pass:
    """One reading of a segment, in the order of its positions."""

    def __init__(self, archive: Archive, name: str, done: set[Key]) -> None:
        self._archive = archive
        self._name = name
        self._done = done
        self._parts: dict[Key, _Part] = {}
        self._buffered = 0
        self.is_whole = True
        """Whether no message had to be left for another pass."""

    def take(self, messages: Iterable[tuple[StoredMessage, bool]]) -> None:
        """Add messages, each with whether it is selected. One that is not stays when the archive has it.

        Raises:
            Error: A file of the archive cannot be used.
            OSError: A file cannot be written.
        """
        for message, is_selected in messages:
            key = (message.topic, message.receive_ns // _DAY_NS)
            if key in self._done:
                continue
            part = self._parts.get(key)
            if part is None:
                if len(self._parts) == _PARTS_MAX:
                    self.is_whole = False
                    continue
                part = self._parts[key] = _Part(self._archive, key, self._name)
            self._buffered += part.take(message, is_selected)
            if self._buffered > _BUFFER_BYTES:
                self._buffered -= max(self._parts.values(), key=lambda one: one.buffered).flush()

    def commit(self) -> Written:
        """Make the messages visible, file by file; returns what the archive did not have.

        Raises:
            Error: A file of the archive has messages that the segment does not have.
            OSError: A file cannot be written. The files of other topics and days may be there already.
        """
        written = Written()
        for part in self._parts.values():
            written.add(part.commit())
        self._done.update(self._parts)
        return written

    def drop(self) -> None:
        """Remove what was not made visible."""
        for part in self._parts.values():
            part.drop()


class _Part:
    """The messages of a segment, topic and day."""

    def __init__(self, archive: Archive, key: Key, name: str) -> None:
        self._archive = archive
        self._topic = key[0]
        self._target = archive.folder / partition(key) / f"{name}.parquet"
        self._held = _positions(self._target)
        self._at = 0
        self._temporary: Path | None = None
        self._file: IO[bytes] | None = None
        self._writer: pq.ParquetWriter | None = None
        self._rows: list[StoredMessage] = []
        self._new = Written()
        self.buffered = 0

    def take(self, message: StoredMessage, is_selected: bool) -> int:
        """Add a message; returns the bytes by which the buffer has grown."""
        if self._at < len(self._held) and self._held[self._at] == message.position:
            self._at += 1
        elif not is_selected:
            return 0
        else:
            self._new.messages += 1
            self._new.bytes += len(message.data)
        self._rows.append(message)
        grown = len(message.data) + _ROW_BYTES
        self.buffered += grown
        return grown

    def flush(self) -> int:
        """Write a row group; returns the bytes by which the buffer has become smaller."""
        if self._writer is None:
            self._temporary = self._archive.work / f"{id(self):x}-{os.getpid()}.tmp"
            self._file = self._temporary.open("wb")
            self._writer = pq.ParquetWriter(
                self._file,
                _SCHEMA.with_metadata({"heliograph.topic": self._topic}),
                compression="zstd",
                use_dictionary=["stream"],
                write_page_checksum=True,
            )
        self._writer.write_table(_table(self._rows))
        self._rows = []
        written, self.buffered = self.buffered, 0
        return written

    def commit(self) -> Written:
        if self._at < len(self._held):
            raise Error(
                f"{self._target} has position {self._held[self._at]}, which its segment does not have: it is of "
                "another store; export each store to a directory of its own"
            )
        if self._new.messages == 0:
            return Written()
        if self._rows:
            self.flush()
        assert self._file is not None
        assert self._writer is not None
        assert self._temporary is not None
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._archive.publish(self._temporary, self._target)
        self._temporary = None
        self._new.files = 1
        return self._new

    def drop(self) -> None:
        if self._temporary is not None:
            if self._writer is not None:
                with suppress(Exception):  # a writer with an error may raise it again
                    self._writer.close()
            if self._file is not None:
                self._file.close()
            self._temporary.unlink(missing_ok=True)


def _positions(path: Path) -> list[int]:
    """The positions of a file in order; none when there is no file."""
    if not path.exists():
        return []
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        column = file.read(columns=["position"], use_threads=False)["position"]
    except (OSError, KeyError, pa.ArrowException, ValueError) as error:
        raise Error(
            f"{path} cannot be read: {error}; remove it and {WORK_FOLDER}/exported.json, and export again"
        ) from error
    found: list[int] = column.to_pylist()
    return found


def _table(rows: list[StoredMessage]) -> pa.Table:
    stream, position, _, sequence, number, submit, receive, recovered, data = zip(*rows, strict=True)
    received = pa.array(receive, pa.uint64())
    return pa.table(
        [
            pa.array(stream, pa.string()),
            pa.array(position, pa.uint64()),
            pa.array(number, pa.uint64()),
            pa.array([value or None for value in sequence], pa.uint64()),
            pc.divide(received, pa.scalar(1000, pa.uint64())).cast(pa.int64()).cast(_SCHEMA.field("time").type),
            received,
            pa.array([value or None for value in submit], pa.uint64()),
            pa.array(recovered, pa.bool_()),
            pa.array(data, pa.binary()),
        ],
        schema=_SCHEMA,
    )


def _sync(folder: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
