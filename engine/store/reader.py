"""Messages of a store, read from its files or from its service."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from heliograph.engine import _store
from heliograph.engine.options import refusal
from heliograph.engine.store.protocol import PREFIX, Ask, Reading, parse_stream
from heliograph.engine.store.remote import ask, rows_of

__all__ = ["MAX", "By", "StoredMessage", "Where", "is_remote", "kept", "read", "streams", "text_of"]

By: TypeAlias = Literal["position", "sequence", "number", "time"]
Where: TypeAlias = str | os.PathLike[str]
"""Directory of a store, or ``store://HOST:PORT`` of its service (`heliograph store offer`)."""

_BY = {"position": 0, "sequence": 1, "number": 2, "time": 3}
_RECOVERED = 1
_AT_ONCE = 1024
_ID_BYTES = 8
MAX = 2**64 - 1


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a store.

    Attributes:
        stream: Identity of its stream, ``GSI:PORT``.
        position: 1, 2, 3 and so on in the order of writing, over all topics of the stream.
        topic: Name of its topic.
        sequence: Number of its packet; 0: unknown.
        number: Number of the message in its topic and stream.
        submit_ns: Wall clock time of submit, ns since 1970; 0: unknown.
        receive_ns: Wall clock time at which the store received it, ns since 1970.
        recovered: Its packet had been missing and was repaired.
        data: Payload.
    """

    stream: str
    position: int
    topic: str
    sequence: int
    number: int
    submit_ns: int
    receive_ns: int
    recovered: bool
    data: bytes


def is_remote(where: Where) -> bool:
    """Whether it is the address of a service."""
    return text_of(where).startswith(PREFIX)


def text_of(where: Where) -> str:
    """The directory or address as text."""
    return os.fspath(where)


def streams(where: Where) -> list[str]:
    """The streams of a store, as ``GSI:PORT``.

    Args:
        where: Directory of the store, or ``store://HOST:PORT``.

    Raises:
        Error: The directory cannot be read, is not a store, or has another version; or the service cannot be reached.
    """
    if is_remote(where):
        body = b"".join(ask(text_of(where), Ask.STREAMS))
        ids = [body[at : at + _ID_BYTES] for at in range(0, len(body) - _ID_BYTES + 1, _ID_BYTES)]
        return [f"{one[:6].hex()}:{int.from_bytes(one[6:])}" for one in ids]
    return list(dict.fromkeys(f"{gsi.hex()}:{port}" for gsi, port, _ in _store.ids(where)))


def read(
    where: Where,
    stream: str,
    *,
    by: By = "position",
    first: int = 0,
    last: int = MAX,
    topic: str | None = None,
) -> Iterator[StoredMessage]:
    """The messages of a stream in the order of their positions. The store may be written meanwhile.

    Args:
        where: Directory of the store, or ``store://HOST:PORT``.
        stream: Identity of the stream, ``GSI:PORT``.
        by: Which value of the messages `first` and `last` limit; ``time`` is the receive time, ns since 1970.
        first: Least value.
        last: Greatest value.
        topic: Only messages of this topic; None: all.

    Raises:
        OptionError: `stream`, `by`, `first` or `last` is not valid, or the store does not have the stream.
        Error: The directory cannot be read, is not a store, has another version, or a segment is damaged; or the
            service cannot be reached or refuses.
    """
    parse_stream(stream)
    if by not in _BY:
        raise refusal(f"by is one of {', '.join(_BY)}, not {by!r}")
    if not 0 <= first <= last <= MAX:
        raise refusal(f"the first value must be from 0 to the last, {last}, not {first}")
    found = streams(where)
    if stream not in found:
        raise refusal(f"the store {text_of(where)} has no stream {stream}; it has {', '.join(found) or 'none'}")
    yield from kept(where, stream, by=by, first=first, last=last, topic=topic)


def kept(
    where: Where, stream: str, *, by: By, first: int, last: int, topic: str | None, wait: float = 0.0
) -> Iterator[StoredMessage]:
    """As `read`, for arguments that are valid; of a stream that the store does not have, nothing.

    Args:
        wait: A service waits this long for the first message, seconds, at most 10. Files are read at once.
    """
    reading = Reading(*parse_stream(stream), _BY[by], first, last, topic, wait)
    rows = rows_of(text_of(where), reading) if is_remote(where) else _rows(Path(where), reading)
    for position, name, sequence, number, submit_ns, receive_ns, flags, data in rows:
        if topic is None or name == topic:
            recovered = bool(flags & _RECOVERED)
            yield StoredMessage(stream, position, name, sequence, number, submit_ns, receive_ns, recovered, data)


def _rows(path: Path, reading: Reading) -> Iterator[tuple[int, str, int, int, int, int, int, bytes]]:
    reader = _store.Reader(path, reading.gsi, reading.port, reading.by, reading.first, reading.last)
    while rows := reader.next(_AT_ONCE):
        yield from rows
