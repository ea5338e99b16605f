"""An S3 server on loopback (moto), and a proxy for readers that fails one request in ten."""

from __future__ import annotations

import http.client
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread
from typing import Any

_DROPPED = {"connection", "date", "keep-alive", "server", "transfer-encoding"}


class _Proxy(BaseHTTPRequestHandler):
    """Forwards a request, or answers that the store is overloaded."""

    protocol_version = "HTTP/1.1"
    server: FailingProxy

    def _forward(self) -> None:
        if self.server.fails():
            self._answer(503, {}, b"<Error><Code>SlowDown</Code><Message>Reduce your request rate</Message></Error>")
            return
        connection = http.client.HTTPConnection("127.0.0.1", self.server.store_port, timeout=20)
        try:
            connection.request(self.command, self.path, None, dict(self.headers))
            answer = connection.getresponse()
            self._answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        kept = {name: text for name, text in headers.items() if name.lower() not in _DROPPED}
        if self.command != "HEAD":
            kept = {name: text for name, text in kept.items() if name.lower() != "content-length"}
            kept["Content-Length"] = str(len(body))
        self.send_response(status)
        for name, text in kept.items():
            self.send_header(name, text)
        if "content-length" not in {name.lower() for name in kept}:
            self.send_header("Content-Length", "0")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = _forward

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


class FailingProxy(ThreadingHTTPServer):
    """A proxy in front of a store.

    Args:
        store_port: Port of the store on this machine.
    """

    daemon_threads = True

    def __init__(self, store_port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Proxy)
        self.store_port = store_port
        self.every = 0
        """Every n-th request fails; 0: none, 1: all."""
        self.failed = 0
        self._numbers = count(1)

    def client(self) -> Any:
        """Return a client that writes to the store itself."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.store_port}",
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def fails(self) -> bool:
        """Return whether the next request fails."""
        result = bool(self.every) and next(self._numbers) % self.every == 0
        self.failed += result
        return result


@contextmanager
def object_store() -> Iterator[tuple[FailingProxy, str]]:
    """Start a store and its proxy; yields the proxy and the address of an endpoint."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    store = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    store.start()
    proxy = FailingProxy(store.get_host_and_port()[1])
    thread = Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield proxy, f"http://127.0.0.1:{proxy.server_address[1]}"
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()
        store.stop()
