"""L5: nobody holds a web server of ours by connections, slowness or size, and no page of another site reads it."""

from __future__ import annotations

import gc
import http.client
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from heliograph.exporters.prometheus import PrometheusExporter
from tests.exporters.making import at, instance, receiver
from tests.ports import free_port


@contextmanager
def running() -> Iterator[PrometheusExporter]:
    found = PrometheusExporter("127.0.0.1:0")
    found.publish(at(1, instance("alpha", receiver("alpha", messages_delivered=5))))
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def exporter(caplog: pytest.LogCaptureFixture) -> Iterator[PrometheusExporter]:
    """One that has logged no error when it is closed, whatever its clients did."""
    with running() as found:
        yield found
    gc.collect()  # an unexpected error of a connection is logged when its task is freed
    assert not [*caplog.get_records("call"), *caplog.records], caplog.text


@pytest.fixture(scope="module")
def standing() -> Iterator[PrometheusExporter]:
    """One for all tests that only ask."""
    with running() as found:
        yield found


def get(address: tuple[str, int], host: str | None, path: str = "/metrics") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(*address, timeout=30)
    connection.putrequest("GET", path, skip_host=True)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    response = connection.getresponse()
    status, body = response.status, response.read()
    connection.close()
    return status, body


HOSTILE_HOSTS = ("evil.example", "evil.example:9464", "127.0.0.1.evil.example", "localhost.evil.example", "a" * 300)
OWN_HOSTS = ("127.0.0.1", "127.0.0.1:9464", "localhost", "LOCALHOST.:9464", "[::1]:9464", "10.1.2.3:9464", None)


@pytest.mark.parametrize("host", HOSTILE_HOSTS)
def test_l5_a_name_that_is_not_its_own_is_refused(exporter: PrometheusExporter, host: str) -> None:
    status, body = get(exporter.address, host)
    assert status == 403
    assert b"--allowed-host" in body
    assert b"heliograph_receiver" not in body
    assert b'heliograph_exporter_requests_refused_total{cause="host"} 1.0' in get(exporter.address, "localhost")[1]


@pytest.mark.parametrize("host", OWN_HOSTS)
def test_l5_its_own_names_and_addresses_are_answered(standing: PrometheusExporter, host: str | None) -> None:
    assert get(standing.address, host)[0] == 200


def test_l5_a_prometheus_that_uses_a_name_is_answered_by_option() -> None:
    named = PrometheusExporter("127.0.0.1:0", allowed_hosts=["exporter.example"])  # type: ignore[call-arg]
    try:
        assert get(named.address, "exporter.example:9464")[0] == 200
        assert get(named.address, "other.example:9464")[0] == 403
    finally:
        named.close()


def test_l5_where_others_reach_it_the_machines_own_name_is_answered() -> None:
    named = PrometheusExporter("0.0.0.0:0")
    try:
        address = ("127.0.0.1", named.address[1])
        assert get(address, f"{socket.gethostname()}:9464")[0] == 200
        assert get(address, "evil.example")[0] == 403
    finally:
        named.close()


def test_l5_connections_and_threads_are_bounded_and_a_scraper_gets_through(exporter: PrometheusExporter) -> None:
    before = threading.active_count()
    with ExitStack() as stack:
        for _ in range(200):
            idle = stack.enter_context(socket.create_connection(exporter.address, timeout=30))
            idle.sendall(b"GET /metrics HTTP/1.1\r\n")
        assert threading.active_count() - before <= 64
        assert get(exporter.address, "localhost")[0] == 200
    assert b'requests_refused_total{cause="busy"}' in get(exporter.address, "localhost")[1]


