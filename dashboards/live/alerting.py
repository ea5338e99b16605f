"""The alerts behind the pages: every sample is recorded, and the rules are judged while a page needs them.

One thread does both, so that neither the sampler nor a page waits for it. After a long judgement the next one comes
later: judging takes at most a tenth of the time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from heliograph.dashboards.live.silences import Alertmanager, Silences
from heliograph.monitor.alerts import Evaluator, Judgement, Rule, State
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Snapshot

__all__ = ["Alerting", "Board"]

_NEEDED_SECONDS = 60.0
"""Time that the rules are judged after the last page that needed them."""
_PAUSE = 9.0
"""Pause after a judgement, in lengths of it."""
_REST = 19.0
"""Pause between two recordings, in lengths of the processor time of one: recording takes a twentieth of a core."""
_MOST_OBJECTS = 20_000
"""Objects of a fleet whose rules can be judged here: recording a sample of twice as many takes 10 s."""
_END_SECONDS = 50.0
"""Longest time to wait for a judgement at the end."""


@dataclass(frozen=True, slots=True)
class Board:
    """The alerts for a view; immutable."""

    rules: Sequence[Rule] = ()
    kept: float = 0.0
    """Seconds of samples that the judgement may have."""
    judgement: Judgement = field(default_factory=Judgement)
    trouble: str = ""
    """Why the newest judgement failed; empty when it succeeded."""
    since_ns: int = 0
    """Time of the first failure since the last judgement, wall clock in ns."""
    silences: Silences | None = None
    """None: no Alertmanager is given."""

    def count(self, state: State) -> int:
        """Return the number of rules in a state."""
        return sum(self.judgement.state(rule) is state for rule in self.rules)


class Alerting:
    """Judges on its own thread from `start` to `close`; `judge` judges now, for callers with their own clock."""

    def __init__(
        self,
        evaluator: Evaluator,
        alertmanager: Alertmanager | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Create it without samples.

        Args:
            evaluator: Judges the rules.
            alertmanager: Reads the silences; None: there is none.
            clock: Wall clock in ns since 1970.
        """
        self._evaluator = evaluator
        self._alertmanager = alertmanager
        self._clock = clock
        self._judgement = Judgement()
        self._trouble, self._since_ns = "", 0
        self._latest: Snapshot | None = None
        self._fed = threading.Event()
        self._needed_until = 0.0
        self._due = 0.0
        self._rested = 0.0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def board(self) -> Board:
        """Return the newest alerts and silences."""
        evaluator, manager = self._evaluator, self._alertmanager
        return Board(
            evaluator.rules,
            evaluator.kept,
            self._judgement,
            self._trouble,
            self._since_ns,
            manager.silences if manager is not None else None,
        )

    def feed(self, snapshot: Snapshot) -> None:
        """Take a sample; returns at once."""
        self._latest = snapshot
        self._fed.set()

    def need(self) -> None:
        """Judge the rules and read the silences for a minute from now; returns at once."""
        is_new = time.monotonic() >= self._needed_until
        self._needed_until = time.monotonic() + _NEEDED_SECONDS
        if is_new:
            self._fed.set()
        if self._alertmanager is not None:
            self._alertmanager.need()

    def judge(self, snapshot: Snapshot, *, record_only: bool = False) -> None:
        """Record a sample and judge the rules."""
        objects = sum(len(instance.objects) for instance in snapshot.instances)
        if objects > _MOST_OBJECTS:
            self._fail(
                f"the fleet has {objects:,} objects, and this page judges up to {_MOST_OBJECTS:,}; ask Prometheus"
            )
            return
        try:
            self._evaluator.record(snapshot)
            if record_only:
                return
            self._judgement = self._evaluator.evaluate()
        except UserError as error:
            self._fail(str(error))
        except Exception as error:  # the thread must survive any error, and the page show it
            self._fail(f"judging failed: {error}")
        else:
            self._trouble = ""

    def _fail(self, text: str) -> None:
        if not self._trouble:
            self._since_ns = self._clock()
        self._trouble = text

    def start(self) -> None:
        """Begin to judge what is fed."""
        if self._alertmanager is not None:
            self._alertmanager.start()
        self._thread = threading.Thread(target=self._run, name="heliograph-live-alerts", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; returns when the threads have ended."""
        self._stopping.set()
        self._fed.set()
        if self._alertmanager is not None:
            self._alertmanager.close()
        if self._thread is not None:
            self._thread.join(timeout=_END_SECONDS)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._fed.wait()
            self._fed.clear()
            snapshot, began = self._latest, time.monotonic()
            if snapshot is None or self._stopping.is_set():
                continue
            is_due = self._due <= began < self._needed_until
            if not is_due and began < self._rested:
                continue
            used = time.thread_time()
            self.judge(snapshot, record_only=not is_due)
            self._rested = began + _REST * (time.thread_time() - used)
            if is_due:
                took = time.monotonic() - began
                self._due = began + max(self._evaluator.step, (1 + _PAUSE) * took)
