"""The page "What if": decisions of a real engine replayed with other options, and logs that are not what they say."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heliograph.dashboards.live.app import create, page_at
from heliograph.dashboards.live.figures.whatif import rates
from heliograph.dashboards.live.replays import Question, Replays
from heliograph.dashboards.live.store import Store
from heliograph.dashboards.live.uploads import Uploads
from heliograph.monitor.lab.whatif import MOST_STEPS, Step, WhatIf, fault, whatif
from heliograph.monitor.model import Snapshot
from tests.dashboards.browsing import live, seen, until
from tests.dashboards.pasts import keep_decisions
from tests.dashboards.views import checked


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a source with a dynamic rate, whose receiver loses a tenth."""
    return keep_decisions(tmp_path_factory.mktemp("decisions"))


def answered(replays: Replays, question: Question) -> WhatIf | str:
    until(lambda: replays.answer(question) is not None, "the replay", 90)
    found = replays.answer(question)
    assert found is not None
    return found


def test_with_the_recorded_options_both_sides_are_equal(log: Path) -> None:
    found = whatif(log, {})
    assert found.first is None
    assert found.recorded == found.made
    assert found.recorded.lowered >= 2
    assert found.recorded.lowest_rate is not None
    assert found.recorded.lowest_rate < 20_000_000
    assert found.recorded.mean_rate is not None
    assert found.recorded.lowest_rate <= found.recorded.mean_rate <= (found.recorded.highest_rate or 0)


def test_milder_options_lower_the_rate_less_and_the_first_difference_is_named(log: Path) -> None:
    found = whatif(log, {"loss_high": "0.9"})
    assert found.made.lowered == 0
    assert found.differing > 0
    assert found.first is not None
    assert "decrease" in found.first.recorded
    assert (found.made.lowest_rate or 1e9) > (found.recorded.lowest_rate or 0)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("loss_high", "7", 'loss_high "7" is not a number from 1e-05 to 1'),
        ("rate", "fast", 'rate "fast" is not a number from 0 to 1e+11 bytes'),
        ("rate", "nan", 'rate "nan" is not a number'),
        ("slow_lag", "nan", 'slow_lag "nan" is not a number from 0 to 1'),
        ("rate_policy", "best", 'rate_policy "best" is none of none, static, dynamic, pgmcc'),
        ("slow_dwell", "-1", "from 0.03 to 3,600 seconds"),
    ],
)
def test_a_bad_value_is_answered_with_the_option_and_its_range(name: str, value: str, said: str) -> None:
    assert said in fault(name, value)


def test_a_long_rate_keeps_its_lowest_and_highest_steps(log: Path) -> None:
    from heliograph.monitor.lab import whatif as module

    steps = [Step(n, 1 if n == 777 else 10**9 if n == 7_000 else 5_000 + n % 7) for n in range(10_000)]
    kept = module._fewer(steps)
    assert len(kept) <= MOST_STEPS + 2
    assert {1, 10**9} <= {step.rate for step in kept}
    assert [step.time_ns for step in kept] == sorted(step.time_ns for step in kept)


def test_a_replay_is_made_apart_and_once(log: Path) -> None:
    replays = Replays([log.parent])
    (found,) = replays.logs().values()
    assert (found.instance, found.name) == ("feed", log.name)
    assert replays.find(found.stream) == replays.find(log.name) == found
    question = Question(log.name, (("loss_high", "0.9"),))
    first = answered(replays, question)
    assert isinstance(first, WhatIf)
    assert first == whatif(log, {"loss_high": "0.9"})
    assert replays.answer(question) is first
    wrong = answered(replays, Question(log.name, (("loss_low", "0.9"),)))
    assert isinstance(wrong, str)
    assert "loss_" in wrong


def test_logs_that_are_none_are_left_out_and_large_or_slow_ones_are_refused(log: Path, tmp_path: Path) -> None:
    (tmp_path / "short.decisions").write_bytes(b"HELIODEC")
    (tmp_path / "other.decisions").write_bytes(b"NOT A LOG" + bytes(200))
    (tmp_path / "link.decisions").symlink_to(log)
    (tmp_path / "folder.decisions").mkdir()
    (tmp_path / "own.decisions").write_bytes(log.read_bytes())
    (tmp_path / "cut.decisions").write_bytes(log.read_bytes()[:300])
    assert set(Replays([tmp_path, tmp_path / "missing"]).logs()) == {"own.decisions", "cut.decisions"}
    own = Question("own.decisions")
    assert "replays at most" in str(Replays([tmp_path], most_bytes=100).answer(own))
    assert "took more than 0 s" in str(answered(Replays([tmp_path], seconds=0.0), own))
    assert Replays([tmp_path]).answer(Question("../own.decisions")) == "the log does not exist any more"
    cut = answered(Replays([tmp_path]), Question("cut.decisions"))
    assert isinstance(cut, str) or cut.is_damaged


def test_the_chart_has_both_rates_as_steps(log: Path) -> None:
    found = whatif(log, {"loss_high": "0.9"})
    figure = checked(rates)(found)
    assert [trace.name for trace in figure.data] == ["decided", "with these options"]
    assert {trace.line.shape for trace in figure.data} == {"hv"}
    unlimited = replace(found, made=replace(found.made, steps=(Step(found.made.steps[0].time_ns, 0),)))
    assert list(checked(rates)(unlimited).data[1].y) == [None, None]
    assert checked(rates)(None).data == ()


def shown(search: str, replays: Replays | None) -> str:
    store = Store(lambda: Snapshot(1, ()))
    store.take()
    page: Any = page_at("/whatif", search, store, Uploads(), replays=replays)
    return json.dumps(page.to_plotly_json(), default=lambda item: item.to_plotly_json(), ensure_ascii=False)


def test_the_page_says_what_is_missing_or_wrong(log: Path) -> None:
    assert "heliograph live --decisions DIR" in shown("", None)
    replays = Replays([log.parent])
    assert "is being replayed" in shown("", replays)
    assert 'Log \\"../../etc/passwd\\" is not in the directories' in shown("?log=../../etc/passwd", replays)
    wrong = shown("?loss_high=7&rate_policy=<script>", replays)
    assert 'loss_high \\"7\\" is not a number from 1e-05 to 1' in wrong
    assert "Nothing was replayed" in wrong


def test_in_a_browser_an_option_is_tried_and_the_link_shows_the_same(log: Path, driver: Any) -> None:
    from selenium.webdriver import ActionChains, Keys

    store = Store(lambda: Snapshot(time.time_ns(), ()), interval=0.5)
    store.start()
    with live(create(store, replays=Replays([log.parent])).server, store) as url:
        driver.get(f"{url}whatif")
        until(lambda: "every decision is the same" in seen(driver, "wi-verdict"), "the replay", 90)
        driver.execute_script("document.getElementById('wi-loss_high').focus()")
        ActionChains(driver).send_keys("0.9", Keys.ENTER).perform()
        until(lambda: "decisions differ" in seen(driver, "wi-verdict"), "the other decisions", 90)
        until(lambda: "loss_high=0.9" in driver.current_url, "the option in the address")
        assert "Rate lowered" in seen(driver, "wi-sides")
        table = seen(driver, "wi-sides")
        driver.get(driver.current_url)
        until(lambda: seen(driver, "wi-sides") == table, "the same by the link", 60)
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
    store.close()
