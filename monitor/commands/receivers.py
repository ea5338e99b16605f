"""``heliograph receivers``: the receivers that transmitters know, the worst first (also ``ctl receivers``)."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, replace

from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.clocks import clocks_text
from heliograph.monitor.commands.arguments import interval, positive
from heliograph.monitor.commands.common import Subparsers, add_command, add_instance_option, only, sampler_of
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Health, Snapshot
from heliograph.monitor.sources import ReceiverOfStream, receivers_of
from heliograph.monitor.text import bytes_text, count_text, duration_text, percent_text, table
from heliograph.monitor.worst import MOST, worst

__all__ = ["command", "receiver_lines"]

_ABOUT = """\
List the receivers that the transmitters on this host know, the worst first: how far each is behind in
packets, bytes and seconds, its share of all requests for repair, how long data waited for it, and when
what it needs will have left the history. Read from shared memory; no receiver is asked for anything.

Worst is who is expelled or suspended, then who stands still, is silent, falls behind or catches up, and
among equals who loses, lags, fills its buffers or is waited for most.
"""


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``receivers``."""
    parser = add_command(
        subparsers, "receivers", "list the receivers that transmitters know, the worst first", _ABOUT,
        "heliograph receivers --worst 10 --interval 1",
    )  # fmt: skip
    parser.add_argument("--worst", metavar="N", type=positive, help="only the N worst")
    parser.add_argument("--interval", metavar="SECONDS", type=interval, help="again and again, until Ctrl-C")
    parser.add_argument("--count", metavar="N", type=positive, help="with --interval: stop after N lists")
    parser.add_argument("--json", action="store_true", help="one JSON object a line for each receiver")
    add_instance_option(parser)
    parser.set_defaults(run=run)


def receiver_lines(found: Sequence[ReceiverOfStream]) -> list[str]:
    """The receivers as a table for people."""
    if not found:
        return ["no stream knows a receiver: none has asked for a repair, acknowledged or reported"]
    head = (
        "INSTANCE", "STREAM", "RECEIVER", "ID", "ADDRESS", "CLASS", "TREATMENT", "LOSS", "LAG", "LAG BYTES", "BEHIND",
        "BUFFER", "RTT", "CLOCK", "NAKS", "OF ALL", "DATA LEFT", "WAITED", "HEARD", "WHY",
    )  # fmt: skip
    rows = [
        (
            item.instance,
            item.stream,
            item.name or "-",
            item.receiver or "-",
            item.address,
            item.manner,
            item.treatment or "-",
            percent_text(item.loss),
            count_text(item.lag),
            bytes_text(item.lag_bytes) if item.lag_bytes is not None else "-",
            duration_text(item.lag_ns),
            percent_text(item.buffer_fill),
            duration_text(item.round_trip_ns or None),
            clocks_text(item.clocks),
            count_text(item.naks),
            percent_text(item.nak_share),
            duration_text(item.forecast_ns or None),
            duration_text(item.blame_ns or None),
            f"{duration_text(item.silent_ns)} ago",
            item.told,
        )
        for item in found
    ]
    return table(head, rows, left=7)


def running(snapshot: Snapshot) -> Snapshot:
    """The instances that run."""
    alive = tuple(item for item in snapshot.instances if item.health in (Health.LIVE, Health.STALE))
    return replace(snapshot, instances=alive)


def listing(found: Sequence[ReceiverOfStream], as_json: bool) -> list[str]:
    """The lines of one list."""
    if as_json:
        return [json_text({**asdict(item), "told": item.told}) for item in found]
    return receiver_lines(found)


def run(arguments: argparse.Namespace) -> int:
    """Print the list, once or again and again."""
    if arguments.worst is not None and arguments.worst > MOST:
        raise UserError(f"--worst takes 1 to {MOST}")
    if arguments.count is not None and arguments.interval is None:
        raise UserError("--count needs --interval: how long to wait between two lists")
    previous: Snapshot | None = None
    shown = 0
    with sampler_of(arguments) as sampler:
        while True:
            current = running(only(sampler.sample(histograms=False), arguments.instance))
            found = worst(receivers_of(current, previous), arguments.worst)
            gap = [""] if shown and not arguments.json else []
            lines = [*gap, *listing(found, arguments.json)]
            if lines:
                print("\n".join(lines), flush=True)
            shown += 1
            if arguments.interval is None or shown == arguments.count:
                return 0
            previous = current
            time.sleep(arguments.interval)
