"""The flight recordings of the page Incident: those in the directories of the server, and those that readers upload.

A key of the address never becomes a path: it is looked up among the files that the directories list. Each recording is
decoded once, by one thread at a time and up to `LIMITS`; only its curves, events and ticks are kept. The newest of them
are kept, up to a number of ticks together. Uploads are kept apart, so that reading other files does not displace them.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import time
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from heliograph.engine.catalogue.times import date_time
from heliograph.monitor.errors import UserError
from heliograph.monitor.flight.files import recordings, split_name
from heliograph.monitor.flight.format import FlightError
from heliograph.monitor.flight.reader import Limits, Recording, Track, read
from heliograph.monitor.flight.study import Study, study_of

__all__ = ["MOST_BYTES", "Incident", "NotARecording", "Shelf"]

MOST_BYTES = 8 << 20
"""Largest upload."""
_MOST_FILE_BYTES = 128 << 20
"""Largest file of a directory."""
LIMITS = Limits(ticks=200_000, values=4_000_000)
_MOST_WORK = 50_000_000
"""Ticks of all objects together, which bounds the time for the curves."""
_MOST_TICKS_KEPT = 400_000
_MOST_KEPT = 8
_MOST_EVENTS = 2_000
_MOST_LISTED = 100
_RING_SECONDS = 10.0
"""Age from which a ring is read again for a new page."""
_LONGEST_NAME = 60


class NotARecording(ValueError):
    """A recording that cannot be shown; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Incident:
    """A decoded recording."""

    key: str
    name: str
    study: Study
    read_ns: int
    """When it was read, wall clock in ns."""
    version: tuple[int, int] = (0, 0)
    """Time of the last change and size of its file."""
    is_ring: bool = False


