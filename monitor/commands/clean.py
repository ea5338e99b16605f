"""``heliograph clean``: removes the files of engines that have ended, and nothing else.

A segment is removed only when it can be read, names its owner, and the owning process has ended or closed the engine.
The command reads a segment twice before it removes it. A heartbeat that moves, or a lock on the file, shows an engine
that runs in another container. The ring of a flight recorder is removed with its engine. Flight recordings are
evidence: they stay unless the user asks to remove them.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from heliograph.monitor.commands.common import Subparsers, add_command, folder_of
from heliograph.monitor.directory import SegmentError
from heliograph.monitor.errors import UserError
from heliograph.monitor.flight.format import SUFFIX as FLIGHT_SUFFIX
from heliograph.monitor.flight.format import FlightError, State, read_header
from heliograph.monitor.header import WRITING
from heliograph.monitor.health import ProcessStart, judge, process_start_ns
from heliograph.monitor.model import Health
from heliograph.monitor.ownership import folder_fault, is_own
from heliograph.monitor.sampler import SUFFIX
from heliograph.monitor.segment import Segment
from heliograph.monitor.text import printable

__all__ = ["Finding", "command", "inspect"]

SECOND_LOOK_SECONDS = 0.25
"""An engine's heartbeat moves at least every 0.1 s."""
ANOTHER_NS = 2_000_000_000
"""A process that started this much later than the segment is a different process with the same id."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The decision about one file, and the reason."""

    path: Path
    remove: bool
    reason: str
    identity: tuple[int, int] | None = None
    heartbeat_ns: int = 0
    """Tick count of a flight recorder's ring; heartbeat of a segment."""
    is_recording: bool = False
    """Whether the file is a flight recording."""


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``clean``."""
    parser = add_command(
        subparsers,
        "clean",
        "remove the stats segments of engines that crashed",
        "Remove the stats segments and flight recorder rings of dead processes; print the files kept, and why.\n"
        "A file that cannot be read is kept: a newer version of Heliograph may have written it. Flight recordings are\n"
        "kept too, unless --recordings is given.",
        "heliograph clean --dry-run",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the files that would be removed, but remove none")
    parser.add_argument("--recordings", action="store_true", help="also remove the flight recordings of dead processes")
    parser.set_defaults(run=run)


def _look_at_flight(path: Path, process_start: ProcessStart, all_users: bool) -> Finding:
    try:
        header, identity = read_header(path, all_users)
    except FlightError as error:
        return Finding(path, False, str(error))
    is_kept = header.state is State.FROZEN
    start = process_start(header.pid)
    gone = start is None or start > header.started_ns + ANOTHER_NS
    what = f"flight recording {header.number}" if header.number else "flight recorder's ring"
    reason = f"{what}; process {header.pid} {'has ended' if gone else 'is running'}"
    return Finding(path, gone, reason, identity, header.ticks, is_kept)


def _look(path: Path, now_ns: int, process_start: ProcessStart, all_users: bool) -> Finding:
    if path.name.endswith(FLIGHT_SUFFIX):
        return _look_at_flight(path, process_start, all_users)
    try:
        with Segment(path, all_users) as segment:
            header = segment.opened
            identity = segment.identity
    except SegmentError as error:
        return Finding(path, False, str(error))
    if header.state == WRITING:
        gone = process_start(header.pid) is None
        reason = f"never finished; process {header.pid} has ended" if gone else "is being written"
        return Finding(path, gone and header.pid > 0, reason, identity)
    verdict = judge(header, now_ns, process_start)
    remove = verdict.health in (Health.DEAD, Health.CLOSED)
    return Finding(path, remove, verdict.reason, identity, header.heartbeat_ns)


def _is_own(path: Path) -> bool:
    try:
        return is_own(path.lstat().st_uid)
    except OSError:
        return False  # another process removed it after the listing


def _locked(path: Path) -> bool:
    """Whether another process holds a lock on the file, as a running engine does."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def _remove(finding: Finding) -> None:
    """Lock and remove a file that no process holds, so that a starting engine cannot take the name meanwhile.

    Raises:
        OSError: The file cannot be removed, or another process holds it.
    """
    try:
        file = os.open(finding.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        named = finding.path.lstat()
        if (named.st_dev, named.st_ino) == finding.identity:  # otherwise an engine has replaced the file
            finding.path.unlink(missing_ok=True)
    finally:
        os.close(file)


def inspect(
    folder: Path,
    clock: Callable[[], int] = time.time_ns,
    process_start: ProcessStart = process_start_ns,
    pause: Callable[[float], None] = time.sleep,
    all_users: bool = False,
) -> Iterator[Finding]:
    """Decide about every segment and flight recording of a directory: those of this user, or of all users.

    Raises:
        UserError: The directory cannot be listed, or other users can replace the files in it.
    """
    fault = folder_fault(folder, all_users)
    if fault is not None:
        raise UserError(f"the segment directory {folder} is not cleaned: {fault}")
    try:
        paths = sorted([*folder.glob(f"*{SUFFIX}"), *folder.glob(f"*{FLIGHT_SUFFIX}")])
        paths = [path for path in paths if all_users or _is_own(path)]
    except OSError as error:
        raise UserError(f"the segment directory {folder} cannot be listed: {error.strerror}") from None
    first = [_look(path, clock(), process_start, all_users) for path in paths]
    if any(finding.remove for finding in first):
        pause(SECOND_LOOK_SECONDS)
    for finding in first:
        if not finding.remove:
            yield finding
            continue
        again = _look(finding.path, clock(), process_start, all_users)
        if (again.identity, again.heartbeat_ns) != (finding.identity, finding.heartbeat_ns):
            yield Finding(finding.path, False, "it changed during the check: its engine is running")
        elif _locked(finding.path):
            yield Finding(finding.path, False, "held by a running engine")
        else:
            yield again


def run(arguments: argparse.Namespace) -> int:
    """Remove the files of dead engines; returns 1 when a file could not be removed."""
    removed = kept = failed = recordings = 0
    for finding in inspect(folder_of(arguments), all_users=arguments.all_users):
        if finding.is_recording and not arguments.recordings:
            recordings += 1
            continue
        shown = f"{printable(finding.path.name)}: {printable(finding.reason)}"
        if not finding.remove:
            kept += 1
            print(f"kept     {shown}")
            continue
        try:
            if not arguments.dry_run:
                _remove(finding)
        except OSError as error:
            failed += 1
            print(f"failed   {shown}; cannot be removed: {error.strerror}")
            continue
        removed += 1
        print(f"{'would remove' if arguments.dry_run else 'removed '} {shown}")
    done = "to remove" if arguments.dry_run else "removed"
    print(f"{removed} {done}, {kept} kept" + (f", {failed} failed" if failed else ""))
    if recordings:
        print(f"flight recordings kept: {recordings} (heliograph flight --list shows them, --recordings removes them)")
    return 1 if failed else 0
