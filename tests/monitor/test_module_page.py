"""The page engine/docs/modules.md: its modules in C and Python work as printed, and are given the same, bit by bit."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heliograph.engine import catalogue
from heliograph.monitor.modules import Feed, Lane, PythonSink
from heliograph.monitor.modules.process import ProcessSink
from heliograph.monitor.sampler import Sampler
from tests.fleet import sample_fleet
from tests.monitor.test_module_process import PATIENCE, compiled  # noqa: F401 - a fixture
from tests.segments import SegmentEvent, SegmentObject, write_segment

PAGE = Path(__file__).resolve().parents[2] / "engine/docs/modules.md"
WORDS = ("PRICES.A", "Größe", 'a "quoted" \\ one', "tab\there", "中文", "", "x" * 150)


def _printed(name: str) -> str:
    """A program of the page."""
    found = re.search(rf"<!-- {re.escape(name)} -->\n```\w+\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found, f"the page has no {name}"
    return found[1]


def _python_module(options: str) -> Any:
    space: dict[str, Any] = {}
    exec(compile(_printed("tally.py"), "tally.py", "exec"), space)
    return space["Tally"](options)


class Tally:
    """The page's module, for a process of its own."""

    def __new__(cls, options: str) -> Any:
        return _python_module(options)


def test_the_module_of_the_page_has_at_most_50_lines() -> None:
    lines = [line for line in _printed("tally.c").splitlines() if line.strip()]
    assert len(lines) <= 50


def _random_object(of: random.Random, instance: str, scope: catalogue.Scope, number: int) -> SegmentObject:
    labels = {name: instance if name == "instance" else of.choice(WORDS) for name in scope.labels}
    if scope.name == "incident":
        labels["event"] = of.choice(list(catalogue.events()))
    info = {name: of.choice(WORDS) for name in scope.info if of.random() < 0.7}
    values = {
        cell.name: of.choice((0, 1, of.getrandbits(64), 2**64 - 2, of.randrange(1000)))
        for cell in scope.cells
        if cell.statistic.kind != "histogram" and of.random() < 0.8
    }
    histograms = {
        cell.name: {of.randrange(70_000_000_000): of.getrandbits(20) for _ in range(of.randrange(6))}
        for cell in scope.cells
        if cell.statistic.kind == "histogram" and of.random() < 0.2
    }
    gone = of.random() < 0.2
    state = {"state": "gone", "closed_ns": 2_000 + number} if gone else {}
    return SegmentObject(
        scope.name, labels, info, values, histograms, created_ns=1_000 + number, guard=2 * of.randrange(9), **state
    )


def _random_fleet(of: random.Random, folder: Path, round_: int) -> None:
    """Instances with objects of every scope; another round adds objects and events, and changes all values."""
    kinds = list(catalogue.events())
    for index in range(3):
        name = f"node{index}"
        fixed = random.Random(index)
        scopes = [scope for scope in catalogue.scopes().values() for _ in range(fixed.randrange(3))]
        objects = [_random_object(of, name, scope, number) for number, scope in enumerate(scopes)]
        events = [
            SegmentEvent(fixed.choice(kinds), fixed.choice(WORDS), (fixed.getrandbits(64),), time_ns=10_000 + number)
            for number in range(6 * (round_ + 1))
        ]
        write_segment(folder / f"{name}.1.helio", name=name, objects=objects, events=events, incarnation=100 + index)


Feeder = Callable[[Path], None]


def _lanes(library: Path, folder: Path) -> list[Lane]:
    request = f"{__name__}:Tally={folder}/process"
    sinks = [ProcessSink({"native": str(library), "options": f"{folder}/c"}), ProcessSink({"python": request})]
    for sink in sinks:
        sink.open()
    lanes = [Lane(f"sink {number}", sink, depth=1000) for number, sink in enumerate(sinks)]
    return [*lanes, Lane("thread", PythonSink(_python_module(f"{folder}/thread")), depth=1000)]


@pytest.mark.parametrize("seed", [1, 2])
def test_c_and_python_are_given_the_same_bit_by_bit(compiled: Callable[..., Path], tmp_path: Path, seed: int) -> None:  # noqa: F811
    library = compiled("-Wpedantic", text=_printed("tally.c"), name="tally")
    lanes = _lanes(library, tmp_path)
    segments = tmp_path / "segments"
    of = random.Random(seed)
    feed = Feed()
    with Sampler(segments) as sampler:
        for round_ in range(4):
            _random_fleet(of, segments, round_)
            sample_fleet(segments / "more", moment=round_ % 2)
            feed.give(sampler.sample(), lanes)
    with Sampler(segments / "more") as sampler:
        feed.give(sampler.sample(), lanes)
    for lane in lanes:
        assert lane.close(PATIENCE)
        assert (lane.stats.offered, lane.stats.snapshots, lane.stats.errors) == (5, 5, 0), lane.stats.last_error
    by_c, by_process, by_thread = ((tmp_path / name).read_bytes() for name in ("c", "process", "thread"))
    assert by_c == by_thread
    assert by_process == by_thread
    words = by_c.decode().split()
    for what in ("snapshot", "instance", "object", "histogram", "event", "created", "destroyed"):
        assert what in words


def test_a_stream_at_100_hz_adds_up(compiled: Callable[..., Path], tmp_path: Path) -> None:  # noqa: F811
    """How many of a second's snapshots a busy machine can take is not asked; that all are accounted for is."""
    library = compiled("-Wpedantic", text=_printed("tally.c"), name="tally")
    sink = ProcessSink({"native": str(library), "options": f"{tmp_path}/c"})
    sink.open()
    lane = Lane("tally", sink)
    sample_fleet(tmp_path / "segments")
    feed = Feed()
    with Sampler(tmp_path / "segments") as sampler:
        for number in range(40):
            if number % 10 == 0:
                sample_fleet(tmp_path / "segments", moment=number // 10 % 2)
            feed.give(sampler.sample(), (lane,))
    assert lane.close(PATIENCE)
    stats = lane.stats
    assert stats.offered == 40
    assert stats.snapshots + stats.dropped == 40
    assert stats.snapshots > 0
    lines = (tmp_path / "c").read_text().splitlines()
    assert sum(line.startswith("snapshot ") for line in lines) == stats.snapshots
    assert sum(line.startswith(("created", "destroyed")) for line in lines) == stats.topics
    assert sum(line.startswith("event ") for line in lines) == stats.events
    assert (stats.events_dropped, stats.topics_dropped, stats.errors) == (0, 0, 0)
