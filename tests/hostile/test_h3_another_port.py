"""Finding H3: somebody else on the source's host, who knows the stream's identity, sends packets in its name.

The forger sends from the source's IP and another port, as another local user can, or a host behind the same address
translation. Nothing may come of it but a count.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heliograph.engine import Instance, Message, Receiver, Transmitter
from heliograph.monitor.sampler import Sampler
from tests.hostile import forging
from tests.ports import free_port

TOPIC = "PRICES.FX"
FAR = (1 << 31) - 10


class Stream:
    """A source and a receiver on one host, and what of the stream anybody can read in the segment."""

    def __init__(self, transmitter: Transmitter, receiver: Receiver, port: int, sampler: Sampler) -> None:
        self.transmitter = transmitter
        self.receiver = receiver
        self.port = port
        self.sampler = sampler
        self.session = forging.session_of(transmitter.stream, port)
        self.sent = 0
        self.got: list[Message] = []

    def send(self, count: int) -> None:
        """Messages in packets of their own, numbered from 0."""
        for number in range(self.sent, self.sent + count):
            self.transmitter.send(b"%d" % number)
            self.transmitter.flush()
        self.sent += count

    def take(self, seconds: float = 20.0) -> None:
        """Receive until all that was sent is there."""
        end = time.monotonic() + seconds
        while len(self.got) < self.sent and time.monotonic() < end:
            self.got += self.receiver.receive(timeout=0.05)

    def lead(self) -> int:
        """The newest packet's number, from the segment."""
        ((_, stream),) = self.sampler.sample().of("tx_stream")
        return stream.values["window_lead"] & 0xFFFFFFFF

    def refused(self) -> int:
        """Packets refused for their address."""
        return sum(item.values["invalid_packets_address"] for _, item in self.sampler.sample().of("instance"))


@pytest.fixture
def stream(segments: Path) -> Iterator[Stream]:
    """A stream of which ten messages have come."""
    port = free_port()
    endpoint = f"rmm+unicast://{forging.HOST}:{port}"
    with (
        Instance(name="source") as source,
        Instance(name="sink") as sink,
        sink.receiver(endpoint, TOPIC, inject_loss=0.1, nak_deadline=10.0) as receiver,
        source.transmitter(endpoint, TOPIC, linger=0.0) as transmitter,
        Sampler(segments) as sampler,
    ):
        found = Stream(transmitter, receiver, port, sampler)
        found.send(10)
        found.take()
        assert len(found.got) == 10
        yield found


@pytest.fixture
def forger() -> Iterator[socket.socket]:
    """A socket of the source's IP, with another port."""
    with forging.attacker(forging.HOST) as found:
        yield found


def resets(stream: Stream) -> list[bytes]:
    lead = stream.lead()
    return [forging.rst(stream.session, 1000 + i, lead - 5, lead) for i in range(3)]


def ends(stream: Stream) -> list[bytes]:
    lead = stream.lead()
    return [forging.fin(stream.session, 1000 + i, lead - 5, lead) for i in range(3)]


def next_data(stream: Stream) -> list[bytes]:
    """The packet that comes next, with other messages in it."""
    lead = stream.lead()
    return [
        forging.odata(stream.session, lead + i, lead - 5, forging.batch(TOPIC, stream.sent + i - 1, [b"forged"]))
        for i in (1, 2, 3)
    ]


def far_spms(stream: Stream) -> list[bytes]:
    lead = stream.lead()
    return [forging.spm(stream.session, FAR + i, lead - 5, lead) for i in range(3)]


def far_leads(stream: Stream) -> list[bytes]:
    lead = stream.lead()
    return [forging.spm(stream.session, 1000 + i, lead + FAR - 100, lead + FAR) for i in range(3)]


def confirmations(stream: Stream) -> list[bytes]:
    body = struct.pack(">I", stream.lead() + 1) + forging.nla(forging.HOST) + forging.nla(forging.HOST)
    return [forging.packet(stream.session, forging.NCF, body)]


@pytest.mark.parametrize("forge", [resets, ends, next_data, far_spms, far_leads, confirmations])
def test_h3_packets_from_another_port_change_nothing_but_a_count(
    stream: Stream, forger: socket.socket, forge: Callable[[Stream], list[bytes]]
) -> None:
    forged = forge(stream)
    packets = forged * (12 // len(forged))  # injected loss takes half of 12 in less than one run of a thousand
    for packet in packets:
        forger.sendto(packet, (forging.HOST, stream.port))
    time.sleep(0.05)
    stream.send(200)  # a tenth is lost on the way: repair must work
    stream.take()
    assert [message.data for message in stream.got] == [b"%d" % number for number in range(210)]
    assert stream.receiver.losses() == []
    assert len(packets) // 2 < stream.refused() <= len(packets)  # inject_loss takes some of these, too
    snapshot = stream.sampler.sample()
    assert [item.values["packets_lost_reset"] for _, item in snapshot.of("rx_stream") if item.live] == [0]


def test_h3_the_conflict_is_told(segments: Path, stream: Stream, forger: socket.socket) -> None:
    for packet in resets(stream) * 4:
        forger.sendto(packet, (forging.HOST, stream.port))
    time.sleep(0.05)
    with Sampler(segments) as fresh:
        told = [event for event in fresh.sample().events if event.name == "stream_conflict"]
    assert len(told) == 1
    port = forger.getsockname()[1]
    assert f"127.0.0.1:{stream.session.port} also comes from 127.0.0.1:{port}" in told[0].text


def test_h3_a_second_connection_changes_nothing_but_a_count(segments: Path) -> None:
    port = free_port()
    endpoint = f"rum://{forging.HOST}:{port}"
    with (
        Instance(name="source") as source,
        Instance(name="sink") as sink,
        sink.receiver(endpoint, TOPIC) as receiver,
        source.transmitter(endpoint, TOPIC, linger=0.0) as transmitter,
        Sampler(segments) as sampler,
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as forger,
    ):
        stream = Stream(transmitter, receiver, port, sampler)
        stream.send(10)
        stream.take()
        forger.connect((forging.HOST, port))
        hello = struct.pack(">IBBHII", 0x4852554D, 1, 1, 0, 1472, 10_000)
        forger.sendall(struct.pack(">BBH", 0x81, 0, len(hello)) + hello)
        packets = [*resets(stream), *next_data(stream), *far_spms(stream)]
        for packet in packets:
            forger.sendall(struct.pack(">BBH", 0x82, 0, len(packet)) + packet)
        end = time.monotonic() + 20.0
        while stream.refused() < len(packets) and time.monotonic() < end:
            time.sleep(0.01)
        stream.send(50)
        stream.take()
        assert [message.data for message in stream.got] == [b"%d" % number for number in range(60)]
        assert stream.receiver.losses() == []
        assert stream.refused() == len(packets)
