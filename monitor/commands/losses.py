"""``heliograph losses``: lists unrecoverable losses, also of streams that have ended."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from heliograph.engine.catalogue.outside import json_text
from heliograph.engine.catalogue.times import add_utc_option, date_time
from heliograph.monitor.commands.arguments import add_collect_option, open_source
from heliograph.monitor.commands.common import Subparsers, add_command, add_instance_option, chosen
from heliograph.monitor.losses import LossRow, losses
from heliograph.monitor.model import Snapshot
from heliograph.monitor.text import bytes_text, count_text, printable, table

__all__ = ["command", "loss_lines"]

_ABOUT = """\
List the unrecoverable losses of the receiving instances on this host, by stream and cause, latest first: number,
size, and the times of the first and the last loss. An instance keeps this list while it runs, also after the stream
has ended. It holds at most 64 pairs of stream and cause; the pair with the oldest last loss is replaced first.
Bytes are an estimate: the size of a packet that never arrived is unknown.
"""


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``losses``."""
    parser = add_command(
        subparsers, "losses", "list unrecoverable losses, also of streams that have ended", _ABOUT,
        "heliograph losses --instance 'desk*'",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_collect_option(parser)
    add_instance_option(parser)
    add_utc_option(parser)
    parser.set_defaults(run=run)


def loss_lines(rows: Sequence[LossRow], snapshot: Snapshot) -> list[str]:
    """Format the losses as a table, with a note about losses that the list could not hold."""
    head = (
        "RECEIVER", "STREAM", "OF", "CAUSE", "STREAM IS", "TIMES", "PACKETS", "BYTES ~", "LONGEST", "FIRST", "LAST",
        "SOURCE",
    )  # fmt: skip
    cells = [
        (
            row.instance,
            row.stream,
            row.transmitter or "-",
            row.cause.replace("_", " "),
            "live" if row.is_live else "gone",
            count_text(row.observations),
            count_text(row.packets),
            bytes_text(row.bytes_estimated),
            count_text(row.longest),
            date_time(row.first_ns, "milliseconds"),
            date_time(row.last_ns, "milliseconds"),
            row.source,
        )
        for row in rows
    ]
    if not snapshot.instances:
        return ["no running instance found"]
    lines = table(head, cells, left=5) if rows else ["no unrecoverable losses"]
    for owner, item in snapshot.of("instance"):
        gone = item.values.get("losses_replaced", 0) + item.values.get("losses_unrecorded", 0)
        if gone:
            lines.append(f"{printable(owner.name)}: {gone} more did not fit, or were replaced by newer ones")
    return lines


def run(arguments: argparse.Namespace) -> int:
    """Take one snapshot and print the losses."""
    with open_source(arguments) as sampler:
        snapshot = sampler.sample(histograms=False)
    shown = chosen(snapshot, arguments.instance)
    wanted = {item.name for item in shown.instances}
    rows = [row for row in losses(snapshot) if row.instance in wanted]  # senders are searched in all instances
    if arguments.json:
        print(json_text({"time_ns": snapshot.time_ns, "losses": [asdict(row) for row in rows]}))
        return 0
    print("\n".join(loss_lines(rows, shown)))
    return 0
