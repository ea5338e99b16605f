"""The outputs of the module `log`: a file, a stream socket or datagrams.

No output waits for a full disk or a slow reader. An output drops whole lines, counts them in `lost`, and raises a
`UserError` with the reason.
"""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Protocol
from urllib.parse import urlsplit

from heliograph.monitor.errors import UserError

__all__ = ["FileOutput", "Output", "SocketOutput", "StreamOutput"]

_RETRY_SECONDS = 1.0
_CONNECT_SECONDS = 1.0
_CLOSE_SECONDS = 0.1
_WAITING_BYTES = 4 << 20


class Output(Protocol):
    """Takes whole lines with their line ends."""

    lost: int
    """Lines dropped."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Write lines, or drop them and raise `UserError`."""

    def close(self) -> None:
        """Write the waiting lines as far as possible without a wait, and close."""


class StreamOutput:
    """Standard output, or a stream of the caller, which stays open."""

    def __init__(self, stream: IO[str]) -> None:
        self.lost = 0
        self._stream = stream

    def write(self, lines: Sequence[bytes]) -> None:
        """Write and flush."""
        self._stream.write(b"".join(lines).decode())
        self._stream.flush()

    def close(self) -> None:
        """Flush."""
        self._stream.flush()


class FileOutput:
    """Appends to a file. A file that was moved, for example by logrotate, is reopened within a second."""

    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.lost = 0
        self._path = path
        self._clock = clock
        self._torn = False  # the file ends within a line
        self._checked = clock()
        try:
            self._file = self._open()
        except OSError as error:
            raise UserError(f"the log {path} cannot be opened: {error.strerror}") from None

    def write(self, lines: Sequence[bytes]) -> None:
        """Append lines."""
        data, done = b"".join(lines), 0
        try:
            self._follow()
            if self._torn and os.write(self._file, b"\n"):
                self._torn = False
            while done < len(data):
                done += os.write(self._file, data[done:])
        except OSError as error:
            if done:
                self._torn = data[done - 1 : done] != b"\n"
            self.lost += data.count(b"\n", done)
            raise UserError(f"the log {self._path} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY, 0o644)

    def _follow(self) -> None:
        """Reopen the path when it no longer names the open file."""
        now = self._clock()
        if now - self._checked < _RETRY_SECONDS:
            return
        self._checked = now
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._file), os.stat(self._path)):
                return
        before, self._file = self._file, self._open()
        os.close(before)
        self._torn = False


class SocketOutput:
    """Sends lines to ``tcp://HOST:PORT``, ``udp://HOST:PORT`` or ``unix:///PATH``; reconnects after a disconnect."""

    def __init__(self, to: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.lost = 0
        self._to = to
        self._clock = clock
        self._try_at = clock()
        self._socket: socket.socket | None = None
        self._lines: deque[bytes] = deque()
        self._waiting = 0  # bytes of the lines
        self._sent = 0  # of the first line
        try:
            self._url = urlsplit(to)
            is_unix = self._url.scheme == "unix" and not self._url.netloc and self._url.path.startswith("/")
            is_net = self._url.scheme in ("tcp", "udp") and bool(self._url.hostname and self._url.port)
        except ValueError:
            is_unix = is_net = False
        if not is_unix and not is_net:
            raise UserError(f"to={to}: must be tcp://HOST:PORT, udp://HOST:PORT or unix:///PATH")

    def write(self, lines: Sequence[bytes]) -> None:
        """Queue lines and send as many as the receiving program accepts."""
        try:
            self._send()
        finally:
            lost = self.lost
            for line in lines:
                if self._waiting + len(line) > _WAITING_BYTES:
                    self.lost += 1
                else:
                    self._waiting += len(line)
                    self._lines.append(line)
        self._send()
        if self.lost > lost:
            raise UserError(f"{self._to} does not accept lines fast enough")

    def close(self) -> None:
        """Send the waiting lines for at most a tenth of a second."""
        with suppress(UserError):
            if self._lines and self._socket is not None:
                self._send(_CLOSE_SECONDS)
        self.lost += len(self._lines)
        self._hang_up()

    def _send(self, within: float = 0.0) -> None:
        """Send lines until none is left or the receiving program accepts no more."""
        while self._lines and self._connected():
            assert self._socket is not None
            self._socket.settimeout(within)
            line = self._lines[0]
            try:
                self._sent += self._socket.send(line[self._sent :])
            except (BlockingIOError, TimeoutError):
                return
            except OSError as error:
                self._hang_up()
                if self._url.scheme == "udp":
                    self._drop_first()
                    self.lost += 1
                raise UserError(f"{self._to} cannot be written to: {error.strerror}") from None
            if self._sent == len(line):
                self._drop_first()

    def _drop_first(self) -> None:
        self._waiting -= len(self._lines.popleft())
        self._sent = 0

    def _connected(self) -> bool:
        if self._socket is None and self._clock() >= self._try_at:
            self._try_at = self._clock() + _RETRY_SECONDS
            try:
                self._socket = self._connect()
            except OSError as error:
                raise UserError(f"{self._to} cannot be reached: {error.strerror}") from None
        return self._socket is not None

    def _connect(self) -> socket.socket:
        url = self._url
        if url.scheme == "tcp":
            return socket.create_connection((url.hostname, url.port), _CONNECT_SECONDS)
        if url.scheme == "udp":
            family, kind, _, _, address = socket.getaddrinfo(url.hostname, url.port, type=socket.SOCK_DGRAM)[0]
        else:
            family, kind, address = socket.AF_UNIX, socket.SOCK_STREAM, url.path  # type: ignore[assignment]
        made = socket.socket(family, kind)
        try:
            made.settimeout(_CONNECT_SECONDS)
            made.connect(address)
        except OSError:
            made.close()
            raise
        return made

    def _hang_up(self) -> None:
        """Close the socket; a partly sent line is sent again from its start."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._sent = 0
