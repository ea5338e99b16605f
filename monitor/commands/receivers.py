"""``heliograph receivers``: lists the receivers of all transmitters, the worst first (also ``ctl receivers``)."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, replace

from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.clocks import clocks_text
from heliograph.monitor.commands.arguments import add_collect_option, interval, open_source, positive
from heliograph.monitor.commands.common import Subparsers, add_command, add_instance_option, chosen, only
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Health, Snapshot
from heliograph.monitor.sources import ReceiverOfStream, receivers_of
from heliograph.monitor.text import bytes_text, count_text, duration_text, percent_text, table
from heliograph.monitor.worst import MOST, worst

__all__ = ["command", "receiver_lines"]

_ABOUT = """\
List the receivers of the transmitters on this host, the worst first. For each receiver the list shows how far it is
behind in packets, bytes and seconds, its share of all repair requests, how long data waited for it, and the time
until the packets it needs leave the history. The command reads shared memory; it sends nothing to receivers.

Order: expelled or suspended receivers first, then stalled, silent, falling behind and catching up. Receivers of one
class are ordered by loss, lag, buffer fill and the time that data waited for them.
"""


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``receivers``."""
    parser = add_command(
        subparsers, "receivers", "list the receivers of all transmitters, the worst first", _ABOUT,
        "heliograph receivers --worst 10 --interval 1",
    )  # fmt: skip
    parser.add_argument("--worst", metavar="N", type=positive, help="print only the N worst")
    parser.add_argument("--interval", metavar="SECONDS", type=interval, help="repeat at this interval until Ctrl-C")
    parser.add_argument("--count", metavar="N", type=positive, help="with --interval: stop after N lists")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object; with --interval one per list, one per line"
    )
    add_collect_option(parser)
    add_instance_option(parser)
    parser.set_defaults(run=run)


def receiver_lines(found: Sequence[ReceiverOfStream]) -> list[str]:
    """Format the receivers as a table."""
    if not found:
        return ["no receivers: none has requested a repair, acknowledged or reported"]
    head = (
        "INSTANCE", "STREAM", "RECEIVER", "ID", "ADDRESS", "CLASS", "ACTION", "LOSS", "LAG", "LAG BYTES", "BEHIND",
        "BUFFER", "RTT", "CLOCK", "NAKS", "OF ALL", "DATA LEFT", "WAITED", "HEARD", "WHY",
    )  # fmt: skip
    rows = [
        (
            item.instance,
            item.stream,
            item.name or "-",
            item.receiver or "-",
            item.address,
            item.behaviour.words,
            item.action or "-",
            percent_text(item.loss),
            count_text(item.lag),
            bytes_text(item.lag_bytes) if item.lag_bytes is not None else "-",
            duration_text(item.lag_ns),
            percent_text(item.buffer_fill),
            duration_text(item.round_trip_ns or None),
            clocks_text(item.clocks),
            count_text(item.naks),
            percent_text(item.nak_share),
            item.forecast_text,
            duration_text(item.blame_ns or None),
            f"{duration_text(item.silent_ns)} ago",
            item.reason,
        )
        for item in found
    ]
    return table(head, rows, left=7)


def running(snapshot: Snapshot) -> Snapshot:
    """Keep the instances that run."""
    alive = tuple(item for item in snapshot.instances if item.health in (Health.LIVE, Health.STALE))
    return replace(snapshot, instances=alive)


def listing(time_ns: int, found: Sequence[ReceiverOfStream], as_json: bool) -> str:
    """Format one list."""
    if as_json:
        return json_text({"time_ns": time_ns, "receivers": [{**asdict(item), "reason": item.reason} for item in found]})
    return "\n".join(receiver_lines(found))


def run(arguments: argparse.Namespace) -> int:
    """Print the list once, or at an interval."""
    if arguments.worst is not None and arguments.worst > MOST:
        raise UserError(f"--worst must be from 1 to {MOST}")
    if arguments.count is not None and arguments.interval is None:
        raise UserError("--count needs --interval, the time between two lists")
    previous: Snapshot | None = None
    shown = 0
    with open_source(arguments) as sampler:
        while True:
            keep = only if shown else chosen
            current = running(keep(sampler.sample(histograms=False), arguments.instance))
            found = worst(receivers_of(current, previous), arguments.worst)
            gap = "\n" if shown and not arguments.json else ""
            print(gap + listing(current.time_ns, found, arguments.json), flush=True)
            shown += 1
            if arguments.interval is None or shown == arguments.count:
                return 0
            previous = current
            time.sleep(arguments.interval)
