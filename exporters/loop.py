"""The loop: takes a snapshot at fixed moments and offers it to every lane.

Moments are `start + n * interval`, so that the duration of a round adds no delay. A moment that passes during a round
is skipped and counted. Clock and wait are arguments.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Snapshot
from heliograph.monitor.modules.feed import Feed
from heliograph.monitor.modules.lane import Lane
from heliograph.monitor.text import printable

__all__ = ["ExportLoop"]


class ExportLoop:
    """Feeds lanes until it is stopped."""

    def __init__(
        self,
        sample: Callable[[], Snapshot],
        lanes: Sequence[Lane],
        interval: float,
        wait: Callable[[float], bool],
        *,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[str], None] = lambda text: print(printable(text), file=sys.stderr, flush=True),
    ) -> None:
        """Create the loop.

        Args:
            sample: Takes a snapshot.
            lanes: Receive the snapshots; the loop closes them at the end.
            interval: Seconds between two snapshots, above 0.
            wait: Waits a number of seconds or until the stop; returns whether to stop.
            clock: Monotonic seconds.
            tell: Receives messages for the user.
        """
        self._sample = sample
        self._lanes = tuple(lanes)
        self._interval = interval
        self._clock = clock
        self._wait = wait
        self._tell = tell
        self._trouble = ""
        self._feed = Feed()
        self.moments_missed = 0

    def run(self) -> None:
        """Feed the lanes until stopped, then take a last snapshot and close all lanes."""
        try:
            due = self._clock()
            while True:
                self.round()
                due += self._interval
                behind = self._clock() - due
                if behind > 0:
                    missed = int(behind // self._interval) + 1
                    self.moments_missed += missed
                    due += missed * self._interval
                if self._wait(max(0.0, due - self._clock())):
                    break
            self.round()
        finally:
            self.close()

    def round(self) -> None:
        """Offer one snapshot to every lane. A read failure is reported once and retried at the next moment."""
        try:
            snapshot = self._sample()
        except Exception as error:
            text = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            if text != self._trouble:
                self._tell(f"reading the statistics failed: {text}")
            self._trouble = text
            return
        self._trouble = ""
        self._feed.give(snapshot, self._lanes)

    def close(self) -> None:
        """Close every lane, also when some fail."""
        for lane in self._lanes:
            lane.close()
