"""The history of a source: what who comes late gets of it, what can be asked for again, and how much there is."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heliograph.engine import ClosedError, Instance, Loss, Message, OptionError, Receiver, Transmitter, UsageError
from heliograph.monitor import Sampler

from .conftest import collect, until

TOPIC = "PRICES.FX"
EARLY = 10_000


def send_numbered(transmitter: Transmitter, first: int, count: int, size: int = 200) -> None:
    """Messages that begin with their number, in many packets."""
    for start in range(first, first + count, 100):
        transmitter.send_many([b"%d." % n + b"." * size for n in range(start, min(start + 100, first + count))])
        transmitter.flush()


def numbers(messages: list[Message]) -> list[int]:
    assert all(message.data.startswith(b"%d." % message.number) for message in messages)
    return [message.number for message in messages]


@pytest.fixture
def pair() -> Iterator[tuple[Instance, Instance]]:
    """A source's instance and a receiver's, each in a thread of its own."""
    with Instance() as source, Instance() as sink:
        yield source, sink


def test_joining_at_message_10000_gets_all_before_and_then_live(endpoint: str, pair: tuple[Instance, Instance]) -> None:
    source, sink = pair
    transmitter = source.transmitter(endpoint, TOPIC, linger=0.0)
    send_numbered(transmitter, 0, EARLY)
    receiver = sink.receiver(endpoint, TOPIC, join="history", inject_loss=0.02, nak_deadline=10.0)
    messages: list[Message] = []
    for start in range(EARLY, EARLY + 2000, 100):
        send_numbered(transmitter, start, 100)
        messages += receiver.receive(timeout=0.0)
    messages += collect(receiver, EARLY + 2000 - len(messages), seconds=30.0)
    assert numbers(messages) == list(range(EARLY + 2000))
    assert receiver.losses() == []


@pytest.mark.parametrize(("join", "late_join"), [("live", True), ("auto", True), ("history", False)])
def test_who_does_not_want_history_or_is_not_offered_it_begins_live(
    join: str, late_join: bool, multicast: str, pair: tuple[Instance, Instance]
) -> None:
    source, sink = pair
    transmitter = source.transmitter(multicast, TOPIC, late_join=late_join, linger=0.0)
    send_numbered(transmitter, 0, 500)
    receiver = sink.receiver(multicast, TOPIC, join=join)
    time.sleep(0.02)  # what was sent before has passed

    for start in itertools.count(500, 20):
        send_numbered(transmitter, start, 20)
        if messages := receiver.receive(timeout=0.02):
            break
        assert start < 2000
    got = numbers(messages)
    assert got[0] >= 500
    assert got == list(range(got[0], got[0] + len(got)))


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_a_replay_brings_exactly_its_range(mode: str, endpoint: str) -> None:
    with Instance(mode=mode) as instance:  # type: ignore[arg-type]
        receiver = instance.receiver(endpoint, TOPIC)
        transmitter = instance.transmitter(endpoint, TOPIC, linger=0.0)
        live: list[Message] = []
        for start in range(0, 4000, 100):
            send_numbered(transmitter, start, 100)
            live += receiver.receive(timeout=0.0)
        replay = receiver.replay(1234, 1300)
        assert numbers(replay.messages) == list(range(1234, 1301))
        assert replay.complete
        assert all(message.recovered for message in replay.messages)
        stream = replay.messages[0].stream
        assert stream == transmitter.stream
        assert numbers(receiver.replay(0, 0, stream=stream).messages) == [0]
        assert numbers(receiver.replay(0, 3999).messages) == list(range(4000))
        send_numbered(transmitter, 4000, 10)
        live += collect(receiver, 4010 - len(live))
        assert numbers(live) == list(range(4010))
        assert receiver.losses() == []


def test_a_replay_works_through_loss_and_beside_other_topics(multicast: str, pair: tuple[Instance, Instance]) -> None:
    source, sink = pair
    receiver = sink.receiver(multicast, TOPIC, inject_loss=0.05, nak_deadline=10.0)
    transmitter = source.transmitter(multicast, TOPIC, linger=0.0)
    other = source.transmitter(multicast, "OTHER", linger=0.0)
    for start in range(0, 3000, 100):
        send_numbered(transmitter, start, 100)
        send_numbered(other, start, 200)
    assert numbers(collect(receiver, 3000)) == list(range(3000))
    replay = receiver.replay(1500, 1999, timeout=20.0)
    assert numbers(replay.messages) == list(range(1500, 2000))


def test_a_replay_tells_what_the_history_does_not_have(multicast: str, pair: tuple[Instance, Instance]) -> None:
    source, sink = pair
    receiver = sink.receiver(multicast, TOPIC)
    transmitter = source.transmitter(multicast, TOPIC, send_window=256, linger=0.0)
    for start in range(0, 20000, 100):
        send_numbered(transmitter, start, 100)
    assert len(collect(receiver, 20000)) == 20000
    gone = receiver.replay(100, 199)
    assert gone.messages == []
    assert gone.losses == [Loss(100, 100, transmitter.stream)]
    assert not gone.complete
    ahead = receiver.replay(19990, 20009)
    assert numbers(ahead.messages) == list(range(19990, 20000))
    assert ahead.losses == [Loss(20000, 10, transmitter.stream)]
    half = receiver.replay(15000, 19999)
    lost = [n for loss in half.losses for n in range(loss.first, loss.last + 1)]
    assert lost
    assert half.messages
    assert lost + numbers(half.messages) == list(range(15000, 20000))


def test_messages_fetched_before_a_replay_are_whole_after_it(polled: Instance, unicast: str) -> None:
    receiver = polled.receiver(unicast, TOPIC)
    transmitter = polled.transmitter(unicast, TOPIC, linger=0.0)
    send_numbered(transmitter, 0, 200)
    first = next(receiver)  # it has fetched more than this one
    assert numbers(receiver.replay(50, 149).messages) == list(range(50, 150))
    send_numbered(transmitter, 200, 200)
    assert numbers([first, *collect(receiver, 399)]) == list(range(400))


def test_what_cannot_be_replayed_is_refused(multicast: str, pair: tuple[Instance, Instance]) -> None:
    _, sink = pair
    receiver = sink.receiver(multicast, TOPIC)
    with pytest.raises(OptionError, match=r"must be at most its last, 3; 5 is more"):
        receiver.replay(5, 3)
    with pytest.raises(UsageError, match="stream 0 is not followed"):
        receiver.replay(0, 3)
    with pytest.raises(UsageError, match="no stream of that name"):
        receiver.replay(0, 3, stream="0a1b2c3d4e5f:30001")
    receiver.close()
    with pytest.raises(ClosedError):
        receiver.replay(0, 3)


def test_a_slow_reader_of_a_replay_stops_nobody(multicast: str, pair: tuple[Instance, Instance]) -> None:
    source, sink = pair
    receiver = sink.receiver(multicast, TOPIC, receive_queue=65536)
    transmitter = source.transmitter(multicast, TOPIC, linger=0.0)
    sent = 0
    got: list[int] = []
    for start in range(0, 3000, 100):
        send_numbered(transmitter, start, 100)
        sent += 100
        got += numbers(collect(receiver, 100))
    replay = super(Receiver, receiver).replay(0, 2999, 0)
    time.sleep(0.05)  # its queue is full meanwhile
    send_numbered(transmitter, 3000, 200)
    got += numbers(collect(receiver, 200))
    assert got == list(range(3200))
    again: list[int] = []
    while len(again) < 3000:
        again += numbers(replay.receive(timeout=5.0))
    with pytest.raises(ClosedError):
        replay.receive(timeout=5.0)
    replay.close()
    assert again == list(range(3000))


# ---- how much there is ----


@pytest.fixture
def figures(segments: Path) -> Iterator[Callable[[Instance, str, str], int]]:
    """A value of the only live object of a scope of an instance, as a monitor sees it."""
    with Sampler(segments) as sampler:

        def figure(instance: Instance, scope: str, cell: str) -> int:
            states = [state for state in sampler.sample().instances if state.name == instance.name]
            (found,) = [item for item in states[0].objects if item.scope == scope and item.live]
            return found.values[cell]

        yield figure


def test_the_history_keeps_to_its_bytes(multicast: str, figures: Callable[[Instance, str, str], int]) -> None:
    with Instance() as source:
        transmitter = source.transmitter(multicast, TOPIC, history_bytes=100_000, mtu=1500, linger=0.0)
        send_numbered(transmitter, 0, 5000)
        assert until(lambda: figures(source, "tx_stream", "history_trimmed_bytes") > 0)
        assert 90_000 < figures(source, "tx_stream", "history_bytes") <= 100_000
        assert figures(source, "tx_stream", "history_limit_bytes") == 100_000
        lead, trail = (figures(source, "tx_stream", f"window_{end}") for end in ("lead", "trail"))
        assert lead - trail + 1 == figures(source, "tx_stream", "history_packets")


def test_the_history_keeps_to_its_time(multicast: str, figures: Callable[[Instance, str, str], int]) -> None:
    with Instance() as source:
        transmitter = source.transmitter(multicast, TOPIC, history_time=0.2, linger=0.0)
        send_numbered(transmitter, 0, 5000)
        most = figures(source, "tx_stream", "window_lead") - figures(source, "tx_stream", "window_trail")
        assert most > 100
        assert until(lambda: figures(source, "tx_stream", "history_packets") < 10)


def test_a_dynamic_history_grows_when_somebody_asks_for_its_end(
    multicast: str, figures: Callable[[Instance, str, str], int]
) -> None:
    with Instance() as source, Instance() as sink:
        transmitter = source.transmitter(multicast, TOPIC, history="dynamic", send_window=1024, linger=0.0)
        send_numbered(transmitter, 0, 2000)
        assert figures(source, "tx_stream", "history_limit_packets") == 64
        # A receiver that requests at once never comes near the end of the history.
        receiver = sink.receiver(multicast, TOPIC, join="history", inject_loss=0.1, nak_deadline=10.0, nak_backoff=0.1)

        sent = 2000

        def grown() -> bool:
            nonlocal sent
            send_numbered(transmitter, sent, 100)
            sent += 100
            receiver.receive(timeout=0.001)
            return figures(source, "tx_stream", "history_limit_packets") >= 256

        assert until(grown, seconds=30.0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"history": "growing"}, 'history is one of static,dynamic, not "growing"'),
        ({"history_bytes": 1000}, "option history_bytes is 0 or at least 16 times mtu, here 24000; 1000 is too small"),
        ({"history_bytes": -1}, "history_bytes.*-1"),
        ({"history_time": -1.0}, "history_time.*-1"),
    ],
)
def test_histories_that_cannot_be_are_refused(options: dict[str, object], sentence: str, multicast: str) -> None:
    with Instance() as instance, pytest.raises(OptionError, match=sentence):
        instance.transmitter(multicast, TOPIC, **options)  # type: ignore[arg-type]


def test_a_receive_window_that_cannot_be_is_refused(multicast: str, threaded: Instance) -> None:
    with pytest.raises(OptionError, match="option receive_bytes is 0 or at least 16 times mtu, here 24000; 20000 is"):
        threaded.receiver(multicast, TOPIC, receive_bytes=20000)
    with pytest.raises(OptionError, match=r"join.*yesterday"):
        threaded.receiver(multicast, TOPIC, join="yesterday")
    threaded.receiver(multicast, TOPIC, receive_bytes=24000)


def test_all_histories_of_an_instance_keep_to_a_limit(multicast: str, unicast: str) -> None:
    with Instance(history_limit_bytes=200_000) as instance:
        kept = instance.transmitter(multicast, TOPIC, history_bytes=150_000, linger=0.0)
        with pytest.raises(OptionError, match=r"option history_limit_bytes allows 200000 bytes.* 150000 are in use"):
            instance.transmitter(unicast, TOPIC, history_bytes=100_000, linger=0.0)
        assert not kept.closed
        instance.transmitter(unicast, TOPIC, history_bytes=100_000, history="dynamic", linger=0.0)


def test_repairs_go_on_while_the_publishing_thread_sleeps(multicast: str, pair: tuple[Instance, Instance]) -> None:
    source, sink = pair
    receiver = sink.receiver(multicast, TOPIC, inject_loss=0.3, nak_deadline=10.0)
    transmitter = source.transmitter(multicast, TOPIC, linger=0.0)
    send_numbered(transmitter, 0, 3000)
    # Nothing is called on the source from here on.
    assert numbers(collect(receiver, 3000)) == list(range(3000))


def test_the_books_of_a_late_joiner_balance(
    multicast: str, pair: tuple[Instance, Instance], figures: Callable[[Instance, str, str], int]
) -> None:
    source, sink = pair
    transmitter = source.transmitter(multicast, TOPIC, send_window=256, linger=0.0)
    for start in range(0, 5000, 100):
        send_numbered(transmitter, start, 100)
    receiver = sink.receiver(multicast, TOPIC, join="history")
    (first,) = collect(receiver, 1)
    rest = collect(receiver, 4999 - first.number)
    assert numbers([first, *rest]) == list(range(first.number, 5000))
    before, delivered, lost = (
        figures(sink, "receiver", f"messages_{what}") for what in ("before_join", "delivered", "lost")
    )
    assert (before, delivered, lost) == (first.number, 5000 - first.number, 0)
    assert figures(sink, "receiver", "next_message") == 5000
