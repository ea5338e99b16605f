"""Paired measuring: what the figures of neighbouring runs say, whatever the machine does in the long run.

A virtual machine moves two- to fourfold between minutes, so figures of different minutes cannot be compared. A pair is
four runs back to back, ours, reference, reference, ours, and gives two ratios of neighbours. Before and after it a
probe tells where the host has put the two cores; when the two probes disagree the pair is thrown away. The result is
the median of the ratios. Nothing here runs a program or reads a clock.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

__all__ = ["PLACEMENTS_DIFFER", "Better", "Contest", "Failure", "Figures", "Pair", "Result", "Row", "agree", "best"]
__all__ += ["Tail", "results", "take_pair"]

Better: TypeAlias = Literal["lower", "higher"]
Figures: TypeAlias = Mapping[str, float]
"""What one run printed."""

PLACEMENTS_DIFFER = 1.5
"""Two probes further apart than this factor saw two placements of the cores: one physical core or two."""


class Failure(Exception):
    """A program could not be run or said something else than figures; the text is for people."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a figure of ours over one of the reference.

    Attributes:
        name: what it is called in the table.
        figure: of ours.
        reference: figure of the reference.
        better: which way the ratio should go.
        gate: what the ratio must reach.
        want: what it should reach.
    """

    name: str
    figure: str
    reference: str
    better: Better
    gate: float
    want: float


@dataclass(frozen=True, slots=True)
class Contest:
    """What is measured together: ours, one reference or several of which the best counts, and the rows they fill.

    A command is a program and its arguments; size, seconds and port are added by whoever runs it.
    """

    size: int
    ours: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Figures of one pair, in the order they were measured: ours and reference, reference and ours."""

    neighbours: tuple[tuple[Figures, Figures], tuple[Figures, Figures]]


@dataclass(frozen=True, slots=True)
class Tail:
    """Latencies in ns: medians over the runs, of `max` the highest. A rate has one too."""

    p50: float
    p99: float
    p999: float
    max: float

    @property
    def jitter(self) -> float:
        """p99.9 - p50."""
        return self.p999 - self.p50


@dataclass(frozen=True, slots=True)
class Result:
    """A line of the table as measured; without a ratio when it could not be.

    Attributes:
        ours: median of our figures; ns for latencies, else per second.
        reference: median of the reference's.
        ratio: median of the paired ratios.
        low: smallest of them.
        high: largest of them.
        pairs: how many pairs it stands on.
        dropped: pairs thrown away because the cores were moved.
        why: what went wrong, "" when nothing did.
        lost: messages our runs lost for good.
        tail: latencies of our runs; a measured row has them, also one of a rate.
        reference_tail: those of the reference.
    """

    name: str
    size: int
    ours: float | None
    reference: float | None
    ratio: float | None
    low: float | None
    high: float | None
    gate: float
    want: float
    better: Better
    pairs: int = 0
    dropped: int = 0
    why: str = ""
    lost: int = 0
    tail: Tail | None = None
    reference_tail: Tail | None = None

    def reaches(self, goal: float) -> bool:
        """Whether the ratio is as good as `goal`."""
        return self.ratio is not None and (self.ratio <= goal if self.better == "lower" else self.ratio >= goal)


@dataclass(slots=True)
class Record:
    """What has been measured of a contest so far."""

    contest: Contest
    pairs: list[Pair] = field(default_factory=list)
    attempts: int = 0
    dropped: int = 0
    failures: int = 0
    why: str = ""
    probes: list[float] = field(default_factory=list)

    def is_open(self, pairs: int) -> bool:
        """Whether to go on: pairs are missing, and neither two failures nor twice the attempts say it is no use."""
        return len(self.pairs) < pairs and self.failures < 2 and self.attempts < 2 * pairs + 2


__all__ += ["Record"]


def agree(before_ns: float, after_ns: float) -> bool:
    """Whether two probes saw the same placement of the cores."""
    low, high = sorted((before_ns, after_ns))
    return low > 0 and high / low <= PLACEMENTS_DIFFER


def best(runs: Iterable[Figures], figure: str, better: Better) -> Figures:
    """Of several runs the one with the best figure."""
    choose = min if better == "lower" else max
    return choose(runs, key=lambda run: run[figure])


def take_pair(record: Record, measure: Callable[[tuple[str, ...]], Figures], probe: Callable[[], float]) -> None:
    """Measure ours, reference, reference, ours between two probes and add the pair, or what went wrong, to the record.

    Args:
        record: the contest and what it has so far.
        measure: runs a command; raises `Failure`.
        probe: half a round trip of a cache line between the cores, in ns; raises `Failure`.
    """
    contest = record.contest
    first = contest.rows[0]

    def reference() -> Figures:
        return best([measure(command) for command in contest.references], first.reference, first.better)

    record.attempts += 1
    try:
        before = probe()
        a1, b1, b2, a2 = measure(contest.ours), reference(), reference(), measure(contest.ours)
        after = probe()
    except Failure as failure:
        record.failures += 1
        record.why = str(failure)
        return
    record.probes += [before, after]
    if agree(before, after):
        record.pairs.append(Pair(((a1, b1), (a2, b2))))
    else:
        record.dropped += 1


def results(record: Record, wanted: int) -> list[Result]:
    """The lines of a contest from the pairs it has; `wanted` is how many it should have."""
    return [_result(record, row, wanted) for row in record.contest.rows]


def _result(record: Record, row: Row, wanted: int) -> Result:
    size, pairs = record.contest.size, len(record.pairs)
    try:
        neighbours = [
            (float(ours[row.figure]), float(reference[row.reference]))
            for pair in record.pairs
            for ours, reference in pair.neighbours
        ]
        ratios = [ours / reference for ours, reference in neighbours]
        runs = [runs for pair in record.pairs for runs in pair.neighbours]
        tails = [_tail([run[side] for run in runs]) for side in (0, 1)] if runs else []
    except (KeyError, ZeroDivisionError) as error:
        text = f"a program printed no usable {error.args[0] if isinstance(error, KeyError) else row.reference}"
        return Result(row.name, size, None, None, None, None, None, row.gate, row.want, row.better, why=text)
    why = _why(record, wanted)
    if not ratios:
        return Result(
            row.name, size, None, None, None, None, None, row.gate, row.want, row.better, 0, record.dropped, why
        )
    return Result(
        row.name,
        size,
        _median([ours for ours, _ in neighbours]),
        _median([reference for _, reference in neighbours]),
        round(_median(ratios), 3),
        round(min(ratios), 3),
        round(max(ratios), 3),
        row.gate,
        row.want,
        row.better,
        pairs,
        record.dropped,
        why,
        round(sum(ours.get("lost", 0) for ours, _ in runs)),
        *tails,
    )


def _tail(runs: Sequence[Figures]) -> Tail:
    """Of the runs of one side. KeyError when a program printed a figure without its latencies."""
    p50, p99, p999 = (_median([run[f"{name}_ns"] for run in runs]) for name in ("p50", "p99", "p999"))
    return Tail(p50, p99, p999, max(run["max_ns"] for run in runs))


def _why(record: Record, wanted: int) -> str:
    have = len(record.pairs)
    if have >= wanted:
        return ""
    if record.failures >= 2 or (record.why and not have):
        return record.why
    if record.attempts >= 2 * wanted + 2:
        return f"{have} of {wanted} pairs: the host moved the cores in the others"
    return f"{have} of {wanted} pairs: interrupted"


def _median(values: Sequence[float]) -> float:
    return float(statistics.median(values))
