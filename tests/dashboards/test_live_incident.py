"""The page of a flight recording: files and uploads, chart, words, cursor, and its state in the address."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heliograph.dashboards.live import recordings
from heliograph.dashboards.live.app import create, page_at
from heliograph.dashboards.live.figures import incident as charts
from heliograph.dashboards.live.figures.incident import POINTS, shown_curves
from heliograph.dashboards.live.pages.incident import PLACES, SPANS, Choice, choice, parts, span_of, tick_of
from heliograph.dashboards.live.recordings import MOST_BYTES, NotARecording, Shelf
from heliograph.dashboards.live.uploads import Uploads
from heliograph.engine.catalogue import times
from heliograph.monitor.flight.reader import Limits
from heliograph.monitor.flight.study import Study
from tests import incidents
from tests.dashboards.test_live_lab import call
from tests.dashboards.test_live_page import text
from tests.dashboards.views import SECOND, Fleet, checked
from tests.flights import START_NS, FlightObject, FlightWriter
from tests.incidents import KEPT, TICK, TICKS, keep_incident

incident = checked(charts.incident)

EVIL = '<b>"\N{RIGHT-TO-LEFT OVERRIDE}%{x}evil'


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    times.show(True)
    yield
    times.show(False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return keep_incident(tmp_path_factory.mktemp("recordings")).parent


@pytest.fixture(scope="module")
def shelf(folder: Path) -> Shelf:
    return Shelf([folder])


@pytest.fixture
def study(shelf: Shelf) -> Study:
    return shelf.get(KEPT).study


def sent(data: bytes) -> str:
    return "data:application/octet-stream;base64," + base64.b64encode(data).decode()


def at(fleet: Fleet, shelf: Shelf, search: str = "") -> Any:
    return page_at("/incident", search, fleet.store, Uploads(), lambda: fleet.now_ns, None, shelf)


def milliseconds(tick: int) -> float:
    return START_NS // 1_000_000 + 10.0 * tick


def by_id(page: Any) -> dict[str, Any]:
    return {getattr(item, "id", ""): item for item in page._traverse()}


# The shelf


def test_only_files_that_a_directory_lists_can_be_read(folder: Path, shelf: Shelf, tmp_path: Path) -> None:
    outside = incidents.incident("secret").write(tmp_path / "secret.1.flight")
    (folder / "notes.txt").write_text("no recording")
    for key in (str(outside), f"../{tmp_path.name}/secret.1.flight", "notes.txt", "1:" + KEPT, "", "upload-0"):
        with pytest.raises(NotARecording, match="it is not there"):
            shelf.get(key)
    both = Shelf([folder, tmp_path, tmp_path / "absent"])
    assert [key for key, _ in both.options()] == [KEPT, "2:secret.1.flight"]
    assert both.get("2:secret.1.flight").study.recording.header.name == "secret"


def test_a_directory_that_others_can_write_to_is_not_read_and_named(tmp_path: Path) -> None:
    keep_incident(tmp_path)
    tmp_path.chmod(0o777)
    held = Shelf([tmp_path])
    assert held.options() == []
    assert "other users may write in it" in held.trouble


def test_a_file_is_decoded_once_and_again_when_it_changes(tmp_path: Path) -> None:
    now = START_NS
    held = Shelf([tmp_path], clock=lambda: now)
    path = keep_incident(tmp_path)
    first = held.get(KEPT)
    assert held.get(KEPT) is first
    assert held.opened(KEPT) is first
    os.utime(path, ns=(1, 1))
    assert held.get(KEPT) is not first
    ring = incidents.incident(pid=4712).write(tmp_path / "feed.4712.flight").name
    first = held.get(ring)
    now += 5 * SECOND
    assert held.opened(ring) is first
    now += 6 * SECOND
    assert held.get(ring) is first  # the cursor moves over what is shown
    again = held.opened(ring)
    assert again is not first
    assert again.is_ring
    assert held.get(ring, oldest=0.0) is not again
    (tmp_path / ring).unlink()
    with pytest.raises(NotARecording, match="it is not there"):
        held.get(ring)


@pytest.mark.parametrize(
    ("contents", "why"),
    [
        ("data:;base64," + "A" * (MOST_BYTES * 4 // 3 + 8), "larger than 8 MiB"),
        ("data:;base64,\N{EURO SIGN}", "did not send a file"),
        ("http://localhost/", "did not send a file"),
        (sent(b""), "it is not a flight recording"),
        (sent(b"HELIOFLT"), "it is cut off within its header"),
        (sent(os.urandom(4096)), "it is not a flight recording"),
        (sent(incidents.incident().data()[:600]), "it is cut off within its directory"),
        (sent(incidents.incident().data(version=9)), "it has version 9; this Heliograph reads version 1"),
    ],
)
def test_what_is_no_recording_is_refused_with_the_reason(contents: str, why: str) -> None:
    held = Shelf()
    with pytest.raises(NotARecording, match=why):
        held.add(contents, "x.flight")
    assert held.options() == []


def test_a_truncated_upload_is_shown_as_far_as_it_goes_and_says_so() -> None:
    held = Shelf()
    data = incidents.incident().data()
    found = held.add(sent(data[: len(data) // 10]), f"../../{EVIL}.flight")
    assert "cut off" in found.study.recording.damage[0]
    assert "damaged: the file is cut off" in text(parts(found, Choice(found.key))["inc-verdict"])
    assert held.get(found.key) is found
    assert "/" not in found.name


def test_memory_and_time_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "LIMITS", Limits(ticks=100, values=1 << 20))
    found = Shelf().add(sent(incidents.incident().data()), "long.flight").study.recording
    assert len(found.numbers) == 100
    assert "more than is read here" in found.damage[0]
    assert not any(track.changes for track in found.tracks)  # the curves suffice
    monkeypatch.setattr(recordings, "LIMITS", Limits(ticks=1 << 20, values=2_000))
    assert len(Shelf().add(sent(incidents.incident().data()), "busy.flight").study.recording.numbers) < 400
    monkeypatch.setattr(recordings, "LIMITS", Limits(ticks=1 << 20, values=1 << 20))
    monkeypatch.setattr(recordings, "_MOST_WORK", 3_000)
    with pytest.raises(NotARecording, match="6 objects over 600 ticks, more than this page evaluates"):
        Shelf().add(sent(incidents.incident().data()), "wide.flight")
    monkeypatch.setattr(recordings, "_MOST_WORK", 1 << 20)
    monkeypatch.setattr(recordings, "_MOST_TICKS_KEPT", 2 * TICKS)
    held = Shelf()
    keys = [held.add(sent(incidents.incident(name).data()), f"{name}.flight").key for name in "abc"]
    assert [key for key, _ in held.options()] == keys[:0:-1]


# The chart


def test_a_spike_of_one_tick_is_drawn_whatever_the_length(tmp_path: Path) -> None:
    flight = FlightWriter()
    flight.tick(new={0: FlightObject("instance", {"instance": "feed"}, {"memory_used": 1000})})
    for tick in range(1, 5000):
        flight.tick(changed={0: {"memory_used": {777: 5_000_000, 3333: 1}.get(tick, 1000)}})
    flight.write(tmp_path / "feed.1.flight")
    item = Shelf([tmp_path]).get("feed.1.flight")
    drawing = incident(item.study, 0, 4999, 0)
    (line,) = [trace for trace in drawing.data if trace.mode == "lines"]
    assert len(line.x) <= POINTS
    values = np.array(line.y) * 1024
    assert values.max() == pytest.approx(5_000_000)
    assert values.min() == pytest.approx(1)
    assert line.x[int(values.argmax())] == milliseconds(777)


def test_all_curves_share_one_axis_with_events_gaps_stretch_and_cursor(study: Study) -> None:
    drawing = incident(study, 0, TICKS - 1, TICK)
    lines = {trace.name: trace for trace in drawing.data if trace.mode == "lines" and trace.name}
    assert len(lines) == len(shown_curves(study)) == 8
    assert {trace.xaxis for trace in drawing.data} == {None}
    titles = [note.text for note in drawing.layout.annotations]
    assert titles[:3] == ["Events", "Load, messages/s", "Throughput, KiB/s"]
    assert {"unusual", "3 missing"} <= set(titles)
    cursor, *rest = drawing.layout.shapes
    assert cursor.x0 == milliseconds(TICK)
    assert len([shape for shape in rest if shape.type == "line"]) == 2  # events
    marks = {trace.name: trace.text[0] for trace in drawing.data if trace.mode == "markers"}
    assert marks["event, warning"] == "22:13:23.300 receiver_slow: slow is slow: its buffer is full"
    assert "kept: receiver_slow" in marks["trigger"]
    close = incident(study, TICK, TICK + 20, TICK)
    assert {trace.mode for trace in close.data if trace.name == "Load: messages sent"} == {"lines+markers"}
    assert drawing.to_json() == incident(study, 0, TICKS - 1, TICK).to_json()


def test_spans_hold_the_cursor_and_stay_while_it_moves_a_little(study: Study) -> None:
    seconds = study.recording.times
    for span in SPANS:
        for cursor in (0, 1, TICK, TICKS - 1):
            first, last = span_of(study, span, cursor)
            assert 0 <= first < last < TICKS
            assert span in ("unusual", "trigger") or first <= cursor <= last
    assert span_of(study, "whole", TICK) == (0, TICKS - 1)
    first, last = span_of(study, "unusual", 0)
    assert first < TICK < TICK + 119 < last
    first, last = span_of(study, "1", TICK)
    assert seconds[last] - seconds[first] == pytest.approx(1.0, abs=0.02)
    assert span_of(study, "1", TICK + 10) == (first, last)
    assert span_of(study, "1", TICK + 60) != (first, last)


def test_the_cursor_is_the_tick_with_the_number_or_the_nearest(study: Study) -> None:
    numbers = study.recording.numbers
    assert tick_of(study, None) == TICK
    assert numbers[tick_of(study, 311)] == 311
    assert tick_of(study, 0) == 0
    assert tick_of(study, 10**15) == TICKS - 1


# The page


def test_the_page_says_in_words_what_happened_first(fleet: Fleet, shelf: Shelf) -> None:
    page = by_id(at(fleet, shelf, f"?recording={KEPT}&span=unusual&at={TICK + 12}"))
    said = text(page["inc-verdict"])
    assert said.startswith("Unusual from 22:13:23.000 to 22:13:24.190 (1.19 s): 8 of 8 curves deviate")
    assert (
        "messages sent rise at 22:13:23.000 to 41300 messages/s (usual 2000) for 40 ms, most of topic PRICES.A" in said
    )
    assert "NAKs received rise at 22:13:23.080, 80 ms after messages sent, to 6100 packets/s" in said
    assert "for 1.12 s, most of receiver slow" in said
    assert "rate limit falls at 22:13:23.200, 200 ms after messages sent" in said
    assert "event receiver_slow at 22:13:23.300, 300 ms after messages sent: slow is slow" in said
    assert "median absolute deviation" in said
    assert text(page["inc-when"]) == ("22:13:23.120, +3.120 s, tick 312; 0.120 s after the unusual stretch begins")
    slider = page["inc-at"]
    assert (slider.type, slider.min, slider.max, slider.step, slider.value) == ("range", 0, TICKS - 1, 1, TICK + 12)
    assert "NAKs received 6000 packets/s 6000 packets/s 0 packets/s deviates" in text(page["inc-values"])
    assert "Recovery: NAKs received 0 packets/s" in text(page["inc-axis-twin"])
    assert "receiver_slow" in text(page["inc-events"])
    assert "Missing ticks 3" in text(page["inc-tiles"])


def test_the_address_holds_recording_span_and_cursor(fleet: Fleet, shelf: Shelf) -> None:
    asked = {"recording": [KEPT], "span": ["1"], "at": ["42"]}
    assert choice(asked, shelf) == (Choice(KEPT, "1", 42), [])
    wrong, said = choice({"recording": ["/etc/passwd"], "span": ["∞"], "at": ["-1"]}, shelf)
    assert wrong == Choice()
    assert said == [
        'Recording "/etc/passwd" is not there, or not any more; upload it again.',
        'Span "∞" is not possible.',
        'Tick "-1" is not a number.',
    ]
    shown = text(at(fleet, shelf, "?recording=/etc/passwd"))
    assert "Choose a recording, or upload one" in shown
    assert "No recording is in reach" in text(at(fleet, Shelf()))
    assert set(parts(shelf.get(KEPT), Choice(KEPT))) == set(PLACES)


def test_a_quiet_or_broken_recording_leaves_the_page_whole(fleet: Fleet, tmp_path: Path) -> None:
    flight = FlightWriter()
    flight.tick(new={0: FlightObject("instance", {"instance": "feed"})})
    flight.write(tmp_path / "one.1.flight")
    (tmp_path / "bad.1.flight").write_bytes(b"no")
    with (tmp_path / "huge.1.flight").open("wb") as file:
        file.truncate(1 << 30)
    held = Shelf([tmp_path])
    assert "Nothing unusual" in text(at(fleet, held, "?recording=one.1.flight&span=0.2"))
    assert "bad.1.flight is not shown: bad.1.flight is not a flight recording" in text(
        at(fleet, held, "?recording=bad.1.flight")
    )
    assert "huge.1.flight has 1,024 MiB, more than this page reads" in text(at(fleet, held, "?recording=huge.1.flight"))


def test_hostile_names_are_text_everywhere(fleet: Fleet) -> None:
    flight = incidents.incident(why=EVIL)
    held = Shelf()
    item = held.add(sent(flight.data(state=3, kept=1, why=EVIL)), f"{EVIL}.flight")
    recording = item.study.recording
    recording.events = [(place, replace(event, name=EVIL, text=EVIL)) for place, event in recording.events]
    recording.damage.append(EVIL)
    page = at(fleet, held, f"?recording={item.key}")
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text(page)
    drawing = json.dumps(by_id(page)["inc-axis"].figure.to_plotly_json())
    assert "evil" in drawing
    for part in ("<b>", "\\u003cb", "\\u202e", "%{x}"):
        assert part not in drawing


def test_the_callbacks_answer_over_http(fleet: Fleet, shelf: Shelf) -> None:
    fleet.at(0)
    client = create(fleet.store, lambda: fleet.now_ns, shelf=shelf).server.test_client()
    chosen = {"inc-recording.value": KEPT, "inc-span.value": "1", "inc-at.value": str(TICK)}
    first = call(fleet, client, "..inc-verdict", chosen, {}, "inc-span.value")
    assert first["inc-axis"]["figure"]["data"]
    shown = {"inc-drawn.data": first["inc-drawn"]["data"]}
    moved = call(fleet, client, "..inc-verdict", {**chosen, "inc-at.value": TICK + 1}, shown, "inc-at.value")
    assert "inc-axis" not in moved
    assert "22:13:23.010" in moved["inc-when"]["children"]
    assert moved["inc-line"]["data"]["x"] == milliseconds(TICK + 1)
    far = call(fleet, client, "..inc-verdict", {**chosen, "inc-at.value": TICK + 90}, shown, "inc-at.value")
    assert far["inc-axis"]["figure"]["data"]
    odd = {"inc-recording.value": {"a": 1}, "inc-span.value": [], "inc-at.value": "x"}
    assert "is not shown: it is not there" in json.dumps(call(fleet, client, "..inc-verdict", odd, {}, "inc-at.value"))
    gone = call(fleet, client, "..inc-verdict", {**chosen, "inc-recording.value": ""}, shown, "inc-recording.value")
    assert "Choose a recording" in json.dumps(gone["inc-verdict"])

    upload = {"inc-file.data": {"contents": sent(incidents.incident("own").data()), "name": "own.flight"}}
    added = call(fleet, client, "..inc-recording.options@", upload, {}, "inc-file.data")
    key = added["inc-recording"]["value"]
    assert "own.flight is shown." in json.dumps(added)
    refused = call(
        fleet,
        client,
        "..inc-recording.options@",
        {"inc-file.data": {"contents": "x", "name": "<i>"}},
        {},
        "inc-file.data",
    )
    assert "<i> is not shown: the browser did not send a file." in json.dumps(refused)
    saved = call(fleet, client, "..inc-download", {"inc-export.n_clicks": 1}, {"inc-recording.value": key}, "x")
    assert saved["inc-download"]["data"]["filename"] == "own.html"
    assert saved["inc-download"]["data"]["content"].startswith("<!DOCTYPE html>")
