"""Snapshots through bytes: the same again, whole or as changes, and nothing an enemy sends does harm."""

from __future__ import annotations

import contextlib
import random
import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.monitor.latency import dense, layout_of
from heliograph.monitor.model import Event, Health, Histogram, InstanceState, ObjectState, Snapshot
from heliograph.monitor.packing import Decoder, Encoder, Limits, PackingError, SparseHistogram
from heliograph.monitor.packing.frame import Head, pack, unpack
from heliograph.monitor.packing.varints import decode, encode, gaps, positions, unzigzag, zigzag
from heliograph.monitor.sampler import Sampler
from tests.fleet import sample_fleet
from tests.monitor.sameness import assert_same

HEAD_BYTES = 40
U64 = st.integers(0, 2**64 - 1)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


# Columns


@given(st.lists(U64 | st.integers(0, 300), max_size=80))
def test_a_column_of_numbers_comes_back(values: list[int]) -> None:
    data = encode(np.array(values, np.uint64))
    assert decode(data, len(values)).tolist() == values


@given(st.lists(U64, max_size=40))
def test_differences_come_back_and_those_near_nothing_are_small(values: list[int]) -> None:
    column = np.array(values, np.uint64)
    assert unzigzag(zigzag(column)).tolist() == values
    assert zigzag(np.array([0, 2**64 - 1, 1, 2**64 - 2], np.uint64)).tolist() == [0, 1, 2, 3]


@given(st.sets(st.integers(0, 200)))
def test_rising_positions_come_back_from_their_gaps(places: set[int]) -> None:
    rising = np.array(sorted(places), np.int64)
    assert positions(gaps(rising), 201).tolist() == sorted(places)
    if places and max(places):
        with pytest.raises(ValueError):
            positions(gaps(rising), max(places))


@pytest.mark.parametrize(
    ("data", "count"),
    [(b"", 1), (b"\0", 0), (b"\x80", 1), (b"\0\0", 1), (b"\xff" * 9 + b"\x02", 1), (b"\x80" * 10 + b"\0", 1)],
)
def test_a_damaged_column_is_refused(data: bytes, count: int) -> None:
    with pytest.raises(ValueError):
        decode(data, count)


# Snapshots


@st.composite
def _histograms(draw: st.DrawFn) -> Histogram:
    digits, lowest, highest = draw(st.sampled_from([(1, 1, 1000), (2, 1, 100_000), (3, 1000, 3_600_000)]))
    counts = np.zeros(layout_of(digits, lowest, highest).cells, np.uint64)
    for cell, count in draw(st.dictionaries(st.integers(0, counts.size - 1), U64, max_size=6)).items():
        counts[cell] = count
    return Histogram(counts, lowest, highest, digits, draw(U64), draw(U64), draw(U64))


@st.composite
def _objects(draw: st.DrawFn) -> ObjectState:
    return ObjectState(
        scope=draw(st.sampled_from(["receiver", "instance", "of tomorrow"])),
        labels=draw(st.dictionaries(TEXT, TEXT, max_size=3)),
        info=draw(st.dictionaries(TEXT, TEXT, max_size=2)),
        values=draw(st.dictionaries(TEXT | st.sampled_from(["messages_lost", "next_message"]), U64, max_size=12)),
        histograms=draw(st.dictionaries(st.sampled_from(["total_latency", "new"]) | TEXT, _histograms(), max_size=2)),
        live=draw(st.booleans()),
        torn=draw(st.booleans()),
        created_ns=draw(U64),
        generation=draw(st.integers(0, 3)),
    )


_INSTANCES = st.builds(
    InstanceState,
    name=st.sampled_from(["alpha", "bravo"]) | TEXT,
    health=st.sampled_from(Health),
    reason=TEXT,
    pid=st.integers(0, 3),
    incarnation=U64,
    started_ns=U64,
    heartbeat_ns=U64,
    path=TEXT,
    objects=st.lists(_objects(), max_size=4).map(tuple),
)
_EVENTS = st.builds(
    Event,
    instance=TEXT,
    incarnation=U64,
    number=U64,
    time_ns=U64,
    name=TEXT,
    severity=st.sampled_from(["info", "warning", "error"]),
    labels=st.dictionaries(TEXT, TEXT, max_size=3),
    arguments=st.dictionaries(TEXT, U64, max_size=4),
    text=TEXT,
)
_SNAPSHOTS = st.builds(
    Snapshot,
    time_ns=U64,
    instances=st.lists(_INSTANCES, max_size=3).map(tuple),
    events=st.lists(_EVENTS, max_size=3).map(tuple),
    events_missed=U64,
)


