"""How updates reach a browser: streams, single messages, and clients that are slow, silent, many or gone."""

from __future__ import annotations

import contextlib
import gc
import http.client
import io
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from waitress.buffers import OverflowableBuffer

from heliograph.dashboards.live import push, serving
from heliograph.dashboards.live import store as stores
from heliograph.dashboards.live.app import create, followed
from heliograph.dashboards.live.push import Streams, messages
from heliograph.dashboards.live.recordings import Shelf
from heliograph.dashboards.live.store import Store
from heliograph.dashboards.live.updates import Message, Updates
from heliograph.dashboards.live.uploads import Uploads
from heliograph.monitor.model import Snapshot
from tests.dashboards.browsing import click_to, live, seen, until
from tests.dashboards.views import Fleet
from tests.ports import free_port

SECONDS = 60
"""Deadline of a wait: two test files run on two busy cores."""


@dataclass
class Server:
    """The live page in this process."""

    fleet: Fleet
    streams: Streams
    url: str

    @property
    def store(self) -> Store:
        return self.fleet.store

    def move(self) -> None:
        """Make a newer view."""
        self.store.show(replace(self.store.view, sequence=self.store.view.sequence + 1))

    def ask(self, path: str = "/live/stream", method: str = "GET", **more: str) -> http.client.HTTPResponse:
        """Send a request; the caller reads the answer and closes it."""
        link = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=SECONDS)
        query = {name: value for name, value in more.items() if not name.startswith("Sec-")}
        headers = {name: value for name, value in more.items() if name.startswith("Sec-")}
        link.request(method, f"{path}?{urlencode(query)}", headers=headers)
        return link.getresponse()


@contextlib.contextmanager
def serving_fleet(fleet: Fleet, streams: Streams | None = None, port: int = 0) -> Iterator[Server]:
    fleet.at(0)
    fleet.at(1)
    count = streams or Streams()
    with live(create(fleet.store, lambda: fleet.now_ns, streams=count).server, fleet.store, port) as url:
        yield Server(fleet, count, url)


@pytest.fixture
def server(fleet: Fleet) -> Iterator[Server]:
    with serving_fleet(fleet) as found:
        yield found


def read(answer: http.client.HTTPResponse) -> Any:
    """The next message of a stream."""
    while True:
        line = answer.readline().decode()
        assert line, "the stream ended"
        if line.startswith("data: "):
            return json.loads(line[6:])


