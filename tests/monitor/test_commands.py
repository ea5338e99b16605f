"""The monitor's commands, from the command line to what people read."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.monitor.cli import main
from heliograph.monitor.commands.clean import inspect
from heliograph.monitor.commands.events import event_line
from heliograph.monitor.commands.run import feed
from heliograph.monitor.commands.top import frame
from heliograph.monitor.model import Event, Snapshot
from heliograph.monitor.modules import Lane, Moment
from heliograph.monitor.sampler import Sampler
from tests.fleet import RECEIVERS, sample_fleet
from tests.segments import SegmentObject, write_segment

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
NOBODY = 2**22 + 1
"""A pid above the kernel's limit: no process has it."""


def _dead(folder: Path, name: str = "dead", **other: object) -> Path:
    return write_segment(
        folder / f"{name}.{NOBODY}.helio", name=name, pid=NOBODY, heartbeat_ns=START, **other  # type: ignore[arg-type]
    ).path  # fmt: skip


def _moments(folder: Path) -> tuple[Snapshot, Snapshot]:
    now = START
    with Sampler(folder, clock=lambda: now) as sampler:
        sample_fleet(folder, 0, START)
        before = sampler.sample()
        now += SECOND
        sample_fleet(folder, 1, START)
        return before, sampler.sample()


# top


def test_top_names_the_slow_and_the_lossy_receiver_as_the_two_worst(segments: Path) -> None:
    lines = frame(*_moments(segments))
    worst = next(line for line in lines if line.startswith("worst:"))
    assert re.match(r"worst: slow \(falling behind: .*\); then lossy \(lossy: loses 2\.1 % of packets", worst)
    receivers = [line.split()[0] for line in lines if line.split()[:1] and line.split()[0] in RECEIVERS]
    assert receivers[:8] == ["slow"] * 4 + ["lossy"] * 4


def test_top_shows_rates_latency_and_senders(segments: Path) -> None:
    lines = frame(*_moments(segments))
    assert "5 of 5 instances live" in lines[0]
    assert "sent 10000 msg/s" in lines[0]
    alpha = next(line for line in lines if line.startswith("alpha") and "PRICES.A" in line)
    assert re.search(r"ok +4000 +7 +1\.75 ms +0\.3 % +0 +0 % +0 +one +17\.1 µs", alpha)
    assert any(re.match(r"feed +PRICES\.A +4000 ", line) for line in lines)


def test_top_fits_the_terminal_and_colours_only_when_asked(segments: Path) -> None:
    moments = _moments(segments)
    for width, height in ((20, 3), (60, 10), (200, 60)):
        lines = frame(*moments, width=width, height=height)
        assert len(lines) <= height
        assert max(map(len, lines)) <= width
    assert "\x1b" not in "".join(frame(*moments))
    assert "\x1b" in "".join(frame(*moments, colour=True))


def test_top_tells_of_instances_that_are_not_live(segments: Path) -> None:
    (segments / "broken.1.helio").write_bytes(b"x")
    _dead(segments)
    with Sampler() as sampler:
        lines = frame(None, sampler.sample())
    assert any(line.startswith("damaged: broken: ") for line in lines)
    assert any(line.startswith(f"dead: dead: process {NOBODY} has ended") for line in lines)


def test_top_with_nobody_says_so() -> None:
    assert frame(None, Snapshot(START, ()))[1] == "no receivers"


