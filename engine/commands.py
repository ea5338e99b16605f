"""The engine's subcommands: `pub`, `sub` and `info`.

The command line imports this module to build its help, so the compiled module is imported only when a command runs.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from heliograph.engine.message import Loss
    from heliograph.engine.receiver import Receiver
    from heliograph.engine.store.follower import StoreFollower
    from heliograph.engine.transmitter import Transmitter

__all__ = ["FORMATS", "add_engine_options", "counted", "harmless", "info", "pub", "status_line", "sub"]

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Run: TypeAlias = Callable[[argparse.Namespace], int]

_LOOK_SECONDS = 0.2
"""Seconds between checks of `sub` for losses while no message arrives."""
_FLUSH_SECONDS = 10.0
"""Longest time `pub` waits at the end until all messages have been sent, seconds."""


def pub(subparsers: Subparsers) -> None:
    """Add ``heliograph pub``."""
    parser = _subparser(
        subparsers,
        "pub",
        "send messages on a topic",
        "Send messages on a topic: each line of standard input, or the content given by the options below.",
        "example:\n"
        '  heliograph pub "rmm://239.192.77.1:7500?interface=127.0.0.1" PRICES.FX --message "EURUSD 1.0842"\n'
        '  heliograph pub "rmm://239.192.77.1:7500?interface=127.0.0.1" LOAD --size 200 --count 100000 --rate 5000',
    )
    _common(parser)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--message", metavar="TEXT", help="send this text")
    source.add_argument("--file", type=Path, metavar="FILE", help="send the content of a file as one message")
    source.add_argument("--size", type=_natural, metavar="BYTES", help="send numbered filler of this size")
    parser.add_argument("--count", type=_natural, metavar="N", help="send it N times (default: 1); at most N lines")
    parser.add_argument("--rate", type=_positive, metavar="N", help="messages per second (default: no limit)")
    parser.set_defaults(run=_run_pub)


def sub(subparsers: Subparsers) -> None:
    """Add ``heliograph sub``."""
    parser = _subparser(
        subparsers,
        "sub",
        "print the messages of a topic",
        "Print the messages of a topic as they arrive, until Ctrl-C. Losses are reported on standard error.",
        'example:\n  heliograph sub "rmm://239.192.77.1:7500?interface=127.0.0.1" PRICES.FX --format json',
    )
    _common(parser)
    parser.add_argument("--count", type=_natural, metavar="N", help="stop after this many messages")
    parser.add_argument(
        "--timeout",
        type=_positive,
        metavar="S",
        help="stop when no message arrived for S seconds; fewer than --count messages are then a failure",
    )
    parser.add_argument(
        "--format",
        choices=list(FORMATS),
        default="text",
        help="a line per message as text or hex, a JSON object per message, or nothing (default: text)",
    )
    parser.add_argument("--stats", action="store_true", help="print messages, rate and losses at the end")
    parser.add_argument(
        "--store",
        action="append",
        default=[],
        metavar="DIR|store://HOST:PORT|announced",
        help="first print what this store has, and fill gaps from it; may be repeated for several stores; announced: "
        "the stores that the sources announce",
    )
    durable = parser.add_mutually_exclusive_group()
    durable.add_argument(
        "--durable",
        type=Path,
        metavar="FILE",
        help="with --store: continue where the last run with this file ended; the file has the positions",
    )
    durable.add_argument(
        "--subscription",
        metavar="NAME",
        help="with --store: the same, also on another host; the stores have the positions",
    )
    parser.set_defaults(run=_run_sub)


def info(subparsers: Subparsers) -> None:
    """Add ``heliograph info``."""
    parser = _subparser(
        subparsers,
        "info",
        "print the version, the features of this host, and the cost of the statistics on it",
        "Print the version, file locations, features of this host, content and cost of each level of detail of the\n"
        "statistics (measured in a few seconds), and the default of every option.",
        "example:\n  heliograph info --json\n  heliograph info --no-measure",
    )
    parser.add_argument("--no-measure", action="store_true", help="do not measure the cost of the levels of detail")
    parser.add_argument(
        "--seconds", type=_positive, default=4.0, metavar="S", help="duration of the measurement (default: 4)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run_info)


def _subparser(subparsers: Subparsers, name: str, title: str, text: str, epilog: str) -> argparse.ArgumentParser:
    return subparsers.add_parser(
        name, help=title, description=text, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "endpoint", metavar="ENDPOINT", help="rmm://GROUP:PORT?interface=IP (multicast) or rmm+unicast://HOST:PORT"
    )
    parser.add_argument("topic", metavar="TOPIC", help="name of the topic")
    add_engine_options(parser)


def add_engine_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``-o NAME=VALUE``: options of the engine."""
    parser.add_argument(
        "-o",
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the engine; may be repeated; `heliograph info` lists them",
    )


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number')
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f'"{text}" is not a number above 0')
    return value


