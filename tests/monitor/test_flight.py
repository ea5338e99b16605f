"""What is made of flight recordings: curves, the unusual stretch, text, page, and the command that shows them."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from heliograph.monitor.cli import main
from heliograph.monitor.commands.clean import inspect
from heliograph.monitor.errors import UserError
from heliograph.monitor.flight.curves import curves
from heliograph.monitor.flight.detect import unusual
from heliograph.monitor.flight.files import find, split_name
from heliograph.monitor.flight.reader import read
from heliograph.monitor.flight.study import study_of
from heliograph.monitor.flight.text import findings_lines, moment, shown, sparkline
from heliograph.monitor.page.svg import Axis, Line, Mark, chart, nice_axis, outlined
from tests.flights import START_NS, FlightObject, FlightWriter
from tests.incidents import TICK, keep_incident
from tests.segments import SegmentEvent

pytestmark = pytest.mark.usefixtures("utc")

STREAM = {"instance": "feed", "stream": "0a0b0c0d0e0f.1"}
TOPIC = {"instance": "feed", "topic": "A", "stream": "0a0b0c0d0e0f.1"}


def flight_of(
    load: Callable[[int], int], ticks: int = 300, why: int | None = None, event: bool = False
) -> FlightWriter:
    """A recording in which `load(tick)` messages are sent a tick; one in ten is asked for again and repaired."""
    flight = FlightWriter()
    flight.tick(
        new={
            0: FlightObject("instance", {"instance": "feed"}, {"repair_packets": 7}),
            1: FlightObject("tx_stream", STREAM, {"rate_limit": 5000}),
            2: FlightObject("transmitter", TOPIC),
            3: FlightObject("receiver", TOPIC),
        }
    )
    sent = 0
    for tick in range(1, ticks):
        sent += load(tick)
        flight.tick(
            changed={
                0: {"messages_sent": sent, "naks_received": sent // 10, "repair_packets": 7 + sent // 10},
                2: {"queue_bytes": 100 * load(tick)},
                3: {"messages_delivered": sent, "total_latency": 20_000 * sent},
            },
            why=("tried" if tick == why else None),
            events=[SegmentEvent("packets_lost", "three <b>", slot=3)] if event and tick == why else (),
        )
    return flight


def steady(_: int) -> int:
    return 10


# ---- curves ----


def test_curves_are_rates_of_counters_and_values_of_gauges(tmp_path: Path) -> None:
    recording = read(flight_of(steady, 50).write(tmp_path / "f.flight"))
    by_key = {curve.spec.key: curve for curve in curves(recording)}
    assert np.isnan(by_key["messages_sent"].values[0])
    assert by_key["messages_sent"].values[1:] == pytest.approx(1000)
    assert by_key["repairs_sent"].values[1:] == pytest.approx(100)
    assert by_key["send_queue"].values[1:] == pytest.approx(1000)
    assert by_key["rate_limit"].values == pytest.approx(5000)
    assert by_key["latency"].values[1:] == pytest.approx(20_000)
    assert by_key["socket_drops"].is_flat
    assert by_key["lag"].is_flat


def test_an_object_that_comes_begins_at_nothing_and_one_that_goes_takes_nothing_away(tmp_path: Path) -> None:
    flight = FlightWriter()
    flight.tick(new={0: FlightObject("instance", {"instance": "feed"})})
    flight.tick()
    stream = FlightObject("rx_stream", STREAM, {"packets_missed": 4}, created_ns=START_NS + 11_000_000)
    flight.tick(new={1: stream})
    flight.tick(gone=[1])
    flight.tick(new={1: FlightObject("rx_stream", STREAM, {"packets_missed": 900}, generation=2, created_ns=1)})
    recording = read(flight.write(tmp_path / "f.flight"))
    gaps = next(curve for curve in curves(recording) if curve.spec.key == "gaps")
    # The second is older than the recording knew of: what it had counted did not happen in one tick.
    assert gaps.values[1:].tolist() == pytest.approx([0, 400, 0, 0])


# ---- the unusual ----


@pytest.mark.parametrize("seed", range(12))
def test_a_burst_at_a_random_moment_is_found(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    at = draw.randrange(20, 380)
    usual = draw.choice((0, 1, 20, 500))
    noise = [max(0, round(draw.gauss(usual, math.sqrt(usual)))) for _ in range(400)]
    burst = 10 * usual + 60
    flight = flight_of(lambda tick: noise[tick] + (burst if at <= tick < at + 2 else 0), 400)
    found = unusual(read(flight.write(tmp_path / "f.flight")))
    assert found is not None
    assert found.is_notable
    assert found.start - 0.01 <= (at - 1) * 0.01 <= (at + 1) * 0.01 <= found.end + 0.01
    assert found.end - found.start <= 0.06
    assert found.rate == pytest.approx(100 * (burst + usual), rel=0.2)


@pytest.mark.parametrize("seed", range(8))
def test_chance_is_not_notable(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    usual = draw.choice((3, 20, 500))
    noise = [max(0, round(draw.gauss(usual, math.sqrt(usual)))) for _ in range(600)]
    found = unusual(read(flight_of(lambda tick: noise[tick], 600).write(tmp_path / "f.flight")))
    assert found is not None
    assert not found.is_notable


def test_a_pause_is_as_unusual_as_a_burst(tmp_path: Path) -> None:
    found = unusual(read(flight_of(lambda tick: 0 if 100 <= tick < 110 else 100, 400).write(tmp_path / "f.flight")))
    assert found is not None
    assert found.score < -8
    assert found.start == pytest.approx(0.99, abs=0.02)
    assert found.end == pytest.approx(1.09, abs=0.02)


def test_nothing_is_unusual_where_nothing_happened(tmp_path: Path) -> None:
    assert unusual(read(flight_of(lambda _: 0).write(tmp_path / "f.flight"))) is None
    assert unusual(read(flight_of(steady, 5).write(tmp_path / "g.flight"))) is None


# ---- in words ----


def test_the_first_curve_the_order_and_the_object_behind_are_named(tmp_path: Path) -> None:
    study = study_of(read(keep_incident(tmp_path)))
    found = study.findings
    assert found is not None
    assert (found.first, found.last) == (TICK, TICK + 119)
    assert [(item.curve.spec.key, item.owner) for item in found.deviations] == [
        ("messages_sent", "topic PRICES.A"),
        ("bytes_sent", ""),
        ("send_queue", "topic PRICES.A"),
        ("naks_received", "receiver slow"),
        ("repairs_sent", ""),
        ("repair_queue", "stream 0a0b0c0d0e0f.1"),
        ("lag", "receiver slow"),
        ("rate_limit", "stream 0a0b0c0d0e0f.1"),
    ]
    assert found.deviations[-1].score < 0
    headline, first, *rest = findings_lines(study)
    assert headline == "Unusual from 22:13:23.000 to 22:13:24.190 (1.19 s): 8 of 8 curves deviate:"
    assert first == (
        "  messages sent rise at 22:13:23.000 to 41300 messages/s (usual 2000) for 40 ms, most of topic PRICES.A"
    )
    assert rest[-1] == (
        "  event receiver_slow at 22:13:23.300, 300 ms after messages sent: slow is slow: its buffer is full"
    )


@pytest.mark.parametrize("seed", range(8))
def test_chance_and_a_way_of_working_are_not_unusual(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    usual = draw.choice((1, 20, 500))
    noise = [max(0, round(draw.gauss(usual, math.sqrt(usual)))) for _ in range(600)]
    load = (lambda tick: noise[tick]) if seed % 2 else (lambda tick: 400 if tick % 20 == 0 else 0)
    study = study_of(read(flight_of(load, 600).write(tmp_path / "f.flight")))
    assert study.findings is None
    assert findings_lines(study)[0].startswith("Nothing unusual")


def test_peaks_and_dips_survive_when_points_are_left_out() -> None:
    values = np.full(10_000, 5.0)
    values[4321], values[8765], values[2000:2100] = 9.0, 1.0, np.nan
    xs, ys = outlined(np.arange(10_000), values, 100)
    assert len(xs) <= 100
    assert (xs[ys.index(9.0)], xs[ys.index(1.0)]) == (4321, 8765)
    assert xs == sorted(xs)
    xs, ys = outlined(np.arange(3), np.array([1.0, np.nan, 2.0]), 100)
    assert xs == [0, 1, 2]
    assert math.isnan(outlined(np.arange(100), np.full(100, np.nan), 10)[1][0])


# ---- text ----


def test_a_sparkline_shows_the_highest_of_each_stretch() -> None:
    assert sparkline(np.array([0.0, 0, 8, 0, float("nan"), float("nan")]), 3) == "▁█ "
    assert sparkline(np.zeros(4), 4) == "▁▁▁▁"
    assert sparkline(np.array([]), 4) == ""


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (float("nan"), "B", "-"),
        (2048.0, "B", "2.00 KiB"),
        (2048.0, "B/s", "2.00 KiB/s"),
        (1500.0, "ns", "1.50 µs"),
        (10_000.0, "millionths", "1.00 %"),
        (1234567.0, "messages/s", "1.23 M"),
    ],
)
def test_values_are_shown_in_their_unit(value: float, unit: str, text: str) -> None:
    assert shown(value, unit) == text


def test_a_moment_is_cut_not_rounded() -> None:
    assert moment(1_700_000_000_999_999_999) == "22:13:20.999"


# ---- the command ----


@pytest.fixture
def burst(segments: Path) -> Path:
    """A kept recording with a burst in it, triggered by an event after it."""
    flight = flight_of(lambda tick: 400 if 150 <= tick < 152 else 10, 300, why=200, event=True)
    trigger_ns = START_NS + 200 * 10_000_000
    return flight.write(segments / "feed.4711.1.flight", state=3, kept=1, trigger_ns=trigger_ns, why="tried")


def test_the_command_shows_what_matters(burst: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flight", str(burst)]) == 0
    out = capsys.readouterr().out
    assert "feed (process" in out
    assert "recording 1, reason: tried" in out
    assert re.search(r"most unusual: \d+(\.\d)? ms from 22:13:21\.4\d\d", out)
    for curve in ("messages sent", "submit queue", "NAKs received", "repairs sent"):
        assert re.search(rf"^{curve} .*[▂-█]", out, re.MULTILINE)
    assert "packets_lost: three <b>" in out
    assert "the most unusual period" in out  # kept by hand: where to look is the burst
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", out)


def test_the_moment_that_matters_can_be_named(burst: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for around, marked in (
        ("trigger", "22:13:22.000"),
        ("22:13:20.5", "22:13:20.500"),
        ("0.7", "22:13:20.700"),
        ("-1", "22:13:21.990"),
    ):
        assert main(["flight", str(burst), f"--around={around}", "--rows", "3"]) == 0
        line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(">"))
        assert marked in line


def test_json_has_everything(burst: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flight", "feed.4711.1.flight", "--json", "--from", "1", "--to", "2"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["instance"] == "feed"
    assert out["trigger"]["why"] == "tried"
    assert out["burst"]["notable"]
    assert out["unusual"]["deviations"][0]["curve"] == "messages_sent"
    assert out["unusual"]["deviations"][0]["start_s"] == pytest.approx(1.5)
    assert out["burst"]["start_s"] == pytest.approx(1.49, abs=0.015)
    assert len(out["ticks"]["seconds"]) == 101
    assert max(out["curves"]["messages_sent"]["values"]) == pytest.approx(40_000)
    assert [event["text"] for event in out["events"]] == ["three <b>"]
    assert main(["flight", str(burst), "--json", "--cells", "*.queue_bytes"]) == 0
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert (cell["scope"], cell["cell"], cell["labels"]["topic"]) == ("transmitter", "queue_bytes", "A")
    assert max(cell["values"]) == 40_000


VOID = {"meta"}


class Page(HTMLParser):
    """Checks that tags close in order, and collects what a browser would fetch or run."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.tags: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_one_file_that_fetches_and_runs_nothing(
    burst: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "burst.html"
    assert main(["flight", str(burst), "--html", str(out)]) == 0
    assert "wrote" in capsys.readouterr().err
    html = out.read_text(encoding="utf-8")
    page = Page(html)
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not any(name in ("src", "href") or name.startswith("on") for name, _ in page.attributes)
    assert "url(" not in html
    assert page.tags.count("svg") >= 8
    assert "three &lt;b&gt;" in html
    assert 'class="mark burst"' in html
    assert 'class="mark trigger"' in html
    assert "prefers-color-scheme: dark" in html
    assert "Unusual from 22:13:21.500" in html
    assert page.tags.count("details") >= 5  # a table for each chart
    policy = next(value for name, value in page.attributes if name == "content" and "default-src" in value)
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/]{43}='; base-uri 'none'; form-action 'none'", policy
    )


