"""Shared by the commands: the option for the segment directory, and the choice of instances by name."""

from __future__ import annotations

import argparse
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from heliograph.monitor.commands.arguments import add_segments_option, tell
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Snapshot
from heliograph.monitor.sampler import Sampler, segment_folder
from heliograph.monitor.text import printable

__all__ = ["Subparsers", "add_command", "add_instance_option", "chosen", "folder_of", "only", "sampler_of"]

Subparsers = argparse._SubParsersAction


def add_command(
    subparsers: Subparsers[argparse.ArgumentParser], name: str, help_text: str, about: str, example: str
) -> argparse.ArgumentParser:
    """Add a subparser with the options that every monitoring command has."""
    parser = subparsers.add_parser(
        name,
        help=help_text,
        description=about,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_segments_option(parser)
    return parser


def add_instance_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--instance``."""
    parser.add_argument("--instance", metavar="GLOB", help="only instances whose name matches, such as 'feed*'")


def folder_of(arguments: argparse.Namespace) -> Path:
    """Return the segment directory that the arguments name.

    Raises:
        UserError: The named directory does not exist.
    """
    named: Path | None = arguments.segments
    if named is not None and not named.is_dir():
        raise UserError(f"directory not found: {named}")
    return segment_folder(named)


def sampler_of(arguments: argparse.Namespace) -> Sampler:
    """Open a sampler for ``--segments`` and ``--all-users``. Use it as a context manager.

    Raises:
        UserError: The named directory does not exist.
    """
    return Sampler(folder_of(arguments), all_users=arguments.all_users, tell=tell)


def chosen(snapshot: Snapshot, pattern: str | None) -> Snapshot:
    """Keep the instances whose name matches a shell pattern, as `only` does; for the first snapshot of a command.

    Raises:
        UserError: No instance matches.
    """
    found = only(snapshot, pattern)
    if pattern is not None and not found.instances:
        names = ", ".join(sorted({printable(item.name) for item in snapshot.instances}))
        raise UserError(f"no instance matches {pattern!r}; " + (f"instances: {names}" if names else "there is none"))
    return found


def only(snapshot: Snapshot, pattern: str | None) -> Snapshot:
    """Keep the instances whose name matches a shell pattern, and their events."""
    if pattern is None:
        return snapshot
    instances = tuple(item for item in snapshot.instances if fnmatchcase(item.name, pattern))
    events = tuple(event for event in snapshot.events if fnmatchcase(event.instance, pattern))
    return replace(snapshot, instances=instances, events=events)
