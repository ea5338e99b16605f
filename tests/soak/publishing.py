"""A source that never stops."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Self

from heliograph.engine import Error, TimeoutExpired, Transmitter

from .processes import Failed

__all__ = ["Publisher", "body"]

_LIST = 10
_SEND_SECONDS = 0.5


def body(number: int) -> bytes:
    """The payload of a message."""
    return b"%d" % number


class Publisher(threading.Thread):
    """Sends numbered messages at a rate until it is stopped. While acknowledgements are missing it waits."""

    def __init__(self, transmitter: Transmitter, rate: float) -> None:
        """Begin.

        Args:
            transmitter: Of a topic that nobody has sent to.
            rate: Messages per second.
        """
        super().__init__(daemon=True)
        self.transmitter, self.sent = transmitter, 0
        self._pause = _LIST / rate
        self._ends = threading.Event()
        self._failure: Error | None = None
        self._acked: dict[str, int] = {}
        self.start()

    def run(self) -> None:
        """Send."""
        due = time.monotonic()
        try:
            while not self._ends.wait(max(0.0, due - time.monotonic())):
                due = max(due + self._pause, time.monotonic() - 1.0)
                for _ in range(_LIST):
                    self._send_one()
        except Error as error:
            self._failure = error

    def _send_one(self) -> None:
        while not self._ends.is_set():
            with contextlib.suppress(TimeoutExpired):
                self.transmitter.send(body(self.sent), timeout=_SEND_SECONDS)
                self.sent += 1
                return

    def check(self) -> None:
        """Raises:
        Failed: It could not send.
        """
        if self._failure:
            raise Failed(f"the source cannot send: {self._failure}")

    def acked(self, receivers: int) -> int:
        """Messages that this number of receivers has acknowledged: all with lesser numbers."""
        self.check()
        for ack in self.transmitter.acks():
            self._acked[ack.name] = ack.number + 1
        counts = sorted(self._acked.values(), reverse=True)
        return counts[receivers - 1] if len(counts) >= receivers else 0

    def stop(self) -> None:
        """Send nothing more."""
        self._ends.set()
        self.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
