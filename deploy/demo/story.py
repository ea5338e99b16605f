"""The story of a slow consumer: made to happen, watched from outside, and told with its evidence.

With DEMO_SLOW the receiver `slow` keeps up at first, then pauses after each batch for some seconds, then keeps up
again, and so on for as long as the demo runs. What follows is read from the stats segments, as an operator would see
it: what the feed decided about `slow`, what `slow` was told, and whether the others' latency suffered meanwhile.

    observe   the feed decides and does nothing; its statistics say what it would have done
    advise    events say what would be done, too
    enforce   it is done: `slow` is warned, suspended, told so, and readmitted when it has recovered
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

from heliograph.monitor.latency import merged, percentile
from heliograph.monitor.model import Event, Histogram, Snapshot
from heliograph.monitor.sampler import Sampler

__all__ = ["PAUSE", "Mode", "Story", "Telling"]

PAUSE = 0.12
"""Seconds `slow` sleeps after each batch while it is in trouble: some hundred messages a second of thousands."""
WARM_SECONDS = 4.0
"""What is started with the demo takes the processors at first."""
PHASE_SECONDS = 6.0
"""How long the calm that is compared with the trouble, and the trouble, take: three periods of the feed each."""
REST_SECONDS = 8.0
RECOVERY_SECONDS = 3.0
"""How long after its trouble `slow` is readmitted, at the latest."""
POLL_EVERY = 0.5
LATENCY_FACTOR = 1.2
"""The others' p99 is to stay within this of what it was before."""
SUSPEND, RESUME = 5, 8
"""Numbers of decisions in the arguments of events about consumers."""


class Mode(StrEnum):
    """What the feed does about slow consumers (option slow_mode)."""

    OBSERVE = "observe"
    ADVISE = "advise"
    ENFORCE = "enforce"


@dataclass(frozen=True, slots=True)
class Telling:
    """What an event must be to be the next sentence of the story."""

    words: str
    """For people."""
    instance: str
    event: str
    action: int | None = None
    """Value of its argument `action`; None: it may have any."""

    def fits(self, event: Event) -> bool:
        """Whether the event says it."""
        named = (event.instance, event.name) == (self.instance, self.event)
        return named and self.action in (None, event.arguments.get("action"))


TELLINGS: Mapping[Mode, Sequence[Telling]] = {
    Mode.OBSERVE: (),
    Mode.ADVISE: (
        Telling("it is found slow", "feed", "consumer_slow"),
        Telling("it would be suspended", "feed", "consumer_advice", SUSPEND),
        Telling("it would be readmitted", "feed", "consumer_advice", RESUME),
    ),
    Mode.ENFORCE: (
        Telling("it is found slow, and warned", "feed", "consumer_slow"),
        Telling("it is suspended", "feed", "consumer_suspended", SUSPEND),
        Telling("it is told so, and obeys", "slow", "suspended"),
        Telling("it has recovered and is readmitted", "feed", "consumer_readmitted", RESUME),
        Telling("it is told so, and goes on", "slow", "resumed"),
    ),
}
"""The sentences of the story in their order."""


