"""`heliograph store serve`: keeps topics in the files of a store until it is stopped."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import resource
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from heliograph.engine.commands import add_engine_options, harmless, status_line
from heliograph.engine.store.arguments import age, duration, size
from heliograph.engine.store.offer import add_listening, address_of, listening_socket

if TYPE_CHECKING:
    from heliograph.engine.store.server import Counts, StoreServer
    from heliograph.engine.store.service_process import ServiceProcess

__all__ = ["add_serve"]

Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_LOOK_SECONDS = 0.2
"""Longest time until a signal is obeyed."""
_SHOW_SECONDS = 1.0
_NAMED_TOPICS = 5
"""Most topics of a change that are named."""

_EPILOG = """\
A source needs no store to run. To have each message in two of three stores before it leaves the source's history, run
three stores on three hosts, and give the source the option acks=2. The name of the instance is that of the directory;
on one host, stores need different names (-o name=NAME).

A pattern keeps the topics that sources announce. They announce a topic before its first message.

Stores that divide the streams of an endpoint: the first of three has --share 1/3, the others 2/3 and 3/3.

examples:
  heliograph store serve /var/lib/heliograph/store "rmm://239.192.77.1:7500?interface=eth0" PRICES.FX PRICES.EQ \\
      --retain-time 7d --listen 10.0.0.5:7800
  heliograph store serve /var/lib/heliograph/store "rmm://239.192.77.1:7500?interface=eth0" "PRICES.*"
  heliograph store ls /var/lib/heliograph/store
"""


def add_serve(actions: Actions) -> None:
    """Add ``heliograph store serve``."""
    parser = actions.add_parser(
        "serve",
        help="keep the messages of topics, and acknowledge them when they are durable",
        description="Keep the messages of topics in a store until Ctrl-C or SIGTERM. The store receives beside the "
        "other receivers. It acknowledges messages when they are durable.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dir", type=Path, metavar="DIR", help="directory of the store; created when there is none")
    parser.add_argument("endpoint", metavar="ENDPOINT", help="address to receive on, as for `heliograph sub`")
    parser.add_argument(
        "topics",
        metavar="TOPIC",
        nargs="+",
        help="name of a topic; or a pattern, in which * stands for any characters and ? for one",
    )
    add_engine_options(parser)
    parser.add_argument(
        "--topics-max",
        type=int,
        default=None,
        metavar="N",
        help="keep at most this many topics of a pattern (default: 1000); more are refused and counted",
    )
    parser.add_argument(
        "--share",
        metavar="K/N",
        help="keep only streams of share K of N, such as 1/3: N stores divide the streams by their identifiers",
    )
    parser.add_argument(
        "--fsync",
        choices=("batch", "always", "never"),
        default="batch",
        help="when messages are durable: after the fsync of their batch (default), each after its own, or when written",
    )
    parser.add_argument(
        "--batch-bytes", type=size, default=1 << 16, metavar="SIZE", help="write at this size (default: 64k)"
    )
    parser.add_argument(
        "--batch-time",
        type=age,
        default=0.01,
        metavar="TIME",
        help="write at this age, such as 0.01s (default); 0s writes what has arrived at once: stable soonest",
    )
    parser.add_argument(
        "--segment-bytes", type=size, default=64 << 20, metavar="SIZE", help="size of a file (default: 64M)"
    )
    parser.add_argument(
        "--retain-bytes", type=size, default=0, metavar="SIZE", help="remove old segments of a stream above this size"
    )
    parser.add_argument(
        "--retain-time", type=duration, default=0.0, metavar="TIME", help="remove segments older than this, such as 7d"
    )
    parser.add_argument(
        "--cut-damage", action="store_true", help="cut a damaged end of a stream instead of refusing the stream"
    )
    parser.add_argument(
        "--peer",
        type=_peer,
        action="append",
        default=[],
        metavar="store://HOST:PORT",
        help="fetch messages that this store lacks from that store; repeatable: name all other stores of the topics",
    )
    parser.add_argument(
        "--peer-rate", type=size, default=0, metavar="SIZE", help="fetch at most this many bytes per second"
    )
    add_listening(parser, required=False)
    parser.add_argument("--json", action="store_true", help="print the totals as a JSON object at the end")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from heliograph.engine.options import by_owner
    from heliograph.engine.store.found_topics import is_pattern
    from heliograph.engine.store.protocol import PREFIX
    from heliograph.engine.store.server import StoreServer

    instances, receivers = by_owner(arguments.option)
    _allow_many_files()
    stopped: list[int] = []
    listener = listening_socket(arguments.listen) if arguments.listen else None
    with contextlib.ExitStack() as parts:
        server = StoreServer(
            arguments.dir,
            fsync=arguments.fsync,
            batch_bytes=arguments.batch_bytes,
            batch_time=arguments.batch_time,
            segment_bytes=arguments.segment_bytes,
            retain_bytes=arguments.retain_bytes,
            retain_time=arguments.retain_time,
            cut_damage=arguments.cut_damage,
            peers=arguments.peer,
            peer_rate=arguments.peer_rate,
            **{"name": _name(arguments.dir), **instances},
        )
        parts.enter_context(server)
        if listener:  # sources announce where the store can be read
            receivers = {"service": address_of(listener).removeprefix(PREFIX), **receivers}
        if arguments.share:
            receivers = {"share": arguments.share, **receivers}
        for topic in sorted(arguments.topics, key=is_pattern):  # names first: patterns leave them alone
            if is_pattern(topic):
                limit = {} if arguments.topics_max is None else {"topics_max": arguments.topics_max}
                server.keep_matching(arguments.endpoint, topic, **limit, **receivers)
            else:
                server.keep(arguments.endpoint, topic, **receivers)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: stopped.append(number))
        service = None
        if listener:
            from heliograph.engine.store.service_process import ServiceProcess

            service = ServiceProcess(arguments.dir, listener, arguments.rate, arguments.readers)
            parts.callback(service.close)
        where = f"{arguments.dir}{f', served on {address_of(listener)}' if listener else ''}"
        _say(f"keeping {', '.join(map(harmless, arguments.topics))} in {where}")
        _keep(server, service, stopped)
    counts = server.counts()
    if arguments.json:
        print(json.dumps(asdict(counts)))
    else:
        _say(_text(counts))
    return 0


def _say(text: str) -> None:
    """Write a line to standard error. It may be a file on the disk that is full: the store goes on without the line."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _peer(text: str) -> str:
    from heliograph.engine.errors import Error
    from heliograph.engine.store.protocol import host_and_port

    try:
        host_and_port(text)
    except Error as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text if "://" in text else f"store://{text}"


