"""One message at a time, as an object or into a buffer; and the buffers that sending accepts."""

from __future__ import annotations

import ctypes
import gc
import mmap
import sys
import threading
import time
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from heliograph.engine import ClosedError, Instance, Message, MessageSizeError, Receiver, Transmitter, UsageError

from .conftest import collect, until

TOPIC = "PRICES.FX"
BODIES = [b"%d" % number for number in range(300)]

Take = Callable[[Receiver], object]
TAKES: dict[str, Take] = {
    "receive_one": lambda receiver: receiver.receive_one(timeout=0),
    "receive_into": lambda receiver: receiver.receive_into(bytearray(8), timeout=0),
}
takes = pytest.mark.parametrize("take", TAKES.values(), ids=TAKES)


def pair(instance: Instance, endpoint: str, bodies: list[bytes]) -> tuple[Receiver, Transmitter]:
    """A receiver, and the transmitter that has sent the bodies to it."""
    receiver, transmitter = instance.receiver(endpoint, TOPIC), instance.transmitter(endpoint, TOPIC, linger=0.0)
    transmitter.send_many(bodies)
    return receiver, transmitter


def test_one_message_comes_with_all_its_facts(instance: Instance, multicast: str) -> None:
    receiver, transmitter = pair(instance, multicast, BODIES)
    messages = [receiver.receive_one(timeout=5) for _ in BODIES]
    assert all(isinstance(message, Message) for message in messages)
    assert [message.data for message in messages if message] == BODIES
    assert [message.number for message in messages if message] == list(range(300))
    assert messages[0] is not None
    assert (messages[0].stream, messages[0].topic) == (transmitter.stream, TOPIC)


def test_messages_go_into_a_buffer(instance: Instance, multicast: str) -> None:
    receiver, _ = pair(instance, multicast, [b"abcd", b"", b"xy"])
    buffer = bytearray(b"......")
    assert receiver.receive_into(buffer, timeout=5) == 4
    assert buffer == b"abcd.."
    assert receiver.receive_into(buffer, 5) == 0
    assert buffer == b"abcd.."
    assert receiver.receive_into(buffer=buffer) == 2
    assert buffer == b"xycd.."


@pytest.mark.parametrize(
    "buffer",
    [
        bytearray(8),
        memoryview(bytearray(8)),
        array("Q", [0]),
        np.zeros((2, 4), dtype="u1"),
        (ctypes.c_char * 8)(),
        mmap.mmap(-1, 8),
    ],
    ids=lambda buffer: type(buffer).__name__,
)
def test_any_writable_buffer_does(polled: Instance, multicast: str, buffer: Any) -> None:
    receiver, _ = pair(polled, multicast, [b"12345678"])
    assert receiver.receive_into(buffer, timeout=5) == 8
    assert bytes(memoryview(buffer)) == b"12345678"


def test_a_message_too_long_for_the_buffer_stays(instance: Instance, multicast: str) -> None:
    receiver, _ = pair(instance, multicast, [b"12345", b"678"])
    small = bytearray(4)
    for _ in range(2):
        with pytest.raises(ValueError, match="next message has 5 bytes and the buffer 4; the message is kept"):
            receiver.receive_into(small, timeout=5)
    assert small == bytes(4)
    assert receiver.receive_into(bytearray(5), timeout=0) == 5
    with pytest.raises(ValueError, match="has 3 bytes and the buffer 0"):
        receiver.receive_into(bytearray(), timeout=5)
    message = receiver.receive_one(timeout=0)
    assert message is not None
    assert (message.data, message.number) == (b"678", 1)


@takes
def test_nothing_there_is_none_at_once(instance: Instance, multicast: str, take: Take) -> None:
    receiver = instance.receiver(multicast, TOPIC)
    started = time.monotonic()
    assert take(receiver) is None
    assert time.monotonic() - started < 0.05


def test_a_wait_ends_when_its_time_is_over(instance: Instance, multicast: str) -> None:
    receiver = instance.receiver(multicast, TOPIC)
    started = time.monotonic()
    assert receiver.receive_one(timeout=0.06) is None
    assert receiver.receive_into(bytearray(1), timeout=0.06) is None
    assert 0.12 <= time.monotonic() - started < 2.0