@dataclass(slots=True)
class _Phase:
    """A stretch of the run: the latency of the others when it began and when it ended."""

    begun: Mapping[str, Histogram]
    ended: Mapping[str, Histogram] = field(default_factory=dict)

    def histogram(self, name: str) -> Histogram | None:
        """What one of the others met in it; None when it met nothing."""
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
    """One demo's story. `step` is called while the demo runs, `end` when it comes to its end. A context manager."""

    def __init__(
        self, mode: Mode, slow: Child, others: Sequence[str], segments: Path, say: Callable[[str], None]
    ) -> None:
        """Nothing happens before the first `step`.

        Args:
            mode: What the feed does.
            slow: The receiver that will be slow.
            others: Names of the receivers whose latency must not suffer.
            segments: Folder of the stats segments.
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
        """The first trouble and the recovery from it had the time they take."""
        self._events: list[Event] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sampler.close()

    # ---- what happens ----

    def step(self) -> None:
        """Begin the next act when it is due, and note what happened."""
        now = time.monotonic()
        if now >= self._act_due:
            act, lasts = next(self._acts)
            act()
            self._act_due = now + lasts
        if now >= self._poll_due:
            self._poll_due = now + POLL_EVERY
            self._note(self._sampler.sample(histograms=False))

    def end(self) -> None:
        """Let `slow` recover if it has not, so that the books can be settled."""
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
        self._say("slow does not pause any more")

    # ---- what is told of it ----

    def told(self) -> list[tuple[Telling, Event]]:
        """The story as far as it went: each sentence with the event that says it."""
        found: list[tuple[Telling, Event]] = []
        wanted = list(TELLINGS[self._mode])
        for event in sorted(self._events, key=lambda event: event.time_ns):
            if wanted and wanted[0].fits(event) and self._concerns_slow(event):
                found.append((wanted.pop(0), event))
        return found

    def _concerns_slow(self, event: Event) -> bool:
        return event.instance == "slow" or "receiver slow at " in event.text

    def verdict(self) -> bool:
        """Tell the story and the others' latency; whether it went as the mode says. Ended early, there is none."""
        self._note(self._sampler.sample(histograms=False))
        if not self._is_whole:
            whole = WARM_SECONDS + 2 * PHASE_SECONDS + RECOVERY_SECONDS
            self._say(f"the demo ended before the story of slow did, which takes {whole:g} s")
            return True
        self._tell_latency()
        if self._mode is Mode.OBSERVE:
            return self._tell_statistics()
        return self._tell_story() and self._is_as_announced()

    def heard(self, notices: Mapping[str, int]) -> bool:
        """Whether the application of `slow` was told what the feed did, and of nothing that it did not do.

        Args:
            notices: How often it was told of each action.
        """
        told = ", ".join(f"{action} {count}" for action, count in sorted(notices.items())) or "nothing"
        self._say(f"slow itself was told: {told}")
        if self._mode is not Mode.ENFORCE:
            return not notices
        return not self._is_whole or notices.keys() >= {"notify", "suspend", "resume"}

    def _tell_story(self) -> bool:
        told = self.told()
        self._say("what happened to slow, from the events:")
        for number, (telling, event) in enumerate(told, 1):
            moment = datetime.fromtimestamp(event.time_ns / 1e9)
            self._say(f"  {number}. {moment:%H:%M:%S.%f} {telling.words}")
            self._say(f"     {event.instance}: {event.name}: {event.text}")
        missing = TELLINGS[self._mode][len(told) :]
        for telling in missing:
            self._say(f"no event of {telling.instance} tells that {telling.words} ({telling.event})")
        return not missing

    def _is_as_announced(self) -> bool:
        """Whether nothing was done that was only to be advised, and nobody else was suspended."""
        done = [event for event in self._events if event.name == "consumer_suspended"]
        if self._mode is Mode.ADVISE and done:
            self._say("slow was suspended, though the feed was only to advise")
            return False
        for event in done:
            if not self._concerns_slow(event):
                self._say(f"another one was treated, too: {event.text}")
        return True

    def _tell_statistics(self) -> bool:
        """Mode observe: the decisions are counted, and that is all."""
        decided: dict[str, int] = {}
        for owner, item in self._sampler.sample(histograms=False).of("tx_stream"):
            if owner.name == "feed":
                decided = {name: value for name, value in item.values.items() if name.startswith("slow_") and value}
        self._say("what the feed would have done: " + ", ".join(f"{name} {value}" for name, value in decided.items()))
        told = [event for event in self._events if event.name.startswith("consumer_") or event.name == "suspended"]
        for event in told:
            self._say(f"it was told, though the feed was only to observe: {event.name}: {event.text}")
        return bool(decided.get("slow_decisions_suspend")) and "slow_actions_suspend" not in decided and not told

    def _tell_latency(self) -> None:
        """The others' p99 while `slow` was in trouble against the calm before."""
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
