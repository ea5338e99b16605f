"""The generated dashboard: its file is fresh, its names exist, and every query answers on a real Prometheus."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from heliograph.dashboards.grafana.fleet import UID, dashboard, text
from heliograph.dashboards.words import ACTION, BEHAVIOUR, HEALTH, STATE
from heliograph.exporters.families import describe
from heliograph.monitor.behaviour import Behaviour
from tests.fleet import sample_fleet
from tests.ports import free_port
from tests.prometheus import serve

FILE = Path(__file__).resolve().parents[2] / "deploy/grafana/heliograph-fleet.json"
BOARD = dashboard()
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
TARGETS = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
MOMENTS = 6


def walk(value: Any) -> Iterator[tuple[str, Any]]:
    """Every key and value, all the way down."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key, item
            yield from walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from walk(item)


def known_series() -> set[str]:
    found = set()
    for family in describe():
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
        found |= {family.name + suffix for suffix in suffixes}
    return found


def test_the_committed_file_is_what_the_code_makes() -> None:
    assert FILE.read_text() == text(BOARD), "run: heliograph grafana show > deploy/grafana/heliograph-fleet.json"


def test_it_is_known_by_uid_and_holds_no_number_of_a_server() -> None:
    assert BOARD["uid"] == UID == "heliograph-fleet"
    assert "id" not in BOARD
    assert "version" not in BOARD
    for key, value in walk(BOARD):
        if key == "datasource":
            assert value == {"type": "prometheus", "uid": "${datasource}"}


def test_it_has_the_variables_a_reader_narrows_by() -> None:
    assert [item["name"] for item in BOARD["templating"]["list"]] == ["datasource", "node", "topic", "receiver"]
    assert BOARD["templating"]["list"][0]["query"] == "prometheus"


def test_panels_have_their_own_place_and_number() -> None:
    numbers = [panel["id"] for panel in BOARD["panels"]]
    assert numbers == list(range(1, len(numbers) + 1))
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_explains_itself_and_says_what_is_healthy(panel: dict[str, Any]) -> None:
    seen, _, healthy = panel["description"].partition("\n\nHealthy: ")
    assert len(seen) > 30
    assert healthy.endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]


@pytest.mark.parametrize(("title", "expr"), TARGETS)
def test_every_name_in_a_query_exists(title: str, expr: str) -> None:
    names = set(re.findall(r"heliograph_\w+", expr))
    assert names
    assert names <= known_series()


@pytest.mark.parametrize(("title", "expr"), TARGETS)
def test_counters_are_read_as_rates_over_the_interval_grafana_gives(title: str, expr: str) -> None:
    for name, before in re.findall(r"(?=\b(heliograph_\w+_(?:total|bucket)\b))(?<=(.{9}))", expr):
        if title != "Receivers, worst first":
            assert before.endswith(("rate(", "increase(")), f"{name} is a counter"
    for window in re.findall(r"\[(.*?)\]", expr):
        assert window in ("$__rate_interval", "5m")


def test_states_are_shown_as_words() -> None:
    for title, table in (
        ("State of each receiver", BEHAVIOUR),
        ("Health", HEALTH),
        ("Receivers as their sources see them", STATE),
        ("Actions on receivers", ACTION),
    ):
        (panel,) = [item for item in PANELS if item["title"] == title]
        (mapping,) = panel["fieldConfig"]["defaults"]["mappings"]
        assert {key: item["text"] for key, item in mapping["options"].items()} == {
            str(word.rank): word.text for word in table.values()
        }


Asked = Callable[[str], list[dict[str, Any]]]
"""Answers to a query, all at one moment."""


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """A real Prometheus that has scraped the real exporter over the sample fleet for some moments."""
    folder = tmp_path_factory.mktemp("prometheus")
    segments = folder / "segments"
    sample_fleet(segments, 0)
    exporter_port = free_port()
    config = folder / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
        f"scrape_configs: [{{job_name: heliograph, static_configs: [{{targets: ['127.0.0.1:{exporter_port}']}}]}}]\n"
    )
    export = [sys.executable, "-m", "heliograph.monitor.cli", "export", "prometheus"]
    export += ["--segments", str(segments), "--interval", "1.2", "--listen", f"127.0.0.1:{exporter_port}"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with serve(config, folder / "data") as server, subprocess.Popen(export, **quiet) as exporter:
        try:
            server.wait_until("heliograph_node_up")
            for step in range(1, 4 * MOMENTS):  # more often than moments pass (1.2 s): heartbeats must stay fresh
                sample_fleet(segments, step // 4)
                time.sleep(0.3)
            moment = f"{time.time():.3f}"
            yield lambda expr: server.get("query", query=expr, time=moment)["result"]
        finally:
            exporter.terminate()


@pytest.mark.parametrize(("title", "expr"), TARGETS)
def test_every_query_answers_on_a_real_prometheus(prometheus: Asked, title: str, expr: str) -> None:
    for variable, value in (("$node", ".+"), ("$topic", ".+"), ("$receiver", ".+"), ("$__rate_interval", "30s")):
        expr = expr.replace(variable, value)
    assert prometheus(expr), f"{title}: nothing for {expr}"


def test_the_slow_receiver_is_called_slow_and_a_good_one_is_not(prometheus: Asked) -> None:
    expr = dict(TARGETS[::-1])["Receivers, worst first"].replace("$topic", ".+").replace("$receiver", ".+")
    found = prometheus(expr)
    by_node = {row["metric"]["node"]: float(row["value"][1]) for row in found}
    ranks = {word.text: word.rank for word in BEHAVIOUR.values()}
    assert by_node["slow"] == ranks["falling behind"]
    assert by_node["alpha"] == ranks["keeps up"]


def test_a_suspended_receiver_is_counted_and_shown_as_such(prometheus: Asked) -> None:
    wanted = ("Receivers isolated", "Actions on receivers", "Receivers as their sources see them")
    found = {title: prometheus(expr.replace("$node", ".+")) for title, expr in TARGETS if title in wanted}
    (isolated,) = found["Receivers isolated"]
    assert isolated["value"][1] == "1"
    actions = {row["metric"]["receiver"]: float(row["value"][1]) for row in found["Actions on receivers"]}
    assert sorted(actions.values()) == [0, 0, 0, float(ACTION["suspend"].rank)]
    seen = [float(row["value"][1]) for row in found["Receivers as their sources see them"]]
    assert sorted(seen) == [1, 1, 1, float(STATE[Behaviour.FALLING_BEHIND].rank)]
