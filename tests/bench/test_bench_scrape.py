"""The measurement of a scraped exporter: what it writes moves, and every figure is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.monitor.sampler import Sampler
from tests.bench import bench_scrape
from tests.bench.bench_scrape import HISTOGRAMS, Engines, Figures, Fleet


def test_every_record_and_every_histogram_moves(tmp_path: Path) -> None:
    engines = Engines(tmp_path, Fleet(3, 2))
    with Sampler(tmp_path) as sampler:
        before = sampler.sample()
        engines.move()
        after = sampler.sample()
    old = {(owner.name, item.key): item for owner in before.instances for item in owner.objects}
    assert len(old) == 2 + 3 + 2 + 2 * (2 + 3)
    for owner in after.instances:
        for item in owner.objects:
            then = old[owner.name, item.key]
            assert item.values != then.values
            assert not item.torn
            if item.scope == "receiver":
                assert all(item.histograms[name].count > then.histograms[name].count for name in HISTOGRAMS)


def test_a_real_exporter_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_scrape, "SCRAPE_SECONDS", 1)
    found = bench_scrape.measure(Fleet(3, 2), rounds=1)
    assert found.series > 3 * 2 * 10
    assert found.size > found.series
    assert found.rss_mb > 10
    assert bench_scrape.join_ms(2, 3, rounds=1) > 0


def test_the_section_has_a_row_for_each_fleet() -> None:
    rows = [Figures(Fleet(20, 8), 0.125, 76.4, 315.2, 2_520_000, 19_695)]
    assert "| 160 (20 x 8) | 12.5% | 76 | 315 | 19,695 | 2.52 |" in bench_scrape.section(rows, 7.6)
