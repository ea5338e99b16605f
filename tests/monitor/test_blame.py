"""The split of blame between host, network and transport, from histograms made for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heliograph.monitor import fleet
from heliograph.monitor.blame import Blame, blame, share_above
from heliograph.monitor.model import Histogram
from heliograph.monitor.sampler import Sampler
from tests.segments import CELLS, HIGHEST, SegmentObject, cell_index, write_segment

MS = 1_000_000


def histogram(values: dict[int, int], above: int = 0) -> Histogram:
    counts = np.zeros(CELLS, dtype=np.uint64)
    for value, often in values.items():
        counts[cell_index(value)] += np.uint64(often)
    return Histogram(counts, 1, HIGHEST, 3, above=above)


QUIET = histogram({20_000: 100_000})
LATE = histogram({50_000: 99_800, 30 * MS: 200})
"""Two messages in a thousand 30 ms late."""


def test_a_host_that_stood_still_longer_than_messages_were_late_is_to_blame() -> None:
    verdict = blame(LATE, [QUIET, histogram({20_000: 99_900, 40 * MS: 100})], recovered=0)
    assert verdict.blame is Blame.HOST
    assert verdict.host_share == pytest.approx(0.001)
    assert verdict.tail_ns == pytest.approx(30 * MS, rel=0.01)
    assert "host" in verdict.reason


def test_hiccups_much_shorter_than_the_lateness_do_not_explain_it() -> None:
    verdict = blame(LATE, [histogram({20_000: 90_000, 10 * MS: 10_000})], recovered=0)
    assert verdict.blame is Blame.TRANSPORT
    assert verdict.host_share == 0


def test_messages_sent_again_are_the_networks_doing() -> None:
    verdict = blame(LATE, [QUIET], recovered=200)
    assert verdict.blame is Blame.NETWORK
    assert verdict.recovered_share == pytest.approx(0.002)


def test_losses_on_a_host_that_stands_still_are_the_hosts_doing() -> None:
    verdict = blame(LATE, [histogram({20_000: 99_000, 40 * MS: 1000})], recovered=200)
    assert verdict.blame is Blame.HOST


@pytest.mark.parametrize("latency", [None, histogram({50_000: 999})])
def test_too_few_messages_say_nothing(latency: Histogram | None) -> None:
    verdict = blame(latency, [QUIET], recovered=0)
    assert verdict.blame is Blame.NOBODY
    assert "too few" in verdict.reason


def test_unknown_hosts_are_not_taken_for_quiet_ones_that_explain_anything() -> None:
    assert blame(LATE, [None, None], recovered=0).host_share == 0.0


def test_values_beyond_the_histogram_count_as_above() -> None:
    assert share_above(histogram({1000: 3}, above=1), 50 * MS) == 0.25
    assert share_above(histogram({}), 0) == 0.0


def test_a_row_of_the_fleet_says_who_made_its_messages_late(tmp_path: Path) -> None:
    stream = {"instance": "desk", "topic": "T", "stream": "0a0b0c0d0e0f.30001"}
    write_segment(
        tmp_path / "desk.1.helio",
        name="desk",
        objects=[
            SegmentObject("instance", {"instance": "desk"}, histograms={"host_hiccup": {20_000: 99_900, 40 * MS: 100}}),
            SegmentObject("receiver", stream, histograms={"total_latency": {50_000: 99_800, 30 * MS: 200}}),
        ],
    )
    with Sampler(tmp_path) as sampler:
        (row,) = fleet.receivers(None, sampler.sample())
        (unread,) = fleet.receivers(None, sampler.sample(histograms={"total_latency"}))
    assert row.late is not None
    assert row.late.blame is Blame.HOST
    assert unread.late is None
