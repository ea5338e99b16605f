"""An S3 server on loopback (moto), and a proxy that fails one request in ten, before or after the store has done it."""

from __future__ import annotations

import http.client
import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Lock, Thread
from typing import Any

import pytest

from heliograph.monitor.history import remote, writes

_DROPPED = {"connection", "date", "keep-alive", "server", "transfer-encoding"}


class _Proxy(BaseHTTPRequestHandler):
    """Forwards a request, or answers that the store is overloaded; of every second failure, the store has done it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise each answer waits 40 ms for the acknowledgement of its headers
    server: FailingProxy

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fails = self.server.fails()
        if not fails or fails % 2 == 0:
            status, headers, answer = self._asked(body)
        if fails:
            self._answer(503, {}, b"<Error><Code>SlowDown</Code><Message>Reduce your request rate</Message></Error>")
        else:
            self._answer(status, headers, answer)

    def _asked(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        headers = {name: text for name, text in self.headers.items() if name.lower() != "expect"}
        is_conditional = "if-none-match" in {name.lower() for name in headers}
        if self.server.ignores_conditions:
            headers = {name: text for name, text in headers.items() if name.lower() != "if-none-match"}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.store_port, timeout=20)
        try:
            # moto looks and writes in two steps; S3 does both at once.
            with self.server.one_at_a_time if is_conditional else nullcontext():
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                return answer.status, dict(answer.getheaders()), answer.read()
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

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _forward

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
        self.ignores_conditions = False
        """The store behaves as one that does not know `If-None-Match`."""
        self.failed = 0
        self.one_at_a_time = Lock()
        self._numbers = count(1)
        self._counting = Lock()

    def client(self) -> Any:
        """Return a client of the store itself."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.store_port}",
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def fails(self) -> int:
        """Return 0 if the next request succeeds, else the number of failed ones."""
        with self._counting:
            if not self.every or next(self._numbers) % self.every:
                return 0
            self.failed += 1
            return self.failed


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


@contextmanager
def store_of_commands(bucket: str) -> Iterator[FailingProxy]:
    """Start a store with an empty bucket, and let commands of this process and of its children use it."""
    with object_store() as (proxy, endpoint), pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
        forget_connections()
        proxy.client().create_bucket(Bucket=bucket)
        yield proxy
        forget_connections()


def forget_connections() -> None:
    """Let the next request read the environment again."""
    remote._system.cache_clear()
    writes._client.cache_clear()
