"""Heliograph from Python: what a program of a user's would do.

    python_heliograph.py latency|throughput [--transport rmm|rmm+unicast|rum|shm] [--way call|list|views] [--mode ...]

latency: ping-pong in mode poll, both ends spin, one message per call. throughput: one message per call or lists of
bytes (send_many, receive_bytes) in mode thread, or many in one buffer (send_packed, receive_batch and its rows) in mode
poll. --mode asks for the other one.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

if __package__ in (None, ""):  # started as a program
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from heliograph.engine import Instance, Receiver, Transmitter
from tests.bench.python_duel import Duel, arguments

_LIST = 512
_TAKE = 1024
_CALLS = 256
"""One call per message: calls between two looks at the clock; the last sends a stamped message."""


def endpoint(options: argparse.Namespace, number: int) -> str:
    """Where messages of the parent (0) or the child (1) go."""
    port = options.port + number
    if options.transport == "rmm":
        return f"rmm://239.192.{port >> 8 & 255}.{port & 255}:{port}?interface=127.0.0.1"
    if options.transport == "shm":
        return f"shm://bench-{port}"
    return f"{options.transport}://127.0.0.1:{port}"


def instance(options: argparse.Namespace) -> Instance:
    """An engine in the mode asked for, counting at level 0."""
    runs_itself = options.what == "throughput" and options.way != "views"
    mode: Literal["thread", "poll"] = options.mode or ("thread" if runs_itself else "poll")
    return Instance(name=f"bench-{os.getpid()}", mode=mode, level=0)


def _exchange(engine: Instance, out: str, back: str) -> tuple[Transmitter, Receiver]:
    receiver = engine.receiver(back, "BENCH")
    return engine.transmitter(out, "BENCH", linger=0.0), receiver


def ping(duel: Duel) -> dict[str, float]:
    """The parent of latency."""
    options, payload = duel.options, duel.payload
    with instance(options) as engine:
        transmitter, receiver = _exchange(engine, endpoint(options, 0), endpoint(options, 1))
        duel.wait_ready()
        send, receive = transmitter.send, receiver.receive_one

        def exchange() -> None:
            send(payload)
            while receive(0) is None:
                pass

        if options.transport != "shm":  # who connects has connected when the first answer is there
            for _ in range(100):
                send(payload)
                if receive(0.05) is not None:
                    break
            while receive(0.02) is not None:
                pass
        return duel.ping(exchange)


def echo(duel: Duel) -> None:
    """The child of latency."""
    options, payload = duel.options, duel.payload
    with instance(options) as engine:
        transmitter, receiver = _exchange(engine, endpoint(options, 1), endpoint(options, 0))
        send, receive = transmitter.send, receiver.receive_one
        duel.board.ready = 1
        while True:
            if receive(0) is not None:
                send(payload)


def pour(duel: Duel) -> dict[str, float]:
    """The parent of throughput."""
    options, payload = duel.options, duel.payload
    with (
        instance(options) as engine,
        engine.transmitter(endpoint(options, 0), "BENCH", linger=0.0, acks=1, send_window=2048) as transmitter,
    ):
        duel.wait_ready()
        if options.way == "list":
            messages = [payload] * _LIST

            def send_list() -> None:
                messages[-1] = duel.stamp()
                transmitter.send_many(messages)

            return duel.pour(send_list)
        if options.way == "views":
            packed, size = bytearray(payload * _LIST), len(payload)

            def send_packed() -> None:
                packed[-size:] = duel.stamp()
                transmitter.send_packed(packed, size)

            return duel.pour(send_packed)
        send = transmitter.send

        def send_some() -> None:
            for _ in range(_CALLS - 1):
                send(payload)
            send(duel.stamp())

        return duel.pour(send_some)


def count(duel: Duel) -> None:
    """The child of throughput."""
    options, board = duel.options, duel.board
    with instance(options) as engine, engine.receiver(endpoint(options, 0), "BENCH", ack="auto") as receiver:
        take = _taker(duel, receiver, options.way)
        board.ready = 1
        while True:
            board.received += take()
            for loss in receiver.losses():
                board.lost += loss.count


def _taker(duel: Duel, receiver: Receiver, way: str) -> Callable[[], int]:
    """Takes some messages and returns their number. Stamped messages are where they are expected; after a loss the
    next one is looked for."""
    if way == "call":
        following = receiver.__next__

        def take_calls() -> int:
            for _ in range(_CALLS - 1):
                following()
            taken = _CALLS
            while not duel.arrived(bytes(following())):
                taken += 1
            return taken

        return take_calls
    if way == "list":
        place = _LIST - 1  # of the next stamped message, counted from the next message

        def take_list() -> int:
            nonlocal place
            messages = receiver.receive_bytes(0.01, _TAKE)
            while place < len(messages):
                place += _LIST if duel.arrived(messages[place]) else 1
            place -= len(messages)
            return len(messages)

        return take_list

    def take_batch() -> int:
        batch = receiver.receive_batch(0.01)
        if len(batch) > 0:
            rows = batch.matrix("u1")
            if rows[:, 0].any():  # each message is looked at
                duel.arrived(rows[rows[:, 0].argmax()].tobytes())
        return len(batch)

    return take_batch


def main() -> int:
    """Read the command line and run."""
    parser = arguments(__doc__ or "", ("latency", "throughput"))
    parser.add_argument("--transport", choices=("rmm", "rmm+unicast", "rum", "shm"), default="rmm")
    parser.add_argument("--way", choices=("call", "list", "views"), default="call")
    parser.add_argument("--mode", choices=("poll", "thread"))
    duel = Duel(parser.parse_args())
    return duel.run(ping, echo) if duel.options.what == "latency" else duel.run(pour, count)


if __name__ == "__main__":
    sys.exit(main())
