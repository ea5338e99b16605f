"""The latency lab: curves, figures, uploaded logs, downloads, and the state of the page in its address."""

from __future__ import annotations

import base64
import csv
import gzip
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heliograph.dashboards.live import uploads as limits
from heliograph.dashboards.live.app import create, page_at
from heliograph.dashboards.live.curves import Curve, curves, to_csv, to_hlog
from heliograph.dashboards.live.figures import lab as charts
from heliograph.dashboards.live.pages import lab
from heliograph.dashboards.live.pages.lab import Selection, parts, selection
from heliograph.dashboards.live.series import EVERYTHING, Cells, Point
from heliograph.dashboards.live.uploads import MOST_BYTES, NotALog, Uploads, parse
from heliograph.monitor import _hdr
from heliograph.monitor.history.hlog import head, line_of, read_hlog
from heliograph.monitor.latency import cell_of, layout_of, percentile
from heliograph.monitor.model import Histogram
from tests.dashboards.test_live_page import text
from tests.dashboards.views import NOW_NS, SECOND, Fleet, checked, message

spectra = checked(charts.spectra)
jitter_strip = checked(charts.jitter_strip)

HIGHEST = 60_000_000_000
SLOW, ALPHA = "receiver:slow", "receiver:alpha"


def histogram(values: dict[int, int], digits: int = 3, highest: int = HIGHEST) -> Histogram:
    counts = np.zeros(layout_of(digits, 1, highest).cells, np.uint64)
    for value, count in values.items():
        counts[cell_of(value, digits, 1, highest)] += np.uint64(count)
    return Histogram(counts, 1, highest, digits)


def cells(values: dict[int, int]) -> Cells:
    found = histogram(values)
    index, counts = found.filled()
    return Cells(replace(found, counts=np.broadcast_to(np.uint64(0), (found.size,))), index.astype(np.int32), counts)


def point(second: int, values: dict[int, int], **more: Any) -> Point:
    return Point(NOW_NS + second * SECOND, 1.0, cells={EVERYTHING: cells(values)}, **more)


def line(values: dict[int, int], tag: str = "", start: int = 0, **how: int) -> str:
    found = histogram(values, **how)
    payload = _hdr.encode(found.counts, found.digits, found.lowest, found.highest, compress=True)
    return line_of(start * SECOND, SECOND, max(values), tag, payload)


@pytest.fixture
def running(fleet: Fleet) -> Fleet:
    for moment in (0, 1, 2, 3):
        fleet.at(moment)
    return fleet


# Curves


