"""Imports HdrHistogram interval logs into the spool, as rows like any other.

The name of the log is the instance, its tags are the `tag` column, the metric is `imported_latency`; a log that
Heliograph wrote gets its own labels back. Values are taken as nanoseconds, the unit of HdrHistogram's log tools;
floating-point values may have another unit.

The source of the rows is a hash of the log's content, so importing the same log again changes nothing.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from heliograph.monitor import _hdr
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.doubles import is_double, whole_ns
from heliograph.monitor.history.files import ROW_GROUP_ROWS, remove_leftovers, write_spool
from heliograph.monitor.history.hlog import HlogInterval, Malformed, labels_of, open_log, read_hlog, tags_are_labels
from heliograph.monitor.history.legacy import modern
from heliograph.monitor.history.remote import Place, globbed
from heliograph.monitor.history.schema import IMPORTED, LatencyInterval

__all__ = ["Imported", "import_hlog"]

_NAMED_LINES = 1000

Progress = Callable[[int], None]
"""Called with the number of lines read."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of one log."""

    path: Path
    intervals: int
    """Lines with values, now in the spool."""
    empty: int
    """Lines without values, not kept."""
    refused: int
    """Lines that could not be read."""
    malformed: tuple[Malformed, ...]
    """The first of them, at most a thousand."""
    already_there: bool
    """The same log had been imported before; nothing was written."""


def import_hlog(
    path: Path,
    spool: Place,
    *,
    instance: str | None = None,
    double_unit_ns: int = 1,
    progress: Progress | None = None,
) -> Imported:
    """Import one log; what is valid is kept, whatever else the log contains.

    Args:
        path: The log.
        spool: Folder of the spool; created when missing.
        instance: Label of its series; the name of the file without its ending when None.
        double_unit_ns: Unit of floating-point values, ns. It is part of the name of the recording.
        progress: Called from time to time.

    Raises:
        UserError: The log cannot be read or the spool cannot be written.
    """
    try:
        source = _source(path) + (f"-x{double_unit_ns}" if double_unit_ns != 1 else "")
        if isinstance(spool, Path):
            remove_leftovers(spool)
        reader = _Reader(path, instance if instance is not None else _name(path), source, double_unit_ns, progress)
        rows = reader.rows()
        before: set[Place] = set(globbed(spool, f"date=*/{source}-*.parquet"))
        written: set[Place] = set()
        number = 0
        while batch := list(islice(rows, ROW_GROUP_ROWS)):
            written |= set(write_spool(spool, batch, source, number))
            number += 1
    except OSError as error:
        where = error.filename or spool
        raise UserError(f"importing {path} failed: {where}: {error.strerror or error}") from error
    return Imported(
        path,
        reader.intervals,
        reader.empty,
        reader.refused,
        tuple(reader.malformed),
        bool(written) and written <= before,
    )


def _source(path: Path) -> str:
    """Return a name by the content, which is the same for a compressed log."""
    digest = hashlib.sha256()
    with open_log(path) as file, suppress(EOFError, zlib.error, gzip.BadGzipFile):
        while block := file.read(1 << 20):
            digest.update(block)
    return f"log-{digest.hexdigest()[:16]}"


def _name(path: Path) -> str:
    """Return the name of a log without its endings: ``app.hlog.gz`` -> ``app``."""
    return Path(path.stem).stem if path.suffix == ".gz" else path.stem


class _Reader:
    """Reads a log as rows and counts what it meets."""

    def __init__(self, path: Path, instance: str, source: str, double_unit_ns: int, progress: Progress | None) -> None:
        self.intervals = 0
        self.empty = 0
        self.malformed: list[Malformed] = []
        self.refused = 0
        self._path = path
        self._instance = instance
        self._source = source
        self._double_unit_ns = double_unit_ns
        self._progress = progress
        self._ours = tags_are_labels(path)

    def rows(self) -> Iterator[LatencyInterval]:
        for found in read_hlog(self._path):
            if isinstance(found, Malformed):
                self._leave_out(found)
                continue
            try:
                row = self._row(found)
            except ValueError as error:
                self._leave_out(Malformed(found.line, str(error)))
                continue
            if row is None:
                self.empty += 1
                continue
            self.intervals += 1
            if self._progress is not None:
                self._progress(found.line)
            yield row

    def _leave_out(self, found: Malformed) -> None:
        self.refused += 1
        if len(self.malformed) < _NAMED_LINES:
            self.malformed.append(found)

    def _row(self, found: HlogInterval) -> LatencyInterval | None:
        is_of_doubles = is_double(found.payload)
        payload = whole_ns(found.payload, self._double_unit_ns) if is_of_doubles else modern(found.payload)
        body, digits, lowest, highest, n, low, high, total = _hdr.rewrite(payload)
        if n == 0:
            return None
        instance, topic, stream, metric, tag = self._instance, "", "", IMPORTED, found.tag
        labels = labels_of(found.tag)
        if self._ours and len(labels) == 4:
            (instance, topic, stream, metric), tag = labels, ""
        return LatencyInterval(
            ts_ns=found.start_ns,
            len_ms=(found.length_ns + 500_000) // 1_000_000,
            instance=instance,
            topic=topic,
            stream=stream,
            metric=metric,
            tag=tag,
            host="",
            build="",
            link="",
            incarnation="",
            level="",
            digits=digits,
            lowest=lowest,
            highest=highest,
            n=n,
            min=low,
            max=high,
            sum=min(int(total), 2**63 - 1),
            dropped=0,
            clock_error_ns=0,
            source=self._source,
            seq=found.line,
            h=body,
        )
