"""The report: one file that needs nothing else, with every hour in it, whatever the labels are."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import to_table, write_spool, write_table
from heliograph.monitor.history.hours import read_history
from heliograph.monitor.history.merge import merge
from heliograph.monitor.history.report import figures
from heliograph.monitor.history.report.charts import duration, spectrum_chart
from heliograph.monitor.history.report.make import report
from heliograph.monitor.history.report.metric import DRAWN
from heliograph.monitor.history.report.uncertainty import is_thin, least, percentile_limits, ratio_reach
from heliograph.monitor.history.report.writing import write_report
from heliograph.monitor.history.rollup import Threads, rollup
from heliograph.monitor.history.schema import PERCENTILES, LatencyInterval
from heliograph.monitor.history.studies.calendar import calendars
from heliograph.monitor.history.studies.objectives import Objective
from heliograph.monitor.latency import percentile
from heliograph.monitor.page.svg import Line
from tests.history.recordings import histogram_of, interval, latencies

VOID = {"meta", "line", "br"}


class Page(HTMLParser):
    """Checks that tags close in order, and collects what a reader sees and what a browser would fetch."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def study_text(path: Path) -> str:
    """The text of a study's page; it is whole, and fetches nothing."""
    page = Page(path.read_text(encoding="utf-8"))
    assert page.open == []
    assert not {"script", "link", "img", "a"} & set(page.tags)
    return " ".join(" ".join(page.text).split())


def make(folder: Path, rows: list[LatencyInterval]) -> str:
    write_table(folder / "date=2025-11-21" / "hour=12" / "a.parquet", merge(to_table(rows))[0])
    return report(folder, "Latencies of <Friday>").html


