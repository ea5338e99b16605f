"""One run of a plan: the curves, the events, the receivers at the end."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from heliograph.engine import _lab, catalogue
from heliograph.monitor.lab.scenario import Plan

__all__ = ["Curves", "Event", "Receiver", "Sight", "run"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something the engine told, `at` seconds after the beginning."""

    at: float
    name: str
    source: int | None
    """Number of the source that told it; None: a receiver did."""
    arguments: tuple[int, int, int, int]
    text: str


@dataclass(frozen=True, slots=True)
class Receiver:
    """A receiver at the end of a run. first_lost: seconds, infinity when nothing was lost for good."""

    group: int
    number: int
    delivered: int
    lost: int
    first_lost: float


class Sight(NamedTuple):
    """A source's view of a receiver at the end of an interval; counts begin when the source discovered it."""

    at: float
    """Seconds."""
    source: float
    receiver: float
    """Number of the receiver, from 1."""
    flags: float
    received: float
    lost: float
    unrecoverable: float
    naks: float
    naks_again: float
    repairs: float
    position: float
    buffer_fill: float
    round_trip: float
    """Seconds, 0: not known."""
    loss: float
    """Share of packets lost lately."""


class Curves:
    """The result of one run.

    Columns are named ``pipe0.queue``, ``source1.rate_limit``, ``group0.delivered``, ``tcp0.acked``: a thing, its number
    and what of it; all that the catalogue counts of a tx_stream is there for each source, and of rx_streams, summed,
    for each group of receivers.
    """

    def __init__(
        self,
        plan: Plan,
        names: Sequence[str],
        rows: bytes,
        events: Sequence[Event],
        receivers: Sequence[Receiver],
        sights: bytes,
    ) -> None:
        self.plan = plan
        self.events = events
        self.receivers = receivers
        self._place = {name: i for i, name in enumerate(names)}
        self._values = array("d", rows)
        self._sights = array("d", sights)

    @property
    def names(self) -> list[str]:
        """Every column."""
        return list(self._place)

    @cached_property
    def time(self) -> list[float]:
        """Seconds since the beginning, at the end of each interval."""
        return self.column("time")

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self._place

    def column(self, name: str) -> list[float]:
        """A column's values.

        Raises:
            KeyError: there is no such column.
        """
        return self._values[self._place[name] :: len(self._place)].tolist()

    def per_second(self, name: str) -> list[float]:
        """By how much a count grew in each interval, per second."""
        values = self.column(name)
        return [
            max(0.0, (after - before) / self.plan.interval)
            for before, after in zip([0.0, *values], values, strict=False)
        ]

    def last(self, name: str) -> float:
        """A column's last value."""
        return self._values[len(self._values) - len(self._place) + self._place[name]]

    @cached_property
    def sights(self) -> list[Sight]:
        """Sources' views of receivers, in order of time; empty unless the plan watches."""
        width = len(Sight._fields)
        values = self._sights
        return [Sight(*values[i : i + width]) for i in range(0, len(values), width)]

    def group_of(self, receiver: float) -> int:
        """The group a receiver is of, by its number."""
        return self.receivers[int(receiver) - 1].group

    def index(self, at: float) -> int:
        """The first row at or after a moment, in seconds."""
        return min(len(self.time), max(0, round(at / self.plan.interval + 0.49) - 1))


def run(plan: Plan, seed: int) -> Curves:
    """Run a plan with a seed; the same plan and seed give the same curves."""
    trial = _lab.Trial(seed, plan.interval, plan.watches)
    places = {pipe.name: i for i, pipe in enumerate(plan.pipes)} | {"": -1}
    for pipe in plan.pipes:
        trial.add_pipe(pipe.rate, pipe.queue, pipe.overhead, pipe.loss, pipe.delay)
    for source in plan.sources:
        trial.add_source(
            source.options,
            places[source.pipe],
            source.offered,
            source.message,
            source.queue,
            source.even,
            source.start,
            source.feedback_delay,
            source.feedback_loss,
        )
    for group in plan.receivers:
        trial.add_group(
            group.options,
            group.count,
            group.join,
            group.delay,
            group.jitter,
            group.loss,
            group.burst,
            group.drain,
            group.queue,
            group.access_rate,
            group.access_queue,
            plan.pipes[0].overhead if plan.pipes else 0,
        )
    for tcp in plan.tcps:
        trial.add_tcp(places[tcp.pipe], tcp.start, tcp.stop, tcp.delay, tcp.feedback_delay)
    for turn in plan.turns:
        trial.plan(turn.at, turn.knob, turn.which, turn.value, turn.second)
    names, rows, events, receivers, sights = trial.run(plan.duration)
    known = {event.id: event.name for event in catalogue.events().values()}
    return Curves(
        plan,
        names,
        rows,
        [
            Event(at, known.get(number, str(number)), None if source < 0 else source, arguments, text)
            for at, number, source, arguments, text in events
        ],
        [Receiver(*receiver) for receiver in receivers],
        sights,
    )
