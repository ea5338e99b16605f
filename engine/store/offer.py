"""`heliograph store offer`: serves the messages of a store to subscribers on other hosts."""

from __future__ import annotations

import argparse
import json
import re
import signal
import socket
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from heliograph.engine.commands import status_line
from heliograph.engine.store.arguments import size

if TYPE_CHECKING:
    from heliograph.engine.store.service import ServiceCounts

__all__ = ["add_listening", "add_offer", "address_of", "listening_socket"]

Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_EPILOG = """\
Everybody who reaches the address can read all messages of the store and change positions of subscriptions: choose an
address that only subscribers reach. The directory may be that of a running `heliograph store serve`, a mount or a copy.

example:
  heliograph store offer /var/lib/heliograph/store --listen 10.0.0.5:7800 --rate 100M
  heliograph sub "rmm://239.192.77.1:7500?interface=eth0" PRICES.FX --store store://10.0.0.5:7800
"""


def add_offer(actions: Actions) -> None:
    """Add ``heliograph store offer``."""
    parser = actions.add_parser(
        "offer",
        help="serve the messages of a store to subscribers on other hosts",
        description="Serve the messages of a store to subscribers on other hosts, and keep the positions of durable "
        "subscriptions, until Ctrl-C or SIGTERM.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dir", type=Path, metavar="DIR", help="directory of the store")
    add_listening(parser, required=True)
    parser.add_argument("--json", action="store_true", help="print the counts as one JSON object at the end")
    parser.set_defaults(run=_run)


def add_listening(parser: argparse.ArgumentParser, required: bool) -> None:
    """Add the options of a service."""
    parser.add_argument(
        "--listen",
        type=_host_and_port,
        required=required,
        metavar="HOST:PORT",
        help="serve subscribers on other hosts at this address",
    )
    parser.add_argument(
        "--rate",
        type=size,
        default=0,
        metavar="SIZE",
        help="send at most this many bytes per second, all together",
    )
    parser.add_argument(
        "--readers", type=_readers, default=64, metavar="N", help="serve this many at a time (default: 64); others wait"
    )


def listening_socket(address: tuple[str, int]) -> socket.socket:
    """A socket that listens.

    Raises:
        EndpointError: The address cannot be used.
    """
    from heliograph.engine.errors import EndpointError
    from heliograph.engine.store.service import listen

    try:
        return listen(*address)
    except OSError as error:
        raise EndpointError(f"cannot listen on {address[0]}:{address[1]}: {error}") from error


def address_of(listener: socket.socket) -> str:
    """Address of a listening socket: ``store://HOST:PORT``."""
    from heliograph.engine.store import service

    return service.address_of(listener)


def _host_and_port(text: str) -> tuple[str, int]:
    from heliograph.engine.errors import Error
    from heliograph.engine.store.protocol import host_and_port

    match = re.fullmatch(r"(.+):0", text)
    try:
        return (match[1], 0) if match else host_and_port(text)
    except Error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address such as 10.0.0.5:7800") from error


def _readers(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1024")
    return int(text)


def _run(arguments: argparse.Namespace) -> int:
    from heliograph.engine.store.service import StoreService

    listener = listening_socket(arguments.listen)
    service = StoreService(arguments.dir, listener, readers=arguments.readers, rate=arguments.rate)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: service.close())
    print(f"serving {arguments.dir} on {address_of(listener)}", file=sys.stderr, flush=True)
    service.run(lambda counts: status_line(_text(counts)))
    status_line("")
    counts = service.counts()
    if arguments.json:
        print(json.dumps(asdict(counts)))
    else:
        print(_text(counts), file=sys.stderr)
    return 0


def _text(counts: ServiceCounts) -> str:
    parts = [f"{counts.requests:,} requests served", f"{counts.bytes_sent:,} bytes sent"]
    parts += [
        f"{number:,} {text}"
        for number, text in (
            (counts.readers, "being served"),
            (counts.refused, "refused"),
            (counts.aborted, "ended early"),
        )
        if number
    ]
    return ", ".join(parts)
