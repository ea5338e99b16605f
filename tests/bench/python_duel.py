"""What the Python programs of the benchmarks share: as duel.h, two processes pinned one to a core and one JSON line.

The parent pings or pours on core 0, the child echoes or counts on core 1. The time begins when the first
message has arrived; its first fifth warms up.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeAlias

__all__ = ["Duel", "arguments"]

Open: TypeAlias = Callable[[bool], object]

_PR_SET_PDEATHSIG = 1
_READY_SECONDS = 10.0
_START_SECONDS = 5.0
"""For the first message to arrive."""
_MARK = 0xA5
"""The first byte of a sampled message; of no other."""
_SAMPLES = 1 << 16
_PERCENTILES = {"p50_ns": 0.5, "p99_ns": 0.99, "p999_ns": 0.999, "max_ns": 1.0}


class _Board(ctypes.Structure):
    _fields_ = (
        ("ready", ctypes.c_uint64),
        ("pad", ctypes.c_char * 120),
        ("received", ctypes.c_uint64),
        ("lost", ctypes.c_uint64),
        ("is_warm", ctypes.c_uint64),
        ("sampled", ctypes.c_uint64),
        ("samples", ctypes.c_uint64 * _SAMPLES),
    )


def arguments(description: str, whats: Sequence[str]) -> argparse.ArgumentParser:
    """A parser with the options every program takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("what", choices=whats)
    parser.add_argument("--size", type=int, default=64, help="bytes of a message (default 64)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of the run (default 1)")
    parser.add_argument("--port", type=int, default=17600, help="first of a few ports (default 17600)")
    return parser


def _pin(core: int) -> None:
    with contextlib.suppress(OSError):  # a machine of one core
        os.sched_setaffinity(0, {core})


class Duel:
    """Two processes and the board between them.

    Args:
        options: what `arguments` parsed.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.payload = bytes(options.size)
        self._memory = mmap.mmap(-1, ctypes.sizeof(_Board))
        self.board = _Board.from_buffer(self._memory)
        self.child = 0

    def run(self, parent: Callable[[Duel], dict[str, float]], child: Callable[[Duel], None]) -> int:
        """Play both parts, print the figures.

        Args:
            parent: measures and returns figures; the child is ready when it calls `wait_ready`.
            child: runs until it is killed.
        """
        self.child = os.fork()
        signal.alarm(int(1.2 * self.options.seconds) + 20)
        if self.child == 0:
            self._play_child(child)
        _pin(0)
        try:
            figures = parent(self)
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            return 1
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.child, 0)
        print(json.dumps({"what": self.options.what, "size": self.options.size, **figures}), flush=True)
        return 0

    def _play_child(self, child: Callable[[Duel], None]) -> NoReturn:
        status = 1
        try:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            _pin(1)
            child(self)
            status = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)

    def wait_ready(self) -> None:
        """Wait until the child set ``board.ready``.

        Raises:
            SystemExit: it died, or was not ready in time.
        """
        end = time.monotonic() + _READY_SECONDS
        while not self.board.ready:
            self.check_child()
            if time.monotonic() > end:
                raise SystemExit("the other process is not ready")
            time.sleep(0.001)

    def check_child(self) -> None:
        """Raises SystemExit when the child has died."""
        if os.waitpid(self.child, os.WNOHANG) != (0, 0):
            raise SystemExit("the other process has ended")

    def ping(self, exchange: Callable[[], object]) -> dict[str, float]:
        """Percentiles of half of each exchange, in ns."""
        clock = time.perf_counter_ns
        begin = clock()
        warm, end = begin + int(self.options.seconds * 2e8), begin + int(self.options.seconds * 1e9)
        samples: list[int] = []
        at = begin
        while at < end or not samples:
            sent = clock()
            exchange()
            at = clock()
            if sent > warm:
                samples.append(at - sent)
        figures = _percentiles([sample // 2 for sample in samples])
        return {**figures, "round_trip_p50_ns": 2 * figures["p50_ns"], "lost": 0}

    def stamp(self) -> bytes:
        """A message that carries the time it is handed over, for one in some hundreds."""
        return struct.pack("=Q", time.perf_counter_ns() << 8 | _MARK) + self.payload[8:]

    def arrived(self, message: bytes) -> bool:
        """Whether the message was one of `stamp`; records its age."""
        if message[0] != _MARK:
            return False
        board = self.board
        if board.is_warm:
            age = time.perf_counter_ns() - (struct.unpack_from("=Q", message)[0] >> 8)
            board.samples[board.sampled % _SAMPLES] = age
            board.sampled += 1
        return True

    def pour(self, send_some: Callable[[], object]) -> dict[str, float]:
        """Messages per second that arrived."""
        clock, board = time.perf_counter_ns, self.board
        start = time.monotonic()
        while not board.received and time.monotonic() - start < _START_SECONDS:
            send_some()
        begin = at = clock()
        warm, end = begin + int(self.options.seconds * 2e8), begin + int(self.options.seconds * 1e9)
        since = base = 0
        while at < end or (at < end + _START_SECONDS * 1e9 and board.received == base):
            send_some()
            at = clock()
            if not since and at >= warm:
                since, base = at, board.received
                board.is_warm = 1
        rate = (board.received - base) / ((at - since) / 1e9)
        if rate <= 0:
            raise SystemExit("nothing arrived")
        if not board.sampled:
            raise SystemExit("no sampled message arrived")
        return {
            **_percentiles(board.samples[: min(board.sampled, _SAMPLES)]),
            "messages_per_second": round(rate),
            "megabytes_per_second": round(rate * self.options.size / 1e6, 2),
            "lost": board.lost,
        }


def _percentiles(samples: list[int]) -> dict[str, float]:
    samples.sort()
    last = len(samples) - 1
    return {"count": len(samples), **{name: samples[int(last * share)] for name, share in _PERCENTILES.items()}}