@takes
def test_use_after_close_and_within_a_callback_is_refused(instance: Instance, multicast: str, take: Take) -> None:
    receiver = instance.receiver(multicast, TOPIC)
    caught: list[BaseException] = []

    def on_messages(messages: list[Message]) -> None:
        try:
            take(receiver)
        except UsageError as error:
            caught.append(error)

    instance.receiver(multicast, "OTHER", on_messages=on_messages)
    instance.transmitter(multicast, "OTHER", linger=0.0).send(b"x")
    assert until(lambda: (instance.poll() if instance.polled else 0) is not None and bool(caught))
    receiver.close()
    with pytest.raises(ClosedError):
        take(receiver)


def test_close_from_another_thread_ends_a_wait_and_frees_the_buffer(threaded: Instance, multicast: str) -> None:
    receiver = threaded.receiver(multicast, TOPIC)
    closer = threading.Timer(0.1, receiver.close)
    closer.start()
    buffer = bytearray(4)
    with pytest.raises(ClosedError):
        receiver.receive_into(buffer)
    closer.join()
    buffer.append(1)  # a buffer still in use cannot grow


def test_a_buffer_in_use_by_a_wait_cannot_shrink(threaded: Instance, multicast: str) -> None:
    receiver, buffer = threaded.receiver(multicast, TOPIC), bytearray(4)
    waiter = threading.Thread(target=receiver.receive_into, args=[buffer, 5])
    waiter.start()

    def is_locked() -> bool:
        try:
            buffer.append(0)
        except BufferError:
            return True
        return False

    assert until(is_locked)
    threaded.transmitter(multicast, TOPIC, linger=0.0).send(b"end")
    waiter.join()
    assert buffer[:3] == b"end"
    buffer.clear()


@pytest.mark.parametrize(
    ("buffer", "error", "text"),
    [
        (b"read-only", BufferError, "not writable"),
        (memoryview(bytearray(8))[::2], BufferError, "memoryview is not C-contiguous"),
        (np.zeros(8, dtype="u1")[::2], BufferError, "ndarray is not C-contiguous"),
        ("text", TypeError, "bytes-like"),
        (None, TypeError, "bytes-like"),
    ],
    ids=["read-only", "memoryview", "numpy", "text", "None"],
)
def test_an_unfit_buffer_is_refused_and_no_message_is_lost(
    polled: Instance, multicast: str, buffer: Any, error: type[Exception], text: str
) -> None:
    receiver, _ = pair(polled, multicast, [b"x"])
    with pytest.raises(error, match=text):
        receiver.receive_into(buffer, timeout=1)
    message = receiver.receive_one(timeout=5)
    assert message is not None
    assert message.data == b"x"


def test_wrong_arguments_are_refused(threaded: Instance, multicast: str) -> None:
    receiver = threaded.receiver(multicast, TOPIC)
    with pytest.raises(TypeError, match="needs argument 'buffer'"):
        receiver.receive_into()  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="timeout must be"):
        receiver.receive_into(bytearray(1), timeout=-1)
    with pytest.raises(ValueError, match="timeout must be"):
        receiver.receive_one(timeout=float("nan"))
    with pytest.raises(OverflowError):
        receiver.receive_one(timeout=10**400)


def test_all_ways_can_be_mixed(instance: Instance, multicast: str) -> None:
    receiver, _ = pair(instance, multicast, BODIES)
    buffer = bytearray(8)
    taken: list[bytes] = []
    while len(taken) < len(BODIES):
        message = receiver.receive_one(timeout=5)
        assert message is not None
        taken.append(message.data)
        length = receiver.receive_into(buffer, timeout=5) if len(taken) < len(BODIES) else None
        taken += [bytes(buffer[:length])] if length is not None else []
        taken += receiver.receive_bytes(timeout=0, limit=1)
        taken += [bytes(view) for view in receiver.receive_batch(timeout=0, limit=2)]
    assert taken == BODIES


