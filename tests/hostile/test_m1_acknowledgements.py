"""M1: nobody acknowledges in the name of a receiver that is known at another address.

The attacker knows the receiver's id and its incarnation, as any user of the source's host does by the statistics, and
has an address of its own: another IP, or another port of the receiver's.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import pytest

from heliograph.engine import Instance, TimeoutExpired, Transmitter
from tests.ports import free_port

from .forging import HOST, Session, acknowledge, attacker, session_of
from .looking import events, total, until

TOPIC = "ORDERS"
_groups = itertools.count(1)


@contextmanager
def stuck() -> Iterator[tuple[Instance, Transmitter, Session, int, int]]:
    """A receiver whose application acknowledged one message and not the next: source, session, id, incarnation."""
    port = free_port()
    endpoint = f"rmm+unicast://{HOST}:{port}"
    with Instance(name="source") as source, Instance(name="sink") as sink:
        receiver = sink.receiver(endpoint, TOPIC, ack="app")
        transmitter = source.transmitter(endpoint, TOPIC, linger=0.0, acks=1)
        transmitter.send(b"first")
        receiver.acknowledge(next(iter(receiver)))
        transmitter.wait_acked(timeout=10.0)
        transmitter.send(b"second")
        transmitter.flush()
        assert until(lambda: len(receiver.receive(timeout=0.05)) == 1)
        view = next(view for view in transmitter.receivers() if view.incarnation)
        yield source, transmitter, session_of(transmitter.stream, port), int(view.receiver, 16), view.incarnation


def lead(source: Instance) -> int:
    return total(source, "tx_stream", "window_lead")


@pytest.mark.parametrize("address", ["127.0.0.9", HOST], ids=["another host", "another port"])
def test_m1_a_forged_acknowledgement_does_not_count(address: str) -> None:
    with stuck() as (source, transmitter, session, receiver, incarnation), attacker(address) as forger:
        newest = lead(source)
        for life in (incarnation, incarnation + 1, (1 << 64) - 1):
            forger.sendto(acknowledge(session, receiver, life, newest - 1, newest), (HOST, session.port))
        with pytest.raises(TimeoutExpired):
            transmitter.wait_acked(timeout=0.3)
        assert until(lambda: total(source, "tx_stream", "acks_refused_elsewhere") == 3)
        assert len(events(source, "receiver_conflict")) == 1


def test_m1_a_forged_life_does_not_shut_out_the_receiver() -> None:
    port = free_port()
    endpoint = f"rmm+unicast://{HOST}:{port}"
    with Instance(name="source") as source, Instance(name="sink") as sink, attacker() as forger:
        receiver = sink.receiver(endpoint, TOPIC, ack="auto")
        transmitter = source.transmitter(endpoint, TOPIC, linger=0.0, acks=1)
        transmitter.send(b"first")
        transmitter.wait_acked(timeout=10.0)
        session = session_of(transmitter.stream, port)
        identity = int(transmitter.acks()[0].receiver, 16)
        newest = lead(source)
        forger.sendto(acknowledge(session, identity, (1 << 64) - 1, newest, newest), (HOST, session.port))
        assert until(lambda: total(source, "tx_stream", "acks_received") > 1)
        took = []
        for _ in range(10):
            begun = time.monotonic()
            transmitter.send(b"more")
            transmitter.wait_acked(timeout=10.0)
            took.append(time.monotonic() - begun)
        assert median(took) < 0.1  # as others use this machine too
        assert len(receiver.receive(timeout=10.0)) == 11
