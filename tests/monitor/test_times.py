"""Times that commands print: local with the offset, or UTC with ``--utc``."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from heliograph.engine.catalogue import times
from heliograph.monitor.cli import main
from heliograph.monitor.commands.losses import loss_lines
from heliograph.monitor.losses import LossRow
from tests.fleet import sample_fleet
from tests.flights import FlightObject, FlightWriter
from tests.monitor.conftest import read_moments
from tests.stores import Kept, write_store

SETTINGS = Path(__file__).resolve().parents[2] / "deploy/alerts.toml"
NS = 1_700_000_000_999_999_999
INDIA = "IST-5:30"
"""As TZ has it: five and a half hours ahead of UTC."""

Zone = Callable[[str], None]


def test_a_time_is_cut_not_rounded_and_has_its_offset(zone: Zone) -> None:
    zone(INDIA)
    assert times.date_time(NS) == "2023-11-15 03:43:20+05:30"
    assert times.date_time(NS, "microseconds") == "2023-11-15 03:43:20.999999+05:30"
    assert times.time_of_day(NS, "milliseconds") == "03:43:20.999"
    assert times.date_time(0) == "-"
    assert times.date_time(2**64 - 1) == "2554-07-22 05:04:33+05:30", "a wild time of a file is no error"
    assert datetime.fromisoformat(times.date_time(NS)).timestamp() == NS // 10**9


def test_the_offset_is_that_of_the_time_shown(zone: Zone) -> None:
    zone("CET-1CEST,M3.5.0,M10.5.0/3")
    assert times.date_time(NS) == "2023-11-14 23:13:20+01:00"
    assert times.date_time(NS - 120 * 86400 * 10**9) == "2023-07-18 00:13:20+02:00"


def _flight(folder: Path) -> Path:
    flight = FlightWriter(name="feed", interval_ns=100_000_000)
    flight.tick(new={0: FlightObject("instance", {"instance": "feed"}, {})})
    for _ in range(100):
        flight.tick()
    flight.write(folder / "feed.4711.3.flight", state=3, kept=3, trigger_ns=NS, why="tried")
    return folder / "feed.4711.3.flight"


DATED = (
    ["events"],
    ["why", "slow", "--interval", "0.05"],
    ["flight", "--list"],
    ["flight", "FLIGHT"],
    ["store", "ls", "STORE"],
    ["alerts", "check", "FLIGHT", "--settings", "SETTINGS"],
)


@pytest.mark.parametrize("words", DATED, ids=" ".join)
def test_every_command_shows_local_time_or_utc(
    words: list[str], segments: Path, tmp_path: Path, zone: Zone, capsys: pytest.CaptureFixture[str]
) -> None:
    sample_fleet(segments, 1)
    write_store(tmp_path / "store", [Kept("T", 1, 1, NS, NS, 0, b"x")])
    paths = {"FLIGHT": str(_flight(segments)), "STORE": str(tmp_path / "store"), "SETTINGS": str(SETTINGS)}
    command = [paths.get(word, word) for word in words]
    zone(INDIA)
    seen = []
    for more, offset in (([], "+05:30"), (["--utc"], "+00:00"), ([], "+05:30")):
        assert main([*command, *more]) == 0
        dates = re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S*", capsys.readouterr().out)
        assert dates
        assert {date[-6:] for date in dates} == {offset}
        seen.append([datetime.fromisoformat(date) for date in dates])
    if words[0] != "why":  # its states began when it looked
        assert seen[0] == seen[1] == seen[2]


def test_losses_show_local_time(zone: Zone, tmp_path: Path) -> None:
    zone(INDIA)
    row = LossRow("a", "s", "window", "feed", "10.0.0.1:1", "inproc://a", 1, 1, 1, 1, NS, NS, 1, 1, True)
    (_, line) = loss_lines([row], read_moments(tmp_path)[0])[:2]
    assert line.count("2023-11-15 03:43:20.999+05:30") == 2


def test_the_time_of_day_of_a_flight_is_given_as_it_is_shown(
    segments: Path, zone: Zone, capsys: pytest.CaptureFixture[str]
) -> None:
    """The recording begins at 22:13:20 UTC, which is the next day in India."""
    path = str(_flight(segments))
    zone(INDIA)
    for more, moment in (([], "03:43:25.500"), (["--utc"], "22:13:25.500")):
        assert main(["flight", path, f"--around={moment}", "--rows", "1", *more]) == 0
        marked = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(">"))
        assert moment in marked


def test_top_shows_the_time_of_day_by_the_same_clock(
    segments: Path, zone: Zone, capsys: pytest.CaptureFixture[str]
) -> None:
    zone(INDIA)
    sample_fleet(segments)
    hours = []
    for more in ([], ["--utc"]):
        assert main(["top", "--once", "--interval", "0.05", *more]) == 0
        shown = datetime.strptime(capsys.readouterr().out.split()[1], "%H:%M:%S")
        hours.append(shown.hour * 60 + shown.minute)
    assert (hours[0] - hours[1]) % 1440 in (329, 330)