def test_taking_one_by_one_leaks_nothing(polled: Instance, multicast: str) -> None:
    receiver, transmitter = pair(polled, multicast, [])
    buffer, small = bytearray(8), bytearray(1)

    def once() -> None:
        transmitter.send_many([b"12345678"] * 3)
        assert receiver.receive_one(timeout=5)
        with pytest.raises(ValueError, match="is kept"):
            receiver.receive_into(small, timeout=5)
        with pytest.raises(BufferError):
            receiver.receive_into(memoryview(buffer)[::2], timeout=0)
        assert receiver.receive_into(buffer, timeout=5) == 8
        assert next(receiver)
        assert receiver.receive_one(0) is None

    for _ in range(20):
        once()
    gc.collect()
    references = (sys.getrefcount(None), sys.getrefcount(buffer), sys.getrefcount(receiver))
    blocks = sys.getallocatedblocks()
    for _ in range(200):
        once()
    gc.collect()
    assert abs(sys.getrefcount(None) - references[0]) < 50
    assert (sys.getrefcount(buffer), sys.getrefcount(receiver)) == references[1:]
    assert sys.getallocatedblocks() - blocks < 100
    buffer.append(0)


# ---- send ----

SENDABLE: dict[str, Any] = {
    "bytes": b"12345678",
    "bytearray": bytearray(b"12345678"),
    "memoryview": memoryview(b"..12345678")[2:],
    "memoryview of two dimensions": memoryview(b"12345678").cast("B", [2, 4]),
    "array": array("B", b"12345678"),
    "numpy": np.frombuffer(b"12345678", dtype="u1").reshape(2, 4),
    "numpy of records": np.frombuffer(b"12345678", dtype=[("a", "<u4"), ("b", "<f4")]),
    "ctypes": (ctypes.c_char * 8).from_buffer_copy(b"12345678"),
}


@pytest.mark.parametrize("data", SENDABLE.values(), ids=SENDABLE)
def test_any_contiguous_buffer_is_sent(polled: Instance, multicast: str, data: Any) -> None:
    receiver, transmitter = pair(polled, multicast, [])
    references = sys.getrefcount(data)
    transmitter.send(data)
    transmitter.send_many([data, data])
    transmitter.send_packed(data, size=8)
    assert [message.data for message in collect(receiver, 4)] == [b"12345678"] * 4
    assert sys.getrefcount(data) == references


SCATTERED: dict[str, Any] = {
    "memoryview": memoryview(b"12345678")[::2],
    "numpy slice": np.zeros(8, dtype="u1")[::2],
    "numpy transposed": np.zeros((2, 4)).T,
    "reversed": memoryview(b"1234")[::-1],
}


@pytest.mark.parametrize("data", SCATTERED.values(), ids=SCATTERED)
def test_a_buffer_in_pieces_is_refused(polled: Instance, multicast: str, data: Any) -> None:
    receiver, transmitter = pair(polled, multicast, [])
    offsets: Any = np.zeros(4, dtype="u8")[::2]
    text = "is not C-contiguous: its bytes do not lie in one piece"
    with pytest.raises(BufferError, match=text):
        transmitter.send(data)
    with pytest.raises(BufferError, match=text) as caught:
        transmitter.send_many([b"first", data])
    assert caught.value.accepted == 0  # type: ignore[attr-defined]
    with pytest.raises(BufferError, match=text):
        transmitter.send_packed(data, size=1)
    with pytest.raises(BufferError, match=text):
        transmitter.send_packed(b"1234", offsets=offsets)
    assert receiver.receive(timeout=0) == []


def test_a_buffer_is_free_after_a_send_that_failed(polled: Instance, multicast: str) -> None:
    transmitter = polled.transmitter(multicast, TOPIC, linger=0.0, max_message_bytes=4)
    data = bytearray(8)
    with pytest.raises(MessageSizeError):
        transmitter.send(data)
    with pytest.raises(MessageSizeError):
        transmitter.send_many([b"x", data])
    with pytest.raises(ValueError, match="timeout must be"):
        transmitter.send(data, timeout=-1)
    data.append(0)
