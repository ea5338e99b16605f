"""A lane: external code on its own thread behind a bounded queue, so that it cannot delay others.

Exporters and modules, in this process or in a child process, run behind a lane. It guarantees:

- `offer` returns at once, always.
- When more than `depth` snapshots wait, the oldest is dropped and counted. All statistics are totals since the start,
  so a missed snapshot makes a longer interval, not a gap.
- The moments (events, created and destroyed topics) of a dropped snapshot stay, in order, before those of the next one.
  The oldest are dropped and counted only when more than `moments` of them wait.
- Exceptions of the external code are counted, reported once while they last, and do not affect others.
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
    """The input of external code: a snapshot and the moments since the previous one."""

    snapshot: Snapshot | None
    """None: only the moments of dropped snapshots."""
    moments: Sequence[Moment] = ()
    number: int = 0
    """Number of the snapshot, from 1."""
    dropped: int = 0
    """Snapshots that this code missed since the previous one."""


@dataclass(frozen=True, slots=True)
class LaneStats:
    """The account of everything offered to a lane."""

    name: str
    kind: str = "module"
    """Kind of the external code: a module or an exporter."""
    offered: int = 0
    """Snapshots."""
    snapshots: int = 0
    """Snapshots passed to the external code."""
    dropped: int = 0
    """Snapshots dropped because the code was too slow, or lost with it."""
    succeeded: int = 0
    """Snapshots that it took without failure."""
    events: int = 0
    events_dropped: int = 0
    topics: int = 0
    """Changes of topics passed to it."""
    topics_dropped: int = 0
    errors: int = 0
    crashes: int = 0
    """Number of times its process ended unexpectedly, or was killed because it did not answer."""
    restarts: int = 0
    lost: int = 0
    """Items that the code reports to have dropped."""
    error: str = ""
    """Present failure; empty after a success."""
    last_error: str = ""
    busy_ns: int = 0
    """Time spent in the external code, ns."""
    duration_ns: int = 0
    """Time spent on the last snapshot, ns."""
    success_ns: int = 0
    """Wall clock of the last success, ns since 1970; 0 before the first."""

    @property
    def busy_seconds(self) -> float:
        """Time spent in the external code, seconds."""
        return self.busy_ns / 1e9


class NotTaken(Exception):
    """A sink could not pass on a portion: it counts as dropped, and the sink has reported the reason."""


def sentence(error: Exception) -> str:
    """Return the text of an error for the user."""
    told = isinstance(error, UserError) and str(error)
    return str(error) if told else f"{type(error).__name__}: {error}".removesuffix(": ")


class Ledger:
    """The account of one lane: counts, and reports each fault once while it lasts. Any thread may use it."""

    def __init__(self, name: str, kind: str, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._stats = LaneStats(name, kind)

    @property
    def stats(self) -> LaneStats:
        """Return the present counts."""
        with self._lock:
            return self._stats

    def count(self, **by: int) -> None:
        """Add to counters of `LaneStats`, by name."""
        with self._lock:
            self._stats = replace(self._stats, **{name: getattr(self._stats, name) + n for name, n in by.items()})

    def failed(self, text: str, doing: str = "", times: int = 1) -> None:
        """Count a failure of the external code; report it unless the present failure has the same text.

        Args:
            text: The cause.
            doing: The action that failed, such as "while publishing" or "in snapshot".
            times: Number of failures with this text.
        """
        with self._lock:
            known = self._stats.error
            self._stats = replace(self._stats, errors=self._stats.errors + times, error=text, last_error=text)
        if text != known:
            self._tell(f"{self._stats.kind} {self._stats.name}{' failed ' * bool(doing)}{doing}: {text}")

    def say(self, text: str) -> None:
        """Report a message about this lane: the end of a sentence that begins with its name."""
        self._tell(f"{self._stats.kind} {self._stats.name} {text}")

    def succeeded(self, snapshots: int, duration_ns: int, wall_ns: int) -> None:
        """Count a portion that succeeded."""
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
        """Count a portion that failed, with its duration."""
        with self._lock:
            self._stats = replace(self._stats, duration_ns=duration_ns)


class Sink(Protocol):
    """The connection of a lane to external code. Called from the lane's thread, except `stop`."""

    def start(self, ledger: Ledger) -> None:
        """Called once, first."""

    def take(self, portion: Portion, ledger: Ledger) -> None:
        """Pass a portion to the external code, and report every failure to `ledger`.

        Raises:
            NotTaken: The portion could not be passed on.
            Exception: Counted as a failure; the portion counts as passed on.
        """

    def stop(self, within: float) -> None:
        """The end: from now on wait at most `within` seconds. Called from another thread."""

    def close(self, ledger: Ledger) -> None:
        """Called once, last."""


def to_stderr(text: str) -> None:
    """Print a message."""
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
            name: Name for messages and statistics.
            sink: The external code; it now belongs to the thread.
            depth: Largest number of waiting snapshots.
            moments: Largest number of waiting moments; 0: it wants none.
            kind: Kind of the external code, for messages.
            tell: Receives each new fault as a sentence; called on the lane's thread.
            monotonic_ns: Clock for durations.
            wall_ns: Clock for times.
        """
        self._sink = sink
        self._depth = depth
        self._moments = moments
        self._monotonic_ns = monotonic_ns
        self._wall_ns = wall_ns
        self.ledger = Ledger(name, kind, tell)
        self._changed = threading.Condition()
        self._orphans: deque[Moment] = deque()  # of dropped snapshots; they come before all others
        self._waiting: deque[Portion] = deque()
        self._moments_waiting = 0
        self._dropped = 0  # since the last snapshot passed on
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"{kind} {name}", daemon=True)
        self._thread.start()

    @property
    def stats(self) -> LaneStats:
        """The counts as they are now."""
        return self.ledger.stats

    @property
    def wants_moments(self) -> bool:
        """Whether the code takes events and topic changes."""
        return self._moments > 0

    def offer(self, snapshot: Snapshot, moments: Sequence[Moment] = (), number: int = 0) -> None:
        """Offer a snapshot and the moments before it; never waits."""
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
        """Let the external code process the waiting input, close it, and end the thread.

        Args:
            timeout: Longest time for this, in seconds.

        Returns:
            Whether it finished in time; otherwise the thread is abandoned, and the waiting input counts as dropped.
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
        self.ledger.say(f"did not finish within {timeout:g} s and is abandoned")
        return False

    def _trim(self) -> None:
        """Drop the oldest moments above the limit; call with the lock held."""
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
        except Exception as error:  # an error of external code must not affect others
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
    """Count events and topic changes, by the name of the counter."""
    events = sum(isinstance(moment, Event) for moment in moments)
    return {f"events{suffix}": events, f"topics{suffix}": len(moments) - events}
