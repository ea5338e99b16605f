"""The pull endpoint: a small HTTP server that answers Prometheus with the latest snapshot.

It listens on the loopback by default, accepts only requests for its own names (`heliograph.monitor.web`), and has the
limits of `server`. Run it in its own process, because the rendering of a large answer holds the interpreter lock. The
scraper chooses the format (OpenMetrics or text). Both carry their version, which Prometheus 3 requires. `exposition`
gives the same text without a server.
"""

from __future__ import annotations

import errno
import gzip
import threading
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING
from urllib.parse import parse_qs
from wsgiref.simple_server import make_server

from prometheus_client.exposition import choose_encoder, generate_latest

from heliograph.exporters.collector import MAX_SERIES, WINDOW, SnapshotCollector
from heliograph.exporters.server import BoundedServer, BoundedServerV6, Handler, bounded
from heliograph.monitor.collector.account import Account
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Snapshot
from heliograph.monitor.modules.lane import LaneStats
from heliograph.monitor.web import AllowedHosts, guarded

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

__all__ = ["LISTEN", "PrometheusExporter", "exposition", "parse_listen"]

LISTEN = "127.0.0.1:9464"
_GZIP_LEVEL = 1  # higher levels cost many times the time for a few percent


def parse_listen(text: str) -> tuple[str, int]:
    """Split ``HOST:PORT``, ``[IPV6]:PORT`` or ``:PORT`` (the loopback) into host and port.

    Raises:
        UserError: The form is wrong, or the port is not from 0 to 65535.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UserError(f"{text!r} is not a listen address: write HOST:PORT, such as {LISTEN}")
    return host.strip("[]") or "127.0.0.1", int(port)


def exposition(collector: SnapshotCollector) -> bytes:
    """Return the families as text, format 0.0.4."""
    return generate_latest(collector.registry())


class PrometheusExporter:
    """Serves snapshots to scrapers at ``/metrics``."""

    def __init__(
        self,
        listen: str = LISTEN,
        *,
        max_series: int = MAX_SERIES,
        window: float = WINDOW,
        lanes: Callable[[], Iterable[LaneStats]] = tuple,
        account: Callable[[], Account | None] = lambda: None,
        allowed_hosts: Collection[str] = (),
    ) -> None:
        """Listen and serve. Until the first snapshot, answers hold only the families of the exporter.

        Args:
            listen: ``HOST:PORT``; port 0 takes a free port, see `address`.
            max_series: Largest number of series of statistics in an answer.
            window: Length of the percentile window in seconds.
            lanes: Returns the state of the exporters and modules of this process.
            account: Returns the account of missing data, when snapshots come from a collector.
            allowed_hosts: Further host names that scrapers may use (`heliograph.monitor.web`).

        Raises:
            UserError: The address cannot be used.
        """
        host, port = parse_listen(listen)
        server = BoundedServerV6 if ":" in host else BoundedServer
        try:
            self._server = make_server(host, port, self._answer, server, Handler)
        except OSError as error:
            raise UserError(_why(error, host, port)) from error
        answer = bounded(self._answer, self._server.refused)
        self._server.set_app(guarded(answer, AllowedHosts(host, allowed_hosts), self._server.refuse_host))
        self._collector = SnapshotCollector(
            max_series=max_series, window=window, lanes=lanes, account=account, refused=self._server.refusals
        )
        self._registry = self._collector.registry()
        self._thread = threading.Thread(target=self._server.serve_forever, name="prometheus-http", daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the endpoint."""
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def publish(self, snapshot: Snapshot) -> None:
        """Serve this snapshot from now on."""
        self._collector.update(snapshot)

    def close(self) -> None:
        """Stop serving and free the port."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if method not in ("GET", "HEAD"):
            start_response("405 Method Not Allowed", [("Allow", "GET, HEAD"), ("Content-Type", "text/plain")])
            return [b"Only GET and HEAD are allowed.\n"]
        if path != "/metrics":
            known = path == "/"
            start_response("200 OK" if known else "404 Not Found", [("Content-Type", "text/plain")])
            return [b"Heliograph: the metrics are at /metrics\n"]
        encode, content_type = choose_encoder(environ.get("HTTP_ACCEPT", ""))
        wanted = parse_qs(environ.get("QUERY_STRING", "")).get("name[]")
        body: bytes = encode(self._registry.restricted_registry(wanted) if wanted else self._registry)
        headers = [("Content-Type", content_type)]
        if "gzip" in environ.get("HTTP_ACCEPT_ENCODING", ""):
            body = gzip.compress(body, _GZIP_LEVEL)
            headers.append(("Content-Encoding", "gzip"))
        headers.append(("Content-Length", str(len(body))))
        start_response("200 OK", headers)
        return [] if method == "HEAD" else [body]


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} on {host} is in use: another exporter may be running (see `ss -ltnp 'sport = :{port}'`); "
            f"stop it or choose another port with --listen {host}:PORT"
        )
    if error.errno == errno.EACCES:
        return f"listening on port {port} is not permitted; choose a port above 1023 with --listen {host}:PORT"
    reason = error.strerror or str(error)
    return f"cannot listen on {host}:{port}: {reason}; choose an address of this host with --listen HOST:PORT"