def test_a_stream_has_the_difference_after_each_sample_and_a_message_a_second(server: Server) -> None:
    stream = server.ask(path="/live/stream", browser="a")
    assert (stream.status, stream.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
    first = read(stream)
    assert (first["before"], "receivers.children" in first["parts"]) == (None, True)
    quiet = read(stream)  # without a sample
    assert (quiet["before"], quiet["parts"]) == (first["drawing"], {})
    server.fleet.at(2)
    while (newer := read(stream))["drawing"] == first["drawing"]:
        pass
    assert newer["before"] == first["drawing"]
    assert "receivers.children" in newer["parts"]
    stream.close()

    again = server.ask(path="/live/stream", shown=str(newer["drawing"]))
    assert (found := read(again))["before"] == newer["drawing"], found  # a browser that returns gets the difference
    again.close()
    until(lambda: server.streams.count == 0, "both streams to end", SECONDS)


def test_a_slow_reader_skips_views_and_gets_the_difference_to_the_newest(fleet: Fleet) -> None:
    for moment in range(2):
        fleet.at(moment)
    updates = Updates(fleet.store, followed(Uploads(), None, Shelf()), lambda: fleet.now_ns)
    waiting = 0
    looks: list[int] = []

    def unsent() -> int:
        looks.append(fleet.store.view.sequence)
        if waiting and len(looks) < 6:
            fleet.at(len(looks))
            return waiting
        return 0

    stream = messages(fleet.store, updates, push._asked({"path": "/"}), unsent, lambda: False)
    first = json.loads(next(stream).removeprefix("data: "))
    waiting = 1000
    second = json.loads(next(stream).removeprefix("data: "))
    assert looks[-1] - looks[1] >= 4
    assert second["before"] == first["drawing"]
    assert second["stamp"]["sequence"] == fleet.store.view.sequence


def test_a_reader_that_does_not_catch_up_or_has_left_loses_its_stream(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.at(0)
    updates = Updates(fleet.store, followed(Uploads(), None, Shelf()), lambda: fleet.now_ns)
    asked = push._asked({})
    monkeypatch.setattr(push, "_BEHIND_SECONDS", 0.0)
    assert list(messages(fleet.store, updates, asked, lambda: 1, lambda: False)) == []
    assert list(messages(fleet.store, updates, asked, lambda: 0, lambda: True)) == []
    monkeypatch.setattr(push, "_LONGEST_SECONDS", 0.0)
    assert len(list(messages(fleet.store, updates, asked, lambda: 0, lambda: False))) == 1


def test_a_client_that_never_reads_is_bounded_and_disconnected(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_STALLED_SECONDS", 1.0)
    monkeypatch.setattr(push, "_BEHIND_SECONDS", 1.0)
    large = json.dumps({"x": "x" * 300_000})
    sent: list[int] = []

    def message(*_: object) -> Message:
        sent.append(len(large))
        return Message(1, large)

    monkeypatch.setattr(Updates, "message", message)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", urlsplit(server.url).port))
        client.sendall(b"GET /live/stream?browser=a HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: server.streams.count == 1, "the stream", SECONDS)

        def is_over() -> bool:
            server.move()
            return server.streams.count == 0

        until(is_over, "the end of a stream that nobody reads", SECONDS)
        assert len(sent) < 8  # what fits into the buffers of both kernels, and one message
        client.settimeout(SECONDS)
        with contextlib.suppress(ConnectionResetError):
            while client.recv(1 << 20):
                pass


def test_a_stream_keeps_nothing_of_what_it_has_sent(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    large = json.dumps({"x": "x" * 300_000})
    texts = iter([large] * 8)
    monkeypatch.setattr(Updates, "message", lambda *_: Message(1, next(texts, "{}")))

    def held() -> int:
        """Bytes in the buffers of the connections, sent ones too."""
        files = [it.buf.getfile() for it in gc.get_objects() if isinstance(it, OverflowableBuffer) and it.buf]
        kept = [file for file in files if isinstance(file, io.BytesIO) and not file.closed]
        return sum(len(file.getvalue()) for file in kept)

    before = held()
    stream = server.ask()
    while read(stream):
        server.move()
    until(lambda: held() - before < len(large), "empty buffers", SECONDS)
    stream.close()


def test_connections_that_only_exist_keep_no_reader_out(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_MOST_CONNECTIONS", 10)
    stream = server.ask(path="/live/stream")
    read(stream)
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection(("127.0.0.1", urlsplit(server.url).port), SECONDS))
        answer = server.ask("/live/view")
        assert json.loads(answer.read())["parts"]
        server.move()
        assert read(stream)["before"]
    stream.close()


def test_streams_are_bounded_in_all_and_for_each_browser(server: Server) -> None:
    server.streams._most = 6
    held = [server.ask(path="/live/stream", browser="a") for _ in range(4)]
    one_more = server.ask(path="/live/stream", browser="a")
    assert (one_more.status, one_more.read()) == (503, b"this browser has 4 streams\n")
    held += [server.ask(path="/live/stream", browser=name) for name in "bc"]
    another = server.ask(path="/live/stream", browser="d")
    assert (another.status, another.read()) == (503, b"all 6 streams of the server are in use\n")
    assert server.ask("/live/view", browser="d").status == 200
    for stream in held:
        read(stream)
        stream.close()
    until(lambda: server.streams.count == 0, "the end of the streams", SECONDS)


def test_a_page_of_another_site_and_other_methods_get_no_stream(server: Server) -> None:
    for site in ("cross-site", "same-site"):
        assert server.ask(path="/live/stream", **{"Sec-Fetch-Site": site}).status == 403
    assert server.ask(path="/live/stream", method="HEAD").status == 405
    assert server.streams.count == 0


@pytest.mark.parametrize(
    "given",
    [
        {"shown": "9" * 400},
        {"shown": "٣"},
        {"shown": "-1"},
        {"path": "/nowhere\u202e"},
        {"search": "a=1&" * 5000},
        {"search": urlencode({"groups": "<script>", "kind": "\x00"}), "browser": "x" * 9000},
    ],
    ids=["a long number", "other digits", "a negative number", "no page", "many values", "odd values"],
)
def test_an_impossible_request_gets_all_parts(given: dict[str, str], fleet: Fleet) -> None:
    fleet.at(0)
    answer = create(fleet.store).server.test_client().get(f"/live/view?{urlencode(given)}")
    assert (answer.status_code, answer.get_json()["before"]) == (200, None)


def test_nobody_looking_means_few_samples_and_a_reader_gets_a_new_one_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_IDLE_INTERVAL", 3600.0)
    taken: list[int] = []

    def sample() -> Snapshot:
        taken.append(1)
        return Snapshot(len(taken), ())

    store = Store(sample, interval=0.01)
    store._looked -= 3600
    store.start()
    try:
        assert len(taken) == 1
        assert store.wait(store.view.sequence, SECONDS).sequence > 1
        until(lambda: len(taken) > 5, "the full rate", SECONDS)
    finally:
        store.close()


LATE = """
window.heliograph.take({before: null, drawing: 7, now: {"verdict.className": "x"}, stamp: {},
                        parts: {"receivers.children": {set: "late"}, "throughput.figure": {set: {}}}});
"""
HIDE = """
Object.defineProperty(document, "hidden", {value: arguments[0], configurable: true});
document.dispatchEvent(new Event("visibilitychange"));
"""


def test_an_answer_that_arrives_after_the_reader_has_left_the_page_changes_nothing(
    server: Server, driver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, gate, held = Updates.message, threading.Event(), threading.Event()

    def message(self: Updates, path: str, values: Any, shown: int | None) -> Message:
        if path == "/" and shown is not None:
            held.set()
            gate.wait(SECONDS)
        return made(self, path, values, shown)

    monkeypatch.setattr(Updates, "message", message)
    driver.get(server.url)
    until(lambda: "slow is" in seen(driver, "verdict"), "the first message", SECONDS)
    server.fleet.at(2)
    assert held.wait(SECONDS), "a message that is held up"
    click_to(driver, "a[href='/lab']", lambda: seen(driver, "lab-taken") != "", "the lab", SECONDS)
    driver.execute_script(LATE)
    gate.set()
    before = seen(driver, "lab-taken")

    def has_moved() -> bool:
        server.fleet.at(3)
        return seen(driver, "lab-taken") != before

    until(has_moved, "a newer sample on the lab", SECONDS)
    assert driver.execute_script("return document.getElementById('receivers')") is None
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_a_hidden_tab_has_no_stream_and_a_refused_or_restarted_one_comes_back(fleet: Fleet, driver: Any) -> None:
    port = free_port()
    with serving_fleet(fleet, port=port) as server:
        driver.get(f"{server.url}control")  # a page without charts, which a busy machine draws slowly
        until(lambda: server.streams.count == 1, "the stream", SECONDS)
        driver.execute_script(HIDE, True)
        until(lambda: server.streams.count == 0, "the end of the stream", SECONDS)
        server.streams._most = 0
        driver.execute_script(HIDE, False)
        until(lambda: "requested: no stream at present" in seen(driver, "act-state"), "the word about it", SECONDS)
        assert seen(driver, "act-state").startswith("● live")
        server.streams._most = 32
        until(lambda: server.streams.count == 1, "the stream again", SECONDS)
        until(lambda: "no stream" not in seen(driver, "act-state"), "the word without it", SECONDS)
        fleet.now_ns += 60 * 10**9
        until(lambda: "stale last sample 60 s ago" in seen(driver, "act-state"), "the age", SECONDS)
    until(lambda: "disconnected" in seen(driver, "act-state"), "the end of the server", SECONDS)
    fleet.store = Store(fleet.sample)
    with serving_fleet(fleet, port=port) as server:
        until(lambda: "live" in seen(driver, "act-state"), "the server again", SECONDS)
        until(lambda: server.streams.count == 1, "its stream", SECONDS)
    assert [entry for entry in driver.get_log("browser") if "ReferenceError" in entry["message"]] == []
