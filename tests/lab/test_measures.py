"""Measures, held against curves that are made up."""

from __future__ import annotations

import math
from array import array

import pytest

from heliograph.monitor.lab.curves import Curves, Event, Receiver, Sight
from heliograph.monitor.lab.measures import measure
from heliograph.monitor.lab.scenario import Plan, parse

TEXT = """
title = "Made up"
shows = "Curves that are given."
duration = 10.0
interval = 1.0
[[pipe]]
rate = 100
queue = 10
[[source]]
offered = 1.0
[[source]]
offered = 1.0
[[receivers]]
count = 2
[[receivers]]
[[tcp]]
[[criterion]]
name = "none"
measure = "lost_messages"
"""


@pytest.fixture
def plan() -> Plan:
    return parse(TEXT, "made-up.toml", "made-up").plans[""]


def made(
    plan: Plan,
    *,
    events: list[Event] | None = None,
    receivers: list[Receiver] | None = None,
    sights: list[Sight] | None = None,
    **columns: list[float],
) -> dict[str, Curves]:
    """Curves of ten rows; in a column's name the first "_" stands for the dot."""
    given = {name.replace("_", ".", 1): values for name, values in columns.items()}
    names = ["time", *given]
    table = [[float(i + 1) for i in range(10)], *given.values()]
    rows = array("d", [value for row in zip(*table, strict=True) for value in row])
    flat = array("d", [value for sight in sights or [] for value in sight])
    return {"": Curves(plan, names, rows.tobytes(), events or [], receivers or [], flat.tobytes())}


def counted(*per_interval: float) -> list[float]:
    """A count that grows by these."""
    total, values = 0.0, []
    for value in per_interval:
        total += value
        values.append(total)
    return values


STEP = [100.0] * 4 + [50.0] * 6


def test_settling_counts_intervals_from_the_step(plan: Plan) -> None:
    rates = [95.0, 96, 97, 98, 90, 80, 54, 50, 50, 50]
    runs = made(plan, pipe0_rate=STEP, source0_rate_limit=rates)
    assert measure("settle_intervals", runs, {"at": 5.0}) == 2
    assert measure("settle_intervals", runs, {"at": 5.0, "within": 0.01}) == 3
    never = made(plan, pipe0_rate=STEP, source0_rate_limit=[95.0] * 10)
    assert measure("settle_intervals", never, {"at": 5.0}) == math.inf


def test_episodes_are_parted_by_quiet_intervals(plan: Plan) -> None:
    runs = made(plan, pipe0_dropped=counted(5, 0, 3, 0, 0, 0, 7, 7, 0, 1))
    assert measure("overshoots", runs, {"at": 1.0}) == 2
    assert measure("overshoots", runs, {"at": 1.0, "apart": 1}) == 4
    assert measure("overshoots", runs, {"at": 1.0, "intervals": 5}) == 1


def test_loss_is_gone_when_a_span_of_intervals_is_clean(plan: Plan) -> None:
    quiet = {"group0.packets_missed": counted(*[0.0] * 10)}
    runs = made(
        plan,
        source0_packets_sent=counted(*[50.0] * 10),
        source1_packets_sent=counted(*[50.0] * 10),
        group0_packets_missed=quiet["group0.packets_missed"],
        group1_packets_missed=counted(0, 0, 30, 30, 0, 30, 0, 0, 0, 0),
    )
    assert measure("loss_gone_intervals", runs, {"at": 3.0, "span": 3, "below": 0.05}) == 4
    assert measure("loss_share", runs, {"begin": 1.0, "end": 5.0}) == pytest.approx(0.15)
    assert measure("loss_share", runs, {"begin": 7.0}) == 0


def test_variation_is_the_deviation_over_the_mean(plan: Plan) -> None:
    runs = made(plan, source0_rate_limit=[7.0, 7, 90, 110, 90, 110, 90, 110, 90, 110])
    assert measure("variation", runs, {"begin": 3.0}) == pytest.approx(0.1)


def test_utilisation_and_shares_are_of_the_bottleneck(plan: Plan) -> None:
    runs = made(plan, pipe0_rate=[100.0] * 10, pipe0_bytes=counted(*[80.0] * 10), tcp0_acked=counted(*[25.0] * 10))
    assert measure("utilisation", runs, {"begin": 2.0}) == pytest.approx(0.8)
    assert measure("tcp_share", runs, {"begin": 2.0}) == pytest.approx(0.25)


def test_a_fall_is_from_where_the_rate_was(plan: Plan) -> None:
    runs = made(plan, source0_rate_limit=[10.0, 100, 100, 75, 100, 100, 100, 100, 100, 100])
    assert measure("rate_fall", runs, {"begin": 2.0}) == pytest.approx(0.25)
    assert measure("rate_fall", runs, {"begin": 5.0}) == 0


