"""The one store behind every open page: a sampler thread fills it, pages read immutable views of it.

However many browsers look, one thread takes one snapshot per interval.  What is kept is bounded: points of the last
minutes (histogram cells only of the last one), and the newest events.  A sample that fails leaves the last view in
place and says so; the page then shows its age instead of a chart that has silently stopped.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from heliograph.dashboards.live.series import Point, point
from heliograph.monitor.fleet import InstanceRow, ReceiverRow, instances, receivers
from heliograph.monitor.model import Event, Health, Snapshot
from heliograph.monitor.sources import ReceiverOfStream, StreamRow, receivers_of, streams
from heliograph.monitor.window import Watcher
from heliograph.monitor.worst import worst

__all__ = ["Service", "Standing", "Store", "View", "standing"]

KEPT_POINTS = 300
KEPT_CELLS = 60
KEPT_EVENTS = 200


@dataclass(frozen=True, slots=True)
class View:
    """All that a page can show, of one moment; never changed."""

    sequence: int = 0
    """Counts up with every sample."""
    time_ns: int = 0
    """When the newest sample was taken, wall clock; 0: none yet."""
    interval: float = 1.0
    """Seconds between samples."""
    points: tuple[Point, ...] = ()
    """Oldest first."""
    rows: tuple[ReceiverRow, ...] = ()
    """Receivers, worst first."""
    known: tuple[ReceiverOfStream, ...] = ()
    """Receivers as their sources see them, worst first."""
    streams: tuple[StreamRow, ...] = ()
    """Streams being sent, by instance."""
    instances: tuple[InstanceRow, ...] = ()
    """By name."""
    heard_ns: int = 0
    """Newest heartbeat of any instance, wall clock; 0: none."""
    events: tuple[Event, ...] = ()
    """Newest first."""
    events_missed: int = 0
    """Events overwritten before they were read, since the start."""
    trouble: str = ""
    """Why the last sample failed; empty when it did not."""
    place: str = ""
    """Where instances are looked for."""
    absence: str = ""
    """Why there are none, when it is known better than by the place."""

    @property
    def spectrum_points(self) -> tuple[Point, ...]:
        """The points that still have their cells."""
        return tuple(item for item in self.points if item.cells)


class Service(StrEnum):
    """How far the page can be trusted. The browser adds two of its own: paused and disconnected."""

    STARTING = "starting"
    LIVE = "live"
    STALE = "stale"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Standing:
    """A service state with the reason for it."""

    service: Service
    reason: str


def standing(view: View, now_ns: int) -> Standing:
    """What the page may say of itself at `now_ns`."""
    if not view.sequence and not view.trouble:
        return Standing(Service.STARTING, "the first sample is being taken")
    age = (now_ns - view.time_ns) / 1e9 if view.time_ns else 0.0
    if view.trouble:
        last = f"; last sample {_age(age)} ago" if view.time_ns else ""
        return Standing(Service.STALE, f"{view.trouble}{last}")
    if age > max(3 * view.interval, 2.0):
        return Standing(Service.STALE, f"last sample {_age(age)} ago")
    if not view.instances:
        return Standing(
            Service.EMPTY, view.absence or f"no instance in {view.place}" if view.place else "no instance in reach"
        )
    if all(instance.health is not Health.LIVE for instance in view.instances):
        last = f"; last heartbeat {_age((now_ns - view.heard_ns) / 1e9)} ago" if view.heard_ns else ""
        return Standing(Service.STALE, f"no instance is alive{last}")
    return Standing(Service.LIVE, f"every {view.interval:g} s")


def _age(seconds: float) -> str:
    seconds = max(0.0, seconds)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"


class Store:
    """Samples on a thread of its own from `start` to `close`; `take` samples once, for whoever has a clock of their
    own."""

    def __init__(
        self,
        sample: Callable[[], Snapshot],
        *,
        interval: float = 1.0,
        place: str = "",
        absence: Callable[[], str] | None = None,
        points: int = KEPT_POINTS,
        cells: int = KEPT_CELLS,
        events: int = KEPT_EVENTS,
    ) -> None:
        """Nothing is sampled yet.

        Args:
            sample: takes a snapshot; called by one thread at a time.
            interval: seconds between samples.
            place: where the sampler looks, for people.
            absence: tells why there is no instance, for people.
            points: intervals kept for the charts.
            cells: how many of them, the newest, keep their histogram cells.
            events: newest events kept.
        """
        self._sample = sample
        self._absence = absence
        self._before: Snapshot | None = None
        self._watcher = Watcher()
        self._points: deque[Point] = deque(maxlen=points)
        self._cells = cells
        self._events: deque[Event] = deque(maxlen=events)
        self._view = View(interval=interval, place=place)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def view(self) -> View:
        """The newest view."""
        return self._view  # one reference, replaced as a whole

    def take(self) -> View:
        """Take one sample and make it the newest view."""
        try:
            now = self._sample()
        except Exception as error:  # the page must outlive whatever a sample meets, and tell it
            self._view = replace(self._view, sequence=self._view.sequence + 1, trouble=f"sampling failed: {error}")
            return self._view
        before, self._before = self._before, now
        if before is not None and (new := point(before, now)) is not None:
            self._points.append(new)
            if len(self._points) > self._cells:
                old = len(self._points) - self._cells - 1
                self._points[old] = self._points[old].without_cells()
        self._events.extendleft(now.events)
        self._view = replace(
            self._view,
            sequence=self._view.sequence + 1,
            time_ns=now.time_ns,
            points=tuple(self._points),
            rows=tuple(receivers(before, now, self._watcher)),
            known=tuple(worst(receivers_of(now, before))),
            streams=tuple(streams(before, now)),
            instances=tuple(instances(before, now)),
            heard_ns=max((instance.heartbeat_ns for instance in now.instances), default=0),
            events=tuple(self._events),
            events_missed=self._view.events_missed + now.events_missed,
            trouble="",
            absence="" if now.instances or self._absence is None else self._absence(),
        )
        return self._view

    def start(self) -> None:
        """Take the first sample, so that the first page is not empty, then go on in the background."""
        self.take()
        self._thread = threading.Thread(target=self._run, name="heliograph-live-sampler", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop sampling; returns when the thread has ended."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=5.0)

    def _run(self) -> None:
        interval = self._view.interval
        due = time.monotonic() + interval
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            self.take()
            due = max(due + interval, time.monotonic())  # a slow sample is not made up for
