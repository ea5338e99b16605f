"""Takes snapshots of every instance on this host.

The sampler finds the segments of a directory, keeps them open, and reads all of them at each `sample`. It guarantees:

- A running instance appears in every snapshot, with its health and the reason.
- An instance that closed cleanly appears once more as `closed` with its final values, although its file is removed: the
  sampler had it open. An instance that opened and closed between two samples is never seen.
- A dead instance appears, with its last values, in every snapshot until its file is removed.
- A file that cannot be read appears as `damaged` in every snapshot, with the reason; other files are not affected. A
  file that is being written is left out until it is ready, or for at most five seconds.
- An instance of another user is left out and counted, unless `all_users` is set; its name is then ``NAME@uidUID``, so
  that it cannot take the name of one's own instance.
- When the process cannot open all files, the user's own files come first, then those with a running process, then the
  newest. The others are left out and counted.
- Every event is in exactly one snapshot, in the order of time. The first snapshot of an instance has the events that
  its ring still holds; events overwritten earlier are not counted as missed.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from heliograph.monitor.directory import SegmentError
from heliograph.monitor.errors import UserError
from heliograph.monitor.header import WRITING
from heliograph.monitor.health import ProcessStart, Verdict, judge, process_start_ns
from heliograph.monitor.model import Event, Health, InstanceState, ObjectState, Snapshot
from heliograph.monitor.ownership import folder_fault, folders_beside, foreign_mark, is_own, segment_folder
from heliograph.monitor.segment import Segment

if TYPE_CHECKING:
    from heliograph.monitor.collector.account import Account

__all__ = ["SUFFIX", "Sampler", "Source", "segment_folder"]

SUFFIX = ".helio"
FILES_MOST = 1024
"""Largest number of segments kept open, where the limit of the process allows it."""
UNREADY_NS = 5_000_000_000

Identity = tuple[int, int]
"""Device and inode of a file: another file under the same name is another instance."""


def files_limit() -> int:
    """Return how many segments to keep open: a quarter of the process limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return FILES_MOST if soft == resource.RLIM_INFINITY else max(1, min(FILES_MOST, soft // 4))


@dataclass(frozen=True, slots=True)
class _Found:
    """A file of the directory."""

    identity: Identity
    path: Path
    uid: int
    modified_ns: int


def split_name(path: Path) -> tuple[str, int]:
    """Return instance name and pid of a file name ``NAME.PID.helio``; the pid is 0 when it has none."""
    name, _, pid = path.name.removesuffix(SUFFIX).rpartition(".")
    if name and pid.isascii() and pid.isdigit() and len(pid) <= 10:
        return name, int(pid)
    return path.name.removesuffix(SUFFIX), 0


class _Watch:
    """One open segment and its state between samples."""

    __slots__ = ("cursor", "finished", "segment", "unfound_heartbeat_ns")

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.cursor: int | None = None
        self.unfound_heartbeat_ns: int | None = None
        self.finished = False
        """Whether it has been shown for the last time."""


class Source(Protocol):
    """A source of snapshots: a `Sampler` of this host, or a collector of many (`monitor.collector`)."""

    @property
    def place(self) -> str:
        """Where it looks for instances, as text."""

    @property
    def absence(self) -> str:
        """Why the last snapshot has no instance, as text."""

    @property
    def account(self) -> Account | None:
        """The reports a collector misses; None for a sampler."""

    def sample(self, histograms: bool | Collection[str] = True) -> Snapshot:
        """Take the next snapshot."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Sampler:
    """Reads all instances of a directory. A context manager; `close` releases the files. For one thread at a time."""

    def __init__(
        self,
        folder: Path | None = None,
        clock: Callable[[], int] = time.time_ns,
        process_start: ProcessStart = process_start_ns,
        all_users: bool = False,
        tell: Callable[[str], object] | None = None,
    ) -> None:
        """Create a sampler; reads nothing.

        Args:
            folder: The segment directory; default: see `segment_folder`. It need not exist yet.
            clock: Wall clock in ns since 1970.
            process_start: Returns the start of a process by id.
            all_users: Read the files of other users as well.
            tell: Receives a message, once, when files are left out.
        """
        self.folder = segment_folder(folder)
        self.all_users = all_users
        self.foreign = 0
        """Files of other users that the last sample left out."""
        self.left_out = 0
        """Files that the last sample left out because there were too many."""
        self._tell = tell
        self._reported: set[str] = set()
        self._clock = clock
        self._process_start = process_start
        self._watches: dict[Identity, _Watch] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def place(self) -> str:
        """The directory, as text."""
        return str(self.folder)

    @property
    def absence(self) -> str:
        """Why a snapshot has no instance, as text."""
        others = f" (files of other users: {self.foreign}; --all-users shows them)" if self.foreign else ""
        beside = ", ".join(f"--segments {folder}" for folder in folders_beside(self.folder, SUFFIX))
        return f"no running instance found{others}{f'; elsewhere: {beside}' if beside else ''}"

    @property
    def account(self) -> Account | None:
        """None: only a collector misses snapshots."""
        return None

    def close(self) -> None:
        """Close every file. The sampler can be used again; it then starts from the beginning."""
        for watch in self._watches.values():
            watch.segment.close()
        self._watches.clear()

    def glance(self) -> Snapshot:
        """Take a snapshot whose instances have only their torn objects.

        It has every event, and every record was read, so that a reader of events and health, which counts the torn
        objects, needs no more. It takes a third of the time of `sample` where all records change.

        Raises:
            UserError: The directory cannot be listed, or other users can replace the files in it.
        """
        return self._sample(Segment.torn)

    def sample(self, histograms: bool | Collection[str] = True) -> Snapshot:
        """Read every instance.

        Args:
            histograms: Histograms to read: all, none, or the named statistics. They are most of the cost, and each
                takes 216 KiB of memory while the snapshot exists.

        Raises:
            UserError: The directory cannot be listed, or other users can replace the files in it.
        """
        return self._sample(lambda segment: segment.objects(histograms))

    def _sample(self, objects: Callable[[Segment], tuple[ObjectState, ...]]) -> Snapshot:
        now_ns = self._clock()
        fault = folder_fault(self.folder, self.all_users)
        if fault is not None:
            raise UserError(f"the segment directory {self.folder} is not read: {fault}")
        present = self._chosen(list(self._files()))
        instances: list[InstanceState] = []
        events: list[Event] = []
        missed = 0
        for identity in [known for known in self._watches if known in present and not present[known]]:
            self._drop(identity)  # it no longer fits into the limit
        for identity, found in present.items():
            if found is not None and identity not in self._watches:
                unreadable = self._open(found, now_ns)
                if unreadable is not None:
                    instances.append(unreadable)
        for identity, watch in list(self._watches.items()):
            removed = identity not in present
            try:
                instance, mark = self._read(watch, now_ns, objects)
                if instance is not None:
                    batch = watch.segment.events(watch.cursor, mark)
                    watch.cursor = batch.cursor
                    events += batch.events
                    missed += batch.missed
            except SegmentError as error:
                self._drop(identity)
                if not removed:
                    instances.append(_damaged(watch.segment.path, error, watch.segment.owner))
                continue
            if instance is not None:
                instances.append(instance)
            is_over = instance is None or instance.health not in (Health.LIVE, Health.STALE)
            if removed and (
                is_over or not is_own(watch.segment.owner)
            ):  # another user could create and remove files without end
                self._drop(identity)
        instances.sort(key=lambda item: (item.name, item.started_ns, item.pid))
        events.sort(key=lambda item: (item.time_ns, item.instance, item.number))
        return Snapshot(now_ns, tuple(instances), tuple(events), missed)

    def _chosen(self, files: list[_Found]) -> dict[Identity, _Found | None]:
        """Choose the files to read; None: left out because there are too many."""
        own = [found for found in files if is_own(found.uid)]
        self.foreign = 0 if self.all_users else len(files) - len(own)
        if self.foreign:
            self._say("foreign", f"files of other users that are not shown: {self.foreign} (--all-users shows them)")
        wanted = files if self.all_users else own
        limit = files_limit()
        self.left_out = max(0, len(wanted) - limit)
        if self.left_out:
            self._say("many", f"segments that are not read: {self.left_out}; at most {limit} can be kept open")
            wanted.sort(key=self._rank)
        return {found.identity: found if at < limit else None for at, found in enumerate(wanted)}

    def _rank(self, found: _Found) -> tuple[bool, bool, int]:
        pid = split_name(found.path)[1]
        return not is_own(found.uid), not (pid and self._process_start(pid) is not None), -found.modified_ns

    def _say(self, kind: str, text: str) -> None:
        """Report a message once."""
        if self._tell is not None and kind not in self._reported:
            self._reported.add(kind)
            self._tell(text)

    def _files(self) -> Iterator[_Found]:
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if not entry.name.endswith(SUFFIX):
                        continue
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue  # removed after the listing
                    identity = found.st_dev, found.st_ino
                    yield _Found(identity, Path(entry.path), found.st_uid, found.st_mtime_ns)
        except FileNotFoundError:
            return  # no instance has run yet
        except OSError as error:
            raise UserError(f"the segment directory {self.folder} cannot be listed: {error.strerror}") from None

    def _open(self, found: _Found, now_ns: int) -> InstanceState | None:
        """Open a file and watch it; returns the state of a file that cannot be read."""
        path, identity = found.path, found.identity
        try:
            segment = Segment(path, self.all_users)
        except SegmentError as error:
            return _damaged(path, error, found.uid) if os.path.lexists(path) else None
        if segment.identity != identity:  # replaced since the listing: the next sample finds it
            segment.close()
            return None
        if segment.opened.state == WRITING:
            age_ns = now_ns - segment.modified_ns
            segment.close()
            if age_ns < UNREADY_NS:
                return None
            never = SegmentError(f"{path} was never finished: its engine stopped while creating it")
            return _damaged(path, never, found.uid)
        self._watches[identity] = _Watch(segment)
        return None

    def _read(
        self, watch: _Watch, now_ns: int, objects: Callable[[Segment], tuple[ObjectState, ...]]
    ) -> tuple[InstanceState | None, int]:
        """Return the state of a watched instance, None after it was shown for the last time; and its events.

        The number of events is read before the objects, so that the objects show everything that the events report.
        """
        header = watch.segment.header()
        known = watch.segment.opened
        if (header.incarnation, header.directory_version) != (known.incarnation, known.directory_version):
            if header.state == WRITING:
                return None, 0
            cursor = watch.cursor if header.incarnation == known.incarnation else None
            watch.segment.refresh()
            watch.cursor, watch.finished = cursor, False
        if watch.finished:
            return None, 0
        verdict = self._judge(watch, now_ns)
        header = watch.segment.header()
        instance = InstanceState(
            name=header.name,
            health=verdict.health,
            reason=verdict.reason,
            pid=header.pid,
            incarnation=header.incarnation,
            started_ns=header.started_ns,
            heartbeat_ns=header.heartbeat_ns,
            path=str(watch.segment.path),
            objects=objects(watch.segment),
            settled_ns=watch.segment.event_moment(header.events_written),
        )
        watch.finished = verdict.health is Health.CLOSED
        return instance, header.events_written

    def _judge(self, watch: _Watch, now_ns: int) -> Verdict:
        header = watch.segment.header()
        verdict = judge(header, now_ns, self._process_start, watch.unfound_heartbeat_ns)
        watch.unfound_heartbeat_ns = None if verdict.process_found else header.heartbeat_ns
        return verdict

    def _drop(self, identity: Identity) -> None:
        self._watches.pop(identity).segment.close()


def _damaged(path: Path, error: Exception, uid: int) -> InstanceState:
    name, pid = split_name(path)
    if not is_own(uid):
        name += foreign_mark(uid)
    return InstanceState(name, Health.DAMAGED, str(error), pid, 0, 0, 0, str(path))
