"""Callbacks: batches and losses come by themselves, and nothing a callback does hurts the engine."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from heliograph.engine import Instance, Message, Receiver, UsageError, WouldBlock

from .conftest import collect, until

TOPIC = "PRICES.FX"


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Exceptions shown by sys.unraisablehook."""
    shown: list[BaseException] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: shown.append(args.exc_value))
    return shown


def test_messages_come_in_lists(instance: Instance, endpoint: str) -> None:
    batches: list[list[Message]] = []
    instance.receiver(endpoint, TOPIC, on_messages=batches.append)
    sent = [b"%d" % number for number in range(500)]
    instance.transmitter(endpoint, TOPIC, linger=0.0).send_many(sent)
    assert until(lambda: sum(map(len, batches)) >= 500, instance)
    assert [message.data for batch in batches for message in batch] == sent
    assert all(batches)


def test_a_thread_keeps_its_python_side_from_callback_to_callback(threaded: Instance, multicast: str) -> None:
    local = threading.local()
    counts: list[int] = []

    def count(messages: list[Message]) -> None:
        local.count = getattr(local, "count", 0) + 1
        counts.append(local.count)

    threaded.receiver(multicast, TOPIC, on_messages=count)
    transmitter = threaded.transmitter(multicast, TOPIC, linger=0.0)
    for expected in range(1, 4):
        transmitter.send(b"x")
        assert until(lambda expected=expected: len(counts) == expected)  # type: ignore[misc]
    assert counts == [1, 2, 3]


def test_an_exception_is_shown_and_counted_and_the_engine_goes_on(
    instance: Instance, multicast: str, unraisable: list[BaseException]
) -> None:
    seen: list[bytes] = []

    def fail(messages: list[Message]) -> None:
        seen.extend(message.data for message in messages)
        raise RuntimeError("a bug in the application")

    receiver = instance.receiver(multicast, TOPIC, on_messages=fail)
    transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
    transmitter.send(b"one")
    assert until(lambda: receiver.callback_errors == 1, instance)
    transmitter.send(b"two")
    assert until(lambda: receiver.callback_errors == 2, instance)
    assert seen == [b"one", b"two"]
    assert [str(error) for error in unraisable] == ["a bug in the application"] * 2


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_what_stops_a_program_stops_the_poll(polled: Instance, multicast: str, stop: type[BaseException]) -> None:
    def interrupted(messages: list[Message]) -> None:
        raise stop

    receiver = polled.receiver(multicast, TOPIC, on_messages=interrupted)
    polled.transmitter(multicast, TOPIC, linger=0.0).send(b"x")
    with pytest.raises(stop):
        until(lambda: False, polled)
    assert receiver.callback_errors == 0


def test_a_callback_may_send(instance: Instance, multicast: str) -> None:
    answers = instance.receiver(multicast, "ANSWERS")
    answer = instance.transmitter(multicast, "ANSWERS", linger=0.0)
    instance.receiver(
        multicast, "QUESTIONS", on_messages=lambda batch: answer.send_many([b"re: " + m.data for m in batch])
    )
    instance.transmitter(multicast, "QUESTIONS", linger=0.0).send_many([b"%d" % number for number in range(50)])
    assert [message.data for message in collect(answers, 50)] == [b"re: %d" % number for number in range(50)]


FORBIDDEN: dict[str, Callable[[SimpleNamespace], object]] = {
    "close the receiver": lambda it: it.receiver.close(),
    "close another receiver": lambda it: it.other.close(),
    "close the transmitter": lambda it: it.transmitter.close(),
    "close the instance": lambda it: it.instance.close(),
    "flush": lambda it: it.transmitter.flush(),
    "receive": lambda it: it.other.receive(),
    "take losses": lambda it: it.other.losses(),
    "make a receiver": lambda it: it.instance.receiver(it.endpoint, "NEW"),
    "make a transmitter": lambda it: it.instance.transmitter(it.endpoint, "NEW"),
    "poll": lambda it: it.instance.poll(),
    "wait": lambda it: it.instance.wait(0),
}


