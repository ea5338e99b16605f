"""`heliograph store trim`: removes the oldest segments of streams."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from heliograph.engine.store.arguments import duration, size
from heliograph.engine.store.files import Segment, segments

__all__ = ["add_trim", "oldest"]

Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_EPILOG = """\
The options --retain-bytes and --retain-time of `heliograph store serve` do the same while it runs.

example:
  heliograph store trim /var/lib/heliograph/store --keep-time 7d --dry-run
"""


def oldest(found: Sequence[Segment], keep_bytes: int | None, since_ns: int | None) -> list[Segment]:
    """The segments of one stream to remove, oldest first.

    The last segment, which a writer would continue, stays unless all its messages are old.

    Args:
        found: Segments of the stream in order.
        keep_bytes: Most bytes of the segments that stay; None: no limit.
        since_ns: Segments whose last message was received before are removed, ns since 1970; None: none are.
    """
    rest = sum(segment.bytes for segment in found)
    removed = []
    for segment in found:
        is_old = since_ns is not None and segment.header == "ok" and 0 < segment.last_ns < since_ns
        is_beyond = keep_bytes is not None and rest > keep_bytes and segment is not found[-1]
        if not is_old and not is_beyond:
            break
        removed.append(segment)
        rest -= segment.bytes
    return removed


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of the writer.

    Raises:
        UsageError: Another process writes the store.
    """
    from heliograph.engine.errors import UsageError

    lock = os.open(path / "store.lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another process writes the store {path}; use its --retain options") from None
        yield
    finally:
        os.close(lock)


def add_trim(actions: Actions) -> None:
    """Add ``heliograph store trim``."""
    parser = actions.add_parser(
        "trim",
        help="remove the oldest segments of streams",
        description="Remove the oldest segments of streams, in a store that nobody writes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dir", type=Path, metavar="DIR", help="directory of the store")
    parser.add_argument("--stream", metavar="GSI:PORT", help="only this stream (default: all)")
    parser.add_argument("--keep-bytes", type=size, metavar="SIZE", help="most bytes of a stream that stay, such as 10G")
    parser.add_argument(
        "--keep-time", type=duration, metavar="TIME", help="remove segments whose messages are all older, such as 7d"
    )
    parser.add_argument("--dry-run", action="store_true", help="only print the segments that would be removed")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from heliograph.engine.options import refusal

    if arguments.keep_bytes is None and arguments.keep_time is None:
        raise refusal("give --keep-bytes, --keep-time or both")
    found = segments(arguments.dir)
    names = list(dict.fromkeys(segment.stream for segment in found))
    if arguments.stream and arguments.stream not in names:
        raise refusal(
            f"the store {arguments.dir} has no stream {arguments.stream}; it has {', '.join(names) or 'none'}"
        )
    since = None if arguments.keep_time is None else time.time_ns() - int(arguments.keep_time * 1e9)
    removed: list[Segment] = []
    with _locked(arguments.dir):
        for stream, group in groupby(segments(arguments.dir), lambda segment: segment.stream):
            if arguments.stream in (None, stream):
                removed += oldest(list(group), arguments.keep_bytes, since)
        for segment in () if arguments.dry_run else removed:
            path = arguments.dir / f"{segment.stream.replace(':', '-')}-{segment.number:016x}.seg"
            path.unlink(missing_ok=True)
            path.with_suffix(".idx").unlink(missing_ok=True)
    if arguments.json:
        print(json.dumps({"removed": [asdict(segment) for segment in removed], "dry_run": arguments.dry_run}))
        return 0
    for segment in removed:
        print(f"{segment.stream} segment {segment.number}: {segment.messages:,} messages, {segment.bytes:,} bytes")
    total = sum(segment.bytes for segment in removed)
    print(f"{'would remove' if arguments.dry_run else 'removed'} {len(removed):,} segments, {total:,} bytes")
    return 0
