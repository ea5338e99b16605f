"""The host of each instance over an interval: the longest time that it stood still, and steps of its wall clock.

A thread that only sleeps measures how much later than planned it wakes up (`host_hiccup`). The longest delay is the
time for which the host, or somebody who stopped the process, did not let it run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heliograph.monitor.joining import Interval, value_of
from heliograph.monitor.latency import highest_of
from heliograph.monitor.model import Histogram, Snapshot
from heliograph.monitor.sparse import changed

__all__ = ["HostRow", "hosts"]

_HICCUP = "host_hiccup"


@dataclass(frozen=True, slots=True)
class HostRow:
    """The host of one instance over an interval."""

    instance: str
    host: str
    """Its name; empty: unknown."""
    hiccup_ns: int | None
    """Longest hiccup, ns; the end of the range of the histogram stands for longer ones. None: none was measured."""
    steps: int
    """Steps of the wall clock."""
    stepped_ns: int
    """Their sum, ns, by the events in reach; above 0: forward."""


def hosts(previous: Snapshot | None, current: Snapshot) -> list[HostRow]:
    """Return the host of each instance that both snapshots have, by instance."""
    interval = Interval(previous, current)
    stepped: dict[str, int] = {}
    for event in current.events:
        if event.name == "clock_stepped":
            by = event.arguments.get("by", 0)
            stepped[event.instance] = stepped.get(event.instance, 0) + (by if event.arguments.get("forward") else -by)
    found = [
        (owner.name, item, older)
        for owner, item in interval.now.of("instance")
        if (older := interval.earlier(owner, item)) is not None
    ]
    longest = _longest([(item.histograms.get(_HICCUP), older.histograms.get(_HICCUP)) for _, item, older in found])
    rows = [
        HostRow(
            instance=name,
            host=item.info.get("host", ""),
            hiccup_ns=longest.get(n),
            steps=max(0, value_of(item, "clock_steps") - value_of(older, "clock_steps")),
            stepped_ns=stepped.get(name, 0),
        )
        for n, (name, item, older) in enumerate(found)
    ]
    return sorted(rows, key=lambda row: row.instance)


def _longest(ends: Sequence[tuple[Histogram | None, Histogram | None]]) -> dict[int, int]:
    """Return the highest value of each interval by its index; those without values are absent.

    Args:
        ends: Histogram at the end and at the start of each interval; None: not read.
    """
    longest: dict[int, int] = {}
    cells: defaultdict[tuple[int, int, int], dict[int, int]] = defaultdict(dict)
    for n, (newer, older) in enumerate(ends):
        if newer is None or (older is not None and older.size != newer.size):
            continue
        if newer.above > (older.above if older is not None else 0):
            longest[n] = newer.highest
            continue
        filled, _ = newer.filled() if older is None else changed(older.filled(), newer.filled())
        if filled.size:
            cells[newer.digits, newer.lowest, newer.highest][n] = int(filled[-1])
    for layout, last in cells.items():  # values of all cells of a layout at once
        longest.update(zip(last, highest_of(np.array(list(last.values())), *layout).tolist(), strict=True))
    return longest
