"""A small HTTP server with limits on connections, threads, time and size, for applications that answer GET.

One thread runs an event loop for all connections, so that a client that does not read or send delays no other client.
`WORKERS` threads run the application, and one thread compares passwords. A connection carries one request. It has a
deadline for the request and one for the answer, however slowly the client sends or reads. At most `MOST` connections
are open: a further one closes the connection that has waited longest for its client.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote

from heliograph.monitor.modules.lane import to_stderr

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

    from heliograph.exporters.web_config import WebConfig

__all__ = ["MOST", "Server"]

MOST = 128
WORKERS = 4
REQUEST_SECONDS = 5.0
ANSWER_SECONDS = 30.0
_HEAD_BYTES = 16 << 10
_CHUNK_BYTES = 64 << 10
_SEND_BYTES = 128 << 10
"""Memory of the kernel for what a client does not read; without it up to 4 MiB for each."""
_BACKLOG = 128
_CHECKS_OF_ADDRESS = 4
"""Passwords of one address that may wait for the checker; each takes it tens of milliseconds."""
_NO_DESCRIPTOR_SECONDS = 0.1
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class _Malformed(Exception):
    """A request that is no HTTP, or too large."""

    def __init__(self, status: HTTPStatus) -> None:
        self.status = status


class _Connection:
    """A connection and its task."""

    __slots__ = ("closing", "is_busy", "moved", "socket", "task", "transport")

    def __init__(self, accepted: socket.socket, now: float) -> None:
        self.socket = accepted
        self.task: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None
        self.moved = now
        """Time at which the client last received a part of its answer; before that, the time it connected."""
        self.is_busy = False
        """Whether it waits for this process, not for its client."""
        self.closing = False

    def close(self) -> None:
        """End the connection at once."""
        self.closing = True
        if self.task is not None:
            self.task.cancel()


class Server:
    """Serves a WSGI application, which gets the request line, the headers and the address of the client only."""

    def __init__(self, host: str, port: int, application: WSGIApplication, web: WebConfig | None = None) -> None:
        """Listen; `start` serves.

        Args:
            host: Address or name to bind.
            port: TCP port; 0 takes a free one, see `address`.
            application: Answers requests, on any of `WORKERS` threads.
            web: TLS and users; without it everybody may read.

        Raises:
            OSError: The address cannot be used.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        is_dual = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        self._listener = socket.create_server((host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=is_dual)
        self._listener.setblocking(False)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)  # connections inherit it
        self._application = application
        self._web = web
        self._refused: Counter[str] = Counter()
        self._open: set[_Connection] = set()
        self._workers = ThreadPoolExecutor(WORKERS, "http")
        self._checker = ThreadPoolExecutor(1, "http-password")
        self._checking: Counter[str] = Counter()
        """Passwords that wait for the checker, by address."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="http-loop", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port it listens on."""
        host, port = self._listener.getsockname()[:2]
        return str(host), int(port)

    def refusals(self) -> Mapping[str, int]:
        """Return the connections and requests rejected so far, by cause."""
        return dict(self._refused)

    def refuse(self, cause: str) -> None:
        """Count a rejected request."""
        self._refused[cause] += 1

    def start(self) -> None:
        """Serve on a thread until `close`."""
        self._thread.start()

    def close(self) -> None:
        """Close all connections and free the port."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        else:
            self._loop.close()
        for pool in (self._workers, self._checker):
            pool.shutdown(wait=False, cancel_futures=True)
        self._listener.close()

    def _run(self) -> None:
        accepting = self._loop.create_task(self._accept())
        self._loop.run_forever()
        accepting.cancel()
        for connection in self._open:
            connection.close()
        self._loop.run_until_complete(self._ended())
        self._loop.close()

    async def _ended(self) -> None:
        """Wait until all tasks have ended, and their sockets are closed."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)

    async def _accept(self) -> None:
        while True:
            try:
                accepted, client = await self._loop.sock_accept(self._listener)
            except OSError:  # the client left, or this process has no descriptor left
                await asyncio.sleep(_NO_DESCRIPTOR_SECONDS)
                continue
            if not self._has_room():
                if self._web is None or not self._web.is_secure:
                    with suppress(OSError):
                        accepted.send(_BUSY)
                accepted.close()
                continue
            connection = _Connection(accepted, self._loop.time())
            self._open.add(connection)
            connection.task = self._loop.create_task(self._serve(connection, str(client[0])))
            connection.task.add_done_callback(partial(self._forget, connection))

    def _forget(self, connection: _Connection, _: asyncio.Task[None]) -> None:
        self._open.discard(connection)
        if connection.transport is None:
            connection.socket.close()

    def _has_room(self) -> bool:
        """Make room for a connection: close the one that has waited longest for its client."""
        present = [item for item in self._open if not item.closing]
        if len(present) < MOST:
            return True
        self.refuse("busy")
        idle = [item for item in present if not item.is_busy]
        if idle:
            min(idle, key=lambda item: item.moved).close()
        return bool(idle)

    async def _serve(self, connection: _Connection, client: str) -> None:
        opened = self._loop.time()
        try:
            async with asyncio.timeout_at(opened + REQUEST_SECONDS):
                reader, writer = await self._streams(connection)
                try:
                    request = _parsed(await _head(reader), client)
                except _Malformed as error:
                    answer = _answer(error.status)
                    request = None
            async with asyncio.timeout_at(opened + ANSWER_SECONDS):
                if request is not None:
                    connection.is_busy = True
                    try:
                        answer = await self._answer(request)
                    finally:
                        connection.is_busy = False
                await self._send(connection, writer, answer)
        except TimeoutError:
            self.refuse("slow")
        except ssl.SSLError:
            self.refuse("tls")
        except (OSError, EOFError):
            pass  # the client closed the connection
        finally:
            if connection.transport is not None:
                connection.transport.abort()

    async def _streams(self, connection: _Connection) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader = asyncio.StreamReader(limit=_HEAD_BYTES, loop=self._loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=self._loop)
        context = None
        if self._web is not None:
            self._web.refresh()
            context = self._web.context()
        limit = ANSWER_SECONDS if context is not None else None  # the connection's own deadlines come first
        transport, _ = await self._loop.connect_accepted_socket(
            lambda: protocol, connection.socket, ssl=context, ssl_handshake_timeout=limit, ssl_shutdown_timeout=limit
        )
        connection.transport = transport
        return reader, asyncio.StreamWriter(transport, protocol, reader, self._loop)

    async def _answer(self, request: WSGIEnvironment) -> list[bytes]:
        refusal = await self._refusal(request)
        if refusal is not None:
            return refusal
        return await self._loop.run_in_executor(self._workers, self._ask, request)

    async def _refusal(self, request: WSGIEnvironment) -> list[bytes] | None:
        """Return the answer to a client without the right name and password."""
        if self._web is None:
            return None
        header, client = request.get("HTTP_AUTHORIZATION", ""), request["REMOTE_ADDR"]
        is_right = self._web.known(header)
        if is_right is None:
            if self._checking[client] >= _CHECKS_OF_ADDRESS:
                self.refuse("busy")
                return _answer(HTTPStatus.SERVICE_UNAVAILABLE, [("Retry-After", "1")])
            self._checking[client] += 1
            try:
                is_right = await self._loop.run_in_executor(self._checker, self._web.check, header)
            finally:
                self._checking -= Counter([client])
        if is_right:
            return None
        self.refuse("auth")
        return _answer(HTTPStatus.UNAUTHORIZED, [("WWW-Authenticate", 'Basic realm="heliograph", charset="UTF-8"')])

    def _ask(self, request: WSGIEnvironment) -> list[bytes]:
        """Run the application; returns the head of the answer and its body."""
        begun: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], _: object = None) -> object:
            begun.append((status, headers))
            return None

        try:
            body = list(self._application(request, start_response))  # type: ignore[arg-type]
        except Exception as error:
            to_stderr(f"heliograph: the answer to {request['PATH_INFO']} failed: {error!r}")
            return _answer(HTTPStatus.INTERNAL_SERVER_ERROR)
        head = _head_of(*begun[-1], body)
        return [head] if request["REQUEST_METHOD"] == "HEAD" else [head, *body]

    async def _send(self, connection: _Connection, writer: asyncio.StreamWriter, answer: list[bytes]) -> None:
        for part in answer:
            for start in range(0, len(part), _CHUNK_BYTES):
                connection.moved = self._loop.time()
                writer.write(memoryview(part)[start : start + _CHUNK_BYTES])
                await writer.drain()
        writer.close()
        await writer.wait_closed()
        connection.transport = None  # in Python 3.11 one that sent its last bytes after close() cannot be aborted


