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

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus/rules/heliograph.yml"
TESTS = sorted((DEPLOY / "prometheus/tests").glob("*.yml"))
RUNBOOKS = DEPLOY / "runbooks"

_GROUPS = yaml.safe_load(RULES.read_text())["groups"]
_RULES: list[dict[str, Any]] = [rule for group in _GROUPS for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in _RULES if "alert" in rule}
RECORDS = {rule["record"] for rule in _RULES if "record" in rule}
FIRST_SIX = {
    "HeliographUnrecoverableLoss",
    "HeliographNakRatioHigh",
    "HeliographSlowReceiver",
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
    found = {*catalogue.events(), *catalogue.options(), *catalogue.scopes(), "runbook_url", "dashboard_url"}
    for scope in catalogue.scopes().values():
        found |= {*scope.labels, *scope.info}
        for statistic in scope.statistics:
            found |= {statistic.name, *(cell.name for cell in statistic.cells)}
            found |= set(statistic.split.values) if statistic.split else set()
    return found


def mentioned(text: str) -> set[str]:
    """Names of metrics in an expression, a template or a page."""
    return set(re.findall(r"(?<![\w:/-])heliograph_\w+", text))


def _cases(alert: str) -> list[Mapping[str, Any]]:
    """The unit tests that ask about an alert."""
    tests = [test for path in TESTS for test in yaml.safe_load(path.read_text())["tests"]]
    return [test for test in tests if any(ask["alertname"] == alert for ask in test.get("alert_rule_test", ()))]


def test_the_first_six_alerts_are_there() -> None:
    assert ALERTS.keys() >= FIRST_SIX


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"}
    assert pages == ALERTS.keys()


@each_alert
def test_an_alert_is_explained(alert: Mapping[str, Any]) -> None:
    assert alert["labels"]["severity"] in {"critical", "warning", "info"}
    assert "keep_firing_for" in alert
    notes = alert["annotations"]
    assert notes["summary"]
    assert notes["description"]
    assert notes["runbook_url"] == f"deploy/runbooks/{alert['alert']}.md"
    assert (ROOT / notes["runbook_url"]).is_file()


@each_alert
def test_an_alert_leads_to_the_dashboard_and_sets_its_variables(alert: Mapping[str, Any]) -> None:
    dashboard = json.loads((DEPLOY / "grafana/heliograph-fleet.json").read_text())
    link = alert["annotations"]["dashboard_url"]
    assert re.match(rf"/d/{dashboard['uid']}(?![\w-])", link)
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"var-(\w+)=", link))
    assert used
    assert used <= variables


@each_alert
def test_a_runbook_says_what_to_do(alert: Mapping[str, Any]) -> None:
    page = (RUNBOOKS / f"{alert['alert']}.md").read_text()
    assert page.startswith(f"# {alert['alert']} ({alert['labels']['severity']})\n")
    for heading in ("## First checks", "## Resolved when"):
        assert heading in page
    assert re.search(r"`heliograph (top|events|stats)", page)
    for target in re.findall(r"\]\(([\w.-]+\.md)\)", page):
        assert (RUNBOOKS / target).is_file(), target


@each_alert
def test_an_alert_has_at_least_four_unit_tests_with_and_without_fire(alert: Mapping[str, Any]) -> None:
    cases = _cases(alert["alert"])
    fires = [case for case in cases if any(ask.get("exp_alerts") for ask in case["alert_rule_test"])]
    quiet = [case for case in cases if not any(ask.get("exp_alerts") for ask in case["alert_rule_test"])]
    resolves = [case for case in fires if not case["alert_rule_test"][-1].get("exp_alerts")]
    assert len(cases) >= 4
    assert fires
    assert quiet, "a near miss"
    assert resolves
    assert any(
        word in case["name"] for case in cases for word in ("without series", "is gone", "went away", "series absent")
    )


def test_every_metric_of_the_rules_exists() -> None:
    text = " ".join(str(rule) for rule in _RULES)
    used = mentioned(text)
    assert used
    assert used <= exported()
    assert set(re.findall(r"stream:heliograph_\w+:\w+", text)) == RECORDS


def test_every_metric_of_the_unit_tests_exists() -> None:
    series = {
        entry["series"].partition("{")[0]
        for path in TESTS
        for test in yaml.safe_load(path.read_text())["tests"]
        for entry in test["input_series"]
    }
    assert series - {"up"} <= exported()


@pytest.mark.parametrize("page", sorted(RUNBOOKS.glob("*.md")), ids=lambda path: path.stem)
def test_every_name_in_a_runbook_exists(page: Path) -> None:
    text = page.read_text()
    assert mentioned(text) <= exported()
    words = set(re.findall(r"`([a-z]+_[a-z_]+)`", text)) - mentioned(text)
    assert words <= vocabulary()


def test_promtool_finds_nothing_wrong_with_the_rules() -> None:
    done = run(tool("promtool"), "check", "rules", "--lint=all", "--lint-fatal", RULES)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_finds_nothing_wrong_with_the_configuration() -> None:
    done = run(tool("promtool"), "check", "config", "--lint=all", DEPLOY / "prometheus/prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_unit_tests_of_the_rules_pass() -> None:
    done = run(tool("promtool"), "test", "rules", *TESTS)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ALERTS)
def test_the_unit_tests_of_an_alert_notice_when_it_always_fires(name: str, tmp_path: Path) -> None:
    promtool = tool("promtool")
    broken = yaml.safe_load(RULES.read_text())
    for rule in (rule for group in broken["groups"] for rule in group["rules"]):
        if rule.get("alert") == name:
            rule["expr"] = "vector(1)"
    (own,) = (path for path in TESTS if f"alertname: {name}\n" in path.read_text())
    for folder in ("rules", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "rules/heliograph.yml").write_text(yaml.safe_dump(broken))
    done = run(promtool, "test", "rules", shutil.copy(own, tmp_path / "tests"))
    assert done.returncode != 0


def test_alertmanager_routes_to_receivers_that_exist() -> None:
    file = DEPLOY / "alertmanager/alertmanager.yml"
    config = yaml.safe_load(file.read_text())
    receivers = {receiver["name"] for receiver in config["receivers"]}
    routes = [config["route"], *config["route"]["routes"]]
    assert {route["receiver"] for route in routes} <= receivers
    severities = {alert["labels"]["severity"] for alert in ALERTS.values()}
    assert set(re.findall(r"severity = (\w+)", str(routes))) <= severities
    if amtool := shutil.which("amtool"):  # comes with Alertmanager, which nothing else here needs
        done = run(amtool, "check-config", file)
        assert done.returncode == 0, done.stdout + done.stderr


def test_alertmanager_inhibits_alerts_that_exist() -> None:
    config = yaml.safe_load((DEPLOY / "alertmanager/alertmanager.yml").read_text())
    sides = [rule[side] for rule in config["inhibit_rules"] for side in ("source_matchers", "target_matchers")]
    named = {name for side in sides for text in side for name in re.findall(r"alertname !?= (\w+)", text)}
    assert named
    assert named <= ALERTS.keys()
