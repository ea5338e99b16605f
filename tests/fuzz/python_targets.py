"""The decoders in Python that read what others wrote, as fuzz targets: how they are fed, seeded, and may refuse.

A target's `mutate` knows the format as far as its checks go: sums are put right and compressed parts taken apart, so
that changes reach the decoder behind them.
"""

from __future__ import annotations

import base64
import os
import random
import socket
import struct
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

from tests.fuzz.python_mutation import mangled
from tests.stores import check

__all__ = ["TARGETS", "Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """One decoder."""

    run: Callable[[bytes], str]
    """Feeds an input and says what was read."""
    seeds: Callable[[], Sequence[bytes]]
    refusals: tuple[type[Exception], ...]
    """What it may raise."""
    mutate: Callable[[random.Random, bytes, bytes], bytes] = mangled


class _Refused(Exception):
    """Stands for refusals that no target raises."""


@cache
def _folder() -> Path:
    """Where inputs that must be files are put; in memory where there is such a place, gone with the process."""
    shm = Path("/dev/shm")
    made = tempfile.TemporaryDirectory(prefix="helio-fuzz-", dir=shm if os.access(shm, os.W_OK) else None)
    _KEPT.append(made)
    return Path(made.name)


_KEPT: list[object] = []


def _file(name: str, data: bytes) -> Path:
    path = _folder() / name
    path.write_bytes(data)
    return path


# Parts behind their length in four bytes: the frames and messages of a stream.


def _parts(data: bytes) -> list[bytes]:
    found = []
    while len(data) >= 4 and len(found) < 64:
        (size,) = struct.unpack_from("<I", data)
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    return found


def _joined(parts: Sequence[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def _some_parts(
    chance: random.Random, data: bytes, other: bytes, change: Callable[[random.Random, bytes, bytes], bytes]
) -> bytes:
    parts, others = _parts(data), _parts(other) or [b""]
    if not parts or chance.random() < 0.02:
        return mangled(chance, data, other)
    match chance.randrange(8):
        case 0:
            chance.shuffle(parts)
        case 1:
            parts.insert(chance.randrange(len(parts) + 1), chance.choice(others))
        case 2:
            parts.pop(chance.randrange(len(parts)))
    for _ in range(chance.choice((1, 1, 2)) if parts else 0):
        at = chance.randrange(len(parts))
        parts[at] = change(chance, parts[at], chance.choice(others))
    return _joined(parts)


# Snapshots


@cache
def _fleet_frames() -> tuple[bytes, ...]:
    from heliograph.monitor.packing import Encoder
    from heliograph.monitor.sampler import Sampler
    from tests.fleet import sample_fleet

    with tempfile.TemporaryDirectory() as folder:
        sample_fleet(Path(folder))
        with Sampler(Path(folder)) as sampler:
            encoder = Encoder()
            frames = [encoder.frame(sampler.sample())]
            sample_fleet(Path(folder), moment=1)
            frames += [encoder.frame(sampler.sample()), encoder.frame(sampler.sample())]
    return tuple(frames)


@cache
def _small_frames() -> tuple[bytes, ...]:
    from heliograph.monitor.model import Event, Health, InstanceState, ObjectState, Snapshot
    from heliograph.monitor.packing import Encoder

    encoder = Encoder()
    frames = []
    for moment in range(3):
        item = ObjectState(
            "instance", {"instance": "a"}, {"version": "1"}, {"messages_sent": moment, "naks_sent": 2**63}
        )
        owner = InstanceState("a", Health.LIVE, "", 42, 7, 1, moment, "/a", (item,) * (1 + moment))
        event = Event("a", 7, moment, moment, "test", "info", {"instance": "a"}, {"count": 1}, "text")
        frames.append(encoder.frame(Snapshot(moment, (owner,), (event,), 0)))
    return tuple(frames)


def _read_snapshots(data: bytes) -> str:
    from heliograph.monitor.latency import percentiles
    from heliograph.monitor.packing import Decoder, PackingError

    decoder = Decoder()
    said = []
    for frame in _parts(data):
        try:
            snapshot = decoder.feed(frame)
        except PackingError as error:
            said.append(str(error))
            continue
        said.append("taken" if snapshot else decoder.waiting)
        for _, item in _objects(snapshot):
            for histogram in item.histograms.values():
                percentiles(histogram, (0.5, 0.99))
    return "; ".join(said)


def _objects(snapshot: object) -> Iterator[tuple[object, object]]:
    for owner in getattr(snapshot, "instances", ()):
        for item in owner.objects:
            yield owner, item


def _change_frame(chance: random.Random, frame: bytes, other: bytes) -> bytes:
    from heliograph.monitor.packing import PackingError
    from heliograph.monitor.packing.frame import Head, pack, unpack

    try:
        head, body = unpack(frame, 1 << 20)
    except PackingError:
        return mangled(chance, frame, other)
    try:
        from_other = unpack(other, 1 << 20)[1]
    except PackingError:
        from_other = other
    if chance.random() < 0.1:
        head = Head(
            head.stream ^ chance.randrange(2), head.number + chance.randrange(3), chance.randrange(head.number + 1)
        )
    if chance.random() < 0.1:
        return mangled(chance, frame, other)
    changed = mangled(chance, body, from_other)
    return pack(head, changed, compress=chance.random() < 0.5)


def _mutate_frames(chance: random.Random, data: bytes, other: bytes) -> bytes:
    return _some_parts(chance, data, other, _change_frame)


# Reports to a collector, and what an exporter shows of them


class _Ear:
    """An inlet that hears messages from a list."""

    urls: Sequence[str] = ("fuzz://",)

    def __init__(self, messages: Sequence[bytes]) -> None:
        self.messages = list(messages)

    def receive(self, timeout: float) -> list[bytes]:
        found, self.messages = self.messages[:1], self.messages[1:]
        return found

    def lost(self) -> int:
        return 0

    def close(self) -> None:
        self.messages.clear()


def _collect(data: bytes) -> str:
    from heliograph.exporters.collector import SnapshotCollector
    from heliograph.exporters.prometheus import exposition
    from heliograph.monitor.collector import Collector

    messages = _parts(data)[:4]
    shown = SnapshotCollector()
    seconds = count(100)
    with Collector(_Ear(messages), patience=0.0, monotonic=lambda: float(next(seconds))) as collector:
        for _ in range(len(messages) + 1):
            shown.update(collector.sample())
        text = exposition(shown)
        reasons = "; ".join(sorted(host.reason for host in collector.account.hosts))
    return f"{len(text.splitlines()) // 200} {reasons}"


def _reports(frames: Sequence[bytes]) -> bytes:
    from heliograph.monitor.collector.report import Report, pack_message

    return _joined(
        [pack_message([Report(1, "host", "/place", 2, 3, 10**9, frame=frame)]) for frame in frames]
        + [pack_message([Report(9, "höst", "/place", 2, 3, 10**9, 4, (5, 6), ends=True)])]
    )


def _change_report(chance: random.Random, message: bytes, other: bytes) -> bytes:
    from dataclasses import replace

    from heliograph.monitor.collector.report import pack_message, unpack_message
    from heliograph.monitor.packing import PackingError

    if chance.random() < 0.3:
        return mangled(chance, message, other)
    try:
        reports = unpack_message(message)
        others = unpack_message(other)
        changed = [
            replace(one, frame=_change_frame(chance, one.frame, others[0].frame)) for one in reports if one.frame
        ]
        return pack_message(changed or reports)
    except (PackingError, ValueError, IndexError):
        return mangled(chance, message, other)


def _mutate_reports(chance: random.Random, data: bytes, other: bytes) -> bytes:
    return _some_parts(chance, data, other, _change_report)


# Flight recordings


@cache
def _flights() -> tuple[bytes, ...]:
    from tests.flights import FlightObject, FlightWriter, small_directory
    from tests.segments import SegmentEvent

    found = []
    for ticks in (1, 5, 60):
        writer = FlightWriter(name="feed", directory=small_directory(), chunk_bytes=1024, chunks=4)
        writer.tick(new={0: FlightObject("instance", {"instance": "feed"}, {"messages_sent": 5})})
        for tick in range(ticks):
            events = [SegmentEvent("packets_lost", "lost", (1, 2))] if tick % 7 == 3 else []
            writer.tick(changed={0: {"messages_sent": 9 + tick}}, events=events, missed=tick % 11 == 5, why="" or None)
        writer.tick(gone=[0], why="ended")
        found.append(writer.data())
    return tuple(found)


def _read_flight(data: bytes) -> str:
    from heliograph.monitor.flight.reader import read

    recording = read(_file("fuzz.1.flight", data))
    for track in recording.tracks[:8]:
        for cell in list(track.changes)[:4]:
            track.values(cell, len(recording.numbers))
    assert len(recording.times) == len(recording.numbers)
    return f"{len(recording.tracks)} {len(recording.gaps)} {'; '.join(recording.damage)}"


def _chunks_of(data: bytes) -> tuple[int, int, int]:
    """Where the chunks begin, their size and their number, as the header says; 0: it makes no sense."""
    if len(data) < 512:
        return 0, 0, 0
    at, size, number = struct.unpack_from("<QQI", data, 80)
    return (at, size, number) if at < len(data) and 64 < size < len(data) and number < 64 else (0, 0, 0)


def _mutate_flight(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """A frame's payload is changed and its check put right, or anything at all."""
    at, size, number = _chunks_of(data)
    if not number or chance.random() < 0.25:
        return mangled(chance, data, other)
    begin = at + chance.randrange(number) * size
    if begin + 64 > len(data):
        return mangled(chance, data, other)
    (used,) = struct.unpack_from("<Q", data, begin + 8)
    frames = []
    place, end = begin + 64, min(begin + 64 + used, begin + size, len(data))
    while place + 8 <= end:
        (length,) = struct.unpack_from("<I", data, place)
        frames.append(data[place + 8 : min(place + 8 + length, end)])
        place += 8 + -(-length // 8) * 8
    if not frames:
        return mangled(chance, data, other)
    which = chance.randrange(len(frames))
    frames[which] = mangled(chance, frames[which], chance.choice(frames))
    told = bytearray()
    for frame in frames:
        told += struct.pack("<II", len(frame), zlib.crc32(frame)) + frame
        told += bytes(-len(told) % 8)
    told = told[: size - 64]
    head = data[begin : begin + 8] + struct.pack("<Q", len(told)) + data[begin + 16 : begin + 64]
    return data[:begin] + head + bytes(told).ljust(size - 64, b"\0") + data[begin + size :]


# HDR logs and their payloads


@cache
def _logs() -> tuple[bytes, ...]:
    from hdrh.histogram import HdrHistogram

    from heliograph.monitor.history import hlog

    lines = [hlog.head(1_763_726_400 * 10**9)]
    for number, digits in enumerate((1, 2, 3)):
        recorded = HdrHistogram(1, 60_000_000_000, digits)
        for value in range(1, 5_000_000, 400_000):
            recorded.record_value(value + number)
        payload = base64.b64decode(recorded.encode())
        tag = hlog.tag_of("alpha", "PRICES.A", "0a1b.30001", "receiver_total_latency") if number else ""
        lines.append(hlog.line_of(number * 10**9, 10**9, 5_000_000, tag, payload))
    return "".join(lines).encode(), "".join(lines[1:]).encode(), lines[0].encode()


def _read_log(data: bytes) -> str:
    from heliograph.monitor.history.importer import import_hlog

    spool = _folder() / "spool"
    found = import_hlog(_file("fuzz.hlog", data), spool)
    for path in spool.rglob("*.parquet"):
        path.unlink()
    return f"{found.intervals} {found.empty} {'; '.join(one.reason for one in found.malformed[:4])}"


def _mutate_log(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """A histogram within a line, or its text."""
    lines = data.split(b"\n")
    which = chance.randrange(len(lines))
    before, comma, text = lines[which].rpartition(b",")
    if not comma or chance.random() < 0.4:
        return mangled(chance, data, other)
    try:
        payload = base64.b64decode(text, validate=True)
        body = zlib.decompress(payload[8:])
        changed = mangled(chance, body, body)
        if chance.random() < 0.7 and len(changed) >= 8:  # its length says what is there
            changed = changed[:4] + struct.pack(">I", max(0, len(changed) - 40)) + changed[8:]
        packed = zlib.compress(changed)
        payload = payload[:4] + struct.pack(">I", len(packed)) + packed
    except (ValueError, zlib.error):
        return mangled(chance, data, other)
    lines[which] = before + b"," + base64.b64encode(payload)
    return b"\n".join(lines)


# Segments


@cache
def _segments() -> tuple[bytes, ...]:
    from tests.segments import SegmentEvent, SegmentObject, write_segment

    path = _folder() / "seed.1.helio"
    receiver = {"instance": "alpha", "topic": "PRICES.A", "stream": "0a0b0c0d0e0f.30001"}
    write_segment(
        path,
        name="alpha",
        objects=[
            SegmentObject("instance", {"instance": "alpha"}, values={"messages_received": 5}),
            SegmentObject("receiver", receiver, values={"messages_delivered": 5, "next_message": 5}),
        ],
        events=[SegmentEvent("stream_opened", "met a stream", arguments=(1,), slot=1)],
        object_capacity=4,
        event_capacity=4,
    )
    data = path.read_bytes()
    path.unlink()
    return (data,)


def _read_segment(data: bytes) -> str:
    from heliograph.monitor.segment import Segment

    with Segment(_file("fuzz.1.helio", data)) as segment:
        objects = segment.objects()
        events = segment.events()
    return f"{len(objects)} {len(events.events)} {events.missed}"


def _mutate_segment(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Mostly one word of the header, the entries or the directory; the size stays."""
    if chance.random() < 0.1:
        return mangled(chance, data, other)[: 1 << 20]
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(0, max(1, min(len(data) - 8, chance.choice((256, 256, len(data))))), 4)
        piece = mangled(chance, bytes(changed[at : at + 8]), other)[:8]
        changed[at : at + len(piece)] = piece
    return bytes(changed)


# Parquet files of the spool


@cache
def _spooled() -> tuple[bytes, ...]:
    from heliograph.monitor.history.files import read_table, write_table
    from heliograph.monitor.history.importer import import_hlog
    from heliograph.monitor.history.schema import SPOOL

    spool = _folder() / "seeds"
    import_hlog(_file("seed.hlog", _logs()[0]), spool)
    (path,) = spool.rglob("*.parquet")
    silent = spool / "silent.parquet"
    write_table(silent, read_table(path, SPOOL).replace_schema_metadata())
    return path.read_bytes(), silent.read_bytes()


def _read_spool(data: bytes) -> str:
    from heliograph.monitor.history.files import Broken, read_unit, scan

    path = _folder() / "hostile" / "date=2025-11-21" / "fuzz-000001.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    found = scan(path.parents[1])
    said = [one.reason for one in found.broken]
    for unit in found.units:
        for _, table in read_unit(unit.paths):
            said.append(table.reason if isinstance(table, Broken) else f"{table.num_rows} rows")
    return "; ".join(said)


# Requests to the service of a store, and the batches that it sends


@cache
def _store_seeds() -> tuple[bytes, ...]:
    from heliograph.engine import _store
    from heliograph.engine.store.protocol import Ask, Reading, request

    folder = _folder() / "store"
    folder.mkdir()
    gsi = bytes(range(6))
    kept = [(("A", "B")[n % 2], n, n, n, n + 1, n % 2, b"x" * n) for n in range(20)]
    _store.append(folder, gsi, 1, "", kept, 400, 4000)
    reader = _store.Reader(folder, gsi, 1, 0, 0, 2**64 - 1)
    batches = list(iter(reader.batch, None))
    asked = [request(Ask.READ, Reading(gsi, 1, 2, 3, 9, "A").encode()), request(Ask.STREAMS)]
    saved = (
        b'{"name": "a", "topic": "A", "revision": 1, "owner": "x", "positions": {"000102030405:1": 7}, "saved_ns": 1}'
    )
    return (*batches, *asked, request(Ask.SAVE, saved), request(Ask.SUBSCRIBE, b'{"name": "a"}'))


def _read_store(data: bytes) -> str:
    from heliograph.engine import _store
    from heliograph.engine.store.protocol import Answer, take_answer
    from heliograph.engine.store.service import StoreService

    if data.startswith(b"HBAT"):
        decoder = _store.Decoder(bytes(range(6)), 1, 2, 0, 2**64 - 1)
        decoder.begin(data)
        return f"{sum(1 for _ in iter(lambda: decoder.next(7) or None, None))} rows"
    _store_seeds()
    here, there = socket.socketpair()
    with here, there, socket.socket() as listener:
        here.sendall(data[:60_000])
        here.shutdown(socket.SHUT_WR)
        StoreService(_folder() / "store", listener)._serve(there, threading.Semaphore())
        said = []
        while not said or said[-1][0] is Answer.DATA:
            try:
                said.append(take_answer(here, 5.0))
            except ConnectionResetError:
                return "ended"
    return f"{len(said)} answers, the last {said[-1][0].name} {said[-1][1][:40]!r}"


def _mutate_store(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """A batch keeps its checks, a request mostly its head."""
    if not data.startswith(b"HBAT") or chance.random() < 0.1:
        head = data[:12] if data.startswith(b"HSRQ") and chance.random() < 0.8 else b""
        body = mangled(chance, data[len(head) :], other)
        return head[:8] + struct.pack(">I", len(body)) + body if head else body
    facts, body = bytearray(data[8:80]), mangled(chance, data[80:], other)
    if chance.random() < 0.3:
        facts[chance.randrange(8, len(facts))] ^= 1 << chance.randrange(8)
    facts[:8] = struct.pack(">II", len(body), check(body))
    return b"HBAT" + struct.pack(">I", check(bytes(facts))) + facts + body


def _user_error() -> type[Exception]:
    from heliograph.monitor.errors import UserError

    return UserError


def _segment_error() -> type[Exception]:
    from heliograph.monitor.directory import SegmentError

    return SegmentError


TARGETS: dict[str, Target] = {
    "fuzz_py_snapshot": Target(
        _read_snapshots, lambda: [_joined(_small_frames()), _joined(_fleet_frames())], (_Refused,), _mutate_frames
    ),
    "fuzz_py_collector": Target(_collect, lambda: [_reports(_small_frames())], (_Refused,), _mutate_reports),
    "fuzz_py_flight": Target(_read_flight, _flights, (_user_error(),), _mutate_flight),
    "fuzz_py_hlog": Target(_read_log, _logs, (_Refused,), _mutate_log),
    "fuzz_py_segment": Target(_read_segment, _segments, (_segment_error(),), _mutate_segment),
    "fuzz_py_store": Target(_read_store, _store_seeds, (ValueError,), _mutate_store),
    "fuzz_py_spool": Target(_read_spool, _spooled, (_Refused,), mangled),
}
"""By name; the names begin so that nobody takes them for those in C."""
