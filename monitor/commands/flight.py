"""``heliograph flight``: reads the flight recording of an instance.

The reader and numpy are imported only when a recording is read, so that the list of commands loads fast.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heliograph.engine.catalogue import times
from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.commands.arguments import add_collect_option, positive
from heliograph.monitor.commands.common import Subparsers, add_command, folder_of
from heliograph.monitor.errors import UserError
from heliograph.monitor.text import bytes_text, table

if TYPE_CHECKING:
    from heliograph.monitor.flight.curves import Curve
    from heliograph.monitor.flight.deviations import Deviation
    from heliograph.monitor.flight.reader import Recording, Series
    from heliograph.monitor.flight.study import Study

__all__ = ["command"]

DAMAGED = 1

_ABOUT = """\
Read a flight recording: every statistic of an instance, every 10 ms, before and after a fault.
Shows a summary, the most unusual period, all curves at a glance, and a table of the ticks around
the moment of interest.

An instance records all the time (option flight_bytes). It keeps the recording when a fault occurs
(option flight_freeze) or on request: heliograph ctl freeze --instance feed.

FILE is a recording, or the name of an instance whose ring is read in its present state.
Recordings are files on the host of the instance and are not published: --collect is refused.

TIME (--from, --to, --around) is in seconds from the start (12.5) or the end (-3), or a time of day
(21:05:03.120; with --utc in UTC).

Exit codes: 0 read, 1 read except for damaged parts (they are named), 2 cannot be read.
"""

_EXAMPLES = """\
heliograph flight --list
  heliograph flight feed
  heliograph flight /dev/shm/heliograph/feed.4711.1.flight --html burst.html
  heliograph flight feed --around 21:05:03.120 --rows 60
  heliograph flight feed --from=-5 --json --cells 'receiver.queue_*'"""


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``flight``."""
    parser = add_command(subparsers, "flight", "read a flight recording", _ABOUT, _EXAMPLES)
    parser.add_argument("file", metavar="FILE", nargs="?", help="a recording, or the name of a running instance")
    parser.add_argument("--list", action="store_true", help="list the recordings in the segment directory")
    parser.add_argument("--json", action="store_true", help="print one JSON object with everything, or with the list")
    parser.add_argument(
        "--cells",
        metavar="PATTERN",
        help="with --json: raw cells by scope and name, such as 'tx_stream.rate_*', instead of the curves",
    )
    parser.add_argument("--html", metavar="OUT", type=Path, help="write a page with all curves; one file, no script")
    parser.add_argument("--from", dest="start", metavar="TIME", help="leave out earlier ticks")
    parser.add_argument("--to", dest="end", metavar="TIME", help="leave out later ticks")
    parser.add_argument(
        "--around",
        metavar="TIME",
        help="moment of interest: a TIME, trigger (why the recording was kept) or burst (the most unusual period). "
        "Default: trigger; burst for the ring and for a recording kept by hand",
    )
    parser.add_argument(
        "--rows", metavar="N", type=positive, default=20, help="number of ticks in the table (default: 20)"
    )
    add_collect_option(parser, hidden=True)
    times.add_utc_option(parser)
    parser.set_defaults(run=run)


# ---- files ----


def _list(folder: Path, as_json: bool, all_users: bool) -> int:
    from heliograph.monitor.flight.files import recordings
    from heliograph.monitor.flight.format import FlightError, State, read_header

    rows: list[dict[str, Any]] = []
    for path in recordings(folder, all_users):
        try:
            header, _ = read_header(path, all_users)
        except FlightError as error:
            rows.append({"file": path.name, "state": "unreadable", "error": str(error)})
            continue
        kind = "kept" if header.state is State.FROZEN else "ring" if header.state is State.RECORDING else "incomplete"
        rows.append(
            {
                "file": path.name,
                "instance": header.name,
                "pid": header.pid,
                "state": kind,
                "bytes": path.stat().st_blocks * 512,
                "kept_ns": header.trigger_ns or None,
                "why": header.why or None,
            }
        )
    if as_json:
        print(json_text({"recordings": rows}))
        return 0
    if not rows:
        print(f"no recordings in {folder}")
        return 0
    shown = []
    for row in rows:
        size = bytes_text(row["bytes"]) if "bytes" in row else ""
        when = times.date_time(row.get("kept_ns") or 0)
        shown.append([row["file"], row["state"], size, when, row.get("why") or row.get("error") or ""])
    print("\n".join(table(("file", "state", "size", "of", "why"), shown, left=2)))
    return 0


# ---- moments ----


def _position(text: str, recording: Recording) -> int:
    """Return the position of the tick at a time as users write it.

    Raises:
        UserError: The text is not a time.
    """
    from bisect import bisect_left

    clock = re.fullmatch(r"(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d+)?))?", text)
    if clock:
        day = times.at(recording.wall_ns[0]).replace(hour=0, minute=0, second=0, microsecond=0)
        seconds = int(clock[1]) * 3600 + int(clock[2]) * 60 + float(clock[3] or 0)
        wall_ns = int(day.timestamp()) * 1_000_000_000 + round(seconds * 1e9)
        if wall_ns < recording.wall_ns[0] - 43_200_000_000_000:
            wall_ns += 86_400_000_000_000  # the recording crosses midnight
        return recording.position_of(wall_ns)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise UserError(f"{text!r} is not a time: write seconds from the start (12.5) or the end (-3), or 21:05:03.120")
    start = recording.mono_ns[0] if not text.startswith("-") else recording.mono_ns[-1]
    return min(bisect_left(recording.mono_ns, start + round(seconds * 1e9)), len(recording.mono_ns) - 1)


