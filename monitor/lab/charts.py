"""The charts of a run, each with a few series over time.

Pure functions from curves to values; `page` knows how they look.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from heliograph.monitor.lab.curves import Curves

__all__ = ["Chart", "Series", "charts"]


@dataclass(frozen=True, slots=True)
class Series:
    """One curve. style: a line, a thin one, or a dashed one for a limit."""

    name: str
    style: str
    values: array[float]
    """One of each interval."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves that share an axis."""

    key: str
    title: str
    unit: str
    series: tuple[Series, ...]


def _series(name: str, values: Iterable[float], style: str = "line") -> Series:
    return Series(name, style, array("f", values))


def _rates(curves: Curves) -> Iterator[Series]:
    plan = curves.plan
    for i, pipe in enumerate(plan.pipes):
        yield _series(f"{pipe.name}: its rate", curves.column(f"pipe{i}.rate"), "limit")
    for i, source in enumerate(plan.sources):
        if "rate=" in (source.options or ""):
            yield _series(f"{source.name}: rate in force", curves.column(f"source{i}.rate_limit"))
        sent = curves.per_second(f"source{i}.bytes_sent")
        again = curves.per_second(f"source{i}.repair_bytes")
        yield _series(f"{source.name}: sent", map(sum, zip(sent, again, strict=True)), "thin")
    for i, tcp in enumerate(plan.tcps):
        yield _series(f"{tcp.name}: acknowledged", curves.per_second(f"tcp{i}.acked"), "thin")


def _losses(curves: Curves) -> Iterator[Series]:
    plan = curves.plan
    sent = [sum(rates) for rates in zip(*_of_sources(curves, "packets_sent"), strict=True)]
    for i, group in enumerate(plan.receivers):
        missed = curves.per_second(f"group{i}.packets_missed")
        shares = [
            min(100.0, 100 * lost / (group.count * packets)) if packets else 0.0  # what is missed may be older
            for lost, packets in zip(missed, sent, strict=True)
        ]
        yield _series(f"{group.name}: missed at first", shares)


def _of_sources(curves: Curves, name: str) -> Iterator[list[float]]:
    for i in range(len(curves.plan.sources)):
        yield curves.per_second(f"source{i}.{name}")


def _queues(curves: Curves) -> Iterator[Series]:
    for i, pipe in enumerate(curves.plan.pipes):
        yield _series(f"{pipe.name}: fullest", curves.column(f"pipe{i}.queue_peak"))
        yield _series(f"{pipe.name}: its limit", curves.column(f"pipe{i}.queue_limit"), "limit")
    for i, group in enumerate(curves.plan.receivers):
        if group.drain >= 0 or any(turn.knob == "drain" and turn.which == i for turn in curves.plan.turns):
            yield _series(f"{group.name}: fullest", curves.column(f"group{i}.queue"))


def _requests(curves: Curves) -> Iterator[Series]:
    for i, source in enumerate(curves.plan.sources):
        yield _series(f"{source.name}: packets asked for", curves.per_second(f"source{i}.naks_received"))
        yield _series(f"{source.name}: packets repaired", curves.per_second(f"source{i}.repair_packets"), "thin")


def _latencies(curves: Curves) -> Iterator[Series]:
    for i, group in enumerate(curves.plan.receivers):
        longest = curves.column(f"group{i}.latency")
        yield _series(f"{group.name}: longest way of a message", (ns / 1e6 for ns in longest))


def _deliveries(curves: Curves) -> Iterator[Series]:
    for i, group in enumerate(curves.plan.receivers):
        each = curves.per_second(f"group{i}.delivered")
        yield _series(f"{group.name}: delivered, each", (rate / group.count for rate in each))
        lost = curves.per_second(f"group{i}.lost")
        yield _series(f"{group.name}: lost for good, each", (rate / group.count for rate in lost), "thin")


def charts(curves: Curves) -> list[Chart]:
    """The charts of one run."""
    return [
        Chart("rate", "Rate", "B/s", tuple(_rates(curves))),
        Chart("loss", "Loss", "% of packets", tuple(_losses(curves))),
        Chart("queue", "Queue", "B", tuple(_queues(curves))),
        Chart("naks", "Requests and repairs", "packets/s", tuple(_requests(curves))),
        Chart("delivered", "Delivered", "messages/s", tuple(_deliveries(curves))),
        Chart("latency", "Latency", "ms", tuple(_latencies(curves))),
    ]