def sample() -> list[LatencyInterval]:
    return [
        interval(latencies(seq, 500), seq=seq, at_s=3600 * (seq // 4), topic=f"PRICES.{'ABCD'[seq % 4]}")
        for seq in range(12)
    ]


def test_it_is_one_file_that_fetches_nothing(tmp_path: Path) -> None:
    html = make(tmp_path, sample())
    page = Page(html)
    assert page.open == []
    assert not {"script", "link", "img", "iframe", "object", "audio", "video", "base"} & set(page.tags)
    assert not {"src", "onclick", "onload"} & {name for name, _ in page.attributes}
    links = [value for name, value in page.attributes if name == "href"]
    assert [link.split(",")[0] for link in links] == ["data:application/gzip;base64"]
    assert not re.search("https?:", html)
    assert "url(" not in html
    assert "@import" not in html


def test_it_shows_each_series_each_hour_and_the_charts(tmp_path: Path) -> None:
    page = Page(make(tmp_path, sample()))
    text = " ".join(page.text)
    assert "Latencies of <Friday>" in text
    assert "Receiver: total latency" in text
    for part in ("alpha · PRICES.A", "alpha · PRICES.D", "2025-11-21 12:00", "2025-11-21 14:00", "99.999 %", "Jitter"):
        assert part in text
    assert "90 % by hour" in text
    assert "Values per second" in text
    assert page.tags.count("svg") == 3 + 1
    assert "Hour by hour (12)" in text


def test_the_worst_series_comes_first(tmp_path: Path) -> None:
    rows = [interval([1000] * 100, seq=0, topic="fast"), interval([10_000_000] * 100, seq=1, topic="slow")]
    html = make(tmp_path, rows)
    assert html.index("alpha · slow") < html.index("alpha · fast")


def test_labels_from_strangers_are_text_and_never_markup(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\"'&"
    html = make(tmp_path, [interval([5], topic=evil, instance=evil, tag=evil, metric=evil, stream=evil)])
    page = Page(html)
    assert "script" not in page.tags
    assert evil in "".join(page.text)


def test_more_series_than_can_be_drawn_are_all_listed(tmp_path: Path) -> None:
    rows = [interval([1000 + index] * 30, seq=index, topic=f"T{index}") for index in range(DRAWN + 3)]
    page = Page(make(tmp_path, rows))
    text = " ".join(page.text)
    assert f"Drawn: the {DRAWN} of {DRAWN + 3} with the worst 99.9 %." in text
    assert all(f"alpha · T{index}" in text for index in range(DRAWN + 3))


def test_a_series_without_values_has_a_row_and_no_line(tmp_path: Path) -> None:
    page = Page(make(tmp_path, [interval([], topic="quiet"), interval([7] * 30, seq=1, topic="loud")]))
    assert "alpha · quiet" in " ".join(page.text)
    assert page.tags.count("path") == 1
    assert Page(make(tmp_path / "only", [interval([], topic="quiet")])).tags.count("path") == 0


def long_run() -> list[LatencyInterval]:
    """A day and a half: two topics, one with a gap, a restart and another build; stages, recovered, hiccups."""
    rows = []
    for hour in range(36):
        build, run = ("4.1", "a" * 16) if hour < 12 else ("4.1", "b" * 16) if hour < 20 else ("4.2", "c" * 16)
        origin = {"host": "ny4", "incarnation": run, "level": "3", "stream": run}

        def row(metric: str, values: list[int], topic: str = "X", **labels: str) -> None:
            at = len(rows)
            made = interval(values, at_s=3600 * hour, seq=at, topic=topic, metric=metric, **(origin | labels))  # noqa: B023
            rows.append(replace(made, len_ms=3_600_000, clock_error_ns=30_000))

        for number, topic in enumerate(("X", "Y")):
            if topic == "Y" and 5 <= hour < 9:
                continue
            row("receiver_total_latency", latencies(2 * hour + number, 400), topic, build=build)
        for stage, mean in (("network", 9_000), ("socket", 2_000), ("order", 1_000), ("dispatch", 3_000)):
            row(f"receiver_{stage}_latency", [mean] * 400, build=build)
        row("receiver_total_latency_recovered", [900_000] * 4, build=build)
        row("instance_host_hiccup", [60_000] * 400, "", build=build)
    return rows


@pytest.fixture(scope="module")
def long_page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("long")
    write_spool(folder / "spool", long_run(), "s0", 0)
    rollup(Threads(1), folder / "spool", folder / "history")
    return Page(report(folder / "history", objective=Objective(100_000, 0.99)).html)


def downloaded(page: Page) -> list[dict[str, str]]:
    """The rows of the CSV file that a page carries."""
    (link,) = [value for name, value in page.attributes if name == "href"]
    text = gzip.decompress(base64.b64decode(link.split(",")[1])).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def card(page: Page, head: str) -> str:
    """The text of the part of a page from a heading on."""
    text = " ".join(" ".join(page.text).split())
    return text[text.index(f" {head} ") :]


def test_a_restart_with_another_stream_continues_its_series_and_another_build_does_not(long_page: Page) -> None:
    text = card(long_page, "All the time")
    assert [
        name for name in ("alpha · X build 4.1", "alpha · X build 4.2", "alpha · Y build 4.1") if name not in text
    ] == []
    assert "stream" not in text.split("99.999 %")[0]
    changes = card(long_page, "What changed")
    assert "2025-11-22 00:00 restart alpha ny4" in changes
    assert "2025-11-22 08:00 build 4.1 -> 4.2 alpha ny4" in changes


def test_percentiles_have_intervals_or_are_refused(long_page: Page) -> None:
    text = card(long_page, "All the time").split("Hour by hour")[0]
    # 20 and 16 hours of 400 values: p99.9 has 8 or 6.4 beyond it.
    row = text[text.index("alpha · X build 4.1") :].split("alpha · ", 2)[1]
    assert re.search(r"8,000 [\d.]+ µs ± \d+ ns|8,000 [\d.]+ µs ± [\d.]+ µs", row)
    assert re.search(r"[\d.]+ µs [\d.]+ µs to [\d.]+ µs", row)
    assert row.count("thin") == 4  # 99.9 %, 99.99 %, 99.999 % and the jitter


def test_stages_recovered_messages_and_hiccups_are_beside_the_latency(long_page: Page) -> None:
    stages = card(long_page, "Stages of one message")
    assert re.search(r"network 9\.\d+ µs ± 0 ns", stages)
    assert re.search(r"dispatch (3\.00|2\.99) µs", stages)
    recovered = card(long_page, "Recovered messages apart")
    assert "recovered 1 % 80 90" in recovered
    assert "hiccups of ny4" in card(
        long_page, "99 % by hour" if "99 % by hour" in " ".join(long_page.text) else "90 % by hour"
    )


def test_gaps_are_drawn_and_listed(long_page: Page) -> None:
    text = card(long_page, "Coverage")
    assert "0 of 4 series have all hours" in text  # each build has a part of the time
    assert re.search(r"alpha · Y build 4\.1 44\.44 % 2 2025-11-22 08:00 to 2025-11-23 00:00 0 %", text)
    assert ("class", "gap") in long_page.attributes


def test_the_objective_the_calendar_and_the_clocks_are_shown(long_page: Page) -> None:
    assert "99 % within 100 µs" in card(long_page, "Objective: 99 % within 100 µs")
    assert re.search(r"alpha X .*MISSED|alpha X .*met", card(long_page, "Objective: 99 % within 100 µs"))
    assert "by hour of the week" in card(long_page, "Days and hours of the week")
    assert "Largest error bound of the clocks: 30.0 µs. At least as large as the median" in card(
        long_page, "All the time"
    )


@pytest.mark.parametrize("slowest", ["early", "late"])
def test_the_worst_series_have_whole_calendars_whenever_they_became_the_worst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slowest: str
) -> None:
    """Those that are worst at the beginning are kept while the history is read; others need a second reading."""
    monkeypatch.setattr(figures, "_FIRST_HOURS", 2)
    monkeypatch.setattr(figures, "_STEP_BYTES", 0)  # each hour alone
    worst = ["T0", "T1", "T2"] if slowest == "early" else ["T7", "T8", "T9"]
    rows = []
    for hour in range(6):
        for number in range(10):
            topic = f"T{number}"
            median = 900_000.0 if topic in worst and (slowest == "early" or hour > 3) else 90_000.0 - 5_000 * number
            rows.append(interval(latencies(len(rows), 300, median), seq=len(rows), at_s=3600 * hour, topic=topic))
    write_spool(tmp_path / "spool", rows, "s0", 0)
    rollup(Threads(1), tmp_path / "spool", tmp_path / "history")
    readings = []
    read = figures._readable

    def counted(*args: Any) -> Any:
        readings.append(args)
        return read(*args)

    monkeypatch.setattr(figures, "_readable", counted)
    found = figures.figures_of(tmp_path / "history").calendars
    assert len(readings) == (1 if slowest == "early" else 2)
    assert [one.series["topic"] for one in found] == worst
    assert [[cell.n for _, cell in sorted(one.week.items())] for one in found] == [[300] * 6] * 3
    whole = calendars(read_history(tmp_path / "history")[0], by=figures.SHOWN)
    assert [one for one in whole if one.series["topic"] in worst] == list(found)


def test_the_page_is_the_same_however_many_hours_are_taken_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restart an hour has two streams of one series. They are added, and hours beside it stay as they are."""
    rows = [
        interval(
            latencies(at, 400), at_s=1200 * at, seq=at, stream="old" if at < 7 else "new", incarnation=f"{at // 7}"
        )
        for at in range(15)
    ]
    write_spool(tmp_path / "spool", rows, "s0", 0)
    rollup(Threads(1), tmp_path / "spool", tmp_path / "history")
    together = report(tmp_path / "history").html
    monkeypatch.setattr(figures, "_STEP_BYTES", 0)
    assert report(tmp_path / "history").html == together
    assert "Hour by hour (5)" in " ".join(Page(together).text)


def test_the_download_keeps_any_label_and_no_spreadsheet_computes_it(tmp_path: Path) -> None:
    evil = '=1+1,"é"\n;'
    page = Page(make(tmp_path, [interval([5], topic=evil, host="a,b")]))
    (row,) = downloaded(page)
    assert (row["topic"], row["host"], row["values"], row["max_ns"]) == ("'" + evil, "a,b", "1", "5")


@pytest.mark.parametrize("fraction", PERCENTILES.values())
def test_the_least_number_of_values_of_a_percentile_is_where_it_stops_to_be_thin(fraction: float) -> None:
    assert is_thin(least(fraction) - 1, fraction)
    assert not is_thin(least(fraction), fraction)


def test_the_download_has_every_hour(long_page: Page) -> None:
    rows = downloaded(long_page)
    totals = [row for row in rows if row["metric"] == "receiver_total_latency"]
    assert (len(totals), {row["values"] for row in totals}) == (36 + 32, {"400"})
    assert totals[0]["p99_9_ns"] == ""  # refused
    assert int(totals[0]["p90_ns"]) > int(totals[0]["p50_ns"]) > 0


def test_an_interval_covers_the_truth_as_often_as_it_says_also_where_hours_differ() -> None:
    covered, independent = 0, 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        level = np.repeat(random.normal(0, 0.2, 24), 1)
        values = np.exp(10 + level[:, None] + 0.5 * random.normal(size=(24, 200)))
        histogram = histogram_of(values.astype(int).ravel())
        at = percentile(histogram, 0.9)
        above, sizes = (values > at).sum(axis=1).astype(float), np.full(24, 200.0)
        found = percentile_limits(histogram, 0.9, above, sizes)
        assert found is not None
        assert found.high is not None
        truth = math.exp(10 + 1.2816 * math.hypot(0.2, 0.5))
        covered += found.low <= truth <= found.high
        spread = 1.96 * math.sqrt(0.09 / values.size)
        low, high = percentile(histogram, 0.9 - spread), percentile(histogram, 0.9 + spread)
        independent += low <= truth <= high
    assert 0.90 <= covered / 100 <= 0.99
    assert independent / 100 < 0.6  # as if hours did not differ


def test_a_few_hours_have_no_interval() -> None:
    assert ratio_reach(np.ones(4), np.ones(4)) is None
    assert ratio_reach(np.ones(5), np.ones(5)) == 0


def test_a_history_that_is_not_there_or_empty_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no history in"):
        report(tmp_path / "nowhere")
    with pytest.raises(UserError, match="has no hours"):
        report(tmp_path)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match="1 files could not be read"):
        report(tmp_path)


def test_files_that_cannot_be_read_are_named_in_it(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    assert "broken.parquet" in make(tmp_path, [interval([5])])


def test_it_takes_its_place_whole_or_says_why_not(tmp_path: Path) -> None:
    write_report("<p>é</p>", tmp_path / "new" / "report.html")
    assert (tmp_path / "new" / "report.html").read_text(encoding="utf-8") == "<p>é</p>"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["report.html"]
    with pytest.raises(UserError, match="cannot be written"):
        write_report("x", tmp_path / "new" / "report.html" / "below.html")


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1.00 µs"),
        (18_440, "18.4 µs"),
        (999_600, "1.00 ms"),
        (1_234_567_890, "1.23 s"),
        (86_400_000_000_000, "86,400 s"),
    ],
)
def test_durations_have_three_digits_and_a_unit(ns: int, text: str) -> None:
    assert duration(ns) == text


def test_the_spectrum_has_nines_below_and_powers_of_ten_beside() -> None:
    svg = spectrum_chart([Line("a", [0.0, 1.0, 3.0, 3.3], [900, 2000, 50_000, 2_000_000])])
    assert re.findall(r'text-anchor="middle">([^<]*)<', svg) == ["0 %", "50 %", "90 %", "99 %", "99.9 %"]
    assert re.findall(r'text-anchor="end">([^<]*)<', svg) == ["100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms"]
    numbers = [float(number) for number in re.findall(r"(?<=[MVHL ])-?[\d.]+", svg.split('d="')[1].split('"')[0])]
    assert all(math.isfinite(number) and 0 <= number <= 920 for number in numbers)
