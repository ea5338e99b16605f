"""Modules: each on its own thread, dropped from when slow, alone with its errors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from heliograph.engine import catalogue
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Event, Snapshot
from heliograph.monitor.modules import (
    GROUP,
    Direction,
    Lane,
    Module,
    PythonSink,
    Topic,
    TopicChange,
    available,
    load,
)

PATIENCE = 10.0
"""Seconds until a test of threads gives up; none waits as long when all is well."""


class _Recorder:
    """Remembers what it is given; can be held up and made to fail."""

    def __init__(self, options: str = "") -> None:
        self.options = options
        self.calls: list[object] = []
        self.threads: set[int] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.fails: Callable[[object], bool] = lambda thing: False

    def _take(self, thing: object) -> None:
        self.threads.add(threading.get_ident())
        self.entered.set()
        self.gate.wait(PATIENCE)
        self.calls.append(thing)
        if self.fails(thing):
            raise RuntimeError(f"cannot take {thing!r}")

    def describe(self, scopes: Mapping[str, catalogue.Scope]) -> None:
        self.calls.append(tuple(scopes))

    def snapshot(self, snapshot: Snapshot) -> None:
        self._take(snapshot.time_ns)

    def event(self, event: Event) -> None:
        self._take(event.text)

    def close(self) -> None:
        self.calls.append("close")


def _snapshot(number: int, *events: str) -> Snapshot:
    told = (Event("alpha", 1, 0, number, "packets_lost", "error", {}, {}, text) for text in events)
    return Snapshot(number, (), tuple(told))


SCHEMA = tuple(catalogue.scopes())


def _lane(name: str, module: Module, **settings: Any) -> Lane:
    return Lane(name, PythonSink(module), **settings)


def _offer(lane: Lane, number: int, *events: str) -> None:
    snapshot = _snapshot(number, *events)
    lane.offer(snapshot, snapshot.events, number)


def test_a_module_is_told_the_schema_then_snapshots_with_their_events_then_the_end() -> None:
    module = _Recorder()
    lane = _lane("recorder", module)
    _offer(lane, 1, "a", "b")
    _offer(lane, 2)
    assert lane.close(PATIENCE)
    assert module.calls == [SCHEMA, 1, "a", "b", 2, "close"]
    assert module.threads.isdisjoint({threading.get_ident()})
    assert len(module.threads) == 1
    stats = lane.stats
    assert (stats.offered, stats.snapshots, stats.events, stats.dropped, stats.errors) == (2, 2, 2, 0, 0)


def test_a_slow_module_misses_the_oldest_snapshots_but_none_of_their_events() -> None:
    module = _Recorder()
    module.gate.clear()
    lane = _lane("slow", module, depth=2)
    _offer(lane, 1)
    assert module.entered.wait(PATIENCE)
    for number in range(2, 7):  # returns at once although the module is busy
        _offer(lane, number, f"event {number}")
    assert (lane.stats.dropped, lane.stats.events_dropped) == (3, 0)
    module.gate.set()
    assert lane.close(PATIENCE)
    assert module.calls == [SCHEMA, 1, "event 2", "event 3", "event 4", 5, "event 5", 6, "event 6", "close"]
    stats = lane.stats
    assert (stats.offered, stats.snapshots, stats.dropped, stats.events) == (6, 3, 3, 5)


def test_events_are_dropped_only_when_too_many_wait_oldest_first_and_counted() -> None:
    module = _Recorder()
    module.gate.clear()
    lane = _lane("slow", module, depth=1, moments=3)
    _offer(lane, 1)
    assert module.entered.wait(PATIENCE)
    for number in range(2, 5):
        _offer(lane, number, f"{number} a", f"{number} b")
    module.gate.set()
    assert lane.close(PATIENCE)
    assert module.calls == [SCHEMA, 1, "3 b", 4, "4 a", "4 b", "close"]
    assert (lane.stats.events, lane.stats.events_dropped) == (3, 3)


def test_what_is_given_and_what_is_dropped_is_what_was_offered() -> None:
    """Whatever the order in which threads run."""
    module = _Recorder()
    lane = _lane("busy", module, depth=3, moments=40)
    events = 0
    for number in range(400):
        many = number % 5
        _offer(lane, number, *map(str, range(many)))
        events += many
    assert lane.close(PATIENCE)
    stats = lane.stats
    assert (stats.offered, stats.snapshots + stats.dropped, stats.events + stats.events_dropped) == (400, 400, events)
    numbers = [call for call in module.calls if isinstance(call, int)]
    assert numbers == sorted(numbers)
    assert len(numbers) == stats.snapshots


def test_an_error_is_counted_told_once_and_the_module_goes_on() -> None:
    module = _Recorder()
    module.fails = lambda thing: thing in (1, 2, "bad")
    told: list[str] = []
    lane = _lane("faulty", module, tell=told.append)
    _offer(lane, 1, "bad", "good")
    _offer(lane, 2)
    _offer(lane, 3)
    assert lane.close(PATIENCE)
    assert module.calls == [SCHEMA, 1, "bad", "good", 2, 3, "close"]
    assert (lane.stats.errors, lane.stats.snapshots, lane.stats.succeeded) == (3, 3, 1)
    assert lane.stats.last_error == "RuntimeError: cannot take 2"
    assert told[0] == "module faulty failed in snapshot: RuntimeError: cannot take 1"
    assert told[-1] == "module faulty works again"
    assert len(told) == 4


def test_the_same_error_again_and_again_is_told_once() -> None:
    class Faulty(_Recorder):
        def snapshot(self, snapshot: Snapshot) -> None:
            raise ValueError("always the same")

    told: list[str] = []
    lane = _lane("faulty", Faulty(), tell=told.append)
    for number in range(5):
        _offer(lane, number)
    assert lane.close(PATIENCE)
    assert lane.stats.errors == 5
    assert told == ["module faulty failed in snapshot: ValueError: always the same"]


def test_one_modules_trouble_is_not_anothers() -> None:
    slow, quick = _Recorder(), _Recorder()
    slow.gate.clear()
    lanes = [_lane("slow", slow, depth=1), _lane("quick", quick)]
    for number in range(5):
        for lane in lanes:
            _offer(lane, number)
    assert lanes[1].close(PATIENCE)
    assert quick.calls == [SCHEMA, 0, 1, 2, 3, 4, "close"]
    slow.gate.set()
    assert lanes[0].close(PATIENCE)


def test_a_module_that_does_not_stop_is_left_behind_and_its_queue_counted() -> None:
    module = _Recorder()
    module.gate.clear()
    lane = _lane("stuck", module, tell=lambda text: None)
    _offer(lane, 1)
    assert module.entered.wait(PATIENCE)
    _offer(lane, 2, "x")
    assert not lane.close(timeout=0.01)
    assert (lane.stats.dropped, lane.stats.events_dropped) == (1, 1)
    module.gate.set()


def test_a_module_without_methods_for_topics_is_not_asked_for_them() -> None:
    module = _Recorder()
    lane = _lane("old", module)
    topic = Topic(1, "alpha", 1, Direction.RECEIVE, "PRICES", "s", "e")
    lane.offer(_snapshot(1), [TopicChange(topic, created=True)], 1)
    assert lane.close(PATIENCE)
    assert module.calls == [SCHEMA, 1, "close"]
    assert (lane.stats.topics, lane.stats.errors) == (1, 0)


def _point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def test_a_module_is_found_by_its_entry_point_with_its_options() -> None:
    name, module = load("recorder=a=1,b", [_point("recorder", f"{__name__}:_Recorder")])
    assert name == "recorder"
    assert getattr(module, "options") == "a=1,b"  # noqa: B009 (not part of the protocol)


def test_a_module_that_is_not_installed_is_named_by_its_place() -> None:
    name, module = load("heliograph.monitor.log:LogModule", [])
    assert name == "heliograph.monitor.log:LogModule"
    module.close()


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("nobody", "known: .*recorder"),
        ("no.such.place:Thing", "no.such.place"),
        ("heliograph.monitor.log:Nothing", "Nothing"),
        ("broken", "ZeroDivisionError"),
    ],
)
def test_a_module_that_cannot_be_had_is_a_users_error(request_: str, said: str) -> None:
    points = [_point("recorder", f"{__name__}:_Recorder")]
    if request_ == "broken":
        points.append(_point("broken", f"{__name__}:_broken"))
    with pytest.raises(UserError, match=said):
        load(request_, points)


def _broken(options: str) -> _Recorder:
    raise ZeroDivisionError("by design")


def test_the_log_module_is_installed() -> None:
    assert "log" in available()
