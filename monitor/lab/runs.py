"""Many seeds of a scenario, side by side, and the verdicts.

Each run is a process's own work: it makes the curves, takes the measures and sends back numbers and what is drawn.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from heliograph.monitor.lab import curves, namespaces
from heliograph.monitor.lab.charts import Chart, charts
from heliograph.monitor.lab.curves import Event
from heliograph.monitor.lab.measures import MEASURES, measure, passes
from heliograph.monitor.lab.scenario import Criterion, Scenario

__all__ = ["Outcome", "Trials", "Verdict", "cores", "run_scenarios"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one run of all variants."""

    seed: int
    values: tuple[float, ...]
    """Of the scenario's criteria."""
    drawn: Mapping[str, list[Chart]]
    """Charts by variant."""
    events: Mapping[str, list[Event]]
    """Events by variant; of the first seed only."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A criterion and what came out, in the worst of the seeds."""

    name: str
    scenario: str
    value: float
    unit: str
    bound: float | None
    better: str
    passed: bool
    seeds: int
    worst_seed: int
    median: float

    def as_json(self) -> dict[str, Any]:
        """As the command prints it; a value that never came about is null."""
        return {
            "name": self.name,
            "scenario": self.scenario,
            "value": _number(self.value),
            "unit": self.unit,
            "bound": self.bound,
            "wanted": "reported" if self.bound is None else ("at most" if self.better == "less" else "at least"),
            "verdict": "pass" if self.passed else "fail",
            "seeds": self.seeds,
            "worst_seed": self.worst_seed,
            "median": _number(self.median),
        }


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Trials:
    """All runs of a scenario."""

    scenario: Scenario
    outcomes: tuple[Outcome, ...]
    """By seed."""

    @property
    def verdicts(self) -> list[Verdict]:
        """One of each criterion."""
        return [self._verdict(i, criterion) for i, criterion in enumerate(self.scenario.criteria)]

    def _verdict(self, i: int, criterion: Criterion) -> Verdict:
        known = MEASURES[criterion.measure]
        values = [(outcome.values[i], outcome.seed) for outcome in self.outcomes]
        value, seed = (max if known.better == "less" else min)(values, key=lambda pair: pair[0])
        return Verdict(
            criterion.name,
            self.scenario.name,
            value,
            known.unit,
            criterion.bound,
            known.better,
            passes(criterion.measure, value, criterion.bound),
            len(values),
            seed,
            median(one for one, _ in values),
        )

    def band(self, variant: str, chart: int, series: int) -> tuple[array[float], array[float]]:
        """The curve that a tenth of the runs are below in each interval, and the one that a tenth are above."""
        rows = [outcome.drawn[variant][chart].series[series].values for outcome in self.outcomes]
        ordered = [sorted(values) for values in zip(*rows, strict=True)]
        tenth = (len(rows) - 1) // 10
        return array("f", (row[tenth] for row in ordered)), array("f", (row[-1 - tenth] for row in ordered))


@dataclass(frozen=True, slots=True)
class _Task:
    """One run of all variants."""

    scenario: Scenario
    seed: int
    is_first: bool
    """Its events are kept."""


def _outcome(task: _Task) -> Outcome:
    scenario, seed = task.scenario, task.seed
    is_real = scenario.network == "namespaces"
    runs = {
        variant: namespaces.run(plan) if is_real else curves.run(plan, seed) for variant, plan in scenario.plans.items()
    }
    return Outcome(
        seed,
        tuple(measure(criterion.measure, runs, criterion.values) for criterion in scenario.criteria),
        {variant: charts(one) for variant, one in runs.items()},
        {variant: list(one.events) for variant, one in runs.items()} if task.is_first else {},
    )


def cores() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def _workers(jobs: int) -> Iterator[Callable[[list[_Task]], Iterator[Outcome]]]:
    if jobs == 1:
        yield lambda tasks: map(_outcome, tasks)
        return
    # Ctrl-C is this process's to hear, from the workers' first moment on: it ends them all.
    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pool = multiprocessing.get_context("spawn").Pool(jobs)
    finally:
        signal.signal(signal.SIGINT, heard)
    try:
        yield lambda tasks: pool.imap_unordered(_outcome, tasks)
        pool.close()
    finally:
        pool.terminate()
        pool.join()


def _count(scenario: Scenario, seeds: int) -> int:
    return 1 if scenario.network == "namespaces" else seeds * scenario.repeat


def run_scenarios(
    scenarios: Sequence[Scenario],
    seeds: int,
    jobs: int,
    tell: Callable[[int, int], None] = lambda done, of: None,
    first: int = 1,
) -> Iterator[Trials]:
    """Run scenarios with `seeds` seeds, from `first` on.

    A scenario may want several runs for each seed; its seeds go on in the same row. One on real sockets runs once, in
    this process.

    Args:
        scenarios: what to run.
        seeds: how many, at least 1.
        jobs: processes to run them in; 1: this one.
        tell: is told how many runs are done, and of how many.
        first: the first seed.

    Yields:
        the runs of each scenario, as soon as they are done.

    Raises:
        RuntimeError: the host does not let a scenario on real sockets run.
    """
    total = sum(_count(scenario, seeds) for scenario in scenarios)
    done = 0
    with _workers(jobs if any(scenario.network == "simulated" for scenario in scenarios) else 1) as work:
        for scenario in scenarios:
            outcomes = []
            tasks = [_Task(scenario, first + i, i == 0) for i in range(_count(scenario, seeds))]
            for outcome in map(_outcome, tasks) if scenario.network == "namespaces" else work(tasks):
                outcomes.append(outcome)
                done += 1
                tell(done, total)
            yield Trials(scenario, tuple(sorted(outcomes, key=lambda one: one.seed)))
