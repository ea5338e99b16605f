"""A module that is too slow: each snapshot takes it longer than the interval of snapshots."""

from __future__ import annotations

import time
from collections.abc import Mapping

from heliograph.engine import catalogue
from heliograph.monitor.model import Event, Snapshot

SECONDS = 5.0


class Slow:
    def __init__(self, options: str) -> None:
        pass

    def describe(self, scopes: Mapping[str, catalogue.Scope]) -> None:
        pass

    def snapshot(self, snapshot: Snapshot) -> None:
        time.sleep(SECONDS)

    def event(self, event: Event) -> None:
        pass

    def close(self) -> None:
        pass
