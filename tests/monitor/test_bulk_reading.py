"""Reading many objects: few calls, only what changed is made anew, and nothing but reading."""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from heliograph.engine import catalogue
from heliograph.monitor.objects import SINGLY
from heliograph.monitor.segment import Segment
from heliograph.monitor.segment_file import SegmentFile
from tests.segments import ABSENT, HISTOGRAM_HEAD_BYTES, SegmentObject, Written, write_segment

STREAM = "0a0b0c0d0e0f.30001"
OBJECTS = 200


def _peer(number: int, **values: int) -> SegmentObject:
    return SegmentObject(
        "tx_receiver", {"instance": "a", "stream": STREAM, "receiver": f"10.0.0.1:{number}"}, values=values
    )


def _write(path: Path, count: int = OBJECTS) -> Written:
    peers = [_peer(number, naks_received=number) for number in range(count)]
    return write_segment(path, name="a", objects=peers, object_capacity=count)


def _place(cell: str) -> int:
    return 8 + 8 * [item.name for item in catalogue.scopes()["tx_receiver"].cells].index(cell)


def _change(written: Written, slot: int, value: int, guard: int = 2) -> None:
    record = written.records[slot]
    written.poke(record + _place("naks_received"), struct.pack("<Q", value))
    written.poke(record, struct.pack("<Q", guard))


@pytest.fixture
def written(segments: Path) -> Written:
    return _write(segments / "a.1.helio")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Size and place of every pread."""
    made: list[tuple[int, int]] = []
    plain = os.pread

    def counted(file: int, size: int, offset: int) -> bytes:
        made.append((size, offset))
        return plain(file, size, offset)

    monkeypatch.setattr(os, "pread", counted)
    return made


def test_calls_do_not_grow_with_the_number_of_objects(segments: Path, calls: list[tuple[int, int]]) -> None:
    """Neither when nothing changed nor when everything did; what grows is a call for each piece of records."""
    seen = []
    for count in (20, 200):
        written = _write(segments / f"{count}.1.helio", count)
        with Segment(written.path) as segment:
            calls.clear()
            assert len(segment.objects()) == count
            first = len(calls)
            calls.clear()
            segment.objects()
            still = len(calls)
            for slot in range(count):
                _change(written, slot, 7)
            calls.clear()
            assert {item.values["naks_received"] for item in segment.objects()} == {7}
            seen.append((first, still, len(calls)))
    assert seen[0] == seen[1]
    first, still, moved = seen[0]
    assert still == 3, "the header, the table, the records"
    assert max(first, moved) <= 6, "and once more: records, guards, the table"


def test_records_are_read_in_pieces_of_bounded_size(
    written: Written, calls: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    piece = written.size - written.records[OBJECTS // 2]
    monkeypatch.setattr("heliograph.monitor.objects.PIECE_BYTES", piece)
    with Segment(written.path) as segment:
        calls.clear()
        assert len(segment.objects()) == OBJECTS
    records = [size for size, offset in calls if offset >= written.records[0]]
    assert max(records) <= piece
    assert len(records) == 2 * 3


def test_an_object_that_did_not_change_is_the_same_object(written: Written) -> None:
    with Segment(written.path) as segment:
        first = segment.objects()
        assert segment.objects() is first
        _change(written, 150, 77)
        second = segment.objects()
    assert [slot for slot in range(OBJECTS) if second[slot] is not first[slot]] == [150]
    assert (first[150].values["naks_received"], second[150].values["naks_received"]) == (150, 77)


def test_a_value_that_changes_without_the_guard_is_read(written: Written) -> None:
    with Segment(written.path) as segment:
        segment.objects()
        _change(written, 3, 77, guard=0)
        assert segment.objects()[3].values["naks_received"] == 77


@pytest.mark.parametrize("count", [1, SINGLY, SINGLY + 1, 30])
def test_objects_of_which_a_writer_is_at_are_torn_until_it_goes_on(written: Written, count: int) -> None:
    slots = range(10, 10 + count)
    with Segment(written.path) as segment:
        segment.objects()
        for slot in slots:
            _change(written, slot, 9, guard=3)
        for _ in range(2):
            assert [item.slot for item in segment.objects() if item.torn] == list(slots)
        for slot in slots:
            _change(written, slot, 9, guard=4)
        assert not any(item.torn for item in segment.objects())


def test_a_copy_that_a_writer_went_through_is_taken_by_itself(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update between two of the readings of all records: only the object it hit is read once more, and whole."""
    plain = os.pread
    whole = 0

    def busy(file: int, size: int, offset: int) -> bytes:
        nonlocal whole
        data = plain(file, size, offset)
        if offset == written.records[0] and size > 8 * 100:
            whole += 1
            if whole == 2:
                _change(written, 100, 1234)
        return data

    with Segment(written.path) as segment:
        monkeypatch.setattr(os, "pread", busy)
        found = segment.objects()
        assert found[100].values["naks_received"] == 1234
        assert not found[100].torn
        assert segment.objects()[99] is found[99]


