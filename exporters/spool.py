"""The spool: interval histograms as Parquet files, the input of the latency history.

Snapshots are cut into intervals (`monitor.history.intervals`). Every minute, or earlier when many rows are waiting, the
rows become a file. The file is flushed to disk before it gets its name, so that it survives a power cut; a killed
exporter loses at most one minute. Rows that cannot be written (disk full, permission removed) are kept for the next
attempt, and `publish` raises a `UserError`. Above a limit the oldest rows are dropped and counted in `rows_dropped`.

One exporter writes a spool at a time, because two would record every value twice. A lock file ensures this.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import ROW_GROUP_ROWS, remove_leftovers, write_spool
from heliograph.monitor.history.intervals import IntervalRecorder
from heliograph.monitor.history.lock import FolderLock
from heliograph.monitor.history.schema import LatencyInterval
from heliograph.monitor.model import Snapshot

__all__ = ["SpoolExporter"]

_RETRY_NS = 5_000_000_000


@dataclass(frozen=True, slots=True)
class _Batch:
    """Rows of one file. They never change, so a second write after a failure duplicates nothing."""

    number: int
    rows: tuple[LatencyInterval, ...]


class SpoolExporter:
    """Writes snapshots to a spool.

    Args:
        directory: Directory of the spool; created when missing.
        interval: Shortest interval of a histogram in seconds.
        flush: Seconds between two files.
        backlog: Also record values counted before the first snapshot.
        max_rows: Largest number of rows kept while they cannot be written.

    Raises:
        UserError: The directory cannot be written, or another exporter is writing it.
    """

    def __init__(
        self,
        directory: Path,
        *,
        interval: float = 10.0,
        flush: float = 60.0,
        backlog: bool = False,
        max_rows: int = 4 * ROW_GROUP_ROWS,
    ) -> None:
        self.rows_written = 0
        self.rows_dropped = 0
        """Rows dropped because they could not be written for too long."""
        self._directory = Path(directory)
        self._recorder = IntervalRecorder(int(interval * 1e9), backlog=backlog)
        self._flush_ns = int(flush * 1e9)
        self._max_rows = max_rows
        self._open: list[LatencyInterval] = []
        self._sealed: deque[_Batch] = deque()
        self._next_number = 0
        self._flush_at_ns: int | None = None
        self._closed = False
        self._lock = FolderLock(
            self._directory,
            f"another exporter is writing the spool {directory}; two would record everything twice: stop one of them, "
            "or give this one another directory",
        )
        remove_leftovers(self._directory)

    def publish(self, snapshot: Snapshot) -> None:
        """Record a snapshot; write a file when it is time.

        Raises:
            UserError: The file could not be written. No row is lost; the next attempt follows some seconds later.
        """
        if self._flush_at_ns is None:
            self._flush_at_ns = snapshot.time_ns + self._flush_ns
        self._open += self._recorder.update(snapshot)
        ahead_ns = self._flush_at_ns - snapshot.time_ns
        was_set_back = ahead_ns > max(
            self._flush_ns, _RETRY_NS
        )  # the wall clock: it may need hours to reach that time again
        if ahead_ns <= 0 or was_set_back or len(self._open) >= ROW_GROUP_ROWS:
            self._flush_at_ns = snapshot.time_ns + _RETRY_NS
            self._write()
            self._flush_at_ns = snapshot.time_ns + self._flush_ns

    def close(self) -> None:
        """End the interval, write all rows and release the spool.

        Raises:
            UserError: The last rows could not be written; the message has their number.
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._open += self._recorder.cut()
            self._write()
        except UserError as error:
            self.rows_dropped += (lost := sum(len(batch.rows) for batch in self._sealed))
            raise UserError(f"{error}; {lost} intervals are lost") from error
        finally:
            self._lock.release()

    def _write(self) -> None:
        if self._open:
            self._sealed.append(_Batch(self._next_number, tuple(self._open)))
            self._next_number += 1
            self._open = []
        try:
            while self._sealed:
                batch = self._sealed[0]
                write_spool(self._directory, batch.rows, self._recorder.source, batch.number)
                self.rows_written += len(batch.rows)
                self._sealed.popleft()
        except OSError as error:
            self._keep_within_bound()
            kept = sum(len(batch.rows) for batch in self._sealed)
            raise UserError(
                f"the spool {self._directory} cannot be written: {error.strerror or error}; "
                f"{kept} intervals are kept for the next attempt"
            ) from error

    def _keep_within_bound(self) -> None:
        while len(self._sealed) > 1 and sum(len(batch.rows) for batch in self._sealed) > self._max_rows:
            self.rows_dropped += len(self._sealed.popleft().rows)
