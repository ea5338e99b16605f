"""`heliograph store export`: writes the messages of a store as Parquet files."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from heliograph.engine.commands import counted, harmless, status_line
from heliograph.engine.store.arguments import BY, duration, number_or_time
from heliograph.engine.store.files import Segment, segments

if TYPE_CHECKING:
    from heliograph.engine._store import Reader
    from heliograph.engine.store.archive import Archive, Written
    from heliograph.engine.store.archive_ledger import Ledger
    from heliograph.engine.store.reader import StoredMessage

__all__ = ["Exported", "Selection", "add_export", "export"]

Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_MAX = 2**64 - 1
_AT_ONCE = 1024
_AT_ONCE_BYTES = 4 << 20
_SAVE_SECONDS = 10.0
_REST_SECONDS = 600.0
"""A last segment that was not changed for so long counts as finished."""
_SHOW_SECONDS = 0.2
_LEDGER = "exported.json"
_BY_POSITION = 0
_FIELDS = {"position": "position", "number": "number", "sequence": "sequence", "time": "receive_ns"}

_EPILOG = """\
Give each store a directory of its own: stores that keep the same topics have the same messages. A message is removed
from the archive only with its file.

example:
  heliograph store export /var/lib/heliograph/store --to /data/archive --topics "PRICES.*"
  heliograph store export /var/lib/heliograph/store --to /data/archive --unfinished --follow
