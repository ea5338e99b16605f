"""Loss: what can be mended is mended in order, what cannot is told once."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from heliograph.engine import Instance, Loss, Message

from .conftest import collect, until

TOPIC = "PRICES.FX"


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_lost_packets_are_recovered_in_order(mode: str, endpoint: str) -> None:
    with Instance(mode=mode) as instance:  # type: ignore[arg-type]
        receiver = instance.receiver(endpoint, TOPIC, inject_loss=0.05, nak_deadline=10.0)
        transmitter = instance.transmitter(endpoint, TOPIC, linger=0.0)
        messages: list[Message] = []
        for start in range(0, 5000, 50):  # in portions, so that there are many packets
            transmitter.send_many([b"%d" % number + b"." * 500 for number in range(start, start + 50)])
            messages += receiver.receive(timeout=0)
        messages += collect(receiver, 5000 - len(messages), seconds=30.0)
        assert [message.number for message in messages] == list(range(5000))
        assert all(message.data.startswith(b"%d." % message.number) for message in messages)
        assert sum(message.recovered for message in messages) > 0
        assert receiver.losses() == []


def test_the_longest_message_arrives_through_loss(multicast: str) -> None:
    """64 MiB, nearly three times what the source keeps for repair: most of a second at this rate.

    Without one, a receiver that gets no processor for a moment has lost what the source no longer keeps.
    """
    body = b"".join(number.to_bytes(8, "big") for number in range(1 << 23))
    with Instance() as source, Instance() as sink:
        receiver = sink.receiver(multicast, TOPIC, inject_loss=0.02, nak_deadline=60.0)
        transmitter = source.transmitter(multicast, TOPIC, linger=0.0, rate=30_000_000)
        transmitter.send(body)
        (message,) = collect(receiver, 1, seconds=120.0)
        assert message.data == body
        assert receiver.losses() == []


def test_what_is_gone_is_told_once_and_the_books_balance(multicast: str) -> None:
    total = 4000
    with Instance() as source, Instance() as sink:
        receiver = sink.receiver(multicast, TOPIC, inject_loss=0.2, nak_retries=0, nak_deadline=0.02)
        transmitter = source.transmitter(multicast, TOPIC, linger=1.0)
        messages: list[Message] = []
        losses: list[Loss] = []

        def accounted() -> bool:
            messages.extend(receiver.receive(timeout=0.01))
            losses.extend(receiver.losses())
            return len(messages) + sum(loss.count for loss in losses) >= total

        for _ in range(0, total, 20):
            transmitter.send_many([b"." * 600] * 20)
            accounted()
        assert until(accounted, seconds=20.0)
        lost = [number for loss in losses for number in range(loss.first, loss.last + 1)]
        assert losses
        assert lost == sorted(set(lost))
        assert sorted([message.number for message in messages] + lost) == list(range(total))
        assert {loss.stream for loss in losses} == {transmitter.stream}


def test_losses_come_to_the_callback_in_the_order_of_the_stream(multicast: str) -> None:
    total = 3000
    numbers: list[int] = []
    lost: list[Loss] = []

    def on_messages(messages: list[Message]) -> None:
        numbers.extend(message.number for message in messages)

    def on_loss(loss: Loss) -> None:
        lost.append(loss)
        numbers.extend(range(loss.first, loss.last + 1))

    with Instance() as source, Instance() as sink:
        sink.receiver(
            multicast,
            TOPIC,
            on_messages=on_messages,
            on_loss=on_loss,
            inject_loss=0.2,
            nak_retries=0,
            nak_deadline=0.02,
        )
        transmitter = source.transmitter(multicast, TOPIC, linger=1.0)
        for _ in range(0, total, 20):
            transmitter.send_many([b"." * 600] * 20)
            transmitter.flush()
        assert until(lambda: len(numbers) >= total, seconds=20.0)
    assert lost
    assert all(isinstance(loss, Loss) for loss in lost)
    assert numbers == list(range(total))


def test_a_loss_is_a_range() -> None:
    loss = Loss(first=340, count=12, stream="0a1b2c3d4e5f:30001")
    assert loss.last == 351
    with pytest.raises(FrozenInstanceError):
        loss.count = 3  # type: ignore[misc]
