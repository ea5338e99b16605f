"""Live, stale, closed or dead: judged from the header, the clock and the process table."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heliograph.monitor.header import Header
from heliograph.monitor.health import judge, process_start_ns
from heliograph.monitor.model import Health
from heliograph.monitor.segment import Segment
from tests.segments import write_segment

SECOND = 1_000_000_000
NOW = 1_700_000_000 * SECOND
STARTED = NOW - 3600 * SECOND


def _header(folder: Path, heartbeat_age_ns: int, state: str = "running", mode: int = 0) -> Header:
    path = folder / "alpha.42.helio"
    write_segment(
        path, name="alpha", pid=42, started_ns=STARTED, heartbeat_ns=NOW - heartbeat_age_ns, state=state, mode=mode
    )
    with Segment(path) as segment:
        return segment.opened


def _runs(pid: int) -> int:
    assert pid == 42
    return STARTED - SECOND


def _gone(_: int) -> None:
    return None


def test_a_fresh_heartbeat_is_live(segments: Path) -> None:
    assert judge(_header(segments, SECOND // 2), NOW, _runs).health is Health.LIVE


def test_an_old_heartbeat_of_a_process_that_exists_is_stale(segments: Path) -> None:
    verdict = judge(_header(segments, 5 * SECOND), NOW, _runs)
    assert verdict.health is Health.STALE
    assert "5.0 s" in verdict.reason


def test_a_polled_engine_that_rests_says_so(segments: Path) -> None:
    verdict = judge(_header(segments, 5 * SECOND, mode=1), NOW, _runs)
    assert (verdict.health, verdict.reason) == (Health.STALE, "not polled for 5.0 s")


def test_a_heartbeat_from_the_future_is_not_trusted(segments: Path) -> None:
    verdict = judge(_header(segments, -100 * SECOND), NOW, _runs)
    assert verdict.health is Health.STALE
    assert "100.0 s in the future" in verdict.reason


def test_a_process_that_is_gone_is_dead_however_fresh_its_heartbeat(segments: Path) -> None:
    verdict = judge(_header(segments, 0), NOW, _gone)
    assert (verdict.health, verdict.process_found) == (Health.DEAD, False)
    assert "42" in verdict.reason


def test_a_heartbeat_that_moves_without_a_process_is_of_another_container(segments: Path) -> None:
    header = _header(segments, 0)
    assert judge(header, NOW, _gone, header.heartbeat_ns).health is Health.DEAD
    assert judge(header, NOW, _gone, header.heartbeat_ns - 1).health is Health.LIVE


def test_a_process_that_started_after_the_segment_is_another_one(segments: Path) -> None:
    later = STARTED + 10 * SECOND
    assert judge(_header(segments, 5 * SECOND), NOW, lambda pid: later).health is Health.DEAD


def test_a_stepped_clock_does_not_kill_a_live_instance(segments: Path) -> None:
    later = STARTED + 10 * SECOND
    assert judge(_header(segments, 0), NOW, lambda pid: later).health is Health.LIVE


def test_a_closed_instance_is_closed_whatever_its_process_does(segments: Path) -> None:
    assert judge(_header(segments, 5 * SECOND, state="closed"), NOW, _gone).health is Health.CLOSED


def test_the_start_of_this_process_lies_in_the_past_and_does_not_move() -> None:
    start = process_start_ns(os.getpid())
    assert start is not None
    assert start <= time.time_ns()
    assert abs(start - (process_start_ns(os.getpid()) or 0)) < SECOND // 10


def test_a_process_that_ended_has_no_start_even_before_its_parent_looked() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, not yet reaped: a zombie
    assert process_start_ns(child.pid) is None
    child.wait()
    assert process_start_ns(child.pid) is None


@pytest.mark.parametrize("pid", [0, 2**40])
def test_an_impossible_process_has_no_start(pid: int) -> None:
    assert process_start_ns(pid) is None
