"""A lane: foreign code on a thread of its own behind a bounded queue, so that it can hold up nobody.

Exporters and modules, in this process or in a child of it, all run behind one. What it promises:

- `offer` returns at once, always.
- When more than `depth` snapshots wait the oldest is dropped and counted: all statistics are totals since the start, so
  who misses a snapshot has a longer interval, not a hole.
- The moments (events, topics that came and went) of a dropped snapshot stay, in their order, before those of the next.
  Only when more than `moments` of them wait the oldest are dropped, and counted.
- What the foreign code raises is counted, told once while it lasts, and changes nothing for others.
- ``offered = given + dropped`` for snapshots, events and topic changes alike, once nothing waits.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Event, Snapshot
from heliograph.monitor.modules.protocol import Moment
from heliograph.monitor.text import printable

__all__ = ["Lane", "LaneStats", "Ledger", "NotTaken", "Portion", "Sink", "sentence", "to_stderr"]

MOMENTS = 65_536
_PORTION_MOMENTS = 1024


@dataclass(frozen=True, slots=True)
class Portion:
    """What foreign code is given at a time: a snapshot and what happened since the one before."""

    snapshot: Snapshot | None
    """None: the moments of snapshots that were dropped."""
    moments: Sequence[Moment] = ()
    number: int = 0
    """Of the snapshots taken, from 1."""
    dropped: int = 0
    """Snapshots that this foreign code missed since the one before."""


@dataclass(frozen=True, slots=True)
class LaneStats:
    """What became of all that was offered to a lane."""

    name: str
    kind: str = "module"
    """What the foreign code is: a module or an exporter."""
    offered: int = 0
    """Snapshots."""
    snapshots: int = 0
    """Given to the foreign code."""
    dropped: int = 0
    """Snapshots it was too slow for, or that were lost with it."""
    succeeded: int = 0
    """Snapshots given that it did not fail on."""
    events: int = 0
    events_dropped: int = 0
    topics: int = 0
    """Topics created and destroyed that it was told of."""
    topics_dropped: int = 0
    errors: int = 0
    crashes: int = 0
    """Times its process ended by itself, or was ended as it did not answer."""
    restarts: int = 0
    lost: int = 0
    """What it says to have given up by itself."""
    error: str = ""
    """What it fails with now; empty after a success."""
    last_error: str = ""
    busy_ns: int = 0
    """Time spent in the foreign code."""
    duration_ns: int = 0
    """That of the last snapshot."""
    success_ns: int = 0
    """Wall clock of the last success, since 1970; 0 before the first."""

    @property
    def busy_seconds(self) -> float:
        """Time spent in the foreign code."""
        return self.busy_ns / 1e9


class NotTaken(Exception):
    """A sink could not give a portion to the foreign code: it counts as dropped, and the sink has told why."""


def sentence(error: Exception) -> str:
    """An error as people are told it: in its own words when they are meant for people."""
    told = isinstance(error, UserError) and str(error)
    return str(error) if told else f"{type(error).__name__}: {error}".removesuffix(": ")


class Ledger:
    """The books of one lane: counts, and tells each trouble once while it lasts. Any thread may use it."""

    def __init__(self, name: str, kind: str, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._stats = LaneStats(name, kind)

    @property
    def stats(self) -> LaneStats:
        """The counts as they are now."""
        with self._lock:
            return self._stats

    def count(self, **by: int) -> None:
        """Add to counters of `LaneStats`, by name."""
        with self._lock:
            self._stats = replace(self._stats, **{name: getattr(self._stats, name) + n for name, n in by.items()})

    def failed(self, text: str, doing: str = "", times: int = 1) -> None:
        """The foreign code failed; told unless it fails with the same text already.

        Args:
            text: Why.
            doing: In doing what, such as "while publishing" or "in snapshot".
            times: How often, with the same text.
        """
        with self._lock:
            known = self._stats.error
            self._stats = replace(self._stats, errors=self._stats.errors + times, error=text, last_error=text)
        if text != known:
            self._tell(f"{self._stats.kind} {self._stats.name}{' failed ' * bool(doing)}{doing}: {text}")

    def say(self, text: str) -> None:
        """Tell people something about this lane, as the end of a sentence that begins with its name."""
        self._tell(f"{self._stats.kind} {self._stats.name} {text}")

    def succeeded(self, snapshots: int, duration_ns: int, wall_ns: int) -> None:
        """A portion went without trouble."""
        with self._lock:
            recovered = self._stats.error
            self._stats = replace(
                self._stats,
                succeeded=self._stats.succeeded + snapshots,
                duration_ns=duration_ns if snapshots else self._stats.duration_ns,
                success_ns=wall_ns,
                error="",
            )
        if recovered:
            self.say("works again")

    def took(self, duration_ns: int) -> None:
        """A portion went with trouble, in this time."""
        with self._lock:
            self._stats = replace(self._stats, duration_ns=duration_ns)


class Sink(Protocol):
    """What a lane runs: the door to foreign code. Called from the lane's thread, but for `stop`."""

    def start(self, ledger: Ledger) -> None:
        """Called once, first."""

    def take(self, portion: Portion, ledger: Ledger) -> None:
        """Give a portion to the foreign code, and tell `ledger` of every failure.

        Raises:
            NotTaken: It could not be given.
            Exception: Counted as a failure; what the portion holds counts as given.
        """

    def stop(self, within: float) -> None:
        """The end has come: wait for nothing longer than `within` seconds. Called from another thread."""

    def close(self, ledger: Ledger) -> None:
        """Called once, last."""


def to_stderr(text: str) -> None:
    """Tell people a sentence."""
    print(printable(text), file=sys.stderr, flush=True)


