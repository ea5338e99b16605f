"""A history in a notebook: answers equal direct merges, too few values are missing, and the worked example runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from heliograph.monitor import history
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import write_spool
from heliograph.monitor.history.merge import merge_spool
from heliograph.monitor.history.rollup import Threads, rollup
from tests.history.recordings import interval, latencies
from tests.history.test_commands import run

EXAMPLE = Path(__file__).resolve().parents[2] / "deploy/examples/latency_history.ipynb"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notebook")
    rows = [
        interval(latencies(at, 300), at_s=3600 * (at // 2), seq=at, topic=f"PRICES.{'AB'[at % 2]}", build="4.1")
        for at in range(40)
    ]
    write_spool(folder / "spool", rows, "s0", 0)
    rollup(Threads(1), folder / "spool", folder / "history")
    return folder


def test_percentiles_are_those_of_a_direct_merge_of_the_spool(place: Path) -> None:
    direct, _ = merge_spool(place / "spool", None, by=("topic",))
    found = history.open(place / "history").percentiles([0.5, 0.99, 0.999, 1.0], by=["topic"])
    assert list(found.columns) == ["topic", "n", "p50", "p99", "p99.9", "p100"]
    for row, expected in zip(found.to_dict("records"), direct.to_pylist(), strict=True):
        assert (row["topic"], row["n"]) == (expected["topic"], expected["n"])
        assert (row["p50"], row["p99"], row["p100"]) == (expected["p50"], expected["p99"], expected["max"])
        assert pandas.isna(row["p99.9"])  # 6 of 6,000 values lie beyond it
    by_hour = history.open(place / "history").percentiles([0.9], "topic=PRICES.A", by=["topic"], period="hour")
    assert (len(by_hour), int(by_hour["n"].sum())) == (20, 6000)


def test_rows_are_arrow_and_all_values_one_histogram(place: Path) -> None:
    opened = history.open(str(place / "history"))
    table = opened.query("to=2025-11-22", by=["topic"], period="day")
    assert [(str(row["ts"].date()), row["n"]) for row in table.to_pylist()] == [("2025-11-21", 12 * 300)] * 2
    values = opened.histogram("topic=PRICES.A")
    direct, _ = merge_spool(place / "spool", None, by=("topic",))
    assert values.get_total_count() == 6000
    assert values.get_max_value() == direct["max"][0].as_py()
    assert opened.broken == ()


def test_questions_that_cannot_be_answered_name_their_reason(place: Path, tmp_path: Path) -> None:
    opened = history.open(place / "history")
    with pytest.raises(UserError, match="nothing is selected"):
        opened.histogram("topic=NONE")
    with pytest.raises(UserError, match="there is no label 'color'"):
        opened.query(by=["color"])
    with pytest.raises(UserError, match="'week' is not 'hour', 'day' or None"):
        opened.query(period="week")  # type: ignore[arg-type]  # a user's mistake
    with pytest.raises(UserError, match=r"from 0 to 1, not 99"):
        opened.percentiles([99])
    with pytest.raises(UserError, match="no history in"):
        history.open(tmp_path / "nowhere").query()
    with pytest.raises(UserError, match="no history in"):
        history.open(tmp_path / "nowhere").files()


def test_whole_days_are_not_split_into_hours(tmp_path: Path) -> None:
    rows = [interval(latencies(at, 50), at_s=3600 * at, seq=at) for at in range(20)]
    write_spool(tmp_path / "spool", rows, "s0", 0)
    rollup(Threads(1), tmp_path / "spool", tmp_path / "history")
    assert run("compact", "--history", tmp_path / "history", "--age", "0") == 0
    assert run("prune", "--history", tmp_path / "history", "--older-than", "1d") == 0
    opened = history.open(tmp_path / "history")
    assert opened.query().column("n").to_pylist() == [1000]
    with pytest.warns(UserWarning, match="2025-11-21 to 2025-11-22: stored as whole days, without hours; left out"):
        assert opened.query(period="hour").num_rows == 0
    assert len(opened.files()) == 2


def test_the_worked_example_runs_from_its_first_cell_to_its_last(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELIOGRAPH_HISTORY", str(place / "history"))
    cells = json.loads(EXAMPLE.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []  # the file keeps no results
            exec(compile("".join(cell["source"]), f"{EXAMPLE.name}:{cell['id']}", "exec"), names)
    assert list(names["by_build"]["build"]) == ["4.1", "4.1"]
    assert names["table"].num_rows == 40
    assert names["values"].get_total_count() == 6000
    busiest = names["busiest"]
    assert int(busiest["messages"].sum()) == 12_000
    assert np.isfinite(busiest["mean_ns"]).all()
