"""A loop that runs a function at fixed moments until it is stopped."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

__all__ = ["stopping", "tick"]


def stopping(seconds: float | None = None) -> threading.Event:
    """Return an event that Ctrl-C, SIGTERM or the end of `seconds` sets, so that a command can end in order."""
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
    """Call `step` at once and then every `interval` seconds until `stop` is set.

    Args:
        step: The function to call.
        interval: Seconds between two calls. A late call does not delay the following ones.
        stop: Ends the loop.
        late: Called with the number of moments that passed during a slow step; they are skipped.
        monotonic: Clock in seconds.
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