def test_a_window_takes_its_seconds_before_the_newest_sample() -> None:
    points = [point(second, {1000 * (second + 1): 1}) for second in range(10)]
    found, said = curves(points, [EVERYTHING], [(0, 3), (3, 6), (0, 60)])
    assert [curve.name for curve in found] == ["all, last 3 s", "all, 3 to 6 s ago", "all, last 60 s"]
    assert [curve.histogram.count for curve in found] == [3, 3, 10]
    assert [percentile(curve.histogram, 1.0) // 1000 for curve in found] == [10, 7, 10]
    assert found[1].start_ns == NOW_NS + 3 * SECOND
    assert found[1].length_ns == 3 * SECOND
    assert said == []


def test_a_window_without_values_is_a_note() -> None:
    found, said = curves([point(0, {5: 1})], [EVERYTHING, SLOW], [(30, 60)])
    assert found == []
    assert said == [
        "all, 30 to 60 s ago: no values were measured",
        "receiver slow, 30 to 60 s ago: no values were measured",
    ]
    assert curves([], [EVERYTHING], [(0, 60)])[0] == []


def test_recovered_messages_are_apart_and_add_up_to_all() -> None:
    recovered = {"recovered_cells": {EVERYTHING: cells({900_000: 3})}, "recovered_count": {EVERYTHING: 3}}
    points = [point(0, {1000: 97, 900_000: 3}, **recovered), point(1, {1000: 50}, recovered_count={EVERYTHING: 0})]
    (never, late), said = curves(points, [EVERYTHING], [(0, 60)], apart=True)
    assert (never.kind, never.histogram.count, percentile(never.histogram, 1.0)) == ("never lost", 147, 1000)
    assert (late.kind, late.histogram.count) == ("recovered", 3)
    assert [curve.labels[3] for curve in (never, late)] == ["total_latency_never_lost", "total_latency_recovered"]
    assert said == []


def test_recovered_messages_that_were_not_recorded_stay_together_and_a_note_says_so() -> None:
    for more in (
        {},
        {"recovered_cells": {EVERYTHING: cells({900: 2})}},
        {"recovered_cells": {EVERYTHING: cells({7: 3})}},
    ):
        points = [point(0, {1000: 97, 900: 3}, recovered_count={EVERYTHING: 3}, **more)]
        (whole,), said = curves(points, [EVERYTHING], [(0, 60)], apart=True)
        assert (whole.kind, whole.histogram.count) == ("", 100)
        assert "not apart, because not all receivers record them (level 3)" in said[0]


def test_a_fleet_that_recovered_nothing_has_only_never_lost_messages() -> None:
    (whole,), said = curves([point(0, {5: 1})], [EVERYTHING], [(0, 60)], apart=True)
    assert (whole.kind, said) == ("never lost", [])


def test_the_error_of_the_clocks_covers_the_whole_window_and_is_unknown_if_once_unknown() -> None:
    shifts: list[Any] = [(-50, 20), (-10, 90), None]
    points = [point(second, {5: 1}, shifts={EVERYTHING: shift}) for second, shift in enumerate(shifts)]
    assert curves(points[:2], [EVERYTHING], [(0, 60)])[0][0].shift == (-50, 90)
    assert curves(points, [EVERYTHING], [(0, 60)])[0][0].shift is None


def test_a_fleet_on_one_host_has_one_clock(running: Fleet) -> None:
    found, _ = curves(running.store.view.spectrum_points, [EVERYTHING, SLOW], [(0, 60)])
    assert [curve.shift for curve in found] == [(0, 0), (0, 0)]


# Figures


def test_the_spectrum_has_a_line_for_each_curve_and_dots_for_recovered_messages() -> None:
    one = Curve("a", histogram({1000: 90, 9000: 10}), NOW_NS, SECOND, EVERYTHING, "", (0, 0))
    figure = spectra([one, replace(one, name="b", kind="recovered", shift=None)])
    assert [trace.name for trace in figure.data] == ["a", "b"]
    assert [trace.line.dash for trace in figure.data] == ["solid", "dot"]
    assert figure.data[0].line.color != figure.data[1].line.color
    assert figure.data[0].x[0] == pytest.approx(1.0)  # 90 % is one nine: log10 of 1/(1 - 0.9)
    assert figure.data[0].y[-1] == pytest.approx(9.0, rel=2e-3)
    assert figure.layout.yaxis.type == "log"


def test_the_error_of_the_clocks_is_a_band_around_the_line() -> None:
    one = Curve("a", histogram({10_000: 90, 90_000: 10}), NOW_NS, SECOND, EVERYTHING, "", (-20_000, 5_000))
    low, high, line = spectra([one]).data
    assert high.fill == "tonexty"
    assert min(low.y) > 0  # the lowest value less 20 µs is below 0, which a logarithmic axis cannot show
    assert high.y[-1] - line.y[-1] == pytest.approx(5.0)
    assert line.y[-1] - low.y[-1] == pytest.approx(20.0)
    assert not low.showlegend


def test_no_more_lines_are_drawn_than_can_be_read() -> None:
    one = Curve("a", histogram({1000: 1}), NOW_NS, SECOND, EVERYTHING)
    assert len(spectra([one] * 40).data) == 12
    assert len(spectra([]).data) == 0


def test_a_hostile_name_is_text_in_the_figure() -> None:
    figure = spectra([Curve("<b>%{y}", histogram({1000: 1}), NOW_NS, SECOND)])
    assert figure.data[0].name == "&lt;b&gt;%&#123;y}"


def test_the_jitter_strip_is_p999_minus_p50_with_gaps(running: Fleet) -> None:
    points = running.store.view.points
    quiet = Point(points[-1].time_ns + SECOND, 1.0)
    (trace,) = jitter_strip([*points, quiet], [SLOW]).data
    found = points[0].latency[SLOW]
    assert trace.y[0] == pytest.approx((found["p99.9"] - found["p50"]) / 1000)
    assert trace.y[-1] is None
    assert "markers" in trace.mode
    assert len(jitter_strip([], [EVERYTHING]).data) == 0


# Downloads


def test_a_downloaded_log_holds_every_count_and_can_be_uploaded(running: Fleet, tmp_path: Path) -> None:
    found, _ = curves(running.store.view.spectrum_points, [EVERYTHING, SLOW, "topic:PRICES.A"], [(0, 60)])
    written = to_hlog(found)
    file = tmp_path / "x.hlog"
    file.write_text(written)
    assert len(list(read_hlog(file))) == 3
    log = parse(written.encode(), "x.hlog")
    assert log.notes == ()
    assert [curve.labels for curve in log.curves] == [curve.labels for curve in found]
    for read, curve in zip(log.curves, found, strict=True):
        assert np.array_equal(read.histogram.counts, curve.histogram.counts)


def test_a_csv_has_a_row_per_point_and_no_formula() -> None:
    one = Curve('=1+1,"x"', histogram({1000: 90, 9000: 10}), NOW_NS, SECOND, EVERYTHING, "", (-2000, 10))
    rows = list(csv.DictReader(io.StringIO(to_csv([one, replace(one, shift=None)]))))
    assert rows[0]["curve"].startswith("'=1+1")
    assert (rows[0]["fraction"], rows[0]["one_over_one_minus_fraction"], rows[0]["value_ns"]) == ("0.9", "10", "1000")
    assert (rows[0]["lowest_ns"], rows[0]["highest_ns"], rows[0]["values_up_to_it"]) == ("0", "1010", "90")
    assert (rows[1]["fraction"], rows[1]["one_over_one_minus_fraction"]) == ("1", "")
    assert (rows[2]["lowest_ns"], rows[2]["highest_ns"]) == ("", "")
    assert to_csv([]).count("\n") == 1


# Uploads


def test_the_intervals_of_each_tag_are_added() -> None:
    plain = head(NOW_NS) + line({1000: 5}, "a") + line({2000: 7}, "b") + line({1000: 1}, "a", 1)
    for data in (plain.encode(), gzip.compress(plain.encode())):
        found = parse(data, "app.hlog")
        assert [(curve.name, curve.histogram.count) for curve in found.curves] == [
            ("app.hlog: a", 6),
            ("app.hlog: b", 7),
        ]
        assert found.curves[0].start_ns == NOW_NS
        assert found.curves[0].length_ns == 2 * SECOND


def test_a_log_whose_range_grows_is_added_exactly() -> None:
    small, large = 1_000_000, 10_000_000_000
    for ranges in ((small, large), (large, small)):
        data = head(NOW_NS) + "".join(line({900_000: 2, 5: 1}, start=n, highest=high) for n, high in enumerate(ranges))
        (curve,) = parse(data.encode(), "x").curves
        assert curve.histogram.count == 6
        assert curve.histogram.highest == large
        assert curve.histogram.size == layout_of(3, 1, large).cells
        assert percentile(curve.histogram, 1.0) == pytest.approx(900_000, rel=2e-3)


def test_lines_that_cannot_be_read_are_named_and_the_others_shown() -> None:
    other = line({9: 1}, digits=2)
    data = head(NOW_NS) + line({9: 1}) + "nonsense\n" + "0,1,2,!!!\n" + other + "0,1,2,QUJD\n"
    found = parse(data.encode(), "app")
    assert found.curves[0].histogram.count == 1
    assert len(found.notes) == 4
    assert "app: line 7: it has 1 fields, not 4" in found.notes[0]
    assert found.notes[3] == "app: 1 more lines left out"


BAD = {
    "nothing": (b"", "no interval with values"),
    "text": (b"hello\nworld\n", "line 1: it has 1 fields"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "line 1: "),
    "too large": (b"#" * (MOST_BYTES + 1), "larger than 2 MiB"),
    "a gzip bomb": (gzip.compress(b"#\n" * (20 << 20)), "unpacks to more than 16 MiB"),
    "half a gzip": (gzip.compress(line({1: 1}).encode() * 50)[:60], "gzip cannot unpack it"),
    "no gzip after all": (b"\x1f\x8b" + b"x" * 50, "gzip cannot unpack it"),
    "only a head": (head(NOW_NS).encode(), "no interval with values"),
    "a huge histogram": (line({1: 1}, digits=5, highest=60_000_000).encode(), "more than 524,288 cells"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_is_no_log_is_refused_with_the_reason(case: str) -> None:
    data, reason = BAD[case]
    with pytest.raises(NotALog, match=reason):
        parse(data, "x")


def test_intervals_and_tags_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    many = head(NOW_NS) + "".join(line({1: 1}, f"t{number}") for number in range(20))
    found = parse(many.encode(), "x")
    assert len(found.curves) == 8
    assert "only the first 8 tags are shown" in found.notes[0]
    monkeypatch.setattr(limits, "_MOST_INTERVALS", 5)
    assert "only the first 5 intervals" in parse(many.encode(), "x").notes[0]
    monkeypatch.setattr(limits, "_MOST_WORK", 3 * 27_648)
    assert "only the first 4 intervals" in parse(many.encode(), "x").notes[0]


def url_of(data: bytes) -> str:
    return "data:application/octet-stream;base64," + base64.b64encode(data).decode()


def test_only_the_newest_logs_are_kept_and_equal_ones_once() -> None:
    found = Uploads()
    keys = [found.add(url_of(line({number + 1: 1}).encode()), f"/etc/{number}.hlog").key for number in range(20)]
    assert [log.key for log in found.all()] == keys[:3:-1]
    assert found.get(keys[0]) is None
    assert found.add(url_of(line({20: 1}).encode()), "19.hlog").key == keys[19]
    assert len(found.all()) == 16
    assert found.all()[0].name == "19.hlog"


@pytest.mark.parametrize(
    "contents", ["", "x", "data:;base64,", "data:;base64,!", "data:;base64,é", "http://x;base64,AAAA"]
)
def test_contents_that_are_no_file_are_refused(contents: str) -> None:
    with pytest.raises(NotALog):
        Uploads().add(contents, "x")


def test_a_file_too_large_is_refused_before_it_is_decoded() -> None:
    with pytest.raises(NotALog, match="larger than 2 MiB"):
        Uploads().add("data:;base64," + "A" * (3 << 20), "x")


# The page and its address


def test_the_default_is_everything_in_the_last_minute(running: Fleet) -> None:
    assert selection({}, running.store.view, Uploads()) == (Selection((EVERYTHING,), ((0, 60),)), [])


def test_an_address_selects_lines_windows_and_logs(running: Fleet) -> None:
    kept = Uploads()
    key = kept.add(url_of(line({7: 1}).encode()), "old").key
    values = {"lines": [SLOW, ALPHA, SLOW], "windows": ["0-10", "30-60"], "recovered": ["apart"], "logs": [key]}
    wanted = Selection((SLOW, ALPHA), ((0, 10), (30, 60)), True, (key,))
    assert selection(values, running.store.view, kept) == (wanted, [])
    assert selection({"logs": [key]}, running.store.view, kept)[0].lines == ()


IMPOSSIBLE = {
    "a line": ({"lines": ["topic:NOPE"]}, 'Line "topic:NOPE" has no latency at present.'),
    "markup": ({"lines": ["<script>"]}, 'Line "<script>" has no latency'),
    "a window": ({"windows": ["60-0"]}, 'Window "60-0" is not possible.'),
    "a window of digits of another script": ({"windows": ["٠-٦٠"]}, "is not possible."),
    "an endless window": ({"windows": ["0-9999"]}, "is not possible."),
    "no window": ({"windows": ["yesterday"]}, "is not possible."),
    "a mode": ({"recovered": ["sideways"]}, 'Recovered "sideways" is not possible.'),
    "a log": ({"logs": ["0123456789abcdef"]}, "is not kept any more; upload it again."),
    "a long value": ({"lines": ["x" * 5000]}, "x…"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_an_impossible_address_shows_the_default_and_says_so(case: str, running: Fleet) -> None:
    values, message = IMPOSSIBLE[case]
    found, said = selection(values, running.store.view, Uploads())
    assert found == Selection()
    assert len(said) == 1
    assert message in said[0]
    assert len(said[0]) < 200


def test_too_many_values_are_cut(running: Fleet) -> None:
    found, said = selection({"windows": [f"0-{number}" for number in range(1, 50)]}, running.store.view, Uploads())
    assert len(found.windows) == 12
    assert said == ["Only the first 12 windows are shown."]
    drawn = parts(running.store.view, replace(found, lines=(SLOW, ALPHA)), Uploads())
    assert len(drawn["lab-spectrum"].data) == 12
    assert "12 of 24 lines are not drawn; the table has them all." in text(drawn["lab-notes"])


def at(fleet: Fleet, path: str, search: str = "") -> Any:
    return page_at(path, search, fleet.store, Uploads(), lambda: fleet.now_ns)


def test_each_address_has_its_page(running: Fleet) -> None:
    assert "slow is falling behind" in text(at(running, "/"))
    shown = text(at(running, "/lab"))
    assert "Latency lab" in shown
    assert "all, last 60 s" in shown
    assert "one clock" in shown
    assert 'Page "/nowhere" does not exist' in text(at(running, "/nowhere"))
    assert "slow is falling behind" in text(at(running, "/nowhere"))


def test_the_address_of_the_first_page_has_its_selections(running: Fleet) -> None:
    def value(page: Any, name: str) -> Any:
        return next(item for item in page._traverse() if getattr(item, "id", None) == name).value

    page = at(running, "/", f"?groups={SLOW}&kind=topic")
    assert (value(page, "groups"), value(page, "kind")) == (SLOW, "topic")
    page = at(running, "/", "?groups=topic:NOPE&kind=sideways")
    assert (value(page, "groups"), value(page, "kind")) == (EVERYTHING, "receiver")
    assert 'Group "topic:NOPE" has no latency at present' in text(page)
    assert 'Kind "sideways" is not possible' in text(page)


@pytest.mark.parametrize("search", ["?" + "lines=a&" * 500, "?lines=" + "a" * 9000], ids=["many", "long"])
def test_an_address_that_is_too_long_shows_the_default(search: str, running: Fleet) -> None:
    assert "The address holds too many values." in text(at(running, "/lab", search))


def test_invisible_characters_of_an_address_are_shown(running: Fleet) -> None:
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text(at(running, "/lab", "?lines=%E2%80%AEevil"))


def test_a_page_before_the_first_sample_is_whole(fleet: Fleet) -> None:
    assert "Latency lab" in text(at(fleet, "/lab"))
    assert set(parts(fleet.store.view, Selection(), Uploads())) == set(lab.PLACES)


# Over HTTP


def call(fleet: Fleet, client: Any, output: str, inputs: dict[str, Any], state: dict[str, Any], trigger: str) -> Any:
    """Send a callback as the browser does; values by ``id.property``."""
    (found,) = [
        item
        for item in client.get("/_dash-dependencies").get_json()
        if item["output"].startswith(output) and not item.get("clientside_function")
    ]

    def listed(part: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        places = [(item["id"], item["property"]) for item in found[part]]
        return [{"id": name, "property": prop, "value": values.get(f"{name}.{prop}")} for name, prop in places]

    places = [place.rpartition(".") for place in found["output"].strip(".").split("...")]
    outputs = [{"id": name, "property": prop} for name, _, prop in places]
    body = {
        "output": found["output"],
        "outputs": outputs if found["output"].startswith("..") else outputs[0],
        "inputs": listed("inputs", inputs),
        "state": listed("state", state),
        "changedPropIds": [trigger],
    }
    answer = client.post("/_dash-update-component", json=body)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.get_json()["response"]


def test_a_log_goes_from_the_browser_into_the_chart_and_back_as_a_file(running: Fleet) -> None:
    client = create(running.store, lambda: running.now_ns).server.test_client()
    file = {"contents": url_of(line({7000: 3}).encode()), "name": "other.hlog"}
    sent = call(running, client, "..lab-logs.options", {"lab-file.data": file}, {}, "lab-file.data")
    (key,) = sent["lab-logs"]["value"]
    assert sent["lab-logs"]["options"] == [{"label": "other.hlog", "value": key}]
    values = {"lines": [SLOW], "windows": ["0-60"], "logs": [key]}
    drawn = message(client, "/lab", **values)
    lines = drawn["parts"]["lab-spectrum.figure"]["set"]["data"]
    assert [trace["name"] for trace in lines] == ["receiver slow, last 60 s", "other.hlog"]
    assert message(client, "/lab", drawn["drawing"], **values)["parts"] == {}
    chosen = {f"lab-{name}.value": value for name, value in values.items()}
    for kind, found in (("hlog", "[Histogram log format version 1.3]"), ("csv", "other.hlog,")):
        clicks = {f"lab-{kind}.n_clicks": 1}
        data = call(running, client, "lab-download.data", clicks, chosen, f"lab-{kind}.n_clicks")["lab-download"][
            "data"
        ]
        assert data["filename"].endswith(f".{kind}")
        assert found in data["content"]


@pytest.mark.parametrize(
    "file", [None, 7, {}, {"contents": "data:;base64,AAAA", "name": "<b>\u202e"}, {"contents": ["x"]}]
)
def test_an_upload_that_is_none_is_answered_in_words(file: Any, running: Fleet) -> None:
    client = create(running.store, lambda: running.now_ns).server.test_client()
    sent = call(running, client, "..lab-logs.options", {"lab-file.data": file}, {}, "lab-file.data")
    assert set(sent) == {"lab-said"}
    said = next(iter(sent["lab-said"].values()))
    assert "is not shown" in said or said == "no file"
    assert "\u202e" not in said


def test_a_selection_of_another_shape_is_the_default(running: Fleet) -> None:
    client = create(running.store, lambda: running.now_ns).server.test_client()
    drawn = message(client, "/lab", "x", lines="none", windows="9-1", recovered="3", logs=["", "{}"])
    lines = drawn["parts"]["lab-spectrum.figure"]["set"]["data"]
    assert [trace["name"] for trace in lines] == ["all, last 60 s"]