@st.composite
def _histories(draw: st.DrawFn) -> list[Snapshot]:
    """Snapshots each of which keeps, changes, drops, moves and adds instances and objects of the one before."""
    found = [draw(_SNAPSHOTS)]
    for _ in range(draw(st.integers(0, 4))):
        instances = []
        for instance in found[-1].instances:
            kept = [item for item in instance.objects if draw(st.integers(0, 4))]
            changed = [
                replace(
                    item, values={name: draw(U64) if draw(st.booleans()) else old for name, old in item.values.items()}
                )
                for item in kept
            ]
            mixed = draw(st.permutations(changed + draw(st.lists(_objects(), max_size=1))))
            instances.append(replace(instance, objects=tuple(mixed), heartbeat_ns=draw(U64)))
        instances += draw(st.lists(_INSTANCES, max_size=1))
        if draw(st.booleans()):
            instances = instances[1:]
        found.append(replace(draw(_SNAPSHOTS), instances=tuple(draw(st.permutations(instances)))))
    return found


@settings(deadline=None, max_examples=15)
@given(_histories(), st.booleans(), st.integers(0, 3))
def test_every_history_comes_back_frame_by_frame(history: list[Snapshot], chain: bool, every: int) -> None:
    encoder, decoder = Encoder(chain=chain, keyframe_every=every), Decoder()
    for snapshot in history:
        back = decoder.feed(encoder.frame(snapshot))
        assert back is not None
        assert_same(snapshot, back)


@settings(deadline=None, max_examples=6)
@given(_histories())
def test_a_relayed_history_comes_back(history: list[Snapshot]) -> None:
    encoder, middle, again, decoder = Encoder(), Decoder(), Encoder(chain=False), Decoder()
    for snapshot in history:
        passed = middle.feed(encoder.frame(snapshot))
        assert passed is not None
        back = decoder.feed(again.frame(passed))
        assert back is not None
        assert_same(snapshot, back)


@pytest.fixture
def fleet(segments: Path) -> Iterator[list[Snapshot]]:
    """Two moments of the fleet on paper."""
    with Sampler(segments) as sampler:
        sample_fleet(segments)
        first = sampler.sample()
        sample_fleet(segments, 1)
        yield [first, sampler.sample()]


def test_a_fleet_read_from_segments_comes_back_bit_by_bit(fleet: list[Snapshot]) -> None:
    encoder, decoder = Encoder(), Decoder()
    for snapshot in fleet:
        back = decoder.feed(encoder.frame(snapshot))
        assert back is not None
        assert_same(snapshot, back)
    assert decoder.directory["receiver", "messages_delivered"] == ("counter", "messages")
    assert decoder.directory["receiver", "total_latency"] == ("histogram", "nanoseconds")


def test_changes_are_small_and_what_did_not_change_is_the_same_object(fleet: list[Snapshot]) -> None:
    encoder, decoder = Encoder(), Decoder()
    whole = encoder.frame(fleet[1])
    again = encoder.frame(replace(fleet[1], events=()))
    assert len(again) < len(whole) / 20
    first, second = decoder.feed(whole), decoder.feed(again)
    assert first is not None
    assert second is not None
    for before, after in zip(first.instances, second.instances, strict=True):
        assert all(one is other for one, other in zip(before.objects, after.objects, strict=True))


def test_a_decoded_histogram_equals_the_one_it_was_made_from(fleet: list[Snapshot]) -> None:
    back = Decoder().feed(Encoder().frame(fleet[0]))
    assert back is not None
    pairs = [
        (mine.histograms["total_latency"], theirs.histograms["total_latency"])
        for (_, mine), (_, theirs) in zip(fleet[0].of("receiver"), back.of("receiver"), strict=True)
    ]
    assert pairs
    for mine, theirs in pairs:
        assert isinstance(theirs, SparseHistogram)
        assert theirs == mine
        assert mine == theirs
        assert theirs != replace(dense(mine), above=mine.above + 1)
        assert not theirs.minus(mine).counts.any()


# Frames lost, late and twice


def _numbered(*numbers: int) -> list[Snapshot]:
    item = ObjectState("instance", {"instance": "a"}, {}, {"messages_sent": 0})
    owner = InstanceState("a", Health.LIVE, "", 1, 2, 3, 4, "p")
    return [
        Snapshot(number, (replace(owner, objects=(replace(item, values={"messages_sent": number}),)),))
        for number in numbers
    ]


