"""What an interval between two snapshots shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from heliograph.dashboards.live.series import EVERYTHING, QUANTILES, merged, point
from heliograph.monitor.latency import dense, percentiles
from heliograph.monitor.model import Histogram
from tests.dashboards.views import SECOND, Fleet
from tests.fleet import RECEIVERS, TOPICS


def test_rates_are_per_topic_and_per_receiver(fleet: Fleet) -> None:
    fleet.at(0)
    (found,) = fleet.at(1).points
    assert found.seconds == 1.0
    assert found.sent == pytest.approx({topic: float(rate) for topic, rate in TOPICS.items()})
    assert found.listeners == dict.fromkeys(TOPICS, 4)
    assert found.naks == pytest.approx({"alpha": 0, "bravo": 1, "slow": 6, "lossy": 47})
    assert found.missed == pytest.approx({"alpha": 0, "bravo": 1, "slow": 6, "lossy": 42})
    assert found.lost == pytest.approx({"alpha": 0, "bravo": 0, "slow": 16, "lossy": 0})
    assert sum(found.by_receiver.values()) == pytest.approx(sum(found.delivered.values()))


def test_latency_is_grouped_and_a_group_is_the_merge_of_its_receivers(fleet: Fleet) -> None:
    fleet.at(0)
    (found,) = fleet.at(1).points
    wanted = {EVERYTHING} | {f"topic:{topic}" for topic in TOPICS} | {f"receiver:{name}" for name in RECEIVERS}
    assert found.latency.keys() == wanted == found.cells.keys()
    whole = merged([found], EVERYTHING)
    assert whole is not None
    parts = [merged([found], f"receiver:{name}") for name in RECEIVERS]
    assert whole.count == sum(part.count for part in parts if part is not None)
    assert list(found.latency[EVERYTHING].values()) == percentiles(whole, list(QUANTILES.values()))
    assert found.latency["receiver:slow"]["p50"] > 5 * found.latency["receiver:alpha"]["p50"]


def test_a_window_is_the_sum_of_its_points(fleet: Fleet) -> None:
    for moment in (0, 1, 2):
        view = fleet.at(moment)
    both = merged(view.points, EVERYTHING)
    each = [merged([item], EVERYTHING) for item in view.points]
    assert both is not None
    counts = [part.counts for part in each if part is not None]
    assert len(counts) == 2
    assert np.array_equal(both.counts, counts[0] + counts[1])
    assert merged(view.points, "receiver:nobody") is None


def test_snapshots_of_one_moment_make_no_point(fleet: Fleet) -> None:
    fleet.at(0)
    snapshot = fleet.sample()
    assert point(snapshot, snapshot) is None


def test_a_restarted_instance_makes_no_negative_rate(fleet: Fleet) -> None:
    fleet.at(0)
    older = fleet.sample()
    instances = tuple(replace(item, incarnation=item.incarnation + 99) for item in older.instances)
    newer = replace(older, time_ns=older.time_ns + SECOND, instances=instances)
    found = point(older, newer)
    assert found is not None
    assert found.sent == found.delivered == found.latency == {}


def test_counts_that_go_back_are_left_out(fleet: Fleet) -> None:
    fleet.at(0)
    newer = fleet.sample()
    spoilt = replace(newer, instances=tuple(_more(item) for item in newer.instances), time_ns=newer.time_ns - SECOND)
    found = point(spoilt, newer)
    assert found is not None
    assert found.latency == {}


def _more(instance):  # type: ignore[no-untyped-def]
    def raised(histogram: Histogram) -> Histogram:
        return replace(dense(histogram), counts=histogram.counts + np.uint64(1))

    objects = tuple(
        replace(item, histograms={name: raised(value) for name, value in item.histograms.items()})
        for item in instance.objects
    )
    return replace(instance, objects=objects)