class Lane:
    """Runs a sink on a thread. Call `offer` from any one thread, and `close` once."""

    def __init__(
        self,
        name: str,
        sink: Sink,
        *,
        depth: int = 16,
        moments: int = MOMENTS,
        kind: str = "module",
        tell: Callable[[str], None] = to_stderr,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Start the thread.

        Args:
            name: For messages and statistics.
            sink: The foreign code; it belongs to the thread from now on.
            depth: Most snapshots that wait.
            moments: Most moments that wait; 0: it wants none.
            kind: What the foreign code is, for messages.
            tell: Told of each new trouble, in a sentence; called on the lane's thread.
            monotonic_ns: Clock for durations.
            wall_ns: Clock for moments.
        """
        self._sink = sink
        self._depth = depth
        self._moments = moments
        self._monotonic_ns = monotonic_ns
        self._wall_ns = wall_ns
        self.ledger = Ledger(name, kind, tell)
        self._changed = threading.Condition()
        self._orphans: deque[Moment] = deque()  # of dropped snapshots: before all that waits
        self._waiting: deque[Portion] = deque()
        self._moments_waiting = 0
        self._dropped = 0  # since the snapshot given last
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"{kind} {name}", daemon=True)
        self._thread.start()

    @property
    def stats(self) -> LaneStats:
        """The counts as they are now."""
        return self.ledger.stats

    @property
    def wants_moments(self) -> bool:
        """Whether it takes events and topic changes."""
        return self._moments > 0

    def offer(self, snapshot: Snapshot, moments: Sequence[Moment] = (), number: int = 0) -> None:
        """Hand over a snapshot and what happened before it; never waits."""
        if not self._moments:
            moments = ()
        with self._changed:
            self._waiting.append(Portion(snapshot, moments, number))
            self._moments_waiting += len(moments)
            dropped = 0
            while len(self._waiting) > self._depth:
                self._orphans.extend(self._waiting.popleft().moments)
                dropped += 1
            self._dropped += dropped
            self.ledger.count(offered=1, dropped=dropped)
            self._trim()
            self._changed.notify()

    def close(self, timeout: float = 10.0) -> bool:
        """Let the foreign code finish what waits, close it, and end the thread.

        Args:
            timeout: Seconds it is given.

        Returns:
            Whether it finished in time; if not it is left behind and what still waits is counted as dropped.
        """
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._sink.stop(timeout / 2)
        self._thread.join(timeout)
        if not self._thread.is_alive():
            return True
        with self._changed:
            self._orphans.extend(moment for portion in self._waiting for moment in portion.moments)
            self.ledger.count(dropped=len(self._waiting), **_kinds(self._orphans, "_dropped"))
            self._waiting.clear()
            self._orphans.clear()
            self._moments_waiting = 0
        self.ledger.say(f"did not finish within {timeout:g} s and is left behind")
        return False

    def _trim(self) -> None:
        """Drop the oldest moments that are too many; call with the lock held."""
        excess = self._moments_waiting - self._moments
        if excess <= 0:
            return
        lost = [self._orphans.popleft() for _ in range(min(excess, len(self._orphans)))]
        for index, portion in enumerate(self._waiting):
            spare = excess - len(lost)
            if spare <= 0:
                break
            lost += portion.moments[:spare]
            self._waiting[index] = replace(portion, moments=portion.moments[spare:])
        self._moments_waiting -= len(lost)
        self.ledger.count(**_kinds(lost, "_dropped"))

    def _run(self) -> None:
        self._safely(lambda: self._sink.start(self.ledger), "while starting")
        while (portion := self._next()) is not None:
            self._give(portion)
        self._safely(lambda: self._sink.close(self.ledger), "while closing")

    def _safely(self, call: Callable[[], None], doing: str) -> None:
        try:
            call()
        except Exception as error:  # isolation is the purpose: foreign code's mistake is its own
            self.ledger.failed(sentence(error), doing)

    def _next(self) -> Portion | None:
        with self._changed:
            while not self._waiting and not self._orphans and not self._closing:
                self._changed.wait()
            if self._orphans:
                many = min(len(self._orphans), _PORTION_MOMENTS)
                portion = Portion(None, [self._orphans.popleft() for _ in range(many)])
            elif self._waiting:
                portion = replace(self._waiting.popleft(), dropped=self._dropped)
                self._dropped = 0
            else:
                return None
            self._moments_waiting -= len(portion.moments)
            return portion

    def _give(self, portion: Portion) -> None:
        errors = self.ledger.stats.errors
        snapshots = int(portion.snapshot is not None)
        began = self._monotonic_ns()
        taken = True
        try:
            self._sink.take(portion, self.ledger)
        except NotTaken:
            taken = False
        except Exception as error:
            self.ledger.failed(sentence(error))
        took = self._monotonic_ns() - began
        if not taken:
            self.ledger.count(dropped=snapshots, **_kinds(portion.moments, "_dropped"))
            with self._changed:
                self._dropped += snapshots + portion.dropped
            return
        self.ledger.count(snapshots=snapshots, busy_ns=took, **_kinds(portion.moments))
        if self.ledger.stats.errors == errors:
            self.ledger.succeeded(snapshots, took, self._wall_ns())
        elif snapshots:
            self.ledger.took(took)


def _kinds(moments: Sequence[Moment] | deque[Moment], suffix: str = "") -> dict[str, Any]:
    """How many events and topic changes these are, by the counter's name."""
    events = sum(isinstance(moment, Event) for moment in moments)
    return {f"events{suffix}": events, f"topics{suffix}": len(moments) - events}