class _Kept:
    """The newest recordings, up to `_MOST_TICKS_KEPT` ticks; the newest one is always kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[str, Incident] = OrderedDict()

    def get(self, key: str) -> Incident | None:
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
            return found

    def add(self, item: Incident) -> None:
        with self._lock:
            self._found[item.key] = item
            self._found.move_to_end(item.key)
            while len(self._found) > 1 and (len(self._found) > _MOST_KEPT or self._ticks() > _MOST_TICKS_KEPT):
                self._found.popitem(last=False)

    def _ticks(self) -> int:
        return sum(len(item.study.recording.numbers) for item in self._found.values())

    def all(self) -> list[Incident]:
        with self._lock:
            return list(reversed(self._found.values()))


def _slim(recording: Recording) -> None:
    """Drop what no page shows: the cells of the objects, of which the number remains, and all but the newest events."""
    recording.tracks = [Track("", {}, {}, 0, 0, 0, 0)] * len(recording.tracks)
    if len(recording.events) > _MOST_EVENTS:
        recording.damage.append(f"only the newest {_MOST_EVENTS:,} of {len(recording.events):,} events are kept here")
        recording.events = recording.events[-_MOST_EVENTS:]


def _studied(path: Path, name: str, all_users: bool = False) -> Study:
    """Decode and evaluate a file.

    Raises:
        NotARecording: It cannot be read, or has more than the page evaluates.
    """
    if (size := _version(path)[1]) > _MOST_FILE_BYTES:
        raise NotARecording(f"{name} has {size >> 20:,} MiB, more than this page reads; heliograph flight reads it")
    try:
        recording = read(path, all_users, LIMITS)
    except FlightError as error:
        raise NotARecording(str(error).replace(str(path), name)) from None
    work = sum(track.last - track.first + 1 for track in recording.tracks)
    if work > _MOST_WORK:
        raise NotARecording(
            f"{name} has {len(recording.tracks):,} objects over {len(recording.numbers):,} ticks, more than this page "
            "evaluates; heliograph flight reads it"
        )
    study = study_of(recording)
    _slim(recording)
    return study


class Shelf:
    """The recordings that readers may choose; safe to use from many threads."""

    def __init__(
        self, folders: Sequence[Path] = (), all_users: bool = False, clock: Callable[[], int] = time.time_ns
    ) -> None:
        """Create the shelf; reads nothing.

        Args:
            folders: Directories whose recordings are offered.
            all_users: Offer also files of other users.
            clock: Wall clock in ns since 1970.
        """
        self._folders = tuple(folders)
        self._all_users = all_users
        self._clock = clock
        self._reading = threading.Lock()
        self._files, self._uploads = _Kept(), _Kept()

    def _paths(self) -> dict[str, Path]:
        """Return the files by key, newest first."""
        found: dict[str, Path] = {}
        for number, folder in enumerate(self._folders, 1):
            try:
                paths = recordings(folder, self._all_users)
            except UserError:
                continue  # `trouble` names it
            for path in reversed(paths[-_MOST_LISTED:]):
                found[path.name if number == 1 else f"{number}:{path.name}"] = path
        return found

    @property
    def trouble(self) -> str:
        """Why a directory cannot be listed; empty when all can."""
        for folder in self._folders:
            try:
                recordings(folder, self._all_users)
            except UserError as error:
                return str(error)
        return ""

    def options(self) -> list[tuple[str, str]]:
        """Return key and name of each recording: uploads, then files, newest first."""
        found = [(item.key, f"{item.name} (uploaded)") for item in self._uploads.all()]
        return found + [(key, _called(path)) for key, path in self._paths().items()]

    def get(self, key: str, *, oldest: float | None = None) -> Incident:
        """Return a recording, decoded now unless it is kept.

        Args:
            key: As `options` has it.
            oldest: Age in seconds from which a ring is read again; None: never, if it is kept.

        Raises:
            NotARecording: There is none with this key, or it cannot be read.
        """
        if (found := self._uploads.get(key)) is not None:
            return found
        path = self._paths().get(key)
        if path is None:
            raise NotARecording("it is not there, or not any more")
        found = self._files.get(key)
        if found is not None and self._is_current(found, path, oldest):
            return found
        with self._reading:
            again = self._files.get(key)  # another thread may have read it meanwhile
            if again is not None and again is not found:
                return again
            name = split_name(path)
            item = Incident(
                key,
                path.name,
                _studied(path, path.name, self._all_users),
                self._clock(),
                _version(path),
                name is not None and name[2] == 0,
            )
            self._files.add(item)
            return item

    def _is_current(self, found: Incident, path: Path, oldest: float | None) -> bool:
        if found.is_ring:  # it changes all the time
            return oldest is None or (self._clock() - found.read_ns) / 1e9 < oldest
        return found.version == _version(path)

    def opened(self, key: str) -> Incident:
        """`get` for a new page: a ring is at most 10 seconds old."""
        return self.get(key, oldest=_RING_SECONDS)

    def add(self, contents: str, name: str) -> Incident:
        """Add a recording from a data URL, as the browser sends a file.

        Raises:
            NotARecording: It cannot be shown.
        """
        _, comma, encoded = contents.partition(";base64,")
        if not contents.startswith("data:") or not comma:
            raise NotARecording("the browser did not send a file")
        if len(encoded) > MOST_BYTES * 4 // 3 + 4:
            raise NotARecording(f"it is larger than {MOST_BYTES >> 20} MiB")
        try:
            data = b64decode(encoded, validate=True)
        except ValueError:
            raise NotARecording("the browser did not send a file") from None
        shown = os.path.basename(name)[-_LONGEST_NAME:] or "recording"
        key = "upload-" + hashlib.sha256(shown.encode("utf-8", "replace") + b"\0" + data).hexdigest()[:16]
        if (known := self._uploads.get(key)) is not None:
            return known
        with self._reading, tempfile.NamedTemporaryFile(prefix="heliograph-", suffix=".flight") as file:
            file.write(data)
            file.flush()
            item = Incident(key, shown, _studied(Path(file.name), "it"), self._clock())
        self._uploads.add(item)
        return item


def _version(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _called(path: Path) -> str:
    parts = split_name(path)
    if parts is None:
        return path.name
    name, pid, number = parts
    if not number:
        return f"{name} ({pid}): the last seconds"
    return f"{name} ({pid}): kept recording {number} of {date_time(_version(path)[0])[:19]}"
