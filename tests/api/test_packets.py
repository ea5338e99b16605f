"""How messages become packets: full under load, at once when there is nothing else, and never longer than asked for."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from heliograph.engine import Instance, Receiver, Transmitter
from tests.segment.decoder import decode_live

from .conftest import until

TOPIC = "PRICES.FX"
PACKET_HEADER, BATCH_HEADER, MESSAGE_HEADER = 24, 40, 2
UDP_HEADERS = 28
ODATA = 4


def counts(instance: Instance, scope: str) -> dict[str, int]:
    """The statistics of the only object of a scope."""
    (found,) = decode_live(instance.segment).of(scope)
    return dict(found.values)


def exchange(transmitter: Transmitter, receiver: Receiver, body: bytes, total: int) -> None:
    """Send as fast as the receiver takes it in."""
    sent = received = 0
    while received < total:
        if sent < total and sent - received < 50_000:
            transmitter.send_many([body] * 1000)
            sent += 1000
        received += len(receiver.receive(timeout=0 if sent < total else 5.0, limit=5000))


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_a_million_messages_share_packets(mode: str, multicast: str) -> None:
    with Instance(mode=mode, level=0) as instance:  # type: ignore[arg-type]
        receiver = instance.receiver(multicast, TOPIC)
        transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
        exchange(transmitter, receiver, b"." * 50, 1_000_000)
        sent = counts(instance, "transmitter")
        assert sent["messages_sent"] == 1_000_000
        assert sent["messages_sent"] > 10 * sent["packets_sent"]


def test_a_message_alone_leaves_at_once(instance: Instance, multicast: str) -> None:
    """Each is taken in before the next is sent, so none waited for another."""
    receiver = instance.receiver(multicast, TOPIC)
    transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
    for number in range(50):
        transmitter.send(b"." * 50)
        got: list[int] = []
        assert until(lambda got=got: got.extend(m.number for m in receiver.receive(timeout=0)) or got, instance)  # type: ignore[misc]
        assert got == [number]
    sent = counts(instance, "transmitter")
    assert (sent["messages_sent"], sent["packets_sent"]) == (50, 50)


def test_sharing_packets_takes_a_third_of_the_bytes(multicast: str) -> None:
    """16 bytes each: alone with their headers, and in full packets."""
    per_message = []
    for at_once in (1, 5000):
        with Instance(mode="poll") as instance:
            transmitter = instance.transmitter(multicast, TOPIC, announce_interval=300.0, linger=0.0)
            before = counts(instance, "tx_stream")["bytes_sent"]  # the topic's name
            for _ in range(5000 // at_once):
                transmitter.send_many([b"." * 16] * at_once)
            per_message.append((counts(instance, "tx_stream")["bytes_sent"] - before) / 5000)
    alone, shared = per_message
    assert alone >= PACKET_HEADER + BATCH_HEADER + MESSAGE_HEADER + 16
    assert alone >= 3 * shared


class Tap:
    """A socket that takes a stream's packets as they are."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.endpoint = f"rmm+unicast://127.0.0.1:{self.socket.getsockname()[1]}"

    def data_lengths(self) -> list[int]:
        """Lengths of the data packets that came."""
        lengths: list[int] = []
        while True:
            try:
                packet = self.socket.recv(65536)
            except BlockingIOError:
                return lengths
            if packet[4] == ODATA:
                lengths.append(len(packet))


@pytest.fixture
def tap() -> Iterator[Tap]:
    """Where a stream's packets end up."""
    tap = Tap()
    yield tap
    tap.socket.close()


@pytest.mark.parametrize("gso", ["auto", "off"])
@pytest.mark.parametrize("mtu", [576, 1500, 9000])
def test_packets_are_as_long_as_the_load_and_the_network_allow(tap: Tap, mtu: int, gso: str) -> None:
    body = b"." * (mtu // 30)
    headers, step = PACKET_HEADER + BATCH_HEADER, MESSAGE_HEADER + len(body)
    room = mtu - UDP_HEADERS
    with Instance(mode="poll") as source:
        transmitter = source.transmitter(tap.endpoint, TOPIC, mtu=mtu, gso=gso, announce_interval=300.0, linger=0.0)
        tap.data_lengths()  # the topic's name
        for count in (1, 2, 5):
            transmitter.send_many([body] * count)
            assert tap.data_lengths() == [headers + count * step]
        per_packet = (room - headers) // step
        transmitter.send_many([body] * (4 * per_packet + 1))
        assert tap.data_lengths() == [headers + per_packet * step] * 4 + [headers + step]
        transmitter.send(b"." * (3 * room))
        fragments = tap.data_lengths()
        assert len(fragments) == 4
        assert fragments[:3] == [room] * 3
