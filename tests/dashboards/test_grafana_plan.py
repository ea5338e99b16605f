"""Plan and apply through `grafana-api` against a server with Grafana's habits."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator

import pytest

from heliograph.dashboards.grafana.backend import GrafanaApiBackend
from heliograph.dashboards.grafana.boards import boards
from heliograph.dashboards.grafana.plan import MARK, Change, Plan, Wish, apply, data_source, plan
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
WISH = Wish([BOARD], "Watch", data_source("http://127.0.0.1:9090"))


@pytest.fixture
def server() -> Iterator[FakeGrafana]:
    with FakeGrafana() as fake:
        yield fake


def connect(server: FakeGrafana, token: str = TOKEN) -> GrafanaApiBackend:
    return GrafanaApiBackend(server.url, token, sleep=lambda _: None)


def actions(planned: Plan) -> list[tuple[str, str]]:
    return [(change.kind, change.action) for change in planned.changes]


def test_an_empty_server_gets_everything_and_a_second_plan_is_empty(server: FakeGrafana) -> None:
    grafana = connect(server)
    first = plan(grafana, WISH)
    assert actions(first) == [("folder", "create"), ("data source", "create"), ("dashboard", "create")]
    assert apply(grafana, first) == 3
    second = plan(grafana, WISH)
    assert not second.needed
    before = len(server.writes)
    assert apply(grafana, second) == 0
    assert len(server.writes) == before


def test_planning_writes_nothing(server: FakeGrafana) -> None:
    plan(connect(server), WISH)
    assert server.writes == []


def test_an_edit_is_named_by_path_and_kept_and_force_replaces_it(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, WISH))
    stored, _ = server.dashboards["board"]
    stored["panels"][0]["targets"][0]["expr"] = "down"
    stored["panels"].append({"title": "Somebody's own"})
    kept = plan(grafana, WISH)
    assert kept.changes[-1].action == "keep"
    assert kept.differs
    assert kept.changes[-1].lines == (
        'panel \'Loss\' targets[A].expr: "up" -> "down" (edited on the server; kept)',
        "panel \"Somebody's own\": nothing -> {Somebody's own} (edited on the server; kept)",
    )
    assert apply(grafana, kept) == 0
    assert len(stored["panels"]) == 2
    forced = plan(grafana, WISH, force=True)
    assert forced.changes[-1].lines == (
        'panel \'Loss\' targets[A].expr: "down" -> "up" (overwrites an edit)',
        "panel \"Somebody's own\": {Somebody's own} -> nothing (overwrites an edit)",
    )
    apply(grafana, forced)
    assert len(server.dashboards["board"][0]["panels"]) == 1
    assert not plan(grafana, WISH).differs


def test_what_the_server_adds_of_its_own_is_no_difference(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, WISH))
    stored, _ = server.dashboards["board"]
    stored["schemaVersion"] = 42
    stored["panels"][0]["options"] = {"new": True}
    assert not plan(grafana, WISH).needed


def test_a_change_between_plan_and_apply_is_a_conflict_and_not_lost(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, WISH))
    server.dashboards["board"][0]["title"] = "Theirs"
    changes = plan(grafana, WISH, force=True)
    server.dashboards["board"][0]["version"] += 1
    with pytest.raises(Conflict, match=r"changed in the meantime.*0 of 1 changes were made; repeat"):
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
    moved = Wish([BOARD], "Watch", data_source("http://10.0.0.1:9090"))
    changes = plan(grafana, moved)
    assert [change.action for change in changes.changes] == ["keep", "update", "keep"]
    apply(grafana, changes)
    assert server.data_sources["heliograph-prometheus"]["url"] == "http://10.0.0.1:9090"
    assert not plan(grafana, moved).needed


def test_a_folder_of_the_same_title_is_used_as_it_is(server: FakeGrafana) -> None:
    server.folders["xyz"] = {"id": 9, "uid": "xyz", "title": "Watch"}
    grafana = connect(server)
    apply(grafana, plan(grafana, Wish([BOARD], "Watch")))
    assert list(server.folders) == ["xyz"]
    assert server.dashboards["board"][1] == "xyz"


def test_a_dashboard_that_was_moved_stays_and_force_moves_it_back(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, WISH))
    server.dashboards["board"] = (server.dashboards["board"][0], "elsewhere")
    assert not plan(grafana, WISH).needed
    (change,) = [item for item in plan(grafana, WISH, force=True).changes if item.needed]
    assert change.lines == ('folderUid: "elsewhere" -> "watch" (overwrites an edit)',)


def test_no_numeric_id_of_a_server_is_ever_sent(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, WISH))
    server.dashboards["board"][0]["title"] = "Theirs"
    assert apply(grafana, plan(grafana, WISH, force=True)) == 1
    for request in server.writes:
        assert "id" not in request.body
        assert "id" not in request.body.get("dashboard", {})
        assert "folderId" not in request.body


def test_nothing_of_others_is_ever_deleted(server: FakeGrafana) -> None:
    grafana = connect(server)
    server.dashboards["other"] = ({"uid": "other", "title": "Other", "version": 1, "tags": [MARK]}, "")
    apply(grafana, plan(grafana, WISH))
    assert "other" in server.dashboards
    assert all(request.method != "DELETE" for request in server.requests)


def board(*panels: Json, **more: object) -> Json:
    return BOARD | {"panels": list(panels)} | more


def panel(number: int, title: str, expr: str = "up", **more: object) -> Json:
    grid = {"h": 4, "w": 4, "x": 0, "y": 4 * number}
    return {
        "id": number,
        "type": "stat",
        "title": title,
        "gridPos": grid,
        "targets": [{"expr": expr, "refId": "A"}],
    } | more


def test_an_edit_and_a_change_of_ours_are_merged_by_panel(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, Wish([board(panel(1, "Loss"), panel(2, "Rate"), panel(3, "Old"))])))
    stored, _ = server.dashboards["board"]
    stored["panels"][0]["title"] = "Losses"
    stored["panels"].append(panel(4, "Own"))
    new = Wish([board(panel(1, "First"), panel(2, "Loss", "sum(up)"), panel(3, "Rate"))])
    planned = plan(grafana, new)
    assert planned.conflicts == 0
    lines = planned.changes[-1].lines
    assert 'panel \'Loss\' title: "Loss" -> "Losses" (edited on the server; kept)' in lines
    assert 'panel \'Loss\' targets[A].expr: "up" -> "sum(up)"' in lines
    assert "panel 'Old': {Old} -> nothing" in lines
    assert "layout: 2 panels move" in lines
    assert apply(grafana, planned) == 1
    panels = server.dashboards["board"][0]["panels"]
    assert [one["title"] for one in panels] == ["First", "Losses", "Rate", "Own"]
    assert [one["id"] for one in panels] == [1, 2, 3, 4]
    assert panels[1]["targets"][0]["expr"] == "sum(up)"
    after = plan(grafana, new)
    assert not after.needed
    assert len(after.changes[-1].differences) == 2  # the two edits


def test_the_order_of_named_items_is_merged_too(server: FakeGrafana) -> None:
    def ordered(*names: str) -> Wish:
        return Wish([BOARD | {"templating": {"list": [{"name": name} for name in names]}}])

    def names() -> list[str]:
        return [one["name"] for one in server.dashboards["board"][0]["templating"]["list"]]

    grafana = connect(server)
    apply(grafana, plan(grafana, ordered("a", "b")))
    apply(grafana, plan(grafana, ordered("b", "a")))
    assert names() == ["b", "a"]
    server.dashboards["board"][0]["templating"]["list"].reverse()
    apply(grafana, plan(grafana, ordered("b", "a", "c")))
    assert names() == ["a", "b", "c"]


def test_a_conflict_writes_nothing_and_force_takes_ours(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, Wish([board(panel(1, "Loss"))])))
    server.dashboards["board"][0]["panels"][0]["targets"][0]["expr"] = "theirs"
    new = Wish([board(panel(1, "Loss", "ours"))])
    planned = plan(grafana, new)
    assert planned.changes[-1].lines == (
        'panel \'Loss\' targets[A].expr: conflict: last applied "up", edited to "theirs", wanted "ours"',
    )
    before = len(server.writes)
    with pytest.raises(Conflict, match="conflicts"):
        apply(grafana, planned)
    assert len(server.writes) == before
    apply(grafana, plan(grafana, new, force=True))
    assert not plan(grafana, new).differs


def test_a_panel_removed_by_hand_stays_away_until_we_change_it(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, Wish([board(panel(1, "Loss"), panel(2, "Rate"))])))
    del server.dashboards["board"][0]["panels"][0]
    kept = plan(grafana, Wish([board(panel(1, "Loss"), panel(2, "Rate"))]))
    assert [one.kind for one in kept.changes[-1].differences] == ["edit"]
    moved = plan(grafana, Wish([board(panel(1, "New"), panel(2, "Loss"), panel(3, "Rate"))]))
    assert [one.path for one in moved.changes[-1].differences if one.kind == "edit"] == ["panel 'Loss'"]
    assert moved.conflicts == 0
    assert plan(grafana, Wish([board(panel(1, "Loss", "new"), panel(2, "Rate"))])).conflicts == 1


def test_a_field_that_we_never_set_is_kept(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, Wish([BOARD])))
    server.dashboards["board"][0]["panels"][0]["maxDataPoints"] = 7
    apply(grafana, plan(grafana, Wish([BOARD | {"title": "New"}]), force=True))
    stored, _ = server.dashboards["board"]
    assert (stored["title"], stored["panels"][0]["maxDataPoints"]) == ("New", 7)


def test_without_a_record_a_difference_is_a_conflict(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, Wish([BOARD])))
    del server.dashboards["heliograph-state"]
    assert not plan(grafana, Wish([BOARD])).differs
    assert plan(grafana, Wish([BOARD | {"title": "New"}])).conflicts == 1


def test_a_damaged_record_is_noted(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, Wish([BOARD])))
    server.dashboards["heliograph-state"][0]["templating"]["list"][0]["query"] = "12:AAAA"
    assert "damaged" in plan(grafana, Wish([BOARD])).notes[0]


def test_a_board_that_is_no_longer_wanted_is_deleted_by_prune_only(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, Wish([BOARD, BOARD | {"uid": "old", "title": "Old"}])))
    planned = plan(grafana, Wish([BOARD]))
    assert actions(planned) == [("dashboard", "keep"), ("dashboard", "unwanted")]
    assert apply(grafana, planned) == 0
    pruned = plan(grafana, Wish([BOARD]), prune=True)
    assert actions(pruned) == [("dashboard", "keep"), ("dashboard", "delete")]
    server.dashboards["old"][0]["title"] = "Edited"
    assert plan(grafana, Wish([BOARD]), prune=True).conflicts == 1
    with pytest.raises(Conflict, match="changed in the meantime"):
        apply(grafana, pruned)
    assert apply(grafana, plan(grafana, Wish([BOARD]), prune=True, force=True)) == 1
    assert set(server.dashboards) == {"board", "heliograph-state"}
    assert not plan(grafana, Wish([BOARD])).differs


def test_a_server_that_fails_halfway_leaves_a_state_from_which_apply_goes_on(server: FakeGrafana) -> None:
    grafana = connect(server)
    wish = Wish([BOARD | {"uid": f"b{number}"} for number in range(3)])
    planned = plan(grafana, wish)
    # the record, its version, the first board; then the second board fails
    server.mishaps.extend([Mishap(0)] * 3 + [Mishap(500, b'{"message":"disk full"}')])
    with pytest.raises(ServerFailure, match=r"saving dashboard 'b1'.*disk full.*1 of 3 changes were made; repeat"):
        apply(grafana, planned)
    rest = plan(grafana, wish)
    assert rest.notes == ("the last apply did not finish; it may have changed dashboard:b1, dashboard:b2",)
    assert [change.action for change in rest.changes] == ["keep", "create", "create"]
    assert apply(grafana, rest) == 2
    assert not plan(grafana, wish).differs
    assert plan(grafana, wish).notes == ()


def test_a_write_that_was_carried_out_but_not_answered_is_no_edit(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, Wish([BOARD])))
    new = Wish([BOARD | {"title": "New"}])
    server.mishaps.extend([Mishap(0)] * 2)
    planned = plan(grafana, new)
    server.mishaps.extend([Mishap(0), Mishap(502, b"bad gateway", after=True)])
    with pytest.raises(ServerFailure, match="502"):
        apply(grafana, planned)
    assert server.dashboards["board"][0]["title"] == "New"
    assert not plan(grafana, new).differs
    apply(grafana, plan(grafana, new))
    assert plan(grafana, new).notes == ()


def test_of_two_that_apply_at_the_same_time_one_is_refused(server: FakeGrafana) -> None:
    grafana = connect(server)
    apply(grafana, plan(grafana, Wish([BOARD])))
    mine, theirs = (plan(grafana, Wish([BOARD | {"title": title}])) for title in ("Mine", "Theirs"))
    apply(grafana, mine)
    with pytest.raises(Conflict, match="changed in the meantime"):
        apply(grafana, theirs)
    assert server.dashboards["board"][0]["title"] == "Mine"


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, Unauthorized), (403, Forbidden), (409, Conflict), (412, Conflict), (422, Refused), (500, ServerFailure)],
)
def test_a_failure_names_the_call_and_the_answer(server: FakeGrafana, status: int, error: type[Exception]) -> None:
    grafana = connect(server)
    planned = plan(grafana, Wish([BOARD]))
    server.mishaps.extend([Mishap(0)] * 2 + [Mishap(status, b'{"message":"because"}')])
    with pytest.raises(error, match=rf"dashboard 'board'.*{status}: because.*0 of 1 changes were made"):
        apply(grafana, planned)
    assert "board" not in server.dashboards


def test_no_answer_in_time_is_named_with_its_doubt(server: FakeGrafana) -> None:
    planned = plan(connect(server), Wish([BOARD]))
    grafana = GrafanaApiBackend(server.url, TOKEN, timeout=0.2, sleep=lambda _: None)
    release = threading.Event()
    server.mishaps.append(Mishap(200, b"{}", wait=release))
    with pytest.raises(Unreachable, match=r"did not answer in time for saving dashboard.*may have been carried out"):
        apply(grafana, planned)
    release.set()


def test_an_interrupt_is_recorded_and_the_next_apply_goes_on(server: FakeGrafana) -> None:
    grafana = connect(server)
    wish = Wish([BOARD | {"uid": f"b{number}"} for number in range(3)])

    def interrupt(_: Change) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply(grafana, plan(grafana, wish), interrupt)
    rest = plan(grafana, wish)
    assert rest.notes == ("the last apply did not finish; it may have changed dashboard:b1, dashboard:b2",)
    assert apply(grafana, rest) == 2
    assert not plan(grafana, wish).differs


def test_half_an_answer_is_named(server: FakeGrafana) -> None:
    grafana = connect(server)
    planned = plan(grafana, Wish([BOARD]))
    server.mishaps.append(Mishap(200, b'{"id": 1, "ui', break_off=True))
    with pytest.raises(Unreachable, match=r"broke off its answer to saving dashboard.*may have been carried out"):
        apply(grafana, planned)


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{}", b'{"dashboard": 3}', b"<html>hello</html>"])
def test_an_answer_that_is_not_grafanas_names_the_call(server: FakeGrafana, body: bytes) -> None:
    server.mishaps.append(Mishap(200, body))
    with pytest.raises(ServerFailure, match=r"dashboard 'heliograph-state'.*check --url"):
        plan(connect(server), Wish([BOARD]))


def test_an_empty_answer_after_a_write_is_success(server: FakeGrafana) -> None:
    grafana = connect(server)
    changes = plan(grafana, Wish([BOARD]))
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
    changes = plan(grafana, Wish([BOARD]))
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
    changes = plan(grafana, Wish([BOARD]))
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
    assert apply(grafana, plan(grafana, WISH, force=True)) == 2
    apply(grafana, plan(grafana, Wish([], "Watch"), prune=True, force=True))
    assert {request.method for request in server.requests} == {"GET", "POST", "PUT", "DELETE"}
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

    there = ["--url", server.url, "--token", TOKEN, "--only", "boards"]
    assert run(["plan", *there, "--check"], command) == 3
    assert "+ dashboard 'Heliograph fleet' (uid heliograph-fleet): create" in capsys.readouterr().out
    assert run(["apply", *there], command) == 0
    assert f"{len(boards()) + 1} changed" in capsys.readouterr().out
    assert run(["plan", *there, "--check"], command) == 0
    assert "nothing to change" in capsys.readouterr().out


def test_diff_exits_with_1_when_something_differs(server: FakeGrafana, capsys: pytest.CaptureFixture[str]) -> None:
    from heliograph.dashboards.grafana.commands import command

    there = ["--url", server.url, "--token", TOKEN, "--only", "boards"]
    assert run(["diff", *there], command) == 1
    assert run(["apply", *there], command) == 0
    capsys.readouterr()
    assert run(["diff", *there], command) == 0
    assert capsys.readouterr().out == "nothing differs\n"
    server.dashboards["heliograph-fleet"][0]["panels"][0]["title"] = "Mine"
    assert run(["diff", *there, "--json"], command) == 1
    (change,) = [one for one in json.loads(capsys.readouterr().out)["changes"] if one["differences"]]
    assert change["differences"] == [
        {
            "kind": "edit",
            "path": "panel 'Nodes down' title",
            "applied": "Nodes down",
            "stored": "Mine",
            "wanted": "Nodes down",
        }
    ]
    assert run(["plan", *there, "--check"], command) == 0
    assert "edited on the server; kept" in capsys.readouterr().out


def test_apply_exits_with_3_on_a_conflict(server: FakeGrafana, capsys: pytest.CaptureFixture[str]) -> None:
    from heliograph.dashboards.grafana.commands import command

    there = ["--url", server.url, "--token", TOKEN, "--only", "boards"]
    assert run(["apply", *there], command) == 0
    del server.dashboards["heliograph-state"]
    server.dashboards["heliograph-fleet"][0]["title"] = "Mine"
    before = len(server.writes)
    assert run(["apply", *there], command) == 3
    assert "nothing was written; --force replaces the edits" in capsys.readouterr().err
    assert len(server.writes) == before
    assert run(["apply", *there, "--force"], command) == 0
    assert server.dashboards["heliograph-fleet"][0]["title"] == "Heliograph fleet"


def test_apply_plans_again_when_somebody_saved_meanwhile(
    server: FakeGrafana, capsys: pytest.CaptureFixture[str]
) -> None:
    from heliograph.dashboards.grafana.commands import command

    there = ["--url", server.url, "--token", TOKEN, "--only", "boards"]
    # reads of the record, the folder by uid, all folders and the boards, and the new folder; then the record
    server.mishaps.extend([Mishap(0)] * (len(boards()) + 4))
    server.mishaps.append(Mishap(412, b'{"message":"changed"}'))
    assert run(["apply", *there, "--json"], command) == 0
    shown = capsys.readouterr()
    assert "planning again" in shown.err
    assert "[1] folder 'Heliograph' created" in shown.err
    assert json.loads(shown.out)["done"] == len(boards()) + 1


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
