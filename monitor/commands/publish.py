"""``heliograph publish``: sends the statistics and events of this host to collectors."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from heliograph.monitor.commands.arguments import engine_options, interval, within
from heliograph.monitor.commands.common import Subparsers, add_command, folder_of, sampler_of
from heliograph.monitor.commands.ticking import stopping, tick
from heliograph.monitor.errors import UserError
from heliograph.monitor.text import bytes_text, printable

__all__ = ["command"]

RATE_BYTES = 10_000_000


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``publish``."""
    parser = add_command(
        subparsers,
        "publish",
        "send the statistics and events of this host to collectors",
        "Sample every instance on this host, and send snapshots and events over the transport until Ctrl-C.\n"
        "'heliograph collect' and every command with --collect receive them. The publisher is a separate program:\n"
        "a failure of the network or of a collector has no effect on the applications.",
        'heliograph publish --to "rmm://239.192.77.9:7709?interface=10.0.0.5"\n'
        "  heliograph publish --to rum://collector:7709 --interval 0.1",
    )
    parser.add_argument(
        "--to",
        metavar="URL",
        action="append",
        required=True,
        help="endpoint: a multicast group, or rum://HOST:PORT of a collector; repeatable",
    )
    parser.add_argument(
        "--interval",
        metavar="SECONDS",
        type=within(0.01, 3600),
        default=1.0,
        help="time between snapshots, at least 0.01 (default: 1)",
    )
    parser.add_argument(
        "--keyframe",
        metavar="SECONDS",
        type=interval,
        default=10.0,
        help="time between complete snapshots; between them only changes are sent (default: 10)",
    )
    parser.add_argument(
        "--rate",
        metavar="BYTES",
        type=_bytes,
        default=RATE_BYTES,
        help=f"send at most this many bytes per second; 0: no limit (default: {RATE_BYTES})",
    )
    parser.add_argument("--host", metavar="NAME", help="name of this host in the reports (default: the host name)")
    add_transport_options(parser)
    parser.add_argument("--seconds", metavar="SECONDS", type=interval, help="stop after this time")
    parser.add_argument("--json", action="store_true", help="print totals as a JSON object at the end")
    parser.set_defaults(run=run)


def add_transport_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--topic`` and ``--option``."""
    parser.add_argument("--topic", metavar="NAME", default="_heliograph", help="topic (default: _heliograph)")
    parser.add_argument(
        "-o",
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the engine; repeatable; 'heliograph info' lists the options",
    )


def _bytes(text: str) -> int:
    if not text.isdigit() or 0 < int(text) < 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is neither 0 nor at least 10000 bytes")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Publish until interrupted, then print the totals."""
    from heliograph.monitor.collector.link import EngineOutlet
    from heliograph.monitor.collector.publisher import Publisher, origin_of

    folder = folder_of(arguments)
    options = engine_options(arguments.option, "instance", "transmitter")
    trouble = ""
    with (
        EngineOutlet(arguments.to, arguments.rate, arguments.topic, **options) as outlet,
        sampler_of(arguments) as sampler,
    ):
        publisher = Publisher(
            sampler,
            outlet,
            origin=origin_of(folder),
            place=str(folder),
            host=arguments.host,
            interval=arguments.interval,
            keyframe=arguments.keyframe,
        )

        def step() -> None:
            nonlocal trouble
            try:
                publisher.publish()
                trouble = ""
            except UserError as error:
                publisher.skip(1)
                if str(error) != trouble:
                    print(f"heliograph: {printable(str(error))}", file=sys.stderr, flush=True)
                trouble = str(error)

        stop = stopping(arguments.seconds)
        shown = ", ".join(arguments.to)
        print(f"heliograph: publishing {folder} every {arguments.interval:g} s to {shown}", file=sys.stderr, flush=True)
        tick(step, arguments.interval, stop, publisher.skip)
        publisher.farewell()
    stats = publisher.stats
    if arguments.json:
        print(json.dumps(dataclasses.asdict(stats)))
    else:
        print(
            f"sent {stats.published} snapshots ({bytes_text(stats.bytes)}, {stats.keyframes} of them whole) and "
            f"{stats.events} events; skipped {stats.skipped} snapshots for lack of space or time",
            file=sys.stderr,
        )
    return 0
