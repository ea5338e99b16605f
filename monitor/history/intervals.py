"""Cuts the growing histograms of snapshots into intervals, so that every value is in exactly one of them.

A series is one histogram of one object of one run of an instance. For each the recorder keeps the counts that earlier
intervals hold (`base`, encoded, a few kB) and the newest reading. Cutting gives the difference and moves the base.

- An object that was there when the recorder began starts from that reading: what it counted before belongs to no
  interval that was watched (and maybe to an earlier recording). With `backlog` it is one interval since its creation.
- An object, or a histogram of a known object, that appears later is taken from its first value on.
- An object that disappears is cut at its last reading. Its base is kept (for the last 20,000 series): when it comes
  back, because its segment was unreadable for a moment, nothing is counted twice.
- A wall clock that is set back ends the interval, which would otherwise last until the clock is there again.
- Counts that go backwards come from a damaged segment. They are never recorded; `backwards` counts the readings.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from heliograph.engine import catalogue
from heliograph.engine.catalogue import names
from heliograph.monitor import _hdr
from heliograph.monitor.history.schema import LatencyInterval
from heliograph.monitor.model import Histogram, InstanceState, ObjectState, Snapshot

__all__ = ["IntervalRecorder", "encoded", "new_source"]

_REMEMBER_SERIES = 20_000

Key = tuple[int, tuple[str, ...], str]


@dataclass(frozen=True, slots=True)
class _Base:
    """The counts of a series in earlier intervals."""

    body: bytes
    above: int
    negative: int
    total_ns: int


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where and how a series is measured; the newest reading counts for an interval."""

    host: str
    build: str
    level: str
    link: str = ""
    clock_error_ns: int = 0


def _origins(instance: InstanceState) -> Callable[[ObjectState], _Origin]:
    """Return the origin of the objects of an instance, by its own object and its received streams."""
    own = next(instance.of("instance"), None)
    info = own.info if own is not None else {}
    level = str(own.values.get("detail_level", "")) if own is not None else ""
    base = _Origin(info.get("host", ""), info.get("build") or info.get("version", ""), level)
    received = {
        item.labels.get("stream", ""): replace(
            base,
            link=item.info.get("source", "").rpartition(":")[0],
            clock_error_ns=item.values.get("clock_error_bound", 0),
        )
        for item in instance.of("rx_stream")
    }
    return lambda item: received.get(item.labels.get("stream", ""), base) if item.scope in _RECEIVED else base


_RECEIVED = frozenset({"receiver", "rx_stream"})


@dataclass(slots=True)
class _Series:
    instance: InstanceState
    item: ObjectState
    metric: str
    base: _Base | None
    """None: no interval yet."""
    since_ns: int
    """Start of the next interval, ns."""
    latest: Histogram | None
    """Newest reading since the last cut; None when there was none."""
    seen_ns: int
    origin: _Origin


def new_source() -> str:
    """Name of a new recording."""
    return secrets.token_hex(8)


def encoded(histogram: Histogram) -> bytes:
    """V2 body of its counts."""
    counts = np.ascontiguousarray(histogram.counts, dtype=np.uint64)
    return _hdr.encode(counts, histogram.digits, histogram.lowest, histogram.highest)


def _metrics() -> dict[tuple[str, str], str]:
    return {
        (scope.name, statistic.name): names.column(statistic)
        for scope in catalogue.scopes().values()
        for statistic in scope.statistics
        if statistic.kind == "histogram"
    }


