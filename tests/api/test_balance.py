"""The books of a running fleet, looked at amid traffic: queues that drop and trim, both modes, many moments."""

from __future__ import annotations

import random
from typing import Any

import pytest

from heliograph.engine import Instance, WouldBlock
from heliograph.monitor.reconciliation import accounts, crossings, sentence
from heliograph.monitor.sampler import Sampler

from .conftest import until

TOPICS = ("A", "B", "C")
MOMENTS = 120


def options(choose: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of a transmitter and of a receiver."""
    sending: dict[str, Any] = {"linger": 0.2}
    receiving: dict[str, Any] = {}
    policy = choose.choice(("block", "drop_oldest", "drop_newest", "conflate", "age"))
    if policy == "age":
        sending |= {"queue_age": 0.002, "overflow": "drop_oldest"}
        receiving |= {"queue_age": 0.002}
    elif policy == "conflate":
        sending |= {"overflow": "conflate", "key_offset": 0, "key_bytes": 1, "queue_messages": 16}
    elif policy != "block":
        sending |= {"overflow": policy, "queue_messages": 16}
    if choose.random() < 0.5:
        receiving |= {"overflow": choose.choice(("drop_oldest", "drop_newest")), "queue_messages": 32}
    if choose.random() < 0.3:
        receiving |= {"inject_loss": 0.1, "nak_deadline": 0.01}
    if choose.random() < 0.3:
        receiving |= {"receive_window": 64}
    if choose.random() < 0.3:
        receiving |= {"order": "arrival"}
    return sending, receiving


@pytest.mark.parametrize("mode", ["thread", "poll"])
@pytest.mark.parametrize("seed", range(6))
def test_every_sum_holds_in_every_snapshot_and_nothing_is_in_flight_in_the_end(
    mode: str, seed: int, multicast: str
) -> None:
    choose = random.Random(seed)
    with Instance(name="books", mode=mode) as instance, Sampler() as sampler:  # type: ignore[arg-type]
        sending, receiving = options(choose)
        receivers = [instance.receiver(multicast, topic, **receiving) for topic in TOPICS[:2]]
        transmitters = [instance.transmitter(multicast, topic, **sending) for topic in (*TOPICS, TOPICS[0])]

        def look() -> None:
            rows = accounts(sampler.sample(histograms=False))
            assert [sentence(row) for row in rows if row.residual] == []

        for moment in range(MOMENTS):
            for _ in range(choose.randrange(20)):
                body = bytes([choose.randrange(8)]) * choose.choice((1, 20, 300, 5000))
                try:
                    choose.choice(transmitters).send(body, timeout=0)
                except WouldBlock:
                    break
            if instance.polled:
                instance.poll()
            if choose.random() < 0.5:
                for receiver in receivers:
                    receiver.receive(timeout=0, limit=choose.randrange(1, 60))
            if moment % 3 == 0:
                look()

        def settled() -> bool:
            for receiver in receivers:
                receiver.receive(timeout=0)
            ends = crossings(sampler.sample(histograms=False))
            return {end.join for end in ends} == {"packets", "messages"} and not any(end.in_flight for end in ends)

        for transmitter in transmitters:  # what was lost last is told by what comes after it
            until(lambda: not settled(), instance, seconds=0.05)
            transmitter.send(b"last", timeout=1)
        assert until(settled, instance)
        look()
