"""H5: an outage longer than `stream_expiry` loses no message without a word.

What a source sends while a receiver does not hear it is repaired when it still can be, and else reported lost once, by
number. The source is mostly this program itself, which loses what it likes; one test has a genuine one behind a cable
that is cut, one a connection that is.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from heliograph.engine import Instance, Message, Receiver
from heliograph.monitor import Segment
from tests.hostile.forging import HOST, NAK, Session, attacker, batch, fin, odata, spm, topics
from tests.interop.cable import ADDRESSES, lay
from tests.ports import free_port

TOPIC = "PRICES.FX"
EXPIRY, OUTAGE = 0.3, 0.8


@dataclass
class Source:
    """A whole source: it numbers packets and messages, keeps what it sent, and answers requests or not."""

    to: tuple[str, int]
    session: Session
    door: socket.socket
    repairs: bool = False
    sequence: int = 0
    next_message: int = 0
    spms: int = 0
    kept: list[bytes] = field(default_factory=list)

    def data(self, tsdu: bytes, *, heard: bool = True) -> None:
        """The next packet of data; one that is not heard gets lost on its way."""
        self.kept.append(tsdu)
        if heard:
            self.door.sendto(odata(self.session, self.sequence, self.trail, tsdu), self.to)
        self.sequence += 1

    def send(self, count: int, *, heard: bool = True) -> None:
        """That many messages, two in a packet."""
        for first in range(self.next_message, self.next_message + count, 2):
            self.data(batch(TOPIC, first, [b"%d" % number for number in (first, first + 1)]), heard=heard)
        self.next_message += count

    @property
    def trail(self) -> int:
        """The oldest packet it can repair."""
        return 0 if self.repairs else self.sequence

    def speak(self, make: Callable[..., bytes] = spm) -> None:
        """An SPM: where the stream is."""
        self.door.sendto(make(self.session, self.spms, self.trail, self.sequence - 1), self.to)
        self.spms += 1

    def answer(self) -> None:
        """Repairs what was asked for meanwhile."""
        self.door.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                request = self.door.recv(2000)
                if request[4] == NAK:
                    (wanted,) = struct.unpack_from(">I", request, 16)
                    listed = request[36 + 8 : 36 + 4 + request[36 + 5]] if request[5] & 1 else b""
                    for sequence in (wanted, *(n for (n,) in struct.iter_unpack(">I", listed))):
                        repair = odata(self.session, sequence, 0, self.kept[sequence])
                        repair = _as_repair(repair)
                        self.door.sendto(repair, self.to)


def _as_repair(packet: bytes) -> bytes:
    """RDATA instead of ODATA: the type is the fifth byte, which the checksum has in its high half."""
    total = (struct.unpack_from(">H", packet, 6)[0] - 0x100) or 0xFFFF
    total = total if total > 0 else total + 0xFFFF
    return packet[:4] + b"\x05" + packet[5:6] + struct.pack(">H", total) + packet[8:]


@contextlib.contextmanager
def source_to(port: int, *, repairs: bool = False) -> Iterator[Source]:
    with attacker(HOST) as door:
        number = door.getsockname()[1]
        yield Source((HOST, port), Session(b"source", number, port), door, repairs)


@dataclass
class Heard:
    """What a receiver was given and told."""

    receiver: Receiver
    messages: list[Message] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)

    def look(self) -> None:
        self.messages += self.receiver.receive(timeout=0.01)
        for loss in self.receiver.losses():
            self.lost += range(loss.first, loss.first + loss.count)

    @property
    def numbers(self) -> list[int]:
        return [message.number for message in self.messages]

    def until(self, count: int, source: Source | None = None, seconds: float = 20.0) -> None:
        """Until that many are delivered or lost; the source says meanwhile where it is, and repairs."""
        end = time.monotonic() + seconds
        while len(self.messages) + len(self.lost) < count and time.monotonic() < end:
            if source:
                source.speak()
                source.answer()
            self.look()


def totals(instance: Instance, scope: str, cell: str) -> list[int]:
    assert instance.segment is not None
    with Segment(instance.segment) as segment:
        return [o.values[cell] for o in segment.objects(histograms=False) if o.scope == scope]


def go_silent(instance: Instance) -> None:
    """Longer than the expiry: the stream is dropped."""
    time.sleep(OUTAGE)
    assert totals(instance, "instance", "rx_streams") == [0]


@pytest.mark.parametrize("order", ["stream", "arrival"])
def test_h5_what_was_sent_during_an_outage_longer_than_the_expiry_is_reported_lost(order: str) -> None:
    port = free_port()
    with Instance() as instance, source_to(port) as source:
        heard = Heard(instance.receiver(f"rmm+unicast://{HOST}:{port}", TOPIC, stream_expiry=EXPIRY, order=order))
        source.speak()
        source.send(10)
        heard.until(10)
        assert heard.numbers == list(range(10))
        go_silent(instance)
        source.send(300, heard=False)
        source.send(10)
        heard.until(320)
        assert heard.numbers == [*range(10), *range(310, 320)]
        assert heard.lost == list(range(10, 310))
        assert totals(instance, "receiver", "messages_lost")[-1] == 300


def test_h5_several_outages_in_a_row_leave_nothing_out() -> None:
    port = free_port()
    with Instance() as instance, source_to(port) as source:
        heard = Heard(instance.receiver(f"rmm+unicast://{HOST}:{port}", TOPIC, stream_expiry=0.1))
        source.speak()
        source.send(4)
        for _ in range(3):
            heard.until(source.next_message)
            time.sleep(0.3)
            source.send(20, heard=False)
            source.speak()  # nothing but where it is: the receiver comes back, and is cut off again
            time.sleep(0.3)
            source.send(20, heard=False)
            source.send(4)
        heard.until(source.next_message)
        assert sorted(heard.numbers + heard.lost) == list(range(source.next_message))


def test_h5_what_the_source_still_has_is_repaired_in_order() -> None:
    port = free_port()
    with Instance() as instance, source_to(port, repairs=True) as source:
        heard = Heard(instance.receiver(f"rmm+unicast://{HOST}:{port}", TOPIC, stream_expiry=EXPIRY))
        source.send(10)
        source.speak()
        heard.until(10)
        go_silent(instance)
        source.send(300, heard=False)
        heard.until(310, source)
        assert heard.numbers == list(range(310))
        assert heard.lost == []


def test_h5_an_announcement_alone_tells_what_was_missed() -> None:
    port = free_port()
    with Instance() as instance, source_to(port) as source:
        heard = Heard(instance.receiver(f"rmm+unicast://{HOST}:{port}", TOPIC, stream_expiry=EXPIRY))
        source.speak()
        source.send(10)
        heard.until(10)
        go_silent(instance)
        source.send(50, heard=False)
        source.data(topics((TOPIC, source.next_message)))
        heard.until(60)
        assert heard.lost == list(range(10, 60))


def test_h5_a_source_that_ends_meanwhile_still_repairs_while_it_lingers() -> None:
    port = free_port()
    with Instance() as instance, source_to(port, repairs=True) as source:
        heard = Heard(instance.receiver(f"rmm+unicast://{HOST}:{port}", TOPIC, stream_expiry=EXPIRY))
        source.send(10)
        source.speak()
        heard.until(10)
        go_silent(instance)
        source.send(20, heard=False)
        source.speak(fin)
        heard.until(30, source)
        assert heard.numbers == list(range(30))


def test_h5_a_subscription_made_during_the_outage_joins_as_new() -> None:
    port = free_port()
    endpoint = f"rmm+unicast://{HOST}:{port}"
    with Instance() as instance, source_to(port) as source:
        old = Heard(instance.receiver(endpoint, TOPIC, stream_expiry=EXPIRY))
        source.speak()
        source.send(10)
        old.until(10)
        go_silent(instance)
        new = Heard(instance.receiver(endpoint, TOPIC, stream_expiry=EXPIRY))
        source.send(20, heard=False)
        source.send(10)
        old.until(40)
        new.until(10)
        assert (old.numbers, old.lost) == ([*range(10), *range(30, 40)], [*range(10, 30)])
        assert (new.numbers, new.lost) == ([*range(30, 40)], [])


def test_h5_bare_messages_are_counted_by_their_packets() -> None:
    port = free_port()
    with Instance() as instance, source_to(port) as source:
        heard = Heard(instance.receiver(f"rmm+unicast://{HOST}:{port}", TOPIC, stream_expiry=EXPIRY, payload="raw"))
        source.speak()
        for _ in range(5):
            source.data(b"bare")
        heard.until(5)
        go_silent(instance)
        for _ in range(7):
            source.data(b"bare", heard=False)
        source.data(b"bare")
        heard.until(13)
        assert (heard.numbers, heard.lost) == ([*range(5), 12], [*range(5, 12)])


def test_h5_of_a_source_behind_a_cut_cable_nothing_is_missing_without_a_word() -> None:
    """The finding as it was met: expiry 0.5 s, outage 1 s, messages all the time."""
    endpoint = f"rmm://239.192.78.5:{free_port()}"
    with lay() as cable:
        with cable.enter("near"):
            sink = Instance(name="sink")
        with cable.enter("far"):
            origin = Instance(name="origin")
        with sink, origin:
            with cable.enter("near"):
                receiver = sink.receiver(f"{endpoint}?interface={ADDRESSES['near']}", TOPIC, stream_expiry=0.5)
            with cable.enter("far"):
                transmitter = origin.transmitter(
                    f"{endpoint}?interface={ADDRESSES['far']}", TOPIC, linger=1.0, history_bytes=30_000
                )
            heard = Heard(receiver)
            sent = 0

            def send_for(seconds: float) -> None:
                nonlocal sent
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    transmitter.send(b"." * 1000)
                    sent += 1
                    time.sleep(0.002)
                    heard.look()

            send_for(0.2)
            cable.lose("near", 1)
            send_for(1.0)
            assert totals(sink, "instance", "rx_streams") == [0]
            cable.lose("near", 0)
            send_for(0.3)
            heard.until(sent)
            assert sorted(heard.numbers + heard.lost) == list(range(sent))
            assert heard.lost  # the history was shorter than the outage


class Cut:
    """A TCP relay that can be cut: what connects meanwhile is closed at once."""

    def __init__(self, port: int) -> None:
        self.to = port
        self.is_cut = False
        self._open: list[socket.socket] = []
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                if self.is_cut:
                    here.close()
                    continue
                there = socket.create_connection((HOST, self.to))
                self._open += [here, there]
                for one, other in ((here, there), (there, here)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    @staticmethod
    def _carry(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)

    def cut(self) -> None:
        self.is_cut = True
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._open.clear()

    def close(self) -> None:
        self.cut()
        self._listener.close()


def test_h5_a_connection_that_is_back_after_the_expiry_brings_what_was_sent_meanwhile() -> None:
    port = free_port()
    with Instance() as sink, Instance() as origin:
        heard = Heard(sink.receiver(f"rum://{HOST}:{port}", TOPIC, stream_expiry=EXPIRY))
        with contextlib.closing(Cut(port)) as relay:
            transmitter = origin.transmitter(f"rum://{HOST}:{relay.port}", TOPIC, linger=0.0)
            transmitter.send_many([b"before"] * 10)
            heard.until(10)
            relay.cut()
            go_silent(sink)
            transmitter.send_many([b"meanwhile"] * 200)
            relay.is_cut = False
            heard.until(210)
            assert heard.numbers == list(range(210))
            assert heard.lost == []
