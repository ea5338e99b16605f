"""An independent reader of what Heliograph puts on the wire.

Written from RFC 3208 section 8 and 9 and from `engine/docs/wire.md` alone, sharing nothing with the engine, so that the
two documents and the engine are held against each other. It is strict: anything it cannot account for is `Malformed`.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Acknowledge",
    "Batch",
    "Hello",
    "Malformed",
    "Message",
    "Notice",
    "Packet",
    "Question",
    "Report",
    "Time",
    "Topic",
    "decode_batch",
    "decode_frames",
    "decode_hello",
    "decode_packet",
    "fnv1a",
    "ones_sum",
]

TYPES = {
    0x00: "SPM", 0x01: "POLL", 0x02: "POLR", 0x04: "ODATA", 0x05: "RDATA", 0x08: "NAK", 0x09: "NNAK", 0x0A: "NCF",
    0x0C: "SPMR", 0x0D: "ACK",
}  # fmt: skip
UPSTREAM = {"NAK", "NNAK", "SPMR", "POLR", "ACK"}
OPT_LENGTH, OPT_FRAGMENT, OPT_NAK_LIST, OPT_JOIN, OPT_NAK_BO_IVL = 0x00, 0x01, 0x02, 0x03, 0x04
OPT_FIN, OPT_RST, OPT_CR, OPT_ACKNOWLEDGE, OPT_AWAIT = 0x0E, 0x0F, 0x10, 0x60, 0x61
OPT_REPORT, OPT_REPORTING = 0x62, 0x63
OPT_NOTICE, OPT_GRANT = 0x64, 0x65
OPT_CLOCK, OPT_CLOCK_ANSWER = 0x66, 0x67
OPT_SERVICE, OPT_STORES = 0x6E, 0x6F
CLOCK_SOURCES = ("unknown", "host", "exchange")
ACTIONS = {
    1: "notify",
    3: "shed",
    4: "suspend_naks",
    5: "suspend",
    6: "expel",
    8: "resume",
    9: "readmit",
    13: "cut_off",
}
REASONS = ("none", "loss", "naks", "lag", "buffer", "storm")
WITH_FLAGS = {OPT_RST, OPT_CR, OPT_REPORTING, OPT_CLOCK}
NETWORK_SIGNIFICANT = {OPT_NAK_LIST, OPT_NAK_BO_IVL, OPT_CR}
END = 0x80
UNSUMMED = 0x0001
"""A feature of HELLO: data packets without a checksum are taken."""

FRAMES = {0x81: "HELLO", 0x82: "PACKET", 0x03: "ALIVE", 0x04: "PAIR", 0x85: "CROSS"}


class Malformed(ValueError):
    """The bytes break a rule of the RFC or of the wire's page."""


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Who acknowledges what: the private option of an ACK."""

    kind: str
    is_leaving: bool
    receiver: int
    incarnation: int
    first: int
    position: int
    name: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a receiver tells of itself: a private option of NAKs and ACKs."""

    is_leaving: bool
    is_tagged: bool
    is_obeying: bool
    buffer_fill: int
    receiver: int
    incarnation: int
    received: int
    lost: int
    unrecoverable: int
    position: int
    window: int
    echo: tuple[int, int] | None
    """The stamp told back and how long it lay, in microseconds."""
    name: str


@dataclass(frozen=True, slots=True)
class Notice:
    """What the source did to a receiver, or to all, and why: a private option of an SPM."""

    action: str
    reason: str
    by_hand: bool
    serial: int
    duration_ms: int
    receiver: int
    incarnation: int
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A receiver's question for the time, and what it knows of the clocks: a private option of an ACK."""

    source: str
    token: int
    offset_ns: int
    bound_ns: int