def ended_within(sender: socket.socket, drop: bytes, seconds: float) -> bool:
    """Whether the other end closes while a byte is sent now and then."""
    end = time.monotonic() + seconds
    sender.settimeout(0.2)
    while time.monotonic() < end:
        try:
            sender.sendall(drop)
            if not sender.recv(100):
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_l5_a_request_that_comes_byte_by_byte_is_ended(
    exporter: PrometheusExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heliograph.exporters.server.REQUEST_SECONDS", 1.0, raising=False)  # the page is given all 5
    with socket.create_connection(exporter.address, timeout=30) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
        assert ended_within(slow, b"a", 15.0)
    assert b'requests_refused_total{cause="slow"}' in get(exporter.address, "localhost")[1]


def unread(address: tuple[str, int], stack: ExitStack) -> socket.socket:
    """A connection that asks for the metrics and reads nothing."""
    found = stack.enter_context(socket.socket())
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    found.settimeout(30)
    found.connect(address)
    found.sendall(b"GET /metrics/detail HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return found


def drip(address: tuple[str, int], stop: threading.Event) -> None:
    """Send requests at one byte a second; connect again when the other end closes."""
    while not stop.is_set():
        with suppress(OSError), socket.create_connection(address, timeout=30) as slow:
            slow.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
            while not stop.wait(1.0):
                slow.sendall(b"a")


def test_l5_answers_that_nobody_reads_delay_no_other_scrape(exporter: PrometheusExporter) -> None:
    exporter.publish(at(2, instance("alpha", *(receiver("alpha", f"TOPIC.{number}") for number in range(400)))))
    stop = threading.Event()
    dripping = [threading.Thread(target=drip, args=(exporter.address, stop), daemon=True) for _ in range(40)]
    with ExitStack() as stack:
        stack.callback(stop.set)
        silent = [unread(exporter.address, stack) for _ in range(150)]
        for thread in dripping:
            thread.start()
        took = []
        for _ in range(5):
            began = time.monotonic()
            status, body = get(exporter.address, "localhost", "/metrics/detail")
            took.append(time.monotonic() - began)
            assert status == 200
            assert len(body) > 1_000_000
        assert min(took) < 1.0
        assert b'cause="slow"' not in body, "answered before a time limit ended another connection"
        silent += [unread(exporter.address, stack) for _ in range(150)]
        assert get(exporter.address, "localhost")[0] == 200
    for thread in dripping:
        thread.join(30)


def test_l5_an_answer_that_nobody_reads_is_ended(exporter: PrometheusExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.exporters.server.ANSWER_SECONDS", 0.5)
    exporter.publish(at(2, instance("alpha", *(receiver("alpha", f"TOPIC.{number}") for number in range(400)))))
    with ExitStack() as stack:
        for _ in range(3):
            unread(exporter.address, stack)
        wanted, slow = 3, 0
        end = time.monotonic() + 30
        while slow != wanted:
            assert time.monotonic() < end
            time.sleep(0.1)
            try:
                body = get(exporter.address, "localhost")[1]
            except (http.client.HTTPException, ConnectionError):  # on a busy host this one takes too long as well
                wanted += 1
                continue
            found = re.search(rb'requests_refused_total\{cause="slow"\} (\d+)', body)
            slow = int(found[1]) if found else 0


def test_l5_a_large_request_is_not_read_to_its_end(exporter: PrometheusExporter) -> None:
    with socket.create_connection(exporter.address, timeout=30) as large:
        sent = 0
        try:
            large.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n")
            for number in range(90):
                head = f"X-{number}: ".encode() + b"a" * 60_000 + b"\r\n"
                large.sendall(head)
                sent += len(head)
            large.sendall(b"\r\n")
            answer = large.recv(100)
        except OSError:
            answer = b""
    assert b"200" not in answer


def test_l5_the_live_page_refuses_other_names_slow_and_large_requests(tmp_path: object) -> None:
    pytest.importorskip("dash")
    port = free_port()
    command = [sys.executable, "-m", "heliograph.monitor.cli", "live", "--listen", f"127.0.0.1:{port}"]
    command += ["--segments", str(tmp_path), "--allowed-host", "page.example"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as page:
        try:
            assert page.stdout is not None
            assert "heliograph live on" in page.stdout.readline()
            address = ("127.0.0.1", port)
            assert get(address, "evil.example", "/")[0] == 403
            assert get(address, "evil.example", "/_dash-layout")[0] == 403
            assert get(address, f"localhost:{port}", "/")[0] == 200
            assert get(address, "page.example", "/")[0] == 200
            with socket.create_connection(address, timeout=30) as large:
                large.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n")
                assert large.recv(100).split()[1] == b"431"
            with socket.create_connection(address, timeout=30) as slow:
                slow.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
                assert ended_within(slow, b"a", 20.0)
        finally:
            page.terminate()
            page.wait(30)
