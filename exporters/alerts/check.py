"""The alerts that a recorded past would have raised, found by promtool, which evaluates the rules as Prometheus does.

The past becomes the input series of a unit test for rules, with one value per step. The test expects no alert at any
step, and promtool reports those that fire. Each rule is tested twice: as it is, and without its `for` and `keep`, which
gives the times at which its condition held (ADR 0042).
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from heliograph.exporters.alerts import promtool
from heliograph.exporters.alerts.promtool import Labels, Report
from heliograph.exporters.alerts.render import records
from heliograph.exporters.alerts.settings import PREFIX, Settings
from heliograph.exporters.collector import SnapshotCollector
from heliograph.monitor.errors import UserError
from heliograph.monitor.flight.reader import Recording, read
from heliograph.monitor.model import Health, InstanceState, ObjectState, Snapshot

__all__ = ["Finding", "Past", "check", "of_flights", "of_prometheus"]

_CONDITION = "Condition"


@dataclass(slots=True)
class Past:
    """Series over equal steps of time."""

    start: float
    """Wall-clock time of the first step, seconds since 1970."""
    step: float
    steps: int = 0
    series: dict[tuple[str, Labels], dict[int, float]] = field(default_factory=dict)
    """By name and labels: value by number of the step."""

    def add(self, name: str, labels: Mapping[str, str], step: int, value: float) -> None:
        """Record a value. Times become seconds from the start, because promtool's clock begins at 0."""
        if name.endswith("_timestamp_seconds") and value:
            value -= self.start
        self.series.setdefault((name, tuple(sorted(labels.items()))), {})[step] = value
        self.steps = max(self.steps, step + 1)


@dataclass(frozen=True, slots=True)
class Finding:
    """One alert with one set of labels: when its condition held and when it fired, seconds since 1970."""

    alert: str
    severity: str
    holds: str
    labels: Labels
    condition: float
    """Begin of the first time the condition held."""
    condition_ended: float | None
    fired: float | None
    resolved: float | None


def of_flights(paths: Sequence[Path], step: float, all_users: bool = False) -> Past:
    """Return the past of flight recordings of one period, joined into one fleet.

    Args:
        paths: The recordings.
        step: Seconds between two values.
        all_users: Also read files of other users.

    Raises:
        UserError: A file is not a recording.
    """
    recordings = [read(path, all_users) for path in paths]
    start = min(one.wall_ns[0] for one in recordings)
    end = max(one.wall_ns[-1] for one in recordings)
    past = Past(start / 1e9, step)
    fleet = [_Flight(one) for one in recordings]
    collector = SnapshotCollector()
    for number in range(math.floor((end - start) / 1e9 / step) + 1):
        now = start + round(number * step * 1e9)
        found = tuple(state for one in fleet if (state := one.at(now, step)))
        collector.update(Snapshot(now, found))
        for family in collector.collect():
            for sample in family.samples:
                past.add(sample.name, {**sample.labels, **_TARGET}, number, float(sample.value))
        past.add("up", _TARGET, number, 1.0)
    return past


_TARGET = {"job": "heliograph", "instance": "recording"}


class _Flight:
    """A recording, read at one moment after the other."""

    def __init__(self, recording: Recording) -> None:
        self._of = recording
        self._cells = {one.name: [cell.name for cell in one.cells] for one in recording.layouts.values()}

    def at(self, now_ns: int, step: float) -> InstanceState | None:
        """The instance at a time; None before and after the recording."""
        of = self._of
        at = bisect_right(of.wall_ns, now_ns) - 1
        if at < 0 or now_ns - of.wall_ns[-1] > step * 1e9:
            return None
        header = of.header
        return InstanceState(
            name=header.name,
            health=Health.LIVE,
            reason="",
            pid=header.pid,
            incarnation=header.incarnation,
            started_ns=header.started_ns,
            heartbeat_ns=of.wall_ns[at],
            path=str(of.path),
            objects=tuple(self._objects(at)),
        )

    def _objects(self, at: int) -> Iterator[ObjectState]:
        for track in self._of.tracks:
            if track.first <= at <= track.last:
                found = {}
                for cell in self._cells[track.scope]:
                    value = track.value(cell, at)
                    if not math.isnan(value):
                        found[cell] = int(value)
                yield ObjectState(
                    scope=track.scope,
                    labels=track.labels,
                    info=track.info,
                    values=found,
                    created_ns=track.created_ns,
                    generation=track.generation,
                )


