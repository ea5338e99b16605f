"""Messages of a store, read from its files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from heliograph.engine import _store
from heliograph.engine.options import refusal

__all__ = ["By", "StoredMessage", "read", "streams"]

By: TypeAlias = Literal["position", "sequence", "number", "time"]

_BY = {"position": 0, "sequence": 1, "number": 2, "time": 3}
_RECOVERED = 1
_AT_ONCE = 1024
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


def streams(path: str | os.PathLike[str]) -> list[str]:
    """The streams of a store, as ``GSI:PORT``.

    Raises:
        Error: The directory cannot be read, is not a store, or has another version.
    """
    return list(dict.fromkeys(f"{gsi.hex()}:{port}" for gsi, port, _ in _store.ids(path)))


def read(
    path: str | os.PathLike[str], stream: str, *, by: By = "position", first: int = 0, last: int = MAX
) -> Iterator[StoredMessage]:
    """The messages of a stream in the order of their positions. The store may be written meanwhile.

    Args:
        path: Directory of the store.
        stream: Identity of the stream, ``GSI:PORT``.
        by: Which value of the messages `first` and `last` limit; ``time`` is the receive time, ns since 1970.
        first: Least value.
        last: Greatest value.

    Raises:
        OptionError: `stream`, `by`, `first` or `last` is not valid, or the store does not have the stream.
        Error: The directory cannot be read, is not a store, has another version, or a segment is damaged.
    """
    match = re.fullmatch(r"([0-9a-f]{12}):(\d{1,5})", stream)
    if not match or int(match[2]) > 65535:
        raise refusal(f"a stream is 12 hexadecimal digits, a colon and a port, not {stream!r}")
    if by not in _BY:
        raise refusal(f"by is one of {', '.join(_BY)}, not {by!r}")
    if not 0 <= first <= last <= MAX:
        raise refusal(f"the first value must be from 0 to the last, {last}, not {first}")
    if stream not in streams(path):
        raise refusal(f"the store {Path(path)} has no stream {stream}; it has {', '.join(streams(path)) or 'none'}")
    reader = _store.Reader(path, bytes.fromhex(match[1]), int(match[2]), _BY[by], first, last)
    while rows := reader.next(_AT_ONCE):
        for position, topic, sequence, number, submit_ns, receive_ns, flags, data in rows:
            recovered = bool(flags & _RECOVERED)
            yield StoredMessage(stream, position, topic, sequence, number, submit_ns, receive_ns, recovered, data)
