"""``heliograph ctl``: tells a running engine what to do, and shows the receivers it knows."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.commands import levels
from heliograph.monitor.commands.common import Subparsers, add_command, only, sampler_of
from heliograph.monitor.commands.receivers import listing, running
from heliograph.monitor.control import CommandRing, NoAnswer, command_text
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Health, InstanceState, Snapshot
from heliograph.monitor.sampler import SUFFIX
from heliograph.monitor.sources import receivers_of
from heliograph.monitor.text import printable
from heliograph.monitor.worst import worst

__all__ = ["choose", "command", "duration", "rate"]

REFUSED, IMPOSSIBLE, NO_ANSWER = 1, 2, 3

_ABOUT = """\
Tell a running instance what to do. Only the user the instance runs as can (and root), and each
command is told as an event, with who gave it, also when it is refused.

Exit codes: 0 done, 1 refused by the instance, 2 cannot be given (no such instance, not yours),
3 no answer in time (the command was taken back: it is not carried out later).
"""


def duration(text: str) -> str:
    """Type of an option in time: 30, 1.5s, 200ms, 5m, 2h; gives seconds as the engine reads them.

    Raises:
        argparse.ArgumentTypeError: It is none, or not from 1 ms to 30 days.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?", text)
    scale = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    seconds = float(found[1]) * scale[found[2] or "s"] if found else 0.0
    if not 0.001 <= seconds <= 30 * 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time from 1ms to 30d, such as 30, 1.5s, 200ms, 5m, 2h")
    return f"{seconds:.6f}".rstrip("0").rstrip(".")