def _reported(run: Run) -> Run:
    """Report errors of the engine on standard error, with exit code 2."""

    @functools.wraps(run)
    def reported(arguments: argparse.Namespace) -> int:
        from heliograph.engine.errors import Error

        try:
            return run(arguments)
        except Error as error:
            print(f"heliograph: {harmless(str(error))}", file=sys.stderr)
            return 2

    return reported


@_reported
def _run_pub(arguments: argparse.Namespace) -> int:
    from heliograph.engine.instance import Instance
    from heliograph.engine.options import by_owner

    instances, mine = by_owner(arguments.option)
    try:
        messages = _messages(arguments)
    except OSError as error:
        print(f"heliograph: cannot read {arguments.file}: {error.strerror}", file=sys.stderr)
        return 2
    with (
        Instance(**{"name": f"pub-{os.getpid()}", **instances}) as instance,
        instance.transmitter(arguments.endpoint, arguments.topic, **mine) as transmitter,
    ):
        sent = _send(transmitter, messages, arguments.rate)
        transmitter.flush(timeout=_FLUSH_SECONDS)
        print(f"sent {counted(sent)} on stream {transmitter.stream}", file=sys.stderr)
    return 0


def _messages(arguments: argparse.Namespace) -> Iterator[bytes]:
    """The messages to send. A file is read at once, so that an unreadable file stops the command early."""
    if arguments.message is not None:
        return _repeated(arguments.message.encode("utf-8", "surrogateescape"), arguments.count)
    if arguments.file is not None:
        return _repeated(arguments.file.read_bytes(), arguments.count)
    if arguments.size is not None:
        return _filler(arguments.size, arguments.count)
    return _lines(arguments.count)


def _repeated(data: bytes, count: int | None) -> Iterator[bytes]:
    return (data for _ in range(1 if count is None else count))


def _filler(size: int, count: int | None) -> Iterator[bytes]:
    return (str(number).encode().ljust(size, b".")[:size] for number in range(1 if count is None else count))


def _lines(count: int | None) -> Iterator[bytes]:
    for number, line in enumerate(sys.stdin.buffer):
        if number == count:
            return
        yield line.removesuffix(b"\n")


def _send(transmitter: Transmitter, messages: Iterator[bytes], rate: float | None) -> int:
    started = time.monotonic()
    sent = 0
    for data in messages:
        if rate is not None:
            early = started + sent / rate - time.monotonic()
            if early > 0:
                time.sleep(early)
        transmitter.send(data)
        sent += 1
    return sent


class _Tally:
    """The counts of `sub`."""

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self.recovered = 0
        self.lost = 0
        self.first = 0.0
        self.last = 0.0

    def add(self, batch: Sequence[Shown], now: float) -> None:
        """Count messages that arrived at `now`, seconds."""
        if self.messages == 0:
            self.first = now
        self.last = now
        self.messages += len(batch)
        self.bytes += sum(len(message.data) for message in batch)
        self.recovered += sum(message.recovered for message in batch)

    def text(self) -> str:
        """The counts as one line."""
        seconds = self.last - self.first
        rate = f", {self.messages / seconds:,.0f} per second" if seconds > 0 else ""
        came = f"{counted(self.messages)}, {self.bytes:,} bytes{rate}"
        return f"{came}; {self.recovered:,} recovered, {self.lost:,} lost"


@_reported
def _run_sub(arguments: argparse.Namespace) -> int:
    from heliograph.engine.instance import Instance
    from heliograph.engine.options import by_owner

    if (arguments.durable or arguments.subscription) and not arguments.store:
        print(f"heliograph: --{'durable' if arguments.durable else 'subscription'} needs --store", file=sys.stderr)
        return 2
    instances, mine = by_owner(arguments.option)
    tally = _Tally()
    with (
        Instance(**{"name": f"sub-{os.getpid()}", **instances}) as instance,
        instance.receiver(arguments.endpoint, arguments.topic, **mine) as receiver,
    ):
        try:
            if arguments.store:
                _receive(*_follower(arguments, receiver), arguments, tally)
            else:
                _receive(receiver, lambda: None, arguments, tally)
        finally:
            if arguments.stats:
                print(tally.text(), file=sys.stderr)
    return 0 if arguments.count is None or tally.messages >= arguments.count else 1


