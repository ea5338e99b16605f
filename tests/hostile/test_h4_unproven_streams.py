"""Streams that have proven nothing: they take little, and lock nobody out (finding H4, ADR 0026)."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from statistics import median

import pytest

from heliograph.engine import Instance, Receiver
from tests.api.conftest import until
from tests.hostile.forging import ATTACKER, HOST, Session, attacker, batch, odata, spm
from tests.hostile.looking import resident
from tests.ports import free_port
from tests.segment.decoder import decode_live

FORGED = 10_000
MOST_BYTES = 16 << 20
WITHIN = 1.0  # seconds, for a genuine source to be delivered from: the median, as others use this machine too
AT_MOST = 8.0  # seconds, for any of them
TOPIC, OTHER = "WANTED", "OTHER"


def counts(instance: Instance) -> dict[str, int]:
    (found,) = decode_live(instance.segment).of("instance")
    return dict(found.values)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def sink() -> Iterator[Instance]:
    with Instance(memory_limit=200 << 20, mode="thread") as instance:
        yield instance


def forged(number: int, port: int) -> Session:
    return Session(b"\xf0\xf1" + number.to_bytes(4, "big"), 6000, port)


def unwanted(number: int, port: int, *, leaves_a_gap: bool = False) -> list[bytes]:
    """An SPM of a stream, and data of a topic nobody subscribed to."""
    session = forged(number, port)
    body = batch(OTHER, 0, [b"forged"])
    return [spm(session, 1, 0, 0, ATTACKER), odata(session, 9 if leaves_a_gap else 1, 0, body)]


def genuine(receiver: Receiver, port: int, data: bytes) -> float:
    """Seconds until a new source's first message is there."""
    with Instance(mode="thread") as source:
        transmitter = source.transmitter(f"rmm+unicast://{HOST}:{port}", TOPIC, linger=0.0)
        start = time.monotonic()
        transmitter.send(data)
        while time.monotonic() < start + 10:
            if [message.data for message in receiver.receive(timeout=0.1)] == [data]:
                return time.monotonic() - start
    return float("inf")


def assert_is_heard(receiver: Receiver, port: int) -> None:
    """New sources are delivered from."""
    took = [genuine(receiver, port, b"mine %d" % number) for number in range(3)]
    assert median(took) < WITHIN
    assert max(took) < AT_MOST


def send_all(packets: Sequence[bytes], sockets: Sequence[socket.socket], port: int, stop: threading.Event) -> None:
    """Each stream's two packets from the same address; some 10,000 packets a second."""
    for number in range(0, len(packets), 2):
        if stop.is_set():
            return
        one = sockets[number // 2 % len(sockets)]
        one.sendto(packets[number], (HOST, port))
        one.sendto(packets[number + 1], (HOST, port))
        if number % 100 == 0:
            time.sleep(0.01)


def test_h4_sixty_four_forged_streams_lock_no_source_out(sink: Instance, port: int) -> None:
    receiver = sink.receiver(f"rmm+unicast://{HOST}:{port}", TOPIC)
    with attacker() as forger:
        for number in range(64):
            for packet in unwanted(number, port, leaves_a_gap=True):
                forger.sendto(packet, (HOST, port))
    assert until(lambda: counts(sink)["packets_received"] >= 128)
    assert_is_heard(receiver, port)
    assert counts(sink)["rx_streams"] < 64


def test_h4_eight_forged_spms_take_no_memory(sink: Instance, port: int) -> None:
    receiver = sink.receiver(f"rmm+unicast://{HOST}:{port}", TOPIC)
    before = counts(sink)["memory_used"]
    with attacker() as forger:
        for number in range(8):
            forger.sendto(spm(forged(number, port), 1, 0, 0, ATTACKER), (HOST, port))
    assert until(lambda: counts(sink)["packets_received"] >= 8)
    assert counts(sink)["memory_used"] - before < 1 << 20
    assert counts(sink)["packets_sent"] == 0  # and nobody is asked for anything
    assert_is_heard(receiver, port)


@pytest.mark.parametrize("addresses", [1, 200])
@pytest.mark.parametrize("leaves_a_gap", [False, True])
def test_h4_ten_thousand_forged_streams_take_little_while_a_source_is_heard(
    sink: Instance, port: int, addresses: int, leaves_a_gap: bool
) -> None:
    receiver = sink.receiver(f"rmm+unicast://{HOST}:{port}", TOPIC)
    packets = [packet for number in range(FORGED) for packet in unwanted(number, port, leaves_a_gap=leaves_a_gap)]
    sockets = [attacker(f"127.0.1.{place + 1}") for place in range(addresses)]
    for number in range(3):
        assert genuine(receiver, port, b"first %d" % number) < AT_MOST  # what any source takes is there
    time.sleep(0.1)
    used, rss = counts(sink)["memory_used"], resident()
    stop = threading.Event()
    attack = threading.Thread(target=send_all, args=(packets, sockets, port, stop))
    attack.start()
    try:
        took = []
        for number in range(5):
            took.append(genuine(receiver, port, b"%d" % number))
            time.sleep(0.1)
        attack.join(60)
        took.append(genuine(receiver, port, b"last"))
    finally:
        stop.set()
        attack.join()
        for one in sockets:
            one.close()
    # The windows of the genuine sources go with them; what is left is of the forged streams.
    assert until(lambda: counts(sink)["memory_used"] - used <= MOST_BYTES)
    # What the streams took stays; memory that a thread of an earlier test took meanwhile goes.
    until(lambda: resident() - rss <= MOST_BYTES)
    grown = resident() - rss
    after = counts(sink)
    print(
        f"rss {grown}, memory_used {after['memory_used'] - used}, took {max(took):.3f} s, {after['packets_received']}"
    )
    assert median(took) < WITHIN
    assert max(took) < AT_MOST
    assert after["packets_received"] > FORGED
    assert after["state_refused_streams_of_address"] + after["state_refused_streams"] > 0
    others = [thread.name for thread in threading.enumerate() if thread is not threading.current_thread()]
    assert grown <= MOST_BYTES, f"other threads of this process: {others}"
