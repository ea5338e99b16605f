"""The built-in module that logs what changes."""

from __future__ import annotations

import io
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from heliograph.engine import catalogue
from heliograph.monitor.errors import UserError
from heliograph.monitor.log import LogModule
from heliograph.monitor.log_output import FileOutput, SocketOutput
from heliograph.monitor.model import Snapshot
from heliograph.monitor.modules import Direction, Feed, Lane, PythonSink, Topic, open_module
from heliograph.monitor.sampler import Sampler
from tests.fleet import sample_fleet

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def _lines(text: str, what: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, text.splitlines()) if line["what"] == what]


def test_only_what_changes_is_logged(segments: Path) -> None:
    stream = io.StringIO()
    module = LogModule(stream=stream)
    module.describe(catalogue.scopes())
    now = START
    with Sampler(segments, clock=lambda: now) as sampler:
        for moment in (0, 1):
            sample_fleet(segments, moment, START)
            now = START + moment * SECOND
            module.snapshot(sampler.sample())
            length = len(stream.getvalue())
    first = stream.getvalue()
    assert len(_lines(first, "instance")) == 5
    changes = _lines(first, "receiver")
    assert {(line["instance"], line["to"]) for line in changes} == {
        ("alpha", "ok"),
        ("bravo", "ok"),
        ("slow", "falling_behind"),
        ("lossy", "lossy"),
    }
    assert len(changes) == 16, "the second snapshot changed nobody's state"
    assert length == len(first)


def test_events_and_ends_are_logged(segments: Path) -> None:
    stream = io.StringIO()
    module = LogModule(stream=stream)
    now = START
    with Sampler(segments, lambda: now, lambda pid: START - 100 * SECOND) as sampler:
        sample_fleet(segments, 0, START)
        snapshot = sampler.sample()
        module.snapshot(snapshot)
        for event in snapshot.events:
            module.event(event)
        now += 5 * SECOND
        module.snapshot(sampler.sample())
    module.close()
    assert [line["name"] for line in _lines(stream.getvalue(), "event")].count("instance_started") == 5
    ends = _lines(stream.getvalue(), "instance")[5:]
    assert {(line["from"], line["to"]) for line in ends} == {("live", "stale")}
    assert not stream.closed


def test_a_file_is_appended_to(tmp_path: Path, segments: Path) -> None:
    path = tmp_path / "log.jsonl"
    sample_fleet(segments)
    for _ in range(2):
        module = LogModule(str(path))
        with Sampler() as sampler:
            module.snapshot(sampler.sample(histograms=False))
        module.close()
    assert len(_lines(path.read_text(), "instance")) == 10


def test_a_file_that_cannot_be_opened_is_a_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be opened"):
        LogModule(str(tmp_path / "no" / "log"))


