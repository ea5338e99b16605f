"""The data of the charts for one interval: a `Point` from two snapshots. Pure functions without state.

Rates are per second, latencies in nanoseconds. Latency is grouped: all, each topic, each receiving instance. The
percentiles of a group come from the merged counts of its receivers; percentiles are never averaged. The counts stay
with the point in sparse form, so that a longer window is the sum of its points.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from heliograph.monitor.latency import grew, percentiles
from heliograph.monitor.latency import merged as all_of
from heliograph.monitor.model import Histogram, Snapshot
from heliograph.monitor.rates import rates_between

__all__ = ["EVERYTHING", "QUANTILES", "Cells", "Group", "Point", "merged", "point"]

Group = str
"""``all``, ``topic:NAME`` or ``receiver:INSTANCE``."""

EVERYTHING: Group = "all"
QUANTILES: Mapping[str, float] = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}

_PER_TOPIC = {("receiver", "messages_delivered"): "delivered", ("transmitter", "messages_sent"): "sent"}
_PER_RECEIVER = {
    ("rx_stream", "naks_sent"): "naks",
    ("rx_stream", "packets_missed"): "missed",
    ("rx_stream", "packets_recovered"): "recovered",
}
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

    def without_cells(self) -> Point:
        """Return the point without histogram cells, to keep it for a long time."""
        return replace(self, cells={})


def point(older: Snapshot, newer: Snapshot) -> Point | None:
    """Return the interval between two snapshots; None when no time passed."""
    seconds = (newer.time_ns - older.time_ns) / 1e9
    if seconds <= 0:
        return None
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for rate in rates_between(older, newer):
        if name := _PER_TOPIC.get((rate.scope, rate.cell)):
            sums[name][rate.labels["topic"]] += rate.per_second
            if name == "delivered":
                sums["listeners"][rate.labels["topic"]] += 1
                sums["by_receiver"][rate.labels["instance"]] += rate.per_second
        elif name := _PER_RECEIVER.get((rate.scope, rate.cell)):
            sums[name][rate.labels["instance"]] += rate.per_second
        elif rate.scope == "rx_stream" and rate.cell.startswith(_LOST):
            sums["lost"][rate.labels["instance"]] += rate.per_second
    groups = _latency(older, newer)
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
    )


def merged(points: Iterable[Point], group: Group) -> Histogram | None:
    """Merge all values of a group over some points; None when there are none."""
    total: npt.NDArray[np.uint64] | None = None
    like: Histogram | None = None
    for item in points:
        if (cells := item.cells.get(group)) is not None:
            if total is None or like is None:
                like, total = cells.like, np.zeros_like(cells.like.counts)
            if cells.like.counts.size == total.size:
                total[cells.index] += cells.counts
    return None if total is None or like is None else replace(like, counts=total)


def _latency(older: Snapshot, newer: Snapshot) -> dict[Group, Histogram]:
    """Merge the values recorded between the snapshots by group; groups without values are left out."""
    before = {
        (instance.incarnation, item.key): item.histograms.get("total_latency")
        for instance, item in older.of("receiver")
    }
    found: defaultdict[Group, list[Histogram]] = defaultdict(list)
    for instance, item in newer.of("receiver"):
        now = item.histograms.get("total_latency")
        place = (instance.incarnation, item.key)
        if now is None or place not in before:
            continue
        interval = _interval(now, before[place])
        if interval is None:
            continue
        for group in (EVERYTHING, f"topic:{item.labels['topic']}", f"receiver:{instance.name}"):
            if _alike(parts := found[group], interval):
                parts.append(interval)
    return {group: whole for group, parts in found.items() if (whole := all_of(parts)) is not None}


def _alike(parts: Sequence[Histogram], other: Histogram) -> bool:
    """Whether a histogram has the layout of the others."""
    return not parts or (parts[0].digits, parts[0].lowest, parts[0].highest) == (
        other.digits,
        other.lowest,
        other.highest,
    )


def _interval(now: Histogram, older: Histogram | None) -> Histogram | None:
    """Return the values since `older`; None when there are none, or when counts fell, an engine fault."""
    if older is not None and (older.size != now.size or not grew(now, older)):
        return None
    interval = now.minus(older)
    return interval if interval.filled()[0].size else None


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
