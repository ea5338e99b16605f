"""L1, L4: text that came from outside does no harm in any output; one test goes through every output.

What a name may do to a reader: move the cursor or change colours (C0, C1, DEL), begin a line of its own, turn the
direction of reading, hide, be markup or a script, be a template or a formula. Every output is given the same snapshots,
whose every name, label, reason and event text holds all of it.
"""

from __future__ import annotations

import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from heliograph.monitor.cli import main
from heliograph.monitor.model import InstanceState, ObjectState, Snapshot
from heliograph.monitor.sampler import Sampler
from tests.monitor.conftest import read_moments
from tests.monitor.test_module_process import EXAMPLE, Compile, compiled  # noqa: F401 - a fixture

PARTS: Mapping[str, str] = {
    "a formula": "=cmd|' /C calc'!A1",
    "an escape sequence": "\x1b]0;owned\x07\x1b[2J\x1b[31m",
    "C0": "".join(map(chr, range(0x20))),
    "DEL": "\x7f",
    "C1": "".join(map(chr, range(0x80, 0xA0))),
    "directions": "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c",
    "separators": "\u2028\u2029",
    "what cannot be seen": "\u200b\u200c\u200d\u2060\ufeff\u00ad\U000e0041",
    "halves of surrogates": "\udfff\ud800 ",
    "a script": "<script>alert(1)</script>",
    "an attribute": "\"'><img src=x onerror=alert(1)>",
    "a template": "%{y} %{customdata} {{name}} ${name}",
    "markup of Plotly": "<b>bold</b><a href='javascript:alert(1)'>go</a><br>$x^2$",
    "lines of a scrape": '"} 1\n# TYPE fake counter\nfake_total 1\r\nheliograph: all is well',
    "a backslash": "\\u0041\\n",
}
NASTY = "".join(PARTS.values())


@cache
def _harmless(char: str) -> bool:
    return char == "\n" or not unicodedata.category(char).startswith(("C", "Zl", "Zp"))


def is_harmless(text: str) -> bool:
    """Whether a terminal shows it as it is; its lines are its own."""
    return all(map(_harmless, set(text)))


def named(text: str, which: str) -> str:
    return f"{text}{which}"


def _labels(labels: Mapping[str, str], which: str) -> dict[str, str]:
    kept = {"kind", "transport", "role"}
    return {key: value if key in kept else named(value, which) for key, value in labels.items()}


def _object(item: ObjectState, which: str) -> ObjectState:
    return replace(item, labels=_labels(item.labels, which), info=_labels(item.info, which))


def _instance(owner: InstanceState, which: str) -> InstanceState:
    return replace(
        owner,
        name=named(owner.name, which),
        reason=named(owner.reason, which),
        path=named(owner.path, which),
        objects=tuple(_object(item, which) for item in owner.objects),
    )


def hostile(snapshot: Snapshot, which: str = NASTY) -> Snapshot:
    """The same, with everything that came from outside made hostile."""
    events = tuple(
        replace(
            event,
            instance=named(event.instance, which),
            labels=_labels(event.labels, which),
            text=named(event.text, which),
        )
        for event in snapshot.events
    )
    return replace(snapshot, instances=tuple(_instance(item, which) for item in snapshot.instances), events=events)


@dataclass
class Given:
    """What a output is tested with."""

    before: Snapshot
    now: Snapshot
    folder: Path
    capsys: pytest.CaptureFixture[str]
    sound: tuple[Snapshot, Snapshot]
    """Both without halves of surrogates, which cannot be passed to C."""
    example: Path
    """The example of a module in C, compiled."""

    def command(self, *words: str) -> str:
        """Standard output and error of a command."""
        main([word.replace("FOLDER", str(self.folder)) for word in words])
        out, err = self.capsys.readouterr()
        return out + err


# Doors of text


def _command(*words: str) -> Callable[[Given], str]:
    return lambda given: given.command(*words)


def _log_module(given: Given) -> str:
    from heliograph.monitor.log import LogModule

    stream = io.StringIO()
    module = LogModule(stream=stream)
    module.snapshot(given.before)
    module.snapshot(given.now)
    for event in given.now.events:
        module.event(event)
    return stream.getvalue()


