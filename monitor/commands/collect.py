"""``heliograph collect``: receives the reports of many hosts, shows the state of each host, and can forward them."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any

from heliograph.engine.catalogue.outside import json_text
from heliograph.engine.catalogue.times import add_utc_option, time_of_day
from heliograph.monitor.commands.arguments import COLLECT_MIB, engine_options, interval, positive
from heliograph.monitor.commands.common import Subparsers
from heliograph.monitor.commands.publish import RATE_BYTES, add_transport_options
from heliograph.monitor.commands.terminal import is_screen
from heliograph.monitor.commands.ticking import stopping, tick
from heliograph.monitor.text import bytes_text, duration_text, printable, table

if TYPE_CHECKING:
    from heliograph.monitor.collector.account import Account, HostState
    from heliograph.monitor.collector.relay import Relay
    from heliograph.monitor.model import Snapshot

__all__ = ["account_fields", "command", "status"]

SCHEMA = 1
_COUNTS = ("SNAPSHOTS", "LOST", "AWAITING", "SKIPPED", "DAMAGED")

_ABOUT = """\
Receive the reports of every host whose 'heliograph publish' sends to an endpoint. Show the state of each host
and the reports that are missing. With --to, forward all reports as one stream to the collectors of another site.
The commands with --collect show the fleet: top, stats, events, monitor, export, live.
"""
_EXAMPLE = """\
examples:
  heliograph collect --from "rmm://239.192.77.9:7709?interface=10.0.0.5"
  heliograph collect --from rum://0.0.0.0:7709 --json
  heliograph collect --from "rmm://239.192.77.9:7709?interface=10.0.0.5" --to rum://head-office:7709
  heliograph top --collect "rmm://239.192.77.9:7709?interface=10.0.0.5"
"""


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``collect``."""
    parser = subparsers.add_parser(
        "collect",
        help="receive the reports of other hosts, show missing reports, forward all",
        description=_ABOUT,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--from",
        dest="sources",
        metavar="URL",
        action="append",
        required=True,
        help="endpoint to receive from; repeatable",
    )
    parser.add_argument("--to", metavar="URL", action="append", default=[], help="endpoint to forward to; repeatable")
    parser.add_argument(
        "--interval",
        metavar="SECONDS",
        type=interval,
        default=1.0,
        help="time between two outputs, and between two messages (default: 1)",
    )
    parser.add_argument(
        "--rate",
        metavar="BYTES",
        type=positive,
        default=RATE_BYTES,
        help=f"with --to: send at most this many bytes per second (default: {RATE_BYTES})",
    )
    parser.add_argument(
        "--memory",
        metavar="MIB",
        type=positive,
        default=COLLECT_MIB,
        help=f"memory limit for received reports (default: {COLLECT_MIB})",
    )
    add_transport_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object per interval, one per line")
    add_utc_option(parser)
    parser.add_argument("--count", metavar="N", type=positive, help="stop after N intervals")
    parser.add_argument("--seconds", metavar="SECONDS", type=interval, help="stop after this time")
    parser.set_defaults(run=run)


def _host_fields(host: HostState) -> dict[str, Any]:
    return {
        "host": host.host,
        "origin": f"{host.origin:016x}",
        "place": host.place,
        "up": not host.silent and not host.reason,
        "reason": host.reason,
        "age_s": round(host.age, 3),
        "interval_s": host.interval,
        "relays": host.hops,
        "instances": host.instances,
        **dataclasses.asdict(host.stats),
        "events_missed_by_instance": dict(host.missed_by_instance),
    }


def account_fields(snapshot: Snapshot, account: Account, absence: str, relay: Relay | None = None) -> dict[str, Any]:
    """The counters of one interval as plain values for JSON. The names are stable."""
    return {
        "schema": SCHEMA,
        "time_ns": snapshot.time_ns,
        "instances": len(snapshot.instances),
        "absence": "" if snapshot.instances else absence,
        "events": len(snapshot.events),
        "events_missed": snapshot.events_missed,
        "hosts": [_host_fields(host) for host in account.hosts],
        "messages": dataclasses.asdict(account.stats),
        "relay": dataclasses.asdict(relay.stats) if relay is not None else None,
    }


def status(snapshot: Snapshot, account: Account, absence: str, relay: Relay | None = None) -> list[str]:
    """The same counters as lines of text."""
    up = sum(not host.silent and not host.reason for host in account.hosts)
    stats = account.stats
    lines = [
        f"heliograph  {time_of_day(snapshot.time_ns)}  {up} of {len(account.hosts)} hosts report  "
        f"{len(snapshot.instances)} instances  {stats.messages} messages, {stats.lost} lost, {stats.refused} refused"
    ]
    if relay is not None:
        passed = relay.stats
        lines.append(f"forwarded {passed.reports} snapshots in {passed.messages} messages, skipped {passed.skipped}")
    if stats.refused_by:
        causes = ", ".join(f"{cause} {count}" for cause, count in stats.refused_by.items())
        lines.append(f"reports refused: {causes}")
    if not snapshot.instances:
        lines.append(printable(absence))
    if not account.hosts:
        return lines
    head = ("HOST", "INSTANCES", "HEARD", "EVERY", "RELAYS", *_COUNTS, "SIZE", "EVENTS", "MISSED", "STATE")
    rows = [
        (
            host.host,
            str(host.instances),
            f"{duration_text(host.age * 1e9)} ago",
            f"{host.interval:g} s",
            str(host.hops),
            *(str(value) for value in (host.stats.snapshots, host.stats.lost, host.stats.awaiting)),
            *(str(value) for value in (host.stats.skipped, host.stats.damaged)),
            bytes_text(host.stats.bytes),
            *(str(value) for value in (host.stats.events, host.stats.events_missed)),
            host.reason or "ok",
        )
        for host in account.hosts
    ]
    return [*lines, *table(head, rows)]


def run(arguments: argparse.Namespace) -> int:
    """Receive until interrupted."""
    from contextlib import ExitStack

    from heliograph.monitor.collector.collector import Collector
    from heliograph.monitor.collector.guard import Bounds
    from heliograph.monitor.collector.link import EngineInlet, EngineOutlet
    from heliograph.monitor.collector.relay import Relay, new_identity

    hearing = engine_options(arguments.option, "instance", "receiver")
    telling = engine_options(arguments.option, "instance", "transmitter")
    identity = new_identity()
    stop = stopping(arguments.seconds)
    left = arguments.count
    with ExitStack() as stack:
        inlet = EngineInlet(arguments.sources, arguments.topic, **hearing)
        collector = stack.enter_context(Collector(inlet, identity=identity, bounds=Bounds(arguments.memory << 20)))
        relay = None
        if arguments.to:
            outlet = stack.enter_context(EngineOutlet(arguments.to, arguments.rate, arguments.topic, **telling))
            relay = Relay(outlet, identity, interval=arguments.interval)
        screen = is_screen() and not arguments.json

        def step() -> None:
            nonlocal left
            snapshot = collector.sample()
            if relay is not None:
                relay.forward(collector.news)
            if arguments.json:
                print(json_text(account_fields(snapshot, collector.account, collector.absence, relay)), flush=True)
            else:
                lines = status(snapshot, collector.account, collector.absence, relay)
                print(("\x1b[H\x1b[J" if screen else "") + "\n".join(lines) + "\n", flush=True)
            if left is not None:
                left -= 1
                if not left:
                    stop.set()

        tick(step, arguments.interval, stop)
    return 0
