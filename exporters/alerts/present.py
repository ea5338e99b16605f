"""The alerts of the present, judged by promtool over the newest samples as `check` judges a recorded past (ADR 0060).

The samples become the series of ``/metrics``, with one value per step. They are kept for a quarter of an hour in a ring
of fixed size per series. A rule that looks further back is not evaluated, and its `hindrance` says so. In a large fleet
a judgement covers fewer minutes, so that it ends in seconds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt

from heliograph.exporters.alerts import promtool
from heliograph.exporters.alerts.promtool import Labels, Report
from heliograph.exporters.alerts.render import records
from heliograph.exporters.alerts.settings import PREFIX, Alert, Settings, load
from heliograph.exporters.collector import SnapshotCollector
from heliograph.exporters.selection import Selection
from heliograph.monitor.alerts import Held, Judgement, Reading, Rule, Span
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Snapshot

__all__ = ["KEPT", "Present", "Ring", "next_span"]

KEPT = 900.0
"""Seconds of samples."""
_LEAST = 360.0
"""Seconds of samples that every judgement has: the rules that it can judge look back 5 minutes at most."""
_TIMEOUT = 45.0
_SLOW, _QUICK = 4.0, 1.0
"""Durations of a judgement, in seconds, from which the next one is over half and twice the samples."""
_EARLY = 0.1
"""Share of a step by which a sample may be early."""
_MOST_READINGS = 200
"""Objects of one rule with their values; the nearest to the condition are kept."""
_CONDITION = "Condition"
_PLACE = {"job": "heliograph", "instance": "live"}
_NAME = re.compile(r"\b(?:heliograph_\w+|up)\b")
_RECORD = re.compile(r"\b(?:stream|receiver):heliograph_\w+(?::\w+)?")
_BACK = re.compile(r"\[(\w+)(?::\w+)?\](?: offset (\w+))?|\boffset (\w+)")
_OF_OTHERS: Mapping[str, str] = {
    "heliograph_module_": "its values are of the process that runs the modules, which this page does not read",
    "heliograph_collector_": "its values are of the collector, which this page does not read",
    "heliograph_exporter_series_folded": "its value is of the exporter, which this page does not read",
}
"""By start of a name: why live samples do not have it."""

Key = tuple[str, Labels]


class Ring:
    """The values of series at the newest steps; a series without a value is forgotten."""

    def __init__(self, size: int) -> None:
        """Create a ring of `size` steps."""
        self._size = size
        self._rows: dict[Key, npt.NDArray[np.float64]] = {}
        self.first = 0
        """Number of the oldest kept step."""
        self.last = -1
        """Number of the newest step; -1: none."""

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()
        self.first, self.last = 0, -1

    def add(self, step: int, values: Mapping[Key, float]) -> None:
        """Set the values of a step later than all others; the steps between have no values."""
        passed = min(step - self.last, self._size)
        empty = [(step - back) % self._size for back in range(passed)]
        for row in self._rows.values():
            row[empty] = np.nan
        for key in [key for key, row in self._rows.items() if key not in values and np.isnan(row).all()]:
            del self._rows[key]
        place = step % self._size
        for key, value in values.items():
            if (row := self._rows.get(key)) is None:  # type: ignore[assignment]
                row = self._rows[key] = np.full(self._size, np.nan)
            row[place] = value
        self.first = step if self.last < 0 else max(self.first, step - self._size + 1)
        self.last = step

    def names(self) -> set[str]:
        """Return the names of the series."""
        return {name for name, _ in self._rows}

    def rows(self, first: int) -> Iterator[tuple[Key, Iterable[float]]]:
        """Yield each series with its values from a kept step to the last one; NaN: none."""
        places = [step % self._size for step in range(first, self.last + 1)]
        for key, row in self._rows.items():
            yield key, row[places].tolist()


class Present:
    """Judges the alerts of a settings file over the samples of the last minutes."""

    def __init__(self, settings: Path | None = None, interval: float = 0.0, kept: float = KEPT) -> None:
        """Create the evaluator without samples.

        Args:
            settings: The settings file; None: that of the package.
            interval: Seconds between the snapshots; a longer one than the settings' evaluation takes its place.
            kept: Seconds of samples to keep.

        Raises:
            UserError: The settings cannot be read or are wrong.
        """
        of = load(settings or Path(str(files(__package__) / "alerts.toml")))
        self.step = max(promtool.seconds_of(of.evaluation), interval)
        self.kept = kept
        self._alerts = {PREFIX + one.name: one for one in of.alerts.values()}
        self.rules = tuple(_rule(name, one, of, kept, self.step) for name, one in self._alerts.items())
        self._recorded = {name: (expr, labels) for name, expr, labels in records(of)}
        expressions = {name: expr for name, (expr, _) in self._recorded.items()}
        self._reach = {name: _reach(one.expr, expressions) for name, one in self._alerts.items()}
        """How far each alert looks back, in seconds."""
        self._families = Selection(detail=False, names=frozenset(self._names()))
        self._ring = Ring(round(kept / self.step))
        self._collector = SnapshotCollector()
        self._span = kept
        self._start_ns = 0
        self._newest_ns = 0

    def _names(self) -> set[str]:
        """Return the names of the series that the computable rules need."""
        texts = [text for name in self._computable() for text in (self._alerts[name].expr, self._alerts[name].measure)]
        texts += [expr for name, (expr, _) in self._recorded.items() if any(name in text for text in texts)]
        return {name for text in texts for name in _NAME.findall(text)}

    def _computable(self, without: Iterable[str] = ()) -> list[str]:
        return [rule.name for rule in self.rules if not rule.hindrance and rule.name not in without]

    def record(self, snapshot: Snapshot) -> None:
        """Keep the series of a snapshot, unless its step is recorded; a clock that was set back starts again."""
        if snapshot.time_ns < self._newest_ns:
            self._ring.clear()
            self._collector = SnapshotCollector()
        if self._ring.last < 0:
            self._start_ns = snapshot.time_ns
        number = int((snapshot.time_ns - self._start_ns) / 1e9 / self.step + _EARLY)
        if number <= self._ring.last:
            return
        self._collector.update(snapshot)
        values: dict[Key, float] = {("up", tuple(sorted(_PLACE.items()))): 1.0}
        for family in self._collector.families(self._families):
            for sample in family.samples:
                values[sample.name, tuple(sorted({**sample.labels, **_PLACE}.items()))] = float(sample.value)
        self._ring.add(number, values)
        self._newest_ns = snapshot.time_ns

    def evaluate(self) -> Judgement:
        """Judge all rules at the newest recorded snapshot.

        Raises:
            UserError: promtool is not installed, fails, or exceeds its time.
        """
        if self._ring.last < 0:
            return Judgement()
        began = time.monotonic()
        try:
            return self._evaluated()
        finally:
            self._span = next_span(self._span, time.monotonic() - began, self.kept)

    @property
    def _first(self) -> int:
        """Number of the first judged step."""
        return max(self._ring.first, self._ring.last - round(self._span / self.step) + 1)

    def _evaluated(self) -> Judgement:
        errors: dict[str, str] = {}
        while True:
            names = self._computable(errors)
            report = self._report(names)
            wrong = self._wrong(report, names)
            if not wrong:
                return self._judgement(report, names, errors)
            errors |= wrong  # promtool evaluates nothing after an error, so it evaluates the others again

    def _wrong(self, report: Report, names: Sequence[str]) -> dict[str, str]:
        """Return the errors by alert."""
        found: dict[str, str] = {}
        for what, text in report.errors.items():
            owners = [name for name in names if what in (name, name + _CONDITION, self._alerts[name].measure)]
            if not owners:
                raise UserError(f"promtool failed: {what}: {text}")
            found |= dict.fromkeys(owners, text)
        return found

    def _report(self, names: Sequence[str]) -> Report:
        rules: list[Mapping[str, object]] = []
        texts = [text for name in names for text in (self._alerts[name].expr, self._alerts[name].measure)]
        for record, (expr, labels) in self._recorded.items():
            if any(record in text for text in texts):
                rules.append({"record": record, "expr": expr, "labels": dict(labels)})
        for name in names:
            one = self._alerts[name]
            rules.append({"alert": name, "expr": one.expr, "for": one.holds, "keep_firing_for": one.keep})
            rules.append({"alert": name + _CONDITION, "expr": one.expr})
        times = [number * self.step for number in range(self._ring.last - self._first + 1)]
        looked = [each for name in names for each in (name, name + _CONDITION)]
        measures = [self._alerts[name].measure for name in names]
        return promtool.evaluate(
            rules,
            self._inputs(),
            self.step,
            dict.fromkeys(looked, times),
            list(dict.fromkeys(measures)),
            at=times[-1],
            timeout=_TIMEOUT,
        )

    def _inputs(self) -> Iterator[Mapping[str, str]]:
        start = self._start_ns / 1e9 + self._first * self.step
        for (name, labels), row in self._ring.rows(self._first):
            shift = start if name.endswith("_timestamp_seconds") else 0.0  # promtool's clock begins at 0
            yield promtool.series(name, labels, _texts(row, shift))

    def _judgement(self, report: Report, names: Sequence[str], errors: Mapping[str, str]) -> Judgement:
        first_ns = self._start_ns + round(self._first * self.step * 1e9)
        times: dict[str, dict[Labels, list[int]]] = {}
        for name, labels, seconds in report.firing:
            times.setdefault(name, {}).setdefault(_object(labels), []).append(round(seconds / self.step))
        last = self._ring.last - self._first
        step_ns = round(self.step * 1e9)

        def spans(name: str, labels: Labels, known_after: float) -> list[Span]:
            """Return the times; what is there so early that its beginning depends on older samples may be older."""
            return [
                Span(
                    first_ns + begin * step_ns,
                    None if end == last else first_ns + (end + 1) * step_ns,
                    begin * self.step > known_after,
                )
                for begin, end in _runs(times.get(name, {}).get(labels, []))
            ]

        held = [
            Held(
                rule.name,
                dict(labels),
                spans(rule.name + _CONDITION, labels, self._reach[rule.name]),
                spans(rule.name, labels, self._reach[rule.name] + rule.holds),
            )
            for rule in self.rules
            if rule.name in names
            for labels in times.get(rule.name + _CONDITION, {})
        ]
        readings = {}
        for rule in self.rules:
            found = report.values.get(self._alerts[rule.name].measure, ()) if rule.name in names else ()
            every = [Reading(dict(_object(labels)), value) for labels, value in found if value == value]
            every.sort(key=lambda one: (-rule.nearness(one.value), sorted(one.labels.items())))
            readings[rule.name] = every[:_MOST_READINGS]
        known = self._ring.names()
        seen = {name for name in names if known & self._about(name)}
        return Judgement(self._newest_ns, first_ns, held, readings, seen, errors)

    def _about(self, name: str) -> set[str]:
        """Return the names of the series of an alert's objects."""
        measure = self._alerts[name].measure
        texts = [measure, *(self._recorded[record][0] for record in _RECORD.findall(measure))]
        return {each for text in texts for each in _NAME.findall(text)} - {
            "heliograph_exporter_snapshot_timestamp_seconds"
        }


