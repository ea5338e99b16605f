"""Closing, dropping, forking, ending: whatever happens to the objects, nothing crashes and nothing is left behind."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from heliograph.engine import ClosedError, Instance, Message, Receiver, Transmitter, UsageError

from .conftest import Script, collect, until

TOPIC = "PRICES.FX"


def census() -> tuple[int, int]:
    """Threads and open files of this process."""
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def files(folder: Path) -> list[Path]:
    """What is in a segment folder, but for flight recordings that were kept: these are meant to stay."""
    found = list(folder.iterdir()) if folder.exists() else []
    return [path for path in found if not re.fullmatch(r".*\.\d+\.\d+\.flight", path.name)]


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_close_leaves_no_thread_no_socket_and_no_segment(mode: str, endpoint: str, segments: Path) -> None:
    before = census()
    with Instance(mode=mode) as instance:  # type: ignore[arg-type]
        assert instance.segment is not None
        assert instance.segment.exists()
        assert instance.segment.parent == segments
        with (
            instance.receiver(endpoint, TOPIC) as receiver,
            instance.transmitter(endpoint, TOPIC, linger=0.0) as transmitter,
        ):
            transmitter.send(b"x")
            assert collect(receiver, 1)
    assert until(lambda: census() == before)
    assert files(segments) == []


def test_closing_one_after_the_other_leaves_nothing_either(endpoint: str) -> None:
    with Instance() as instance:
        before = census()
        for _ in range(5):
            receiver = instance.receiver(endpoint, TOPIC)
            transmitter = instance.transmitter(endpoint, TOPIC, linger=0.0)
            transmitter.send(b"x")
            assert collect(receiver, 1)
            transmitter.close()
            receiver.close()
        assert until(lambda: census() == before)


def test_closing_the_instance_closes_what_is_open(instance: Instance, multicast: str) -> None:
    receiver = instance.receiver(multicast, TOPIC)
    listening = instance.receiver(multicast, TOPIC, on_messages=lambda messages: None)
    transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
    transmitter.send(b"x")
    instance.close()
    assert (instance.closed, receiver.closed, listening.closed, transmitter.closed) == (True, True, True, True)


CALLS: dict[str, Callable[[Instance, Transmitter, Receiver], object]] = {
    "send": lambda instance, transmitter, receiver: transmitter.send(b"x"),
    "send_many": lambda instance, transmitter, receiver: transmitter.send_many([b"x"]),
    "flush": lambda instance, transmitter, receiver: transmitter.flush(),
    "receive": lambda instance, transmitter, receiver: receiver.receive(),
    "receive_bytes": lambda instance, transmitter, receiver: receiver.receive_bytes(),
    "receive_one": lambda instance, transmitter, receiver: receiver.receive_one(),
    "receive_into": lambda instance, transmitter, receiver: receiver.receive_into(bytearray(1)),
    "receive_views": lambda instance, transmitter, receiver: receiver.receive_views(),
    "receive_batch": lambda instance, transmitter, receiver: receiver.receive_batch(),
    "losses": lambda instance, transmitter, receiver: receiver.losses(),
    "iter": lambda instance, transmitter, receiver: iter(receiver),
    "poll": lambda instance, transmitter, receiver: instance.poll(),
    "wait": lambda instance, transmitter, receiver: instance.wait(0),
    "transmitter": lambda instance, transmitter, receiver: instance.transmitter(receiver.endpoint, TOPIC),
    "receiver": lambda instance, transmitter, receiver: instance.receiver(receiver.endpoint, TOPIC),
}


@pytest.mark.parametrize("call", CALLS)
def test_use_after_close_is_an_error(instance: Instance, multicast: str, call: str) -> None:
    receiver = instance.receiver(multicast, TOPIC)
    transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
    instance.close()
    with pytest.raises(ClosedError) as caught:
        CALLS[call](instance, transmitter, receiver)
    assert caught.value.code == "CLOSED"


def test_what_describes_a_closed_object_can_still_be_read(multicast: str) -> None:
    with Instance(name="feed") as instance:
        receiver = instance.receiver(multicast, TOPIC)
        transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
        stream = transmitter.stream
    assert (instance.name, receiver.topic, transmitter.stream) == ("feed", TOPIC, stream)
    assert repr(instance) == "<Instance feed, closed>"
    assert repr(receiver) == f"<Receiver PRICES.FX on {multicast}, closed>"
    assert repr(transmitter) == f"<Transmitter PRICES.FX on {multicast}, closed>"


def test_closing_twice_does_nothing(instance: Instance, multicast: str) -> None:
    receiver = instance.receiver(multicast, TOPIC)
    for _ in range(2):
        receiver.close()
    for _ in range(2):
        instance.close()
    receiver.close()


def test_many_threads_may_close_at_once(multicast: str) -> None:
    def read(receiver: Receiver) -> None:
        with contextlib.suppress(ClosedError):
            list(receiver)

    before = census()
    for _ in range(10):
        instance = Instance()
        receiver = instance.receiver(multicast, TOPIC)
        transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
        closing = (receiver, instance, transmitter, receiver, instance)
        threads = [threading.Thread(target=read, args=[receiver])]
        threads += [threading.Thread(target=each.close) for each in closing]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()
        assert all(each.closed for each in closing)
    assert until(lambda: census() == before)


def test_children_keep_their_instance(multicast: str) -> None:
    instance = Instance()
    receiver, transmitter = instance.receiver(multicast, TOPIC), instance.transmitter(multicast, TOPIC, linger=0.0)
    watch = weakref.ref(instance)
    del instance
    gc.collect()
    transmitter.send(b"x")
    assert len(collect(receiver, 1)) == 1
    parent = receiver.instance
    assert parent is watch()
    parent.close()


def drop_a_receiver(instance: Instance, endpoint: str) -> None:
    instance.receiver(endpoint, TOPIC)


def drop_a_transmitter(instance: Instance, endpoint: str) -> None:
    instance.transmitter(endpoint, TOPIC, linger=0.0)


def drop_an_instance(instance: Instance, endpoint: str) -> None:
    Instance()


def drop_a_listening_receiver_and_its_instance(instance: Instance, endpoint: str) -> None:
    Instance().receiver(endpoint, TOPIC, on_messages=print)
    gc.collect()


@pytest.mark.parametrize(
    "drop",
    [drop_a_receiver, drop_a_transmitter, drop_an_instance, drop_a_listening_receiver_and_its_instance],
    ids=lambda drop: drop.__name__,
)
def test_what_is_dropped_is_closed_with_a_warning(multicast: str, drop: Callable[[Instance, str], None]) -> None:
    before = census()
    with Instance() as instance:
        with pytest.warns(ResourceWarning, match="unclosed <"):
            drop(instance, multicast)
        gc.collect()
    assert until(lambda: census() == before)


def test_a_cycle_through_a_callback_is_collected(multicast: str) -> None:
    class Application:
        def __init__(self) -> None:
            self.instance = Instance()
            self.receiver = self.instance.receiver(multicast, TOPIC, on_messages=self.take)

        def take(self, messages: list[Message]) -> None:
            raise AssertionError("nobody sends")

    before = census()
    watch = weakref.ref(Application())
    with pytest.warns(ResourceWarning):
        gc.collect()
    assert watch() is None
    assert until(lambda: census() == before)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_dropping_the_last_reference_within_a_callback_closes_it_later(threaded: Instance, multicast: str) -> None:
    holder = [threaded.receiver(multicast, "DROPPED"), threaded.transmitter(multicast, "DROPPED", linger=0.0)]
    watches = [weakref.ref(each) for each in holder]
    dropped = threading.Event()

    def drop(messages: list[Message]) -> None:
        holder.clear()
        gc.collect()
        dropped.set()

    threaded.receiver(multicast, TOPIC, on_messages=drop)
    threaded.transmitter(multicast, TOPIC, linger=0.0).send(b"x")
    assert dropped.wait(10)
    assert until(lambda: all(watch() is None for watch in watches))


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_an_instance_dropped_within_its_own_callback_is_closed_later(multicast: str) -> None:
    before = census()
    holder: list[object] = []

    def drop(messages: list[Message]) -> None:
        holder.clear()
        gc.collect()

    instance = Instance()
    transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
    receiver = instance.receiver(multicast, TOPIC, on_messages=drop)
    holder += [instance, transmitter, receiver]
    transmitter.send(b"x")
    del instance, transmitter, receiver
    gc.collect()
    assert until(lambda: not holder)
    assert until(lambda: gc.collect() >= 0 and census() == before)


def test_a_polled_instance_belongs_to_one_thread_at_a_time(polled: Instance, multicast: str) -> None:
    receiver = polled.receiver(multicast, TOPIC)
    transmitter = polled.transmitter(multicast, TOPIC, linger=0.0)
    started = threading.Event()

    def work() -> None:
        started.set()
        receiver.receive(timeout=0.3)

    worker = threading.Thread(target=work)
    worker.start()
    started.wait(10)
    refusals: list[str] = []

    def refused() -> bool:
        try:
            transmitter.send(b"x")
        except UsageError as error:
            refusals.append(str(error))
        return bool(refusals)

    assert until(refused, seconds=0.3)
    worker.join()
    assert "use it from one thread" in refusals[0]
    transmitter.send(b"y")


def test_poll_and_wait_are_for_polled_instances(threaded: Instance) -> None:
    with pytest.raises(UsageError):
        threaded.poll()
    with pytest.raises(UsageError):
        threaded.wait(0)


EXIT = """
import sys
from heliograph.engine import Instance
instance = Instance(mode=sys.argv[2])
listening = instance.receiver(sys.argv[1], "T", on_messages=lambda messages: None)
receiver = instance.receiver(sys.argv[1], "T")
transmitter = instance.transmitter(sys.argv[1], "T", linger=0.05)
transmitter.send_many([b"x"] * 1000)
if sys.argv[3] == "thread":
    import threading
    threading.Thread(target=lambda: list(receiver), daemon=True).start()
