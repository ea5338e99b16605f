"""Service of a store: sends its messages to subscribers on other hosts, and keeps their positions.

It reads the files of the store and runs in a process of its own, so it takes nothing from the store that writes them
but the disk and the processor. Batches are sent as they are in the files; the subscriber decodes and checks them.
"""

from __future__ import annotations

import json
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from heliograph.engine import _store
from heliograph.engine.errors import Error
from heliograph.engine.store.protocol import (
    Answer,
    Ask,
    BadBytesError,
    Reading,
    answer,
    identity_of,
    remote,
    take_request,
)
from heliograph.engine.store.subscriptions import answer_to

__all__ = ["ServiceCounts", "StoreService", "address_of", "listen"]

_BACKLOG = 4096
"""Subscribers that wait for their turn."""
_REQUEST_SECONDS = 5.0
_PIECE_BYTES = 1 << 18
_SEND_SECONDS = 30.0
"""Longest time for a piece; a subscriber that takes less is dropped."""
_STOP_SECONDS = 0.2
_SHOW_SECONDS = 1.0
_LOOK_SECONDS = 0.02
"""Time between two looks for messages that a subscriber waits for."""


@dataclass(frozen=True)
class ServiceCounts:
    """Counts of a service since it started.

    Attributes:
        requests: Requests answered in full.
        readers: Subscribers that are being served now.
        bytes_sent: Bytes of batches sent.
        refused: Requests that were malformed or asked for what the store does not have or cannot read.
        aborted: Connections that ended or stood still before their last answer.
    """

    requests: int = 0
    readers: int = 0
    bytes_sent: int = 0
    refused: int = 0
    aborted: int = 0


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0: any free one.

    Raises:
        OSError: The address cannot be used.
    """
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


def address_of(listener: socket.socket) -> str:
    """Address of a socket from `listen`: ``store://HOST:PORT``."""
    host, port = listener.getsockname()[:2]
    return remote(host, port)


class StoreService:
    """Serves a store's directory on a listening socket until `close`.

    Up to `readers` subscribers are served at a time; further ones wait for their turn. All share `rate`.
    """

    def __init__(self, path: Path, listener: socket.socket, *, readers: int = 64, rate: float = 0.0) -> None:
        """Prepare; `run` serves.

        Args:
            path: Directory of the store; it may be written meanwhile.
            listener: From `listen`; `close` closes it.
            readers: Most subscribers at a time.
            rate: Limit on the bytes sent per second, over all subscribers; 0: no limit.

        Raises:
            Error: The directory cannot be read, is not a store, or has another version.
        """
        _store.ids(path)
        self._path = path
        self._listener = listener
        self._readers = readers
        self._rate = rate
        self._free_at = 0.0
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(ServiceCounts.__dataclass_fields__, 0)
        self._stopping = threading.Event()

    def counts(self) -> ServiceCounts:
        """Counts since it started."""
        with self._lock:
            return ServiceCounts(**self._counts)

    def run(self, show: Callable[[ServiceCounts], None] = lambda counts: None) -> None:
        """Serve until `close` is called by another thread or a signal handler.

        Args:
            show: Called with the counts about once a second.
        """
        turn = threading.Semaphore(self._readers)
        shown = time.monotonic()
        self._listener.settimeout(_STOP_SECONDS)
        with ThreadPoolExecutor(self._readers, "store-service") as workers:
            while not self._stopping.is_set():
                if time.monotonic() - shown >= _SHOW_SECONDS:
                    shown = time.monotonic()
                    show(self.counts())
                if not turn.acquire(timeout=_STOP_SECONDS):
                    continue
                try:
                    connection, _ = self._listener.accept()
                except OSError:  # nobody came, or too many files are open for a moment
                    turn.release()
                    continue
                workers.submit(self._serve, connection, turn)
        self._listener.close()

    def close(self) -> None:
        """End `run` within a second; subscribers that are being served see the connection end. Idempotent."""
        self._stopping.set()

    def _count(self, **more: int) -> None:
        with self._lock:
            for name, number in more.items():
                self._counts[name] += number

    def _serve(self, connection: socket.socket, turn: threading.Semaphore) -> None:
        self._count(readers=1)
        try:
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._answer(connection)
        except OSError:  # the subscriber has what it wants, or is gone
            self._count(aborted=1)
        except Exception:  # a defect costs one connection, and is seen
            self._count(aborted=1)
            traceback.print_exc()
        finally:
            self._count(readers=-1)
            turn.release()

    def _answer(self, connection: socket.socket) -> None:
        try:
            kind, body = take_request(connection, _REQUEST_SECONDS)
            for data in self._answers(kind, body):
                self._send(connection, answer(Answer.DATA, data))
            last, counted = answer(Answer.END), {"requests": 1}
        except (BadBytesError, Error, ValueError, RecursionError) as error:
            last, counted = answer(Answer.REFUSED, str(error).encode()), {"refused": 1}
        self._send(connection, last)
        self._count(**counted)

    def _answers(self, kind: Ask, body: bytes) -> Iterator[bytes]:
        if kind is Ask.READ:
            yield from self._batches(Reading.decode(body))
        elif kind is Ask.STREAMS:
            found = dict.fromkeys(gsi + port.to_bytes(2) for gsi, port, _ in _store.ids(self._path))
            yield b"".join(found)
        elif kind is Ask.IDENTITY:
            yield identity_of(self._path)
        else:
            yield json.dumps(self._subscription(kind, json.loads(body))).encode()

    def _subscription(self, kind: Ask, body: object) -> object:
        try:
            return answer_to(self._path, kind, body)
        except OSError as error:
            raise Error(f"the subscriptions cannot be used: {error}") from error

    def _batches(self, reading: Reading) -> Iterator[bytes]:
        """The batches with such messages; when there is none, those that come within the time to wait."""
        deadline = time.monotonic() + reading.wait
        while True:
            found = 0
            reader = _store.Reader(
                self._path, reading.gsi, reading.port, reading.by, reading.first, reading.last, reading.topic
            )
            while (batch := reader.batch()) is not None:
                found += 1
                self._pace(len(batch))
                yield batch
                self._count(bytes_sent=len(batch))
            if found or time.monotonic() >= deadline or self._stopping.is_set():
                return
            time.sleep(_LOOK_SECONDS)

    def _send(self, connection: socket.socket, data: bytes) -> None:
        if self._stopping.is_set():
            raise ConnectionAbortedError("the service stops")
        connection.settimeout(_SEND_SECONDS)
        for at in range(0, len(data), _PIECE_BYTES):
            connection.sendall(memoryview(data)[at : at + _PIECE_BYTES])

    def _pace(self, size: int) -> None:
        """Wait for the turn of these bytes within the rate, which all subscribers share."""
        if self._rate <= 0:
            return
        with self._lock:
            begin = max(self._free_at, time.monotonic())
            self._free_at = begin + size / self._rate
        self._stopping.wait(begin - time.monotonic())
