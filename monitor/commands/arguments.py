"""Types of command-line options. Imports little, so that the commands of every package can use it."""

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
"""Longest time that the first snapshot waits for the reports of hosts that already publish."""


def within(low: float, high: float) -> Callable[[str], float]:
    """Return the type of an option in seconds from `low` to `high`."""

    def seconds_of(text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = low - 1
        if not low <= seconds <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds from {low:g} to {high:g}")
        return seconds

    return seconds_of


interval = within(0.05, 3600)
"""Type of an option in seconds from 0.05 to 3600."""


def positive(text: str) -> int:
    """Type of an option that is a count of at least 1."""
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def add_segments_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--segments`` and ``--all-users``."""
    parser.add_argument(
        "--segments",
        metavar="DIR",
        type=Path,
        help="directory of the stats segments (default: $HELIOGRAPH_SEGMENT_DIR or /dev/shm/heliograph)",
    )
    parser.add_argument(
        "--all-users",
        action="store_true",
        help="also read segments of other users on this host, shown as NAME@uidUID (default: only your own)",
    )


def add_allowed_host_option(parser: argparse._ActionsContainer) -> None:
    """Add ``--allowed-host``."""
    parser.add_argument(
        "--allowed-host",
        metavar="NAME",
        action="append",
        default=[],
        help="accept requests for this host name, besides IP addresses, localhost and this machine's name; repeatable",
    )


def add_collect_option(parser: argparse.ArgumentParser, hidden: bool = False) -> None:
    """Add ``--collect``; hidden: for a verb whose command has it too, as `verb_collect`, without help."""
    parser.add_argument(
        "--collect",
        dest="verb_collect" if hidden else "collect",  # the values of a verb would replace those of its command
        metavar="URL",
        action="append",
        default=[],
        help=argparse.SUPPRESS
        if hidden
        else "read the hosts that 'heliograph publish' sends to this endpoint, not this host; repeatable",
    )
    parser.add_argument(
        "--collect-memory",
        metavar="MIB",
        type=positive,
        default=argparse.SUPPRESS if hidden else COLLECT_MIB,
        help=argparse.SUPPRESS
        if hidden
        else f"with --collect: memory limit for received reports (default: {COLLECT_MIB})",
    )


def open_source(arguments: argparse.Namespace) -> Source:
    """Open the source that ``--segments`` or ``--collect`` names: a sampler or a collector, both context managers.

    Raises:
        UserError: Both options were given, or the directory does not exist.
        heliograph.engine.errors.Error: The engine rejected an endpoint.
    """
    from heliograph.monitor.errors import UserError
    from heliograph.monitor.sampler import Sampler, segment_folder

    named: Path | None = arguments.segments
    if arguments.collect:
        if named is not None:
            raise UserError("--segments reads this host, --collect reads other hosts: give only one of them")
        from heliograph.monitor.collector.collector import Collector
        from heliograph.monitor.collector.guard import Bounds
        from heliograph.monitor.collector.link import EngineInlet

        bounds = Bounds(memory_bytes=arguments.collect_memory << 20)
        return Collector(EngineInlet(arguments.collect), settle=SETTLE_SECONDS, bounds=bounds)
    if named is not None and not named.is_dir():
        raise UserError(f"directory not found: {named}")
    return Sampler(segment_folder(named), all_users=arguments.all_users, tell=tell)


def tell(text: str) -> None:
    """Print a note on standard error."""
    print(f"heliograph: {text}", file=sys.stderr, flush=True)


def engine_options(texts: list[str], *owners: str) -> dict[str, str]:
    """Parse options of the engine given as ``NAME=VALUE``. The engine checks the values.

    Args:
        texts: The options as given.
        owners: Keep the options of these objects ("instance", "transmitter", "receiver") and drop all others.

    Raises:
        UserError: An option has another form, or its name is unknown.
    """
    from heliograph.engine import catalogue
    from heliograph.monitor.errors import UserError

    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in catalogue.options():
            raise UserError(f"{text!r} is not an engine option: write NAME=VALUE; 'heliograph info' lists the options")
        if set(owners) & set(catalogue.options()[name].on):
            found[name] = value
    return found
