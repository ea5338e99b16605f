"""Moments at fixed times, by a clock that is an argument."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heliograph.exporters.loop import ExportLoop
from heliograph.exporters.sink import exporter_lane
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Snapshot
from tests.exporters.making import at


class Time:
    """A clock that moves when somebody waits, or when reading takes long."""

    def __init__(self, end: float) -> None:
        self.now = 100.0
        self.end = 100.0 + end

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        assert seconds >= 0
        self.now += seconds
        return self.now >= self.end


class Keeper:
    """An exporter that keeps what it gets."""

    def __init__(self) -> None:
        self.seen: list[Snapshot] = []
        self.closed = False

    def publish(self, snapshot: Snapshot) -> None:
        self.seen.append(snapshot)

    def close(self) -> None:
        self.closed = True


def moments(time: Time, reading: Callable[[int], float], interval: float = 1.0) -> tuple[list[float], ExportLoop]:
    """When snapshots were read, seconds after the start; `reading` tells how long the n-th takes."""
    read: list[float] = []

    def sample() -> Snapshot:
        read.append(round(time.now - 100.0, 6))
        time.now += reading(len(read) - 1)
        return at(len(read))

    loop = ExportLoop(sample, [], interval, time.wait, clock=time.clock)
    loop.run()
    return read, loop


def test_the_time_a_round_takes_does_not_add_up() -> None:
    read, loop = moments(Time(4), lambda number: 0.3)
    assert read == [0, 1, 2, 3, 4]
    assert loop.moments_missed == 0


def test_moments_that_pass_during_a_long_round_are_left_out_and_counted() -> None:
    read, loop = moments(Time(7), lambda number: 2.5 if number == 1 else 0.1)
    assert read == [0, 1, 4, 5, 6, 7], "not 2 and 3, and no bunch of rounds at 3.5"
    assert loop.moments_missed == 2


def test_a_last_snapshot_is_taken_at_the_end_and_the_lanes_are_closed() -> None:
    time, keeper = Time(0.5), Keeper()
    numbers = iter(range(10))
    lane = exporter_lane("keeper", keeper)
    ExportLoop(lambda: at(next(numbers)), [lane], 1.0, time.wait, clock=time.clock).run()
    assert keeper.closed
    assert keeper.seen[-1] == at(1)


def test_failing_to_read_is_told_once_and_tried_again() -> None:
    told: list[str] = []
    time, keeper = Time(4), Keeper()
    numbers = iter(range(10))

    def sample() -> Snapshot:
        number = next(numbers)
        if number in (1, 2):
            raise UserError("the folder cannot be listed")
        return at(number)

    lane = exporter_lane("keeper", keeper)
    ExportLoop(sample, [lane], 1.0, time.wait, clock=time.clock, tell=told.append).run()
    assert told == ["reading the statistics failed: the folder cannot be listed"]
    assert keeper.seen[-1] == at(4)


def test_lanes_are_closed_even_when_the_wait_fails() -> None:
    keeper = Keeper()

    def wait(seconds: float) -> bool:
        raise KeyboardInterrupt

    lane = exporter_lane("keeper", keeper)
    with pytest.raises(KeyboardInterrupt):
        ExportLoop(lambda: at(1), [lane], 1.0, wait).run()
    assert keeper.closed
