"""``heliograph monitor``: samples at an interval and feeds modules."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence

from heliograph.monitor.commands.arguments import add_collect_option, interval, open_source, within
from heliograph.monitor.commands.common import Subparsers, add_command, folder_of
from heliograph.monitor.errors import UserError
from heliograph.monitor.modules import Feed, Lane, LaneStats, open_module
from heliograph.monitor.modules.finding import available, natives
from heliograph.monitor.sampler import Source
from heliograph.monitor.text import table

__all__ = ["command", "feed"]


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``monitor``."""
    parser = add_command(
        subparsers,
        "monitor",
        "feed snapshots and events to modules",
        "Sample every instance on this host at an interval. Pass snapshots, events, and created and destroyed topics\n"
        "to modules. A module is\n\n"
        "  NAME           an entry point of the group 'heliograph.modules', or NAME.so in a directory of\n"
        "                 $HELIOGRAPH_MODULE_PATH (--list shows all)\n"
        "  ./FILE.so      a C module (heliograph/module.h)\n"
        "  package:Class  a Python module\n\n"
        "A C module runs in its own process, a Python module on a thread. A slow module misses snapshots. A module\n"
        "that crashes is restarted. Neither delays the other modules.",
        "heliograph monitor --module log=path=/var/log/heliograph.jsonl,values --interval 1",
    )
    add_collect_option(parser)
    parser.add_argument(
        "--module",
        metavar="NAME[=OPTIONS]",
        action="append",
        default=[],
        help="a module to feed; repeatable",
    )
    parser.add_argument("--process", action="store_true", help="run each Python module in its own process too")
    parser.add_argument(
        "--answer",
        metavar="SECONDS",
        type=interval,
        default=10.0,
        help="restart a module in a process that takes longer than this for one snapshot (default: 10)",
    )
    parser.add_argument(
        "--interval",
        metavar="SECONDS",
        type=within(0.005, 3600),
        default=1.0,
        help="0.005 to 3600 (default: 1); up to 60 no topic is missed",
    )
    parser.add_argument("--seconds", metavar="SECONDS", type=interval, help="stop after this time")
    parser.add_argument("--list", "--list-modules", action="store_true", help="list the installed modules")
    parser.set_defaults(run=run)


def feed(
    sampler: Source,
    lanes: Sequence[Lane],
    interval_seconds: float,
    stop: threading.Event,
    monotonic: Callable[[], float] = time.monotonic,
) -> Feed:
    """Sample at a steady interval until `stop`. Offer each snapshot, with its events, to every lane.

    A late sample does not delay the following ones; intervals that have passed are skipped. The last sample is taken at
    the end, so that no event before the end is missed. Returns the feed, which counts the topics it missed.
    """
    stream = Feed()
    due = monotonic()
    while True:
        stream.give(sampler.sample(), lanes)
        due += interval_seconds
        now = monotonic()
        if due <= now:
            due = now + interval_seconds - (now - due) % interval_seconds
        if stop.wait(due - now):
            stream.give(sampler.sample(), lanes)
            return stream


_COLUMNS: tuple[tuple[str, Callable[[LaneStats], object]], ...] = (
    ("MODULE", lambda item: item.name),
    ("SNAPSHOTS", lambda item: item.snapshots),
    ("DROPPED", lambda item: item.dropped),
    ("EVENTS", lambda item: item.events),
    ("DROPPED", lambda item: item.events_dropped),
    ("TOPICS", lambda item: item.topics),
    ("DROPPED", lambda item: item.topics_dropped),
    ("LOST", lambda item: item.lost),
    ("ERRORS", lambda item: item.errors),
    ("CRASHES", lambda item: item.crashes),
    ("RESTARTS", lambda item: item.restarts),
    ("BUSY S", lambda item: f"{item.busy_seconds:.3f}"),
    ("LAST ERROR", lambda item: item.last_error),
)


def _account(found: Sequence[LaneStats]) -> list[str]:
    head = tuple(name for name, _ in _COLUMNS)
    return table(head, [tuple(str(value(item)) for _, value in _COLUMNS) for item in found])


def _report(message: str) -> None:
    print(f"heliograph: {message}", file=sys.stderr, flush=True)


def _list() -> None:
    """Print the modules found by name; when both kinds exist, the Python module is used."""
    python = {name: point.value for name, point in available().items()}
    found = {name: str(path) for name, path in natives().items()} | python
    for name, place in sorted(found.items()):
        print(f"{name:<20} {'Python' if name in python else 'C':<7} {place}")


def run(arguments: argparse.Namespace) -> int:
    """Feed the modules until interrupted, then print the account of each; returns 1 when a module had errors."""
    if arguments.list:
        _list()
        return 0
    if not arguments.module:
        known = ", ".join(sorted({*available(), *natives()})) or "none"
        raise UserError(f"name at least one module with --module NAME[=OPTIONS]; installed: {known}")
    if not arguments.collect:
        folder_of(arguments)  # report a missing directory before a module starts
    lanes: list[Lane] = []
    stop = threading.Event()
    stream = None
    try:
        for request in arguments.module:
            lanes.append(open_module(request, process=arguments.process, answer=arguments.answer, tell=_report))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        timer = threading.Timer(arguments.seconds, stop.set) if arguments.seconds else None
        if timer:
            timer.daemon = True
            timer.start()
        with open_source(arguments) as sampler:
            stream = feed(sampler, lanes, arguments.interval, stop)
    finally:
        for lane in lanes:
            lane.close()
    found = [lane.stats for lane in lanes]
    print("\n".join(_account(found)), file=sys.stderr)
    if stream.missed:
        _report(f"{stream.missed} topics were created and destroyed unseen: the object table of an instance was full")
    return 1 if any(item.errors for item in found) else 0
