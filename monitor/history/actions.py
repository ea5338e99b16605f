"""Parts that the actions of `heliograph history` share: options, progress, and problems on stderr."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.remote import Place, RemotePath, place_of
from heliograph.monitor.history.writes import WRITABLE
from heliograph.monitor.text import printable

if TYPE_CHECKING:
    from heliograph.monitor.history.files import Broken
    from heliograph.monitor.history.rollup import RolledUp

__all__ = [
    "NAMED",
    "Actions",
    "Progress",
    "add_action",
    "history_option",
    "needs_pyarrow",
    "place",
    "progress_option",
    "report_problems",
    "report_rolled_up",
    "spool_option",
    "writable",
]

Actions = argparse._SubParsersAction  # the only name argparse gives it
NAMED = 20
"""Problems that are named one by one."""


def add_action(
    actions: Actions[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], int],
    help: str,
    description: str,
    example: str,
) -> argparse.ArgumentParser:
    """Add an action with its help and an example; returns its parser."""
    parser = actions.add_parser(
        name,
        help=help,
        description=description,
        epilog=f"example: {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def place(text: str) -> Place:
    """A directory by path or by ``file://`` address, or one of an object store."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        return Path(text)
    if scheme == "file" and rest.startswith("/"):
        return Path(unquote(rest))
    try:
        return place_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def writable(text: str) -> Place:
    """The same for an action that writes."""
    found = place(text)
    if isinstance(found, RemotePath) and found.scheme not in WRITABLE:
        raise argparse.ArgumentTypeError(
            f"{text}: this action writes, and {found.scheme}:// can only be read; directories of this machine and "
            f"{WRITABLE[0]}:// can be written"
        )
    return found


def spool_option(parser: argparse.ArgumentParser, *, is_written: bool = False) -> None:
    """Add ``--spool``."""
    _place_option(parser, "spool", is_written=is_written)


def history_option(parser: argparse.ArgumentParser, *, is_written: bool = False) -> None:
    """Add ``--history``."""
    _place_option(parser, "history", is_written=is_written)


def _place_option(parser: argparse.ArgumentParser, name: str, *, is_written: bool) -> None:
    parser.add_argument(
        f"--{name}",
        type=writable if is_written else place,
        default=Path(name),
        metavar="DIR",
        help=f"directory of the {name}, or s3://BUCKET/PREFIX (default: {name})",
    )


def progress_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--progress``."""
    parser.add_argument("--progress", action="store_true", help="show progress also when stderr is not a terminal")


class Progress:
    """One line on stderr that is overwritten, at most five times a second.

    Args:
        wanted: Show lines also when stderr is not a terminal.
    """

    def __init__(self, wanted: bool) -> None:
        self._is_on = wanted or sys.stderr.isatty()
        self._last = 0.0
        self._shown = False

    def tell(self, text: str) -> None:
        """Show a text, unless the last one was shown just now."""
        now = time.monotonic()
        if self._is_on and now - self._last >= 0.2:
            self._last, self._shown = now, True
            print(f"\r\x1b[K{text}" if sys.stderr.isatty() else text, end="", file=sys.stderr, flush=True)
            if not sys.stderr.isatty():
                print(file=sys.stderr)

    def close(self) -> None:
        """Remove the line."""
        if self._shown and sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def needs_pyarrow() -> None:
    """Check that pyarrow is there.

    Raises:
        UserError: It is not installed.
    """
    try:
        import pyarrow  # noqa: F401 - only whether it is there
    except ModuleNotFoundError as error:
        raise UserError("the history needs pyarrow: pip install 'heliograph[history]'") from error


def report_problems(problems: Iterable[tuple[Broken, int]]) -> int:
    """Report the input that could not be used; returns its amount."""
    found = list(problems)
    for broken, rows in found[:NAMED]:
        what = "left out completely" if rows == 0 else f"{rows} {'row' if rows == 1 else 'rows'} left out"
        print(printable(f"heliograph: {broken.path}: {what}: {broken.reason}"), file=sys.stderr)
    if len(found) > NAMED:
        print(f"heliograph: and {len(found) - NAMED} more", file=sys.stderr)
    return len(found)


def report_rolled_up(what: str, done: RolledUp) -> int:
    """Print what a roll-up has done, and what it could not use; returns the exit code."""
    print(
        f"{what}: {done.intervals:,} new intervals with {done.values:,} values in {done.hours:,} "
        f"{'hour' if done.hours == 1 else 'hours'}",
        flush=True,
    )
    for hour in done.kept:
        print(
            f"heliograph: {hour}: an earlier version made this hour, and it has more of these series than the spool; "
            "see `history rollup --replace`",
            file=sys.stderr,
        )
    return 1 if report_problems(done.problems) or done.kept else 0
