"""What the attack tests look at: statistics and events of an engine, and waiting for them."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable
from pathlib import Path

from heliograph.engine import Instance
from heliograph.monitor import Segment

__all__ = ["events", "resident", "total", "until"]


def total(instance: Instance, scope: str, name: str) -> int:
    """Sum of a statistic over the objects of a scope."""
    assert instance.segment is not None
    with Segment(instance.segment) as segment:
        return sum(int(o.values.get(name, 0)) for o in segment.objects(histograms=False) if o.scope == scope)


def events(instance: Instance, name: str) -> list[str]:
    """Texts of the events of a name."""
    assert instance.segment is not None
    with Segment(instance.segment) as segment:
        return [event.text for event in segment.events().events if event.name == name]


def until(condition: Callable[[], object], seconds: float = 30.0) -> bool:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def resident() -> int:
    """Bytes of memory, files that are mapped (statistics, flight recorder) not among them.

    What is free goes back to the system first: threads of earlier tests have left free memory in many arenas, and a new
    thread takes any of them.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024
