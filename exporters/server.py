"""A small WSGI server with limits on connections, threads, time and size.

Each connection has a thread and carries one request. At most `MOST` connections are open: a further one closes the
oldest that has not sent its request yet, or is rejected. A request and its answer have time limits, however slowly the
client sends or reads; the accepting thread closes connections above the limit. At most `RENDERING` answers are rendered
at once, because each may need megabytes.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["MOST", "BoundedServer", "BoundedServerV6", "Handler", "bounded"]

MOST = 32
RENDERING = 4
REQUEST_SECONDS = 5.0
ANSWER_SECONDS = 30.0
_HEAD_BYTES = 16 << 10
_BUSY = b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"


class _Connection:
    __slots__ = ("asked", "closing", "opened", "socket")

    def __init__(self, opened: socket.socket) -> None:
        self.socket = opened
        self.opened = time.monotonic()
        self.asked = False
        """Whether the request is complete."""
        self.closing = False
        """Whether the connection was shut down and its thread has not noticed yet."""

    @property
    def deadline(self) -> float:
        return self.opened + (ANSWER_SECONDS if self.asked else REQUEST_SECONDS)

    def shut(self) -> None:
        """Wake the thread of the connection from any wait."""
        self.closing = True
        with suppress(OSError):  # already closed
            self.socket.shutdown(socket.SHUT_RDWR)


class BoundedServer(WSGIServer):
    """One thread per connection, at most `MOST` connections."""

    request_queue_size = 64
    refused: Counter[str]
    """Connections and requests rejected, by cause."""

    def server_activate(self) -> None:
        """Start to listen."""
        self.refused = Counter()
        self._open: dict[int, _Connection] = {}
        self._guard = threading.Lock()
        super().server_activate()

    def refusals(self) -> Mapping[str, int]:
        """Return the connections and requests rejected so far, by cause."""
        return dict(self.refused)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a connection a thread, or reject it."""
        with self._guard:
            if len(self._open) >= MOST:
                waiting = [item for item in self._open.values() if not item.asked and not item.closing]
                self.refused["busy"] += 1
                if waiting:
                    min(waiting, key=lambda item: item.opened).shut()
            full = len(self._open) >= 2 * MOST or (len(self._open) >= MOST and not waiting)
            if not full:
                self._open[id(request)] = _Connection(request)
        if full:
            request.settimeout(0.1)
            with suppress(OSError):
                request.sendall(_BUSY)
            self.shutdown_request(request)
            return
        threading.Thread(target=self._serve, args=(request, client_address), name="http", daemon=True).start()

    def _serve(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError:
            pass  # the client closed the connection, or its time was over
        except Exception:
            self.handle_error(request, client_address)
        finally:
            with self._guard:
                self._open.pop(id(request), None)
            self.shutdown_request(request)

    def refuse_host(self) -> None:
        """Count a request for a foreign host name."""
        self.refused["host"] += 1

    def asked(self, request: Any) -> None:
        """Note that the request of a connection is complete."""
        with self._guard:
            if (found := self._open.get(id(request))) is not None:
                found.asked = True

    def service_actions(self) -> None:
        """Close connections above their time limit; called twice a second."""
        now = time.monotonic()
        with self._guard:
            late = [item for item in self._open.values() if now > item.deadline and not item.closing]
            for item in late:
                self.refused["slow"] += 1
                item.shut()


class BoundedServerV6(BoundedServer):
    """The same server for IPv6."""

    address_family = socket.AF_INET6


class Handler(WSGIRequestHandler):
    """Reads one request of limited size."""

    timeout = REQUEST_SECONDS

    def setup(self) -> None:
        """Limit the size of the request head."""
        super().setup()
        self.rfile = _Limited(self.rfile, _HEAD_BYTES)  # type: ignore[assignment]

    def parse_request(self) -> bool:
        """Read the head and note when it is complete."""
        sound = super().parse_request()
        if sound and isinstance(self.server, BoundedServer):
            self.server.asked(self.request)
        return sound

    def address_string(self) -> str:
        """Return the address without a name lookup."""
        return str(self.client_address[0])

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: scrapes come every few seconds."""


class _Limited:
    """Lines of a file up to a total number of bytes; then end of file."""

    def __init__(self, file: Any, most: int) -> None:
        self._file = file
        self._left = most

    def readline(self, size: int = -1) -> bytes:
        line: bytes = self._file.readline(min(size, self._left) if size >= 0 else self._left)
        self._left -= len(line)
        return line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def bounded(application: WSGIApplication, refused: Counter[str]) -> WSGIApplication:
    """Limit an application to a few answers at a time; further requests get status 503."""
    gate = threading.BoundedSemaphore(RENDERING)

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not gate.acquire(timeout=REQUEST_SECONDS):
            refused["busy"] += 1
            start_response("503 Service Unavailable", [("Retry-After", "1"), ("Content-Length", "0")])
            return []
        try:
            return application(environ, start_response)
        finally:
            gate.release()

    return answer
