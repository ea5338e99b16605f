"""The reader of flight recordings, against files written from engine/docs/flight.md alone."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import numpy as np
import pytest

from heliograph.monitor.flight.format import FlightError, State
from heliograph.monitor.flight.reader import Recording, read
from tests.flights import START_NS, FlightObject, FlightWriter, difference, number, small_directory
from tests.segments import SegmentEvent

INSTANCE = FlightObject("instance", {"instance": "feed"}, {"messages_sent": 5}, {"host": "h"})
RECEIVER = {"instance": "feed", "topic": "A", "stream": "0a0b0c0d0e0f.1"}


def of_values(recording: Recording, scope: str, cell: str) -> list[float]:
    (track,) = recording.of(scope)
    return track.values(cell, len(recording.numbers)).tolist()


def test_what_was_written_is_read(tmp_path: Path) -> None:
    flight = FlightWriter()
    flight.tick(new={0: INSTANCE})
    flight.tick(changed={0: {"messages_sent": 9, "memory_used": 100}}, wall_step_ns=-3000)
    flight.tick(changed={0: {"memory_used": 40}}, late_ns=77)
    recording = read(flight.write(tmp_path / "feed.1.flight"))
    assert recording.header.name == "feed"
    assert recording.header.state is State.RECORDING
    assert recording.numbers == [0, 1, 2]
    assert recording.wall_ns == [START_NS, START_NS + 9_997_000, START_NS + 19_997_000]
    assert recording.times.tolist() == pytest.approx([0, 0.01, 0.02])
    assert recording.late_ns == [0, 0, 77]
    assert of_values(recording, "instance", "messages_sent") == [5, 9, 9]
    assert of_values(recording, "instance", "memory_used") == [0, 100, 40]
    assert of_values(recording, "instance", "send_errors") == [0, 0, 0]
    (track,) = recording.tracks
    assert (track.labels, track.info) == ({"instance": "feed"}, {"host": "h"})
    assert not recording.damage
    assert not recording.gaps


def test_a_cell_that_does_not_apply_is_absent_until_it_does(tmp_path: Path) -> None:
    flight = FlightWriter()
    flight.tick(new={0: FlightObject("instance", {"instance": "feed"}, {"backlog_bytes": 1 << 63})})
    flight.tick(changed={0: {"backlog_bytes": 0}})
    recording = read(flight.write(tmp_path / "feed.1.flight"))
    first, second = of_values(recording, "instance", "backlog_bytes")
    assert np.isnan(first)
    assert second == 0


def test_objects_come_and_go_and_leave_their_slots_to_others(tmp_path: Path) -> None:
    flight = FlightWriter()
    flight.tick(new={0: INSTANCE})
    flight.tick(new={1: FlightObject("receiver", RECEIVER, {"messages_delivered": 1})})
    flight.tick(changed={1: {"messages_delivered": 4}}, gone=[1])
    flight.tick()
    flight.tick(new={1: FlightObject("receiver", RECEIVER, {"messages_delivered": 2}, generation=2)})
    flight.tick(key=True)
    recording = read(flight.write(tmp_path / "f.flight"))
    first, second = recording.of("receiver")
    nan = float("nan")
    assert np.array_equal(first.values("messages_delivered", 6), [nan, 1, 4, nan, nan, nan], equal_nan=True)
    assert np.array_equal(second.values("messages_delivered", 6), [nan, nan, nan, nan, 2, 2], equal_nan=True)


def test_a_key_goes_on_with_what_was_there_and_ends_what_it_does_not_have(tmp_path: Path) -> None:
    flight = FlightWriter()
    flight.tick(new={0: INSTANCE, 1: FlightObject("receiver", RECEIVER, {"messages_delivered": 1})})
    del flight.objects[1]  # lost with a chunk
    flight.tick(key=True)
    recording = read(flight.write(tmp_path / "f.flight"))
    assert [track.scope for track in recording.tracks] == ["instance", "receiver"]
    assert recording.tracks[0].last == 1
    assert recording.tracks[1].last == 0


def test_events_are_told_with_the_labels_of_their_object(tmp_path: Path) -> None:
    flight = FlightWriter()
    lost = SegmentEvent("packets_lost", "three", arguments=(7, 3, 1), slot=1, time_ns=START_NS - 5)
    flight.tick(new={0: INSTANCE, 1: FlightObject("receiver", RECEIVER)}, events=[lost], why="by hand")
    recording = read(flight.write(tmp_path / "f.flight"))
    ((position, event),) = recording.events
    assert (position, event.name, event.severity, event.text) == (0, "packets_lost", "error", "three")
    assert event.arguments == {"first_sequence": 7, "packets": 3, "reason": 1}
    assert event.time_ns == START_NS - 5
    assert event.labels == RECEIVER
    assert recording.trigger is not None
    assert recording.trigger.why == "by hand"


def test_a_ring_that_went_round_is_read_from_its_oldest_key(tmp_path: Path) -> None:
    flight = FlightWriter(chunks=4, chunk_bytes=512, directory=small_directory())
    flight.tick(new={0: INSTANCE})
    for value in range(500):
        flight.tick(changed={0: {"messages_sent": value * value}})
    recording = read(flight.write(tmp_path / "f.flight"))
    assert recording.numbers[0] > 100
    assert recording.numbers == list(range(recording.numbers[0], 501))
    assert of_values(recording, "instance", "messages_sent") == [(n - 1) ** 2 for n in recording.numbers]
    assert not recording.gaps


def test_ticks_that_did_not_happen_are_a_gap(tmp_path: Path) -> None:
    flight = FlightWriter()
    flight.tick(new={0: INSTANCE})
    flight.tick(missed=3, late_ns=30_000_000)
    recording = read(flight.write(tmp_path / "f.flight"))
    (gap,) = recording.gaps
    assert (gap.position, gap.ticks, gap.why) == (1, 3, "the recorder was late")
    assert gap.seconds == pytest.approx(0.04)


@pytest.mark.parametrize("order", ["<", ">"])
def test_any_history_is_read_back(tmp_path: Path, order: str) -> None:
    """Random objects, values and gaps; what the reader has at each tick is what was put in."""
    for seed in range(20):
        draw = random.Random(seed)
        flight = FlightWriter(chunks=8, chunk_bytes=4096, order=order)
        generations: dict[int, int] = {}
        truth: list[dict[tuple[int, int], dict[str, int]]] = []
        for _ in range(120):
            live = list(flight.objects)
            gone = [slot for slot in live if draw.random() < 0.05]
            new = {}
            for slot in range(5):
                if slot not in live and draw.random() < 0.3:
                    generations[slot] = generations.get(slot, 0) + 1
                    values = {"messages_delivered": draw.getrandbits(64), "queue_bytes": 1}
                    new[slot] = FlightObject("receiver", RECEIVER, values, generation=generations[slot])
            cells = ("messages_delivered", "queue_bytes", "messages_lost")
            changed = {
                slot: {draw.choice(cells): draw.getrandbits(draw.choice((1, 8, 64)))}
                for slot in live
                if draw.random() < 0.7
            }
            now = {slot: dict(values) for slot, (_, values) in flight.objects.items()}
            for slot, item in new.items():
                now[slot] = dict(item.values)
            for slot, values in changed.items():
                now[slot].update(values)
            truth.append({(slot, generations[slot]): values for slot, values in now.items()})
            flight.tick(new=new, changed=changed, gone=gone, key=draw.random() < 0.03)
        recording = read(flight.write(tmp_path / f"{order}{seed}.flight"))
        assert not recording.damage
        for position, tick in enumerate(recording.numbers):
            there = [track for track in recording.tracks if track.first <= position <= track.last]
            assert len(there) == len(truth[tick])
        for generation in range(1, max(generations.values()) + 1):
            for track in (track for track in recording.tracks if track.generation == generation):
                series = track.values("messages_delivered", len(recording.numbers))[track.first : track.last + 1]
                wanted = [
                    [float(v.get("messages_delivered", 0)) for key, v in truth[tick].items() if key[1] == generation]
                    for tick in recording.numbers[track.first : track.last + 1]
                ]
                assert all(value in of for value, of in zip(series, wanted, strict=True))


# ---- damage ----


def read_or_refuse(path: Path) -> Recording | None:
    """The recording, or None when it was refused with a sentence that names the file."""
    try:
        return read(path)
    except FlightError as error:
        if str(path) not in str(error):
            raise
        return None


def small_flight() -> FlightWriter:
    flight = FlightWriter(chunks=3, chunk_bytes=256, directory=small_directory().split("\n")[0] + "\n" + CELL)
    flight.tick(new={0: FlightObject("instance", {"instance": "feed"}, {"messages_sent": 5})})
    for value in range(30):
        flight.tick(changed={0: {"messages_sent": value}})
    return flight


CELL = "stat\tinstance\tmessages_sent\t8\tcounter\tmessages\t0\tmessages_sent\t\t\tSent.\n"


def test_a_file_cut_off_anywhere_gives_what_is_whole_or_says_why(tmp_path: Path) -> None:
    data = small_flight().data()
    path = tmp_path / "cut.flight"
    whole = 0
    for length in range(len(data)):
        path.write_bytes(data[:length])
        recording = read_or_refuse(path)
        if recording is None:
            continue
        whole += 1
        assert any("cut off" in text for text in recording.damage)
        values = of_values(recording, "instance", "messages_sent")
        assert values == [float(max(n - 1, 0)) if n else 5.0 for n in recording.numbers]
    assert whole > 100


def test_flipped_bits_never_make_it_fail_or_lie_about_values(tmp_path: Path) -> None:
    data = small_flight().data()
    path = tmp_path / "flipped.flight"
    draw = random.Random(7)
    header = struct.unpack_from("<Q", data, 80)[0]
    for _ in range(800):
        damaged = bytearray(data)
        at = draw.randrange(len(data) * 8)
        damaged[at // 8] ^= 1 << at % 8
        path.write_bytes(damaged)
        recording = read_or_refuse(path)
        if recording is None:
            continue
        if at // 8 >= header:  # the directory's words are not checked: they are for people
            for number_, value in zip(
                recording.numbers, of_values(recording, "instance", "messages_sent"), strict=True
            ):
                assert value == (float(max(number_ - 1, 0)) if number_ else 5.0)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"\x80", "ends within a number"),
        (b"\xff" * 11, "more than 64 bits"),
        (number(99), "kind 99"),
        (number(2) + number(5) + number(0), "slot 5, which is empty"),
        (number(3) + number(9), "closes slot 9"),
        (number(2) + number(0) + number(1) + number(4000) + difference(1), "cell 4000"),
        (number(2) + number(0) + number(1 << 60), "ends within a number"),
        (number(1) + number(1 << 40) + number(1) + number(1) + number(1) + number(0) + number(0), "slot"),
        (number(1) + number(1) + number(1) + number(1) + number(1) + number(1 << 50), "ends within a text"),
    ],
)
def test_a_frame_that_makes_no_sense_ends_its_chunk(tmp_path: Path, raw: bytes, why: str) -> None:
    flight = FlightWriter()
    flight.tick(new={0: INSTANCE})
    flight.tick(raw=raw)
    flight.tick(changed={0: {"messages_sent": 8}})
    flight.tick(key=True)
    recording = read(flight.write(tmp_path / "f.flight"))
    assert why in recording.damage[0]
    assert recording.numbers == [0, 1, 3]
    assert [gap.ticks for gap in recording.gaps] == [1]


def test_what_is_no_recording_is_named(tmp_path: Path) -> None:
    path = tmp_path / "f.flight"
    good = small_flight()
    newer = good.data(version=2)
    for data, why in (
        (b"", "is not a flight recording"),
        (b"HELIOSEG" + bytes(600), "is not a flight recording"),
        (newer, "version 2; this Heliograph reads version 1"),
        (FlightWriter(directory=small_directory()).data(), "no readable tick: none is complete"),
    ):
        path.write_bytes(data)
        with pytest.raises(FlightError, match=why):
            read(path)
    with pytest.raises(FlightError, match="cannot be opened"):
        read(tmp_path / "missing.flight")
    os.mkfifo(tmp_path / "fifo.flight")
    with pytest.raises(FlightError, match="not a regular file"):
        read(tmp_path / "fifo.flight")
