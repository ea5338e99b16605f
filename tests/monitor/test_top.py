"""`heliograph top`: columns by importance at any width, sorting, filtering and scrolling."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.monitor.cli import main
from heliograph.monitor.columns import Column, cut, fitted, width_of
from heliograph.monitor.commands.terminal import keys_of
from heliograph.monitor.commands.top import _Session
from heliograph.monitor.commands.top_frame import SORTS, Picture, View, lines_of, picture
from heliograph.monitor.model import Health
from heliograph.monitor.sampler import Sampler
from tests.fleet import sample_fleet

# -- columns ----------------------------------------------------------------------------------------------------------

COLUMNS = (Column("NAME", left=True), Column("A", 2), Column("B", 1), Column("WHY", left=True))
ROWS = [("one", "100", "20", "a long story that goes on"), ("two", "7", "3", "short")]


def test_columns_are_left_out_by_rank_and_the_sentence_is_cut_last() -> None:
    assert fitted(COLUMNS, ROWS)[0] == "NAME    A   B  WHY"
    assert fitted(COLUMNS, ROWS)[1] == "one   100  20  a long story that goes on"
    assert fitted(COLUMNS, ROWS, 27, 12)[1] == "one   100  20  a long stor…"
    assert fitted(COLUMNS, ROWS, 26, 12)[:2] == ["NAME   B  WHY", "one   20  a long story th…"]
    assert fitted(COLUMNS, ROWS, 20, 12)[:2] == ["NAME  WHY", "one   a long story…"]


def test_a_very_narrow_table_has_two_lines_a_row() -> None:
    assert fitted(COLUMNS, ROWS, 12, 12) == ["NAME", "  WHY", "one", "  a long st…", "two", "  short"]


def test_wide_characters_take_two_cells_and_combining_ones_none() -> None:
    assert [width_of(text) for text in ("abc", "価格", "e\u0301", "ＡＢ")] == [3, 4, 1, 4]
    assert [cut("価格表", width) for width in (6, 5, 4, 1, 0)] == ["価格表", "価格…", "価…", "…", ""]
    lines = fitted((Column("TOPIC", left=True), Column("N"), Column("WHY")), [("価格", "1", "x"), ("abcd", "2", "y")])
    assert [width_of(line[: line.index(mark)]) for line, mark in zip(lines[1:], "12", strict=True)] == [7, 7]


# -- views ------------------------------------------------------------------------------------------------------------


def fleet_of(segments: Path, receivers: int = 0) -> Picture:
    """The sample fleet; with a number, that many receivers whose lag is their number."""
    sample_fleet(segments)
    with Sampler() as sampler:
        found = picture(None, sampler.sample())
    if not receivers:
        return found
    row = found.receivers[0]
    rows = [replace(row, instance=f"r{number:04}", lag_messages=number, badness=1.0) for number in range(receivers)]
    return replace(found, receivers=rows)


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("receivers", [0, 300])
def test_every_width_shows_who_is_behind_and_why(segments: Path, width: int, receivers: int) -> None:
    lines, view, shown = lines_of(fleet_of(segments, receivers), View(), width, 24)
    assert len(lines) <= 24
    assert max(map(width_of, lines)) <= width
    heads = " ".join(lines)
    assert "RECEIVER" in heads
    assert "WHY" in heads
    if width >= 80:
        assert "BEHIND" in heads
        assert "QUEUE" in heads
    assert view.first == 0
    assert shown > 4


def test_rows_are_sorted_by_any_key_and_reversed(segments: Path) -> None:
    found = fleet_of(segments, 30)
    names = [row.instance for row in found.receivers]
    assert [row.instance for row in View("lag").chosen(found.receivers)] == names[::-1]
    assert [row.instance for row in View("lag", reverse=True).chosen(found.receivers)] == names
    assert [row.instance for row in View("name").chosen(found.receivers[::-1])] == names
    for sort in SORTS:
        assert len(View(sort).chosen(found.receivers)) == 30
        # One order for equal rows.
        assert View(sort).chosen(found.receivers) == View(sort).chosen(found.receivers[::-1])


def test_a_filter_searches_names_topics_states_and_reasons(segments: Path) -> None:
    found = fleet_of(segments)
    assert {row.instance for row in View(text="SLOW").chosen(found.receivers)} == {"slow"}
    assert {row.topic for row in View(text="prices.a").chosen(found.receivers)} == {"PRICES.A"}
    assert {row.instance for row in View(text="falling").chosen(found.receivers)} == {"slow"}
    assert View(text="nobody").chosen(found.receivers) == []


def test_keys_have_names_and_unknown_sequences_are_left_out() -> None:
    assert keys_of("/aé\x1b[A\x1b[5~\x1b[99;3Xq\r\x7f\x1b".encode()) == [
        "/", "a", "é", "up", "page up", "q", "enter", "backspace", "escape",
    ]  # fmt: skip
    assert keys_of(b"\xff\xfe\x00\x01") == []


def names_on(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines if line.startswith("r0")]


def press(session: _Session, *keys: str) -> list[str]:
    for key in keys:
        assert session.press(key)
    return session.lines(100, 24)


def test_a_session_scrolls_sorts_and_filters(segments: Path) -> None:
    session = _Session(View(), colour=False)
    session.found = fleet_of(segments, 100)
    first = session.lines(100, 24)
    assert len(first) == 24
    page = len(names_on(first))
    assert first[-1].startswith(f"1-{page} of 100 by worst  q quit")
    assert names_on(press(session, "down", "down"))[0] == "r0002"
    assert names_on(press(session, "page down"))[0] == f"r{page + 2:04}"
    assert names_on(press(session, "end"))[-1] == "r0099"
    assert names_on(press(session, "up"))[-1] == "r0098"
    assert names_on(press(session, "home", "up"))[0] == "r0000"
    lines = press(session, *"sssss")
    assert lines[-1].startswith(f"1-{page} of 100 by behind")
    lines = press(session, "/", *"r001x", "backspace", "enter")
    assert len(names_on(lines)) == 10
    assert lines[-1].startswith("1-10 of 10 by behind  filter: r001")
    assert session.press("/")
    assert "filter: r001_" in session.lines(100, 24)[-1]
    assert "of 100 by" in press(session, "escape")[-1]
    assert "by behind reversed" in press(session, "r")[-1]
    assert not session.press("q")


def test_a_session_survives_a_tiny_screen_and_an_empty_fleet(segments: Path) -> None:
    session = _Session(View(), colour=True)
    session.found = fleet_of(segments, 5)
    for size in ((1, 1), (5, 2), (300, 3)):
        assert len(session.lines(*size)) == size[1]
    session.found = replace(session.found, receivers=[], instances=[], transmitters=[], streams=[], known=[])
    session.absence = "no instance is running"
    lines = session.lines(80, 10)
    assert "no instance is running" in lines
    assert lines[-1].startswith("no receiver by worst")


def test_many_dead_instances_leave_room_for_the_receivers(segments: Path) -> None:
    found = fleet_of(segments, 100)
    dead = [replace(found.instances[0], name=f"gone{number}", health=Health.DEAD) for number in range(30)]
    lines, _, shown = lines_of(replace(found, instances=[*found.instances, *dead]), View(), 120, 24)
    assert "and 25 more instances that are not live" in lines
    assert len(names_on(lines)) == shown == 14


@pytest.mark.parametrize("size", [(24, 40), (24, 80), (50, 200)])
def test_keys_and_a_new_size_change_the_screen_and_ctrl_c_restores_it(segments: Path, size: tuple[int, int]) -> None:
    sample_fleet(segments)
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    before = termios.tcgetattr(follower)
    command = [sys.executable, "-m", "heliograph.monitor.cli", "top", "--interval", "60"]
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, start_new_session=True)
    try:
        seen = until(leader, process, b"q quit" if size[1] > 40 else b"1-")
        assert b"RECEIVER" in seen
        os.write(leader, b"/lossy\r")
        until(leader, process, b"filter: lossy")
        os.write(leader, b"\x1b")
        os.write(leader, b"[B")
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 160, 0, 0))
        assert b"filter: lossy" in until(leader, process, b"PgDn scroll"), "a split arrow key is not Escape"
        process.send_signal(signal.SIGINT)
        until(leader, process, b"\x1b[?1049l")
        assert process.wait(30) == 130
        assert termios.tcgetattr(follower) == before
    finally:
        process.kill()
        process.wait()
        os.close(leader)
        os.close(follower)


def until(leader: int, process: subprocess.Popen[bytes], mark: bytes) -> bytes:
    """Read a terminal until a mark comes; returns everything read."""
    out = b""
    deadline = time.monotonic() + 30
    while mark not in out:
        assert time.monotonic() < deadline, out[-2000:]
        if select.select([leader], [], [], 0.05)[0]:
            out += os.read(leader, 65536)
        else:
            assert process.poll() is None or mark in out, out[-2000:]
    return out


def test_top_prints_one_json_object_per_interval(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_fleet(segments)
    assert main(["top", "--json", "--count", "2", "--interval", "0.05", "--sort", "name", "--filter", "slow"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(found) == 2
    assert set(found[0]) == {"time", "time_ns", "instances", "receivers", "transmitters", "streams", "sources"}
    assert {row["instance"] for row in found[0]["receivers"]} == {"slow"}
    assert found[0]["receivers"][0]["behaviour"] == "falling_behind"
    assert len(found[0]["instances"]) == 5


def test_top_once_sorts_and_filters(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_fleet(segments)
    assert main(["top", "--once", "--interval", "0.05", "--sort", "topic", "--filter", "lossy"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split()[:2] for line in lines if line.startswith("lossy")]
    assert rows == [["lossy", f"PRICES.{letter}"] for letter in "ABCD"]
