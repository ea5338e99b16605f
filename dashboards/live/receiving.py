"""The data of each receiving instance for one interval: position, lag, queue, latency by stage, loss locations.

Pure functions from two snapshots and their rows. Sequence numbers count packets of a stream. Stages are means, because
means of stages add up and percentiles do not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from heliograph.monitor.fleet import ReceiverRow
from heliograph.monitor.groups import groups_of
from heliograph.monitor.joining import Interval, value_of
from heliograph.monitor.latency import mean
from heliograph.monitor.localise import locate
from heliograph.monitor.model import Histogram, InstanceState, ObjectState, Snapshot
from heliograph.monitor.sources import ReceiverOfStream
from heliograph.monitor.waiting import REST

__all__ = ["REST", "STAGES", "STAGE_HISTOGRAMS", "Position", "Receiving", "receiving"]

_AT_SENDER = {"batch": "batch_latency", "pace": "pace_latency"}
_AT_RECEIVER = {"network": "network_latency", "socket": "socket_latency", "order": "order_latency"}
_WHOLE = "total_latency"

STAGE_HISTOGRAMS = frozenset({*_AT_SENDER.values(), *_AT_RECEIVER.values()})
"""Histograms that a snapshot needs for the stages."""
STAGES: Mapping[str, str] = {
    "batch": "the sender fills a packet",
    "pace": "the sender waits for the rate, a window, credit or room",
    "network": "between the hosts, without recovered packets",
    "socket": "in the socket of the receiving host",
    "order": "for earlier packets, recovery included",
    REST: "in stages that are not measured at this level of detail",
}
"""Parts of a latency in order, and their descriptions."""


@dataclass(frozen=True, slots=True)
class Position:
    """Position of a receiver in one stream, in sequence numbers."""

    newest: int
    """Newest packet sent; without its sender, the newest that the receiver knows."""
    oldest: int | None
    """Oldest packet in the history; None: the sender is out of reach."""
    needed: int
    """Oldest packet that the receiver has not passed on."""
    reported: int | None = None
    """Packets behind, by the last report to the source; None: no report in reach."""

    @property
    def behind(self) -> int:
        """Packets sent and not passed on."""
        return max(0, self.newest + 1 - self.needed)

    @property
    def depth(self) -> int | None:
        """Packets in the history."""
        return None if self.oldest is None else max(0, self.newest + 1 - self.oldest)

    @property
    def margin(self) -> int | None:
        """Packets that can leave the history before the receiver loses one; below 0: it has lost packets."""
        return None if self.oldest is None else self.needed - self.oldest


@dataclass(frozen=True, slots=True)
class Receiving:
    """One receiving instance in one interval."""

    lag_seconds: float | None = None
    """Largest lag of its topics; None: unknown."""
    queue_fill: float = 0.0
    """Fill of its fullest queue, 0 to 1."""
    positions: Mapping[str, Position] = field(default_factory=dict)
    """By stream."""
    stages: Mapping[str, float] = field(default_factory=dict)
    """Mean time in ns by stage (see STAGES), over all topics; empty: not measured."""
    located: Mapping[str, int] = field(default_factory=dict)
    """Packets missing at first, by loss location."""


def receiving(
    older: Snapshot, newer: Snapshot, rows: Sequence[ReceiverRow], known: Sequence[ReceiverOfStream]
) -> dict[str, Receiving]:
    """Return the data of each receiving instance by name.

    Args:
        older: Start of the interval.
        newer: End of the interval.
        rows: Receivers of this interval.
        known: Receivers as their sources see them at its end.
    """
    interval = Interval(older, newer)
    positions = _positions(interval, known)
    stages = _stages(interval)
    located = _located(older, newer)
    groups = groups_of(rows, "instance")
    largest = zip(groups.names, groups.lags, groups.fills, strict=True)
    return {
        name: Receiving(lag, fill, positions.get(name, {}), stages.get(name, {}), located.get(name, {}))
        for (name,), lag, fill in largest
    }


def _positions(interval: Interval, known: Iterable[ReceiverOfStream]) -> dict[str, dict[str, Position]]:
    reports = {(row.name, row.stream): row.lag for row in known if row.name}
    found: defaultdict[str, dict[str, Position]] = defaultdict(dict)
    for owner, item in interval.now.snapshot.of("rx_stream"):
        if not item.live:
            continue
        stream = item.labels["stream"]
        sender = interval.now.stream_senders.get(stream)
        needed = value_of(item, "window_trail")
        newest = max(needed - 1, value_of(item, "window_lead"), value_of(sender[1], "window_lead") if sender else 0)
        oldest = value_of(sender[1], "window_trail") if sender else None
        found[owner.name][stream] = Position(newest, oldest, needed, reports.get((owner.name, stream)))
    return found


def _located(older: Snapshot, newer: Snapshot) -> dict[str, dict[str, int]]:
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in locate(older, newer):
        own = found[row.instance]
        for place, count in row.verdict.places.items():
            own[place] = own.get(place, 0) + count
    return found


@dataclass(slots=True)
class _Mean:
    """A weighted mean."""

    total: float = 0.0
    count: int = 0

    def add(self, histogram: Histogram | None) -> None:
        if histogram is not None:
            self.total += mean(histogram) * histogram.count
            self.count += histogram.count


def _values(interval: Interval, end: tuple[InstanceState, ObjectState] | None, name: str) -> Histogram | None:
    """Return the values of the interval; None when one of its ends was not read."""
    if end is None:
        return None
    owner, item = end
    older = interval.earlier(owner, item)
    return interval.histogram(owner, item, name) if older is not None and name in older.histograms else None


def _stages(interval: Interval) -> dict[str, dict[str, float]]:
    found: defaultdict[str, defaultdict[str, _Mean]] = defaultdict(lambda: defaultdict(_Mean))
    sent: dict[tuple[str, str], list[tuple[str, Histogram | None]]] = {}
    for owner, item in interval.now.snapshot.of("receiver"):
        if not item.histograms or not STAGE_HISTOGRAMS & item.histograms.keys():
            continue
        own = found[owner.name]
        for stage, name in (*_AT_RECEIVER.items(), (_WHOLE, _WHOLE)):
            own[stage].add(_values(interval, (owner, item), name))
        place = (item.labels["stream"], item.labels["topic"])
        if place not in sent:
            sender = interval.sender(*place)
            sent[place] = [(stage, _values(interval, sender, name)) for stage, name in _AT_SENDER.items()]
        for stage, histogram in sent[place]:
            own[stage].add(histogram)
    return {name: _divided(parts) for name, parts in found.items()}


def _divided(parts: Mapping[str, _Mean]) -> dict[str, float]:
    means = {stage: item.total / item.count for stage, item in parts.items() if item.count}
    whole = means.pop(_WHOLE, None)
    if whole is None or not means:
        return {}
    return {stage: means[stage] for stage in STAGES if stage in means} | {REST: max(0.0, whole - sum(means.values()))}
