"""`heliograph history compact` and `heliograph history prune`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.actions import (
    NAMED,
    Actions,
    Progress,
    add_action,
    history_option,
    needs_pyarrow,
    progress_option,
    report_problems,
    spool_option,
)
from heliograph.monitor.text import bytes_text, printable

if TYPE_CHECKING:
    from heliograph.monitor.history.retention import Pruned, PrunedDay
    from heliograph.monitor.history.spool_retention import PrunedSpool

__all__ = ["add_compact", "add_prune"]

_AGE = re.compile(r"(\d{1,5})([dwy])")
_DAYS = {"d": 1, "w": 7, "y": 365}
_MAX_DAYS = 36_500


def add_compact(actions: Actions[argparse.ArgumentParser]) -> None:
    """Add ``heliograph history compact``."""
    parser = add_action(
        actions,
        "compact",
        _compact,
        "merge the hours of past days into days",
        "Merge the hours of each past UTC day of a history into one row per series, with percentiles, under 1d/. The\n"
        "hours stay, and all other actions read the hours, until `prune` removes them. A day is rebuilt when one of\n"
        "its hours has changed.",
        "heliograph history compact --history history --age 2",
    )
    history_option(parser, is_written=True)
    parser.add_argument(
        "--age",
        type=_days,
        default=1,
        metavar="DAYS",
        help="leave out the days that ended less than this number of days ago (default: %(default)s)",
    )
    progress_option(parser)


def _days(text: str) -> int:
    value = int(text)
    if not 0 <= value <= _MAX_DAYS:
        raise argparse.ArgumentTypeError(f"{text} is not a number of days from 0 to {_MAX_DAYS}")
    return value


def add_prune(actions: Actions[argparse.ArgumentParser]) -> None:
    """Add ``heliograph history prune``."""
    parser = add_action(
        actions,
        "prune",
        _prune,
        "remove the hours of old days, old days, or old files of a spool",
        "Remove what a history no longer needs. A day that --older-than reaches is checked against its hours, row by\n"
        "row, and stands for them from then on; then the data files of the hours are removed. All counts stay. What\n"
        "happened at which hour of such a day is lost: calendars by hour, hours met and changes leave it out and say\n"
        "so. Run `compact` first. A day that --remove-days-older-than reaches is removed with all its counts.\n\n"
        "Files of the spool that --spool-older-than reaches are removed if the history has all of their intervals.\n\n"
        "A pruned day takes no more intervals: the roll-up names late ones and leaves them out. A killed run changes\n"
        "no count, and the next one continues. Exit code 0: done; 1: some stay, named on stderr; 2: an error.",
        "heliograph history prune --history history --older-than 90d --remove-days-older-than 5y --dry-run",
    )
    history_option(parser, is_written=True)
    parser.add_argument(
        "--older-than",
        type=_age,
        metavar="AGE",
        help="remove the hours of days that ended at least this long ago, such as 90d, 12w or 2y (a year is 365 days)",
    )
    parser.add_argument(
        "--remove-days-older-than",
        type=_age,
        metavar="AGE",
        help="remove days that ended at least this long ago, with all their counts",
    )
    spool_option(parser, is_written=True)
    parser.add_argument(
        "--spool-older-than",
        type=_age,
        metavar="AGE",
        help="remove files of the spool whose intervals are all at least this old, such as 7d, and in the history",
    )
    parser.add_argument("--dry-run", action="store_true", help="check the days, show what would go, change nothing")
    parser.add_argument("--json", action="store_true", help="one JSON object, sizes in bytes")
    progress_option(parser)


def _age(text: str) -> timedelta:
    found = _AGE.fullmatch(text.strip())
    days = int(found[1]) * _DAYS[found[2]] if found else 0
    if not 1 <= days <= _MAX_DAYS:
        raise argparse.ArgumentTypeError(f"{text!r} is not an age such as 90d, 12w or 2y, of at least a day")
    return timedelta(days=days)


def _compact(args: argparse.Namespace) -> int:
    needs_pyarrow()
    from heliograph.monitor.history.days import compact

    progress = Progress(args.progress)
    try:
        done = compact(args.history, timedelta(days=args.age), progress=progress.tell)
    finally:
        progress.close()
    print(f"{args.history}: {_counted(done.written)} written, {done.current:,} up to date, {done.young:,} too recent")
    return 1 if report_problems((broken, 0) for broken in done.problems) else 0


def _prune(args: argparse.Namespace) -> int:
    if args.older_than is None and args.remove_days_older_than is None and args.spool_older_than is None:
        raise UserError("say what to prune: --older-than AGE, --remove-days-older-than AGE, --spool-older-than AGE")
    needs_pyarrow()
    from heliograph.monitor.history.retention import prune
    from heliograph.monitor.history.spool_retention import prune_spool

    progress = Progress(args.progress)
    spool = None
    try:
        if args.spool_older_than is not None:
            spool = prune_spool(
                args.spool, args.history, args.spool_older_than, dry_run=args.dry_run, progress=progress.tell
            )
        done = prune(
            args.history,
            args.older_than,
            args.remove_days_older_than,
            dry_run=args.dry_run,
            progress=progress.tell,
        )
    finally:
        progress.close()
    for line in [_json(done, spool, args)] if args.json else _text_lines(done, spool, args):
        print(line)
    stay = [*(spool.problems if spool else ()), *done.problems]
    for broken in stay[:NAMED]:
        print(printable(f"heliograph: {broken.path}: stays as it is: {broken.reason}"), file=sys.stderr)
    if len(stay) > NAMED:
        print(f"heliograph: and {len(stay) - NAMED} more", file=sys.stderr)
    return 1 if stay else 0


def _text_lines(done: Pruned, spool: PrunedSpool | None, args: argparse.Namespace) -> Iterator[str]:
    would = " (dry run: nothing was changed)" if args.dry_run else ""
    if spool is not None:
        yield (
            f"{args.spool}: {spool.files:,} files with {spool.intervals:,} intervals removed, "
            f"{bytes_text(spool.bytes)} freed, {spool.young:,} too recent{would}"
        )
    for one in done.days:
        lost = f"; {one.intervals:,} intervals are lost" if one.is_removed else ""
        yield f"{one.day}  {_action(one)}: {one.files:,} files, {bytes_text(one.bytes)}{lost}"
    removed = sum(one.is_removed for one in done.days)
    yield (
        f"{args.history}: {_counted(len(done.days) - removed)} without hours now, {removed:,} removed, "
        f"{bytes_text(sum(one.bytes for one in done.days))} freed, {done.current:,} pruned before, "
        f"{done.young:,} too recent{would}"
    )


def _json(done: Pruned, spool: PrunedSpool | None, args: argparse.Namespace) -> str:
    of_spool: dict[str, object] = (
        {}
        if spool is None
        else {
            "spool": {
                "files": spool.files,
                "intervals": spool.intervals,
                "bytes": spool.bytes,
                "too_recent": spool.young,
                "stay": [{"path": broken.path, "reason": broken.reason} for broken in spool.problems],
            }
        }
    )
    return json_text(
        {
            "dry_run": args.dry_run,
            "days": [
                {
                    "day": one.day,
                    "action": _action(one),
                    "intervals": one.intervals,
                    "files": one.files,
                    "bytes": one.bytes,
                }
                for one in done.days
            ],
            "stay": [{"path": broken.path, "reason": broken.reason} for broken in done.problems],
            "pruned_before": done.current,
            "too_recent": done.young,
        }
        | of_spool
    )


def _action(one: PrunedDay) -> str:
    return "day removed" if one.is_removed else "hours removed"


def _counted(days: int) -> str:
    return f"{days:,} {'day' if days == 1 else 'days'}"
