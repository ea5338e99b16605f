"""``heliograph events``: prints events, oldest first."""

from __future__ import annotations

import argparse
import sys
import time
from datetime import datetime

from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.commands.arguments import add_collect_option, open_source
from heliograph.monitor.commands.common import Subparsers, add_command, add_instance_option, only
from heliograph.monitor.log import event_fields
from heliograph.monitor.model import Event
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
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    add_collect_option(parser)
    add_instance_option(parser)
    parser.set_defaults(run=run)


def _shown(name: str, value: int) -> str:
    """A value as the other outputs show it: a receiver by its id, as ``heliograph ctl receivers`` lists it."""
    return f"{value:016x}" if name == "receiver" and value else str(value)


def event_line(event: Event) -> str:
    """Format an event as one line of text."""
    moment = datetime.fromtimestamp(event.time_ns // 1_000_000_000)
    stamp = f"{moment:%Y-%m-%d %H:%M:%S}.{event.time_ns % 1_000_000_000 // 1000:06}"
    about = " ".join(value for key, value in event.labels.items() if key != "instance")
    arguments = " ".join(f"{name}={_shown(name, value)}" for name, value in event.arguments.items())
    parts = (stamp, f"{event.severity:<7}", event.instance, event.name, about, event.text, arguments)
    return "  ".join(printable(part) for part in parts if part)


def run(arguments: argparse.Namespace) -> int:
    """Print the stored events and, with ``--follow``, the new ones."""
    with open_source(arguments) as sampler:
        while True:
            snapshot = only(sampler.sample(histograms=False), arguments.instance)
            for event in snapshot.events:
                line = json_text(event_fields(event)) if arguments.json else event_line(event)
                print(line)
            if snapshot.events_missed:
                note = f"{snapshot.events_missed} events were overwritten before they could be read"
                print(f"heliograph: {note}", file=sys.stderr)
            if not arguments.follow:
                if arguments.collect and not snapshot.instances:
                    print(f"heliograph: {printable(sampler.absence)}", file=sys.stderr)
                return 0
            sys.stdout.flush()
            time.sleep(POLL_SECONDS)
