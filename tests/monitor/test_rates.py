"""Rates of the catalogue's counters between two snapshots."""

from __future__ import annotations

from pathlib import Path

from heliograph.engine import catalogue
from heliograph.monitor.rates import counters, rates_between
from heliograph.monitor.sampler import Sampler
from tests.fleet import TOPICS, sample_fleet

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def test_counters_are_the_cells_of_counting_statistics() -> None:
    found = counters()
    assert found.keys() == catalogue.scopes().keys()
    assert "packets_lost_deadline" in found["rx_stream"]
    assert "window_lead" not in found["rx_stream"]
    assert "recovery_time" not in found["rx_stream"]


def test_rates_are_the_growth_per_second(segments: Path) -> None:
    now = START
    with Sampler(segments, clock=lambda: now) as sampler:
        sample_fleet(segments, 0, START)
        before = sampler.sample(False)
        now += SECOND
        sample_fleet(segments, 1, START)
        after = sampler.sample(False)
    sent = {
        rate.labels["topic"]: rate.per_second
        for rate in rates_between(before, after)
        if (rate.scope, rate.cell) == ("transmitter", "messages_sent")
    }
    assert sent == dict(TOPICS)
    assert rates_between(after, before) == []
    assert rates_between(after, after) == []
