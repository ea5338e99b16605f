"""`heliograph history percentiles` and `heliograph history verify`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path
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
    place,
    progress_option,
    report_problems,
)
from heliograph.monitor.history.schema import LABELS
from heliograph.monitor.text import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from heliograph.monitor.history.verify import Verified

__all__ = ["add_percentiles", "add_verify"]

_UNITS = ("ns", "us", "ms", "s")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def add_percentiles(actions: Actions[argparse.ArgumentParser]) -> None:
    """Add ``heliograph history percentiles``."""
    parser = add_action(
        actions,
        "percentiles",
        _percentiles,
        "percentile distributions as text (.hgrm), for HdrHistogram's plotter",
        "Write the percentile distribution of each series over the selected time, in the text form of HdrHistogram's\n"
        "Java reference: value, percentile, count, 1/(1-percentile), and a summary. With --hgrm each series becomes a\n"
        "file, which HdrHistogram's plotter and other tools read.\n\n"
        "A selection is a list of LABEL=PATTERN with * and ?, and from=TIME and to=TIME, in UTC or with an offset.",
        "heliograph history percentiles --history history --select topic=PRICES.A --hgrm plots",
    )
    history_option(parser)
    parser.add_argument("--spool", type=place, metavar="DIR", help="read a spool instead of a history")
    parser.add_argument("--select", default="", metavar="SELECTION", help="labels and times (default: everything)")
    parser.add_argument("--metric", default="", help="metric (default: all)")
    parser.add_argument(
        "--by",
        default=",".join(LABELS),
        metavar="LABELS",
        help="labels that tell series apart, with commas (default: %(default)s)",
    )
    parser.add_argument("--unit", choices=_UNITS, default="us", help="unit of the values (default: %(default)s)")
    parser.add_argument(
        "--ticks", type=_ticks, default=5, metavar="N", help="steps in each half of the distance to 100 %% (default: 5)"
    )
    parser.add_argument("--csv", action="store_true", help="columns with commas")
    parser.add_argument("--hgrm", type=Path, metavar="DIR", help="write one file per series into this directory")


def _ticks(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1000:
        raise argparse.ArgumentTypeError(f"{text} is not a number of steps from 1 to 1000")
    return value


def add_verify(actions: Actions[argparse.ArgumentParser]) -> None:
    """Add ``heliograph history verify``."""
    parser = add_action(
        actions,
        "verify",
        _verify,
        "check every stored histogram with another decoder",
        "Read all rows of a spool, and of the hours and days of a history, again with the `hdrhistogram` package.\n"
        "Compare counts, maximum and percentiles with what Heliograph stored and reads. Without --spool and\n"
        "--history, the directories `spool` and `history` are checked if they are there. Hours of versions before 0.2\n"
        "are checked after the next roll-up.\n\n"
        "Exit code 0: all are equal; 1: a row differs or cannot be read, named on stderr; 2: nothing was checked.",
        "heliograph history verify --spool spool --history history",
    )
    parser.add_argument("--spool", type=place, metavar="DIR", help="directory of the spool")
    parser.add_argument("--history", type=place, metavar="DIR", help="directory of the history")
    parser.add_argument("--json", action="store_true", help="one JSON object, durations in ns")
    progress_option(parser)


def _percentiles(args: argparse.Namespace) -> int:
    needs_pyarrow()
    from heliograph.monitor.history.hgrm import distribution, series_line
    from heliograph.monitor.history.merge import ALL_LABELS, merge
    from heliograph.monitor.history.report.writing import write_report
    from heliograph.monitor.history.rows import rows

    by = tuple(dict.fromkeys(name.strip() for name in args.by.split(",") if name.strip()))
    if unknown := sorted(set(by) - set(ALL_LABELS)):
        raise UserError(f"--by: there is no label {unknown[0]}; the labels are {', '.join(ALL_LABELS)}")
    table, problems = _chosen(args)
    whole, refused = merge(table, None, by=by)
    for reason, count in refused.items():
        print(f"heliograph: {count} rows left out: {reason}", file=sys.stderr)
    taken: set[str] = set()
    for row in rows(whole):
        lines = [series_line({name: row.labels[name] for name in by})]
        lines += distribution(row.counts(), unit=args.unit, ticks=args.ticks, csv=args.csv)
        if args.hgrm is None:
            print("\n".join(map(printable, lines)))
            continue
        path = args.hgrm / _file_name([row.labels[name] for name in by], taken)
        write_report("\n".join(lines) + "\n", path)
        print(printable(f"{path}: {row.figures['n']:,} values"))
    return 1 if problems or refused else 0


def _chosen(args: argparse.Namespace) -> tuple[pa.Table, int]:
    """Return the selected rows, and the amount of unusable input."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from heliograph.monitor.history.hours import read_history
    from heliograph.monitor.history.merge import HOUR_US, merge_spool
    from heliograph.monitor.history.studies.days import choose_rows, note_lines
    from heliograph.monitor.history.studies.samples import parse_selection

    selection = parse_selection(args.select)
    if args.spool is not None:
        whole, problems = merge_spool(args.spool, HOUR_US)
    else:
        whole, broken = read_history(args.history)
        problems = [(one, 0) for one in broken]
    count = report_problems(problems)
    metrics = [args.metric] if args.metric else pc.unique(whole["metric"]).to_pylist()
    tables = [whole.slice(0, 0)]
    for metric in metrics:
        found = choose_rows(whole, selection, metric)
        tables += [found.hours, found.days]
        for line in note_lines(found.notes):
            print(line, file=sys.stderr)
    table = pa.concat_tables(tables)
    if table.num_rows == 0:
        what = args.metric or "any metric"
        raise UserError(f"{args.spool or args.history}: no hour of {what} is selected by {selection.text!r}")
    return table, count


