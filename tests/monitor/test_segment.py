"""The reader of a segment, against files written from the page alone; and against files nobody should trust."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from heliograph.engine import catalogue
from heliograph.monitor.directory import SegmentError, parse_directory
from heliograph.monitor.segment import Segment
from tests.fleet import sample_fleet
from tests.segments import (
    ABSENT,
    CELLS,
    HIGHEST,
    SegmentEvent,
    SegmentObject,
    Written,
    cell_index,
    directory_text,
    write_segment,
)

STREAM = "0a0b0c0d0e0f.30001"
LABELS = {"instance": "alpha", "topic": "PRICES.A", "stream": STREAM}


def _instance(**values: int) -> SegmentObject:
    return SegmentObject("instance", {"instance": "alpha"}, {"version": "0.1.0", "host": "here"}, values)


def _receiver(histograms: dict[str, dict[int, int]] | None = None, **values: int) -> SegmentObject:
    return SegmentObject("receiver", LABELS, {"endpoint": "rmm://x:1"}, values, histograms or {})


@pytest.fixture
def written(segments: Path) -> Written:
    return write_segment(
        segments / "alpha.1.helio",
        name="alpha",
        objects=[
            _instance(messages_received=12, invalid_packets_checksum=3),
            _receiver({"total_latency": {12_000: 4, 900_000: 1}}, messages_delivered=5, next_message=2**63 - 1),
        ],
        events=[SegmentEvent("stream_opened", "met a stream", (41,), slot=1, time_ns=77)],
    )


def test_everything_written_is_read_back(written: Written) -> None:
    with Segment(written.path) as segment:
        instance, receiver = segment.objects()
    assert instance.scope == "instance"
    assert instance.values["messages_received"] == 12
    assert instance.values["invalid_packets_checksum"] == 3
    assert dict(instance.info) == {"version": "0.1.0", "host": "here"}
    assert list(receiver.labels.items()) == list(LABELS.items())
    assert receiver.values["next_message"] == 2**63 - 1
    assert receiver.live
    assert not receiver.torn
    histogram = receiver.histograms["total_latency"]
    assert histogram.count == 5
    assert histogram.counts[cell_index(12_000)] == 4
    assert histogram.total_ns == 4 * 12_000 + 900_000
    assert (histogram.lowest, histogram.highest, histogram.digits) == (1, HIGHEST, 3)
    assert "order_latency" not in receiver.histograms, "a histogram that is off is absent"


def test_every_cell_of_the_catalogue_is_read_under_its_own_name(segments: Path) -> None:
    expected = {}
    objects = []
    for number, scope in enumerate(catalogue.scopes().values()):
        values = {
            cell.name: number * 1000 + index
            for index, cell in enumerate(scope.cells)
            if cell.statistic.kind != "histogram"
        }
        expected[scope.name] = values
        labels = dict.fromkeys(scope.labels, "x") | ({"event": "stream_closed"} if scope.name == "incident" else {})
        objects.append(SegmentObject(scope.name, labels, values=values))
    written = write_segment(segments / "all.1.helio", name="all", objects=objects)
    with Segment(written.path) as segment:
        assert {item.scope: dict(item.values) for item in segment.objects()} == expected


def test_counts_cannot_be_written_to(written: Written) -> None:
    with Segment(written.path) as segment:
        counts = segment.objects()[1].histograms["total_latency"].counts
    assert counts.dtype == np.uint64
    with pytest.raises(ValueError):
        counts[0] = 1


def test_only_the_histograms_asked_for_are_read(segments: Path) -> None:
    item = _receiver({"total_latency": {5: 1}, "order_latency": {6: 1}})
    written = write_segment(segments / "a.1.helio", name="a", objects=[item])
    with Segment(written.path) as segment:
        assert segment.objects(histograms=False)[0].histograms == {}
        assert set(segment.objects(histograms={"order_latency"})[0].histograms) == {"order_latency"}
        assert set(segment.objects()[0].histograms) == {"total_latency", "order_latency"}


def test_values_beyond_the_histogram_are_counted_beside_it(segments: Path) -> None:
    item = _receiver({"total_latency": {HIGHEST + 1: 2, -5: 3, HIGHEST: 1}})
    written = write_segment(segments / "a.1.helio", name="a", objects=[item])
    with Segment(written.path) as segment:
        histogram = segment.objects()[0].histograms["total_latency"]
    assert (histogram.above, histogram.negative, histogram.count) == (2, 3, 1)


def test_a_segment_of_the_other_byte_order_is_read(segments: Path) -> None:
    item = _receiver({"total_latency": {5: 7}}, messages_delivered=9)
    events = [SegmentEvent("stream_opened", "met", (41,), slot=0, time_ns=77)]
    written = write_segment(segments / "a.1.helio", name="a", objects=[item], events=events, byte_order=">")
    with Segment(written.path) as segment:
        (found,) = segment.objects()
        assert found.values["messages_delivered"] == 9
        assert found.histograms["total_latency"].counts[5] == 7
        assert segment.events().events[0].arguments == {"first_sequence": 41}


def test_values_are_read_anew_each_time(written: Written) -> None:
    with Segment(written.path) as segment:
        before = segment.objects()[0].values["messages_received"]
        written.poke(written.records[0] + 8 * 2, struct.pack("<Q", 1000))
        assert (before, segment.objects()[0].values["messages_received"]) == (12, 1000)


def test_a_closed_object_stays_readable_and_an_empty_slot_is_left_out(segments: Path) -> None:
    gone = SegmentObject("receiver", LABELS, values={"messages_delivered": 5}, state="gone", generation=3)
    empty = SegmentObject("receiver", LABELS, state="empty")
    written = write_segment(segments / "a.1.helio", name="a", objects=[empty, gone])
    with Segment(written.path) as segment:
        (found,) = segment.objects()
    assert not found.live
    assert (found.generation, found.values["messages_delivered"]) == (3, 5)


def test_an_object_whose_writer_stopped_within_an_update_is_torn(segments: Path) -> None:
    torn = SegmentObject("receiver", LABELS, values={"messages_delivered": 5}, guard=7)
    written = write_segment(segments / "a.1.helio", name="a", objects=[_instance(), torn])
    with Segment(written.path) as segment:
        assert [item.torn for item in segment.objects()] == [False, True]


def test_a_record_that_changes_while_it_is_read_is_read_again(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer completes an update between the reader's copy and its second look at the guard."""
    record = written.records[0]
    reads = 0
    plain = os.pread

    def busy(file: int, size: int, offset: int) -> bytes:
        nonlocal reads
        data = plain(file, size, offset)
        if offset == record and size > 8:
            reads += 1
            if reads == 1:
                written.poke(record, struct.pack("<Q", 2) + bytes(8) + struct.pack("<Q", 555))
        return data

    with Segment(written.path) as segment:
        monkeypatch.setattr(os, "pread", busy)
        assert segment.objects()[0].values["messages_received"] == 555
    assert reads == 2


