"""`heliograph repairer`: repairs the losses of a site's receivers until it is stopped.

The engine does the work (``core/repair/dlr.h``): the packets are kept and sent in C, and no message reaches Python.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import ExitStack
from typing import TypeAlias

from heliograph.engine.commands import add_engine_options, harmless
from heliograph.engine.store.arguments import duration, size

__all__ = ["command"]

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_SLEEP_SECONDS = 3600.0
"""A signal ends the sleep."""

_EPILOG = """\
Receivers of the site get the option repairer=IP:PORT. They ask the repairer first, and the source only for what the
repairer does not answer. `heliograph stats` shows requests and repairs (repairer_*).

example:
  heliograph repairer "rmm://239.192.77.1:7500?interface=10.0.0.5" PRICES.FX --at 10.0.0.5:7600
  heliograph sub "rmm://239.192.77.1:7500?interface=10.0.0.9" PRICES.FX -o repairer=10.0.0.5:7600
"""


def command(subparsers: Subparsers) -> None:
    """Add ``heliograph repairer``."""
    parser = subparsers.add_parser(
        "repairer",
        help="repair the losses of a site's receivers, so that they need not ask the source",
        description="Receive the streams that carry the given topics, keep their packets in memory, and send them to "
        "receivers that miss them, until Ctrl-C or SIGTERM.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("endpoint", metavar="ENDPOINT", help="address to receive on, as for `heliograph sub`")
    parser.add_argument("topics", metavar="TOPIC", nargs="+", help="topic; all packets of its streams are kept")
    parser.add_argument("--at", metavar="IP:PORT", required=True, help="address of this host that receivers ask")
    parser.add_argument("--bytes", type=size, default=256 << 20, metavar="SIZE", help="memory (default: 256M)")
    parser.add_argument("--time", type=duration, default=60.0, metavar="TIME", help="age of packets (default: 60s)")
    parser.add_argument(
        "--rate", type=size, default=125_000_000, metavar="SIZE", help="bytes of repairs a second (default: 125000000)"
    )
    add_engine_options(parser)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from heliograph.engine.errors import Error
    from heliograph.engine.instance import Instance
    from heliograph.engine.options import by_owner

    instances, mine = by_owner(arguments.option)
    kept = {
        "repair_at": arguments.at,
        "repair_bytes": arguments.bytes,
        "repair_time": arguments.time,
        "repair_rate": arguments.rate,
    }
    try:
        with ExitStack() as stack:
            instance = stack.enter_context(Instance(**{"name": f"repairer-{os.getpid()}", **instances}))
            for topic in dict.fromkeys(arguments.topics):
                stack.enter_context(instance.receiver(arguments.endpoint, topic, **{**mine, **kept}))
            print(f"repairing at {arguments.at}", file=sys.stderr, flush=True)
            while True:
                time.sleep(_SLEEP_SECONDS)
    except Error as error:
        print(f"heliograph: {harmless(str(error))}", file=sys.stderr)
        return 2
