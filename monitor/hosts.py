"""The host of each instance over an interval: the longest time that it stood still, and steps of its wall clock.

A thread that only sleeps measures how much later than planned it wakes up (`host_hiccup`). The longest delay is the
time for which the host, or somebody who stopped the process, did not let it run.
"""

from __future__ import annotations

from dataclasses import dataclass

from heliograph.monitor.bulk import summaries_since
from heliograph.monitor.joining import Interval, value_of
from heliograph.monitor.model import Histogram, InstanceState, ObjectState, Snapshot

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
    found: list[tuple[InstanceState, ObjectState, ObjectState]] = []
    for owner, item in interval.now.of("instance"):
        if (older := interval.earlier(owner, item)) is not None:
            found.append((owner, item, older))
    hiccups = _hiccups(found)
    stepped: dict[str, int] = {}
    for event in current.events:
        if event.name == "clock_stepped":
            by = event.arguments.get("by", 0)
            stepped[event.instance] = stepped.get(event.instance, 0) + (by if event.arguments.get("forward") else -by)
    rows = [
        HostRow(
            instance=owner.name,
            host=item.info.get("host", ""),
            hiccup_ns=hiccups.get(n),
            steps=max(0, value_of(item, "clock_steps") - value_of(older, "clock_steps")),
            stepped_ns=stepped.get(owner.name, 0),
        )
        for n, (owner, item, older) in enumerate(found)
    ]
    return sorted(rows, key=lambda row: row.instance)


def _hiccups(found: list[tuple[InstanceState, ObjectState, ObjectState]]) -> dict[int, int]:
    """Return the longest hiccup of each object that has one, by its index."""
    ends: dict[int, tuple[Histogram, Histogram | None]] = {
        n: (newer, older.histograms.get(_HICCUP))
        for n, (_, item, older) in enumerate(found)
        if (newer := item.histograms.get(_HICCUP)) is not None
    }
    places = list(ends)
    longest: dict[int, int] = {}
    pairs = list(ends.values())
    for index, summary in summaries_since([newer for newer, _ in pairs], [older for _, older in pairs], ()):
        newer, older = pairs[index]
        if newer.above > (older.above if older is not None else 0):
            longest[places[index]] = newer.highest
        elif summary is not None:
            longest[places[index]] = summary.maximum
    return longest
