"""The page of the alerts: states in words, values against thresholds, runbooks, silences, slow and wrong answers."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heliograph.dashboards.live import alerting as alerting_module
from heliograph.dashboards.live.alerting import Alerting, Board
from heliograph.dashboards.live.app import create, page_at
from heliograph.dashboards.live.figures import alerts as charts
from heliograph.dashboards.live.figures.alerts import MOST_BARS, bars
from heliograph.dashboards.live.firing import rule_rows
from heliograph.dashboards.live.pages import alerts
from heliograph.dashboards.live.pages import fleet as fleet_page
from heliograph.dashboards.live.pages.alerts import Choice, choice, parts, runbook
from heliograph.dashboards.live.silences import Alertmanager, Matcher, Silence, Silences
from heliograph.dashboards.live.store import View
from heliograph.dashboards.live.uploads import Uploads
from heliograph.dashboards.words import ALERT
from heliograph.monitor.alerts import Held, Judgement, Reading, Rule, Span, State, load_evaluator
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Health, InstanceState, ObjectState, Snapshot
from tests.dashboards.alertmanagers import SILENCE, answer, manager
from tests.dashboards.browsing import addresses, seen, served, until
from tests.dashboards.test_live_page import text
from tests.dashboards.views import NOW_NS, SECOND, Fleet, checked, message
from tests.fleet import STREAM

timeline = checked(charts.timeline)
EVIL = '<img src=x>"\N{RIGHT-TO-LEFT OVERRIDE}/?&#evil'
RUNBOOK = """# A (warning)

