"""L6: what a collector holds is bounded, per origin, per source and in all, and honest hosts keep their place."""

from __future__ import annotations

import pytest

from heliograph.monitor.collector import Collector
from heliograph.monitor.collector.guard import Bounds
from heliograph.monitor.model import Snapshot
from tests.hostile import frames
from tests.hostile.test_h2_reports import on
from tests.monitor.wires import Clock, Wire

MIB = 1 << 20


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def wire() -> Wire:
    return Wire()


def collector_of(wire: Wire, clock: Clock, bounds: Bounds) -> Collector:
    return Collector(wire, clock=clock.wall, monotonic=clock.monotonic, patience=0.0, bounds=bounds)


def report(origin: int, objects: int, source: str = "enemy") -> bytes:
    """A sound report of so many objects, not packed tightly."""
    body = frames.objects(objects, cells=8).bytes()
    return on(source, frames.message(frames.sealed(body, stream=origin, tightly=False), origin, origin))


def hosts_read(snapshot: Snapshot) -> int:
    return len(snapshot.instances)


def empty(origin: int, source: str) -> bytes:
    """A report of an origin that never sends a snapshot."""
    return on(source, frames.message(b"", origin, origin))


def test_l6_memory_stays_within_its_bound_whatever_origins_send(clock: Clock, wire: Wire) -> None:
    collector = collector_of(wire, clock, Bounds(memory_bytes=4 * MIB))
    for origin in range(1, 200):
        clock.seconds += 0.01
        wire.waiting.append(report(origin, 60, source=f"source {origin}"))
        collector.sample()
        stats = collector.account.stats
        assert stats.memory_bytes <= 4 * MIB
    assert stats.refused_by["memory"] > 10
    assert stats.memory_limit == 4 * MIB
    assert stats.memory_bytes > MIB


def test_l6_one_origin_may_take_a_quarter_and_one_source_half(clock: Clock, wire: Wire) -> None:
    collector = collector_of(wire, clock, Bounds(memory_bytes=4 * MIB))
    wire.waiting.append(report(1, 1200))
    collector.sample()
    assert collector.account.stats.refused_by == {"damaged": 1}  # refused while it is read
    for origin in range(2, 60):
        clock.seconds += 0.01
        wire.waiting.append(report(origin, 60))
        collector.sample()
    assert collector.account.stats.refused_by["memory"] > 5
    assert collector.account.stats.memory_bytes <= 2 * MIB + 60 * 16 * 1024  # each origin costs a little by itself
    wire.waiting.append(report(100, 60, source="another"))
    before = hosts_read(collector.sample())
    clock.seconds += 0.1
    wire.waiting.append(report(101, 60, source="another"))
    assert hosts_read(collector.sample()) == before + 1


def test_l6_objects_are_bounded_in_all(clock: Clock, wire: Wire) -> None:
    collector = collector_of(wire, clock, Bounds(objects=400))
    for origin in range(1, 12):
        clock.seconds += 0.1
        wire.waiting.append(report(origin, 60, source=f"source {origin}"))
    assert sum(len(item.objects) for item in collector.sample().instances) <= 400
    assert collector.account.stats.objects <= 400


def test_l6_origins_that_never_sent_a_snapshot_give_way(clock: Clock, wire: Wire) -> None:
    collector = collector_of(wire, clock, Bounds(origins=20, unproven=30))
    wire.waiting += [report(origin, 1, source=f"honest {origin}") for origin in range(1, 6)]
    wire.waiting += [empty(1000 + origin, f"enemy {origin % 3}") for origin in range(500)]
    assert hosts_read(collector.sample()) == 5
    assert len(collector.account.hosts) == 20
    wire.waiting += [report(origin, 1, source=f"honest {origin}") for origin in range(6, 16)]
    assert hosts_read(collector.sample()) == 15
    assert collector.account.stats.forgotten >= 490


def test_l6_one_source_cannot_take_every_place(clock: Clock, wire: Wire) -> None:
    collector = collector_of(wire, clock, Bounds(origins=20))
    for origin in range(1, 60):
        clock.seconds += 0.1
        wire.waiting.append(report(origin, 1))
    collector.sample()
    assert len(collector.account.hosts) == 10
    assert collector.account.stats.unheard == 49
    assert collector.account.stats.refused_by["origins"] == 49
    wire.waiting.append(report(1000, 1, source="honest"))
    collector.sample()
    assert len(collector.account.hosts) == 11


def test_l6_a_silent_host_gives_way_before_one_that_speaks_is_refused(clock: Clock, wire: Wire) -> None:
    collector = collector_of(wire, clock, Bounds(objects=100))
    wire.waiting.append(report(1, 25, source="old"))
    collector.sample()
    clock.seconds += 60
    for origin in (2, 3, 4, 5):
        wire.waiting.append(report(origin, 25, source=f"young {origin}"))
    fleet = collector.sample()
    assert hosts_read(fleet) == 4
    assert collector.account.stats.refused_by == {}
