"""RUM on the wire: the engine says over TCP what the documents say, and hears who speaks by them."""

from __future__ import annotations

import socket
import struct
import time

from heliograph.engine import Instance
from tests.ports import free_port
from tests.wire.decoder import Hello, Packet, decode_batch, decode_frames, decode_hello, decode_packet

RECEIVER, TRANSMITTER = 2, 1


def hello(role: int, longest: int = 8164, timeout_ms: int = 10_000) -> bytes:
    body = struct.pack(">4sBBHII", b"HRUM", 1, role, 0, longest, timeout_ms)
    return struct.pack(">BBH", 0x81, 0, len(body)) + body


class Conversation:
    """One end of a connection: the frames that came, in order."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.frames: list[tuple[str, bytes]] = []
        self._left = b""

    def read(self, count: int) -> None:
        """Wait until `count` frames have come."""
        self.connection.settimeout(10)
        while len(self.frames) < count:
            data = self.connection.recv(65536)
            assert data, "the engine closed the connection"
            frames, self._left = decode_frames(self._left + data)
            self.frames += frames

    def packets(self) -> list[Packet]:
        return [decode_packet(body) for kind, body in self.frames if kind == "PACKET"]


def test_a_transmitter_speaks_as_documented() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, Instance() as source:
        port = listener.getsockname()[1]
        transmitter = source.transmitter(f"rum://127.0.0.1:{port}", "T", connect_wait=10.0, linger=0.0)
        transmitter.send(b"hello")
        client, _ = listener.accept()
        with client:
            end = Conversation(client)
            end.read(1)
            assert end.frames[0][0] == "HELLO"
            assert decode_hello(end.frames[0][1]) == Hello(1, "transmitter", 8192 - 28, 10_000)
            client.sendall(hello(RECEIVER))
            while not any(b.messages for b in (decode_batch(p.tsdu) for p in end.packets() if p.kind == "ODATA")):
                end.read(len(end.frames) + 1)
            packets = end.packets()
            assert packets[0].kind == "SPM"
            gsi, stream_port = packets[0].session
            assert transmitter.stream == f"{gsi.hex()}:{stream_port}"
            assert {packet.session for packet in packets} == {(gsi, stream_port)}
            assert {packet.endpoint_port for packet in packets} == {port}
            batch = next(b for b in (decode_batch(p.tsdu) for p in packets if p.kind == "ODATA") if b.messages)
            assert [message.body for message in batch.messages] == [b"hello"]


def test_both_sides_say_that_they_are_alive() -> None:
    with Instance() as sink:
        port = free_port()
        with sink.receiver(f"rum://127.0.0.1:{port}", "T"), socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(hello(TRANSMITTER, timeout_ms=400))
            end = Conversation(client)
            begin = time.monotonic()
            end.read(4)
            assert time.monotonic() - begin >= 0.2
            assert [kind for kind, _ in end.frames] == ["HELLO", "ALIVE", "ALIVE", "ALIVE"]
            assert decode_hello(end.frames[0][1]).role == "receiver"
