"""A loop that does something at fixed moments until it is told to stop."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

__all__ = ["stopping", "tick"]


def stopping(seconds: float | None = None) -> threading.Event:
    """An event that Ctrl-C and SIGTERM set, and the end of a time if one is given, so that a command ends orderly."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    if seconds is not None:
        timer = threading.Timer(seconds, stop.set)
        timer.daemon = True
        timer.start()
    return stop


def tick(
    step: Callable[[], object],
    interval: float,
    stop: threading.Event,
    late: Callable[[int], object] = lambda count: None,
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Do `step` now and then every `interval` seconds until `stop`.

    Args:
        step: What to do.
        interval: Seconds between the moments. One that comes late does not move the following ones.
        stop: Ends it.
        late: Told how many moments passed while a step took too long; they are left out.
        monotonic: Clock, seconds.
    """
    due = monotonic()
    while not stop.is_set():
        step()
        due += interval
        behind = monotonic() - due
        if behind >= 0:
            missed = int(behind // interval) + 1
            due += missed * interval
            late(missed)
        stop.wait(max(0.0, due - monotonic()))