@dataclass(frozen=True, slots=True)
class Time:
    """The source's time when an SPM was sent, and answers: a private option of an SPM."""

    sent_ns: int
    wall_ns: int
    answers: tuple[tuple[int, int, int], ...]
    """Receiver, token, and when the question came."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A PGM packet of a kind that Heliograph sends."""

    kind: str
    session: tuple[bytes, int]
    """GSI and data-source port."""
    endpoint_port: int
    sequence: int = 0
    trail: int = 0
    lead: int = 0
    addresses: tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ...] = ()
    nak_list: tuple[int, ...] = ()
    fragment: tuple[int, int, int] | None = None
    """First sequence, offset, length of the whole."""
    is_fin: bool = False
    join: int | None = None
    """The oldest sequence that receivers may ask for that come late."""
    is_reset: bool = False
    """OPT_RST: given up, and requests will not be answered."""
    backoff_us: int | None = None
    """NAK_BO_IVL."""
    report: tuple[int, int, int] | None = None
    """OPT_CR: the fields given, the reference sequence, the receiver's loss in 65535ths."""
    poll: tuple[int, ...] = ()
    """POLL: round, subtype, BO_IVL, RAND, MASK; POLR: round."""
    bitmap: int = 0
    acknowledge: Acknowledge | None = None
    awaited: int | None = None
    """The oldest packet the source waits for acknowledgements of."""
    told: Report | None = None
    reporting: tuple[int, int, int, int] | None = None
    """When receivers are to report: interval in microseconds, stamp to be told back, progress in packets, acker."""
    awaits_credit: bool = False
    """The source sends nothing of a topic before a receiver has granted it."""
    grants: tuple[tuple[int, int], ...] = ()
    """Credit: identifiers of topics, and the first message of each that may not be sent yet."""
    notices: tuple[Notice, ...] = ()
    question: Question | None = None
    time: Time | None = None
    service: tuple[str, int] | None = None
    stores: tuple[tuple[str, int], ...] = ()
    tsdu: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a batch."""

    number: int
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Topic:
    """One entry of a TOPICS batch."""

    topic_id: int
    next_message: int
    name: str


@dataclass(frozen=True, slots=True)
class Batch:
    """What a TSDU, or an APDU put together from fragments, holds."""

    kind: str
    is_closing: bool
    asks: bool
    topic_id: int
    first_message: int
    submit_ns: int
    closed_after_ns: int
    intended_ns: int = 0
    messages: tuple[Message, ...] = ()
    topics: tuple[Topic, ...] = ()


@dataclass(frozen=True, slots=True)
class Hello:
    """What each side of a TCP connection says first."""

    version: int
    role: str
    longest_packet: int
    timeout_ms: int


def decode_frames(data: bytes) -> tuple[list[tuple[str, bytes]], bytes]:
    """Kind and body of the whole frames at the start of what came over a TCP connection, and the bytes left over."""
    frames = []
    while len(data) >= 4:
        kind, reserved, length = struct.unpack_from(">BBH", data)
        if kind not in FRAMES or reserved:
            raise Malformed(f"a frame of kind {kind:#x}")
        if len(data) < 4 + length:
            break
        if kind == 0x03 and length:
            raise Malformed("ALIVE has no body")
        frames.append((FRAMES[kind], data[4 : 4 + length]))
        data = data[4 + length :]
    return frames, data


def decode_hello(body: bytes) -> Hello:
    """The body of a HELLO frame."""
    if len(body) != 24:
        raise Malformed(f"a HELLO of {len(body)} bytes")
    magic, version, role, features, longest, timeout = struct.unpack(">4sBBHII", body[:16])
    if magic != b"HRUM" or features & ~UNSUMMED or role not in (1, 2):
        raise Malformed("not a HELLO")
    return Hello(version, {1: "transmitter", 2: "receiver"}[role], longest, timeout)


def fnv1a(data: bytes) -> int:
    """FNV-1a, 64 bit."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def ones_sum(data: bytes) -> int:
    """The 16-bit one's complement sum; 0xFFFF over a packet whose checksum is right."""
    words: tuple[int, ...] = struct.unpack(f">{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def _check(condition: bool, rule: str) -> None:
    if not condition:
        raise Malformed(rule)


class _Reader:
    """Bytes with a place; running past the end is malformed."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, count: int) -> bytes:
        _check(count <= self.left, f"{count} bytes wanted at {self.at}, {self.left} left")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")


def _address(reader: _Reader) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    family, reserved = reader.number(2), reader.number(2)
    _check(family in (1, 2) and reserved == 0, f"address family {family}, reserved {reserved}")
    return ipaddress.IPv4Address(reader.take(4)) if family == 1 else ipaddress.IPv6Address(reader.take(16))


def _options(reader: _Reader) -> Iterator[tuple[int, int, bytes]]:
    """Type, flags (its last byte of head) and body of each option after OPT_LENGTH."""
    start = reader.at
    _check(reader.take(2) == b"\x00\x04", "the chain begins with OPT_LENGTH")
    total = reader.number(2)
    for _ in range(16):
        head, length = reader.number(1), reader.number(1)
        _check(length >= 4, f"an option of {length} bytes")
        _check(reader.number(1) == 0, "reserved bits, F and OPX are 0")
        yield head & ~END, reader.number(1), reader.take(length - 4)
        if head & END:
            _check(reader.at - start == total, "OPT_LENGTH tells where the chain ends")
            return
    raise Malformed("more than 16 options")


def _acknowledge(body: bytes) -> Acknowledge:
    reader = _Reader(body)
    kind, flags, reserved = reader.number(1), reader.number(1), reader.number(2)
    _check(kind in (1, 2) and flags & ~3 == 0 and reserved == 0, "kind and flags of an acknowledgement")
    receiver, incarnation = reader.number(8), reader.number(8)
    first, position = reader.number(4), reader.number(4)
    _check((position + 1 - first) & 0xFFFFFFFF < 0x80000000, "an acknowledgement begins before its end")
    _check(reader.left <= 47, "the name has at most 47 bytes")
    name = reader.take(reader.left).decode()
    way = "transport" if kind == 1 else "application"
    return Acknowledge(way, bool(flags & 1), receiver, incarnation, first, position, name)


def _notice(body: bytes) -> Notice:
    reader = _Reader(body)
    action, reason, reserved = reader.number(1), reader.number(1), reader.number(2)
    _check(action in ACTIONS and reason & 0x7F < len(REASONS) and reserved == 0, "action and reason")
    serial, duration_ms = reader.number(4), reader.number(4)
    receiver, incarnation = reader.number(8), reader.number(8)
    name = ACTIONS[action]
    _check(duration_ms <= 3_600_000, "a notice lasts an hour at most")
    _check(bool(duration_ms) == (name not in ("notify", "resume", "readmit")), "what lasts tells how long")
    _check(receiver != 0 or name in ("cut_off", "resume"), "only a cut-off is for all")
    _check(receiver == 0 or name != "cut_off", "a cut-off is for all")
    _check(reader.left <= 40, "the text has at most 40 bytes")
    text = reader.take(reader.left).decode()
    by_hand = bool(reason & 0x80)
    return Notice(name, REASONS[reason & 0x7F], by_hand, serial, duration_ms, receiver, incarnation, text)


def _report(flags: int, body: bytes) -> tuple[int, int, int]:
    """OPT_CR of a receiver: it gives what was asked for and leaves the fields of network elements 0."""
    reader = _Reader(body)
    reference, link, path, loss, reserved = (reader.number(size) for size in (4, 2, 2, 2, 2))
    _check(flags & ~0x07 == 0 and link == path == reserved == 0, "OPT_CR")
    _address(reader)
    _check(reader.left == 0, "OPT_CR ends with the receiver's address")
    return flags, reference, loss


def _told(body: bytes) -> Report:
    reader = _Reader(body)
    flags, reserved, fill = reader.number(1), reader.number(1), reader.number(2)
    _check(flags & ~15 == 0 and reserved == 0, "flags of a report")
    receiver, incarnation = reader.number(8), reader.number(8)
    received, lost, unrecoverable, position, window = (reader.number(4) for _ in range(5))
    stamp, hold = reader.number(4), reader.number(4)
    _check(receiver != 0, "a report is somebody's")
    _check((lost - unrecoverable) & 0xFFFFFFFF < 0x80000000, "what is given up was missed")
    _check(reader.left <= 47, "the name has at most 47 bytes")
    return Report(
        bool(flags & 1), bool(flags & 2), bool(flags & 4), fill, receiver, incarnation, received, lost, unrecoverable,
        position, window, None if hold == 0xFFFFFFFF else (stamp, hold), reader.take(reader.left).decode(),
    )  # fmt: skip


def _question(source: int, body: bytes) -> Question:
    token, offset_ns, bound_ns = struct.unpack(">IqQ", body)
    _check(source < len(CLOCK_SOURCES), "what an offset is known by")
    name = CLOCK_SOURCES[source]
    _check(name == "exchange" or offset_ns == bound_ns == 0, "only an exchange tells an offset")
    _check((token == 0) == (name == "host"), "who is on one host with the source asks nothing")
    return Question(name, token, offset_ns, bound_ns)


def _time(body: bytes) -> Time:
    reader = _Reader(body)
    sent_ns, wall_ns = reader.number(8), reader.number(8)
    _check(reader.left % 20 == 0 and reader.left // 20 <= 4, "answers to at most four questions")
    answers = tuple((reader.number(8), reader.number(4), reader.number(8)) for _ in range(reader.left // 20))
    _check(all(receiver and token and came_ns <= sent_ns for receiver, token, came_ns in answers), "an answer")
    return Time(sent_ns, wall_ns, answers)


def _store(body: bytes, is_open: bool = False) -> tuple[str, int]:
    """Address (empty: left open) and port of a store's service."""
    family, port = struct.unpack(">HH", body[:4])
    length = {0: 0, 1: 4, 2: 16}[family]
    _check(len(body) == 20 and port != 0 and not any(body[4 + length :]), "where a store is")
    _check(family != 0 or is_open, "a store that is announced has an address")
    return str(ipaddress.ip_address(body[4 : 4 + length])) if family else "", port


def _meaning(kind: str, option: int, bits: int, body: bytes) -> dict[str, Any]:
    """What one option says, as fields of a packet."""
    if option == OPT_FRAGMENT:
        _check(len(body) == 12 and kind in ("ODATA", "RDATA"), "OPT_FRAGMENT")
        return {"fragment": struct.unpack(">III", body)}
    if option == OPT_NAK_LIST:
        _check(kind in ("NAK", "NNAK", "NCF"), "OPT_NAK_LIST")
        _check(1 <= len(body) // 4 <= 62 and len(body) % 4 == 0, "length of OPT_NAK_LIST")
        return {"nak_list": struct.unpack(f">{len(body) // 4}I", body)}
    if option == OPT_NAK_BO_IVL:
        _check(len(body) == 8 and kind in ("SPM", "NCF") and body[4:] == bytes(4), "OPT_NAK_BO_IVL")
        return {"backoff_us": int.from_bytes(body[:4], "big")}
    if option == OPT_JOIN:
        _check(len(body) == 4 and kind == "SPM", "OPT_JOIN")
        return {"join": int.from_bytes(body, "big")}
    if option == OPT_CR:
        _check(kind == "NAK", "OPT_CR")
        return {"report": _report(bits, body)}
    if option == OPT_ACKNOWLEDGE:
        _check(kind == "ACK", "OPT_ACKNOWLEDGE")
        return {"acknowledge": _acknowledge(body)}
    if option == OPT_AWAIT:
        _check(len(body) == 4 and kind == "SPM", "OPT_AWAIT")
        return {"awaited": int.from_bytes(body, "big")}
    if option == OPT_REPORT:
        _check(kind in ("NAK", "ACK"), "a report's packet")
        return {"told": _told(body)}
    if option == OPT_REPORTING:
        _check(len(body) == 20 and kind == "SPM" and bits & ~1 == 0, "when to report")
        return {"reporting": struct.unpack(">IIIQ", body), "awaits_credit": bool(bits)}
    if option == OPT_GRANT:
        _check(kind == "ACK" and len(body) % 16 == 0 and 1 <= len(body) // 16 <= 8, "OPT_GRANT")
        grants = tuple(struct.iter_unpack(">QQ", body))
        _check(len({topic for topic, _ in grants}) == len(grants), "a topic is granted once")
        return {"grants": grants}
    if option == OPT_CLOCK:
        _check(kind == "ACK" and len(body) == 20, "OPT_CLOCK")
        return {"question": _question(bits, body)}
    if option == OPT_CLOCK_ANSWER:
        _check(kind == "SPM" and len(body) >= 16, "OPT_CLOCK_ANSWER")
        return {"time": _time(body)}
    if option == OPT_SERVICE:
        _check(kind == "ACK", "OPT_SERVICE")
        return {"service": _store(body, is_open=True)}
    if option == OPT_STORES:
        _check(kind == "SPM" and len(body) % 20 == 0 and 1 <= len(body) // 20 <= 8, "OPT_STORES")
        return {"stores": tuple(_store(body[at : at + 20]) for at in range(0, len(body), 20))}
    if option == OPT_NOTICE:
        _check(kind == "SPM", "OPT_NOTICE")
        return {"notices": (_notice(body),)}
    _check(not body and kind == "SPM" and option in (OPT_FIN, OPT_RST), f"option {option:#x} on {kind}")
    _check(option == OPT_FIN or bits == 0x40, "OPT_RST says that nothing is repaired")
    return {"is_fin": True} if option == OPT_FIN else {"is_reset": True}


def decode_packet(data: bytes) -> Packet:
    """Read one PGM packet.

    Raises:
        Malformed: it breaks a rule, or is of a kind that Heliograph does not send.
    """
    reader = _Reader(data)
    source_port, destination_port = reader.number(2), reader.number(2)
    kind_number, flags, checksum = reader.number(1), reader.number(1), reader.number(2)
    gsi, tsdu_length = reader.take(6), reader.number(2)
    _check(kind_number in TYPES, f"packet type {kind_number:#x}")
    kind = TYPES[kind_number]
    _check(checksum != 0 and ones_sum(data) == 0xFFFF, "checksum")
    if kind in UPSTREAM:
        source_port, destination_port = destination_port, source_port
    values: dict[str, Any] = {}
    addresses: tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ...] = ()
    if kind != "SPMR":
        values["sequence"] = reader.number(4)
    if kind in ("SPM", "ODATA", "RDATA"):
        values["trail"] = reader.number(4)
    if kind == "ACK":
        values["bitmap"] = reader.number(4)
    if kind == "SPM":
        values["lead"] = reader.number(4)
        addresses = (_address(reader),)
    if kind in ("NAK", "NNAK", "NCF"):
        addresses = (_address(reader), _address(reader))
    poll: tuple[int, ...] = ()
    if kind == "POLL":
        head = (reader.number(2), reader.number(2))
        addresses = (_address(reader),)
        poll = (*head, reader.number(4), reader.number(4), reader.number(4))
    if kind == "POLR":
        poll = (reader.number(2),)
        _check(reader.number(2) == 0, "POLR's reserved field")
    found: dict[str, Any] = {}
    network: list[bool] = []
    _check(flags & ~0x03 == 0, f"flags {flags:#x}")
    for option, bits, body in _options(reader) if flags & 0x01 else ():
        network.append(option in NETWORK_SIGNIFICANT)
        _check(
            bits == 0 or option in (OPT_RST, OPT_CR, OPT_REPORTING, OPT_CLOCK), f"flags {bits:#x} of option {option:#x}"
        )
        meaning = _meaning(kind, option, bits, body)
        meaning["notices"] = found.get("notices", ()) + meaning.get("notices", ())
        found |= meaning
    _check(len(found.get("notices", ())) <= 3, "at most three notices")
    acknowledge = found.get("acknowledge")
    told = found.get("told")
    _check("grants" not in found or told is not None, "who grants reports")
    _check("question" not in found or told is not None, "who asks reports")
    _check(kind != "ACK" or acknowledge is not None or told is not None, "an ACK says who acknowledges or reports")
    if kind == "ACK" and told is not None:
        _check((values["sequence"] - told.position) & 0xFFFFFFFF < 0x80000000, "nothing is passed on before it came")
    if acknowledge is not None:
        unread = (values["sequence"] - acknowledge.position) & 0xFFFFFFFF
        _check(unread < 0x80000000, "nothing is acknowledged that was not received")
    _check(network == sorted(network, reverse=True), "options of consequence to the network come first")
    _check(bool(flags & 0x02) == any(network), "the network-significant flag goes with the options")
    _check(reader.left == tsdu_length, "TSDU length")
    _check(kind in ("ODATA", "RDATA") or tsdu_length == 0, "only data has a TSDU")
    return Packet(
        kind, (gsi, source_port), destination_port, addresses=addresses, poll=poll, tsdu=reader.take(tsdu_length),
        **found, **values,
    )  # fmt: skip


def _extensions(reader: _Reader, end: int) -> dict[int, bytes]:
    """Extensions up to `end` by their type: value and body."""
    found = {}
    while reader.at < end:
        kind, words = reader.number(1), reader.number(1)
        _check(words >= 1 and not kind & 0x80, f"extension {kind:#x} of {words} words")
        found[kind] = reader.take(words * 4 - 2)
    _check(reader.at == end, "extensions end where they should")
    return found


def _message(reader: _Reader, number: int) -> Message:
    head = reader.number(2)
    if not head & 0x8000:
        return Message(number, reader.take(head))
    length = reader.number(4)
    _extensions(reader, reader.at + (head & 0x7FFF) * 4)
    return Message(number, reader.take(length))


def _topic(reader: _Reader) -> Topic:
    topic_id, next_message, length = reader.number(8), reader.number(8), reader.number(2)
    _check(1 <= length <= 255, f"a topic name of {length} bytes")
    return Topic(topic_id, next_message, reader.take(length).decode())


def decode_batch(data: bytes) -> Batch:
    """Read a whole batch.

    Raises:
        Malformed: it breaks a rule of the page.
    """
    reader = _Reader(data)
    _check(reader.take(2) == b"\x48\x01", "magic and version")
    kind, flags, header = reader.number(1), reader.number(1), reader.number(2)
    count, topic_id, first = reader.number(2), reader.number(8), reader.number(8)
    submit_ns, closed_after_ns, reserved = reader.number(8), reader.number(4), reader.number(4)
    _check(kind in (1, 2) and header >= 40 and header % 4 == 0 and count >= 1 and reserved == 0, "batch header")
    intended = _extensions(reader, header).get(3, bytes(10))
    _check(len(intended) == 10 and intended[:2] == b"\0\0", "extension INTENDED")
    messages: tuple[Message, ...] = ()
    topics: tuple[Topic, ...] = ()
    if kind == 1:
        _check(flags & ~2 == 0, "flags of MESSAGES")
        messages = tuple(_message(reader, first + i) for i in range(count))
    else:
        _check(topic_id == 0 and flags & ~1 == 0, "head of TOPICS")
        topics = tuple(_topic(reader) for _ in range(count))
    _check(reader.left == 0, f"{reader.left} bytes left over")
    return Batch(
        "MESSAGES" if kind == 1 else "TOPICS", bool(flags & 1), bool(flags & 2), topic_id, first, submit_ns,
        closed_after_ns, int.from_bytes(intended[2:]), messages, topics,
    )  # fmt: skip
