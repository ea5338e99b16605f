"""Calibration and power of the studies of a history, on generated processes with known truth.

    python -m tests.history.calibration                      # 1,000 equal pairs, and the others: some ten minutes
    python -m tests.history.calibration --pairs 80 --series 40

Equal pairs are neighbouring windows of one process. A pair is called different when `compare` gives p < 0.05 for this
quantile alone. Limits are calibrated on another stretch of the same process, as `history compare --calibrate-on` does.
A slower sample is found when it is called different with a ratio above 1. The histories of `changes` have hours with
daily and weekly patterns. Equal seeds give equal figures.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from heliograph.monitor import _hdr
from heliograph.monitor.history.schema import SPOOL, arrow_schema
from heliograph.monitor.history.studies.changes import changes, e_divisive
from heliograph.monitor.history.studies.compare import QUANTILES, calibrate, compare
from heliograph.monitor.history.studies.recent import recent_shift
from heliograph.monitor.history.studies.samples import Pair, Sample
from heliograph.monitor.latency import highest_of
from tests.history.recordings import SHAPE

Floats = npt.NDArray[np.float64]

GRID = np.unique(np.round(np.exp(np.arange(math.log(2_000), math.log(2e6), 0.002))).astype(np.int64))
WINDOW = 180
"""Intervals of a sample of an equal pair."""
WINDOWS = 41
"""Windows of the stretch that equal pairs are calibrated on."""
SIX_HOURS = 360
"""Intervals of a minute."""
SIX_HOUR_WINDOWS = 13
"""Windows of six hours that slower pairs are calibrated on: a little over three days."""
PAIRS_OF_A_BASELINE = 25
FIRST_DAY = date(2026, 1, 5)
FIRST_HOUR = 24 * (FIRST_DAY - date(1970, 1, 1)).days
LEVELS = np.arange(-600, 601)
"""Levels of an hour, in thousandths of the logarithm."""


# -- processes --------------------------------------------------------------------------------------------------------


def _remembering(memory: float) -> Callable[[np.random.Generator, int], Floats]:
    """Return a level that wanders by 10 % and forgets by this factor in an interval."""

    def level(random: np.random.Generator, intervals: int) -> Floats:
        steps = random.normal(size=intervals + 1)
        found = np.zeros(intervals)
        at = steps[-1]
        for number in range(intervals):
            at = memory * at + math.sqrt(1 - memory**2) * steps[number]
            found[number] = 0.1 * at
        return found

    return level


def _still(random: np.random.Generator, intervals: int) -> Floats:
    return np.zeros(intervals)


def _bursts(random: np.random.Generator, intervals: int) -> Floats:
    """One interval in six belongs to a burst of eight on average, which is slower by 30 %."""
    found = np.zeros(intervals)
    inside = False
    for number, draw in enumerate(random.random(intervals)):
        inside = draw >= 1 / 8 if inside else draw < 1 / 40
        found[number] = 0.26 if inside else 0.0
    return found


KINDS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "independent": _still,
    "memory of 2 intervals": _remembering(0.5),
    "memory of 10 intervals": _remembering(0.9),
    "bursts": _bursts,
}


def sample(kind: str, seed: Sequence[int], intervals: int, per: int = 400, slower: float = 1.0) -> Sample:
    """Return intervals of lognormal values around 20 us.

    Args:
        kind: A key of `KINDS`: how the level moves.
        seed: Of the values.
        intervals: Their number.
        per: Values of an interval.
        slower: Factor of all values.
    """
    random = np.random.default_rng([list(KINDS).index(kind), *seed])
    counts = np.zeros((intervals, GRID.size))
    for row, level in enumerate(KINDS[kind](random, intervals)):
        values = np.exp(math.log(20_000 * slower) + level + 0.4 * random.normal(size=per))
        counts[row] = np.bincount(np.minimum(np.searchsorted(GRID, values), GRID.size - 1), minlength=GRID.size)
    return Sample(np.arange(intervals) * 10_000_000, counts, GRID)


def _squeezed(*samples: Sample) -> list[Sample]:
    used = np.any([one.counts.any(axis=0) for one in samples], axis=0)
    return [Sample(one.starts_us, one.counts[:, used], one.values[used]) for one in samples]


# -- compare ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Calls:
    """Pairs of one kind and quantile."""

    kind: str
    quantile: str
    pairs: int
    bare: int
    """Called different without calibration."""
    calibrated: int
    """Called different, or found slower, with it."""


def equal_pairs(
    kind: str, baseline: int, pairs: int, quantiles: Sequence[str] = tuple(QUANTILES), window: int = WINDOW
) -> list[Calls]:
    """Compare windows of one process, calibrated on one stretch of it."""
    (stretch,) = _squeezed(sample(kind, (1, baseline), window * WINDOWS))
    known = {quantile: calibrate(stretch, window, quantile) for quantile in quantiles}
    found = dict.fromkeys(quantiles, (0, 0))
    for number in range(pairs):
        whole = sample(kind, (2, baseline, number), 2 * window)
        pair = Pair((), *_squeezed(whole.part(0, window), whole.part(window, 2 * window)))
        for quantile in quantiles:
            p = [
                compare([pair], quantiles=[quantile], calibrations=calibrations, seed=number)[0].contrasts[0].p
                for calibrations in ([], [known])
            ]
            bare, calibrated = found[quantile]
            found[quantile] = bare + (p[0] < 0.05), calibrated + (p[1] < 0.05)
    return [Calls(kind, quantile, pairs, *found[quantile]) for quantile in quantiles]


def slower_pairs(kind: str, quantile: str, slower: float, pairs: int, per: int = 2000) -> Calls:
    """Compare six hours with six slower ones."""
    (stretch,) = _squeezed(sample(kind, (3,), SIX_HOURS * SIX_HOUR_WINDOWS, per))
    known = {quantile: calibrate(stretch, SIX_HOURS, quantile)}
    found = [0, 0]
    for number in range(pairs):
        a = sample(kind, (4, number), SIX_HOURS, per)
        b = sample(kind, (5, number), SIX_HOURS, per, slower)
        pair = Pair((), *_squeezed(a, b))
        for at, calibrations in enumerate(([], [known])):
            one = compare([pair], quantiles=[quantile], calibrations=calibrations, seed=number)[0].contrasts[0]
            found[at] += one.p < 0.05 and one.ratio > 1
    return Calls(kind, quantile, pairs, found[0], found[1])


def added(calls: Sequence[Calls]) -> list[Calls]:
    """Add the pairs of each kind and quantile."""
    sums: dict[tuple[str, str], list[int]] = {}
    for one in calls:
        total = sums.setdefault((one.kind, one.quantile), [0, 0, 0])
        for at, number in enumerate((one.pairs, one.bare, one.calibrated)):
            total[at] += number
    return [Calls(*key, *total) for key, total in sums.items()]


# -- changes ----------------------------------------------------------------------------------------------------------


def levels_of(
    seed: int, series: int, days: int, *, memory: float, step_at: int = 0, step: float = 1.0
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return hours from a Monday on, and the logarithm of the level of each series in each; arguments as `history`."""
    random = np.random.default_rng((seed, series, days))
    hours = np.arange(24 * days)
    pattern = 0.15 * np.sin(2 * np.pi * hours / 24) - 0.1 * ((hours // 24) % 7 >= 5)
    pattern += math.log(step) * (hours // 24 >= step_at)
    noise = np.zeros((series, hours.size))
    at = random.normal(size=series)
    for hour in range(hours.size):
        at = memory * at + math.sqrt(1 - memory**2) * random.normal(size=series)
        noise[:, hour] = 0.05 * at
    return hours, pattern + noise


def history(seed: int, series: int, days: int, *, memory: float, step_at: int = 0, step: float = 1.0) -> pa.Table:
    """Return hours of several series: a daily and a weekly pattern, an hourly noise of 5 %, and perhaps a step.

    Args:
        seed: Of the noise.
        series: Number of series.
        days: Length.
        memory: Factor by which the noise forgets in an hour.
        step_at: Day of the step.
        step: Factor of all values from that day on.
    """
    hours, logs = levels_of(seed, series, days, memory=memory, step_at=step_at, step=step)
    levels = np.clip(np.round(1000 * logs), LEVELS[0], LEVELS[-1]).astype(int) - LEVELS[0]
    bodies = _bodies()
    rows = levels.size
    chosen = [bodies[level] for level in levels.ravel()]
    begin_us = int(datetime(FIRST_DAY.year, FIRST_DAY.month, FIRST_DAY.day, tzinfo=UTC).timestamp()) * 1_000_000
    columns: dict[str, object] = {
        "ts": np.tile(begin_us + hours * 3_600_000_000, series),
        "len_ms": np.full(rows, 3_600_000),
        "topic": np.repeat([f"T{number:05}" for number in range(series)], hours.size),
        "seq": np.arange(rows),
        "n": [one[1] for one in chosen],
        "h": [one[0] for one in chosen],
        **dict(zip(("digits", "lowest", "highest"), (np.full(rows, number) for number in SHAPE), strict=True)),
    }
    schema = arrow_schema(SPOOL)
    default = {True: [""] * rows, False: np.zeros(rows, np.int64)}
    arrays = [pa.array(columns.get(one.name, default[pa.types.is_string(one.type)])).cast(one.type) for one in schema]
    return pa.table(arrays, schema=schema)


def _bodies() -> list[tuple[bytes, int]]:
    """Return the histogram of an hour for each level, with its number of values."""
    if not _made:
        from statistics import NormalDist

        shape = np.array([NormalDist(10.0, 0.4).inv_cdf((number + 0.5) / 500) for number in range(500)])
        top = np.asarray(highest_of(np.arange(_hdr.cells(*SHAPE)), *SHAPE))
        for level in LEVELS / 1000:
            counts = np.bincount(np.searchsorted(top, np.exp(shape + level)), minlength=top.size).astype(np.uint64)
            _made.append((_hdr.encode(counts, *SHAPE), shape.size))
    return _made


_made: list[tuple[bytes, int]] = []


def false_alarms(seed: int, series: int, days: int, memory: float) -> float:
    """Return the false alarms per series and year on p99."""
    done = changes(history(seed, series, days, memory=memory), quantiles=["p99"])
    assert done.series == series
    return len(done.changes) / (series * days / 365)


def steps_found(seed: int, series: int, memory: float, step_at: int, days: int = 30) -> float:
    """Return the share of series whose step of +10 % is found, at most three days away."""
    done = changes(history(seed, series, days, memory=memory, step_at=step_at, step=1.10), quantiles=["p99"])
    step = FIRST_DAY + timedelta(days=step_at)
    near = {
        one.series["topic"]
        for one in done.changes
        if one.ratio > 1 and abs((date.fromisoformat(one.day) - step).days) <= 3
    }
    return len(near) / series


def looks(seed: int, series: int, memory: float, known_days: int = 63, days: int = 365) -> tuple[float, float]:
    """Return the false alarms per series and year when a user looks each day: of recent changes, and of dated ones.

    An alarm that stands on several looks counts once.

    Args:
        seed: Of the noise.
        series: Number of series.
        memory: Factor by which the noise forgets in an hour.
        known_days: Days that the history keeps; a user with a young history has few.
        days: Days with a look.
    """
    hours, logs = levels_of(seed, series, known_days + days, memory=memory)
    hours += FIRST_HOUR
    alarms = np.zeros(2)
    for of_series in logs:
        standing = [False, False]
        daily = np.median(of_series.reshape(-1, 24), axis=1)
        for last in range(known_days, known_days + days):
            part = slice(24 * (last - known_days), 24 * last)
            dated = e_divisive(daily[last - known_days : last].tolist())
            known = [24 * at for at, _ in dated]
            now = [recent_shift(hours[part], of_series[part], known) is not None, bool(dated)]
            alarms += [is_on and not was_on for is_on, was_on in zip(now, standing, strict=True)]
            standing = now
    recent, of_days = alarms / (series * days / 365)
    return float(recent), float(of_days)


def recent_found(seed: int, series: int, memory: float, step: float, known_days: int = 63) -> float:
    """Return the share of series whose step is found by one of the looks one, two and three days after it."""
    step_at = known_days - 3
    hours, logs = levels_of(seed, series, known_days, memory=memory, step_at=step_at, step=step)
    hours += FIRST_HOUR
    found = 0
    for of_series in logs:
        shifts = [recent_shift(hours[:end], of_series[:end]) for end in 24 * np.arange(step_at + 1, known_days + 1)]
        found += any(
            one is not None and one.log_ratio > 0 and abs(one.index - 24 * step_at) <= 3 * 24 for one in shifts
        )
    return found / series


# -- table ------------------------------------------------------------------------------------------------------------


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def table(pairs: int, series: int, pool: ProcessPoolExecutor) -> list[str]:
    """Measure everything; returns the lines of a table."""
    baselines = max(1, round(pairs / len(KINDS) / PAIRS_OF_A_BASELINE))
    each = max(1, pairs // len(KINDS) // baselines)
    equal = [pool.submit(equal_pairs, kind, number, each) for kind in KINDS for number in range(baselines)]
    power = [
        pool.submit(slower_pairs, kind, quantile, slower, max(1, pairs // 20))
        for quantile, slower in (("p99", 1.05), ("p99.9", 1.10))
        for kind in KINDS
    ]
    memories = (0.0, 0.9)
    months = [pool.submit(false_alarms, 1, series, 30, memory) for memory in memories]
    years = [pool.submit(false_alarms, 2, max(1, series // 12), 365, memory) for memory in memories]
    middle = [pool.submit(steps_found, 3, series, memory, 15) for memory in memories]
    recent = {
        after: [pool.submit(steps_found, 4, series, memory, 30 - after) for memory in memories] for after in (3, 5, 7)
    }

    looked = {
        known: [pool.submit(looks, 5, max(1, series // 40), memory, known) for memory in memories] for known in (63, 30)
    }
    fresh = {
        (known, step): [pool.submit(recent_found, 6, max(1, series // 2), memory, step, known) for memory in memories]
        for known, step in ((63, 1.05), (63, 1.10), (63, 1.20), (30, 1.10))
    }

    lines = [
        "| equal pairs called different (gate 8 %, want 6 %) | pairs | bare | calibrated |",
        "| --- | ---: | ---: | ---: |",
    ]
    calls = added([one for done in equal for one in done.result()])
    calls += added([Calls("all", one.quantile, one.pairs, one.bare, one.calibrated) for one in calls])
    calls += added([Calls("all", "all", one.pairs, one.bare, one.calibrated) for one in calls if one.kind == "all"])
    lines += [
        f"| {one.kind}, {one.quantile} | {one.pairs:,} | {_percent(one.bare, one.pairs)} "
        f"| {_percent(one.calibrated, one.pairs)} |"
        for one in calls
    ]
    lines += ["", "| slower, 6 h against 6 h, found | gate | want | pairs | bare | calibrated |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: |"]
    goals = {"p99": ("+5 %", "80 % | 95 %"), "p99.9": ("+10 %", "70 % | 90 %")}
    lines += [
        f"| {goals[one.quantile][0]} on {one.quantile}, {one.kind} | {goals[one.quantile][1]} | {one.pairs} "
        f"| {_percent(one.bare, one.pairs)} | {_percent(one.calibrated, one.pairs)} |"
        for one in (done.result() for done in power)
    ]
    lines += ["", "| change points of p99 | gate | want | independent hours | memory of 10 hours |"]
    lines += ["| --- | ---: | ---: | ---: | ---: |"]
    alarms, found = "{:.2f}".format, "{:.1%}".format
    for what, goal, render, done in (
        ("false alarms per series and year, studies of 30 days", "1 | 0.5", alarms, months),
        ("false alarms per series and year, one study of the year", "1 | 0.5", alarms, years),
        ("+10 % in the middle of 30 days, dated to three days", "90 % | 95 %", found, middle),
        *((f"+10 % {after} days before the end of 30 days", "90 % | 95 %", found, recent[after]) for after in recent),
    ):
        lines.append(f"| {what} | {goal} | {' | '.join(render(one.result()) for one in done)} |")
    for known, by_memory in looked.items():
        rates = [one.result() for one in by_memory]
        for at, which in enumerate(("recent changes", "dated changes")):
            shown = " | ".join(alarms(rate[at]) for rate in rates)
            lines.append(f"| false alarms, {which}, looks each day with {known} days | 1 | 0.5 | {shown} |")
    for (known, step), shares in fresh.items():
        what = f"+{step - 1:.0%} found within 3 days by looks each day, {known} days"
        goal = "90 % | 95 %" if step == 1.10 else "- | -"
        lines.append(f"| {what} | {goal} | {' | '.join(found(one.result()) for one in shares)} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Calibration and power of `history compare` and `history changes`.")
    parser.add_argument("--pairs", type=int, default=1000, help="equal pairs; default 1,000")
    parser.add_argument("--series", type=int, default=240, help="series of each study of changes; default 240")
    options = parser.parse_args(arguments)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        print("\n".join(table(options.pairs, options.series, pool)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
