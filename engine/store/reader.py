"""Messages of a store, read from its files or from its service."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal, TypeAlias

from heliograph.engine import _store
from heliograph.engine._store import StoredMessage
from heliograph.engine.options import refusal
from heliograph.engine.store.protocol import PREFIX, Ask, Reading, parse_stream
from heliograph.engine.store.remote import ask, runs_of

__all__ = ["MAX", "By", "StoredMessage", "Where", "is_remote", "read", "runs", "streams", "text_of"]

By: TypeAlias = Literal["position", "sequence", "number", "time"]
Where: TypeAlias = str | os.PathLike[str]
"""Directory of a store, or ``store://HOST:PORT`` of its service (`heliograph store offer`)."""

_BY = {"position": 0, "sequence": 1, "number": 2, "time": 3}
_AT_ONCE = 1024
_ID_BYTES = 8
MAX = 2**64 - 1


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
    for run in runs(where, stream, by=by, first=first, last=last, topic=topic):
        yield from run


def runs(
    where: Where, stream: str, *, by: By, first: int, last: int, topic: str | None, wait: float = 0.0
) -> Iterator[list[StoredMessage]]:
    """As `read`, in lists of messages whose numbers follow each other, for arguments that are valid.

    Of a stream that the store does not have it gives nothing.

    Args:
        wait: A service waits this long for the first message, seconds, at most 10. Files are read at once.
    """
    reading = Reading(*parse_stream(stream), _BY[by], first, last, topic, wait)
    if is_remote(where):
        yield from runs_of(text_of(where), reading)
    else:
        reader = _store.Reader(where, reading.gsi, reading.port, reading.by, first, last, topic)
        while run := reader.next(_AT_ONCE, True):
            yield run
