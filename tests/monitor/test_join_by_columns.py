"""The join by columns gives the same rows as the join row by row, over randomised fleets."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.exporters.families import fleet_families
from heliograph.monitor.fleet import balance, receivers
from heliograph.monitor.model import InstanceState, Snapshot
from heliograph.monitor.rows import Balance, ReceiverRow
from heliograph.monitor.sampler import Sampler
from heliograph.monitor.window import Watcher
from tests.monitor.row_join import receivers_by_row
from tests.monitor.row_judge import RowWatcher
from tests.segments import ABSENT, SegmentObject, write_segment

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
STREAMS = ("0a0b0c0d0e0f.30001", "0a0b0c0d0e0f.30002", 'odd "stream"\\')
TOPICS = ("PRICES.A", 'a"b\\c{}=,|', "\u202eträge\u00a0✓", "x" * 60)
NAMES = ("feed", "desk", "desk@7", 'na"me\\', "ünï")
CELLS = (
    *("next_message", "messages_before_join", "messages_delivered", "messages_recovered", "messages_lost"),
    *("messages_trimmed_count", "messages_trimmed_age", "fragments_joined", "bytes_delivered"),
    *("queue_messages", "queue_bytes", "queue_limit_bytes", "queue_full", "queue_age"),
)
STREAM_CELLS = ("packets_missed", "packets_delivered", "window_lead", "naks_sent", "losses_located_socket")
SENDER_CELLS = ("next_message", "messages_sent", "bytes_sent")
SOURCE_CELLS = ("packets_unsent", "naks_received", "destinations")


class _Host:
    """A host whose instances count, restart, appear and end at random."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._folder = folder
        self._chance = chance
        self._counts: dict[tuple[str, ...], dict[str, int]] = {}
        self._latencies: dict[tuple[str, ...], dict[int, int]] = {}
        self._incarnations: dict[str, int] = {}

    def snapshot(self, now_ns: int) -> Snapshot:
        """Return the host at a moment."""
        for old in self._folder.glob("*.helio"):
            old.unlink()
        for number, name in enumerate(NAMES):
            if self._chance.random() < 0.9:
                self._write(number, name, now_ns)
        with Sampler(self._folder, clock=lambda: now_ns, process_start=lambda pid: 0) as sampler:
            return sampler.sample()

    def _write(self, number: int, name: str, now_ns: int) -> None:
        chance = self._chance
        if chance.random() < 0.1:
            self._incarnations[name] = chance.randrange(3, 1 << 40)
            self._counts = {key: cells for key, cells in self._counts.items() if key[0] != name}
            self._latencies = {key: cells for key, cells in self._latencies.items() if key[0] != name}
        write_segment(
            self._folder / f"i{number}.1.helio",
            name=name,
            objects=self._objects(name),
            incarnation=self._incarnations.setdefault(name, number + 2),
            started_ns=START - SECOND,
            heartbeat_ns=now_ns - chance.choice((0, 0, 0, 60 * SECOND)),
            state=chance.choice(("running", "running", "running", "closed")),
            byte_order=chance.choice("<<<>"),
            object_capacity=128,
        )

    def _objects(self, name: str) -> list[SegmentObject]:
        own = {"instance": name}
        hiccups = self._latency((name, "hiccups"))
        found = [SegmentObject("instance", own, {"host": "here"}, {}, {"host_hiccup": hiccups} if hiccups else {})]
        for stream in STREAMS:
            on_it = {**own, "stream": stream}
            feedback = {"feedback_address": f"10.0.0.{NAMES.index(name)}:4000"}
            found.append(SegmentObject("rx_stream", on_it, feedback, self._cells((name, stream, "rx"), STREAM_CELLS)))
            if name == "feed" or self._chance.random() < 0.1:
                found.append(SegmentObject("tx_stream", on_it, {}, self._cells((name, stream), SOURCE_CELLS)))
                found += [self._tracked(name, stream, receiver) for receiver in range(len(NAMES))]
            for topic in TOPICS:
                on_topic = {**own, "topic": topic, "stream": stream}
                key = (name, stream, topic)
                found.append(self._receiver(key, on_topic))
                if name == "feed" or self._chance.random() < 0.1:
                    cells = self._cells((*key, "tx"), SENDER_CELLS)
                    found.append(SegmentObject("transmitter", on_topic, {}, cells))
        return [one for one in found if one.scope == "instance" or self._chance.random() < 0.9]

    def _receiver(self, key: tuple[str, ...], labels: dict[str, str]) -> SegmentObject:
        latency = self._latency(key)
        histograms = {"total_latency": latency} if latency else {}
        state = self._chance.choice(("live",) * 9 + ("gone",))
        endpoint = {"endpoint": "rmm://239.1.1.1:7500"}
        return SegmentObject("receiver", labels, endpoint, self._cells(key, CELLS), histograms, state, created_ns=START)

    def _tracked(self, name: str, stream: str, receiver: int) -> SegmentObject:
        address = f"10.0.0.{receiver}:4000" + self._chance.choice(("", "#1"))
        cells = self._cells((name, stream, address), ("naks_received", "round_trip", "forecast", "blame_time"))
        labels = {"instance": name, "stream": stream, "receiver": address}
        return SegmentObject("tx_receiver", labels, {"name": NAMES[receiver]}, cells)

    def _cells(self, key: tuple[str, ...], names: tuple[str, ...]) -> dict[str, int]:
        cells = self._counts.setdefault(key, {})
        for name in names:
            match self._chance.randrange(40):
                case 0:
                    cells[name] = 0
                case 1:
                    cells[name] = ABSENT
                case 2:
                    cells[name] = self._chance.choice((ABSENT - 1, ABSENT + 1, 2 * ABSENT - 1, ABSENT // 2))
                case number:
                    known = cells.get(name, 0)
                    cells[name] = (known if known < ABSENT // 4 else 0) + self._chance.randrange(number)
        return dict(cells)

    def _latency(self, key: tuple[str, ...]) -> dict[int, int]:
        cells = self._latencies.setdefault(key, {})
        match self._chance.randrange(10):
            case 0:
                cells.clear()
            case 1:
                pass
            case number:
                for _ in range(number):
                    value = int(self._chance.lognormvariate(10, 3))
                    cells[value] = cells.get(value, 0) + self._chance.choice((1, 50, 700))
        return dict(cells)


def _of_collector(owner: InstanceState) -> InstanceState:
    """Return an instance as a collector reports it: plain values."""
    return replace(owner, objects=tuple(replace(item, values=dict(item.values)) for item in owner.objects))


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_those_of_the_join_row_by_row(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    near, far = (_Host(tmp_path / name, chance) for name in ("near", "far"))
    by_columns, by_row = Watcher(), RowWatcher()
    before: Snapshot | None = None
    seen: list[ReceiverRow] = []
    for step in range(6):
        now_ns = START + step * SECOND
        instances = near.snapshot(now_ns).instances
        if seed % 2:
            instances += tuple(map(_of_collector, far.snapshot(now_ns).instances))
        now = Snapshot(now_ns, instances)
        for watchers in ((by_columns, by_row), (None, None)):
            found = receivers(before, now, watchers[0])
            expected = receivers_by_row(before, now, watchers[1])
            assert [repr(row) for row in found] == [repr(row) for row in expected]
            texts = [[table.text for table in fleet_families(rows)] for rows in (found, expected)]
            assert texts[0] == texts[1]
        seen += expected
        books = [Balance(*(getattr(row, name) for name in Balance.__slots__)) for row in expected]
        assert sorted(map(repr, balance(now, before))) == sorted(map(repr, books))
        before = now
    assert len({row.behaviour for row in seen}) > 1
    for name in ("transmitter", "p99_ns", "late", "loss_place", "nak_share"):
        assert any(getattr(row, name) is not None for row in seen), name
