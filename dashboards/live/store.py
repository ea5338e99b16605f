"""The store behind every open page: a sampler thread fills it, pages read immutable views of it.

One thread takes one snapshot per interval for all browsers, and wakes those who wait for it. While nobody looks, it
takes one per second at most. The store is bounded: points of the last minutes (histogram cells only of the last minute)
and the newest events. After a failed sample the last view stays, with the error; the page then shows the age of its
data.

Where a sample with the latencies of all receivers is too expensive for the wished interval, most samples are light
(`pacing.py`). A light one has no such latencies. It renews the receivers with their classes and rates, the faults, and
all else that says that something is wrong. The points, and the latencies of receivers, are those of whole samples, each
over the whole interval since the whole sample before it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from queue import SimpleQueue

from heliograph.dashboards.live.alerting import Alerting, Board
from heliograph.dashboards.live.detailing import Details, Raised
from heliograph.dashboards.live.keeping import STORE_HISTOGRAMS, Keeping, keeping
from heliograph.dashboards.live.pacing import Pace
from heliograph.dashboards.live.receiving import STAGE_HISTOGRAMS, receiving
from heliograph.dashboards.live.sending import sending
from heliograph.dashboards.live.series import HISTOGRAMS, HOST_HISTOGRAMS, Point, point
from heliograph.monitor.faults import Fault, Faults
from heliograph.monitor.fleet import (
    InstanceRow,
    ReceiverRow,
    Receivers,
    TransmitterRow,
    instances,
    receivers,
    transmitters,
)
from heliograph.monitor.hosts import HostRow, hosts
from heliograph.monitor.losses import LossRow, losses
from heliograph.monitor.model import Event, Health, InstanceState, Snapshot
from heliograph.monitor.sources import ReceiverOfStream, StreamRow, receivers_of, streams
from heliograph.monitor.window import Watcher
from heliograph.monitor.worst import worst

__all__ = ["Service", "Status", "Store", "View", "status_of"]

KEPT_POINTS = 300
KEPT_CELLS = 60
KEPT_EVENTS = 200
_STAGES_SECONDS = 60.0
"""Time that the stages are read after the last page that needed them."""
_LOOKED_SECONDS = 10.0
"""Time that somebody counts as looking after his last request."""
_LIGHT = HOST_HISTOGRAMS | STORE_HISTOGRAMS
"""Histograms of a light sample: there are few, and the pauses of hosts are among the faults."""
_IDLE_INTERVAL = 1.0
"""Shortest time between two samples while nobody looks: the history needs no more."""


@dataclass(frozen=True, slots=True)
class View:
    """The data of a page at one moment; immutable."""

    sequence: int = 0
    """Sequence number of the sample."""
    time_ns: int = 0
    """Time of the newest sample, wall clock in ns; 0: none yet."""
    interval: float = 1.0
    """Seconds between samples."""
    whole_interval: float = 1.0
    """Seconds between samples with the latencies of receivers; the same where all have them."""
    slowed: float = 0.0
    """Seconds of processor time of such a sample, where its interval is longer because of them; 0: it is as asked."""
    whole_ns: int = 0
    """Time of the newest sample with the latencies of receivers, wall clock in ns; 0: none yet."""
    points: tuple[Point, ...] = ()
    """Points, oldest first."""
    rows: Sequence[ReceiverRow] = ()
    """Receivers, worst first. There may be a hundred thousand: a page looks at groups of them, or at a part."""
    known: tuple[ReceiverOfStream, ...] = ()
    """Receivers as their sources see them, worst first."""
    streams: tuple[StreamRow, ...] = ()
    """Sent streams, by instance."""
    transmitters: tuple[TransmitterRow, ...] = ()
    """Sent topics, by instance and topic."""
    faults: tuple[Fault, ...] = ()
    """Faults of senders, hosts and clocks, worst first."""
    losses: tuple[LossRow, ...] = ()
    """Unrecoverable losses that the instances keep, latest first."""
    keeping: Mapping[str, Keeping] = field(default_factory=dict)
    """Message stores by the name of their instances."""
    raised: tuple[Raised, ...] = ()
    """Levels of detail that are raised, the highest first."""
    instances: tuple[InstanceRow, ...] = ()
    """Instances by name."""
    heard_ns: int = 0
    """Newest heartbeat of all instances, wall clock in ns; 0: none."""
    events: tuple[Event, ...] = ()
    """Events, newest first."""
    events_missed: int = 0
    """Events overwritten before they were read, since the start."""
    trouble: str = ""
    """Error of the last sample; empty when it succeeded."""
    place: str = ""
    """Where the sampler looks for instances, as text."""
    absence: str = ""
    """Why there is no instance, when more is known than the place."""
    alerts: Board | None = None
    """The alerts; None: this server judges none."""

    @property
    def spectrum_points(self) -> tuple[Point, ...]:
        """The points that still have their histogram cells."""
        return tuple(item for item in self.points if item.cells)


class Service(StrEnum):
    """How current the page is. The browser adds three states: paused, slow and disconnected."""

    STARTING = "starting"
    LIVE = "live"
    STALE = "stale"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Status:
    """A service state and its reason."""

    service: Service
    reason: str


def status_of(view: View, now_ns: int) -> Status:
    """Return the state of the page at `now_ns`."""
    if not view.sequence and not view.trouble:
        return Status(Service.STARTING, "the first sample is being taken")
    age = (now_ns - view.time_ns) / 1e9 if view.time_ns else 0.0
    if view.trouble:
        last = f"; last sample {_age(age)} ago" if view.time_ns else ""
        return Status(Service.STALE, f"{view.trouble}{last}")
    if age > max(3 * view.interval, 2.0):
        return Status(Service.STALE, f"last sample {_age(age)} ago")
    if not view.instances:
        return Status(
            Service.EMPTY, view.absence or f"no instance in {view.place}" if view.place else "no instance found"
        )
    if all(instance.health is not Health.LIVE for instance in view.instances):
        last = f"; last heartbeat {_age((now_ns - view.heard_ns) / 1e9)} ago" if view.heard_ns else ""
        return Status(Service.STALE, f"no live instance{last}")
    return Status(Service.LIVE, f"every {view.interval:g} s{_slowed(view)}")


def _slowed(view: View) -> str:
    """Return why samples come less often than asked; empty when they do not."""
    if not view.slowed:
        return ""
    if view.whole_interval == view.interval:
        return f", because a sample takes {view.slowed:.1f} s of a core"
    rarer = f", latencies and charts every {view.whole_interval:g} s"
    return f"{rarer}, because a sample with them takes {view.slowed:.1f} s of a core"


def _age(seconds: float) -> str:
    seconds = max(0.0, seconds)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"


class Store:
    """Samples on its own thread from `start` to `close`; `take` takes one sample, for callers with their own clock."""

    def __init__(
        self,
        sample: Callable[[], Snapshot],
        *,
        interval: float = 1.0,
        place: str = "",
        absence: Callable[[], str] | None = None,
        alerts: Alerting | None = None,
        points: int = KEPT_POINTS,
        cells: int = KEPT_CELLS,
        events: int = KEPT_EVENTS,
    ) -> None:
        """Create the store; takes no sample.

        Args:
            sample: Takes a snapshot; called by one thread at a time.
            interval: Seconds between samples.
            place: Where the sampler looks, as text.
            absence: Returns the reason when there is no instance.
            alerts: Judges the alerts over the samples; None: nothing does.
            points: Number of intervals kept for the charts.
            cells: Number of newest intervals that keep their histogram cells.
            events: Number of newest events kept.
        """
        self._sample = sample
        self._absence = absence
        self._alerts = alerts
        self._before: Snapshot | None = None
        self._whole: Snapshot | None = None
        """The newest whole sample."""
        self._measured: Receivers | None = None
        """The receivers over the interval that ended with it."""
        self._hosts: dict[str, HostRow] = {}
        """The hosts since then, by instance."""
        self._is_light = False
        """Whether the sample that is being taken is light."""
        self._watcher = Watcher()
        self._details = Details()
        self._faults = Faults(kept_ns=int(points * interval * 1e9))  # as long as the charts show them
        self._points: deque[Point] = deque(maxlen=points)
        self._cells = cells
        self._events: deque[Event] = deque(maxlen=events)
        self._recorded: SimpleQueue[Event] = SimpleQueue()
        self._pace = Pace(interval)
        self._view = View(
            interval=interval, whole_interval=interval, place=place, alerts=alerts.board if alerts else None
        )
        self._stages_until = 0.0
        self._looked = time.monotonic()
        self._news = threading.Condition()
        self._awake = threading.Event()
        """Set when somebody begins to look, and at the end."""
        self._is_closed = False
        self._thread: threading.Thread | None = None

    @property
    def view(self) -> View:
        """Return the newest view."""
        return self._view  # one reference, replaced as a whole

    @property
    def found(self) -> tuple[InstanceState, ...]:
        """Return the instances of the newest sample."""
        newest = self._before
        return newest.instances if newest is not None else ()

    @property
    def histograms(self) -> frozenset[str]:
        """Return the histograms that the next sample needs; those of the stages only while a page shows them."""
        if self._is_light:
            return _LIGHT
        always = HISTOGRAMS | STORE_HISTOGRAMS
        return always | STAGE_HISTOGRAMS if time.monotonic() < self._stages_until else always

    @property
    def is_closed(self) -> bool:
        """Whether sampling has ended."""
        return self._is_closed

    def look(self) -> None:
        """Sample at the full rate for some seconds from now, because somebody looks."""
        before, self._looked = self._looked, time.monotonic()
        if self._looked - before > _LOOKED_SECONDS:
            self._awake.set()

    def wait(self, sequence: int, seconds: float) -> View:
        """Return the newest view as soon as it is another one, or after a time; counts as looking.

        Args:
            sequence: Number of the view that the caller has.
            seconds: Longest time to wait.
        """
        self.look()
        with self._news:
            self._news.wait_for(lambda: self._view.sequence != sequence, seconds)
        return self._view

    def need_stages(self) -> None:
        """Read the histograms of the stages for a minute from now."""
        self._stages_until = time.monotonic() + _STAGES_SECONDS

    def need_alerts(self) -> None:
        """Judge the alerts for a minute from now."""
        if self._alerts is not None:
            self._alerts.need()

    def record(self, event: Event) -> None:
        """Add an event of this server to those of the engines; the next sample shows it."""
        self._recorded.put(event)

    def take(self) -> View:
        """Take one sample, make it the newest view, and wake those who wait for one."""
        is_first, is_watched = self._whole is None, self._is_watched()
        self._is_light = not is_first and self._pace.is_light_next(is_watched=is_watched)
        began = time.thread_time()
        view = self._taken()
        if not is_first and not view.trouble:  # the first one reads all names
            self._pace.add(time.thread_time() - began, is_light=self._is_light)
        plan = self._pace.plan(is_watched=is_watched)
        self.show(replace(view, interval=plan.interval, whole_interval=plan.whole_interval, slowed=plan.cost))
        return self._view

    def _is_watched(self) -> bool:
        return time.monotonic() - self._looked <= _LOOKED_SECONDS

    def show(self, view: View) -> None:
        """Make a view the newest one."""
        with self._news:
            self._view = view
            self._news.notify_all()

    def _taken(self) -> View:
        try:
            now = self._sample()
        except Exception as error:  # the page must survive any error of a sample and show it
            return replace(self._view, sequence=self._view.sequence + 1, trouble=f"sampling failed: {error}")
        before, self._before = self._before, now
        rows = receivers(before, now, self._watcher)
        known = tuple(worst(receivers_of(now, before)))
        stores = keeping(before, now, rows)
        sent, hosted = tuple(streams(before, now)), hosts(before, now)
        self._hosts = {row.instance: _together(self._hosts.get(row.instance), row) for row in hosted}
        if not self._is_light:
            self._measure(before, now, rows, known, stores)
        if self._measured is not None and self._measured is not rows:
            rows = rows.with_latencies(self._measured)
        self._events.extendleft(now.events)
        while not self._recorded.empty():
            self._events.appendleft(self._recorded.get())
        if self._alerts is not None and not self._is_light:
            self._alerts.feed(now)
        return replace(
            self._view,
            sequence=self._view.sequence + 1,
            time_ns=now.time_ns,
            whole_ns=self._whole.time_ns if self._whole is not None else 0,
            points=tuple(self._points),
            rows=rows,
            known=known,
            streams=sent,
            transmitters=tuple(transmitters(before, now, rows)),
            faults=self._faults.update(before, now, known, sent, hosted),
            losses=tuple(losses(now)),
            keeping=stores,
            raised=self._details.update(now),
            instances=tuple(instances(before, now)),
            heard_ns=max((instance.heartbeat_ns for instance in now.instances), default=0),
            events=tuple(self._events),
            events_missed=self._view.events_missed + now.events_missed,
            trouble="",
            absence="" if now.instances or self._absence is None else self._absence(),
            alerts=self._alerts.board if self._alerts is not None else None,
        )

    def _measure(
        self,
        before: Snapshot | None,
        now: Snapshot,
        rows: Receivers,
        known: Sequence[ReceiverOfStream],
        stores: Mapping[str, Keeping],
    ) -> None:
        """Take the latencies of a whole sample, and add the point of the interval since the whole one before.

        Args:
            before: The sample before, light or whole.
            now: The whole sample.
            rows: Receivers of the interval between the two.
            known: Receivers as their sources see them.
            stores: The message stores over this interval.
        """
        whole, self._whole = self._whole, now
        is_longer = whole is not None and whole is not before
        measured = self._measured = rows.since(whole) if whole is not None and is_longer else rows
        hosted, self._hosts = self._hosts, {}
        if whole is None or (new := point(whole, now, measured)) is None:
            return
        made = replace(
            new,
            receiving=receiving(whole, now, rows, known),
            sending=sending(whole, now, known),
            keeping=keeping(whole, now, rows) if is_longer else stores,
            hosts=hosted,
        )
        self._points.append(made)
        if len(self._points) > self._cells:
            old = len(self._points) - self._cells - 1
            self._points[old] = self._points[old].without_cells()

    def start(self) -> None:
        """Take the first sample, so that the first page is not empty, then continue on a thread."""
        self.take()
        self._thread = threading.Thread(target=self._run, name="heliograph-live-sampler", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Let the thread and the streams end; does not wait for them."""
        self._is_closed = True
        self._awake.set()

    def close(self) -> None:
        """Stop sampling; returns when the thread has ended."""
        self.end()
        if self._thread is not None:
            self._thread.join(timeout=5.0)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._is_closed:
            interval = self._view.interval
            if not self._is_watched():
                interval = max(interval, _IDLE_INTERVAL)
            due = max(due + interval, time.monotonic())  # moments missed by a slow sample are skipped
            if self._awake.wait(max(0.0, due - time.monotonic())):
                self._awake.clear()
                due = time.monotonic()
            if not self._is_closed:
                self.take()


def _together(older: HostRow | None, newer: HostRow) -> HostRow:
    """Return the host of an instance over two intervals, of which the second follows the first."""
    if older is None:
        return newer
    hiccups = [one.hiccup_ns for one in (older, newer) if one.hiccup_ns is not None]
    return replace(
        newer,
        hiccup_ns=max(hiccups, default=None),
        steps=older.steps + newer.steps,
        stepped_ns=older.stepped_ns + newer.stepped_ns,
    )
