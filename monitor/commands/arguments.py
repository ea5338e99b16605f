"""Types of command-line options; light, so that every room's commands can use them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heliograph.monitor.sampler import Source

__all__ = [
    "COLLECT_MIB",
    "add_allowed_host_option",
    "add_collect_option",
    "add_segments_option",
    "engine_options",
    "interval",
    "open_source",
    "positive",
    "tell",
    "within",
]

COLLECT_MIB = 512
SETTLE_SECONDS = 12.0
"""How long the first snapshot waits, at most, for the hosts that are heard."""


def within(low: float, high: float) -> Callable[[str], float]:
    """Type of an option in seconds from `low` to `high`."""

    def seconds_of(text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = low - 1
        if not low <= seconds <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from {low:g} to {high:g}")
        return seconds

    return seconds_of


interval = within(0.05, 3600)
"""Type of an option in seconds, 0.05 to 3600."""


def positive(text: str) -> int:
    """Type of an option that counts, 1 or more."""
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def add_segments_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--segments`` and ``--all-users``."""
    parser.add_argument(
        "--segments",
        metavar="DIR",
        type=Path,
        help="folder of the stats segments (default: $HELIOGRAPH_SEGMENT_DIR or /dev/shm/heliograph)",
    )
    parser.add_argument(
        "--all-users",
        action="store_true",
        help="also what other users of this host have put there, as NAME@uidUID; without it, your own alone",
    )


def add_allowed_host_option(parser: argparse._ActionsContainer) -> None:
    """Add ``--allowed-host``."""
    parser.add_argument(
        "--allowed-host",
        metavar="NAME",
        action="append",
        default=[],
        help="answer also when called by this name, besides addresses, localhost and the machine's own; repeats",
    )


def add_collect_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--collect``."""
    parser.add_argument(
        "--collect",
        metavar="URL",
        action="append",
        default=[],
        help="instead of this host, the hosts whose 'heliograph publish' is heard at this endpoint; repeats",
    )
    parser.add_argument(
        "--collect-memory",
        metavar="MIB",
        type=positive,
        default=COLLECT_MIB,
        help=f"with --collect: most memory that what is heard may take (default: {COLLECT_MIB})",
    )


def open_source(arguments: argparse.Namespace) -> Source:
    """What ``--segments`` or ``--collect`` name: a sampler or a collector. Use it as a context manager.

    Raises:
        UserError: Both were given, or a folder that does not exist.
        heliograph.engine.errors.Error: The engine refuses an endpoint.
    """
    from heliograph.monitor.errors import UserError
    from heliograph.monitor.sampler import Sampler, segment_folder

    named: Path | None = arguments.segments
    if arguments.collect:
        if named is not None:
            raise UserError("--segments reads this host and --collect others; give one of them")
        from heliograph.monitor.collector.collector import Collector
        from heliograph.monitor.collector.guard import Bounds
        from heliograph.monitor.collector.link import EngineInlet

        bounds = Bounds(memory_bytes=arguments.collect_memory << 20)
        return Collector(EngineInlet(arguments.collect), settle=SETTLE_SECONDS, bounds=bounds)
    if named is not None and not named.is_dir():
        raise UserError(f"there is no folder {named}")
    return Sampler(segment_folder(named), all_users=arguments.all_users, tell=tell)


def tell(text: str) -> None:
    """Print a note to the person at the terminal."""
    print(f"heliograph: {text}", file=sys.stderr, flush=True)


def engine_options(texts: list[str], *owners: str) -> dict[str, str]:
    """Options of the engine given as ``NAME=VALUE``; the engine checks their values.

    Args:
        texts: As given.
        owners: Whose options are wanted: "instance", "transmitter", "receiver"; the others are left out.

    Raises:
        UserError: One is not of that form, or unknown.
    """
    from heliograph.engine import catalogue
    from heliograph.monitor.errors import UserError

    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in catalogue.options():
            raise UserError(f"{text!r} is no option of the engine; write NAME=VALUE, 'heliograph info' lists them")
        if set(owners) & set(catalogue.options()[name].on):
            found[name] = value
    return found
