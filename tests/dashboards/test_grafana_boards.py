"""The generated boards: files are fresh, names and links exist, and every query answers on a real Prometheus."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, start_http_server

from heliograph.dashboards.grafana.boards import boards, text
from heliograph.dashboards.words import ACTION, BEHAVIOUR, HEALTH, STATE
from heliograph.engine import catalogue
from heliograph.exporters.alerts.render import prometheus as rules
from heliograph.exporters.alerts.render import records
from heliograph.exporters.alerts.settings import load
from heliograph.exporters.families import derived_family, describe
from heliograph.monitor.behaviour import Behaviour
from tests.deploy.live_fire import Fleet
from tests.fleet import sample_fleet
from tests.ports import free_port
from tests.prometheus import serve

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
SETTINGS = load(DEPLOY / "alerts.toml")
BOARDS = {board["uid"]: board for board in boards(DEPLOY / "alerts.toml")}
FLEET = BOARDS["heliograph-fleet"]
PANELS = [(uid, panel) for uid, board in BOARDS.items() for panel in board["panels"] if panel["type"] != "row"]
TARGETS = [(uid, panel["title"], one["expr"]) for uid, panel in PANELS for one in panel.get("targets", [])]
ANNOTATIONS = [(one["name"], one["expr"]) for one in FLEET["annotations"]["list"]]
VARIABLES = ["datasource", "job", "host", "node", "topic", "receiver"]
MOST_PANELS = 20
MOMENTS = 6

IN_DETAIL = ("receiver_interarrival", "receiver_latency_invalid", "fleet_receiver_late{")
IN_DETAIL += tuple(f"receiver_{stage}_latency" for stage in ("order", "dispatch", "network", "socket"))
"""Families of `/metrics/detail`."""
NOT_HERE = {
    "receiver_intended_latency": "needs an application that passes intended times",
    "latency_burn:rate1d": "needs a day of traffic",
    "latency_burn:rate3d": "needs days of traffic",
    "nak_ratio:rate5m": "needs minutes of traffic",
    "exporter_requests_refused": "needs a refused request",
}
"""Families without data in this fleet, by reason."""


def names(pairs: list[tuple[str, Any]]) -> list[str]:
    return [f"{uid.removeprefix('heliograph-')}-{panel['title']}" for uid, panel in pairs]


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


KNOWN = known_series()
RECORDED = {name for name, _, _ in records(SETTINGS)}
each_board = pytest.mark.parametrize("uid", BOARDS)
each_panel = pytest.mark.parametrize(("uid", "panel"), PANELS, ids=names(PANELS))
each_target = pytest.mark.parametrize(("uid", "title", "expr"), TARGETS)


def test_the_committed_files_are_what_the_code_makes() -> None:
    found = {path.stem: path.read_text() for path in (DEPLOY / "grafana").glob("*.json")}
    assert found == {uid: text(board) for uid, board in BOARDS.items()}, (
        "run: heliograph grafana show UID > deploy/grafana/UID.json"
    )


def test_the_boards_of_the_package_are_those_of_the_settings_file() -> None:
    assert boards() == list(BOARDS.values())


def test_there_are_eleven_boards_and_the_fleet_is_the_first() -> None:
    assert list(BOARDS) == [
        f"heliograph-{name}"
        for name in (
            *("fleet", "node", "topic", "receiver", "latency", "loss", "host"),
            *("store", "stability", "objectives", "monitor"),
        )
    ]
    assert len({board["title"] for board in BOARDS.values()}) == len(BOARDS)


@each_board
def test_a_board_is_known_by_uid_and_holds_no_number_of_a_server(uid: str) -> None:
    board = BOARDS[uid]
    assert "id" not in board
    assert "version" not in board
    assert board["editable"] is False
    for key, value in walk(board):
        if key == "datasource":
            assert value == {"type": "prometheus", "uid": "${datasource}"}


@each_board
def test_a_board_has_the_variables_a_reader_narrows_by(uid: str) -> None:
    found = BOARDS[uid]["templating"]["list"]
    assert [item["name"] for item in found] == VARIABLES
    assert found[0]["query"] == "prometheus"


@each_board
def test_panels_have_their_own_place_and_number_and_fit_one_sitting(uid: str) -> None:
    panels = BOARDS[uid]["panels"]
    numbers = [panel["id"] for panel in panels]
    assert numbers == list(range(1, len(numbers) + 1))
    titles = [panel["title"] for panel in panels if panel["type"] != "row"]
    assert len(titles) == len(set(titles)) <= MOST_PANELS
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


@each_panel
def test_a_panel_explains_itself_and_says_what_is_healthy(uid: str, panel: dict[str, Any]) -> None:
    seen, _, healthy = panel["description"].partition("\n\nHealthy: ")
    assert len(seen) > 20
    assert healthy.endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]


@each_target
def test_every_name_in_a_query_exists(uid: str, title: str, expr: str) -> None:
    recorded = set(re.findall(r"\w+:heliograph_[\w:]+", expr))
    assert recorded <= RECORDED
    for name in recorded:
        expr = expr.replace(name, "")
    found = set(re.findall(r"heliograph_\w+", expr))
    assert found or recorded or "ALERTS{" in expr
    assert found <= KNOWN


@each_target
def test_counters_are_read_as_rates_over_the_interval_grafana_gives(uid: str, title: str, expr: str) -> None:
    (panel,) = (panel for at, panel in PANELS if at == uid and panel["title"] == title)
    for name, before in re.findall(r"(?=\b(heliograph_\w+_(?:total|bucket)\b))(?<=(.{9}))", expr):
        if panel["type"] != "table" and "suspensions" not in name:
            assert before.endswith(("rate(", "increase(")), f"{name} is a counter"
    for window in re.findall(r"\[(.*?)\]", expr):
        assert window in ("$__rate_interval", "1m", "5m", "1h")


@each_target
def test_nodes_with_one_name_on_two_hosts_stay_apart(uid: str, title: str, expr: str) -> None:
    """A result has its host, unless it is one number or a sum over the whole fleet."""
    (panel,) = (panel for at, panel in PANELS if at == uid and panel["title"] == title)
    if panel["type"] not in ("stat", "heatmap") and "ALERTS" not in expr:
        assert "by (job, instance" in expr
    assert "ALERTS{" in expr or 'job=~"$job"' in expr


@each_board
def test_every_link_of_a_board_leads_to_a_board_with_its_variables_or_to_a_runbook(uid: str) -> None:
    between = {link["url"] for link in BOARDS[uid]["links"] if link["url"].startswith("/d/")}
    assert between == {f"/d/{other}" for other in BOARDS if other != uid}
    for link in BOARDS[uid]["links"]:
        assert link["url"].startswith("http") or (link["includeVars"] and link["keepTime"])
    runbooks = {path.name for path in (DEPLOY / "runbooks").glob("*.md")}
    for url in (value for key, value in walk(BOARDS[uid]["panels"]) if key == "url"):
        if url.startswith("/d/"):
            target, _, query = url.removeprefix("/d/").partition("?")
            assert target in BOARDS
            assert "${__url_time_range}" in query
            assert set(re.findall(r"\$\{(\w+):queryparam\}|var-(\w+)=", query)) <= {
                pair for name in VARIABLES for pair in ((name, ""), ("", name))
            }
            assert sorted("".join(pair) for pair in re.findall(r"\$\{(\w+):queryparam\}|var-(\w+)=", query)) == sorted(
                VARIABLES
            )
        elif "runbooks" in url:
            page = url.rpartition("/")[2]
            assert page in runbooks or page in ("${__data.fields.alertname}.md", "${__field.labels.alertname}.md")
        else:
            assert url == "http://127.0.0.1:8050"


@each_panel
def test_the_labels_that_a_link_passes_on_are_those_of_the_series(uid: str, panel: dict[str, Any]) -> None:
    wanted = {
        label
        for key, url in walk(panel)
        if key == "url"
        for label in re.findall(r"\$\{__(?:data\.fields|field\.labels)\.(\w+)\}", url)
    }
    for target in panel.get("targets", []):
        by = re.search(r"by \(([\w, ]+)\)", target["expr"])
        assert not wanted or wanted <= set(by[1].split(", ") if by else ()), target["expr"]


@each_panel
def test_thresholds_are_those_of_the_alerts_whose_runbooks_are_linked(uid: str, panel: dict[str, Any]) -> None:
    steps = len(panel["fieldConfig"]["defaults"]["thresholds"]["steps"]) - 1
    assert steps <= len(panel["links"])
    for link in panel["links"]:
        assert link["title"].removeprefix("Runbook of ") in SETTINGS.alerts


def test_a_changed_threshold_moves_the_line_of_its_panels(tmp_path: Path) -> None:
    changed = tmp_path / "alerts.toml"
    own = (DEPLOY / "alerts.toml").read_text()
    changed.write_text(re.sub(r"(\[alert\.ReceiverQueueNearFull\](?:\n.+)*?\nratio = ).*", r"\g<1>0.123", own))
    (panel,) = (one for board in boards(changed) for one in board["panels"] if one["title"] == "Receive queue fill"
                and board["uid"] == "heliograph-receiver")  # fmt: skip
    assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1]["value"] == 0.123


def test_states_are_shown_as_words() -> None:
    for title, table in (
        ("State of each receiver", BEHAVIOUR),
        ("Health", HEALTH),
        ("State, by source", STATE),
        ("Actions on receivers", ACTION),
    ):
        (panel,) = (item for _, item in PANELS if item["title"] == title)
        (mapping,) = panel["fieldConfig"]["defaults"]["mappings"]
        assert {key: item["text"] for key, item in mapping["options"].items()} == {
            str(word.rank): word.text for word in table.values()
        }


@pytest.fixture(scope="module")
def others() -> Iterator[int]:
    """Serve the families of a collector, of modules and of exporters that push, which a fleet on one host lacks."""
    found = [
        derived_family(name, [(["x"] * len(one.labels), 1)])
        for name, one in catalogue.derived().items()
        if name.startswith(("collector_", "module_", "exporter_success"))
    ]
    registry = CollectorRegistry()
    registry.register(type("Families", (), {"collect": lambda self: found})())
    server, thread = start_http_server(0, "127.0.0.1", registry)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


Asked = Callable[..., list[dict[str, Any]]]
"""Answers to a query at one moment, by default those of the host with `/metrics`."""


@pytest.fixture(scope="module")
def segments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The sample fleet and a live one, in which one receiver is slow and one loses packets."""
    live = Fleet(tmp_path_factory.mktemp("fleet"))
    sample_fleet(live.segments, 0)
    live.actor("live", "feed", rate=2000, topics=["LIVE"], instance={"level": 3})
    for name, pause, options in (("live-slow", 1.0, {}), ("live-lossy", 0.0, {"inject_loss": 0.05})):
        live.actor(name, "receiver", topics=["LIVE"], pause=pause, options=options, instance={"level": 3})
    yield live.segments
    live.end_all()


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory, segments: Path, others: int) -> Iterator[Asked]:
    """A real Prometheus that has scraped the real exporter over the fleets for some moments, as two hosts."""
    folder = tmp_path_factory.mktemp("prometheus")
    exporter_port = free_port()
    (folder / "rules.yml").write_text(rules(SETTINGS).replace("    interval: 1m\n", "    interval: 1s\n"))
    config = folder / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
        "rule_files: [rules.yml]\n"
        "scrape_configs:\n"
        + "".join(
            f"- {{job_name: {job}, metrics_path: {path}, static_configs: "
            f"[{{targets: ['127.0.0.1:{port}'], labels: {{job: heliograph, instance: {host}}}}}]}}\n"
            for job, host, path, port in (
                ("basic", "basic", "/metrics", exporter_port),
                ("detail", "detail", "/metrics/detail", exporter_port),
                ("others", "basic", "/metrics", others),
            )
        )
    )
    export = [sys.executable, "-m", "heliograph.monitor.cli", "export", "prometheus"]
    export += ["--segments", str(segments), "--interval", "1.2", "--listen", f"127.0.0.1:{exporter_port}"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with serve(config, folder / "data") as server, subprocess.Popen(export, **quiet) as exporter:
        try:
            server.wait_until('heliograph_fleet_receiver_late{node="live-lossy"}')
            server.wait_until("heliograph_node_host_hiccup_window_seconds")
            for step in range(1, 4 * MOMENTS):  # more often than moments pass (1.2 s): heartbeats must stay fresh
                sample_fleet(segments, step // 4)
                time.sleep(0.3)
            moment = f"{time.time():.3f}"

            def ask(expr: str, host: str = "basic") -> list[dict[str, Any]]:
                for name, value in {"job": ".+", "host": host, "node": ".+", "topic": ".+", "receiver": ".*"}.items():
                    expr = expr.replace(f"${name}", value)
                found: list[dict[str, Any]] = server.get(
                    "query", query=expr.replace("$__rate_interval", "30s"), time=moment
                )["result"]
                return found

            yield ask
        finally:
            exporter.terminate()


@each_target
def test_every_query_answers_on_a_real_prometheus(prometheus: Asked, uid: str, title: str, expr: str) -> None:
    found = prometheus(expr, "detail" if any(name in expr for name in IN_DETAIL) else "basic")
    if not any(name in expr for name in NOT_HERE):
        assert found, f"{title}: nothing for {expr}"


@pytest.mark.parametrize(("name", "expr"), ANNOTATIONS)
def test_the_query_of_an_annotation_is_valid(prometheus: Asked, name: str, expr: str) -> None:
    assert set(re.findall(r"heliograph_\w+", expr)) <= KNOWN
    without_condition, _, condition = expr.rpartition(" > ")
    assert condition == "0"
    assert prometheus(without_condition)


@each_board
def test_the_values_of_every_variable_are_found(prometheus: Asked, uid: str) -> None:
    for variable in BOARDS[uid]["templating"]["list"][1:]:
        selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]).groups()
        assert {row["metric"][label] for row in prometheus(selector)}


