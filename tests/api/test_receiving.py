"""Ways to take messages: lists, plain bytes, a loop; and how waiting ends."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest

from heliograph.engine import ClosedError, Instance, UsageError

from .conftest import Script, collect, until

TOPIC = "PRICES.FX"


def test_an_empty_queue_gives_an_empty_list_at_once(instance: Instance, multicast: str) -> None:
    receiver = instance.receiver(multicast, TOPIC)
    started = time.monotonic()
    assert receiver.receive(timeout=0) == []
    assert receiver.receive_bytes(timeout=0) == []
    assert time.monotonic() - started < 0.05


def test_a_wait_ends_when_its_time_is_over(instance: Instance, multicast: str) -> None:
    receiver = instance.receiver(multicast, TOPIC)
    started = time.monotonic()
    assert receiver.receive(timeout=0.12) == []
    assert 0.12 <= time.monotonic() - started < 2.0


def test_a_wait_ends_with_the_first_message(threaded: Instance, multicast: str) -> None:
    receiver = threaded.receiver(multicast, TOPIC)
    transmitter = threaded.transmitter(multicast, TOPIC, linger=0.0)
    sender = threading.Timer(0.1, transmitter.send, [b"late"])
    sender.start()
    assert [message.data for message in receiver.receive()] == [b"late"]
    sender.join()


def test_limit_bounds_a_list(instance: Instance, multicast: str) -> None:
    receiver = instance.receiver(multicast, TOPIC)
    transmitter = instance.transmitter(multicast, TOPIC, linger=0.0)
    transmitter.send_many([b"%d" % number for number in range(10)])
    first = collect(receiver, 4)
    rest = collect(receiver, 6)
    assert [message.number for message in first + rest] == list(range(10))


@pytest.mark.parametrize("limit", [0, -1, 65537])
def test_an_impossible_limit_is_refused(threaded: Instance, multicast: str, limit: int) -> None:
    with pytest.raises(ValueError, match="limit must be 1 to 65536"):
        threaded.receiver(multicast, TOPIC).receive(timeout=0, limit=limit)


@pytest.mark.parametrize("timeout", [-1, -0.5, float("nan")])
def test_an_impossible_timeout_is_refused(threaded: Instance, multicast: str, timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout must be"):
        threaded.receiver(multicast, TOPIC).receive(timeout=timeout)


def test_wrong_arguments_are_refused(threaded: Instance, multicast: str) -> None:
    receiver = threaded.receiver(multicast, TOPIC)
    with pytest.raises(TypeError, match="at most 2"):
        receiver.receive(0, 1, 2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no argument 'seconds'"):
        receiver.receive(seconds=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="twice"):
        receiver.receive(0, timeout=1)  # type: ignore[misc]


def test_plain_bytes_can_be_taken(instance: Instance, multicast: str) -> None:
    receiver = instance.receiver(multicast, TOPIC)
    sent = [b"%d" % number for number in range(100)]
    instance.transmitter(multicast, TOPIC, linger=0.0).send_many(sent)
    received: list[bytes] = []
    while batch := receiver.receive_bytes(timeout=0.5):
        received += batch
    assert received == sent


def test_a_loop_takes_message_after_message(instance: Instance, multicast: str) -> None:
    receiver = instance.receiver(multicast, TOPIC)
    instance.transmitter(multicast, TOPIC, linger=0.0).send_many([b"%d" % number for number in range(600)])
    taken = []
    for message in receiver:
        taken.append(message.number)
        if len(taken) == 600:
            break
    assert taken == list(range(600))


def test_lists_go_on_where_a_loop_stopped(instance: Instance, multicast: str) -> None:
    receiver = instance.receiver(multicast, TOPIC)
    instance.transmitter(multicast, TOPIC, linger=0.0).send_many([b"%d" % number for number in range(300)])
    taken = [next(receiver).number for _ in range(3)]
    taken += [message.number for message in collect(receiver, 7)]
    taken += [next(receiver).number]
    taken += [message.number for message in collect(receiver, 289)]
    assert taken == list(range(300))


def test_close_from_another_thread_ends_a_loop(threaded: Instance, multicast: str) -> None:
    receiver = threaded.receiver(multicast, TOPIC)
    closer = threading.Timer(0.1, receiver.close)
    closer.start()
    assert list(receiver) == []
    closer.join()
    assert receiver.closed


def test_close_from_another_thread_ends_a_wait_with_an_error(threaded: Instance, multicast: str) -> None:
    receiver = threaded.receiver(multicast, TOPIC)
    closer = threading.Timer(0.1, receiver.close)
    closer.start()
    with pytest.raises(ClosedError):
        receiver.receive()
    closer.join()


def test_closing_the_instance_ends_a_loop_too(multicast: str) -> None:
    instance = Instance()
    receiver = instance.receiver(multicast, TOPIC)
    closer = threading.Timer(0.1, instance.close)
    closer.start()
    assert list(receiver) == []
    closer.join()


def test_a_receiver_is_one_threads_at_a_time(threaded: Instance, multicast: str) -> None:
    receiver = threaded.receiver(multicast, TOPIC)
    other = threading.Thread(target=lambda: list(receiver))
    other.start()
    refusals: list[str] = []

    def refused() -> bool:
        try:
            receiver.receive(timeout=0)
        except UsageError as error:
            refusals.append(str(error))
        return bool(refusals)

    assert until(refused)
    assert "another thread" in refusals[0]
    receiver.close()
    other.join()


WAITS = {
    "receive": "receiver.receive()",
    "loop": "next(receiver)",
    "poll": "while True: instance.poll(); instance.wait()",
}


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_a_wait(script: Script, multicast: str, tmp_path: Path, wait: str) -> None:
    process = script(
        "import sys\n"
        "from heliograph.engine import Instance\n"
        f"with Instance(mode={'poll' if wait == 'poll' else 'thread'!r}) as instance:\n"
        "    receiver = instance.receiver(sys.argv[1], 'T')\n"
        "    print('ready', flush=True)\n"
        "    try:\n"
        f"        {WAITS[wait]}\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted', receiver.closed, flush=True)\n",
        multicast,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.05)  # until it waits; a signal that comes sooner is no harm
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted False\n"
    assert time.monotonic() - sent < 1.0
    assert process.wait(10) == 0


def test_a_signal_handler_may_close_what_its_thread_waits_for(script: Script, multicast: str) -> None:
    process = script(
        "import signal, sys\n"
        "from heliograph.engine import Instance\n"
        "with Instance() as instance:\n"
        "    receiver = instance.receiver(sys.argv[1], 'T')\n"
        "    signal.signal(signal.SIGTERM, lambda *_: receiver.close())\n"
        "    print('ready', flush=True)\n"
        "    for message in receiver: pass\n"
        "    print('over', flush=True)\n",
        multicast,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "over\n"
    assert process.wait(10) == 0
