"""Modules: each on its own thread, dropped from when slow, alone with its errors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint

import pytest

from heliograph.engine import catalogue
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Event, Snapshot
from heliograph.monitor.modules import GROUP, ModuleHost, available, load

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


def test_a_module_is_told_the_schema_then_snapshots_with_their_events_then_the_end() -> None:
    module = _Recorder()
    host = ModuleHost("recorder", module)
    host.offer(_snapshot(1, "a", "b"))
    host.offer(_snapshot(2))
    assert host.close(PATIENCE)
    assert module.calls == [SCHEMA, 1, "a", "b", 2, "close"]
    assert module.threads.isdisjoint({threading.get_ident()})
    assert len(module.threads) == 1
    stats = host.stats
    assert (stats.snapshots, stats.events, stats.dropped, stats.errors) == (2, 2, 0, 0)


def test_a_slow_module_is_dropped_from_oldest_first_and_never_waited_for() -> None:
    module = _Recorder()
    module.gate.clear()
    host = ModuleHost("slow", module, queue=2)
    host.offer(_snapshot(1))
    assert module.entered.wait(PATIENCE)
    for number in range(2, 7):  # returns at once although the module is busy
        host.offer(_snapshot(number, f"event {number}"))
    assert (host.stats.dropped, host.stats.events_dropped) == (3, 3)
    module.gate.set()
    assert host.close(PATIENCE)
    assert module.calls == [SCHEMA, 1, 5, "event 5", 6, "event 6", "close"]
    assert (host.stats.snapshots, host.stats.events) == (3, 2)


def test_an_error_is_counted_told_once_and_the_module_goes_on() -> None:
    module = _Recorder()
    module.fails = lambda thing: thing in (1, 2, "bad")
    told: list[str] = []
    host = ModuleHost("faulty", module, report=told.append)
    for snapshot in (_snapshot(1, "bad", "good"), _snapshot(2), _snapshot(3)):
        host.offer(snapshot)
    assert host.close(PATIENCE)
    assert module.calls == [SCHEMA, 1, "bad", "good", 2, 3, "close"]
    assert host.stats.errors == 3
    assert host.stats.last_error == "RuntimeError: cannot take 2"
    assert told[0] == "module faulty: RuntimeError: cannot take 1"
    assert len(told) == 3


def test_the_same_error_again_and_again_is_told_once() -> None:
    class Faulty(_Recorder):
        def snapshot(self, snapshot: Snapshot) -> None:
            raise ValueError("always the same")

    told: list[str] = []
    host = ModuleHost("faulty", Faulty(), report=told.append)
    for number in range(5):
        host.offer(_snapshot(number))
    assert host.close(PATIENCE)
    assert host.stats.errors == 5
    assert told == ["module faulty: ValueError: always the same"]


def test_one_modules_trouble_is_not_anothers() -> None:
    slow, quick = _Recorder(), _Recorder()
    slow.gate.clear()
    hosts = [ModuleHost("slow", slow, queue=1), ModuleHost("quick", quick)]
    for number in range(5):
        for host in hosts:
            host.offer(_snapshot(number))
    assert hosts[1].close(PATIENCE)
    assert quick.calls == [SCHEMA, 0, 1, 2, 3, 4, "close"]
    slow.gate.set()
    assert hosts[0].close(PATIENCE)


def test_a_module_that_does_not_stop_is_left_behind_and_its_queue_counted() -> None:
    module = _Recorder()
    module.gate.clear()
    host = ModuleHost("stuck", module)
    host.offer(_snapshot(1))
    assert module.entered.wait(PATIENCE)
    host.offer(_snapshot(2, "x"))
    assert not host.close(timeout=0.01)
    assert (host.stats.dropped, host.stats.events_dropped) == (1, 1)
    module.gate.set()


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
        ("nobody", "known are: recorder"),
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
