"""``heliograph events``: prints events, oldest first."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from heliograph.engine.catalogue.outside import json_text
from heliograph.engine.catalogue.times import add_utc_option, date_time
from heliograph.monitor.commands.arguments import add_collect_option, open_source
from heliograph.monitor.commands.common import Subparsers, add_command, add_instance_option, chosen, only
from heliograph.monitor.log import event_fields
from heliograph.monitor.model import Event, Snapshot
from heliograph.monitor.text import printable

__all__ = ["command", "event_line"]

POLL_SECONDS = 0.2


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``events``."""
    parser = add_command(
        subparsers,
        "events",
        "print events: losses, full queues, new and ended streams",
        "Print the events that the instances on this host still hold, oldest first.\n"
        "With --follow continue with new events until interrupted.",
        "heliograph events --follow --instance 'slow*'",
    )
    parser.add_argument("--follow", action="store_true", help="continue with new events until Ctrl-C")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object; with --follow one per event, one per line"
    )
    add_collect_option(parser)
    add_instance_option(parser)
    add_utc_option(parser)
    parser.set_defaults(run=run)


def _shown(name: str, value: int) -> str:
    """A value as the other outputs show it: a receiver by its id, as ``heliograph ctl receivers`` lists it."""
    return f"{value:016x}" if name == "receiver" and value else str(value)


def event_line(event: Event) -> str:
    """Format an event as one line of text."""
    about = " ".join(value for key, value in event.labels.items() if key != "instance")
    arguments = " ".join(f"{name}={_shown(name, value)}" for name, value in event.arguments.items())
    stamp = date_time(event.time_ns, "microseconds")
    parts = (stamp, f"{event.severity:<7}", event.instance, event.name, about, event.text, arguments)
    return "  ".join(printable(part) for part in parts if part)


def _fields(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "time_ns": snapshot.time_ns,
        "events": [event_fields(event) for event in snapshot.events],
        "events_missed": snapshot.events_missed,
    }


def run(arguments: argparse.Namespace) -> int:
    """Print the stored events and, with ``--follow``, the new ones."""
    with open_source(arguments) as sampler:
        while True:
            keep = only if arguments.follow else chosen
            snapshot = keep(sampler.sample(histograms=False), arguments.instance)
            if arguments.json and not arguments.follow:
                print(json_text(_fields(snapshot)))
            else:
                for event in snapshot.events:
                    print(json_text(event_fields(event)) if arguments.json else event_line(event))
            if snapshot.events_missed:
                note = f"{snapshot.events_missed} events were overwritten before they could be read"
                print(f"heliograph: {note}", file=sys.stderr)
            if not arguments.follow:
                if arguments.collect and not snapshot.instances:
                    print(f"heliograph: {printable(sampler.absence)}", file=sys.stderr)
                return 0
            sys.stdout.flush()
            time.sleep(POLL_SECONDS)
