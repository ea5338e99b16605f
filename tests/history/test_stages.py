"""Stages: the one that moved is named with its share of the change, and equal samples are seldom called slower."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import write_spool
from heliograph.monitor.history.schema import LatencyInterval
from heliograph.monitor.history.studies.bootstrap import Calibration
from heliograph.monitor.history.studies.samples import PAIR, parse_selection
from heliograph.monitor.history.studies.sources import Source
from heliograph.monitor.history.studies.stages import (
    METRICS,
    SENDER_METRICS,
    Moved,
    Stages,
    calibrate,
    cause_of,
    stages,
    stages_of,
    verdict_of,
)
from tests.history.recordings import interval
from tests.history.test_commands import run
from tests.history.test_report import study_text

NAMES = ("source", "network", "socket", "recovery", "order", "dispatch", "callback")
MEANS = np.array([10_000.0, 30_000.0, 5_000.0, 0.0, 1_000.0, 4_000.0, 20_000.0])
"""Mean per message, ns: the whole is 50 us."""
SERIES = (("topic", "T"),)


def sums_of(
    seed: int, *, slower: Mapping[str, float] | None = None, intervals: int = 60, memory: float = 0.0
) -> Stages:
    """Sums of stages whose means wander by a tenth; `slower` adds ns per message to stages."""
    random = np.random.default_rng(seed)
    messages = np.repeat(random.poisson(500, intervals).astype(float)[:, None], len(NAMES), axis=1)
    wander = random.normal(size=(intervals, len(NAMES)))
    for at in range(1, intervals):
        wander[at] = memory * wander[at - 1] + np.sqrt(1 - memory**2) * wander[at]
    means = MEANS * (1 + 0.1 * wander) + np.array([(slower or {}).get(name, 0.0) for name in NAMES])
    return Stages(NAMES, means * messages, messages, dict.fromkeys(NAMES, 10_000), {}, 0)


def moved(a: Stages, b: Stages, known: Mapping[str, Calibration] | None = None, margin: float = 0.05) -> Moved:
    (found,) = stages({SERIES: a}, {SERIES: b}, margin=margin, calibrations={SERIES: known or {}})
    return found


def bursts(seed: int, work: float, intervals: int = 100, length: float = 250_000_000.0) -> Stages:
    """Sums of bursts of six messages each 0.1 s that wait for each other; some cross the border of two intervals."""
    random = np.random.default_rng(seed)
    starts = np.arange(0.0, intervals * length, 100_000_000.0) + random.normal(0, 100_000.0)
    waits = np.arange(6) * work
    ends = starts[:, None] + waits
    inside = ends < intervals * length
    at = (np.maximum(0, ends[inside]) // length).astype(int)
    shape = np.zeros((intervals, len(NAMES)))
    sums, messages = shape.copy(), shape.copy()
    sums[:, NAMES.index("dispatch")] = np.bincount(at, np.broadcast_to(waits, ends.shape)[inside], intervals)
    messages[:] = np.bincount(at, minlength=intervals)[:, None]
    return Stages(NAMES, sums, messages, dict.fromkeys(NAMES, int(messages[:, 0].sum())), {}, 0)


@pytest.mark.parametrize("seed", range(5))
def test_bursts_across_the_borders_of_intervals_leave_a_verdict(seed: int) -> None:
    """Neighbours even out: what a burst adds to one interval, the other lacks. Long blocks would be too few."""
    found = moved(bursts(2 * seed, 7_000_000.0), bursts(2 * seed + 1, 7_560_000.0))
    cause = cause_of(found)
    assert cause is not None
    assert cause.name == "dispatch"
    assert verdict_of([moved(bursts(2 * seed, 7_000_000.0), bursts(2 * seed + 1, 7_000_000.0))]) == "not slower"


def test_the_stage_that_moved_is_named_with_its_share() -> None:
    found = moved(sums_of(1), sums_of(2, slower={"network": 3_000, "socket": 1_000}))
    assert found.whole is not None
    assert found.whole.verdict == "slower"
    cause = cause_of(found)
    assert cause is not None
    assert cause.name == "network"
    assert cause.share_low < 0.75 < cause.share_high
    assert cause.low_ns < 3_000 < cause.high_ns
    parts = [one for one in found.stages if one.name != "callback"]
    assert sum(one.change_ns for one in parts) == pytest.approx(found.whole.change_ns)
    assert sum(one.share for one in parts) == pytest.approx(1.0)
    assert verdict_of([found]) == "slower"


def test_a_stage_may_rise_while_the_whole_does_not() -> None:
    """What matters is a part of the whole: the order of 1 us doubles within the margin, the network does not."""
    found = moved(sums_of(3), sums_of(4, slower={"network": 6_000, "source": -6_000, "order": 1_000}))
    verdicts = {one.name: one.verdict for one in found.stages}
    assert found.whole is not None
    assert found.whole.verdict != "slower"
    assert cause_of(found) is None
    assert (verdicts["network"], verdicts["source"], verdicts["order"]) == ("slower", "not slower", "not slower")


def test_a_slower_callback_is_judged_and_no_part_of_the_whole() -> None:
    found = moved(sums_of(5), sums_of(6, slower={"callback": 10_000}))
    by_name = {one.name: one for one in found.stages}
    assert found.whole is not None
    assert (by_name["callback"].verdict, found.whole.verdict) == ("slower", "not slower")
    assert np.isnan(by_name["callback"].share)


def test_a_change_below_the_error_of_the_clocks_is_not_of_the_network() -> None:
    b = sums_of(8, slower={"network": 5_000})
    found = moved(sums_of(7), replace(b, clock_error_ns=8_000))
    by_name = {one.name: one for one in found.stages}
    assert by_name["network"].verdict == "cannot say"
    assert by_name["network"].reason == "the error of the clocks may be as large as the change"
    assert cause_of(moved(sums_of(7), b)) is not None


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_equal_samples_are_seldom_called_slower(memory: float) -> None:
    """Level: 5 % of pairs for any stage (Holm), and 5 % for the whole; both sides of a change share it.

    With a margin of almost nothing every called difference shows. Blocks are few with a long memory, so a longer
    stretch of the same process calibrates the limits.
    """
    pairs = 30
    known = calibrate(sums_of(900, intervals=60 * 15, memory=memory), 60)
    assert min(one.pairs for name, one in known.items() if name != "recovery") >= 8
    false = 0
    for seed in range(pairs):
        both = sums_of(1000 + seed, intervals=120, memory=memory)
        found = moved(both.part(0, 60), both.part(60, 120), known, margin=1e-9)
        false += any(one.verdict == "slower" for one in found.stages)
    assert false / pairs <= 0.10


def test_too_few_stretches_of_time_and_no_margin_are_refused() -> None:
    found = moved(sums_of(1, intervals=4), sums_of(2))
    assert verdict_of([found]) == verdict_of([]) == "cannot say"
    assert found.whole is not None
    assert found.whole.reason == "A has 4 independent stretches of time; 5 are needed"
    with pytest.raises(UserError, match="the margin must be above 0, not 0"):
        stages({}, {}, margin=0.0)


# -- from a spool and a history ---------------------------------------------------------------------------------------

MESSAGES = 150
PER_HOUR = 4
HOURS = 8


def rows_of(build: str, first_hour: int, *, network: float, recovered: int, level: int = 3) -> list[LatencyInterval]:
    """Intervals of a receiver and its transmitter: per message batch 10, pace 5, network, order 1, dispatch 4 us.

    A recovered message has 100 us of recovery instead of the network.
    """
    rows = []
    for number in range(HOURS * PER_HOUR):
        random = np.random.default_rng((first_hour, number))
        noise = 1 + 0.02 * random.normal(size=MESSAGES)
        travelled = 1000 * network * noise
        travelled[:recovered] = 100_000
        order, dispatch = np.full(MESSAGES, 1_000.0), 4_000 * noise
        columns = {
            "receiver_total_latency": 15_000 + travelled + order,
            "receiver_order_latency": order,
            "transmitter_batch_latency": np.full(20, 10_000.0),
        }
        if level == 3:
            columns |= {
                "receiver_network_latency": travelled[recovered:],
                "receiver_recovery_latency": travelled[:recovered],
                "receiver_dispatch_latency": dispatch,
                "transmitter_pace_latency": np.full(20, 5_000.0),
            }
        for at, (metric, values) in enumerate(columns.items()):
            if not values.size:
                continue
            row = interval(
                [int(value) for value in values],
                at_s=3600 * (first_hour + number / PER_HOUR),
                seq=number * 10 + at,
                source=build,
                host="h1",
                metric=metric,
                instance="quoter" if metric.startswith("transmitter") else "handler",
                build=build,
                level=str(level),
            )
            rows.append(replace(row, sum=int(values.astype(int).sum())))
    return rows


@pytest.fixture(scope="module")
def spool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds: a; a again; b with a slower network; c with more recovered messages; d at level 2."""
    folder = tmp_path_factory.mktemp("spool")
    builds = {"a": (30, 2), "a2": (30, 2), "b": (36, 2), "c": (30, 12)}
    rows = [rows_of(build, 24 * at, network=one[0], recovered=one[1]) for at, (build, one) in enumerate(builds.items())]
    rows.append(rows_of("d", 24 * len(rows), network=30, recovered=0, level=2))
    for number, batch in enumerate(rows):
        write_spool(folder, batch, batch[0].source, number)
    return folder


