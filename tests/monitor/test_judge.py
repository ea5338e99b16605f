"""The judge of whole fleets: the same judgements as one receiver at a time, in Python, and rows only on demand."""

from __future__ import annotations

import random
from array import array
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heliograph.monitor import _judge, judging
from heliograph.monitor.behaviour import Evidence
from heliograph.monitor.fleet import receivers
from heliograph.monitor.joined import column_of
from heliograph.monitor.model import Health
from heliograph.monitor.records import gathered
from heliograph.monitor.sampler import Sampler
from heliograph.monitor.timeline import Timeline
from heliograph.monitor.window import Look, Watcher, Window
from tests.monitor.row_judge import RowWindow, behind_by_row
from tests.segments import ABSENT, SegmentObject, write_segment

SECOND = 1_000_000_000
MOST = (1 << 64) - 1


def _next_look(chance: random.Random, look: Look) -> Look:
    """Return the next observation: usually a step of a second; sometimes late, repeated, after a gap, or restarted."""
    match chance.randrange(40):
        case 0:
            return look
        case 1:
            return replace(look, time_ns=look.time_ns - chance.choice((1, SECOND, 900 * SECOND)))
        case 2:
            return replace(look, time_ns=look.time_ns + 60 * SECOND)
        case 3:
            return Look(look.time_ns + SECOND, 0, 0, 0, 0, 0, 1, 0, 0.0)
        case 4:
            return replace(
                look, time_ns=look.time_ns + SECOND, lag=2 * MOST - 10**9, expected=MOST - 10**9, packets=MOST - 10**9
            )
        case 5:
            return replace(look, time_ns=look.time_ns + SECOND, packets=max(0, look.packets - 5), gaps=look.gaps + 1)
    came = chance.choice((0, 0, 100, 4000))
    return Look(
        time_ns=look.time_ns + SECOND + chance.randrange(-1000, 1000),
        expected=look.expected + came,
        delivered=look.delivered + came,
        lost=look.lost + chance.choice((0,) * 30 + (3,)),
        queue_full=look.queue_full + chance.choice((0, 0, 0, 1)),
        gaps=look.gaps + chance.choice((0, 0, 0, 10, 21)),
        packets=look.packets + 4000,
        lag=max(0, look.lag + chance.choice((-300, -40, -1, 0, 0, 1, 30, 200))),
        queue_fill=chance.choice((0.0, 0.1, 0.79, 0.8, 1.0)),
    )


@pytest.mark.parametrize("seed", range(20))
def test_each_judgement_is_that_of_the_reference(seed: int) -> None:
    chance = random.Random(seed)
    window, reference = Window(), RowWindow()
    look = Look(1_800_000_000 * SECOND, 1000, 900, 0, 0, 0, 1000, 3, 0.0)
    classes = set()
    for _ in range(250):
        evidence = Evidence(
            health=chance.choice((Health.LIVE,) * 30 + (Health.STALE, Health.CLOSED)),
            health_reason="heartbeat 3.0 s ago",
            live=chance.random() < 0.99,
            delivered=chance.choice((0, 4000)),
            lost=chance.choice((0, 0, 7)),
            lag_messages=look.lag,
            lag_seconds=chance.choice((None, 0.0, 0.2, 0.25, 9.0)),
            lag_before=chance.choice((None, 0, 2, 5000, MOST + 7)),
            queue_fill=look.queue_fill,
            queue_full=chance.choice((0, 0, 2)),
            missing_ratio=chance.choice((0.0, 0.004, 0.005, 1.0)),
            nak_share=chance.choice((None, 0.5)),
            forecast_ns=chance.choice((None, 0, SECOND)),
        )
        judged = window.judge(look, evidence)
        assert repr(judged) == repr(reference.judge(look, evidence))
        classes.add(judged.behaviour)
        look = _next_look(chance, look)
    assert len(classes) >= 4


@pytest.mark.parametrize("seed", range(5))
def test_the_way_to_the_sender_is_that_of_the_reference(seed: int) -> None:
    chance = random.Random(seed)
    line, time_ns, sent, size = Timeline(), SECOND, 0, 0
    for _ in range(200):
        time_ns += chance.randrange(1, 3 * SECOND)
        sent += chance.choice((0, 7, 5000, 1 << 52))
        size += chance.choice((0, 11, 900_000, 1 << 52))
        line.add(time_ns, sent, size)
        for message in (0, sent - 1, sent, chance.randrange(sent + 2), MOST):
            assert line.behind(max(0, message)) == behind_by_row(line, max(0, message))


