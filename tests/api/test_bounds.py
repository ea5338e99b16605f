"""Queues with bounds: who stays when there is no room, at both ends, who waits for how long, and what is told of it.

A transmitter is held by acknowledgements nobody gives: another one of its stream fills the history first, so that what
is sent afterwards stays in the queue until a receiver comes that acknowledges.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from heliograph.engine import Instance, Message, MessageSizeError, Receiver, Transmitter
from heliograph.engine.errors import OptionError, ResourceError, TimeoutExpired, WouldBlock
from heliograph.monitor import Sampler, Segment, fleet

from .conftest import Script, collect, until

TOPIC = "PRICES.FX"
HELD: dict[str, Any] = {"acks": 1, "send_window": 16, "linger": 0.05}


def total(instance: Instance, scope: str, name: str) -> int:
    """Sum of a statistic over the objects of a scope."""
    assert instance.segment is not None
    with Segment(instance.segment) as segment:
        return sum(o.values.get(name, 0) for o in segment.objects(histograms=False) if o.scope == scope)


def split(instance: Instance, scope: str, name: str) -> dict[str, int]:
    """The values of a split statistic that are not 0, over the objects of a scope."""
    assert instance.segment is not None
    sums: Counter[str] = Counter()
    with Segment(instance.segment) as segment:
        for item in segment.objects(histograms=False):
            if item.scope == scope:
                sums.update({key.removeprefix(name + "_"): n for key, n in item.values.items() if name in key})
    return {key: value for key, value in sums.items() if value}


def events(instance: Instance, name: str) -> list[tuple[int, ...]]:
    """Arguments of the events of a name."""
    assert instance.segment is not None
    with Segment(instance.segment) as segment:
        return [tuple(event.arguments.values()) for event in segment.events().events if event.name == name]


def data(messages: list[Message]) -> str:
    return " ".join(message.data.decode() for message in messages)


_fillers: list[Transmitter] = []  # kept: one that nobody keeps is closed, and its end lets the history go


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    _fillers.clear()


def fill(transmitter: Transmitter, timeout: float | None) -> None:
    """Sends until there is no room."""
    for _ in range(1000):
        try:
            transmitter.send(b"x" * 1000, timeout=timeout)
        except (TimeoutExpired, WouldBlock):
            return
    pytest.fail("it is never full")


def held(instance: Instance, endpoint: str, **options: Any) -> Transmitter:
    """A transmitter nothing of whose messages leaves its queue until somebody acknowledges."""
    filler = instance.transmitter(endpoint, "FILLER", submit_queue=65536, **HELD)
    _fillers.append(filler)
    transmitter = instance.transmitter(endpoint, TOPIC, **HELD, **options)
    fill(filler, 0.15)
    instance.receiver(endpoint, "WAKE").close()  # the engine looks once more, and takes what the last packet holds
    return transmitter


def release(instance: Instance, endpoint: str, count: int) -> list[Message]:
    """Acknowledges, and takes the messages that come."""
    receiver = instance.receiver(endpoint, TOPIC, ack="auto")
    messages = collect(receiver, count)
    more = receiver.receive(timeout=0.05)
    return messages + more


SENT = "a1 b5 a3 c0 b2 d4"
SURVIVORS = {
    "drop_newest": ("a1 b5 a3", {"newest": 3}),
    "drop_oldest": ("c0 b2 d4", {"oldest": 3}),
    "conflate": ("b2 c0 d4", {"conflated": 2, "oldest": 1}),
    "priority": ("b5 a3 d4", {"priority": 3}),
}


@pytest.mark.parametrize("overflow", SURVIVORS)
def test_exactly_these_survive_at_the_transmitter(instance: Instance, multicast: str, overflow: str) -> None:
    survivors, dropped = SURVIVORS[overflow]
    transmitter = held(
        instance,
        multicast,
        overflow=overflow,
        queue_messages=3,
        low_water=0.5,  # of no consequence where all is taken
        key_offset=0,
        key_bytes=1,
        priority_offset=1,
    )
    for word in SENT.split():
        transmitter.send(word.encode(), timeout=0)
    messages = release(instance, multicast, 3)
    assert data(messages) == survivors
    assert [message.number for message in messages] == [0, 1, 2]  # what was dropped was never numbered
    assert until(lambda: split(instance, "transmitter", "messages_dropped") == dropped, instance)
    assert until(lambda: [args[:2] for args in events(instance, "messages_dropped")], instance)
    assert sum(args[0] for args in events(instance, "messages_dropped")) <= sum(dropped.values())


@pytest.mark.parametrize("overflow", SURVIVORS)
def test_exactly_these_survive_at_the_receiver(instance: Instance, multicast: str, overflow: str) -> None:
    survivors, dropped = SURVIVORS[overflow]
    trimmed = {{"newest": "count", "oldest": "count"}.get(cause, cause): n for cause, n in dropped.items()}
    receiver = instance.receiver(multicast, TOPIC, overflow=overflow, queue_messages=3, key_bytes=1, priority_offset=1)
    other = instance.receiver(multicast, TOPIC)
    transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
    transmitter.send_many([word.encode() for word in SENT.split()])
    assert until(lambda: total(instance, "receiver", "messages_delivered") == 12, instance)
    assert data(collect(receiver, 3)) == survivors
    assert receiver.receive(timeout=0) == []
    assert until(lambda: split(instance, "receiver", "messages_trimmed") == trimmed, instance)
    assert data(collect(other, 6)) == SENT  # another receiver's queue is its own
    assert until(lambda: total(instance, "receiver", "queue_messages") == 0, instance)


def test_the_books_balance_with_what_was_trimmed(threaded: Instance, multicast: str, segments: Path) -> None:
    receiver = threaded.receiver(multicast, TOPIC, overflow="drop_oldest", queue_messages=10)
    transmitter = threaded.transmitter(multicast, TOPIC, linger=0.0)
    transmitter.send_many([b"%d" % n for n in range(1000)])
    assert until(lambda: total(threaded, "receiver", "messages_trimmed_count") == 990)
    assert [message.number for message in collect(receiver, 10)] == list(range(990, 1000))
    with Sampler(segments) as sampler:
        (book,) = [book for book in fleet.balance(sampler.sample()) if book.instance == threaded.name]
    assert (book.sent, book.delivered, book.trimmed, book.lost, book.residual) == (1000, 10, 990, 0, 0)
    (first, *rest) = events(threaded, "messages_trimmed")
    receiver.close()
    told = events(threaded, "messages_trimmed")
    assert len(rest) <= 1  # at most one a second
    assert sum(args[0] for args in told) == 990
    assert told[0] == first


def test_old_messages_are_trimmed(instance: Instance, multicast: str) -> None:
    receiver = instance.receiver(multicast, TOPIC, queue_age=0.5)
    transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
    transmitter.send_many([b"old"] * 5)
    assert until(lambda: total(instance, "receiver", "messages_delivered") == 5, instance)
    assert until(lambda: total(instance, "receiver", "queue_age") > 0, instance)
    time.sleep(0.51)
    assert receiver.receive(timeout=0) == []  # also when nothing has come since
    transmitter.send(b"new")
    assert data(collect(receiver, 1)) == "new"
    assert until(lambda: split(instance, "receiver", "messages_trimmed") == {"age": 5}, instance)


def test_messages_too_old_to_be_sent_are_dropped(instance: Instance, multicast: str) -> None:
    transmitter = held(instance, multicast, overflow="drop_oldest", queue_age=0.6)
    for _ in range(4):
        transmitter.send(b"old")
    time.sleep(0.65)
    transmitter.send(b"new")
    assert data(release(instance, multicast, 1)) == "new"
    assert until(lambda: split(instance, "transmitter", "messages_dropped") == {"age": 4}, instance)


def test_a_receive_queue_counted_in_messages_makes_delivery_wait(instance: Instance, multicast: str) -> None:
    receiver = instance.receiver(multicast, TOPIC, queue_messages=8, low_water=0.25)
    transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
    transmitter.send_many([b"%d" % n for n in range(20)])
    assert until(lambda: total(instance, "receiver", "queue_full") == 1, instance)
    assert until(lambda: total(instance, "receiver", "queue_messages") == 8, instance)
    assert [message.number for message in collect(receiver, 20)] == list(range(20))
    assert split(instance, "receiver", "messages_trimmed") == {}


# ---- refusing and waiting ----


@pytest.mark.parametrize("overflow", ["block", "refuse"])
def test_the_bound_in_messages_is_hit_exactly(threaded: Instance, multicast: str, overflow: str) -> None:
    transmitter = held(threaded, multicast, overflow=overflow, queue_messages=5)
    for _ in range(5):
        transmitter.send(b"x", timeout=0)
    with pytest.raises(WouldBlock):
        transmitter.send(b"x", timeout=0)
    assert until(lambda: total(threaded, "transmitter", "queue_messages") == 5)
    assert len(release(threaded, multicast, 5)) == 5


def test_block_waits_until_its_deadline(threaded: Instance, multicast: str) -> None:
    transmitter = held(threaded, multicast, overflow="block", queue_messages=1)
    transmitter.send(b"x")
    started = time.monotonic()
    with pytest.raises(TimeoutExpired):
        transmitter.send(b"x", timeout=0.1)
    assert time.monotonic() - started >= 0.1


def test_refuse_never_waits(instance: Instance, multicast: str) -> None:
    transmitter = held(instance, multicast, overflow="refuse", submit_queue=65536)
    fill(transmitter, None)  # waits as long as it takes, if it waits
    with pytest.raises(WouldBlock, match="overflow=refuse"):
        transmitter.send(b"x" * 1000)


def test_a_message_too_large_is_refused_by_all(instance: Instance, multicast: str) -> None:
    transmitter = instance.transmitter(
        multicast, TOPIC, overflow="drop_oldest", max_message_bytes=10, linger=0.0, low_water=0.3
    )
    with pytest.raises(MessageSizeError):
        transmitter.send(b"x" * 11)


def admitted_at_once(transmitter: Transmitter, body: bytes) -> int:
    """Messages that are taken, one after the other, until one is not."""
    count = 0
    while True:
        try:
            transmitter.send(body, timeout=0)
        except WouldBlock:
            return count
        count += 1
        assert count < 10_000


@pytest.mark.parametrize(
    ("options", "room"),
    [({"queue_messages": 8}, 8), ({"submit_queue": 65536}, 65536 // 1100)],
    ids=["messages", "bytes"],
)
def test_after_it_was_full_nothing_is_admitted_above_low_water(
    threaded: Instance, multicast: str, options: dict[str, Any], room: int
) -> None:
    """A full queue that drains slowly: where a quarter may be left, three quarters are then admitted at once."""
    receiver = threaded.receiver(multicast, TOPIC)
    transmitter = threaded.transmitter(multicast, TOPIC, rate=250_000, low_water=0.25, linger=0.0, **options)
    sent = admitted_at_once(transmitter, b"x" * 1000)
    assert sent >= room
    bursts: list[int] = []
    end = time.monotonic() + 30
    while len(bursts) < 3 and time.monotonic() < end:
        if burst := admitted_at_once(transmitter, b"x" * 1000):
            bursts.append(burst)
        time.sleep(0.001)
    assert len(bursts) == 3
    assert min(bursts) >= room * 3 // 4, bursts
    assert len(collect(receiver, sent + sum(bursts))) == sent + sum(bursts)


def test_without_low_water_each_place_is_taken_as_it_gets_free(threaded: Instance, multicast: str) -> None:
    transmitter = threaded.transmitter(multicast, TOPIC, rate=100_000, queue_messages=8, linger=0.0)
    admitted_at_once(transmitter, b"x" * 1000)
    bursts: list[int] = []
    end = time.monotonic() + 30
    while len(bursts) < 10 and time.monotonic() < end:
        if burst := admitted_at_once(transmitter, b"x" * 1000):
            bursts.append(burst)
    assert len(bursts) == 10
    assert min(bursts) < 6, bursts  # a sender that looks all the time finds single places


def test_flush_waits_for_what_was_kept_and_not_for_what_was_dropped(instance: Instance, multicast: str) -> None:
    receiver = instance.receiver(multicast, TOPIC)
    transmitter = instance.transmitter(multicast, TOPIC, overflow="conflate", key_bytes=2, linger=0.0)
    transmitter.send_many([b"%02d" % (n % 50) for n in range(5000)])
    transmitter.flush(timeout=5.0)
    assert receiver.receive(timeout=5.0)
    assert until(
        lambda: (
            total(instance, "transmitter", "messages_sent")
            + sum(split(instance, "transmitter", "messages_dropped").values())
            == 5000
        ),
        instance,
    )


def test_two_topics_of_one_stream_may_have_opposite_policies(instance: Instance, multicast: str) -> None:
    first = held(instance, multicast, overflow="drop_newest", queue_messages=2)
    second = instance.transmitter(multicast, "OTHER", overflow="drop_oldest", queue_messages=2, **HELD)
    assert first.stream == second.stream
    for word in (b"a", b"b", b"c", b"d"):
        first.send(word)
        second.send(word)
    other = instance.receiver(multicast, "OTHER", ack="auto")
    assert data(release(instance, multicast, 2)) == "a b"
    assert data(collect(other, 2)) == "c d"


# ---- marks ----


def test_a_queue_alerts_once_per_crossing_and_before_anything_is_dropped(instance: Instance, multicast: str) -> None:
    receiver = instance.receiver(
        multicast, TOPIC, overflow="drop_newest", queue_messages=10, queue_high=0.8, queue_low=0.2
    )
    transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)

    def send(count: int) -> None:
        before = total(instance, "receiver", "messages_delivered")
        transmitter.send_many([b"x"] * count)
        assert until(lambda: total(instance, "receiver", "messages_delivered") == before + count, instance)

    send(7)
    assert events(instance, "queue_alert_on") == []
    send(1)
    assert until(lambda: len(events(instance, "queue_alert_on")) == 1, instance)
    assert events(instance, "messages_trimmed") == []
    send(5)
    assert len(collect(receiver, 10)) == 10
    assert until(lambda: len(events(instance, "queue_alert_off")) == 1, instance)
    send(9)
    assert until(lambda: len(events(instance, "queue_alert_on")) == 2, instance)
    assert len(events(instance, "queue_alert_off")) == 1


def test_a_submit_queue_alerts_too(instance: Instance, multicast: str) -> None:
    transmitter = held(instance, multicast, overflow="drop_oldest", queue_messages=4, queue_high=0.75)
    for _ in range(9):
        transmitter.send(b"x")
    assert until(lambda: len(events(instance, "queue_alert_on")) == 1, instance)
    release(instance, multicast, 4)
    assert until(lambda: len(events(instance, "queue_alert_off")) == 1, instance)
    assert len(events(instance, "queue_alert_on")) == 1


# ---- memory ----


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_what_would_exceed_the_limit_is_refused_with_the_numbers(mode: str, multicast: str) -> None:
    limit = 64 << 20
    with Instance(mode=mode, memory_limit=limit) as instance:  # type: ignore[arg-type]
        assert until(lambda: total(instance, "instance", "memory_limit") == limit, instance)
        used = total(instance, "instance", "memory_used")
        with pytest.raises(ResourceError, match=rf"memory_limit allows {limit} bytes .* a receive queue of 134217728"):
            instance.receiver(multicast, TOPIC, receive_queue=128 << 20)
        with pytest.raises(ResourceError, match=rf"memory_limit allows {limit} bytes .* a history"):
            instance.transmitter(multicast, TOPIC, send_window=65536, linger=0.0)
        if mode == "thread":
            with pytest.raises(ResourceError, match="a submit queue"):
                instance.transmitter(multicast, TOPIC, overflow="drop_oldest", submit_queue=128 << 20)
        assert until(lambda: total(instance, "instance", "memory_used") == used, instance)
        assert until(lambda: total(instance, "instance", "memory_refusals") >= 2, instance)
        assert until(lambda: events(instance, "memory_refused"), instance)
        transmitter = instance.transmitter(multicast, TOPIC, send_window=1024, linger=0.0)
        receiver = instance.receiver(multicast, TOPIC, receive_window=1024)
        transmitter.send(b"fits")
        assert data(collect(receiver, 1)) == "fits"


def test_memory_alerts_once_per_crossing(threaded: Instance, multicast: str) -> None:
    with Instance(memory_limit=40 << 20, memory_high=0.5, memory_low=0.3) as instance:
        for round_number in (1, 2):
            one = instance.receiver(multicast, TOPIC, receive_queue=16 << 20)
            two = instance.receiver(multicast, TOPIC, receive_queue=8 << 20)
            assert until(lambda n=round_number: len(events(instance, "memory_alert_on")) == n)  # type: ignore[misc]
            two.close()
            assert until(lambda: total(instance, "instance", "memory_used") == 16 << 20)
            assert len(events(instance, "memory_alert_off")) == round_number - 1
            one.close()
            assert until(lambda n=round_number: len(events(instance, "memory_alert_off")) == n)  # type: ignore[misc]
        assert len(events(instance, "memory_alert_on")) == 2


def test_a_long_message_beyond_the_limit_is_lost_with_its_event_and_the_rest_goes_on(unicast: str) -> None:
    with Instance() as source, Instance(memory_limit=24 << 20) as sink:
        receiver = sink.receiver(unicast, TOPIC, receive_window=1024, receive_queue=65536)
        transmitter = source.transmitter(unicast, TOPIC, linger=0.5)
        transmitter.send(b"first")
        assert data(collect(receiver, 1)) == "first"
        transmitter.send(b"x" * (30 << 20))
        transmitter.send(b"last")
        assert data(collect(receiver, 1)) == "last"
        assert sum(loss.count for loss in receiver.losses()) == 1
        assert until(lambda: events(sink, "memory_refused"))
        assert total(sink, "instance", "memory_used") <= 24 << 20


RESIDENT = """
import sys
from heliograph.engine import Instance

