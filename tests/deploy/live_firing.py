"""A fault of the live fire, the alerts that it must raise, and faults that run side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.deploy.live_fire import Fleet, Note, Notes

Step = Callable[[Fleet], None]


def nothing(fleet: Fleet) -> None:
    pass


@dataclass(frozen=True)
class Expected:
    """An alert that a fault must raise."""

    alert: str
    fires: float
    """Longest time until the notification, seconds."""
    labels: Mapping[str, str]
    """Some of its labels. `source` is an instance: the label stream is that of its stream."""
    resolves: float = 120.0
    """Longest time from the repair to the notification: at least the range of the rule and `KEEP`."""
    unless: str = ""
    """An alert about the host that suppresses it."""


def expect(alert: str, fires: float, resolves: float = 120.0, unless: str = "", **labels: str) -> Expected:
    return Expected(alert, fires, labels, resolves, unless)


@dataclass(frozen=True)
class Fault:
    """A fault, the alerts that it must raise, and its repair."""

    about: str
    alerts: tuple[Expected, ...]
    inject: Step
    heal: Step = nothing
    clear: Step = nothing
    """Ends what the fault has started."""
    prepare: Step = nothing
    """Starts what must have run healthy before."""
    scraped: Step = nothing
    """Starts exporters; it is called before Prometheus runs."""
    settle: float = 20.0
    """Time of healthy running after `prepare`, seconds: several scrapes."""


class Firing:
    """Faults that run side by side, each in a thread of its own."""

    def __init__(self, fleet: Fleet, notes: Notes, note: Callable[[str, str, Mapping[str, Any]], None]) -> None:
        """`note` is called with each time of an alert and a fault as soon as it is known."""
        self.fleet, self.notes, self.note = fleet, notes, note
        self.missing: list[str] = []

    def run(self, faults: Iterable[Fault]) -> list[str]:
        """Inject, wait for the alerts, repair, wait for the resolutions; return what did not happen in time."""
        for fault in faults:
            fault.prepare(self.fleet)
        prepared = time.monotonic()
        threads = [threading.Thread(target=self._one, args=(fault, prepared)) for fault in faults]
        for thread in threads:
            thread.start()
            time.sleep(0.3)  # the start of a process takes as long
        for thread in threads:
            thread.join()
        return self.missing

    def _one(self, fault: Fault, prepared: float) -> None:
        try:
            if fault.prepare is not nothing:
                time.sleep(max(0.0, prepared + fault.settle - time.monotonic()))
            begin = time.monotonic()
            fault.inject(self.fleet)
            labels = [self._labels(expected) for expected in fault.alerts]
            fired = [
                self._within(fault, one, which, begin, "fired") for one, which in zip(fault.alerts, labels, strict=True)
            ]
            healed = time.monotonic()
            fault.heal(self.fleet)
            for one, which, has_fired in zip(fault.alerts, labels, fired, strict=True):
                if has_fired:
                    self._within(fault, one, which, healed, "resolved")
            fault.clear(self.fleet)
        except Exception as error:  # the other faults go on
            self.missing.append(f"{fault.about}: {error!r}")
            for one in fault.alerts:
                self.note(one.alert, fault.about, {"failure": repr(error)})

    def _labels(self, expected: Expected) -> Mapping[str, str]:
        labels = dict(expected.labels)
        if source := labels.pop("source", ""):
            labels["stream"] = self.fleet.stream_of(source)
        return labels

    def _within(self, fault: Fault, expected: Expected, labels: Mapping[str, str], since: float, what: str) -> bool:
        limit = expected.fires if what == "fired" else expected.resolves
        try:
            found = self.notes.wait(expected.alert, labels, what == "fired", since, limit)
        except AssertionError as failure:
            if any(note.alert == expected.unless for note in self.notes.fired()):
                self.note(expected.alert, fault.about, {"suppressed": expected.unless})
                return False
            self.missing.append(str(failure))
            self.note(expected.alert, fault.about, {"failure": str(failure), f"{what}_limit": limit})
            return False
        self.note(expected.alert, fault.about, {what: round(found.arrived - since, 1)})
        return True


def also(notes: Notes, faults: Iterable[Fault], since: float) -> list[Note]:
    """Alerts that have fired since then and that no fault names."""
    wanted = {one.alert for fault in faults for one in fault.alerts}
    return [note for note in notes.fired(since) if note.alert not in wanted]
