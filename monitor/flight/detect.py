"""Finds the most unusual stretch of a recording.

The load (messages sent and received) is counted in windows of 20 ms, every 10 ms. The usual load is the median of all
windows. The spread is the median absolute deviation scaled to a standard deviation, at least the square root of the
median, which is the spread of random arrivals. The window with the greatest robust z-score (distance from the usual in
spreads) is the most unusual. Medians are used because a burst must not shift its own reference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heliograph.monitor.flight.curves import counted
from heliograph.monitor.flight.reader import Recording, Series

__all__ = ["MAD_TO_DEVIATION", "NOTABLE", "Stretch", "unusual"]

WINDOW_SECONDS = 0.02
NOTABLE = 8.0
"""z-scores above this are reported; random arrivals do not reach it within an hour."""

MAD_TO_DEVIATION = 1.4826
_WINDOWS_LEAST = 10
_WINDOWS_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Stretch:
    """The most unusual stretch."""

    start: float
    """Seconds since the first tick."""
    end: float
    rate: float
    """Messages per second in its most unusual window, sent and received."""
    usual: float
    """Messages per second in the median window."""
    score: float
    """Distance from the usual load in spreads; negative if the load was too low."""

    @property
    def is_notable(self) -> bool:
        """Whether chance cannot explain it."""
        return abs(self.score) >= NOTABLE


def _total(recording: Recording) -> Series:
    return np.cumsum(counted(recording, "instance", ("messages_sent", "messages_received")))


def unusual(recording: Recording, window: float = WINDOW_SECONDS) -> Stretch | None:
    """The most unusual stretch; None if the recording is too short or shows no traffic."""
    times, total = recording.times, _total(recording)
    if len(times) < _WINDOWS_LEAST or total[-1] <= 0:
        return None
    window = max(window, 2 * float(np.median(np.diff(times))))
    step = max(window / 2, recording.seconds / _WINDOWS_MOST)
    starts = np.arange(0.0, recording.seconds - window, step)
    if len(starts) < _WINDOWS_LEAST:
        return None
    loads = np.interp(starts + window, times, total) - np.interp(starts, times, total)
    usual = float(np.median(loads))
    spread = max(MAD_TO_DEVIATION * float(np.median(np.abs(loads - usual))), usual**0.5, 1.0)
    scores = (loads - usual) / spread
    peak = int(np.argmax(np.abs(scores)))
    first = last = peak
    threshold = scores[peak] / 2
    while first > 0 and scores[first - 1] / threshold >= 1:
        first -= 1
    while last < len(scores) - 1 and scores[last + 1] / threshold >= 1:
        last += 1
    # Windows overlap: windows of at least half the height extend half a window beyond the edges.
    start, end = float(starts[first]), float(starts[last]) + window
    if last > first:
        start, end = start + window / 4, end - window / 4
    return Stretch(start, end, float(loads[peak]) / window, usual / window, float(scores[peak]))
