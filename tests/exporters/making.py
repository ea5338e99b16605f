"""Snapshots made by hand, for tests that care about a few objects and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from heliograph.engine import catalogue
from heliograph.monitor.latency import cell_of
from heliograph.monitor.model import Health, Histogram, InstanceState, ObjectState, Snapshot

__all__ = ["CELLS", "HIGHEST", "at", "histogram", "instance", "receiver", "state"]

CELLS = 27648
HIGHEST = 60_000_000_000
SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def histogram(counts: Mapping[int, int], above: int = 0) -> Histogram:
    """A histogram in the engine's layout from value in ns -> how often."""
    cells = np.zeros(CELLS, dtype=np.uint64)
    for value, often in counts.items():
        cells[cell_of(value)] += np.uint64(often)
    total = sum(value * often for value, often in counts.items())
    return Histogram(cells, lowest=1, highest=HIGHEST, digits=3, above=above, total_ns=total)


def state(
    scope: str,
    labels: Mapping[str, str],
    values: Mapping[str, int] | None = None,
    *,
    info: Mapping[str, str] | None = None,
    histograms: Mapping[str, Histogram] | None = None,
    live: bool = True,
    torn: bool = False,
    generation: int = 1,
) -> ObjectState:
    """One object; cells not given are 0."""
    cells = catalogue.scopes()[scope].cells
    plain = {cell.name: 0 for cell in cells if cell.statistic.kind != "histogram"}
    assert not set(values or {}) - set(plain), set(values or {}) - set(plain)
    return ObjectState(
        scope,
        dict(labels),
        dict(info or {}),
        {**plain, **(values or {})},
        dict(histograms or {}),
        live=live,
        torn=torn,
        created_ns=START,
        generation=generation,
    )


def receiver(
    node: str,
    topic: str = "PRICES.A",
    stream: str = "s1",
    *,
    histograms: Mapping[str, Histogram] | None = None,
    live: bool = True,
    generation: int = 1,
    **values: int,
) -> ObjectState:
    """A receiver of a node."""
    labels = {"instance": node, "topic": topic, "stream": stream}
    return state("receiver", labels, values, histograms=histograms, live=live, generation=generation)


def instance(
    name: str, *objects: ObjectState, health: Health = Health.LIVE, pid: int = 100, started_ns: int = START
) -> InstanceState:
    """An instance; its pid and start make its incarnation."""
    return InstanceState(
        name=name,
        health=health,
        reason="made by hand",
        pid=pid,
        incarnation=hash((name, pid, started_ns)) & 0xFFFF_FFFF,
        started_ns=started_ns,
        heartbeat_ns=START,
        path=f"/nowhere/{name}.{pid}.helio",
        objects=objects,
    )


def at(second: float, *instances: InstanceState, events_missed: int = 0) -> Snapshot:
    """The snapshot of a moment, in seconds after the start."""
    return Snapshot(START + int(second * SECOND), instances, events_missed=events_missed)
