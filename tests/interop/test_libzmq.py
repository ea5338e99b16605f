"""libzmq's epgm:// at the other end: PUB and SUB of applications that know nothing of us.

Our side speaks libzmq's framing through the adapter in `zmtp`, on bare payloads (`raw`).
"""

from __future__ import annotations

import time

from heliograph.engine import Instance, Receiver, Transmitter
from tests.interop.cable import ADDRESSES, Cable
from tests.interop.conftest import (
    ENDPOINT,
    LOSSES,
    Start,
    assert_nothing_odd,
    events,
    look,
    lose_everywhere,
    make,
    objects,
    send_paced,
    settled,
    total,
)
from tests.interop.peers import Peer
from tests.interop.zmtp import Unpacker, pack

PEER = "zmq_peer"
PATIENT = {"nak_deadline": 20.0}
"""libzmq confirms at once and repairs when its socket wakes up next, tens of milliseconds later."""


def transmit(transmitter: Transmitter, messages: list[bytes]) -> None:
    """Send messages in libzmq's framing, many in a packet."""
    send_paced(transmitter.send_many, pack(messages))


def collect(receiver: Receiver, unpacker: Unpacker, count: int, seconds: float) -> list[bytes]:
    """The next `count` messages; fewer when they do not come in time."""
    messages: list[bytes] = []
    end = time.monotonic() + seconds
    while len(messages) < count and time.monotonic() < end:
        for packet in receiver.receive(timeout=0.1):
            messages += unpacker.add(packet.data)
    return messages


def greet(peer: Peer, transmitter: Transmitter) -> list[bytes]:
    """Send something until libzmq, which joins in the background, hears it; returns what it has heard."""
    while not peer.wait_for(1, 0.05):
        assert peer.is_running
        transmit(transmitter, [b"hello"])
    time.sleep(0.1)
    heard = peer.wait_for(1, 0)
    assert set(heard) == {b"hello"}
    return heard


def begin_losing(cable: Cable, loss: float, peer: Peer, transmitter: Transmitter) -> list[bytes]:
    """Greet, then lose packets: libzmq begins where it first hears data. Returns what it has heard."""
    heard = greet(peer, transmitter)
    lose_everywhere(cable, loss)
    return heard


def test_the_adapter_reads_what_it_writes() -> None:
    messages = [b"", b"a", b"b" * 253, b"c" * 254, b"d" * 5000, *make(50, seed=30)]
    packets = pack(messages, packet_bytes=300)
    unpacker = Unpacker()
    assert [message for packet in packets for message in unpacker.add(packet)] == messages
    late = Unpacker()
    got = [message for packet in packets[5:] for message in late.add(packet)]
    assert 0 < len(got) < len(messages)
    assert messages[-len(got) :] == got


@LOSSES
def test_libzmq_gets_what_we_send(cable: Cable, near: Instance, start: Start, loss: float) -> None:
    peer = start(PEER, "recv")
    transmitter = near.transmitter(ENDPOINT, "zmq")
    heard, messages = begin_losing(cable, loss, peer, transmitter), make(500, seed=31, longest=2500)
    transmit(transmitter, messages)
    assert peer.wait_for(len(heard + messages), 40) == heard + messages
    assert_nothing_odd()
    if loss == 0.1:
        askers = objects(look(), "tx_receiver")
        assert all(asker.labels["receiver"].startswith(f"{ADDRESSES['far']}:") for asker in askers)
        assert total(askers, "naks_received") >= total(askers, "repairs_caused") > 0


@LOSSES
def test_we_get_what_libzmq_sends(cable: Cable, near: Instance, start: Start, loss: float) -> None:
    messages = make(500, seed=32, longest=2500)
    with near.receiver(ENDPOINT, "zmq", **PATIENT) as receiver:
        peer = start(PEER, "send")
        peer.send([b"first"])
        unpacker = Unpacker()
        assert collect(receiver, unpacker, 1, 10) == [b"first"]
        lose_everywhere(cable, loss)
        send_paced(peer.send, messages)
        assert collect(receiver, unpacker, len(messages), 40) == messages
        assert_nothing_odd()
        if loss == 0.1:
            assert total(objects(look(), "rx_stream"), "packets_recovered") > 0


def test_we_join_late_at_the_next_message(near: Instance, start: Start) -> None:
    peer = start(PEER, "send")
    messages = make(200, seed=33)
    send_paced(peer.send, messages[:100])
    time.sleep(0.2)
    with near.receiver(ENDPOINT, "zmq", **PATIENT) as receiver:
        send_paced(peer.send, messages[100:])
        assert collect(receiver, Unpacker(), 100, 10) == messages[100:]
        assert_nothing_odd()


def test_libzmq_joins_late_at_the_next_message(cable: Cable, near: Instance, start: Start) -> None:
    transmitter = near.transmitter(ENDPOINT, "zmq")
    transmit(transmitter, make(100, seed=34))
    peer = start(PEER, "recv")
    heard, messages = begin_losing(cable, 0.05, peer, transmitter), make(200, seed=35)
    transmit(transmitter, messages)
    assert peer.wait_for(len(heard + messages), 40) == heard + messages
    assert_nothing_odd()


def test_publishers_of_libzmq_come_and_go(near: Instance, start: Start) -> None:
    with near.receiver(ENDPOINT, "zmq", **PATIENT) as receiver:
        for seed in (36, 37):
            peer, messages = start(PEER, "send"), make(50, seed=seed)
            send_paced(peer.send, messages)
            assert collect(receiver, Unpacker(), len(messages), 10) == messages
            peer.close()  # it says FIN
            gone = settled(lambda now: not any(item.live for item in objects(now, "rx_stream")))
            assert not any(item.live for item in objects(gone, "rx_stream"))
        assert len(events(look(), "stream_closed")) == 2
        assert_nothing_odd()


def test_a_stream_of_ours_that_restarts_is_followed_by_libzmq(near: Instance, start: Start) -> None:
    peer = start(PEER, "recv")
    expected: list[bytes] = []
    for part in (make(30, seed=38), make(30, seed=40)):
        with near.transmitter(ENDPOINT, "zmq", linger=0.05) as transmitter:
            expected = expected or greet(peer, transmitter)
            transmit(transmitter, part)
        expected += part
        settled(lambda now: total(objects(now, "instance"), "tx_streams") == 0)
    assert peer.wait_for(len(expected), 10) == expected
    assert peer.is_running


def test_sequence_numbers_wrap_in_libzmq_too(cable: Cable, near: Instance, start: Start) -> None:
    peer = start(PEER, "recv")
    transmitter = near.transmitter(ENDPOINT, "zmq", first_sequence=2**32 - 100)
    heard, messages = begin_losing(cable, 0.1, peer, transmitter), make(400, seed=39)
    transmit(transmitter, messages)
    assert total(objects(look(), "transmitter"), "next_message") > 2**32 + 50
    assert peer.wait_for(len(heard + messages), 40) == heard + messages
    assert_nothing_odd()