**Bold**, [other](HeliographB.md), [threats](../../engine/docs/threats.md) <img src=x onerror=alert(1)>
"""


def rule(name: str, **changes: Any) -> Rule:
    given = {"name": name, "group": "data", "severity": "warning", "holds": 60.0, "keep": 300.0, "condition": "a > 5"}
    given |= {"comparison": ">", "limit": 5.0, "unit": "", "runbook_url": "https://git.example/runbooks/A.md"}
    return Rule(**given | changes)


def ago(begin: float, end: float | None = None, is_whole: bool = True) -> Span:
    """A time that began and ended a number of seconds ago."""
    return Span(NOW_NS - round(begin * SECOND), None if end is None else NOW_NS - round(end * SECOND), is_whole)


RULES = (
    rule("HeliographA", severity="critical", runbook=RUNBOOK),
    rule("HeliographB", unit="%", limit=0.8),
    rule("HeliographC", unit="messages/s", comparison="==", limit=0.0, holds=25.0),
    rule("HeliographD", limit=0.0, holds=0.0),
    rule("HeliographE"),
    rule("HeliographF"),
    rule("HeliographG", hindrance="it looks back 1 h, and this page keeps 15 min"),
    rule("HeliographH"),
    rule("HeliographI", holds=3600.0),
)
JUDGED = Judgement(
    time_ns=NOW_NS,
    oldest_ns=NOW_NS - 900 * SECOND,
    held=[
        Held("HeliographA", {"node": "slow", "topic": "PRICES.A", "stream": STREAM}, [ago(200)], [ago(140)]),
        Held("HeliographA", {"node": EVIL, "stream": "gone.1"}, [ago(400, 30)], [ago(340, None)]),
        Held("HeliographC", {"node": "slow"}, [ago(90, 80)]),
        Held("HeliographB", {"node": "feed"}, [ago(40)]),
        Held("HeliographI", {"node": "feed"}, [ago(900, None, False)]),
    ],
    readings={
        "HeliographA": [Reading({"node": "slow", "topic": "PRICES.A", "stream": STREAM}, 12.0)],
        "HeliographB": [Reading({"node": "feed"}, 0.9), Reading({"node": "alpha"}, 0.1)],
        "HeliographC": [Reading({"node": "slow"}, 568.2), Reading({"node": "alpha"}, 4000.0)],
        "HeliographD": [Reading({"node": "alpha"}, 0.0)],
        "HeliographH": [Reading({"node": "alpha"}, 7.0), Reading({"node": "bravo"}, float("inf"))],
        "HeliographI": [Reading({"node": "feed"}, 6.0)],
    },
    seen={"HeliographF"},
)
BOARD = Board(RULES, 900.0, JUDGED)


@pytest.fixture
def running(fleet: Fleet) -> Fleet:
    fleet.at(0)
    fleet.at(1)
    return fleet


def shown(fleet: Fleet, board: Board | None = BOARD) -> View:
    return replace(fleet.store.view, time_ns=NOW_NS, alerts=board)


def is_markdown(component: Any) -> bool:
    return type(component).__name__ == "Markdown"


def pressed(driver: Any, selector: str) -> bool:
    """Whether a link was there to be clicked; a sample may replace it at any moment."""
    script = "const it = document.querySelector(arguments[0]); it?.click(); return it !== null"
    return bool(driver.execute_script(script, selector))


# Words


def test_every_state_has_a_word_and_every_reason_is_true() -> None:
    assert set(ALERT) == set(State)
    assert len({word.shape for word in ALERT.values()}) == len({word.text for word in ALERT.values()}) == len(State)
    found = {row.rule.name[-1]: (row.state.value, row.reason) for row in rule_rows(BOARD)}
    assert found == {
        "A": ("firing", "fires for 6 min; 2 objects; its condition ended 30 s ago, and it stays for 5 min"),
        "B": ("pending", "its condition holds for 40 s, and it fires after 60 s"),
        "C": (
            "quiet",
            "568 messages/s, 568 above the threshold; its condition held for 10 s until 80 s ago, and it needs 25 s",
        ),
        "D": ("quiet", "0, not above the threshold"),
        "E": ("empty", "no object of its kind is in reach"),
        "F": (
            "empty",
            "no object has a value: too few samples, too few messages, or below the least value of the condition",
        ),
        "G": ("unknown", "it looks back 1 h, and this page keeps 15 min"),
        "H": ("quiet", "7 passes the threshold, but another part of the condition does not hold"),
        "I": (
            "pending",
            "its condition holds for 15 min or longer, and it fires after 60 min; this page keeps 15 min and cannot "
            "see it fire",
        ),
    }
    assert [row.rule.name[-1] for row in rule_rows(BOARD)] == list("ABICDHEFG")


def test_a_rule_with_an_error_and_one_that_was_not_judged_say_so() -> None:
    wrong = replace(JUDGED, errors={"HeliographA": "many-to-many matching"})
    found = {row.rule.name[-1]: row for row in rule_rows(replace(BOARD, judgement=wrong))}
    assert (found["A"].state, found["A"].reason) == (State.UNKNOWN, "many-to-many matching")
    assert {row.reason for row in rule_rows(Board(RULES[:1]))} == {"the rules have not been judged yet"}


# Page


def test_the_page_says_what_fires_why_the_rest_does_not_and_what_to_do(running: Fleet) -> None:
    view = shown(running)
    found = parts(view, Choice())
    assert text(found["al-verdict"]).startswith("A fires at ")
    assert "; 2 pending" in text(found["al-verdict"])
    assert [text(tile) for tile in found["al-tiles"]] == [
        "Firing 1 alerts",
        "Pending 2 alerts",
        "Quiet 3 alerts",
        "No value 2 alerts",
        "Not computed 1 alerts",
        "Silences – no Alertmanager",
    ]
    assert "HeliographH warning alpha 7 > 5" in text(found["al-rules"])
    whole = text(found["al-one"])
    assert whole.startswith("HeliographA critical, fires after 60 s, stays for 5 min after its condition")
    assert "PRICES.A" in whole
    links = re.findall(r"href='?([^',)]+)", str(found["al-one"]))
    assert {"/receiver?instance=slow", f"/topic?topic=PRICES.A&stream={STREAM}", f"/congestion?stream={STREAM}"} <= {
        *links
    }
    assert not any("gone.1" in link for link in links), "a stream that is not in reach has no page"
    other = text(parts(view, Choice("HeliographB"))["al-one"])
    assert "This alert has no runbook." in other
    assert other.index("feed") < other.index("alpha")
    assert "90 %" in other
    only = text(parts(view, Choice(show="empty"))["al-rules"])
    assert "HeliographE" in only
    assert "HeliographA" not in only


def test_runbooks_are_markdown_without_html_and_their_links_stay(running: Fleet) -> None:
    (page,) = [item for item in parts(shown(running), Choice())["al-one"] if is_markdown(item)]
    assert page.dangerously_allow_html is False
    markdown = "\n".join(page.children)
    assert "[other](/alerts?alert=HeliographB)" in markdown
    assert "[threats](https://git.example/engine/docs/threats.md)" in markdown
    rules = load_evaluator().rules
    names = {name for one in rules for name in re.findall(r"\(/alerts\?alert=(\w+)\)", "\n".join(runbook(one)))}
    assert len(names) > 15
    assert names <= {one.name for one in rules}


def test_hostile_names_reach_the_page_as_text_only(running: Fleet) -> None:
    running.store._view = shown(running)
    page = page_at("/alerts", f"?alert={'%3Cb%3E'}", running.store, Uploads(), lambda: NOW_NS)
    content = text(page)
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in content
    assert '"<b>" is not in the rules' in content
    figure = str(parts(shown(running), Choice())["al-times"].to_plotly_json())
    assert "<img" not in figure
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in figure


def test_the_selection_is_in_the_address_and_checked(running: Fleet) -> None:
    view = shown(running)
    assert choice({"alert": ["HeliographB"], "show": ["quiet"]}, view) == (Choice("HeliographB", "quiet"), [])
    chosen, said = choice({"alert": ["NOPE"], "show": ["loud"]}, view)
    assert chosen == Choice()
    assert said == [
        'Alert "NOPE" is not in the rules; the page shows the worst alert.',
        'Show "loud" is not a state; the table has all alerts.',
    ]


def test_a_server_without_rules_or_without_a_judgement_says_so(running: Fleet) -> None:
    for board, wanted in (
        (None, "This server judges no alerts."),
        (Board(RULES), "The alerts have not been judged yet"),
        (Board(RULES, trouble="promtool is not installed", since_ns=NOW_NS), "nothing is judged: promtool is not"),
    ):
        assert wanted in text(parts(shown(running, board), Choice())["al-verdict"])
    kept = replace(BOARD, trouble="promtool did not end within 20 s", since_ns=NOW_NS - 60 * SECOND)
    found = text(parts(replace(shown(running, kept), time_ns=NOW_NS + 60 * SECOND), Choice())["al-verdict"])
    assert "A fires at" in found
    assert "nothing is judged: promtool did not end" in found
    assert "that is 60 s ago" in found


def test_the_fleet_counts_the_firing_alerts_and_opens_their_page(running: Fleet) -> None:
    tiles = fleet_page.parts(shown(running), fleet_page.Choice())["tiles"]
    (one,) = [tile for tile in tiles if text(tile).startswith("Alerts")]
    assert text(one) == "Alerts 1 firing, 2 pending"
    assert "href='/alerts'" in str(one)
    none = [text(tile) for tile in fleet_page.parts(shown(running, None), fleet_page.Choice())["tiles"]]
    assert "Alerts – not judged" in none


def test_an_answer_has_the_whole_page_and_old_data_says_so(running: Fleet) -> None:
    client = create(running.store, lambda: running.now_ns).server.test_client()
    sent = message(client, "/alerts", alert="HeliographB")
    assert {f"{place}.{name}" for place, name in alerts.PLACES.items()} == set(sent["parts"])
    running.now_ns += 60 * SECOND
    sent = message(client, "/alerts", alert="HeliographB")
    assert "The data on this page is old" in str(sent["now"]["al-verdict.children"])


# Figure


def test_the_chart_has_a_line_for_each_object_and_a_bound() -> None:
    lines = bars([(one.rule, one) for one in JUDGED.held])
    assert [bar.name[-1] for bar in lines] == ["A", "A", "B", "I", "C"]
    drawn = timeline(JUDGED, lines)
    condition, fired = drawn.data
    assert (condition.name, fired.name) == ("condition held", "fired")
    assert [y for y in fired.y if y is not None] == [0, 0, 1, 1]
    assert drawn.to_json() == timeline(JUDGED, lines).to_json()
    many = timeline(JUDGED, lines * 10)
    assert len(many.layout.yaxis.ticktext) == MOST_BARS
    assert [note.text for note in many.layout.annotations] == [f"{50 - MOST_BARS} more are in the table"]
    assert len(timeline(Judgement(), []).data) == 0


# Silences


def test_the_silences_are_read_and_judged(running: Fleet) -> None:
    planned = {**SILENCE, "status": {"state": "pending"}, "comment": EVIL}
    expired = {**SILENCE, "status": {"state": "expired"}}
    wrong = [{}, {**SILENCE, "matchers": []}, {**SILENCE, "endsAt": "soon"}, {**SILENCE, "createdBy": 5}, None]
    with manager(answer([planned, expired, *wrong, SILENCE])) as fake:
        found = Alertmanager(fake.url, clock=lambda: NOW_NS).read()
        assert fake.heard == [b"GET /api/v2/silences HTTP/1.1"]
    assert (found.trouble, found.time_ns, found.omitted) == ("", NOW_NS, 5)
    assert [(one.is_active, one.comment) for one in found.found] == [(True, "the switch is replaced"), (False, EVIL)]
    (first, *_) = found.found
    labels = {"alertname": "HeliographReceiverIsolated", "severity": "warning", "node": "feed"}
    assert first.covers(labels) is True
    assert first.covers({**labels, "node": "feeder"}) is False
    assert first.covers({"alertname": "HeliographReceiverIsolated"}) is None
    page = text(parts(shown(running, replace(BOARD, silences=found)), Choice())["al-silences"])
    assert 'alertname="HeliographReceiverIsolated", node=~"feed|other"' in page
    assert "5 of its silences are left out" in page


def test_a_silence_that_covers_a_firing_alert_is_beside_it(running: Fleet) -> None:
    def page(*matchers: Matcher) -> str:
        silence = Silence(matchers, NOW_NS, NOW_NS + 60 * SECOND, "ada", "", True)
        board = replace(BOARD, silences=Silences("http://m:9093", [silence], NOW_NS))
        found = parts(shown(running, board), Choice())
        return text(found["al-rules"]) + text(found["al-one"])

    name = Matcher("alertname", "HeliographA")
    assert "; silenced" in page(name)
    assert "1 of 2 silenced" in page(name, Matcher("node", "slow"))
    assert "perhaps silenced (2 of 2)" in page(name, Matcher("instance", "host:9464"))
    assert "silenced" not in page(Matcher("alertname", "HeliographB"))


@pytest.mark.parametrize(
    ("matcher", "value", "wanted"),
    [
        (Matcher("a", "b"), "b", True),
        (Matcher("a", "b", is_equal=False), "b", False),
        (Matcher("a", "b.*|c", is_regex=True), "bcd", True),
        (Matcher("a", "b", is_regex=True), "bcd", False),
        (Matcher("a", "b.+", is_regex=True, is_equal=False), "b", True),
        (Matcher("a", "(a+)+$", is_regex=True), "a" * 60 + "!", None),
        (Matcher("a", ".*" * 8 + "x", is_regex=True), "a" * 200, None),
        (Matcher("z", "b"), "b", None),
    ],
)
def test_a_pattern_is_judged_in_little_time_or_not_at_all(matcher: Matcher, value: str, wanted: bool | None) -> None:
    began = time.perf_counter()
    assert matcher.accepts({"a": value}) is wanted
    assert time.perf_counter() - began < 0.5


LONG = answer(b"[" + b" " * (1 << 20) + b"]")
WRONG = {
    "unauthorized": (
        answer({}, "401 Unauthorized"),
        "it answers 401 Unauthorized; heliograph live has no login for it",
    ),
    "broken": (answer({}, "500 Internal Server Error"), "it answers 500 Internal Server Error"),
    "elsewhere": (answer({}, "302 Found"), "it answers 302 Found"),
    "half": (answer(b'[{"id":', length=5000), "its answer ended in the middle"),
    "half-chunk": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n[",
        "its answer ended in the middle",
    ),
    "silent": (b"", "no connection: Remote end closed connection without response"),
    "garbage": (b"\xff\xfe\x00" * 40 + b"\r\n\r\n", "its answer is not one of HTTP: BadStatusLine"),
    "no-json": (answer(b"<html>"), "its answer is not JSON"),
    "deep": (answer(b"[" * 100_000), "its answer is not JSON"),
    "no-list": (answer({"silences": []}), "its answer is not a list of silences"),
    "large": (LONG, "its answer is larger than 1 MiB"),
}


def test_a_wrong_answer_is_stated_with_its_time_and_the_silences_stay(running: Fleet) -> None:
    clock = [NOW_NS]
    with manager(answer([SILENCE])) as fake:
        reader = Alertmanager(fake.url, seconds=3.0, clock=lambda: clock[0])
        good = reader.read()
        for number, (given, wanted) in enumerate(WRONG.values(), 1):
            clock[0] = NOW_NS + number * SECOND
            fake.answer = given
            found = reader.read()
            assert found.trouble == wanted
            assert (found.since_ns, found.time_ns) == (NOW_NS + SECOND, NOW_NS), "since the first failure"
            assert found.found == good.found
        page = parts(shown(running, replace(BOARD, silences=found)), Choice())
        assert f"{fake.url} since " in text(page["al-silences"])
        assert "The silences are not known" in text(page["al-verdict"])
        assert "not current" in text(page["al-tiles"])
        fake.answer = answer([])
        assert reader.read() == Silences(fake.url, [], clock[0])
    gone = reader.read()
    assert gone.trouble == "no connection: Connection refused"
    assert gone.since_ns == clock[0]


def test_a_slow_answer_ends_after_its_time() -> None:
    with manager(answer([SILENCE])) as fake:
        fake.drips = True
        began = time.monotonic()
        found = Alertmanager(fake.url, seconds=0.3).read()
        assert found.trouble == "no whole answer within 0.3 s"
        assert time.monotonic() - began < 2.0


@pytest.mark.parametrize(
    "url", ["127.0.0.1:9093", "ftp://a:1", "http://", "http://a:99999", "http://ada:secret@a:9093", "http://a/?x=1"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="--alertmanager"):
        Alertmanager(url)


# Threads


class Slow:
    """An evaluator that waits until it may go on."""

    rules = RULES
    step = 0.01
    kept = 900.0

    def __init__(self) -> None:
        self.may_go, self.entered, self.judged = threading.Event(), threading.Event(), 0
        self.recorded: list[int] = []

    def record(self, snapshot: Snapshot) -> None:
        self.recorded.append(snapshot.time_ns)

    def evaluate(self) -> Judgement:
        self.entered.set()
        assert self.may_go.wait(10)
        self.judged += 1
        return JUDGED


def test_neither_the_sampler_nor_a_page_waits_for_a_judgement_or_for_the_alertmanager() -> None:
    slow = Slow()
    with manager(answer([SILENCE])) as fake:
        fake.drips = True
        alerting = Alerting(slow, Alertmanager(fake.url, seconds=1.0))
        alerting.start()
        alerting.feed(Snapshot(NOW_NS, ()))
        until(lambda: slow.recorded == [NOW_NS], "the record")
        assert not slow.entered.is_set(), "no page needs the alerts"
        alerting.need()
        assert slow.entered.wait(10)
        until(lambda: fake.heard, "the question to Alertmanager")
        began = time.monotonic()
        for second in range(100):
            alerting.feed(Snapshot(NOW_NS + second * SECOND, ()))
            alerting.need()
            assert alerting.board.judgement.time_ns == 0
        assert time.monotonic() - began < 0.5
        slow.may_go.set()
        until(lambda: alerting.board.judgement is JUDGED, "the judgement")
        alerting.close()
    assert not [each for each in threading.enumerate() if each.name.startswith("heliograph-live-al")]


def test_a_failed_judgement_is_stated_since_its_first_time_and_the_last_one_stays() -> None:
    clock = [NOW_NS]
    given: list[Judgement | Exception] = [JUDGED, UserError("promtool failed: x"), ValueError("odd"), JUDGED]

    class Failing(Slow):
        def evaluate(self) -> Judgement:
            found = given.pop(0)
            if isinstance(found, Exception):
                raise found
            return found

    alerting = Alerting(Failing(), clock=lambda: clock[0])
    said = []
    for _ in range(4):
        alerting.judge(Snapshot(clock[0], ()))
        board = alerting.board
        assert board.judgement is JUDGED
        said.append((board.trouble, board.since_ns - NOW_NS))
        clock[0] += SECOND
    assert said[0] == ("", -NOW_NS)
    assert said[1:3] == [("promtool failed: x", SECOND), ("judging failed: odd", SECOND)]
    assert said[3][0] == ""


def test_a_fleet_that_is_too_large_is_not_recorded_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerting_module, "_MOST_OBJECTS", 2)
    slow = Slow()
    alerting = Alerting(slow)
    item = ObjectState("receiver", {}, {}, {})
    owner = InstanceState("desk", Health.LIVE, "", 1, 1, 1, 1, "", (item,) * 3)
    alerting.judge(Snapshot(NOW_NS, (owner,)))
    assert slow.recorded == []
    assert alerting.board.trouble == "the fleet has 3 objects, and this page judges up to 2; ask Prometheus"
    alerting.judge(Snapshot(NOW_NS, ()), record_only=True)
    assert slow.recorded == [NOW_NS]


# Browser


def test_in_a_browser_the_page_judges_and_shows_runbook_and_silences(tmp_path: Path, driver: Any) -> None:
    with manager(answer([SILENCE])) as fake, served(tmp_path, "--alertmanager", fake.url) as page:
        driver.get(page.url)
        until(lambda: "live" in seen(driver, "state"), "the fleet")
        until(lambda: re.search(r"Alerts \d+ ?firing, \d+ pending", seen(driver, "tiles")), "the count on the fleet")
        until(lambda: pressed(driver, "#tiles a[href='/alerts']"), "the click on the count")
        until(lambda: "live" in seen(driver, "al-state"), "the page")
        assert driver.current_url == f"{page.url}alerts"
        until(lambda: "HeliographReceiverIsolated" in seen(driver, "al-rules"), "a row")
        until(lambda: pressed(driver, "#al-rules a[href$='alert=HeliographReceiverIsolated']"), "the click on a row")
        until(lambda: "its condition holds for" in seen(driver, "al-one"), "the pending alert")
        assert driver.current_url == f"{page.url}alerts?alert=HeliographReceiverIsolated"
        assert "feed · slow" in seen(driver, "al-one")
        until(lambda: driver.find_elements("css selector", "#al-one .runbook table td code"), "the runbook")
        assert "First checks" in seen(driver, "al-one")
        assert driver.find_elements("css selector", "#al-one a[href='/receiver?instance=slow']")
        until(lambda: "the switch is replaced" in seen(driver, "al-silences"), "the silence")
        script = "return document.querySelectorAll('#al-times .scatterlayer .trace').length"
        until(lambda: driver.execute_script(script) >= 1, "a bar")
        until(lambda: pressed(driver, "#al-one .runbook a[href*='alert=Heliograph']"), "the link to another runbook")
        until(lambda: "live" in seen(driver, "al-state"), "the other alert")
        assert "?alert=Heliograph" in driver.current_url
        size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        wide = "return document.documentElement.scrollWidth"
        until(lambda: driver.execute_script(wide) <= 400, "a page of the width of a phone")
        assert {url for url in addresses(driver) if not url.startswith(page.url)} == set()
        said = driver.get_log("browser")
        assert [item for item in said if item["level"] == "SEVERE" or "Security Policy" in item["message"]] == []
