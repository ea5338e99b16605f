"""The feed of modules: topics that came and went, once each, in order with the events, none missed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.monitor.model import Event, Health, InstanceState, ObjectState, Snapshot
from heliograph.monitor.modules import Feed, Moment, TopicChange
from heliograph.monitor.sampler import Sampler
from tests.segments import SegmentEvent, SegmentObject, write_segment


def _object(
    topic: str, slot: int, created: int, closed: int = 0, generation: int = 1, scope: str = "receiver"
) -> ObjectState:
    labels = {"instance": "alpha", "topic": topic, "stream": "s"}
    return ObjectState(
        scope,
        labels,
        {"endpoint": "e"},
        {},
        live=not closed,
        created_ns=created,
        closed_ns=closed,
        slot=slot,
        generation=generation,
    )


def _alpha(
    *objects: ObjectState, health: Health = Health.LIVE, settled: int | None = None, run: int = 1
) -> InstanceState:
    return InstanceState("alpha", health, "", 1, run, 0, 900, "alpha.helio", objects, settled)


def _event(time_ns: int, number: int = 0) -> Event:
    return Event("alpha", 1, number, time_ns, "packets_lost", "error", {}, {}, "")


def _told(moments: Sequence[Moment]) -> list[str]:
    """Moments as words: ``+A@5`` created, ``-A@7`` destroyed, ``!6`` an event."""
    return [
        f"{'+' if moment.created else '-'}{moment.topic.topic}@{moment.topic.time_ns}"
        if isinstance(moment, TopicChange)
        else f"!{moment.time_ns}"
        for moment in moments
    ]


def _fed(feed: Feed, time_ns: int, *instances: InstanceState, events: Sequence[Event] = ()) -> list[str]:
    return _told(feed.portion(Snapshot(time_ns, instances, tuple(events))).moments)


def test_a_topic_is_created_once_and_destroyed_once() -> None:
    feed = Feed()
    assert _fed(feed, 100, _alpha(_object("A", 0, 5))) == ["+A@5"]
    assert _fed(feed, 200, _alpha(_object("A", 0, 5), _object("B", 1, 150))) == ["+B@150"]
    assert _fed(feed, 300, _alpha(_object("A", 0, 5, 250), _object("B", 1, 150))) == ["-A@250"]
    assert _fed(feed, 400, _alpha(_object("A", 0, 5, 250), _object("B", 1, 150))) == []


def test_a_topic_that_lived_between_two_snapshots_is_told_both_ways() -> None:
    feed = Feed()
    _fed(feed, 100, _alpha())
    assert _fed(feed, 200, _alpha(_object("A", 0, 150, 151))) == ["+A@150", "-A@151"]


def test_topics_and_events_come_in_the_order_of_their_moments() -> None:
    feed = Feed()
    later = _alpha(_object("A", 0, 10, 40), _object("B", 1, 20))
    assert _fed(feed, 100, later, events=[_event(15), _event(30), _event(45)]) == [
        "+A@10", "!15", "+B@20", "!30", "-A@40", "!45",
    ]  # fmt: skip


def test_what_is_younger_than_an_event_not_read_yet_waits_for_it() -> None:
    feed = Feed()
    first = _alpha(_object("A", 0, 10), _object("B", 1, 60), settled=50)
    assert _fed(feed, 100, first, events=[_event(20)]) == ["+A@10", "!20"]
    assert _fed(feed, 200, _alpha(_object("A", 0, 10), _object("B", 1, 60)), events=[_event(50)]) == ["!50", "+B@60"]


def test_a_slot_used_again_ends_the_topic_before_and_counts_those_nobody_saw() -> None:
    feed = Feed()
    _fed(feed, 100, _alpha(_object("A", 0, 10)))
    assert _fed(feed, 200, _alpha(_object("B", 0, 150, generation=2))) == ["-A@149", "+B@150"]
    assert feed.missed == 0
    assert _fed(feed, 300, _alpha(_object("C", 0, 250, generation=5))) == ["-B@249", "+C@250"]
    assert feed.missed == 2
    _fed(feed, 400, _alpha(_object("C", 0, 250, generation=5), _object("D", 1, 390, generation=3)))
    assert feed.missed == 4


def test_what_happened_before_the_monitor_came_is_not_missed() -> None:
    feed = Feed()
    assert _fed(feed, 100, _alpha(_object("A", 0, 10, generation=7))) == ["+A@10"]
    assert feed.missed == 0


@pytest.mark.parametrize("health", [Health.DEAD, Health.CLOSED])
def test_the_topics_of_an_instance_end_with_it(health: Health) -> None:
    feed = Feed()
    _fed(feed, 100, _alpha(_object("A", 0, 10)))
    assert _fed(feed, 200, _alpha(_object("A", 0, 10), health=health)) == ["-A@900"]
    assert _fed(feed, 300, _alpha(_object("A", 0, 10), health=health)) == []
    assert _fed(feed, 400) == []


def test_an_instance_that_is_gone_takes_its_topics_along_and_another_run_has_its_own() -> None:
    feed = Feed()
    _fed(feed, 100, _alpha(_object("A", 0, 10)))
    assert sorted(_fed(feed, 200, _alpha(_object("A", 0, 110), run=2))) == ["+A@110", "-A@200"]
    assert _fed(feed, 300) == ["-A@300"]


def test_an_instance_that_cannot_be_read_for_a_while_keeps_its_topics() -> None:
    feed = Feed()
    _fed(feed, 100, _alpha(_object("A", 0, 10)))
    damaged = InstanceState("alpha", Health.DAMAGED, "", 0, 0, 0, 0, "alpha.helio")
    assert _fed(feed, 200, damaged) == []
    assert _fed(feed, 300, _alpha(_object("A", 0, 10))) == []


def test_a_clock_set_back_destroys_no_topic_before_it_was_created() -> None:
    feed = Feed()
    assert _fed(feed, 100, _alpha(_object("A", 0, 50, 20))) == ["+A@50", "-A@51"]


def test_without_slots_a_topic_is_known_by_its_stamp_and_ends_when_it_is_seen_to() -> None:
    """As in snapshots that came from a collector."""
    feed = Feed()
    assert _fed(feed, 100, _alpha(_object("A", -1, 10))) == ["+A@10"]
    both = _alpha(replace(_object("A", -1, 10), live=False), _object("A", -1, 150))
    assert _fed(feed, 200, both) == ["+A@150", "-A@200"]
    assert _fed(feed, 300, both) == []
    assert _fed(feed, 400, _alpha()) == ["-A@400"]
    assert feed.missed == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_random_life_of_topics_is_told_exactly(seed: int) -> None:
    """Slots come and go as in the engine; every snapshot sees the table as it is then."""
    random_of = random.Random(seed)
    feed = Feed()
    _fed(feed, 0, _alpha())
    now, names, truth, told = 0, 0, [], []
    table: dict[int, ObjectState] = {}
    for _ in range(300):
        for _ in range(random_of.randrange(6)):
            now += 1
            live = [slot for slot, item in table.items() if item.live]
            if live and random_of.random() < 0.5:
                slot = random_of.choice(live)
                item = table[slot]
                topic = item.labels["topic"]
                table[slot] = _object(topic, slot, item.created_ns, now, item.generation)
                truth.append(f"-{topic}@{now}")
            else:
                names += 1
                table[len(table)] = _object(f"T{names}", len(table), now)
                truth.append(f"+T{names}@{now}")
        told += _fed(feed, now, _alpha(*table.values()))
    assert told == truth
    assert feed.missed == 0


def test_an_event_beyond_the_objects_is_left_for_the_next_snapshot(tmp_path: Path) -> None:
    """The number of events is read before the objects, so all that events are about has been seen."""
    labels = {"instance": "alpha", "topic": "A", "stream": "s"}

    def write(events: int) -> None:
        told = [SegmentEvent("messages_lost", "", (number, 1), slot=0, time_ns=10 + number) for number in range(events)]
        write_segment(
            tmp_path / "alpha.1.helio",
            name="alpha",
            objects=[SegmentObject("receiver", labels, created_ns=5)],
            events=told,
            started_ns=1,
        )

    write(2)
    with Sampler(tmp_path) as sampler:
        first = sampler.sample()
        assert [event.number for event in first.events] == [0, 1]
        assert first.instances[0].settled_ns is None
        (watch,) = sampler._watches.values()
        write(5)
        batch = watch.segment.events(2, 4)
        assert ([event.number for event in batch.events], batch.cursor, batch.missed) == ([2, 3], 4, 0)
        assert watch.segment.event_moment(4) == 14
        assert watch.segment.event_moment(5) is None
        assert [event.number for event in sampler.sample().events] == [2, 3, 4]


def test_events_overwritten_beyond_the_end_are_for_the_next_reading_to_miss(tmp_path: Path) -> None:
    told = [SegmentEvent("packets_lost", "", (number, 1, 0), time_ns=number) for number in range(20)]
    written = write_segment(tmp_path / "a.1.helio", name="a", events=told, event_capacity=8)
    with Sampler(tmp_path) as sampler:
        sampler.sample()
        (watch,) = sampler._watches.values()
        batch = watch.segment.events(2, 4)  # 0 to 11 are overwritten
        assert (batch.events, batch.cursor, batch.missed) == ((), 4, 2)
        batch = watch.segment.events(batch.cursor, 14)
        assert ([event.number for event in batch.events], batch.cursor, batch.missed) == ([12, 13], 14, 8)
        assert watch.segment.event_moment(3) == 0
    assert written.path.exists()