def next_span(span: float, took: float, most: float) -> float:
    """Return the seconds of samples of the next judgement.

    Args:
        span: Those of this one.
        took: Its duration in seconds.
        most: Seconds of samples that are kept.
    """
    wanted = span / 2 if took > _SLOW else span * 2 if took < _QUICK else span
    return min(max(wanted, _LEAST), most)


def _object(labels: Labels) -> Labels:
    return tuple((key, value) for key, value in labels if key not in _PLACE)


def _runs(steps: Sequence[int]) -> list[tuple[int, int]]:
    """Return first and last of each run of consecutive numbers."""
    runs: list[tuple[int, int]] = []
    for step in sorted(steps):
        if runs and step == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], step)
        else:
            runs.append((step, step))
    return runs


def _texts(row: Iterable[float], shift: float) -> Iterator[str]:
    """Yield the values of a series as promtool reads them; the end of a series is marked, as by a scrape."""
    had = False
    for value in row:
        has = value == value
        yield f"{value - shift if value else value:.17g}" if has else "stale" if had else "_"
        had = has


def _rule(name: str, one: Alert, of: Settings, kept: float, step: float) -> Rule:
    page = files(__package__) / "runbooks" / f"{name}.md"
    return Rule(
        name=name,
        group=one.group,
        severity=one.severity,
        holds=promtool.seconds_of(one.holds),
        keep=promtool.seconds_of(one.keep),
        condition=one.expr,
        comparison=one.comparison,
        limit=one.limit,
        unit=one.unit,
        runbook=page.read_text(encoding="utf-8") if page.is_file() else "",
        runbook_url=one.runbook,
        hindrance=_hindrance(one, of, kept, step),
    )


def _hindrance(one: Alert, of: Settings, kept: float, step: float) -> str:
    if not one.measure:
        return "it always fires, in Prometheus; its absence there is the alarm"
    for start, reason in _OF_OTHERS.items():
        if start in one.measure:
            return reason
    reach = _reach(one.expr, {name: expr for name, expr, _ in records(of)})
    if reach > kept:
        return f"it looks back {_words(reach)}, and this page keeps {_words(kept)}"
    shortest = min((promtool.seconds_of(part[0]) for part in _BACK.findall(one.expr) if part[0]), default=kept)
    if shortest < 2 * step:
        return f"it needs two samples within {_words(shortest)}, and this page takes one every {_words(step)}"
    return ""


def _reach(expr: str, recorded: Mapping[str, str]) -> float:
    """Return how far an expression looks back, in seconds."""
    own = [sum(promtool.seconds_of(part or "") for part in parts) for parts in _BACK.findall(expr)]
    return max([0.0, *own]) + max([0.0, *(_reach(recorded[name], {}) for name in _RECORD.findall(expr))])


def _words(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:g} s"
