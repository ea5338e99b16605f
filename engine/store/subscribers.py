"""`heliograph store subscriptions`: lists, moves and deletes the durable subscriptions that a store keeps."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeAlias

from heliograph.engine.commands import harmless

if TYPE_CHECKING:
    from heliograph.engine.store.subscriptions import Position

__all__ = ["add_subscriptions"]

Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_EPILOG = """\
A subscriber takes its positions when it starts (`heliograph sub --store STORE --subscription NAME`). Move or delete a
subscription in each of its stores. A subscriber that runs meanwhile ends with an error.

example:
  heliograph store subscriptions store://10.0.0.5:7800
  heliograph store subscriptions store://10.0.0.5:7800 --move desk-1 a1b2c3d4e5f6:7500=120000
"""


def add_subscriptions(actions: Actions) -> None:
    """Add ``heliograph store subscriptions``."""
    parser = actions.add_parser(
        "subscriptions",
        help="list, move or delete durable subscriptions",
        description="List the durable subscriptions that a store keeps, with the number of the next message of each "
        "stream and how many messages the store has from there.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("store", metavar="DIR|store://HOST:PORT", help="directory or address of the store")
    change = parser.add_mutually_exclusive_group()
    change.add_argument(
        "--move", nargs=2, metavar=("NAME", "GSI:PORT=NUMBER"), help="continue this stream at this message"
    )
    change.add_argument("--delete", metavar="NAME", help="forget its positions")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from heliograph.engine.errors import Error
    from heliograph.engine.store.subscriptions import forget, move, subscriptions

    try:
        if arguments.move:
            move(arguments.store, arguments.move[0], _positions(arguments.move[1]))
        if arguments.delete:
            forget(arguments.store, arguments.delete)
        found = subscriptions(arguments.store)
        waiting = {one.name: _waiting(arguments.store, one) for one in found}
    except Error as error:
        print(f"heliograph: {error}", file=sys.stderr)
        return 2
    if arguments.json:
        rows = [{**asdict(one), "messages_waiting": waiting[one.name]} for one in found]
        print(json.dumps({"subscriptions": rows}))
        return 0
    print(f"{'NAME':<20}{'SAVED':>10}  {'STREAM':<20}{'NEXT':>12}{'WAITING':>12}  TOPIC")
    for one in found:
        age = f"{max(0.0, time.time() - one.saved_ns / 1e9):,.0f} s ago"
        for stream in one.positions or ["-"]:
            number, count = one.positions.get(stream, "-"), waiting[one.name].get(stream, "-")
            print(f"{one.name:<20}{age:>10}  {stream:<20}{number:>12}{count:>12}  {harmless(one.topic)}")
    return 0


def _positions(text: str) -> dict[str, int]:
    from heliograph.engine.options import refusal

    stream, _, number = text.rpartition("=")
    if not stream or not number.isdecimal():
        raise refusal(f"a position is GSI:PORT=NUMBER, not {text!r}")
    return {stream: int(number)}


def _waiting(store: str, one: Position) -> dict[str, int]:
    """By stream, the number of messages that the store has from the position on."""
    from heliograph.engine.store.reader import MAX, runs

    return {
        stream: sum(len(run) for run in runs(store, stream, by="number", first=number, last=MAX, topic=one.topic))
        for stream, number in one.positions.items()
    }