class Clock:
    """A clock that stands still unless told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _sampled(segments: Path) -> Snapshot:
    sample_fleet(segments)
    with Sampler(segments) as sampler:
        return sampler.sample()


def test_values_have_all_of_a_snapshot(tmp_path: Path, segments: Path) -> None:
    path = tmp_path / "log"
    snapshot = _sampled(segments)
    module = LogModule(f"values,path={path}")
    module.snapshot(snapshot)
    module.close()
    (head,) = _lines(path.read_text(), "snapshot")
    assert [item["instance"] for item in head["instances"]] == [item.name for item in snapshot.instances]
    told = _lines(path.read_text(), "object")
    objects = [item for instance in snapshot.instances for item in instance.objects]
    assert [(line["scope"], line["labels"], line["info"]) for line in told] == [
        (item.scope, dict(item.labels), dict(item.info)) for item in objects
    ]
    assert [line["values"] for line in told] == [dict(item.values) for item in objects]
    for line, item in zip(told, objects, strict=True):
        assert line["histograms"].keys() == item.histograms.keys()
        for name, found in item.histograms.items():
            cells = line["histograms"][name]["cells"]
            assert sum(count for _, count in cells) == found.count
            assert all(found.counts[place] == count for place, count in cells)
    assert module.lost == 0


def test_values_have_a_rate_and_lines_over_it_are_counted(tmp_path: Path, segments: Path) -> None:
    path = tmp_path / "log"
    snapshot = _sampled(segments)
    module = LogModule(f"histograms=off,rate=2,values,path={path}")
    for _ in range(5):
        module.snapshot(snapshot)
    module.close()
    told = _lines(path.read_text(), "snapshot") + _lines(path.read_text(), "object")
    assert len(told) >= 2
    assert len(told) + module.lost == 5 * (1 + sum(len(item.objects) for item in snapshot.instances))
    assert not any("histograms" in line for line in told)


def test_an_audit_has_events_and_topics_only_and_all_of_them(tmp_path: Path, segments: Path) -> None:
    path = tmp_path / "log"
    snapshot = _sampled(segments)
    lane = open_module(f"log=events-only,path={path}", process=True)
    feed = Feed()
    for given in (snapshot, snapshot, Snapshot(snapshot.time_ns + SECOND, ())):
        feed.give(given, [lane])
    assert lane.close(60)
    stats = lane.stats
    assert (stats.events_dropped, stats.topics_dropped, stats.lost, stats.errors) == (0, 0, 0, 0)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {line["what"] for line in lines} == {"event", "topic_created", "topic_destroyed"}
    assert len(lines) == stats.events + stats.topics
    events = _lines(path.read_text(), "event")
    assert {line["number"] for line in events} == {event.number for event in snapshot.events}
    assert all(line["id"] == catalogue.events()[line["name"]].id for line in events)
    assert {"instance", "labels", "arguments", "text", "time_ns"} <= events[0].keys()


def test_a_topic_is_a_line(tmp_path: Path) -> None:
    stream = io.StringIO()
    module = LogModule(stream=stream)
    topic = Topic(6, "alpha", 0xABC, Direction.RECEIVE, "A", "s1", "e")
    module.topic_created(topic)
    module.topic_destroyed(topic)
    fields = {"instance": "alpha", "direction": "receive", "topic": "A", "stream": "s1", "endpoint": "e"}
    expected = {"time_ns": 6, **fields, "incarnation": "0000000000000abc"}
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [
        {"what": "topic_created", **expected},
        {"what": "topic_destroyed", **expected},
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("path=/tmp/x,to=tcp://a:1", "give either"),
        ("values,colour=red", "unknown option 'colour=red'"),
        ("path=/proc/nowhere/x", "/proc/nowhere/x cannot be opened"),
        ("to=http://a", "to=http://a: must be tcp://HOST:PORT"),
        ("to=tcp://nowhere", "must be"),
        ("to=tcp://a:100000", "must be"),
        ("to=unix://relative", "must be"),
        ("path=/tmp/x,rate=0", "rate=0"),
        ("path=/tmp/x,rate=-1", "rate=-1"),
        ("path=", "unknown option 'path='"),
    ],
)
def test_options_that_cannot_be_are_named(options: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        LogModule(options)


def _write(output: FileOutput | SocketOutput, *lines: str) -> str:
    """What the output complains of while it writes lines; empty: nothing."""
    try:
        output.write([f"{line}\n".encode() for line in lines])
    except UserError as error:
        return str(error)
    return ""


def test_a_file_that_was_moved_away_is_opened_again(tmp_path: Path) -> None:
    path, moved, clock = tmp_path / "log", tmp_path / "log.1", Clock()
    output = FileOutput(str(path), clock)
    _write(output, "one")
    path.rename(moved)
    _write(output, "two")  # the path is checked once a second
    clock.now += 1
    _write(output, "three")
    output.close()
    assert moved.read_text() == "one\ntwo\n"
    assert path.read_text() == "three\n"
    assert output.lost == 0


def test_a_full_disk_loses_lines_and_the_host_counts_them(segments: Path) -> None:
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("no /dev/full here")
    output = FileOutput("/dev/full")
    assert "/dev/full cannot be written: No space left" in _write(output, "one", "two")
    assert output.lost == 2
    output.close()
    told: list[str] = []
    lane = Lane("log", PythonSink(LogModule("values,path=/dev/full")), tell=told.append)
    Feed().give(_sampled(segments), [lane])
    assert lane.close(60)
    assert lane.stats.lost > 9
    assert len([text for text in told if "No space left" in text]) == 1, "a trouble is reported once while it lasts"


def _listening(path: Path) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    found.bind(str(path))
    found.listen(4)
    return found


def test_a_peer_that_comes_late_gets_the_lines_that_waited(tmp_path: Path) -> None:
    path, clock = tmp_path / "socket", Clock()
    output = SocketOutput(f"unix://{path}", clock)
    assert "cannot be reached" in _write(output, "one")
    with _listening(path) as listener:
        assert _write(output, "two") == "", "it is not tried again before a second is over"
        clock.now += 1
        assert _write(output, "three") == ""
        peer, _ = listener.accept()
        assert peer.recv(64) == b"one\ntwo\nthree\n"
        peer.close()
        clock.now += 1
        assert "cannot be written to" in _write(output, "four")
        clock.now += 1
        assert _write(output, "five") == ""
        again, _ = listener.accept()
        assert again.recv(64).endswith(b"five\n")
        output.close()
        again.close()
    assert output.lost == 0


def test_a_peer_that_does_not_read_costs_whole_lines_and_nobody_waits(tmp_path: Path) -> None:
    line, lines, path = "x" * 999, 6000, tmp_path / "socket"
    with _listening(path) as listener:
        output = SocketOutput(f"unix://{path}")
        began = time.monotonic()
        complaints = {_write(output, line) for _ in range(lines)}
        output.close()
        assert time.monotonic() - began < 10
        assert f"unix://{path} does not accept lines fast enough" in complaints
        peer, _ = listener.accept()
        with peer:
            got = b"".join(iter(lambda: peer.recv(1 << 16), b""))
    assert got.count(b"\n") + output.lost == lines, "all whole but the last, whose rest was never sent"


def test_datagrams_are_lines() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        peer.settimeout(10)
        output = SocketOutput(f"udp://127.0.0.1:{peer.getsockname()[1]}")
        assert _write(output, "one", "two") == ""
        assert [peer.recv(64), peer.recv(64)] == [b"one\n", b"two\n"]
        assert "Message too long" in _write(output, "x" * 70_000)
        assert output.lost == 1
        output.close()
