"""`heliograph store find`: the message stores that the sources of a topic announce."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TypeAlias

from heliograph.engine.commands import add_engine_options, status_line
from heliograph.engine.store.arguments import duration

__all__ = ["add_find"]

Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_LOOK_SECONDS = 0.05

_EPILOG = """\
Sources announce the stores that keep their stream and have a service (`heliograph store serve ... --listen`). A
receiver uses them with the option stores=announced. Exit code 1: none was announced in time.

example:
  heliograph store find "rmm://239.192.77.1:7500?interface=eth0" PRICES.FX
"""


def add_find(actions: Actions) -> None:
    """Add ``heliograph store find``."""
    parser = actions.add_parser(
        "find",
        help="list the stores that the sources of a topic announce",
        description="List the message stores that the sources of a topic announce.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("endpoint", metavar="ENDPOINT", help="address of the topic, such as rmm://239.192.77.1:7500")
    parser.add_argument("topic", metavar="TOPIC", help="name of the topic")
    parser.add_argument(
        "--wait",
        type=duration,
        default=3.0,
        metavar="TIME",
        help="listen for this time (default: 3s); sources announce at least every ambient_interval, 0.5 s by default",
    )
    add_engine_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from heliograph.engine import Instance
    from heliograph.engine.options import by_owner

    instances, receivers = by_owner(arguments.option)
    found: dict[str, None] = {}
    end = time.monotonic() + arguments.wait
    with (
        Instance(**instances) as instance,
        instance.receiver(arguments.endpoint, arguments.topic, **receivers) as receiver,
    ):
        while (left := end - time.monotonic()) > 0:
            found.update(dict.fromkeys(receiver.stores()))
            status_line(f"{len(found)} stores; listening for {left:.0f} s more")
            receiver.receive(timeout=min(left, _LOOK_SECONDS))
    status_line("")
    if arguments.json:
        print(json.dumps({"stores": sorted(found)}))
    else:
        for store in sorted(found):
            print(store)
        if not found:
            print(f"no source on {arguments.endpoint} announced a store within {arguments.wait:g} s", file=sys.stderr)
    return 0 if found else 1
