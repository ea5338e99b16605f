"""The feed: numbers snapshots and finds the topics created and destroyed between them.

A topic of a stream at an instance is an object in the instance's table, of scope transmitter or receiver. A destroyed
object stays in the table for a minute, with its times of creation and destruction. A topic that lived only between two
snapshots is therefore found in the second. The feed guarantees:

- Each topic is reported as created once and destroyed once, in that order, even if it lived for a microsecond.
- Changes and events of one instance are in order: the engine's time stamps increase strictly. A change newer than the
  first unread event is kept for the next snapshot, with that event.
- At its start the feed first reports the existing topics, and those destroyed within about the last minute.
- When an instance dies or its file is removed, its topics are destroyed.
- Snapshots from a collector have no slots: a topic is then identified by its labels and its time stamp. Its end has the
  time of the snapshot that shows it.
- A topic is missed only when the table is full, or without a snapshot for a minute: its slot is then reused before a
  snapshot. The generation of the slot shows each reuse, counted in `missed`. The engine counts topics that never got a
  slot (statistic `objects_refused`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from heliograph.monitor.model import Event, Health, InstanceState, ObjectState, Snapshot
from heliograph.monitor.modules.lane import Lane, Portion
from heliograph.monitor.modules.protocol import Direction, Moment, Topic, TopicChange

__all__ = ["Feed", "Portion"]

_DIRECTIONS = {"transmitter": Direction.TRANSMIT, "receiver": Direction.RECEIVE}

_Place = tuple[object, ...]


@dataclass(slots=True)
class _Seat:
    """The last known state of a slot in an instance's table."""

    generation: int
    topic: Topic | None
    """The topic, while it lives."""


class _Run:
    """One run of an instance."""

    __slots__ = ("held", "path", "seats")

    def __init__(self, path: str) -> None:
        self.path = path
        self.seats: dict[_Place, _Seat] = {}
        self.held: list[TopicChange] = []
        """Changes that wait for the events before them."""


class Feed:
    """Makes the stream that modules are fed. For one thread."""

    def __init__(self) -> None:
        self._runs: dict[int, _Run] = {}
        self._number = 0
        self.missed = 0
        """Topics that no snapshot showed, because their slot was reused too soon."""

    def portion(self, snapshot: Snapshot) -> Portion:
        """Return a snapshot with its number and all moments since the previous one, in order."""
        self._number += 1
        changes = [change for found in self._changes(snapshot) for change in found]
        return Portion(snapshot, _in_order(snapshot.events, changes), self._number)

    def give(self, snapshot: Snapshot, lanes: Sequence[Lane]) -> None:
        """Offer a snapshot and its moments to every lane; moments are computed only when a lane wants them."""
        portion = self.portion(snapshot) if any(lane.wants_moments for lane in lanes) else Portion(snapshot)
        for lane in lanes:
            lane.offer(snapshot, portion.moments, portion.number)

    def _changes(self, snapshot: Snapshot) -> Iterator[list[TopicChange]]:
        seen = set()
        unreadable = {item.path for item in snapshot.instances if item.health is Health.DAMAGED}
        for instance in snapshot.instances:
            if instance.health is not Health.DAMAGED:
                seen.add(instance.incarnation)
                yield self._of(instance, snapshot.time_ns)
        for incarnation in [key for key, run in self._runs.items() if key not in seen and run.path not in unreadable]:
            run = self._runs.pop(incarnation)
            yield run.held + _end(run, snapshot.time_ns)

    def _of(self, instance: InstanceState, time_ns: int) -> list[TopicChange]:
        run = self._runs.get(instance.incarnation)
        is_new = run is None
        if run is None:
            run = self._runs[instance.incarnation] = _Run(instance.path)
        run.path = instance.path
        changes, run.held = run.held, []
        places = set()
        for item in instance.objects:
            if item.scope in _DIRECTIONS:
                place = _place(item)
                places.add(place)
                changes += self._seen(run, place, instance, item, is_new, time_ns)
        for place in [key for key in run.seats if key not in places]:  # only without slots: the table evicted it
            seat = run.seats.pop(place)
            if seat.topic is not None:
                changes.append(_destroyed(seat.topic, time_ns))
        if instance.health in (Health.DEAD, Health.CLOSED):
            return changes + _end(run, instance.heartbeat_ns)
        if instance.settled_ns is not None:
            run.held = [change for change in changes if change.topic.time_ns >= instance.settled_ns]
            changes = [change for change in changes if change.topic.time_ns < instance.settled_ns]
        return changes

    def _seen(
        self, run: _Run, place: _Place, instance: InstanceState, item: ObjectState, is_new: bool, time_ns: int
    ) -> Iterator[TopicChange]:
        closed_ns = item.closed_ns or time_ns
        seat = run.seats.get(place)
        if seat is None:
            counts = item.slot >= 0 and not is_new  # otherwise its earlier uses are not counted as missed
            seat = run.seats[place] = _Seat(1 if counts else item.generation, None)
            self.missed += max(0, item.generation - seat.generation)
        elif item.generation == seat.generation:
            if seat.topic is not None and not item.live:
                yield _destroyed(seat.topic, closed_ns)
                seat.topic = None
            return
        else:
            if seat.topic is not None:  # it ended, and its slot was reused
                yield _destroyed(seat.topic, item.created_ns - 1)
            self.missed += max(0, item.generation - seat.generation - 1)
        topic = Topic(
            time_ns=item.created_ns,
            instance=instance.name,
            incarnation=instance.incarnation,
            direction=_DIRECTIONS[item.scope],
            topic=item.labels.get("topic", ""),
            stream=item.labels.get("stream", ""),
            endpoint=item.info.get("endpoint", ""),
        )
        yield TopicChange(topic, created=True)
        seat.generation, seat.topic = item.generation, topic if item.live else None
        if not item.live:
            yield _destroyed(topic, closed_ns)


def _place(item: ObjectState) -> _Place:
    """Identity of an object within its run: its slot, or its labels and time stamp."""
    if item.slot >= 0:
        return (item.slot,)
    return (item.scope, *item.labels.values(), item.created_ns)


def _destroyed(topic: Topic, time_ns: int) -> TopicChange:
    """Return the end of a topic; never before its start, whatever the wall clock did."""
    return TopicChange(replace(topic, time_ns=max(time_ns, topic.time_ns + 1)), created=False)


def _end(run: _Run, time_ns: int) -> list[TopicChange]:
    """Return the end of all topics of a run."""
    ended = [_destroyed(seat.topic, time_ns) for seat in run.seats.values() if seat.topic is not None]
    for seat in run.seats.values():
        seat.topic = None
    return ended


def _in_order(events: tuple[Event, ...], changes: list[TopicChange]) -> tuple[Moment, ...]:
    """Merge ordered events and changes by time; at the same moment a creation comes first and a destruction last."""
    if not changes:
        return events

    def key(moment: Moment) -> tuple[int, int]:
        if isinstance(moment, Event):
            return moment.time_ns, 1
        return moment.topic.time_ns, 0 if moment.created else 2

    return tuple(sorted((*changes, *events), key=key))
