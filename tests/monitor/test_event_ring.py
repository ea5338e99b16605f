"""The ring of events: read once each, in order, and what was overwritten is counted."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from heliograph.monitor.segment import Segment
from tests.segments import SegmentEvent, SegmentObject, Written, write_segment

OBJECTS = [
    SegmentObject("instance", {"instance": "alpha"}),
    SegmentObject("receiver", {"instance": "alpha", "topic": "PRICES.A", "stream": "s.1"}),
]


def _write(folder: Path, count: int, capacity: int = 8) -> Written:
    events = [SegmentEvent("packets_lost", f"event {number}", (number, 1, 2), 1, number) for number in range(count)]
    return write_segment(
        folder / "alpha.1.helio", name="alpha", objects=OBJECTS, events=events, event_capacity=capacity
    )


def test_an_event_carries_its_name_object_arguments_and_text(segments: Path) -> None:
    with Segment(_write(segments, 1).path) as segment:
        (event,) = segment.events().events
    assert (event.name, event.severity, event.text, event.number) == ("packets_lost", "error", "event 0", 0)
    assert event.labels == {"instance": "alpha", "topic": "PRICES.A", "stream": "s.1"}
    assert event.arguments == {"first_sequence": 0, "packets": 1, "reason": 2}


def test_events_are_read_once_each_in_order(segments: Path) -> None:
    with Segment(_write(segments, 3).path) as segment:
        first = segment.events()
        assert [event.number for event in first.events] == [0, 1, 2]
        assert segment.events(first.cursor).events == ()
        _write(segments, 6)
        second = segment.events(first.cursor)
    assert [event.number for event in second.events] == [3, 4, 5]
    assert second.missed == 0


def test_events_overwritten_since_the_cursor_are_counted(segments: Path) -> None:
    with Segment(_write(segments, 3).path) as segment:
        cursor = segment.events().cursor
        _write(segments, 20)
        batch = segment.events(cursor)
    assert [event.number for event in batch.events] == list(range(12, 20))
    assert batch.missed == 9
    assert batch.cursor == 20


def test_the_first_reading_misses_nothing(segments: Path) -> None:
    with Segment(_write(segments, 20).path) as segment:
        batch = segment.events()
    assert (len(batch.events), batch.missed) == (8, 0)


@pytest.mark.parametrize("word", [0, 9 + 1 + 8])
def test_an_event_that_is_being_overwritten_is_left_out_and_counted(segments: Path, word: int) -> None:
    written = _write(segments, 10)
    written.poke(written.events + 9 % 8 * 256, struct.pack("<Q", word))
    with Segment(written.path) as segment:
        batch = segment.events(5)
    assert [event.number for event in batch.events] == [5, 6, 7, 8]
    assert batch.missed == 1


def test_an_event_of_the_instance_or_of_an_unused_slot_has_the_instances_label(segments: Path) -> None:
    events = [SegmentEvent("instance_started", "up", (1,)), SegmentEvent("instance_started", "up", (1,), slot=40)]
    written = write_segment(segments / "alpha.1.helio", name="alpha", objects=OBJECTS, events=events)
    with Segment(written.path) as segment:
        assert [event.labels for event in segment.events().events] == [{"instance": "alpha"}] * 2


def test_a_cursor_ahead_of_the_writer_is_set_back(segments: Path) -> None:
    with Segment(_write(segments, 3).path) as segment:
        batch = segment.events(1000)
    assert (batch.events, batch.cursor, batch.missed) == ((), 3, 0)
