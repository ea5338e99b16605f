"""``heliograph monitor``: samples at an interval and feeds modules."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence

from heliograph.monitor import modules
from heliograph.monitor.commands.arguments import interval
from heliograph.monitor.commands.common import Subparsers, add_command, folder_of
from heliograph.monitor.errors import UserError
from heliograph.monitor.modules import ModuleHost, ModuleStats
from heliograph.monitor.sampler import Sampler
from heliograph.monitor.text import table

__all__ = ["command", "feed"]


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``monitor``."""
    parser = add_command(
        subparsers,
        "monitor",
        "feed snapshots and events to modules",
        "Sample every instance on this host at an interval and hand snapshots and events to modules.\n"
        "A module is an installed entry point of the group 'heliograph.modules', or package.module:Class.\n"
        "A slow module misses snapshots; it never holds anything up.",
        "heliograph monitor --module log=/var/log/heliograph.jsonl --interval 1",
    )
    parser.add_argument(
        "--module",
        metavar="NAME[=OPTIONS]",
        action="append",
        default=[],
        help="a module to feed; may be given several times",
    )
    parser.add_argument("--interval", metavar="SECONDS", type=interval, default=1.0, help="default: 1")
    parser.add_argument("--seconds", metavar="SECONDS", type=interval, help="stop after this time")
    parser.add_argument("--list", action="store_true", help="list the installed modules")
    parser.set_defaults(run=run)


def feed(
    sampler: Sampler,
    hosts: Sequence[ModuleHost],
    interval_seconds: float,
    stop: threading.Event,
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Sample at a steady interval until `stop`, and offer each snapshot to every host.

    A sample that comes late does not move the following ones; those whose time has passed are left out.
    """
    due = monotonic()
    while True:
        snapshot = sampler.sample()
        for host in hosts:
            host.offer(snapshot)
        due += interval_seconds
        now = monotonic()
        if due <= now:
            due = now + interval_seconds - (now - due) % interval_seconds
        if stop.wait(due - now):
            return


def _account(found: Sequence[ModuleStats]) -> list[str]:
    head = ("MODULE", "SNAPSHOTS", "DROPPED", "EVENTS", "DROPPED", "ERRORS", "BUSY S", "LAST ERROR")
    return table(
        head,
        [
            (
                item.name,
                str(item.snapshots),
                str(item.dropped),
                str(item.events),
                str(item.events_dropped),
                str(item.errors),
                f"{item.busy_seconds:.3f}",
                item.last_error,
            )
            for item in found
        ],
    )


def _report(message: str) -> None:
    print(f"heliograph: {message}", file=sys.stderr, flush=True)


def run(arguments: argparse.Namespace) -> int:
    """Feed the modules until interrupted; prints on the way out what each one took. 1 when one had errors."""
    if arguments.list:
        for name, point in sorted(modules.available().items()):
            print(f"{name:<20} {point.value}")
        return 0
    if not arguments.module:
        known = ", ".join(sorted(modules.available())) or "none"
        raise UserError(f"name at least one module with --module NAME[=OPTIONS]; installed: {known}")
    folder = folder_of(arguments)
    loaded = [modules.load(request) for request in arguments.module]
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    hosts = [ModuleHost(name, module, report=_report) for name, module in loaded]
    timer = threading.Timer(arguments.seconds, stop.set) if arguments.seconds else None
    if timer:
        timer.daemon = True
        timer.start()
    try:
        with Sampler(folder) as sampler:
            feed(sampler, hosts, arguments.interval, stop)
    finally:
        for host in hosts:
            if not host.close():
                _report(f"module {host.stats.name} did not stop in time and is left behind")
    found = [host.stats for host in hosts]
    print("\n".join(_account(found)), file=sys.stderr)
    return 1 if any(item.errors for item in found) else 0
