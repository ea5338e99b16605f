"""Charts are pure functions of points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import plotly.graph_objects as go
import pytest

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.figures import hosts, latency, repair
from heliograph.dashboards.live.figures import throughput as throughput_charts
from heliograph.dashboards.live.series import EVERYTHING, Point
from heliograph.monitor.hosts import HostRow
from tests.dashboards.views import NOW_NS, SECOND, Fleet, checked

over_time = checked(latency.over_time)
percentile_spectrum = checked(latency.percentile_spectrum)
losses = checked(repair.losses)
naks = checked(repair.naks)
throughput = checked(throughput_charts.throughput)
stood = checked(hosts.stood)

GROUNDS = {"light": "#ffffff", "dark": "#1a2026"}
CHARTS: dict[str, Callable[[Sequence[Point]], go.Figure]] = {
    "throughput": throughput,
    "naks": naks,
    "losses": losses,
    "latency": lambda points: over_time(points, EVERYTHING),
    "spectrum": lambda points: percentile_spectrum(points, "receiver"),
    "spectrum by topic": lambda points: percentile_spectrum(points, "topic"),
    "hosts": lambda points: stood(points, ["alpha", "feed"]),
}


@pytest.fixture
def points(fleet: Fleet) -> tuple[Point, ...]:
    for moment in (0, 1, 2, 3):
        view = fleet.at(moment)
    return view.points


def names(figure: go.Figure) -> list[str]:
    return [trace.name for trace in figure.data]


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_of_nothing_is_an_empty_chart(chart: str) -> None:
    assert len(CHARTS[chart]([]).data) == 0


@pytest.mark.parametrize("chart", CHARTS)
def test_the_same_points_make_the_same_chart(chart: str, points: tuple[Point, ...]) -> None:
    assert CHARTS[chart](points).to_json() == CHARTS[chart](points).to_json()


def test_throughput_has_sent_and_delivered_of_each_topic(points: tuple[Point, ...]) -> None:
    figure = throughput(points)
    assert names(figure)[:2] == ["PRICES.A", "PRICES.A delivered"]
    assert len(figure.data) == 8
    assert figure.data[0].y == pytest.approx((4000.0, 4000.0, 4000.0))
    assert figure.data[1].line.dash == "dot"
    assert max(figure.data[1].y) <= 4000.0


def test_a_topic_whose_transmitter_is_out_of_reach_has_one_line_with_its_name() -> None:
    point = Point(NOW_NS, 1.0, delivered={"T": 8.0}, listeners={"T": 2})
    figure = throughput([point])
    assert names(figure) == ["T"]
    assert figure.data[0].y == (4.0,)
    assert figure.data[0].showlegend


def test_naks_and_losses_have_one_line_per_receiver_in_the_same_colours(points: tuple[Point, ...]) -> None:
    asked, missed = naks(points), losses(points)
    assert names(asked) == ["alpha", "bravo", "lossy", "slow"]
    lines = {trace.name: trace.line.color for trace in missed.data if trace.mode == "lines"}
    assert lines == {trace.name: trace.line.color for trace in asked.data}
    (gone,) = [trace for trace in missed.data if trace.mode == "markers"]
    assert gone.name == "slow: lost"
    assert gone.marker.symbol == "triangle-down"


def test_latency_shows_the_four_percentiles_and_breaks_where_nothing_came(points: tuple[Point, ...]) -> None:
    quiet = Point(points[-1].time_ns + SECOND, 1.0)
    figure = over_time([*points, quiet], EVERYTHING)
    assert names(figure) == ["p50", "p99", "p99.9", "max"]
    for trace in figure.data:
        assert trace.y[-1] is None
        assert trace.y[0] == points[0].latency[EVERYTHING][trace.name] / 1000
        assert not trace.connectgaps
    assert figure.layout.yaxis.type == "log"


def test_the_spectrum_rises_and_its_last_value_is_the_largest(points: tuple[Point, ...]) -> None:
    figure = percentile_spectrum(points, "receiver")
    assert names(figure) == ["alpha", "bravo", "lossy", "slow"]
    for trace in figure.data:
        assert list(trace.x) == sorted(trace.x)
        assert list(trace.y) == sorted(trace.y)
        top = max(point.latency[f"receiver:{trace.name}"]["max"] for point in points)
        assert trace.y[-1] == pytest.approx(top / 1000)
    assert figure.layout.xaxis.ticktext[2:4] == ("99 %", "99.9 %")


def test_times_on_the_latency_axis_carry_the_unit_that_fits(points: tuple[Point, ...]) -> None:
    ticks = over_time(points, EVERYTHING).layout.yaxis
    assert set(ticks.ticktext) >= {"10 µs", "100 µs", "1 ms"}
    low, high = ticks.range
    assert low <= math.log10(min(points[0].latency[EVERYTHING].values()) / 1000)
    assert high >= math.log10(max(points[0].latency[EVERYTHING].values()) / 1000)


def test_a_large_fleet_is_drawn_as_its_worst_and_the_rest_is_counted() -> None:
    naks_by_name = {f"r{number:03}": float(number) for number in range(200)}
    point = Point(NOW_NS, 1.0, naks=naks_by_name, missed=naks_by_name)
    for chart in (naks, losses):
        figure = chart([point])
        assert names(figure) == [f"r{number}" for number in range(188, 200)]
        assert figure.layout.annotations[0].text == "188 quieter receivers are not drawn"


def _luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_host_has_its_longest_hiccups_and_one_mark_for_each_step_of_its_clock() -> None:
    rows = ((2_000_000, 0, 0), (None, 1, 0), (3_000_000, 0, -5 * SECOND), (4_000_000, 1, SECOND))  # one event is late
    points = [
        Point(NOW_NS + place * SECOND, 1.0, hosts={"alpha": HostRow("alpha", "vm", *row)})
        for place, row in enumerate(rows)
    ]
    line, marks = stood(points, ["alpha", "nobody"]).data
    assert list(line.y) == [2.0, None, 3.0, 4.0]
    assert list(marks.text) == ["clock set by -5.000 s", "clock set by +1.000 s"]
    assert list(marks.x) == [line.x[1], line.x[3]]


@pytest.mark.parametrize("ground", GROUNDS)
def test_every_line_stands_out_from_both_grounds(ground: str) -> None:
    behind = _luminance(GROUNDS[ground])
    for colour in (*theme.SERIES, *theme.PERCENTILES.values(), theme.GOOD, theme.WATCH, theme.BAD, theme.FAINT):
        light, dark = max(behind, _luminance(colour)), min(behind, _luminance(colour))
        assert (light + 0.05) / (dark + 0.05) >= 3.0, colour


def test_colours_depend_on_the_names_and_not_on_their_order() -> None:
    assert theme.colours(["b", "a", "b"]) == theme.colours(["a", "b"])
