"""`heliograph store replay`: prints messages of a store, or sends them again."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from heliograph.engine.commands import FORMATS, add_engine_options, counted, status_line
from heliograph.engine.store.arguments import BY, natural, number_or_time

if TYPE_CHECKING:
    from heliograph.engine.store.reader import StoredMessage
    from heliograph.engine.transmitter import Transmitter

__all__ = ["add_replay"]

Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_SHOW_SECONDS = 1.0
_FLUSH_SECONDS = 10.0

_EPILOG = """\
Sent messages are new messages: they have a new stream, new numbers and the present time. Send them to an endpoint of
their own, not to the live one.

example:
  heliograph store replay /var/lib/heliograph/store --topic "PRICES.*" --by time --first 2026-11-23T09:00:00 \\
      --last 2026-11-23T09:05:00 --format json
  heliograph store replay /var/lib/heliograph/store --topic PRICES.FX --to rmm+unicast://192.0.2.9:7600 --rate 10000
"""


def add_replay(actions: Actions) -> None:
    """Add ``heliograph store replay``."""
    parser = actions.add_parser(
        "replay",
        help="print messages of a store, or send them again",
        description="Print messages of a store, in the order in which they were kept, or send them to an endpoint.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("store", metavar="DIR|store://HOST:PORT", help="directory or address of the store")
    parser.add_argument("--stream", metavar="GSI:PORT", help="only this stream (default: all, one after another)")
    parser.add_argument("--topic", metavar="PATTERN", help="only topics that match; * and ? are wildcards")
    parser.add_argument("--by", choices=BY, default="position", help="meaning of --first and --last")
    parser.add_argument(
        "--first", type=number_or_time, default=0, metavar="VALUE", help="a number, or a time as in 2026-11-23T09:00:00"
    )
    parser.add_argument("--last", type=number_or_time, default=2**64 - 1, metavar="VALUE", help="the same")
    parser.add_argument("--count", type=natural, metavar="N", help="stop after this many messages")
    parser.add_argument(
        "--format",
        choices=list(FORMATS),
        default="text",
        help="a line per message as text or hex, a JSON object per message, or nothing (default: text)",
    )
    sending = parser.add_argument_group("sending")
    sending.add_argument("--to", metavar="ENDPOINT", help="send the messages on their topics instead of printing them")
    sending.add_argument("--rate", type=natural, metavar="N", help="messages per second (default: no limit)")
    add_engine_options(sending)
    parser.set_defaults(run=_run)


def _messages(arguments: argparse.Namespace) -> Iterator[StoredMessage]:
    from heliograph.engine.store.reader import read, streams

    for stream in [arguments.stream] if arguments.stream else streams(arguments.store):
        for message in read(arguments.store, stream, by=arguments.by, first=arguments.first, last=arguments.last):
            if arguments.topic is None or fnmatchcase(message.topic, arguments.topic):
                yield message


def _run(arguments: argparse.Namespace) -> int:
    messages = islice(_messages(arguments), arguments.count)
    if arguments.to is not None:
        return _send(arguments, messages)
    shown = FORMATS[arguments.format]
    count = 0
    for message in messages:
        count += 1
        if shown is not None:
            sys.stdout.write(f"{shown(message)}\n")
    sys.stdout.flush()
    if shown is None:
        print(counted(count), file=sys.stderr)
    return 0


def _send(arguments: argparse.Namespace, messages: Iterator[StoredMessage]) -> int:
    from heliograph.engine.instance import Instance
    from heliograph.engine.options import by_owner

    instances, mine = by_owner(arguments.option)
    transmitters: dict[str, Transmitter] = {}
    sent = 0
    with Instance(**{"name": f"replay-{os.getpid()}", **instances}) as instance:
        try:
            begun = shown = time.monotonic()
            for message in messages:
                if arguments.rate is not None:
                    time.sleep(max(0.0, begun + sent / arguments.rate - time.monotonic()))
                transmitter = transmitters.get(message.topic)
                if transmitter is None:
                    transmitter = instance.transmitter(arguments.to, message.topic, **mine)
                    transmitters[message.topic] = transmitter
                transmitter.send(message.data)
                sent += 1
                if time.monotonic() - shown >= _SHOW_SECONDS:
                    shown = time.monotonic()
                    status_line(f"{counted(sent)} sent")
            for transmitter in transmitters.values():
                transmitter.flush(timeout=_FLUSH_SECONDS)
        finally:
            status_line("")
            print(f"sent {counted(sent)} on {len(transmitters)} topics to {arguments.to}", file=sys.stderr)
    return 0