def test_two_hosts_with_one_node_name_are_two_lines(prometheus: Asked) -> None:
    (lag,) = (expr for uid, title, expr in TARGETS if (uid, title) == ("heliograph-fleet", "Lag"))
    found = {(row["metric"]["instance"], row["metric"]["node"]) for row in prometheus(lag, ".+")}
    assert {("basic", "slow"), ("detail", "slow")} <= found


def test_the_slow_receiver_is_called_slow_and_a_good_one_is_not(prometheus: Asked) -> None:
    expr = next(expr for _, title, expr in TARGETS if title == "Receivers, worst first")
    by_node = {row["metric"]["node"]: float(row["value"][1]) for row in prometheus(expr)}
    ranks = {word.text: word.rank for word in BEHAVIOUR.values()}
    assert by_node["slow"] == ranks["falling behind"]
    assert by_node["alpha"] == ranks["keeps up"]


def test_a_suspended_receiver_is_counted_and_shown_as_such(prometheus: Asked) -> None:
    wanted = ("Receivers isolated", "Actions on receivers", "State, by source")
    found = {title: prometheus(expr.replace("$node", "feed")) for _, title, expr in TARGETS if title in wanted}
    (isolated,) = found["Receivers isolated"]
    assert isolated["value"][1] == "1"
    actions = {row["metric"]["receiver"]: float(row["value"][1]) for row in found["Actions on receivers"]}
    assert sorted(actions.values()) == [0, 0, 0, float(ACTION["suspend"].rank)]
    rows = [row for row in found["State, by source"] if row["metric"]["node"] == "feed"]
    seen = [float(row["value"][1]) for row in rows if row["metric"]["instance"] == "basic"]
    assert sorted(seen) == [1, 1, 1, float(STATE[Behaviour.FALLING_BEHIND].rank)]
