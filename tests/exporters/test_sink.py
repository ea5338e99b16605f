"""Each exporter on a lane of its own: measured, and no trouble to the others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from heliograph.exporters import Exporter
from heliograph.exporters.sink import ExporterSink
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Snapshot
from heliograph.monitor.modules import Lane
from tests.exporters.making import at

WAIT = 10.0


class Recorder:
    """An exporter that does what a test tells it to, and remembers."""

    def __init__(self, doing: Callable[[int], None] = lambda number: None) -> None:
        self.seen: list[int] = []
        self.closed = 0
        self._doing = doing
        self._changed = threading.Condition()

    def publish(self, snapshot: Snapshot) -> None:
        with self._changed:
            self.seen.append(second_of(snapshot))
            self._changed.notify_all()
        self._doing(second_of(snapshot))

    def close(self) -> None:
        self.closed += 1

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.seen) >= count, WAIT)


def _lane(name: str, exporter: Exporter, **settings: Any) -> Lane:
    return Lane(name, ExporterSink(exporter), depth=1, moments=0, kind="exporter", **settings)


def second_of(snapshot: Snapshot) -> int:
    return (snapshot.time_ns - at(0).time_ns) // 1_000_000_000


def test_snapshots_are_published_and_counted() -> None:
    recorder = Recorder()
    ticks = iter(range(0, 1_000_000, 7))
    lane = _lane("x", recorder, monotonic_ns=lambda: next(ticks), wall_ns=lambda: 42)
    for second in (1, 2, 3):
        lane.offer(at(second))
        recorder.wait_for(second)
    assert lane.close(WAIT)
    assert recorder.seen == [1, 2, 3]
    state = lane.stats
    assert (state.name, state.succeeded, state.errors, state.dropped) == ("x", 3, 0, 0)
    assert (state.duration_ns, state.success_ns, state.error) == (7, 42, "")


def test_a_busy_exporter_holds_nobody_up_and_gets_the_newest_next() -> None:
    release = threading.Event()
    recorder = Recorder(lambda number: None if number > 1 else _wait(release))
    lane = _lane("slow", recorder)
    lane.offer(at(1))
    recorder.wait_for(1)
    for second in (2, 3, 4):
        lane.offer(at(second))
    assert lane.stats.dropped == 2
    release.set()
    assert lane.close(WAIT)
    assert recorder.seen == [1, 4]
    assert recorder.closed == 1


def _wait(event: threading.Event) -> None:
    assert event.wait(WAIT)


def test_the_snapshot_that_waits_is_published_before_closing() -> None:
    release = threading.Event()
    recorder = Recorder(lambda number: _wait(release))
    lane = _lane("x", recorder)
    lane.offer(at(1))
    recorder.wait_for(1)
    lane.offer(at(2))
    release.set()
    assert lane.close(WAIT)
    assert (recorder.seen, recorder.closed) == ([1, 2], 1)


def test_a_failure_is_counted_told_once_and_survived() -> None:
    told: list[str] = []

    def failing(number: int) -> None:
        if number < 4:
            raise OSError("disk full")

    recorder = Recorder(failing)
    lane = _lane("spool", recorder, tell=told.append)
    for second in (1, 2, 3, 4):
        lane.offer(at(second))
        recorder.wait_for(second)
    assert lane.close(WAIT)
    assert (lane.stats.succeeded, lane.stats.errors, lane.stats.error) == (1, 3, "")
    assert told == ["exporter spool failed while publishing: OSError: disk full", "exporter spool works again"]


def test_a_user_error_is_told_in_its_own_words() -> None:
    told: list[str] = []

    def failing(number: int) -> None:
        raise UserError("the spool cannot be written: no space left")

    lane = _lane("spool", Recorder(failing), tell=told.append)
    lane.offer(at(1))
    assert lane.close(WAIT)
    assert told == ["exporter spool failed while publishing: the spool cannot be written: no space left"]


def test_an_exporter_that_fails_to_close_is_counted_too() -> None:
    class Stubborn(Recorder):
        def close(self) -> None:
            raise ValueError

    told: list[str] = []
    lane = _lane("x", Stubborn(), tell=told.append)
    assert lane.close(WAIT)
    assert lane.stats.errors == 1
    assert told == ["exporter x failed while closing: ValueError"]


def test_an_exporter_that_hangs_is_left_behind_on_closing() -> None:
    told: list[str] = []
    release = threading.Event()
    recorder = Recorder(lambda number: _wait(release))
    lane = _lane("x", recorder, tell=told.append)
    lane.offer(at(1))
    recorder.wait_for(1)
    assert not lane.close(0.01)
    assert "is abandoned" in told[0]
    release.set()
    assert lane.close(WAIT)


@pytest.mark.parametrize("count", [0, 1])
def test_an_idle_lane_closes_at_once(count: int) -> None:
    recorder = Recorder()
    lane = _lane("x", recorder)
    for second in range(count):
        lane.offer(at(second))
    assert lane.close(WAIT)
    assert recorder.closed == 1
