"""Modules: other people's code that is given every snapshot and event, without a way to hold anything up.

A module is an object with the four methods of `Module`. It is found by its name among the entry points
``heliograph.modules``, each of which names a callable that takes one text, the options, and returns the module.

Each module lives on a thread of its own behind a bounded queue. A slow module is dropped from, oldest snapshot first,
and never waited for: what it gets is always recent, and since counters and histograms only grow, the next snapshot
says all the dropped one said, except for its events. An exception is counted and reported, and the module goes on with
the next snapshot. All of this is counted per module in `ModuleStats`.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from heliograph.engine import catalogue
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Event, Snapshot

__all__ = ["GROUP", "Module", "ModuleHost", "ModuleStats", "available", "load"]

GROUP = "heliograph.modules"


class Module(Protocol):
    """What a module must have. Its methods are called from one thread, never two at a time."""

    def describe(self, scopes: Mapping[str, catalogue.Scope]) -> None:
        """Told once, first: every scope and statistic that snapshots may hold."""

    def snapshot(self, snapshot: Snapshot) -> None:
        """One snapshot; some may have been left out since the last."""

    def event(self, event: Event) -> None:
        """One event, after the snapshot it came with."""

    def close(self) -> None:
        """Told once, last."""


Factory = Callable[[str], Module]


@dataclass(frozen=True, slots=True)
class ModuleStats:
    """What became of the snapshots offered to a module."""

    name: str
    snapshots: int = 0
    """Taken by the module."""
    dropped: int = 0
    """Snapshots it was too slow for."""
    events: int = 0
    events_dropped: int = 0
    """Events of the dropped snapshots."""
    errors: int = 0
    """Exceptions it raised."""
    last_error: str = ""
    busy_seconds: float = 0.0
    """Time spent in its methods."""


def available(found: Iterable[EntryPoint] | None = None) -> Mapping[str, EntryPoint]:
    """The installed modules by name."""
    return {point.name: point for point in (entry_points(group=GROUP) if found is None else found)}


def load(request: str, found: Iterable[EntryPoint] | None = None) -> tuple[str, Module]:
    """Make the module of a request.

    Args:
        request: ``NAME`` or ``NAME=OPTIONS``; the name of one not installed is ``package.module:Class``.
        found: Where names are looked up; default: the installed entry points.

    Returns:
        Its name and the module.

    Raises:
        UserError: There is none of that name, or it cannot be loaded or made.
    """
    name, _, options = request.partition("=")
    installed = available(found)
    try:
        factory: Factory
        if name in installed:
            factory = installed[name].load()
        elif ":" in name:
            place, _, attribute = name.partition(":")
            factory = getattr(importlib.import_module(place), attribute)
        else:
            known = ", ".join(sorted(installed)) or "none is installed"
            raise UserError(f"there is no module {name!r}; known are: {known}")
        return name, factory(options)
    except UserError:
        raise
    except Exception as error:  # whatever the module's own code does wrong
        raise UserError(f"module {name!r} cannot be loaded: {type(error).__name__}: {error}") from error


class ModuleHost:
    """Runs one module on its thread. Call `offer` from any one thread, and `close` once."""

    def __init__(
        self,
        name: str,
        module: Module,
        queue: int = 16,
        report: Callable[[str], None] = lambda message: None,
    ) -> None:
        """Start the thread.

        Args:
            name: For messages and statistics.
            module: The module; it belongs to the thread from now on.
            queue: Most snapshots that wait for it.
            report: Told of each new kind of error, in a sentence; called on the module's thread.
        """
        self._module = module
        self._limit = queue
        self._report = report
        self._waiting: deque[Snapshot] = deque()
        self._stats = ModuleStats(name)
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"module {name}", daemon=True)
        self._thread.start()

    @property
    def stats(self) -> ModuleStats:
        """What became of the snapshots so far."""
        with self._changed:
            return self._stats

    def offer(self, snapshot: Snapshot) -> None:
        """Hand over a snapshot; returns at once, always."""
        with self._changed:
            if len(self._waiting) >= self._limit:
                lost = self._waiting.popleft()
                self._count(dropped=1, events_dropped=len(lost.events))
            self._waiting.append(snapshot)
            self._changed.notify()

    def close(self, timeout: float = 5.0) -> bool:
        """Let the module finish what waits and close it.

        Args:
            timeout: Seconds it is given.

        Returns:
            Whether it finished in time; if not it is left behind and its queue is counted as dropped.
        """
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout)
        if not self._thread.is_alive():
            return True
        with self._changed:
            self._count(dropped=len(self._waiting), events_dropped=sum(len(s.events) for s in self._waiting))
            self._waiting.clear()
        return False

    def _count(
        self,
        snapshots: int = 0,
        dropped: int = 0,
        events: int = 0,
        events_dropped: int = 0,
        busy_seconds: float = 0.0,
    ) -> None:
        """Add to the statistics; call with the lock held."""
        old = self._stats
        self._stats = replace(
            old,
            snapshots=old.snapshots + snapshots,
            dropped=old.dropped + dropped,
            events=old.events + events,
            events_dropped=old.events_dropped + events_dropped,
            busy_seconds=old.busy_seconds + busy_seconds,
        )

    def _run(self) -> None:
        self._call(lambda: self._module.describe(catalogue.scopes()))
        while True:
            with self._changed:
                while not self._waiting and not self._closing:
                    self._changed.wait()
                if not self._waiting:
                    break
                snapshot = self._waiting.popleft()
            begin = time.perf_counter()
            self._call(lambda taken=snapshot: self._module.snapshot(taken))  # type: ignore[misc]
            for event in snapshot.events:
                self._call(lambda told=event: self._module.event(told))  # type: ignore[misc]
            with self._changed:
                self._count(1, 0, len(snapshot.events), 0, time.perf_counter() - begin)
        self._call(self._module.close)

    def _call(self, method: Callable[[], None]) -> None:
        try:
            method()
        except Exception as error:  # isolation is the purpose: a module's mistake is its own
            message = f"{type(error).__name__}: {error}"
            with self._changed:
                new = message != self._stats.last_error
                self._stats = replace(self._stats, errors=self._stats.errors + 1, last_error=message)
            if new:
                self._report(f"module {self._stats.name}: {message}")
