from collections.abc import Sequence
from os import PathLike
from typing import NamedTuple, Self, final

Segment = tuple[str, int, str, int, int, int, int, int, int, str, str, int]
"""Stream, number, header, first position, messages, bytes, whole bytes, first and last receive time, tail, index,
batches."""
Message = tuple[str, int, int, int, int, int, bytes]
"""Topic, sequence, number, submit and receive time, flags, payload."""

Id = tuple[bytes, int, int]
"""GSI, port, number."""

def ids(path: str | PathLike[str], /) -> list[Id]: ...
def segment(path: str | PathLike[str], id: Id, thorough: bool, /) -> Segment | None: ...
def append(
    path: str | PathLike[str],
    gsi: bytes,
    port: int,
    source: str,
    messages: Sequence[Message],
    batch_bytes: int,
    segment_bytes: int,
    /,
) -> None: ...
def last_number(path: str | PathLike[str], gsi: bytes, port: int, topic: str, /) -> int | None: ...

Counts = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, str]
"""Streams; messages received, kept, repeated, refused, lost and not durable yet; payload bytes kept, bytes written;
segments removed; open holes; messages fetched and given up; failures of peers; topics kept, and announcements of topics
refused; why nothing can be written."""

SubscriptionRow = tuple[str, str, bytes, int, int, int, int]
"""Name, topic, GSI, port, next number, number after the newest message, when it was saved (ns since 1970)."""

Hole = tuple[bytes, int, str, int, int]
"""GSI, port, topic, first and last number."""

class StoredMessage(NamedTuple):
    """A message of a store; made here only."""

    stream: str
    position: int
    topic: str
    sequence: int
    number: int
    submit_ns: int
    receive_ns: int
    recovered: bool
    data: bytes

@final
class Reader:
    def __new__(
        cls, path: str | PathLike[str], gsi: bytes, port: int, by: int, first: int, last: int, topic: str | None = None
    ) -> Self: ...
    def next(self, limit: int, one_run: bool = False, /) -> list[StoredMessage]: ...
    def batch(self) -> bytes | None: ...

@final
class Decoder:
    def __new__(cls, gsi: bytes, port: int, by: int, first: int, last: int, topic: str | None = None) -> Self: ...
    def begin(self, batch: bytes, /) -> None: ...
    def next(self, limit: int, one_run: bool = False, /) -> list[StoredMessage]: ...

@final
class Keeper:
    def __new__(
        cls,
        path: str | PathLike[str],
        options: str | None,
        fsync: int,
        batch_bytes: int,
        batch_ns: int,
        segment_bytes: int,
        retain_bytes: int,
        retain_ns: int,
        cut_damage: bool,
    ) -> Self: ...
    def add(self, endpoint: str, topic: str, options: str | None, /) -> None: ...
    def add_pattern(self, endpoint: str, pattern: str, options: str | None, limit: int, /) -> None: ...
    def expect(self, topic: str, /) -> None: ...
    def adopt(self) -> int: ...
    def found_topics(self) -> list[tuple[str, str]]: ...
    def step(self, timeout_ns: int, /) -> int: ...
    def show_service(
        self, readers: int, requests: int, refused: int, aborted: int, bytes_sent: int, restarts: int, /
    ) -> None: ...
    def use_peers(self) -> None: ...
    def holes(self) -> list[Hole]: ...
    def fill(self, gsi: bytes, port: int, topic: str, batch: bytes, /) -> tuple[int, int, bool]: ...
    def give_up(self, gsi: bytes, port: int, topic: str, until: int, /) -> bool: ...
    def show_failures(self, failures: int, /) -> None: ...
    def end(self, gsi: bytes, port: int, topic: str, /) -> int: ...
    def show_subscriptions(self, rows: Sequence[SubscriptionRow], /) -> None: ...
    def look(self) -> Counts: ...
    def close(self) -> Counts | None: ...
