"""`heliograph history stream`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from heliograph.monitor.history.actions import (
    Actions,
    Progress,
    add_action,
    history_option,
    needs_pyarrow,
    progress_option,
    report_rolled_up,
    spool_option,
)

if TYPE_CHECKING:
    from heliograph.monitor.history.rollup import RolledUp

__all__ = ["add_stream"]

_LOWEST_S, _HIGHEST_S = 1.0, 86_400.0


def add_stream(actions: Actions[argparse.ArgumentParser]) -> None:
    """Add ``heliograph history stream``."""
    parser = add_action(
        actions,
        "stream",
        _stream,
        "roll new files of a spool up as they come, with Spark",
        "Add the new files of a spool to the history every --every seconds, until Ctrl-C, by Spark's Structured\n"
        "Streaming. The rules are those of `rollup`: each interval is merged once, also after a kill, and both may\n"
        "fill one history. With --once the stream ends when the files that are there are merged. A file that cannot\n"
        "be read is named, and tried again at the next start. Exit code 0: done, or stopped by Ctrl-C; 1: part of the\n"
        "input could not be used; 2: an error.",
        "heliograph history stream --spool s3://latency/spool --history s3://latency/history --every 60",
    )
    spool_option(parser)
    history_option(parser, is_written=True)
    parser.add_argument("--master", default="local[2]", help="Spark master (default: local[2])")
    times = parser.add_mutually_exclusive_group()
    times.add_argument(
        "--every", type=_seconds, default=60.0, metavar="SECONDS", help="time between two batches (default: 60)"
    )
    times.add_argument("--once", action="store_true", help="merge what is there, and end")
    progress_option(parser)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not _LOWEST_S <= value <= _HIGHEST_S:
        raise argparse.ArgumentTypeError(f"{text} is not a time from {_LOWEST_S:.0f} to {_HIGHEST_S:.0f} seconds")
    return value


def _stream(args: argparse.Namespace) -> int:
    needs_pyarrow()
    from heliograph.monitor.commands.ticking import stopping
    from heliograph.monitor.history.files import no_spool
    from heliograph.monitor.history.spark import spark_session

    if not args.spool.is_dir():
        raise no_spool(args.spool)
    progress = Progress(args.progress)
    code = 0

    def told(number: int, done: RolledUp) -> None:
        nonlocal code
        progress.close()
        code |= report_rolled_up(f"batch {number}", done)

    try:
        progress.tell(f"starting Spark on {args.master} …")
        with spark_session(args.master) as spark:
            from heliograph.monitor.history.stream import stream

            stop = stopping()  # after the start of Spark, which handles Ctrl-C in its own way
            every = None if args.once else args.every
            stream(spark, args.spool, args.history, every=every, stop=stop, told=told, progress=progress.tell)
    finally:
        progress.close()
    return code
