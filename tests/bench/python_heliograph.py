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
_CALLS = 64
"""One call per message: calls between two looks at the clock."""


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
            return duel.pour(lambda: transmitter.send_many(messages))
        if options.way == "views":
            packed, size = payload * _LIST, len(payload)
            return duel.pour(lambda: transmitter.send_packed(packed, size))
        send = transmitter.send

        def send_some() -> None:
            for _ in range(_CALLS):
                send(payload)

        return duel.pour(send_some)


def count(duel: Duel) -> None:
    """The child of throughput."""
    options, board = duel.options, duel.board
    with instance(options) as engine, engine.receiver(endpoint(options, 0), "BENCH", ack="auto") as receiver:
        take = _taker(receiver, options.way)
        board.ready = 1
        while True:
            board.received += take()
            for loss in receiver.losses():
                board.lost += loss.count


def _taker(receiver: Receiver, way: str) -> Callable[[], int]:
    """Takes some messages and tells how many."""
    if way == "call":
        following = receiver.__next__

        def take_calls() -> int:
            for _ in range(_CALLS):
                following()
            return _CALLS

        return take_calls
    if way == "list":
        return lambda: len(receiver.receive_bytes(0.01, _TAKE))

    def take_batch() -> int:
        batch = receiver.receive_batch(0.01)
        if len(batch) > 0:
            batch.matrix("u1")[:, 0].any()  # each message is looked at
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