"""


@dataclass(frozen=True)
class Selection:
    """The messages to export.

    Attributes:
        topics: Pattern of their topics, with * and ?; None: all.
        by: Which of their values `first` and `last` limit: position, number, sequence or time (of receive).
        first: Least value.
        last: Greatest value.
        has_unfinished: Also those of last segments that were changed in the last ten minutes.
    """

    topics: str | None = None
    by: str = "time"
    first: int = 0
    last: int = _MAX
    has_unfinished: bool = False

    def text(self) -> str:
        """The messages as text; the same for all runs that select the same."""
        return json.dumps([self.topics, self.by, self.first, self.last])

    def may_have(self, segment: Segment) -> bool:
        """Whether a segment may have such messages, by what is known without reading it."""
        if segment.messages == 0:
            return False
        if self.by == "time":
            return self.first <= segment.last_ns and segment.first_ns <= self.last
        if self.by == "position":
            return self.first < segment.position + segment.messages and segment.position <= self.last
        return True

    def has(self, message: StoredMessage) -> bool:
        """Whether a message of a topic that matches is one of them."""
        value: int = getattr(message, _FIELDS[self.by])
        return self.first <= value <= self.last


@dataclass(frozen=True)
class Exported:
    """The result of a run.

    Attributes:
        segments: Segments read.
        files: Files written, new or replaced.
        messages: Messages that the archive did not have.
        bytes: Bytes of their payloads.
        lag_messages: Messages in segments that are not exported yet; with a pattern, those of other topics too.
        lag_ns: Age of the oldest of them, ns; 0: there are none.
        missed_messages: Messages, of all topics, that were removed from the store before they were exported.
        faults: Segments that cannot be read, with the reason.
    """

    segments: int
    files: int
    messages: int
    bytes: int
    lag_messages: int
    lag_ns: int
    missed_messages: int
    faults: list[str]


def export(
    store: Path, archive: Archive, selection: Selection, progress: Callable[[str], None] = lambda text: None
) -> Exported:
    """Write what the archive does not have yet. The store may be written meanwhile.

    Args:
        store: Directory of the store.
        archive: Where to write.
        selection: The messages.
        progress: Called with a line of text, at most five times a second.

    Raises:
        Error: The store cannot be read, or a file of the archive cannot be used.
        OSError: The archive cannot be written. What was written is complete in itself.
    """
    from heliograph.engine.store.archive_ledger import Ledger

    ledger = Ledger(archive.work / _LEDGER, selection.text())
    return _Run(store, archive, selection, ledger, progress).result()


class _Run:
    def __init__(
        self, store: Path, archive: Archive, selection: Selection, ledger: Ledger, progress: Callable[[str], None]
    ) -> None:
        from heliograph.engine.store.archive import Written

        self._store = store
        self._archive = archive
        self._selection = selection
        self._ledger = ledger
        self._progress = progress
        self._shown = self._saved = time.monotonic()
        self._read = 0
        self._written = Written()
        self._faults: list[str] = []

    def result(self) -> Exported:
        try:
            self._export(self._look())
            lag, since = self._lag()
        finally:
            self._ledger.save()
        age = max(0, time.time_ns() - since) if lag else 0
        written = self._written
        counts = (self._read, written.files, written.messages, written.bytes)
        return Exported(*counts, lag, age, self._ledger.missed, self._faults)

    def _look(self) -> list[Segment]:
        found = segments(self._store)
        self._ledger.update([one for one in found if self._selection.may_have(one)])
        return found

    def _export(self, found: list[Segment]) -> None:
        for i, segment in enumerate(found):
            is_last = i + 1 == len(found) or found[i + 1].stream != segment.stream
            if segment.header not in ("ok", "incomplete" if is_last else "ok"):
                self._faults.append(f"stream {segment.stream}, segment {segment.number}: header: {segment.header}")
                continue
            if not self._selection.may_have(segment) or (is_last and self._is_growing(segment)):
                continue
            if segment.tail == "damaged" or (segment.tail != "ok" and not is_last):
                where = f"{segment.tail} at byte {segment.whole_bytes}"
                self._faults.append(f"stream {segment.stream}, segment {segment.number}: {where}")
            elif self._ledger.exported(segment) < segment.messages:
                self._segment(segment)

    def _path(self, segment: Segment) -> Path:
        return self._store / f"{segment.stream.replace(':', '-')}-{segment.number:016x}.seg"

    def _is_growing(self, segment: Segment) -> bool:
        """Whether to leave out a last segment."""
        if self._selection.has_unfinished:
            return False
        try:
            return time.time() - self._path(segment).stat().st_mtime < _REST_SECONDS
        except FileNotFoundError:
            return True

    def _segment(self, segment: Segment) -> None:
        """Export a segment. One that retention removes meanwhile is left out."""
        path = self._path(segment)
        try:
            _make_durable(path)
            self._written.add(self._copied(segment))
        except FileNotFoundError:
            if path.exists():
                raise
            return
        except _Unreadable as error:
            if path.exists():
                self._faults.append(f"stream {segment.stream}, segment {segment.number}: {error}")
            return
        self._read += 1
        self._ledger.note(segment)
        if time.monotonic() - self._saved >= _SAVE_SECONDS:
            self._saved = time.monotonic()
            self._ledger.save()

    def _copied(self, segment: Segment) -> Written:
        from heliograph.engine.store.archive import Key, Written

        written = Written()
        done: set[Key] = set()
        is_whole = False
        while not is_whole:
            reader = _reader(self._store, segment)
            first = _taken(reader, 1)
            if not first:
                raise _Unreadable("its messages cannot be read")
            name = f"{segment.stream.replace(':', '-')}-{segment.number:016x}-{first[0].receive_ns:016x}"
            with self._archive.passing(name, done) as current:
                for messages in self._lists(reader, first, segment):
                    current.take((one, self._selection.has(one)) for one in messages if self._matches(one.topic))
                written.add(current.commit())
                is_whole = current.is_whole
        return written

    def _lists(self, reader: Reader, first: list[StoredMessage], segment: Segment) -> Iterator[list[StoredMessage]]:
        """The messages of a segment in lists; all of them or an error."""
        at_once = max(1, min(_AT_ONCE, _AT_ONCE_BYTES * segment.messages // segment.bytes))
        count = 0
        run = first
        while run:
            count += len(run)
            yield run
            if time.monotonic() - self._shown >= _SHOW_SECONDS:
                self._shown = time.monotonic()
                self._progress(f"{counted(self._written.messages)} exported, segment {segment.number}: {count:,}")
            run = _taken(reader, at_once)
        if count != segment.messages:
            raise _Unreadable(f"{count:,} of its {segment.messages:,} messages can be read")

    def _matches(self, topic: str) -> bool:
        return self._selection.topics is None or fnmatchcase(topic, self._selection.topics)

    def _lag(self) -> tuple[int, int]:
        """Messages that are not exported, and the receive time of the oldest, ns since 1970."""
        lag, since = 0, _MAX
        for segment in self._look():
            if not self._selection.may_have(segment):
                continue
            exported = self._ledger.exported(segment)
            if exported < segment.messages:
                lag += segment.messages - exported
                since = min(since, self._since(segment, exported))
        return lag, since

    def _since(self, segment: Segment, exported: int) -> int:
        if exported == 0:
            return segment.first_ns
        try:
            rest = _taken(_reader(self._store, segment, exported), 1)
        except _Unreadable:
            rest = []
        return rest[0].receive_ns if rest else segment.last_ns


class _Unreadable(Exception):
    """A segment cannot be read."""


def _reader(store: Path, segment: Segment, exported: int = 0) -> Reader:
    from heliograph.engine import _store
    from heliograph.engine.errors import Error
    from heliograph.engine.store.protocol import parse_stream

    last = segment.position + segment.messages - 1
    try:
        return _store.Reader(
            store, *parse_stream(segment.stream), _BY_POSITION, segment.position + exported, last, None
        )
    except Error as error:
        raise _Unreadable(str(error)) from error


def _taken(reader: Reader, limit: int) -> list[StoredMessage]:
    from heliograph.engine.errors import Error

    try:
        return reader.next(limit)
    except Error as error:
        raise _Unreadable(str(error)) from error


def _make_durable(path: Path) -> None:
    """Make the messages of a segment durable, so that no crash makes another message of a position."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def add_export(actions: Actions) -> None:
    """Add ``heliograph store export``."""
    parser = actions.add_parser(
        "export",
        help="write messages as Parquet files, for Spark, DuckDB or pandas",
        description="Write the messages of finished segments as Parquet files, by topic and day. The next run writes "
        "what is new. A run that was killed at any moment is continued by the next, without loss or duplicate.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dir", type=Path, metavar="DIR", help="directory of the store")
    parser.add_argument("--to", type=Path, required=True, metavar="OUT", help="directory of the archive")
    parser.add_argument("--topics", metavar="PATTERN", help="only topics that match; * and ? are wildcards")
    parser.add_argument(
        "--by", choices=BY, default="time", help="meaning of --from and --until (default: receive time)"
    )
    parser.add_argument(
        "--from",
        dest="first",
        type=number_or_time,
        default=0,
        metavar="VALUE",
        help="a number, or a time as in 2026-11-23T09:00:00",
    )
    parser.add_argument(
        "--until", dest="last", type=number_or_time, default=_MAX, metavar="VALUE", help="the same; included"
    )
    parser.add_argument(
        "--unfinished",
        action="store_true",
        help="also segments that the store is writing; their files are replaced by later runs",
    )
    parser.add_argument("--follow", action="store_true", help="continue until Ctrl-C")
    parser.add_argument(
        "--interval",
        type=duration,
        default=10.0,
        metavar="TIME",
        help="with --follow: time between runs (default: 10s)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object; with --follow, one per line")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from heliograph.engine.errors import Error
    from heliograph.engine.options import refusal
    from heliograph.engine.store.archive import Archive

    selection = Selection(
        arguments.topics, arguments.by, arguments.first, arguments.last, has_unfinished=arguments.unfinished
    )
    if selection.first > selection.last:
        raise refusal(f"--from {selection.first} is later than --until {selection.last}")
    store, out = arguments.dir.resolve(), arguments.to.resolve()
    if store == out or store in out.parents:
        raise refusal(f"the archive {arguments.to} must not be in the store {arguments.dir}")
    segments(arguments.dir)  # Without a store, no archive is created.
    try:
        with Archive(arguments.to) as archive:
            return _runs(arguments, archive, selection)
    except BrokenPipeError:
        raise
    except OSError as error:
        where = error.filename or arguments.to
        raise Error(f"the export to {arguments.to} failed: {where}: {error.strerror or error}") from error
    finally:
        status_line("")


