"""A reader and a writer of message stores, written from engine/docs/store.md alone."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

HEADER = struct.Struct(">8sII6sHQQQH")
HEAD = struct.Struct(">4sIIIIIQQQQQQQ")
INDEX = struct.Struct(">8sIIQQII")
RECORD = struct.Struct(">BBHI")
TIMES = struct.Struct(">QQQQ")


class Kept(NamedTuple):
    """A message in a store."""

    topic: str
    sequence: int
    number: int
    submit_ns: int
    receive_ns: int
    flags: int
    payload: bytes


def _table() -> list[int]:
    values = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        values.append(value)
    return values


TABLE = _table()


def check(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value = TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def span(values: Sequence[int]) -> tuple[int, int]:
    return min(values), max(values)


def _body(data: bytes) -> Iterator[Kept]:
    topics: list[str] = []
    at = 0
    while at < len(data):
        kind, flags, topic, length = RECORD.unpack_from(data, at)
        at += RECORD.size
        if kind == 1:
            assert topic == len(topics)
            topics.append(data[at : at + length].decode())
        else:
            assert kind == 2
            numbers = TIMES.unpack_from(data, at)
            at += TIMES.size
            yield Kept(topics[topic], *numbers, flags, data[at : at + length])
        assert len(data[at : at + length]) == length
        at += length
    assert at == len(data)


def read_segment(data: bytes) -> tuple[bytes, int, int, int, str, list[tuple[int, bytes, list[Kept]]]]:
    """GSI, port, number, first position and source of a segment; offset, head and messages of its batches."""
    magic, version, size, gsi, port, number, position, _, length = HEADER.unpack_from(data)
    assert (magic, version, size % 8) == (b"HELIOSTO", 1, 0)
    assert int.from_bytes(data[size - 4 : size], "big") == check(data[: size - 4])
    batches = []
    at, expected = size, position
    while at < len(data):
        head = data[at : at + HEAD.size]
        magic, head_check, bytes_, body_check, count, zero, first, *spans = HEAD.unpack(head)
        assert (magic, head_check, zero, first) == (b"HBAT", check(head[8:]), 0, expected)
        body = data[at + HEAD.size : at + HEAD.size + bytes_]
        assert len(body) == bytes_
        assert check(body) == body_check
        kept = list(_body(body))
        assert len(kept) == count
        assert spans == [
            *span([one.sequence for one in kept]),
            *span([one.number for one in kept]),
            *span([one.receive_ns for one in kept]),
        ]
        batches.append((at, head, kept))
        at, expected = at + HEAD.size + bytes_, expected + count
    return gsi, port, number, position, data[HEADER.size : HEADER.size + length].decode(), batches


def read(folder: Path) -> list[Kept]:
    """The messages of the only stream of a store; its indexes must be right."""
    assert (folder / "store.lock").read_text() == "heliograph store 1\n"
    messages: list[Kept] = []
    for path in sorted(folder.glob("*.seg")):
        data = path.read_bytes()
        gsi, port, number, position, _, batches = read_segment(data)
        assert path.name == f"{gsi.hex()}-{port}-{number:016x}.seg"
        assert position == len(messages) + 1
        messages += [one for _, _, kept in batches for one in kept]
        index = path.with_suffix(".idx")
        if index.exists():
            text = index.read_bytes()
            entries = b"".join(at.to_bytes(8, "big") + head[8:] for at, head, _ in batches)
            assert text[INDEX.size :] == entries
            assert INDEX.unpack_from(text) == (
                *(b"HELIOIDX", 1, len(batches), number, len(data)),
                *(check(entries), check(text[:36])),
            )
    return messages


def batch(position: int, messages: Sequence[Kept]) -> bytes:
    """A batch of the messages, whose first has the position."""
    topics: list[str] = []
    body = b""
    for one in messages:
        if one.topic not in topics:
            topics.append(one.topic)
            name = one.topic.encode()
            body += RECORD.pack(1, 0, len(topics) - 1, len(name)) + name
        body += RECORD.pack(2, one.flags, topics.index(one.topic), len(one.payload))
        body += TIMES.pack(one.sequence, one.number, one.submit_ns, one.receive_ns) + one.payload
    spans = [span([getattr(one, name) for one in messages]) for name in ("sequence", "number", "receive_ns")]
    facts = (len(body), check(body), len(messages), 0, position, *spans[0], *spans[1], *spans[2])
    head = HEAD.pack(b"HBAT", 0, *facts)
    return b"HBAT" + check(head[8:]).to_bytes(4, "big") + head[8:] + body


def segment(gsi: bytes, port: int, batches: Sequence[Sequence[Kept]], source: str = "") -> bytes:
    """A first segment with the batches."""
    name = source.encode()
    size = (HEADER.size + len(name) + 4 + 7) // 8 * 8
    created = batches[0][0].receive_ns if batches else 0
    header = HEADER.pack(b"HELIOSTO", 1, size, gsi, port, 1, 1, created, len(name)) + name
    header = header.ljust(size - 4, b"\0")
    data = header + check(header).to_bytes(4, "big")
    position = 1
    for messages in batches:
        data += batch(position, messages)
        position += len(messages)
    return data


def write_store(folder: Path, messages: Sequence[Kept]) -> None:
    """A store of one stream, with the messages in one batch."""
    gsi, port = bytes.fromhex("a1b2c3d4e5f6"), 7500
    folder.mkdir(exist_ok=True)
    (folder / "store.lock").write_text("heliograph store 1\n")
    (folder / f"{gsi.hex()}-{port}-{1:016x}.seg").write_bytes(segment(gsi, port, [messages]))