def _c_module(given: Given) -> str:
    from heliograph.monitor.modules import open_module
    from heliograph.monitor.modules.feed import Feed

    file = given.folder / "told.jsonl"
    lane = open_module(f"{given.example}={file}")
    feed = Feed()
    for snapshot in given.sound:
        feed.give(snapshot, [lane])
    lane.close()
    return file.read_text(encoding="utf-8")


def _console(given: Given) -> str:
    from heliograph.exporters.console import ConsoleExporter
    from heliograph.monitor.model import Health

    stream = io.StringIO()
    exporter = ConsoleExporter(stream)
    exporter.publish(given.before)
    ended = [replace(item, health=Health.STALE) for item in given.now.instances]
    exporter.publish(replace(given.now, instances=tuple(ended)))
    return stream.getvalue()


def _failure(given: Given) -> str:
    from heliograph.exporters.loop import ExportLoop
    from heliograph.monitor.errors import UserError

    def sample() -> Snapshot:
        raise UserError(f"cannot read {NASTY}")

    ExportLoop(sample, [], 1.0, lambda _: True).round()
    from heliograph.monitor.modules.lane import to_stderr

    to_stderr(f"module {NASTY} failed")
    return given.capsys.readouterr().err


def _hdr_log(given: Given) -> str:
    from heliograph.exporters.hdrlog import HdrLogExporter

    file = given.folder / "latency.hlog"
    exporter = HdrLogExporter(file, interval=0.1, backlog=True)
    exporter.publish(given.before)
    exporter.publish(given.now)
    exporter.close()
    return file.read_text(encoding="utf-8")


def _collected(as_json: bool) -> Callable[[Given], str]:
    def output(given: Given) -> str:
        from heliograph.monitor.collector.account import Account, CollectorStats, HostState
        from heliograph.monitor.collector.origin import OriginStats
        from heliograph.monitor.commands.collect import account_fields, status

        state = HostState(1, NASTY, NASTY, False, NASTY, 1.0, 1.0, 0, 1, OriginStats(), {NASTY: 1})
        account = Account(CollectorStats(refused_by={"damaged": 1}), (state,))
        empty = replace(given.now, instances=())
        if as_json:
            from heliograph.engine.catalogue.outside import json_text

            return json_text(account_fields(empty, account, NASTY)) + "\n"
        return "\n".join(status(empty, account, NASTY))

    return output


class _Message:
    topic = stream = NASTY
    number, submit_ns, receive_ns, recovered = 1, 2, 3, False
    data = NASTY.encode("utf-8", "surrogatepass")


class _Sound(_Message):
    data = NASTY.replace(PARTS["halves of surrogates"], "").encode()


def _message(form: str, kind: type[_Message]) -> Callable[[Given], str]:
    def output(given: Given) -> str:
        from heliograph.engine.commands import FORMATS

        shown = FORMATS[form]
        assert shown is not None
        line = shown(kind())  # type: ignore[arg-type]
        if form == "text":
            assert "\n" not in line
        return line.replace("\t", " ") + "\n"

    return output


def _history_rows(as_json: bool) -> Callable[[Given], str]:
    def output(given: Given) -> str:
        from heliograph.monitor.history.text import series_json, text_table

        merged = _history(PARTS["halves of surrogates"])
        return "\n".join([series_json(merged)] if as_json else text_table(merged, hourly=True)) + "\n"

    return output


def _history(without: str) -> Any:
    from heliograph.monitor.history.files import to_table
    from heliograph.monitor.history.merge import merge
    from tests.history.recordings import interval, latencies

    nasty = NASTY.replace(without, "")
    rows = [interval(latencies(1, 50), seq=1, at_s=0, instance=nasty, topic=nasty, stream=nasty, tag=nasty)]
    return merge(to_table(rows))[0]


