"""``heliograph lab replay``: the decisions of a decision log made again (engine/docs/decisions.md).

With the recorded options every decision must come out the same, to the last bit. With others it shows what they would
have decided about the same inputs; what their decisions would have changed in the inputs nobody can know.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from heliograph.engine import catalogue

__all__ = ["CONSUMER", "RATE", "STORM", "Decision", "Rerun", "add", "decision", "read", "rerun"]

RATE, CONSUMER, STORM = 16, 17, 18
_STATES = ("hold", "decrease", "increase")
_ACTIONS = ("none", *catalogue.actions())
_SYMPTOMS = ("", "loss", "NAKs", "lag", "buffer", "silence")
_NOBODY = 0xFFFFFFFF
_LINES = 40
"""Of differences printed."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of an interval, as it was and as it is made now, in words; "" where there is none."""

    seconds: float
    """Since the first interval with a decision."""
    recorded: str
    made: str
    agrees: bool


@dataclass(frozen=True, slots=True)
class Rerun:
    """The result of replaying a log."""

    log: str
    instance: str
    stream: str
    policy: str
    """Rate policy at the end."""
    options: str
    """Given over the recorded ones."""
    intervals: int
    recorded: int
    made: int
    reproduced: int
    damaged: bool
    """It could not be read to its end."""
    decisions: tuple[Decision, ...]

    @property
    def is_reproduced(self) -> bool:
        """Every decision came out again, and no other."""
        return self.reproduced == self.recorded == self.made and not self.damaged


def _double(bits: int) -> float:
    value: float = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return value


def _place(number: int) -> str:
    return "" if number == _NOBODY else f", receiver {number}"


def _word(words: tuple[str, ...], number: int) -> str:
    return words[number] if number < len(words) else str(number)


def _rate(numbers: tuple[int, ...], why: str) -> str:
    rate, _, state, worst, signal = numbers
    speed = f"{rate:,} bytes/s" if rate else "no limit"
    return f"rate {speed}, {_word(_STATES, state)} ({why or 'as before'}; {_double(signal):.3%}{_place(worst)})"


def _consumer(numbers: tuple[int, ...], why: str) -> str:
    place, action, symptom, value, threshold, _, duration, _, rate = numbers
    words = [_word(_ACTIONS, action), _place(place)[2:] or "the group"]
    if symptom:
        words.append(f"{_word(_SYMPTOMS, symptom)} {_double(value):.4g} over {_double(threshold):.4g}")
    if rate:
        words.append(f"at {rate:,} bytes/s")
    if 0 < duration < 1 << 62:
        words.append(f"for {duration / 1e9:.3g} s")
    return f"{', '.join(words)} ({why})"


def _storm(numbers: tuple[int, ...], why: str) -> str:
    what, cut_off, _, repeats, share, load = numbers
    head = {1: "a storm begins", 2: "the storm is over"}.get(what, "the storm goes on")
    brake = f", cut off for {cut_off / 1e9:.3g} s" if cut_off else ""
    return f"{head}{brake} (repeats {_double(repeats):.0%}, recovery {_double(share):.0%}, load {_double(load):.0%})"


_WORDS: dict[int, tuple[int, Callable[[tuple[int, ...], str], str]]] = {
    RATE: (5, _rate),
    CONSUMER: (9, _consumer),
    STORM: (6, _storm),
}


def _words(kind: int, numbers: tuple[int, ...] | None, why: str) -> str:
    if numbers is None:
        return ""
    count, words = _WORDS.get(kind, (0, None))
    return words(numbers, why) if words is not None and len(numbers) == count else f"kind {kind} {numbers} {why}"


def read(log: Path, options: Iterable[str] = ()) -> Rerun:
    """Make the decisions of a log again.

    Args:
        log: A file that the option ``decision_log`` wrote.
        options: ``name=value`` over the recorded options of the transmitter.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no decision log, or an option is unknown, out of range or contradicts another.
    """
    given = list(options)
    text = "&".join(given)
    result = rerun(log, given)
    rows = result["decisions"]
    begin = rows[0][0] if rows else 0
    return Rerun(
        log=str(log),
        instance=result["instance"],
        stream=result["stream"],
        policy=result["policy"],
        options=text,
        intervals=result["intervals"],
        recorded=result["recorded"],
        made=result["made"],
        reproduced=result["reproduced"],
        damaged=result["damaged"],
        decisions=tuple(decision(row, begin) for row in rows),
    )


def decision(row: tuple[Any, ...], begin: int) -> Decision:
    """Return a decision of `rerun` in words.

    Args:
        row: The decision.
        begin: Monotonic time of the first one, in ns.
    """
    now, _, kind, recorded, why, made, again, agrees = row
    return Decision((now - begin) / 1e9, _words(kind, recorded, why), _words(kind, made, again), agrees)


def rerun(log: Path, options: Iterable[str] = ()) -> Mapping[str, Any]:
    """Make the decisions of a log again, and return the numbers of both sides (`_lab.rerun`); raises as `read` does."""
    from heliograph.engine import _lab  # compiled: not before a log is to be read

    found: Mapping[str, Any] = _lab.rerun(log.read_bytes(), "&".join(options) or None)
    return found


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``heliograph lab replay``."""
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help="files that the option decision_log wrote")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="options",
        metavar="NAME=VALUE",
        help="decide with another option of the transmitter: rate_policy=static, slow_dwell=1",
    )
    parser.add_argument("--all", action="store_true", help="print every decision, not only those that differ")
    parser.add_argument("--json", action="store_true", help="print one JSON object with the logs")
    parser.set_defaults(run=run)


def _print(rerun: Rerun, everything: bool) -> None:
    shown = [one for one in rerun.decisions if everything or not one.agrees]
    for one in shown[: None if everything else _LINES]:
        if one.agrees:
            print(f"{one.seconds:9.3f} s  {one.recorded}")
            continue
        print(f"{one.seconds:9.3f} s  was: {one.recorded or 'nothing'}")
        print(f"{'':11}  now: {one.made or 'nothing'}")
    if not everything and len(shown) > _LINES:
        print(f"{'':11}  ... and {len(shown) - _LINES} more that differ (--all)")
    head = f"{rerun.log}: {rerun.instance}, stream {rerun.stream}: {rerun.intervals:,} intervals"
    if rerun.options:
        same = rerun.reproduced
        print(f"{head}; {rerun.recorded:,} decisions recorded, {rerun.made:,} with {rerun.options}, {same:,} the same")
    else:
        print(f"{head}; {rerun.reproduced:,} of {rerun.recorded:,} decisions reproduced")
    if rerun.damaged:
        print(f"{rerun.log}: damaged: what follows the last whole record could not be read", file=sys.stderr)


def run(arguments: argparse.Namespace) -> int:
    """Replay logs; 1 when a decision of some did not come out again (without ``--set``), 2 when one cannot be read."""
    code = 0
    reruns = []
    for log in arguments.logs:
        try:
            rerun = read(log, arguments.options)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            print(f"heliograph lab replay: {log}: {reason}", file=sys.stderr)
            code = 2
            continue
        if arguments.json:
            reruns.append(asdict(rerun) | {"is_reproduced": rerun.is_reproduced})
        else:
            _print(rerun, arguments.all)
        if not arguments.options and not rerun.is_reproduced:
            code = max(code, 1)
    if arguments.json:
        print(json.dumps({"logs": reruns}))
    return code
