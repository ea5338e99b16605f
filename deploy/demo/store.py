"""The scenario of the message store: a store beside the receivers, a late joiner, and a durable subscriber.

With DEMO_STORE=1 a store keeps all topics of the feed and serves them. The subscriber `late` starts some seconds after
the feed, reads from the store what it has missed, and goes on live. The subscriber `durable` has a subscription in the
store; the demo stops it and starts it again, and it continues where it ended. Both check the numbers in the quotes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from children import Child, Children
from feed import TOPICS
from services import Places, heliograph
from subscriber import Totals

__all__ = ["NAME", "TOPIC", "StoreScenario", "faults"]

NAME, LATE, DURABLE = "store", "late", "durable"
TOPIC = "PRICES.FX"
"""Topic of both subscribers; the store keeps all."""
LATE_SECONDS = 5.0
"""`late` starts so long after the feed."""
RUN_SECONDS = 6.0
AWAY_SECONDS = 4.0
"""`durable` runs and is away in turns: two bursts of the feed come meanwhile."""
START_SECONDS = 15.0
DRAIN_SECONDS = 30.0
RETENTION = ("--segment-bytes=8M", "--retain-bytes=64M")
"""The feed fills about 0.5 MB per second."""


def faults(runs: Sequence[Totals], sent: int) -> list[str]:
    """What is missing or repeated in the runs of one subscriber.

    Args:
        runs: The totals of its processes in their order.
        sent: Number of messages that the feed has sent on the topic.
    """
    found, due = [], 0
    for run in runs:
        if not run.messages:
            continue
        if missing := run.missing + max(0, run.first - due):
            found.append(f"a gap: {missing:,} missing between {due:,} and {run.following:,}")
        if repeated := run.repeated + max(0, due - run.first):
            found.append(f"duplicates: {repeated:,} between {run.first:,} and {run.following:,}")
        due = run.following
    if due != sent:
        found.append(f"it ends before message {due:,}, the feed sent {sent:,}")
    return found


@dataclass(slots=True)
class _Subscriber:
    """A subscriber and the totals of its processes."""

    name: str
    options: tuple[str, ...] = ()
    child: Child | None = None
    """None before its start and while it is away."""
    started: float = 0.0
    ended: float = 0.0
    is_caught_up: bool = False
    runs: list[Totals] = field(default_factory=list)

    def hear(self, timeout: float = 0.001) -> Totals | None:
        """Return the totals that it has printed since; None when there are none within `timeout` seconds."""
        line = self.child.hear(timeout) if self.child is not None else None
        if line is None:
            return None
        totals = Totals(**line)
        self.runs[-1] = totals
        return totals


class StoreScenario:
    """The store and its subscribers. Call `step` while the demo runs, `end` at its end, then `drain` and `close`."""

    def __init__(
        self, children: Children, places: Places, endpoint: str, port: int, say: Callable[[str], None]
    ) -> None:
        """Start the store. It must listen (`listens`) before the feed starts.

        Args:
            children: The processes of the demo.
            places: Its directories.
            endpoint: Endpoint of the feed.
            port: TCP port of the service.
            say: Prints one line.
        """
        self._children = children
        self._endpoint = endpoint
        self._say = say
        self._folder = places.out / NAME
        self._address = f"store://127.0.0.1:{port}"
        self._late = _Subscriber(LATE)
        self._durable = _Subscriber(DURABLE, (f"--subscription={DURABLE}",))
        self._begun: float | None = None
        self._is_returned = False
        """Whether `durable` was away in time and has come back."""
        listen = f"--listen=127.0.0.1:{port}"
        command = heliograph("store", "serve", self._folder, endpoint, *TOPICS, listen, f"--option=name={NAME}")
        self.store = children.start(NAME, [*command, *RETENTION])

    def listens(self) -> bool:
        """Whether the store receives and serves; waits for it."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.store.process.poll() is None:
            if b"keeping " in self.store.log.read_bytes():
                return True
            time.sleep(0.02)
        return False

    def show(self) -> None:
        """Print commands to try."""
        command = ".venv/bin/heliograph"
        self._say(f"store        {command} store ls {self._folder}")
        self._say(f"             {command} store subscriptions {self._address}")
        self._say(
            f"             {command} sub '{self._endpoint}' {TOPIC} --store {self._address} --format quiet --stats"
        )

    # ---- the run ----

    def step(self) -> None:
        """Start and stop the subscribers when it is time, and print what they report."""
        now = time.monotonic()
        if self._begun is None:
            self._begun = now
            self._start(self._durable)
        for one in (self._late, self._durable):
            self._note(one)
        if self._late.child is None and now >= self._begun + LATE_SECONDS:
            self._say(f"{LATE} joins {LATE_SECONDS:g} s after the others and reads from {self._address}")
            self._start(self._late)
        durable = self._durable
        if durable.child is None:
            if now >= durable.ended + AWAY_SECONDS:
                self._return()
        elif durable.is_caught_up and now >= durable.started + RUN_SECONDS:
            self._stop_durable()

    def end(self) -> None:
        """Let `durable` come back, so that it gets the last messages."""
        if self._begun is not None and self._durable.child is None:
            self._return()

    def _start(self, one: _Subscriber) -> None:
        script = Path(__file__).with_name("subscriber.py")
        options = (f"--name={one.name}", f"--endpoint={self._endpoint}", f"--topic={TOPIC}", f"--store={self._address}")
        one.child = self._children.start(one.name, [sys.executable, script, *options, *one.options], talks=True)
        one.started = time.monotonic()
        one.is_caught_up = False
        one.runs.append(Totals())

    def _note(self, one: _Subscriber) -> None:
        """Print that a subscriber has caught up, once in each of its runs."""
        totals = one.hear()
        if totals is None or one.is_caught_up:
            return
        one.is_caught_up = True
        caught_up = f"{totals.from_store:,} messages from the store in {totals.catch_up_s:.2f} s, goes on live"
        self._say(f"{one.name} begins at message {totals.first:,}: {caught_up}")

    def _stop_durable(self) -> None:
        child = self._durable.child
        if child is None:
            return
        self._children.end(child)
        totals = self._durable.hear(1.0)
        self._durable.child = None
        self._durable.ended = time.monotonic()
        if totals is not None:
            self._say(f"{DURABLE} is stopped before message {totals.following:,}, for {AWAY_SECONDS:g} s")

    def _return(self) -> None:
        self._is_returned = self._is_returned or time.monotonic() >= self._durable.ended + AWAY_SECONDS
        self._say(f"{DURABLE} starts again and continues its subscription")
        self._start(self._durable)

    # ---- the report ----

    def drain(self, sent: int) -> None:
        """Wait until the subscribers have all messages.

        Args:
            sent: Number of messages that the feed has sent on their topic.
        """
        until = time.monotonic() + DRAIN_SECONDS
        for one in (self._late, self._durable):
            if one.child is not None:
                one.child.say(f"until {sent}")
            while one.child is not None and one.runs[-1].following < sent and time.monotonic() < until:
                self._note(one)
                time.sleep(0.02)

    def close(self, sent: int) -> bool:
        """End the subscribers and the store, and print what they got; returns whether nothing was missing or repeated.

        Args:
            sent: Number of messages that the feed has sent on their topic.
        """
        is_good = True
        for one in (self._late, self._durable):
            if one.child is None:
                continue
            self._children.end(one.child)
            while one.hear(1.0) is not None:
                pass
            wrong = faults(one.runs, sent)
            is_good = is_good and not wrong
            messages, stored = (sum(getattr(run, name) for run in one.runs) for name in ("messages", "from_store"))
            starts = f" in {len(one.runs)} runs" if len(one.runs) > 1 else ""
            verdict = "; ".join(wrong) or "no gap, no duplicate"
            self._say(f"{one.name}: {messages:,} messages of {TOPIC}{starts}, {stored:,} from the store; {verdict}")
        self._children.end(self.store)
        if self._late.child is None or not self._is_returned:
            self._say(f"the demo ended before the scenario of the store, which takes {RUN_SECONDS + AWAY_SECONDS:g} s")
        return is_good