TEXT_OUTPUTS: Mapping[str, Callable[[Given], str]] = {
    "stats": _command("stats"),
    "top": _command("top", "--count", "2", "--interval", "0.1"),
    "events": _command("events"),
    "reconcile": _command("reconcile", "--all"),
    "losses": _command("losses"),
    "receivers": _command("receivers"),
    "an error": _command("stats", "--segments", "/nowhere/\x1b[31m\x9b\u202e"),
    "the console exporter": _console,
    "failures": _failure,
    "an HDR log": _hdr_log,
    "collect": _collected(False),
    "sub": _message("text", _Message),
    "the history as text": _history_rows(False),
}
JSON_OUTPUTS: Mapping[str, Callable[[Given], str]] = {
    "stats --json": _command("stats", "--json"),
    "events --json": _command("events", "--json"),
    "reconcile --json": _command("reconcile", "--json"),
    "losses --json": _command("losses", "--json"),
    "receivers --json": _command("receivers", "--json"),
    "the log module": _log_module,
    "the example of a module in C": _c_module,
    "collect --json": _collected(True),
    "sub --format json": _message("json", _Sound),
    "sub --format json, not UTF-8": _message("json", _Message),
    "the history as JSON": _history_rows(True),
}


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> tuple[Snapshot, Snapshot]:
    """The fleet on paper is read once, for nothing here changes it."""
    return read_moments(tmp_path_factory.mktemp("fleet"))


Made = dict[str, tuple[tuple[Snapshot, Snapshot], tuple[Snapshot, Snapshot]]]


@pytest.fixture(scope="module")
def made(moments: tuple[Snapshot, Snapshot]) -> Made:
    """The hostile snapshots by what they hold: whole, and without halves of surrogates."""
    before, now = moments
    found: Made = {}
    for name, which in {"all of it": NASTY, "overlong": NASTY + "x" * 20_000}.items():
        sound = which.replace(PARTS["halves of surrogates"], "")
        found[name] = (hostile(before, which), hostile(now, which)), (hostile(before, sound), hostile(now, sound))
    return found


@pytest.fixture(params=["all of it", "overlong"])
def given(
    request: pytest.FixtureRequest,
    made: Made,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    compiled: Compile,  # noqa: F811
) -> Given:
    (before, now), sound = made[request.param]
    turn = iter([before, now])
    monkeypatch.setattr(Sampler, "sample", lambda self, histograms=True: next(turn, now))
    monkeypatch.setenv("HELIOGRAPH_SEGMENT_DIR", str(tmp_path))
    return Given(before, now, tmp_path, capsys, sound, compiled(text=EXAMPLE.read_text(), name="jsonl"))


@pytest.mark.parametrize("output", TEXT_OUTPUTS)
def test_l1_no_text_moves_the_cursor_turns_or_hides(given: Given, output: str) -> None:
    told = TEXT_OUTPUTS[output](given)
    assert ("nowhere" if output == "an error" else PARTS["a formula"][:5]) in unquote(told)  # the name is there
    assert is_harmless(told), sorted({hex(ord(char)) for char in told if not is_harmless(char)})
    assert not any(
        line.startswith(("fake_total", "# TYPE fake", "heliograph: all is well")) for line in told.split("\n")
    )
    if output != "an HDR log":  # its tags are whole, or a reader could not tell the series apart
        assert max(map(len, told.split("\n"))) < 40_000


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _strings(item)


@pytest.mark.parametrize("output", JSON_OUTPUTS)
def test_l1_json_stays_json_loses_nothing_and_does_no_harm(given: Given, output: str) -> None:
    told = JSON_OUTPUTS[output](given)
    assert is_harmless(told), sorted({hex(ord(char)) for char in told if not is_harmless(char)})
    try:
        found = [json.loads(told)]
    except json.JSONDecodeError:
        found = [json.loads(line) for line in told.splitlines()]
    assert found
    told_strings = list(_strings(found))
    sound = NASTY.replace(PARTS["halves of surrogates"], "")
    if output == "the example of a module in C":  # C has UTF-8, which knows no half of a surrogate
        assert any(PARTS["a script"] in item and PARTS["directions"] in item for item in told_strings)
    else:
        assert any(NASTY in item or sound in item for item in told_strings)


# Doors of markup


