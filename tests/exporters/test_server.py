"""The web server of the exporter: requests that are no requests, answers that fail, and its end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pytest

from heliograph.exporters.server import Server

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    if environ["PATH_INFO"] == "/fail":
        raise RuntimeError("no answer \x1b[2J")
    start_response("200 OK", [("Content-Type", "text/plain")])
    fields = ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "HTTP_HOST", "HTTP_X_OWN", "REMOTE_ADDR")
    return ["|".join(str(environ.get(name)) for name in fields).encode("latin-1")]


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server("127.0.0.1", 0, application)
    found.start()
    yield found
    found.close()


def answer(server: Server, request: bytes) -> tuple[str, dict[str, str], bytes]:
    """Status, headers and body of the answer to the bytes."""
    with socket.create_connection(server.address, timeout=30) as connection:
        connection.sendall(request)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    line, *fields = head.decode("latin-1").split("\r\n")
    return line.split(" ", 2)[1], dict(field.split(": ", 1) for field in fields), body


def test_an_application_gets_the_request(server: Server) -> None:
    request = b"GET /a%20b?c=d%20e HTTP/1.1\r\nHost: one\r\nX-Own:  two \r\nx-own: three\r\n\r\n"
    status, headers, body = answer(server, request)
    assert (status, body) == ("200", b"GET|/a b|c=d%20e|one|two,three|127.0.0.1")
    assert headers["Content-Length"] == str(len(body))
    assert headers["Connection"] == "close"
    assert headers["Date"].endswith("GMT")


def test_head_gets_the_headers_alone(server: Server) -> None:
    status, headers, body = answer(server, b"HEAD / HTTP/1.0\r\n\r\n")
    assert (status, body) == ("200", b"")
    assert int(headers["Content-Length"]) > 0


MALFORMED = {
    "one word": b"GET\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "version 2": b"PRI * HTTP/2.0\r\n\r\n",
    "four words": b"GET / x HTTP/1.1\r\n\r\n",
    "no colon": b"GET / HTTP/1.1\r\nHost\r\n\r\n",
    "no name": b"GET / HTTP/1.1\r\n: x\r\n\r\n",
    "a folded line": b"GET / HTTP/1.1\r\nHost: a\r\n b: c\r\n\r\n",
    "a space before the colon": b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "nothing": b"\r\n\r\n",
    "bytes": bytes(range(256)) + b"\r\n\r\n",
}


@pytest.mark.parametrize("request_", MALFORMED)
def test_a_malformed_request_is_answered_400(server: Server, request_: str) -> None:
    assert answer(server, MALFORMED[request_])[0] == "400"


def test_a_large_head_is_answered_431(server: Server) -> None:
    head = b"GET / HTTP/1.1\r\nX: " + b"a" * 17_000
    assert answer(server, head + b"\r\n\r\n")[0] == "431"


def test_a_failing_application_is_reported_and_the_next_request_answered(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(server, b"GET /fail HTTP/1.1\r\n\r\n")[0] == "500"
    assert answer(server, b"GET / HTTP/1.1\r\n\r\n")[0] == "200"
    told = capsys.readouterr().err
    assert "the answer to /fail failed: RuntimeError" in told
    assert "\x1b" not in told


def test_it_ends_with_open_connections() -> None:
    server = Server("127.0.0.1", 0, application)
    server.start()
    with socket.create_connection(server.address, timeout=30) as idle, socket.create_connection(server.address) as half:
        half.sendall(b"GET / HTTP/1.1\r\n")
        assert answer(server, b"GET / HTTP/1.1\r\n\r\n")[0] == "200"
        server.close()
        for connection in (idle, half):
            connection.settimeout(30)
            assert connection.recv(100) == b""
    assert "http-loop" not in {thread.name for thread in threading.enumerate()}


def test_it_can_be_closed_before_it_starts() -> None:
    Server("127.0.0.1", 0, application).close()


def test_it_listens_on_ipv6_too() -> None:
    try:
        server = Server("::1", 0, application)
    except OSError:
        pytest.skip("no IPv6 on this host")
    server.start()
    try:
        assert answer(server, b"GET / HTTP/1.1\r\n\r\n")[2].endswith(b"|::1")
    finally:
        server.close()
