"""The page of the past: the calendar and the comparison of two periods from the history's files, read in bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from heliograph.dashboards.live.app import page_at
from heliograph.dashboards.live.figures.past import by_day, two_spectra
from heliograph.dashboards.live.pages import history, numbers
from heliograph.dashboards.live.past import Past, Question, Studied
from heliograph.dashboards.live.uploads import Uploads
from heliograph.monitor.history.files import to_table, write_table
from heliograph.monitor.history.hours import read_history
from heliograph.monitor.history.merge import merge
from heliograph.monitor.history.report.figures import figures_of
from heliograph.monitor.history.studies.calendar import calendars
from tests.dashboards.browsing import until
from tests.dashboards.pasts import DAYS, FAST, SLOW, keep_history
from tests.dashboards.test_live_page import text
from tests.dashboards.views import Fleet, checked
from tests.history.recordings import interval


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return keep_history(tmp_path_factory.mktemp("history"))


@pytest.fixture(scope="module")
def past(kept: Path) -> Past:
    found = Past(kept)
    until(lambda: found.reading().series, "the reading", 120)
    return found


def settled(past: Past, chosen: history.Choice) -> dict[str, Any]:
    """The parts of the page when the study is done."""
    until(lambda: "under way" not in text(history.parts(past, chosen)["hy-verdict"]), "the study", 120)
    return history.parts(past, chosen)


def page(past: Past | None, fleet: Fleet, search: str = "") -> str:
    return text(page_at("/history", search, fleet.store, Uploads(), lambda: fleet.now_ns, past=past))


def waited(past: Past) -> str:
    """What the page says first when nothing is being done any more."""
    until(lambda: (found := past.reading()).trouble or found.series, "the reading", 120)
    return text(history.parts(past, history.Choice())["hy-verdict"])


def test_the_last_day_is_slower_and_the_page_says_by_how_much(past: Past) -> None:
    found = settled(past, history.Choice(SLOW))
    said = text(found["hy-verdict"])
    assert "alpha · PRICES.A · Receiver: total latency: B is slower than A at p" in said
    assert found["hy-verdict"].className == "verdict bad"
    assert text(found["hy-compared"]).count("slower") >= 2
    ratio = float(said.partition("instead of")[2].partition(", ")[2].partition(" times")[0])
    assert ratio == pytest.approx(1.6, rel=0.2)


def test_what_did_not_change_is_not_called_slower(past: Past) -> None:
    found = settled(past, history.Choice(FAST))
    assert "PRICES.B" in text(found["hy-verdict"])
    assert found["hy-verdict"].className in ("verdict good", "verdict idle")
    assert "slower" not in text(found["hy-compared"]).replace("not slower", "")


def test_two_periods_are_chosen_by_time_and_label(past: Past) -> None:
    chosen = history.Choice(SLOW, a="from=2025-11-22,to=2025-11-24", b="from=2025-11-24,to=2025-11-25")
    question = history._question(chosen, past.reading())
    assert question is not None
    until(lambda: past.studied(question) is not None, "the study", 120)
    found = past.studied(question)
    assert isinstance(found, Studied)
    first = past.reading().first
    assert first is not None
    assert (found.a.hours, found.b.hours) == (48, 24), f"the history begins at {first}"
    assert (found.a.values, found.b.values) == (48 * 150, 24 * 150)
    figure = checked(two_spectra)([("A", found.a.line), ("B", found.b.line)])
    assert [trace.name for trace in figure.data] == ["A", "B"]


def test_days_and_hours_of_the_week_are_those_of_the_calendar(past: Past, kept: Path) -> None:
    found = settled(past, history.Choice(SLOW, "p50", "Europe/London"))
    table, _ = read_history(kept)
    (wanted,) = [one for one in calendars(table) if one.series["topic"] == "PRICES.A"]
    assert len(wanted.days) == DAYS
    figure = checked(by_day)(wanted)
    assert {len(trace.x) for trace in figure.data} == {DAYS}
    shown = text(found["hy-days-twin"])
    assert all(str(day.day) in shown for day in wanted.days)
    assert "08:00" in text(found["hy-week"])
    rows = found["hy-week"].children.children.children[1].children
    shades = {getattr(cell, "className", None) for row in rows for cell in row.children}
    assert {"n s0", "n s6"} <= shades


def test_all_the_time_is_shown_as_in_the_report(past: Past, kept: Path) -> None:
    (one,) = [one for one in figures_of(kept).metrics[0].series if one.labels["topic"] == "PRICES.A"]
    shown = " ".join(text(settled(past, history.Choice(SLOW))["hy-whole"]).split())
    assert f"{one.whole.n:,} {numbers.latency(one.whole.mean)} ± {numbers.latency(one.mean_reach)}" in shown
    for value, limits in zip(one.whole.percentiles, one.limits, strict=True):
        if limits is not None and limits.high is not None:
            between = f"{numbers.latency(limits.low)} to {numbers.latency(limits.high)}"
            assert f"{numbers.latency(value)} {between}" in shown
    assert "thin" in shown, "p99.999 of some ten thousand values"
    assert "every hour is covered" in shown


def test_gaps_restarts_and_builds_are_shown(tmp_path: Path) -> None:
    rows = [
        interval([20_000] * 100, at_s=3600.0 * hour, seq=hour, host=host, build=build, incarnation=run)
        for host, builds in (("ny4", "aab"), ("ld4", "aaa"))
        for hour, (build, run) in enumerate(zip(builds, ("1", "2", "3"), strict=True))
        if (host, hour) != ("ld4", 1)
    ]
    write_table(tmp_path / "a.parquet", merge(to_table(rows))[0])
    past = Past(tmp_path)
    until(lambda: past.reading().series, "the reading", 120)
    shown = text(settled(past, history.Choice())["hy-whole"])
    assert "host ny4" in shown
    assert "host ld4" in shown
    assert "Gaps: 3; the longest is" in shown
    assert shown.index("build a -> b") < shown.index("restart"), "the newest first"


WRONG = {
    "no time": ({"a": "yesterday"}, "'yesterday' is not KEY=VALUE"),
    "no label": ({"b": "colour=red"}, "no label 'colour'"),
    "backwards": ({"a": "from=2026-11-22,to=2026-11-21"}, "it ends before it begins"),
    "no zone": ({"zone": "Mars/Olympus"}, "o time zone 'Mars/Olympus'"),
    "nothing": ({"a": "from=2020-01-01,to=2020-01-02"}, "the periods are not compared: period A has no hours"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_impossible_selection_is_said_in_words(case: str, past: Past) -> None:
    fields, reason = WRONG[case]
    assert reason in text(settled(past, history.Choice(SLOW, **fields))["hy-verdict"])


def test_an_address_with_impossible_values_falls_back_with_a_message(past: Past, fleet: Fleet) -> None:
    fleet.at(1)
    shown = page(past, fleet, "?series=<script>&quantile=p42")
    assert 'Quantile "p42" is not in a history; the page shows p99.' in shown
    assert 'Series "<script>" is not in the history; the page shows the first one.' in shown


def test_without_a_history_the_page_says_how_to_show_one(fleet: Fleet) -> None:
    fleet.at(1)
    assert "heliograph live --history DIR shows one" in page(None, fleet)


def test_a_missing_an_empty_and_a_broken_history_are_said_and_a_later_one_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "none"
    found = Past(folder, fresh_seconds=0.0)
    assert f"There is no history in {folder}; heliograph history rollup makes one" in waited(found)
    folder.mkdir()
    until(lambda: "is empty" in found.reading().trouble, "the empty history", 60)
    (folder / "a.parquet").write_bytes(b"PAR1 but not really")
    until(lambda: "is empty (1 files cannot be read)" in found.reading().trouble, "the broken file", 60)
    keep_history(folder)
    until(lambda: found.reading().series, "the later history", 120)
    assert found.reading().trouble == ""


def test_a_history_that_is_too_large_is_refused_with_both_sizes(kept: Path) -> None:
    small = Past(kept, most_bytes=10)
    said = waited(small)
    assert "MiB, and this page reads at most 0 MiB" in said
    assert small.studied(Question(("a", "b", "c", "d"), "UTC", "", "")) is None
