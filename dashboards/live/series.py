"""The data of the charts for one interval: a `Point` from two snapshots. Pure functions without state.

Rates are per second, latencies in nanoseconds. Latency is grouped: all, each topic, each receiving instance. The
percentiles of a group come from the merged counts of its receivers; percentiles are never averaged. The counts stay
with the point in sparse form, so that a longer window is the sum of its points.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from heliograph.dashboards.live.keeping import Keeping
from heliograph.dashboards.live.receiving import Receiving
from heliograph.dashboards.live.sending import Sending
from heliograph.monitor.clocks import Clocks, clocks_of
from heliograph.monitor.fleet import receivers
from heliograph.monitor.hosts import HostRow
from heliograph.monitor.joined import Receivers
from heliograph.monitor.joining import Interval
from heliograph.monitor.latency import percentiles
from heliograph.monitor.model import Histogram, ObjectState, Snapshot
from heliograph.monitor.sparse import grown
from heliograph.monitor.sparse import merged as all_of

__all__ = [
    "EVERYTHING",
    "HISTOGRAMS",
    "HOST_HISTOGRAMS",
    "QUANTILES",
    "Cells",
    "Group",
    "Point",
    "Shift",
    "around",
    "merged",
    "point",
]

Group = str
"""``all``, ``topic:NAME`` or ``receiver:INSTANCE``."""

Shift = tuple[int, int]
"""Lowest and highest time in ns to add to a measured latency, from the offset of the clocks and its error bound."""

EVERYTHING: Group = "all"
_WHOLE, _RECOVERED = "total_latency", "total_latency_recovered"
HOST_HISTOGRAMS = frozenset({"host_hiccup"})
"""Histograms of the hosts; alerts compare latencies with them."""
HISTOGRAMS = HOST_HISTOGRAMS | {_WHOLE, _RECOVERED}
"""Histograms that a snapshot needs."""
QUANTILES: Mapping[str, float] = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}

_SENT = "messages_sent"
_PER_RECEIVER = {"naks_sent": "naks", "packets_missed": "missed", "packets_recovered": "recovered"}
"""Counters of a received stream, and the series that they make by receiving instance."""
_LOST = "packets_lost_"


@dataclass(frozen=True, slots=True)
class Cells:
    """The non-zero cells of an HDR histogram."""

    like: Histogram
    """An empty histogram with the same layout."""
    index: npt.NDArray[np.int32]
    counts: npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Point:
    """One interval."""

    time_ns: int
    """End of the interval, wall clock in ns."""
    seconds: float
    delivered: Mapping[str, float] = field(default_factory=dict)
    """Messages per second by topic, summed over its receivers."""
    by_receiver: Mapping[str, float] = field(default_factory=dict)
    """Messages delivered per second by receiving instance, summed over its topics."""
    listeners: Mapping[str, float] = field(default_factory=dict)
    """Number of receivers by topic."""
    sent: Mapping[str, float] = field(default_factory=dict)
    """Messages per second by topic."""
    naks: Mapping[str, float] = field(default_factory=dict)
    """Sequence numbers requested per second, by receiving instance."""
    missed: Mapping[str, float] = field(default_factory=dict)
    """Packets detected as missing per second, by receiving instance."""
    recovered: Mapping[str, float] = field(default_factory=dict)
    """Missing packets that were recovered per second, by receiving instance."""
    lost: Mapping[str, float] = field(default_factory=dict)
    """Packets lost per second, by receiving instance."""
    latency: Mapping[Group, Mapping[str, int]] = field(default_factory=dict)
    """Percentiles by name (see QUANTILES) in ns; a group without values in the interval is absent."""
    cells: Mapping[Group, Cells] = field(default_factory=dict)
    """The counts behind the percentiles."""
    recovered_cells: Mapping[Group, Cells] = field(default_factory=dict)
    """The part of the counts that belongs to recovered messages, as far as receivers record it."""
    recovered_count: Mapping[Group, int] = field(default_factory=dict)
    """Number of recovered messages among the counts, also where receivers do not record their latency."""
    shifts: Mapping[Group, Shift | None] = field(default_factory=dict)
    """Range over the receivers of the group; None: the clocks of one of them are not known."""
    receiving: Mapping[str, Receiving] = field(default_factory=dict)
    """Further data of each receiving instance, by name."""
    sending: Mapping[str, Sending] = field(default_factory=dict)
    """Data of each sent stream, by stream."""
    keeping: Mapping[str, Keeping] = field(default_factory=dict)
    """Data of each message store, by the name of its instance."""
    hosts: Mapping[str, HostRow] = field(default_factory=dict)
    """The host of each instance, by the name of the instance."""

    def without_cells(self) -> Point:
        """Return the point without histogram cells, to keep it for a long time."""
        return replace(self, cells={}, recovered_cells={}, recovered_count={}, shifts={})


def point(older: Snapshot, newer: Snapshot, rows: Receivers | None = None) -> Point | None:
    """Return the interval between two snapshots; None when no time passed.

    Args:
        older: Start of the interval.
        newer: End of the interval.
        rows: The receivers of this interval; None: they are joined here.
    """
    seconds = (newer.time_ns - older.time_ns) / 1e9
    if seconds <= 0:
        return None
    rows = rows if rows is not None else receivers(older, newer)
    sums = _sums(Interval(older, newer)) | _delivered(rows)
    groups = _latency(rows, _WHOLE)
    counts, shifts = _origins(rows, newer, groups)
    wanted = tuple(QUANTILES.values())
    return Point(
        time_ns=newer.time_ns,
        seconds=seconds,
        **{name: dict(values) for name, values in sums.items()},
        latency={
            group: dict(zip(QUANTILES, percentiles(histogram, wanted), strict=True))
            for group, histogram in groups.items()
        },
        cells={group: _sparse(histogram) for group, histogram in groups.items()},
        recovered_cells={group: _sparse(found) for group, found in _latency(rows, _RECOVERED).items()},
        recovered_count=counts,
        shifts=shifts,
        receiving={},
        keeping={},
        sending={},
        hosts={},
    )


def merged(points: Iterable[Point], group: Group, *, recovered: bool = False) -> Histogram | None:
    """Merge all values of a group over some points; None when there are none.

    Args:
        points: The points.
        group: The group.
        recovered: Only the values of recovered messages, as far as they are recorded.
    """
    found = [(item.recovered_cells if recovered else item.cells).get(group) for item in points]
    parts = [cells for cells in found if cells is not None]
    if not parts:
        return None
    like = parts[0].like
    parts = [cells for cells in parts if cells.like.counts.size == like.counts.size]
    total = np.zeros_like(like.counts)
    for cells in parts:
        total[cells.index] += cells.counts
    return replace(
        like,
        counts=total,
        above=sum(cells.like.above for cells in parts),
        negative=sum(cells.like.negative for cells in parts),
        total_ns=sum(cells.like.total_ns for cells in parts),
    )


def _groups(instance: str, topic: str) -> tuple[Group, Group, Group]:
    return EVERYTHING, f"topic:{topic}", f"receiver:{instance}"


def _sums(interval: Interval) -> dict[str, dict[str, float]]:
    """Return the rates of topics and of received streams; an object that is new, or whose instance is, has none."""
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))

    def add(name: str, key: str, old: ObjectState, item: ObjectState, cell: str) -> None:
        if cell in item.values and cell in old.values and (delta := item.values[cell] - old.values[cell]) >= 0:
            sums[name][key] += delta / interval.between

    for owner, item in interval.now.of("transmitter"):
        if (old := interval.earlier(owner, item)) is not None:
            add("sent", item.labels["topic"], old, item, _SENT)
    for owner, item in interval.now.of("rx_stream"):
        if (old := interval.earlier(owner, item)) is None:
            continue
        for cell in item.values:
            if (name := _PER_RECEIVER.get(cell, "lost" if cell.startswith(_LOST) else "")) != "":
                add(name, item.labels["instance"], old, item, cell)
    return sums


def _delivered(rows: Receivers) -> dict[str, dict[str, float]]:
    """Return the rates of delivery by topic and by instance, and the number of receivers of each topic."""
    known = rows.vector("is_new") == 0
    rates = rows.vector("delivered_per_s")[known]
    found: dict[str, dict[str, float]] = {"delivered": {}, "listeners": {}, "by_receiver": {}}

    def add(name: str, keys: Sequence[tuple[str, ...]], values: npt.NDArray[Any], counts: npt.NDArray[Any]) -> None:
        for key, value, count in zip(keys, values.tolist(), counts.tolist(), strict=True):
            if count:
                found[name][key[0]] = found[name].get(key[0], 0.0) + value

    for names, (keys, index) in (("by_receiver", rows.instances), ("delivered", rows.topics)):
        counts = np.bincount(index[known], minlength=len(keys))
        add(names, keys, np.bincount(index[known], rates, minlength=len(keys)), counts)
        if names == "delivered":
            add("listeners", keys, counts.astype(np.float64), counts)
    return found


def _latency(rows: Receivers, name: str) -> dict[Group, Histogram]:
    """Merge the values of a statistic in the interval by group; groups without values are left out."""
    found: defaultdict[Group, list[Histogram]] = defaultdict(list)
    for instance, item, old in rows.changes():
        now = item.histograms.get(name) if item.histograms else None
        if now is None or old is None:
            continue
        interval = grown(now, old.histograms.get(name))
        if interval is None or not interval.filled()[0].size:  # counts that fell are a fault of the engine
            continue
        for group in _groups(instance.name, item.labels["topic"]):
            if _alike(parts := found[group], interval):
                parts.append(interval)
    return {group: whole for group, parts in found.items() if (whole := all_of(parts)) is not None}


def _origins(
    rows: Receivers, newer: Snapshot, wanted: Collection[Group]
) -> tuple[dict[Group, int], dict[Group, Shift | None]]:
    """Return the number of recovered messages and the shift by the clocks, for each of the wanted groups."""
    counts = dict.fromkeys(wanted, 0)
    shifts: dict[Group, Shift | None] = {}
    if not wanted:
        return counts, shifts
    clocks = {
        (instance.incarnation, item.labels["stream"]): clocks_of(item) for instance, item in newer.of("rx_stream")
    }
    for instance, item, old in rows.changes():
        if old is None:
            continue
        shift = _shift(clocks.get((instance.incarnation, item.labels["stream"])))
        recovered = item.values.get("latency_recovered", 0) - old.values.get("latency_recovered", 0)
        for group in _groups(instance.name, item.labels["topic"]):
            if group in counts:
                counts[group] += recovered
                shifts[group] = around(shifts.get(group, shift), shift)
    return counts, shifts


def _shift(clocks: Clocks | None) -> Shift | None:
    if clocks is None or not clocks.is_known:
        return None
    return -clocks.offset_ns - clocks.bound_ns, clocks.bound_ns - clocks.offset_ns


def around(one: Shift | None, other: Shift | None) -> Shift | None:
    """Return the range that contains both; None when one is not known."""
    return None if one is None or other is None else (min(one[0], other[0]), max(one[1], other[1]))


def _alike(parts: Sequence[Histogram], other: Histogram) -> bool:
    """Whether a histogram has the layout of the others."""
    return not parts or (parts[0].digits, parts[0].lowest, parts[0].highest) == (
        other.digits,
        other.lowest,
        other.highest,
    )


def _sparse(histogram: Histogram) -> Cells:
    index, counts = histogram.filled()
    zeros = np.broadcast_to(np.uint64(0), (histogram.size,))
    empty = Histogram(
        zeros,
        histogram.lowest,
        histogram.highest,
        histogram.digits,
        histogram.above,
        histogram.negative,
        histogram.total_ns,
    )
    return Cells(empty, index.astype(np.int32), counts)
