"""The HdrHistogram interval log, version 1.3, as the Java reference writes and reads it.

    #[Histogram log format version 1.3]
    #[StartTime: 1763726400.000 (seconds since epoch), 2026-11-21T12:00:00Z]
    "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
    Tag=alpha/PRICES.A/0a1b.30001/receiver_total_latency,0.000,10.000,0.181,HISTFAAA...

The second column is the length of the interval, not its end. Values are nanoseconds, Interval_Max milliseconds, the
histogram the compressed V2 payload in base64. A tag can hold neither commas nor spaces nor line breaks, so the labels
of a series are percent-encoded and joined with slashes, and the log says so in its head: `labels_of` gives them back.

The reader takes logs of any writer, also compressed by gzip. A line that is not what it should be is reported with its
number and the reason; all other lines are read.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import IO, cast
from urllib.parse import quote, unquote

__all__ = ["HlogInterval", "Malformed", "head", "labels_of", "line_of", "open_log", "read_hlog", "tag_of"]

TAGS_ARE_LABELS = "[Heliograph: a tag is instance/topic/stream/metric, each percent-encoded]"

_LINE_BYTES = 16 << 20
_YEAR_NS = 365 * 24 * 3_600_000_000_000
_LATEST_NS = 4_102_444_800_000_000_000  # the year 2100
_SECONDS = re.compile(r"[+-]?[0-9]{1,12}(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,2})?")
_HEAD_TIME = re.compile(r"#\[(StartTime|BaseTime):\s*([0-9.eE+-]+)")


@dataclass(frozen=True, slots=True)
class HlogInterval:
    """One line of a log."""

    line: int
    start_ns: int
    """Wall clock, ns since 1970."""
    length_ns: int
    tag: str
    """Empty when the line has none."""
    payload: bytes
    """The histogram as it was encoded; not yet checked."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """One line that could not be read."""

    line: int
    reason: str


# -- writing ----------------------------------------------------------------------------------------------------------


def head(start_ns: int) -> str:
    """First lines of a log that begins at `start_ns`."""
    moment = datetime.fromtimestamp(start_ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    seconds = _seconds(start_ns)
    return (
        "#[Histogram log format version 1.3]\n"
        f"#{TAGS_ARE_LABELS}\n"
        f"#[BaseTime: {seconds} (seconds since epoch)]\n"
        f"#[StartTime: {seconds} (seconds since epoch), {moment}]\n"
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
    )


def line_of(since_head_ns: int, length_ns: int, max_ns: int, tag: str, payload: bytes) -> str:
    """One interval, as a line with its end.

    Args:
        since_head_ns: Start, relative to the start the head was written with.
        length_ns: Length.
        max_ns: Largest value.
        tag: As `tag_of` gives it; empty for none.
        payload: Compressed V2 payload.
    """
    mark = f"Tag={tag}," if tag else ""
    text = base64.b64encode(payload).decode("ascii")
    return f"{mark}{_seconds(since_head_ns)},{_seconds(length_ns)},{max_ns / 1e6:.3f},{text}\n"


def _seconds(ns: int) -> str:
    ms = (abs(ns) + 500_000) // 1_000_000
    return f"{'-' if ns < 0 and ms else ''}{ms // 1000}.{ms % 1000:03d}"


def tag_of(*labels: str) -> str:
    """Labels as one tag that any reader takes."""
    return "/".join(quote(label, safe="", errors="replace") for label in labels)


def labels_of(tag: str) -> tuple[str, ...]:
    """The labels `tag_of` was given."""
    return tuple(unquote(part) for part in tag.split("/"))


# -- reading ----------------------------------------------------------------------------------------------------------


class _Clock:
    """Turns the time stamps of a log into wall clock, by the rules of the Java reader.

    Stamps are relative to the base time. A log without one has stamps that are either absolute or relative to its
    start; a first stamp more than a year before the start tells that they are relative.
    """

    def __init__(self) -> None:
        self._start_ns: int | None = None
        self._base_ns: int | None = None

    def head(self, line: str) -> None:
        match = _HEAD_TIME.match(line)
        if match is None:
            return
        at_ns = _ns(match[2])
        if match[1] == "StartTime":
            self._start_ns = at_ns
        else:
            self._base_ns = at_ns

    def wall(self, stamp_ns: int) -> int:
        if self._start_ns is None:
            self._start_ns = stamp_ns
        if self._base_ns is None:
            self._base_ns = self._start_ns if stamp_ns < self._start_ns - _YEAR_NS else 0
        return stamp_ns + self._base_ns


def read_hlog(path: Path) -> Iterator[HlogInterval | Malformed]:
    """Read a log, line by line.

    Raises:
        OSError: The file cannot be read.
    """
    clock = _Clock()
    number = 0
    with open_log(path) as file:
        try:
            for number, raw in _lines(file):
                if (found := _line(number, raw, clock)) is not None:
                    yield found
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            yield Malformed(number + 1, f"the file is damaged from here on: {error}")


def _line(number: int, raw: bytes | None, clock: _Clock) -> HlogInterval | Malformed | None:
    """Return a line's interval; None for a head or an empty line."""
    if raw is None:
        return Malformed(number, f"the line is longer than {_LINE_BYTES >> 20} MiB")
    try:
        line = raw.decode("utf-8").strip()
        if line.startswith("#"):
            clock.head(line)
        elif line and not line.startswith('"StartTimestamp"'):
            return _interval(number, line, clock)
    except UnicodeDecodeError:
        return Malformed(number, "the line is not text")
    except ValueError as error:
        return Malformed(number, str(error))
    return None


