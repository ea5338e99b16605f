"""JSON of all commands in one manner (ADR 0053), and one function that prints times.

A command that answers once prints one object, a command that continues prints one object per line, and times are
integers in ns since 1970. The commands are those of the argument parser, so a new one cannot be forgotten.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from heliograph.engine import Instance
from heliograph.monitor.cli import GROUP, _parser, main
from tests.fleet import sample_fleet
from tests.flights import FlightObject, FlightWriter
from tests.ports import free_port
from tests.segments import write_segment
from tests.stores import Kept, write_store

TOP = Path(__file__).resolve().parents[2]
QUICK = ("--interval", "0.05")

ONCE: dict[str, tuple[str, ...]] = {
    "alerts list": ("--settings", str(TOP / "deploy/alerts.toml")),
    "ctl cutoff": ("--for", "1ms"),
    "ctl expel": ("nobody",),
    "ctl freeze": (),
    "ctl level": ("2", "--for", "1ms"),
    "ctl ping": (),
    "ctl readmit": ("nobody",),
    "ctl receivers": (),
    "ctl resume": ("nobody",),
    "ctl set-policy": ("none",),
    "ctl set-rate": ("1M",),
    "ctl suspend": ("nobody", "--for", "1ms"),
    "events": (),
    "flight": ("feed.1.flight",),
    "info": ("--no-measure",),
    "losses": (),
    "receivers": (),
    "reconcile": (),
    "stats": (),
    "store export": ("store", "--to", "archive", "--unfinished"),
    "store ls": ("store",),
    "store trim": ("store", "--keep-bytes", "1", "--dry-run"),
    "store verify": ("store",),
    "top": ("--once", *QUICK),
    "why": ("slow", *QUICK),
}
"""Commands that answer once, with arguments."""

ALSO_ONCE = {"ctl level": ("--list",), "flight": ("--list",)}

CONTINUED: dict[str, tuple[str, ...]] = {
    "collect": ("--count", "2", *QUICK),
    "events": ("--follow",),
    "receivers": ("--count", "2", *QUICK),
    "top": ("--count", "2", *QUICK),
}
"""Commands that continue, with arguments."""

ELSEWHERE = {
    "alerts check": "tests/deploy/test_alerts_check.py",
    "bench": "tests/api/test_bench.py",
    "grafana apply": "tests/dashboards/test_grafana_plan.py",
    "grafana diff": "tests/dashboards/test_grafana_plan.py",
    "grafana plan": "tests/dashboards/test_grafana_plan.py",
    "history blame": "tests/history/test_blame.py",
    "history calendar": "tests/history/test_calendar.py",
    "history changes": "tests/history/test_changes.py",
    "history compare": "tests/history/test_studies.py",
    "history gate": "tests/history/test_studies.py",
    "history merge": "tests/history/test_commands.py",
    "history objectives": "tests/history/test_calendar.py",
    "history prune": "tests/history/test_retention.py",
    "history stages": "tests/history/test_stages.py",
    "history verify": "tests/history/test_verify.py",
    "lab replay": "tests/lab/test_replay.py",
    "lab run": "tests/lab/test_commands.py",
    "publish": "tests/monitor/test_collecting.py",
    "store find": "tests/api/test_store_announced.py",
    "store offer": "tests/api/test_store_service.py",
    "store serve": "tests/api/test_store_server.py",
    "store subscriptions": "tests/api/test_store_subscriptions.py",
}
"""Commands that answer once and need more than a file or an instance: a test that reads their JSON."""

WITHOUT = {
    "alerts render", "clean", "export", "grafana show", "history compact", "history import",
    "history percentiles", "history report", "history rollup", "history stream", "lab list", "lab show", "live",
    "monitor", "pub", "repairer", "store replay", "sub",
}  # fmt: skip
"""They write files, messages or pages, serve, or print a text for people. `sub` and `store replay` have --format."""


@cache
def commands() -> dict[str, argparse.ArgumentParser]:
    """Every command and action, by its words."""

    def leaves(parser: argparse.ArgumentParser, words: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
        actions = [item for item in parser._actions if isinstance(item, argparse._SubParsersAction)]
        if not actions:
            yield words.strip(), parser
        for item in actions:
            for name, one in item.choices.items():
                yield from leaves(one, f"{words} {name}")

    return dict(leaves(_parser({point.name: point for point in entry_points(group=GROUP)}, None), ""))


def test_every_command_is_checked() -> None:
    found = commands()
    reading = {words for words, parser in found.items() if "--json" in parser._option_string_actions}
    assert reading == {*ONCE, *CONTINUED, *ELSEWHERE}
    assert found.keys() - reading == WITHOUT


def test_every_reader_of_segments_reads_a_collector_too() -> None:
    options = {words: parser._option_string_actions.keys() for words, parser in commands().items()}
    readers = {words for words, given in options.items() if {"--segments", "--json"} <= given}
    assert {words for words in readers if "--collect" not in options[words]} == {"publish"}  # it fills a collector


@pytest.mark.parametrize("words", [*ONCE, *ELSEWHERE])
def test_help_promises_one_object(words: str) -> None:
    promised = commands()[words]._option_string_actions["--json"].help or ""
    assert re.search(r"\b(one|a) JSON object\b(?! per)", promised)


@pytest.mark.parametrize("words", ELSEWHERE)
def test_another_test_reads_its_json(words: str) -> None:
    text = (TOP / ELSEWHERE[words]).read_text(encoding="utf-8")
    assert '"--json"' in text
    assert f'"{words.split()[-1]}"' in text or f'"{words.split()[0]}"' in text


@pytest.fixture
def host(segments: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fleet, a flight recording and a store, in the present directory."""
    sample_fleet(segments, 1)
    flight = FlightWriter(name="feed")
    flight.tick(new={0: FlightObject("instance", {"instance": "feed"}, {})})
    for _ in range(10):
        flight.tick()
    flight.write(segments / "feed.1.flight")
    start = 1_700_000_000_000_000_000
    write_store(segments / "store", [Kept("T", number, number, start, start, 0, b"x") for number in (1, 2)])
    monkeypatch.chdir(segments)
    return segments


DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:")


def wrong_times(value: Any, key: str = "") -> Iterator[str]:
    """Name what looks like a time and is not in the manner. Values of statistics have the unit of their statistic."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name not in ("values", "cells"):
                yield from wrong_times(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from wrong_times(item, key)
    elif isinstance(value, float) and 1.4e9 < value < 2.2e9:
        yield f"{key}: {value} looks like seconds since 1970"
    elif isinstance(value, int) and 1.4e18 < value < 2.2e18 and not key.endswith("_ns"):
        yield f"{key}: {value} looks like ns since 1970"
    elif isinstance(value, str) and re.match(DATE, value) and (key, value[-6:]) != ("time", "+00:00"):
        yield f"{key}: {value} is not ISO 8601 in UTC beside a number"


@pytest.mark.parametrize(("words", "arguments"), [*ONCE.items(), *ALSO_ONCE.items()])
def test_an_answer_is_one_object(
    words: str, arguments: tuple[str, ...], host: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*words.split(), *arguments, "--json"]
    if words.startswith("ctl ") and arguments != ("--list",) and words != "ctl receivers":
        with Instance(name="real"):
            assert main([*given, "--instance", "real"]) in (0, 1)
    else:
        assert main(given) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    assert list(wrong_times(found)) == []


@pytest.mark.parametrize("words", CONTINUED)
def test_what_continues_is_one_object_a_line(words: str, host: Path) -> None:
    given = [words, *CONTINUED[words], "--json"]
    if words == "collect":
        given += ["--from", f"rum://127.0.0.1:{free_port()}"]
    with subprocess.Popen([sys.executable, "-m", "heliograph.monitor.cli", *given], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        found = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.terminate()
    assert all(isinstance(one, dict) for one in found)
    assert [fault for one in found for fault in wrong_times(one)] == []


def test_the_check_of_times_sees_each_other_manner() -> None:
    assert (
        len(list(wrong_times({"at": 1.7e9, "until": 17 * 10**17, "day": "2026-11-23 10:00:00", "a_ns": 17 * 10**17})))
        == 3
    )


@pytest.mark.parametrize("command", ["events", "losses", "receivers", "reconcile", "stats", "top"])
def test_an_error_stays_on_standard_error(command: str, segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_segment(segments / "feed.1.helio", name="feed")
    assert main([command, "--json", "--instance", "nobody"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "no instance matches 'nobody'" in told.err


def test_commands_that_print_times_take_utc() -> None:
    found = {words for words, parser in commands().items() if "--utc" in parser._option_string_actions}
    printing = {"alerts check", "collect", "events", "export", "flight", "losses", "store ls", "top", "why"}
    assert found == printing


FORMATS = re.compile(r"fromtimestamp|localtime|gmtime|strftime")
FORMATTERS = {
    "engine/catalogue/times.py": "the function of all",
    "monitor/commands/top_frame.py": "JSON: ISO 8601 in UTC beside the number",
    "monitor/history/days.py": "names of partitions and intervals, always UTC",
    "monitor/history/files.py": "the same",
    "monitor/history/hlog.py": "a file format",
    "monitor/history/hours.py": "names of partitions and intervals, always UTC",
}
"""Files that may make a text of a time, and why."""


def test_one_module_prints_times() -> None:
    """The pages of `dashboards` are not commands: a browser shows them."""
    found = {
        path.relative_to(TOP).as_posix()
        for room in ("engine", "monitor", "exporters")
        for path in (TOP / room).rglob("*.py")
        if FORMATS.search(path.read_text(encoding="utf-8"))
    }
    assert found <= FORMATTERS.keys()
    assert "engine/catalogue/times.py" in found