"""


@pytest.mark.parametrize("mode", ["thread", "poll"])
@pytest.mark.parametrize("daemon", ["thread", "no thread"])
def test_a_program_may_end_without_closing(
    script: Script, multicast: str, segments: Path, mode: str, daemon: str
) -> None:
    process = script(EXIT, multicast, mode, daemon)
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, output, errors) == (0, "", "")
    assert files(segments) == []


def test_a_program_may_end_by_an_exception(script: Script, multicast: str, segments: Path) -> None:
    process = script(EXIT + "raise RuntimeError('the end')", multicast, "thread", "no thread")
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 1
    assert errors.endswith("RuntimeError: the end\n")
    assert files(segments) == []


def test_a_forked_child_finds_its_copies_closed(script: Script, multicast: str, segments: Path) -> None:
    process = script(
        "import os, sys\n"
        "from heliograph.engine import Instance\n"
        "with Instance() as instance:\n"
        "    receiver = instance.receiver(sys.argv[1], 'T')\n"
        "    instance.receiver(sys.argv[1], 'T', on_messages=print)\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        assert instance.closed and receiver.closed\n"
        "        receiver.close(), instance.close()\n"
        "        with Instance() as own:\n"
        "            rx = own.receiver(sys.argv[1], 'T')\n"
        "            own.transmitter(sys.argv[1], 'T', linger=0.0).send(b'child')\n"
        "            assert rx.receive(timeout=5)[0].data == b'child'\n"
        "        sys.exit(7)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "    assert receiver.receive(timeout=5)[0].data == b'child'\n"
        "    assert instance.segment.exists()\n",
        multicast,
    )
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")
    assert files(segments) == []


def test_creating_and_closing_leaks_no_references(multicast: str) -> None:
    def once() -> None:
        with Instance(stats="memory") as instance:
            receiver = instance.receiver(multicast, TOPIC)
            transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
            transmitter.send_many([b"x", bytearray(b"y"), b"z"])
            for message in collect(receiver, 3):
                bytes(message)
            with pytest.raises(TypeError):
                transmitter.send(None)  # type: ignore[arg-type]
            receiver.losses()

    for _ in range(3):
        once()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(10):
        once()
    gc.collect()
    assert sys.getallocatedblocks() - before < 60