def _file_name(labels: Iterable[str], taken: set[str]) -> str:
    stem = "-".join(part for part in (_UNSAFE.sub("_", label) for label in labels) if part).strip(".")[:150] or "series"
    name, number = f"{stem}.hgrm", 2
    while name in taken:
        name, number = f"{stem}-{number}.hgrm", number + 1
    taken.add(name)
    return name


def _verify(args: argparse.Namespace) -> int:
    needs_pyarrow()
    from heliograph.monitor.history.verify import verify_history, verify_spool

    spool, history = args.spool, args.history
    if spool is None and history is None:
        spool, history = (path if path.is_dir() else None for path in (Path("spool"), Path("history")))
        if spool is None and history is None:
            raise UserError(
                "there is neither a directory `spool` nor `history` here; name one with --spool or --history"
            )
    progress = Progress(args.progress)
    done: list[Verified] = []
    try:
        if spool is not None:
            done.append(verify_spool(spool, progress.tell))
        if history is not None:
            done += verify_history(history, progress.tell)
    finally:
        progress.close()
    print(_verified_json(done) if args.json else "\n".join(map(_line, done)))
    differences = [found for one in done for found in one.differences]
    for found in differences[:NAMED]:
        where = f"{found.path}: row {found.row} ({found.series})" if found.row >= 0 else found.path
        print(
            printable(f"heliograph: {where}: {found.column} is {found.stored:,}, hdrhistogram reads {found.found:,}"),
            file=sys.stderr,
        )
    if len(differences) > NAMED:
        print(f"heliograph: and {len(differences) - NAMED} more differences", file=sys.stderr)
    problems = report_problems((broken, 0) for one in done for broken in one.broken)
    return 1 if differences or problems else 0


def _line(one: Verified) -> str:
    rows = {found.path + str(found.row) for found in one.differences}
    result = "all equal" if not rows and not one.broken else f"{len(rows):,} differ, {len(one.broken):,} unreadable"
    return f"{one.kind}: {one.rows:,} rows with {one.values:,} values in {one.files:,} files: {result}"


def _verified_json(done: Iterable[Verified]) -> str:
    return json_text(
        {
            "checked": [
                {
                    "kind": one.kind,
                    "files": one.files,
                    "rows": one.rows,
                    "values": one.values,
                    "differences": [
                        {
                            "path": found.path,
                            "row": found.row if found.row >= 0 else None,
                            "series": found.series,
                            "column": found.column,
                            "stored": found.stored,
                            "found": found.found,
                        }
                        for found in one.differences
                    ],
                    "unreadable": [{"path": broken.path, "reason": broken.reason} for broken in one.broken],
                }
                for one in done
            ]
        }
    )
