"""The measurement of the live page: its figures come from a real server."""

from __future__ import annotations

import pytest

from tests.bench import live
from tests.bench.bench_scrape import Fleet
from tests.bench.live import Figures


def test_a_real_server_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "WARM_SECONDS", 1)
    monkeypatch.setattr(live, "READERS", 2)
    monkeypatch.setattr(live, "NOBODY_SECONDS", 0)
    monkeypatch.setattr(live, "LEAST_ROUNDS", 1)
    monkeypatch.setattr(live, "_browser", lambda url, seconds: None)
    found = live.measure(Fleet(3, 2), seconds=2)
    assert found.rss_mb > 20
    assert 0 < found.update_kb < 60
    assert 0 < found.grid_kb < 20
    assert found.interval == found.whole_interval == 1
    assert found.read > 0
    assert 0 < found.delay_ms <= found.longest_ms
    assert "| 6 (3 x 2) |" in live.section([found])
    assert "| - | - | - |" in live.section([found])


def test_the_section_has_a_row_for_each_fleet() -> None:
    row = Figures(Fleet(4, 6), 0.012, 0.081, 120.4, 1.0, 5.4, 8.21, 6.04, 170.0, 431.0, (41.0, 52.0), 60.2, 24.9)
    assert (
        "| 24 (4 x 6) | 1.2% | 8.1% | 120 | 1, 5.4 | 8.2, 6.0 | 170 (at most 431) | 41 (at most 52) | 60 | 25 |"
        in live.section([row])
    )