def _fleet(folder: Path, instances: int = 3, topics: int = 4) -> None:
    stream = "0a0b0c0d0e0f.30001"
    for number in range(instances):
        own = {"instance": f"reader-{number}"}
        found = [
            SegmentObject(
                "receiver",
                {**own, "topic": f"T.{topic}", "stream": stream},
                {},
                {"next_message": 9, "queue_messages": number * topic, "messages_lost": ABSENT},
            )
            for topic in range(topics)
        ]
        write_segment(folder / f"r{number}.1.helio", name=own["instance"], objects=found, incarnation=number + 2)


def test_a_row_is_built_only_when_somebody_looks_at_it(tmp_path: Path) -> None:
    _fleet(tmp_path)
    with Sampler(tmp_path, process_start=lambda pid: 0) as sampler:
        watcher = Watcher()
        before = sampler.sample()
        receivers(None, before, watcher)
        seats = watcher.seats
        found = receivers(before, sampler.sample(), watcher)
    assert watcher.seats is seats, "the same receivers keep their seats"
    for name in ("badness", "behaviour", "identity", "in_flight", "lag_messages", "lag_seconds", "nak_share"):
        assert len(found.column(name)) == len(found) == 12
    for name in ("queue_fill", "transmitter", "trust"):
        found.column(name)
    assert not found._rows
    assert [row.identity for row in found[:2]] == found.identities[:2]
    assert len(found._rows) == 2
    part = found.part([3, 0])
    assert [row.identity for row in part] == [found.identities[3], found.identities[0]]
    assert found[-1] is found[11]
    assert found == list(found)
    for name in ("badness", "behaviour", "in_flight", "lag_messages", "lag_seconds", "residual", "trust", "queue_fill"):
        assert list(column_of(found, name)) == list(column_of(list(found), name))


def test_receivers_that_come_and_go_keep_the_windows_of_the_others(tmp_path: Path) -> None:
    _fleet(tmp_path)
    with Sampler(tmp_path, process_start=lambda pid: 0) as sampler:
        watcher = Watcher()
        first = sampler.sample()
        receivers(None, first, watcher)
        later = [replace(first, time_ns=first.time_ns + n * SECOND) for n in (1, 2, 3)]
        without = replace(later[0], instances=later[0].instances[1:])
        assert {row.looks for row in receivers(first, without, watcher)} == {2}
        again = {row.instance: row.looks for row in receivers(without, later[1], watcher)}
        assert again == {"reader-0": 1, "reader-1": 3, "reader-2": 3}


def test_a_few_cells_are_those_of_the_whole_record(tmp_path: Path) -> None:
    _fleet(tmp_path)
    with Sampler(tmp_path, process_start=lambda pid: 0) as sampler:
        _, item = next(sampler.sample().of("receiver"))
    names = ["next_message", "messages_lost", "no_such_cell", "queue_messages"]
    for values in (item.values, dict(item.values)):
        table, has = gathered([values], names)
        assert table.tolist() == [[9, 0, 0, 0]]
        assert has.tolist() == [[True, False, False, True]]


def test_what_does_not_fit_is_refused() -> None:
    windows = _judge.Windows()
    rows = judging.rows(2)
    rows["window"] = 1
    cells = np.zeros((2, len(judging.CELLS)), np.uint64)
    offsets = (0,) * len(judging.CELLS)
    places = np.zeros(1, np.int64)
    empty = (array("q"), array("Q"), array("Q"))
    with pytest.raises(IndexError, match="no window 1"):
        windows.judge(rows, 0)
    with pytest.raises(ValueError, match="-1 windows"):
        windows.resize(-1)
    with pytest.raises(IndexError, match="no window 0"):
        windows.clear(0)
    with pytest.raises(ValueError, match="no items of"):
        windows.judge(np.zeros(7, np.uint8), 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs its cells"):
        _judge.lags(rows, cells[:1], cells, [empty])
    with pytest.raises(ValueError, match="differ in length"):
        _judge.lags(rows, cells, cells, [(array("q", [1]), array("Q"), array("Q"))])
    with pytest.raises(ValueError, match="no cell at 0"):
        _judge.gather([b"short"], offsets, False, places, cells)
    with pytest.raises(ValueError, match="no place 2"):
        _judge.gather([bytes(8)], offsets, False, places + 2, cells)
    with pytest.raises(ValueError, match="needs one place"):
        _judge.gather([], offsets, False, places, cells)
    with pytest.raises(ValueError, match="17 cells, not 1"):
        _judge.gather([bytes(8)], (0,), False, places, cells)
    with pytest.raises(TypeError, match="must be bytes"):
        _judge.gather([bytearray(8)], offsets, False, places, cells)  # type: ignore[list-item]