def _follower(arguments: argparse.Namespace, receiver: Receiver) -> tuple[StoreFollower, Callable[[], None]]:
    """The follower of the stores, and the function that saves its positions."""
    from heliograph.engine.store.follower import StoreFollower
    from heliograph.engine.store.places import Places
    from heliograph.engine.store.position_file import PositionFile
    from heliograph.engine.store.subscriptions import Subscription

    stores = Places(arguments.store, announced=receiver.stores)
    stores.await_announced(arguments.endpoint, stores.pause)
    saved: PositionFile | Subscription | None = None
    if arguments.durable:
        saved = PositionFile(arguments.durable, arguments.topic)
    elif arguments.subscription:
        saved = Subscription(arguments.subscription, arguments.topic, stores)
    if saved is None:
        return StoreFollower(stores, receiver, pause=stores.pause), lambda: None
    follower = StoreFollower(stores, receiver, positions=saved.positions, pause=stores.pause)
    return follower, lambda: saved.save(follower.positions())


def _receive(
    receiver: Receiver | StoreFollower, save: Callable[[], None], arguments: argparse.Namespace, tally: _Tally
) -> None:
    shown = FORMATS[arguments.format]
    silent_since = time.monotonic()
    while arguments.count is None or tally.messages < arguments.count:
        wanted = 256 if arguments.count is None else min(256, arguments.count - tally.messages)
        batch = receiver.receive(timeout=_LOOK_SECONDS, limit=wanted)
        now = time.monotonic()
        if batch:
            silent_since = now
            tally.add(batch, now)
            if shown is not None:
                sys.stdout.write("".join(f"{shown(message)}\n" for message in batch))
                sys.stdout.flush()
            save()
        for loss in receiver.losses():
            tally.lost += loss.count
            print(_lost(loss), file=sys.stderr, flush=True)
        if arguments.timeout is not None and now - silent_since >= arguments.timeout:
            return


def _lost(loss: Loss) -> str:
    where = f"number {loss.first}" if loss.count == 1 else f"{loss.first} to {loss.last}"
    return f"lost {counted(loss.count)}, {where}, of stream {harmless(loss.stream)}"


def counted(count: int) -> str:
    return f"{count:,} message{'' if count == 1 else 's'}"


def status_line(text: str) -> None:
    """Show a line on a terminal in place of the last one; an empty text removes it."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def harmless(text: str) -> str:
    """A text from outside, safe for a terminal; tabs are kept."""
    from heliograph.engine.catalogue.outside import outside

    return "\t".join(outside(part, most=None) for part in text.split("\t"))


class Shown(Protocol):
    """A message received or kept, as the formats print it."""

    @property
    def topic(self) -> str: ...
    @property
    def stream(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def submit_ns(self) -> int: ...
    @property
    def receive_ns(self) -> int: ...
    @property
    def recovered(self) -> bool: ...
    @property
    def data(self) -> bytes: ...


def _as_text(message: Shown) -> str:
    return harmless(message.data.decode("utf-8", "backslashreplace"))


def _as_hex(message: Shown) -> str:
    return message.data.hex(" ")


def _as_json(message: Shown) -> str:
    from heliograph.engine.catalogue.outside import json_text

    try:
        body = {"data": message.data.decode("utf-8")}
    except UnicodeDecodeError:
        body = {"hex": message.data.hex()}
    return json_text(
        {
            "topic": message.topic,
            "stream": message.stream,
            "number": message.number,
            "submit_ns": message.submit_ns,
            "receive_ns": message.receive_ns,
            "recovered": message.recovered,
            **body,
        }
    )


FORMATS: dict[str, Callable[[Shown], str] | None] = {
    "text": _as_text,
    "hex": _as_hex,
    "json": _as_json,
    "quiet": None,
}
"""How `sub` and `store replay` print a message, by the value of ``--format``."""


@_reported
def _run_info(arguments: argparse.Namespace) -> int:
    from heliograph.engine import info

    return info.run(arguments)
