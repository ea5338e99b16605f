"""An engine that has nothing to do takes little memory: windows and queues cost nothing until they are used."""

from __future__ import annotations

import pytest

from tests.api.conftest import Script

IDLE_BYTES_MAX = 8 << 20

# In a process of its own, so that nothing else moves its memory. The first instance pays for what is loaded once.
PROGRAM = """
import sys, time
from heliograph.engine import Instance

mode, level, endpoint = sys.argv[1], int(sys.argv[2]), sys.argv[3]

def resident():
    with open("/proc/self/smaps_rollup") as rollup:
        return next(int(line.split()[1]) for line in rollup if line.startswith("Rss:")) * 1024

before = resident()
with Instance(mode=mode, level=level) as instance:
    with instance.receiver(endpoint, "IDLE"), instance.transmitter(endpoint, "IDLE", linger=0.0):
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            if mode == "poll":
                instance.poll()
            time.sleep(0.005)
        print(resident() - before)
"""


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("mode", ["poll", "thread"])
def test_an_idle_instance_with_one_topic_is_small(script: Script, endpoint: str, mode: str, level: int) -> None:
    process = script(PROGRAM, mode, str(level), endpoint)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert 0 < int(out) < IDLE_BYTES_MAX
