"""A lane: one exporter on a thread of its own, so that a slow or failing one holds up nobody else.

A lane holds at most one snapshot that waits.  When the next one comes first, the older is skipped and counted: all
statistics are totals since the start, so an exporter that misses a snapshot has a longer interval, not a hole.  What an
exporter raises is counted, told once, and changes nothing for the others.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from heliograph.exporters import Exporter
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Snapshot

__all__ = ["Lane", "LaneState"]


@dataclass(frozen=True, slots=True)
class LaneState:
    """What a lane counts about its exporter."""

    exporter: str
    published: int = 0
    failed: int = 0
    skipped: int = 0
    duration_ns: int = 0
    """Time the last snapshot took."""
    success_ns: int = 0
    """Wall clock of the last success, since 1970; 0 before the first."""
    error: str = ""
    """What the last snapshot failed with; empty after a success."""


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Lane:
    """Runs one exporter and measures it."""

    def __init__(
        self,
        name: str,
        exporter: Exporter,
        *,
        tell: Callable[[str], None] = _to_stderr,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._exporter = exporter
        self._tell = tell
        self._monotonic_ns = monotonic_ns
        self._wall_ns = wall_ns
        self._state = LaneState(name)
        self._changed = threading.Condition()
        self._waiting: Snapshot | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"export-{name}", daemon=True)
        self._thread.start()

    @property
    def state(self) -> LaneState:
        """The counts as they are now."""
        with self._changed:
            return self._state

    def offer(self, snapshot: Snapshot) -> None:
        """Hand over a snapshot; never waits for the exporter."""
        with self._changed:
            if self._waiting is not None:
                self._state = replace(self._state, skipped=self._state.skipped + 1)
            self._waiting = snapshot
            self._changed.notify()

    def close(self, timeout: float = 10.0) -> bool:
        """Publish the snapshot that still waits, close the exporter, and end the thread.

        Args:
            timeout: Longest wait for the exporter, seconds.

        Returns:
            False when the exporter did not finish in time; it is then left behind.
        """
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout)
        if self._thread.is_alive():
            self._tell(f"exporter {self._state.exporter} did not finish within {timeout:g} s and is left behind")
            return False
        return True

    def _run(self) -> None:
        while (snapshot := self._next()) is not None:
            self._publish(snapshot)
        try:
            self._exporter.close()
        except Exception as error:
            self._failed(error, "closing")

    def _next(self) -> Snapshot | None:
        with self._changed:
            while self._waiting is None and not self._closing:
                self._changed.wait()
            snapshot, self._waiting = self._waiting, None
            return snapshot

    def _publish(self, snapshot: Snapshot) -> None:
        began = self._monotonic_ns()
        try:
            self._exporter.publish(snapshot)
        except Exception as error:
            self._failed(error, "publishing", self._monotonic_ns() - began)
            return
        with self._changed:
            recovered = self._state.error
            self._state = replace(
                self._state,
                published=self._state.published + 1,
                duration_ns=self._monotonic_ns() - began,
                success_ns=self._wall_ns(),
                error="",
            )
        if recovered:
            self._tell(f"exporter {self._state.exporter} works again")

    def _failed(self, error: Exception, doing: str, duration_ns: int = 0) -> None:
        told = isinstance(error, UserError) and str(error)
        text = str(error) if told else f"{type(error).__name__}: {error}".removesuffix(": ")
        with self._changed:
            known = self._state.error
            self._state = replace(self._state, failed=self._state.failed + 1, duration_ns=duration_ns, error=text)
        if text != known:
            self._tell(f"exporter {self._state.exporter} failed while {doing}: {text}")
