"""The HTTP endpoint."""

from __future__ import annotations

import gzip
import http.client
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from heliograph.exporters.collector import SnapshotCollector
from heliograph.exporters.prometheus import ANSWER_SECONDS, FRESH_SECONDS, PrometheusExporter, parse_listen
from heliograph.exporters.selection import Selection
from heliograph.monitor.errors import UserError
from tests.exporters.making import at, histogram, instance, receiver


@pytest.fixture
def exporter() -> Iterator[PrometheusExporter]:
    running = PrometheusExporter("127.0.0.1:0")
    counted = receiver("alpha", messages_delivered=5, histograms={"total_latency": histogram({10_000: 5})})
    running.publish(at(1, instance("alpha", counted)))
    yield running
    running.close()


def get(
    exporter: PrometheusExporter, path: str = "/metrics", method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(*exporter.address, timeout=10)
    connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def test_it_serves_text_with_its_version(exporter: PrometheusExporter) -> None:
    response, body = get(exporter)
    assert response.status == 200
    assert response.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    values = {s.name: s.value for family in plain(body.decode()) for s in family.samples}
    assert values["heliograph_receiver_messages_delivered_total"] == 5


def test_it_serves_openmetrics_to_who_asks(exporter: PrometheusExporter) -> None:
    response, body = get(exporter, Accept="application/openmetrics-text;version=1.0.0")
    assert str(response.getheader("Content-Type")).startswith("application/openmetrics-text; version=1.0.0")
    assert body.endswith(b"# EOF\n")
    families = {family.name: family for family in openmetrics(body.decode())}  # type: ignore[no-untyped-call]
    assert families["heliograph_receiver_total_latency_seconds"].type == "histogram"


def test_it_compresses_for_who_accepts_it(exporter: PrometheusExporter) -> None:
    response, body = get(exporter, Accept_Encoding="gzip")
    assert response.getheader("Content-Encoding") == "gzip"
    assert b"heliograph_receiver_messages_delivered_total" in gzip.decompress(body)


def test_it_serves_the_families_asked_for_by_name(exporter: PrometheusExporter) -> None:
    _, body = get(exporter, "/metrics?name[]=heliograph_receiver_messages_delivered_total")
    assert {family.name for family in plain(body.decode())} == {"heliograph_receiver_messages_delivered"}


def test_other_paths_and_methods_are_refused(exporter: PrometheusExporter) -> None:
    assert get(exporter, "/etc/passwd")[0].status == 404
    assert get(exporter, "/")[0].status == 200
    assert get(exporter, method="POST")[0].status == 405
    response, body = get(exporter, method="HEAD")
    assert (response.status, body) == (200, b"")


def test_probes_say_whether_it_lives_and_whether_its_statistics_are_fresh(
    exporter: PrometheusExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    response, body = get(exporter, "/-/ready")
    assert (response.status, body) == (200, b"The statistics are fresh.\n")
    began = time.monotonic()
    monkeypatch.setattr("heliograph.exporters.prometheus.time.monotonic", lambda: began + FRESH_SECONDS + 5)
    response, body = get(exporter, "/-/ready")
    assert response.status == 503
    assert body == b"The statistics are 20 s old.\n"
    assert get(exporter, "/-/healthy")[0].status == 200


def test_it_is_not_ready_before_the_first_snapshot() -> None:
    waiting = PrometheusExporter("127.0.0.1:0")
    try:
        assert get(waiting, "/-/healthy")[0].status == 200
        response, body = get(waiting, "/-/ready")
        assert (response.status, body) == (503, b"No statistics have been read yet.\n")
    finally:
        waiting.close()


def test_scrapers_share_one_rendering_until_the_next_snapshot(
    exporter: PrometheusExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    clock = [began]
    monkeypatch.setattr("heliograph.exporters.prometheus.time.monotonic", lambda: clock[0])
    rendered = []
    families = SnapshotCollector.families

    def counted(collector: SnapshotCollector, selection: Selection) -> Iterator[Metric]:
        rendered.append(1)
        return families(collector, selection)

    monkeypatch.setattr(SnapshotCollector, "families", counted)
    first = get(exporter)[1]
    assert [get(exporter)[1] for _ in range(5)] == [first] * 5
    assert len(rendered) == 1
    get(exporter, Accept_Encoding="gzip")
    get(exporter, Accept="application/openmetrics-text;version=1.0.0")
    assert len(rendered) == 3, "each format is rendered"
    get(exporter, Accept="application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1")
    assert len(rendered) == 3, "another header that asks for a format that was rendered"
    exporter.publish(at(2, instance("alpha", receiver("alpha", messages_delivered=6))))
    assert get(exporter)[1] != first
    get(exporter)
    assert len(rendered) == 4
    clock[0] += ANSWER_SECONDS
    get(exporter)
    assert len(rendered) == 5, "an answer that is given again is not old"


def test_before_the_first_snapshot_it_answers_with_nothing_but_itself() -> None:
    waiting = PrometheusExporter("127.0.0.1:0")
    try:
        _, body = get(waiting)
        assert {family.name.split("_")[1] for family in plain(body.decode())} == {"exporter"}
    finally:
        waiting.close()


def test_scrapes_during_updates_see_whole_snapshots(exporter: PrometheusExporter) -> None:
    stop = threading.Event()

    def update() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            objects = [receiver("alpha", topic, messages_delivered=number) for topic in "ABCD"]
            exporter.publish(at(number, instance("alpha", *objects)))

    thread = threading.Thread(target=update)
    thread.start()
    try:
        for _ in range(20):
            _, body = get(exporter, "/metrics?name[]=heliograph_receiver_messages_delivered_total")
            values = {s.value for family in plain(body.decode()) for s in family.samples}
            assert len(values) == 1
    finally:
        stop.set()
        thread.join()


def test_it_listens_on_the_loopback_by_default() -> None:
    assert parse_listen("127.0.0.1:9464") == ("127.0.0.1", 9464)
    assert parse_listen(":9464") == ("127.0.0.1", 9464)
    assert parse_listen("[::1]:9464") == ("::1", 9464)


@pytest.mark.parametrize("text", ["9464", "host", "host:", "host:http", "host:70000", "host:-1", ""])
def test_a_bad_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UserError, match="HOST:PORT"):
        parse_listen(text)


def test_a_port_in_use_is_named_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=rf"port {port} on 127\.0\.0\.1 is in use.*--listen"):
            PrometheusExporter(f"127.0.0.1:{port}")


def test_an_address_of_another_host_is_refused() -> None:
    with pytest.raises(UserError, match=r"192\.0\.2\.1:9464"):
        PrometheusExporter("192.0.2.1:9464")


def test_closing_frees_the_port() -> None:
    first = PrometheusExporter("127.0.0.1:0")
    port = first.address[1]
    first.close()
    second = PrometheusExporter(f"127.0.0.1:{port}")
    second.close()