def resident():
    with open("/proc/self/smaps_rollup") as rollup:
        return next(int(line.split()[1]) for line in rollup if line.startswith("Rss:")) * 1024

limit = 48 << 20
with Instance(memory_limit=limit, mode="poll") as instance:
    before = resident()
    receiver = instance.receiver(sys.argv[1], "T", overflow="drop_oldest")
    transmitter = instance.transmitter(sys.argv[1], "T", linger=0.0, send_window=8192)
    body = b"x" * 1300
    for _ in range(60000):
        transmitter.send(body)
        instance.poll()
    print(resident() - before, limit)
"""


def test_resident_memory_stays_under_the_limit(script: Script, multicast: str) -> None:
    """Beside what is kept account of: code, stacks, and the kernel's pages of the segment."""
    constant = 16 << 20
    process = script(RESIDENT, multicast)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    grown, limit = map(int, out.split())
    assert 1 << 20 < grown < limit + constant


# ---- what contradicts itself ----

CONTRADICTIONS = [
    (
        "transmitter",
        {"overflow": "conflate"},
        "overflow=conflate needs a key: key_bytes of at least 1, not key_bytes=0",
    ),
    ("receiver", {"overflow": "conflate"}, "overflow=conflate needs a key"),
    ("transmitter", {"overflow": "priority"}, "overflow=priority needs .*priority_offset=-1"),
    ("receiver", {"overflow": "priority"}, "overflow=priority needs .*priority_offset=-1"),
    (
        "transmitter",
        {"queue_high": 0.5, "queue_low": 0.6},
        "queue_low must be at most queue_high, here 0.5; 0.6 is more",
    ),
    ("receiver", {"queue_high": 0.5, "queue_low": 0.6}, "queue_low must be at most queue_high, here 0.5; 0.6 is more"),
    (
        "transmitter",
        {"queue_age": 1.0},
        "queue_age drops messages, but overflow=block never drops any; use queue_age=1",
    ),
]


@pytest.mark.parametrize(("kind", "options", "sentence"), CONTRADICTIONS)
def test_options_that_contradict_each_other_are_refused(
    instance: Instance, multicast: str, kind: str, options: dict[str, Any], sentence: str
) -> None:
    make: Callable[..., Transmitter | Receiver] = getattr(instance, kind)
    with pytest.raises(OptionError, match=sentence):
        make(multicast, TOPIC, **options)


def test_a_low_mark_of_memory_above_the_high_one_is_refused() -> None:
    with pytest.raises(OptionError, match=r"memory_low is at most memory_high, here 0.5; 0.6 is more"):
        Instance(memory_limit=1 << 30, memory_high=0.5, memory_low=0.6)