def test_who_comes_late_waits_for_a_keyframe_and_says_so() -> None:
    encoder, decoder = Encoder(keyframe_every=3), Decoder()
    frames = [encoder.frame(snapshot) for snapshot in _numbered(1, 2, 3, 4)]
    assert decoder.waiting == "nothing has been received"
    assert decoder.feed(frames[1]) is None
    assert "frame 2 has the changes since frame 1" in decoder.waiting
    assert decoder.feed(frames[2]) is None
    back = decoder.feed(frames[3])
    assert back is not None
    assert back.time_ns == 4
    assert decoder.waiting == ""
    assert (decoder.stats.unusable, decoder.stats.frames, decoder.stats.missed) == (2, 1, 0)


def test_a_lost_frame_of_a_chain_costs_all_up_to_the_next_keyframe_and_without_a_chain_itself_only() -> None:
    history = _numbered(*range(1, 9))
    for chain, usable, unusable in ((True, 5, 2), (False, 7, 0)):
        encoder, decoder = Encoder(chain=chain, keyframe_every=4), Decoder()
        frames = [encoder.frame(snapshot) for snapshot in history]
        del frames[1]
        found = [decoder.feed(frame) for frame in frames]
        assert [item.time_ns for item in found if item] == [1, *((3, 4) if not chain else ()), 5, 6, 7, 8]
        stats = decoder.stats
        assert (stats.frames, stats.unusable, stats.missed, stats.keyframes) == (usable, unusable, 1, 2)


def test_frames_that_come_again_or_late_are_passed_over() -> None:
    encoder, decoder = Encoder(chain=False), Decoder()
    frames = [encoder.frame(snapshot) for snapshot in _numbered(1, 2, 3)]
    assert decoder.feed(frames[0]) is not None
    assert decoder.feed(frames[2]) is not None
    assert decoder.feed(frames[1]) is None
    assert decoder.feed(frames[2]) is None
    assert decoder.stats.repeated == 2


def test_an_encoder_that_is_started_anew_takes_over_with_its_keyframe() -> None:
    decoder = Decoder()
    assert decoder.feed(Encoder().frame(_numbered(1)[0])) is not None
    later = Encoder()
    frames = [later.frame(snapshot) for snapshot in _numbered(2, 3)]
    assert decoder.feed(frames[1]) is None  # its frame 1 is not the other encoder's
    assert (decoder.stats.restarts, decoder.stats.missed, decoder.stats.unusable) == (1, 1, 1)
    back = decoder.feed(later.frame(_numbered(4)[0], keyframe=True))
    assert back is not None
    assert back.time_ns == 4


def test_texts_that_come_and_go_are_forgotten_with_a_keyframe_of_the_encoders_own() -> None:
    encoder, decoder = Encoder(), Decoder()
    snapshot = _numbered(1)[0]
    owner = snapshot.instances[0]
    for step in range(12):
        objects = tuple(replace(owner.objects[0], labels={"instance": f"{step} {number}"}) for number in range(1000))
        back = decoder.feed(encoder.frame(replace(snapshot, instances=(replace(owner, objects=objects),))))
        assert back is not None
        assert back.instances[0].objects[-1].labels == {"instance": f"{step} 999"}
    assert 1 < decoder.stats.keyframes < 6


def test_a_snapshot_that_cannot_be_packed_says_why_and_the_stream_goes_on() -> None:
    encoder, decoder = Encoder(), Decoder()
    first, bad, last = _numbered(1, -5, 3)
    assert decoder.feed(encoder.frame(first)) is not None
    with pytest.raises(PackingError, match="cannot be packed"):
        encoder.frame(bad)
    odd = Histogram(np.zeros(7, np.uint64), 1, 1000, 1)
    owner = last.instances[0]
    wrong = replace(owner, objects=(replace(owner.objects[0], histograms={"total_latency": odd}),))
    with pytest.raises(PackingError, match="7 cells"):
        encoder.frame(replace(last, instances=(wrong,)))
    assert decoder.feed(encoder.frame(last)) is not None
    assert decoder.stats.missed == 0


# Enemies


def _must_be_refused_or_read(decoder: Decoder, frame: bytes) -> None:
    with contextlib.suppress(PackingError):
        decoder.feed(frame)


def _resealed(frame: bytes, body: bytes) -> bytes:
    """A frame with another body and a check sum that is right."""
    _, _, _, _, stream, number, base, _, _ = struct.unpack_from("<4sBBHQQQII", frame)
    return pack(Head(stream, number, base), body, compress=False)


def test_a_frame_cut_short_anywhere_is_refused(fleet: list[Snapshot]) -> None:
    frame = Encoder().frame(fleet[0])
    plain = Encoder(compress=False).frame(fleet[0])
    for size in range(0, len(frame), 97):
        with pytest.raises(PackingError):
            Decoder().feed(frame[:size])
    body = plain[HEAD_BYTES:]
    for size in range(0, len(body), 151):
        with pytest.raises(PackingError):
            Decoder().feed(_resealed(plain, body[:size]))


