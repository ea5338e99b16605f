"""The health of an instance: how far its segment can be trusted (engine/docs/segment.md, section 6).

A heartbeat may be old because the process died, because it hangs, or because a polled engine is not polled. The process
id shows which. Two cases make process ids misleading, and both are handled: an id is reused by a process that started
later than the segment, and the id of a process in another container has no meaning here. The second case is detected by
a heartbeat that moves while its process cannot be found.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from heliograph.monitor.header import CLOSED, Header
from heliograph.monitor.model import Health

__all__ = ["ProcessStart", "Verdict", "judge", "process_start_ns"]

STALE_NS = 1_000_000_000
_START_SLACK_NS = 2_000_000_000
"""A process is a different one only if it started this much after the segment, because clocks are sometimes stepped."""

ProcessStart = Callable[[int], int | None]
"""Returns the start of a process by its id, ns since 1970; None when the process does not exist."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A health and its reason as text."""

    health: Health
    reason: str
    process_found: bool = True


def process_start_ns(pid: int) -> int | None:
    """Return the start of process `pid`, ns since 1970; None when it has ended or is a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name, in parentheses, may contain any character; the state follows it, the start is 19 fields later.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    since_boot_ns = int(fields[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + since_boot_ns


def _seconds(ns: int) -> str:
    return f"{max(0, ns) / 1e9:.1f} s"  # the engine may have written after the reader read its clock


def judge(
    header: Header,
    now_ns: int,
    process_start: ProcessStart = process_start_ns,
    unfound_heartbeat_ns: int | None = None,
) -> Verdict:
    """Judge the health of an instance by its header.

    Args:
        header: Its present header.
        now_ns: Wall clock in ns since 1970.
        process_start: Returns the start of a process.
        unfound_heartbeat_ns: Heartbeat at an earlier reading when the process could not be found, if any. A newer
            heartbeat now means that the engine runs in another container.
    """
    if header.state == CLOSED:
        return Verdict(Health.CLOSED, "shut down cleanly")
    age_ns = now_ns - header.heartbeat_ns
    fresh = abs(age_ns) <= STALE_NS
    start = process_start(header.pid)
    if start is None:
        if unfound_heartbeat_ns is not None and header.heartbeat_ns > unfound_heartbeat_ns and fresh:
            reason = f"heartbeat {_seconds(age_ns)} ago; process {header.pid} is in another container"
            return Verdict(Health.LIVE, reason, process_found=False)
        reason = f"process {header.pid} has ended; last heartbeat {_seconds(age_ns)} ago"
        return Verdict(Health.DEAD, reason, process_found=False)
    if fresh:
        return Verdict(Health.LIVE, f"heartbeat {_seconds(age_ns)} ago")
    if start > header.started_ns + _START_SLACK_NS:
        return Verdict(Health.DEAD, f"process id {header.pid} now belongs to another process")
    if header.polled:
        return Verdict(Health.STALE, f"not polled for {_seconds(age_ns)}")
    if age_ns < 0:
        return Verdict(Health.STALE, f"its heartbeat is {_seconds(-age_ns)} in the future: a clock was set")
    return Verdict(Health.STALE, f"no heartbeat for {_seconds(age_ns)}; process {header.pid} exists but does not run")
