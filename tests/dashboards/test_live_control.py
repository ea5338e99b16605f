"""Commands from the live page: the control token, the checks, and the record of each command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from heliograph.dashboards.live.app import create, page_at
from heliograph.dashboards.live.control import COMMANDS, Control, key_of
from heliograph.dashboards.live.pages import command
from heliograph.dashboards.live.store import Store
from heliograph.dashboards.live.uploads import Uploads
from heliograph.engine import Instance
from heliograph.monitor.control import Answer, NoAnswer
from heliograph.monitor.model import Event, Health
from heliograph.monitor.sampler import Sampler
from tests.dashboards.browsing import start
from tests.dashboards.test_live_lab import call
from tests.dashboards.test_live_page import text
from tests.dashboards.views import Fleet
from tests.ports import free_port

TOKEN = b"fedcba9876543210-control"
RECEIVER = "127.0.0.1:41003"


@dataclass
class Gate:
    """A control gate over the sample fleet; its engines answer as the test says."""

    fleet: Fleet
    sent: list[tuple[Path, str]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    answer: Answer | Exception = field(default_factory=lambda: Answer(0, "done"))

    def __post_init__(self) -> None:
        self.control = Control(
            TOKEN,
            lambda: self.fleet.store.found,
            self.record,
            clock=lambda: self.fleet.now_ns,
            say=self.said.append,
            send=self.send,
        )
        self.feed = next(key_of(item) for item in self.control.running() if item.name == "feed")

    def record(self, event: Event) -> None:
        self.events.append(event)
        self.fleet.store.record(event)

    def send(self, path: Path, text: str) -> Answer:
        self.sent.append((path, text))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def order(self, **fields: Any) -> Any:
        given = {"token": TOKEN.decode(), "who": "Ada", "instance": self.feed, **fields}
        return self.control.carry_out(given, "10.1.2.3")


@pytest.fixture
def gate(fleet: Fleet) -> Iterator[Gate]:
    fleet.at(0)
    fleet.at(1)
    return Gate(fleet)


TEXTS = {
    "suspend": ({"receiver": RECEIVER, "for": "5m"}, f"suspend receiver={RECEIVER} for=300 why=by%20Ada"),
    "resume": ({"receiver": RECEIVER, "why": "backup done"}, f"resume receiver={RECEIVER} why=Ada:%20backup%20done"),
    "expel": ({"receiver": RECEIVER}, f"expel receiver={RECEIVER} why=by%20Ada"),
    "readmit": ({"receiver": RECEIVER}, f"readmit receiver={RECEIVER} why=by%20Ada"),
    "set-rate": ({"rate": "10M", "receiver": "unused"}, "set-rate rate=10000000"),
    "cutoff": ({"for": "2s"}, "cutoff for=2 why=by%20Ada"),
    "freeze": ({}, "freeze why=by%20Ada"),
}


@pytest.mark.parametrize("verb", TEXTS)
def test_a_command_is_sent_and_is_an_event_with_sender_and_text(verb: str, gate: Gate) -> None:
    fields, wanted = TEXTS[verb]
    outcome = gate.order(command=verb, **fields)
    assert (outcome.is_done, outcome.text) == (True, "feed: done")
    ((path, sent),) = gate.sent
    assert (path.name.startswith("feed."), sent) == (True, wanted)
    (event,) = gate.events
    assert (event.instance, event.name, event.severity) == ("feed", "command", "info")
    assert event.text == f"Ada at 10.1.2.3, on the live page: {wanted}: done"
    assert gate.said == [f"feed: {event.text}"]


def test_every_offered_command_is_tested() -> None:
    assert TEXTS.keys() == COMMANDS.keys()


@pytest.mark.parametrize("token", ["", "wrong", TOKEN.decode()[:-1], TOKEN.decode() + "x", "\ud800", None, 7, ["x"]])
def test_without_the_control_token_nothing_is_sent(token: Any, gate: Gate) -> None:
    outcome = gate.order(command="cutoff", token=token, **{"for": "2s"})
    assert (outcome.is_done, outcome.text) == (False, "This is not the control token. Nothing was sent.")
    assert (gate.sent, gate.events) == ([], [])
    assert gate.said == ["a command from 10.1.2.3 was refused: wrong control token"]


WRONG = {
    "no name": ({"who": " "}, "your name is needed"),
    "a long name": ({"who": "x" * 41}, "your name is needed"),
    "an invisible name": ({"who": "Ada\u202e"}, "your name is needed"),
    "no command": ({"command": ""}, "choose a command"),
    "another command": ({"command": "format"}, "choose a command"),
    "two commands": ({"command": "cutoff for=9"}, "choose a command"),
    "no instance": ({"instance": None}, "choose an instance that runs"),
    "another instance": ({"instance": "nobody (1)"}, "choose an instance that runs"),
    "no time": ({"for": ""}, "cutoff needs the field for"),
    "no time after all": ({"for": "soon"}, "is not a time from 1ms to 30d"),
    "an endless time": ({"for": "31d"}, "is not a time from 1ms to 30d"),
    "no rate": ({"command": "set-rate", "rate": "fast"}, "is not a rate in bytes per second"),
    "no receiver": ({"command": "expel"}, "expel needs the field receiver"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_impossible_command_is_refused_with_the_reason(case: str, gate: Gate) -> None:
    fields, reason = WRONG[case]
    outcome = gate.order(**({"command": "cutoff", "for": "2s"} | fields))
    assert not outcome.is_done
    assert outcome.text.startswith("Nothing was sent: ")
    assert reason in outcome.text
    assert gate.sent == []


def test_a_path_from_a_browser_is_never_opened(gate: Gate) -> None:
    path = next(item.path for item in gate.control.running())
    for name in (path, "feed", "*", "../feed"):
        assert not gate.order(command="freeze", instance=name).is_done
    assert gate.sent == []


def test_a_value_cannot_add_a_field_to_the_command(gate: Gate) -> None:
    gate.order(command="expel", receiver="x for=1 why=y%20\n", why="a b")
    assert gate.sent[0][1] == "expel receiver=x%20for=1%20why=y%2520 why=Ada:%20a%20b"


def test_an_instance_that_does_not_run_is_not_offered(gate: Gate) -> None:
    closed = [
        item for item in gate.fleet.store.found if item.health in (Health.CLOSED, Health.DEAD) or item.name == "feed"
    ]
    control = Control(TOKEN, lambda: closed, gate.record)
    assert [item.name for item in control.running()] == ["feed"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [(Answer(22, "no such receiver"), "no such receiver"), (NoAnswer("feed is dead"), "feed is dead")],
    ids=["refused", "no answer"],
)
def test_a_command_that_fails_is_an_event_too(answer: Any, said: str, gate: Gate) -> None:
    gate.answer = answer
    outcome = gate.order(command="expel", receiver=RECEIVER)
    assert (outcome.is_done, outcome.text) == (False, f"feed refused: {said}")
    (event,) = gate.events
    assert (event.name, event.severity) == ("command_refused", "warning")
    assert event.text.endswith(said)


def test_the_event_is_shown_with_the_next_sample(gate: Gate) -> None:
    gate.order(command="freeze", why="orders were late")
    view = gate.fleet.at(2)
    assert view.events[0].text.startswith("Ada at 10.1.2.3, on the live page: freeze ")
    assert "Ada at 10.1.2.3" in text(command.parts(view, gate.control)["act-events"])


def test_a_real_engine_obeys_and_names_the_sender_in_its_own_event(tmp_path: Path) -> None:
    with Instance(name="feed", segment_bytes=4 << 20) as instance:
        transmitter = instance.transmitter(f"rmm://239.192.7.7:{free_port()}?interface=127.0.0.1", "T")
        assert instance.segment is not None
        with Sampler(instance.segment.parent) as sampler:
            store = Store(sampler.sample)
            store.take()
            control = Control(TOKEN, lambda: store.found, store.record, say=lambda line: None)
            (feed,) = [item for item in control.running() if Path(item.path) == instance.segment]
            order = {"token": TOKEN.decode(), "who": "Ada", "instance": key_of(feed)}
            done = control.carry_out(order | {"command": "set-rate", "rate": "1M"}, "::1")
            assert done.is_done, done.text
            done = control.carry_out(order | {"command": "cutoff", "for": "1s", "why": "a storm"}, "::1")
            assert done.is_done, done.text
            events = store.take().events
            transmitter.close()
    texts = [event.text for event in events if event.name == "command" and event.instance == "feed"]
    assert any("Ada at ::1, on the live page: set-rate rate=1000000" in found for found in texts)
    assert any(found.startswith("cutoff for=1 why=Ada:%20a%20storm") for found in texts)


# The page


def page(fleet: Fleet, control: Control | None, search: str = "") -> str:
    return text(page_at("/control", search, fleet.store, Uploads(), lambda: fleet.now_ns, control))


def test_without_a_control_token_the_page_says_how_to_allow_commands(gate: Gate) -> None:
    shown = page(gate.fleet, None)
    assert "Nothing can be changed on these pages." in shown
    assert "--control-token-file" in shown
    assert "Send" not in shown


def test_the_page_offers_the_commands_and_an_address_prepares_one(gate: Gate) -> None:
    assert "suspend: stop repairs for a receiver" in page(gate.fleet, gate.control)
    values = {"instance": [gate.feed], "command": ["suspend"], "receiver": [RECEIVER]}
    found, said = command.order(values, gate.fleet.store.view, gate.control)
    assert (found, said) == (command.Order(gate.feed, "suspend", RECEIVER), [])
    assert gate.sent == []
    found, said = command.order({name: ["<x>"] for name in values}, gate.fleet.store.view, gate.control)
    assert found == command.Order()
    assert said == [f'{name} "<x>" is not known.' for name in ("Instance", "Command", "Receiver")]
    assert 'Command "format" is not known.' in page(gate.fleet, gate.control, "?command=format")


def test_a_command_over_http_needs_the_token_and_a_click(gate: Gate) -> None:
    client = create(gate.fleet.store, lambda: gate.fleet.now_ns, gate.control).server.test_client()
    values = {"act-instance.value": gate.feed, "act-command.value": "freeze", "act-who.value": "Ada"}
    for token, clicks, sent in (("wrong", 1, 0), (TOKEN.decode(), 0, 0), (TOKEN.decode(), 1, 1)):
        state = values | {"act-token.value": token}
        call(gate.fleet, client, "..act-said", {"act-send.n_clicks": clicks}, state, "act-send.n_clicks")
        assert len(gate.sent) == sent
    (event,) = gate.events
    assert event.text.startswith("Ada at 127.0.0.1, on the live page: freeze why=by%20Ada")


def test_a_read_only_server_has_no_command_to_call(gate: Gate) -> None:
    client = create(gate.fleet.store).server.test_client()
    outputs = [item["output"] for item in client.get("/_dash-dependencies").get_json()]
    assert not any("act-said" in output for output in outputs)


@pytest.mark.parametrize("case", ["same token", "collect", "open file"])
def test_options_that_would_open_control_are_refused(case: str, tmp_path: Path) -> None:
    file = tmp_path / "control"
    file.write_bytes(TOKEN)
    file.chmod(0o644 if case == "open file" else 0o600)
    more = {"same token": ["--token-file", str(file)], "collect": ["--collect", "rum://127.0.0.1:1"], "open file": []}
    process = start("--control-token-file", str(file), *more[case])
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    wanted = {"same token": "hold the same token", "collect": "leave it out with", "open file": "open to all users"}
    assert wanted[case] in errors