def test_an_object_whose_slot_is_taken_meanwhile_is_read_as_the_new_one(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = written.objects + 512
    plain = os.pread
    done = False

    def busy(file: int, size: int, offset: int) -> bytes:
        nonlocal done
        data = plain(file, size, offset)
        if offset == written.records[1] and not done:
            done = True
            written.poke(entry + 8, struct.pack("<Q", 2))
            written.poke(entry + 48, b"instance=alpha\ntopic=OTHER\nstream=s\n\0")
        return data

    with Segment(written.path) as segment:
        monkeypatch.setattr(os, "pread", busy)
        assert [item.labels.get("topic") for item in segment.objects()] == [None, "OTHER"]


def test_unknown_directory_lines_and_extra_fields_are_skipped(segments: Path) -> None:
    more = "colour\tblue\nevent\tnew_event\t999\tinfo\tone,two\tText.\textra\tfields\n"
    events = [SegmentEvent("stream_opened", "met")]
    path = segments / "a.1.helio"
    written = write_segment(path, name="a", objects=[_instance()], events=events, extra_directory=more)
    written.poke(written.events + 16, struct.pack("<I", 999))
    with Segment(written.path) as segment:
        assert segment.objects()[0].scope == "instance"
        assert segment.events().events[0].name == "new_event"
        assert set(segment.events().events[0].arguments) == {"one", "two"}


def test_statistics_nobody_here_knows_are_read_by_their_own_names() -> None:
    text = directory_text() + (
        "scope\tgalaxy\t77\t24\tinstance\t\tA new thing.\n"
        "stat\tgalaxy\tstars_red\t8\tcounter\t\t0\tstars\tcolour\tred\tStars.\n"
        "stat\tgalaxy\tage\t16\thistogram\tnanoseconds\t2\tage\t\t\tAge.\n"
    )
    layout = parse_directory(text).scopes[77]
    assert layout.plain == (("stars_red", 1),)
    assert layout.histograms == (("age", 2),)


@pytest.mark.parametrize(
    "line",
    [
        "scope\tx\t1\n",
        "scope\tx\tone\t8\t\t\tText.\n",
        "scope\tx\t1\t9\t\t\tText.\n",
        "scope\tx\t1\t16\t\t\tText.\nstat\tx\ta\t16\tcounter\t\t0\ta\t\t\tText.\n",
        "scope\tx\t1\t16\t\t\tText.\nstat\tx\ta\t0\tcounter\t\t0\ta\t\t\tText.\n",
        "scope\tx\t1\t16\t\t\tText.\nstat\tx\ta\t9\tcounter\t\t0\ta\t\t\tText.\n",
        "event\tx\t-1\tinfo\t\tText.\n",
        "event\tx\t99999999999\tinfo\t\tText.\n",
    ],
)
def test_a_directory_line_that_leads_nowhere_is_refused(line: str) -> None:
    with pytest.raises(SegmentError):
        parse_directory(line)


# Files nobody should trust


@pytest.mark.parametrize("content", [b"", b"HELIO", b"x" * 4096, bytes(4096)])
def test_what_is_no_segment_is_refused_by_name(segments: Path, content: bytes) -> None:
    path = segments / "a.1.helio"
    path.write_bytes(content)
    with pytest.raises(SegmentError, match=r"a\.1\.helio"):
        Segment(path)


def test_another_layout_version_is_refused_naming_both(segments: Path) -> None:
    written = write_segment(segments / "a.1.helio", name="a", version=2)
    with pytest.raises(SegmentError, match=r"version 2.*version 1"):
        Segment(written.path)


def test_a_fifo_a_folder_and_a_link_are_refused_without_waiting(segments: Path, written: Written) -> None:
    os.mkfifo(segments / "fifo.1.helio")
    (segments / "folder.1.helio").mkdir()
    (segments / "link.1.helio").symlink_to(written.path)
    for name in ("fifo", "folder", "link", "missing"):
        with pytest.raises(SegmentError):
            Segment(segments / f"{name}.1.helio")


def test_a_file_cut_short_anywhere_is_refused(written: Written) -> None:
    whole = written.path.read_bytes()
    places = {0, 1, 8, 12, 16, 255, 256, written.directory + 100, written.objects, written.objects + 700}
    places |= {written.events, written.events + 5, *written.records, *written.histograms.values(), len(whole) - 1}
    for place in sorted(places):
        written.path.write_bytes(whole[:place])
        with pytest.raises(SegmentError):
            Segment(written.path)


def test_a_file_cut_short_while_it_is_open_is_refused(written: Written) -> None:
    whole = written.path.read_bytes()
    with Segment(written.path) as segment:
        for place in (0, 100, written.objects + 10, written.records[0], written.size - 8):
            os.truncate(written.path, place)
            with pytest.raises(SegmentError):
                segment.objects()
            with pytest.raises(SegmentError):
                segment.events()
            written.poke(0, whole)
        assert len(segment.objects()) == 2


@pytest.mark.parametrize(
    ("offset", "value"),
    [
        (16, 1 << 40),  # size
        (24, 9),  # state
        (72, 1 << 63),  # directory offset
        (72, 257),
        (80, 1 << 62),  # directory bytes
        (88, 2**64 - 8),  # objects offset
        (96, 0xFFFF_FFFF | 512 << 32),  # object capacity
        (96, 64 | 8 << 32),  # object entry bytes
        (104, 65),  # objects used
        (112, 2**64 - 8),  # events offset
        (120, 63 | 256 << 32),  # event capacity: no power of two
        (120, 0 | 256 << 32),
        (120, 64 | 16 << 32),  # event entry bytes
    ],
)
def test_a_header_that_lies_is_refused(written: Written, offset: int, value: int) -> None:
    written.poke(offset, struct.pack("<Q", value))
    with pytest.raises(SegmentError, match="damaged"):
        Segment(written.path)


@pytest.mark.parametrize(
    ("offset", "value"),
    [
        (0, 9),  # state
        (4, 99),  # scope
        (16, 2**64 - 8),  # record offset
        (16, 100),
        (24, 8),  # record bytes
        (24, 2**63),
    ],
)
def test_an_object_that_lies_is_refused(written: Written, offset: int, value: int) -> None:
    width = "<I" if offset < 8 else "<Q"
    written.poke(written.objects + 512 + offset, struct.pack(width, value))
    with Segment(written.path) as segment, pytest.raises(SegmentError, match="object 1"):
        segment.objects()


def test_an_object_without_a_label_is_refused(written: Written) -> None:
    written.poke(written.objects + 512 + 48, b"instance=alpha\n\0")
    with Segment(written.path) as segment, pytest.raises(SegmentError, match="topic"):
        segment.objects()


@pytest.mark.parametrize(
    ("offset", "data"),
    [
        (0, b"NOPE"),
        (4, struct.pack("<I", 0)),
        (4, struct.pack("<I", 4_000_000_000)),
        (8, struct.pack("<Q", 0)),
        (16, struct.pack("<Q", 2**64 - 1)),
        (24, struct.pack("<I", CELLS + 1)),
        (28, struct.pack("<I", 4)),
    ],
)
def test_a_histogram_that_lies_is_refused(written: Written, offset: int, data: bytes) -> None:
    block = written.histograms[1, "total_latency"]
    with Segment(written.path) as segment:
        segment.objects()
        written.poke(block + offset, data)
        with pytest.raises(SegmentError):
            segment.objects()
    with Segment(written.path) as segment, pytest.raises(SegmentError):
        segment.objects()


@pytest.mark.parametrize("offset", [8, 200, 1 << 20, 2**64 - 64])
def test_a_histogram_outside_the_file_is_refused(written: Written, offset: int) -> None:
    cells = [cell.name for cell in catalogue.scopes()["receiver"].cells]
    written.poke(written.records[1] + 8 + 8 * cells.index("total_latency"), struct.pack("<Q", offset))
    with Segment(written.path) as segment, pytest.raises(SegmentError):
        segment.objects()


def test_objects_that_share_one_histogram_cannot_keep_a_reader_busy(segments: Path) -> None:
    objects = [_receiver() for _ in range(60)]
    objects[0] = _receiver({"total_latency": {5: 1}})
    written = write_segment(segments / "a.1.helio", name="a", objects=objects)
    cells = [cell.name for cell in catalogue.scopes()["receiver"].cells]
    for record in written.records:
        place = record + 8 + 8 * cells.index("total_latency")
        written.poke(place, struct.pack("<Q", written.histograms[0, "total_latency"]))
    with Segment(written.path) as segment, pytest.raises(SegmentError, match="overlap"):
        segment.objects()


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_gives_a_result_or_a_segment_error(segments: Path, seed: int) -> None:
    """Flips bytes of every structure; whatever comes of it, it is one of the two."""
    written = sample_fleet(segments)["slow"]
    whole = written.path.read_bytes()
    draw = random.Random(seed)
    regions = [
        (0, 256),
        (written.directory, written.directory_bytes),
        (written.objects, 6 * 512),
        (written.events, 3 * 256),
        (written.records[0], written.histograms[min(written.histograms)] - written.records[0]),
        *((block, 64) for block in written.histograms.values()),
    ]
    for _ in range(40):
        damaged = bytearray(whole[: written.histograms[max(written.histograms)] + 64])
        damaged += bytes(len(whole) - len(damaged))
        for _ in range(draw.choice((1, 1, 2, 5, 20))):
            start, size = draw.choice(regions)
            damaged[start + draw.randrange(size)] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        if draw.random() < 0.1:
            del damaged[draw.randrange(len(damaged)) :]
        written.path.write_bytes(damaged)
        refusal = ""
        try:
            with Segment(written.path) as segment:
                segment.objects()
                segment.events()
                segment.events(cursor=draw.randrange(2**32))
        except SegmentError as error:
            refusal = str(error)
        assert not refusal or str(written.path) in refusal, f"seed {seed}"


_WRITER = """
import mmap, struct, sys
path, record, low, high = sys.argv[1], *map(int, sys.argv[2:])
with open(path, "r+b") as file:
    memory = mmap.mmap(file.fileno(), 0)
words = memoryview(memory).cast("Q")
print("ready", flush=True)
guard, low, high = record // 8, (record + low) // 8, (record + high) // 8
count = 0
while True:
    count += 1
    words[guard] += 1
    words[low] = count
    words[high] = count
    words[guard] += 1
    for _ in range(20):
        pass
"""


def test_values_that_belong_together_stay_together_while_a_writer_runs(written: Written) -> None:
    """A process changes two cells within one update, as fast as it can; no reading may see them differ."""
    cells = [cell.name for cell in catalogue.scopes()["instance"].cells]
    places = [8 + 8 * cells.index(name) for name in ("messages_sent", "objects_refused")]
    arguments = [str(written.path), str(written.records[0]), *map(str, places)]
    with subprocess.Popen([sys.executable, "-c", _WRITER, *arguments], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        different: set[int] = set()
        deadline = time.monotonic() + 30
        try:
            with Segment(written.path) as segment:
                while len(different) < 50 and time.monotonic() < deadline:
                    item = segment.objects(histograms=False)[0]
                    if not item.torn:  # torn: the writer lost its core within an update
                        assert item.values["messages_sent"] == item.values["objects_refused"]
                        different.add(item.values["messages_sent"])
        finally:
            writer.kill()
    assert len(different) == 50


def test_a_cell_that_does_not_apply_is_absent_and_not_0(tmp_path: Path) -> None:
    values = {"messages_received": 12, "backlog_bytes": ABSENT}
    written = write_segment(
        tmp_path / "alpha.1.helio",
        name="alpha",
        objects=[SegmentObject("instance", {"instance": "alpha"}, values=values)],
    )
    with Segment(written.path) as segment:
        (instance,) = segment.objects()
    assert "backlog_bytes" not in instance.values
    assert instance.values["kernel_backlog_bytes"] == 0
