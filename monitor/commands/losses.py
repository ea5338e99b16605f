"""``heliograph losses``: what was lost for good, also from streams that are gone."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.commands.common import Subparsers, add_command, add_instance_option, only, sampler_of
from heliograph.monitor.losses import LossRow, losses
from heliograph.monitor.model import Snapshot
from heliograph.monitor.text import bytes_text, count_text, printable, table

__all__ = ["command", "loss_lines"]

_ABOUT = """\
List what the receiving instances on this host lost for good, by stream and cause, the newest loss first:
how often and how much, when first and last. An instance keeps this for as long as it runs, also when the
stream is long gone; at most 64 streams and causes, of which those whose last loss is oldest give way.
Bytes are an estimate: a packet that never came has no known size.
"""


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``losses``."""
    parser = add_command(
        subparsers, "losses", "list what was lost for good, also from streams that are gone", _ABOUT,
        "heliograph losses --instance 'desk*'",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one JSON object a line for each stream and cause")
    add_instance_option(parser)
    parser.set_defaults(run=run)


def _moment(ns: int) -> str:
    return f"{datetime.fromtimestamp(ns // 1_000_000_000):%Y-%m-%d %H:%M:%S}.{ns % 1_000_000_000 // 1_000_000:03}"


def loss_lines(rows: Sequence[LossRow], snapshot: Snapshot) -> list[str]:
    """The losses as a table for people, and what could not be kept."""
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
            _moment(row.first_ns),
            _moment(row.last_ns),
            row.source,
        )
        for row in rows
    ]
    if not snapshot.instances:
        return ["no instance is running here"]
    lines = table(head, cells, left=5) if rows else ["nothing was lost for good"]
    for owner, item in snapshot.of("instance"):
        gone = item.values.get("losses_replaced", 0) + item.values.get("losses_unrecorded", 0)
        if gone:
            lines.append(f"{printable(owner.name)}: {gone} more had no room, or gave way to newer ones")
    return lines


def run(arguments: argparse.Namespace) -> int:
    """Take one snapshot and print the losses."""
    with sampler_of(arguments) as sampler:
        snapshot = sampler.sample(histograms=False)
    wanted = {item.name for item in only(snapshot, arguments.instance).instances}
    rows = [row for row in losses(snapshot) if row.instance in wanted]  # senders are looked for in all
    if arguments.json:
        for row in rows:
            print(json_text(asdict(row)))
        return 0
    print("\n".join(loss_lines(rows, only(snapshot, arguments.instance))))
    return 0
