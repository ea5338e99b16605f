"""`heliograph store`: its actions. `ls` and `verify` are here."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

from heliograph.engine.catalogue.times import add_utc_option, date_time
from heliograph.engine.commands import status_line
from heliograph.engine.store.export import add_export
from heliograph.engine.store.files import ahead, faults, segments
from heliograph.engine.store.find import add_find
from heliograph.engine.store.offer import add_offer
from heliograph.engine.store.replay import add_replay
from heliograph.engine.store.serve import add_serve
from heliograph.engine.store.subscribers import add_subscriptions
from heliograph.engine.store.trim import add_trim

__all__ = ["command"]

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def command(subparsers: Subparsers) -> None:
    """Add ``heliograph store``."""
    parser = subparsers.add_parser(
        "store",
        help="keep messages in a store, serve, replay and export them; list, verify or trim its files",
        description="Keep messages in a store, serve, replay and export them; list, verify or trim its files.",
        epilog="example:\n  heliograph store verify /var/lib/heliograph/store",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_serve(actions)
    add_offer(actions)
    add_find(actions)
    add_replay(actions)
    add_subscriptions(actions)
    add_export(actions)
    add_trim(actions)
    for name, text in (
        ("ls", "list the segments with their messages"),
        ("verify", "check every record; exit code 1 reports damage"),
    ):
        action = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        action.add_argument("dir", type=Path, metavar="DIR", help="directory of the store")
        action.add_argument("--json", action="store_true", help="print one JSON object")
        action.set_defaults(run=_run)
        if name == "ls":
            add_utc_option(action)


def _run(arguments: argparse.Namespace) -> int:
    from heliograph.engine.errors import Error

    thorough = arguments.action == "verify"
    try:
        found = segments(arguments.dir, thorough, lambda count: status_line(f"{count:,} segments read"))
        beyond = ahead(arguments.dir) if thorough else None
        waiting = segments(beyond, thorough) if beyond else []
        status_line("")
    except Error as error:
        print(f"heliograph: {error}", file=sys.stderr)
        return 2
    wrong = [*faults(found), *(f"ahead: {fault}" for fault in faults(waiting))] if thorough else []
    if arguments.json:
        body: dict[str, object] = {"segments": [asdict(segment) for segment in found]}
        print(json.dumps({**body, "faults": wrong} if thorough else body))
        return 1 if wrong else 0
    if thorough:
        for fault in wrong:
            print(fault)
        messages = sum(segment.messages for segment in found)
        rest = sum(segment.bytes - segment.whole_bytes for segment in found)
        verdict = "damaged" if wrong else "ok"
        more = sum(segment.messages for segment in waiting)
        tail = f"; {more:,} messages wait for earlier ones" if more else ""
        counted = f"{messages:,} messages in {len(found):,} segments"
        print(f"{verdict}: {counted}, {rest:,} bytes after the last whole batch{tail}")
        return 1 if wrong else 0
    print(f"{'STREAM':<20}{'SEGMENT':>8}{'FIRST':>12}{'MESSAGES':>12}{'BYTES':>14}  {'RECEIVED FROM':<27}UNTIL")
    for segment in found:
        counts = f"{segment.number:>8}{segment.position:>12}{segment.messages:>12}{segment.bytes:>14}"
        print(f"{segment.stream:<20}{counts}  {date_time(segment.first_ns):<27}{date_time(segment.last_ns)}")
    return 0
