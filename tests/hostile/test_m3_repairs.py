"""M3: what one address may cause in repairs is bounded, and who needs the history still gets it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from heliograph.engine import Instance, Transmitter
from tests.ports import free_port

from .forging import HOST, Session, attacker, nak, session_of
from .looking import events, total, until

TOPIC = "PRICES"
PACKETS = 11000
BODY = b"." * 1400
ASKED_AT_ONCE = 63


@contextmanager
def full_history(endpoint: str, repair_budget: float = 2.0) -> Iterator[tuple[Instance, Transmitter, int, int]]:
    """A source that has sent 15 MB, all of it still in its history: oldest and newest packet."""
    with Instance(name="source") as source:
        transmitter = source.transmitter(
            endpoint, TOPIC, linger=0.0, send_window=16384, announce_interval=60.0, repair_budget=repair_budget
        )
        for _ in range(PACKETS // 100):
            transmitter.send_many([BODY] * 100)
        transmitter.flush()
        assert until(lambda: total(source, "tx_stream", "packets_sent") >= PACKETS)
        yield source, transmitter, total(source, "tx_stream", "window_trail"), total(source, "tx_stream", "window_lead")


def ask_for_all(forger: socket.socket, session: Session, first: int, last: int) -> int:
    """Ask for every packet; bytes that took."""
    took = 0
    for number in range(first, last + 1, ASKED_AT_ONCE):
        packet = nak(session, list(range(number, min(number + ASKED_AT_ONCE, last + 1))), HOST, HOST)
        took += forger.sendto(packet, (HOST, session.port))
        if number % (8 * ASKED_AT_ONCE) < ASKED_AT_ONCE:
            time.sleep(0.001)
    return took


def test_m3_asking_again_and_again_causes_little() -> None:
    port = free_port()
    with (
        full_history(f"rmm+unicast://{HOST}:{port}") as (source, transmitter, first, last),
        attacker(HOST, port) as victim,
        attacker() as forger,
    ):
        victim.setblocking(False)
        session = session_of(transmitter.stream, port)
        took = ask_for_all(forger, session, first, last)
        time.sleep(1.0)
        before, began = total(source, "tx_stream", "repair_bytes"), time.monotonic()
        asked = 0
        for _ in range(3):
            asked += ask_for_all(forger, session, first, last)
            time.sleep(0.7)
        seconds = time.monotonic() - began
        caused = total(source, "tx_stream", "repair_bytes") - before
        print(f"at first {took} bytes of NAKs caused {before} bytes of repairs")
        print(f"then {asked} caused {caused} in {seconds:.1f} s, {caused / asked:.1f} for one")
        assert before < 17 << 20
        assert caused < (seconds + 1.0) * (1 << 20) + 100_000
        assert total(source, "instance", "state_refused_repairs") > PACKETS
        assert len(events(source, "state_refused")) == 1
        naks = total(source, "tx_stream", "naks_received")
        outcomes = ["repaired", "queued_already", "ignored_recent", "too_late", "not_sent_yet", "shed"]
        assert naks == sum(total(source, "tx_stream", f"naks_answered_{outcome}") for outcome in outcomes)


def test_m3_another_port_brings_no_more() -> None:
    port = free_port()
    with (
        full_history(f"rmm+unicast://{HOST}:{port}") as (source, transmitter, first, last),
        attacker(HOST, port) as victim,
    ):
        victim.setblocking(False)
        session = session_of(transmitter.stream, port)
        began = time.monotonic()
        for number in range(6):
            with attacker(f"127.0.0.{9 + number % 2}") as forger:
                ask_for_all(forger, session, first, last)
            time.sleep(0.2)
        time.sleep(0.5)
        seconds = time.monotonic() - began
        assert total(source, "tx_stream", "repair_bytes") < (17 << 20) + (seconds + 1.0) * (1 << 20)


def test_m3_without_a_budget_all_is_repaired() -> None:
    port = free_port()
    with (
        full_history(f"rmm+unicast://{HOST}:{port}", repair_budget=0.0) as (source, transmitter, first, last),
        attacker(HOST, port) as victim,
        attacker() as forger,
    ):
        victim.setblocking(False)
        for number in range(1, 4):
            ask_for_all(forger, session_of(transmitter.stream, port), first, last)
            assert until(lambda n=number: total(source, "tx_stream", "repair_bytes") > n * (14 << 20))  # type: ignore[misc]
        assert total(source, "instance", "state_refused_repairs") == 0


def test_m3_a_receiver_gets_the_history_beside_an_attack() -> None:
    port = free_port()
    endpoint = f"rmm+unicast://{HOST}:{port}"
    with full_history(endpoint) as (_, transmitter, first, last), attacker() as forger:
        session = session_of(transmitter.stream, port)
        stop = threading.Event()

        def attack() -> None:
            while not stop.is_set():
                ask_for_all(forger, session, first, last)
                time.sleep(0.2)

        thread = threading.Thread(target=attack)
        thread.start()
        try:
            with Instance(name="genuine") as sink:
                receiver = sink.receiver(endpoint, TOPIC, join="history", receive_window=16384)
                got = 0
                end = time.monotonic() + 60.0
                while got < PACKETS and time.monotonic() < end:
                    got += len(receiver.receive(timeout=0.1))
                assert got == PACKETS
                assert receiver.losses() == []
        finally:
            stop.set()
            thread.join()
