"""A run whose every loss and every unwanted packet is known beforehand: what monitors read is exactly that.

A tap takes the packets of a source and hands the receiver those it is to have, so nothing is left to a network.
"""

from __future__ import annotations

import socket
from collections import Counter
from pathlib import Path

import pytest

from heliograph.engine import Instance, Loss, Receiver
from heliograph.monitor import fleet
from heliograph.monitor.sampler import Sampler
from tests.wire.decoder import decode_batch, decode_packet

from .conftest import until

WANTED, OTHER = "PRICES.FX", "PRICES.OTHER"
PACKETS = 300
LOST_WANTED = {7, 8, 9, 40, 41, 113, 290}
LOST_OTHER = {3, 41, 42, 200}
QUIET = {"heartbeat_min": 10.0, "heartbeat_max": 300.0, "announce_interval": 300.0}


def messages_of(index: int, topic: str) -> int:
    """How many messages packet `index` of a topic has."""
    return 1 + index % (5 if topic == WANTED else 3)


class Tap:
    """Between a source and a receiver on another loopback address: passes on what is not to be lost."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.bind(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.passed: Counter[str] = Counter()
        self.bytes = 0

    def pass_on(self, lose: bool) -> int:
        """Pass on what came, without the data packets if these are to be lost; returns how many data packets came."""
        count = 0
        while True:
            try:
                data = self.socket.recv(65536)
            except BlockingIOError:
                return count
            packet = decode_packet(data)
            count += packet.kind == "ODATA"
            if packet.kind == "ODATA" and lose:
                self.passed["lost"] += 1
                continue
            self.passed[packet.kind] += 1
            if packet.kind == "ODATA":
                self.passed[decode_batch(packet.tsdu).kind] += 1
                self.bytes += len(data)
            self.socket.sendto(data, ("127.0.0.2", self.port))


def run(source: Instance, tap: Tap) -> None:
    """Send the script."""
    wanted = source.transmitter(f"rmm+unicast://127.0.0.1:{tap.port}", WANTED, linger=0.0, **QUIET)  # type: ignore[arg-type]
    other = source.transmitter(f"rmm+unicast://127.0.0.1:{tap.port}", OTHER, linger=0.0, **QUIET)  # type: ignore[arg-type]
    tap.pass_on(lose=False)
    for index in range(PACKETS):
        for transmitter, lost in ((wanted, LOST_WANTED), (other, LOST_OTHER)):
            transmitter.send_many([b"%d" % index] * messages_of(index, transmitter.topic))
            assert tap.pass_on(lose=index in lost) == 1  # the messages of a call share a packet


def take(receiver: Receiver, total: int) -> tuple[int, list[Loss]]:
    """Receive until messages and losses are `total`."""
    losses: list[Loss] = []
    messages = 0

    def is_all() -> bool:
        nonlocal messages
        messages += len(receiver.receive(timeout=0.01))
        losses.extend(receiver.losses())
        return messages + sum(loss.count for loss in losses) >= total

    assert until(is_all)
    return messages, losses


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_received_filtered_and_lost_are_exactly_what_the_script_says(mode: str, segments: Path) -> None:
    lost_messages = sum(messages_of(index, WANTED) for index in LOST_WANTED)
    all_messages = sum(messages_of(index, WANTED) for index in range(PACKETS))
    tap = Tap()
    with (
        Instance(name="source", mode="poll") as source,
        Instance(name="sink", mode=mode) as sink,  # type: ignore[arg-type]
        Sampler(segments) as sampler,
    ):
        receiver = sink.receiver(f"rmm+unicast://127.0.0.2:{tap.port}", WANTED, nak="off", gro="off")
        run(source, tap)
        messages, losses = take(receiver, all_messages)
        # Behind the last wanted packet comes one of the other topic.
        assert until(
            lambda: (
                [item.values["packets_received"] for _, item in sampler.sample().of("rx_stream")]
                == [tap.passed["ODATA"]]
            ),
            sink,
        )
        snapshot = sampler.sample()
        (stream,) = (item.values for _, item in snapshot.of("rx_stream"))
        (topic,) = (item.values for _, item in snapshot.of("receiver"))
        (engine,) = (item.values for owner, item in snapshot.of("instance") if owner.name == "sink")
        books = fleet.balance(snapshot)
        rows = fleet.instances(None, snapshot)
    tap.socket.close()

    assert engine["packets_received"] == tap.passed["ODATA"] + tap.passed["SPM"]
    came = set(range(PACKETS)) - LOST_WANTED
    assert engine["bytes_received"] == sum(len(b"%d" % index) * messages_of(index, WANTED) for index in came)
    (row,) = (row for row in rows if row.name == "sink")
    assert row.memory_bytes == engine["memory_used"] >= 8 << 20  # its receive queue at least
    assert stream["packets_received"] == tap.passed["ODATA"]
    assert stream["bytes_received"] == tap.bytes
    assert stream["packets_filtered"] == PACKETS - len(LOST_OTHER)
    assert stream["messages_filtered"] == sum(messages_of(index, OTHER) for index in set(range(PACKETS)) - LOST_OTHER)
    lost = {name: count for name, count in stream.items() if name.startswith("packets_lost")}
    assert sum(lost.values()) == lost["packets_lost_not_requested"] == tap.passed["lost"]
    assert stream["packets_missed"] == tap.passed["lost"] == len(LOST_WANTED) + len(LOST_OTHER)
    assert stream["packets_delivered"] == tap.passed["ODATA"]
    assert {stream[name] for name in ("duplicates", "out_of_order", "packets_recovered", "naks_sent")} == {0}
    assert topic["messages_delivered"] == messages == all_messages - lost_messages
    assert topic["messages_lost"] == sum(loss.count for loss in losses) == lost_messages
    assert topic["messages_before_join"] == 0
    firsts = [sum(messages_of(i, WANTED) for i in range(index)) for index in range(PACKETS)]
    numbers = {firsts[index] + i for index in LOST_WANTED for i in range(messages_of(index, WANTED))}
    assert {number for loss in losses for number in range(loss.first, loss.last + 1)} == numbers
    (book,) = books
    assert (book.sent, book.delivered, book.lost, book.residual) == (all_messages, messages, lost_messages, 0)