def test_the_ring_of_an_instance_is_found_by_its_name(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flight_of(steady, 20).write(segments / "feed.4711.flight")
    flight_of(steady, 20).write(segments / "feed.4711.3.flight", state=3, kept=3)
    flight_of(steady, 20).write(segments / "a.b.12.flight")
    assert find("feed", segments).name == "feed.4711.flight"
    assert find("a.b", segments).name == "a.b.12.flight"
    flight_of(steady, 20).write(segments / "feed.4712.flight")
    with pytest.raises(UserError, match="several recordings match"):
        find("feed", segments)
    with pytest.raises(UserError, match=r"recording instances: a\.b, feed"):
        find("food", segments)
    assert main(["flight", "--list"]) == 0
    assert re.search(r"feed\.4711\.3\.flight +kept", capsys.readouterr().out)
    assert main(["flight", "--list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["recordings"]
    assert {row["file"]: row["state"] for row in rows}["a.b.12.flight"] == "ring"


def test_names_of_files_tell_instance_process_and_number() -> None:
    assert split_name(Path("feed.12.flight")) == ("feed", 12, 0)
    assert split_name(Path("feed.12.3.flight")) == ("feed", 12, 3)
    assert split_name(Path("a.b.12.flight")) == ("a.b", 12, 0)
    assert split_name(Path("feed.flight")) is None


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "name a recording or an instance"),
        (["nobody"], "'nobody' is neither a file nor a recording instance"),
        (["FILE", "--cells", "*"], "--cells needs --json"),
        (["FILE", "--around", "noon"], "'noon' is not a time"),
        (["FILE", "--from", "2", "--to", "1"], "--from is after --to"),
        (["FILE", "--html", "/nowhere/at/all.html"], "cannot be written"),
    ],
)
def test_mistakes_are_named(burst: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], why: str) -> None:
    assert main(["flight", *(str(burst) if word == "FILE" else word for word in arguments)]) == 2
    assert why in capsys.readouterr().err


