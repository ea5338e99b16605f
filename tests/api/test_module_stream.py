"""Modules at 100 snapshots a second are told every topic of a running engine, however short its life, in order."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path

from heliograph.engine import Instance, catalogue
from heliograph.monitor.commands.run import feed
from heliograph.monitor.model import Event, Snapshot
from heliograph.monitor.modules import Direction, Lane, PythonSink, Topic
from heliograph.monitor.sampler import Sampler

TOPICS = 60


class Diary:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.words: list[tuple[str, str, int]] = []
        self.snapshots = 0

    def describe(self, scopes: Mapping[str, catalogue.Scope]) -> None:
        self.words.append(("describe", "", 0))

    def snapshot(self, snapshot: Snapshot) -> None:
        self.snapshots += 1

    def event(self, event: Event) -> None:
        self.words.append((event.name, event.labels.get("topic", ""), event.time_ns))

    def topic_created(self, topic: Topic) -> None:
        self.words.append((f"{topic.direction} created", topic.topic, topic.time_ns))

    def topic_destroyed(self, topic: Topic) -> None:
        self.words.append((f"{topic.direction} destroyed", topic.topic, topic.time_ns))

    def close(self) -> None:
        self.words.append(("close", "", 0))


def test_topics_that_come_and_go_faster_than_snapshots_are_all_told_in_order(segments: Path, unicast: str) -> None:
    diary = Diary()
    lane = Lane("diary", PythonSink(diary))
    stop, watching = threading.Event(), threading.Event()
    found: list[int] = []

    def watch() -> None:
        with Sampler(segments) as sampler:
            watching.set()
            found.append(feed(sampler, [lane], 0.01, stop).missed)

    thread = threading.Thread(target=watch)
    thread.start()
    assert watching.wait(10)
    with Instance(mode="thread", name="alpha") as instance:
        receiver = instance.receiver(unicast, "SHORT.0")
        for number in range(TOPICS):
            with instance.transmitter(unicast, f"SHORT.{number}", linger=0.0) as transmitter:
                transmitter.send(b"x")
        end = time.monotonic() + 10
        while not any(word[0] == f"{Direction.RECEIVE} created" for word in diary.words) and time.monotonic() < end:
            time.sleep(0.01)
        receiver.close()
    stop.set()
    thread.join(20)
    assert lane.close(20)

    told = [(what, topic) for what, topic, _ in diary.words if topic and " " in what]
    sent = [word for word in told if word[0].startswith(Direction.TRANSMIT)]
    assert sent == [
        (f"transmit {what}", f"SHORT.{number}") for number in range(TOPICS) for what in ("created", "destroyed")
    ]
    assert [word for word in told if word[0].startswith(Direction.RECEIVE)] == [
        ("receive created", "SHORT.0"),
        ("receive destroyed", "SHORT.0"),
    ]
    moments = [moment for _, _, moment in diary.words if moment]
    assert moments == sorted(moments)
    assert len(set(moments)) == len(moments), "no two of one instance have the same moment"
    assert found == [0]
    stats = lane.stats
    assert stats.snapshots + stats.dropped == stats.offered
    assert stats.topics == 2 * TOPICS + 2
    assert (stats.topics_dropped, stats.events_dropped, stats.errors) == (0, 0, 0)
