"""M4: connections that say nothing keep nobody out, and what connections take is memory that is kept account of."""

from __future__ import annotations

import contextlib
import resource
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from heliograph.engine import Instance
from tests.ports import free_port

from .forging import ATTACKER, HOST
from .looking import events, total, until

TOPIC = "PRICES.FX"
IDLE = 1100


@contextmanager
def descriptors(count: int) -> Iterator[None]:
    """This process may have so many of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, count), hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def idle(port: int, address: str) -> socket.socket:
    """A connection that says nothing."""
    found = socket.socket()
    found.bind((address, 0))
    found.settimeout(2.0)
    found.connect((HOST, port))
    return found


def hello() -> bytes:
    """What a transmitter says first (docs/wire.md 6)."""
    return struct.pack(">BBH4sBBHII", 0x81, 0, 16, b"HRUM", 1, 1, 0, 1400, 60000)


def test_m4_idle_connections_keep_nobody_out() -> None:
    port = free_port()
    endpoint = f"rum://{HOST}:{port}"
    held: list[socket.socket] = []
    stop = threading.Event()

    def again() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                held.append(idle(port, ATTACKER))
            time.sleep(0.002)

    with descriptors(6000), Instance(name="sink") as sink, Instance(name="source") as source:
        receiver = sink.receiver(endpoint, TOPIC)
        try:
            for _ in range(IDLE):
                held.append(idle(port, ATTACKER))
            thread = threading.Thread(target=again)
            thread.start()
            transmitter = source.transmitter(endpoint, TOPIC, linger=0.0)
            transmitter.send(b"genuine")
            transmitter.flush()
            assert [message.data for message in receiver.receive(timeout=15.0)] == [b"genuine"]
        finally:
            stop.set()
            thread.join()
            for one in held:
                one.close()
        assert total(sink, "instance", "state_refused_connections_of_address") > IDLE - 200
        assert len(events(sink, "state_refused")) == 1


def test_m4_connections_of_many_addresses_give_way_too() -> None:
    port = free_port()
    endpoint = f"rum://{HOST}:{port}"
    with descriptors(3000), Instance(name="sink") as sink, Instance(name="source") as source:
        receiver = sink.receiver(endpoint, TOPIC)
        held = [idle(port, f"127.0.9.{1 + number % 250}") for number in range(400)]
        transmitter = source.transmitter(endpoint, TOPIC, linger=0.0)
        transmitter.send(b"genuine")
        transmitter.flush()
        assert [message.data for message in receiver.receive(timeout=15.0)] == [b"genuine"]
        assert until(lambda: total(sink, "instance", "state_refused_connections") >= 400 - 128 - 1)
        for one in held:
            one.close()


def test_m4_what_a_connection_takes_is_in_memory_used() -> None:
    port = free_port()
    endpoint = f"rum://{HOST}:{port}"
    with Instance(name="sink") as sink, Instance(name="source") as source:
        receiver = sink.receiver(endpoint, TOPIC, receive_window=1024)
        assert until(lambda: total(sink, "instance", "memory_used") > 0)
        before = total(sink, "instance", "memory_used")
        held = [idle(port, ATTACKER) for _ in range(20)]
        assert until(lambda: total(sink, "instance", "memory_used") > before)
        assert total(sink, "instance", "memory_used") < before + 20 * 16384
        for one in held:
            one.close()
        assert until(lambda: total(sink, "instance", "memory_used") == before)
        transmitter = source.transmitter(endpoint, TOPIC, linger=0.0)
        transmitter.send(b"genuine")
        assert len(receiver.receive(timeout=15.0)) == 1
        assert until(lambda: total(sink, "instance", "memory_used") > before + (128 << 10))
        transmitter.close()


def test_m4_a_connection_beyond_the_memory_limit_is_refused() -> None:
    port = free_port()
    limit = 18 << 20
    with Instance(name="sink", memory_limit=limit) as sink:
        receiver = sink.receiver(f"rum://{HOST}:{port}", TOPIC, receive_queue=16 << 20)
        assert until(lambda: total(sink, "instance", "memory_used") >= 16 << 20)
        held = [idle(port, ATTACKER) for _ in range(16)]
        for one in held:
            one.sendall(hello())
        assert until(lambda: total(sink, "instance", "memory_refusals") > 0)
        assert until(lambda: total(sink, "instance", "connections") > 0)
        assert total(sink, "instance", "connections") < 16
        assert 16 << 20 < total(sink, "instance", "memory_used") <= limit
        assert receiver.losses() == []
        for one in held:
            one.close()


def test_m4_one_address_has_half_of_the_connections() -> None:
    port = free_port()
    endpoint = f"rum://{HOST}:{port}"
    with descriptors(4000), Instance(name="sink") as sink, Instance(name="source") as source:
        receiver = sink.receiver(endpoint, TOPIC)
        held = []
        for number in range(530):
            held.append(idle(port, ATTACKER))
            held[-1].sendall(hello())
            if number % 20 == 19:
                assert until(lambda n=number: total(sink, "instance", "connects") >= min(n + 1, 512))  # type: ignore[misc]
        assert until(lambda: total(sink, "instance", "state_refused_connections_of_address") == 530 - 512)
        transmitter = source.transmitter(endpoint, TOPIC, linger=0.0)
        transmitter.send(b"genuine")
        assert len(receiver.receive(timeout=15.0)) == 1
        for one in held:
            one.close()
