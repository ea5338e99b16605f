"""Packets that nobody honest sends, made from RFC 3208 and `engine/docs/wire.md`, and sockets to send them from.

It shares nothing with the engine. Only loopback addresses: the attacker is 127.0.0.9 where the engine is 127.0.0.1.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.wire.decoder import fnv1a, ones_sum

__all__ = [
    "ATTACKER",
    "HOST",
    "Session",
    "acknowledge",
    "attacker",
    "batch",
    "drain",
    "fin",
    "nak",
    "odata",
    "rst",
    "session_of",
    "spm",
    "topics",
]

HOST, ATTACKER = "127.0.0.1", "127.0.0.9"
SPM, ODATA, RDATA, NAK, NCF, SPMR, ACK = 0x00, 0x04, 0x05, 0x08, 0x0A, 0x0C, 0x0D
WRAP = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Session:
    """A stream by its GSI and data-source port, on the endpoint of a port."""

    gsi: bytes
    port: int
    endpoint_port: int


def session_of(stream: str, endpoint_port: int) -> Session:
    """The session of a stream as the engine prints it (``Transmitter.stream``)."""
    gsi, port = stream.split(":")
    return Session(bytes.fromhex(gsi), int(port), endpoint_port)


def packet(
    session: Session, kind: int, body: bytes, *, options: bytes = b"", tsdu: bytes = b"", up: bool = False
) -> bytes:
    """One PGM packet with its checksum. `options` is the chain with its OPT_LENGTH (see `chain`)."""
    ports = (session.endpoint_port, session.port) if up else (session.port, session.endpoint_port)
    network = options[4:5] and options[4] & 0x7F in (0x02, 0x04, 0x10)  # NAK_LIST, NAK_BO_IVL, CR: always first
    flags = (0x03 if network else 0x01) if options else 0
    head = struct.pack(">HHBBH", *ports, kind, flags, 0) + session.gsi + struct.pack(">H", len(tsdu))
    whole = head + body + options + tsdu
    total = ones_sum(whole) ^ 0xFFFF or 0xFFFF
    return whole[:6] + struct.pack(">H", total) + whole[8:]


def chain(*options: tuple[int, int, bytes]) -> bytes:
    """A chain of options: type, last byte of its head, body."""
    parts = []
    for number, (kind, flags, body) in enumerate(options):
        last = 0x80 if number == len(options) - 1 else 0
        parts.append(struct.pack(">BBBB", kind | last, 4 + len(body), 0, flags) + body)
    whole = b"".join(parts)
    return struct.pack(">BBH", 0, 4, 4 + len(whole)) + whole


def nla(address: str) -> bytes:
    """A network layer address with its family."""
    ip = ipaddress.ip_address(address)
    return struct.pack(">HH", 1 if ip.version == 4 else 2, 0) + ip.packed


def spm(
    session: Session,
    sequence: int,
    trail: int,
    lead: int,
    path: str = HOST,
    *,
    options: Sequence[tuple[int, int, bytes]] = (),
) -> bytes:
    """A source path message that names `path` as the address feedback is to go to."""
    body = struct.pack(">III", sequence & WRAP, trail & WRAP, lead & WRAP) + nla(path)
    return packet(session, SPM, body, options=chain(*options) if options else b"")


def rst(session: Session, sequence: int, trail: int, lead: int, path: str = HOST) -> bytes:
    """An SPM that says the stream is given up, and requests will not be answered."""
    return spm(session, sequence, trail, lead, path, options=[(0x0F, 0x40, b"")])


def fin(session: Session, sequence: int, trail: int, lead: int, path: str = HOST) -> bytes:
    """An SPM that says the stream ends with `lead`."""
    return spm(session, sequence, trail, lead, path, options=[(0x0E, 0, b"")])


def odata(session: Session, sequence: int, trail: int, tsdu: bytes, *, repair: bool = False) -> bytes:
    """A data packet, or with `repair` the repair of one."""
    return packet(session, RDATA if repair else ODATA, struct.pack(">II", sequence & WRAP, trail & WRAP), tsdu=tsdu)


def batch(topic: str, first: int, messages: Sequence[bytes], flags: int = 0) -> bytes:
    """A batch of messages of a topic, numbered from `first`."""
    name = fnv1a(topic.encode())
    head = struct.pack(">BBBBHHQQQII", 0x48, 1, 1, flags, 40, len(messages), name, first, time.time_ns(), 0, 0)
    return head + b"".join(struct.pack(">H", len(message)) + message for message in messages)


def topics(*entries: tuple[str, int]) -> bytes:
    """A batch that names topics and the number each goes on with."""
    head = struct.pack(">BBBBHHQQQII", 0x48, 1, 2, 0, 40, len(entries), 0, 0, time.time_ns(), 0, 0)
    return head + b"".join(
        struct.pack(">QQH", fnv1a(name.encode()), number, len(name.encode())) + name.encode()
        for name, number in entries
    )


def nak(session: Session, sequences: Sequence[int], source: str, group: str) -> bytes:
    """A request for repairs of up to 63 packets of a stream of `source` on `group`."""
    body = struct.pack(">I", sequences[0] & WRAP) + nla(source) + nla(group)
    rest = b"".join(struct.pack(">I", sequence & WRAP) for sequence in sequences[1:])
    return packet(session, NAK, body, options=chain((0x02, 0, rest)) if rest else b"", up=True)


def acknowledge(
    session: Session, receiver: int, incarnation: int, first: int, position: int, *, newest: int | None = None,
    name: str = "", leaving: bool = False, application: bool = False,
) -> bytes:  # fmt: skip
    """An acknowledgement of the packets from `first` to `position` in the name of a receiver (docs/wire.md 1.1)."""
    newest = position if newest is None else newest
    option = struct.pack(
        ">BBHQQII", 2 if application else 1, int(leaving), 0, receiver, incarnation, first & WRAP, position & WRAP
    )
    options = chain((0x60, 0, option + name.encode()))
    return packet(session, ACK, struct.pack(">II", newest & WRAP, WRAP), options=options, up=True)


def attacker(address: str = ATTACKER, port: int = 0) -> socket.socket:
    """A UDP socket of somebody who is not the engine."""
    found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    found.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(HOST))
    found.bind((address, port))
    return found


def drain(victim: socket.socket, seconds: float) -> tuple[int, int]:
    """Datagrams and bytes that arrive at a socket in so many seconds."""
    count = total = 0
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        victim.settimeout(left)
        try:
            total += len(victim.recv(65535))
        except TimeoutError:
            break
        count += 1
    return count, total
