"""The page: well-formed, complete in itself, with every curve and every mark."""

from __future__ import annotations

import html.parser
import json
import re

import pytest

from heliograph.monitor.lab.page import page, scaled, timed_chart
from heliograph.monitor.lab.runs import Trials, run_scenarios
from heliograph.monitor.lab.scenario import parse
from heliograph.monitor.page.svg import Line

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Reader(html.parser.HTMLParser):
    """Checks that tags nest and collects what is there."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.curves: list[str] = []
        self.charts: list[dict[str, object]] = []
        self.texts: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.fetched += [name for name in ("src", "href") if name in values]
        if tag == "path" and "line" in (values.get("class") or "").split():
            self.curves.append(values["d"] or "")
        if "data-chart" in values:
            self.charts.append(json.loads(values["data-chart"] or ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def trials() -> Trials:
    from tests.lab.conftest import SMALL

    (made,) = run_scenarios([parse(SMALL, "small.toml", "small")], seeds=2, jobs=1)
    return made


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def test_the_page_is_well_formed_and_fetches_nothing(trials: Trials) -> None:
    reader = read(page(trials))
    assert reader.fetched == []
    assert "@import" not in page(trials)
    assert "url(" not in page(trials)


def test_the_page_has_every_curve_with_all_its_points(trials: Trials) -> None:
    reader = read(page(trials))
    drawn = [series for one in trials.outcomes[0].drawn[""] for series in one.series]
    assert len(drawn) >= 12
    assert len(reader.curves) == len(drawn)
    assert all(points.count("M") + points.count("L") == 40 for points in reader.curves)
    text = " ".join(reader.texts)
    assert all(series.name in text for series in drawn)


def test_the_values_under_the_pointer_are_those_drawn(trials: Trials) -> None:
    reader = read(page(trials))
    rate = trials.outcomes[0].drawn[""][0]
    shown = reader.charts[0]
    assert shown["unit"] == "MB/s"
    curves = dict(shown["curves"])  # type: ignore[call-overload]
    assert list(curves) == [series.name for series in rate.series]
    for series in rate.series:
        assert curves[series.name] == pytest.approx([value / 1e6 for value in series.values], abs=1e-4)


def test_marks_and_verdicts_are_in_words(trials: Trials) -> None:
    text = page(trials)
    assert "1.50 s: halfway &lt;through&gt;" in text
    assert "bottleneck: rate becomes 1,000,000" in text
    assert "slow &amp; bad: loss becomes 0.01" in text
    assert text.count("class='verdict pass'") == 2
    assert "at least 0.1" in text


def test_the_page_is_for_light_and_dark(trials: Trials) -> None:
    text = page(trials)
    assert "prefers-color-scheme: dark" in text
    assert "color-scheme: light dark" in text


def test_axes_have_ticks_and_units() -> None:
    drawing = timed_chart("Rate", "B/s", [Line("a", [1, 2, 3], [0.0, 2.5e6, 4e6])], [], 1.0, 3.0)
    assert ">MB/s</text>" in drawing
    assert ">seconds</text>" in drawing
    assert all(f">{tick}</text>" in drawing for tick in (0, 1, 2, 3, 4))
    assert scaled(1500, "packets/s") == (1e3, "thousand packets/s")
    assert scaled(3.0, "ms") == (1.0, "ms")


def test_a_long_curve_keeps_its_peaks() -> None:
    values = [0.0] * 10_000
    values[7777] = 5.0
    times = [0.01 * (i + 1) for i in range(len(values))]
    drawing = timed_chart("Queue", "B", [Line("a", times, values)], [], 0.01, 100.0)
    points = re.findall(r"[ML][\d.]+ ([\d.]+)", drawing.split('<path class="line')[1].split('d="')[1].split('"')[0])
    assert len(points) <= 800
    heights = [float(point) for point in points]
    assert sum(height < max(heights) for height in heights) == 1