def test_top_once_prints_one_table_without_control_characters(
    segments: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample_fleet(segments)
    assert main(["top", "--once", "--interval", "0.05"]) == 0
    out = capsys.readouterr().out
    assert out.count("WHY") == 1
    assert "\x1b" not in out


def test_top_count_prints_that_many_tables(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_fleet(segments)
    assert main(["top", "--count", "3", "--interval", "0.05", "--instance", "s*"]) == 0
    out = capsys.readouterr().out
    assert out.count("WHY") == 3
    assert "lossy" not in out


def _top_on_a_terminal(send: bytes | None, number: int | None = None) -> tuple[bytes, int, bool]:
    """Run top on a terminal; its output, its exit code, and whether the terminal is as it was."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
    before = termios.tcgetattr(follower)
    command = [sys.executable, "-m", "heliograph.monitor.cli", "top", "--interval", "60"]
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower)
    out = b""
    deadline = time.monotonic() + 60
    asked = False
    while time.monotonic() < deadline:
        if select.select([leader], [], [], 0.05)[0]:
            out += os.read(leader, 65536)
        elif process.poll() is not None:
            break
        if not asked and out.endswith(b"\x1b[J"):  # the picture is complete
            asked = True
            if send:
                os.write(leader, send)
            elif number:
                process.send_signal(number)
    process.kill()  # harmless when it has ended
    code = process.wait()
    restored = termios.tcgetattr(follower) == before
    os.close(leader)
    os.close(follower)
    return out, code, restored


@pytest.mark.parametrize(("send", "number", "code"), [(b"q", None, 0), (None, 2, 130), (None, 15, 143)])
def test_top_gives_the_terminal_back_as_it_was(
    segments: Path, send: bytes | None, number: int | None, code: int
) -> None:
    sample_fleet(segments)
    out, ended, restored = _top_on_a_terminal(send, number)
    assert ended == code, out[-2000:]
    assert restored
    assert out.startswith(b"\x1b[?1049h\x1b[?25l")
    assert out.endswith(b"\x1b[?25h\x1b[?1049l")
    assert b"Traceback" not in out
    assert b"worst: " in out


# stats


def test_stats_as_json_has_the_promised_names(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_fleet(segments)
    assert main(["stats", "--json", "--instance", "al*", "--scope", "receiver"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"schema", "time_ns", "instances"}
    (instance,) = found["instances"]
    assert set(instance) == {
        "name", "health", "reason", "pid", "incarnation", "started_ns", "heartbeat_ns", "path", "objects",
    }  # fmt: skip
    assert instance["name"] == "alpha"
    item = instance["objects"][0]
    assert set(item) == {
        "scope", "labels", "info", "live", "torn", "generation", "created_ns", "values", "histograms", "clocks",
    }  # fmt: skip
    assert set(item["clocks"]) == {"source", "offset_ns", "bound_ns", "age_ns", "latencies"}
    assert {each["scope"] for each in instance["objects"]} == {"receiver"}
    assert item["values"]["messages_lost"] == 0
    figures = item["histograms"]["total_latency"]
    names = "count above negative min_ns mean_ns p50_ns p90_ns p99_ns p999_ns p9999_ns max_ns"
    assert set(figures) == set(names.split())
    assert figures["count"] == item["values"]["messages_delivered"]
    assert figures["min_ns"] <= figures["p50_ns"] <= figures["p99_ns"] <= figures["p999_ns"] <= figures["max_ns"]


def test_an_empty_histogram_has_null_figures(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = {"instance": "a", "topic": "T", "stream": "s"}
    item = SegmentObject("receiver", labels, histograms={"total_latency": {}})
    write_segment(segments / "a.1.helio", name="a", objects=[item])
    assert main(["stats", "--json"]) == 0
    (instance,) = json.loads(capsys.readouterr().out)["instances"]
    figures = instance["objects"][0]["histograms"]["total_latency"]
    assert (figures["count"], figures["p50_ns"], figures["max_ns"]) == (0, None, None)


def test_stats_for_people_show_every_value(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_fleet(segments)
    assert main(["stats", "--instance", "feed"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"tx_stream  stream=0a1b2c3d4e5f\.30001\n +packets_sent +20000 packets", out)
    assert re.search(r"naks_answered_too_late +0 sequences", out)
    assert re.search(r"batch_latency +8000 values  p50 2\.85 µs", out)
    assert main(["stats", "--instance", "feed", "--nonzero"]) == 0
    assert "naks_answered_too_late" not in capsys.readouterr().out


def test_stats_of_an_unknown_scope_or_folder_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", "--scope", "galaxy"]) == 2
    assert "scopes: instance, tx_stream" in capsys.readouterr().err
    assert main(["stats", "--segments", "/no/such/folder"]) == 2
    assert "directory not found: /no/such/folder" in capsys.readouterr().err


def test_stats_with_nobody_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats"]) == 0
    assert capsys.readouterr().out == "no running instance found\n"


def test_names_made_of_control_characters_cannot_reach_the_terminal(
    segments: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b[2J\x07evil"
    labels = {"instance": evil, "topic": evil, "stream": evil}
    write_segment(segments / "a.1.helio", name=evil, objects=[SegmentObject("receiver", labels)])
    for command in (["stats"], ["top", "--once", "--interval", "0.05"], ["events"]):
        assert main(command) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert "\x07" not in out


# events


def test_events_are_printed_oldest_first(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_fleet(segments, 1)
    assert main(["events"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert lines == sorted(lines, key=lambda line: line[:26])
    assert "warning  slow  receive_queue_full  PRICES.A" in lines[-1]
    assert lines[-1].endswith("queue_bytes=262144")


def test_events_as_json_are_one_object(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_fleet(segments, 1)
    assert main(["events", "--json", "--instance", "slow"]) == 0
    found = json.loads(capsys.readouterr().out)["events"]
    assert [event["name"] for event in found] == ["instance_started", "stream_opened", "receive_queue_full"]
    assert found[-1]["arguments"] == {"queue_bytes": 262144}


def test_an_event_line_calls_receivers_by_their_id() -> None:
    arguments = {"receiver": 0xDEADBEEF, "action": 5}
    event = Event("feed", 1, 0, 1_700_000_000_000_000_000, "receiver_suspended", "warning", {}, arguments, "")
    assert event_line(event).endswith("receiver=00000000deadbeef action=5")
    group = replace(event, arguments={"receiver": 0})
    assert event_line(group).endswith("receiver=0")


@pytest.mark.usefixtures("utc")
def test_an_event_line_shows_microseconds() -> None:
    event = Event("a", 1, 0, START + 1_234_567, "packets_lost", "error", {"instance": "a"}, {"packets": 3}, "gone")
    assert event_line(event)[19:] == ".001234+00:00  error    a  packets_lost  gone  packets=3"


def test_followed_events_come_as_they_happen(segments: Path) -> None:
    sample_fleet(segments, 0)
    command = [sys.executable, "-m", "heliograph.monitor.cli", "events", "--follow", "--instance", "slow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "instance_started" in process.stdout.readline()
        assert "stream_opened" in process.stdout.readline()
        sample_fleet(segments, 1)
        assert "receive_queue_full" in process.stdout.readline()
        process.send_signal(2)
        assert process.wait(10) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""


# clean


def test_clean_removes_the_dead_and_says_what_it_kept_and_why(
    segments: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample_fleet(segments)
    dead = _dead(segments)
    broken = segments / "broken.1.helio"
    broken.write_bytes(b"not a segment at all")
    assert main(["clean", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert f"would remove {dead.name}: process {NOBODY} has ended" in out
    assert dead.exists()
    assert main(["clean"]) == 0
    out = capsys.readouterr().out
    assert not dead.exists()
    assert broken.exists()
    assert len(list(segments.iterdir())) == 6
    assert f"kept     feed.{os.getpid()}.helio: " in out
    assert "kept     broken.1.helio" in out
    assert "is not a stats segment" in out
    assert out.endswith("1 removed, 6 kept\n")


def test_clean_removes_what_a_closed_engine_or_a_failed_start_left(segments: Path) -> None:
    closed = write_segment(segments / "a.1.helio", name="a", state="closed").path
    failed = _dead(segments, "failed", state="writing")
    starting = write_segment(segments / "b.1.helio", name="b", state="writing").path
    assert main(["clean"]) == 0
    assert [path.exists() for path in (closed, failed, starting)] == [False, False, True]


def test_clean_keeps_an_instance_of_another_container(segments: Path) -> None:
    """Its process cannot be found, but its heartbeat moves between the two looks."""

    def beat(_: float) -> None:
        _dead(segments, started_ns=START)
        write_segment(path, name="dead", pid=NOBODY, heartbeat_ns=START + 1)

    path = _dead(segments)
    (finding,) = inspect(segments, clock=lambda: START, pause=beat)
    assert not finding.remove
    assert "its engine is running" in finding.reason


def test_clean_keeps_a_file_that_is_held(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _dead(segments)
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert main(["clean"]) == 0
        assert "held by a running engine" in capsys.readouterr().out
    assert path.exists()


def test_clean_of_a_folder_that_is_not_there_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HELIOGRAPH_SEGMENT_DIR", str(tmp_path / "none"))
    assert main(["clean"]) == 0
    assert capsys.readouterr().out == "0 removed, 0 kept\n"


# monitor


def test_monitor_feeds_a_module_and_gives_account(segments: Path, tmp_path: Path) -> None:
    sample_fleet(segments)
    log = tmp_path / "log.jsonl"
    command = [
        sys.executable,
        "-m",
        "heliograph.monitor.cli",
        "monitor",
        "--module",
        f"log={log}",
        "--interval",
        "0.05",
    ]
    done = subprocess.run([*command, "--seconds", "1"], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    account = done.stderr.splitlines()[-1].split()
    assert account[0] == "log"
    assert int(account[1]) >= 2
    assert int(account[3]) == 9
    assert len([line for line in log.read_text().splitlines() if '"what": "event"' in line]) == 9


def test_monitor_without_or_with_an_unknown_module_says_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor"]) == 2
    assert "installed: log" in capsys.readouterr().err
    assert main(["monitor", "--module", "nobody"]) == 2
    assert "unknown module 'nobody'" in capsys.readouterr().err
    assert main(["monitor", "--list"]) == 0
    assert re.search(r"^log +Python ", capsys.readouterr().out, re.MULTILINE)


def test_late_samples_do_not_pile_up(segments: Path) -> None:
    """The second sample takes long; the loop leaves out the moments that have passed and keeps to the others."""

    class Hurried(threading.Event):
        def __init__(self) -> None:
            super().__init__()
            self.waits: list[float] = []

        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            self.waits.append(round(timeout, 6))
            return len(self.waits) == 4

    ticks = iter([0.0, 0.25, 3.5, 4.0, 5.25])
    stop = Hurried()
    offered: list[int] = []

    class Noting(Lane):
        def __init__(self) -> None:
            """No thread: offers are only noted."""

        wants_moments = True

        def offer(self, snapshot: Snapshot, moments: Sequence[Moment] = (), number: int = 0) -> None:
            offered.append(number)

    with Sampler(segments) as sampler:
        feed(sampler, [Noting()], 1.0, stop, lambda: next(ticks))
    assert stop.waits == [0.75, 0.5, 1.0, 0.75]
    assert offered == [1, 2, 3, 4, 5], "and one at the end"


@pytest.mark.parametrize("text", ["0", "-1", "x", "99999", "nan"])
def test_an_interval_out_of_range_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["top", "--once", f"--interval={text}"])
    assert ended.value.code == 2
    assert "0.05 to 3600" in capsys.readouterr().err