def rate(text: str) -> str:
    """Type of a rate: bytes per second with k, M or G, in powers of 1000; gives whole bytes per second.

    Raises:
        argparse.ArgumentTypeError: It is none, or above 1000 G.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kKMG]?)(?:B(?:/s)?)?", text)
    scale = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}
    bytes_per_s = round(float(found[1]) * scale[found[2]]) if found else -1
    if not 0 <= bytes_per_s <= 10**12:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate in bytes per second, such as 250k, 10M, 1.2G or 0")
    return str(bytes_per_s)


def _timeout(text: str) -> float:
    return float(duration(text))


@dataclass(frozen=True, slots=True)
class _Verb:
    """One verb of the engine."""

    name: str
    help: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    """Adds what it takes; the names are the keys of the command."""
    where: bool = True
    """It is for streams, which --stream and --topic choose."""


def _for(parser: argparse.ArgumentParser, required: bool) -> None:
    parser.add_argument(
        "--for", dest="for", metavar="TIME", type=duration, required=required, default=None,
        help="how long: 30, 1.5s, 200ms, 5m, 2h; then it ends by itself",
    )  # fmt: skip


def _why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--why", metavar="TEXT", help="what the receiver and the events are told (40 bytes go out)")


def _receiver(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "receiver", metavar="RECEIVER", help="its name, its id, or its address (heliograph ctl receivers)"
    )


def _nothing(_: argparse.ArgumentParser) -> None:
    pass


def _rate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rate", metavar="RATE", type=rate, help="bytes per second: 250k, 10M, 1.2G; 0: no limit")


def _policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "policy",
        metavar="NAME",
        help="a rate policy (none, static, dynamic, pgmcc) or a window policy (window-none, -max, -min, -tagged)",
    )


def _suspend(parser: argparse.ArgumentParser) -> None:
    _receiver(parser)
    _for(parser, required=True)
    _why(parser)


def _undo(parser: argparse.ArgumentParser) -> None:
    _receiver(parser)
    _why(parser)


def _expel(parser: argparse.ArgumentParser) -> None:
    _receiver(parser)
    _for(parser, required=False)
    _why(parser)


def _cutoff(parser: argparse.ArgumentParser) -> None:
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("--for", dest="for", metavar="TIME", type=duration, help="how long: 5, 500ms, 1m")
    either.add_argument("--off", action="store_const", const="yes", help="end it now")
    _why(parser)


def _level(parser: argparse.ArgumentParser) -> None:
    levels.add_arguments(parser, duration)


def _freeze(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--why", metavar="TEXT", help="what the recording and the event say")


_VERBS = (
    _Verb("ping", "ask whether it listens", "heliograph ctl ping --instance feed", _nothing, where=False),
    _Verb("set-rate", "limit how fast streams send", "heliograph ctl set-rate 10M --topic 'PRICES.*'", _rate),
    _Verb("set-policy", "choose what decides on the rate", "heliograph ctl set-policy dynamic", _policy),
    _Verb(
        "suspend",
        "stop repairing and waiting for a receiver, for a time; it is told why",
        "heliograph ctl suspend slow-1 --for 30s --why 'backup runs there'",
        _suspend,
    ),
    _Verb("resume", "end a suspension now", "heliograph ctl resume slow-1", _undo),
    _Verb(
        "expel",
        "hear a receiver no more, for a time or until it is readmitted; it is told why",
        "heliograph ctl expel 10.1.2.3:41000 --for 10m --why 'unknown host'",
        _expel,
    ),
    _Verb("readmit", "hear an expelled receiver again", "heliograph ctl readmit 10.1.2.3:41000", _undo),
    _Verb(
        "cutoff",
        "stop all repairs of a stream for a time: the brake against a storm of requests",
        "heliograph ctl cutoff --for 2s",
        _cutoff,
    ),
    _Verb(
        "level",
        "change the level of detail of the statistics for a time, or show it (--list)",
        "heliograph ctl level 3 --for 60s --topic 'PRICES.*'",
        _level,
        where=False,
    ),
    _Verb(
        "freeze",
        "keep the flight recording of the last seconds or minutes, and of two more (heliograph flight reads it)",
        "heliograph ctl freeze --instance feed --why 'orders were late'",
        _freeze,
        where=False,
    ),
)


def _common(parser: argparse.ArgumentParser, top: bool) -> None:
    """Options that may stand before or behind the verb."""

    def add(*names: str, default: Any, **how: Any) -> None:
        parser.add_argument(*names, default=default if top else argparse.SUPPRESS, **how)

    add("--instance", metavar="WHICH", default=None, help="name or pattern, process id, or path of the segment")
    add("--timeout", metavar="TIME", type=_timeout, default=2.0, help="longest wait for the answer (default: 2 s)")
    add("--json", action="store_true", default=False, help="one JSON object, also when it is refused")
    if not top:
        parser.add_argument("--segments", metavar="DIR", type=Path, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        parser.add_argument("--all-users", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``ctl``."""
    examples = "\n  ".join(["heliograph ctl receivers", *(verb.example for verb in _VERBS)])
    parser = add_command(subparsers, "ctl", "tell a running instance what to do", _ABOUT, examples)
    _common(parser, top=True)
    verbs = parser.add_subparsers(title="what to do", metavar="VERB", dest="verb", required=True)
    receivers = verbs.add_parser("receivers", help="list the receivers that streams know; changes nothing")
    _common(receivers, top=False)
    for verb in _VERBS:
        one = verbs.add_parser(
            verb.name, help=verb.help, description=verb.help, epilog=f"example:\n  {verb.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        verb.arguments(one)
        if verb.where:
            one.add_argument("--stream", metavar="TSI", help="only this stream (GSI:PORT)")
            one.add_argument(
                "--topic",
                metavar="PATTERN",
                default=argparse.SUPPRESS,
                help="only streams with such a topic: 'PRICES.*'",
            )
        _common(one, top=False)
    parser.set_defaults(run=run)


def _is_path(which: str) -> bool:
    return which.endswith(SUFFIX) or "/" in which


def _running(instances: tuple[InstanceState, ...]) -> list[InstanceState]:
    return [item for item in instances if item.health in (Health.LIVE, Health.STALE)]


def _matching(instances: tuple[InstanceState, ...], which: str) -> list[InstanceState]:
    """Those that run and are called so: by name, else by process id, else by a shell pattern."""
    running = _running(instances)
    named = [item for item in running if item.name == which]
    if which.isdigit() and not named:
        return [item for item in running if item.pid == int(which)]
    return named or [item for item in running if fnmatchcase(item.name, which)]


def choose(instances: tuple[InstanceState, ...], which: str | None) -> Path:
    """The segment of the one instance that is meant.

    Args:
        instances: Those there are.
        which: A name or shell pattern, a process id or the path of a segment; None: the only one that runs.

    Raises:
        UserError: None is meant, or several.
    """
    if which is not None and _is_path(which):
        return Path(which)
    running = _running(instances)
    found = running if which is None else _matching(instances, which)
    if len(found) == 1:
        return Path(found[0].path)
    shown = ", ".join(sorted(f"{printable(item.name)} ({item.pid})" for item in found or running))
    if not running:
        raise UserError("no instance is running here")
    if not found:
        raise UserError(f"no instance is called {which!r}; there are: {shown}")
    raise UserError(f"which one? name it with --instance: {shown}")


def _receivers(snapshot: Snapshot, arguments: argparse.Namespace) -> int:
    found = worst(receivers_of(only(running(snapshot), arguments.instance)))
    lines = listing(found, arguments.json)
    if lines:
        print("\n".join(lines))
    return 0


def _values(arguments: argparse.Namespace) -> Mapping[str, object]:
    """What goes into the command: what was given of the keys the engine knows."""
    keys = ("receiver", "rate", "policy", "for", "off", "stream", "topic", "why")
    given = vars(arguments)
    return {key: given[key] for key in keys if given.get(key) is not None}


def _level_lines(snapshot: Snapshot, arguments: argparse.Namespace) -> list[str]:
    which: str | None = arguments.instance
    if which is None:
        found = _running(snapshot.instances)
    elif _is_path(which):
        found = [item for item in _running(snapshot.instances) if item.path == which]
    else:
        found = _matching(snapshot.instances, which)
    return levels.level_json(found) if arguments.json else levels.level_lines(snapshot, found)


def _targets(snapshot: Snapshot, arguments: argparse.Namespace) -> list[Path]:
    """Segments of the instances that are meant: one, but for `level` maybe more."""
    which: str | None = arguments.instance
    if arguments.verb == "level" and not (which is not None and _is_path(which)):
        found = _running(snapshot.instances) if which is None else _matching(snapshot.instances, which)
        if found and (which is not None or levels.has_selector(vars(arguments))):
            return [Path(item.path) for item in found]
    return [choose(snapshot.instances, which)]


def run(arguments: argparse.Namespace) -> int:
    """Give one command and print the answer."""
    with sampler_of(arguments) as sampler:
        snapshot = sampler.sample(histograms=False)
    if arguments.verb == "receivers":
        return _receivers(snapshot, arguments)
    if arguments.verb == "level" and arguments.list:
        print("\n".join(_level_lines(snapshot, arguments)))
        return 0
    values = levels.values(vars(arguments)) if arguments.verb == "level" else _values(arguments)
    text = command_text(arguments.verb, values)
    paths = _targets(snapshot, arguments)
    if len(paths) == 1:
        return _give(paths[0], text, arguments)
    return max(_give_one_of_many(path, text, arguments) for path in paths)


def _give_one_of_many(path: Path, text: str, arguments: argparse.Namespace) -> int:
    """One that cannot be commanded keeps no other from it."""
    try:
        return _give(path, text, arguments, named=True)
    except UserError as error:
        print(f"heliograph: {printable(str(error))}", file=sys.stderr)
        return IMPOSSIBLE


def _give(path: Path, text: str, arguments: argparse.Namespace, named: bool = False) -> int:
    """Give the command to one instance; returns the exit code."""
    try:
        with CommandRing(path, all_users=arguments.all_users) as ring:
            name = ring.header.name
            answer = ring.give(text, arguments.timeout)
    except NoAnswer as error:
        if not arguments.json:
            print(f"heliograph: {printable(str(error))}", file=sys.stderr)
        else:
            _print_json(str(path), text, None, "NO_ANSWER", str(error))
        return NO_ANSWER
    if arguments.json:
        _print_json(name, text, answer.code, answer.error, answer.text)
    elif answer.code == 0:
        print(printable(f"{name}: {answer.text}" if named else answer.text))
    else:
        print(f"heliograph: {printable(name)} refused: {printable(answer.text)}", file=sys.stderr)
    return REFUSED if answer.code else 0


def _print_json(instance: str, text: str, code: int | None, error: str | None, answer: str) -> None:
    fields = {"instance": instance, "command": text, "code": code, "error": error, "answer": answer}
    sys.stdout.write(json_text(fields))
    sys.stdout.write("\n")