def _name(path: Path) -> str:
    """Name of the instance. Sources recognize the store by it and the host after a restart."""
    return "store-" + re.sub(r"[^A-Za-z0-9_.-]", "_", path.resolve().name)[:32]


def _keep(server: StoreServer, service: ServiceProcess | None, stopped: list[int]) -> None:
    """Keep messages until a signal comes. On a terminal, show the counts each second."""
    looked = shown = time.monotonic()
    blocked = trouble = ""
    topics = server.topics
    while not stopped:
        server.step(_LOOK_SECONDS)
        now = time.monotonic()
        if now - looked < _LOOK_SECONDS and not stopped:
            continue
        looked = now
        if service:
            ended = service.tend()
            if ended:
                status_line("")
                _say(ended)
            server.show_service(service.counts(), service.restarts)
        counts = server.counts()
        if bool(counts.blocked) != bool(blocked):
            status_line("")
            _say(counts.blocked or "the store writes again")
        blocked = counts.blocked
        if server.peer_trouble() != trouble:
            trouble = server.peer_trouble()
            status_line("")
            _say(harmless(trouble) or "all peers can be read")
        if now - shown >= _SHOW_SECONDS:
            shown = now
            if server.topics != topics:
                status_line("")
                _say(_change(topics, server.topics))
                topics = server.topics
            status_line(_text(counts))
    status_line("")


def _change(before: frozenset[str], now: frozenset[str]) -> str:
    """Which topics were found or given up."""
    parts = []
    for verb, some in (("found", now - before), ("given up", before - now)):
        names = [harmless(topic) for topic in sorted(some)[:_NAMED_TOPICS]]
        rest = [f"{len(some) - len(names):,} more"] if len(some) > len(names) else []
        parts += [f"{verb}: {', '.join(names + rest)}"] if some else []
    return f"{'; '.join(parts)}; keeping {len(now):,} topics"


def _text(counts: Counts) -> str:
    parts = [f"{counts.kept:,} messages kept", f"{counts.bytes_written:,} bytes written"]
    parts += [
        f"{number:,} {text}"
        for number, text in (
            (counts.waiting, "not durable yet"),
            (counts.repeated, "repeated"),
            (counts.refused, "refused"),
            (counts.lost, "lost"),
            (counts.fetched, "fetched from peers"),
            (counts.given_up, "given up"),
            (counts.holes, "holes open"),
            (counts.topics_refused, "announcements of topics refused"),
        )
        if number
    ]
    return ", ".join(parts)


def _allow_many_files() -> None:
    """A stream takes a file: allow as many as the system grants."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
