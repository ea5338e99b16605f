"""Plan and apply through `grafana-api` against a server with Grafana's habits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from heliograph.dashboards.grafana.backend import GrafanaApiBackend
from heliograph.dashboards.grafana.plan import MARK, Change, Wish, apply, data_source, plan
from heliograph.dashboards.grafana.port import (
    Conflict,
    Forbidden,
    Json,
    Refused,
    ServerFailure,
    Unauthorized,
    Unreachable,
)
from heliograph.monitor.errors import UserError
from tests.dashboards.fake_grafana import TOKEN, FakeGrafana, Mishap
from tests.dashboards.openapi import description

BOARD: Json = {
    "uid": "board",
    "title": "Board",
    "tags": ["one"],
    "schemaVersion": 39,
    "panels": [{"id": 1, "type": "stat", "title": "Loss", "targets": [{"expr": "up", "refId": "A"}]}],
}
WISH = Wish(BOARD, "Watch", data_source("http://127.0.0.1:9090"))


@pytest.fixture
def server() -> Iterator[FakeGrafana]:
    with FakeGrafana() as fake:
        yield fake


def connect(server: FakeGrafana, token: str = TOKEN) -> GrafanaApiBackend:
    return GrafanaApiBackend(server.url, token, sleep=lambda _: None)


def actions(changes: tuple[Change, ...]) -> list[tuple[str, str]]:
    return [(change.kind, change.action) for change in changes]


def test_an_empty_server_gets_everything_and_a_second_plan_is_empty(server: FakeGrafana) -> None:
    grafana = connect(server)
    first = plan(grafana, WISH)
    assert actions(first) == [("folder", "create"), ("data source", "create"), ("dashboard", "create")]
    assert apply(grafana, first) == 3
    second = plan(grafana, WISH)
    assert not any(change.needed for change in second)
    before = len(server.writes)
    assert apply(grafana, second) == 0
    assert len(server.writes) == before


def test_planning_writes_nothing(server: FakeGrafana) -> None:
    plan(connect(server), WISH)
    assert server.writes == []


def test_the_plan_names_what_differs_by_path(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, WISH))
    stored, _ = server.dashboards["board"]
    stored["panels"][0]["targets"][0]["expr"] = "down"
    stored["panels"].append({"title": "Somebody's own"})
    changes = plan(grafana, WISH)
    assert changes[-1].action == "update"
    assert changes[-1].lines == (
        'panels[0].targets[0].expr: "down" -> "up"',
        "panels[1]: {Somebody's own} -> nothing",
    )
    apply(grafana, changes)
    assert len(server.dashboards["board"][0]["panels"]) == 1
    assert not any(change.needed for change in plan(grafana, WISH))


def test_what_the_server_adds_of_its_own_is_no_difference(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, WISH))
    stored, _ = server.dashboards["board"]
    stored["schemaVersion"] = 42
    stored["panels"][0]["options"] = {"new": True}
    assert not any(change.needed for change in plan(grafana, WISH))


def test_a_change_between_plan_and_apply_is_a_conflict_and_not_lost(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, WISH))
    server.dashboards["board"][0]["title"] = "Theirs"
    changes = plan(grafana, WISH)
    server.dashboards["board"][0]["version"] += 1
    with pytest.raises(Conflict, match="changed in the meantime"):
        apply(grafana, changes)
    assert server.dashboards["board"][0]["title"] == "Theirs"


def test_a_dashboard_that_is_not_ours_is_refused(server: FakeGrafana) -> None:
    server.dashboards["board"] = ({"uid": "board", "title": "Theirs", "version": 3, "tags": []}, "")
    with pytest.raises(Conflict, match="was not made by"):
        plan(connect(server), WISH)
    assert server.writes == []


def test_a_data_source_that_is_not_ours_is_refused(server: FakeGrafana) -> None:
    server.data_sources["heliograph-prometheus"] = {"uid": "heliograph-prometheus", "jsonData": {}, "version": 1}
    with pytest.raises(Conflict, match="--prometheus-url"):
        plan(connect(server), WISH)


def test_a_data_source_moves_to_its_new_address_by_uid(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, WISH))
    moved = Wish(BOARD, "Watch", data_source("http://10.0.0.1:9090"))
    changes = plan(grafana, moved)
    assert [change.action for change in changes] == ["keep", "update", "keep"]
    apply(grafana, changes)
    assert server.data_sources["heliograph-prometheus"]["url"] == "http://10.0.0.1:9090"
    assert not any(change.needed for change in plan(grafana, moved))


def test_a_folder_of_the_same_title_is_used_as_it_is(server: FakeGrafana) -> None:
    server.folders["xyz"] = {"id": 9, "uid": "xyz", "title": "Watch"}
    grafana = connect(server)
    apply(grafana, plan(grafana, Wish(BOARD, "Watch")))
    assert list(server.folders) == ["xyz"]
    assert server.dashboards["board"][1] == "xyz"


def test_a_dashboard_that_was_moved_is_moved_back(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, WISH))
    server.dashboards["board"] = (server.dashboards["board"][0], "elsewhere")
    (change,) = [item for item in plan(grafana, WISH) if item.needed]
    assert change.lines == ("folder: elsewhere -> watch",)


def test_no_numeric_id_of_a_server_is_ever_sent(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, WISH))
    server.dashboards["board"][0]["title"] = "Theirs"
    apply(grafana, plan(grafana, WISH))
    for request in server.writes:
        assert "id" not in request.body
        assert "id" not in request.body.get("dashboard", {})
        assert "folderId" not in request.body


def test_nothing_is_ever_deleted(server: FakeGrafana) -> None:
    grafana = connect(server)
    server.dashboards["other"] = ({"uid": "other", "title": "Other", "version": 1, "tags": [MARK]}, "")
    apply(grafana, plan(grafana, WISH))
    assert "other" in server.dashboards
    assert all(request.method != "DELETE" for request in server.requests)


def test_an_empty_answer_after_a_write_is_success(server: FakeGrafana) -> None:
    grafana = connect(server)
    changes = plan(grafana, Wish(BOARD))
    server.mishaps.append(Mishap(204, after=True))
    assert apply(grafana, changes) == 1
    assert "board" in server.dashboards


def test_a_wrong_token_is_named(server: FakeGrafana) -> None:
    with pytest.raises(Unauthorized, match=r"401: Invalid API key.*GRAFANA_TOKEN"):
        plan(connect(server, "wrong"), WISH)


def test_a_token_without_the_right_says_which_role_it_needs(server: FakeGrafana) -> None:
    grafana = connect(server)
    changes = plan(grafana, WISH)
    server.may_write = False
    with pytest.raises(Forbidden, match="Editor"):
        apply(grafana, changes)


def test_no_server_is_named_with_its_address() -> None:
    with FakeGrafana() as server:
        url = server.url
    waits: list[float] = []
    grafana = GrafanaApiBackend(url, TOKEN, sleep=waits.append)
    with pytest.raises(Unreachable, match=rf"{url} \(connection refused\)"):
        plan(grafana, WISH)
    assert waits == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_read_is_tried_again_while_the_server_is_in_trouble(server: FakeGrafana, status: int) -> None:
    server.mishaps.extend([Mishap(status, b'{"message":"busy"}')] * 3)
    assert plan(connect(server), WISH)


def test_a_write_is_tried_again_only_when_the_server_did_nothing(server: FakeGrafana) -> None:
    grafana = connect(server)
    changes = plan(grafana, Wish(BOARD))
    server.mishaps.append(Mishap(503, b"{}"))
    assert apply(grafana, changes) == 1
    server.dashboards.clear()
    server.mishaps.append(Mishap(502, b"<html>message from a proxy</html>"))
    with pytest.raises(ServerFailure, match="502"):
        apply(grafana, changes)


@pytest.mark.parametrize("body", [b"<html>a message from a proxy</html>", b"null", b'["message"]', b'"message"', b""])
def test_a_failure_that_is_no_object_is_still_told_by_its_status(server: FakeGrafana, body: bytes) -> None:
    server.mishaps.append(Mishap(418, body))
    with pytest.raises(Refused, match="418"):
        plan(connect(server), WISH)


def test_a_redirect_is_told_and_not_followed(server: FakeGrafana) -> None:
    grafana = connect(server)
    changes = plan(grafana, Wish(BOARD))
    server.mishaps.append(Mishap(302, headers={"Location": "https://grafana.example/"}))
    with pytest.raises(Refused, match=r"redirects to https://grafana\.example/; use that address"):
        apply(grafana, changes)
    assert server.dashboards == {}


def test_a_page_that_is_not_grafanas_is_told(server: FakeGrafana) -> None:
    server.mishaps.append(Mishap(200, b"<html>hello</html>"))
    with pytest.raises(ServerFailure, match="check --url"):
        plan(connect(server), WISH)


def test_a_sub_path_is_kept() -> None:
    with FakeGrafana(prefix="/grafana") as server:
        grafana = connect(server)
        apply(grafana, plan(grafana, WISH))
        assert "board" in server.dashboards


@pytest.mark.parametrize("url", ["localhost:3000", "ftp://host", "http://", "http://host:port", "http://h/?a=b"])
def test_what_is_no_address_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(UserError, match="is not the address"):
        GrafanaApiBackend(url, TOKEN)


def test_every_request_fits_grafanas_own_description(server: FakeGrafana) -> None:
    api = description()
    grafana = connect(server)
    apply(grafana, plan(grafana, WISH))
    server.dashboards["board"][0]["title"] = "Theirs"
    server.data_sources["heliograph-prometheus"]["url"] = "http://elsewhere"
    apply(grafana, plan(grafana, WISH))
    assert {request.method for request in server.requests} == {"GET", "POST", "PUT"}
    for request in server.requests:
        assert api.misfits(request.method, request.path, request.body) == [], request


def test_the_description_refuses_what_does_not_fit() -> None:
    api = description()
    assert api.misfits("POST", "/dashboards/database", {})
    assert api.misfits("POST", "/dashboards/db", {"dashboard": {}, "folderUid": 7})
    assert api.misfits("POST", "/folders", None)


def run(arguments: list[str], command: Callable[..., None]) -> int:
    import argparse

    parser = argparse.ArgumentParser()
    command(parser.add_subparsers())
    args = parser.parse_args(["grafana", *arguments])
    result: int = args.run(args)
    return result


def test_the_command_plans_applies_and_then_has_nothing_to_do(
    server: FakeGrafana, capsys: pytest.CaptureFixture[str]
) -> None:
    from heliograph.dashboards.grafana.commands import command

    there = ["--url", server.url, "--token", TOKEN]
    assert run(["plan", *there, "--check"], command) == 3
    assert "+ dashboard 'Heliograph fleet' (uid heliograph-fleet): create" in capsys.readouterr().out
    assert run(["apply", *there], command) == 0
    assert "2 changed" in capsys.readouterr().out
    assert run(["plan", *there, "--check"], command) == 0
    assert "nothing to change" in capsys.readouterr().out


def test_the_command_takes_address_and_token_from_the_environment(
    server: FakeGrafana, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heliograph.dashboards.grafana.commands import command

    monkeypatch.delenv("GRAFANA_TOKEN", raising=False)
    monkeypatch.setenv("GRAFANA_URL", server.url)
    with pytest.raises(UserError, match="GRAFANA_TOKEN"):
        run(["plan"], command)
    monkeypatch.setenv("GRAFANA_TOKEN", TOKEN)
    assert run(["plan"], command) == 0
    monkeypatch.delenv("GRAFANA_URL")
    with pytest.raises(UserError, match="GRAFANA_URL"):
        run(["plan"], command)


def test_the_command_prints_the_dashboard(capsys: pytest.CaptureFixture[str]) -> None:
    from heliograph.dashboards.grafana.commands import command

    assert run(["show"], command) == 0
    assert json.loads(capsys.readouterr().out)["uid"] == "heliograph-fleet"
