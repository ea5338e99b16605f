"""The scenario of a slow receiver: creates it, observes it from outside, and reports it with its events.

With DEMO_SLOW the receiver `slow` keeps up at first, then pauses after each batch for some seconds, then keeps up
again, and so on. The results are read from the stats segments, as an operator would see them: the decisions of the feed
about `slow`, the notices that `slow` got, and the latency of the other receivers.

    observe   the feed decides and takes no action; its statistics count the actions it would take
    advise    events show the actions too
    enforce   actions are taken: `slow` is warned, suspended, notified, and readmitted after it has recovered
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import cycle
from pathlib import Path
from types import TracebackType
from typing import Self

from children import Child

from heliograph.monitor.latency import percentile
from heliograph.monitor.model import Event, Histogram, Snapshot
from heliograph.monitor.sampler import Sampler
from heliograph.monitor.sparse import merged

__all__ = ["PAUSE", "Mode", "Story", "Telling"]

PAUSE = 0.12
"""Seconds that `slow` sleeps after each batch while it is slow: it takes some hundred messages/s."""
WARM_SECONDS = 4.0
"""The processes that start with the demo use the CPU at first."""
PHASE_SECONDS = 6.0
"""Length of the quiet phase and of the slow phase: three periods of the feed each."""
REST_SECONDS = 8.0
RECOVERY_SECONDS = 3.0
"""Longest time from the end of the pause to the readmission of `slow`."""
POLL_EVERY = 0.5
LATENCY_FACTOR = 1.2
"""Largest allowed ratio of the others' p99 in the slow phase to the quiet phase."""
SUSPEND, RESUME = 5, 8
"""Numbers of actions in the arguments of events about receivers."""
SLOW_EVENTS = {
    f"receiver_{end}"
    for end in ["slow", "paced", "suspended", "expelled", "readmitted", "forecast", "spared", "advice"]
}
"""Events of a source about slow receivers."""
STORY_EVENTS = {*SLOW_EVENTS, "suspended"}
"""With the event of the receiver itself."""


class Mode(StrEnum):
    """The mode of the feed towards slow receivers (option slow_mode)."""

    OBSERVE = "observe"
    ADVISE = "advise"
    ENFORCE = "enforce"


@dataclass(frozen=True, slots=True)
class Telling:
    """The event that forms the next sentence of the report."""

    words: str
    """The sentence."""
    instance: str
    event: str
    action: int | None = None
    """Value of its argument `action`; None: any."""

    def fits(self, event: Event) -> bool:
        """Whether an event matches."""
        named = (event.instance, event.name) == (self.instance, self.event)
        return named and self.action in (None, event.arguments.get("action"))


TELLINGS: Mapping[Mode, Sequence[Telling]] = {
    Mode.OBSERVE: (),
    Mode.ADVISE: (
        Telling("it is found slow", "feed", "receiver_slow"),
        Telling("it would be suspended", "feed", "receiver_advice", SUSPEND),
        Telling("it would be readmitted", "feed", "receiver_advice", RESUME),
    ),
    Mode.ENFORCE: (
        Telling("it is found slow, and warned", "feed", "receiver_slow"),
        Telling("it is suspended", "feed", "receiver_suspended", SUSPEND),
        Telling("it is notified, and obeys", "slow", "suspended"),
        Telling("it has recovered and is readmitted", "feed", "receiver_readmitted", RESUME),
        Telling("it is notified, and continues", "slow", "resumed"),
    ),
}
"""The sentences of the report in order, by mode."""


@dataclass(slots=True)
class _Phase:
    """A part of the run: the latency of the others at its begin and its end."""

    begun: Mapping[str, Histogram]
    ended: Mapping[str, Histogram] = field(default_factory=dict)

    def histogram(self, name: str) -> Histogram | None:
        """Return the latency of one receiver in this phase; None when it got no message."""
        ended = self.ended.get(name)
        return ended.minus(self.begun.get(name)) if ended is not None else None


def _latencies(snapshot: Snapshot, names: Sequence[str]) -> dict[str, Histogram]:
    """Total latency of each named instance over all topics, so far."""
    found: dict[str, list[Histogram]] = {}
    for owner, item in snapshot.of("receiver"):
        if owner.name in names and (histogram := item.histograms.get("total_latency")) is not None:
            found.setdefault(owner.name, []).append(histogram)
    return {name: both for name, group in found.items() if (both := merged(group)) is not None}


