"""``heliograph stats``: prints every value of every instance, as text or as JSON.

The output with ``--json`` is one object. Its names are stable: `schema` increases when a name is removed or changes its
meaning.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any

from heliograph.engine import catalogue
from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor import latency
from heliograph.monitor.clocks import ONE_WAY, Clocks, OneWay, clocks_of
from heliograph.monitor.commands.arguments import add_collect_option, open_source
from heliograph.monitor.commands.common import Subparsers, add_command, add_instance_option, chosen
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Histogram, InstanceState, ObjectState, Snapshot
from heliograph.monitor.text import duration_text, printable

__all__ = ["clock_fields", "command", "histogram_fields", "snapshot_fields"]

SCHEMA = 1
_FRACTIONS = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99, "p999_ns": 0.999, "p9999_ns": 0.9999}


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``stats``."""
    parser = add_command(
        subparsers,
        "stats",
        "print every statistic of the running instances",
        "Print the present value of every statistic of the instances on this host.\n"
        "Counters count from the start of their object; latencies cover its whole life.",
        "heliograph stats --json --instance 'feed*' | jq '.instances[].objects[].values'",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object, with percentiles of the histograms")
    parser.add_argument("--scope", metavar="NAME", help=f"only objects of this scope: {', '.join(catalogue.scopes())}")
    parser.add_argument("--nonzero", action="store_true", help="leave out values that are 0 (not with --json)")
    add_collect_option(parser)
    add_instance_option(parser)
    parser.set_defaults(run=run)


def histogram_fields(histogram: Histogram) -> dict[str, Any]:
    """The figures of a histogram as plain values for JSON: latencies in ns, null when the histogram is empty."""
    count = histogram.count
    fields: dict[str, Any] = {"count": count, "above": histogram.above, "negative": histogram.negative}
    values = latency.percentiles(histogram, list(_FRACTIONS.values())) if count else [None] * len(_FRACTIONS)
    fields["min_ns"] = latency.minimum(histogram) if count else None
    fields["mean_ns"] = latency.mean(histogram) if count else None
    fields.update(zip(_FRACTIONS, values, strict=True))
    fields["max_ns"] = latency.maximum(histogram) if count else None
    return fields


def _streams_of(instance: InstanceState) -> dict[str, ObjectState]:
    """The streams that the instance receives, by label; a live stream replaces an ended one."""
    return {item.labels["stream"]: item for item in sorted(instance.of("rx_stream"), key=lambda item: item.live)}


def _one_ways(item: ObjectState, clocks: Clocks) -> Iterator[tuple[str, OneWay]]:
    """Yield the medians of the one-way latencies, with the clock error that limits them."""
    for name in ONE_WAY:
        histogram = item.histograms.get(name)
        if histogram is not None and histogram.count:
            yield name, OneWay(latency.percentile(histogram, 0.5), clocks)


def clock_fields(item: ObjectState, clocks: Clocks) -> dict[str, Any]:
    """The clocks of sender and receiver for JSON, and the verdict on the median of each one-way latency."""
    return {
        "source": clocks.source,
        "offset_ns": clocks.offset_ns if clocks.is_known else None,
        "bound_ns": clocks.bound_ns if clocks.is_known else None,
        "age_ns": clocks.age_ns,
        "latencies": {
            name: {
                "p50_raw_ns": found.raw_ns,
                "p50_corrected_ns": found.corrected_ns,
                "trust": found.trust,
                "reason": found.reason,
            }
            for name, found in _one_ways(item, clocks)
        },
    }


def _object_fields(item: ObjectState, clocks: Clocks | None) -> dict[str, Any]:
    more = {"clocks": clock_fields(item, clocks)} if clocks is not None else {}
    return {
        "scope": item.scope,
        "labels": dict(item.labels),
        "info": dict(item.info),
        "live": item.live,
        "torn": item.torn,
        "generation": item.generation,
        "created_ns": item.created_ns,
        "values": dict(item.values),
        "histograms": {name: histogram_fields(histogram) for name, histogram in item.histograms.items()},
        **more,
    }


def _clocks(instance: InstanceState, now_ns: int) -> Callable[[ObjectState], Clocks | None]:
    """Return a function that gives the clocks of a receiver's two ends; None for other objects."""
    streams = _streams_of(instance)

    def clocks(item: ObjectState) -> Clocks | None:
        return clocks_of(streams.get(item.labels["stream"]), now_ns) if item.scope == "receiver" else None

    return clocks


def snapshot_fields(snapshot: Snapshot, scope: str | None = None) -> dict[str, Any]:
    """Convert a snapshot to plain values for JSON."""
    return {
        "schema": SCHEMA,
        "time_ns": snapshot.time_ns,
        "instances": [
            {
                "name": instance.name,
                "health": instance.health,
                "reason": instance.reason,
                "pid": instance.pid,
                "incarnation": f"{instance.incarnation:016x}",
                "started_ns": instance.started_ns,
                "heartbeat_ns": instance.heartbeat_ns,
                "path": instance.path,
                "objects": [
                    _object_fields(item, clocks(item)) for item in instance.objects if scope in (None, item.scope)
                ],
            }
            for instance in snapshot.instances
            for clocks in (_clocks(instance, snapshot.time_ns),)
        ],
    }


def _lines(snapshot: Snapshot, scope: str | None, nonzero: bool, absence: str) -> Iterator[str]:
    if not snapshot.instances:
        yield printable(absence)
    for instance in snapshot.instances:
        yield f"{printable(instance.name)}  {instance.health}: {printable(instance.reason)}"
        clocks = _clocks(instance, snapshot.time_ns)
        for item in instance.objects:
            if scope not in (None, item.scope):
                continue
            labels = "  ".join(f"{key}={value}" for key, value in item.labels.items() if key != "instance")
            state = "" if item.live else "  (closed)"
            torn = "  (torn: the writer stopped during an update)" if item.torn else ""
            yield f"  {printable(f'{item.scope}  {labels}'.rstrip())}{state}{torn}"
            known = catalogue.scopes().get(item.scope)
            units = {cell.name: cell.statistic.unit for cell in known.cells} if known else {}
            for name, value in item.values.items():
                if value or not nonzero:
                    yield f"    {printable(name):<34} {value:>20} {units.get(name, '')}".rstrip()
            for name, histogram in item.histograms.items():
                yield from _histogram_lines(name, histogram, nonzero)
            if (known_clocks := clocks(item)) is not None:
                for name, found in _one_ways(item, known_clocks):
                    yield f"    {printable(name):<34} {found.trust:>20}: {found.reason}"


def _histogram_lines(name: str, histogram: Histogram, nonzero: bool) -> Iterator[str]:
    count = histogram.count
    if not count:
        if not nonzero:
            yield f"    {printable(name):<34} {0:>20} values"
        return
    values = latency.percentiles(histogram, [0.5, 0.99, 0.999])
    titles = zip(("p50", "p99", "p99.9", "max"), (*values, latency.maximum(histogram)), strict=True)
    figures = "  ".join(f"{title} {duration_text(value)}" for title, value in titles)
    yield f"    {printable(name):<34} {count:>20} values  {figures}"


def run(arguments: argparse.Namespace) -> int:
    """Take one snapshot and print it."""
    if arguments.scope is not None and arguments.scope not in catalogue.scopes():
        raise UserError(f"unknown scope {arguments.scope!r}; scopes: {', '.join(catalogue.scopes())}")
    with open_source(arguments) as source:
        snapshot = chosen(source.sample(), arguments.instance)
        absence = source.absence
    if arguments.json:
        sys.stdout.write(json_text(snapshot_fields(snapshot, arguments.scope), indent=2))
        sys.stdout.write("\n")
        return 0
    for line in _lines(snapshot, arguments.scope, arguments.nonzero, absence):
        print(line)
    return 0