def test_a_growing_oscillation_is_seen(plan: Plan) -> None:
    growing = [100.0, 101, 99, 102, 98, 104, 96, 108, 92, 116]
    assert measure("oscillation_growth", made(plan, source0_rate_limit=growing), {"begin": 1.0}) > 5
    steady = [100.0, 105, 95] * 3 + [100.0]
    assert measure("oscillation_growth", made(plan, source0_rate_limit=steady), {"begin": 1.0}) < 1.1
    assert measure("oscillation_growth", made(plan, source0_rate_limit=[5.0] * 10), {"begin": 1.0}) == 0


def test_jains_index_is_one_for_equals_and_a_half_for_one_of_two(plan: Plan) -> None:
    some, none = counted(*[50.0] * 10), [0.0] * 10
    equal = made(plan, source0_bytes_sent=some, source1_bytes_sent=some)
    assert measure("jain", equal, {"begin": 1.0}) == pytest.approx(1)
    alone = made(plan, source0_bytes_sent=some, source1_bytes_sent=none)
    assert measure("jain", alone, {"begin": 1.0}) == pytest.approx(0.5)


def test_spread_is_between_variants(plan: Plan) -> None:
    runs = {name: made(plan, source0_rate_limit=[rate] * 10)[""] for name, rate in (("a", 90.0), ("b", 110.0))}
    assert measure("spread", runs, {"begin": 1.0}) == pytest.approx(0.1)


def test_recovery_is_held_against_the_bottleneck_of_then(plan: Plan) -> None:
    runs = made(plan, pipe0_rate=[100.0] * 10, source0_rate_limit=[50.0] * 7 + [95.0, 60, 60])
    assert measure("recovered_share", runs, {"begin": 5.0, "end": 10.0}) == pytest.approx(0.95)


RECEIVERS = [Receiver(0, 1, 9, 0, math.inf), Receiver(0, 2, 9, 0, math.inf), Receiver(1, 3, 5, 4, 8.0)]


def sight(at: float, receiver: int, loss: float, **counts: float) -> Sight:
    values = dict.fromkeys(Sight._fields, 0.0) | counts
    return Sight(**(values | {"at": at, "receiver": float(receiver), "loss": loss}))


def test_the_rank_counts_from_when_it_is_first_for_good(plan: Plan) -> None:
    sights = [
        *(sight(5.0, 1, 0.1), sight(5.0, 3, 0.0)),
        *(sight(5.1, 1, 0.0), sight(5.1, 3, 0.2)),
        *(sight(5.2, 1, 0.3), sight(5.2, 3, 0.2)),
        *(sight(5.3, 1, 0.1), sight(5.3, 3, 0.2)),
    ]
    runs = made(plan, receivers=RECEIVERS, sights=sights)
    assert measure("ranked_first_after", runs, {"group": 1, "at": 5.0}) == pytest.approx(3)
    assert measure("ranked_first_after", runs, {"group": 0, "at": 5.0}) == math.inf


def test_blame_that_falls_on_others_is_an_error(plan: Plan) -> None:
    sights = [sight(5.0, 1, 0, naks=50), sight(6.0, 1, 0, naks=1), sight(6.0, 3, 0, lost=5, naks=3, repairs=1)]
    runs = made(plan, receivers=RECEIVERS, sights=sights)
    assert measure("attribution_error", runs, {"group": 1}) == pytest.approx(0.1)
    assert measure("attribution_error", made(plan, receivers=RECEIVERS), {"group": 1}) == math.inf


def event(at: float, name: str, receiver: int = 0) -> Event:
    return Event(at, name, 0, (receiver, 0, 0, 0), "")


def test_what_is_told_is_counted_and_timed(plan: Plan) -> None:
    runs = made(plan, events=[event(1.0, "alarm"), event(4.5, "alarm"), event(5.0, "other")])
    assert measure("told_times", runs, {"event": "alarm"}) == 2
    assert measure("told_times", runs, {"event": "alarm", "begin": 2.0}) == 1
    assert measure("told_after", runs, {"event": "alarm", "at": 3.0}) == 1.5
    assert measure("told_after", runs, {"event": "alarm", "at": 5.0}) == math.inf


def test_a_lead_is_from_the_telling_to_the_loss_of_the_same_group(plan: Plan) -> None:
    told = [event(2.0, "forecast", 1), event(5.5, "forecast", 3)]
    runs = made(plan, events=told, receivers=RECEIVERS)
    assert measure("lead", runs, {"event": "forecast", "group": 1}) == 2.5
    assert measure("lead", runs, {"event": "forecast", "group": 0}) == -math.inf  # nothing was lost: no trial
    assert measure("lead", made(plan, receivers=RECEIVERS), {"event": "forecast", "group": 1}) == -math.inf


def test_messages_lost_are_counted_by_group(plan: Plan) -> None:
    runs = made(plan, receivers=RECEIVERS)
    assert measure("lost_messages", runs, {}) == 4
    assert measure("lost_messages_of", runs, {"group": 0}) == 0


def test_the_cost_of_decisions_is_measured(plan: Plan) -> None:
    assert 0 < measure("decision_cost", made(plan), {"receivers": 50, "intervals": 20}) < math.inf
