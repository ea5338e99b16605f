"""HDR logs that readers upload to the latency lab: checked, bounded, and kept in memory only.

A log is known by a hash of its content, so the address of the page can name it. Only the newest logs are kept.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tempfile
import threading
import zlib
from base64 import b64decode
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from heliograph.dashboards.live.curves import Curve
from heliograph.monitor import _hdr
from heliograph.monitor.history.hlog import HlogInterval, labels_of, read_hlog, tags_are_labels
from heliograph.monitor.history.legacy import modern
from heliograph.monitor.model import Histogram

__all__ = ["MOST_BYTES", "Log", "NotALog", "Uploads", "parse"]

MOST_BYTES = 2 << 20
_MOST_PLAIN_BYTES = 16 << 20
_MOST_INTERVALS = 5_000
_MOST_CELLS = 1 << 19
"""Cells of all tags of a log together: 4 MiB."""
_MOST_WORK = 1 << 28
"""Cells of all intervals together, which bounds the time for a log."""
_MOST_TAGS = 8
_MOST_KEPT = 16
_NAMED = 3
_LONGEST_NAME = 60


class NotALog(ValueError):
    """An upload that cannot be shown; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Log:
    """An uploaded log: one curve for each tag."""

    key: str
    name: str
    curves: tuple[Curve, ...]
    notes: tuple[str, ...] = ()
    """Lines that were left out, with the reason."""


class _Sum:
    """The values of one tag over all intervals. A later interval may have a larger highest value than the first."""

    def __init__(self, first: HlogInterval) -> None:
        self.start_ns, self.end_ns = first.start_ns, first.start_ns
        self.digits = self.lowest = self.highest = 0
        self.counts: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)

    def add(self, found: HlogInterval, most: int) -> None:
        body, digits, lowest, highest, *_ = _hdr.rewrite(modern(found.payload))
        if _hdr.cells(digits, lowest, highest) > most:
            raise ValueError(f"the histograms of the log have more than {_MOST_CELLS:,} cells")
        if self.digits and (digits, lowest) != (self.digits, self.lowest):
            raise ValueError("its histogram has another layout than the first with this tag")
        new = np.frombuffer(_hdr.decode(body)[0], np.uint64)
        self.digits, self.lowest = digits, lowest
        if new.size > self.counts.size:
            self.counts, new = new.copy(), self.counts
        self.highest = max(self.highest, highest)
        self.counts[: new.size] += new
        self.start_ns = min(self.start_ns, found.start_ns)
        self.end_ns = max(self.end_ns, found.start_ns + found.length_ns)

    def curve(self, name: str, labels: tuple[str, ...]) -> Curve:
        values = Histogram(self.counts, self.lowest, self.highest, self.digits)
        return Curve(name, values, self.start_ns, self.end_ns - self.start_ns, labels=labels)


def _plain(data: bytes) -> bytes:
    """Return the content, unpacked when gzip packed it."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        plain = gzip.GzipFile(fileobj=io.BytesIO(data)).read(_MOST_PLAIN_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise NotALog(f"gzip cannot unpack it: {error}") from None
    if len(plain) > _MOST_PLAIN_BYTES:
        raise NotALog(f"it unpacks to more than {_MOST_PLAIN_BYTES >> 20} MiB")
    return plain


def parse(data: bytes, name: str) -> Log:
    """Read an HDR log.

    Args:
        data: Content of the file, plain or packed by gzip.
        name: Name of the file.

    Raises:
        NotALog: It is too large, or no interval of it can be read.
    """
    if len(data) > MOST_BYTES:
        raise NotALog(f"it is larger than {MOST_BYTES >> 20} MiB")
    plain = _plain(data)
    name = name[:_LONGEST_NAME] or "log"
    sums: dict[str, _Sum] = {}
    wrong: list[str] = []
    intervals = work = 0
    with tempfile.NamedTemporaryFile(prefix="heliograph-log-") as file:
        file.write(plain)
        file.flush()
        ours = tags_are_labels(Path(file.name))
        for found in read_hlog(Path(file.name)):
            if not isinstance(found, HlogInterval):
                wrong.append(f"line {found.line}: {found.reason}")
                continue
            intervals += 1
            if intervals > _MOST_INTERVALS or work > _MOST_WORK:
                wrong.append(f"line {found.line}: only the first {intervals - 1:,} intervals are shown")
                break
            if found.tag not in sums and len(sums) >= _MOST_TAGS:
                wrong.append(f"line {found.line}: only the first {_MOST_TAGS} tags are shown")
                continue
            try:
                total = sums.get(found.tag) or _Sum(found)
                total.add(found, _MOST_CELLS - sum(one.counts.size for one in sums.values() if one is not total))
                sums[found.tag] = total
                work += total.counts.size
            except ValueError as error:
                wrong.append(f"line {found.line}: {error}")
    shown = {tag: total for tag, total in sums.items() if total.counts.any()}
    if not shown:
        raise NotALog(wrong[0] if wrong else "it has no interval with values")
    notes = [f"{name}: {text}" for text in wrong[:_NAMED]]
    if len(wrong) > _NAMED:
        notes.append(f"{name}: {len(wrong) - _NAMED:,} more lines left out")
    key = hashlib.sha256(name.encode("utf-8", "replace") + b"\0" + data).hexdigest()[:16]
    curves = tuple(_curve(name, tag, total, ours) for tag, total in shown.items())
    return Log(key, name, curves, tuple(notes))


def _curve(name: str, tag: str, total: _Sum, ours: bool) -> Curve:
    labels = labels_of(tag) if ours else ()
    if len(labels) == 4:
        shown = " ".join(part for part in labels if part)
    else:
        labels, shown = (name, "", "", tag or "imported"), tag
    return total.curve(f"{name}: {shown}" if shown else name, labels)


class Uploads:
    """The newest uploaded logs; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logs: OrderedDict[str, Log] = OrderedDict()

    def add(self, contents: str, name: str) -> Log:
        """Add a log from a data URL, as the browser sends a file.

        Raises:
            NotALog: It cannot be shown.
        """
        _, comma, encoded = contents.partition(";base64,")
        if not contents.startswith("data:") or not comma:
            raise NotALog("the browser did not send a file")
        if len(encoded) > MOST_BYTES * 4 // 3 + 4:
            raise NotALog(f"it is larger than {MOST_BYTES >> 20} MiB")
        try:
            data = b64decode(encoded, validate=True)
        except ValueError:
            raise NotALog("the browser did not send a file") from None
        log = parse(data, os.path.basename(name))
        with self._lock:
            self._logs[log.key] = log
            self._logs.move_to_end(log.key)
            while len(self._logs) > _MOST_KEPT:
                self._logs.popitem(last=False)
        return log

    def get(self, key: str) -> Log | None:
        """Return a log by its key; None when it is not kept."""
        return self._logs.get(key)

    def all(self) -> list[Log]:
        """Return the kept logs, newest first."""
        with self._lock:
            return list(reversed(self._logs.values()))