def test_objects_come_and_go_between_others_that_stay(segments: Path) -> None:
    path = segments / "a.1.helio"
    peers = [_peer(number, naks_received=number) for number in range(50)]
    write_segment(path, name="a", objects=peers, object_capacity=64)
    with Segment(path) as segment:
        first = segment.objects()
        closed = SegmentObject("tx_receiver", peers[7].labels, values=peers[7].values, state="gone", closed_ns=5)
        again = SegmentObject("tx_receiver", {**peers[9].labels, "receiver": "10.9.9.9:9"}, values={}, generation=2)
        write_segment(path, name="a", objects=[*peers[:7], closed, peers[8], again, *peers[10:]], object_capacity=64)
        second = segment.objects()
        assert [n for n in range(50) if second[n] is not first[n]] == [7, 9]
        assert (second[7].live, second[7].closed_ns, second[7].values["naks_received"]) == (False, 5, 7)
        assert (second[9].labels["receiver"], second[9].generation, second[9].values["naks_received"]) == (
            "10.9.9.9:9",
            2,
            0,
        )
        empty = SegmentObject("tx_receiver", peers[9].labels, state="empty")
        write_segment(path, name="a", objects=[*peers[:9], empty, *peers[10:]], object_capacity=64)
        assert [item.slot for item in segment.objects()] == [*range(9), *range(10, 50)]


def test_histograms_come_with_a_record_that_rests(segments: Path) -> None:
    """Counts lie outside the record, so they are read although it did not change."""
    labels = {"instance": "a", "topic": "T", "stream": STREAM}
    item = SegmentObject("receiver", labels, histograms={"total_latency": {5: 1}})
    path = segments / "a.1.helio"
    write_segment(path, name="a", objects=[item])
    with Segment(path) as segment:
        before = segment.objects()[0]
        write_segment(path, name="a", objects=[SegmentObject("receiver", labels, histograms={"total_latency": {5: 9}})])
        after = segment.objects()[0]
        assert (before.histograms["total_latency"].count, after.histograms["total_latency"].count) == (1, 9)
        assert segment.objects(histograms=False)[0].histograms == {}


def test_values_are_a_mapping_like_any_other(segments: Path) -> None:
    cells = [cell for cell in catalogue.scopes()["tx_receiver"].cells if cell.statistic.kind == "signed"]
    below = cells[0].name
    item = _peer(1, naks_received=2**63 + 5, **{below: 2**64 - 3, "round_trip": ABSENT})
    written = write_segment(segments / "a.1.helio", name="a", objects=[item])
    with Segment(written.path) as segment:
        values = segment.objects()[0].values
    assert (values["naks_received"], values[below], values.get("round_trip")) == (2**63 + 5, -3, None)
    assert "round_trip" not in values
    assert "no_such_cell" not in values
    assert values.get("round_trip", 0) == 0
    with pytest.raises(KeyError):
        values["round_trip"]
    whole = dict(values)
    assert set(whole) == set(values.keys())
    assert len(whole) == len(values)
    assert whole == values
    assert all(values[name] == value for name, value in whole.items())
    assert pickle.loads(pickle.dumps(values)) == whole


