"""What libzmq's epgm:// puts into PGM packets, both ways.

A packet's data begins with u16 offset: where, behind these two bytes, the first message that starts in this packet
does; 0xFFFF when none does. What follows is a stream of ZMTP 1.0 frames, cut where packets end: a length that counts
the flags and the body, the flags, the body; the length is one byte, or 0xFF and eight bytes when it is 255 or more. A
receiver that comes late, or has lost something, begins at the first offset that is not 0xFFFF.
"""

from __future__ import annotations

import struct

__all__ = ["Unpacker", "pack"]

_NO_START = 0xFFFF


def _frame(message: bytes) -> bytes:
    length = len(message) + 1
    head = bytes([length]) if length < 255 else b"\xff" + struct.pack(">Q", length)
    return head + b"\0" + message


def pack(messages: list[bytes], packet_bytes: int = 1400) -> list[bytes]:
    """The packets' data for these messages, as many in a packet as fit into `packet_bytes`."""
    stream, starts = bytearray(), []
    for message in messages:
        starts.append(len(stream))
        stream += _frame(message)
    room = packet_bytes - 2
    packets = []
    for begin in range(0, len(stream), room):
        here = [start - begin for start in starts if begin <= start < begin + room]
        packets.append(struct.pack(">H", here[0] if here else _NO_START) + bytes(stream[begin : begin + room]))
    return packets


class Unpacker:
    """Puts messages together from packets' data, which comes in order and without holes."""

    def __init__(self) -> None:
        self._stream = b""
        self._joined = False

    def add(self, data: bytes) -> list[bytes]:
        """The messages that end in this packet."""
        (offset,) = struct.unpack_from(">H", data)
        if not self._joined:
            if offset == _NO_START:
                return []
            self._joined = True
            data = data[offset:]
        self._stream += data[2:]
        messages = []
        while (message := self._take()) is not None:
            messages.append(message)
        return messages

    def _take(self) -> bytes | None:
        stream = self._stream
        head = 1 if stream[:1] != b"\xff" else 9
        if len(stream) < head:
            return None
        length = stream[0] if head == 1 else struct.unpack_from(">Q", stream, 1)[0]
        if len(stream) < head + length:
            return None
        assert stream[head] & 1 == 0, "a single part"
        self._stream = stream[head + length :]
        return stream[head + 1 : head + length]
