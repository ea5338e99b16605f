"""`heliograph store`: the files of a message store, listed and verified; `store_serve` writes them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from heliograph.engine.commands import status_line
from heliograph.engine.store_replay import add_replay
from heliograph.engine.store_serve import add_serve

__all__ = ["Segment", "command", "faults", "segments"]

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


@dataclass(frozen=True)
class Segment:
    """A segment of a stream, as found on disk."""

    stream: str
    number: int
    header: str
    position: int
    messages: int
    bytes: int
    whole_bytes: int
    first_ns: int
    last_ns: int
    tail: str
    index: str
    batches: int


def segments(
    path: Path, thorough: bool = False, progress: Callable[[int], None] = lambda segments: None
) -> list[Segment]:
    """The segments of a store, in the order of stream and number. The store may be written meanwhile.

    Args:
        path: Directory of the store.
        thorough: Check every record, not only the heads of batches.
        progress: Called with the number of segments read so far.

    Raises:
        Error: The directory cannot be read, is not a store, or has another version.
    """
    from heliograph.engine import _store

    found: list[Segment] = []
    for count, one in enumerate(_store.ids(path), 1):
        row = _store.segment(path, one, thorough)
        if row is not None:
            found.append(Segment(*row))
        else:  # Retention has removed it meanwhile, after those before it.
            found = [before for before in found if before.stream != _stream(one) or _is_there(path, before)]
        progress(count)
    return found


def _stream(one: tuple[bytes, int, int]) -> str:
    return f"{one[0].hex()}:{one[1]}"


def _is_there(path: Path, segment: Segment) -> bool:
    return (path / f"{segment.stream.replace(':', '-')}-{segment.number:016x}.seg").exists()


def faults(found: list[Segment]) -> list[str]:
    """Damage of a store. An incomplete end of a stream is none: a crash leaves it, and the writer cuts it off."""
    wrong = []
    for i, segment in enumerate(found):
        name = f"stream {segment.stream}, segment {segment.number}"
        is_last = i + 1 == len(found) or found[i + 1].stream != segment.stream
        if segment.header != "ok":
            if segment.header != "incomplete" or not is_last:
                wrong.append(f"{name}: header: {segment.header}")
            continue
        if segment.tail == "damaged" or (segment.tail != "ok" and not is_last):
            wrong.append(f"{name}: {segment.tail} at byte {segment.whole_bytes}")
        before = found[i - 1] if i > 0 and found[i - 1].stream == segment.stream else None
        if before is None or before.header != "ok" or before.tail != "ok":
            continue
        if segment.number != before.number + 1:
            wrong.append(f"{name}: segments before it are missing")
        elif segment.position != before.position + before.messages:
            wrong.append(f"{name}: begins at position {segment.position}, not {before.position + before.messages}")
    return wrong


def command(subparsers: Subparsers) -> None:
    """Add ``heliograph store``."""
    parser = subparsers.add_parser(
        "store",
        help="keep messages in a store, replay them, list or verify the files",
        description="Keep messages in a store, replay them, list or verify the files.",
        epilog="example:\n  heliograph store verify /var/lib/heliograph/store",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_serve(actions)
    add_replay(actions)
    for name, text in (
        ("ls", "list the segments with their messages"),
        ("verify", "check every record; exit code 1 reports damage"),
    ):
        action = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        action.add_argument("dir", type=Path, metavar="DIR", help="directory of the store")
        action.add_argument("--json", action="store_true", help="print one JSON object")
        action.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from heliograph.engine.errors import Error

    thorough = arguments.action == "verify"
    try:
        found = segments(arguments.dir, thorough, lambda count: status_line(f"{count:,} segments read"))
        status_line("")
    except Error as error:
        print(f"heliograph: {error}", file=sys.stderr)
        return 2
    wrong = faults(found) if thorough else []
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
        print(f"{verdict}: {messages:,} messages in {len(found):,} segments, {rest:,} bytes after the last whole batch")
        return 1 if wrong else 0
    print(f"{'STREAM':<20}{'SEGMENT':>8}{'FIRST':>12}{'MESSAGES':>12}{'BYTES':>14}")
    for segment in found:
        print(f"{segment.stream:<20}{segment.number:>8}{segment.position:>12}{segment.messages:>12}{segment.bytes:>14}")
    return 0
