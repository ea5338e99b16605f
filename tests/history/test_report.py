"""The report: one file that needs nothing else, with every hour in it, whatever the labels are."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import to_table, write_table
from heliograph.monitor.history.merge import merge
from heliograph.monitor.history.report import report, write_report
from heliograph.monitor.history.report_page import DRAWN
from heliograph.monitor.history.report_svg import Line, duration, spectrum_chart
from heliograph.monitor.history.schema import LatencyInterval
from tests.history.recordings import interval, latencies

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
    assert not {"src", "href", "onclick", "onload"} & {name for name, _ in page.attributes}
    assert not re.search("https?:", html)
    assert "url(" not in html
    assert "@import" not in html


def test_it_shows_each_series_each_hour_and_both_charts(tmp_path: Path) -> None:
    page = Page(make(tmp_path, sample()))
    text = " ".join(page.text)
    assert "Latencies of <Friday>" in text
    assert "Receiver: total latency" in text
    for part in ("alpha · PRICES.A", "alpha · PRICES.D", "2025-11-21 12:00", "2025-11-21 14:00", "99.999 %", "Jitter"):
        assert part in text
    assert page.tags.count("svg") == 2
    assert page.tags.count("tr") == 1 + 4 + 1 + 12
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
    rows = [interval([1000 + index], seq=index, topic=f"T{index}") for index in range(DRAWN + 3)]
    page = Page(make(tmp_path, rows))
    text = " ".join(page.text)
    assert f"Drawn: the {DRAWN} of {DRAWN + 3} with the worst 99.9 %." in text
    assert all(f"alpha · T{index}" in text for index in range(DRAWN + 3))


def test_a_series_without_values_has_a_row_and_no_line(tmp_path: Path) -> None:
    page = Page(make(tmp_path, [interval([], topic="quiet"), interval([7], seq=1, topic="loud")]))
    assert "alpha · quiet" in " ".join(page.text)
    assert page.tags.count("path") == 1
    assert Page(make(tmp_path / "only", [interval([], topic="quiet")])).tags.count("svg") == 0


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
