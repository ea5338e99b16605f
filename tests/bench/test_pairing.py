"""How pairs become a line of the table: neighbours, drops, bounds, failures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bench.pairing import Contest, Failure, Figures, Record, Row, Tail, agree, results, take_pair

TAIL = {"p50_ns": 1.0, "p99_ns": 2.0, "p999_ns": 3.0, "max_ns": 4.0}
"""What every program prints, also beside a rate."""
ROW = Row("ours / theirs", "p50_ns", "p50_ns", "lower", 1.2, 1.1)


def contest(*references: str, row: Row = ROW) -> Contest:
    return Contest(64, ("ours",), tuple((name,) for name in references or ("theirs",)), (row,))


class Bench:
    """Programs with figures written down, and a probe that says what it is told."""

    def __init__(self, figures: dict[str, list[float]], probes: list[float] | None = None) -> None:
        self.figures = {name: iter(values) for name, values in figures.items()}
        self.probes: Iterator[float] | None = iter(probes) if probes else None
        self.order: list[str] = []

    def measure(self, command: tuple[str, ...]) -> Figures:
        self.order.append(command[0])
        value = next(self.figures[command[0]])
        if value < 0:
            raise Failure("it broke")
        return {**TAIL, "p50_ns": value}

    def probe(self) -> float:
        self.order.append("probe")
        return 100.0 if self.probes is None else next(self.probes)

    def take(self, record: Record, times: int = 1) -> None:
        for _ in range(times):
            take_pair(record, self.measure, self.probe)


def test_a_pair_is_ours_reference_reference_ours_between_two_probes() -> None:
    bench, record = Bench({"ours": [12, 15], "theirs": [10, 10]}), Record(contest())
    bench.take(record)
    assert bench.order == ["probe", "ours", "theirs", "theirs", "ours", "probe"]
    (result,) = results(record, 1)
    assert (result.ratio, result.low, result.high) == (1.35, 1.2, 1.5)
    assert (result.ours, result.reference, result.pairs, result.why) == (13.5, 10, 1, "")


def test_neighbours_are_compared_whatever_the_machine_does_in_the_long_run() -> None:
    """Twice as slow in the second pair and again in the third: the ratio stays."""
    bench = Bench({"ours": [11, 11, 22, 22, 44, 44], "theirs": [10, 10, 20, 20, 40, 40]})
    record = Record(contest())
    bench.take(record, 3)
    assert results(record, 3)[0].ratio == 1.1


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [(100, 100, True), (100, 149, True), (149, 100, True), (60, 160, False), (0, 60, False)],
)
def test_probes_agree_when_they_saw_one_placement(before: float, after: float, same: bool) -> None:
    assert agree(before, after) == same


def test_a_pair_in_which_the_cores_moved_is_thrown_away_and_measured_again() -> None:
    bench = Bench({"ours": [90, 90, 11, 11], "theirs": [10] * 4}, probes=[60, 200, 60, 65])
    record = Record(contest())
    bench.take(record)
    assert record.is_open(1)
    bench.take(record)
    (result,) = results(record, 1)
    assert (result.ratio, result.pairs, result.dropped, result.why) == (1.1, 1, 1, "")
    assert not record.is_open(1)


def test_measuring_again_ends() -> None:
    bench = Bench({"ours": [1] * 100, "theirs": [1] * 100}, probes=[60, 200] * 100)
    record = Record(contest())
    while record.is_open(5):
        bench.take(record)
    assert record.attempts == 12
    (result,) = results(record, 5)
    assert result.ratio is None
    assert "moved the cores" in result.why


def test_a_failure_is_tried_once_more() -> None:
    bench, record = Bench({"ours": [-1, 11, 11], "theirs": [10, 10]}), Record(contest())
    bench.take(record)
    assert record.is_open(1)
    bench.take(record)
    (result,) = results(record, 1)
    assert (result.ratio, result.why) == (1.1, "")


def test_two_failures_end_it_and_the_row_says_why() -> None:
    bench, record = Bench({"ours": [-1, -1]}), Record(contest())
    bench.take(record, 2)
    assert not record.is_open(5)
    (result,) = results(record, 5)
    assert (result.ratio, result.why) == (None, "it broke")
    assert not result.reaches(result.gate)


def test_of_several_references_the_best_counts() -> None:
    bench = Bench({"ours": [12, 12], "slow": [20, 20], "fast": [10, 10]})
    record = Record(contest("slow", "fast"))
    bench.take(record)
    assert bench.order[1:6] == ["ours", "slow", "fast", "slow", "fast"]
    assert results(record, 1)[0].ratio == 1.2
    higher = Row("rate", "p50_ns", "p50_ns", "higher", 0.8, 0.9)
    bench = Bench({"ours": [12, 12], "slow": [10, 10], "fast": [20, 20]})
    record = Record(contest("slow", "fast", row=higher))
    bench.take(record)
    assert results(record, 1)[0].ratio == 0.6


def test_a_program_without_the_figure_is_told() -> None:
    record = Record(contest(row=Row("x", "p99_ns", "p99_ns", "lower", 1, 1)))

    def best_is_not_asked(command: tuple[str, ...]) -> Figures:
        return {**TAIL, "p99_ns": 0.0} if command == ("theirs",) else {}

    take_pair(record, best_is_not_asked, lambda: 100.0)
    (result,) = results(record, 1)
    assert result.ratio is None
    assert "p99_ns" in result.why


RATE = Row("ours / theirs", "messages_per_second", "messages_per_second", "higher", 0.8, 0.9)


@pytest.mark.parametrize("missing", ["p50_ns", "p99_ns", "p999_ns", "max_ns"])
@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_rate_without_its_tail_is_refused(missing: str, side: str) -> None:
    record = Record(contest(row=RATE))

    def measure(command: tuple[str, ...]) -> Figures:
        figures = {"messages_per_second": 100.0, **TAIL}
        return {name: value for name, value in figures.items() if (name, command) != (missing, (side,))}

    take_pair(record, measure, lambda: 100.0)
    (result,) = results(record, 1)
    assert (result.ours, result.ratio, result.tail) == (None, None, None)
    assert missing in result.why


def test_a_tail_is_the_median_of_the_runs_and_the_highest_maximum() -> None:
    record = Record(contest(row=RATE))
    worse = iter((0.0, 10.0, 100.0, 1000.0))

    def measure(command: tuple[str, ...]) -> Figures:
        late = next(worse) if command == ("ours",) else 0.0
        return {"messages_per_second": 1.0, **TAIL, "p999_ns": 3.0 + late, "max_ns": 4.0 + late}

    for _ in range(2):
        take_pair(record, measure, lambda: 100.0)
    (result,) = results(record, 2)
    assert result.tail is not None
    assert (result.tail.p50, result.tail.p999, result.tail.max) == (1.0, 58.0, 1004.0)
    assert result.tail.jitter == 57.0
    assert result.reference_tail == Tail(1.0, 2.0, 3.0, 4.0)


def test_what_our_runs_lost_is_told() -> None:
    record = Record(contest())
    take_pair(record, lambda command: {**TAIL, "lost": 3.0 if command == ("ours",) else 100.0}, lambda: 100.0)
    assert results(record, 1)[0].lost == 6


def test_an_interrupted_row_keeps_what_it_has() -> None:
    bench, record = Bench({"ours": [11, 11], "theirs": [10, 10]}), Record(contest())
    bench.take(record)
    (result,) = results(record, 5)
    assert (result.ratio, result.why) == (1.1, "1 of 5 pairs: interrupted")


@pytest.mark.parametrize(
    ("better", "ratio", "goal", "reached"),
    [("lower", 1.2, 1.2, True), ("lower", 1.21, 1.2, False), ("higher", 0.8, 0.8, True), ("higher", 0.79, 0.8, False)],
)
def test_a_goal_is_reached_in_its_direction(better: str, ratio: float, goal: float, reached: bool) -> None:
    row = Row("x", "p50_ns", "p50_ns", "lower" if better == "lower" else "higher", goal, goal)
    bench, record = Bench({"ours": [ratio] * 2, "theirs": [1] * 2}), Record(contest(row=row))
    bench.take(record)
    assert results(record, 1)[0].reaches(goal) == reached