def test_a_reader_can_neither_write_nor_hold_up_its_engine(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """It opens to read, takes no lock and maps nothing: wherever it is stopped or killed, nobody notices."""
    opened: list[int] = []
    plain = os.open

    def watched(path: str, flags: int, *more: int, **others: int) -> int:
        opened.append(flags)
        return plain(path, flags, *more, **others)

    monkeypatch.setattr(os, "open", watched)
    before = written.path.read_bytes(), written.path.stat().st_mtime_ns
    with Segment(written.path) as segment:
        segment.objects()
        segment.events()
        locks = Path("/proc/locks").read_text(encoding="ascii")
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    assert [flags & os.O_ACCMODE for flags in opened] == [os.O_RDONLY]
    assert f":{written.path.stat().st_ino} " not in "".join(
        line for line in locks.splitlines() if str(os.getpid()) in line
    )
    assert str(written.path) not in maps
    assert before == (written.path.read_bytes(), written.path.stat().st_mtime_ns)


def _counted(written: Written, **words: int) -> None:
    """Poke words of the only histogram, by name."""
    (block,) = written.histograms.values()
    places = {"above": 32, "negative": 40, "sum": 48, "zero": HISTOGRAM_HEAD_BYTES}
    for name, value in words.items():
        written.poke(block + places[name], struct.pack("<Q", value))


def _one_histogram(path: Path) -> Written:
    labels = {"instance": "a", "topic": "T", "stream": STREAM}
    return write_segment(
        path, name="a", objects=[SegmentObject("receiver", labels, histograms={"total_latency": {5: 1}})]
    )


@pytest.fixture
def whole_readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Place of every reading of all cells."""
    made: list[int] = []
    plain = SegmentFile.read_cells

    def counted(self: SegmentFile, swapped: bool, requests: Sequence[Any], what: str) -> list[Any]:
        found = plain(self, swapped, requests, what)
        made.extend(request[0] for request, one in zip(requests, found, strict=True) if one is not None)
        return found

    monkeypatch.setattr(SegmentFile, "read_cells", counted)
    return made


@pytest.mark.parametrize("words", [{"above": 1}, {"negative": 1}, {"sum": 10}, {"zero": 1}])
def test_a_histogram_is_read_when_it_has_counted(
    segments: Path, whole_readings: list[int], words: dict[str, int]
) -> None:
    written = _one_histogram(segments / "a.1.helio")
    (block,) = written.histograms.values()
    with Segment(written.path) as segment:
        read = [segment.objects()[0].histograms["total_latency"] for _ in range(5)]
        assert whole_readings == [block] * 2, "once more, as its sum may follow its count"
        assert read[1] is read[4]
        _counted(written, **words)
        after = segment.objects()[0].histograms["total_latency"]
        assert after != read[4]
        assert (after.above, after.negative, after.total_ns, after.count) == (
            words.get("above", 0),
            words.get("negative", 0),
            words.get("sum", 5),
            1 + words.get("zero", 0),
        )


def test_a_count_whose_sum_was_read_before_it_is_not_missed(segments: Path) -> None:
    """A weakly ordered processor may show the new sum before the new count."""
    written = _one_histogram(segments / "a.1.helio")
    (block,) = written.histograms.values()
    with Segment(written.path) as segment:
        segment.objects()
        segment.objects()
        _counted(written, sum=10)
        assert segment.objects()[0].histograms["total_latency"].count == 1
        written.poke(block + HISTOGRAM_HEAD_BYTES + 8 * 5, struct.pack("<Q", 2))
        assert segment.objects()[0].histograms["total_latency"].count == 2


def test_a_new_cell_is_found_beside_known_ones(segments: Path) -> None:
    written = _one_histogram(segments / "a.1.helio")
    (block,) = written.histograms.values()
    with Segment(written.path) as segment:
        first = segment.objects()[0].histograms["total_latency"]
        written.poke(block + HISTOGRAM_HEAD_BYTES + 8 * 9, struct.pack("<Q", 4))
        _counted(written, sum=5 + 9 * 4)
        second = segment.objects()[0].histograms["total_latency"]
    assert [part.tolist() for part in first.filled()] == [[5], [1]]
    assert [part.tolist() for part in second.filled()] == [[5, 9], [1, 4]]


@pytest.mark.parametrize("count", [1, SINGLY, SINGLY + 1, 30])
def test_torn_objects_are_found_without_building_the_others(written: Written, count: int) -> None:
    slots = range(10, 10 + count)
    with Segment(written.path) as segment:
        assert segment.torn() == ()
        first = segment.objects()
        for slot in slots:
            _change(written, slot, 9, guard=3)
        _change(written, 150, 77)
        for _ in range(2):
            found = segment.torn()
            assert [(item.slot, item.torn, item.values["naks_received"]) for item in found] == [
                (slot, True, 9) for slot in slots
            ]
        for slot in slots:
            _change(written, slot, 9, guard=4)
        assert segment.torn() == ()
        second = segment.objects()
        assert not any(item.torn for item in second)
        assert [slot for slot in range(OBJECTS) if second[slot] is not first[slot]] == [*slots, 150]
        assert second[150].values["naks_received"] == 77


def test_an_object_that_opened_before_a_look_for_torn_ones_is_read_after_it(segments: Path) -> None:
    path = segments / "a.1.helio"
    peers = [_peer(number, naks_received=number) for number in range(20)]
    absent = [SegmentObject("tx_receiver", peer.labels, state="empty") for peer in peers[10:]]
    write_segment(path, name="a", objects=[*peers[:10], *absent])
    with Segment(path) as segment:
        assert len(segment.objects()) == 10
        write_segment(path, name="a", objects=peers)
        assert segment.torn() == ()
        assert [item.values["naks_received"] for item in segment.objects()] == list(range(20))


def test_looking_for_torn_objects_takes_as_many_calls_as_reading_what_moved(
    written: Written, calls: list[tuple[int, int]]
) -> None:
    with Segment(written.path) as segment:
        segment.objects()
        calls.clear()
        segment.torn()
        assert len(calls) == 3, "the header, the table, the records"
        for slot in range(OBJECTS):
            _change(written, slot, 7)
        calls.clear()
        segment.torn()
        assert len(calls) == 5, "and the records, then their guards"
