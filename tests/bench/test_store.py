"""The measurement of the message store: every row is measured, and the section names the figures and gates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import store, store_quorum


def test_every_row_is_measured(tmp_path: Path, segments: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "STEADY_SECONDS", 1.0)
    monkeypatch.setattr(store, "WARM_LISTS", 100)
    rows = store.measured(tmp_path, 3 * store.LIST, pairs=1)
    assert [row.gate for row in rows] == ["0.5", "", "0.95", "", "5", "1.05", "5", "1.05"]
    assert all(row.ours > 0 and row.reference > 0 and row.ratio > 0 for row in rows)
    text = store.section(rows, 3 * store.LIST, 1)
    assert text.count("\n| ") == 2 + len(rows)  # with the head and its line
    assert "Messages kept per second" in text
    assert not list(tmp_path.glob("*/*.seg"))


def test_three_stores_and_a_restart_are_measured(tmp_path: Path, segments: Path) -> None:
    assert 0 < store_quorum.stability(tmp_path, 3) < 60
    assert 0 < store_quorum.unavoidable(tmp_path, 3) < 60
    again = store_quorum.restarted(tmp_path, 3_000_000)
    assert again.kept_bytes > 1_000_000
    assert again.ready > 0
    assert again.acknowledged > 0
    assert store_quorum.balanced(tmp_path, 3, 3 * store.LIST) > 0
    rows = [store.Row(name, "ms", 1.0, 2.0, 0.5, "") for name in ("stable", "ready", "acknowledged", "balanced")]
    assert store.section_of_several(rows, 1000, 1).count("| 1 | 2 | 0.50 |") == len(rows)
    assert [one for one in tmp_path.iterdir() if one != segments] == []
