"""The command ``heliograph``.

Every subcommand is an entry point of the group ``heliograph.commands``: a function that adds one subparser and sets
its `run`. Only the requested subcommand is loaded, so a slow or broken one does not affect the others. A mistake of the
user prints one line on standard error and gives exit code 2. An interrupt or a termination unwinds the subcommand, so
that it releases its resources (a terminal, a segment, a port), and prints nothing.
"""

from __future__ import annotations

import argparse
import difflib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from types import FrameType

from heliograph.monitor.errors import UserError

__all__ = ["GROUP", "main"]

GROUP = "heliograph.commands"

Command = Callable[["argparse._SubParsersAction[argparse.ArgumentParser]"], None]

INTERRUPTED = 130
BROKEN_PIPE = 141

# The extra that installs a library which only some commands need.
_EXTRAS = {
    "bcrypt": "web",
    "dash": "live",
    "plotly": "live",
    "waitress": "live",
    "yaml": "web",
    "grafana_api": "grafana",
    "hdrh": "history",
    "pandas": "history",
    "pyarrow": "history",
    "pyspark": "history",
}

_ABOUT = """\
Heliograph transports messages and measures how well it does so.

Try it with three terminals:

  heliograph sub "rmm://239.192.7.7:7500?interface=127.0.0.1" PRICES
  heliograph pub "rmm://239.192.7.7:7500?interface=127.0.0.1" PRICES
  heliograph top
"""

_MORE = """\
'heliograph COMMAND --help' explains a command, with an example.

Heliograph finds instances through their stats segments in $HELIOGRAPH_SEGMENT_DIR
(default: /dev/shm/heliograph).

Times are local, with the offset from UTC beside a date; --utc prints UTC. With --json, times are integers in ns
since 1970 (names in _ns). A command that answers once prints one JSON object, a command that continues prints one
object per line.
"""


def _product_version() -> str:
    try:
        return version("heliograph")
    except PackageNotFoundError:
        return "(not installed)"


def _missing(command: str, error: ImportError) -> str:
    """Return a sentence about a missing library and its remedy."""
    module = (error.name or "").split(".")[0]
    if module in _EXTRAS:
        return f"'{command}' needs {module}, which is not installed: pip install 'heliograph[{_EXTRAS[module]}]'"
    if error.name == "heliograph.engine._core":
        return f"'{command}' needs the compiled engine, which is not built: run 'make build'"
    return f"'{command}' cannot be loaded in this installation: {error}"


def _load(point: EntryPoint) -> Command:
    try:
        command: Command = point.load()
    except ImportError as error:
        raise UserError(_missing(point.name, error)) from error
    except AttributeError as error:
        raise UserError(f"'{point.name}' is not a command of this installation: {error}") from error
    return command


def _parser(points: Mapping[str, EntryPoint], wanted: str | None) -> argparse.ArgumentParser:
    """Return a parser with the wanted command or, for the help, with every command that loads."""
    parser = argparse.ArgumentParser(
        prog="heliograph", description=_ABOUT, epilog=_MORE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"heliograph {_product_version()}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    if wanted is not None:
        _load(points[wanted])(subparsers)
        return parser
    for name in sorted(points):
        try:
            _load(points[name])(subparsers)
        except UserError as error:
            subparsers.add_parser(name, help=f"not available: {error}", add_help=False)
    return parser


def _dispatch(argv: Sequence[str], points: Mapping[str, EntryPoint]) -> int:
    first = argv[0] if argv else None
    if first is None or first.startswith("-"):
        parser = _parser(points, None)
        parser.parse_args(argv)
        parser.print_help()
        return 0
    if first not in points:
        close = difflib.get_close_matches(first, points, n=1)
        advice = f"did you mean '{close[0]}'?" if close else "'heliograph --help' lists the commands"
        raise UserError(f"unknown command '{first}'; {advice}")
    arguments = _parser(points, first).parse_args(argv)
    from heliograph.engine.catalogue import times  # the list of commands does without it

    times.show(utc=getattr(arguments, "utc", False))
    try:
        code: int = arguments.run(arguments)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in _EXTRAS or error.name == "heliograph.engine._core":
            raise UserError(_missing(first, error)) from error
        raise
    return code


def _is_for_people(error: Exception) -> bool:
    """Whether the message of an error is meant for the user: a `UserError`, or an error of the loaded engine."""
    engine = sys.modules.get("heliograph.engine.errors")
    return isinstance(error, UserError) or (engine is not None and isinstance(error, engine.Error))


def _terminate(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextmanager
def _terminable() -> Iterator[None]:
    """Make SIGTERM unwind the command as Ctrl-C does, unless a handler is already installed."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def main(argv: Sequence[str] | None = None, commands: Iterable[EntryPoint] | None = None) -> int:
    """Run a command.

    Args:
        argv: Arguments; default: those of the process.
        commands: Entry points of the commands; default: the installed ones.

    Returns:
        Exit code: 0, the code of the command, 2 for a mistake of the user, 130 when interrupted, 141 for a closed pipe.

    Raises:
        SystemExit: The arguments are wrong (2) or the process was terminated (143).
    """
    points = {point.name: point for point in (entry_points(group=GROUP) if commands is None else commands)}
    try:
        with _terminable():
            code = _dispatch(sys.argv[1:] if argv is None else argv, points)
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe has closed it. Python would report the error again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        if not _is_for_people(error):
            raise
        print(f"heliograph: {_harmless(error)}", file=sys.stderr)
        return 2


def _harmless(error: Exception) -> str:
    """Make an error printable: quoted text may come from outside. Line breaks of the message stay."""
    from heliograph.monitor.text import printable

    return "\n".join(map(printable, str(error).split("\n")))


if __name__ == "__main__":
    sys.exit(main())
