"""The alert rules: complete, explained, tested, and about metrics that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from heliograph.engine import catalogue
from heliograph.engine.catalogue import names
from heliograph.exporters.alerts.render import FILES, grafana, prometheus
from heliograph.exporters.alerts.settings import PREFIX, load
from heliograph.monitor.behaviour import JUDGED
from heliograph.monitor.cli import main
from heliograph.monitor.errors import UserError
from tests.deploy import alert_cases
from tests.deploy.alert_cases import files, fires, resolves

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
RUNBOOKS = DEPLOY / "runbooks"

SETTINGS = load(DEPLOY / "alerts.toml")
_GROUPS = yaml.safe_load(prometheus(SETTINGS))["groups"]
_RULES: list[dict[str, Any]] = [rule for group in _GROUPS for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in _RULES if "alert" in rule}
OF_QUORUMS = {"QuorumLost", "StabilitySlow", "UnstableAtLimit", "SubscriptionBehind"}
"""Alerts that lead to the board of stability and subscriptions."""
RECORDS = {rule["record"] for rule in _RULES if "record" in rule}
CASES = alert_cases.load()
FIRST_SIX = {
    "HeliographUnrecoverableLoss",
    "HeliographNakRatioHigh",
    "HeliographReceiverFallingBehind",
    "HeliographReceiverStalled",
    "HeliographStatsStale",
    "HeliographNodeDown",
}
each_alert = pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS.keys())


def tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=120)


def exported() -> set[str]:
    """Every series name the exporter can write."""
    found = {names.family(derived) for derived in catalogue.derived().values()}
    for scope in catalogue.scopes().values():
        if scope.info:
            found.add(names.info_metric(scope))
        for statistic in scope.statistics:
            name = names.metric(statistic)
            if statistic.kind == "histogram":
                found |= {f"{name}_bucket", f"{name}_sum", f"{name}_count", names.window_metric(statistic)}
            else:
                found.add(name)
    return found


def vocabulary() -> set[str]:
    """Every name of the catalogue, as `heliograph stats` and `heliograph events` print them."""
    found = {*catalogue.events(), *catalogue.options(), *catalogue.scopes(), "runbook_url", "dashboard_url", *JUDGED}
    for scope in catalogue.scopes().values():
        found |= {*scope.labels, *scope.info}
        for statistic in scope.statistics:
            found |= {statistic.name, *(cell.name for cell in statistic.cells)}
            found |= set(statistic.split.values) if statistic.split else set()
    return found


def mentioned(text: str) -> set[str]:
    """Names of metrics in an expression, a template or a page."""
    return set(re.findall(r"(?<![\w:/-])heliograph_\w+", text))


def test_the_first_six_alerts_are_there() -> None:
    assert ALERTS.keys() >= FIRST_SIX


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"}
    assert pages == ALERTS.keys()


@each_alert
def test_an_alert_is_explained(alert: Mapping[str, Any]) -> None:
    assert alert["labels"]["severity"] in {"critical", "warning", "info", "none"}
    assert "keep_firing_for" in alert
    notes = alert["annotations"]
    assert notes["summary"]
    assert notes["description"]
    assert notes["runbook_url"].startswith("https://")
    assert notes["runbook_url"].endswith(f"/deploy/runbooks/{alert['alert']}.md")


@each_alert
def test_an_alert_leads_to_the_dashboard_and_sets_its_variables(alert: Mapping[str, Any]) -> None:
    link = alert["annotations"]["dashboard_url"]
    (uid,) = re.findall(r"https://[^/]+/d/([\w-]+)", link)
    dashboard = json.loads((DEPLOY / f"grafana/{uid}.json").read_text())
    assert dashboard["uid"] == uid
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"var-(\w+)=", link))
    assert used <= variables
    name = alert["alert"].removeprefix(PREFIX)
    board = "stability" if name in OF_QUORUMS else "store" if name.startswith("Store") else min(used, default="fleet")
    assert uid == f"heliograph-{board}"
    firing = [
        one for case in CASES[alert["alert"].removeprefix(PREFIX)] for found in case["at"].values() for one in found
    ]
    assert bool(used) == any("node" in labels for labels in firing)


@each_alert
def test_a_runbook_says_what_to_do(alert: Mapping[str, Any]) -> None:
    page = (RUNBOOKS / f"{alert['alert']}.md").read_text()
    assert page.startswith(f"# {alert['alert']} ({alert['labels']['severity']})\n")
    for heading in ("## First checks", "## Resolved when"):
        assert heading in page
    assert re.search(r"`heliograph (top|events|stats)", page)
    for target in re.findall(r"\]\(([\w.-]+\.md)\)", page):
        assert (RUNBOOKS / target).is_file(), target


def test_every_alert_has_cases() -> None:
    assert {f"{PREFIX}{name}" for name in CASES} == ALERTS.keys()


@pytest.mark.parametrize("name", CASES)
def test_an_alert_has_at_least_four_cases_with_and_without_fire(name: str) -> None:
    cases = CASES[name]
    assert len(cases) >= 4
    assert any(fires(case) for case in cases)
    assert any("notes" in case for case in cases), "its texts"
    if name != "Watchdog":  # always fires
        assert any(resolves(case) for case in cases)
        assert any(not fires(case) and case["name"].startswith("near miss") for case in cases)


def test_every_metric_of_the_rules_exists() -> None:
    text = " ".join(str(rule) for rule in _RULES)
    used = mentioned(text)
    assert used
    assert used <= exported()
    assert set(re.findall(r"\w+:heliograph_\w+:\w+", text)) == RECORDS


def test_every_metric_of_the_unit_tests_exists() -> None:
    texts = [text for cases in CASES.values() for case in cases for text in case["series"]]
    assert {re.split(r"[{ ]", text)[0] for text in texts} - {"up"} <= exported() | RECORDS


@pytest.mark.parametrize("page", sorted(RUNBOOKS.glob("*.md")), ids=lambda path: path.stem)
def test_every_name_in_a_runbook_exists(page: Path) -> None:
    text = page.read_text()
    assert mentioned(text) <= exported()
    words = set(re.findall(r"`([a-z]+_[a-z_]+)`", text)) - mentioned(text)
    assert words <= vocabulary()


@pytest.mark.parametrize("kind", FILES)
def test_a_rendered_file_is_up_to_date(kind: str) -> None:
    path, renderer = FILES[kind]
    assert (DEPLOY / path).read_text() == renderer(SETTINGS), "run: heliograph alerts render"


def test_promtool_finds_nothing_wrong_with_the_rules() -> None:
    done = run(tool("promtool"), "check", "rules", "--lint=all", "--lint-fatal", DEPLOY / FILES["prometheus"][0])
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_finds_nothing_wrong_with_the_configuration() -> None:
    done = run(tool("promtool"), "check", "config", "--lint=all", DEPLOY / "prometheus/prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", CASES)
def test_the_cases_of_an_alert_pass_and_notice_when_it_always_fires(name: str, tmp_path: Path) -> None:
    promtool = tool("promtool")
    done = run(promtool, "test", "rules", *files(tmp_path, prometheus(SETTINGS), SETTINGS, {name: CASES[name]}))
    assert done.returncode == 0, done.stdout + done.stderr
    if name == "Watchdog":
        return
    for path in tmp_path.glob("rules*.yml"):
        rules = json.loads(path.read_text())
        rules["groups"][0]["rules"][-1]["expr"] = "vector(1)"
        path.write_text(json.dumps(rules))
    done = run(promtool, "test", "rules", *sorted(tmp_path.glob("tests*.yml")))
    assert done.returncode != 0


@each_alert
def test_grafana_has_the_same_condition_and_no_template_that_it_lacks(alert: Mapping[str, Any]) -> None:
    rendered = json.loads(grafana(SETTINGS))
    rules = {rule["title"]: rule for group in rendered["groups"] for rule in group["rules"]}
    rule = rules[alert["alert"]]
    assert len({rule["uid"] for rule in rules.values()}) == len(ALERTS)
    assert rule["data"][0]["model"]["expr"] == alert["expr"]
    assert rule["labels"] == alert["labels"]
    assert "$value " not in str(rule["annotations"])
    assert "| query" not in str(rule["annotations"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[alert.Watchdog]", "[alert.Watchdogs]", "missing or unknown: Watchdog, Watchdogs"),
        ('severity = "none"', 'severity = "loud"', "severity 'loud' of Watchdog"),
        ("seconds = 60\n", "", "setting 'seconds' is missing"),
        ("seconds = 0.01\nshare", "seconds = 0.02\nshare", "a bound of the buckets"),
        ('keep = "1m"', 'keep = "soon"', "is not a duration"),
        ('source = "NakStorm"', 'source = "Storm"', "an unknown alert: Storm"),
        ("[links]", "[links", "is not valid TOML"),
    ],
)
def test_a_mistake_in_the_settings_is_one_clear_sentence(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = (DEPLOY / "alerts.toml").read_text()
    assert old in text
    file = tmp_path / "alerts.toml"
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(UserError, match=re.escape(message)):
        load(file)


def test_the_command_lists_and_renders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = f"--settings={DEPLOY / 'alerts.toml'}"
    assert main(["alerts", "list", settings]) == 0
    assert set(re.findall(r"^Heliograph\w+", capsys.readouterr().out, re.MULTILINE)) == ALERTS.keys()
    assert main(["alerts", "render", f"--out={tmp_path}", settings]) == 0
    for path, renderer in FILES.values():
        assert (tmp_path / path).read_text() == renderer(SETTINGS)


def test_alertmanager_routes_to_receivers_that_exist() -> None:
    file = DEPLOY / "alertmanager/alertmanager.yml"
    config = yaml.safe_load(file.read_text())
    receivers = {receiver["name"] for receiver in config["receivers"]}
    routes = [config["route"], *config["route"]["routes"]]
    assert {route["receiver"] for route in routes} <= receivers
    severities = {alert["labels"]["severity"] for alert in ALERTS.values()}
    assert set(re.findall(r"severity = (\w+)", str(routes))) == severities
    if amtool := shutil.which("amtool"):  # comes with Alertmanager, which nothing else here needs
        done = run(amtool, "check-config", file)
        assert done.returncode == 0, done.stdout + done.stderr


def test_an_inhibition_compares_labels_that_both_alerts_have() -> None:
    def labels(name: str) -> set[str]:
        found = [set(one) for case in CASES[name] for firing in case["at"].values() for one in firing]
        return set().union(*found) | {"instance"}

    for one in SETTINGS.inhibitions:
        targets = CASES.keys() if one.targets == ".+" else one.targets.split("|")
        for target in targets:
            assert set(one.equal) <= labels(one.source)
            assert set(one.equal) <= labels(target) or one.targets == ".+", target
