"""OpenPGM at the other end, used directly: every message arrives once, whole and in order, whoever sends.

Our payload is `raw` here: OpenPGM's applications put their messages into PGM packets as they are.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from heliograph.engine import Instance
from heliograph.monitor.model import Snapshot
from tests.interop.cable import ADDRESSES, Cable
from tests.interop.conftest import (
    ENDPOINT,
    LOSSES,
    Start,
    assert_nothing_odd,
    collect,
    events,
    look,
    lose_everywhere,
    make,
    objects,
    only,
    send_paced,
    settled,
    total,
    transmit,
)
from tests.interop.peers import Peer

PEER = "openpgm_peer"
PATIENT = {"nak_deadline": 20.0}
FRAGMENTED = 20_000
"""Bytes; OpenPGM takes 16 fragments of a message at most."""


def begin_losing(cable: Cable, loss: float, peer: Peer, send: Callable[[list[bytes]], object]) -> list[bytes]:
    """Send one message to the peer, then lose packets: OpenPGM begins where it first hears data and
    gives up what it misses before it has heard an SPM."""
    first = [b"first"]
    send(first)
    assert peer.wait_for(1, 10) == first
    lose_everywhere(cable, loss)
    return first


def meet_source() -> None:
    """Wait until a source is heard that says nothing yet: its stream is known, and followed with its first data."""

    def heard(now: Snapshot) -> bool:
        return only(objects(now, "instance")).values["unknown_session_packets"] > 0

    assert heard(settled(heard))


@LOSSES
def test_openpgm_gets_what_we_send(cable: Cable, near: Instance, start: Start, loss: float) -> None:
    peer = start(PEER, "recv")
    transmitter = near.transmitter(ENDPOINT, "raw")
    messages = begin_losing(cable, loss, peer, transmitter.send_many) + make(400, seed=1)
    transmit(transmitter, messages[1:])
    assert peer.wait_for(len(messages), 30) == messages
    assert peer.resets == 0
    assert_nothing_odd()
    if loss == 0.1:
        askers = objects(look(), "tx_receiver")
        assert len(askers) <= 2, "OpenPGM sends single requests from one socket and lists from another"
        assert all(asker.labels["receiver"].startswith(f"{ADDRESSES['far']}:") for asker in askers)
        assert total(askers, "naks_received") >= total(askers, "repairs_caused") > 0
        assert total(askers, "naks_too_late") == 0


@LOSSES
def test_we_get_what_openpgm_sends(cable: Cable, near: Instance, start: Start, loss: float) -> None:
    messages = make(400, seed=2)
    with near.receiver(ENDPOINT, "raw", **PATIENT) as receiver:
        peer = start(PEER, "send")
        meet_source()
        lose_everywhere(cable, loss)
        send_paced(peer.send, messages)
        got = collect(receiver, len(messages), 30)
        assert [message.data for message in got] == messages
        assert [message.number for message in got] == list(range(len(messages)))
        assert {message.stream for message in got} == {only(objects(look(), "rx_stream")).labels["stream"]}
        assert_nothing_odd()
        assert only(objects(look(), "rx_stream")).info["source"].startswith(f"{ADDRESSES['far']}:")
        if loss == 0.1:
            assert any(message.recovered for message in got)


def test_a_source_that_was_there_first_is_followed_from_its_first_message(near: Instance, start: Start) -> None:
    peer = start(PEER, "send")
    time.sleep(0.1)
    messages = make(50, seed=3)
    with near.receiver(ENDPOINT, "raw") as receiver:
        send_paced(peer.send, messages)
        assert [message.data for message in collect(receiver, len(messages), 10)] == messages


def test_openpgm_follows_a_stream_of_ours_that_was_there_first(near: Instance, start: Start) -> None:
    transmitter = near.transmitter(ENDPOINT, "raw")
    time.sleep(0.1)
    peer = start(PEER, "recv")
    messages = make(50, seed=4)
    transmit(transmitter, messages)
    assert peer.wait_for(len(messages), 10) == messages


def test_we_join_late_and_miss_nothing_from_there(cable: Cable, near: Instance, start: Start) -> None:
    peer = start(PEER, "send")
    lose_everywhere(cable, 0.05)
    messages = make(300, seed=5)
    send_paced(peer.send, messages[:100])
    time.sleep(0.05)
    with near.receiver(ENDPOINT, "raw", **PATIENT) as receiver:
        send_paced(peer.send, messages[100:])
        first = collect(receiver, 1, 10)[0]
        assert first.data == messages[first.number]
        got = [first, *collect(receiver, len(messages) - first.number - 1, 30)]
        assert [message.data for message in got] == messages[first.number :]
        # Packets lost before anything of the stream was heard were never ours to ask for.
        assert 100 <= first.number < 120
        assert_nothing_odd()


def test_openpgm_joins_late_and_misses_nothing_from_there(cable: Cable, near: Instance, start: Start) -> None:
    transmitter = near.transmitter(ENDPOINT, "raw")
    transmit(transmitter, make(100, seed=6))
    peer = start(PEER, "recv")
    messages = begin_losing(cable, 0.05, peer, transmitter.send_many) + make(200, seed=21)
    transmit(transmitter, messages[1:])
    assert peer.wait_for(len(messages), 30) == messages
    assert peer.resets == 0
    assert_nothing_odd()


def test_many_packets_lost_in_a_row_are_asked_for_in_lists(cable: Cable, near: Instance, start: Start) -> None:
    messages = make(200, seed=7)
    with near.receiver(ENDPOINT, "raw", **PATIENT) as receiver:
        peer = start(PEER, "send")
        peer.send(messages[:50])
        got = collect(receiver, 50, 10)
        cable.lose("near", 1.0)
        send_paced(peer.send, messages[50:150])
        time.sleep(0.1)
        cable.lose("near", 0.0)
        send_paced(peer.send, messages[150:])
        got += collect(receiver, 150, 20)
        assert [message.data for message in got] == messages
        asked = only(objects(look(), "rx_stream")).values
        assert asked["naks_sent"] >= 100
        assert asked["nak_packets_sent"] < asked["naks_sent"] / 4
        assert_nothing_odd()


def test_lists_of_openpgm_are_answered_and_its_spare_request_is_no_error(
    cable: Cable, near: Instance, start: Start
) -> None:
    peer = start(PEER, "recv")
    transmitter = near.transmitter(ENDPOINT, "raw")
    messages = make(200, seed=8)
    transmit(transmitter, messages[:50])
    assert len(peer.wait_for(50, 10)) == 50
    cable.lose("far", 1.0)
    transmit(transmitter, messages[50:150])
    cable.lose("far", 0.0)
    transmit(transmitter, messages[150:])
    assert peer.wait_for(len(messages), 20) == messages
    asked = only(objects(look(), "tx_stream")).values
    assert asked["naks_received"] >= 100
    assert asked["nak_packets_received"] < asked["naks_received"] / 4
    assert asked["naks_received"] == sum(value for name, value in asked.items() if name.startswith("naks_answered"))
    assert_nothing_odd()


def test_openpgm_puts_our_fragments_together(cable: Cable, near: Instance, start: Start) -> None:
    peer = start(PEER, "recv")
    transmitter = near.transmitter(ENDPOINT, "raw")
    messages = begin_losing(cable, 0.05, peer, transmitter.send_many) + make(60, seed=9, longest=FRAGMENTED)
    assert sum(len(message) > 1500 for message in messages) > 40
    for message in messages[1:]:
        transmitter.send(message)
        time.sleep(0.002)
    assert peer.wait_for(len(messages), 30) == messages
    assert peer.resets == 0
    assert only(objects(look(), "transmitter")).values["fragmented_messages"] > 40
    assert_nothing_odd()


def test_we_put_fragments_of_openpgm_together(cable: Cable, near: Instance, start: Start) -> None:
    # One large message: where OpenPGM lets itself be given fragments (see openpgm_peer.c), it goes wrong with a second.
    messages = [*make(20, seed=18), random.Random(19).randbytes(FRAGMENTED), *make(20, seed=20)]
    with near.receiver(ENDPOINT, "raw", **PATIENT) as receiver:
        peer = start(PEER, "send")
        meet_source()
        lose_everywhere(cable, 0.3)
        send_paced(peer.send, messages)
        got = collect(receiver, len(messages), 30)
        assert [message.data for message in got] == messages
        assert only(objects(look(), "receiver")).values["fragments_joined"] == 14
        assert [message.number for message in got] == [*range(21), *range(35, 55)]
        assert_nothing_odd()


def test_the_end_of_an_openpgm_stream_is_heard(near: Instance, start: Start) -> None:
    messages = make(20, seed=10)
    with near.receiver(ENDPOINT, "raw") as receiver:
        peer = start(PEER, "send")
        peer.send(messages)
        assert [message.data for message in collect(receiver, 20, 10)] == messages
        peer.close()
        snapshot = settled(lambda now: not any(item.live for item in objects(now, "rx_stream")))
        assert not any(item.live for item in objects(snapshot, "rx_stream"))
        assert [event.arguments["last_sequence"] & 0xFFFFFFFF for event in events(snapshot, "stream_closed")] == [19]


def test_openpgm_hears_the_end_of_our_stream_and_goes_on(near: Instance, start: Start) -> None:
    peer = start(PEER, "recv")
    messages = make(40, seed=11)
    for part in (messages[:20], messages[20:]):  # a restart is a new stream
        with near.transmitter(ENDPOINT, "raw", linger=0.05) as transmitter:
            transmit(transmitter, part)
        settled(lambda now: only(objects(now, "instance")).values["tx_streams"] == 0)
    assert peer.wait_for(40, 10) == messages
    assert peer.is_running
    assert peer.resets == 0
    assert len({port for port, _ in peer.messages}) == 2


def test_a_source_that_restarts_is_a_new_stream(near: Instance, start: Start) -> None:
    messages = make(40, seed=12)
    with near.receiver(ENDPOINT, "raw") as receiver:
        for part in (messages[:20], messages[20:]):
            with start(PEER, "send") as peer:  # killed: it says no goodbye
                peer.send(part)
                assert [message.data for message in collect(receiver, 20, 10)] == part
        assert len(objects(look(), "rx_stream")) == 2
        assert_nothing_odd()


def test_two_sources_on_one_group_are_two_streams(cable: Cable, near: Instance, start: Start) -> None:
    theirs, ours = make(200, seed=13), make(200, seed=14)
    with near.receiver(ENDPOINT, "raw", inject_loss=0.05, **PATIENT) as receiver:
        peer = start(PEER, "send")
        transmitter = near.transmitter(ENDPOINT, "raw")
        for begin in range(0, 200, 20):
            peer.send(theirs[begin : begin + 20])
            transmitter.send_many(ours[begin : begin + 20])
            time.sleep(0.005)
        got = collect(receiver, 400, 30)
        assert [message.data for message in got if message.stream == transmitter.stream] == ours
        assert [message.data for message in got if message.stream != transmitter.stream] == theirs
        assert_nothing_odd()


def test_openpgm_tells_two_streams_of_ours_apart(cable: Cable, near: Instance, start: Start) -> None:
    peer = start(PEER, "recv")
    first, second = make(100, seed=15), make(100, seed=16)
    with cable.enter("near"), Instance(name="other") as other:
        # One stream of a host can listen on the encapsulation port; the other is not asked for anything here.
        streams = [near.transmitter(ENDPOINT, "raw"), other.transmitter(ENDPOINT, "raw", upstream=False)]
        for begin in range(0, 100, 10):
            streams[0].send_many(first[begin : begin + 10])
            streams[1].send_many(second[begin : begin + 10])
            time.sleep(0.005)
        assert len(peer.wait_for(200, 10)) == 200
        by_port = {
            int(stream.stream.rsplit(":", 1)[1]): part for stream, part in zip(streams, (first, second), strict=True)
        }
        for port, part in by_port.items():
            assert [message for tag, message in peer.messages if tag == port] == part


def test_sequence_numbers_wrap_in_openpgm_too(cable: Cable, near: Instance, start: Start) -> None:
    peer = start(PEER, "recv")
    transmitter = near.transmitter(ENDPOINT, "raw", first_sequence=2**32 - 100)
    messages = begin_losing(cable, 0.1, peer, transmitter.send_many) + make(200, seed=17)
    transmit(transmitter, messages[1:])
    assert peer.wait_for(len(messages), 30) == messages
    assert peer.resets == 0
    assert total(objects(look(), "tx_stream"), "naks_answered_repaired") > 0
    assert_nothing_odd()
