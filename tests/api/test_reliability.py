"""Receivers that choose their own reliability and order, and one stream to several hosts."""

from __future__ import annotations

from heliograph.engine import Instance, Loss, Message
from tests.ports import free_port
from tests.segment.decoder import decode_live

from .conftest import collect, until

TOPIC = "PRICES.FX"


def records(instance: Instance, scope: str) -> list[dict[str, int]]:
    """The statistics of the live objects of a scope."""
    return [dict(found.values) for found in decode_live(instance.segment).of(scope) if found.state == "live"]


def test_a_receiver_that_does_not_ask_is_told_its_losses_and_the_sender_hears_nothing(multicast: str) -> None:
    total = 2000
    messages: list[Message] = []
    losses: list[Loss] = []
    with Instance() as source, Instance() as sink:
        receiver = sink.receiver(multicast, TOPIC, inject_loss=0.05, nak="off")
        transmitter = source.transmitter(multicast, TOPIC, linger=1.0)

        def accounted() -> bool:
            messages.extend(receiver.receive(timeout=0.01))
            losses.extend(receiver.losses())
            return len(messages) + sum(loss.count for loss in losses) >= total

        for _ in range(0, total, 5):
            transmitter.send_many([b"." * 600] * 5)
            transmitter.flush()
        assert until(accounted, seconds=20.0)
        counts = records(source, "instance")[0]
        assert counts["nak_packets_received"] == 0
        streams = records(sink, "rx_stream")[0]
        assert streams["packets_lost_not_requested"] > 0
        assert streams["nak_packets_sent"] == 0
    lost = [number for loss in losses for number in range(loss.first, loss.last + 1)]
    assert sorted([message.number for message in messages] + lost) == list(range(total))
    assert 0 < len(lost) < total // 4


def test_in_arrival_order_every_message_comes_once(endpoint: str) -> None:
    total = 3000
    with Instance() as instance:
        receiver = instance.receiver(endpoint, TOPIC, inject_loss=0.05, nak_deadline=10.0, order="arrival")
        transmitter = instance.transmitter(endpoint, TOPIC, linger=0.0)
        messages: list[Message] = []
        for start in range(0, total, 5):
            transmitter.send_many([b"%d" % number + b"." * 500 for number in range(start, start + 5)])
            transmitter.flush()
            messages += receiver.receive(timeout=0)
        messages += collect(receiver, total - len(messages), seconds=30.0)
        assert sorted(message.number for message in messages) == list(range(total))
        assert all(message.data.startswith(b"%d." % message.number) for message in messages)
        assert receiver.losses() == []
        assert until(lambda: records(instance, "receiver")[0]["messages_ahead"] == 0, instance)


def test_one_send_reaches_several_hosts_and_each_is_repaired_on_its_own() -> None:
    total = 2000
    ports = [free_port() for _ in range(3)]
    everyone = "rmm+unicast://" + ",".join(f"127.0.0.1:{port}" for port in ports)
    with Instance() as source, Instance() as sink:
        receivers = [
            sink.receiver(f"rmm+unicast://127.0.0.1:{port}", TOPIC, inject_loss=loss, nak_deadline=10.0)
            for port, loss in zip(ports, (0.0, 0.05, 0.05), strict=True)
        ]
        transmitter = source.transmitter(everyone, TOPIC, linger=0.5)
        for _ in range(0, total, 20):
            transmitter.send_many([b"." * 600] * 20)
            transmitter.flush()
        for receiver in receivers:
            got = collect(receiver, total, seconds=30.0)
            assert [message.number for message in got] == list(range(total))
        stream = records(source, "tx_stream")[0]
        assert stream["destinations"] == 3
        asked = [record["naks_received"] for record in records(source, "tx_receiver")]
        assert len([naks for naks in asked if naks > 0]) == 2  # who lost nothing asked for nothing
        confirmed = sorted(record["nak_confirmations_received"] for record in records(sink, "rx_stream"))
        assert confirmed[0] == 0  # and heard nothing of it
        assert confirmed[1] > 0


def test_an_aborted_stream_is_over_at_once(unicast: str) -> None:
    with Instance() as sink:
        receiver = sink.receiver(unicast, TOPIC, stream_expiry=600.0)
        with Instance() as source:
            source.transmitter(unicast, TOPIC, linger=0.0).send(b"last")
        assert collect(receiver, 1, seconds=10.0)[0].data == b"last"
        assert until(lambda: not records(sink, "rx_stream"), seconds=10.0)
