"""The CPU time and the size of an exporter's own work."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

__all__ = ["STAGES", "Costs"]

STAGES = ("sampling", "joining", "rendering")


class Costs:
    """Adds up CPU time by stage, and bytes; for any number of threads."""

    def __init__(self) -> None:
        """Start at zero."""
        self._guard = threading.Lock()
        self._ns: Counter[str] = Counter(dict.fromkeys(STAGES, 0))
        self.bytes = 0

    @contextmanager
    def during(self, stage: str) -> Iterator[None]:
        """Count the CPU time of this thread within the block."""
        began = time.thread_time_ns()
        try:
            yield
        finally:
            with self._guard:
                self._ns[stage] += time.thread_time_ns() - began

    def add_bytes(self, count: int) -> None:
        """Count the bytes of an answer."""
        with self._guard:
            self.bytes += count

    def by_stage(self) -> Mapping[str, int]:
        """Return the CPU time of each stage so far, ns."""
        with self._guard:
            return dict(self._ns)
