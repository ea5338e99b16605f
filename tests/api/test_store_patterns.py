"""Stores that keep topics by patterns, and stores that divide the streams of their sources."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from heliograph.engine import Instance, OptionError, TimeoutExpired
from heliograph.engine.store.found_topics import FoundTopics
from heliograph.engine.store.server import StoreServer
from heliograph.monitor.cli import main
from heliograph.monitor.segment import Segment
from tests.ports import free_port
from tests.stores import read, read_segment

from .conftest import until
from .test_store_server import Load, stop

Serve: TypeAlias = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def serve(segments: Path) -> Iterator[Serve]:
    """Starts `heliograph store serve`; returns when it keeps. What still runs at the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def start(folder: Path, endpoint: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "heliograph.monitor.cli", "store", "serve", str(folder), endpoint]
        process = subprocess.Popen(
            [*command, *arguments, "-o", f"name={folder.name}", "--batch-time", "0.005s"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stderr
        assert process.stderr.readline().startswith("keeping ")
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def step_until(server: StoreServer, condition: Callable[[], bool], seconds: float = 20) -> bool:
    def look() -> bool:
        server.step(0.02)
        return condition()

    return until(look, seconds=seconds)


def server_segment(folder: Path) -> Path:
    (path,) = (one for one in folder.iterdir() if "limited" in one.name and one.suffix != ".flight")
    return path


def kept(folder: Path) -> dict[str, list[int]]:
    """Numbers of the messages of each topic, of all streams."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for path in sorted(folder.glob("*.seg")):
        for _, _, messages in read_segment(path.read_bytes())[5]:
            for one in messages:
                numbers[one.topic].append(one.number)
    return numbers


@pytest.mark.parametrize("scheme", ["rmm", "rmm+unicast", "rum", "shm"])
def test_topics_are_kept_from_their_first_message(tmp_path: Path, multicast: str, scheme: str) -> None:
    endpoint = {
        "rmm": multicast,
        "shm": f"shm://patterns{free_port()}",
    }.get(scheme, f"{scheme}://127.0.0.1:{free_port()}")
    with StoreServer(tmp_path / "store", name="store") as server, Instance(name="source") as source:
        server.keep_matching(endpoint, "PRICES.*")
        for number, topic in enumerate(("PRICES.A", "ORDERS", "PRICES.B", "PRICES")):
            transmitter = source.transmitter(endpoint, topic)
            for message in range(200):
                transmitter.send(b"%d" % message)
            expected = 200 if number < 2 else 400
            assert step_until(server, lambda expected=expected: server.counts().kept == expected)  # type: ignore[misc]
        assert server.topics == {"PRICES.A", "PRICES.B"}
        assert server.counts().topics == 2
    assert kept(tmp_path / "store") == {"PRICES.A": list(range(200)), "PRICES.B": list(range(200))}


def not_kept(segments: Path) -> list[str]:
    """Texts of the events of all instances about topics that are acknowledged and not kept."""
    texts = []
    for path in segments.iterdir():
        if not path.name.endswith(".flight"):
            with Segment(path) as segment:
                texts += [event.text for event in segment.events().events if event.name == "topic_not_kept"]
    return texts


@pytest.mark.parametrize("acks", [0, 1])
def test_a_topic_that_is_acknowledged_and_not_kept_is_reported(
    tmp_path: Path, multicast: str, segments: Path, acks: int
) -> None:
    waits = {"acks": 1} if acks else {}
    with StoreServer(tmp_path / "store", name="store") as server, Instance(name="source") as source:
        server.keep(multicast, "ORDERS")
        transmitters = [
            source.transmitter(multicast, name, announce_interval=0.05, **waits) for name in ("ORDERS", "FILLS", "NEWS")
        ]

        def send() -> bool:
            for one in transmitters:
                one.send(b"x")
            return server.counts().received > 0 and bool(not_kept(segments)) == bool(acks)

        assert step_until(server, send)
        step_until(server, lambda: send() and False, seconds=0.4)

        def is_acked() -> bool:
            with contextlib.suppress(TimeoutExpired):
                transmitters[1].wait_acked(1, timeout=0.01)
                return True
            return False

        if acks:
            assert step_until(server, is_acked), "to its source the topic is stable"
        texts = not_kept(segments)
    assert len(texts) == acks, "once a stream, where the source waits"
    assert all("topic FILLS of stream" in text for text in texts)


def test_a_topic_has_one_receiver_whatever_matches_it(tmp_path: Path, multicast: str) -> None:
    with StoreServer(tmp_path / "store", name="store") as server, Instance(name="source") as source:
        server.keep(multicast, "PRICES.A")
        server.keep_matching(multicast, "PRICES.*")
        server.keep_matching(multicast, "*")
        transmitters = [source.transmitter(multicast, topic) for topic in ("PRICES.A", "PRICES.B", "X")]
        assert step_until(server, lambda: len(server.topics) == 3)
        for transmitter in transmitters:
            for _ in range(10):
                transmitter.send(b"x")
        assert step_until(server, lambda: server.counts().received == 30)
        assert server.counts().repeated == 0
    assert kept(tmp_path / "store") == {key: list(range(10)) for key in ("PRICES.A", "PRICES.B", "X")}


def test_a_new_store_has_all_that_sources_wait_for(tmp_path: Path, multicast: str) -> None:
    """Also with more topics than the announcements of one packet."""
    with Instance(name="source") as source:
        topics = [f"PRICES.{'X' * 50}.{number}" for number in range(120)]
        transmitters = [source.transmitter(multicast, topic, acks=1) for topic in topics]
        for transmitter in transmitters:
            transmitter.send(b"before")
        time.sleep(0.3)
        with StoreServer(tmp_path / "store", name="store") as server:
            server.keep_matching(multicast, "PRICES.*")
            assert step_until(server, lambda: server.counts().kept == len(topics))
            assert server.counts().lost == 0
    assert kept(tmp_path / "store") == {key: [0] for key in topics}


def test_a_store_that_is_killed_lacks_nothing_of_the_topics_it_had_found(
    serve: Serve, tmp_path: Path, multicast: str
) -> None:
    folder = tmp_path / "store"
    with Instance(name="source") as source:
        server = serve(folder, multicast, "OR*")
        transmitter = source.transmitter(multicast, "ORDERS", acks=1, send_window=1024)
        load = Load(transmitter, 20000, pause=0.002)
        for _ in range(4):
            time.sleep(0.3)
            server.send_signal(signal.SIGKILL)
            server.wait()
            server = serve(folder, multicast, "OR*")
        load.join(60)
        assert load.sent == load.count
        transmitter.wait_acked(1, timeout=20)
        stop(server)
    assert [one.number for one in read(folder)] == list(range(20000))
    assert json.loads((folder / "topics.json").read_text()) == [[multicast, "ORDERS"]]


def test_topics_beyond_the_limit_are_refused_counted_and_reported(
    tmp_path: Path, segments: Path, multicast: str
) -> None:
    with StoreServer(tmp_path / "store", name="limited") as server, Instance(name="source") as source:
        server.keep_matching(multicast, "*", topics_max=2)
        transmitters = [source.transmitter(multicast, f"T{number}") for number in range(3)]
        assert step_until(server, lambda: server.counts().topics_refused > 0)
        for transmitter in transmitters:
            transmitter.send(b"x")
        assert step_until(server, lambda: server.counts().kept == 2)
        assert (server.counts().topics, len(server.topics)) == (2, 2)
        with Segment(server_segment(segments)) as segment:
            texts = [event.text for event in segment.events().events if event.name == "topic_refused"]
        assert texts
        assert "matches * and is not received: 2 topics match * already, which is the limit" in texts[0]


def test_a_damaged_or_old_list_of_topics_costs_nothing(tmp_path: Path, multicast: str) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    for content in ("", "{", "[[1]]", "[3]", '{"a": 1}', "[" * 100000):
        (folder / "topics.json").write_text(content)
        assert FoundTopics(folder).matching(multicast, "*") == []
    known = FoundTopics(folder)
    known.replace([(multicast, "A1"), (multicast, "A[1]"), (multicast, "B"), ("shm://other", "A2")])
    assert FoundTopics(folder).matching(multicast, "A*") == ["A1", "A[1]"]
    assert FoundTopics(folder).matching(multicast, "A[1]") == ["A[1]"]
    with StoreServer(folder, name="store") as server:
        server.keep_matching(multicast, "A*", topics_max=1)  # fewer than are known
        server.step(0)
        assert server.topics == {"A1"}


def test_mistakes_are_named(tmp_path: Path, multicast: str) -> None:
    with StoreServer(tmp_path / "store", name="store") as server:
        for limit in (0, 65537):
            with pytest.raises(OptionError, match=f"topics_max is from 1 to 65,536, not {limit}"):
                server.keep_matching(multicast, "*", topics_max=limit)
        with pytest.raises(OptionError, match="with payload=raw no topics are announced: name the topic"):
            server.keep_matching(multicast, "*", payload="raw")


def test_serve_says_which_topics_it_found(serve: Serve, tmp_path: Path, multicast: str) -> None:
    server = serve(tmp_path / "store", multicast, "ORDERS", "PRICES.*", "--topics-max", "7", "--json")
    with Instance(name="source") as source:
        for topic in [f"PRICES.{number}" for number in range(9)]:
            source.transmitter(multicast, topic).send(b"x")
        time.sleep(3)
    out, errors = stop(server)
    counts = json.loads(out)
    assert counts["topics"] == 8
    assert counts["topics_refused"] > 0
    assert "found: PRICES.0, PRICES.1, PRICES.2, PRICES.3, PRICES.4, 2 more; keeping 8 topics\n" in errors


def test_help_teaches_patterns(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["store", "serve", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "a pattern, in which * stands for any characters" in text
    assert '"PRICES.*"' in text
