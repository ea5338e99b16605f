"""Alert rules, contact points and the notification policy: the same three-way apply as for boards."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from heliograph.dashboards.grafana.alerts import Alerts, load
from heliograph.dashboards.grafana.commands import command
from heliograph.dashboards.grafana.plan import Wish, apply, plan
from heliograph.dashboards.grafana.port import Refused
from heliograph.monitor.errors import UserError
from tests.dashboards.fake_grafana import TOKEN, FakeGrafana, Mishap
from tests.dashboards.openapi import description
from tests.dashboards.test_grafana_plan import connect, run, server

__all__ = ["server"]

DEPLOY = Path(__file__).resolve().parents[2] / "deploy" / "grafana"


def sample(rules: int = 2, holds: str = "120s") -> Alerts:
    files = load(DEPLOY)
    group = copy.deepcopy(dict(files.groups[0]))
    group["rules"] = group["rules"][:rules]
    group["rules"][0]["for"] = holds
    point = {"uid": "heliograph-warning", "name": "daytime", "type": "webhook", "settings": {"url": "http://h"}}
    return Alerts([group], [point], files.policy)


def wish(alerts: Alerts) -> Wish:
    return Wish(None, "Heliograph", None, alerts)


def test_alerts_are_created_editable_and_a_second_plan_is_empty(server: FakeGrafana) -> None:
    grafana = connect(server)
    planned = plan(grafana, wish(sample()))
    assert [one.kind for one in planned.changes] == [
        "folder",
        "contact point",
        "alert rule",
        "alert rule",
        "alert group",
        "notification policy",
    ]
    assert len([note for note in planned.notes if "no contact point" in note]) == 3
    assert "--prometheus-url" in planned.notes[-1]
    assert apply(grafana, planned) == 6
    assert not plan(grafana, wish(sample())).differs
    assert {rule["for"] for rule in server.rules.values()} >= {"2m"}
    assert set(server.intervals.values()) == {10}
    assert [route.get("receiver") for route in server.policies["routes"]] == ["default", None]
    assert [route["receiver"] for route in server.policies["routes"][1]["routes"]] == ["daytime"]


def test_an_edited_rule_is_kept_and_merged_and_a_conflict_is_refused(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, wish(sample())))
    uid = next(iter(server.rules))
    server.rules[uid]["isPaused"] = True
    assert not plan(grafana, wish(sample())).needed
    apply(grafana, plan(grafana, wish(sample(holds="5m"))))
    assert (server.rules[uid]["isPaused"], server.rules[uid]["for"]) == (True, "5m")
    server.rules[uid]["for"] = "7m"
    assert plan(grafana, wish(sample(holds="6m"))).conflicts == 1
    apply(grafana, plan(grafana, wish(sample(holds="6m")), force=True))
    assert (server.rules[uid]["isPaused"], server.rules[uid]["for"]) == (False, "6m")


def test_alerts_that_are_no_longer_wanted_are_deleted_by_prune_only(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, wish(sample())))
    nothing = Alerts([], [], {"routes": []})
    assert plan(grafana, wish(nothing)).needed == 0
    pruned = plan(grafana, wish(nothing), prune=True)
    gone = [(one.kind, one.action) for one in pruned.changes if one.needed]
    assert gone == [("notification policy", "delete"), *[("alert rule", "delete")] * 2, ("contact point", "delete")]
    assert apply(grafana, pruned) == 4
    assert (server.rules, server.contact_points) == ({}, {})
    assert server.policies["routes"] == [{"receiver": "default"}]
    assert apply(grafana, plan(grafana, wish(sample()))) == 5
    assert not plan(grafana, wish(sample())).differs


def test_a_rule_that_the_server_refuses_is_named(server: FakeGrafana) -> None:
    grafana = connect(server)
    planned = plan(grafana, wish(sample()))
    server.mishaps.extend([Mishap(0)] * 6 + [Mishap(422, b'{"message":"bad query"}')])
    with pytest.raises(Refused, match=r"saving the alerting alert-rules/helio-.*422: bad query.*2 of 6 changes"):
        apply(grafana, planned)
    assert plan(grafana, wish(sample())).notes[-1].startswith("the last apply did not finish")
    apply(grafana, plan(grafana, wish(sample())))
    assert not plan(grafana, wish(sample())).differs


def test_every_request_fits_grafanas_own_description(server: FakeGrafana) -> None:
    api = description()
    grafana = connect(server)
    apply(grafana, plan(grafana, wish(sample())))
    apply(grafana, plan(grafana, wish(sample(holds="5m"))))
    server.contact_points["heliograph-warning"]["settings"] = {"url": "http://other"}
    apply(grafana, plan(grafana, wish(sample()), force=True))
    apply(grafana, plan(grafana, wish(Alerts([], [], {"routes": []})), prune=True))
    assert {request.method for request in server.requests} == {"GET", "POST", "PUT", "DELETE"}
    for request in server.requests:
        assert api.misfits(request.method, request.path, request.body) == [], request


def test_the_command_applies_the_rendered_alerts_only(
    server: FakeGrafana, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    there = ["--url", server.url, "--token", TOKEN, "--only", "alerts", "--alerts"]
    assert run(["apply", *there, str(DEPLOY)], command) == 0
    assert set(server.dashboards) == {"heliograph-state"}
    assert len(server.rules) > 10
    assert run(["diff", *there, str(DEPLOY)], command) == 0
    assert "no contact point 'pager'" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"heliograph alerts render.*--only boards"):
        run(["plan", *there, str(tmp_path)], command)