def _study(recording: Recording, arguments: argparse.Namespace) -> Study:
    from heliograph.monitor.flight.study import study_of

    first = _position(arguments.start, recording) if arguments.start else 0
    last = _position(arguments.end, recording) if arguments.end else len(recording.numbers) - 1
    if first > last:
        raise UserError("--from is after --to")
    around = arguments.around
    if around in (None, "trigger", "burst"):
        return study_of(recording, first=first, last=last, around=around)
    return study_of(recording, first=first, last=last, at=_position(around, recording))


# ---- JSON ----


def _numbers(values: Series) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def _curve(curve: Curve, span: slice) -> dict[str, object]:
    spec = curve.spec
    return {"title": spec.title, "group": spec.group, "unit": spec.unit, "values": _numbers(curve.values[span])}


def _cells(recording: Recording, pattern: str, span: slice) -> Iterator[dict[str, object]]:
    from fnmatch import fnmatchcase

    for track in recording.tracks:
        for cell in track.changes:
            if fnmatchcase(f"{track.scope}.{cell}", pattern):
                values = track.values(cell, len(recording.numbers))[span]
                yield {"scope": track.scope, "labels": dict(track.labels), "cell": cell, "values": _numbers(values)}


def _deviation(item: Deviation, recording: Recording) -> dict[str, object]:
    return {
        "curve": item.curve.spec.key,
        "of": item.owner or None,
        "start_s": float(recording.times[item.first]),
        "end_s": float(recording.times[item.last]),
        "value": item.value,
        "usual": item.usual,
        "z": item.score,
    }


def _json(study: Study, pattern: str | None) -> dict[str, object]:
    recording, header = study.recording, study.recording.header
    span = slice(study.first, study.last + 1)
    burst, trigger, found = study.burst, recording.trigger, study.findings
    out: dict[str, object] = {
        "file": str(recording.path),
        "instance": header.name,
        "pid": header.pid,
        "incarnation": header.incarnation,
        "state": header.state.name.lower(),
        "number": header.number,
        "trigger": trigger and {"time_ns": trigger.time_ns, "event": trigger.event, "why": trigger.why},
        "burst": burst
        and {
            "start_s": burst.start,
            "end_s": burst.end,
            "messages_per_s": burst.rate,
            "usual_per_s": burst.usual,
            "z": burst.score,
            "notable": burst.is_notable,
        },
        "unusual": found
        and {
            "start_s": float(recording.times[found.first]),
            "end_s": float(recording.times[found.last]),
            "curves": found.considered,
            "deviations": [_deviation(item, recording) for item in found.deviations],
        },
        "ticks": {
            "number": recording.numbers[span],
            "wall_ns": recording.wall_ns[span],
            "seconds": recording.times[span].tolist(),
            "late_ns": recording.late_ns[span],
        },
        "gaps": [{"at": gap.position - study.first, "ticks": gap.ticks, "why": gap.why} for gap in recording.gaps],
        "events": [
            {
                "at": at - study.first,
                "time_ns": event.time_ns,
                "number": event.number,
                "name": event.name,
                "severity": event.severity,
                "labels": dict(event.labels),
                "arguments": dict(event.arguments),
                "text": event.text,
            }
            for at, event in recording.events
            if study.first <= at <= study.last
        ],
        "events_missed": recording.events_missed,
        "damage": recording.damage,
    }
    if pattern is None:
        out["curves"] = {curve.spec.key: _curve(curve, span) for curve in study.curves if not curve.is_flat}
    else:
        out["cells"] = list(_cells(recording, pattern, span))
    return out


# ---- the command ----


def _write_page(study: Study, out: Path) -> None:
    from heliograph.monitor.flight.page import page

    try:
        out.write_text(page(study), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror}") from None
    print(f"wrote {out}", file=sys.stderr)


def run(arguments: argparse.Namespace) -> int:
    """Read one recording, or list them."""
    if arguments.verb_collect:
        raise UserError(
            "flight recordings stay on the host of their instance, --collect does not receive them: "
            "run 'heliograph flight' on that host, or copy the recording here and name the file; "
            "'heliograph events --collect URL' shows which recordings were kept"
        )
    folder = folder_of(arguments)
    if arguments.list:
        return _list(folder, arguments.json, arguments.all_users)
    if arguments.file is None:
        raise UserError("name a recording or an instance; --list shows the recordings")
    if arguments.cells is not None and not arguments.json:
        raise UserError("--cells needs --json")

    from heliograph.monitor.flight.files import find
    from heliograph.monitor.flight.reader import read
    from heliograph.monitor.flight.text import events_lines, findings_lines, head_lines, overview_lines, table_lines

    recording = read(find(arguments.file, folder, arguments.all_users), arguments.all_users)
    study = _study(recording, arguments)
    if arguments.html is not None:
        _write_page(study, arguments.html)
    if arguments.json:
        sys.stdout.write(json_text(_json(study, arguments.cells), allow_nan=False))
        sys.stdout.write("\n")
    elif arguments.html is None:
        parts = [head_lines(study), findings_lines(study), overview_lines(study), table_lines(study, arguments.rows)]
        parts.append(events_lines(study))
        print("\n\n".join("\n".join(part) for part in parts if part))
    return DAMAGED if recording.damage else 0
