"""The pull endpoint: a small HTTP server that answers Prometheus with the latest snapshot.

It listens on the loopback by default, accepts only requests for its own names (`heliograph.monitor.web`), and has the
limits of `server`. Run it in its own process, because the rendering of a large answer holds the interpreter lock. The
scraper chooses the format (OpenMetrics or text). Both carry their version, which Prometheus 3 requires. An answer is
rendered once per snapshot and format and shared by all scrapers. `exposition` gives the same text without a server.

``/-/healthy`` says that the process answers; ``/-/ready`` says that the statistics it serves are fresh.
"""

from __future__ import annotations

import errno
import gzip
import threading
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from prometheus_client.exposition import generate_latest

from heliograph.exporters import protobuf
from heliograph.exporters.collector import MAX_SERIES, WINDOW, SnapshotCollector
from heliograph.exporters.costs import Costs
from heliograph.exporters.native import SCHEMA
from heliograph.exporters.rendering import Encoder, Renderer
from heliograph.exporters.selection import Selection, of_query
from heliograph.exporters.server import Server
from heliograph.exporters.web_config import WebConfig
from heliograph.monitor.collector.account import Account
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Snapshot
from heliograph.monitor.modules.lane import LaneStats
from heliograph.monitor.web import AllowedHosts, guarded

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

__all__ = ["LISTEN", "PrometheusExporter", "exposition", "parse_listen"]

LISTEN = "127.0.0.1:9464"
ANSWER_SECONDS = 1.0
"""Largest age of an answer that is given again: it also holds what this process counts of itself."""
FRESH_SECONDS = 15.0
"""A snapshot older than this is not served as ready."""
_GZIP_LEVEL = 1  # higher levels cost many times the time for a few percent
_ANSWERS_KEPT = 8
"""Rendered answers to a snapshot: formats, compressed or not, and a few selections by name."""

_KEPT_PER_SERIES = 2
"""Line beginnings kept for each series of the limit: series beside the limit, and series that are gone."""

METRICS, DETAIL = "/metrics", "/metrics/detail"
_PATHS = (METRICS, DETAIL)