def test_damage_under_a_right_check_sum_raises_nothing_but_the_packing_error(fleet: list[Snapshot]) -> None:
    dice = random.Random(5)
    encoder = Encoder(compress=False)
    frames = [encoder.frame(snapshot) for snapshot in fleet]
    limits = Limits(cells=1 << 16, objects=1 << 12)
    for step in range(240):
        decoder = Decoder(limits)
        which = step % 2
        if which:
            decoder.feed(frames[0])
        body = bytearray(frames[which][HEAD_BYTES:])
        for _ in range(dice.randint(1, 4)):
            place = dice.randrange(min(len(body), dice.choice((64, len(body)))))
            body[place] = dice.choice((0, 1, 127, 128, 255, dice.randrange(256)))
        _must_be_refused_or_read(decoder, _resealed(frames[which], bytes(body)))


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=300))
def test_any_bytes_raise_nothing_but_the_packing_error(data: bytes) -> None:
    _must_be_refused_or_read(Decoder(), data)
    _must_be_refused_or_read(Decoder(), pack(Head(1, 1, 0), data, compress=False))


def test_a_small_frame_does_not_make_the_decoder_large() -> None:
    bombs = [
        pack(Head(1, 1, 0), b"\0" * (40 << 20), compress=False)[:HEAD_BYTES] + zlib.compress(b"\0" * (40 << 20)),
        pack(Head(1, 1, 0), b"\1\0" + b"\xff" * 9 + b"\1" + b"\xff" * 9 + b"\1" + b"\0" * 100),
    ]
    bombs[0] = bombs[0][:5] + b"\3" + bombs[0][6:]
    tracemalloc.start()
    try:
        for bomb in bombs:
            with pytest.raises(PackingError):
                Decoder().feed(bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def test_a_packed_body_longer_or_shorter_than_it_says_is_refused() -> None:
    body = bytes(range(256)) * 8
    frame = pack(Head(1, 1, 0), body)
    for size in (len(body) - 1, len(body) + 1):
        with pytest.raises(PackingError):
            Decoder().feed(frame[:32] + struct.pack("<I", size) + frame[36:])
    with pytest.raises(PackingError, match="do not end"):
        Decoder().feed(frame + b"more")


def test_a_decoder_refuses_what_is_over_its_limits(fleet: list[Snapshot]) -> None:
    frame = Encoder().frame(fleet[0])
    for limits in (
        *(Limits(body_bytes=100), Limits(instances=2), Limits(objects=10), Limits(cells=50)),
        *(Limits(histograms=3), Limits(strings=5), Limits(shapes=1)),
    ):
        with pytest.raises(PackingError):
            Decoder(limits).feed(frame)


def test_what_a_later_version_adds_is_passed_over_and_what_follows_the_end_is_not() -> None:
    frame = Encoder(compress=False).frame(_numbered(7)[0])
    body = frame[HEAD_BYTES:-1]
    back = Decoder().feed(_resealed(frame, body + b"\1" + b"\5clock" + b"\3abc"))
    assert back is not None
    assert back.time_ns == 7
    for tail in (b"", b"\1\5clock", b"\0\0", b"\1\5clock\3ab"):
        with pytest.raises(PackingError):
            Decoder().feed(_resealed(frame, body + tail))


def test_a_frame_of_another_version_is_refused_by_name_and_does_not_end_the_stream() -> None:
    encoder, decoder = Encoder(), Decoder()
    first, second = (encoder.frame(snapshot) for snapshot in _numbered(1, 2))
    assert decoder.feed(first) is not None
    with pytest.raises(PackingError, match="version 2"):
        decoder.feed(second[:4] + b"\2" + second[5:])
    assert decoder.feed(second) is not None


def test_a_stream_of_zlib_that_is_damaged_behind_the_body_is_refused_as_a_damaged_frame() -> None:
    """Its first `size` bytes come out whole; the fault lies in what follows, wherever that is cut."""
    for size in (1, 2, 100, 1000, 40_000):
        body = bytes(random.Random(size).choices(b"abcd", k=size))  # packs, but not so tightly as to be refused
        frame = pack(Head(7, 1, 0), body, compress=True)
        for place in range(1, 9):
            for bit in range(8):
                broken = bytearray(frame)
                broken[-place] ^= 1 << bit
                with contextlib.suppress(PackingError):
                    assert unpack(bytes(broken), 1 << 20) == (Head(7, 1, 0), body)  # bits that only fill up a byte
