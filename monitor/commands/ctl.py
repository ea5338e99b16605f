"""``heliograph ctl``: sends commands to a running engine, and lists the receivers of its streams."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.commands import levels
from heliograph.monitor.commands.arguments import add_collect_option, open_source
from heliograph.monitor.commands.common import Subparsers, add_command
from heliograph.monitor.commands.receivers import listing
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
Send a command to a running instance. Only root and the user that runs the instance may do this.
Each command appears as an event that names the sender of the command, also when the instance refuses it.
With --collect, 'receivers' and 'level --list' show other hosts; the other verbs work on this host only.

Exit codes: 0 done, 1 refused by the instance, 2 not sent (instance not found, or owned by another user),
3 no answer in time (the command was withdrawn: the instance does not execute it later).
"""


def duration(text: str) -> str:
    """Type of an option that is a time: 30, 1.5s, 200ms, 5m, 2h. Returns seconds in the engine's form.

    Raises:
        argparse.ArgumentTypeError: The text is not a time, or not from 1 ms to 30 days.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?", text)
    scale = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    seconds = float(found[1]) * scale[found[2] or "s"] if found else 0.0
    if not 0.001 <= seconds <= 30 * 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time from 1ms to 30d, such as 30, 1.5s, 200ms, 5m, 2h")
    return f"{seconds:.6f}".rstrip("0").rstrip(".")


def rate(text: str) -> str:
    """Type of an option that is a rate: bytes/s with k, M or G (powers of 1000). Returns whole bytes per second.

    Raises:
        argparse.ArgumentTypeError: The text is not a rate, or above 1000 G.
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
    """One verb: a command of the engine."""

    name: str
    help: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    """Adds the arguments of the verb; their names are the keys of the command."""
    where: bool = True
    """Whether the verb acts on streams, which --stream and --topic select."""


def _for(parser: argparse.ArgumentParser, required: bool) -> None:
    parser.add_argument(
        "--for", dest="for", metavar="TIME", type=duration, required=required, default=None,
        help="duration: 30, 1.5s, 200ms, 5m, 2h; then the command ends automatically",
    )  # fmt: skip


def _why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--why", metavar="TEXT", help="reason for the receiver and the events (the receiver gets at most 40 bytes)"
    )


def _receiver(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "receiver", metavar="RECEIVER", help="name, id or address of the receiver (see: heliograph ctl receivers)"
    )


def _nothing(_: argparse.ArgumentParser) -> None:
    pass


def _rate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "rate", metavar="RATE", type=rate, help="bytes per second: 250k, 10M, 1.2G; 0 removes the limit"
    )


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
    either.add_argument("--for", dest="for", metavar="TIME", type=duration, help="duration: 5, 500ms, 1m")
    either.add_argument("--off", action="store_const", const="yes", help="end the cutoff now")
    _why(parser)


def _level(parser: argparse.ArgumentParser) -> None:
    levels.add_arguments(parser, duration)