_Wanted = tuple[str, Selection, bool]
"""An answer depends on its content type, the series, and whether it is compressed."""


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
        costs: Costs | None = None,
        whole: Callable[[bool | Collection[str]], Snapshot] | None = None,
        allowed_hosts: Collection[str] = (),
        web_config: Path | None = None,
        native_schema: int = SCHEMA,
        created_series: bool = False,
    ) -> None:
        """Listen and serve. Until the first snapshot, answers hold only the families of the exporter.

        Args:
            listen: ``HOST:PORT``; port 0 takes a free port, see `address`.
            max_series: Largest number of series of statistics in an answer.
            window: Length of the percentile window in seconds.
            lanes: Returns the state of the exporters and modules of this process.
            account: Returns the account of missing data, when snapshots come from a collector.
            costs: Adds up the cost of the exporter.
            whole: Takes a snapshot with all or the named histograms, when those of `publish` have none. Any thread
                calls it.
            allowed_hosts: Further host names that scrapers may use (`heliograph.monitor.web`).
            web_config: File with TLS and users, in Prometheus' web-config format.
            native_schema: Resolution of native histograms (`native`).
            created_series: Whether OpenMetrics has a ``_created`` line for each counter and histogram.

        Raises:
            UserError: The address or the file cannot be used.
        """
        host, port = parse_listen(listen)
        hosts = AllowedHosts(host, allowed_hosts)
        answer = guarded(self._answer, hosts, lambda: self._server.refuse("host"))
        web = None if web_config is None else WebConfig(web_config)
        self._scheme = "https" if web is not None and web.is_secure else "http"
        try:
            self._server = Server(host, port, answer, web)
        except OSError as error:
            raise UserError(_why(error, host, port)) from error
        self._costs = costs or Costs()
        self._collector = SnapshotCollector(
            max_series=max_series,
            window=window,
            lanes=lanes,
            account=account,
            refused=self._server.refusals,
            costs=self._costs,
            whole=whole,
        )
        self._renderer = Renderer(_KEPT_PER_SERIES * max_series, has_created=created_series)
        self._native_schema = native_schema
        self._published: float | None = None
        self._rendering = threading.Lock()
        self._rendered: dict[_Wanted, bytes] = {}
        self._rendered_version, self._rendered_at = -1, 0.0
        self._server.start()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the endpoint."""
        return self._server.address

    @property
    def url(self) -> str:
        """The URL of the metrics."""
        host, port = self.address
        return f"{self._scheme}://{f'[{host}]' if ':' in host else host}:{port}/metrics"

    def publish(self, snapshot: Snapshot) -> None:
        """Serve this snapshot from now on."""
        self._collector.update(snapshot)
        self._published = time.monotonic()

    def close(self) -> None:
        """Stop serving and free the port."""
        self._server.close()

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if method not in ("GET", "HEAD"):
            start_response("405 Method Not Allowed", [("Allow", "GET, HEAD"), ("Content-Type", "text/plain")])
            return [b"Only GET and HEAD are allowed.\n"]
        if path in ("/-/healthy", "/-/ready"):
            return self._state(path, method, start_response)
        if path not in _PATHS:
            known = path == "/"
            start_response("200 OK" if known else "404 Not Found", [("Content-Type", "text/plain")])
            return [b"Heliograph: the metrics are at /metrics, all at /metrics/detail\n"]
        selection = of_query(path == DETAIL, parse_qs(environ.get("QUERY_STRING", "")))
        encode, content_type = self._choose(environ.get("HTTP_ACCEPT", ""), selection)
        is_compressed = "gzip" in environ.get("HTTP_ACCEPT_ENCODING", "")
        body = self._body(encode, (content_type, selection, is_compressed))
        headers = [("Content-Type", content_type)]
        if is_compressed:
            headers.append(("Content-Encoding", "gzip"))
        headers.append(("Content-Length", str(len(body))))
        start_response("200 OK", headers)
        return [] if method == "HEAD" else [body]

    def _choose(self, accept: str, selection: Selection) -> tuple[Encoder, str]:
        if protobuf.is_wanted(accept) and not selection.names:  # a part of a histogram has no form in protobuf
            return (
                lambda _: protobuf.encode(self._collector.families(selection), self._native_schema),
                protobuf.CONTENT_TYPE,
            )
        return self._renderer.choose(accept)

    def _state(self, path: str, method: str, start_response: StartResponse) -> list[bytes]:
        """Answer a probe of an orchestrator."""
        age = None if self._published is None else time.monotonic() - self._published
        status, text = "200 OK", "The exporter answers.\n"
        if path == "/-/ready":
            text = "The statistics are fresh.\n"
            if age is None or age > FRESH_SECONDS:
                status = "503 Service Unavailable"
                text = (
                    "No statistics have been read yet.\n" if age is None else f"The statistics are {age:.0f} s old.\n"
                )
        body = text.encode()
        start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
        return [] if method == "HEAD" else [body]

    def _body(self, encode: Encoder, wanted: _Wanted) -> bytes:
        """Return the answer; render it when nobody has asked for it since the snapshot came."""
        _, selection, is_compressed = wanted
        with self._rendering:
            now, version = time.monotonic(), self._collector.version
            is_current = version == self._rendered_version and now < self._rendered_at + ANSWER_SECONDS
            if not is_current or len(self._rendered) >= _ANSWERS_KEPT:
                self._rendered.clear()
                self._rendered_version, self._rendered_at = version, now
            if (found := self._rendered.get(wanted)) is not None:
                return found
            self._collector.prepare(selection.detail)
            with self._costs.during("rendering"):
                body = encode(self._collector.selected(selection))
                self._costs.add_bytes(len(body))
                if is_compressed:
                    body = gzip.compress(body, _GZIP_LEVEL)
            self._rendered[wanted] = body
            return body


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
