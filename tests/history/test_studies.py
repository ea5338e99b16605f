"""Comparisons: verdicts that are right as often as they say, on processes with and without memory."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import write_spool
from heliograph.monitor.history.rollup import Threads, rollup
from heliograph.monitor.history.studies.bootstrap import holm
from heliograph.monitor.history.studies.compare import QUANTILES, calibrate, compare, contrast, verdict_of
from heliograph.monitor.history.studies.samples import Pair, Sample, load, pairs, parse_selection
from tests.history.recordings import interval
from tests.history.test_commands import run
from tests.history.test_report import study_text

NOON_US = 1_763_726_400_000_000
GRID = np.unique(np.round(np.exp(np.arange(math.log(2_000), math.log(2e6), 0.002))).astype(np.int64))


def process(seed: int, intervals: int, *, memory: float = 0.0, slower: float = 1.0, per: int = 400) -> Sample:
    """Intervals of lognormal latencies around 20 us, whose median wanders by 10 % with a memory of 0 to 1."""
    random = np.random.default_rng(seed)
    level, wander = random.normal(), np.zeros(intervals)
    if memory:
        for at, step in enumerate(random.normal(size=intervals)):
            level = memory * level + math.sqrt(1 - memory**2) * step
            wander[at] = 0.1 * level
    values = np.exp(math.log(20_000 * slower) + wander[:, None] + 0.4 * random.normal(size=(intervals, per)))
    cells = np.minimum(np.searchsorted(GRID, values), GRID.size - 1)
    counts = np.stack([np.bincount(row, minlength=GRID.size) for row in cells]).astype(float)
    return Sample(np.arange(intervals) * 10_000_000, counts, GRID)


def squeezed(*samples: Sample) -> list[Sample]:
    """The samples without the cells that none of them fills."""
    used = np.any([sample.counts.any(axis=0) for sample in samples], axis=0)
    return [Sample(sample.starts_us, sample.counts[:, used], sample.values[used]) for sample in samples]


def pair_of(a: Sample, b: Sample) -> Pair:
    return Pair((("topic", "T"),), *squeezed(a, b))


def score(a: Sample, b: Sample, quantile: str, seed: int) -> float:
    """How far the two are apart, in limits: above 1 they are called different."""
    from scipy import stats

    raw = contrast(*squeezed(a, b), quantile, seed)
    return abs(raw.log_ratio) / raw.error / float(stats.t.ppf(0.975, raw.freedom))


def test_a_slower_build_is_found_and_its_ratio_is_within_the_limits() -> None:
    (found,) = compare([pair_of(process(1, 180), process(2, 180, slower=1.08))])
    assert [one.quantile for one in found.contrasts] == list(QUANTILES)
    median = found.contrasts[0]
    assert median.verdict == "slower"
    assert median.low < 1.08 < median.high
    assert (median.low, median.high) == pytest.approx((median.ratio, median.ratio), rel=0.02)
    assert found.effect == pytest.approx(0.554, abs=0.01)  # Phi(ln 1.08 / (0.4 * sqrt 2))
    assert verdict_of([found]) == "slower"


def test_equal_builds_are_not_slower_within_the_margin() -> None:
    (found,) = compare([pair_of(process(3, 360), process(4, 360))], quantiles=["p50", "p90"])
    assert {one.verdict for one in found.contrasts} == {"not slower"}
    assert all(one.detectable < 0.05 for one in found.contrasts)
    (narrow,) = compare([pair_of(process(3, 360), process(4, 360))], quantiles=["p99"], margin=0.0005)
    assert narrow.contrasts[0].verdict == "cannot say"
    assert "it finds changes of" in narrow.contrasts[0].reason


def test_a_faster_build_is_not_slower() -> None:
    (found,) = compare([pair_of(process(5, 180), process(6, 180, slower=0.9))], quantiles=["p50", "p99"])
    assert {one.verdict for one in found.contrasts} == {"not slower"}


def test_too_few_values_or_stretches_of_time_are_refused_with_the_reason() -> None:
    (thin,) = compare([pair_of(process(1, 20, per=100), process(2, 20, per=100))], quantiles=["p50", "p99.9"])
    assert thin.contrasts[1].verdict == "cannot say"
    assert thin.contrasts[1].reason == "A has 2,000 values; p99.9 needs 10,000"
    assert math.isnan(thin.contrasts[1].low)
    (short,) = compare([pair_of(process(1, 4), process(2, 180))], quantiles=["p50"])
    assert short.contrasts[0].reason == "A has 4 independent stretches of time; 5 are needed"
    assert verdict_of([short]) == verdict_of([]) == "cannot say"


def test_equal_seeds_give_equal_results_and_a_constant_gives_no_difference() -> None:
    pair = pair_of(process(1, 60), process(2, 60))
    assert compare([pair], seed=5)[0].contrasts == compare([pair], seed=5)[0].contrasts
    assert compare([pair], seed=5)[0].contrasts != compare([pair], seed=6)[0].contrasts
    counts = np.full((30, 1), 1000.0)
    still = Sample(np.arange(30) * 10_000_000, counts, np.array([20_000]))
    (found,) = compare([Pair((), still, still)])
    assert {(one.ratio, one.verdict) for one in found.contrasts} == {(1.0, "not slower")}


def test_many_series_do_not_make_a_verdict_by_chance() -> None:
    """Holm: 40 comparisons of equal samples; without adjustment two are below 0.05 on average."""
    same = [pair_of(process(2 * seed, 60), process(2 * seed + 1, 60)) for seed in range(40)]
    found = compare(same, quantiles=["p50"])
    assert all(one.contrasts[0].verdict != "slower" for one in found)
    assert holm([0.01, 0.04, math.nan, 0.03]) == pytest.approx([0.03, 0.06, math.nan, 0.06], nan_ok=True)


def test_a_margin_of_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="the margin must be above 0, not 0"):
        compare([], margin=0.0)


# -- the share of equal pairs that is called different ----------------------------------------------------------------


def test_without_memory_one_pair_in_twenty_is_called_different() -> None:
    scores = [score(process(1000 + seed, 60), process(5000 + seed, 60), "p90", seed) for seed in range(150)]
    assert 0.01 <= np.mean(np.array(scores) > 1) <= 0.10


def test_a_long_memory_misleads_the_bootstrap_and_the_calibration_corrects_it() -> None:
    """Halves of one process: blocks alone call too many different, the factor of another stretch cures it."""
    factor = calibrate(*squeezed(process(70, 90 * 41, memory=0.9)), intervals=90, quantile="p50")
    assert factor.pairs >= 35
    assert factor.factor > 1.1
    scores = []
    for seed in range(100):
        whole = process(300 + seed, 180, memory=0.9)
        scores.append(score(whole.part(0, 90), whole.part(90, 180), "p50", seed))
    naive, calibrated = np.mean(np.array(scores) > 1), np.mean(np.array(scores) > factor.factor)
    assert naive > 0.10
    assert calibrated <= 0.10


def test_a_short_baseline_does_not_calibrate() -> None:
    assert calibrate(process(1, 60), 30, "p50").pairs == 0


# -- selections -------------------------------------------------------------------------------------------------------


def test_a_selection_has_labels_and_times() -> None:
    chosen = parse_selection("build=4.1*, host=ny4-?, from=2025-11-21T12:00, to=2025-11-21 14:00:00+01:00")
    assert chosen.labels == {"build": "4.1*", "host": "ny4-?"}
    assert (chosen.from_us, chosen.to_us) == (NOON_US, NOON_US + 3_600_000_000)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("build", "'build' is not KEY=VALUE"),
        ("color=red", "no label 'color'; use from, to, instance"),
        ("from=yesterday", "'yesterday' is not a time"),
        ("from=2025-13-01", "'2025-13-01' is not a time"),
        ("from=2025-11-22,to=2025-11-21", "it ends before it begins"),
    ],
)
def test_a_selection_that_cannot_be_read_says_why(text: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        parse_selection(text)


def spool_of(folder: Path, slower: float) -> None:
    """Build a before and build b after, two topics, 40 intervals each; the streams differ by build."""
    rows = []
    for at in range(80):
        build = "ab"[at // 40]
        for number, topic in enumerate(("X", "Y")):
            random = np.random.default_rng((at, number))
            values = np.exp(np.log(20_000 * (slower if build == "b" else 1.0)) + 0.3 * random.normal(size=150))
            rows.append(
                interval(
                    [int(value) for value in values],
                    at_s=10 * at,
                    seq=2 * at + number,
                    topic=topic,
                    build=build,
                    stream=f"stream-{build}",
                )
            )
    write_spool(folder, rows, "s0", 0)


def test_samples_are_paired_by_topic_and_rows_of_one_interval_are_added(tmp_path: Path) -> None:
    spool_of(tmp_path, 1.0)
    (a, b), problems = load(
        tmp_path, [parse_selection("build=a,topic=X"), parse_selection("build=b")], "receiver_total_latency", 20.0
    )
    assert problems == []
    found = pairs(a, b)
    assert [dict(pair.series)["topic"] for pair in found] == ["X", "Y"]
    assert found[1].a is None
    first = found[0].a
    assert first is not None
    assert (first.starts_us.size, first.n) == (20, 40 * 150)
    assert first.starts_us[1] - first.starts_us[0] == 20_000_000


@pytest.mark.parametrize(("slower", "code", "verdict"), [(1.2, 1, "slower"), (1.0, 0, "not slower")])
def test_the_gate_answers_by_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], slower: float, code: int, verdict: str
) -> None:
    spool_of(tmp_path, slower)
    command = ("--baseline", "build=a", "--candidate", "build=b", "--quantiles", "p50,p90")
    assert run("gate", "--spool", tmp_path, *command, "--out", tmp_path / "page.html") == code
    page = study_text(tmp_path / "page.html")
    assert f"Verdict {verdict}" in page
    assert "alpha X receiver_total_latency 6,000 values in 40 intervals" in page
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == f"verdict: {verdict}"
    assert "not calibrated: the baseline is too short" in out
    assert "alpha X receiver_total_latency: 6,000 values in 40 intervals and 6,000 values in 40 intervals" in out


def test_a_gate_that_cannot_say_has_its_own_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spool_of(tmp_path, 1.0)
    assert run("gate", "--spool", tmp_path, "--baseline", "build=a", "--candidate", "build=b", "--json") == 2
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "cannot say"
    assert [one["labels"]["topic"] for one in found["series"]] == ["X", "Y"]
    tail = found["series"][0]["quantiles"][-1]
    assert (tail["quantile"], tail["low"], tail["verdict"]) == ("p99.9", None, "cannot say")
    with pytest.raises(UserError, match="no interval of receiver_total_latency is selected by 'build=z'"):
        run("compare", "--spool", tmp_path, "--a", "build=a", "--b", "build=z")
    with pytest.raises(UserError, match=r"'p42' is not one of p50, p90, p99, p99\.9"):
        run("compare", "--spool", tmp_path, "--a", "build=a", "--b", "build=b", "--quantiles", "p42")


def test_hours_of_a_history_are_compared_as_intervals_of_a_spool_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = []
    for hour in range(48):
        build = "ab"[hour // 24]
        random = np.random.default_rng(hour)
        values = np.exp(np.log(20_000 * (1.3 if build == "b" else 1.0)) + 0.3 * random.normal(size=300))
        rows.append(interval([int(value) for value in values], at_s=3600 * hour, seq=hour, build=build, stream=build))
    write_spool(tmp_path / "spool", rows, "s0", 0)
    rollup(Threads(1), tmp_path / "spool", tmp_path / "history")
    sides = ("--a", "build=a", "--b", "build=b", "--quantiles", "p50", "--json")
    found = []
    for source in (("--history", tmp_path / "history"), ("--spool", tmp_path / "spool", "--interval", "3600")):
        assert run("compare", *source, *sides) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    assert (found[0]["verdict"], found[0]["series"][0]["a"]["intervals"]) == ("slower", 24)
    with pytest.raises(UserError, match="nothing shorter than 3600 seconds"):
        run("compare", "--history", tmp_path / "history", "--interval", "10", *sides)