def _freeze(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--why", metavar="TEXT", help="reason, kept in the recording and the event")


_VERBS = (
    _Verb("ping", "check that the instance answers", "heliograph ctl ping --instance feed", _nothing, where=False),
    _Verb("set-rate", "limit the sending rate of streams", "heliograph ctl set-rate 10M --topic 'PRICES.*'", _rate),
    _Verb("set-policy", "choose the policy that controls the rate", "heliograph ctl set-policy dynamic", _policy),
    _Verb(
        "suspend",
        "stop repairs for a receiver and stop waiting for it, for a time; the receiver is notified of the reason",
        "heliograph ctl suspend slow-1 --for 30s --why 'backup runs there'",
        _suspend,
    ),
    _Verb("resume", "end a suspension now", "heliograph ctl resume slow-1", _undo),
    _Verb(
        "expel",
        "ignore a receiver, for a time or until it is readmitted; the receiver is notified of the reason",
        "heliograph ctl expel 10.1.2.3:41000 --for 10m --why 'unknown host'",
        _expel,
    ),
    _Verb("readmit", "accept an expelled receiver again", "heliograph ctl readmit 10.1.2.3:41000", _undo),
    _Verb(
        "cutoff",
        "stop all repairs of a stream for a time, to end a NAK storm",
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
        "keep the flight recording of the last seconds or minutes, and of the next two (see heliograph flight)",
        "heliograph ctl freeze --instance feed --why 'orders were late'",
        _freeze,
        where=False,
    ),
)


def _common(parser: argparse.ArgumentParser, top: bool) -> None:
    """Add the options that may stand before or after the verb."""

    def add(*names: str, default: Any, **how: Any) -> None:
        parser.add_argument(*names, default=default if top else argparse.SUPPRESS, **how)

    add("--instance", metavar="WHICH", default=None, help="name or pattern, process id, or path of the segment")
    add("--timeout", metavar="TIME", type=_timeout, default=2.0, help="longest wait for the answer (default: 2s)")
    add("--json", action="store_true", default=False, help="one JSON object, also when the command is refused")
    if not top:
        parser.add_argument("--segments", metavar="DIR", type=Path, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        parser.add_argument("--all-users", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        add_collect_option(parser, hidden=True)


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``ctl``."""
    examples = "\n  ".join(["heliograph ctl receivers", *(verb.example for verb in _VERBS)])
    parser = add_command(subparsers, "ctl", "send a command to a running instance", _ABOUT, examples)
    add_collect_option(parser)
    _common(parser, top=True)
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", dest="verb", required=True)
    receivers = verbs.add_parser("receivers", help="list the receivers of the streams; changes nothing")
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
                help="only streams with a topic that matches: 'PRICES.*'",
            )
        _common(one, top=False)
    parser.set_defaults(run=run)


def _is_path(which: str) -> bool:
    return which.endswith(SUFFIX) or "/" in which


def _running(instances: tuple[InstanceState, ...]) -> list[InstanceState]:
    return [item for item in instances if item.health in (Health.LIVE, Health.STALE)]


def _matching(running: list[InstanceState], which: str) -> list[InstanceState]:
    """Instances that match `which`: by name, else by process id, else by shell pattern."""
    named = [item for item in running if item.name == which]
    if which.isdigit() and not named:
        return [item for item in running if item.pid == int(which)]
    return named or [item for item in running if fnmatchcase(item.name, which)]


def choose(instances: tuple[InstanceState, ...], which: str | None) -> Path:
    """Return the path of the segment of the selected instance.

    Args:
        instances: All instances found.
        which: A name or shell pattern, a process id or the path of a segment; None: the only running instance.

    Raises:
        UserError: No instance matches, or several do.
    """
    if which is not None and _is_path(which):
        return Path(which)
    found = _selected(instances, which)
    if len(found) == 1:
        return Path(found[0].path)
    if not found:
        raise UserError("no running instance found")
    raise UserError(f"several instances match; select one with --instance: {_shown(found)}")


def _shown(instances: Iterable[InstanceState]) -> str:
    return ", ".join(sorted(f"{printable(item.name)} ({item.pid})" for item in instances))


def _selected(instances: tuple[InstanceState, ...], which: str | None) -> list[InstanceState]:
    """Return the running instances that ``--instance`` selects.

    Raises:
        UserError: None matches.
    """
    running = _running(instances)
    if which is None:
        return running
    found = [item for item in running if item.path == which] if _is_path(which) else _matching(running, which)
    if not found:
        raise UserError(
            f"no instance matches {which!r}; running: {_shown(running)}" if running else "no running instance found"
        )
    return found


def _values(arguments: argparse.Namespace) -> Mapping[str, object]:
    """The fields of the command: the given arguments that the engine knows as keys."""
    keys = ("receiver", "rate", "policy", "for", "off", "stream", "topic", "why")
    given = vars(arguments)
    return {key: given[key] for key in keys if given.get(key) is not None}


def _listed(snapshot: Snapshot, arguments: argparse.Namespace) -> str:
    """The receivers, or the levels in force."""
    found = _selected(snapshot.instances, arguments.instance)
    if arguments.verb == "receivers":
        chosen = replace(snapshot, instances=tuple(found))
        return listing(snapshot.time_ns, worst(receivers_of(chosen)), arguments.json)
    if arguments.json:
        return levels.level_json(snapshot, found)
    return "\n".join(levels.level_lines(snapshot, found))


def _targets(snapshot: Snapshot, arguments: argparse.Namespace) -> list[Path]:
    """Segments of the selected instances: exactly one, except that `level` accepts several."""
    which: str | None = arguments.instance
    if arguments.verb == "level" and not (which is not None and _is_path(which)):
        found = _selected(snapshot.instances, which)
        if found and (which is not None or levels.has_selector(vars(arguments))):
            return [Path(item.path) for item in found]
    return [choose(snapshot.instances, which)]


def run(arguments: argparse.Namespace) -> int:
    """Send one command and print the answer, or print the receivers or the levels."""
    arguments.collect = [*arguments.collect, *arguments.verb_collect]
    reads = arguments.verb == "receivers" or (arguments.verb == "level" and arguments.list)
    if arguments.collect and not reads:
        raise UserError(
            f"'ctl {arguments.verb}' sends a command, --collect only reads: "
            f"run 'heliograph ctl {arguments.verb}' on the host of the instance, without --collect"
        )
    with open_source(arguments) as source:
        snapshot = source.sample(histograms=False)
        if arguments.collect and not snapshot.instances:
            print(f"heliograph: {printable(source.absence)}", file=sys.stderr)
    if reads:
        print(_listed(snapshot, arguments))
        return 0
    values = levels.values(vars(arguments)) if arguments.verb == "level" else _values(arguments)
    text = command_text(arguments.verb, values)
    paths = _targets(snapshot, arguments)
    answers = []
    code = 0
    for path in paths:
        try:
            answer = _give(path, text, arguments)
        except UserError as error:  # it does not stop the others
            if len(paths) == 1:
                raise
            print(f"heliograph: {printable(str(error))}", file=sys.stderr)
            code = max(code, IMPOSSIBLE)
            continue
        answers.append(answer)
        code = max(code, NO_ANSWER if answer["code"] is None else REFUSED if answer["code"] else 0)
        if not arguments.json:
            _print(answer, named=len(paths) > 1)
    if arguments.json:
        print(json_text({"command": text, "answers": answers}))
    return code


def _give(path: Path, text: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Send the command to one instance; return the answer as JSON has it. Its code is None if none came in time."""
    try:
        with CommandRing(path, all_users=arguments.all_users) as ring:
            name = ring.header.name
            answer = ring.give(text, arguments.timeout)
    except NoAnswer as error:
        return {"instance": str(path), "code": None, "error": "NO_ANSWER", "answer": str(error)}
    return {"instance": name, "code": answer.code, "error": answer.error, "answer": answer.text}


def _print(answer: Mapping[str, Any], named: bool) -> None:
    name, text = printable(answer["instance"]), printable(answer["answer"])
    if answer["code"] == 0:
        print(f"{name}: {text}" if named else text)
    else:
        print(
            f"heliograph: {text}" if answer["code"] is None else f"heliograph: {name} refused: {text}", file=sys.stderr
        )
