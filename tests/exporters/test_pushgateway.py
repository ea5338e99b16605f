"""Pushing to a gateway, against a small one of our own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from prometheus_client.parser import text_string_to_metric_families

from heliograph.exporters.pushgateway import PushgatewayExporter
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Snapshot
from tests.exporters.making import at, instance, receiver


class Gateway(ThreadingHTTPServer):
    """Takes pushes, and answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pushes: list[tuple[str, str, str]] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Gateway

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.pushes.append(("PUT", self.path, body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    server = Gateway()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def snapshot(delivered: int) -> Snapshot:
    return at(delivered, instance("alpha", receiver("alpha", messages_delivered=delivered)))


def delivered(push: tuple[str, str, str]) -> float:
    (family,) = [
        family
        for family in text_string_to_metric_families(push[2])
        if family.name == "heliograph_receiver_messages_delivered"
    ]
    return float(family.samples[0].value)


def test_it_puts_all_metrics_under_its_job_and_grouping_key(gateway: Gateway) -> None:
    exporter = PushgatewayExporter(gateway.url, job="trading", grouping={"host": "h1"})
    exporter.publish(snapshot(7))
    ((method, path, _),) = gateway.pushes
    assert (method, path) == ("PUT", "/metrics/job/trading/host/h1")
    assert delivered(gateway.pushes[0]) == 7


def test_a_gateway_that_refuses_is_a_failure_and_gets_a_growing_rest(gateway: Gateway) -> None:
    clock = Clock()
    exporter = PushgatewayExporter(gateway.url, clock=clock)
    gateway.status = 503
    attempts = []
    for second in range(20):
        clock.now = float(second)
        before = len(gateway.pushes)
        with suppress(OSError):
            exporter.publish(snapshot(second + 1))
        if len(gateway.pushes) > before:
            attempts.append(second)
    assert attempts == [0, 1, 3, 7, 15], "rests of 1, 2, 4 and 8 seconds"
    gateway.status = 200
    clock.now = 31.0
    exporter.publish(snapshot(99))
    clock.now = 31.1
    exporter.publish(snapshot(100))
    assert [delivered(push) for push in gateway.pushes[-2:]] == [99, 100], "no rest after a success"


def test_the_rest_has_a_limit(gateway: Gateway) -> None:
    clock = Clock()
    exporter = PushgatewayExporter(gateway.url, clock=clock)
    gateway.status = 500
    for second in range(0, 1000, 60):
        clock.now = float(second)
        with pytest.raises(OSError):
            exporter.publish(snapshot(second + 1))


def test_a_gateway_that_is_not_there_is_a_failure() -> None:
    exporter = PushgatewayExporter("http://127.0.0.1:9", timeout=1.0)
    with pytest.raises(OSError):
        exporter.publish(snapshot(1))


def test_closing_pushes_what_was_held_back_and_only_that(gateway: Gateway) -> None:
    clock = Clock()
    exporter = PushgatewayExporter(gateway.url, clock=clock)
    gateway.status = 503
    with pytest.raises(OSError):
        exporter.publish(snapshot(1))
    exporter.publish(snapshot(2))
    gateway.status = 200
    exporter.close()
    assert [delivered(push) for push in gateway.pushes] == [1, 2]

    pushed = PushgatewayExporter(gateway.url)
    pushed.publish(snapshot(3))
    pushed.close()
    assert len(gateway.pushes) == 3, "the gateway had it already"


@pytest.mark.parametrize("url", ["", "http://", "https:///"])
def test_a_gateway_without_an_address_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="--gateway"):
        PushgatewayExporter(url)


def test_a_grouping_key_the_metrics_use_is_refused() -> None:
    with pytest.raises(UserError, match="node"):
        PushgatewayExporter("http://127.0.0.1:9", grouping={"node": "x"})
