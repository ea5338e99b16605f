"""The page of the levels of detail: what is raised, until when, at which cost; setting and ending one, by token."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from heliograph.dashboards.live.app import create, page_at
from heliograph.dashboards.live.control import EVERY, LEVELS, Control, key_of
from heliograph.dashboards.live.detailing import Details
from heliograph.dashboards.live.pages import detail
from heliograph.dashboards.live.store import Store
from heliograph.dashboards.live.uploads import Uploads
from heliograph.engine import Instance
from heliograph.monitor.control import Answer, NoAnswer
from heliograph.monitor.model import Health, InstanceState, ObjectState, Snapshot
from heliograph.monitor.sampler import Sampler
from tests.dashboards.test_live_control import TOKEN, Gate, gate
from tests.dashboards.test_live_lab import call
from tests.dashboards.test_live_page import text
from tests.dashboards.views import SECOND
from tests.ports import free_port

__all__ = ["gate"]

HOUR = 3600 * SECOND


def page(gate: Gate, control: bool = True, search: str = "") -> str:
    shown = page_at(
        "/detail", search, gate.fleet.store, Uploads(), lambda: gate.fleet.now_ns, gate.control if control else None
    )
    return text(shown)


def instance(time_ns: int, *rules: tuple[str, int, int], level: int = 2, name: str = "feed", **cost: int) -> Snapshot:
    """A fleet of one instance with the given rules: selector, level, end."""
    own = ObjectState("instance", {"instance": name}, {}, {"detail_level": level, **cost})
    details = [
        ObjectState("detail", {"instance": name, "selector": rule}, {}, {"level": at, "until": until, "objects": 4})
        for rule, at, until in rules
    ]
    found = InstanceState(name, Health.LIVE, "", 7, 1, 0, time_ns, "/feed.7.helio", (own, *details))
    return Snapshot(time_ns, (found,))


def test_the_page_names_what_is_raised_and_when_it_ends(gate: Gate) -> None:
    shown = page(gate)
    assert "Detail is raised: level 3 of topic=PRICES.* at feed, which ends in 30 s" in shown
    assert "4 measured in more detail" in shown


def test_a_raised_level_is_followed_with_its_cost_until_it_ends() -> None:
    details = Details()
    assert details.update(instance(0, cycle_overruns=5, histograms_refused=1)) == ()
    end = 10 * SECOND + HOUR
    rule = ("topic=T", 3, end)
    (first,) = details.update(instance(10 * SECOND, rule, cycle_overruns=5, histograms_refused=1))
    assert (first.since_ns, first.is_whole, first.overruns, first.refused) == (10 * SECOND, True, 0, 0)
    assert not first.is_left_on
    (second,) = details.update(instance(20 * SECOND, rule, cycle_overruns=8, histograms_refused=3, cycle_time_max=7))
    assert (second.since_ns, second.overruns, second.refused, second.cycle_max_ns) == (10 * SECOND, 3, 2, 7)
    assert details.update(instance(30 * SECOND)) == ()
    (again,) = details.update(instance(40 * SECOND, ("topic=T", 3, end), cycle_overruns=9))
    assert (again.since_ns, again.overruns) == (40 * SECOND, 0)


def test_a_level_that_stays_was_left_on_and_one_seen_late_began_earlier() -> None:
    (late,) = Details().update(instance(5 * SECOND, ("topic=T", 3, 9 * HOUR)))
    assert (late.is_whole, late.is_left_on, late.overruns) == (False, True, None)
    (whole,) = Details().update(instance(0, ("instance", 3, 0), level=3))
    assert (whole.level.until_ns, whole.is_left_on) == (None, True)
    (began,) = Details().update(instance(0, level=3))
    assert (began.level.objects, began.is_left_on) == (None, True)


def test_the_highest_level_is_first_then_the_longest() -> None:
    rules = [("topic=A", 2, HOUR), ("topic=B", 3, SECOND), ("topic=C", 3, HOUR), ("topic=D", 0, HOUR)]
    assert [item.level.selector[-1] for item in Details().update(instance(0, *rules))] == ["C", "B", "A", "D"]


def test_without_a_control_token_the_page_shows_the_levels_and_no_form(gate: Gate) -> None:
    shown = page(gate, control=False)
    assert "topic=PRICES.*" in shown
    assert "--control-token-file" in shown
    assert "End now" not in shown.partition("Read-only")[2]
    client = create(gate.fleet.store).server.test_client()
    outputs = [item["output"] for item in client.get("/_dash-dependencies").get_json()]
    assert not any("dt-said" in output for output in outputs)


ORDERS = {
    "level": (
        {"of": "topic", "pattern": "PRICES.*", "level": "3", "for": "5m"},
        "level level=3 for=300 topic=PRICES.*",
    ),
    "end-level": ({"of": "receiver", "pattern": "slow-*"}, "level off=yes receiver=slow-*"),
}


@pytest.mark.parametrize("verb", LEVELS)
def test_a_level_is_set_and_ended_by_an_event_with_its_sender(verb: str, gate: Gate) -> None:
    fields, wanted = ORDERS[verb]
    outcome = gate.order(command=verb, **fields)
    assert (outcome.is_done, outcome.text) == (True, "feed: done")
    assert [sent for _, sent in gate.sent] == [wanted]
    assert [event.text for event in gate.events] == [f"Ada at 10.1.2.3, on the live page: {wanted}: done"]
    gate.fleet.at(2)
    assert f"Ada at 10.1.2.3, on the live page: {wanted}" in page(gate)


WRONG = {
    "no end": ({"for": ""}, "level needs the field for"),
    "an end too late": ({"for": "31d"}, "is not a time from 1ms to 30d"),
    "no level": ({"level": ""}, "level needs the field level"),
    "another level": ({"level": "4"}, "choose a level from 0 to 3"),
    "off as a level": ({"level": "off"}, "choose a level from 0 to 3"),
    "another kind": ({"of": "host"}, "choose a topic, a receiver or a stream"),
    "no pattern": ({"pattern": " "}, "the pattern of the topic is needed"),
    "a pattern of nothing": ({"of": ""}, "choose what the pattern is of"),
    "no name": ({"who": ""}, "your name is needed"),
    "no instance": ({"instance": "nobody (1)"}, "choose an instance that runs"),
    "too long": ({"pattern": "ü" * 200}, "the command is too long"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_impossible_level_is_refused_with_the_reason(case: str, gate: Gate) -> None:
    fields, reason = WRONG[case]
    outcome = gate.order(**({"command": "level", "of": "topic", "pattern": "T", "level": "3", "for": "5s"} | fields))
    assert (outcome.is_done, gate.sent) == (False, [])
    assert reason in outcome.text


def test_every_instance_gets_the_level_and_each_refusal_is_named(gate: Gate) -> None:
    running = gate.control.running()
    answers = iter([NoAnswer("it is asleep"), *[Answer(0, "done")] * (len(running) - 1)])

    def send(path: Path, command: str) -> Answer:
        gate.sent.append((path, command))
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    control = Control(TOKEN, lambda: running, gate.record, say=gate.said.append, send=send)
    given = {"token": TOKEN.decode(), "who": "Ada", "instance": EVERY, "command": "level", "level": "2", "for": "1m"}
    outcome = control.carry_out(given, "::1")
    assert not outcome.is_done
    assert outcome.text.startswith(f"{len(running) - 1} of {len(running)} instances: done; {running[0].name} refused")
    assert {Path(item.path) for item in running} == {path for path, _ in gate.sent}
    assert len(gate.events) == len(running)
    refused = control.carry_out(given | {"command": "cutoff"}, "::1")
    assert "choose an instance that runs" in refused.text, "only levels are for every instance"


def test_an_address_prepares_a_command_and_sends_none(gate: Gate) -> None:
    view = gate.fleet.store.view
    values = {"instance": [gate.feed], "of": ["topic"], "pattern": ["PRICES.*"], "level": ["3"]}
    assert detail.choice(values, view) == (detail.Choice(gate.feed, "topic", "PRICES.*", "3"), [])
    found, said = detail.choice({"instance": ["<x>"], "of": ["x"], "pattern": ["p" * 201], "level": ["9"]}, view)
    assert found == detail.Choice()
    assert [note.partition(" ")[0] for note in said] == ["Instance", "Of", "Level", "Pattern"]
    assert 'Level "9" is not known.' in page(gate, search="?level=9")
    assert gate.sent == []


def test_a_level_over_http_needs_the_token_and_a_click(gate: Gate) -> None:
    client = create(gate.fleet.store, lambda: gate.fleet.now_ns, gate.control).server.test_client()
    values = {"dt-instance.value": gate.feed, "dt-level.value": "3", "dt-for.value": "5s", "dt-who.value": "Ada"}
    for button, token, clicks, sent in (
        ("dt-send", "wrong", 1, 0),
        ("dt-send", TOKEN.decode(), 0, 0),
        ("dt-send", TOKEN.decode(), 1, 1),
        ("dt-end", TOKEN.decode(), 1, 2),
    ):
        state = values | {"dt-token.value": token}
        call(gate.fleet, client, "..dt-said", {f"{button}.n_clicks": clicks}, state, f"{button}.n_clicks")
        assert len(gate.sent) == sent
    assert [text for _, text in gate.sent] == ["level level=3 for=5", "level off=yes"]


def test_hostile_patterns_are_text(gate: Gate) -> None:
    view = gate.fleet.store.view
    snapshot = instance(view.time_ns, ("topic=<script>\u202e", 3, view.time_ns + SECOND), name="<b>")
    gate.fleet.store._sample = lambda: snapshot
    gate.fleet.store.take()
    shown = page(gate)
    assert "topic=<script>" in shown
    assert "\u202e" not in shown


def test_a_real_engine_raises_and_ends_a_level(tmp_path: Path) -> None:
    with Instance(name="feed", segment_bytes=4 << 20) as engine:
        transmitter = engine.transmitter(f"rmm://239.192.7.7:{free_port()}?interface=127.0.0.1", "PRICES.A")
        assert engine.segment is not None
        with Sampler(engine.segment.parent) as sampler:
            store = Store(sampler.sample)
            store.take()
            control = Control(TOKEN, lambda: store.found, store.record, say=lambda line: None)
            (feed,) = [item for item in control.running() if Path(item.path) == engine.segment]
            order: dict[str, Any] = {"token": TOKEN.decode(), "who": "Ada", "instance": key_of(feed)}
            order |= {"of": "topic", "pattern": "PRICES.*"}
            done = control.carry_out(order | {"command": "level", "level": "3", "for": "10m"}, "::1")
            assert done.is_done, done.text
            (raised,) = of_feed(store, feed)
            assert (raised.level.selector, raised.level.level, raised.level.objects) == ("topic=PRICES.*", 3, 1)
            assert raised.level.until_ns is not None
            assert 590 < (raised.level.until_ns - time.time_ns()) / 1e9 < 601
            done = control.carry_out(order | {"command": "end-level"}, "::1")
            assert done.is_done, done.text
            assert of_feed(store, feed) == []
            transmitter.close()


def of_feed(store: Store, feed: InstanceState) -> list[Any]:
    return [item for item in store.take().raised if item.pid == feed.pid and item.level.instance == feed.name]