def study(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, object]:
    assert run("stages", *words, "--json") == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_the_whole_is_the_sum_of_its_stages(spool: Path) -> None:
    chosen = [parse_selection("build=a")]
    (received,), _, _ = Source(spool, None, None).read(chosen, METRICS)
    (sent,), _, _ = Source(spool, None, None).read(chosen, SENDER_METRICS)
    (found,) = stages_of(received, sent, [name for name in PAIR if name != "metric"]).values()
    means = dict(zip(found.names, found.means, strict=True))
    assert found.reason == ""
    assert means["batch"] == pytest.approx(10_000, abs=1)
    assert means["pace"] == pytest.approx(5_000, abs=1)
    assert means["recovery"] == pytest.approx(100_000 * 2 / MESSAGES, abs=1)
    sums = {row["metric"]: 0 for row in received.select(["metric"]).to_pylist()}
    for row in received.select(["metric", "sum"]).to_pylist():
        sums[row["metric"]] += row["sum"]
    whole = (sums["receiver_total_latency"] + sums["receiver_dispatch_latency"]) / found.count
    assert sum(means.values()) == pytest.approx(whole)


def test_a_slower_network_is_found_in_a_spool(spool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("stages", "--spool", spool, "--a", "build=a", "--b", "build=b", "--out", tmp_path / "page.html") == 0
    page = study_text(tmp_path / "page.html")
    assert "Verdict slower: build=b in network" in page
    assert "build=b is slower than build=a" in page
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "verdict: slower: build=b in network"
    (sentence,) = [line for line in lines if line.startswith("build=b is slower than build=a (+5.9")]
    assert "network explains 100% of the change" in sentence
    found = study(capsys, "--spool", spool, "--a", "build=a", "--b", "build=a2")
    assert (found["verdict"], found["causes"]) == ("not slower", [])


def test_recovery_that_is_more_frequent_is_named(spool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its own histogram is the same in both: only its share of the messages grows."""
    found = study(capsys, "--spool", spool, "--a", "build=a", "--b", "build=c")
    (series,) = found["series"]  # type: ignore[misc]
    recovery = next(one for one in series["stages"] if one["stage"] == "recovery")
    assert (found["verdict"], found["causes"], series["cause"]) == ("slower", ["recovery"], "recovery")
    assert recovery["change_ns"] == pytest.approx(100_000 * 10 / MESSAGES, rel=0.01)
    assert recovery["share"] > 1  # the network has fewer messages and falls


def test_without_the_histograms_of_level_3_it_cannot_say(spool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = study(capsys, "--spool", spool, "--a", "build=a", "--b", "build=d")
    (series,) = found["series"]  # type: ignore[misc]
    assert (found["verdict"], series["cause"], series["stages"]) == ("cannot say", None, [])
    assert series["reason"] == "B: histograms of network and recovery have 0% of the messages; they need level 3"
    with pytest.raises(UserError, match="no interval of receiver_total_latency is selected by 'build=z'"):
        run("stages", "--spool", spool, "--a", "build=a", "--b", "build=z")


def test_intervals_in_which_the_host_stopped_are_left_out(
    spool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Build b stops in half of its intervals; another host stops always, which does not matter."""
    rows = rows_of("a", 0, network=30, recovered=0) + rows_of("b", 24, network=30, recovered=0)
    starts = sorted({row.ts_ns for row in rows})
    for number, ts_ns in enumerate(starts):
        is_stopped = number >= len(starts) // 2 and number % 2 == 0
        for host, longest in (("h1", 9_000_000 if is_stopped else 60_000), ("h2", 9_000_000)):
            row = interval(
                [50_000, longest], seq=number, source=host, host=host, metric="instance_host_hiccup", topic=""
            )
            rows.append(replace(row, ts_ns=ts_ns))
    write_spool(tmp_path, rows, "s0", 0)
    found = study(capsys, "--spool", tmp_path, "--a", "build=a", "--b", "build=b", "--without-stops", "5ms")
    half = HOURS * PER_HOUR // 2
    assert found["stops"] == {
        "limit_ns": 5_000_000,
        "a": {"left_out": 0, "intervals": 2 * half},
        "b": {"left_out": half, "intervals": 2 * half},
    }
    assert found["series"][0]["b"]["intervals"] == half  # type: ignore[index]
    with pytest.raises(UserError, match="--without-stops: no hiccups of the hosts of 'build=a' are recorded"):
        run("stages", "--spool", spool, "--a", "build=a", "--b", "build=b", "--without-stops", "5ms")


def test_the_hours_of_a_history_give_the_same_means(
    spool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("rollup", "--no-spark", "--spool", spool, "--history", tmp_path) == 0
    capsys.readouterr()
    sides = ("--a", "build=a", "--b", "build=b")
    of_hours = study(capsys, "--history", tmp_path, *sides)
    of_spool = study(capsys, "--spool", spool, *sides)
    assert (of_hours["verdict"], of_hours["causes"]) == ("slower", ["network"])
    means = [
        [one["b_ns"] for one in found["series"][0]["stages"]]  # type: ignore[index]
        for found in (of_hours, of_spool)
    ]
    assert means[0] == pytest.approx(means[1])
    with pytest.raises(UserError, match="--interval 10: a history has hours, and nothing shorter than 3600 seconds"):
        run("stages", "--history", tmp_path, *sides, "--interval", "10")


def test_the_picture_of_a_study_is_fresh(tmp_path: Path) -> None:
    """`make picture-study` renews it."""
    from tests.history import picture

    found = dict(picture.texts(picture.PICTURE.read_bytes()))
    assert found[b"page"] == picture.page_hash(picture.page(tmp_path))