def tags_are_labels(path: Path) -> bool:
    """Whether the tags of a log are the labels of our series (`labels_of`)."""
    with open_log(path) as file, suppress(EOFError, zlib.error, gzip.BadGzipFile):
        return TAGS_ARE_LABELS.encode() in file.read(4096)
    return False


def open_log(path: Path) -> IO[bytes]:
    """Open a log for reading; one compressed by gzip is recognized by its first bytes.

    Raises:
        OSError: The file cannot be read. While a damaged gzip file is read, also `EOFError` and `zlib.error`.
    """
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path, "rb")) if is_gzip else path.open("rb")


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Lines by number; None in place of one too long to be held."""
    number = 0
    while line := file.readline(_LINE_BYTES):
        number += 1
        if len(line) < _LINE_BYTES or line.endswith(b"\n"):
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(_LINE_BYTES)
        yield number, None


def _interval(number: int, line: str, clock: _Clock) -> HlogInterval:
    tag = ""
    if line.startswith("Tag="):
        tag, comma, line = line.removeprefix("Tag=").partition(",")
        if not comma:
            raise ValueError("there is nothing after the tag")
    fields = line.split(",")
    if len(fields) != 4:
        raise ValueError(f"it has {len(fields)} fields, not 4: start, length, max, histogram")
    stamp_ns, length_ns = _ns(fields[0]), _ns(fields[1])
    if length_ns < 0:
        raise ValueError(f"its length is negative: {fields[1].strip()}")
    start_ns = clock.wall(stamp_ns)
    if not 0 <= start_ns <= _LATEST_NS or length_ns > _YEAR_NS:
        raise ValueError(f"it is out of time: it starts at {fields[0].strip()} and lasts {fields[1].strip()} seconds")
    try:
        payload = base64.b64decode(fields[3].strip(), validate=True)
    except binascii.Error as error:
        raise ValueError(f"its histogram is not base64: {error}") from None
    return HlogInterval(number, start_ns, length_ns, tag, payload)


def _ns(seconds: str) -> int:
    text = seconds.strip()
    if _SECONDS.fullmatch(text) is None:
        raise ValueError(f"{text[:40]!r} is not a number of seconds")
    value = Decimal(text) * 1_000_000_000
    if abs(value) > _LATEST_NS:
        raise ValueError(f"{text[:40]!r} seconds are out of time")
    return int(value.to_integral_value())
