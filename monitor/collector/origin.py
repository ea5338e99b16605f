"""State of one origin in a collector: its newest snapshot, its events, and counters of missing reports.

Reports of an origin may arrive on several *lanes*: directly and through relays, or by mistake from two publishers of
one folder. Each lane has its own sequence of frames and its own decoder. One lane is selected: among lanes that have
sent a snapshot and are not silent, the one with the fewest relays, then the one with the newest publisher. Reports on
other lanes are duplicates. A lane with unreadable frames is selected only if there is no other.

Instances number their events without gaps. So each event is passed on once, whatever its path, and the missing events
of each instance are counted exactly.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from heliograph.monitor.collector.report import Report
from heliograph.monitor.model import Event, Health, InstanceState, Snapshot
from heliograph.monitor.packing import Decoder, Limits, PackingError
from heliograph.monitor.packing.tables import Directory

__all__ = ["News", "Origin", "OriginStats"]

SILENT_INTERVALS = 3
LEAST_SILENT = 1.0
"""Seconds; shortest time until an origin is silent."""
LONGEST_INTERVAL = 3600.0
"""Seconds; longer intervals stated by a publisher are reduced to this."""
_MOST_LANES = 8
_MOST_NAMES = 256
_LONGEST_NAME = 256
_SPARE_EVENTS = 1000
_KEPT_EVENTS = 50_000
_KEPT_EVENT_BYTES = 16 << 20
_SPARE_EVENT_BYTES = 1 << 20
_EVENT_WEIGHT = 700
_PAIR_WEIGHT = 120
_LANE_WEIGHT = 4096
_ORIGIN_WEIGHT = 8192


@dataclass(frozen=True, slots=True)
class OriginStats:
    """Counters of an origin since its first report."""

    snapshots: int = 0
    """Snapshots decoded."""
    lost: int = 0
    """Snapshots that were sent but not received."""
    awaiting: int = 0
    """Snapshots that could not be decoded because their keyframe was not received."""
    skipped: int = 0
    """Snapshots its publisher skipped for lack of room or time."""
    damaged: int = 0
    """Frames that could not be read."""
    dropped: int = 0
    """Reports ignored because earlier reports were unreadable or cost too much processor time."""
    duplicates: int = 0
    """Reports that also arrived on another lane."""
    restarts: int = 0
    """Times another publisher, or another relay, took over."""
    bytes: int = 0
    events: int = 0
    events_missed: int = 0
    """Events that occurred but were not received."""


@dataclass(frozen=True, slots=True)
class News:
    """Content received from an origin since the last `Origin.take`."""

    report: Report
    snapshot: Snapshot
    """The newest snapshot, with the last state of instances closed since and with all events since."""
    directory: Directory


def _interval(report: Report) -> float:
    return min(report.interval_ns / 1e9, LONGEST_INTERVAL)


def _weight_of(event: Event) -> int:
    return _EVENT_WEIGHT + _PAIR_WEIGHT * (len(event.labels) + len(event.arguments)) + len(event.text)


def _weight_of_instance(state: InstanceState) -> int:
    return _EVENT_WEIGHT + sum(900 + _PAIR_WEIGHT * len(item.values) for item in state.objects)


class _Lane:
    __slots__ = ("decoder", "event_bytes", "events", "heard", "limits", "proven", "report")

    def __init__(self, report: Report, limits: Limits | None) -> None:
        self.limits = limits
        self.decoder = Decoder(limits)
        self.report = report
        self.heard = 0.0
        self.proven = False
        """Whether a snapshot of it was decoded."""
        self.events: deque[Event] = deque()
        """The newest events received while another lane was selected."""
        self.event_bytes = 0

    @property
    def weight(self) -> int:
        """Estimated memory, bytes."""
        return _LANE_WEIGHT + self.decoder.weight + self.event_bytes

    def keep(self, events: Iterable[Event]) -> None:
        """Keep events in case this lane is selected later."""
        for event in events:
            self.events.append(event)
            self.event_bytes += _weight_of(event)
            while len(self.events) > _SPARE_EVENTS or self.event_bytes > _SPARE_EVENT_BYTES:
                self.event_bytes -= _weight_of(self.events.popleft())

    def give_up(self) -> None:
        """Discard the decoded content."""
        self.decoder = Decoder(self.limits)
        self.events.clear()
        self.event_bytes = 0

    @property
    def rank(self) -> tuple[int, int, int]:
        report = self.report
        return len(report.path), -report.started_ns, report.publisher


class Origin:
    """One origin. Times are seconds of the collector's monotonic clock."""

    def __init__(self, report: Report, now: float, limits: Limits | None = None) -> None:
        """Create an origin for its first report, which `feed` must still take."""
        self.id = report.origin
        self.report = report
        self.first_heard = now
        self.heard = now
        """Time of the last report on the selected lane."""
        self.snapshot: Snapshot | None = None
        """The newest snapshot; None: none could be decoded yet."""
        self.refusal = ""
        """Why its reports are refused, for display; empty if they are not."""
        self._limits = limits
        self._lanes: dict[tuple[str, int, tuple[int, ...]], _Lane] = {}
        self._current: _Lane | None = None
        self._stats = OriginStats()
        self._skipped = (report.publisher, report.skipped)
        """Publisher and its count of skipped snapshots, from its last report."""
        self._expected: dict[int, int] = {}
        """Number of the next event by incarnation."""
        self._missed_by: dict[str, int] = {}
        self._events: deque[Event] = deque()
        self._event_bytes = 0
        self._missed = 0
        self._closed: dict[int, InstanceState] = {}
        """Instances that closed since the last `take`, by incarnation."""
        self._closed_taken: set[int] = set()
        self._fresh = False

    @property
    def stats(self) -> OriginStats:
        """The counters."""
        return self._stats

    @property
    def missed_by_instance(self) -> Mapping[str, int]:
        """Number of missing events by the name of their instance."""
        return self._missed_by

    @property
    def interval(self) -> float:
        """Seconds between its snapshots, as stated by the publisher."""
        return _interval(self.report)

    @property
    def waiting(self) -> str:
        """Why the next snapshot is delayed, for display; empty if it is not."""
        return self._current.decoder.waiting if self._current is not None else ""

    @property
    def weight(self) -> int:
        """Estimated memory, bytes."""
        closed = sum(_weight_of_instance(item) for item in self._closed.values())
        return _ORIGIN_WEIGHT + self._event_bytes + closed + sum(lane.weight for lane in self._lanes.values())

    @property
    def objects(self) -> int:
        """Number of objects in its newest snapshot."""
        return sum(len(item.objects) for item in self.snapshot.instances) if self.snapshot is not None else 0

    @property
    def fresh(self) -> bool:
        """Whether `take` has news."""
        return self._fresh

    def silent(self, now: float) -> bool:
        """Whether no report came for three intervals, or its publisher has ended."""
        return self.report.ends or now - self.heard > self._patience(self.report)

    def due(self, now: float) -> bool:
        """Whether the next snapshot is due about now."""
        age = now - self.heard
        return not self.report.ends and 0.75 * self.interval <= age <= 1.5 * self.interval

    @staticmethod
    def _patience(report: Report) -> float:
        return max(SILENT_INTERVALS * _interval(report), LEAST_SILENT)

    def feed(self, report: Report, now: float, source: str = "") -> PackingError | None:
        """Process a report of this origin.

        Args:
            report: The report.
            now: Current time.
            source: Stream of the report; each source has its own lanes.

        Returns:
            Why its frame cannot be decoded; None if it was decoded or there is no frame.
        """
        key = (source, report.publisher, report.path)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(report, self._limits)
        lane.report, lane.heard = report, now
        before, error, snapshot = lane.decoder.stats, None, None
        if report.frame:
            try:
                snapshot = lane.decoder.feed(report.frame)
            except PackingError as refusal:
                error = refusal
        lane.proven |= snapshot is not None
        self._choose(now)
        if lane is not self._current:
            self._stats = replace(self._stats, duplicates=self._stats.duplicates + 1)
            if snapshot is not None:
                lane.keep(snapshot.events)
            return error
        self.report, self.heard = report, now
        stats, after = self._stats, lane.decoder.stats
        publisher, known = self._skipped
        skipped = max(0, report.skipped - (known if publisher == report.publisher else 0))
        self._skipped = (report.publisher, report.skipped)
        self._stats = replace(
            stats,
            skipped=stats.skipped + skipped,
            bytes=stats.bytes + len(report.frame),
            damaged=stats.damaged + (error is not None),
            snapshots=stats.snapshots + after.frames - before.frames,
            lost=stats.lost + after.missed - before.missed,
            awaiting=stats.awaiting + after.unusable - before.unusable,
            duplicates=stats.duplicates + after.repeated - before.repeated,
        )
        if snapshot is not None:
            self._accept(snapshot)
        return error

    def drop(self) -> None:
        """Count an ignored report."""
        self._stats = replace(self._stats, dropped=self._stats.dropped + 1)

    def give_up(self, reason: str) -> None:
        """Discard the content because it exceeds a limit; the counters stay."""
        for lane in self._lanes.values():
            lane.give_up()
        self.snapshot = None
        self.refusal = reason
        self._events.clear()
        self._event_bytes = 0
        self._closed.clear()
        self._fresh = False

    def _choose(self, now: float) -> None:
        """Select a lane."""
        for key in [key for key, lane in self._lanes.items() if now - lane.heard > 10 * self._patience(lane.report)]:
            del self._lanes[key]
        while len(self._lanes) > _MOST_LANES:  # lanes without a snapshot first
            del self._lanes[min(self._lanes, key=lambda key: (self._lanes[key].proven, self._lanes[key].heard))]
        lanes = list(self._lanes.values())
        proven = [lane for lane in lanes if lane.proven]
        heard = [lane for lane in proven if not self._over(lane, now)] or proven
        heard = heard or [lane for lane in lanes if not self._over(lane, now)] or lanes
        best = min(heard, key=lambda lane: lane.rank)
        if best is not self._current:
            if self._current is not None:
                self._stats = replace(self._stats, restarts=self._stats.restarts + 1)
            self._current = best
            for event in best.events:
                self._accept_event(event)
            best.events.clear()
            best.event_bytes = 0

    def _over(self, lane: _Lane, now: float) -> bool:
        return lane.report.ends or now - lane.heard > self._patience(lane.report)

    def _accept(self, snapshot: Snapshot) -> None:
        for event in snapshot.events:
            self._accept_event(event)
        present = {instance.incarnation for instance in snapshot.instances}
        if self.snapshot is not None:
            gone = (item for item in self.snapshot.instances if item.incarnation not in present)
            self._closed |= {
                item.incarnation: item
                for item in gone
                if item.health is Health.CLOSED and item.incarnation not in self._closed_taken
            }
        self._closed_taken &= present
        for incarnation in present:
            self._closed.pop(incarnation, None)
        self._expected = {key: value for key, value in self._expected.items() if key in present or key in self._closed}
        self.snapshot = snapshot
        self.refusal = ""
        self._fresh = True

    def _accept_event(self, event: Event) -> None:
        expected = self._expected.get(event.incarnation)
        stats = self._stats
        if expected is not None and event.number < expected:
            return  # it already arrived on another lane
        gap = event.number - expected if expected is not None else 0
        self._expected[event.incarnation] = event.number + 1
        if gap:
            name = event.instance[:_LONGEST_NAME]
            self._missed_by[name] = self._missed_by.get(name, 0) + gap
            self._missed += gap
            if len(self._missed_by) > _MOST_NAMES:
                del self._missed_by[next(iter(self._missed_by))]
        self._events.append(event)
        self._event_bytes += _weight_of(event)
        while len(self._events) > _KEPT_EVENTS or self._event_bytes > _KEPT_EVENT_BYTES:  # not taken
            self._event_bytes -= _weight_of(self._events.popleft())
            gap += 1
            self._missed += 1
        self._stats = replace(stats, events=stats.events + 1, events_missed=stats.events_missed + gap)

    def take(self) -> News | None:
        """The news since the last call; None if no snapshot was decoded yet.

        An instance that closed cleanly is included once.
        """
        if self.snapshot is None or self._current is None:
            return None
        now = [item for item in self.snapshot.instances if item.incarnation not in self._closed_taken]
        whole = replace(
            self.snapshot,
            instances=(*now, *self._closed.values()),
            events=tuple(self._events),
            events_missed=self._missed,
        )
        self._closed_taken |= {item.incarnation for item in self.snapshot.instances if item.health is Health.CLOSED}
        self._events.clear()
        self._event_bytes = 0
        self._closed.clear()
        self._missed = 0
        self._fresh = False
        return News(self.report, whole, self._current.decoder.directory)
