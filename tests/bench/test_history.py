"""The measurement of the history: all methods add the same values, and every row has its figures."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.bench import history
from tests.bench.history import MINUTE_ROWS, VALUES, Row


def test_every_row_is_measured_on_equal_values(tmp_path: Path) -> None:
    """`paired` compares the number of values of both sides."""
    rows, notes = history.measured(tmp_path, 2 * MINUTE_ROWS, pairs=1, days=1, spark=False)
    assert {row.reference for row in rows} >= {"", "pyarrow"}
    last = ["roll-up, threads", "report of 1 days x 50 series, processor seconds", "one hour more for 1 days, threads"]
    assert [row.what for row in rows][-3:] == last
    assert all(row.seconds > 0 for row in rows)
    assert all(row.mib > 10 for row in rows)
    assert all(ratio > 0 for row in rows for ratio in row.ratios)
    assert any("The page of the report has" in note for note in notes)
    assert "432,000 intervals" in notes[-1]


def test_the_references_merge_what_we_merge(tmp_path: Path) -> None:
    made = history.Rows(pool=3)
    history.make_spool(tmp_path / "spool", made, 100, 60)
    history.pq.write_table(made.lists(0, 100), tmp_path / "lists.parquet")
    assert history.merge_ours(tmp_path / "spool") == 100 * VALUES
    assert history.merge_pyarrow(tmp_path / "lists.parquet") == 100 * VALUES
    if importlib.util.find_spec("duckdb"):
        assert history.merge_duckdb(tmp_path / "lists.parquet") == 100 * VALUES


def test_a_failed_run_names_its_reason(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no spool in"):
        history.run("merge", tmp_path / "none")


def test_the_section_has_a_line_for_each_row() -> None:
    row = Row("merge", 1000, 0.5, 123.4, "25,000 rows/s", "pyarrow", (2.0, 3.0))
    text = history.section([row], ["DuckDB is absent."], 1000, 2.25)
    assert "| merge | 2,000 | 0.50 | 123 | 25,000 rows/s | pyarrow | 2.50 (2.00 to 3.00) |" in text
    assert "The load of the machine before the first run was 2.2, on " in text
    assert text.endswith("DuckDB is absent.")
