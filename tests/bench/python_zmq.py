"""pyzmq over tcp, one message per call: PAIR for latency (spinning), PUSH and PULL for throughput.

python_zmq.py latency|throughput
"""

from __future__ import annotations

import sys
from pathlib import Path

if __package__ in (None, ""):  # started as a program
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

try:
    import zmq
except ImportError:
    sys.exit("pyzmq is not installed")

from tests.bench.python_duel import Duel, arguments

_CALLS = 256
_HIGH_WATER = 100000


def _socket(duel: Duel, kind: int, binds: bool) -> zmq.Socket[bytes]:
    socket: zmq.Socket[bytes] = zmq.Context().socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.SNDHWM, _HIGH_WATER)
    socket.setsockopt(zmq.RCVHWM, _HIGH_WATER)
    address = f"tcp://127.0.0.1:{duel.options.port}"
    if binds:
        socket.bind(address)
    else:
        socket.connect(address)
    return socket


def _spin(socket: zmq.Socket[bytes]) -> None:
    while True:
        try:
            socket.recv(zmq.DONTWAIT)
            return
        except zmq.Again:
            pass


def ping(duel: Duel) -> dict[str, float]:
    """The parent of latency."""
    duel.wait_ready()
    socket, payload = _socket(duel, zmq.PAIR, False), duel.payload

    def exchange() -> None:
        socket.send(payload)
        _spin(socket)

    return duel.ping(exchange)


def echo(duel: Duel) -> None:
    """The child of latency."""
    socket, payload = _socket(duel, zmq.PAIR, True), duel.payload
    duel.board.ready = 1
    while True:
        _spin(socket)
        socket.send(payload)


def pour(duel: Duel) -> dict[str, float]:
    """The parent of throughput."""
    duel.wait_ready()
    send, payload = _socket(duel, zmq.PUSH, False).send, duel.payload

    def send_some() -> None:
        for _ in range(_CALLS - 1):
            send(payload)
        send(duel.stamp())

    return duel.pour(send_some)


def count(duel: Duel) -> None:
    """The child of throughput."""
    receive, board = _socket(duel, zmq.PULL, True).recv, duel.board
    board.ready = 1
    while True:
        for _ in range(_CALLS - 1):
            receive()
        duel.arrived(receive())
        board.received += _CALLS


def main() -> int:
    """Read the command line and run."""
    duel = Duel(arguments(__doc__ or "", ("latency", "throughput")).parse_args())
    return duel.run(ping, echo) if duel.options.what == "latency" else duel.run(pour, count)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    import os

    os._exit(status)  # its queue may be full: nothing waits for it
