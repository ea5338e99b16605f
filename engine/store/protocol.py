"""Bytes between a store's service and those who read from it (docs/store.md, section 9).

A connection carries one request and its answers. All integers are big-endian. Every length is checked before use.
"""

from __future__ import annotations

import re
import socket
import struct
import time
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from heliograph.engine.options import refusal

__all__ = [
    "BATCH_MAX",
    "NUMBER_AHEAD",
    "PREFIX",
    "Answer",
    "Ask",
    "BadBytesError",
    "Reading",
    "answer",
    "host_and_port",
    "identity_of",
    "parse_stream",
    "remote",
    "request",
    "take_answer",
    "take_request",
]

PREFIX = "store://"
BATCH_MAX = (1 << 28) + 80
"""Longest answer: a batch with its head."""

_VERSION = 1
_REQUEST_MAX = 1 << 20
_HEAD = struct.Struct(">4sBBHI")  # magic, version, kind, zero, bytes of the body
_READ = struct.Struct(">6sHBBHIQQ")  # GSI, port, by, zero, bytes of the topic, wait in ms, first, last
_TOPIC_MAX = 255
_WAIT_MAX_MS = 10_000
NUMBER_AHEAD = 4
"""Value of `Reading.by`: by number, and then also the messages that wait for earlier ones."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Ask(IntEnum):
    """Kind of a request."""

    STREAMS = 1
    READ = 2
    SUBSCRIPTIONS = 3
    SUBSCRIBE = 4
    SAVE = 5
    FORGET = 6
    IDENTITY = 7


class Answer(IntEnum):
    """Kind of an answer. END and REFUSED are the last of their connection."""

    END = 0
    DATA = 1
    REFUSED = 2


class BadBytesError(Exception):
    """Bytes that are not a request or not an answer."""


@dataclass(frozen=True)
class Reading:
    """The body of `Ask.READ`.

    Attributes:
        gsi: 6 bytes.
        port: Port of the stream.
        by: Meaning of `first` and `last`: position, sequence, number or receive time, 0 to 3; or `NUMBER_AHEAD`.
        first: Least value.
        last: Greatest value.
        topic: Only batches with messages of this topic; None: all.
        wait: Longest time to wait for the first message, seconds, at most 10.
    """

    gsi: bytes
    port: int
    by: int
    first: int
    last: int
    topic: str | None = None
    wait: float = 0.0

    def encode(self) -> bytes:
        """As bytes."""
        topic = (self.topic or "").encode()
        wait = min(int(self.wait * 1000), _WAIT_MAX_MS)
        return _READ.pack(self.gsi, self.port, self.by, 0, len(topic), wait, self.first, self.last) + topic

    @classmethod
    def decode(cls, body: bytes) -> Self:
        """From bytes.

        Raises:
            BadBytesError: They are not such a body.
        """
        if len(body) < _READ.size:
            raise BadBytesError(f"a request to read has {len(body)} bytes, not {_READ.size} or more")
        gsi, port, by, zero, topic_bytes, wait, first, last = _READ.unpack_from(body)
        name = body[_READ.size :]
        if zero or by > NUMBER_AHEAD or first > last or wait > _WAIT_MAX_MS:
            raise BadBytesError("a request to read has a value out of range")
        if len(name) != topic_bytes or topic_bytes > _TOPIC_MAX:
            raise BadBytesError(f"the topic has {len(name)} bytes, not {topic_bytes}")
        try:
            topic = name.decode() or None
        except UnicodeDecodeError as error:
            raise BadBytesError("the topic is not UTF-8") from error
        return cls(gsi, port, by, first, last, topic, wait / 1000)


def host_and_port(address: str) -> tuple[str, int]:
    """Host and port of ``store://HOST:PORT`` or ``HOST:PORT``.

    Raises:
        OptionError: It is neither.
    """
    try:
        parts = urlsplit(address if "://" in address else PREFIX + address)
        if parts.scheme == "store" and parts.hostname and parts.port and not parts.path.strip("/") and not parts.query:
            return parts.hostname, parts.port
    except ValueError:
        pass
    raise refusal(f"the address of a store is store://HOST:PORT, not {address!r}")


def remote(host: str, port: int) -> str:
    """``store://HOST:PORT`` of an address or a name and a port."""
    return f"{PREFIX}[{host}]:{port}" if ":" in host else f"{PREFIX}{host}:{port}"


def parse_stream(stream: str) -> tuple[bytes, int]:
    """GSI and port of a stream.

    Raises:
        OptionError: It is not ``GSI:PORT``.
    """
    match = re.fullmatch(r"([0-9a-f]{12}):(\d{1,5})", stream)
    if not match or int(match[2]) > 65535:
        raise refusal(f"a stream is 12 hexadecimal digits, a colon and a port, not {stream!r}")
    return bytes.fromhex(match[1]), int(match[2])


def identity_of(path: Path) -> bytes:
    """Text that differs between directories, also those of different hosts; empty when there is no such directory."""
    try:
        about = path.stat()
        boot = _BOOT.read_text() if _BOOT.exists() else socket.gethostname()
    except OSError:
        return b""
    return sha256(f"{boot}:{about.st_dev}:{about.st_ino}".encode()).hexdigest()[:32].encode()


def request(kind: Ask, body: bytes = b"") -> bytes:
    """A request as bytes."""
    return _HEAD.pack(b"HSRQ", _VERSION, kind, 0, len(body)) + body


def answer(kind: Answer, body: bytes = b"") -> bytes:
    """An answer as bytes."""
    return _HEAD.pack(b"HSAN", _VERSION, kind, 0, len(body)) + body


def take_request(connection: socket.socket, seconds: float) -> tuple[Ask, bytes]:
    """Receive a request.

    Args:
        connection: A connected socket.
        seconds: The whole request must come within this time.

    Raises:
        BadBytesError: It is not a request of this version.
        TimeoutError: It did not come in time.
        ConnectionError: The connection ended before.
        OSError: Another failure of the socket.
    """
    deadline = time.monotonic() + seconds
    kind, size = _head(connection, b"HSRQ", _REQUEST_MAX, deadline)
    if kind not in set(Ask):
        raise BadBytesError(f"a request of unknown kind {kind}")
    return Ask(kind), _exactly(connection, size, deadline)


def take_answer(connection: socket.socket, seconds: float) -> tuple[Answer, bytes]:
    """Receive an answer; exceptions as in `take_request`."""
    deadline = time.monotonic() + seconds
    kind, size = _head(connection, b"HSAN", BATCH_MAX, deadline)
    if kind not in set(Answer):
        raise BadBytesError(f"an answer of unknown kind {kind}")
    return Answer(kind), _exactly(connection, size, deadline)


def _head(connection: socket.socket, magic: bytes, longest: int, deadline: float) -> tuple[int, int]:
    found, version, kind, zero, size = _HEAD.unpack(_exactly(connection, _HEAD.size, deadline))
    if found != magic:
        raise BadBytesError("not the protocol of a store")
    if version != _VERSION:
        raise BadBytesError(f"version {version} of the protocol, not {_VERSION}")
    if zero or size > longest:
        raise BadBytesError(f"a body of {size} bytes; at most {longest} are allowed")
    return kind, size


def _exactly(connection: socket.socket, size: int, deadline: float) -> bytes:
    parts = []
    left = size
    while left > 0:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        part = connection.recv(min(left, 1 << 20))
        if not part:
            raise ConnectionResetError("the connection ended early")
        if time.monotonic() > deadline:
            raise TimeoutError("timed out")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
