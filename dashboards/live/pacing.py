"""How often the store samples, and which samples read the latencies of receivers.

A sample costs processor time, and samples together take at most `MOST_SHARE` of a core. While that permits a whole
sample at each wished interval, all samples are whole. In a larger fleet most of a whole sample goes into the histograms
of its receivers. Most samples are then *light*: they read counters and states, which tell that something is wrong, and
every n-th one is whole.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

__all__ = ["MOST_SHARE", "Pace", "Plan"]

MOST_SHARE = 0.15
"""Share of a core that samples may take: the interval of a large fleet grows until it holds."""
_FOR_LIGHT = 2 / 3
"""Part of that share for light samples."""
_CHEAPER = 2.0
"""A light sample is worth taking if a whole one costs this many times as much."""
_TRIED_AGAIN = 20
"""Whole samples in a row after which the cost of a light one counts as unknown: the fleet may have changed."""
_NOISE = 2
"""Samples of a kind whose cheapest counts: one expensive sample does not."""


@dataclass(frozen=True, slots=True)
class Plan:
    """When the next samples come."""

    interval: float
    """Seconds between samples."""
    every: int = 1
    """Number of samples of which one is whole; 1: all are."""
    cost: float = 0.0
    """Seconds of processor time of a whole sample, where the interval of whole samples is longer because of them."""

    @property
    def whole_interval(self) -> float:
        """Seconds between whole samples."""
        return round(self.interval * self.every, 1) if self.every > 1 else self.interval


class Pace:
    """Learns what samples cost. For one thread."""

    def __init__(self, interval: float) -> None:
        """Create it without costs.

        Args:
            interval: Wished seconds between samples.
        """
        self._interval = interval
        self._whole: deque[float] = deque(maxlen=_NOISE)
        self._light: deque[float] = deque(maxlen=_NOISE)
        self._lights = 0
        """Light samples since the last whole one."""
        self._wholes = 0
        """Whole samples since the last light one."""

    def add(self, cost: float, *, is_light: bool) -> None:
        """Take the cost of a sample, seconds of processor time."""
        if is_light:
            self._light.append(cost)
            self._lights, self._wholes = self._lights + 1, 0
            return
        self._whole.append(cost)
        self._lights, self._wholes = 0, self._wholes + 1
        if self._wholes >= _TRIED_AGAIN:
            self._light.clear()

    def plan(self, *, is_watched: bool = True) -> Plan:
        """Return the plan for the costs so far.

        Args:
            is_watched: Whether somebody looks; otherwise all samples are whole.
        """
        whole = min(self._whole, default=0.0)
        needed = round(whole / MOST_SHARE, 1)
        if needed <= self._interval:
            return Plan(self._interval)
        if not is_watched:
            return Plan(needed, cost=whole)
        if not self._light:
            return Plan(needed, 2, whole)
        light = min(self._light)
        if _CHEAPER * light > whole:
            return Plan(needed, cost=whole)
        interval = max(self._interval, math.ceil(10 * light / (MOST_SHARE * _FOR_LIGHT)) / 10)
        left = MOST_SHARE * interval - light  # of the share in one interval, beside a light sample
        return Plan(interval, math.ceil((whole - light) / left), whole)

    def is_light_next(self, *, is_watched: bool = True) -> bool:
        """Return whether the next sample is light."""
        return self._lights + 1 < self.plan(is_watched=is_watched).every