def of_prometheus(folder: Path, step: float) -> Past:
    """Return the past in the data directory of a Prometheus; its server may be running.

    Raises:
        UserError: The directory cannot be read, or has no series of Heliograph.
    """
    match = '{__name__=~"heliograph_.*|up"}'
    text = promtool.run("tsdb", "dump", f"--match={match}", str(folder))
    rows = []
    for line in text.splitlines():
        labels, _, rest = line.rpartition("} ")
        value, _, at_ms = rest.partition(" ")
        rows.append((dict(promtool.pairs(labels)), float(value), int(at_ms) / 1e3))
    if not rows:
        raise UserError(f"{folder} has no series of Heliograph")
    past = Past(min(at for _, _, at in rows), step)
    for series, number, when in rows:
        past.add(series.pop("__name__"), series, round((when - past.start) / step), number)
    return past


def check(past: Past, settings: Settings) -> list[Finding]:
    """Return the alerts whose condition held, in the order of time.

    Raises:
        UserError: promtool is not installed or fails.
    """
    rules, names = _rules(settings)
    used = set(re.findall(r"\bheliograph_\w+|\bup\b", json.dumps(rules)))
    inputs = (_input(key, values, past.steps) for key, values in past.series.items() if key[0] in used)
    times = [number * past.step for number in range(past.steps)]
    report = promtool.evaluate(rules, inputs, past.step, dict.fromkeys(names, times))
    if report.errors:
        raise UserError("promtool failed: " + "; ".join(f"{name}: {text}" for name, text in report.errors.items()))
    return _findings(report, past, settings)


def _rules(settings: Settings) -> tuple[Sequence[Mapping[str, object]], list[str]]:
    rules: list[Mapping[str, object]] = [
        {"record": name, "expr": expr, "labels": dict(labels)} for name, expr, labels in records(settings)
    ]
    names = []
    for one in settings.alerts.values():
        if one.severity == "none":
            continue  # it always fires
        rules.append({"alert": one.name, "expr": one.expr, "for": one.holds, "keep_firing_for": one.keep})
        rules.append({"alert": f"{one.name}{_CONDITION}", "expr": one.expr})
        names += [one.name, f"{one.name}{_CONDITION}"]
    return rules, names


def _input(key: tuple[str, Labels], values: Mapping[int, float], steps: int) -> Mapping[str, str]:
    row = (f"{values[step]:.17g}" if step in values else "_" for step in range(steps))
    return promtool.series(*key, row)


def _findings(report: Report, past: Past, settings: Settings) -> list[Finding]:
    times: dict[tuple[str, Labels], list[float]] = {}
    for name, labels, time in report.firing:
        times.setdefault((name, labels), []).append(time)
    last = (past.steps - 1) * past.step

    def span(found: Sequence[float]) -> tuple[float, float | None]:
        """Begin and end of the first time without interruption."""
        end = found[0]
        for time in found:
            if time > end + past.step * 1.5:
                break
            end = time
        return past.start + found[0], None if end + past.step > last else past.start + end + past.step

    out = []
    for (name, labels), found in times.items():
        if not name.endswith(_CONDITION):
            continue
        alert = settings.alerts[name.removesuffix(_CONDITION)]
        fired = times.get((alert.name, labels))
        held, ended = span(found)
        begin, end = span(fired) if fired else (None, None)
        out.append(Finding(f"{PREFIX}{alert.name}", alert.severity, alert.holds, labels, held, ended, begin, end))
    return sorted(out, key=lambda one: (one.fired or math.inf, one.condition, one.alert))