async def _head(reader: asyncio.StreamReader) -> bytes:
    """Read a request up to the end of its headers."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise _Malformed(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from error


def _parsed(head: bytes, client: str) -> WSGIEnvironment:
    line, *fields = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    words = line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _Malformed(HTTPStatus.BAD_REQUEST)
    path, _, query = words[1].partition("?")
    request: WSGIEnvironment = {
        "REQUEST_METHOD": words[0],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(path, "latin-1"),
        "QUERY_STRING": query,
        "SERVER_PROTOCOL": words[2],
        "REMOTE_ADDR": client,
    }
    for field in fields:
        name, colon, value = field.partition(":")
        if not colon or not name or name != name.strip():
            raise _Malformed(HTTPStatus.BAD_REQUEST)
        key = "HTTP_" + name.upper().replace("-", "_")
        request[key] = f"{request[key]},{value.strip()}" if key in request else value.strip()
    return request


def _head_of(status: str, headers: list[tuple[str, str]], body: list[bytes]) -> bytes:
    all_headers = {"Date": formatdate(usegmt=True), "Connection": "close", "Content-Length": str(sum(map(len, body)))}
    all_headers |= dict(headers)
    lines = "".join(f"{name}: {value}\r\n" for name, value in all_headers.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode("latin-1")


def _answer(status: HTTPStatus, headers: Iterable[tuple[str, str]] = ()) -> list[bytes]:
    body = [f"{status.phrase}\n".encode()]
    headers = [("Content-Type", "text/plain; charset=utf-8"), *headers]
    return [_head_of(f"{status.value} {status.phrase}", headers, body), *body]