@pytest.mark.parametrize("deed", FORBIDDEN)
def test_within_a_callback_only_sending_is_allowed(instance: Instance, multicast: str, deed: str) -> None:
    it = SimpleNamespace(instance=instance, endpoint=multicast)
    raised: list[BaseException | None] = []

    def attempt(messages: list[Message]) -> None:
        try:
            FORBIDDEN[deed](it)
        except UsageError as error:
            raised.append(error)
        else:
            raised.append(None)

    it.other = instance.receiver(multicast, "OTHER")
    it.receiver = instance.receiver(multicast, TOPIC, on_messages=attempt)
    it.transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
    it.transmitter.send(b"x")
    assert until(lambda: raised, instance)
    assert isinstance(raised[0], UsageError)
    assert not it.receiver.closed
    assert not instance.closed


def test_sending_within_a_callback_does_not_wait_for_room(threaded: Instance, multicast: str) -> None:
    outcome: list[Exception] = []
    transmitter = threaded.transmitter(multicast, "FLOOD", submit_queue=65536, linger=0.0)

    def flood(messages: list[Message]) -> None:
        try:
            while True:
                transmitter.send(b"x" * 1000)
        except WouldBlock as error:
            outcome.append(error)

    threaded.receiver(multicast, TOPIC, on_messages=flood)
    threaded.transmitter(multicast, TOPIC, linger=0.0).send(b"go")
    assert until(lambda: outcome)


def test_a_listening_receiver_is_not_received_from(threaded: Instance, multicast: str) -> None:
    receiver = threaded.receiver(multicast, TOPIC, on_messages=lambda messages: None)
    with pytest.raises(UsageError):
        receiver.receive(timeout=0)
    with pytest.raises(UsageError):
        next(receiver)


def test_a_listening_receiver_works_though_nobody_keeps_it(threaded: Instance, multicast: str) -> None:
    batches: list[list[Message]] = []
    threaded.receiver(multicast, TOPIC, on_messages=batches.append)
    threaded.transmitter(multicast, TOPIC, linger=0.0).send(b"x")
    assert until(lambda: batches)


def test_after_close_no_callback_comes(threaded: Instance, multicast: str) -> None:
    batches: list[list[Message]] = []
    receiver = threaded.receiver(multicast, TOPIC, on_messages=batches.append)
    transmitter = threaded.transmitter(multicast, TOPIC, linger=0.0)
    transmitter.send(b"x")
    assert until(lambda: batches)
    receiver.close()
    beside = threaded.receiver(multicast, TOPIC)
    transmitter.send(b"y")
    assert collect(beside, 1)
    assert sum(map(len, batches)) == 1


def test_close_waits_for_the_callback_that_runs(threaded: Instance, multicast: str) -> None:
    entered, leave, left = threading.Event(), threading.Event(), threading.Event()

    def slow(messages: list[Message]) -> None:
        entered.set()
        leave.wait(10)
        left.set()

    receiver = threaded.receiver(multicast, TOPIC, on_messages=slow)
    threaded.transmitter(multicast, TOPIC, linger=0.0).send(b"x")
    assert entered.wait(10)
    threading.Timer(0.1, leave.set).start()
    receiver.close()
    assert left.is_set()


def test_callbacks_must_be_callable(threaded: Instance, multicast: str) -> None:
    with pytest.raises(TypeError, match="on_messages must be callable"):
        threaded.receiver(multicast, TOPIC, on_messages=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="on_loss must be callable"):
        threaded.receiver(multicast, TOPIC, on_messages=print, on_loss=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="on_loss needs on_messages"):
        threaded.receiver(multicast, TOPIC, on_loss=print)


def test_a_callback_of_one_instance_may_close_another(threaded: Instance, multicast: str) -> None:
    other = Instance()
    theirs: Receiver = other.receiver(multicast, "OTHER")
    threaded.receiver(multicast, TOPIC, on_messages=lambda messages: other.close())
    threaded.transmitter(multicast, TOPIC, linger=0.0).send(b"x")
    assert until(lambda: other.closed and theirs.closed)