class Story:
    """The scenario of one demo. Call `step` while the demo runs, and `end` at its end. A context manager."""

    def __init__(
        self, mode: Mode, slow: Child, others: Sequence[str], segments: Path, say: Callable[[str], None]
    ) -> None:
        """Create the scenario; nothing happens before the first `step`.

        Args:
            mode: Mode of the feed.
            slow: The receiver that becomes slow.
            others: Names of the receivers whose latency must not suffer.
            segments: Directory of the stats segments.
            say: Prints one line.
        """
        self._mode = mode
        self._slow = slow
        self._others = others
        self._say = say
        self._sampler = Sampler(segments)
        self._acts = cycle(((self._calm, PHASE_SECONDS), (self._trouble, PHASE_SECONDS), (self._recover, REST_SECONDS)))
        self._act_due = time.monotonic() + WARM_SECONDS
        self._poll_due = 0.0
        self._calms: list[_Phase] = []
        self._troubles: list[_Phase] = []
        self._is_slow = False
        self._recovered_at = math.inf
        self._is_whole = False
        """Whether the first slow phase and the recovery had their full time."""
        self._events: list[Event] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sampler.close()

    # ---- the run ----

    def step(self) -> None:
        """Begin the next phase when it is due, and collect events."""
        now = time.monotonic()
        if now >= self._act_due:
            act, lasts = next(self._acts)
            act()
            self._act_due = now + lasts
        if now >= self._poll_due:
            self._poll_due = now + POLL_EVERY
            self._note(self._sampler.sample(histograms=False))

    def end(self) -> None:
        """Let `slow` recover, so that the counters can be reconciled."""
        self._is_whole = time.monotonic() - self._recovered_at >= RECOVERY_SECONDS
        if self._is_slow:
            self._recover()

    def _measure(self) -> dict[str, Histogram]:
        snapshot = self._sampler.sample(("total_latency",))
        self._note(snapshot)
        return _latencies(snapshot, self._others)

    def _note(self, snapshot: Snapshot) -> None:
        self._events += snapshot.events

    def _calm(self) -> None:
        self._calms.append(_Phase(self._measure()))

    def _trouble(self) -> None:
        now = self._measure()
        self._calms[-1].ended = now
        self._troubles.append(_Phase(now))
        self._is_slow = True
        self._slow.say(f"pause {PAUSE}")
        self._say(f"slow pauses {PAUSE:g} s after each batch from now on")

    def _recover(self) -> None:
        self._slow.say("pause 0")
        self._is_slow = False
        self._recovered_at = min(self._recovered_at, time.monotonic())
        self._troubles[-1].ended = self._measure()
        self._say("slow no longer pauses")

    # ---- the report ----

    def told(self) -> list[tuple[Telling, Event]]:
        """The sentences reported so far, each with its event."""
        found: list[tuple[Telling, Event]] = []
        wanted = list(TELLINGS[self._mode])
        for event in sorted(self._events, key=lambda event: event.time_ns):
            if wanted and wanted[0].fits(event) and self._concerns_slow(event):
                found.append((wanted.pop(0), event))
        return found

    def _concerns_slow(self, event: Event) -> bool:
        return event.instance == "slow" or "receiver slow at " in event.text

    def verdict(self) -> bool:
        """Print the scenario and the others' latency; returns whether it matches the mode. True when ended early."""
        self._note(self._sampler.sample(histograms=False))
        if not self._is_whole:
            whole = WARM_SECONDS + 2 * PHASE_SECONDS + RECOVERY_SECONDS
            self._say(f"the demo ended before the scenario of slow, which takes {whole:g} s")
            return True
        self._tell_latency()
        if self._mode is Mode.OBSERVE:
            return self._tell_statistics()
        return self._tell_story() and self._is_as_announced()

    def heard(self, notices: Mapping[str, int]) -> bool:
        """Whether the application of `slow` got notices of the feed's actions, and of no others.

        Args:
            notices: Number of notices by action.
        """
        told = ", ".join(f"{action} {count}" for action, count in sorted(notices.items())) or "nothing"
        self._say(f"notices to slow: {told}")
        if self._mode is not Mode.ENFORCE:
            return not notices
        return not self._is_whole or notices.keys() >= {"notify", "suspend", "resume"}

    def _tell_story(self) -> bool:
        told = self.told()
        self._say("events about slow:")
        for number, (telling, event) in enumerate(told, 1):
            moment = datetime.fromtimestamp(event.time_ns / 1e9)
            self._say(f"  {number}. {moment:%H:%M:%S.%f} {telling.words}")
            self._say(f"     {event.instance}: {event.name}: {event.text}")
        missing = TELLINGS[self._mode][len(told) :]
        for telling in missing:
            self._say(f"missing event of {telling.instance}: {telling.words} ({telling.event})")
        return not missing

    def _is_as_announced(self) -> bool:
        """Whether no action was taken in mode advise, and no other receiver was suspended."""
        done = [event for event in self._events if event.name == "receiver_suspended"]
        if self._mode is Mode.ADVISE and done:
            self._say("slow was suspended, although the mode is advise")
            return False
        for event in done:
            if not self._concerns_slow(event):
                self._say(f"another receiver got an action: {event.text}")
        return True

    def _tell_statistics(self) -> bool:
        """Mode observe: the statistics count the decisions; there are no events."""
        decided: dict[str, int] = {}
        for owner, item in self._sampler.sample(histograms=False).of("tx_stream"):
            if owner.name == "feed":
                decided = {name: value for name, value in item.values.items() if name.startswith("slow_") and value}
        self._say(
            "actions the feed would have taken: " + ", ".join(f"{name} {value}" for name, value in decided.items())
        )
        told = [event for event in self._events if event.name in STORY_EVENTS]
        for event in told:
            self._say(f"event in mode observe: {event.name}: {event.text}")
        return bool(decided.get("slow_decisions_suspend")) and "slow_actions_suspend" not in decided and not told

    def _tell_latency(self) -> None:
        """Print the others' p99 in the slow phase and in the quiet phase before."""
        for name in self._others:
            before = merged(found for phase in self._calms if (found := phase.histogram(name)) is not None)
            during = merged(found for phase in self._troubles if (found := phase.histogram(name)) is not None)
            if before is None or during is None or not (calm := percentile(before, 0.99)):
                self._say(f"{name}: no latency was measured")
                continue
            trouble = percentile(during, 0.99)
            ratio = trouble / calm
            verdict = "within" if ratio <= LATENCY_FACTOR else "not within"
            self._say(
                f"{name}: p99 of the total latency {calm / 1e6:.2f} ms before, {trouble / 1e6:.2f} ms while slow was "
                f"in trouble: ratio {ratio:.2f}, {verdict} {LATENCY_FACTOR:g}"
            )
