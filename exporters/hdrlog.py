"""The HDR log: interval histograms in the log format of HdrHistogram (version 1.3), for existing tools.

One line holds one interval of one series, tagged with the labels of the series (format: `monitor.history.hlog`). The
log is appended to: a restarted exporter continues it after a new head. An incomplete line is removed again, kept and
written at the next attempt, so that the file never holds half a line.
"""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

from heliograph.monitor import _hdr
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.hlog import head, line_of, tag_of
from heliograph.monitor.history.intervals import IntervalRecorder
from heliograph.monitor.history.schema import LatencyInterval
from heliograph.monitor.model import Snapshot

__all__ = ["HdrLogExporter"]

_MAX_LINES = 100_000


class HdrLogExporter:
    """Appends snapshots to an HDR log.

    Args:
        path: The log; its directory is created when missing.
        interval: Shortest interval of a histogram in seconds.
        backlog: Also log values counted before the first snapshot.

    Raises:
        UserError: The file cannot be written.
    """

    def __init__(self, path: Path, *, interval: float = 10.0, backlog: bool = False) -> None:
        self.lines_dropped = 0
        """Lines dropped because they could not be written for too long."""
        self._path = Path(path)
        self._recorder = IntervalRecorder(int(interval * 1e9), backlog=backlog)
        self._base_ns: int | None = None
        self._pending: deque[str] = deque()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._handle: int | None = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._size = os.fstat(self._handle).st_size
            if self._size and os.pread(self._handle, 1, self._size - 1) != b"\n":
                self._pending.append("\n")  # an earlier writer stopped within a line
        except OSError as error:
            raise UserError(f"the log {path} cannot be written: {error.strerror or error}") from error

    def publish(self, snapshot: Snapshot) -> None:
        """Log the intervals that end with this snapshot.

        Raises:
            UserError: The lines could not be written. They are kept for the next attempt.
        """
        if self._base_ns is None:
            self._base_ns = snapshot.time_ns
            self._pending.append(head(self._base_ns))
        self._log(self._recorder.update(snapshot))

    def close(self) -> None:
        """End the interval, write everything and close the log.

        Raises:
            UserError: The last lines could not be written; the message has their number.
        """
        if self._handle is None:
            return
        try:
            self._log(self._recorder.cut())
            os.fsync(self._handle)
        except (OSError, UserError) as error:
            lost = len(self._pending)
            self.lines_dropped += lost
            raise UserError(f"{error}; {lost} lines are lost") from error
        finally:
            os.close(self._handle)
            self._handle = None

    def _log(self, rows: list[LatencyInterval]) -> None:
        self._pending += [self._line(row) for row in rows if row.n]
        while len(self._pending) > _MAX_LINES:
            # The head stays: it gives the lines their time.
            del self._pending[1]
            self.lines_dropped += 1
        try:
            while self._pending:
                self._append(self._pending[0].encode())
                self._pending.popleft()
        except OSError as error:
            raise UserError(f"the log {self._path} cannot be written: {error.strerror or error}") from error

    def _line(self, row: LatencyInterval) -> str:
        counts, digits, lowest, highest = _hdr.decode(row.h)
        return line_of(
            row.ts_ns - (self._base_ns or 0),
            row.len_ms * 1_000_000,
            row.max,
            tag_of(row.instance, row.topic, row.stream, row.metric),
            _hdr.encode(counts, digits, lowest, highest, compress=True),
        )

    def _append(self, line: bytes) -> None:
        assert self._handle is not None
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._handle, rest) :]
        except OSError:
            os.ftruncate(self._handle, self._size)
            raise
        self._size += len(line)