def _runs(arguments: argparse.Namespace, archive: Archive, selection: Selection) -> int:
    is_clean = True
    last: Exported | None = None
    while True:
        done = export(arguments.dir, archive, selection, status_line)
        status_line("")
        is_clean = is_clean and not done.faults and not done.missed_messages
        if last is None or replace(done, lag_ns=0) != replace(last, segments=0, files=0, messages=0, bytes=0, lag_ns=0):
            _show(done, last, arguments.json)
        last = done
        if not arguments.follow:
            return 0 if is_clean else 1
        status_line(_lag_text(done))
        time.sleep(arguments.interval)


def _show(done: Exported, before: Exported | None, as_json: bool) -> None:
    if as_json:
        print(json.dumps({**asdict(done), "time_ns": time.time_ns()}), flush=True)
    else:
        came = f"exported {counted(done.messages)}, {done.bytes:,} bytes, from {done.segments:,} segments"
        print(f"{came} to {done.files:,} files; {_lag_text(done)}", flush=True)
    for fault in done.faults:
        if before is None or fault not in before.faults:
            print(f"heliograph: {harmless(fault)}", file=sys.stderr)
    if done.missed_messages > (before.missed_messages if before else 0):
        print(
            f"heliograph: {counted(done.missed_messages)} were removed from the store before they were exported; "
            "export more often, or retain more",
            file=sys.stderr,
        )


def _lag_text(done: Exported) -> str:
    if done.lag_messages == 0:
        return "nothing is left"
    return f"{counted(done.lag_messages)} not exported yet, the oldest {done.lag_ns / 1e9:,.1f} s old"