def test_a_damaged_recording_is_read_and_says_so(burst: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = burst.read_bytes()
    burst.write_bytes(data[: len(data) // 2])
    assert main(["flight", str(burst)]) == 1
    assert "damaged: the file is cut off" in capsys.readouterr().out


# ---- clean ----


def test_clean_takes_rings_of_the_dead_and_leaves_what_was_kept(
    segments: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flight_of(steady, 5).write(segments / "here.1.flight")
    dead = FlightWriter(pid=4_000_000)
    dead.tick()
    dead.write(segments / "gone.4000000.flight")
    dead.write(segments / "gone.4000000.1.flight", state=3, kept=1)
    dead.write(segments / "gone.4000000.2.flight", state=0, kept=2)  # its process died of it
    found = {item.path.name: item.remove for item in inspect(segments, pause=lambda _: None, process_start=starts)}
    assert found == {
        "here.1.flight": False,
        "gone.4000000.flight": True,
        "gone.4000000.1.flight": True,
        "gone.4000000.2.flight": True,
    }
    assert main(["clean"]) == 0
    assert "flight recordings kept: 1" in capsys.readouterr().out
    assert (segments / "gone.4000000.1.flight").exists()
    assert not (segments / "gone.4000000.flight").exists()
    assert main(["clean", "--recordings"]) == 0
    assert not (segments / "gone.4000000.1.flight").exists()


def starts(pid: int) -> int | None:
    return None if pid == 4_000_000 else START_NS - 1


# ---- charts ----


def test_a_chart_breaks_its_line_where_nothing_is_known() -> None:
    line = Line("a <b>", [0, 1, 2, 3, 4], [1, 2, float("nan"), 3, 4])
    drawn = chart([line], Axis(0, 4, [(0, "0 s")]), nice_axis(4), "what & why", marks=[Mark(1, 2, "gap", "g<")])
    assert drawn.count("M") == 2
    assert "nan" not in drawn
    assert "a &lt;b&gt;" in drawn
    assert "what &amp; why" in drawn


@pytest.mark.parametrize("top", [0, 1e-6, 0.7, 1, 9, 12345, 5e9])
def test_an_axis_reaches_its_top_with_few_round_steps(top: float) -> None:
    axis = nice_axis(top)
    assert axis.high >= top
    assert 2 <= len(axis.ticks) <= 7
    assert axis.ticks[0] == (0.0, "0")