class Page(HTMLParser):
    """Tags and attributes of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _report(tmp_path: Path) -> str:
    from heliograph.monitor.history.files import write_table
    from heliograph.monitor.history.report.make import report

    write_table(tmp_path / "date=2025-11-21" / "hour=12" / "a.parquet", _history(PARTS["halves of surrogates"]))
    return report(tmp_path, NASTY).html


def _flight(tmp_path: Path) -> str:
    from tests.monitor.test_flight import flight_of, steady

    file = tmp_path / "feed.4711.1.flight"
    flight = flight_of(steady, why=200, event=True)
    flight.write(file)
    out = tmp_path / "page.html"
    from heliograph.monitor.flight import reader

    found = reader.read(file)
    found.events = [(place, replace(event, name=NASTY, severity=NASTY, text=NASTY)) for place, event in found.events]
    found.header = replace(found.header, name=NASTY, why=NASTY)
    found.damage.append(NASTY)
    for track in found.tracks:
        track.labels = _labels(track.labels, NASTY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "read", lambda *_, **__: found)
        main(["flight", str(file), "--html", str(out)])
    return out.read_text(encoding="utf-8")


def _svg(tmp_path: Path) -> str:
    from heliograph.monitor.page.svg import Axis, Frame, Line, Mark, chart

    axis = Axis(0.0, 1.0, [(0.5, NASTY)])
    return chart([Line(NASTY, [0, 1], [0, 1])], axis, axis, NASTY, frame=Frame(), marks=[Mark(0, 1, "m", NASTY)])


def _lab(tmp_path: Path) -> str:
    from heliograph.monitor.lab.page import timed_chart
    from heliograph.monitor.page.svg import Line, Mark

    lines, marks = [Line(NASTY, [1.0, 2.0], [0.0, 1.0])], [Mark(0.5, 0.5, "plan", NASTY, "dot")]
    return timed_chart(NASTY, NASTY, lines, marks, 1.0, 2.0)


PAGES: Mapping[str, Callable[[Path], str]] = {"report": _report, "flight": _flight, "svg": _svg, "lab": _lab}


@pytest.mark.parametrize("page", PAGES)
def test_l1_pages_and_pictures_hold_no_markup_of_others(page: str, tmp_path: Path) -> None:
    told = PAGES[page](tmp_path)
    assert is_harmless(told), sorted({hex(ord(char)) for char in told if not is_harmless(char)})
    found = Page(told)
    for tag, attributes in found.tags:
        if tag == "a":  # the report's download, which the page itself holds
            assert dict(attributes)["href"].startswith("data:application/gzip;base64,")
            continue
        assert tag not in ("script", "img", "b")
        assert not [name for name, _ in attributes if name.startswith("on") or name == "src"]
    assert any(
        "alert(1)" in text for text in (*found.text, *(value or "" for _, item in found.tags for _, value in item))
    )


# Prometheus


def test_l1_prometheus_reads_every_answer_and_names_stay_apart(moments: tuple[Snapshot, Snapshot]) -> None:
    from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

    from heliograph.exporters.collector import SnapshotCollector
    from heliograph.exporters.prometheus import exposition

    before, now = moments
    twins = []
    for place, (_, part) in enumerate([*PARTS.items(), ("all", NASTY), ("long", "x" * 20_000), ("long", "x" * 20_001)]):
        owners = now.instances[: 1 if place < len(PARTS) else 2]  # parts alone differ in their text only
        for owner in hostile(replace(now, instances=owners), part).instances:
            few = [replace(item, histograms={}) for item in owner.objects[:3]]
            owner = replace(owner, incarnation=owner.incarnation + 1000 * place, pid=owner.pid + place)
            twins.append(replace(owner, objects=tuple(few)))
    fleet = replace(now, instances=tuple(twins))
    collector = SnapshotCollector(max_series=10_000_000)
    collector.update(replace(before, instances=()))
    collector.update(fleet)
    text = exposition(collector).decode("utf-8")
    modern = generate_openmetrics(collector.registry()).decode("utf-8")
    for told, parse in ((text, plain), (modern, openmetrics)):
        assert is_harmless(told.replace("\\n", "")), sorted({hex(ord(char)) for char in told if not is_harmless(char)})
        seen: set[tuple[Any, ...]] = set()
        names = set()
        for family in parse(told):
            assert family.name.startswith("heliograph_")
            for sample in family.samples:
                key = (sample.name, *sorted(sample.labels.items()))
                assert key not in seen
                seen.add(key)
                if sample.name == "heliograph_node_up":
                    names.add(sample.labels["node"])
                assert all(is_harmless(value) and len(value) < 1000 for value in sample.labels.values())
        assert len(names) == len({owner.name for owner in twins})


# The live page


def test_l4_names_in_figures_are_neither_markup_nor_templates(moments: tuple[Snapshot, Snapshot]) -> None:
    from heliograph.dashboards.live.figures.latency import percentile_spectrum
    from heliograph.dashboards.live.figures.repair import losses, naks
    from heliograph.dashboards.live.figures.throughput import throughput
    from heliograph.dashboards.live.series import point

    found = point(*(hostile(snapshot) for snapshot in moments))
    assert found is not None
    found = replace(
        found,
        naks=dict.fromkeys(found.by_receiver, 2.0),
        missed=dict.fromkeys(found.by_receiver, 2.0),
        lost=dict.fromkeys(found.by_receiver, 2.0),
    )
    points = [found, replace(found, time_ns=found.time_ns + 10**9)]
    drawn = [throughput(points), naks(points), losses(points)]
    drawn += [percentile_spectrum(points, kind) for kind in ("receiver", "topic")]
    traces = [trace for figure in drawn for trace in figure.to_plotly_json()["data"]]
    assert len(traces) > 8
    for trace in traces:
        name = trace["name"]
        assert "script" in name
        assert not re.search(r"[<>$]|%\{", name)
        assert is_harmless(name)
        assert "cmd" not in trace["hovertemplate"]
        assert set(re.findall(r"%\{(\w+)", trace["hovertemplate"])) <= {"y", "customdata", "fullData"}
    text = json.dumps([figure.to_plotly_json() for figure in drawn], default=str)
    assert "<script" not in text


def test_l1_the_live_pages_show_no_character_that_turns_or_hides(moments: tuple[Snapshot, Snapshot]) -> None:
    from plotly.utils import PlotlyJSONEncoder

    from heliograph.dashboards.live.app import followed, page_at
    from heliograph.dashboards.live.pages.head import PAGES as ADDRESSES
    from heliograph.dashboards.live.recordings import Shelf
    from heliograph.dashboards.live.store import Store
    from heliograph.dashboards.live.updates import Updates
    from heliograph.dashboards.live.uploads import Uploads

    turn = iter([hostile(snapshot) for snapshot in moments])
    store = Store(lambda: next(turn), place=NASTY, absence=lambda: NASTY)
    store.take()
    store.take()
    updates = Updates(store, followed(Uploads(), None, Shelf()))
    pages = [page_at(path, "", store, Uploads()) for path in ADDRESSES]
    messages = [json.loads(updates.message(path, {}, None).text) for path in ADDRESSES]
    text = json.dumps([pages, messages], cls=PlotlyJSONEncoder, ensure_ascii=False)
    values = json.loads(text)

    def seen(value: Any, key: str = "") -> Iterator[str]:
        if isinstance(value, str) and key != "value":
            yield value
        elif isinstance(value, dict):
            for name, item in value.items():
                yield from seen(item, name)
        elif isinstance(value, list):
            for item in value:
                yield from seen(item, key)

    found = list(seen(values))
    assert sum("alert(1)" in item for item in found) > 20
    assert all(is_harmless(item) for item in found), [ascii(item) for item in found if not is_harmless(item)][:3]


# The one function


@pytest.mark.parametrize("part", PARTS)
def test_l1_the_one_function_knows_every_part(part: str) -> None:
    from heliograph.engine.catalogue.outside import Output, json_text, outside

    text = f"a{PARTS[part]}z"
    for output in Output:
        shown = outside(text, output)
        assert is_harmless(shown)
        assert "\n" not in shown
        shown.encode("utf-8")
    assert not re.search(r"[<>\"']", outside(text, Output.HTML))
    assert not re.search(r"[<>$]|%\{", outside(text, Output.PLOTLY))
    csv = outside(PARTS[part], Output.CSV)
    assert not csv.lstrip('"').startswith(("=", "+", "-", "@"))
    assert json.loads(json_text([text])) == [text]
    assert is_harmless(json_text([text], indent=1))
    assert outside("plain name, ä 漢字", Output.LABEL) == outside("plain name, ä 漢字") == "plain name, ä 漢字"
    assert len(outside("x" * 100_000)) == 2000