class IntervalRecorder:
    """Turns snapshots into intervals. Times come with the snapshots; it reads no clock.

    Args:
        interval_ns: Length of an interval, at least; snapshots are the only moments it can end at.
        backlog: Record values counted before the first snapshot as one interval since the creation of their object.
        source: Name of the recording.
    """

    def __init__(self, interval_ns: int, *, backlog: bool = False, source: str | None = None) -> None:
        self.source = source or new_source()
        self.backwards = 0
        """Readings rejected because counts had fallen."""
        self._interval_ns = interval_ns
        self._backlog = backlog
        self._metrics = _metrics()
        self._series: dict[Key, _Series] = {}
        self._known: set[tuple[int, tuple[str, ...]]] = set()
        self._first_ns: int | None = None
        self._last_ns = 0
        self._cut_ns = 0
        self._seq = 0

    def update(self, snapshot: Snapshot) -> list[LatencyInterval]:
        """Take a snapshot; returns the intervals that are complete, often none."""
        now_ns = snapshot.time_ns
        if self._first_ns is None:
            self._first_ns = self._cut_ns = self._last_ns = now_ns
        went_back = now_ns < self._last_ns
        if went_back:
            self._first_ns = min(self._first_ns, now_ns)
        known = set()
        for instance in snapshot.instances:
            origin_of = _origins(instance)
            for item in instance.objects:
                known.add((instance.incarnation, item.key))
                origin = origin_of(item)
                for statistic, histogram in item.histograms.items():
                    self._read(instance, item, statistic, histogram, now_ns, origin)
        vanished = [series for series in self._series.values() if series.seen_ns != now_ns]
        rows = self._cut(vanished)
        self._known, self._last_ns = known, now_ns
        if went_back or now_ns - self._cut_ns >= self._interval_ns:
            rows += self.cut()
        self._forget(vanished)
        return rows

    def cut(self) -> list[LatencyInterval]:
        """End the interval now: everything read and not yet in an interval."""
        self._cut_ns = self._last_ns
        return self._cut(self._series.values())

    def _read(
        self,
        instance: InstanceState,
        item: ObjectState,
        statistic: str,
        histogram: Histogram,
        now_ns: int,
        origin: _Origin,
    ) -> None:
        key = (instance.incarnation, item.key, statistic)
        series = self._series.get(key)
        if series is not None:
            series.latest, series.seen_ns, series.origin = histogram, now_ns, origin
            return
        first_ns = now_ns if self._first_ns is None else self._first_ns
        turned_on = key[:2] in self._known
        watched = turned_on or item.created_ns >= first_ns or self._backlog
        begin_ns = self._last_ns if turned_on else item.created_ns
        self._series[key] = _Series(
            instance=instance,
            item=item,
            metric=self._metrics.get((item.scope, statistic), f"{item.scope}_{statistic}"),
            base=None if watched else _base(histogram),
            since_ns=begin_ns if watched else now_ns,
            latest=histogram if watched else None,
            seen_ns=now_ns,
            origin=origin,
        )

    def _cut(self, series: Iterable[_Series]) -> list[LatencyInterval]:
        return [row for one in series if (row := self._cut_one(one)) is not None]

    def _cut_one(self, series: _Series) -> LatencyInterval | None:
        newest, series.latest = series.latest, None
        if newest is None:
            return None
        delta = _difference(newest, series.base)
        if delta is None:
            self.backwards += 1
            return None
        since_ns, series.since_ns = series.since_ns, series.seen_ns
        dropped = max(0, delta.above) + max(0, delta.negative)
        n, low, high, middle_sum = _hdr.summary(delta.counts, delta.digits, delta.lowest, delta.highest)
        if n == 0 and dropped == 0:
            return None
        series.base = _base(newest)
        self._seq += 1
        return LatencyInterval(
            ts_ns=since_ns,
            len_ms=max(0, (series.seen_ns - since_ns + 500_000) // 1_000_000),
            instance=series.instance.name,
            topic=series.item.labels.get("topic", ""),
            stream=series.item.labels.get("stream", ""),
            metric=series.metric,
            tag="",
            host=series.origin.host,
            build=series.origin.build,
            link=series.origin.link,
            incarnation=f"{series.instance.incarnation:016x}",
            level=series.origin.level,
            digits=delta.digits,
            lowest=delta.lowest,
            highest=delta.highest,
            n=n,
            min=low,
            max=high,
            # The segment's sum may be a few values ahead of the cells; never more than they allow.
            sum=min(max(delta.total_ns, n * low), n * high) if delta.total_ns else int(middle_sum),
            dropped=dropped,
            clock_error_ns=series.origin.clock_error_ns,
            source=self.source,
            seq=self._seq - 1,
            h=encoded(delta),
        )

    def _forget(self, absent: list[_Series]) -> None:
        surplus = len(self._series) - _REMEMBER_SERIES
        if surplus <= 0 or not absent:
            return
        oldest = {id(one) for one in sorted(absent, key=lambda one: one.seen_ns)[:surplus]}
        self._series = {key: one for key, one in self._series.items() if id(one) not in oldest}


def _base(reading: Histogram) -> _Base:
    return _Base(encoded(reading), reading.above, reading.negative, reading.total_ns)


def _difference(newest: Histogram, base: _Base | None) -> Histogram | None:
    """Return the values of `newest` since `base`; None when it cannot follow `base`."""
    if base is None:
        return newest
    body, digits, lowest, highest = _hdr.decode(base.body)
    before = np.frombuffer(body, dtype=np.uint64)
    if (newest.digits, newest.lowest, newest.highest) != (digits, lowest, highest):
        return None
    if bool((newest.counts < before).any()):
        return None
    older = Histogram(
        counts=before,
        lowest=lowest,
        highest=highest,
        digits=digits,
        above=base.above,
        negative=base.negative,
        total_ns=base.total_ns,
    )
    return newest.minus(older)
