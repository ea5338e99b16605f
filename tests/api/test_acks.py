"""Feedback modes: NAK, ACK, App-ACK, Wait-ACK and Wait-N-ACK, mixed per receiver on one topic.

Each says who sends what, when the history may let packets go, and when `send` may block.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from heliograph.engine import (
    Ack,
    AckersError,
    Instance,
    Message,
    MessageSizeError,
    TimeoutExpired,
    UsageError,
    WouldBlock,
)
from heliograph.monitor.segment import Segment
from tests.ports import free_port

from .conftest import collect, until

TOPIC = "ORDERS"
SMALL = {"send_window": 32, "linger": 0.05}
"""A history that a few messages of a packet each fill."""
FULL = b"." * 1300
"""Of which only one goes into a packet."""


def cell(instance: Instance, scope: str, name: str) -> int:
    """A statistic of the instance, added up over the objects of a scope."""
    assert isinstance(instance.segment, Path)
    with Segment(instance.segment) as segment:
        return sum(int(o.values.get(name, 0)) for o in segment.objects(histograms=False) if o.scope == scope)


# ---- NAK mode -------------------------------------------------------------------------------------


def test_nak_mode_discards_the_oldest_and_counts_and_never_blocks(multicast: str) -> None:
    with Instance() as source, Instance() as sink:
        receiver = sink.receiver(multicast, TOPIC, inject_loss=0.3, nak_deadline=0.05)
        transmitter = source.transmitter(multicast, TOPIC, **SMALL)
        for _ in range(50):
            transmitter.send_many([FULL] * 40)
        transmitter.flush()
        received = lost = 0

        def accounted() -> bool:
            nonlocal received, lost
            received += len(receiver.receive(timeout=0.01))
            lost += sum(loss.count for loss in receiver.losses())
            return received + lost >= 2000

        assert until(accounted)
        assert not receiver.receive(timeout=0.2)
        assert received + lost == 2000
        assert cell(source, "tx_stream", "history_trimmed_packets") > 1000
        assert cell(source, "tx_stream", "ack_blocks") == 0
        assert cell(source, "tx_stream", "receivers_acknowledging") == 0
        assert transmitter.acks() == []


# ---- ACK ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_ack_mode_tells_the_transmitter_who_has_what(mode: str, endpoint: str) -> None:
    with Instance(name="sink", mode="thread") as sink, Instance(mode=mode) as source:  # type: ignore[arg-type]
        receiver = sink.receiver(endpoint, TOPIC, ack="auto")
        transmitter = source.transmitter(endpoint, TOPIC, linger=0.0)
        for _ in range(20):
            transmitter.send(b"x")
        assert len(collect(receiver, 20)) == 20
        acks: list[Ack] = []

        def all_told() -> bool:
            acks.extend(transmitter.acks())
            return bool(acks) and acks[-1].number == 19

        assert until(all_told, source)
        assert {(ack.name, ack.kind) for ack in acks} == {("sink", "transport")}
        assert len(acks[-1].receiver) == 16
        assert acks[-1].address.startswith("127.0.0.1:") or ":" in acks[-1].address
        numbers = [ack.number for ack in acks]
        assert numbers == sorted(set(numbers))
        assert transmitter.acks() == []


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_a_callback_is_told_who_has_acknowledged_what(mode: str, endpoint: str) -> None:
    acks: list[Ack] = []
    with Instance(name="sink", mode="thread") as sink, Instance(mode=mode) as source:  # type: ignore[arg-type]
        receiver = sink.receiver(endpoint, TOPIC, ack="auto")
        transmitter = source.transmitter(endpoint, TOPIC, on_ack=acks.append, linger=0.0)
        for _ in range(20):
            transmitter.send(b"x")
        assert until(lambda: acks and acks[-1].number == 19, source)
        assert len(collect(receiver, 20)) == 20
        assert {ack.name for ack in acks} == {"sink"}
        numbers = [ack.number for ack in acks]
        assert numbers == sorted(set(numbers))
        assert transmitter.acks() == []
        assert transmitter.callback_errors == 0


def test_what_a_callback_raises_is_counted(multicast: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def on_ack(ack: Ack) -> None:
        raise ValueError(ack.number)

    monkeypatch.setattr("sys.unraisablehook", lambda _: None)
    with Instance() as source, Instance() as sink:
        receiver = sink.receiver(multicast, TOPIC, ack="auto")
        transmitter = source.transmitter(multicast, TOPIC, on_ack=on_ack, linger=0.0)
        transmitter.send(b"x")
        assert until(lambda: transmitter.callback_errors > 0)
        assert len(collect(receiver, 1)) == 1
        with pytest.raises(TypeError, match="on_ack"):
            source.transmitter(multicast, TOPIC, on_ack=7)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_wait_acked_blocks_until_the_receiver_has_it(mode: str, endpoint: str) -> None:
    with Instance() as sink, Instance(mode=mode) as source:  # type: ignore[arg-type]
        transmitter = source.transmitter(endpoint, TOPIC, linger=0.0)
        transmitter.send(b"to nobody")
        with pytest.raises(TimeoutExpired):
            transmitter.wait_acked(timeout=0.05)
        receiver = sink.receiver(endpoint, TOPIC, ack="auto")
        assert until(lambda: cell(sink, "rx_stream", "acks_sent") > 0, source)
        for number in range(100):
            transmitter.send(b"%d" % number)
            transmitter.wait_acked(timeout=10.0)
            assert [message.data for message in receiver.receive(timeout=0)] == [b"%d" % number]
        with pytest.raises(TimeoutExpired):
            transmitter.wait_acked(2, timeout=0.05)
        transmitter.wait_acked(0, timeout=10.0)


def test_a_thread_that_waits_for_acknowledgements_lets_others_run(multicast: str) -> None:
    with Instance() as source, Instance() as sink:
        receiver = sink.receiver(multicast, TOPIC, ack="app")
        transmitter = source.transmitter(multicast, TOPIC, linger=0.0)
        transmitter.send(b"x")
        outcome: list[str] = []

        def wait() -> None:
            transmitter.wait_acked(timeout=30.0)
            outcome.append("acknowledged")

        waiter = threading.Thread(target=wait)
        waiter.start()
        message = next(receiver)
        assert outcome == []
        receiver.acknowledge(message)
        waiter.join(30.0)
        assert outcome == ["acknowledged"]


# ---- App-ACK --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_app_ack_is_what_the_application_says(mode: str, endpoint: str) -> None:
    with Instance() as source, Instance(mode=mode) as sink:  # type: ignore[arg-type]
        receiver = sink.receiver(endpoint, TOPIC, ack="app")
        transmitter = source.transmitter(endpoint, TOPIC, linger=0.0)
        transmitter.acks()
        for _ in range(10):
            transmitter.send(b"x")
            transmitter.flush()
        messages = collect(receiver, 10)
        assert len(messages) == 10
        until(lambda: False, sink, seconds=0.05)  # time enough to acknowledge, if it did by itself
        assert transmitter.acks() == []
        receiver.acknowledge(messages[3])
        acks: list[Ack] = []
        assert until(lambda: acks.extend(transmitter.acks()) or acks, sink)
        assert (acks[-1].number, acks[-1].kind) == (3, "application")
        receiver.acknowledge(9, messages[0].stream)
        assert until(lambda: acks.extend(transmitter.acks()) or acks[-1].number == 9, sink)


def test_a_callback_acknowledges(multicast: str) -> None:
    with Instance() as source, Instance() as sink:

        def on_messages(messages: list[Message]) -> None:
            receiver.acknowledge(messages[-1])

        receiver = sink.receiver(multicast, TOPIC, on_messages=on_messages, ack="app")
        transmitter = source.transmitter(multicast, TOPIC, linger=0.0)
        for _ in range(20):
            transmitter.send(b"x")
        transmitter.wait_acked(timeout=10.0)
        assert receiver.callback_errors == 0


def test_only_what_can_be_acknowledged_is(multicast: str) -> None:
    with Instance() as instance:
        plain = instance.receiver(multicast, TOPIC)
        with pytest.raises(UsageError, match="ack=app"):
            plain.acknowledge(0)
        receiver = instance.receiver(multicast, TOPIC, ack="app")
        with pytest.raises(UsageError, match="no stream"):
            receiver.acknowledge(0)
        with pytest.raises(ValueError, match="no stream"):
            receiver.acknowledge(0, "0a1b2c3d4e5f:30001")
        with pytest.raises(OverflowError):
            receiver.acknowledge(-1)


# ---- Wait-ACK -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_wait_ack_loses_nothing_through_a_small_history(mode: str, endpoint: str) -> None:
    total = 3000
    with Instance() as sink, Instance(mode=mode) as source:  # type: ignore[arg-type]
        receiver = sink.receiver(endpoint, TOPIC, ack="auto", inject_loss=0.05)
        transmitter = source.transmitter(endpoint, TOPIC, acks=1, **SMALL)
        numbers: list[int] = []

        def take() -> None:
            while len(numbers) < total:
                messages = receiver.receive(timeout=20.0)
                if not messages:
                    return
                numbers.extend(message.number for message in messages)

        taker = threading.Thread(target=take)
        taker.start()
        for _ in range(0, total, 50):
            transmitter.send_many([FULL] * 50, timeout=60.0)
        transmitter.wait_acked(timeout=60.0)
        assert cell(source, "tx_stream", "history_unacked") == 0
        taker.join(60.0)
        assert numbers == list(range(total))
        assert receiver.losses() == []
        assert cell(source, "tx_stream", "ack_blocks") > 0
        assert cell(source, "tx_stream", "history_unacked_dropped") == 0


@pytest.mark.parametrize("scheme", ["rum://127.0.0.1:{port}", "shm://acks-{port}", "inproc://acks-{port}"])
def test_wait_ack_holds_on_other_ways_than_udp(scheme: str) -> None:
    total = 1000
    endpoint = scheme.format(port=free_port())
    with Instance() as sink, Instance() as source:
        receiver = sink.receiver(endpoint, TOPIC, ack="app")
        transmitter = source.transmitter(endpoint, TOPIC, acks=1, **SMALL)
        numbers: list[int] = []

        def take() -> None:
            while len(numbers) < total and (messages := receiver.receive(timeout=20.0)):
                numbers.extend(message.number for message in messages)
                receiver.acknowledge(messages[-1])

        taker = threading.Thread(target=take)
        taker.start()
        transmitter.send_many([FULL] * total, timeout=60.0)
        transmitter.wait_acked(timeout=60.0)
        taker.join(60.0)
        assert numbers == list(range(total))
        assert cell(source, "tx_stream", "history_unacked_dropped") == 0


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_wait_ack_blocks_the_sender_while_nobody_acknowledges(mode: str, multicast: str) -> None:
    with Instance() as sink, Instance(mode=mode) as source:  # type: ignore[arg-type]
        transmitter = source.transmitter(multicast, TOPIC, acks=1, submit_queue=65536, **SMALL)
        sent = 0
        with pytest.raises(TimeoutExpired):  # noqa: PT012  # which one it will be is not known
            while sent < 1000:
                transmitter.send(FULL, timeout=0.2)
                sent += 1
        with pytest.raises(WouldBlock):
            transmitter.send(FULL, timeout=0)
        receiver = sink.receiver(multicast, TOPIC, ack="auto")  # it gets all that waits
        transmitter.send(FULL, timeout=10.0)
        until(lambda: False, source, seconds=0.01)
        messages: list[Message] = []
        assert until(lambda: messages.extend(receiver.receive(timeout=0)) or len(messages) > sent, source)
        assert [message.number for message in messages] == list(range(sent + 1))


def test_history_follows_the_application_that_acknowledges_not_the_receiver_beside_it(multicast: str) -> None:
    with Instance() as source, Instance(name="auto") as first, Instance(name="app") as second:
        auto = first.receiver(multicast, TOPIC, ack="auto")
        app = second.receiver(multicast, TOPIC, ack="app")
        transmitter = source.transmitter(multicast, TOPIC, acks=2, linger=0.05)
        for _ in range(10):
            transmitter.send(b"x")
            transmitter.flush()
        messages = collect(app, 10)
        assert len(collect(auto, 10)) == len(messages) == 10
        transmitter.wait_acked(1, timeout=10.0)
        with pytest.raises(TimeoutExpired):
            transmitter.wait_acked(2, timeout=0.05)
        assert cell(source, "tx_stream", "history_unacked") == 10
        app.acknowledge(messages[-1])
        transmitter.wait_acked(2, timeout=10.0)
        assert cell(source, "tx_stream", "history_unacked") == 0
        assert {(ack.name, ack.kind, ack.number) for ack in transmitter.acks()} == {
            ("auto", "transport", 9),
            ("app", "application", 9),
        }


def test_receivers_of_one_instance_mix_modes_on_one_topic(unicast: str) -> None:
    with Instance() as source, Instance() as sink:
        none, auto, app = (sink.receiver(unicast, TOPIC, ack=ack) for ack in ("none", "auto", "app"))
        transmitter = source.transmitter(unicast, TOPIC, acks=1, linger=0.05)
        transmitter.send(b"x")
        assert [len(collect(receiver, 1)) for receiver in (none, auto)] == [1, 1]
        message = next(app)
        with pytest.raises(TimeoutExpired):
            transmitter.wait_acked(timeout=0.05)
        app.acknowledge(message)
        transmitter.wait_acked(timeout=10.0)
        app.close()
        transmitter.send(b"y")
        transmitter.wait_acked(timeout=10.0)


# ---- Wait-N-ACK -----------------------------------------------------------------------------------


def test_wait_2_ack_of_3_holds_for_the_second_and_not_for_the_third(multicast: str) -> None:
    with Instance() as source, Instance() as a, Instance() as b, Instance() as c:
        receivers = [instance.receiver(multicast, TOPIC, ack="app") for instance in (a, b, c)]
        transmitter = source.transmitter(multicast, TOPIC, acks=2, linger=0.05)
        transmitter.send(b"x")
        messages = [next(receiver) for receiver in receivers]
        receivers[0].acknowledge(messages[0])
        transmitter.wait_acked(1, timeout=10.0)
        assert cell(source, "tx_stream", "history_unacked") == 1
        receivers[1].acknowledge(messages[1])
        transmitter.wait_acked(2, timeout=10.0)
        assert cell(source, "tx_stream", "history_unacked") == 0
        assert cell(source, "tx_stream", "receivers_acknowledging") == 3
        with pytest.raises(TimeoutExpired):
            transmitter.wait_acked(3, timeout=0.05)
        newest = cell(source, "tx_stream", "window_lead")
        assert (cell(a, "rx_stream", "acked_position") - newest) % (1 << 32) == 0
        assert (cell(c, "rx_stream", "acked_position") - newest + 1) % (1 << 32) == 0
        assert until(lambda: cell(source, "tx_stream", "receivers_reporting") == 3)
        receivers[2].acknowledge(messages[2])
        transmitter.wait_acked(3, timeout=10.0)
        assert cell(source, "tx_receiver", "acked_position") == 3 * newest
        assert cell(source, "tx_receiver", "ack_lag") == 0


def test_fail_refuses_to_send_while_too_few_acknowledge(multicast: str) -> None:
    with Instance() as source, Instance() as sink:
        transmitter = source.transmitter(multicast, TOPIC, acks=1, acks_missing="fail", linger=0.05)
        with pytest.raises(AckersError) as refused:
            transmitter.send(b"x")
        assert refused.value.code == "ACKERS"
        with pytest.raises(AckersError):
            transmitter.send_many([b"x", b"y"])
        receiver = sink.receiver(multicast, TOPIC, ack="auto")
        assert until(lambda: cell(source, "tx_stream", "receivers_acknowledging") == 1)

        def send() -> bool:
            try:
                transmitter.send(b"x")
            except AckersError:
                return False
            return True

        assert until(send)
        transmitter.wait_acked(timeout=10.0)
        receiver.close()
        assert until(lambda: not send())
        with pytest.raises(AckersError):
            transmitter.wait_acked(timeout=10.0)


def test_degrade_goes_on_with_those_there_are(multicast: str) -> None:
    with Instance() as source, Instance() as sink:
        receiver = sink.receiver(multicast, TOPIC, ack="auto")
        transmitter = source.transmitter(multicast, TOPIC, acks=2, acks_missing="degrade", **SMALL)
        transmitter.send_many([FULL] * 200, timeout=20.0)
        transmitter.wait_acked(1, timeout=20.0)
        assert len(collect(receiver, 200)) == 200
        receiver.close()
        transmitter.send_many([FULL] * 200, timeout=20.0)  # to nobody
        transmitter.flush(20.0)
        sent = cell(source, "tx_stream", "packets_sent")
        assert sent >= 400

        def none_is_unaccounted() -> bool:  # nobody acknowledged a packet for the second time
            dropped = cell(source, "tx_stream", "history_unacked_dropped")
            return dropped >= sent - 32 and dropped + cell(source, "tx_stream", "history_unacked") == sent

        assert until(none_is_unaccounted)


def test_close_does_not_wait_for_ever_and_counts_what_it_lets_go(multicast: str) -> None:
    with Instance() as source:
        transmitter = source.transmitter(multicast, TOPIC, acks=1, **SMALL)
        transmitter.send_many([FULL] * 100)
        other = source.transmitter(multicast, "STAYS", acks=1, **SMALL)
        transmitter.close()
        assert cell(source, "tx_stream", "history_unacked_dropped") > 0
        other.close()


def test_a_message_the_history_could_never_hold_is_refused(multicast: str) -> None:
    with Instance() as instance:
        transmitter = instance.transmitter(multicast, TOPIC, acks=1, **SMALL)
        with pytest.raises(MessageSizeError):
            transmitter.send(b"x" * 32 * 1448)
        transmitter.send(b"x" * 20 * 1448)
