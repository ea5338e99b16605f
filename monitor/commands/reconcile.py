"""``heliograph reconcile``: reconciles the counters of every object, and shows data in flight.

The output with ``--json`` is one object. Its names are stable: `schema` increases when a name is removed or changes its
meaning.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.commands.arguments import add_collect_option, open_source
from heliograph.monitor.commands.common import Subparsers, add_command, add_instance_option, chosen, only
from heliograph.monitor.localise import Location, locate
from heliograph.monitor.model import Snapshot
from heliograph.monitor.reconciliation import Account, Crossing, accounts, crossings, is_quiet, sentence
from heliograph.monitor.sampler import Source
from heliograph.monitor.text import printable, table

__all__ = ["book_lines", "command"]

SCHEMA = 1
QUIET = 0.2
"""Seconds without a change after which traffic counts as quiet; longer than a sleeping engine leaves gauges stale."""


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``reconcile``."""
    parser = add_command(
        subparsers,
        "reconcile",
        "check that the counters of sent, delivered, filtered and lost data add up",
        "Reconcile the counters of the instances on this host. In every object the counters must add up\n"
        "(engine/docs/identities.md), also while messages flow. Data that the sender has sent and the receiver\n"
        "has not passed yet is in flight. With --wait the command first waits until traffic is quiet.\n"
        "The command also shows the location of every loss, as far as it is known.\n"
        "Exit code 1: the counters of an object do not add up.",
        "heliograph reconcile --wait 10",
    )
    parser.add_argument(
        "--wait", metavar="SECONDS", type=_seconds, default=0.0, help="longest wait for quiet traffic (default: 0)"
    )
    parser.add_argument("--all", action="store_true", help="print every sum, not only those that do not add up")
    parser.add_argument("--json", action="store_true", help="one JSON object with every sum")
    add_collect_option(parser)
    add_instance_option(parser)
    parser.set_defaults(run=run)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not (math.isfinite(value) and 0 <= value <= 86_400):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds from 0 to 86400")
    return value


def _sample(sampler: Source, pattern: str | None, wait: float) -> tuple[Snapshot, bool | None]:
    """Take a snapshot and tell whether traffic is quiet; None: the caller did not ask to wait."""
    snapshot = chosen(sampler.sample(histograms=False), pattern)
    if wait <= 0:
        return snapshot, None
    until = time.monotonic() + wait
    while time.monotonic() < until:
        time.sleep(QUIET)
        later = only(sampler.sample(histograms=False), pattern)
        if is_quiet(snapshot, later):
            return later, True
        snapshot = later
    return snapshot, False


def _labels_text(labels: dict[str, str]) -> str:
    return printable(" ".join(labels.values()))


def _loss_lines(losses: Sequence[Location]) -> list[str]:
    return [
        f"{printable(row.instance)}: of stream {printable(row.stream)} "
        f"{row.verdict.evidence}; confidence {row.verdict.confidence:.2f}"
        for row in losses
        if row.lost
    ]


def book_lines(
    rows: Sequence[Account], ends: Sequence[Crossing], losses: Sequence[Location], every: bool, quiet: bool | None
) -> list[str]:
    """Format the reconciliation as text: sums, sender and receiver positions, and a summary.

    Args:
        rows: The sums.
        ends: Positions of senders and receivers, and the data in flight between them.
        losses: Where packets were lost.
        every: Print every sum, not only those that do not add up.
        quiet: Whether traffic became quiet; None: the command did not wait.
    """
    if not rows:
        return ["no running instance with counters to reconcile"]
    wrong = [row for row in rows if row.residual]
    shown = rows if every else wrong
    lines = []
    if shown:
        head = ("INSTANCE", "SCOPE", "OBJECT", "SUM", "LEFT", "RIGHT", "RESIDUAL")
        cells = [
            (
                printable(row.instance),
                row.scope,
                _labels_text(dict(row.labels)),
                row.identity,
                str(row.left),
                str(row.right),
                str(row.residual),
            )
            for row in shown
        ]
        lines += [*table(head, cells, left=4), ""]
    if ends:
        head = ("RECEIVER", "SENDER", "OBJECT", "OF", "SENT UP TO", "PASSED UP TO", "IN FLIGHT")
        cells = [
            (
                printable(end.receiver),
                printable(end.sender),
                _labels_text(dict(end.labels)),
                end.unit,
                str(end.sent),
                str(end.passed),
                str(end.in_flight),
            )
            for end in ends
        ]
        lines += [*table(head, cells, left=4), ""]
    if places := _loss_lines(losses):
        lines += [*places, ""]
    lines += [f"{printable(row.instance)}: {sentence(row)}" for row in wrong]
    objects = len({(row.instance, row.scope, tuple(row.labels.values())) for row in rows})
    under_way = sum(end.in_flight > 0 for end in ends)
    state = {None: "", True: "; traffic is quiet", False: "; traffic did not become quiet"}[quiet]
    if quiet and under_way:
        state += f", and {under_way} receivers have not passed all sent data: queue full, or no heartbeat received"
    lines.append(
        f"{len(rows)} sums of {objects} objects: "
        + (f"{len(wrong)} do not add up" if wrong else "every residual is 0")
        + state
    )
    return lines


def _fields(
    snapshot: Snapshot,
    rows: Sequence[Account],
    ends: Sequence[Crossing],
    losses: Sequence[Location],
    quiet: bool | None,
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "time_ns": snapshot.time_ns,
        "quiet": quiet,
        "balanced": not any(row.residual for row in rows),
        "sums": [
            {
                "instance": row.instance,
                "scope": row.scope,
                "labels": dict(row.labels),
                "live": row.live,
                "identity": row.identity,
                "unit": row.unit,
                "left": row.left,
                "right": row.right,
                "residual": row.residual,
                "terms": dict(row.terms),
            }
            for row in rows
        ],
        "ends": [
            {
                "join": end.join,
                "unit": end.unit,
                "sender": end.sender,
                "receiver": end.receiver,
                "labels": dict(end.labels),
                "sent": end.sent,
                "passed": end.passed,
                "in_flight": end.in_flight,
            }
            for end in ends
        ],
        "losses": [
            {
                "instance": row.instance,
                "stream": row.stream,
                "sender": row.sender,
                "lost": row.lost,
                "late": row.late,
                "places": dict(row.verdict.places),
                "place": row.verdict.place,
                "confidence": row.verdict.confidence,
                "evidence": row.verdict.evidence,
            }
            for row in losses
        ],
    }


def run(arguments: argparse.Namespace) -> int:
    """Reconcile and print; returns 1 when a sum does not add up."""
    with open_source(arguments) as sampler:
        snapshot, quiet = _sample(sampler, arguments.instance, arguments.wait)
    rows, ends, losses = accounts(snapshot), crossings(snapshot), locate(None, snapshot)
    if arguments.json:
        sys.stdout.write(json_text(_fields(snapshot, rows, ends, losses, quiet), indent=2))
        sys.stdout.write("\n")
    else:
        print("\n".join(book_lines(rows, ends, losses, arguments.all, quiet)))
    return 1 if any(row.residual for row in rows) else 0
