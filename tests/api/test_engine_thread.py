"""Options of the engine's thread take effect, seen from outside through /proc, and are shown where the rest is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from heliograph.engine import Instance, OptionError, SystemCallError
from tests.segment.decoder import decode_live

from .conftest import until


def thread_of(name: str) -> Path:
    """The /proc folder of the engine thread of the instance with this name, which it gives itself once it runs."""
    found: list[Path] = []

    def is_there() -> bool:
        tasks = Path("/proc/self/task").iterdir()
        found[:] = [task for task in tasks if (task / "comm").read_text().strip() == f"helio-{name}"]
        return bool(found)

    assert until(is_there), f"no thread of {name}"
    return found[0]


def policy_of(task: Path) -> tuple[int, int]:
    """Scheduling policy and real-time priority: fields 41 and 40 of stat, counted behind the name in brackets."""
    fields = (task / "stat").read_text().rpartition(")")[2].split()
    return int(fields[41 - 3]), int(fields[40 - 3])


def info_of(instance: Instance) -> dict[str, str]:
    """What the instance says of itself in its segment."""
    (found,) = decode_live(instance.segment).of("instance")
    return dict(found.labels)


def may_be_real_time() -> bool:
    before = os.sched_getscheduler(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, before, os.sched_param(0))
    return True


def unprivileged(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program without capabilities and with no limit above zero."""
    prelude = (
        "import ctypes, os, resource\n"
        "resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))\n"
        "resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))\n"
        "if os.getuid() == 0:\n"
        "    libc = ctypes.CDLL(None)\n"
        "    header = (ctypes.c_uint32 * 2)(0x20080522, 0)\n"
        "    assert libc.capset(header, (ctypes.c_uint32 * 6)()) == 0\n"
    )
    return subprocess.run([sys.executable, "-c", prelude + program], capture_output=True, text=True, timeout=60)


def test_the_thread_runs_on_the_core_asked_for() -> None:
    core = max(os.sched_getaffinity(0))
    with Instance(name="on-core", cpu=core) as instance:
        status = (thread_of("on-core") / "status").read_text()
        assert info_of(instance)["cpu"] == str(core)
    assert re.search(r"^Cpus_allowed_list:\s*(\S+)$", status, re.MULTILINE)[1] == str(core)  # type: ignore[index]


@pytest.mark.skipif(not may_be_real_time(), reason="real-time priority is not permitted")
def test_the_thread_has_the_priority_asked_for() -> None:
    with Instance(name="urgent", priority=7) as urgent, Instance(name="common") as common:
        assert (info_of(urgent)["priority"], info_of(common)["priority"]) == ("7", "0")
        assert policy_of(thread_of("urgent")) == (os.SCHED_FIFO, 7)
        assert policy_of(thread_of("common")) == (os.SCHED_OTHER, 0)


def test_a_priority_without_permission_is_refused_with_what_it_needs() -> None:
    run = unprivileged("from heliograph.engine import Instance\nInstance(priority=7)\n")
    assert SystemCallError.__name__ in run.stderr
    assert "priority=7 needs the capability CAP_SYS_NICE" in run.stderr


def test_a_polled_instance_has_no_thread_to_give_a_priority() -> None:
    with pytest.raises(OptionError, match="mode=poll has none"):
        Instance(mode="poll", priority=1)


def test_memory_is_locked_when_asked_for() -> None:
    program = (
        "from heliograph.engine import Instance\n"
        "locked = lambda: next(int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmLck'))\n"
        "with Instance(stats='memory') as plain: before = locked()\n"
        "with Instance(stats='memory', lock_memory=True) as held: print(before, locked())\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    if "RLIMIT_MEMLOCK" in run.stderr:
        pytest.skip("locking memory is not permitted")
    before, during = map(int, run.stdout.split())
    assert before == 0
    assert during > 1000


def test_memory_that_may_not_be_locked_is_told_with_what_it_needs() -> None:
    run = unprivileged("from heliograph.engine import Instance\nInstance(lock_memory=True)\n")
    assert "lock_memory needs the capability CAP_IPC_LOCK" in run.stderr
