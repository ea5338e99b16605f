"""Kinds of healthy fleets, which must raise no alert."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.deploy.live_faults import store
from tests.deploy.live_fire import QUIET, Fleet
from tests.deploy.live_firing import Step


def _healthy(name: str, receivers: int, **more: Any) -> Step:
    def step(fleet: Fleet) -> None:
        place = more.get("endpoint") or fleet.place(name)
        common = {"topics": [name.upper()], "instance": QUIET, **more, "endpoint": place}
        for number in range(receivers):
            fleet.actor(f"{name}-{number}", "receiver", **{**common, "options": {}})
        fleet.actor(name, "feed", **common)

    return step


HEALTHY: Mapping[str, Step] = {
    "1,000 messages a second, evenly": _healthy("even", 2, rate=1000),
    "no messages": _healthy("idle", 1, rate=0),
    "one message in 10 s": _healthy("rare", 1, rate=0.1),
    "bursts of 2,000 messages a second at a limit of 1 MB/s": _healthy(
        "limit", 1, rate=2000, bursts=True, options={"rate": 1_000_000}
    ),
    "eight receivers": _healthy("many", 8, rate=100),
    "unicast": lambda f: _healthy("single", 1, rate=200, endpoint=f"rmm+unicast://127.0.0.1:{f.port('single')}")(f),
    "TCP": lambda f: _healthy("tcp", 1, rate=200, endpoint=f"rum://127.0.0.1:{f.port('tcp')}")(f),
    "a store": lambda f: store(f, "well", source={}),
}
"""Kinds of fleets beside the house, which sends bursts of 400 messages a second to three receivers."""
