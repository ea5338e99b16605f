"""M2: receivers that have proven nothing do not take the places of those that report."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heliograph.engine import Instance
from tests.ports import free_port

from .forging import ATTACKER, HOST, Session, attacker, nak, session_of
from .looking import events, total, until

TOPIC = "PRICES"
FORGED = 1500


def one_host(number: int) -> tuple[str, int]:
    return ATTACKER, 20000 + number


def many_hosts(number: int) -> tuple[str, int]:
    return f"127.0.{9 + number // 250}.{1 + number % 250}", 20000


def ask_from_everywhere(session: Session, newest: int, where: Callable[[int], tuple[str, int]]) -> None:
    packet = nak(session, [newest], HOST, HOST)
    for number in range(FORGED):
        with attacker(*where(number)) as forger:
            forger.sendto(packet, (HOST, session.port))


@pytest.mark.parametrize("where", [one_host, many_hosts])
def test_m2_forged_requests_leave_room_for_receivers(where: Callable[[int], tuple[str, int]]) -> None:
    port = free_port()
    endpoint = f"rmm+unicast://{HOST}:{port}"
    with Instance(name="source") as source:
        transmitter = source.transmitter(endpoint, TOPIC, linger=0.0)
        transmitter.send(b"first")
        transmitter.flush()
        session = session_of(transmitter.stream, port)
        assert until(lambda: total(source, "tx_stream", "packets_sent") > 0)
        ask_from_everywhere(session, total(source, "tx_stream", "window_lead"), where)
        assert until(lambda: total(source, "tx_stream", "nak_packets_received") >= FORGED * 0.9)
        with Instance(name="genuine") as sink:
            receiver = sink.receiver(endpoint, TOPIC)

            def is_known() -> bool:
                transmitter.send(b"more")
                receiver.receive(timeout=0.02)
                return any(view.name == "genuine" for view in transmitter.receivers())

            assert until(is_known, 5.0)
        reason = "receivers_of_address" if where is one_host else "receivers"
        assert total(source, "instance", f"state_refused_{reason}") > 1000
        assert len(events(source, "state_refused")) == 1
        assert total(source, "tx_stream", "receivers") <= 257


def test_m2_many_receivers_of_one_host_are_all_known() -> None:
    port = free_port()
    group = f"rmm://239.192.88.{1 + port % 250}:{port}?interface={HOST}"
    with Instance(name="source") as source, Instance(name="sink") as sink:
        transmitter = source.transmitter(group, TOPIC, linger=0.0)
        receivers = []
        sinks = [Instance(name=f"sink{number}") for number in range(24)]
        try:
            receivers = [one.receiver(group, TOPIC) for one in sinks]

            def all_known() -> bool:
                transmitter.send(b"x")
                for receiver in receivers:
                    receiver.receive(timeout=0.001)
                return sum(view.name.startswith("sink") for view in transmitter.receivers()) == len(sinks)

            assert until(all_known)
            assert total(source, "instance", "state_refused_receivers_of_address") == 0
        finally:
            for one in sinks:
                one.close()
        assert sink.name == "sink"
